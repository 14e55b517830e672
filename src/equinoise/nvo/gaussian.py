"""Gaussian noise and (epsilon, delta): delta of every record, exactly, on the bins.

With delta a record may show for sure with a small probability. That says something only where delta is far
below 1/n: handing out one whole record of n, without any noise, is (0, 1/n)-private.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks
from equinoise.nvo.evaluation import divergence, released
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import GaussianNoise, Kernel
from equinoise.nvo.ratios import checked_counts
from equinoise.nvo.scales import MULTIPLES, positive
from equinoise.nvo.search.descent import anneal
from equinoise.nvo.search.dynamics import all_largest

__all__ = ["GaussianGame", "GaussianProfile", "deltas"]

_FAR_BELOW = 0.1  # of 1/n, above which delta is warned about

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def deltas(kernel: Kernel, counts: ArrayLike, epsilon: float) -> tuple[Floats, Floats]:
    """Return delta of every type of record at an epsilon, for its removal and for the addition of one more.

    Parameters
    ----------
    kernel : Kernel
        Of any noise.
    counts : int64[K, V]
        A profile of at least two records.
    epsilon : float
        Not negative.

    Returns
    -------
    (float64[K, V], float64[K, V])
        The larger of sum of (P - e^eps Q)+ and sum of (Q - e^eps P)+ over the bins, P with the record and Q
        without it; 0 for the removal where there is none to remove.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> from equinoise.nvo.noise import GaussianNoise
    >>> noise = GaussianNoise(5, np.array([0.3]))
    >>> removal, _ = deltas(noise, [[3], [0], [1], [0], [0]], 0.5)
    >>> removal[:, 0].round(4)
    array([0.    , 0.    , 0.0265, 0.    , 0.    ])
    """
    level = _checks.number("epsilon", epsilon, 0.0)
    shape = (kernel.n_bins, kernel.n_scales)
    given: Ints = _checks.array("counts", counts, np.int64, shape, low=0)
    n = int(given.sum())
    if n < 2:
        raise ValueError(f"counts must be of at least 2 records, got {n}")
    total = released(kernel, given)
    removal, addition = np.zeros(shape), np.zeros(shape)
    for b in range(kernel.n_bins):
        mass = kernel.rows(np.array([b]))[0]
        removal[b] = np.where(given[b] > 0, _sticks(total, mass, n, -1, level), 0.0)
        addition[b] = _sticks(total, mass, n, 1, level)
    return removal, addition


def _sticks(total: Any, mass: Floats, n: int, sign: int, epsilon: float) -> Floats:
    """Return hockey-stick divergences, both ways, of S/n and (S + sign M)/(n + sign): [..., X] to [...]."""
    p = total / n
    q = np.maximum(total + sign * mass, 0.0) / (n + sign)
    factor = math.exp(min(epsilon, 700.0))
    ways = [np.maximum(p - factor * q, 0.0).sum(axis=-1), np.maximum(q - factor * p, 0.0).sum(axis=-1)]
    return np.asarray(np.maximum(*ways))


@dataclass(frozen=True, eq=False)
class GaussianGame:
    """The game with Gaussian noise, in which a record is satisfied by (epsilon, delta).

    Parameters
    ----------
    histogram : Histogram
    epsilon : float
        What every record asks for: positive and finite.
    delta : float
        Positive and below 1/n, where it would mean nothing. Above a tenth of 1/n there is a warning.
    scales : "default" or float64[V]
        Standard deviations, normalised; by default those of the Laplace game's default scales.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], 21, bounds=(140, 220))
    >>> profile = GaussianGame(histogram, epsilon=1.0, delta=1e-6).solve()
    >>> profile.certified, profile.realised_delta <= 1e-6
    (True, True)
    """

    histogram: Histogram
    epsilon: float
    delta: float
    scales: Any = "default"

    def __post_init__(self) -> None:
        if not isinstance(self.histogram, Histogram):
            raise TypeError(f"histogram must be a Histogram, got {_checks.shown(self.histogram)}")
        epsilon = _checks.epsilon(self.epsilon, allow_infinite=False)
        delta = _checks.number("delta", self.delta, 0.0, 1.0, open_low=True)
        n = self.histogram.n
        if delta >= 1.0 / n:
            raise ValueError(
                f"delta must be far below 1/n = {1 / n:.3g}, got {delta:g}: to hand out one whole record is "
                "(0, 1/n)-private"
            )
        if delta > _FAR_BELOW / n:
            warnings.warn(
                f"delta {delta:g} is not far below 1/n = {1 / n:.3g}: a record may show for sure nearly as "
                "often as if one were handed out whole",
                stacklevel=3,
            )
        unit = math.sqrt(2.0) * self.histogram.sensitivity / epsilon
        scales = np.array(MULTIPLES["default"]) * unit
        if not isinstance(self.scales, str):
            scales = positive("scales", self.scales)
        else:
            _checks.choice("scales", self.scales, ("default",))
        object.__setattr__(self, "scales", scales)

    @cached_property
    def noise(self) -> GaussianNoise:
        """Where masses come from."""
        return GaussianNoise(self.histogram.n_bins, self.scales)

    def profile(self, counts: ArrayLike, rounds: int = 0) -> GaussianProfile:
        """Return a profile of this game from its counts, int64[K, V]."""
        given = checked_counts("counts", counts, self.histogram.counts, len(self.scales))
        return GaussianProfile(self, given, rounds)

    def solve(self, seed: int | None = 0) -> GaussianProfile:
        """Search by annealing from everybody at the largest scale, and never leave what satisfies all."""
        bins = np.flatnonzero(self.histogram.counts)
        masses = self.noise.rows(bins)
        start = all_largest(self.histogram.counts[bins], self.scales)
        n = self.histogram.n

        def fine(counts: Ints, total: Floats) -> bool:
            return bool((_sticks(total, masses[counts > 0], n, -1, self.epsilon) <= self.delta).all())

        found, rounds = anneal(masses, start, self.histogram.pmf, fine, seed=seed)
        counts = np.zeros((self.histogram.n_bins, len(self.scales)), dtype=np.int64)
        counts[bins] = found
        return self.profile(counts, rounds)


@dataclass(frozen=True, eq=False)
class GaussianProfile:
    """What every record chose, judged by (epsilon, delta).

    Attributes
    ----------
    game : GaussianGame
    counts : int64[K, V]
    rounds : int
        Of the search.
    """

    game: GaussianGame
    counts: Ints
    rounds: int = 0

    @cached_property
    def delta_of(self) -> tuple[Floats, Floats]:
        """Delta of every type at the game's epsilon, for removal and for addition, float64[K, V] each."""
        return deltas(self.game.noise, self.counts, self.game.epsilon)

    @property
    def realised_delta(self) -> float:
        """The largest delta of any record, for its removal."""
        return float(self.delta_of[0].max())

    @property
    def n_satisfied(self) -> int:
        """Number of records whose delta is at most the game's."""
        return int(self.counts[self.delta_of[0] <= self.game.delta].sum())

    @property
    def certified(self) -> bool:
        """Whether every record is satisfied."""
        return self.n_satisfied == self.game.histogram.n

    @cached_property
    def pmf(self) -> Floats:
        """Probability that a bin is released, float64[K]."""
        return released(self.game.noise, self.counts) / self.game.histogram.n

    @property
    def kl(self) -> float:
        """Kullback-Leibler divergence of what is released from the histogram, in nats."""
        return divergence(self.game.histogram.pmf, self.pmf)
