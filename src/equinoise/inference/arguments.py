"""Scalars or arrays alike: checked arguments in float64, and results of the kind that came in."""

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, ArrayLike, Floats

__all__ = ["Floats", "Number", "Numbers", "as_given", "counts", "positive", "together"]

Number = Any  # what functions return: a float, or float64[...]
Numbers = ArrayLike  # what they take


def positive(name: str, value: ArrayLike, *, finite: bool = True, zero: bool = False) -> Floats:
    """Return positive numbers as float64[...]; also infinity with ``finite=False``, and 0 with `zero`."""
    given = np.asarray(value)
    infinite = given == np.inf if given.dtype.kind == "f" and not finite else np.False_
    known = np.where(infinite, 1.0, given) if infinite.any() else given
    numbers = _checks.array(name, known, np.float64, None)
    if not (numbers >= 0.0 if zero else numbers > 0.0).all():
        words = "at least 0" if zero else "positive"
        raise ValueError(f"{name} must be {words}, got {_checks.shown(value)}")
    return np.where(infinite, np.inf, numbers)


def counts(name: str, value: ArrayLike, low: int) -> Floats:
    """Return integers of at least `low` as float64[...]."""
    return _checks.array(name, value, np.int64, None, low=low).astype(np.float64)


def together(**arrays: Array) -> list[Any]:
    """Return arrays broadcast against each other, read-only; ValueError names those that do not fit."""
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"arguments must have shapes that broadcast, got {shapes}") from None


def as_given(result: Floats) -> Number:
    """Return a float where every argument was a scalar, and the array otherwise."""
    return result if result.ndim else float(result)
