"""Two plain mechanisms beside the game, with the face of a profile: their promise is for every data set."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks
from equinoise._random import NOISE, stream_key
from equinoise._typing import Any, Floats, Ints
from equinoise.mechanisms.laplace import secure_geometric
from equinoise.nvo.game import LEAST, checked_epsilon
from equinoise.nvo.histogram import Histogram, Released, sealed
from equinoise.nvo.profile import Profile, divergence
from equinoise.nvo.release.composition import COUNTABLE, DELTA, Composition, between, compose_pure

METHODS = ("histogram", "one-draw")
NEIGHBOURS = {"add-remove": 1, "replace": 2}  # how many counts a change of one record changes by one
_SURE = 1.0 - 2.0**-40  # of epsilon: what is left covers rounding
_DEEPEST = 600.0  # epsilon beyond which what is flattened would be no number above 0
_SEEDS = 20  # simulated histograms whose mean KL is shown


@dataclass(frozen=True, eq=False)
class Twin(Released):
    """A release of :func:`one_draw_private` or of :func:`private_histogram`, with the face of a profile.

    Epsilon is that of one draw, or of the counts and all that is drawn from them; the method "one-draw" or
    "histogram", neighbours a key of ``NEIGHBOURS``; pmf float64[K] is 0 outside the bounds; a seed simulates.
    """

    histogram: Histogram
    epsilon: float
    method: str
    neighbours: str
    pmf: Floats
    seed: int | None = None
    certified: bool = True
    delta: float = 0.0
    scales: tuple[float, ...] = ()

    game = property(lambda self: self)
    n = n_satisfied = property(lambda self: self.histogram.n)
    realised_epsilon = realised_epsilon_addition = property(lambda self: self.epsilon)  # whatever the records

    @cached_property
    def kl(self) -> float:
        """Kullback-Leibler divergence of what is released from the histogram, in nats."""
        return divergence(self.histogram.pmf, self.pmf)

    def composed(self, rows: int, delta: float = DELTA) -> Composition:
        """Bound epsilon of all rows together: of a private histogram that of its counts, however many."""
        m = _checks.integer("rows", rows, 1, COUNTABLE)
        share = _checks.number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
        found = self.epsilon if self.method == "histogram" else compose_pure(self.epsilon, m, share)
        return Composition(m, share, found, found, found, "any data")


def one_draw_private(histogram: Histogram, epsilon: float) -> Twin:
    """Draw rows from slightly flattened counts, each epsilon-private for every data set.

    Parameters
    ----------
    histogram : Histogram
        With public bounds, and at least three bins within them: ValueError otherwise.
    epsilon : float
        Of one row, finite and at least 1e-15, when a record comes or goes; twice it when one is replaced.

    Notes
    -----
    Bin x has a probability proportional to ``f(c[x])``, c the counts: f(c) = c where c is at least
    ``c0 = ceil(1/(e^eps - 1))``, else max(c, c0 e^(-eps (c0 - c))). As f(c + 1) <= e^eps f(c), and the sum of
    f is at least 1/(e^eps - 1), no probability changes by a factor above e^eps. Nothing has to stay secret,
    but that there is a histogram tells of two records or more, and of none outside the bounds.

    References
    ----------
    .. [1] Ours; Dwork, Roth (2014), *The Algorithmic Foundations of Differential Privacy*, definition 2.4.

    Examples
    --------
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], 21, bounds=(140, 220))
    >>> one_draw_private(histogram, epsilon=1.0).sample(3, seed=1).dtype
    dtype('int64')
    """
    asked = _begin(histogram, epsilon)
    level = min(asked, _DEEPEST) * _SURE
    least = float(math.ceil(1.0 / math.expm1(level)))
    counts = histogram.counts[histogram.inside].astype(np.float64)
    flattened = [least * math.exp(-level * max(least - count, 0.0)) for count in counts.tolist()]
    return Twin(histogram, asked, "one-draw", "add-remove", _whole(histogram, np.maximum(counts, flattened)))


def private_histogram(
    histogram: Histogram, epsilon: float, *, neighbours: str = "add-remove", seed: int | None = None
) -> Twin:
    """Add noise to the counts once: all rows that are drawn from them are epsilon-private together.

    Parameters
    ----------
    histogram, epsilon : Histogram, float
        As for :func:`one_draw_private`, but epsilon is of the counts, and so of any number of rows.
    neighbours, seed : {"add-remove", "replace"}, int or None
        A record comes or goes, or takes another value, at twice the noise. None takes the noise from OpenDP
        (else ImportError), which a real release needs; a seed is for simulation, and tells the counts.

    Notes
    -----
    The noise is two-sided geometric, with P(z) proportional to e^(-eps |z|/s) and s 1 or 2. What is then no
    positive count becomes the probability of noise below 0, 1/(1 + e^(eps/s)), and not 0: else values that
    the data have would be impossible in most draws, and KL of the release from the data infinite.

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan (2012), *Universally Utility-Maximizing Privacy Mechanisms*, SIAM
       Journal on Computing, definition 2.2.

    Examples
    --------
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], 21, bounds=(140, 220))
    >>> private_histogram(histogram, epsilon=1.0, seed=1).composed(rows=10**6).epsilon
    1.0
    """
    level = _begin(histogram, epsilon)
    changed = NEIGHBOURS[_checks.choice("neighbours", neighbours, tuple(NEIGHBOURS))]
    counts = histogram.counts[histogram.inside]
    if seed is None:
        noised = secure_geometric(counts, changed, level)
    else:
        noised = counts + simulated_geometric(level / changed, len(counts), seed)
    pmf = _whole(histogram, np.maximum(noised, 1.0 / (1.0 + math.exp(min(level / changed, 700.0)))))
    return Twin(histogram, level, "histogram", neighbours, pmf, seed)


def simulated_geometric(epsilon: float, size: int, seed: int) -> Ints:
    """Return two-sided geometric noise int64[size], P(z) proportional to e^(-epsilon |z|), for simulation."""
    words = np.random.Philox(counter=[0, 0, 0, int(NOISE)], key=stream_key(seed))
    first, second = np.random.Generator(words).geometric(-math.expm1(-epsilon), (2, size))
    return np.asarray(first - second)


def _begin(histogram: Histogram, epsilon: float) -> float:
    if not _checks.instance("histogram", histogram, Histogram).bounds_given:
        raise ValueError("histogram must have public bounds, got the data's own: these would not be private")
    n_inside = histogram.inside.stop - histogram.inside.start
    if n_inside < 3:
        raise ValueError(f"histogram must have n_bins of at least 3 within its bounds, got {n_inside}")
    return checked_epsilon(epsilon)


def _whole(histogram: Histogram, kept: Floats) -> Floats:
    pmf = np.zeros(histogram.n_bins)
    pmf[histogram.inside] = kept / kept.sum()
    return sealed(pmf)


def make(
    method: str, histogram: Histogram, epsilon: float | None, total: float | None, rows: int, seed: int | None
) -> Twin:
    """Return the twin of a method for epsilon of a row, or else for that of all rows."""
    if method == "histogram":
        return private_histogram(histogram, epsilon or total or 0.0, seed=seed)
    return one_draw_private(histogram, epsilon or row_epsilon(total or 0.0, rows))


def row_epsilon(total: float, rows: int, delta: float = DELTA) -> float:
    """Return epsilon of a draw whose rows stay within a total whatever the data, to one in a hundred."""
    rest = -float(np.log(delta))  # by concentration a row may have at least so much
    low = high = max(total / rows, float(np.sqrt(2.0 / rows) * (np.sqrt(total + rest) - np.sqrt(rest))))
    while high < total and compose_pure(high, rows, delta) <= total:
        low, high = high, min(1.25 * high, total)
    while high > 1.01 * low:
        middle = between(low, high)
        low, high = (middle, high) if compose_pure(middle, rows, delta) <= total else (low, middle)
    return low


def beside(profile: Profile, rows: int, total: float, delta: float = DELTA) -> list[dict[str, Any]]:
    """Return a row for NVO, and for both twins at its epsilon of a row and at its total of all rows.

    ``mechanism``, ``one`` and ``all`` (epsilon of one row and of all), ``kl``, and whom it holds for. KL of a
    private histogram is the mean of simulated ones. NVO alone without public bounds, or three bins in them.
    """
    histogram, one, inside = profile.histogram, profile.game.epsilon, profile.histogram.inside
    names = ("mechanism", "one", "all", "kl", "holds for")
    table = [("NVO", one, total, profile.kl, "these data")]
    public = histogram.bounds_given and inside.stop - inside.start > 2
    for level, row, what in ((one, one, "same row"), (total, row_epsilon(total, rows, delta), "same total")):
        if public and min(row, level) >= LEAST and level < math.inf:
            twin, anybody = one_draw_private(histogram, row), "any data"
            table.append((f"one draw, {what}", row, twin.composed(rows, delta).epsilon, twin.kl, anybody))
            kl = [private_histogram(histogram, level, seed=seed).kl for seed in range(_SEEDS)]
            table.append((f"histogram, {what}", level, level, float(np.mean(kl)), anybody))
    return [dict(zip(names, row, strict=True)) for row in table]
