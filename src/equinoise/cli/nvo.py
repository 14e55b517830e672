"""``equinoise nvo``: from a column of a CSV file to a certified release."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common
from equinoise.cli.common import AsJson, Jobs, Out, completing, one_of, say
from equinoise.cli.nvo_words import reason, show

__all__ = ["command"]


def _scale_names(_: typer.Context) -> Iterable[str]:
    from equinoise.nvo.scales import NAMES

    return NAMES


def _columns(context: typer.Context) -> Iterable[str]:
    import csv

    with Path(context.params["file"]).open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file, delimiter=context.params.get("sep") or ","))


def command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with a header.")],
    column: Annotated[
        str, typer.Option(help="The column that is released.", autocompletion=completing(_columns))
    ],
    epsilon: Annotated[float | None, typer.Option(help="Privacy of one row of the sample.")] = None,
    total_epsilon: Annotated[
        float | None, typer.Option(help="Privacy of all rows together, instead of --epsilon.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LO HI",
            help="Smallest and largest possible value, known without the data. By default the data's own.",
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the sample; by default as many as FILE.")] = None,
    bins: Annotated[int, typer.Option(help="Bins of the range.")] = 101,
    scales: Annotated[
        str,
        typer.Option(
            help="Noise scales to choose from: default, paper, a number of geometric steps, or a list in the "
            "units of the column, such as 20,5,0.1.",
            autocompletion=completing(_scale_names),
        ),
    ] = "default",
    search: Annotated[str, one_of("anneal", "best-response", "genetic")] = "anneal",
    restarts: Annotated[int, typer.Option(help="Searches, of which the best is taken.")] = 1,
    seed: Annotated[
        int | None, typer.Option(help="The same rows again, for tests: such a sample is not private.")
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows where the column is empty.")
    ] = False,
    sep: Annotated[str, typer.Option(help="The character between fields; tab for a tabulator.")] = ",",
    decimal: Annotated[str, typer.Option(help="The decimal mark: . or ,")] = ".",
    jobs: Jobs = None,
    out: Out = Path("equinoise-nvo"),
    as_json: AsJson = False,
) -> None:
    """Release a private sample of a column of FILE.

    Every record gets only as much noise as its privacy needs. Writes the sample with its certificate and
    figures, and into private/ what is not for others. Exits 1 without a sample when not every record is
    satisfied. An earlier release in --out is replaced.
    """
    from equinoise import _files
    from equinoise.experiments.commands import nvo

    with common.refusing(common.options(context, path="FILE", values="--column", n_bins="--bins")):
        folder, threads = common.folder_and_threads(out, jobs)
        parameters = common.taken(context, nvo.Parameters, path=str(file), scales=_scales(scales))
        with common.working(f"reading {file}"):
            read, histogram = nvo.prepare(parameters)
        earlier = _release_in(folder, file)
    _warn(parameters)
    for path in earlier:  # or a sample could be taken for this run's when it fails
        path.unlink()
    with common.pool(threads) as executor:
        made = nvo.release(
            read, histogram, parameters, executor=executor, progress=True, working=common.working
        )
    written = []
    if made.sample is not None:
        files = made.files()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "private").mkdir(mode=0o700, exist_ok=True)
        written = _files.write_all(folder, files)
    if as_json:
        common.print_json(made.document())
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


def _release_in(folder: Path, file: Path) -> list[Path]:
    """Return the files of an earlier release in a folder; FILE must not be one of them."""
    from equinoise.experiments.commands.nvo import FILES

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
