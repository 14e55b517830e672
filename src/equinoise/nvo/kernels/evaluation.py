"""Kernels of evaluation: how many players of a profile are satisfied, and how far it is from the histogram.

A *type* t = k V + v is an occupied bin k with a scale v; a profile int64[T] counts the players of every type.
A type that is *used* (has players) is fine iff everywhere ``low <= kernel[t, x] / mass[x] <= high``, where
the mass is the sum of counts times kernel. See :mod:`equinoise.nvo.ratios` for the limits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise._elementary import log
from equinoise._jit import njit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MARGIN = 1.0 + 1e-12  # a type must be fine by this factor, so that whoever rounds otherwise agrees
TINY = 1e-300
_BELOW = 1.0 - 2.0**-52
_PLAIN = 1e-6  # from these odds on M <= high S can be asked of rounded sums


class Game(NamedTuple):
    """A game's constants: T = R V types over K bins, R of them occupied.

    kernel float64[T, K]: rows of the occupied bins; share float64[K]: the histogram q = counts / n; inverse
    float64[K]: 1 / (q n), or 0; first, stop: the occupied bins lie in first..stop-1; n_scales: V; n: players;
    high, low, odds: limits of the ratio, odds = (1 - high) / high.
    """

    kernel: Floats
    share: Floats
    inverse: Floats
    first: int
    stop: int
    n_scales: int
    n: int
    high: float
    low: float
    odds: float


@njit(forceinline=True)
def _add_masses(kernel: Floats, counts: Ints, t: int, work: Floats) -> None:
    """Add the masses of the types t..t+3 to work[0], in one pass."""
    a, b, c, d = float(counts[t]), float(counts[t + 1]), float(counts[t + 2]), float(counts[t + 3])
    for x in range(kernel.shape[1]):
        pair = a * kernel[t, x] + b * kernel[t + 1, x]
        work[0, x] += pair + (c * kernel[t + 2, x] + d * kernel[t + 3, x])


@njit
def _add_all(kernel: Floats, counts: Ints, work: Floats) -> None:
    """Add the masses of all types to work[0], four at a time."""
    last = counts.size - 3
    t = 0
    while t < last:
        if counts[t] | counts[t + 1] | counts[t + 2] | counts[t + 3]:
            _add_masses(kernel, counts, t, work)
        t += 4
    while t < counts.size:
        for x in range(kernel.shape[1]):
            work[0, x] += counts[t] * kernel[t, x]
        t += 1


@njit(forceinline=True)
def _add_apart(kernel: Floats, t: int, count: int, work: Floats) -> None:
    """Add a used type to work: the mass, the largest kernel, and the mass without that one."""
    c = float(count)
    for x in range(kernel.shape[1]):
        m = kernel[t, x]
        work[0, x] += c * m
        top = work[1, x]
        work[2, x] += top + (c - 1.0) * m if m > top else c * m
        work[1, x] = max(top, m)


@njit
def _limits(game: Game, work: Floats) -> None:
    """Turn work into (mass, largest fine kernel, smallest fine kernel) at every x.

    A type is fine at x iff ``odds kernel <= mass - kernel``. Where the odds are tiny the difference must not
    cancel, and for the largest kernel it does not. Where that one is fine all are; where it is not, the
    others are asked in the plain way, and their mass is at least twice their own.
    """
    for x in range(work.shape[1]):
        mass, top, rest = work[0, x], work[1, x], work[2, x]
        plain = game.high * mass / MARGIN
        if game.odds < _PLAIN:
            alone = rest == 0.0 and top > 0.0  # so it is told for sure, though odds times top may be 0 too
            fine = game.odds * top * MARGIN <= rest and not alone
            plain = top if fine else min(plain, top * _BELOW)
        work[1, x] = plain
        work[2, x] = game.low * mass * MARGIN


@njit(forceinline=True)
def _fits(kernel: Floats, t: int, work: Floats) -> bool:
    """Return whether type t is fine everywhere, given the limits."""
    bad = 0
    for x in range(kernel.shape[1]):
        bad += int(kernel[t, x] > work[1, x]) | int(kernel[t, x] < work[2, x])
    return bad == 0


@njit
def evaluate(game: Game, counts: Ints, work: Floats) -> Any:
    """Evaluate a profile from scratch.

    Parameters
    ----------
    game : Game
    counts : int64[T]
    work : float64[3, K]
        Scratch.

    Returns
    -------
    (int, float)
        Satisfied players, and KL(share || mass / n) in nats.
    """
    for x in range(work.shape[1]):
        work[0, x] = work[1, x] = work[2, x] = 0.0
    apart = game.odds < _PLAIN
    if not apart:
        _add_all(game.kernel, counts, work)
    for t in range(counts.size):
        if apart and counts[t] > 0:
            _add_apart(game.kernel, t, counts[t], work)
    _limits(game, work)
    satisfied = 0
    for t in range(counts.size):
        # a crowd of 1/high players of one type is fine whatever the others do
        crowd = counts[t] * game.high >= MARGIN and game.low <= 0.0
        if counts[t] > 0 and (crowd or _fits(game.kernel, t, work)):
            satisfied += counts[t]
    for x in range(work.shape[1]):
        work[1, x] = work[0, x]
    return satisfied, divergence(game, work[1], work)


@njit
def divergence(game: Game, mass: Floats, work: Floats) -> float:
    """Return KL(share || mass / n) = sum of q ln(q n / mass), from mass float64[K]; work float64[3, K]."""
    for x in range(game.first, game.stop):
        work[0, x] = game.share[x] * log(max(mass[x] * game.inverse[x], TINY))
    return -_row_sum(work, game.first, game.stop)


# A sum in any order, else it is not vectorised. It calls no other kernel: that would be compiled so as well.
@njit(fastmath={"reassoc"})
def _row_sum(work: Floats, first: int, stop: int) -> float:
    """Return the sum of work[0, first:stop]."""
    total = 0.0
    for x in range(first, stop):
        total += work[0, x]
    return total
