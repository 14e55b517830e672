"""Gaussian noise and (epsilon, delta): delta of every record, exactly, on the bins.

With delta a record may be revealed outright with a small probability. That says something only where delta is
far below 1/n: handing out one whole record of n, without any noise, is (0, 1/n)-private.
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Floats, Ints
from equinoise.nvo.evaluation import deltas, sticks
from equinoise.nvo.game import Game
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.profile import Profile
from equinoise.nvo.registry import SEARCHES
from equinoise.nvo.scales import MULTIPLES, positive
from equinoise.nvo.search.descent import anneal
from equinoise.nvo.search.dynamics import all_largest

__all__ = ["GaussianGame", "GaussianNoise", "GaussianProfile", "deltas"]

_FAR_BELOW = 0.1  # of 1/n, above which delta is warned about
_SMALLEST = -690.0  # ln of the smallest mass, as for Laplace noise


GaussianProfile = Profile


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Gaussian noise on equal bins; noise that would leave the range is not added.

    The mass M[k, v, x] is proportional to exp(-(x_k - x)^2/(2 s_v^2)) and adds up to one over x.

    Attributes
    ----------
    n_bins : int
    scales : float64[V]
        Standard deviations before noise that would leave the range is left out, normalised.

    Examples
    --------
    >>> GaussianNoise(3, np.array([0.5])).rows(np.array([0])).round(3)
    array([[[0.452, 0.362, 0.186]]])
    """

    n_bins: int
    scales: Floats

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return len(self.scales)

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        distance = np.abs(bins[:, None] - np.arange(self.n_bins)) / self.n_bins
        exponent = -0.5 * (distance[:, None, :] / self.scales[:, None]) ** 2
        mass = np.where(exponent > _SMALLEST, np.exp(np.maximum(exponent, _SMALLEST)), 0.0)
        return np.asarray(mass / mass.sum(axis=2, keepdims=True))

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        bins = np.arange(self.n_bins)
        return np.concatenate([self.rows(bins[k : k + 1])[:, :, x] for k in range(self.n_bins)])

    @staticmethod
    def tail(share: float) -> float:
        """Return below how many scales the noise stays, on one side, with a probability of share >= 1/2."""
        return NormalDist().inv_cdf(share)


@dataclass(frozen=True, eq=False)
class GaussianGame(Game):
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

    References
    ----------
    .. [1] Balle, Wang (2018), *Improving the Gaussian Mechanism for Differential Privacy: Analytical
       Calibration and Optimal Denoising*, ICML, theorem 5: delta from the privacy loss, exactly.

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
        epsilon = self._begin(Histogram)
        delta = _checks.number("delta", self.delta, 0.0, 1.0, open_low=True)
        if delta >= 1.0 / self.n:
            raise ValueError(
                f"delta must be far below 1/n = {1 / self.n:.3g}, got {delta:g}: to hand out one whole "
                "record is (0, 1/n)-private"
            )
        if delta > _FAR_BELOW / self.n:
            warnings.warn(
                f"delta {delta:g} is not far below 1/n = {1 / self.n:.3g}: a record may be revealed outright "
                "nearly as often as if one were handed out whole",
                stacklevel=3,
            )
        if isinstance(self.scales, str):
            _checks.choice("scales", self.scales, ("default",))
            unit = math.sqrt(2.0) * self.histogram.sensitivity / epsilon
            self._keep("scales", np.array(MULTIPLES["default"]) * unit)
        else:
            self._keep("scales", positive("scales", self.scales))

    @cached_property
    def noise(self) -> GaussianNoise:
        """Where masses come from."""
        return GaussianNoise(self.histogram.n_bins, self.scales)

    def solve(self, seed: int | None = 0) -> Profile:
        """Search by annealing from everybody at the largest scale, and never leave what satisfies all."""
        bins = np.flatnonzero(self.histogram.counts)
        masses = self.noise.rows(bins)
        start = all_largest(self.histogram.counts[bins], self.scales)

        def satisfied(counts: Ints, total: Floats) -> bool:
            return bool((sticks(total, masses[counts > 0], self.n, -1, self.epsilon) <= self.delta).all())

        found, rounds = anneal(masses, start, self.histogram.pmf, satisfied, seed=seed)
        counts = np.zeros((self.histogram.n_bins, len(self.scales)), dtype=np.int64)
        counts[bins] = found
        return self.profile(counts, SEARCHES["anneal"].label, seed=seed, rounds=rounds)
