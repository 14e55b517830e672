"""Play from one round to another without a return to Python: luck, choices, and regret at checkpoints.

There is one compiled function for each kernel module, since Numba keeps compiled code only of functions that
name what they call. All of them are :func:`_play` around that module's ``advance``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise._jit import njit
from equinoise.bandits.policies import adap_ucb as _adap_ucb
from equinoise.bandits.policies import dp_klucb as _dp_klucb
from equinoise.bandits.policies import dp_se as _dp_se
from equinoise.bandits.policies import lazy_dp_ts as _lazy_dp_ts
from equinoise.bandits.policies import private_ucb as _private_ucb
from equinoise.bandits.policies import ucb as _ucb
from equinoise.bandits.rewards import Luck, fill_luck

__all__ = ["adap_ucb", "dp_klucb", "dp_se", "lazy_dp_ts", "private_ucb", "ucb"]

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
def adap_ucb(
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
    """Play a state of :mod:`equinoise.bandits.policies.adap_ucb`."""
    _play(_adap_ucb.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def dp_se(
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
    """Play a state of :mod:`equinoise.bandits.policies.dp_se`."""
    _play(_dp_se.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def ucb(
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
    """Play a state of :mod:`equinoise.bandits.policies.ucb`."""
    _play(_ucb.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def dp_klucb(
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
    """Play a state of :mod:`equinoise.bandits.policies.dp_klucb`."""
    _play(_dp_klucb.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def private_ucb(
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
    """Play a state of :mod:`equinoise.bandits.policies.private_ucb`."""
    _play(_private_ucb.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)


@njit
def lazy_dp_ts(
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
    """Play a state of :mod:`equinoise.bandits.policies.lazy_dp_ts`."""
    _play(_lazy_dp_ts.advance, state, luck, streams, sigma, marks, gap, regret, first, end, random_ties)
