"""What the policies that release batches share: their state, the best of scores, many pulls at once.

Such a policy gathers the rewards of an arm in a batch, releases the batch's sum once, with Laplace noise, and
decides on nothing but releases. Arrays are arm major, the lane (a replicate) innermost.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._random import integer
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.bandits.rewards import BERNOULLI, Tape, reward_of


class Batches(NamedTuple):
    """K arms, W lanes.

    pulls int64[K, W], reward_sum float64[K, W]: all rewards, as the analyst sees them; no choice reads them.
    batch_sum float64[K, W], left int64[K, W]: the batch that an arm is gathering, and the pulls that it still
    needs. length int64[K, W]: pulls of that batch when it is full. private_sum float64[K, W], private_n
    int64[K, W]: noised sum that choices are made on, and the number of rewards in it. current int64[W]: the
    arm whose batch must be finished first, or -1. score float64[K, W]: scratch. epsilon float. clip int: 1
    where private_sum is kept within [0, private_n].
    """

    pulls: Ints
    reward_sum: Floats
    batch_sum: Floats
    left: Ints
    length: Ints
    private_sum: Floats
    private_n: Ints
    current: Ints
    score: Floats
    epsilon: float
    clip: int


def fresh_batches(n_arms: int, lanes: int) -> dict[str, Any]:
    """Return the arrays of a state of batches before the first round; every arm's first batch is one pull."""
    shape = n_arms, lanes
    sums = {name: np.zeros(shape) for name in ("reward_sum", "batch_sum", "private_sum", "score")}
    counts = {name: np.zeros(shape, dtype=np.int64) for name in ("pulls", "private_n")}
    return sums | counts | {name: np.ones(shape, dtype=np.int64) for name in ("left", "length")}


def make_batches(n_arms: int, lanes: int, epsilon: float, *, clip: bool = False) -> Batches:
    """Return the state before the first round of a policy that finishes one batch before the next."""
    current = np.full(lanes, -1, dtype=np.int64)
    fresh = fresh_batches(n_arms, lanes)
    return Batches(**fresh, current=current, epsilon=float(epsilon), clip=int(clip))


@njit
def never_pulled(pulls: Ints, lane: int) -> int:
    """Return the lowest arm of a lane that was never pulled, or -1."""
    for arm in range(pulls.shape[0]):
        if pulls[arm, lane] == 0:
            return arm
    return -1


@njit
def best(score: Floats, lane: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of the largest score float64[K, W] of a lane.

    Of several the first, or with `random_ties` one that the word draws uniformly.
    """
    arm = 0
    tied = 1
    for a in range(1, score.shape[0]):
        if score[a, lane] > score[arm, lane]:
            arm = a
            tied = 1
        elif score[a, lane] == score[arm, lane]:
            tied += 1
    if random_ties and tied > 1:
        top = score[arm, lane]
        skip = integer(tie_word, tied)
        while skip > 0:
            arm += 1
            if score[arm, lane] == top:
                skip -= 1
    return arm


@njit(forceinline=True)
def pull(state: Any, lane: int, arm: int, reward: float) -> bool:
    """Take one reward into an arm's sum and batch; return whether the batch is full now.

    The state is a :class:`Batches`, or has its fields.
    """
    state.pulls[arm, lane] += 1
    state.reward_sum[arm, lane] += reward
    state.batch_sum[arm, lane] += reward
    state.left[arm, lane] -= 1
    full: bool = state.left[arm, lane] == 0
    return full


@njit
def gather(state: Batches, tape: Tape, lane: int, arm: int, start: int, stop: int) -> None:
    """Pull an arm in the rows start..stop-1 of tape, to the same bits as :func:`pull` row by row."""
    state.pulls[arm, lane] += stop - start
    state.left[arm, lane] -= stop - start
    if tape.kind == BERNOULLI:  # sums of ones are exact in any order
        mean = tape.mean[arm, lane]
        ones = 0
        for i in range(start, stop):
            ones += tape.reward[i, lane] < mean
        state.reward_sum[arm, lane] += ones
        state.batch_sum[arm, lane] += ones
        return
    total = state.reward_sum[arm, lane]
    batch = state.batch_sum[arm, lane]
    for i in range(start, stop):
        reward = reward_of(tape, i, arm, lane)
        total += reward
        batch += reward
    state.reward_sum[arm, lane] = total
    state.batch_sum[arm, lane] = batch


@njit(inline="always")
def advance_batches(
    choose: Any, release: Any, state: Batches, tape: Tape, first: int, end: int, random_ties: bool
) -> None:
    """Play the rounds first..end-1 of all lanes, a batch at a time; row 0 of the tape is round first."""
    for lane in range(state.pulls.shape[1]):
        t = first
        while t < end:
            word = tape.tie[t - first, lane] if random_ties else np.uint64(0)
            arm = choose(state, lane, t, word, random_ties)
            stop = min(end, t + state.left[arm, lane])
            state.current[lane] = arm
            gather(state, tape, lane, arm, t - first, stop - first)
            if state.left[arm, lane] == 0:
                release(state, lane, arm, tape.noise[stop - 1 - first, lane])
            t = stop
