"""The policy dp-se: successive elimination, differentially private (Sajed and Sheffet, 2019).

Epoch e = 1, 2, ... pulls every surviving arm R times, in turns. With D = 2^-e, s survivors and beta = 1/T::

    R = floor(max(32 ln(8 s e^2/beta)/D^2, 8 ln(4 s e^2/beta)/(eps D))) + 1.

At its end every survivor has the mean of these R rewards plus Laplace(1/(eps R)). With
h = sqrt(ln(8 s e^2/beta)/(2 R)) and c = ln(4 s e^2/beta)/(eps R), an arm whose mean is more than 2 h + 2 c
below the largest is dropped. Rewards of earlier epochs are forgotten. A last survivor is played for good, and
nothing is released any more.

Why it is private, and who found it: its row in :mod:`equinoise.bandits.policies.registry`.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.bandits.rewards import Run, Tape, play_rounds, reward_of, zeros

_LONGEST = 2.0**62  # a tiny epsilon asks for an epoch that no integer counts; none so long is ever over


class Elimination(NamedTuple):
    """K arms, W lanes."""

    pulls: Ints  # [K, W] all rewards, as the analyst sees them, and their sums; no choice reads these
    reward_sum: Floats  # [K, W]
    alive: Ints  # [K, W] 1 for a survivor
    fresh: Ints  # [K, W] pulls of this epoch
    fresh_sum: Floats  # [K, W] and their rewards
    mean: Floats  # [K, W] noised, of the survivors that have R pulls
    survivors: Ints  # [W] how many there are
    waiting: Ints  # [W] how many of them have fewer than R pulls
    turn: Ints  # [W] the arm to pull
    epoch: Ints  # [W] e
    length: Ints  # [W] R
    horizon: float
    epsilon: float


def make_state(n_arms: int, lanes: int, horizon: int, epsilon: float) -> Elimination:
    """Return the state of `lanes` replicates before the first round."""
    shape = n_arms, lanes
    state = Elimination(
        alive=np.ones(shape, dtype=np.int64),
        **zeros(shape, "pulls fresh", "reward_sum fresh_sum mean"),
        survivors=np.full(lanes, n_arms, dtype=np.int64),
        **zeros((lanes,), "waiting turn epoch length"),
        horizon=float(horizon),
        epsilon=float(epsilon),
    )
    for lane in range(lanes):
        _begin(state, lane)
    return state


@njit
def _logs(state: Elimination, lane: int) -> Any:
    """Return ln(8 s e^2/beta) and ln(4 s e^2/beta) of a lane's epoch."""
    inside = 4.0 * state.survivors[lane] * state.horizon * state.epoch[lane] ** 2
    return np.log(2.0 * inside), np.log(inside)


@njit
def _begin(state: Elimination, lane: int) -> None:
    """Begin the next epoch of a lane: its length, and nothing gathered yet."""
    state.epoch[lane] += 1
    gap = 2.0 ** -state.epoch[lane]
    wide, narrow = _logs(state, lane)
    least = max(32.0 * wide / (gap * gap), 8.0 * narrow / (state.epsilon * gap))
    state.length[lane] = np.int64(min(least, _LONGEST)) + 1
    state.waiting[lane] = state.survivors[lane]
    for arm in range(state.pulls.shape[0]):
        state.fresh[arm, lane] = 0
        state.fresh_sum[arm, lane] = 0.0
    _pass_turn(state, lane, state.pulls.shape[0] - 1)


@njit(forceinline=True)
def _pass_turn(state: Elimination, lane: int, arm: int) -> None:
    """Give the turn to the next survivor after an arm that has fewer than R pulls in this epoch."""
    n_arms = state.pulls.shape[0]
    arm = arm + 1 if arm + 1 < n_arms else 0
    while not (state.alive[arm, lane] and state.fresh[arm, lane] < state.length[lane]):
        arm = arm + 1 if arm + 1 < n_arms else 0
    state.turn[lane] = arm


@njit
def _eliminate(state: Elimination, lane: int) -> None:
    """Drop the arms whose noised means lie clearly below the largest."""
    n_arms = state.pulls.shape[0]
    wide, narrow = _logs(state, lane)
    n = np.float64(state.length[lane])
    apart = 2.0 * np.sqrt(wide / (2.0 * n)) + 2.0 * narrow / (n * state.epsilon)
    largest = -np.inf
    for arm in range(n_arms):
        if state.alive[arm, lane]:
            largest = max(largest, state.mean[arm, lane])
    for arm in range(n_arms):
        if state.alive[arm, lane] and largest - state.mean[arm, lane] > apart:
            state.alive[arm, lane] = 0
            state.survivors[lane] -= 1


@njit(forceinline=True)
def choose(state: Elimination, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm whose turn it is; the round and the word do not matter."""
    return state.turn[lane]


@njit(forceinline=True)
def update(state: Elimination, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Take the reward of round t; noise is a standard Laplace draw, used where the arm's epoch is full.

    What comes for a dropped arm, or for one whose sum is out already, counts for the analyst alone.
    """
    state.pulls[arm, lane] += 1
    state.reward_sum[arm, lane] += reward
    length = state.length[lane]
    if state.survivors[lane] == 1 or not state.alive[arm, lane] or state.fresh[arm, lane] == length:
        return
    state.fresh[arm, lane] += 1
    state.fresh_sum[arm, lane] += reward
    if state.fresh[arm, lane] == length:
        state.mean[arm, lane] = (state.fresh_sum[arm, lane] + noise / state.epsilon) / length
        state.waiting[lane] -= 1
        if state.waiting[lane] == 0:
            _eliminate(state, lane)
            _begin(state, lane)
            return
    _pass_turn(state, lane, arm)


@njit
def advance(state: Elimination, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of all lanes; row 0 of the tape is round first."""
    for lane in range(state.turn.size):
        for t in range(first, end):
            arm, i = state.turn[lane], t - first
            update(state, lane, t, arm, reward_of(tape, i, arm, lane), tape.noise[i, lane])


@njit
def play(state: Elimination, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)
