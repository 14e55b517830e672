"""What an index is widened by: the confidence in a mean, and the noise in an arm's sum.

What the round and the kind of noise decide is read from tables as far as they reach, and computed beyond.
"""

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.mechanisms import kernels
from equinoise.mechanisms.kary import best_tree
from equinoise.mechanisms.kernels import fill_widths, floor_log2, hybrid_line, kary_draws

UNIFORM, GREEDY, UCB, UCB1 = 0, 1, 2, 3
LARGEST_TABLE = 2**24  # entries: what lies beyond is computed as rounds come
NO_WIDTH, PUBLISHED, COUNTER = 0, 1, 2
BINARY, HYBRID, KARY = 0, 1, 2
_WIDTHS = {"none": NO_WIDTH, "published": PUBLISHED, "counter": COUNTER}
_COUNTERS = {"binary": BINARY, "hybrid": HYBRID, "k-ary": KARY}
_MOST_LEVELS = 62  # of a counter that knows no horizon
_LN2 = float(np.log(2.0))


@njit
def confidence_at(rule: int, t: int) -> float:
    """Return c_t of round t, from 1."""
    log_t = log(np.float64(t))
    if rule == UCB:
        return np.sqrt(log(2.0 * (1.0 + t * log_t * log_t)))
    if rule == UCB1:
        return 2.0 * np.sqrt(log_t)
    return 0.0


@njit
def _fill_confidence(rule: int, out: Floats) -> None:
    for i in range(out.size):
        out[i] = confidence_at(rule, i + 1)


def confidence_table(rule: int, n_rounds: int) -> Floats:
    """Return c_t of the rounds 1..n, or of as many as a table may hold."""
    table = np.empty(min(n_rounds, LARGEST_TABLE))
    _fill_confidence(rule, table)
    return table


class Privacy(NamedTuple):
    """The numbers of a private index."""

    width: int  # what w is
    counter: int  # whose noise N is
    noisy: int  # whether it is added
    scale: float  # of a node, L/epsilon or h/epsilon; for the hybrid counter 1/epsilon
    levels: int  # L or h
    half: int  # (k - 1)/2 of the k-ary counter
    slots: int  # numbers that a counter keeps
    published: float  # K ln^2(T)/epsilon
    inside: float  # K T ln T


OPEN = Privacy(NO_WIDTH, BINARY, 0, 0.0, 0, 0, 0, 0.0, 0.0)  # of a policy without privacy


def make_privacy(
    n_arms: int, horizon: int | None, epsilon: float, width: str, counter: str, noisy: bool = True
) -> Privacy:
    """Return the numbers of a private index; only a hybrid counter with its own width needs no horizon."""
    levels, half = _MOST_LEVELS if horizon is None else horizon.bit_length(), 0
    slots = levels + 1
    if counter == "k-ary":
        k, levels = best_tree(horizon or 1)
        half = k // 2
        slots = levels * (half + 1)
    scale = (1.0 if counter == "hybrid" else levels) / epsilon
    log_horizon = 0.0 if horizon is None else float(np.log(horizon))
    published = n_arms * log_horizon**2 / epsilon
    inside = n_arms * (horizon or 0) * log_horizon
    what = _WIDTHS[width], _COUNTERS[counter], int(noisy)
    return Privacy(*what, scale, levels, half, slots, published, inside)


@njit
def width_at(privacy: Privacy, n: int, t: int) -> Any:
    """Return w of an arm with n pulls in round t, from 1."""
    if privacy.width == NO_WIDTH or n == 0:
        return 0.0
    log_t = log(np.float64(t))
    if privacy.width == PUBLISHED:
        if privacy.inside == 0.0:
            return 0.0
        return privacy.published * log(privacy.inside * (1.0 + t * log_t * log_t))
    level = _LN2 + 2.0 * log_t
    if privacy.counter == HYBRID:
        slope, offset = hybrid_line(n, level)
    else:
        slope, offset = kernels.tail_line(np.float64(kind_of(privacy, n)), level)
    return privacy.scale * (slope * level + offset)


@njit(forceinline=True)
def next_kind(privacy: Privacy, before: int, n: int, digit: int) -> Any:
    """Return the column of the widths for n pulls, `before` that for n - 1, of lowest digit `digit`."""
    if privacy.counter != KARY:
        return kind_of(privacy, n)
    rest = n - 1
    while digit == privacy.half:  # which turns into -half, of as many draws
        rest = kernels.kary_rest(rest, privacy.half)
        digit = kernels.kary_digit(rest, privacy.half)
    return before + 1 if digit >= 0 else before - 1


@njit
def kind_of(privacy: Privacy, n: int) -> Any:
    """Return the column of the widths for n pulls; all n of a column have noise of one distribution."""
    if privacy.width != COUNTER:
        return 0
    if privacy.counter == BINARY:
        return kernels.popcount(n)
    if privacy.counter == KARY:
        return kary_draws(n, privacy.half)
    k = floor_log2(n)
    return k * (k + 1) // 2 + kernels.popcount(n) - 1


@njit
def _fill_widths(privacy: Privacy, pulls: Ints, out: Floats) -> None:
    """Fill out float64[H, M] with 2 w of round i + 1 and an arm with pulls[j] pulls."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 2.0 * width_at(privacy, pulls[j], i + 1)


@njit
def _fill_levels(out: Floats) -> None:
    """Fill out float64[H] with ln(2/delta), delta = 1/t^2 of round t = i + 1."""
    for i in range(out.size):
        out[i] = _LN2 + 2.0 * log(np.float64(i + 1))


def width_table(privacy: Privacy, n_rounds: int) -> Floats:
    """Return 2 w for the rounds 1..n and every kind of noise, float64[H, M], as far as a table may reach."""
    if privacy.width == NO_WIDTH:
        return np.empty((0, 1))
    pulls = [1]  # a number for every column
    if privacy.width == COUNTER and privacy.counter == HYBRID:
        pulls = [(1 << k) + (1 << q) - 1 for k in range(privacy.levels) for q in range(k + 1)]
    elif privacy.width == COUNTER:  # any that has so many draws
        pulls = [0] * (1 + privacy.levels * max(privacy.half, 1))
    table = np.empty((min(n_rounds, LARGEST_TABLE // len(pulls)), len(pulls)))
    if pulls[0]:
        _fill_widths(privacy, np.array(pulls, np.int64), table)
    else:
        _fill_levels(level := np.empty(len(table)))
        fill_widths(level, 2.0 * privacy.scale, table)
    return table
