"""Rows drawn from a profile with exact probabilities, and what they protect, in figures and in sentences."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from equinoise import _checks, _results
from equinoise._random import RELEASE, stream_key
from equinoise._typing import Any, Callable, Floats, Ints, Words
from equinoise.nvo.release.composition import DELTA, Composition, compose

if TYPE_CHECKING:
    from equinoise.nvo.histogram import Histogram
    from equinoise.nvo.profile import Profile


MAX_ROWS = 10**9
_WORD = 64  # bits
_CHUNK = 2**18  # rows whose words are drawn at a time

WordSource = Callable[[int], Words]


def sample(profile: Profile, size: int, seed: int | None = None, *, allow_uncertified: bool = False) -> Any:
    """Draw rows from a profile, independently of each other.

    Parameters
    ----------
    profile, size : Profile, int
        Rows, at least 1, of which every one adds to what the release tells, see :func:`compose`.
    seed : int or None
        None, the default, takes randomness from the operating system. With a seed the same rows come out
        again, and whoever knows or guesses the seed can undo the noise: that is not private.
    allow_uncertified : bool
        Draw even where some record is not satisfied, which otherwise raises ValueError.

    Returns
    -------
    float64[size] or int64[size]
        Midpoints of bins in the data's units, bin x with probability S[x]/n; integers where the values were
        integers. Of pairs, one array for each column. No noise is added to a midpoint: with several scales,
        continuous noise would give the record with the largest scale away in the tails.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), definition 3.3, random sampling query.

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
    >>> profile = NoiseGame(histogram, epsilon=1).best_response()
    >>> sample(profile, 5).dtype
    dtype('int64')
    """
    rows = _checks.integer("size", size, 1, MAX_ROWS)
    if not _checks.flag("allow_uncertified", allow_uncertified) and not profile.certified:
        satisfied = f"{profile.n_satisfied} of {profile.game.n} records"
        raise ValueError(f"profile must be certified, got one that satisfies {satisfied}")
    return profile.game.histogram.to_units(draw_bins(profile.pmf, rows, seed))


def draw_bins(pmf: Floats, size: int, seed: int | None = None) -> Ints:
    """Draw numbers of bins, int64[size], with probabilities pmf / sum(pmf), exactly.

    pmf float64[X] is finite and not negative, not all zero; with a seed a smaller size gives the first rows.
    A uniform float64 knows nothing below 2^-53, where the noise of a record far away may lie, and would make
    outcomes impossible that two records should share. Here a row is a binary fraction of as many random bits
    as are needed to tell on which side of the boundaries it falls: the first 64 nearly always do.

    Examples
    --------
    >>> draw_bins(np.array([0.5, 0.0, 0.5]), 6, seed=1)
    array([...])
    """
    words = _system_words if seed is None else _seeded_words(seed)
    shares = [Fraction(float(p)) for p in pmf]
    total = sum(shares)
    bounds = [part / total for part in accumulate(shares)][:-1]  # bin x is [bounds[x - 1], bounds[x])
    bins = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = bins[start : start + _CHUNK]
        part[:] = _invert(bounds, words(len(part)), words)
    return bins


def _system_words(size: int) -> Words:
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def _seeded_words(seed: int) -> WordSource:
    """Return a source of words: the block at (draw, 0, 0, RELEASE) of the seed's key."""
    generator = np.random.Philox(counter=[0, 0, 0, int(RELEASE)], key=stream_key(seed))
    return lambda size: np.asarray(generator.random_raw(size), dtype=np.uint64)


def _invert(bounds: list[Fraction], drawn: Words, more: WordSource) -> Ints:
    """Return how many boundaries are at or below each place in [0, 1), int64[n]; a word is its first bits."""
    last = (1 << _WORD) - 1  # a boundary at 1 is never reached
    cut = np.array([min(math.floor(bound * (last + 1)), last) for bound in bounds], dtype=np.uint64)
    bins = np.searchsorted(cut, drawn, side="left").astype(np.int64)
    for i in np.flatnonzero(np.searchsorted(cut, drawn, side="right") != bins):
        bins[i] = _settle(bounds, int(drawn[i]), more)
    return bins


def _settle(bounds: list[Fraction], word: int, more: WordSource) -> int:
    """Return the bin of a place whose first bits `word` are also a boundary's: draw more of them."""
    bits = _WORD
    while True:
        word = (word << _WORD) | int(more(1)[0])
        bits += _WORD
        low = sum(bound <= Fraction(word, 2**bits) for bound in bounds)
        high = sum(bound < Fraction(word + 1, 2**bits) for bound in bounds)
        if low == high:
            return low


NOT_PRIVATE = "seeded: not private"
SYSTEM = "operating system"
_PER_CENT = 0.5  # below, a factor of e^epsilon is said as a percentage
_EXP_MAX = 700.0  # beyond, e^epsilon is no number


def certificate(
    profile: Profile, rows: int | None = None, seed: int | None = None, *, delta: float = DELTA
) -> dict[str, Any]:
    """Certify a release: what was checked, for whom it holds, and where it ends.

    Parameters
    ----------
    profile : Profile
    rows, seed : int, optional
        Rows that are drawn, as many as there are records by default; None is the system's randomness.
    delta : float
        At which the rows are composed.

    Returns
    -------
    dict
        In the types of JSON: ``certified``, ``promise`` (a sentence), ``limits`` (four sentences),
        ``warnings`` (sentences), ``n``, ``bins``, ``scales``, ``epsilon``, ``satisfied``,
        ``realised_epsilon`` and ``composed`` (each for ``removal`` and ``addition``), ``bounds`` (``low``,
        ``high``, ``source``), ``range``, ``rows``, ``seed``, ``sampling`` and ``versions``.

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
    >>> found = certificate(NoiseGame(histogram, epsilon=1).best_response(), rows=5)
    >>> found["certified"], found["bounds"]["source"], len(found["limits"]), found["sampling"]
    (True, 'public', 4, 'operating system')
    """
    histogram = profile.game.histogram
    drawn = _checks.integer("rows", histogram.n if rows is None else rows, 1)
    if seed is not None:
        seed = _checks.integer("seed", seed, 0)
    total = compose(profile.game.noise, profile.counts, profile.evaluation, drawn, delta)
    bounds = [_bounds_of(column) for column in histogram.columns]
    ranges = [list(column.range) for column in histogram.columns]
    realised = {"removal": profile.realised_epsilon, "addition": profile.realised_epsilon_addition}
    composed = ("delta", "removal", "addition", "epsilon", "median", "method")
    facts = {
        "certified": profile.certified,
        "promise": promise(profile),
        "limits": limits(profile, total),
        "warnings": _warnings(profile, seed),
        "n": histogram.n,
        "bins": histogram.n_bins,
        "scales": len(profile.game.scales),
        "epsilon": profile.game.epsilon,
        "satisfied": profile.n_satisfied,
        "realised_epsilon": realised,
        "composed": {"rows": total.draws} | {name: getattr(total, name) for name in composed},
        "bounds": bounds if len(bounds) > 1 else bounds[0],
        "range": ranges if len(ranges) > 1 else ranges[0],
        "rows": drawn,
        "seed": SYSTEM if seed is None else seed,
        "sampling": SYSTEM if seed is None else NOT_PRIVATE,
        "method": profile.method,
        "versions": _results.versions(),
    }
    plain: dict[str, Any] = _results.plain(facts)
    return plain


def _bounds_of(column: Histogram) -> dict[str, Any]:
    source = "public" if column.bounds_given else "the data's own"
    return {"low": column.bounds[0], "high": column.bounds[1], "source": source}


def promise(profile: Profile) -> str:
    """Return in one sentence what was checked."""
    n, epsilon = profile.game.n, profile.game.epsilon
    if not profile.certified:
        wrong = n - profile.n_satisfied
        return f"Nothing is promised: {wrong:,} of {n:,} records are not within epsilon {epsilon:.4g}."
    if delta := profile.game.delta:
        return (
            f"Each of the {n:,} records is hidden in a drawn row to epsilon {epsilon:.4g} and delta "
            f"{delta:g} (the worst record reaches delta {profile.realised_delta:.3g}). A record is a row of "
            "the file: someone with several rows is less protected."
        )
    change = f"a factor of at most e^{epsilon:.4g}"
    if epsilon < _EXP_MAX:
        change += f" = {math.exp(epsilon):.3g}"
    if epsilon < _PER_CENT:
        change = f"at most {_rounded_up(100.0 * math.expm1(epsilon)):g}%"
    return (
        f"Each of the {n:,} records is hidden in a drawn row to epsilon {epsilon:.4g}: removing any one of "
        f"them changes the probability of each value by {change} (the worst record reaches epsilon "
        f"{profile.realised_epsilon:.3g}). A record is a row of the file: someone with several rows is less "
        "protected."
    )


def _rounded_up(value: float) -> float:
    """Return a positive value to two digits, not below it."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def limits(profile: Profile, total: Composition) -> list[str]:
    """Return the four limits of the guarantee, each in words that need no mathematics."""
    frozen = (
        "It holds for this data set only, with the noise scales as they are now, fixed and secret. "
        "Re-running without someone changes the scales and may reveal them: in a trial with an outlier the "
        "factor was e^4.3 where epsilon was 1. Keep the scales to yourself, and do not release this column "
        "again after records have come or gone."
    )
    typical = "" if total.median is None else f" (median record: {total.median:.3g})"
    rest = np.format_float_positional(total.delta)
    draws = (
        f"Epsilon {profile.game.epsilon:.4g} is for one row. All {total.draws:,} rows together come to "
        f"epsilon {total.epsilon:.3g} for the worst record{typical}, except with probability {rest}. "
        "Every further row that is drawn adds to that."
    )
    relations = (
        "Removing and adding a record are different guarantees. For a record that is there, one row "
        f"reveals at most epsilon {profile.realised_epsilon:.3g}, all rows {total.removal:.3g}; for one more "
        f"like it, {profile.realised_epsilon_addition:.3g} and {total.addition:.3g}. For someone whose "
        "value nobody here has, nothing is promised."
    )
    return [frozen, _bounds(profile), draws, relations]


def _bounds(profile: Profile) -> str:
    columns = profile.game.histogram.columns
    own = [column for column in columns if not column.bounds_given]
    word = "and" if own else "to"
    ends = ", ".join(f"{low:g} {word} {high:g}" for low, high in (c.bounds for c in own or columns))
    if not own:
        return (
            f"The bounds {ends} count as public. That must be true: if they were looked up in the "
            "data, they tell about its smallest and largest record, and nothing here protects these."
        )
    return (
        f"No public bounds were given, so the data's own smallest and largest value, {ends}, set "
        "the range. They show in the sample, and epsilon does not hold for the records at the ends (in "
        "trials these had 1.2 to 3.7 where it was 1). Give bounds that can be known without the data."
    )


def _warnings(profile: Profile, seed: int | None) -> list[str]:
    found = ["The figures of this certificate come from the data, and are no part of what is protected."]
    if not all(column.bounds_given for column in profile.game.histogram.columns):
        found.append("The bounds are the data's own: see the second limit.")
    if seed is not None:
        found.append(
            f"The sample was drawn with seed {seed} and is not private: whoever knows all records but one, "
            "and the seed, can see with which value of the last one these rows come out."
        )
    return found
