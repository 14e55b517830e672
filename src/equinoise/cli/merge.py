"""``equinoise merge``: slices of a run, made anywhere, joined to the bits of one run."""

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common

_SLICED = ("bandit", "efb", "sweep")
_MARK = ".merging"  # locked in --out/replicates until all is joined
_SAID = re.compile(r"(?!-)|--(?!(out|replicates|json|jobs|dask)\Z)[a-z-]+\Z")  # arguments and options


def command(
    folders: Annotated[list[Path], common.argument("Folders of slices, side by side.", "FOLDERS...")],
    out: Annotated[Path, common.option("New folder for what one run would have written.")],
) -> None:
    """Join slices of one run that --replicates A:B made.

    Takes slices of bandit, efb and sweep, in any order; refuses gaps, overlaps and slices of different runs.
    Writes what the command would have written for all replicates, and joins again with further slices.
    """
    from equinoise import _checkpoint, _files, replicates
    from equinoise.cli import app

    slices = [_slice(folder) for folder in folders]
    what, runs, *_ = slices[0]
    for folder, (other, others, *_) in zip(folders, slices, strict=True):
        names = [name for name in {**what, **other} if what.get(name) != other.get(name)]
        if names or runs != others:
            got = f"{folders[0]} and {folder}: not the same {', '.join(names) or 'runs'}"
            raise common.WrongUse(f"FOLDERS must be slices of one run, got {got}")
    kept = out / common.KEPT
    mark, whole = kept / _MARK, kept / common.COMMAND
    with contextlib.suppress(OSError), mark.open("rb+") as left:
        if _files.claimed(left) and not whole.exists():  # a merge was killed
            shutil.rmtree(kept)
    if kept.exists() or (out / common.COMMAND).exists():
        raise common.WrongUse(f"--out must be a folder without slices, got {out}")
    with contextlib.ExitStack() as opened, contextlib.ExitStack() as failed:
        try:
            _files.writable_folder("--out", out)
            failed.callback(shutil.rmtree, kept if out.exists() else out, ignore_errors=True)
            kept.mkdir(parents=True)
            _files.claimed(opened.enter_context(mark.open("xb")))
            spans = {replicates.merge([f / common.KEPT / run for f in folders], kept / run) for run in runs}
        except (ValueError, FileNotFoundError) as error:
            raise common.WrongUse(str(error).replace("folders must", "FOLDERS must")) from error
        span, *uneven = spans
        lost = [of for *_, of in slices if of.start not in span or of.stop - 1 not in span]
        if uneven or lost:  # blocks at an end
            got = ", ".join(sorted(map(str, spans)))
            raise common.WrongUse(f"FOLDERS must have all replicates of their slices, got {got}")
        command = what.pop("command")
        given = [(name, value) for name, values in what.items() for value in values]
        both = ((value, value.rpartition(":")[2]) for _, value in given)  # a schedule's is behind its trials
        files = [file for pair in both for file in dict.fromkeys(pair)]
        home = next((at for *_, at, _ in slices if any(map(os.path.isfile, map(at.joinpath, files)))), Path())
        there = out if home.samefile(".") else out.absolute()
        words = [command, f"--replicates={span.start}:{span.stop}", f"--out={there}"]
        words += [f"{name}={value}" for name, value in given if name.startswith("-")]
        words += ["--", *(value for name, value in given if not name.startswith("-"))]
        try:
            with contextlib.chdir(home):
                code = app(args=words, standalone_mode=False, obj=set(runs))
        except _checkpoint.OtherRun as error:  # of a folder that is gone, in words of the work
            made_of = sorted({each for each in files if (home / each).is_file()})
            got = f"{folders[0]}, made of another {' or '.join([*made_of, 'version'])}"
            raise common.WrongUse(f"FOLDERS must be slices of this very run, got {got}") from error
        failed.pop_all()
        mark.unlink()
    joined = f"{len(folders)} slice{'s' * (len(folders) > 1)}"
    print(f"Joined {joined}: replicates {span.start} to {span.stop - 1}")
    raise typer.Exit(code if isinstance(code, int) else 0)


def _slice(folder: Path) -> tuple[dict[str, Any], list[str], Path, range]:
    """Return how a slice was made, the names of its runs, where its relative paths begin, and what it is."""
    from equinoise import _files, replicates

    kept = folder / common.KEPT
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        what = _files.json_of(_files.content(kept / common.COMMAND))
        runs = sorted(path.parent.name for path in kept.glob("*/run.json"))
        home = Path(kept.resolve(), what.pop("home", "."))
        span = replicates.checked_span(common.span(what.pop("slice")))
        given = dict(what)
        right = given.pop("command") in _SLICED and all(map(_SAID.match, given))
        if right and all(isinstance(one, str) for values in given.values() for one in list(values)):
            return what, runs, home if home.is_dir() else Path(), span
    raise common.WrongUse(f"FOLDERS must be finished slices (--replicates A:B), got {str(folder)!r}")
