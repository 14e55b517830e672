"""A profile: how many records of every bin use each noise scale, and what it is worth, from the definition.

No search calls this, and it calls nothing that a search does. Searches have an evaluation of their own
(:mod:`equinoise.nvo.kernels`), a hundred times faster. Whatever a search returns is judged here, in other
code and from another formula, so that a mistake in one of them shows and certifies nothing.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import ArrayLike, Axes, DataFrame, Flags, Floats, Ints
from equinoise.nvo import kernels
from equinoise.nvo.histogram import Released, sealed
from equinoise.nvo.noise import Noise

if TYPE_CHECKING:
    from equinoise.nvo.game import NoiseGame

_BLOCK = 2**21  # entries of the noise matrix that are looked at together
_ROUNDING = 1e-12  # of epsilon + 1/n: nearer to the limit than what rounds can tell


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A profile's privacy and utility.

    Satisfied are records that have what the game asks for: their own epsilon is at most the game's, or their
    delta. Epsilons are for the removal of a record and for the addition of one more like it: the largest of
    any, and of every type (k, v), float64[K, V], 0 where there is none; satisfied bool[K, V] says which types
    are. The payoff is n_satisfied + 1 - kl/ln K, kl the divergence of what is released from the histogram, in
    nats, and pmf float64[K] the probability that a bin is released.

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([150, 160, 160, 170], n_bins=5, bounds=(150, 170))
    >>> NoiseGame(histogram, epsilon=1.0).laplace("amplified").evaluation.n_satisfied
    4
    """

    n_satisfied: int
    realised_epsilon: float
    realised_epsilon_addition: float
    payoff: float
    kl: float
    pmf: Floats
    epsilon: Floats
    epsilon_addition: Floats
    satisfied: Flags


def evaluate(noise: Noise, bin_counts: Ints, counts: Ints, epsilon: float, delta: float = 0.0) -> Evaluation:
    """Evaluate counts int64[K, V] of a histogram int64[K] from scratch, for epsilon or for (epsilon, delta).

    With ``S = sum of counts M`` bin x is released with probability S[x]/n. For a record of type (k, v)
    the others' mass is ``S - M``, and with ``r = M/(S - M)`` its epsilon is the largest
    ``|ln(1 + r[x]) + ln(1 - 1/n)|`` over x; for one more record ``|ln(1 + M/S) - ln(1 + 1/n)|``. Where
    S[x] = 0 there is no such outcome. Definitions 3.1 and 3.3, equations 7 and 8 of the paper.
    """
    n = int(bin_counts.sum())
    total = released(noise, counts)
    least, most, odds = _shares(noise, counts, total)
    removal, addition = math.log1p(-1.0 / n), -math.log1p(1.0 / n)
    used = counts > 0
    own = np.where(used, np.maximum(np.log1p(odds) + removal, np.log1p(-least) - removal), 0.0)
    more = np.where(used, np.maximum(np.log1p(most) + addition, -(np.log1p(least) + addition)), 0.0)
    lost, limit, slack = own, epsilon, _ROUNDING * (epsilon + 1.0 / n)
    if delta > 0.0:
        lost, limit = deltas(noise, counts, epsilon)[0], delta
        slack = _ROUNDING * (1.0 + math.exp(min(epsilon, 700.0)))
    met = lost <= limit
    for k, v in np.argwhere(used & (np.abs(lost - limit) <= slack)):
        met[k, v] = _exactly(noise, counts, total, (int(k), int(v)), (epsilon, delta, slack))
    satisfied = used & met
    n_satisfied = int(counts[satisfied].sum())
    kl = divergence(bin_counts / n, total / n)
    worst, payoff = (float(own.max()), float(more.max())), n_satisfied + 1.0 - kl / math.log(len(bin_counts))
    return Evaluation(n_satisfied, *worst, payoff, kl, sealed(total / n), own, more, satisfied)


def divergence(p: Floats, q: Floats) -> float:
    """Return the Kullback-Leibler divergence sum of p ln(p/q), in nats; infinite where q misses p."""
    return max(0.0, kernels.kullback_leibler(np.ascontiguousarray(p), np.ascontiguousarray(q)))


def released(noise: Noise, counts: Ints) -> Floats:
    """Return S = sum over types of counts M, float64[X]."""
    total = np.zeros((1, noise.n_bins))
    for bins in _blocks(noise, counts):
        kernels.add_all(noise.rows(bins).reshape(-1, noise.n_bins), counts[bins].reshape(-1), total)
    return np.asarray(total[0])


def _blocks(noise: Noise, counts: Ints) -> list[Ints]:
    """Return the bins with records, in parts none of which has more noise than fits into a block."""
    step = max(1, _BLOCK // (noise.n_scales * noise.n_bins))
    there = np.flatnonzero(counts.any(axis=1))
    return [there[i : i + step] for i in range(0, len(there), step)]


def _shares(noise: Noise, counts: Ints, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Return least and largest M/S over x, and largest M/(S - M): float64[K, V], 0 for types not there."""
    least, most, odds = np.zeros((3, *counts.shape))
    possible = np.flatnonzero(total > 0.0)
    for bins in _blocks(noise, counts):
        row, v = np.nonzero(counts[bins])
        k, share = bins[row], noise.rows(bins)[row, v]
        share = share[:, possible] if len(possible) < len(total) else share
        share /= total[possible]
        least[k, v] = share.min(axis=1)
        most[k, v] = share.max(axis=1)
        with np.errstate(divide="ignore"):
            odds[k, v] = most[k, v] / (1.0 - most[k, v])
        # a record that gives more than half of S[x]: S - M would lose digits, so the others are added up
        for i in np.flatnonzero((counts[k, v] == 1) & (most[k, v] > 0.5)):
            at = possible[share[i] > 0.5]
            odds[k[i], v[i]] = max(_odds(noise, counts, int(k[i]), int(v[i]), int(x)) for x in at)
    return least, most, odds


def _odds(noise: Noise, counts: Ints, k: int, v: int, x: int) -> float:
    """Return the mass of one record of type (k, v) at x over that of all the others."""
    column = noise.column(x)
    rest = counts.copy()
    rest[k, v] -= 1
    others = float(np.sum(rest * column))
    return float(column[k, v]) / others if others > 0.0 else math.inf


def _exactly(
    noise: Noise, counts: Ints, total: Floats, kind: tuple[int, int], limits: tuple[float, float, float]
) -> bool:
    """Return whether delta of a record at epsilon is at most delta (0 too), in whole numbers."""
    epsilon, delta, slack = limits
    n, used, there = int(counts.sum()), counts > 0, total > 0.0
    share = np.minimum(noise.rows(np.array([kind[0]]))[0, kind[1], there] / total[there], 1.0)
    with np.errstate(divide="ignore"):
        near = np.abs(math.log1p(-1.0 / n) - np.log1p(-share)) >= epsilon - 2.0 * slack
    with decimal.localcontext(prec=60):
        factor = Fraction(decimal.Decimal(epsilon).exp())
    one = other = Fraction(0)
    for x in np.flatnonzero(there)[near | (share > 0.5) | (delta > 0.0)]:
        column = noise.column(int(x))
        each = zip(counts[used].tolist(), column[used].tolist(), strict=True)
        whole = sum(c * Fraction(mass) for c, mass in each)
        p, q = whole / n, (whole - Fraction(float(column[kind]))) / (n - 1)
        one, other = one + max(p - factor * q, 0), other + max(q - factor * p, 0)
        if max(one, other) > delta:
            return False
    return True


def deltas(noise: Noise, counts: ArrayLike, epsilon: float) -> tuple[Floats, Floats]:
    """Return delta of every type of record at an epsilon, for its removal and for the addition of one more.

    Of each, float64[K, V], for noise of any family and counts of at least two records: the larger of sum of
    (P - e^eps Q)+ and sum of (Q - e^eps P)+ over the bins, P with the record and Q without it (Balle, Wang,
    2018, *Improving the Gaussian Mechanism*, ICML, theorem 5); 0 for the removal where there is none.

    Examples
    --------
    >>> from equinoise.nvo.gaussian import GaussianNoise
    >>> removal, _ = deltas(GaussianNoise(5, np.array([0.3])), [[3], [0], [1], [0], [0]], 0.5)
    >>> removal[:, 0].round(4)
    array([0.    , 0.    , 0.0265, 0.    , 0.    ])
    """
    level = _checks.number("epsilon", epsilon, 0.0)
    shape = (noise.n_bins, noise.n_scales)
    given: Ints = _checks.array("counts", counts, np.int64, shape, low=0)
    n = int(given.sum())
    if n < 2:
        raise ValueError(f"counts must be of at least 2 records, got {n}")
    total = released(noise, given)
    removal, addition = np.zeros(shape), np.zeros(shape)
    for b in range(noise.n_bins):
        mass = noise.rows(np.array([b]))[0]
        removal[b] = np.where(given[b] > 0, sticks(total, mass, n, -1, level), 0.0)
        addition[b] = sticks(total, mass, n, 1, level)
    return removal, addition


def sticks(total: Floats, mass: Floats, n: int, sign: int, epsilon: float) -> Floats:
    """Return hockey-stick divergences, both ways, of S/n and (S + sign M)/(n + sign): [..., X] to [...]."""
    p = total / n
    q = np.maximum(total + sign * mass, 0.0) / (n + sign)
    factor = math.exp(min(epsilon, 700.0))
    ways = [np.maximum(p - factor * q, 0.0).sum(axis=-1), np.maximum(q - factor * p, 0.0).sum(axis=-1)]
    return np.asarray(np.maximum(*ways))


@dataclass(frozen=True, eq=False)
class Profile(Released):
    """What every record chose, its privacy and what is left of the data: K bins, V scales, n records.

    The same for every family of noise. With two columns a bin is a cell of their grid.

    Attributes
    ----------
    game : Game
        With the histogram, epsilon and the scales.
    counts : int64[K, V]
        Records of bin k that use scale v. Records of one bin are alike, so this is all there is to know.
    method, seed, found_by : str, int or None, (str, dict) or None
        How it was found, and the game's method, with its options, that finds it again.
    converged, rounds : bool, int
        Whether the method ended by its own rule and not by a limit on its rounds; and these.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), section 4.2 (payoff) and appendix C.3 (measures of utility).

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([1, 2, 2, 3, 3, 3], n_bins=7, bounds=(0, 5))
    >>> profile = NoiseGame(histogram, 2.0).best_response()
    >>> profile.counts.sum(), profile.scale_of.shape, float(profile.pmf.sum().round(12))
    (np.int64(6), (6,), 1.0)
    """

    game: NoiseGame  # or another family's, which has the same face but for its searches
    counts: Ints
    method: str = "given"
    seed: int | None = None
    converged: bool = True
    rounds: int = 0
    found_by: tuple[str, dict[str, Any]] | None = None

    def __repr__(self) -> str:
        found = f"{self.n_satisfied} of {self.game.n} satisfied"
        return f"Profile({self.method}, epsilon={self.game.epsilon:g}, {found}, kl={self.kl:.4g})"

    @property
    def histogram(self) -> Any:
        """The records of the game, in bins."""
        return self.game.histogram

    @cached_property
    def evaluation(self) -> Evaluation:
        """The profile's evaluation, from the definition."""
        return self.game.evaluate(self.counts)

    @property
    def pmf(self) -> Floats:
        """Probability that a bin is released, float64[K]."""
        return self.evaluation.pmf

    @property
    def n_satisfied(self) -> int:
        """Number of records that have what the game asks for."""
        return self.evaluation.n_satisfied

    @property
    def certified(self) -> bool:
        """Whether every record is satisfied."""
        return self.n_satisfied == self.game.n

    @property
    def realised_epsilon(self) -> float:
        """The largest epsilon of any record, for its removal; infinite when one could be revealed."""
        return self.evaluation.realised_epsilon

    @property
    def realised_epsilon_addition(self) -> float:
        """The same for the addition of one more record of a type that is there already."""
        return self.evaluation.realised_epsilon_addition

    @cached_property
    def delta_of(self) -> tuple[Floats, Floats]:
        """Delta of every type at the game's epsilon, for removal and for addition, float64[K, V] each."""
        return deltas(self.game.noise, self.counts, self.game.epsilon)

    @property
    def realised_delta(self) -> float:
        """The largest delta of any record at the game's epsilon, for its removal."""
        return float(self.delta_of[0].max())

    @property
    def payoff(self) -> float:
        """n_satisfied + 1 - kl/ln K, which all records share."""
        return self.evaluation.payoff

    @property
    def kl(self) -> float:
        """Kullback-Leibler divergence of what is released from the histogram, in nats."""
        return self.evaluation.kl

    def composed(self, rows: int, delta: float = 1e-5) -> Any:
        """Bound epsilon of all rows together, see :func:`equinoise.nvo.release.compose`."""
        from equinoise.nvo.release.composition import compose

        return compose(self.game.noise, self.counts, self.evaluation, rows, delta)

    def resolved_epsilon(self, records: int | None = 25) -> float:
        """Return the worst loss of one row where the game is solved again without one of some records.

        They are the rarest, or all with None; see :func:`equinoise.nvo.release.resolve`.
        """
        from equinoise.nvo.release.composition import resolve

        return resolve(self, records, 1).epsilon

    @cached_property
    def scale_of(self) -> Floats:
        """Noise scale of each record, float64[n] in input order; the first of a bin take its first scale."""
        bin_of = self.game.histogram.bin_of
        result, each = np.empty(len(bin_of)), np.tile(self.game.scales, len(self.counts))
        result[np.argsort(bin_of, kind="stable")] = np.repeat(each, self.counts.reshape(-1))
        return sealed(result)

    def to_frame(self) -> DataFrame:
        """Return one row per bin: bin, midpoint (of pairs first, second), histogram, released, mean_scale."""
        import pandas as pd

        bins = np.arange(len(self.counts))
        units: Any = self.game.histogram.to_units(bins)
        places = {"first": units[0], "second": units[1]} if isinstance(units, tuple) else {"midpoint": units}
        mean = self.counts @ self.game.scales / np.maximum(self.counts.sum(axis=1), 1)
        what = {"histogram": self.game.histogram.pmf, "released": self.pmf, "mean_scale": mean}
        return self._made(pd.DataFrame({"bin": bins, **places, **what}))

    def _made(self, frame: DataFrame) -> DataFrame:
        return _results.made_by(frame, method=self.method, epsilon=self.game.epsilon, seed=self.seed)

    def summary(self) -> DataFrame:
        """Return one row: method, epsilon, satisfied, realised epsilon, and the measures of utility."""
        import pandas as pd

        names = ("n_satisfied", "certified", "realised_epsilon", "realised_epsilon_addition", "payoff")
        measures = ("kl", "sd_l1", "jaccard", "cosine", "converged", "rounds")
        row = {"method": self.method, "epsilon": self.game.epsilon}
        return self._made(pd.DataFrame([row | {name: getattr(self, name) for name in names + measures}]))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the histogram and what is released, in the data's units (of two columns by cells)."""
        from equinoise.report import pictures

        bins: Any = np.arange(len(self.counts))
        units: Any = self.game.histogram.to_units(bins)
        values, unit = (bins, "cell") if isinstance(units, tuple) else (units, "value")
        parts = self.game.histogram.pmf, [(self.method, self.pmf)]
        return pictures.distributions(ax, *parts, values=values, unit=unit)
