"""A game given as arrays: what it must be, which ratios its epsilon allows, and what a search returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Floats, Ints

__all__ = ["Floats", "Found", "Ints", "Limits", "Table", "checked_counts", "checked_game", "ratio_limits"]


class Limits(NamedTuple):
    """A record is private iff ``low <= M[x] / S[x] <= high`` at every x; odds is (1 - high) / high.

    S is the mass of all, the record's own M among it. low = 0 says that the first inequality is void.
    """

    low: float
    high: float
    odds: float


def ratio_limits(n: int, epsilon: float) -> Limits:
    """Return the limits of the ratios M/S for n records, at least 2, and a positive and finite epsilon.

    Without the record x has probability ``(S - M)/(n - 1)`` instead of ``S/n``. That changes by a factor of
    at most e^eps either way iff ``1 - (1 - 1/n) e^eps <= M/S <= 1 - (1 - 1/n) e^-eps``; written here so that
    neither a tiny nor a huge epsilon loses digits.

    Examples
    --------
    >>> ratio_limits(2, 700.0).low, round(ratio_limits(2, 0.5).low, 3), round(ratio_limits(2, 0.5).high, 3)
    (0.0, 0.176, 0.697)
    """
    high = -math.expm1(-epsilon) + math.exp(-epsilon) / n
    low = 0.0
    if epsilon < -math.log1p(-1.0 / n):
        low = max(math.exp(epsilon) / n - math.expm1(epsilon), 0.0)
    return Limits(low, high, (1.0 - 1.0 / n) * math.exp(-epsilon) / high)


def checked_game(kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> tuple[Floats, Ints, float]:
    """Return masses float64[R, V, K] of the R bins with records, bin_counts int64[K] and epsilon.

    The noise matrix may be given whole, float64[K, V, K], or of these bins only. Refused are also fewer than
    two records, and noise that never leaves an occupied bin where it is.
    """
    counts: Ints = _checks.array("bin_counts", bin_counts, np.int64, (None,), low=0)
    n_bins = len(counts)
    if n_bins < 2:
        raise ValueError(f"bin_counts must have at least 2 bins, got {n_bins}")
    occupied = np.flatnonzero(counts)
    masses: Floats = _checks.array("kernel", kernel, np.float64, (None, None, n_bins), low=0.0)
    if len(masses) not in (n_bins, len(occupied)):
        raise ValueError(
            f"kernel must have shape ({n_bins}, any, {n_bins}), or ({len(occupied)}, any, {n_bins}) of the "
            f"bins with records, got {masses.shape}"
        )
    if masses.shape[1] < 1:
        raise ValueError(f"kernel must have at least one scale, got shape {masses.shape}")
    n = sum(counts.tolist())
    if not 2 <= n < 2**53:
        raise ValueError(f"bin_counts must add up to 2 records or more, below 2^53, got {n}")
    rows = occupied if len(masses) == n_bins else np.arange(len(occupied))
    missed = np.argwhere(masses[rows, :, occupied] <= 0.0)
    if len(missed):
        i, v = int(missed[0][0]), int(missed[0][1])
        where = (int(rows[i]), v, int(occupied[i]))
        raise ValueError(f"kernel must be positive at a record's own bin, got 0 at index {where}")
    return masses[rows], counts, _checks.epsilon(epsilon, allow_infinite=False)


def checked_counts(
    name: str, counts: ArrayLike, bin_counts: Ints, n_scales: int, whole: str = "the histogram's"
) -> Ints:
    """Return a profile int64[K, V], or raise where it is none or does not add up to bin_counts int64[K]."""
    shape = (len(bin_counts), n_scales)
    given: Ints = _checks.array(name, counts, np.int64, shape, low=0)
    wrong = np.flatnonzero(given.sum(axis=1) != bin_counts)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(f"{name} must add up to {whole} {bin_counts[k]} at bin {k}, got {given[k].sum()}")
    return given


@dataclass(frozen=True, eq=False)
class Found:
    """A profile that a search ended with.

    Attributes
    ----------
    counts : int64[K, V]
        Records of bin k that use scale v.
    n_satisfied : int
        Records whose own epsilon is at most the game's.
    certified : bool
        Whether these are all of them.
    kl : float
        KL(q || S/n) in nats.

    Examples
    --------
    See :func:`equinoise.nvo.search.exhaustive`.
    """

    counts: Ints
    n_satisfied: int
    certified: bool
    kl: float


class Table:
    """A game's occupied bins as the compiled functions take them, and scratch."""

    def __init__(self, kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> None:
        from equinoise.nvo.kernels.evaluation import Game

        masses, counts, epsilon = checked_game(kernel, bin_counts, epsilon)
        self.bin_counts, self.shape = counts, (len(counts), masses.shape[1])
        self.occupied = np.flatnonzero(counts)
        self.records = counts[self.occupied]
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
        """Return satisfied records and divergence of counts int64[T]."""
        from equinoise.nvo.kernels.evaluation import evaluate

        satisfied, kl = evaluate(self.game, counts, self.work)
        return int(satisfied), max(float(kl), 0.0)

    def uniform(self, v: int) -> Ints:
        """Return the profile int64[T] in which all use one scale."""
        counts = np.zeros((len(self.records), self.shape[1]), dtype=np.int64)
        counts[:, v] = self.records
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

        n_types, n_bins = self.game.masses.shape
        used, place, numbers = (np.zeros(size, dtype=np.int64) for size in (n_types, n_types, 2))
        mass, peak, trial = np.zeros((3, n_bins))
        top, who = np.zeros((3, n_bins)), np.zeros((3, n_bins), dtype=np.int64)
        state = State(counts.copy(), used, place, numbers, mass, peak, trial, top, who, np.zeros((3, n_bins)))
        refresh(self.game, state)
        return state
