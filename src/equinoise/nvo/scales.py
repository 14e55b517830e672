"""Sets of noise scales to choose from, in normalised units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks

__all__ = ["MULTIPLES", "NAMES", "chosen_scales", "sufficient_scale"]

PAPER = (3.0, 2.0, 1.0, 0.33, 0.2)
MULTIPLES = {"paper": PAPER, "default": (*PAPER, 0.001)}  # of sensitivity / epsilon
NAMES = tuple(MULTIPLES)
_SMALLEST_MULTIPLE = 0.001
MAX_SCALES = 1024


def sufficient_scale(n: int, n_bins: int, epsilon: float) -> float:
    """Return (1 - 1/K)/ln(1 + n (e^eps - 1)): with no smaller scale every profile of any data is private.

    It is exact: below it some data set with n values has a record that is not epsilon-private when all use
    this one scale.
    """
    # ln(1 + n (e^eps - 1)) = eps + ln(n - (n - 1) e^-eps), which neither overflows nor cancels
    return (1.0 - 1.0 / n_bins) / (epsilon + math.log1p((n - 1) * -math.expm1(-epsilon)))


def chosen_scales(scales: Any, sensitivity: float, epsilon: float, sufficient: float) -> NDArray[np.float64]:
    """Return a set of scales as float64[V], normalised.

    Parameters
    ----------
    scales : {"default", "paper"}, int or float64[V]
        A named set of multiples of sensitivity / epsilon; a number of geometric steps from a scale that
        satisfies everybody down to a thousandth of sensitivity / epsilon; or the scales themselves.
    sensitivity : float
    epsilon : float
    sufficient : float
        From :func:`sufficient_scale`.
    """
    unit = sensitivity / epsilon
    if not (math.isfinite(unit * PAPER[0]) and unit * _SMALLEST_MULTIPLE > 0.0):
        raise ValueError(f"epsilon must leave noise of a scale that a float can hold, got {epsilon!r}")
    if isinstance(scales, str):
        return np.array(MULTIPLES[_checks.choice("scales", scales, NAMES)]) * unit
    if isinstance(scales, int | np.integer) and not isinstance(scales, bool):
        number = _checks.integer("scales", scales, 2, MAX_SCALES)
        return np.geomspace(max(PAPER[0] * unit, sufficient), _SMALLEST_MULTIPLE * unit, number)
    given = np.array(_checks.array("scales", scales, np.float64, (None,)))
    if not 1 <= len(given) <= MAX_SCALES:
        raise ValueError(f"scales must be 1 to {MAX_SCALES} numbers, got {len(given)}")
    if not (given > 0.0).all():
        where = int(np.flatnonzero(given <= 0.0)[0])
        raise ValueError(f"scales must be positive, got {given[where]} at index {where}")
    return given
