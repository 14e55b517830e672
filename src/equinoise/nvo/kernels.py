"""Compiled noise and evaluation: how many records of a profile are satisfied, and its divergence.

A *type* t = k V + v is an occupied bin k with a scale v; a profile int64[T] counts the records of every type.
A type that is *used* (has records) is satisfied iff everywhere ``low <= m[t, x] / mass[x] <= high``, where
the mass is the sum of counts times m. See :mod:`equinoise.nvo.search.dynamics` for the limits.
"""

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple

MARGIN = 1.0 + 1e-12  # a type must be satisfied by this factor, so that whoever rounds otherwise agrees
TINY = 1e-300
_BELOW = 1.0 - 2.0**-52
_PLAIN = 1e-6  # from these odds on M <= high S can be asked of rounded sums


class Game(NamedTuple):
    """A game's constants: T = R V types over K bins, R of them occupied.

    masses float64[T, K]: rows of the occupied bins; share float64[K]: the histogram q = counts / n; inverse
    float64[K]: 1 / (q n), or 0; first, stop: the occupied bins lie in first..stop-1; n_scales: V; n: records;
    high, low, odds: limits of the ratio, odds = (1 - high) / high.
    """

    masses: Floats
    share: Floats
    inverse: Floats
    first: int
    stop: int
    n_scales: int
    n: int
    high: float
    low: float
    odds: float


@njit
def add_all(masses: Floats, counts: Ints, work: Floats) -> None:
    """Add the masses of all types to work[0], four at a time; the same bits on every processor."""
    t, last = 0, counts.size - 3
    while t < last:
        if counts[t] | counts[t + 1] | counts[t + 2] | counts[t + 3]:
            a, b, c, d = float(counts[t]), float(counts[t + 1]), float(counts[t + 2]), float(counts[t + 3])
            for x in range(masses.shape[1]):
                pair = a * masses[t, x] + b * masses[t + 1, x]
                work[0, x] += pair + (c * masses[t + 2, x] + d * masses[t + 3, x])
        t += 4
    while t < counts.size:
        for x in range(masses.shape[1]):
            work[0, x] += counts[t] * masses[t, x]
        t += 1


@njit(forceinline=True)
def _add_apart(masses: Floats, t: int, count: int, work: Floats) -> None:
    """Add a used type to work: the mass, the largest m, and the mass without that one."""
    c = float(count)
    for x in range(masses.shape[1]):
        m = masses[t, x]
        work[0, x] += c * m
        top = work[1, x]
        work[2, x] += top + (c - 1.0) * m if m > top else c * m
        work[1, x] = max(top, m)


@njit
def _limits(game: Game, work: Floats) -> None:
    """Turn work into (mass, largest satisfied mass, smallest satisfied mass) at every x.

    A type is satisfied at x iff ``odds m <= mass - m``. Where the odds are tiny the difference must not
    cancel, and for the largest m it does not. Where that one is satisfied all are; where it is not, the
    others are asked in the plain way, and their mass is at least twice their own.
    """
    for x in range(work.shape[1]):
        mass, top, rest = work[0, x], work[1, x], work[2, x]
        plain = game.high * mass / MARGIN
        if game.odds < _PLAIN:
            alone = rest == 0.0 and top > 0.0  # so it is revealed, though odds times top may be 0 too
            holds = game.odds * top * MARGIN <= rest and not alone
            plain = top if holds else min(plain, top * _BELOW)
        work[1, x] = plain
        work[2, x] = game.low * mass * MARGIN


@njit(forceinline=True)
def _fits(masses: Floats, t: int, work: Floats) -> bool:
    """Return whether type t is satisfied everywhere, given the limits."""
    bad = 0
    for x in range(masses.shape[1]):
        bad += int(masses[t, x] > work[1, x]) | int(masses[t, x] < work[2, x])
    return bad == 0


@njit
def evaluate(game: Game, counts: Ints, work: Floats) -> Any:
    """Return satisfied records and KL(share || mass / n) in nats, from scratch; work float64[3, K]."""
    work[:] = 0.0
    apart = game.odds < _PLAIN
    if not apart:
        add_all(game.masses, counts, work)
    for t in range(counts.size):
        if apart and counts[t] > 0:
            _add_apart(game.masses, t, counts[t], work)
    _limits(game, work)
    satisfied = 0
    for t in range(counts.size):
        # a crowd of 1/high records of one type is satisfied whatever the others do
        crowd = counts[t] * game.high >= MARGIN and game.low <= 0.0
        if counts[t] > 0 and (crowd or _fits(game.masses, t, work)):
            satisfied += counts[t]
    for x in range(work.shape[1]):
        work[1, x] = work[0, x]
    return satisfied, divergence(game, work[1], work)


@njit
def divergence(game: Game, mass: Floats, work: Floats) -> float:
    """Return KL(share || mass / n) = sum of q ln(q n / mass), from mass float64[K]; work float64[3, K]."""
    for x in range(mass.size):  # of all bins: an index that may be negative would be gathered, not loaded
        work[0, x] = game.share[x] * log(max(mass[x] * game.inverse[x], TINY))
    a = b = c = d = 0.0  # added up in an order that no processor changes
    x = game.first
    while x + 4 <= game.stop:
        a += work[0, x]
        b += work[0, x + 1]
        c += work[0, x + 2]
        d += work[0, x + 3]
        x += 4
    while x < game.stop:
        a += work[0, x]
        x += 1
    return -((a + b) + (c + d))


@njit
def kullback_leibler(p: Floats, q: Floats) -> float:
    """Return the sum of p ln(p / q) over float64[K], in order: the same bits on every processor."""
    total = 0.0
    for x in range(p.size):
        if p[x] > 0.0:
            ratio = p[x] / q[x]
            if not ratio < np.inf:
                return np.inf
            total += p[x] * log(ratio)
    return total


@njit
def noise_rows(decay: Floats, total: Floats, bins: Ints, out: Floats) -> None:
    """Fill out float64[B, V, K] with the masses of the given bins int64[B]: decay at |k - x| over total."""
    n_rows, n_scales, n_bins = out.shape
    for i in range(n_rows):
        k = bins[i]
        for v in range(n_scales):
            for x in range(n_bins):
                out[i, v, x] = decay[v, abs(k - x)] / total[k, v]
