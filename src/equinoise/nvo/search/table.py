"""A game of arrays as the kernels take it, and what a search returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise.nvo.ratios import checked_game, ratio_limits

__all__ = ["Floats", "Found", "Ints", "Table"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """A profile that a search ended with.

    Attributes
    ----------
    counts : int64[K, V]
        Players of bin k that use scale v.
    n_satisfied : int
        Players whose own epsilon is at most the game's.
    certified : bool
        Whether these are all of them.
    kl : float
        KL(q || S/n) in nats.
    """

    counts: Ints
    n_satisfied: int
    certified: bool
    kl: float


class Table:
    """A game's occupied bins as the kernels take them, and scratch."""

    def __init__(self, kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> None:
        from equinoise.nvo.kernels.evaluation import Game

        masses, counts, epsilon = checked_game(kernel, bin_counts, epsilon)
        self.shape = (len(counts), masses.shape[1])
        self.occupied = np.flatnonzero(counts)
        self.players = counts[self.occupied]
        n = int(counts.sum())
        low, high, odds = ratio_limits(n, epsilon)
        share = counts / n
        inverse = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
        rows = masses.reshape(-1, masses.shape[2])
        for constant in (rows, share, inverse):
            constant.flags.writeable = False
        ends = int(self.occupied[0]), int(self.occupied[-1]) + 1
        self.game = Game(rows, share, inverse, *ends, self.shape[1], n, high, low, odds)
        self.work = np.zeros((3, masses.shape[2]))

    def evaluate(self, counts: Ints) -> tuple[int, float]:
        """Return satisfied players and divergence of counts int64[T]."""
        from equinoise.nvo.kernels.evaluation import evaluate

        satisfied, kl = evaluate(self.game, counts, self.work)
        return int(satisfied), max(float(kl), 0.0)

    def uniform(self, v: int) -> Ints:
        """Return the profile int64[T] in which all use one scale."""
        counts = np.zeros((len(self.players), self.shape[1]), dtype=np.int64)
        counts[:, v] = self.players
        return counts.ravel()

    def found(self, counts: Ints) -> Found:
        """Return what a search gives back, from counts int64[T]."""
        satisfied, kl = self.evaluate(counts)
        whole = np.zeros(self.shape, dtype=np.int64)
        whole[self.occupied] = counts.reshape(-1, self.shape[1])
        whole.flags.writeable = False
        return Found(whole, satisfied, satisfied == self.game.n, kl)

    def state(self, counts: Ints) -> Any:
        """Return a search's state at a profile."""
        from equinoise.nvo.search.kernels.transfers import State, refresh

        n_types, n_bins = self.game.kernel.shape
        used, place, numbers = (np.zeros(size, dtype=np.int64) for size in (n_types, n_types, 2))
        mass, peak, trial = np.zeros((3, n_bins))
        top, who = np.zeros((3, n_bins)), np.zeros((3, n_bins), dtype=np.int64)
        state = State(counts.copy(), used, place, numbers, mass, peak, trial, top, who, np.zeros((3, n_bins)))
        refresh(self.game, state)
        return state
