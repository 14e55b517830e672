"""The policy adap-ucb: UCB in episodes that double, only the last of which counts (Azize and Basu, 2022).

An episode pulls one arm until its number of pulls has doubled; the first is a single pull. When it ends, its
m rewards give the noised mean that stands for the arm, and older ones are forgotten. The next episode goes to
the arm of the largest index, t the number of the round and alpha = 3.1::

    mean + Laplace(1/(eps m)) + sqrt(alpha ln t / (2 m)) + alpha ln t / (eps m).

Why it is private, and who found it: its row in :mod:`equinoise.bandits.policies.registry`.
"""

from typing import Any

import numpy as np

from equinoise._jit import njit
from equinoise.bandits.policies.batches import (
    Batches,
    advance_batches,
    best,
    make_batches,
    never_pulled,
    pull,
)
from equinoise.bandits.rewards import Run, Tape, play_rounds

ALPHA = 3.1  # the analysis asks for more than 3


def make_state(n_arms: int, lanes: int, horizon: int | None, epsilon: float) -> Batches:
    """Return the state of `lanes` replicates before the first round; the horizon is not used."""
    return make_batches(n_arms, lanes, epsilon)


@njit
def choose(state: Batches, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of round t (from 0): the one whose episode is open, else that of the largest index."""
    if state.current[lane] >= 0:
        return state.current[lane]
    arm = never_pulled(state.pulls, lane)
    if arm >= 0:
        return arm
    width = ALPHA * np.log(t + 1.0)
    for a in range(state.pulls.shape[0]):
        m = state.private_n[a, lane]
        mean = state.private_sum[a, lane] / m
        state.score[a, lane] = mean + np.sqrt(width / (2.0 * m)) + width / (state.epsilon * m)
    return best(state.score, lane, tie_word, random_ties)


@njit
def update(state: Batches, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Take the reward of round t; noise is a standard Laplace draw, used where an episode ends."""
    state.current[lane] = arm
    if pull(state, lane, arm, reward):
        _release(state, lane, arm, noise)


@njit
def _release(state: Batches, lane: int, arm: int, noise: float) -> None:
    """Put a full episode, with its own noise, in the place of the one before."""
    state.private_sum[arm, lane] = state.batch_sum[arm, lane] + noise / state.epsilon
    state.private_n[arm, lane] = state.length[arm, lane]
    state.batch_sum[arm, lane] = 0.0
    state.length[arm, lane] = state.pulls[arm, lane]
    state.left[arm, lane] = state.pulls[arm, lane]
    state.current[lane] = -1


@njit
def advance(state: Batches, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of all lanes, an episode at a time; row 0 of the tape is round first."""
    advance_batches(choose, _release, state, tape, first, end, random_ties)


@njit
def play(state: Batches, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)
