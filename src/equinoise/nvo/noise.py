"""Noise on bins: which share M[k, v, x] of a record of bin k with scale v goes to outcome x.

A family of noise is a class with the parts of :class:`Noise`, and a row in :mod:`equinoise.nvo.registry`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from equinoise import _checks, _elementary
from equinoise._typing import Floats, Ints, Sequence
from equinoise.nvo import kernels
from equinoise.nvo.histogram import Histogram, sealed
from equinoise.nvo.search import dynamics

_LARGEST = 2**28  # masses at once: 2 GiB
_SMALLEST = -690.0  # ln of the smallest mass: what lies below is no outcome at all


class Noise(Protocol):
    """A noise matrix M[k, v, x], some of it at a time, for all of it may be too much."""

    @property
    def n_bins(self) -> int:
        """Number of bins, K."""

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""


def masses(noise: Noise, bins: Ints) -> Floats:
    """Return the rows M of the given bins int64[B], float64[B, V, K], sealed; refused above 2 GiB."""
    refuse_large(noise, bins)
    return sealed(noise.rows(bins))


def refuse_large(noise: Noise, bins: Ints) -> None:
    """Refuse what :func:`masses` would, before any work."""
    size = len(bins) * noise.n_scales * noise.n_bins
    if size > _LARGEST:
        found = f"{noise.n_bins} bins, {len(bins)} of them needed, and {noise.n_scales} scales"
        found += f", which take {8 * size / 2**30:.1f} GiB"
        raise ValueError(f"n_bins must be small enough for noise of 2 GiB here, got {found}")


def at_once(noise: Noise, bins: Ints) -> int:
    """Return of how many games the masses of the given bins take 2 GiB together, at least 1."""
    return max(1, _LARGEST // (len(bins) * noise.n_scales * noise.n_bins))


def exponentials(exponent: Floats) -> Floats:
    """Return e^x of x float64[...], and 0 below e^-690: so far away there is no noise.

    Sums of masses then never meet the numbers too small to be normal, whose digits are few.
    """
    mass = np.empty(exponent.shape)
    _elementary.fill_exp(np.maximum(exponent, _SMALLEST).ravel(), mass.reshape(-1))
    mass[exponent <= _SMALLEST] = 0.0
    return mass


@dataclass(frozen=True, eq=False)
class LaplaceNoise:
    """Laplace noise on equal bins; noise that would leave the range is not added.

    M[k, v, x], proportional to exp(-|x_k - x|/b_v), adds up to one over x (the paper's section 4.2.1). It is
    decay[v, |k - x|]/total[k, v], from decay float64[V, K] by distance in bins, and total float64[K, V].

    Examples
    --------
    >>> LaplaceNoise.of(3, np.array([0.5])).rows(np.array([0])).round(3)
    array([[[0.563, 0.289, 0.148]]])
    """

    decay: Floats
    total: Floats

    @classmethod
    def of(cls, n_bins: int, scales: Floats) -> LaplaceNoise:
        """Return the noise of scales float64[V], normalised, on K bins."""
        with np.errstate(over="ignore"):
            decay = exponentials(-(np.arange(n_bins) / n_bins) / scales[:, None])
        total = decay.cumsum(axis=1)
        total[:, :-1] += decay[:, 1:].cumsum(axis=1)[:, ::-1]
        return cls(decay, np.ascontiguousarray(total.T))

    @property
    def n_bins(self) -> int:
        """Number of bins, K."""
        return len(self.total)

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return len(self.decay)

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        out = np.empty((len(bins), self.n_scales, self.n_bins))
        kernels.noise_rows(self.decay, self.total, bins, out)
        return out

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        return self.decay[:, np.abs(np.arange(self.n_bins) - x)].T / self.total


PAPER = (3.0, 2.0, 1.0, 0.33, 0.2)  # sets of scales to choose from, normalised
EXTENDED = (*PAPER, 0.001)
MULTIPLES = {"paper": PAPER, "extended": EXTENDED, "default": EXTENDED}  # of sensitivity / epsilon
NAMES = tuple(MULTIPLES)  # "default" is something else for noise of a histogram
RULES = ("paper", "amplified", "smallest")
MAX_SCALES = 1024
_SMALLEST_MULTIPLE = 0.001
_NO_NOISE = 1e-3  # bins: so small a scale leaves every value in its bin
_SCALE_DIGITS, _FARTHEST = 1e-9, 1e30  # to which a scale is looked for, and up to which
_ROUNDED = 2.0**-50  # of a loss, eight times what rounding may add to it
_WIDE = 1000.0, 4.0, 0.4, 0.16  # of default scales, in ranges: to the first all bins are alike
_REACH = 0.04  # times 1/(1 - e^-epsilon): about how far a record's others are, of which it may be that part
_STEPS, _FIRST, _LAST = 8, 0.4, 0.25  # and geometric steps, from a part of that to a part of a bin
_APART = 1.1  # of two default scales that are nearer the larger one is enough


def sufficient_scale(n: int, n_bins: int, epsilon: float) -> float:
    """Return (1 - 1/K)/ln(1 + n (e^eps - 1)): exactly what makes every profile of any data private."""
    # ln(1 + n (e^eps - 1)) = eps + ln(n - (n - 1) e^-eps), which neither overflows nor cancels
    return (1.0 - 1.0 / n_bins) / (epsilon + math.log1p((n - 1) * -math.expm1(-epsilon)))


def chosen_scales(scales: Any, histogram: Histogram, epsilon: float) -> Floats:
    """Return what :class:`equinoise.nvo.NoiseGame` is given as float64[V], normalised.

    Of geometric steps the first satisfies everybody: it is at least sufficient for any data. By default there
    is one that satisfies everybody in these data, none at all, and steps between, most of them where records
    choose (benchmarks.nvo_columns): within the distance over which others hide them.
    """
    unit, bins = histogram.sensitivity / epsilon, histogram.n_bins
    if not (math.isfinite(unit * PAPER[0]) and unit * _SMALLEST_MULTIPLE > 0.0):
        raise ValueError(f"epsilon must leave noise of a scale that a float can hold, got {epsilon!r}")
    if isinstance(scales, int | np.integer) and not isinstance(scales, bool):
        number = _checks.integer("scales", scales, 2, MAX_SCALES)
        most = max(PAPER[0] * unit, sufficient_scale(histogram.n, bins, epsilon))
        return _elementary.geometric(most, _SMALLEST_MULTIPLE * unit, number)
    if isinstance(scales, str) and scales == "default":
        reach = min(_REACH / -math.expm1(-epsilon), _WIDE[1])
        steps = _elementary.geometric(max(_FIRST * reach, 1.0 / bins), _LAST / bins, _STEPS)
        some = np.unique([*_WIDE, reach, *steps])
        some = some[np.append(some[1:] > _APART * some[:-1], True)]
        enough = uniform_scale(histogram, epsilon, "smallest")
        return np.unique([*some, enough, _NO_NOISE / bins])[::-1].copy()
    return named("scales", scales, unit)


def named(name: str, scales: Any, unit: float = 1.0, names: Sequence[str] = NAMES) -> Floats:
    """Return scales by the name of a set of multiples of a unit, or positive numbers as they are."""
    if isinstance(scales, str):
        return np.array(MULTIPLES[_checks.choice(name, scales, names)]) * unit
    return positive(name, scales)


def positive(name: str, scales: Any) -> Floats:
    """Return 1 to 1,024 positive scales as float64[V], or refuse them."""
    given = np.array(_checks.array(name, scales, np.float64, (None,)))
    if not 1 <= len(given) <= MAX_SCALES:
        raise ValueError(f"{name} must be 1 to {MAX_SCALES} numbers, got {len(given)}")
    if not (given > 0.0).all():
        where = int(np.flatnonzero(given <= 0.0)[0])
        raise ValueError(f"{name} must be positive, got {given[where]} at index {where}")
    return given


def uniform_scale(histogram: Histogram, epsilon: float, rule: str) -> float:
    """Return the scale that all records share by a rule, see :meth:`equinoise.nvo.NoiseGame.laplace`."""
    if _checks.choice("rule", rule, RULES) == "paper":
        return histogram.sensitivity / epsilon
    n_bins = histogram.n_bins

    def enough(scale: float) -> bool:
        return dynamics.all_satisfied(LaplaceNoise.of(n_bins, np.array([scale])), histogram.counts, epsilon)

    low, high = _NO_NOISE / n_bins, sufficient_scale(histogram.n, n_bins, epsilon)
    if rule == "amplified":  # outwards by more than masses are rounded, so that no data fail by that
        return high * (1.0 + _ROUNDED * (1.0 + 1.0 / epsilon))
    if low >= high or enough(low):
        return min(low, high)
    while not enough(high) and high < _FARTHEST:  # sufficient but for rounding
        high *= 2.0
    while high / low > 1.0 + _SCALE_DIGITS:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
