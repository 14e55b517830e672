"""Compiled draws of annealing: which records of a profile are to change their scale."""

import numpy as np

from equinoise._jit import njit
from equinoise._random import SEARCH, exponential, integer, next_word, philox
from equinoise._typing import Any, Ints, Words

_TWO, _THREE, _SEVEN = np.uint64(2), np.uint64(3), np.uint64(7)
_NEAR, _EXCHANGED = 4, 4  # of eight transfers go to the next scale, of eight pairs exchange theirs


@njit
def first_words(key: Words, replicate: int, words: Words) -> None:
    """Fill words uint64[4], the state of a xoshiro256++ stream, from its address."""
    zero = np.uint64(0)
    words[0], words[1], words[2], words[3] = philox(key[0], key[1], zero, zero, np.uint64(replicate), SEARCH)


@njit(forceinline=True)
def _amount(word: Any, other: Any, count: int) -> Any:
    """Draw how many of count records move: all (1/2), one (1/4), any number (1/4)."""
    kind = word & _THREE
    if kind >= 2:
        return count
    return 1 if kind == 1 else 1 + integer(other, count)


@njit(forceinline=True)
def _target(word: Any, f: int, n_scales: int, first: int) -> Any:
    """Draw another type of the same bin, of the scales from the first one on, of which f is one."""
    v, kind = f % n_scales, (word >> _TWO) & _SEVEN
    if kind < _NEAR:
        w = v + 1 if kind & _TWO else v - 1
        if first <= w < n_scales:
            return f - v + w
    w = first + integer(word, n_scales - 1 - first)
    return f - v + w + int(w >= v)


@njit
def draw(n_scales: int, first: int, counts: Ints, used: Ints, words: Words, pair: float) -> Any:
    """Draw one transfer, or with probability `pair` two: (a, f, t, b, g, u), and an exponential variable.

    Only scales from the first one on are used and drawn. Half of the pairs let as many records of two bins
    exchange their scales, so that what they give to others is about the same.
    """
    s0, s1, s2, s3 = words[0], words[1], words[2], words[3]
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w2, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w3, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    f = used[integer(w0, used.size)]
    t = _target(w1, f, n_scales, first)
    a = _amount(w1, w2, counts[f])
    patience = exponential(w3)
    b, g, u = 0, t, t
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    if integer(w0, 1 << 20) < pair * (1 << 20):
        w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        w2, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        w3, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        other = used[integer(w1, used.size)]
        into = _target(w2, other, n_scales, first)
        v, w = f % n_scales, other % n_scales
        if ((w3 >> _TWO) & _SEVEN) < _EXCHANGED and v != w and f - v != other - w:
            t, g, u = f - v + w, other, other - w + v
            a = b = min(a, counts[g])
        elif other != f and other != t and into != f:
            g, u = other, into
            b = _amount(w2, w3, counts[g])
    words[0], words[1], words[2], words[3] = s0, s1, s2, s3
    return a, f, t, b, g, u, patience
