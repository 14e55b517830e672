"""Bets on a mean, one number at a time, as defined; worst cases over every policy by recursion."""

from __future__ import annotations

import functools
import math

from scipy import optimize


def bets(method):
    """Pairs of a fraction and its weight."""
    if method == "betting":
        found = [(c, c**0.3) for c in (1e-4 * 9500 ** (i / 15) for i in range(16))]
    else:
        found = [(c, c * (1 - c)) for c in (1 / (1 + math.exp(-9.2 + 18.4 * i / 63)) for i in range(64))]
    total = sum(weight for _, weight in found)
    return [(c, weight / total) for c, weight in found]


def moved(mean, epsilon):
    """sigma(logit mean + epsilon), with 0 and 1 where they are."""
    return mean if mean in (0, 1) else 1 / (1 + (1 - mean) / mean * math.exp(-epsilon))


def wealth(rewards, m, method="betting"):
    """Of a bettor against a mean of at most m, reward after reward."""
    return sum(w * math.prod(1 + c * (x / m - 1) for x in rewards) for c, w in bets(method))


def least_wealth(n, s, q, m, method="betting"):
    """The same for the rewards with these totals that pay least: some of size q/s, and zeros."""
    if s == 0:
        return sum(w * (1 - c) ** n for c, w in bets(method))
    some, size = s * s / q, q / s
    return sum(w * (1 - c) ** (n - some) * (1 + c * (size / m - 1)) ** some for c, w in bets(method))


def lowest_mean(n, s, q, level, method="betting"):
    """The largest m whose bettor has at least e^level."""
    low, high = 0.0, 1.0
    for _ in range(100):
        m = (low + high) / 2
        low, high = (m, high) if least_wealth(n, s, q, m, method) >= math.exp(level) else (low, m)
    return low


def least_product(one, other, difference, epsilon=0.0):
    """The least product of wealth against m + difference for `one`, and against m from above for `other`.

    Both are (n, s, q) of their own rewards.
    """
    n, s, q = other
    mirrored = n, n - s, n - 2 * s + q

    def log(m):
        first = least_wealth(*one, moved(min(m + difference, 1.0), epsilon))
        return math.log(first) + math.log(least_wealth(*mirrored, moved(1 - m, epsilon)))

    ends = max(1e-9, -difference + 1e-9), min(1 - 1e-9, 1 - difference)
    found = optimize.minimize_scalar(log, bounds=ends, method="bounded", options={"xatol": 1e-12})
    return math.exp(found.fun)


def lowest_difference(one, other, level, epsilon=0.0):
    """The largest difference at which the least product has e^level."""
    low, high = -1.0 + 1e-6, 1.0 - 1e-6
    for _ in range(50):
        d = (low + high) / 2
        low, high = (d, high) if least_product(one, other, d, epsilon) >= math.exp(level) else (low, d)
    return low


def worst_case(value, means, horizon, epsilon=0.0):
    """The largest E[value at the stop] over all ways to pull two arms with rewards of 0 and 1, and to stop.

    `value` is of (pulls, sums) of the first arm and of the second. A reward is 1 with a chance that may be
    moved by epsilon in log-odds, either way, before every pull.
    """
    chances = [sorted({moved(mean, -epsilon), moved(mean, epsilon)}) for mean in means]

    @functools.cache
    def best(n, s, n_, s_):
        now = value[n, s, n_, s_]
        if n + n_ == horizon:
            return now
        win, lose = best(n + 1, s + 1, n_, s_), best(n + 1, s, n_, s_)
        win_, lose_ = best(n, s, n_ + 1, s_ + 1), best(n, s, n_ + 1, s_)
        first = [p * win + (1 - p) * lose for p in chances[0]]
        return max(now, *first, *(p * win_ + (1 - p) * lose_ for p in chances[1]))

    return best(0, 0, 0, 0)


def ever_excluded(mean, excluded):
    """The chance that an arm of rewards of 0 and 1 ever meets excluded[n][s], by all numbers of successes."""
    chance, ever = [1.0], 0.0
    for n in range(1, len(excluded)):
        stay = [p * (1 - mean) for p in chance] + [0.0]
        win = [0.0] + [p * mean for p in chance]
        chance = [a + b for a, b in zip(stay, win, strict=True)]
        ever += sum(p for s, p in enumerate(chance) if excluded[n][s])
        chance = [0.0 if excluded[n][s] else p for s, p in enumerate(chance)]
    return ever


def e_bh(e_values, alpha):
    """The k largest, for the largest k of which the smallest is at least K/(alpha k)."""
    known = [e for e in e_values if not math.isnan(e)]
    enough = [k for k in range(1, len(known) + 1) if sorted(known)[-k] >= len(known) / (alpha * k)]
    least = sorted(known)[-max(enough)] if enough else math.inf
    return [bool(enough) and e >= least for e in e_values]
