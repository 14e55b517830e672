"""Files that are there whole or not at all, arrays in files, and folders that are tried before the work."""

import contextlib
import errno
import io
import json
import math
import os
import re
import tempfile
import uuid
import warnings
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, Callable, Iterator, Mapping

_META = "meta_json"
_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}  # of which the system does not name the file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes that takes the place of `path` when the block ends without an error.

    Until then, and after an error, whatever was at `path` is as it was. A link is followed, not replaced.
    What a kill left of earlier writes is removed. `mode` sets permissions before there is anything to read.
    """
    target = Path(os.path.realpath(_checks.path("path", path)))
    if target.exists() and not (target.is_file() or target.is_dir()):  # or root would put a file in its place
        raise OSError(errno.EINVAL, "Not a file to replace", str(path))
    start = f".{os.fsdecode(os.fsencode(target.name)[:200])}."
    clear(target.parent, start)
    beside = target
    try:
        with _new(target, start) as file:
            beside = Path(file.name)
            if mode is not None:
                with contextlib.suppress(OSError):  # a file system without owners
                    beside.chmod(mode)
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a crash may leave the new name on an empty file
            if os.name != "nt":  # while it is claimed, or another writer may take it for a left one
                beside.replace(target)
        if os.name == "nt":  # which moves no open file
            beside.replace(target)
    except BaseException as error:
        if beside != target:
            with contextlib.suppress(OSError):
                beside.unlink()
        if isinstance(error, OSError):
            unnamed = error.filename is None and error.errno in _FULL
            if unnamed or str(error.filename).endswith(".tmp"):  # a name that nobody knows
                raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def clear(folder: Path, start: str = "") -> None:
    """Remove what writers that were killed left, of files that begin so; what another writes is locked."""
    ours = re.compile(rf"{re.escape(start) or '[.].+[.]'}[0-9a-f]{{12}}\.tmp", re.DOTALL)
    for left in filter(lambda path: ours.fullmatch(path.name), folder.glob(".*.tmp")):
        with contextlib.suppress(OSError), left.open("rb+") as found:
            if claimed(found):
                left.unlink()


def _new(target: Path, start: str) -> IO[bytes]:
    """Open a file of one's own beside a target: claimed before another writer took it for a left one."""
    while True:
        file = target.with_name(f"{start}{uuid.uuid4().hex[:12]}.tmp").open("xb")
        try:
            if not claimed(file, wait=True) or Path(file.name).exists():  # no locks here, or it is ours
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def claimed(file: IO[bytes] | int, wait: bool = False) -> bool | None:
    """Lock a file until it is closed; whether nobody else had, None without locks. Windows has its own."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return os.name == "nt" or None
    return True


@contextlib.contextmanager
def alone(path: Path, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Keep out others who ask likewise, of a file or a folder; `waits` is called before one has to wait."""
    with contextlib.ExitStack() as opened:
        while path.is_file() or (path.is_dir() and os.name != "nt"):  # Windows opens no folder
            opened.callback(os.close, handle := os.open(path, os.O_RDONLY))
            if claimed(handle) is False:
                waits()
                claimed(handle, wait=True)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                break  # it was not replaced while one waited
        yield


def json_bytes(value: Any) -> bytes:
    """Return JSON that every reader takes: indented, UTF-8, and neither NaN nor infinity as a bare word."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")  # what is no character, as in a file name of another kind


def json_of(content: bytes, **how: Any) -> Any:
    """Return what JSON says; ValueError for everything else, also for what is nested too deep."""
    try:
        return json.loads(content, **how)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def content(path: Path, pipe: bool = False) -> bytes:
    """Return what is in a file, or in a pipe where one may be; OSError for what else may never end."""
    if path.exists() and not (path.is_file() or path.is_dir() or (pipe and path.is_fifo())):
        raise OSError(errno.EINVAL, "Not a file", str(path))
    return path.read_bytes()


def write_all(folder: str | os.PathLike[str], files: Mapping[str, bytes], held: bool = False) -> list[Path]:
    """Write named files into a folder, made where it is missing: all beside their places, then into them."""
    directory, busy = Path(folder), f"waiting for another process, which writes into {folder}"
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:  # so that a disk that is full leaves everything as it was
        if not held:  # by the caller, :func:`alone`: or the files of two writers might mix
            opened.enter_context(alone(directory, lambda: warnings.warn(busy, stacklevel=2)))
        for name, content in files.items():
            file = opened.enter_context(replacing(directory / name))
            file.write(content)
            file.flush()
    return [directory / name for name in files]


def writable_folder(name: str, path: str | os.PathLike[str]) -> Path:
    """Return `path` as a folder to write into or to make, which is not done yet; ValueError says why not."""
    there = (folder := Path(path)).absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise ValueError(f"{name} must be a folder, got {str(folder)!r} where {str(there)!r} is none")
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.stat()  # says of a name that is too long
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        why = f"{name} must be a folder to write into, got {str(folder)!r}: {error.strerror}"
        raise ValueError(why) from None
    return folder


def save_arrays(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Array],
    meta: Mapping[str, Any],
    mode: int | None = None,
) -> None:
    """Write arrays, and what JSON can hold, as NumPy's ``.npz`` without pickles, under the exact name `path`.

    `kind` says what the file holds and in which version, and :func:`loaded` asks for it.
    """
    text = json.dumps({"kind": kind, **meta}, ensure_ascii=True)
    everything = {**arrays, _META: np.frombuffer(text.encode("ascii"), dtype=np.uint8)}
    with replacing(path, mode) as file:
        np.savez(file, allow_pickle=False, **everything)


@contextlib.contextmanager
def loaded(
    path: str | os.PathLike[str], kind: str, what: str = ""
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Read what :func:`save_arrays` wrote: (arrays, meta), the arrays read-only, for a block that uses them.

    ValueError where the file is cut short, damaged, or holds something else than `kind`, and where the block
    fails: it says that this is no whole `what`, by default `kind`. OSError where there is none to read.
    """
    name = _checks.path("path", path)
    try:
        if (there := Path(name)).exists() and not there.is_file():
            raise ValueError("it is a directory or a pipe")
        with there.open("rb") as file, zipfile.ZipFile(file) as archive:
            arrays = _arrays(archive, os.fstat(file.fileno()).st_size)
        meta = json_of(arrays.pop(_META).tobytes())
        if meta.pop("kind") != kind:
            raise ValueError("it is of another kind or version")
        yield arrays, meta
    except (FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:  # a damaged archive fails in many ways, of zip, of JSON, of what is made of it
        why = f"path {name!r} does not hold a whole {what or kind}: {_checks.line(error)}"
        raise ValueError(why) from error


def _arrays(archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """Return the arrays of an archive of so many bytes, as they lie there, in no more memory than these."""
    entries = archive.infolist()  # of ours none is compressed, and none overlaps another
    packed = any(entry.compress_type or entry.compress_size != entry.file_size for entry in entries)
    if packed or sum(entry.file_size for entry in entries) > size:
        raise ValueError("what is in it would be larger than the file")
    return {entry.filename.removesuffix(".npy"): _array(archive.read(entry)) for entry in entries}


def _array(content: bytes) -> Array:
    """Return the array, read-only, that the bytes of a ``.npy`` file are; ValueError for any other."""
    of = np.lib.format
    try:
        if content[6:8] == b"\3\0":  # names of fields in UTF-8, which version 2 can have as escapes
            end = 12 + int.from_bytes(content[8:12], "little")
            head = content[12:end].decode().encode("ascii", "backslashreplace")
            content = content[:6] + b"\2\0" + len(head).to_bytes(4, "little") + head + content[end:]
        file = io.BytesIO(content)
        heads = {(1, 0): of.read_array_header_1_0, (2, 0): of.read_array_header_2_0}
        shape, by_columns, dtype = heads[of.read_magic(file)](file)
    except Exception:  # whose words may advise to trust the file
        raise ValueError("the head of an array is damaged") from None
    size = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or size != len(content) - file.tell() or not dtype.itemsize:
        raise ValueError("an array is of objects, or of another size than its head says")
    return np.ndarray(shape, dtype, content, file.tell(), order="F" if by_columns else "C")
