"""Checks of the arguments of linear bandits that concern them alone."""

from __future__ import annotations

import math

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Floats

LARGEST = 1e6  # entry of contexts and coefficients, and sigma
_CONDITION = 1e10  # largest |x|^2/ridge: beyond it, updates of V^-1 would lose too many digits


def given_theta(theta: ArrayLike | None, n: int, k: int, d: int) -> Floats | None:
    """Return a copy of given coefficients, [K, d] or [R, K, d], or None where they are to be drawn."""
    if theta is None:
        return None
    given = _checks.array("theta", theta, np.float64, None, low=-LARGEST, high=LARGEST)
    return _checks.array("theta", given, np.float64, (n, k, d) if given.ndim == 3 else (k, d)).copy()


def given_contexts(contexts: str | ArrayLike, rounds: int, k: int, d: int) -> Floats:
    """Return given contexts, or an array of no rounds where they are to be drawn."""
    if isinstance(contexts, str):
        _checks.choice("contexts", contexts, ("sphere",))
        return np.empty((0, k, d))
    shape = (rounds, k, d)
    return _checks.array("contexts", contexts, np.float64, shape, low=-LARGEST, high=LARGEST).copy()


def _longest(vectors: Floats | None) -> float:
    """Return the largest length along the last axis; 1 where the vectors are still to be drawn."""
    if vectors is None or vectors.size == 0:
        return 1.0
    return math.sqrt(np.square(vectors).sum(axis=-1).max())


def regular_ridge(ridge: float, contexts: Floats) -> float:
    """Return the ridge, refused where the contexts are too long for it."""
    regular = _checks.number("ridge", ridge, 0.0, open_low=True)
    needed = _longest(contexts) ** 2 / _CONDITION
    if regular < needed:
        raise ValueError(
            "ridge must be at least 1e-10 times the largest squared length of a context, "
            f"here {needed:g}, got {ridge!r}"
        )
    return regular


def check_means(theta: Floats | None, contexts: Floats) -> None:
    """Refuse binary rewards where a mean theta'x may leave [-1, 1]."""
    largest = _longest(theta) * _longest(contexts)
    if largest > 1.0 + 1e-9:
        raise ValueError(
            "reward can be 'binary' only where |theta| |x| is at most 1 for all arms and contexts, "
            f"got {largest:g}"
        )


def clip_range(clip: tuple[float, float] | None, default: float) -> tuple[float, float]:
    """Return (low, high), by default as far as `default` to both sides of zero."""
    if clip is None:
        return -default, default
    low, high = _checks.array("clip", clip, np.float64, (2,), low=-LARGEST, high=LARGEST).tolist()
    if not low < high:
        raise ValueError(f"clip must be a pair (low, high) with low < high, got {_checks.shown(clip)}")
    return low, high
