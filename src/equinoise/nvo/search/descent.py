"""Search by whole groups under any promise: from a profile that keeps it, never leaving it.

For (epsilon, delta), see :mod:`equinoise.nvo.gaussian`. There, a record is satisfied by a sum over the bins,
not by limits at each of them. What makes the compiled searches quick (the two largest masses of
a bin, crowds that are always satisfied, limits that are tested where they broke last) says nothing about such
a sum, so this search looks at all records after every move. Plain NumPy, for a hundred bins or so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from equinoise._random import stream_key

__all__ = ["anneal", "descend"]

_GAIN = 1e-12  # of KL, in nats: less is rounding
_ROUNDS = 200
_HOT, _COLD = 0.3, 1e-5  # temperatures at which annealing starts and ends, in nats of KL

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Judge = Callable[[Ints, Floats], bool]


def anneal(
    masses: Floats, start: Ints, target: Floats, fine: Judge, *, seed: int | None = 0, steps: int = 20_000
) -> tuple[Ints, int]:
    """Move random groups, at first also where KL grows, and descend from the best profile on the way.

    Parameters
    ----------
    masses, start, target, fine
        As for :func:`descend`.
    seed : int or None
        None for the operating system's randomness.
    steps : int
        Moves that are tried.

    Returns
    -------
    (int64[B, V], int)
        The profile, and the rounds of the descent.
    """
    counts = start.copy()
    total = np.tensordot(counts.astype(np.float64), masses, axes=2)
    if not fine(counts, total):
        return counts, 0
    random = np.random.Generator(np.random.Philox(key=stream_key(seed)))
    seen = target > 0.0
    p = target[seen]
    kl = lowest = _score(p, total[seen])
    best = counts.copy()
    for step in range(steps):
        temperature = _HOT * (_COLD / _HOT) ** (step / steps)
        b, v, w, size = _any_move(counts, random)
        score = _score(p, total[seen] + size * (masses[b, w, seen] - masses[b, v, seen]))
        if v == w or not score < kl + temperature * random.exponential():
            continue
        _shift(counts, b, v, w, size)
        changed = total + size * (masses[b, w] - masses[b, v])
        if not fine(counts, changed):
            _shift(counts, b, w, v, size)
            continue
        total, kl = changed, score
        if kl < lowest:
            best, lowest = counts.copy(), kl
    return descend(masses, best, target, fine)


def _any_move(counts: Ints, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Return bin, scale, other scale and size of a random move: half of the time a whole group."""
    b = int(random.integers(len(counts)))
    v = int(random.choice(np.flatnonzero(counts[b])))
    size = int(counts[b, v])
    if random.random() < 0.5:
        size = int(random.integers(1, size + 1))
    return b, v, int(random.integers(counts.shape[1])), size


def _shift(counts: Ints, b: int, v: int, w: int, size: int) -> None:
    counts[b, v] -= size
    counts[b, w] += size


def descend(masses: Floats, start: Ints, target: Floats, fine: Judge) -> tuple[Ints, int]:
    """Move groups of records to other scales while KL falls and every record stays satisfied.

    Parameters
    ----------
    masses : float64[B, V, X]
        Noise M of the B bins that have records.
    start : int64[B, V]
        The profile to start from.
    target : float64[X]
        The histogram, adding up to one.
    fine : callable
        From counts int64[B, V] and what they release S float64[X] to whether every record is satisfied.

    Returns
    -------
    (int64[B, V], int)
        The profile and the number of rounds. The start itself where it is not fine.

    Notes
    -----
    In a round every bin's records are offered every other scale: all of those with one scale, half of them, a
    quarter, down to one. The search ends with a round without a move.
    """
    counts = start.copy()
    total = np.tensordot(counts.astype(np.float64), masses, axes=2)
    if not fine(counts, total):
        return counts, 0
    seen = target > 0.0
    kl = _score(target[seen], total[seen])
    rounds, moved = 0, True
    while moved and rounds < _ROUNDS:
        rounds, moved = rounds + 1, False
        for b, v, w, size in _moves(counts):
            changed = total + size * (masses[b, w] - masses[b, v])
            score = _score(target[seen], changed[seen])
            if not score < kl - _GAIN:
                continue
            _shift(counts, b, v, w, size)
            if fine(counts, changed):
                total, kl, moved = changed, score, True
            else:
                _shift(counts, b, w, v, size)
        total = np.tensordot(counts.astype(np.float64), masses, axes=2)
    return counts, rounds


def _moves(counts: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Yield bin, scale, other scale and size of every move that the present counts allow."""
    n_bins, n_scales = counts.shape
    for b in range(n_bins):
        for v in range(n_scales):
            for w in range(n_scales):
                size = int(counts[b, v]) if v != w else 0
                while size > 0:
                    if size <= counts[b, v]:
                        yield b, v, w, size
                    size //= 2


def _score(p: Floats, total: Floats) -> float:
    """Return KL up to a constant, infinite where something of the histogram is no longer released."""
    if not (total > 0.0).all():
        return np.inf
    return float(-(p * np.log(total)).sum())
