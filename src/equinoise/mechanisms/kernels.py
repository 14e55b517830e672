"""Kernels of the private counters: prefix sums in a tree of noised nodes, and the tail of their noise.

The binary counter (Chan, Shi and Song, 2011) has no loop here. Node n is the sum of the items after
``n & (n - 1)`` up to item n, so

    total(n) = total(n & (n - 1)) + node(n),

one addition and one fresh draw an item. Totals still needed are told apart by the lowest set bit of their
n: total(n) lives in slot 1 + (trailing zeros of n), and slot 0 is total(0) = 0. Over a horizon T an item
lies in at most L = floor(log2 T) + 1 nodes, so Laplace noise of scale L sensitivity / epsilon on every node
is epsilon-private, and the n-th sum carries popcount(n) draws.

The hybrid counter, for an unknown horizon, is the same recursion with another parent at powers of two:

    total(n) = total(n / 2) + node(n)  where n is a power of two,  else total(n & (n - 1)) + node(n).

At powers of two this is the logarithmic counter, whose draws accumulate: the sum at 2^k carries k + 1 of
them. An item lies in one such node, so at epsilon/2 their scale is 2 sensitivity / epsilon. Between 2^k and
2^(k+1) it is a new binary counter over at most 2^k - 1 items, so of k levels, and of scale
2 k sensitivity / epsilon at epsilon/2. Altogether, with k = floor(log2 n) and r = n - 2^k, the n-th sum
carries k + 1 draws of scale 2 and popcount(r) draws of scale 2 k, in units of sensitivity / epsilon.

The k-ary counter (Andersson, Pagh, Steiner and Torkamani, 2025), for a known horizon, has the least noise;
see :class:`equinoise.mechanisms.KaryCounter`. From one sum to the next a draw is added, or one that was taken
off before its turn is put back; where a digit turns from half to -half, its draws go, others are taken off,
and the next level's digit moves.

Whether a node's value is its noised sum, or its noise alone with the true sums kept elsewhere, the
recursion is the same.
"""

import numpy as np

from equinoise._elementary import log
from equinoise._intrinsics import bits_float, float_bits
from equinoise._jit import njit
from equinoise._random import laplace, next_word
from equinoise._typing import Any, Floats

_EXPONENT_SHIFT = np.int64(52)
_BIAS = np.int64(1023)
_STEPS = 2  # Newton's: the start is near, and the width, flat at its minimum, is then exact to 1e-15


@njit(forceinline=True)
def slot(n: Any) -> Any:
    """Return where total(n) is kept: 1 + trailing zeros of n (int64), and 0 for n = 0."""
    return max((float_bits(np.float64(n & -n)) >> _EXPONENT_SHIFT) - _BIAS + 1, 0)  # of a power of two, or 0


@njit(forceinline=True)
def floor_log2(n: Any) -> Any:
    """Return floor(log2 n) for n from 1 to 2^53."""
    return (float_bits(np.float64(n)) >> _EXPONENT_SHIFT) - _BIAS


@njit
def popcount(n: Any) -> Any:
    """Return the number of set bits of n >= 0: the draws in the n-th sum of the binary counter."""
    count = 0
    while n:
        n &= n - 1
        count += 1
    return count


@njit(forceinline=True)
def kary_rest(n: Any, half: Any) -> Any:
    """Return 0 <= n < 2^50 without its lowest digit in balanced base k = 2 half + 1, over k.

    Times 1/k in place of a division: half a unit is added, so that what is rounded off decides nothing.
    """
    return np.int64((n + half + 0.5) * (1.0 / (2.0 * half + 1.0)))


@njit(forceinline=True)
def kary_digit(n: Any, half: Any) -> Any:
    """Return that digit, from -half to half."""
    return n - kary_rest(n, half) * (2 * half + 1)


@njit
def kary_draws(n: Any, half: Any) -> Any:
    """Return the sum of |digits| of n in balanced base k: the draws in the n-th k-ary sum."""
    count = 0
    while n:
        count += abs(kary_digit(n, half))
        n = kary_rest(n, half)
    return count


@njit(forceinline=True)
def hybrid_parent(n: Any) -> Any:
    """Return the item before the first one of node n of the hybrid counter."""
    rest = n & (n - 1)
    return rest if rest else n >> 1


@njit(forceinline=True)
def prefix_total(totals: Floats, base: int, n: int, value: float) -> float:
    """Return total(n) of a binary counter and keep it: total(n & (n - 1)) + value.

    The counter's kept totals are the L + 1 entries from `base` on, of which the first stays 0. n goes from 1
    upwards by one a call; `value` is that of node n, its noised sum or its noise.
    """
    total = totals[base + slot(n & (n - 1))] + value
    totals[base + slot(n)] = total
    return total


@njit(forceinline=True)
def hybrid_total(totals: Floats, base: int, n: int, value: float) -> float:
    """Return total(n) of a hybrid counter and keep it; parameters as in :func:`prefix_total`.

    Of totals it takes floor(log2 n) + 2 entries.
    """
    total = totals[base + slot(hybrid_parent(n))] + value
    totals[base + slot(n)] = total
    return total


@njit
def kary_begins(n: int, half: int) -> bool:
    """Return whether the n-th sum is the first that takes draws off at a level: n is (k^j + 1)/2."""
    reach = half
    while reach < n - 1:
        reach += reach * 2 * half + half
    return reach == n - 1


@njit(forceinline=True)
def kary_total(kept: Floats, base: int, n: int, half: int, digit: int, noise: float, block: Any) -> float:
    """Return the noise in the n-th sum of a k-ary counter, in units of a node's scale; half is (k - 1)/2.

    The counter's part of kept begins at base: for each level the noise that it and those above bring, and the
    draws that were taken off before their turn, `half` of them. n goes from 1 upwards by one a call. `noise`
    is a standard draw, of the node that is added; where one is put back it is kept in that one's place, to be
    taken off in the next k. Only a level's first ones come from the xoshiro256++ stream that begins at
    `block`, where `digit`, the lowest of n - 1, is half, so that it turns.
    """
    if digit != half:
        own, back = np.uint64(base), np.uint64(base + half + 1 + min(digit, -1))  # of use for digits below 0
        old, spare = kept[own], kept[back]
        kept[back] = spare if digit >= 0 else noise
        kept[own] = old + (noise if digit >= 0 else spare)
        return kept[own]
    return _kary_turn(kept, base, n, half, noise, block)


@njit
def _kary_turn(kept: Floats, base: int, n: int, half: int, noise: float, block: Any) -> float:
    """Do so where the lowest digit turns from half to -half."""
    at, rest, part, digit = base, n - 1, half + 1, half
    s0, s1, s2, s3 = block
    while digit == half:
        own = kept[at + 1 : at + part]
        if rest == half:
            for i in range(half):  # words first: logarithms alone are vector code
                word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                own[i] = bits_float(word)
            for i in range(half):
                own[i] = laplace(np.uint64(float_bits(own[i])))
        kept[at] = 0.0
        for i in range(half):
            kept[at] += own[i]
        at += part
        rest = kary_rest(rest, half)
        digit = kary_digit(rest, half)
    back = at + part + min(digit, -1)  # of use for digits below 0
    old = kept[back]
    kept[back] = old if digit >= 0 else noise
    kept[at] += noise if digit >= 0 else old
    while at > base:
        at -= part
        kept[at] = kept[at + part] - kept[at]
    return kept[base]


@njit(forceinline=True)
def hybrid_scale(n: Any) -> float:
    """Return the scale of the draw in node n of the hybrid counter, in units of sensitivity / epsilon."""
    return 2.0 * floor_log2(n) if n & (n - 1) else 2.0


@njit(forceinline=True)
def tail_line(m: float, level: float) -> tuple[float, float]:
    """Return (slope, offset) of the best Chernoff line for the sum of m standard Laplace draws.

    Chernoff: P(|sum| > w) <= 2 e^(-s w) (1 - s^2)^(-m), so at probability 2 e^(-level) the sum stays within
    ``slope * level + offset``, slope = 1/s and offset = -m ln(1 - s^2)/s, for any s in (0, 1). So the line
    is a valid width at every level, and the smallest one at the level it was made for: with y = s^2/(1 - s^2)
    the best s solves 2 y - ln(1 + y) = level/m, which is convex, by Newton from above. m is at least 1, and
    level, ln(2/delta), positive.
    """
    c = level / m
    y = 0.5 * (c + log(1.0 + c))
    for _ in range(_STEPS):
        y -= (2.0 * y - log(1.0 + y) - c) * (1.0 + y) / (1.0 + 2.0 * y)
    slope = np.sqrt((1.0 + y) / y)
    return slope, slope * m * log(1.0 + y)


@njit
def tail_width(m: float, scale: float, delta: float) -> float:
    """Return w with P(|sum of m Laplace(scale) draws| > w) <= delta, the best of Chernoff's bounds.

    w = min over 0 < s < 1/b of (ln(2/delta) - m ln(1 - b^2 s^2))/s, b the scale; 0 for m = 0.
    """
    if m == 0:
        return 0.0
    level = log(2.0 / delta)
    slope, offset = tail_line(m, level)
    return scale * (slope * level + offset)


@njit
def fill_widths(level: Floats, scale: float, out: Floats) -> None:
    """Fill out float64[B, M + 1] with the widths of m = 0 to M Laplace(scale) draws, level float64[B]."""
    for i in range(level.size):
        at = level[i]
        out[i, 0] = 0.0
        for m in range(1, out.shape[1]):
            slope, offset = tail_line(np.float64(m), at)
            out[i, m] = scale * (slope * at + offset)


@njit
def hybrid_line(n: int, level: float) -> tuple[float, float]:
    """Return (slope, offset) of the best Chernoff line for the noise of the hybrid counter's n-th sum.

    As :func:`tail_line`, in units of sensitivity / epsilon, for p = k + 1 draws of scale 2 and
    q = popcount(n - 2^k) draws of scale 2 k, k = floor(log2 n):

        w = min over 0 < s < 1/(2 k) of (level - p ln(1 - 4 s^2) - q ln(1 - 4 k^2 s^2))/s.

    With u = (2 k s)^2, y = u/(1 - u) and h(y) = 2 y - ln(1 + y), the best s solves
    q h(y) + p h(x) = level, where x = y/(k^2 + (k^2 - 1) y). The left side grows from 0 at y = 0 and is past
    level at y = level/q: Newton inside this bracket, and its middle where Newton would leave it.
    """
    k = floor_log2(n)
    p, q = k + 1.0, np.float64(popcount(n) - 1)
    if q == 0.0 or k == 1:  # all draws have scale 2
        slope, offset = tail_line(p + q, level)
        return 2.0 * slope, 2.0 * offset
    square = np.float64(k * k)
    low, high = 0.0, level / q
    y = step = 0.5 * high
    while abs(step) > 1e-9 * y:  # the width is flat at its minimum: its error is the square of this
        below = square + (square - 1.0) * y
        x = y / below
        excess = q * (2.0 * y - log(1.0 + y)) + p * (2.0 * x - log(1.0 + x)) - level
        if excess > 0.0:
            high = y
        else:
            low = y
        growth = q * (1.0 + 2.0 * y) / (1.0 + y) + p * (1.0 + 2.0 * x) / (1.0 + x) * square / (below * below)
        step = excess / growth
        y -= step
        if not low < y < high:
            y = 0.5 * (low + high)
    x = y / (square + (square - 1.0) * y)
    slope = 2.0 * k * np.sqrt((1.0 + y) / y)
    return slope, slope * (q * log(1.0 + y) + p * log(1.0 + x))


@njit
def hybrid_width(n: int, unit: float, delta: float) -> float:
    """Return w with P(|noise in the n-th hybrid sum| > w) <= delta, n >= 1; unit is sensitivity / epsilon."""
    level = log(2.0 / delta)
    slope, offset = hybrid_line(n, level)
    return unit * (slope * level + offset)
