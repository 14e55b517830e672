"""Play from one round to another without a return to Python: luck, choices, and regret at checkpoints.

There is one compiled function for each kernel module, since Numba keeps compiled code only of functions that
name what they call. All of them are :func:`_play` around that module's ``advance``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise._jit import njit
from equinoise.bandits import (
    _adaptive_kernels,
    _elimination_kernels,
    _index_kernels,
    _klucb_kernels,
    _private_index_kernels,
    _thompson_kernels,
)
from equinoise.bandits._luck import Luck, fill_luck

__all__ = ["adaptive", "elimination", "index", "klucb", "private_index", "thompson"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit
def _mark(pulls: Ints, gap: Floats, regret: Floats) -> None:
    """Set regret float64[W] to the sum over arms of gap float64[K, W] times pulls int64[K, W]."""
    for lane in range(regret.size):
        regret[lane] = 0.0
    for k in range(gap.shape[0]):
        for lane in range(regret.size):
            regret[lane] += gap[k, lane] * pulls[k, lane]


@njit(inline="always")
def _play(
    advance: Any,
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play the rounds first..end-1 (from 0) of every lane.

    Parameters
    ----------
    advance : callable
        Of a kernel module.
    state : NamedTuple
        Of that module, after `first` rounds.
    luck : Luck
        Where chunks of rounds are drawn.
    streams : uint64[3, 4, W]
        As they are after `first` rounds.
    sigma : float
        Standard deviation of Gaussian rewards.
    marks : int64[C]
        Increasing numbers of rounds, the last at least `end`.
    gap : float64[K, W]
        Largest mean less the arm's.
    regret : float64[C, W]
        Row c gets the pseudo-regret after marks[c] rounds, where first < marks[c] <= end.
    """
    at = 0
    while marks[at] <= first:
        at += 1
    t = first
    while t < end:
        stop = min(end, t + luck.reward.shape[0], marks[at])
        fill_luck(luck, streams, stop - t, sigma)
        advance(state, luck, t, stop, random_ties)
        t = stop
        if marks[at] == t:
            _mark(state.pulls, gap, regret[at])
            at += 1


@njit
def adaptive(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._adaptive_kernels`."""
    advance = _adaptive_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def elimination(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._elimination_kernels`."""
    advance = _elimination_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def index(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._index_kernels`."""
    advance = _index_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def klucb(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._klucb_kernels`."""
    advance = _klucb_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def private_index(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._private_index_kernels`."""
    advance = _private_index_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def thompson(
    state: Any,
    luck: Luck,
    streams: NDArray[np.uint64],
    sigma: float,
    marks: Ints,
    gap: Floats,
    regret: Floats,
    first: int,
    end: int,
    random_ties: bool,
) -> None:
    """Play a state of :mod:`._thompson_kernels`."""
    advance = _thompson_kernels.advance
    _play(advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)
