"""Compiled annealing: transfers drawn at random, accepted by Metropolis; at the end, by gain alone."""

import numpy as np

from equinoise._jit import njit
from equinoise._random import SEARCH, exponential, integer, next_word, philox
from equinoise._typing import Any, Floats, Ints, Words
from equinoise.nvo.kernels.evaluation import Game, divergence
from equinoise.nvo.search.kernels.transfers import State, accept, allowed, excess

_THREE = np.uint64(3)


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
def _target(word: Any, f: int, n_scales: int) -> Any:
    """Draw another type of the same bin."""
    v = f % n_scales
    w = integer(word, n_scales - 1)
    return f - v + w + int(w >= v)


@njit
def _draw(game: Game, state: State, words: Words, pair: float) -> Any:
    """Draw one transfer, or with probability `pair` two: (a, f, t, b, g, u), and an exponential variable."""
    s0, s1, s2, s3 = words[0], words[1], words[2], words[3]
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w2, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    w3, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    n_used = state.numbers[0]
    f = state.used[integer(w0, n_used)]
    t = _target(w1, f, game.n_scales)
    a = _amount(w1, w2, state.counts[f])
    patience = exponential(w3)
    b, g, u = 0, t, t
    w0, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    if integer(w0, 1 << 20) < pair * (1 << 20):
        w1, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        w2, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        w3, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        other = state.used[integer(w1, n_used)]
        into = _target(w2, other, game.n_scales)
        if other != f and other != t and into != f:
            g, u = other, into
            b = _amount(w2, w3, state.counts[g])
    words[0], words[1], words[2], words[3] = s0, s1, s2, s3
    return a, f, t, b, g, u, patience


@njit(forceinline=True)
def copy(values: Ints, out: Ints) -> None:
    """Copy int64[T]."""
    for t in range(values.size):
        out[t] = values[t]


@njit
def anneal(
    game: Game, state: State, best: Ints, words: Words, numbers: Floats, pair: float, n_steps: int
) -> None:
    """Run Metropolis steps among profiles in which every used type is satisfied.

    numbers float64[4]: divergence of the state, of the best profile so far (best int64[T]), temperature, and
    the factor of the temperature a step. A transfer that changes the divergence by d is accepted iff
    d <= temperature * (a standard exponential variable).
    """
    now, least, temperature, factor = numbers[0], numbers[1], numbers[2], numbers[3]
    kept = now > least
    for _ in range(n_steps):
        temperature *= factor
        a, f, t, b, g, u, patience = _draw(game, state, words, pair)
        if not allowed(game, state, a, f, t, b, g, u):
            continue
        then = divergence(game, state.trial, state.work)
        if then > now + temperature * patience:
            continue
        if then > now and not kept:
            copy(state.counts, best)
            kept = True
        accept(game, state, a, f, t, b, g, u)
        now = then
        if now < least:
            least = now
            kept = False
    if not kept:
        copy(state.counts, best)
    numbers[0], numbers[1], numbers[2] = now, least, temperature


@njit
def polish(game: Game, state: State, now: float, gain: float) -> Any:
    """Go once over all transfers and carry out those that lower the divergence by more than gain.

    Of every used type and every other scale of its bin: all records, else one, and then two, four and so on
    while that pays. Return (divergence, number of transfers): zero transfers mean that no record, and no
    whole type, can gain.
    """
    n_moves = 0
    for f in range(state.counts.size):
        first = f - f % game.n_scales
        for t in range(first, first + game.n_scales):
            a = state.counts[f]
            while t != f and 0 < a <= state.counts[f]:
                paid = allowed(game, state, a, f, t, 0, t, t)
                then = divergence(game, state.trial, state.work) if paid else now
                paid = paid and then < now - gain
                if paid:
                    accept(game, state, a, f, t, 0, t, t)
                    now = then
                    n_moves += 1
                    a *= 2
                elif a == 1:
                    break
                else:
                    a = 1 if a == state.counts[f] else 0
    return now, n_moves


@njit
def repair(game: Game, state: State, words: Words, numbers: Floats, pair: float, n_steps: int) -> bool:
    """Run Metropolis steps on the excess until every used type is satisfied; return whether that was reached.

    numbers float64[4]: excess of the state, unused, temperature, and its factor a step.
    """
    now, temperature, factor = numbers[0], numbers[2], numbers[3]
    found = False
    for _ in range(n_steps):
        temperature *= factor
        a, f, t, b, g, u, patience = _draw(game, state, words, pair)
        then = excess(game, state, a, f, t, b, g, u)
        if then <= now + temperature * patience:
            found = then <= 0.0 and allowed(game, state, a, f, t, b, g, u)
            accept(game, state, a, f, t, b, g, u)
            now = then
            if found:
                break
    numbers[0], numbers[2] = now, temperature
    return found
