"""Compiled wealth of bets on an arm's mean, and the means that it leaves.

*Totals* are three numbers of an arm's rewards in [0, 1]: their number n, and W and A as in
:mod:`equinoise.inference.sequences`; W = 0 where all rewards are 0. *Bets* are float64[3, D]: fractions c,
the logarithms of their weights, and ln(1 - c). *Wealth* against "the mean is at most m" is

    sum over bets of weight (1 - c)^(n - W) (1 + c (A/m - 1))^W.

Its logarithm falls in m and is convex in ln m, so Newton's steps in ln m from below never pass the m at which
it has a given *level*: an early end is on the safe side.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._typing import Floats

_STEPS = 60  # of Newton, which takes about five
_NEAR = 1e-7  # the error of a step is its square


@njit
def log_wealth(m: float, n: float, w: float, a: float, bets: Floats) -> tuple[float, float]:
    """Return the logarithm of wealth against a mean of at most m in (0, 1], and its derivative in ln m."""
    top, total, slope = -np.inf, 0.0, 0.0
    for k in range(bets.shape[1]):
        c = bets[0, k]
        term = bets[1, k] + (n - w) * bets[2, k] + w * np.log(1.0 - c + c * a / m)
        if term > top:
            scale = np.exp(top - term)
            top, total, slope = term, total * scale, slope * scale
        part = np.exp(term - top)
        total += part
        slope -= part * w * c * a / (m * (1.0 - c) + c * a)
    return top + np.log(total), slope / total


@njit
def lowest_mean(level: float, n: float, w: float, a: float, bets: Floats) -> tuple[float, float]:
    """Return the m in [0, 1] at which wealth falls to e^level, or 1, and how fast m falls with the level."""
    m, slope = 0.0, -1.0
    if w > 0.0:
        for k in range(bets.shape[1]):  # by one bet alone
            c = bets[0, k]
            least = np.exp((level - bets[1, k] - (n - w) * bets[2, k]) / w) - (1.0 - c)
            m = max(m, c * a / least if least > c * a else 1.0)
    for _ in range(_STEPS if m > 0.0 else 0):
        value, slope = log_wealth(m, n, w, a, bets)
        step = (level - value) / slope
        if m >= 1.0 or not step > 0.0:
            break
        m *= np.exp(step)
        if step < _NEAR:
            break
    return (m, -m / slope) if m < 1.0 else (1.0, np.inf)


@njit
def log_wealths(m: Floats, totals: Floats, bets: Floats, out: Floats) -> None:
    """Write `log_wealth` at m float64[M, K] of totals float64[3, M, K] into out float64[2, M, K]."""
    for i in range(m.shape[0]):
        for k in range(m.shape[1]):
            n, w, a = totals[0, i, k], totals[1, i, k], totals[2, i, k]
            if m[i, k] <= 0.0 and w > 0.0:
                out[0, i, k], out[1, i, k] = np.inf, -w
            else:
                out[0, i, k], out[1, i, k] = log_wealth(max(m[i, k], 1e-300), n, w, a, bets)


@njit
def lowest_means(level: Floats, totals: Floats, bets: Floats, out: Floats) -> None:
    """Write `lowest_mean` at level float64[M, K] of totals float64[3, M, K] into out float64[2, M, K].

    What stands in the row above is not computed again.
    """
    for i in range(level.shape[0]):
        for k in range(level.shape[1]):
            n, w, a = totals[0, i, k], totals[1, i, k], totals[2, i, k]
            above = i - 1 if i > 0 else 0
            same = n == totals[0, above, k] and w == totals[1, above, k] and a == totals[2, above, k]
            if i > 0 and same and level[i, k] == level[above, k]:
                out[0, i, k], out[1, i, k] = out[0, above, k], out[1, above, k]
            else:
                out[0, i, k], out[1, i, k] = lowest_mean(level[i, k], n, w, a, bets)
