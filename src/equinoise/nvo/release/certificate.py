"""What a release promises: in fixed words for others, and in the data's figures for its steward."""

import decimal
import hashlib
import math
import time

from equinoise import _checks, _results
from equinoise._typing import Any, Mapping, Sequence
from equinoise.nvo.release.composition import DELTA

Ends = tuple[float, float] | None  # public bounds of a column
NOT_PRIVATE = "seeded: not private"
SYSTEM = "operating system"
MADE = ("promise", "limits", "warnings", "sampling", "sample", "picture", "date", "versions")  # not asked for
_PER_CENT = 0.5  # below, a factor of e^epsilon is said as a percentage
_EXP_MAX = 700.0  # beyond, e^epsilon is no number
_EACH = "A record is a row of the file: someone with several rows is less protected."
_FROZEN = (
    "It holds for this data set only, with the noise scales (and epsilon of a row, where a total was asked "
    "for) as they are now, fixed and secret. Re-running without someone changes the scales and may reveal "
    "them: in a trial with an outlier the factor was e^4.3 where epsilon was 1. Keep the scales to yourself, "
    "and do not release this column again after records have come or gone."
)
_OWN = (
    "No public bounds were given, so the data's own smallest and largest value set the range. They show in "
    "the sample, as does whether all values are whole numbers, and epsilon does not hold for the records at "
    "the ends (in trials these had 1.2 to 3.7 where it was 1). Give bounds that are known without the data."
)
_ANOTHER = (
    ". Then the question is not whether a record is there but which one: to replace it is to remove it and "
    "add another, and epsilon counts twice"
)
_RELATIONS = (
    "Removing and adding a record are different guarantees, and this one is about removal. For someone whose "
    "value nobody here has, nothing is promised. That there is a sample says that every record is satisfied."
)


def words(
    asked: Mapping[str, Any], bounds: Sequence[Ends], *, method: str = "nvo", delta: float = 0.0
) -> tuple[str, list[str]]:
    """Return the promise and its limits, in words that follow from what was asked for alone.

    Asked for are ``epsilon`` of a row or ``total_epsilon``, and ``rows``; bounds are the public ones of each
    column; the method is "nvo", "one-draw", "histogram" or "histogram, replace". ``columns`` are those that
    are released together, where there are several.
    """
    epsilon, total, rows = (asked[name] for name in ("epsilon", "total_epsilon", "rows"))
    level = total if epsilon is None else epsilon
    hidden = f"Each record is hidden in a drawn row to epsilon {exact(level)}"
    if method.startswith("histogram"):
        what = "Replacing" if "replace" in method else "Adding or removing"
        promise = (
            f"{what} any one record of any data set changes the probability of whatever is made of all rows "
            f"together by {_change(level)}."
        )
    elif total is not None:
        chance = f"{DELTA:.10f}".rstrip("0")
        rest = f"all rows together to epsilon {exact(total)}, except with probability {chance}."
        promise = f"Each record{' of any data set' * (method != 'nvo')} is hidden in {rest}"
    elif delta:
        promise = f"{hidden} and delta {exact(delta)}."
    else:
        which = "In a drawn row of any data set, adding or removing any one record"
        if method == "nvo":
            which = f"{hidden}: removing any one of them"
        promise = f"{which} changes the probability of each value by {_change(level)}."
    ends = ", ".join(" to ".join(map(exact, pair)) for pair in bounds if pair)
    public = (
        f"The bounds {ends} count as public. That must be true: if they were looked up in the data, they "
        "tell about its smallest and largest record, and nothing here protects these."
    )
    draws = "All rows together tell more than one" if total is None else "The total is for these rows"
    draws += ", and every further row that is drawn adds to it. "
    if method.startswith("histogram"):
        draws = "However many rows are drawn, they tell no more. "
    draws += (
        "There are as many rows as records, so the number of records is known"
        f"{_ANOTHER * ('replace' not in method)}."
        if rows is None
        else f"{rows:,} rows were asked for, whatever the number of records."
    )
    limits = [_FROZEN, public if all(bounds) else _OWN, draws, _RELATIONS]
    limits = limits if method == "nvo" else limits[1:3]
    if columns := asked.get("columns"):
        every = total is not None or method.startswith("histogram")
        together = exact(len(columns) * decimal.Decimal(exact(level)))
        limits.append(
            f"{', '.join(columns)} of the same records were released together, each by itself, and the "
            "promise is for one of them. For someone whose values are in all the epsilons add up, to "
            f"{together} for {'all rows' if every else 'a row'} of each. What the columns have to do with "
            "each other is not in the samples: rows of two do not belong together."
        )
    return f"{promise} {_EACH}", limits


def exact(number: Any) -> str:
    """Return a number with all its digits, since a promise must not be of less than was asked for."""
    return repr(float(number)).removesuffix(".0")


def above(number: float, digits: int) -> str:
    """Return a number in a few digits, and not below it."""
    up = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(up.create_decimal(repr(float(number)))):.{digits}g}"


def _change(epsilon: float) -> str:
    """Return by what epsilon changes a probability."""
    if epsilon < _PER_CENT:
        return f"at most {exact(above(100.0 * math.expm1(epsilon), 2))}%"
    number = f", or {exact(above(math.exp(epsilon), 3))}" if epsilon < _EXP_MAX else ""
    return f"a factor of at most e^{exact(epsilon)}{number}"


def _cautions(bounds: Sequence[Ends], seed: int | None) -> list[str]:
    found = [] if all(bounds) else ["The bounds are the data's own: see the second limit."]
    if seed is not None:
        found.append(
            f"The sample was drawn with seed {seed} and is not private: whoever knows all records but one, "
            "and the seed, can see with which value of the last one these rows come out."
        )
    return found


def statement(asked: Mapping[str, Any], sample: bytes, rows: int, picture: bytes) -> dict[str, Any]:
    """Return the certificate for others, for JSON: what was asked for, and nothing that the data decided.

    Asked for are ``epsilon`` or ``total_epsilon``, ``bounds`` (a pair or None), ``rows`` and ``seed``, which
    may be None, the ``method``, and whatever else. Of the files of sample and picture it has SHA-256.
    """
    bounds, seed = asked["bounds"], asked["seed"]
    promise, limits = words(asked, [bounds], method=asked["method"])
    facts = {
        "promise": promise,
        "limits": limits,
        "warnings": _cautions([bounds], seed),
        **asked,
        "sampling": SYSTEM if seed is None else NOT_PRIVATE,
        "sample": {"sha256": hashlib.sha256(sample).hexdigest(), "rows": rows},
        "picture": {"sha256": hashlib.sha256(picture).hexdigest()},  # drawn of the sample alone
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": _results.versions(),
    }
    return dict(_results.plain(facts))


def certificate(
    profile: Any,
    rows: int | None = None,
    seed: int | None = None,
    *,
    total: float | None = None,
    delta: float = DELTA,
) -> dict[str, Any]:
    """Certify a release, of a profile or a twin, to its steward: what was checked, and where it ends.

    Not for others: its figures come from the data. Whoever knows all records but one can solve the game with
    every value that the last one may have, and compare. :func:`statement` is for others. As many rows as
    records by default; a seed of None is the system's randomness; a total is what was asked for of all rows.
    """
    game, histogram = profile.game, profile.histogram
    drawn = _checks.integer("rows", histogram.n if rows is None else rows, 1)
    seed, composed = _checks.seed(seed), profile.composed(drawn, delta)
    public = [column.bounds if column.bounds_given else None for column in histogram.columns]
    method = profile.method + ", replace" * (profile.neighbours == "replace") if game is profile else "nvo"
    asked = {"epsilon": game.epsilon if total is None else None, "total_epsilon": total, "rows": rows}
    promise, limits = words(asked, public, method=method, delta=game.delta)
    if not profile.certified:
        wrong = f"{game.n - profile.n_satisfied:,} of {game.n:,} records"
        promise = f"Nothing is promised: {wrong} are not within epsilon {exact(game.epsilon)}."
    bounds = [
        {"low": c.bounds[0], "high": c.bounds[1], "source": "public" if c.bounds_given else "the data's own"}
        for c in histogram.columns
    ]
    ranges = [list(column.range) for column in histogram.columns]
    names = ("delta", "removal", "addition", "epsilon", "median", "method")
    facts = {
        "certified": profile.certified,
        "promise": promise,
        "limits": limits,
        "warnings": ["Its figures come from the data: it is not for others.", *_cautions(public, seed)],
        "n": histogram.n,
        "bins": histogram.n_bins,
        "scales": len(game.scales),
        "epsilon": game.epsilon,
        "satisfied": profile.n_satisfied,
        "realised_epsilon": {
            "removal": profile.realised_epsilon,
            "addition": profile.realised_epsilon_addition,
        },
        "composed": {"rows": composed.draws} | {name: getattr(composed, name) for name in names},
        "bounds": bounds if len(bounds) > 1 else bounds[0],
        "range": ranges if len(ranges) > 1 else ranges[0],
        "rows": drawn,
        "seed": SYSTEM if seed is None else seed,
        "sampling": SYSTEM if seed is None else NOT_PRIVATE,
        "method": profile.method,
        "versions": _results.versions(),
    }
    return dict(_results.plain(facts))
