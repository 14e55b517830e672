"""What a profile is worth, straight from the definition: who is private, and what is left of the data.

No search calls this, and it calls nothing that a search does. Searches have an evaluation of their own
(:mod:`equinoise.nvo.kernels.evaluation`), which asks for limits of M/S in place of an epsilon, keeps S up to
date from move to move, and is a hundred times faster. Whatever a search returns is judged here, in
other code and from another formula, so that a mistake in one of them shows and certifies nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equinoise.nvo.noise import Kernel

__all__ = ["Evaluation", "divergence", "evaluate", "released"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_BLOCK = 2**21  # entries of the kernel that are looked at together


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A profile's privacy and utility.

    Attributes
    ----------
    n_satisfied : int
        Records whose own epsilon is at most the game's.
    realised_epsilon : float
        The largest epsilon of any record, for its removal.
    realised_epsilon_addition : float
        The same for the addition of one more record of a type that is there already.
    payoff : float
        n_satisfied + 1 - kl/ln K.
    kl : float
        Kullback-Leibler divergence of what is released from the histogram, in nats.
    pmf : float64[K]
        Probability that a bin is released.
    epsilon : float64[K, V]
        Epsilon of a record of type (k, v) for its removal; 0 where there is none.
    epsilon_addition : float64[K, V]
        Epsilon of one more record of type (k, v); 0 where there is none yet.
    satisfied : bool[K, V]
        Types that are there and whose epsilon is at most the game's.
    """

    n_satisfied: int
    realised_epsilon: float
    realised_epsilon_addition: float
    payoff: float
    kl: float
    pmf: Floats
    epsilon: Floats
    epsilon_addition: Floats
    satisfied: NDArray[np.bool_]


def evaluate(kernel: Kernel, bin_counts: Ints, counts: Ints, epsilon: float) -> Evaluation:
    """Evaluate a profile from scratch.

    Parameters
    ----------
    kernel : Kernel
        Masses M[k, v, x].
    bin_counts : int64[K]
        The histogram, n values in all.
    counts : int64[K, V]
        Records of bin k that use scale v.
    epsilon : float
        What every record asks for.

    Returns
    -------
    Evaluation

    Notes
    -----
    With ``S = sum of counts M`` bin x is released with probability S[x]/n. For a record of type (k, v)
    the others' mass is ``S - M``, and with ``r = M/(S - M)`` its epsilon is the largest
    ``|ln(1 + r[x]) + ln(1 - 1/n)|`` over x; for one more record ``|ln(1 + M/S) - ln(1 + 1/n)|``. Where
    S[x] = 0 there is no such outcome.

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> game = NoiseGame(Histogram.from_values([0, 0, 1, 1], n_bins=2, range_epsilon=1e9), 1.0, [1e-4])
    >>> found = evaluate(game.noise, game.histogram.counts, game.histogram.counts[:, None], 1.0)
    >>> found.n_satisfied, round(found.realised_epsilon, 4)  # ln(3/2)
    (4, 0.4055)
    """
    n = int(bin_counts.sum())
    total = released(kernel, counts)
    least, most, odds = _shares(kernel, counts, total)
    removal, addition = math.log1p(-1.0 / n), -math.log1p(1.0 / n)
    used = counts > 0
    own = np.where(used, np.maximum(np.log1p(odds) + removal, np.log1p(-least) - removal), 0.0)
    more = np.where(used, np.maximum(np.log1p(most) + addition, -(np.log1p(least) + addition)), 0.0)
    satisfied = used & (own <= epsilon)
    n_satisfied = int(counts[satisfied].sum())
    kl = divergence(bin_counts / n, total / n)
    return Evaluation(
        n_satisfied=n_satisfied,
        realised_epsilon=float(own.max()),
        realised_epsilon_addition=float(more.max()),
        payoff=n_satisfied + 1.0 - kl / math.log(len(bin_counts)),
        kl=kl,
        pmf=total / n,
        epsilon=own,
        epsilon_addition=more,
        satisfied=satisfied,
    )


def divergence(p: Floats, q: Floats) -> float:
    """Return the Kullback-Leibler divergence sum of p ln(p/q), in nats; infinite where q misses p."""
    seen = p > 0.0
    if (q[seen] == 0.0).any():
        return math.inf
    return max(0.0, float(np.sum(p[seen] * np.log(p[seen] / q[seen]))))


def released(kernel: Kernel, counts: Ints) -> Floats:
    """Return S = sum over types of counts M, float64[X]."""
    total: Floats = np.zeros(0)
    for bins in _blocks(kernel, counts):
        part = np.tensordot(counts[bins].astype(np.float64), kernel.rows(bins), axes=2)
        total = total + part if total.size else part
    return total


def _blocks(kernel: Kernel, counts: Ints) -> list[Ints]:
    """Return the bins with records, in parts none of which has more noise than fits into a block."""
    step = max(1, _BLOCK // (kernel.n_scales * kernel.n_bins))
    there = np.flatnonzero(counts.any(axis=1))
    return [there[i : i + step] for i in range(0, len(there), step)]


def _shares(kernel: Kernel, counts: Ints, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Return least and largest M/S over x, and largest M/(S - M): float64[K, V], 0 for types not there."""
    least, most, odds = np.zeros((3, *counts.shape))
    possible = np.flatnonzero(total > 0.0)
    for bins in _blocks(kernel, counts):
        row, v = np.nonzero(counts[bins])
        k, share = bins[row], kernel.rows(bins)[row, v]
        share = share[:, possible] if len(possible) < len(total) else share
        share /= total[possible]
        least[k, v] = share.min(axis=1)
        most[k, v] = share.max(axis=1)
        with np.errstate(divide="ignore"):
            odds[k, v] = most[k, v] / (1.0 - most[k, v])
        # a record that gives more than half of S[x]: S - M would lose digits, so the others are added up
        for i in np.flatnonzero((counts[k, v] == 1) & (most[k, v] > 0.5)):
            at = possible[share[i] > 0.5]
            odds[k[i], v[i]] = max(_odds(kernel, counts, int(k[i]), int(v[i]), int(x)) for x in at)
    return least, most, odds


def _odds(kernel: Kernel, counts: Ints, k: int, v: int, x: int) -> float:
    """Return the mass of one record of type (k, v) at x over that of all the others."""
    column = kernel.column(x)
    rest = counts.copy()
    rest[k, v] -= 1
    others = float(np.sum(rest * column))
    return float(column[k, v]) / others if others > 0.0 else math.inf
