"""Kernels of the index policies: ucb, ucb1, greedy and uniform; private-ucb and its controls.

Each round the arm with the largest index is played; an arm never pulled comes first, lowest index first.
After n pulls of an arm with rewards that sum to S, its index in round t (from 1) is

    (S + N)/n + c_t / sqrt(2 n) + w/n,

c_t = sqrt(ln(2/delta_t)) with delta_t = 1/(1 + t ln^2 t) for ucb and all that is private, 2 sqrt(ln t) for
ucb1, so that the second term is sqrt(2 ln t / n), and 0 for greedy. Uniform play takes the arm with the
fewest pulls, so the arms in turn, or draws each with probability 1/K.

N and w are of private-ucb alone. Each arm's rewards go through a private counter of their own (see
:mod:`equinoise.mechanisms`), which gets the whole epsilon since a reward enters one arm only. S is kept apart
from the noise N of the counter's n-th sum; the policy sees S + N alone. The width w is ``counter``, the tail
of N at probability 1/t^2, or ``published``, K ln^2(T) ln(K T ln(T)/delta_t)/epsilon. The control *width-only*
leaves out N, and *noise-only* leaves out w.

Replicates go in lockstep: a round is a few passes over all lanes, with the arms in the outer loop and
selections instead of branches, which a compiler turns into vector code.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._random import integer
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.bandits import rewards
from equinoise.bandits.policies import widths as at
from equinoise.bandits.policies.drawn import Chances, draw_arm, make_chances
from equinoise.bandits.rewards import Late, Run, Tape, advance_late_rounds, play_rounds, reward_of
from equinoise.mechanisms import kernels

_AT_ONCE = 4  # arms in one pass over the lanes: the best so far is then read and written less often
_LOOKED_UP = 5  # where a width is looked up for each
_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one


class IndexState(NamedTuple):
    """State of W lanes with K arms; without privacy it has no rows in kind, totals and widths."""

    pulls: Ints  # [K, W]
    pending: Ints  # [K, W], selections whose rewards are still to come
    reward_sum: Floats  # [K, W], the true sums
    mean: Floats  # [K, W], (S + N)/n, infinite for an arm never pulled; for uniform play minus the pulls
    root: Floats  # [K, W], 1/sqrt(2 n), or 0
    kind: Ints  # [K, W], the column of the width
    totals: Floats  # [W K slots], the kept totals of every counter's noise
    confidence: Floats  # [H], c_t from round 1
    widths: Floats  # [H', M], 2 w for each kind of noise, likewise
    rule: int  # what c_t is
    privacy: at.Privacy  # what w and N are
    chances: Chances  # of uniform play that draws; and the words for k-ary counters
    arm: Ints  # [W], scratch, as are those below
    pulled: Ints  # [W]
    digit: Ints  # [W]
    score: Floats  # [W]
    total: Floats  # [W]
    twice: Floats  # [LOOKED_UP, W]


Tables = tuple[Floats, Floats]  # of what all lanes share


def make_tables(
    n_arms: int, horizon: int | None, epsilon: float, n_rounds: int, rule: int | None = None, **options: Any
) -> Tables:
    """Return c_t float64[H] and widths float64[H', M] of the first rounds; a rule means no privacy."""
    if rule is not None:
        return at.confidence_table(rule, n_rounds), np.empty((0, 1))
    privacy = at.make_privacy(n_arms, horizon, epsilon, **options)
    return at.confidence_table(at.UCB, n_rounds), at.width_table(privacy, n_rounds)


def make_state(
    n_arms: int, lanes: int, horizon: Any, epsilon: float, tables: Tables, rule: Any = None, **options: Any
) -> IndexState:
    """Return the state before the first round: no counter has an item."""
    shape = (n_arms, lanes)
    rows, words = n_arms * options.pop("drawn", False), (options.pop("key", None), options.pop("first", 0))
    privacy = at.OPEN if rule is not None else at.make_privacy(n_arms, horizon, epsilon, **options)
    return IndexState(
        **rewards.zeros(shape, "pulls pending", "reward_sum"),
        mean=np.full(shape, 0.0 if rule == at.UNIFORM else np.inf),
        root=np.zeros(shape),
        kind=np.zeros((n_arms if rule is None else 0, lanes), np.int64),
        totals=np.zeros(n_arms * lanes * privacy.slots),
        confidence=tables[0],
        widths=tables[1],
        rule=at.UCB if rule is None else rule,
        privacy=privacy,
        chances=make_chances(rows, lanes, *words),
        **rewards.zeros((lanes,), "arm pulled digit", "score total"),
        twice=np.zeros((_LOOKED_UP, lanes)),
    )


@njit(forceinline=True)
def _confidence(state: IndexState, t: int) -> float:
    """Return c of the round after t rounds."""
    return state.confidence[t] if t < state.confidence.size else at.confidence_at(state.rule, t + 1)


@njit(forceinline=True)
def _index(state: IndexState, lane: int, t: int, k: int, c: float) -> float:
    """Return the index of an arm after t rounds, infinity for one never pulled."""
    if t < state.widths.shape[0]:
        twice = state.widths[t, state.kind[k, lane]]
    else:
        twice = 2.0 * at.width_at(state.privacy, state.pulls[k, lane], t + 1)
    return _widened(state.mean[k, lane], state.root[k, lane], c, twice)


@njit(forceinline=True)
def choose(state: IndexState, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of the largest index; ties of arms that are never pulled, or in turn, are not drawn."""
    if state.chances.share.size > 0:
        return draw_arm(state.chances, lane, t)
    c = _confidence(state, t)
    best, arm, tied = -np.inf, 0, 0
    for k in range(state.pulls.shape[0]):
        value = _index(state, lane, t, k, c)
        if value > best:
            best, arm, tied = value, k, 1
        elif value == best:
            tied += 1
    if tied > 1 and random_ties and best < np.inf and state.rule != at.UNIFORM:
        skip = integer(tie_word, tied)
        while skip > 0:
            arm += 1
            if _index(state, lane, t, arm, c) == best:
                skip -= 1
    return arm


@njit(forceinline=True)
def choose_late(state: IndexState, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Choose where rewards come late; unless arms are drawn, one that waits for its first is left out."""
    arm = -1
    if state.chances.share.size == 0:
        arm = rewards.first_arm(state.pulls, state.pending, lane)
        for k in range(state.pulls.shape[0]):
            if state.pulls[k, lane] == 0:
                state.mean[k, lane] = -np.inf
    return choose(state, lane, t, tie_word, random_ties) if arm < 0 else arm


@njit(forceinline=True)
def _noise_of(state: IndexState, lane: int, t: int, arm: int, n: int, digit: int, noise: float) -> float:
    """Return the noise in the n-th sum of an arm, to which round t brings a standard draw.

    The digit is the lowest of n - 1, for a k-ary counter.
    """
    privacy = state.privacy
    base = (lane * state.pulls.shape[0] + arm) * privacy.slots
    if privacy.counter == at.BINARY:
        return kernels.prefix_total(state.totals, base, n, privacy.scale * noise)
    if privacy.counter == at.HYBRID:
        return kernels.hybrid_total(state.totals, base, n, privacy.scale * kernels.hybrid_scale(n) * noise)
    half, none = privacy.half, np.uint64(0)
    block = (none, none, none, none)
    if digit == half and kernels.kary_begins(n, half):  # which takes more draws
        block = rewards.own_words(state.chances, lane, t, arm)
    return privacy.scale * kernels.kary_total(state.totals, base, n, half, digit, noise, block)


@njit
def update(state: IndexState, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Add a reward to an arm of a lane, and one standard Laplace draw, scaled, to its counter's node n."""
    privacy = state.privacy
    n = state.pulls[arm, lane] + 1
    total = state.reward_sum[arm, lane] + reward
    state.pulls[arm, lane] = n
    state.reward_sum[arm, lane] = total
    if state.rule == at.UNIFORM:
        state.mean[arm, lane] = -n
        return
    digit = kernels.kary_digit(n - 1, privacy.half)
    if privacy.width == at.COUNTER:
        state.kind[arm, lane] = at.next_kind(privacy, state.kind[arm, lane], n, digit)
    if privacy.noisy:
        total += _noise_of(state, lane, t, arm, n, digit, noise)
    state.mean[arm, lane] = total / n
    state.root[arm, lane] = 1.0 / np.sqrt(2.0 * n)


@njit(forceinline=True)
def advance(state: IndexState, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 (from 0) of every lane; row i of the tape is round first + i."""
    plain = state.privacy.width == at.NO_WIDTH
    alone = random_ties or state.chances.share.size > 0
    for i in range(end - first):
        t = first + i
        if alone or not (plain or t < state.widths.shape[0]):
            _choose_each(state, tape, i, t, random_ties)
        elif plain:
            _choose_plain(state, t)
        elif state.widths.shape[1] == 1:
            _choose_all_alike(state, t)
        else:
            _choose_all(state, t)
        _update_all(state, tape, i, t)


@njit
def play(state: IndexState, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


@njit
def advance_late(late: Late, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of every lane, whose rewards come late."""
    advance_late_rounds(choose_late, update, late, tape, first, end, random_ties)


@njit
def play_late(late: Late, run: Run) -> None:
    """Play a run whose rewards come late."""
    play_rounds(advance_late, late, run)


@njit
def _choose_each(state: IndexState, tape: Tape, i: int, t: int, random_ties: bool) -> None:
    """Set arm int64[W] to what :func:`choose` returns for each lane, whose ties row i of the tape draws."""
    for lane in range(state.arm.size):
        word = tape.tie[i, lane] if random_ties else np.uint64(0)
        state.arm[lane] = choose(state, lane, t, word, random_ties)


@njit(forceinline=True)
def _better(value: float, k: int, best: float, arm: int) -> tuple[float, int]:
    """Return the better of two indices and its arm; of equal ones the one that came before."""
    above = value > best
    return (value if above else best), (k if above else arm)


@njit(inline="always")
def _choose_lanes(index: Any, state: Any, c: float, twice: float) -> None:
    """Set arm int64[W] to the first of the largest index(mean, root, c, twice) of each lane."""
    mean, root, score, arm = state.mean, state.root, state.score, state.arm
    for lane in range(arm.size):
        score[lane], arm[lane] = -np.inf, 0
    whole = mean.shape[0] // _AT_ONCE * _AT_ONCE
    for k in range(0, whole, _AT_ONCE):
        for lane in range(arm.size):
            best, a = score[lane], arm[lane]
            for j in range(k, k + _AT_ONCE):
                best, a = _better(index(mean[j, lane], root[j, lane], c, twice), j, best, a)
            score[lane], arm[lane] = best, a
    for k in range(whole, mean.shape[0]):
        for lane in range(arm.size):
            value = index(mean[k, lane], root[k, lane], c, twice)
            score[lane], arm[lane] = _better(value, k, score[lane], arm[lane])


@njit(forceinline=True)
def _plain(mean: float, root: float, c: float, twice: float) -> float:
    """Return an index without a width for noise."""
    return mean + c * root


@njit(forceinline=True)
def _widened(mean: float, root: float, c: float, twice: float) -> float:
    """Return an index; w/n is 2 w root^2."""
    return mean + root * (c + root * twice)


@njit(forceinline=True)
def _choose_plain(state: IndexState, t: int) -> None:
    """Set arm int64[W] to what :func:`choose` returns for each lane, the first of arms that tie."""
    _choose_lanes(_plain, state, _confidence(state, t), 0.0)


@njit
def _choose_all_alike(state: IndexState, t: int) -> None:
    """Do so where all arms have one width."""
    _choose_lanes(_widened, state, state.confidence[t], state.widths[t, 0])


@njit
def _choose_all(state: IndexState, t: int) -> None:
    """Do so where widths depend on the pulls."""
    mean, root, kind, score, arm = state.mean, state.root, state.kind, state.score, state.arm
    c, widths, twice = state.confidence[t], state.widths[t], state.twice
    for lane in range(arm.size):
        score[lane], arm[lane] = -np.inf, 0
    for k in range(0, mean.shape[0], _LOOKED_UP):
        n = min(_LOOKED_UP, mean.shape[0] - k)
        for j in range(n):  # looked up in loops of their own, so that what follows is vector code
            for lane in range(arm.size):
                twice[j, lane] = widths[_at(kind[k + j, lane])]
        if n == _LOOKED_UP:
            for lane in range(arm.size):
                best, a = score[lane], arm[lane]
                for j in range(_LOOKED_UP):
                    value = _widened(mean[k + j, lane], root[k + j, lane], c, twice[j, lane])
                    best, a = _better(value, k + j, best, a)
                score[lane], arm[lane] = best, a
        else:
            for j in range(n):
                for lane in range(arm.size):
                    value = _widened(mean[k + j, lane], root[k + j, lane], c, twice[j, lane])
                    score[lane], arm[lane] = _better(value, k + j, score[lane], arm[lane])


@njit(forceinline=True)
def _update_all(state: IndexState, tape: Tape, i: int, t: int) -> None:
    """Give each lane's arm its reward and noise in row i of the tape, as :func:`update` does."""
    pulls, total, root, arm, pulled = state.pulls, state.total, state.score, state.arm, state.pulled
    for lane in range(arm.size):
        total[lane] = reward_of(tape, i, _at(arm[lane]), lane)
    for lane in range(arm.size):
        a = _at(arm[lane])
        pulled[lane] = pulls[a, lane] + 1
        pulls[a, lane] = pulled[lane]
        total[lane] += state.reward_sum[a, lane]
        state.reward_sum[a, lane] = total[lane]
    if state.rule == at.UNIFORM:
        for lane in range(arm.size):
            state.mean[_at(arm[lane]), lane] = -pulled[lane]
        return
    if state.privacy.slots > 0:
        _noise_all(state, tape, i, t)
    for lane in range(arm.size):  # divisions and roots of all lanes together
        root[lane] = pulled[lane]
        total[lane] /= root[lane]
        root[lane] = 1.0 / np.sqrt(2.0 * root[lane])
    for lane in range(arm.size):
        a = _at(arm[lane])
        state.mean[a, lane] = total[lane]
        state.root[a, lane] = root[lane]


@njit
def _noise_all(state: IndexState, tape: Tape, i: int, t: int) -> None:
    """Add the noise of the n-th sum to every lane's total float64[W], and keep what its width goes by."""
    privacy, pulled, digit = state.privacy, state.pulled, state.digit
    if privacy.counter == at.KARY:
        for lane in range(digit.size):
            digit[lane] = kernels.kary_digit(pulled[lane] - 1, privacy.half)
    for lane in range(digit.size):
        arm, n, own = state.arm[lane], pulled[lane], digit[lane]
        if privacy.noisy:
            state.total[lane] += _noise_of(state, lane, t, arm, n, own, tape.noise[i, lane])
        if privacy.width == at.COUNTER:
            a = _at(arm)
            state.kind[a, lane] = at.next_kind(privacy, state.kind[a, lane], n, own)
