"""Search by whole groups under any promise: from a profile that keeps it, never leaving it.

For (epsilon, delta), see :mod:`equinoise.nvo.gaussian`. There, a record is satisfied by a sum over the bins,
not by limits at each of them. What makes the compiled searches quick (the two largest masses of
a bin, crowds that are always satisfied, limits that are tested where they broke last) says nothing about such
a sum, so this search looks at all records after every move. Plain NumPy, for a hundred bins or so.
"""

import numpy as np

from equinoise._random import stream_key
from equinoise._typing import Callable, Floats, Ints, Iterator

_GAIN = 1e-12  # of KL, in nats: less is rounding
_ROUNDS = 200
_HOT, _COLD = 0.3, 1e-5  # temperatures at which annealing starts and ends, in nats of KL

Judge = Callable[[Ints, Floats], bool]


class _Walk:
    """A profile, what it releases and its KL up to a constant, and moves that every record agrees to."""

    def __init__(self, masses: Floats, start: Ints, target: Floats, satisfied: Judge) -> None:
        self.masses, self.satisfied = masses, satisfied
        self.counts = start.copy()
        self.seen = target > 0.0
        self.p = target[self.seen]
        self.add_up()
        self.kl = self._score(self.total[self.seen])

    def add_up(self) -> None:
        self.total = np.tensordot(self.counts.astype(np.float64), self.masses, axes=2)

    def _score(self, total: Floats) -> float:
        """Return KL up to a constant, infinite where something of the histogram is no longer released."""
        return float(-(self.p * np.log(total)).sum()) if (total > 0.0).all() else np.inf

    def move(self, b: int, v: int, w: int, size: int, below: float) -> bool:
        """Move records of a bin between two scales if KL is then below a limit and all are satisfied."""
        change = size * (self.masses[b, w] - self.masses[b, v])
        score = self._score((self.total + change)[self.seen])
        if not score < below:
            return False
        self.counts[b, [v, w]] += -size, size
        if not self.satisfied(self.counts, self.total + change):
            self.counts[b, [v, w]] += size, -size
            return False
        self.total, self.kl = self.total + change, score
        return True


def anneal(
    masses: Floats,
    start: Ints,
    target: Floats,
    satisfied: Judge,
    *,
    seed: int | None = 0,
    steps: int = 20_000,
) -> tuple[Ints, int]:
    """Move random groups, at first also where KL grows, and descend from the best profile on the way.

    Of so many steps each tries a move. Return the profile int64[B, V] and the rounds of the descent.
    """
    walk = _Walk(masses, start, target, satisfied)
    if not satisfied(walk.counts, walk.total):
        return walk.counts, 0
    random = np.random.Generator(np.random.Philox(key=stream_key(seed)))
    best, lowest = walk.counts.copy(), walk.kl
    for step in range(steps):
        temperature = _HOT * (_COLD / _HOT) ** (step / steps)
        b, v, w, size = _any_move(walk.counts, random)
        if v == w or not walk.move(b, v, w, size, walk.kl + temperature * random.exponential()):
            continue
        if walk.kl < lowest:
            best, lowest = walk.counts.copy(), walk.kl
    return descend(masses, best, target, satisfied)


def _any_move(counts: Ints, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Return bin, scale, other scale and size of a random move: half of the time a whole group."""
    b = int(random.integers(len(counts)))
    v = int(random.choice(np.flatnonzero(counts[b])))
    size = int(counts[b, v])
    if random.random() < 0.5:
        size = int(random.integers(1, size + 1))
    return b, v, int(random.integers(counts.shape[1])), size


def descend(masses: Floats, start: Ints, target: Floats, satisfied: Judge) -> tuple[Ints, int]:
    """Move groups of records to other scales while KL falls and every record stays satisfied.

    In a round every bin's records are offered every other scale: all of those with one scale, half of them, a
    quarter, down to one. The search ends with a round without a move. Noise float64[B, V, X] of the B bins
    that have records, the profile int64[B, V] to start from, the histogram float64[X], and a function from
    counts and what they release to whether all are satisfied. Return the profile (the start where that does
    not satisfy everybody) and the rounds.
    """
    walk = _Walk(masses, start, target, satisfied)
    if not satisfied(walk.counts, walk.total):
        return walk.counts, 0
    rounds, moved = 0, True
    while moved and rounds < _ROUNDS:
        rounds, moved = rounds + 1, False
        for move in _moves(walk.counts):
            moved |= walk.move(*move, walk.kl - _GAIN)
        walk.add_up()
    return walk.counts, rounds


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
