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


def arm_estimates(arms, rewards, chances, kind, decay=0.0, initial=0.0):
    """Means and covariances of all arms by one kind of weights, round by round as defined; NaN for 0/0."""
    rounds, n_arms = len(arms), len(chances[0])
    weights, terms = [], []
    for a in range(n_arms):
        own, weight, term, left = [], [], [], 1.0
        for t in range(rounds):
            guess = 0.0 if kind == "ipw" else sum(own) / len(own) if own else initial
            hit, e = arms[t] == a, chances[t][a]
            if kind in ("ols", "hajek"):
                term.append(rewards[t])
                weight.append((1 / e if kind == "hajek" else 1.0) if hit else 0.0)
            else:
                term.append(guess + (rewards[t] - guess) / e if hit else guess)
                later = (t + 1) ** -decay + (rounds ** (1 - decay) - (t + 1) ** (1 - decay)) / (1 - decay)
                share = (1 - e) * (t + 1) ** -decay / later + e / (rounds - t)
                weight.append(
                    {"constant": math.sqrt(e), "two-point": math.sqrt(e * share * left)}.get(kind, 1.0)
                )
                left *= 1 - share
            own += [rewards[t]] if hit else []
        weights.append(weight)
        terms.append(term)
    means, errors = [], []
    for weight, term in zip(weights, terms, strict=True):
        total = sum(weight) or math.nan
        mean = sum(w * x for w, x in zip(weight, term, strict=True)) / total
        means.append(mean)
        errors.append([w * (x - mean) / total for w, x in zip(weight, term, strict=True)])
    together = [[sum(x * y for x, y in zip(one, two, strict=True)) for two in errors] for one in errors]
    return means, together


def batched_difference(arms, rewards, batches, a, c):
    """Batched OLS: the difference of two arms and its standard error, batch by batch."""
    spread = {}
    for arm in (a, c):
        squares, free = 0.0, 0
        for b in set(batches):
            own = [y for k, y, i in zip(arms, rewards, batches, strict=True) if k == arm and i == b]
            squares += sum((y - sum(own) / len(own)) ** 2 for y in own)
            free += max(len(own) - 1, 0)
        spread[arm] = squares / free
    total = weights = n = 0.0
    for b in set(batches):
        own, other = (
            [y for k, y, i in zip(arms, rewards, batches, strict=True) if k == arm and i == b]
            for arm in (a, c)
        )
        if own and other:
            weight = (spread[a] / len(own) + spread[c] / len(other)) ** -0.5
            total += weight * (sum(own) / len(own) - sum(other) / len(other))
            weights, n = weights + weight, n + 1
    return total / weights, math.sqrt(n) / weights


def policy_value(target, arms, rewards, logged, method, predicted):
    """Off-policy value as in the Open Bandit Pipeline: the mean of what its estimators say of every round."""
    rounds = len(arms)
    w = [target[t][arms[t]] / logged[t] for t in range(rounds)]
    if method == "ips":
        return sum(w[t] * rewards[t] for t in range(rounds)) / rounds
    if method == "snips":
        return sum(w[t] * rewards[t] / (sum(w) / rounds) for t in range(rounds)) / rounds
    direct = [sum(p * q for p, q in zip(target[t], predicted[t], strict=True)) for t in range(rounds)]
    return sum(w[t] * (rewards[t] - predicted[t][arms[t]]) + direct[t] for t in range(rounds)) / rounds
