"""``equinoise nvo``: from a column of a CSV file to a certified release."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common
from equinoise.cli.common import AsJson, Jobs, Out, one_of, option, paragraph, say

_FAILING = 10  # bins that are listed
_NO_BETTER = 5e-6  # of KL: it is printed with five digits
_HEADINGS = {
    "NVO": "NVO",
    "Laplace, paper": "Laplace,\nas in the\npaper",
    "Laplace, amplified": "Laplace,\ncalibrated\nfor any\ndata",
    "Laplace, smallest": "Laplace,\ncalibrated\nfor these\ndata",
}
_LINES = (  # of the table: a measure in words, its key, and its digits
    ("records that are satisfied", "satisfied", ",d"),
    ("realised epsilon of one row", "realised_epsilon", ".4g"),
    ("KL divergence from the data", "kl", ".5f"),
    ("  its lower bound", "lower_bound", ".5f"),
    ("  gap between the two", "gap", ".5f"),
    ("error of the standard deviation\n(as a fraction of the range)", "sd_l1", ".4f"),
    ("Jaccard index", "jaccard", ".4f"),
    ("cosine similarity", "cosine", ".4f"),
)
_BOUNDS = "Smallest and largest possible value, known without the data. By default the data's own."
_SCALES = (
    "Noise scales to choose from: default, paper, a number of geometric steps, or a list in the units of the "
    "column, such as 20,5,0.1."
)
_SEED = "The same rows again, for tests: such a sample is not private."
_ACCOUNTANT = '; pip install "equinoise[data]" for one that is nearly exact'
_VERDICT = {
    True: "The sample was drawn with the operating system's randomness.",
    False: "The sample was drawn with a seed: it is a test, and not private.",
}


def show(made: Any, written: list[Path]) -> None:
    """Print the table, and what is and is not protected, or why there is no sample."""
    print(_heading(made))
    rows = made.rows()  # a column of the table for each, which fits 80 characters
    cells = [
        (words, *("" if row[key] is None else format(row[key], digits) for row in rows))
        for words, key, digits in _LINES
    ]
    common.print_table(cells, "", *(_HEADINGS[row["mechanism"]] for row in rows), narrow=True)
    if made.sample is None:
        _explain(made)
        return
    _compare(made)
    paragraph(made.certificate["promise"])
    for number, sentence in enumerate(made.certificate["limits"], 1):
        paragraph(sentence, f"{number}. ")
    if made.certificate["composed"]["method"] == "Rényi divergence":
        advice = "" if importlib.util.find_spec("dp_accounting") else _ACCOUNTANT
        paragraph(f"The epsilon of all rows together is an upper bound, perhaps a fifth too large{advice}.")
    paragraph(_VERDICT[made.parameters.seed is None])
    print(f"For others: {', '.join(str(path) for path in written if path.parent.name != 'private')}")
    print(f"Not for others: {', '.join(str(path) for path in written if path.parent.name == 'private')}")


def _heading(made: Any) -> str:
    histogram, game = made.profile.game.histogram, made.profile.game
    left_out = made.column.n_rows - histogram.n
    source = "public" if histogram.bounds_given else "the data's own"
    parts = [
        f"{made.parameters.path}, {made.column.name}: {histogram.n:,} records"
        + (f" (and {left_out:,} left out without a value)" if left_out else ""),
        f"bounds {histogram.bounds[0]:g} to {histogram.bounds[1]:g} ({source})",
        f"{histogram.n_bins:,} bins from {histogram.range[0]:g} to {histogram.range[1]:g}",
        _counted(len(game.scales), "noise scale"),
        f"epsilon {game.epsilon:.4g} per row",
    ]
    return ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _compare(made: Any) -> None:
    """Say where one scale for all records does better than what was found."""
    certified = [other for other in made.others.values() if other.certified]
    best = min(certified, key=lambda other: other.kl, default=made.profile)
    if best.kl >= made.profile.kl - _NO_BETTER:
        return
    start, stop = best.game.histogram.range
    scale = float(best.game.scales[0]) * (stop - start)
    others = ",".join(f"{each * (stop - start):.4g}" for each in made.profile.game.scales)
    paragraph(
        f"One scale for all records, {scale:.4g}, is more accurate on these data (KL {best.kl:.5f}). To let "
        f"records choose it too: --search anneal --scales {others},{scale:.4g}"
    )


def reason(made: Any) -> str:
    """Return in one clause why there is no sample."""
    game = made.profile.game
    if made.parameters.total_epsilon is not None:
        return (
            f"no epsilon per row was found with which all {made.certificate['rows']:,} rows stay within "
            f"{made.parameters.total_epsilon:g} and every record is satisfied"
        )
    wrong = game.n - made.profile.n_satisfied
    return f"{wrong:,} of {game.n:,} records are not satisfied at epsilon {game.epsilon:.4g}"


def _explain(made: Any) -> None:
    """Say which bins fail, and what would help."""
    from equinoise.nvo.noise import sufficient_scale

    game = made.profile.game
    failing = made.failing()
    if failing:
        listed = "; ".join(
            f"{row['value']:g} ({_counted(row['records'], 'record')}, epsilon {row['epsilon']:.3g})"
            for row in failing[:_FAILING]
        )
        more = f"; and {len(failing) - _FAILING} more bins" if len(failing) > _FAILING else ""
        paragraph(f"Not satisfied, by value, the worst first: {listed}{more}.")
    if made.lower_bound == float("inf"):
        paragraph(
            "The linear relaxation proves that with these scales and bins nothing can satisfy every record."
        )
    start, stop = game.histogram.range
    enough = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon) * (stop - start)
    largest = float(game.scales.max()) * (stop - start)
    together = made.parameters.total_epsilon is not None
    advice = [
        f"a larger scale (the largest is {largest:.3g}; {enough:.3g} satisfies every record, whatever the "
        "data, and --scales 8 has it)",
        "fewer bins (--bins)",
        f"a larger {'--total-epsilon' if together else '--epsilon'}",
        *(["fewer rows (--rows)"] if together else []),
    ]
    paragraph("What would help: " + ", ".join(advice[:-1]) + f", or {advice[-1]}.")


def _scale_names(_: typer.Context) -> Iterable[str]:
    from equinoise.nvo.noise import NAMES

    return NAMES


def _columns(context: typer.Context) -> Iterable[str]:
    import csv

    with Path(context.params["file"]).open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file, delimiter=context.params.get("sep") or ","))


def command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with a header.")],
    column: Annotated[str, option("The column that is released.", names=_columns)],
    epsilon: Annotated[float | None, option("Privacy of one row of the sample.")] = None,
    total_epsilon: Annotated[
        float | None, option("Privacy of all rows together, instead of --epsilon.")
    ] = None,
    bounds: Annotated[tuple[float, float] | None, option(_BOUNDS, metavar="LO HI")] = None,
    rows: Annotated[int | None, option("Rows of the sample; by default as many as FILE.")] = None,
    bins: Annotated[int, option("Bins of the range.")] = 101,
    scales: Annotated[str, option(_SCALES, names=_scale_names)] = "default",
    search: Annotated[str, one_of("anneal", "best-response", "genetic")] = "anneal",
    restarts: Annotated[int, option("Searches, of which the best is taken.")] = 1,
    seed: Annotated[int | None, option(_SEED)] = None,
    drop_missing: Annotated[
        bool, option("Leave out rows where the column is empty.", "--drop-missing")
    ] = False,
    sep: Annotated[str, option("The character between fields; tab for a tabulator.")] = ",",
    decimal: Annotated[str, option("The decimal mark: . or ,")] = ".",
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

    with common.refusing(context, path="FILE", values="--column", n_bins="--bins") as (folder, threads):
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
