"""The folder of a release: a new one takes the place of an earlier one in a single step, or not at all."""

import contextlib
import ctypes
import glob
import os
import shutil
import time
from pathlib import Path

from equinoise import _files
from equinoise._typing import Iterator, Mapping

PUBLIC = ("sample.csv", "certificate.json", "distribution.png")
PRIVATE = ("scales.csv", "distribution.png", "noise.png", "run.json")
_KNOWN = {*PUBLIC, "noise.png", "private", *(f"private/{name}" for name in PRIVATE)}
_DAY = 86_400
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def own(name: str, folder: Path) -> Path:
    """Return the real path of a folder that is a release's alone, or free; refuse any other, so of `name`."""
    target = Path(os.path.realpath(folder))
    found = _strange(target)
    why = f"with {found[0]!r} in it" if found else ""
    if Path.cwd().is_relative_to(target) or os.path.ismount(target):
        why = "which is in use"
    if why:
        raise ValueError(f"{name} must be a folder of its own, got {str(folder)!r} {why}")
    _files.writable_folder(name, target.parent)
    return target


def _strange(folder: Path) -> list[str]:
    here = sorted({path.name for path in folder.glob("*")} - _KNOWN)  # to walk a whole home takes minutes
    return here or sorted({path.relative_to(folder).as_posix() for path in folder.rglob("*")} - _KNOWN)


def cautions(folder: Path) -> list[str]:
    """Return in clauses what else is in a release's folder, and whether others may open its private part."""
    said = [f"{found[0]!r} is in it, which is not of the release"] if (found := _strange(folder)) else []
    if os.name == "posix" and (folder / "private").is_dir() and (folder / "private").stat().st_mode & 0o077:
        said.append("its private/ may be opened by others")
    return said


def put(target: Path, files: Mapping[str, bytes]) -> None:
    """Put named files in the place of a folder: they are written beside it, and the two change places.

    What is in ``private/`` is for its owner alone. Files are as old as the day, since the time that a search
    takes depends on the data. Where a system cannot exchange two folders there is an instant without either:
    a kill just then leaves the earlier one under another name, which the next call takes back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.old")
    if aside.exists() and not target.exists():
        aside.rename(target)
    parts = glob.escape(f".{target.name}.") + "[0-9a-f]" * 12 + ".tmp"
    for left in (aside, *target.parent.glob(parts)):  # by a kill
        with _held(left) as free:
            if free:
                shutil.rmtree(left, ignore_errors=True)
    made = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    try:
        made.mkdir()
        with _held(made):
            _fill(made, files)
            if target.exists():
                shutil.copymode(target, made)
            _swap(made, target, aside)
    except OSError as error:  # of a file beside it that is gone, or of none
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:  # what is there now is the earlier release, or a part of the new one
        shutil.rmtree(made, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    (folder / "private").mkdir(mode=0o700)
    for name, content in files.items():
        mode = 0o600 if name.startswith("private/") else 0o666
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    dated(*(folder / name for name in (*files, "private")), folder)


def dated(*paths: Path) -> None:
    """Make files as old as the day."""
    today = time.time() // _DAY * _DAY
    for path in paths:
        os.utime(path, (today, today))


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Lock a folder for a block; whether nobody else had. No link is one, and Windows opens none."""
    with contextlib.ExitStack() as opened:
        free = False
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            opened.callback(os.close, handle)
            free = bool(_files.claimed(handle))
        yield free


def _swap(made: Path, target: Path, aside: Path) -> None:
    if not target.exists():
        made.rename(target)
    elif not _exchanged(made, target):
        try:
            target.rename(aside)
            made.rename(target)
        except BaseException:
            if aside.exists() and not target.exists():
                aside.rename(target)
            raise
        aside.rename(made)


def _exchanged(one: Path, two: Path) -> bool:
    """Let two folders change places in one step; whether this system can."""
    try:
        exchange = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # no Linux, or an old one
        return False
    return bool(exchange(_HERE, os.fsencode(one), _HERE, os.fsencode(two), _EXCHANGE) == 0)
