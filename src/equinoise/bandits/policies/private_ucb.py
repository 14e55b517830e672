"""Kernels of private-ucb and of its controls: an index over noised sums, widened for the noise.

Each arm's rewards go through a private counter of their own (see :mod:`equinoise.mechanisms`), which gets
the whole epsilon since a reward enters one arm only. The true sum S is kept apart from the noise N of the
counter's n-th sum; the policy sees S + N alone. The index of an arm in round t (from 1) is

    (S + N)/n + c_t / sqrt(2 n) + w/n,

c_t as for ucb. The width w is ``counter``, the tail of N at probability 1/t^2, or ``published``,
K ln^2(T) ln(K T ln(T)/delta_t)/epsilon with 1/delta_t = 1 + t ln^2 t. The control *width-only* leaves out N,
and *noise-only* leaves out w. What the round and the kind of noise decide is read from tables as far as they
reach, and computed beyond.
"""

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.bandits.policies.ucb import (
    AT_ONCE,
    UCB,
    better,
    choose_lanes,
    confidence_at,
    confidence_table,
    largest,
)
from equinoise.bandits.rewards import Run, Tape, play_rounds, reward_of
from equinoise.mechanisms.kernels import (
    floor_log2,
    hybrid_line,
    hybrid_scale,
    hybrid_total,
    popcount,
    prefix_total,
    tail_line,
)

# The widths of private-ucb: what its index is widened by, for the noise in an arm's sum.


LARGEST_TABLE = 2**24  # entries: what lies beyond is computed as rounds come
NO_WIDTH, PUBLISHED, COUNTER = 0, 1, 2
BINARY, HYBRID = 0, 1
_WIDTHS = {"none": NO_WIDTH, "published": PUBLISHED, "counter": COUNTER}
_COUNTERS = {"binary": BINARY, "hybrid": HYBRID}
_MOST_LEVELS = 62  # of a counter that knows no horizon
_LN2 = float(np.log(2.0))


class Privacy(NamedTuple):
    """The numbers of a private index.

    width, counter and noisy say what w is, whose noise N is, and whether it is added; scale is that of a
    node of the binary counter, L/epsilon, or 1/epsilon for the hybrid one; slots is how many totals a counter
    keeps; published is K ln^2(T)/epsilon, and inside K T ln T.
    """

    width: int
    counter: int
    noisy: int
    scale: float
    slots: int
    published: float
    inside: float


def make_privacy(
    n_arms: int,
    horizon: int | None,
    epsilon: float,
    width: str = "counter",
    counter: str = "binary",
    noisy: bool = True,
) -> Privacy:
    """Return the numbers of a private index; only a hybrid counter with its own width needs no horizon."""
    levels = _MOST_LEVELS if horizon is None else horizon.bit_length()
    scale = (levels if counter == "binary" else 1.0) / epsilon
    log_horizon = 0.0 if horizon is None else float(np.log(horizon))
    published = n_arms * log_horizon**2 / epsilon
    inside = n_arms * (horizon or 0) * log_horizon
    return Privacy(_WIDTHS[width], _COUNTERS[counter], int(noisy), scale, levels + 1, published, inside)


@njit
def width_at(privacy: Privacy, n: int, t: int) -> Any:
    """Return w of an arm with n pulls in round t, from 1."""
    if privacy.width == NO_WIDTH or n == 0:
        return 0.0
    log_t = log(np.float64(t))
    if privacy.width == PUBLISHED:
        if privacy.inside == 0.0:
            return 0.0
        return privacy.published * log(privacy.inside * (1.0 + t * log_t * log_t))
    level = _LN2 + 2.0 * log_t
    if privacy.counter == BINARY:
        slope, offset = tail_line(np.float64(popcount(n)), level)
    else:
        slope, offset = hybrid_line(n, level)
    return privacy.scale * (slope * level + offset)


@njit
def kind_of(privacy: Privacy, n: int) -> Any:
    """Return the column of the widths for n pulls; all n of a column have noise of one distribution."""
    if privacy.width != COUNTER:
        return 0
    if privacy.counter == BINARY:
        return popcount(n)
    k = floor_log2(n)
    return k * (k + 1) // 2 + popcount(n) - 1


def _examples(privacy: Privacy) -> Ints:
    """Return a number of pulls for every column of the widths."""
    if privacy.width != COUNTER:
        return np.ones(1, np.int64)
    levels = range(privacy.slots - 1)
    if privacy.counter == BINARY:
        return np.array([0, *((2 << k) - 1 for k in levels)], np.int64)
    return np.array([(1 << k) + (1 << q) - 1 for k in levels for q in range(k + 1)], np.int64)


@njit
def _fill_widths(privacy: Privacy, pulls: Ints, out: Floats) -> None:
    """Fill out float64[H, M] with 2 w of round i + 1 and an arm with pulls[j] pulls."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 2.0 * width_at(privacy, pulls[j], i + 1)


def width_table(privacy: Privacy, n_rounds: int) -> Floats:
    """Return 2 w for the rounds 1..n and every kind of noise, float64[H, M], as far as a table may reach."""
    pulls = _examples(privacy)
    table = np.empty((min(n_rounds, LARGEST_TABLE // len(pulls)), len(pulls)))
    _fill_widths(privacy, pulls, table)
    return table


_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one


class PrivateState(NamedTuple):
    """State of W lanes with K arms.

    pulls int64[K, W] and reward_sum float64[K, W], the true sums; mean float64[K, W] is (S + N)/n, infinite
    for an arm never pulled; root float64[K, W] is 1/sqrt(2 n), or 0; kind int64[K, W] is the column of the
    width; totals float64[W K slots] the kept totals of every counter's noise; confidence float64[H] is c_t,
    and widths float64[H', M] is 2 w for each kind of noise, from round 1. Scratch: arm and pulled int64[W],
    score and total float64[W], twice float64[AT_ONCE, W].
    """

    pulls: Ints
    reward_sum: Floats
    mean: Floats
    root: Floats
    kind: Ints
    totals: Floats
    confidence: Floats
    widths: Floats
    privacy: Privacy
    arm: Ints
    pulled: Ints
    score: Floats
    total: Floats
    twice: Floats


def make_tables(
    n_arms: int, horizon: int | None, epsilon: float, n_rounds: int, **options: Any
) -> tuple[Floats, Floats]:
    """Return what all lanes share: c_t float64[H] and the widths float64[H', M] of the first rounds."""
    privacy = make_privacy(n_arms, horizon, epsilon, **options)
    return confidence_table(UCB, n_rounds), width_table(privacy, n_rounds)


def make_state(
    n_arms: int,
    lanes: int,
    horizon: int | None,
    epsilon: float,
    *,
    tables: tuple[Floats, Floats],
    **options: Any,
) -> PrivateState:
    """Return the state before the first round: no counter has an item."""
    privacy = make_privacy(n_arms, horizon, epsilon, **options)
    shape = (n_arms, lanes)
    confidence, widths = tables
    return PrivateState(
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.full(shape, np.inf),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(n_arms * lanes * privacy.slots),
        confidence,
        widths,
        privacy,
        np.zeros(lanes, np.int64),
        np.zeros(lanes, np.int64),
        np.zeros(lanes),
        np.zeros(lanes),
        np.zeros((AT_ONCE, lanes)),
    )


@njit(forceinline=True)
def _index(state: PrivateState, lane: int, t: int, k: int, c: float) -> float:
    """Return the index of an arm after t rounds, infinity for one never pulled."""
    if t < state.widths.shape[0]:
        twice = state.widths[t, state.kind[k, lane]]
    else:
        twice = 2.0 * width_at(state.privacy, state.pulls[k, lane], t + 1)
    return _widened(state.mean[k, lane], state.root[k, lane], c, twice)


@njit
def choose(state: PrivateState, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm with the largest index after t rounds."""
    c = state.confidence[t] if t < state.confidence.size else confidence_at(UCB, t + 1)
    return largest(_index, state, lane, t, c, tie_word, random_ties)


@njit
def update(state: PrivateState, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Add a reward to an arm of a lane, and one standard Laplace draw, scaled, to its counter's node n."""
    privacy = state.privacy
    n = state.pulls[arm, lane] + 1
    total = state.reward_sum[arm, lane] + reward
    state.pulls[arm, lane] = n
    state.reward_sum[arm, lane] = total
    state.kind[arm, lane] = kind_of(privacy, n)
    base = (lane * state.pulls.shape[0] + arm) * privacy.slots
    if privacy.noisy and privacy.counter == BINARY:
        total += prefix_total(state.totals, base, n, privacy.scale * noise)
    elif privacy.noisy:
        total += hybrid_total(state.totals, base, n, privacy.scale * hybrid_scale(n) * noise)
    state.mean[arm, lane] = total / n
    state.root[arm, lane] = 1.0 / np.sqrt(2.0 * n)


@njit
def advance(state: PrivateState, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 (from 0) of every lane; row i of the tape is round first + i."""
    for i in range(end - first):
        t = first + i
        if random_ties or t >= state.widths.shape[0]:
            for lane in range(state.arm.size):
                word = tape.tie[i, lane] if random_ties else np.uint64(0)
                state.arm[lane] = choose(state, lane, t, word, random_ties)
        elif state.widths.shape[1] == 1:
            _choose_all_alike(state, t)
        else:
            _choose_all(state, t)
        _update_all(state, tape, i)


@njit
def play(state: PrivateState, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


@njit(forceinline=True)
def _widened(mean: float, root: float, c: float, twice: float) -> float:
    """Return an index; w/n is 2 w root^2."""
    return mean + root * (c + root * twice)


@njit
def _choose_all_alike(state: PrivateState, t: int) -> None:
    """Set arm int64[W] to what :func:`choose` returns for each lane, where all arms have one width."""
    choose_lanes(_widened, state, state.confidence[t], state.widths[t, 0])


@njit
def _choose_all(state: PrivateState, t: int) -> None:
    """Set arm int64[W] to what :func:`choose` returns for each lane, where widths depend on the pulls."""
    mean, root, kind, score, arm = state.mean, state.root, state.kind, state.score, state.arm
    c, widths, twice = state.confidence[t], state.widths[t], state.twice
    for lane in range(arm.size):
        score[lane], arm[lane] = -np.inf, 0
    for k in range(0, mean.shape[0], AT_ONCE):
        n = min(AT_ONCE, mean.shape[0] - k)
        for j in range(n):  # looked up in loops of their own, so that what follows is vector code
            for lane in range(arm.size):
                twice[j, lane] = widths[_at(kind[k + j, lane])]
        if n == AT_ONCE:
            for lane in range(arm.size):
                best, a = score[lane], arm[lane]
                for j in range(AT_ONCE):
                    value = _widened(mean[k + j, lane], root[k + j, lane], c, twice[j, lane])
                    best, a = better(value, k + j, best, a)
                score[lane], arm[lane] = best, a
        else:
            for j in range(n):
                for lane in range(arm.size):
                    value = _widened(mean[k + j, lane], root[k + j, lane], c, twice[j, lane])
                    score[lane], arm[lane] = better(value, k + j, score[lane], arm[lane])


@njit
def _update_all(state: PrivateState, tape: Tape, i: int) -> None:
    """Give each lane's arm its reward and noise in row i of the tape, as :func:`update` does."""
    pulls, total, root, arm, pulled = state.pulls, state.total, state.score, state.arm, state.pulled
    for lane in range(arm.size):
        a = _at(arm[lane])
        pulled[lane] = pulls[a, lane] + 1
        pulls[a, lane] = pulled[lane]
        state.reward_sum[a, lane] += reward_of(tape, i, arm[lane], lane)
        total[lane] = state.reward_sum[a, lane]
    if state.privacy.noisy:
        _noise_all(state, tape, i)
    if state.privacy.width == COUNTER:
        for lane in range(arm.size):
            state.kind[_at(arm[lane]), lane] = kind_of(state.privacy, pulled[lane])
    for lane in range(arm.size):  # divisions and roots of all lanes together
        root[lane] = pulled[lane]
        total[lane] /= root[lane]
        root[lane] = 1.0 / np.sqrt(2.0 * root[lane])
    for lane in range(arm.size):
        a = _at(arm[lane])
        state.mean[a, lane] = total[lane]
        state.root[a, lane] = root[lane]


@njit
def _noise_all(state: PrivateState, tape: Tape, i: int) -> None:
    """Add the noise of the n-th sum to every lane's total float64[W]."""
    total, totals, privacy = state.total, state.totals, state.privacy
    if privacy.counter == BINARY:
        for lane in range(total.size):
            base = (lane * state.pulls.shape[0] + state.arm[lane]) * privacy.slots
            noise = privacy.scale * tape.noise[i, lane]
            total[lane] += prefix_total(totals, base, state.pulled[lane], noise)
        return
    for lane in range(total.size):
        base = (lane * state.pulls.shape[0] + state.arm[lane]) * privacy.slots
        n = state.pulled[lane]
        noise = privacy.scale * hybrid_scale(n) * tape.noise[i, lane]
        total[lane] += hybrid_total(totals, base, n, noise)
