"""``equinoise nvo``: from a column of a CSV file to a certified release."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli._terminal import console, refusing, say, working

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from equinoise.experiments.nvo import Release

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
_FAILING = 10  # bins that are listed


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

    Writes a sample with its certificate, and into private/ what is not for others. Exits 1 without a sample
    when not every record is satisfied.
    """
    from concurrent.futures import ThreadPoolExecutor

    from equinoise import _checks, _files
    from equinoise.experiments import nvo

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
    _warn(parameters)
    with ExitStack() as stack:
        pool = None if threads is None else stack.enter_context(ThreadPoolExecutor(threads))
        made = nvo.release(read, histogram, parameters, executor=pool, progress=True, working=working)
    written = _write(folder, made) if made.sample is not None else []
    if as_json:
        json.dump(made.document(), sys.stdout, indent=2)
        print()
    else:
        _show(made, written)
    if made.sample is None:
        say(f"failed: {_reason(made)}; no sample was written")
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

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "private").mkdir(mode=0o700, exist_ok=True)
    return _files.write_all(folder, made.files())


def _show(made: Release, written: list[Path]) -> None:
    screen = console()
    print(_heading(made))
    screen.print(_table(made))
    if made.sample is None:
        _explain(made, screen)
        return
    _paragraph(screen, made.certificate["promise"])
    for number, sentence in enumerate(made.certificate["limits"], 1):
        _paragraph(screen, sentence, f"{number}. ")
    if made.certificate["composed"]["method"] == "Rényi divergence":
        _paragraph(screen, _WITHOUT_ACCOUNTANT)
    _paragraph(screen, _VERDICT[made.parameters.seed is None])
    print(f"For others: {', '.join(str(path) for path in written if path.parent.name != 'private')}")
    print(f"Not for others: {', '.join(str(path) for path in written if path.parent.name == 'private')}")


def _heading(made: Release) -> str:
    histogram, game = made.profile.game.histogram, made.profile.game
    left_out = made.column.n_rows - histogram.n
    source = "public" if histogram.bounds_given else "the data's own"
    parts = [
        f"{made.parameters.path}, {made.column.name}: {histogram.n:,} records"
        + (f" (and {left_out:,} left out without a value)" if left_out else ""),
        f"bounds {histogram.bounds[0]:g} to {histogram.bounds[1]:g} ({source})",
        f"{histogram.n_bins:,} bins from {histogram.range[0]:g} to {histogram.range[1]:g}",
        _counted(len(game.scales), "noise scale"),
        f"epsilon {game.epsilon:.4g} a row",
    ]
    return ", ".join(parts)


_WITHOUT_ACCOUNTANT = (
    "The epsilon of all rows together is an upper bound that can be a fifth too large; "
    'pip install "equinoise[data]" for one that is nearly exact.'
)
_VERDICT = {
    True: "The sample was drawn with the operating system's randomness.",
    False: "The sample was drawn with a seed: it is a test, and not private.",
}


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _paragraph(screen: Console, text: str, mark: str = "") -> None:
    indent = " " * len(mark)
    print(textwrap.fill(mark + text, min(screen.width, 100), subsequent_indent=indent))


def _table(made: Release) -> Table:
    from rich import box
    from rich.table import Table

    def cell(value: float | None, digits: str = ".4f") -> str:
        return "" if value is None else format(value, digits)

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("\nmechanism", no_wrap=True)
    headings = ("satisfied\nrecords", "realised\nepsilon", "\nKL", "lower\nbound", "\ngap", "L1 of\nSD")
    for heading in (*headings, "\nJaccard", "\ncosine"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in made.rows():
        table.add_row(
            row["mechanism"],
            f"{row['satisfied']:,}",
            cell(row["realised_epsilon"], ".4g"),
            *(cell(row[name], ".5f") for name in ("kl", "lower_bound", "gap")),
            *(cell(row[name]) for name in ("sd_l1", "jaccard", "cosine")),
        )
    return table


def _reason(made: Release) -> str:
    game = made.profile.game
    if made.parameters.total_epsilon is not None:
        return (
            f"no epsilon of a row was found with which all {made.certificate['rows']:,} rows stay within "
            f"{made.parameters.total_epsilon:g} and every record is satisfied"
        )
    wrong = game.n - made.profile.n_satisfied
    return f"{wrong:,} of {game.n:,} records are not satisfied at epsilon {game.epsilon:.4g}"


def _explain(made: Release, screen: Console) -> None:
    """Say which bins fail, and what would help."""
    from equinoise.nvo.scales import sufficient_scale

    game = made.profile.game
    failing = made.failing()
    if failing:
        listed = "; ".join(
            f"{row['value']:g} ({_counted(row['records'], 'record')}, epsilon {row['epsilon']:.3g})"
            for row in failing[:_FAILING]
        )
        more = f"; and {len(failing) - _FAILING} more bins" if len(failing) > _FAILING else ""
        _paragraph(screen, f"Not satisfied, by value, the worst first: {listed}{more}.")
    if made.lower_bound == float("inf"):
        _paragraph(
            screen,
            "The linear relaxation proves that with these scales and bins nothing can satisfy every record.",
        )
    start, stop = game.histogram.range
    enough = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon) * (stop - start)
    largest = float(game.scales.max()) * (stop - start)
    advice = [
        f"a larger scale (the largest is {largest:.3g}; {enough:.3g} satisfies everybody whatever the data, "
        "and --scales 8 has it)",
        "fewer bins (--bins)",
        "a larger --epsilon" if made.parameters.total_epsilon is None else "a larger --total-epsilon",
    ]
    if made.parameters.total_epsilon is not None:
        advice.append("fewer rows (--rows)")
    _paragraph(screen, "What would help: " + ", ".join(advice[:-1]) + f", or {advice[-1]}.")
