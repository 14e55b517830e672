"""Kernels of dp-klucb, adap-ucb and lazy-dp-ts, and of thompson and epsilon-greedy.

Such a policy gathers an arm's rewards in batches, releases the sum of a full one once, with fresh
Laplace(1/eps) noise, and decides on nothing but releases, t the number of the round. Arrays are arm major,
the lane (a replicate) innermost. Why each is private: its row in
:mod:`equinoise.bandits.policies.registry`.

*dp-klucb*: batches of 1, 2, 4, 8, ... rounds, whose sums join the arm's private sum. The next batch goes to
the arm of the largest index, x = clip(private sum / n, 0, 1)::

    max { q : d_eps(x, q) <= ln t / n },   d_eps(x, y) = min over z in [x, y] of eps (z - x) + kl(z, y).

One thing is ours: after each release the private sum of n rewards is put back into [0, n], where the true sum
is. That never moves it away from the true sum, and a wild draw in an early batch does not hide the best arm:
with means 0.75, 0.625, .., 0.25, eps = 0.1 and T = 100,000, over 4,000 replicates, mean regret falls from 695
to 669 and the largest from 13,000 to 2,800. Over K of 2, 5, 20, T of 2,000 and 20,000 and eps of 0.1, 0.25
and 1 it is 0.91 times as large for means from 0.9 to 0.99, 0.97 from 0.3 to 0.7 and 1.02 from 0.01 to 0.1
(0.67 at best, 1.13 at worst: sums below 0 tell bad arms). ``clip_sums=False`` is the policy of the source.

*adap-ucb*: a batch is an episode that doubles the arm's pulls, the first a single one. Its m rewards stand
for the arm, and older ones are forgotten; the index, with alpha = 3.1, is::

    mean + Laplace(1/(eps m)) + sqrt(alpha ln t / (2 m)) + alpha ln t / (eps m).

*lazy-dp-ts*: Thompson sampling, with batches of 1, 2, 4, 8, ... rewards. An arm is judged by the last full
one, of O rewards, and a little too well. Each round all arms draw from their Beta(mu O + 1, (1 - mu) O + 1),
and the arm of the largest draw is played::

    mu = clip((sum + Laplace(1/eps))/O + 3 ln t/(eps O), 0, 1).

With a floor above 0 the arm is drawn with known probabilities instead, made from many joint draws (see
:mod:`~equinoise.bandits.policies.drawn`); before an arm's first release O is 0.

*thompson* does so from Beta(1 + S, 1 + n - S), S the sum of an arm's n rewards: batches are single rewards,
none is noised or forgotten. (S is put back into [0, n], for rewards that are not in [0, 1].)

*epsilon-greedy* draws any arm with the probability `explore`, and else one of the largest mean. The mean of
an arm never selected is infinite; live, one that waits for its first reward is left out, unless all do.
"""

import numpy as np

from equinoise._elementary import exp, log
from equinoise._jit import njit
from equinoise._random import integer, next_word, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.bandits import rewards
from equinoise.bandits.policies.drawn import Chances, draw_arm, make_chances, sample
from equinoise.bandits.rewards import Late, Run, Tape, advance_late_rounds, own_words, play_rounds, reward_of

ALL, LAST, SAMPLED = 0, 1, 2  # the rules of dp-klucb, adap-ucb and lazy-dp-ts
THOMPSON, GREEDY = 3, 4  # and of what is not private
ALPHA = 3.1  # of adap-ucb: the analysis asks for more than 3
_LN4 = 1.3862943611198906
_LN5_PLUS_1 = 2.6094379124341003


class Batches(NamedTuple):
    """K arms, W lanes."""

    pulls: Ints  # [K, W] all rewards, as the analyst sees them, and their sums; no choice reads these
    reward_sum: Floats  # [K, W]
    batch_sum: Floats  # [K, W] of the batch that an arm is gathering
    left: Ints  # [K, W] pulls that this batch still needs
    length: Ints  # [K, W] and has when it is full
    private_sum: Floats  # [K, W] noised sum that choices are made on
    private_n: Ints  # [K, W] the number of rewards in it
    current: Ints  # [W] the arm whose batch must be finished first, or -1; empty for posterior draws
    pending: Ints  # [K, W] selections whose rewards are still to come
    score: Floats  # [K, W] scratch
    chances: Chances  # where posterior draws come from
    epsilon: float
    rule: int
    clip: bool  # whether private_sum is put back into [0, private_n]


def make_state(
    n_arms: int,
    lanes: int,
    horizon: int | None,
    epsilon: float,
    *,
    rule: int,
    clip_sums: bool = False,
    key: Words | None = None,
    first: int = 0,
    floor: float = 0.0,
    explore: float = 0.0,
    **options: int,
) -> Batches:
    """Return the state of the replicates first..first+lanes-1; every arm's first batch is one pull."""
    shape = n_arms, lanes
    rows = n_arms if floor > 0.0 or rule > SAMPLED else 0
    return Batches(
        **rewards.zeros(shape, "pulls private_n pending", "reward_sum batch_sum private_sum score"),
        left=np.ones(shape, dtype=np.int64),
        length=np.ones(shape, dtype=np.int64),
        current=np.full(0 if rule >= SAMPLED else lanes, -1, dtype=np.int64),
        chances=make_chances(rows, lanes, key, first, floor or explore, **options),
        epsilon=float(epsilon) if rule <= SAMPLED else np.inf,
        rule=rule,
        clip=clip_sums,
    )


@njit
def best(score: Floats, lane: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of a lane's largest score float64[K, W], the first or one that the word draws."""
    arm, tied = 0, 1
    for a in range(1, score.shape[0]):
        if score[a, lane] > score[arm, lane]:
            arm, tied = a, 1
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
def gather(state: Batches, tape: Tape, lane: int, arm: int, start: int, stop: int) -> None:
    """Pull an arm in the rows start..stop-1 of tape, to the same bits as :func:`update` row by row."""
    state.pulls[arm, lane] += stop - start
    state.left[arm, lane] -= stop - start
    if tape.kind == rewards.BERNOULLI:  # sums of ones are exact in any order
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


@njit(forceinline=True)
def choose(state: Batches, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of round t (from 0): the one whose batch is open, else that of the largest score.

    A batch is open until enough was selected to fill it. An arm that waits for its first reward is left out.
    """
    if state.chances.share.size > 0:
        return _drawn(state, lane, t)
    arm, a = -1, 0
    while a < state.private_n.shape[0] and state.private_n[a, lane] > 0:
        a += 1  # an arm with a release was selected, and needs no look
    known = a == state.private_n.shape[0]
    if not known:
        arm = rewards.first_arm(state.pulls, state.pending, lane)
    if arm < 0 and state.rule < SAMPLED:
        held = state.current[lane]
        if held >= 0 and state.pulls[held, lane] > 0 and state.pending[held, lane] < state.left[held, lane]:
            arm = held
    if arm < 0:
        log_t = np.log(t + 1.0)
        for a in range(state.pulls.shape[0]):
            if known or state.private_n[a, lane] > 0:
                state.score[a, lane] = _score(state, lane, t, a, log_t)
            else:
                state.score[a, lane] = -np.inf
        arm = best(state.score, lane, tie_word, random_ties)
    if state.rule < SAMPLED:
        state.current[lane] = arm
    return arm


@njit(forceinline=True)
def _score(state: Batches, lane: int, t: int, a: int, log_t: float) -> float:
    """Return the index, or the draw, of an arm with a release."""
    total, n = state.private_sum[a, lane], np.float64(state.private_n[a, lane])
    if state.rule == ALL:
        return log_odds_bound(min(max(total / n, 0.0), 1.0), log_t / n, state.epsilon)
    if state.rule == LAST:
        width = ALPHA * log_t
        return total / n + np.sqrt(width / (2.0 * n)) + width / (state.epsilon * n)
    alpha, beta = _posterior(state, lane, t, a)
    return draw_beta(own_words(state.chances, lane, t, a), alpha, beta)


choose_late = choose  # the one that live bandits ask


@njit(forceinline=True)
def _posterior(state: Batches, lane: int, t: int, a: int) -> Any:
    """Return mu O + 1 and (1 - mu) O + 1 of an arm in round t (from 0)."""
    total, n = state.private_sum[a, lane], np.float64(state.private_n[a, lane])
    if n == 0.0:
        return 1.0, 1.0
    mean = min(max((total + 3.0 * np.log(t + 1.0) / state.epsilon) / n, 0.0), 1.0)
    return mean * n + 1.0, (1.0 - mean) * n + 1.0


@njit
def _drawn(state: Batches, lane: int, t: int) -> int:
    """Return the arm of round t, drawn with probabilities that are known then."""
    if state.rule != GREEDY:
        return sample(_posterior, state, lane, t)
    share, score, floor = state.chances.share, state.score, state.chances.floor
    n_arms = share.shape[0]
    largest, tied = -np.inf, 0
    for a in range(n_arms):
        if state.pulls[a, lane] > 0:
            score[a, lane] = state.private_sum[a, lane] / state.private_n[a, lane]
        else:
            score[a, lane] = np.inf if state.pending[a, lane] == 0 else -np.inf
        if score[a, lane] > largest:
            largest, tied = score[a, lane], 0
        tied += score[a, lane] == largest
    for a in range(n_arms):
        share[a, lane] = floor / n_arms + (score[a, lane] == largest) * (1.0 - floor) / tied
    return draw_arm(state.chances, lane, t)


@njit
def update(state: Batches, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Take the reward of round t; noise is a standard Laplace draw, used where a batch ends."""
    state.pulls[arm, lane] += 1
    state.reward_sum[arm, lane] += reward
    state.batch_sum[arm, lane] += reward
    state.left[arm, lane] -= 1
    if state.left[arm, lane] == 0:
        _release(state, lane, arm, noise)


@njit
def _release(state: Batches, lane: int, arm: int, noise: float) -> None:
    """Release a full batch with its own noise, and begin the next one."""
    total = state.batch_sum[arm, lane] + noise / state.epsilon
    n = state.length[arm, lane]
    if state.rule == ALL or state.rule > SAMPLED:
        total += state.private_sum[arm, lane]
        n += state.private_n[arm, lane]
    if state.clip:
        total = min(max(total, 0.0), np.float64(n))
    state.private_sum[arm, lane] = total
    state.private_n[arm, lane] = n
    state.batch_sum[arm, lane] = 0.0
    if state.rule <= SAMPLED:
        state.length[arm, lane] = (
            state.pulls[arm, lane] if state.rule == LAST else 2 * state.length[arm, lane]
        )
    state.left[arm, lane] = state.length[arm, lane]
    if state.rule < SAMPLED and state.current[lane] == arm:  # not by a late reward of another arm
        state.current[lane] = -1


@njit(forceinline=True)
def advance(state: Batches, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of all lanes, a batch at a time; row 0 of the tape is round first."""
    noisy = tape.noise.shape[0] > 0
    for lane in range(state.pulls.shape[1]):
        t = first
        while t < end:
            word = tape.tie[t - first, lane] if random_ties else np.uint64(0)
            arm = state.current[lane] if state.rule < SAMPLED else -1  # open: no reward is still to come
            if arm < 0:
                arm = choose(state, lane, t, word, random_ties)
            stop = t + 1 if state.rule >= SAMPLED else min(end, t + state.left[arm, lane])
            gather(state, tape, lane, arm, t - first, stop - first)
            if state.left[arm, lane] == 0:
                _release(state, lane, arm, tape.noise[stop - 1 - first, lane] if noisy else 0.0)
            t = stop


@njit
def play(state: Batches, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


@njit
def advance_late(late: Late, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of every lane, whose rewards come late."""
    advance_late_rounds(choose, update, late, tape, first, end, random_ties)


@njit
def play_late(late: Late, run: Run) -> None:
    """Play a run whose rewards come late."""
    play_rounds(advance_late, late, run)


@njit
def log_odds_bound(x: float, budget: float, epsilon: float) -> float:
    """Return ln(q/(1-q)) of the largest q with d_eps(x, q) <= budget; infinity where q = 1 is allowed.

    x in [0, 1], budget and epsilon positive; an infinite epsilon gives the bound of KL-UCB. Log-odds keep
    indices apart that a float64 near 1 cannot tell from 1. With y between x and the kink, where
    logit y = logit x + eps, the best z is x and d_eps is kl(x, y). Beyond the kink z is interior,
    logit z = logit y - eps, and d_eps(x, y) = -ln(1 - y + y e^-eps) - eps x, which has an inverse.
    """
    if x >= 1.0:
        return np.inf
    rest = epsilon * (1.0 - x) - budget  # d_eps(x, 1) is eps (1 - x)
    if rest <= 0.0:
        return np.inf
    if x > 0.0:
        kink = epsilon * (1.0 - x) + np.log(x + (1.0 - x) * np.exp(-epsilon))
        if budget < kink:
            return _kl_log_odds(x, budget, epsilon)
        budget += epsilon * x
    return budget + np.log(-np.expm1(-budget)) - np.log(-np.expm1(-rest))


@njit
def _kl_log_odds(x: float, budget: float, epsilon: float) -> float:
    """Return the log-odds w of the q >= x with kl(x, q) = budget, x in (0, 1), by Newton's method.

    kl(x, q) = ln(1 + e^w) - x w - H(x) is convex in w, with slope q - x. Newton from the right of the root
    comes down to it and never passes it. The start is the least of three bounds: the kink, what is left of
    the equation when ln(1 + e^w) is taken for w, and Pinsker's inequality.
    """
    entropy = -x * np.log(x) - (1.0 - x) * np.log1p(-x)
    w = min(np.log(x) - np.log1p(-x) + epsilon, (budget + entropy) / (1.0 - x))
    pinsker = x + np.sqrt(0.5 * budget)
    if pinsker < 1.0:
        w = min(w, np.log(pinsker) - np.log1p(-pinsker))
    while True:
        small = np.exp(-abs(w))  # two forms, so that nothing cancels where x and q are near 1
        if w > 0.0:
            value = (1.0 - x) * w + np.log1p(small)
            slope = (1.0 - x) - small / (1.0 + small)
        else:
            value = np.log1p(small) - x * w
            slope = small / (1.0 + small) - x
        lower = w - (value - entropy - budget) / slope
        if not lower < w:
            return w
        w = lower


@njit
def draw_beta(block: Any, a: float, b: float) -> float:
    """Return a Beta(a, b) draw for a, b >= 1, exact up to rounding.

    By inversion where a or b is 1, and else by rejection from a log-logistic, which takes 1.1 to 1.5 pairs of
    words whatever the parameters (Cheng 1978, algorithm BB). Words are those of the xoshiro256++ stream that
    begins at `block`, four uint64.
    """
    s0, s1, s2, s3 = block
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    u = uniform(word)
    if b == 1.0:
        return exp(log(u) / a)
    if a == 1.0:
        return -np.expm1(log(u) / b)
    small, large, total = min(a, b), max(a, b), a + b
    beta = np.sqrt((total - 2.0) / (2.0 * a * b - total))
    gamma = small + 1.0 / beta
    while True:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        v = uniform(word)
        step = beta * log(u / (1.0 - u))
        odds = small * exp(step)
        z = u * u * v
        level = gamma * step - _LN4
        # the tangent of ln z at z = 1/5 spares most draws a logarithm
        if level + small - odds + _LN5_PLUS_1 >= 5.0 * z:
            break
        if level + total * log(total / (large + odds)) >= log(z):
            break
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
    return (odds if small == a else large) / (large + odds)
