"""Compiled wealth of bets on an arm's mean, and the means that it leaves; weighted means of adaptive data.

*Totals* are three numbers of an arm's rewards in [0, 1]: their number n, and W and A as in
:mod:`equinoise.inference.sequences`; W = 0 where all rewards are 0. *Bets* are float64[3, D]: fractions c,
the logarithms of their weights, and ln(1 - c). *Wealth* against "the mean is at most m" is

    sum over bets of weight (1 - c)^(n - W) (1 + c (A/m - 1))^W.

Its logarithm falls in m and is convex in ln m, so Newton's steps in ln m from below never pass the m at which
it has a given *level*: an early end is on the safe side.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._typing import Floats, Ints

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
    """Write `lowest_mean` at level float64[M, K] of totals float64[3, M, K] into out float64[2, M, K]."""
    for i in range(level.shape[0]):
        for k in range(level.shape[1]):
            n, w, a = totals[0, i, k], totals[1, i, k], totals[2, i, k]
            above = i - 1 if i > 0 else 0
            same = n == totals[0, above, k] and w == totals[1, above, k] and a == totals[2, above, k]
            if i > 0 and same and level[i, k] == level[above, k]:  # known already
                out[0, i, k], out[1, i, k] = out[0, above, k], out[1, above, k]
            else:
                out[0, i, k], out[1, i, k] = lowest_mean(level[i, k], n, w, a, bets)


# Weighted means, of which :mod:`equinoise.inference.estimators` says more; kinds by their index.

Log = tuple[Ints, Floats, Floats, Floats]
KINDS = ("ols", "hajek", "ipw", "uniform", "constant", "two-point")
HAJEK = 1  # up to which kinds only the arm that was pulled has a weight
_IPW, _CONSTANT, _TWO_POINT = 2, 4, 5


@njit
def weighted_means(
    log: Log,
    part: tuple[bool, int, int],
    kind: int,
    initial: float,
    decay: float,
    work: Floats,
    mean: Floats,
    cross: Floats,
) -> None:
    """Add rounds to mean = sum_t h_t Gamma_t, or, the second time, to how the means vary together.

    mean float64[R, K]; work float64[R, 5, K] gets H = sum_t h_t at work[:, 4]. The second time mean is
    sum_t h_t Gamma_t / H, and cross[r, a, b] = sum_t u_t(a) u_t(b), u_t = h_t (Gamma_t - mean)/H: float64[R,
    K, K], its lower triangle. Both times the rest of work begins with zeros. The part is whether it is the
    second time, the first round and the one after the last.
    The log is arms int64[R, T], rewards and the propensities that were logged float64[R, T], those of all
    arms float64[R, T, K] (of length 0 where the kind needs none). The plug-in is the mean of an arm's earlier
    rewards, `initial` before there are any, and 0 for "ipw".
    """
    arms, rewards, logged, chance = log
    again, first, last = part
    n_rounds, n_arms = arms.shape[1], mean.shape[1]
    for r in range(arms.shape[0]):
        known = work[r]
        for t in range(first, last):
            pulled, y = arms[r, t], rewards[r, t]
            low, high = (pulled, pulled + 1) if kind <= HAJEK else (0, n_arms)  # the arms with a weight
            t1 = t + 1.0
            bad = 0.0
            if kind == _TWO_POINT:
                falls = 1.0 - decay  # of a sum T (t/T)^decay - t that is mostly rounding where this is small
                bad = falls / (falls + t1 * np.expm1(falls * np.log(n_rounds / t1)))
            for k in range(low, high):
                hit = 1.0 if k == pulled else 0.0
                weight, term = hit, y
                if kind == HAJEK:
                    weight = hit / logged[r, t]
                elif kind >= _IPW:
                    guess = known[0, k] / known[1, k] if known[1, k] > 0.0 else initial
                    guess = 0.0 if kind == _IPW else guess
                    weight, term = 1.0, guess + hit * (y - guess) / logged[r, t]
                if kind == _CONSTANT:
                    weight = np.sqrt(chance[r, t, k])
                elif kind == _TWO_POINT:
                    e = chance[r, t, k]
                    share = min((1.0 - e) * bad + e / (1.0 + n_rounds - t1), 1.0) * (1.0 - known[2, k])
                    known[2, k] += share
                    weight = np.sqrt(max(share, 0.0) * e)
                if again:
                    known[3, k] = weight * (term - mean[r, k]) / known[4, k]
                else:
                    known[4, k] += weight
                    mean[r, k] += weight * term
            if again and kind <= HAJEK:
                cross[r, pulled, pulled] += known[3, pulled] * known[3, pulled]
            elif again:  # from 0, which the compiler knows to be no negative index
                for a in range(n_arms):
                    for b in range(a + 1):
                        cross[r, a, b] += known[3, a] * known[3, b]
            known[0, pulled] += y
            known[1, pulled] += 1.0
