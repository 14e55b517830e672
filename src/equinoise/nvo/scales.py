"""Sets of noise scales to choose from, in normalised units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import _checks
from equinoise._typing import Floats
from equinoise.nvo.noise import LaplaceNoise
from equinoise.nvo.search import dynamics

if TYPE_CHECKING:
    from equinoise.nvo.histogram import Histogram

PAPER = (3.0, 2.0, 1.0, 0.33, 0.2)
MULTIPLES = {"paper": PAPER, "default": (*PAPER, 0.001)}  # of sensitivity / epsilon
NAMES = tuple(MULTIPLES)
RULES = ("paper", "amplified", "smallest")
_SMALLEST_MULTIPLE = 0.001
MAX_SCALES = 1024
_NO_NOISE = 1e-3  # bins: so small a scale leaves every value in its bin
_SCALE_DIGITS = 1e-9


def sufficient_scale(n: int, n_bins: int, epsilon: float) -> float:
    """Return (1 - 1/K)/ln(1 + n (e^eps - 1)): with no smaller scale every profile of any data is private.

    It is exact: below it some data set with n values has a record that is not epsilon-private when all use
    this one scale.
    """
    # ln(1 + n (e^eps - 1)) = eps + ln(n - (n - 1) e^-eps), which neither overflows nor cancels
    return (1.0 - 1.0 / n_bins) / (epsilon + math.log1p((n - 1) * -math.expm1(-epsilon)))


def chosen_scales(scales: Any, sensitivity: float, epsilon: float, sufficient: float) -> Floats:
    """Return a set of scales as float64[V], normalised: what :class:`equinoise.nvo.NoiseGame` is given.

    Of geometric steps the first satisfies everybody: it is at least `sufficient`, from
    :func:`sufficient_scale`.
    """
    unit = sensitivity / epsilon
    if not (math.isfinite(unit * PAPER[0]) and unit * _SMALLEST_MULTIPLE > 0.0):
        raise ValueError(f"epsilon must leave noise of a scale that a float can hold, got {epsilon!r}")
    if isinstance(scales, str):
        return np.array(MULTIPLES[_checks.choice("scales", scales, NAMES)]) * unit
    if isinstance(scales, int | np.integer) and not isinstance(scales, bool):
        number = _checks.integer("scales", scales, 2, MAX_SCALES)
        return np.geomspace(max(PAPER[0] * unit, sufficient), _SMALLEST_MULTIPLE * unit, number)
    return positive("scales", scales)


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
    if rule == "amplified":
        return sufficient_scale(histogram.n, histogram.n_bins, epsilon)
    return _smallest(histogram, epsilon)


def _smallest(histogram: Histogram, epsilon: float) -> float:
    """Return the smallest scale that satisfies everybody when all use it, to nine digits."""
    n_bins = histogram.n_bins

    def enough(scale: float) -> bool:
        noise = LaplaceNoise.of(n_bins, np.array([scale]))
        return dynamics.all_satisfied(noise.decay, noise.total, histogram.counts[:, None], epsilon)

    low, high = _NO_NOISE / n_bins, sufficient_scale(histogram.n, n_bins, epsilon)
    if low >= high or enough(low):
        return min(low, high)
    while high / low > 1.0 + _SCALE_DIGITS:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
