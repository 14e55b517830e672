"""Compiled enumeration: all profiles of a tiny game, and the genetic search over records' options.

Records stand in order of their bins: those of occupied bin r are starts[r]..starts[r+1]-1. A child is a pure
function of its parents and its address, so a population is never kept: payoffs are, and the children that
become parents are made again.
"""

import numpy as np
from numpy.typing import NDArray

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._random import EVOLUTION, integer, next_word, philox, uniform
from equinoise._typing import Any, Floats, Ints, Words
from equinoise.nvo.kernels import Game, evaluate

Options = NDArray[np.int16]


@njit
def _next_profile(counts: Ints, n_scales: int) -> bool:
    """Turn counts int64[T] into the next profile; False, and the first profile again, after the last one.

    Of each bin the compositions of its records over the scales, from all at the first to all at the last
    scale (Nijenhuis and Wilf's order); bins count like digits.
    """
    for first in range(0, counts.size, n_scales):
        v = first
        while v < first + n_scales - 1 and counts[v] == 0:
            v += 1
        records = counts[v]
        counts[v] = 0
        if v < first + n_scales - 1:
            counts[first] = records - 1
            counts[v + 1] += 1
            return True
        counts[first] = records
    return False


@njit
def exhaust(game: Game, counts: Ints, best: Ints, numbers: Floats, work: Floats, n_profiles: int) -> bool:
    """Look at the next n_profiles profiles, from counts int64[T] on; return whether there are more.

    Kept in best int64[T] is the profile that satisfies most records, and of these the one with the least
    divergence; numbers float64[2] holds both, (-1, any) before the first. work float64[3, K].
    """
    for _ in range(n_profiles):
        satisfied, kl = evaluate(game, counts, work)
        if satisfied > numbers[0] or (satisfied == numbers[0] and kl < numbers[1]):
            numbers[0], numbers[1] = satisfied, kl
            for t in range(counts.size):
                best[t] = counts[t]
        if not _next_profile(counts, game.n_scales):
            return False
    return True


@njit
def random_options(key: Words, child: int, n_scales: int, options: Options) -> None:
    """Fill options int16[n] of a child of the first generation, which has no parents."""
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(0), np.uint64(child), np.uint64(0), EVOLUTION)
    for i in range(options.size):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        options[i] = integer(word, n_scales)


@njit(forceinline=True)
def _cross(key: Words, child: int, generation: int, n_parents: int, n: int) -> Any:
    """Draw two different parents and two cuts: (one, other, first, last), and the stream that goes on.

    The records first..last-1 take after the other parent, the rest after the one.
    """
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(generation), np.uint64(child), np.uint64(0), EVOLUTION)
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w2, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w3, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    one, other = integer(w0, n_parents), integer(w1, n_parents - 1)
    other += int(other >= one)
    cut, end = integer(w2, n + 1), integer(w3, n + 1)
    return one, other, min(cut, end), max(cut, end), (s0, s1, s2, s3)


@njit(forceinline=True)
def _mutation(reached: float, stay: float, stream: Any) -> Any:
    """Draw the next record from `reached` on who mutates: (record, a word for the new option, stream).

    Each mutates with a probability of 1 - e^stay; how many in a row do not is geometric, and drawn at once.
    """
    s0, s1, s2, s3 = stream
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    return reached + np.floor(log(uniform(w0)) / stay), w1, (s0, s1, s2, s3)


@njit(forceinline=True)
def _other_option(v: int, word: Any, n_scales: int) -> Any:
    """Return one of the options that are not v."""
    w = v + 1 + integer(word, n_scales - 1)
    return w - n_scales if w >= n_scales else w


@njit
def cross_options(
    key: Words, child: int, generation: int, parents: Options, n_scales: int, stay: float, options: Options
) -> None:
    """Fill options int16[n] of a child of parents int16[P, n]; stay = ln(1 - mutation) < 0, or 0 for none."""
    n_parents, n = parents.shape
    one, other, first, last, stream = _cross(key, child, generation, n_parents, n)
    for i in range(n):
        options[i] = parents[one, i]
    for i in range(first, last):
        options[i] = parents[other, i]
    if n_scales < 2 or stay >= 0.0:
        return
    at, word, stream = _mutation(0.0, stay, stream)
    while at < n:
        i = int(at)
        options[i] = _other_option(options[i], word, n_scales)
        at, word, stream = _mutation(at + 1.0, stay, stream)


@njit
def cross_counts(
    key: Words, child: int, generation: int, parents: Options, n_scales: int, stay: float,
    starts: Ints, parent_counts: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Fill counts int64[T] of the child that :func:`cross_options` makes, without making it.

    parent_counts int64[P, T] are the parents' own: a bin that lies whole between the cuts is copied.
    """
    n_parents, n = parents.shape
    one, other, first, last, stream = _cross(key, child, generation, n_parents, n)
    for t in range(counts.size):
        counts[t] = parent_counts[one, t]
    for r in range(starts.size - 1):
        begin, end = max(starts[r], first), min(starts[r + 1], last)
        if begin == starts[r] and end == starts[r + 1]:
            for t in range(r * n_scales, (r + 1) * n_scales):
                counts[t] = parent_counts[other, t]
        else:
            for i in range(begin, end):
                counts[r * n_scales + parents[one, i]] -= 1
                counts[r * n_scales + parents[other, i]] += 1
    if n_scales < 2 or stay >= 0.0:
        return
    r = 0
    at, word, stream = _mutation(0.0, stay, stream)
    while at < n:
        i = int(at)
        while starts[r + 1] <= i:
            r += 1
        v = parents[other, i] if first <= i < last else parents[one, i]
        counts[r * n_scales + v] -= 1
        counts[r * n_scales + _other_option(v, word, n_scales)] += 1
        at, word, stream = _mutation(at + 1.0, stay, stream)


@njit
def count_options(starts: Ints, options: Options, n_scales: int, counts: Ints) -> None:
    """Fill counts int64[T] with the records of every type."""
    counts[:] = 0
    for r in range(starts.size - 1):
        for i in range(starts[r], starts[r + 1]):
            counts[r * n_scales + options[i]] += 1


@njit
def breed(
    game: Game, starts: Ints, key: Words, generation: int, parents: Options, parent_counts: Ints, stay: float,
    first: int, payoffs: Floats, options: Options, counts: Ints, work: Floats,
) -> None:  # fmt: skip
    """Fill payoffs float64[N] from `first` on with those of this generation's children.

    The payoff is satisfied + 1 - KL/ln K. options int16[n], counts int64[T], work float64[3, K]: scratch.
    """
    for child in range(first, payoffs.size):
        if generation == 0:
            random_options(key, child, game.n_scales, options)
            count_options(starts, options, game.n_scales, counts)
        else:
            cross_counts(key, child, generation, parents, game.n_scales, stay, starts, parent_counts, counts)
        satisfied, kl = evaluate(game, counts, work)
        payoffs[child] = satisfied + 1.0 - kl / log(float(work.shape[1]))
