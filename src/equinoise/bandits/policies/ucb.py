"""Kernels of the index policies without noise: ucb, ucb1, greedy and uniform.

Each round the arm with the largest index is played; an arm never pulled comes first, lowest index first.
After n pulls of an arm with rewards that sum to S, its index in round t (from 1) is

    S/n + c_t / sqrt(2 n),

c_t = sqrt(ln(2/delta_t)) with delta_t = 1/(1 + t ln^2 t) for ucb, 2 sqrt(ln t) for ucb1, so that the
second term is sqrt(2 ln t / n), and 0 for greedy. Uniform play takes the arm with the fewest pulls, so the
arms in turn.

Replicates go in lockstep: a round is a few passes over all lanes, with the arms in the outer loop and
selections instead of branches, which a compiler turns into vector code.
"""

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._random import integer
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.bandits.rewards import Run, Tape, play_rounds, reward_of

__all__ = [
    "AT_ONCE",
    "GREEDY",
    "LARGEST_TABLE",
    "UCB",
    "UCB1",
    "UNIFORM",
    "IndexState",
    "advance",
    "better",
    "choose",
    "choose_lanes",
    "confidence_at",
    "confidence_table",
    "largest",
    "make_state",
    "make_tables",
    "play",
    "update",
]

UNIFORM, GREEDY, UCB, UCB1 = 0, 1, 2, 3
AT_ONCE = 4  # arms in one pass over the lanes: the best so far is then read and written less often
LARGEST_TABLE = 2**24  # entries: rounds beyond are computed as they come

_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one


class IndexState(NamedTuple):
    """State of W lanes with K arms.

    pulls int64[K, W] and reward_sum float64[K, W]; mean float64[K, W] is S/n, infinite for an arm never
    pulled (for uniform play minus the pulls); root float64[K, W] is 1/sqrt(2 n), or 0; confidence float64[H]
    holds c_t of the rounds 1..H, and rule says what c_t is. Scratch: arm int64[W], score and total
    float64[W].
    """

    pulls: Ints
    reward_sum: Floats
    mean: Floats
    root: Floats
    confidence: Floats
    rule: int
    arm: Ints
    score: Floats
    total: Floats


@njit
def confidence_at(rule: int, t: int) -> float:
    """Return c_t of round t, from 1."""
    log_t = log(np.float64(t))
    if rule == UCB:
        return np.sqrt(log(2.0 * (1.0 + t * log_t * log_t)))
    if rule == UCB1:
        return 2.0 * np.sqrt(log_t)
    return 0.0


@njit
def _fill_confidence(rule: int, out: Floats) -> None:
    for i in range(out.size):
        out[i] = confidence_at(rule, i + 1)


def confidence_table(rule: int, n_rounds: int) -> Floats:
    """Return c_t of the rounds 1..n, or of as many as a table may hold."""
    table = np.empty(min(n_rounds, LARGEST_TABLE))
    _fill_confidence(rule, table)
    return table


def make_tables(n_arms: int, horizon: int | None, epsilon: float, n_rounds: int, *, rule: int) -> Floats:
    """Return what all lanes share, float64[H]: c_t of the first rounds; 0 rounds for no table."""
    return confidence_table(rule, n_rounds)


def make_state(
    n_arms: int, lanes: int, horizon: int | None, epsilon: float, *, rule: int, tables: Floats
) -> IndexState:
    """Return the state before the first round; horizon and epsilon do not matter."""
    shape = (n_arms, lanes)
    mean = np.full(shape, 0.0 if rule == UNIFORM else np.inf)
    return IndexState(
        np.zeros(shape, np.int64),
        np.zeros(shape),
        mean,
        np.zeros(shape),
        tables,
        rule,
        np.zeros(lanes, np.int64),
        np.zeros(lanes),
        np.zeros(lanes),
    )


@njit(inline="always")
def largest(index: Any, state: Any, lane: int, t: int, c: float, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of the largest index(state, lane, t, arm, c); arms never pulled are never drawn."""
    best, arm, tied = -np.inf, 0, 0
    for k in range(state.pulls.shape[0]):
        value = index(state, lane, t, k, c)
        if value > best:
            best, arm, tied = value, k, 1
        elif value == best:
            tied += 1
    if tied > 1 and random_ties and best < np.inf:
        skip = integer(tie_word, tied)
        while skip > 0:
            arm += 1
            if index(state, lane, t, arm, c) == best:
                skip -= 1
    return arm


@njit(forceinline=True)
def _index(state: IndexState, lane: int, t: int, k: int, c: float) -> float:
    """Return the index of an arm, infinity for one never pulled."""
    return _plain(state.mean[k, lane], state.root[k, lane], c, 0.0)


@njit
def choose(state: IndexState, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm with the largest index after t rounds; uniform play takes no notice of `random_ties`."""
    c = state.confidence[t] if t < state.confidence.size else confidence_at(state.rule, t + 1)
    return largest(_index, state, lane, t, c, tie_word, random_ties and state.rule != UNIFORM)


@njit
def update(state: IndexState, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Add a reward to an arm of a lane; there is no noise to add."""
    n = state.pulls[arm, lane] + 1
    total = state.reward_sum[arm, lane] + reward
    state.pulls[arm, lane] = n
    state.reward_sum[arm, lane] = total
    if state.rule == UNIFORM:
        state.mean[arm, lane] = -n
    else:
        state.mean[arm, lane] = total / n
        state.root[arm, lane] = 1.0 / np.sqrt(2.0 * n)


@njit
def advance(state: IndexState, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 (from 0) of every lane; row i of the tape is round first + i."""
    for i in range(end - first):
        if random_ties:
            for lane in range(state.arm.size):
                state.arm[lane] = choose(state, lane, first + i, tape.tie[i, lane], True)
        else:
            _choose_all(state, first + i)
        _update_all(state, tape, i)


@njit
def play(state: IndexState, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


@njit(forceinline=True)
def better(value: float, k: int, best: float, arm: int) -> tuple[float, int]:
    """Return the better of two indices and its arm; of equal ones the one that came before."""
    above = value > best
    return (value if above else best), (k if above else arm)


@njit(inline="always")
def choose_lanes(index: Any, state: Any, c: float, twice: float) -> None:
    """Set arm int64[W] to the first of the largest index(mean, root, c, twice) of each lane."""
    mean, root, score, arm = state.mean, state.root, state.score, state.arm
    for lane in range(arm.size):
        score[lane], arm[lane] = -np.inf, 0
    whole = mean.shape[0] // AT_ONCE * AT_ONCE
    for k in range(0, whole, AT_ONCE):
        for lane in range(arm.size):
            best, a = score[lane], arm[lane]
            for j in range(k, k + AT_ONCE):
                best, a = better(index(mean[j, lane], root[j, lane], c, twice), j, best, a)
            score[lane], arm[lane] = best, a
    for k in range(whole, mean.shape[0]):
        for lane in range(arm.size):
            value = index(mean[k, lane], root[k, lane], c, twice)
            score[lane], arm[lane] = better(value, k, score[lane], arm[lane])


@njit(forceinline=True)
def _plain(mean: float, root: float, c: float, twice: float) -> float:
    """Return an index without a width for noise."""
    return mean + c * root


@njit
def _choose_all(state: IndexState, t: int) -> None:
    """Set arm int64[W] to what :func:`choose` returns for each lane, the first of arms that tie."""
    c = state.confidence[t] if t < state.confidence.size else confidence_at(state.rule, t + 1)
    choose_lanes(_plain, state, c, 0.0)


@njit
def _update_all(state: IndexState, tape: Tape, i: int) -> None:
    """Give each lane's arm its reward in row i of the tape, as :func:`update` does."""
    total, root, arm = state.total, state.score, state.arm
    for lane in range(arm.size):
        a = _at(arm[lane])
        n = state.pulls[a, lane] + 1
        state.pulls[a, lane] = n
        state.reward_sum[a, lane] += reward_of(tape, i, arm[lane], lane)
        total[lane] = state.reward_sum[a, lane]
        root[lane] = n
    if state.rule == UNIFORM:
        for lane in range(arm.size):
            state.mean[arm[lane], lane] = -root[lane]
        return
    for lane in range(arm.size):  # divisions and roots of all lanes together
        total[lane] /= root[lane]
        root[lane] = 1.0 / np.sqrt(2.0 * root[lane])
    for lane in range(arm.size):
        a = _at(arm[lane])
        state.mean[a, lane] = total[lane]
        state.root[a, lane] = root[lane]
