"""``equinoise nvo``: from a column of a CSV file to a certified release."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli.common import refusing, say, working
from equinoise.cli.nvo_words import reason, show

if TYPE_CHECKING:
    from equinoise.experiments.commands.release import Release

__all__ = ["command"]

_OPTIONS = {
    "path": "FILE",
    "values": "--column",
    "n_bins": "--bins",
    "rows": "--rows",
    "total_epsilon": "--total-epsilon",
    **{
        name: f"--{name}"
        for name in (
            *("column", "bounds", "epsilon", "rows", "bins", "scales", "search", "restarts", "seed"),
            *("sep", "decimal", "jobs", "out"),
        )
    },
}


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with a header.")],
    column: Annotated[str, typer.Option(help="The column that is released.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy of one row of the sample.")] = None,
    total_epsilon: Annotated[
        float | None, typer.Option(help="Privacy of all rows together, in place of --epsilon.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LO HI",
            help="Smallest and largest value that anybody could have. By default the data's own.",
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the sample; by default as many as FILE.")] = None,
    bins: Annotated[int, typer.Option(help="Bins of the range.")] = 101,
    scales: Annotated[
        str,
        typer.Option(
            help="Noise scales to choose from: default, paper, a number of geometric steps, or a list in the "
            "units of the column, such as 20,5,0.1."
        ),
    ] = "default",
    search: Annotated[str, typer.Option(help="anneal, best-response or genetic.")] = "anneal",
    restarts: Annotated[int, typer.Option(help="Searches, of which the best is taken.")] = 1,
    seed: Annotated[
        int | None, typer.Option(help="The same rows again, for tests: such a sample is not private.")
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows where the column is empty.")
    ] = False,
    sep: Annotated[str, typer.Option(help="The character between fields; tab for a tabulator.")] = ",",
    decimal: Annotated[str, typer.Option(help="The decimal mark: . or ,")] = ".",
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one a processor.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the sample, its certificate and private/.")] = Path(
        "equinoise-nvo"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json in place of the table.")] = False,
) -> None:
    """Release a column of FILE: every record chooses how much noise it needs to be private.

    Writes a sample with its certificate and figures, and into private/ what is not for others. Exits 1
    without a sample when not every record is satisfied. An earlier release in --out is replaced.
    """
    from concurrent.futures import ThreadPoolExecutor

    from equinoise import _checks, _files
    from equinoise.experiments.commands import nvo

    with refusing(_OPTIONS), _in_options():
        folder = _files.writable_folder("out", out)
        threads = None if jobs is None else _checks.integer("jobs", jobs, minimum=1)
        parameters = nvo.Parameters(
            path=str(file),
            column=column,
            epsilon=epsilon,
            total_epsilon=total_epsilon,
            bounds=bounds,
            rows=rows,
            bins=bins,
            scales=_scales(scales),
            search=search,
            restarts=restarts,
            seed=seed,
            drop_missing=drop_missing,
            sep=sep,
            decimal=decimal,
        )
        with working(f"reading {file}"):
            read, histogram = nvo.prepare(parameters)
        earlier = _release_in(folder, file)
    _warn(parameters)
    for path in earlier:  # or a sample could be taken for this run's when it fails
        path.unlink()
    with ExitStack() as stack:
        pool = None if threads is None else stack.enter_context(ThreadPoolExecutor(threads))
        made = nvo.release(read, histogram, parameters, executor=pool, progress=True, working=working)
    written = _write(folder, made) if made.sample is not None else []
    if as_json:
        json.dump(made.document(), sys.stdout, indent=2)
        print()
    else:
        show(made, written)
    if made.sample is None:
        removed = f", and the earlier one in {folder} was removed" if earlier else ""
        say(f"failed: {reason(made)}; no sample was written{removed}")
        raise typer.Exit(1)


def _scales(text: str) -> str | int | tuple[float, ...]:
    """Return what is said of scales: a name, a number of steps, or a list, told by its commas or points."""
    if text.isdecimal():
        return int(text)
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        return text


@contextmanager
def _in_options() -> Iterator[None]:
    """Put the advice of errors, which is in Python, into the words of the options."""
    try:
        yield
    except (TypeError, ValueError) as error:
        words = str(error).replace("drop_missing=True leaves", "--drop-missing leaves")
        words = words.replace("total_epsilon", "--total-epsilon")
        words = re.sub(r",? ?\b(sep|decimal)=('.*?'|tab)", r" --\1 \2", words)
        raise type(error)(words) from error


def _release_in(folder: Path, file: Path) -> list[Path]:
    """Return the files of an earlier release in a folder; FILE must not be one of them."""
    from equinoise.experiments.commands.release import FILES

    paths = [folder / name for name in FILES]
    if any(path.exists() and path.samefile(file) for path in paths):
        raise ValueError(f"out must not be a folder in which FILE would be overwritten, got {str(folder)!r}")
    return [path for path in paths if path.is_file()]


def _warn(parameters: Any) -> None:
    if parameters.bounds is None:
        say(
            "warning: without --bounds the range comes from the data's own smallest and largest value, which "
            "show in the sample"
        )
    if parameters.seed is not None:
        say("warning: with --seed the sample can be drawn again by others: it is not private")


def _write(folder: Path, made: Release) -> list[Path]:
    from equinoise import _files

    files = made.files()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "private").mkdir(mode=0o700, exist_ok=True)
    return _files.write_all(folder, files)
