"""``equinoise nvo``: from a column of a CSV file to a certified release."""

import contextlib
import csv
import importlib.util
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import equinoise
from equinoise.cli import common
from equinoise.cli.common import AsJson, Jobs, Out, argument, one_of, option, paragraph, say, working

_FAILING = 10  # bins that are listed
_ANY = "Laplace,\ncalibrated\nfor any\ndata"
_HEADINGS = ("", "NVO", "Laplace,\nas in the\npaper", _ANY, _ANY.replace("any", "these"))
_LINES = (  # of the table: a measure in words, its key, and its digits
    ("records that are satisfied", "satisfied", ",d"),
    ("realised epsilon of one row", "realised_epsilon", ".4g"),
    ("KL divergence from the data", "kl", ".5f"),
    ("  its lower bound", "lower_bound", ".5f"),
    ("  gap between the two", "gap", ".5f"),
    ("error of standard deviation\n(as a share of the range)", "sd_l1", ".4f"),
    ("Jaccard index", "jaccard", ".4f"),
    ("cosine similarity", "cosine", ".4f"),
)
_BOUNDS = "Smallest and largest possible value, known without the data. By default the data's own."
_MARGIN = "Range beyond --bounds, as a share of them: by default 0; without --bounds, and by name, paper."
_COLUMN = "The column, or several, each by itself. NAME=LO:HI has its own bounds; one named a=1:2 needs them."
_LEDGER = "Append the release to a file, and say what all those in it add up to for a person in each."
_AGAIN = "again, after records came or went, it would tell of these"
_OWN_BOUNDS = re.compile(r"(.+)=([^=:]+):([^=:]+)")
_SCALES = "Noise scales: default, paper, a number of steps, or a list in its units, such as 20,5,0.1."
_OWN = "the range comes from the data's own smallest and largest value, which show in the sample"
_ACCOUNTANT = '; pip install "equinoise[data]" for one that is nearly exact'


def show(made: Any, names: list[str], out: Path) -> None:
    """Print the table, and what is and is not protected, or why there is no sample."""
    from equinoise import _checks
    from equinoise.nvo.release.certificate import above, exact

    said, name = made.certificate, _checks.line(made.column.name, 1000)
    n, left_out = said["n"], made.column.n_rows - said["n"]
    (*ends, source), (low, high), game = said["bounds"].values(), said["range"], made.profile.game
    print(
        f"{made.parameters.path}, {name}: {n:,} records"
        + (f" (and {left_out:,} left out without a value)" if left_out else "")
        + (f" ({made.column.clamped:,} put on the bounds)" if made.column.clamped else "")
        + f", bounds {' to '.join(map(exact, ends))} ({source}), {said['bins']:,} bins from {low:g} to "
        f"{high:g}, noise scales: {len(game.scales):,}, epsilon {exact(game.epsilon)} per row"
    )
    rows = made.rows()  # a column of the table for each, which fits 80 characters
    cells = [(words, *(common.cell(row[key], digits) for row in rows)) for words, key, digits in _LINES]
    common.print_table(cells, _HEADINGS, ("", *"ssss"))
    if made.sample is None:
        _explain(made)
        return
    common.print_table(made.described(), (name, "data", "sample"), ("", ".4g", ".4g"))
    paragraph(said["promise"])
    rows = f"all {said['rows']:,} rows"
    lost = [(what, "" if one is None else above(one, 3), above(m, 3)) for what, one, m in made.losses()]
    common.print_table(lost, ("epsilon, at most", "one row", rows), ("", "s", "s"))
    headings = ("mechanism", "one row", rows, "KL", "private for")
    common.print_table([row.values() for row in made.beside], headings, ("", ".3g", ".3g", ".5f", ""))
    for number, sentence in enumerate(said["limits"], 1):
        paragraph(sentence, f"{number}. ")
    if said["composed"]["method"] == "Rényi divergence":
        advice = "" if importlib.util.find_spec("dp_accounting") else _ACCOUNTANT
        paragraph(f"The epsilon of all rows together is an upper bound, perhaps a fifth too large{advice}.")
    print(f"Randomness of the sample: {said['sampling']}.")
    print(f"For others: {', '.join(str(out / one) for one in names if '/' not in one)}")
    print(f"Not for others: {', '.join(str(out / one) for one in names if '/' in one)}")


def _explain(made: Any) -> None:
    """Say which bins fail, and what would help."""
    from equinoise.nvo.noise import sufficient_scale
    from equinoise.nvo.release.certificate import above

    game, failing = made.profile.game, [list(row.values()) for row in made.failing()]
    if failing:
        print("Not satisfied, by value, the worst first:")
        common.print_table(failing[:_FAILING], ("value", "records", "epsilon"), ("g", ",d", ".3g"))
    if len(failing) > _FAILING:
        print(f"And {len(failing) - _FAILING:,} more bins.")
    if made.lower_bound == float("inf"):
        paragraph("The linear relaxation proves: with these scales and bins nothing satisfies every record.")
    start, stop = game.histogram.range
    enough, length = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon), stop - start
    while not replace(game, scales=[float(shown := above(enough * length, 3)) / length]).uniform().certified:
        enough *= 1.01  # rounding of masses decides
    known = ", as default ones do" * made.others["Laplace, smallest"].certified
    one, total = "or a larger --epsilon", "a larger --total-epsilon, or fewer rows (--rows)"
    paragraph(
        f"What would help: a larger scale (the largest is {game.scales.max() * length:.3g}; {shown} "
        f"satisfies every record{known}), fewer bins (--bins), {one if made.parameters.epsilon else total}."
    )


def _columns(context: typer.Context) -> Iterable[str]:
    with Path(context.params["file"]).open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file, delimiter=context.params.get("sep") or ","))


def command(
    context: typer.Context,
    file: Annotated[Path, argument("A CSV file with a header; - is the standard input.", "FILE")],
    column: Annotated[list[str], option(_COLUMN, names=_columns, metavar="NAME")],
    epsilon: Annotated[float | None, option("Privacy of one row of the sample.")] = None,
    total_epsilon: Annotated[float | None, option("Privacy of all rows together, not of one.")] = None,
    bounds: Annotated[tuple[float, float] | None, option(_BOUNDS, metavar="LO HI")] = None,
    rows: Annotated[int | None, option("Rows of the sample; by default FILE's number, then known.")] = None,
    bins: Annotated[int, option("Bins of the range.")] = 101,
    margin: Annotated[str | None, option(_MARGIN, names=lambda _: ("0", "paper"))] = None,
    whole: Annotated[bool, option("Rows are whole numbers.", "--whole")] = False,
    spike: Annotated[float | None, option("A value that has a bin of its own, such as 0.")] = None,
    scales: Annotated[str, option(_SCALES, names=lambda _: equinoise.nvo.noise.NAMES)] = "default",
    method: Annotated[str, one_of("nvo", "histogram", "one-draw", more=", whose sample is written")] = "nvo",
    search: Annotated[str, one_of("anneal", "best-response", "genetic")] = "anneal",
    restarts: Annotated[int, option("Searches, of which the best is taken.")] = 1,
    seed: Annotated[int | None, option("The same rows again: such a sample is not private.")] = None,
    resolve: Annotated[str, option("Records to solve again without, the rarest first; all, or 0.")] = "25",
    drop_missing: Annotated[bool, option("Leave out rows where it is empty.", "--drop-missing")] = False,
    sep: Annotated[str, option("The character between fields; tab for a tabulator.")] = ",",
    decimal: Annotated[str, option("The decimal mark: . or ,")] = ".",
    na: Annotated[str | None, option("What stands for a missing value, beside NA and the like.")] = None,
    clamp: Annotated[bool, option("Put values outside --bounds on them.", "--clamp")] = False,
    verbose: Annotated[bool, option("Messages may show values of FILE.", "--verbose")] = False,
    bound: Annotated[str, one_of("none", "fast", "full", more=" search for the best KL")] = "fast",
    ledger: Annotated[Path | None, option(_LEDGER)] = None,
    jobs: Jobs = None,
    out: Out = Path("equinoise-nvo"),
    as_json: AsJson = False,
) -> None:
    """Release a private sample of a column of FILE.

    Every record gets only as much noise as its privacy needs. Writes the sample with its certificate and
    figures, and into private/ what is not for others. Exits 1 without a sample when not every record is
    satisfied. An earlier release in --out, a folder of its own, is replaced by a whole one.
    """
    from equinoise.experiments.commands import nvo

    column = [one.encode("utf-8", "surrogateescape").decode(errors="replace") for one in column]  # as FILE is
    with common.refusing(context, path="FILE", values="--column") as (folder, threads):
        named = len(column) > 1 or _OWN_BOUNDS.fullmatch(column[0])
        ends = _by_name(column, bounds) if named else {column[0]: bounds}
        several = ends if len(ends) > 1 else ()
        if several and (folder / "certificate.json").exists():
            raise ValueError(f"out must be a folder for several columns, got {str(out)!r} with one in it")
        if several and not file.is_file():
            raise ValueError(f"path must be a file where there are several columns, got {str(file)!r}")
        for what, path in (("FILE", file), ("--ledger", ledger or file)):
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(out)):  # or links in a ring
                lost = f"in which {what} would be overwritten"
                raise ValueError(f"out must not be a folder {lost}, got {str(out)!r}")
        again: Any = {"margin": margin}
        with contextlib.suppress(ValueError):
            again["margin"] = float(margin or "none given")
        again |= {"resolve": int(resolve) if resolve.isdecimal() else resolve, "columns": tuple(several)}
        again |= {"path": str(file), "scales": _scales(scales)}
        todo = []
        for name, pair in ends.items():
            parameters = common.taken(context, nvo.Parameters, column=name, bounds=pair, **again)
            with working(f"reading {file}"):
                read, histogram = nvo.prepare(parameters)
            place = nvo.folder.own("out", folder / name if several else folder)
            todo.append((out / name if several else out, place, (read, histogram, parameters)))
        earlier = [] if ledger is None else nvo.ledger.read(ledger)
    if None in ends.values():
        say(f"warning: without --bounds {_OWN}")
    if seed is not None:
        say("warning: with --seed the sample can be drawn again by others: it is not private")
    if len(joined := read.joined):
        where = f"{len(joined):,} of FILE's rows, the first of them row {joined[0]:,}"
        say(f"warning: a line break is in a field of {where}: where a quote is missing, rows are joined")
    for before in earlier:
        if before.get("file") == str(file) and before.get("column") in ends:
            say(f"warning: {before['column']} was released on {before.get('date')}: {_AGAIN}")
    found: list[Any] = []
    unsaid: list[OSError] = []
    with threads as pool:
        for shown, place, parts in todo:
            made = nvo.release(*parts, executor=pool, progress=True, working=working)
            found.append(made)
            which = f"{made.column.name!r}: " if several else ""
            for caution in [] if made.sample is None else made.cautions():
                say(f"warning: {which}{caution}")
            files = {} if made.sample is None else made.files()
            if files and ledger is not None:  # first: what is released must not be missing there
                said = json.loads(files["certificate.json"])
                earlier = nvo.ledger.add(ledger, nvo.ledger.entry(said, str(file), str(shown)))
            if files:
                nvo.folder.put(place, files)
                if several:
                    nvo.folder.dated(place.parent)
            if not as_json:
                try:
                    show(made, list(files), shown)
                except OSError as error:  # where nobody reads on the other columns are released too
                    unsaid.append(error)
            if made.sample is None:
                kept = ", and the earlier release is as it was" if place.exists() else ""
                say(f"failed: {which}{made.reason()}; no sample was written{kept}")
    if as_json:
        common.print_json([made.document() for made in found] if several else found[0].document())
    else:
        _sum(found, earlier if ledger else [], ledger)
    if unsaid:
        raise unsaid[0]
    if any(made.sample is None for made in found):
        raise typer.Exit(1)


def verify(folder: Annotated[Path, argument("The folder of a release.", "FOLDER")]) -> None:
    """Check that a release is whole, unchanged and certified.

    Where its private part is there, the records too. Prints a line for it, of several columns for each, warns
    of what else is there, and exits 1 where something is not as it was released.
    """
    from equinoise import _checks
    from equinoise.experiments.commands import nvo

    if not os.path.isdir(folder):  # noqa: PTH112 - for which no name is too long
        raise common.WrongUse(f"FOLDER must be that of a release, got {str(folder)!r}")
    several = sorted(path.parent for path in folder.glob("*/certificate.json"))
    several = [] if (folder / "certificate.json").exists() else several
    for one in several or [folder]:
        try:
            said = nvo.ledger.verify(one, frozenset(each.name for each in several))
            print(_checks.line(f"{one}: {said}.", 1000))
            for caution in nvo.folder.cautions(one):
                say(_checks.line(f"warning: {one}: {caution}", 1000))
        except ValueError as error:
            say(_checks.line(f"failed: {one}: {error}", 1000))
            raise typer.Exit(1) from None


def _sum(found: Sequence[Any], entries: Sequence[Any], ledger: Path | None) -> None:
    """Say what a person loses by several columns, and by all that a ledger has."""
    from equinoise.nvo.release.certificate import above

    released = [made.certificate for made in found if made.sample is not None]
    if len(released) > 1:
        one = math.fsum(said["epsilon"] for said in released)
        whole = math.fsum(said["composed"]["epsilon"] for said in released)
        paragraph(
            "The columns together: for someone whose values are in all, epsilons add up, to at most "
            f"{above(one, 4)} for a row of each and {above(whole, 3)} for all rows of all, and so do deltas."
        )
    if entries:
        adds, delta = (math.fsum(entry[name] for entry in entries) for name in ("adds", "delta"))
        what = f"{len(entries):,} release{'s' * (len(entries) > 1)}"
        paragraph(
            f"{ledger} has {what}: for someone who is in all, they add up to epsilon {above(adds, 4)} at "
            f"most, except with probability {delta:.2g} (by method nvo, as long as noise scales stay secret)."
        )


def _by_name(columns: Sequence[str], bounds: tuple[float, float] | None) -> dict[str, Any]:
    """Return bounds by the names of several columns, of which each is a folder's too."""
    found: dict[str, Any] = {}
    code = sys.getfilesystemencoding()
    for text in columns:
        name, own = text, _OWN_BOUNDS.fullmatch(text)
        if own:
            with contextlib.suppress(ValueError):
                name, pair = own[1], (float(own[2]), float(own[3]))
        plain = Path(name).name == name and not name.startswith(".") and "\\" not in name
        plain = plain and name.encode(code, "replace").decode(code) == name
        if not plain or name.casefold() in ("private", "certificate.json", *map(str.casefold, found)):
            raise ValueError(f"column must be given once, and be what a folder can be called, got {name!r}")
        found[name] = bounds if name == text else pair
    return found


def _scales(text: str) -> str | int | tuple[float, ...]:
    """Return what is said of scales: a name, a number of steps, or a list, told by its commas or points."""
    if text.isdecimal():
        return int(text)
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        return text
