"""Weights of actions: a draw in proportion to them, and an update of one, in O(log n) of n actions.

A policy is held as one unnormalised weight an action, pi(a | s) = w(a) / sum of w over s, so an update
touches one weight of an infoset and normalises nothing. Up to 16 actions are looked at side by side. Wider
infosets have sums of 16 weights, of 16 such sums, and so on: a flat tree of fan-out 16, top level first.

Every function here compiles into the kernels that call it. Arguments: `first` is the infoset's first action,
`width` their number, `s` the infoset's number.
"""

import math

import numpy as np

from equinoise._intrinsics import prefetch
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple

_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one
_BLOCK = 16  # actions that a scan looks at; a sum tree's fan-out
_HIGH = 2.0**900  # a weight above asks for a shift of exponents,
_LOW = 2.0**-900  # and one below;
_LEVEL = 700  # it brings the largest weight of the infoset to about 2^700,
_FLOOR = 2.0**-1020  # and no weight falls below this, 1e-517 of the largest


class Weights(NamedTuple):
    """A policy, unnormalised. The three numbers at the ends are padding: a block may be read too far."""

    weight: Floats  # [A+3]
    sum_ptr: Ints  # [I]
    sums: Floats  # [any+3]


@njit(forceinline=True)
def _top_shift(width: int) -> int:
    """Return 4 times the number of levels above the weights of a sum tree over `width` actions."""
    shift = 4
    while width > _BLOCK << shift:
        shift += 4
    return shift


@njit(forceinline=True)
def _level_size(width: int, shift: int) -> int:
    """Return the number of entries on a level: each stands for 2^shift actions."""
    return (width + (1 << shift) - 1) >> shift


@njit(forceinline=True)
def _sum_few(values: Floats, start: int, width: int) -> float:
    """Return the sum of the first 4 values, of fewer where width is less, 0 where it is not positive."""
    k = _at(start)
    if width >= 4:
        return (values[k] + values[k + _at(1)]) + (values[k + _at(2)] + values[k + _at(3)])
    total = values[k] if width > 0 else 0.0
    if width > 1:
        total += values[k + _at(1)]
    if width > 2:
        total += values[k + _at(2)]
    return total


@njit(forceinline=True)
def _quarters(values: Floats, start: int, width: int) -> Any:
    """Return the sums of a block of at most 16 values, four by four."""
    return (
        _sum_few(values, start, width),
        _sum_few(values, start + 4, width - 4),
        _sum_few(values, start + 8, width - 8),
        _sum_few(values, start + 12, width - 12),
    )


@njit(forceinline=True)
def _block_sum(values: Floats, start: int, width: int) -> float:
    a, b, c, d = _quarters(values, start, width)
    return (a + b) + (c + d)


@njit(forceinline=True)
def _among(values: Floats, start: int, width: int, u: float, target: Any) -> Any:
    """Find the first of at most 16 values, k, whose running sum passes target; the share u of all if None.

    Return (k, how far target is into value k, value k, the sum of the others). First the quarter, then the
    value in it, by comparisons that all happen: leaving early would be a branch on a coin. Up to 3 values
    behind the block are read, and never matter.
    """
    one, two, three, four = _quarters(values, start, width)
    total = (one + two) + (three + four)
    left = u * total if target is None else target
    quarter, left = _place(one, two, three, left, (width - 1) >> 2)
    k = start + 4 * quarter
    first = _at(k)
    a, b, c = values[first], values[first + _at(1)], values[first + _at(2)]
    place, left = _place(a, b, c, left, width - 1 - 4 * quarter)
    k += place
    return k, left, values[_at(k)], _others(values, start, width, k, total)


@njit(forceinline=True)
def _place(a: float, b: float, c: float, target: float, last: int) -> Any:
    """Return (number of running sums up to target, at most last; target less the largest of these)."""
    one, two, three = a, a + b, (a + b) + c
    below = one if target >= one else 0.0
    below = two if target >= two else below
    below = three if target >= three else below
    k = int(target >= one) + int(target >= two) + int(target >= three)
    return (k if k < last else last), target - below


@njit(forceinline=True)
def _others(values: Floats, start: int, width: int, k: int, total: float) -> float:
    """Return the sum of a block without entry k; added up anew where total - value would cancel."""
    value = values[_at(k)]
    if value <= 0.5 * total:
        return total - value
    rest = 0.0
    for j in range(start, start + width):
        if j != k:
            rest += values[_at(j)]
    return rest


@njit
def sum_sizes(action_ptr: Ints, sum_ptr: Ints) -> int:
    """Fill sum_ptr int64[I] with where each wide infoset's sums start; return how many there are in all."""
    size = 0
    for s in range(action_ptr.size - 1):
        sum_ptr[s] = size
        width = action_ptr[s + 1] - action_ptr[s]
        if width > _BLOCK:
            for shift in range(4, _top_shift(width) + 1, 4):
                size += _level_size(width, shift)
    return size


@njit
def build_sums(action_ptr: Ints, weights: Weights) -> None:
    """Compute the sums of every wide infoset."""
    for s in range(action_ptr.size - 1):
        width = action_ptr[s + 1] - action_ptr[s]
        if width > _BLOCK:
            _sum_up(weights, action_ptr[s], width, s, 0, width)


@njit(forceinline=True)
def _pick_narrow(weight: Floats, first: int, width: int, u: float) -> Any:
    """Draw from an infoset of at most 4 actions: return (action, its weight, the others' sum)."""
    one = weight[_at(first)]
    two = weight[_at(first + 1)] if width > 1 else 0.0
    three = weight[_at(first + 2)] if width > 2 else 0.0
    total = one + two + three + (weight[_at(first + 3)] if width > 3 else 0.0)
    k, _ = _place(one, two, three, u * total, width - 1)
    return first + k, weight[_at(first + k)], _others(weight, first, width, first + k, total)


@njit(forceinline=True)
def _pick_wide(weights: Weights, ahead: Any, first: int, width: int, s: int, u: float) -> Any:
    """Draw from a wide infoset, from the top sums down: return (action, its weight, the others' sum)."""
    shift = _top_shift(width)
    base = weights.sum_ptr[_at(s)]
    for k in range(8, 72, 8):
        prefetch(weights.sums, base + k)
    size = _level_size(width, shift)
    target = u * _block_sum(weights.sums, base, size)
    low = 0
    rest = 0.0
    while shift > 0:
        k, target, _, others = _among(weights.sums, base + low, min(size - low, _BLOCK), u, target)
        rest += others
        low = (k - base) * _BLOCK
        base += size
        shift -= 4
        size = _level_size(width, shift)
    prefetch(weights.weight, first + low)
    prefetch(weights.weight, first + low + 8)
    for k in range(0, _BLOCK, 4):
        prefetch(ahead, first + low + k)
    a, _, w, others = _among(weights.weight, first + low, min(width - low, _BLOCK), u, target)
    return a, w, rest + others


@njit
def _sum_up(weights: Weights, first: int, width: int, s: int, begin: int, end: int) -> None:
    """Recompute the sums above the weights begin..end-1 of infoset s, from below: they never drift."""
    top = _top_shift(width)
    base = weights.sum_ptr[s]
    for above in range(top, 4, -4):
        base += _level_size(width, above)
    for block in range(begin >> 4, ((end - 1) >> 4) + 1):
        low = block * _BLOCK
        weights.sums[_at(base + block)] = _block_sum(weights.weight, first + low, min(width - low, _BLOCK))
    for shift in range(8, top + 1, 4):
        below = base
        size = _level_size(width, shift - 4)
        base -= _level_size(width, shift)
        for block in range(begin >> shift, ((end - 1) >> shift) + 1):
            low = block * _BLOCK
            weights.sums[_at(base + block)] = _block_sum(weights.sums, below + low, min(size - low, _BLOCK))


@njit
def _multiply_far(weights: Weights, first: int, width: int, s: int, a: int, by: float) -> None:
    """Multiply one weight where the result leaves [2^-900, 2^900], and shift the infoset's exponents.

    All weights take the power of two that brings the largest to about 2^700. Ratios stay exact down to
    2^-1720; a weight that would fall below is kept at 2^-1020, so that it can grow again.
    """
    part, exponent = math.frexp(weights.weight[a])
    factor, more = math.frexp(by)
    exponent += more
    top = exponent
    for k in range(first, first + width):
        if k != a:
            top = max(top, math.frexp(weights.weight[k])[1])
    shift = _LEVEL - top
    for k in range(first, first + width):
        if k != a:
            weights.weight[k] = max(math.ldexp(weights.weight[k], shift), _FLOOR)
    weights.weight[a] = max(math.ldexp(part * factor, exponent + shift), _FLOOR)
    if width > _BLOCK:
        _sum_up(weights, first, width, s, 0, width)


@njit(forceinline=True)
def pick(weights: Weights, ahead: Any, first: int, width: int, s: int, u: float) -> Any:
    """Draw an action of infoset s with a uniform u in (0, 1): return (action, its weight, the others' sum).

    Around an action of a wide infoset `ahead`, 16 bytes an action, is prefetched.
    """
    weight = weights.weight
    if width == 2:
        left, right = weight[_at(first)], weight[_at(first + 1)]
        second = int(u * (left + right) >= left)
        return first + second, weight[_at(first + second)], weight[_at(first + 1 - second)]
    if width <= 4:
        return _pick_narrow(weight, first, width, u)
    if width <= _BLOCK:
        a, _, w, rest = _among(weight, first, width, u, None)
        return a, w, rest
    return _pick_wide(weights, ahead, first, width, s, u)


@njit
def look(weights: Weights, first: int, width: int, s: int, a: int) -> Any:
    """Return (weight of action a of infoset s, sum of the weights of all others)."""
    rest = _rest(weights.weight, first, width, a - first)
    if width > _BLOCK:
        shift, base, size, k = _top_shift(width), weights.sum_ptr[s], 0, a - first
        while shift > 0:
            size = _level_size(width, shift)
            rest += _rest(weights.sums, base, size, k >> shift)
            base += size
            shift -= 4
    return weights.weight[a], rest


@njit(forceinline=True)
def _rest(values: Floats, start: int, size: int, k: int) -> float:
    """Return the sum of the values in the block of entry k of a level, without that entry."""
    low = (k >> 4) * _BLOCK
    n = min(size - low, _BLOCK)
    return _others(values, start + low, n, start + k, _block_sum(values, start + low, n))


@njit(forceinline=True)
def multiply(weights: Weights, first: int, width: int, s: int, a: int, by: float) -> None:
    """Multiply the weight of action a of infoset s, keep it in range, and the sums above it true."""
    new = weights.weight[_at(a)] * by
    if not _LOW <= new <= _HIGH:
        _multiply_far(weights, first, width, s, a, by)
        return
    weights.weight[_at(a)] = new
    if width > _BLOCK:
        _sum_up(weights, first, width, s, a - first, a - first + 1)


@njit
def policy(action_ptr: Ints, weight: Floats, out: Floats) -> None:
    """Fill out float64[A] with the behaviour policy w(a) / sum of w over its infoset."""
    for s in range(action_ptr.size - 1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total += weight[a]
        for a in range(action_ptr[s], action_ptr[s + 1]):
            out[a] = weight[a] / total
