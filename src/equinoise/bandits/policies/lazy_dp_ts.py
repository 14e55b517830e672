"""The policy lazy-dp-ts: Thompson sampling from releases that come at powers of two (Hu and Hegde, 2022).

Each arm gathers rewards in a buffer of 1, then 2, 4, 8, ... places. When it is full, the sum of its O rewards
is released with noise and the rewards are dropped. An arm is judged by its last release alone, and in round t
(from 1) a little too well::

    mu = clip((sum + Laplace(1/eps))/O + 3 ln t/(eps O), 0, 1).

Each arm draws from Beta(mu O + 1, (1 - mu) O + 1), and the arm of the largest draw is played.

Why it is private, and who found it: its row in :mod:`equinoise.bandits.policies.registry`.
"""

import numpy as np

from equinoise._elementary import exp, log
from equinoise._jit import njit
from equinoise._random import next_word, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.bandits.policies.batches import best, fresh_batches, never_pulled, pull
from equinoise.bandits.rewards import Run, Tape, advance_rounds, own_words, play_rounds

_LN4 = 1.3862943611198906
_LN5_PLUS_1 = 2.6094379124341003


class Thompson(NamedTuple):
    """K arms, W lanes.

    pulls int64[K, W], reward_sum float64[K, W]: all rewards, as the analyst sees them; no choice reads them.
    batch_sum float64[K, W], left, length int64[K, W]: an arm's buffer, its free places and its size.
    private_sum float64[K, W], private_n int64[K, W]: the noised sum that was released last, and O. score
    float64[K, W]: scratch. key uint64[2], replicate uint64[W]: where posterior draws come from. epsilon.
    """

    pulls: Ints
    reward_sum: Floats
    batch_sum: Floats
    left: Ints
    length: Ints
    private_sum: Floats
    private_n: Ints
    score: Floats
    key: Words
    replicate: Words
    epsilon: float


def make_state(
    n_arms: int, lanes: int, horizon: int | None, epsilon: float, key: Words, first: int
) -> Thompson:
    """Return the state of the replicates first..first+lanes-1 before the first round; horizon is not used."""
    return Thompson(
        **fresh_batches(n_arms, lanes),
        key=np.array(key, dtype=np.uint64),
        replicate=np.arange(first, first + lanes, dtype=np.uint64),
        epsilon=float(epsilon),
    )


@njit
def choose(state: Thompson, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of round t (from 0): that of the largest posterior draw."""
    arm = never_pulled(state.pulls, lane)
    if arm >= 0:
        return arm
    bonus = 3.0 * np.log(t + 1.0) / state.epsilon
    for a in range(state.pulls.shape[0]):
        size = np.float64(state.private_n[a, lane])
        mu = min(max((state.private_sum[a, lane] + bonus) / size, 0.0), 1.0)
        state.score[a, lane] = draw_beta(
            own_words(state, lane, t, a), mu * size + 1.0, (1.0 - mu) * size + 1.0
        )
    return best(state.score, lane, tie_word, random_ties)


@njit
def update(state: Thompson, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Take the reward of round t (from 0); noise is a standard Laplace draw, used where a buffer is full."""
    if not pull(state, lane, arm, reward):
        return
    state.private_sum[arm, lane] = state.batch_sum[arm, lane] + noise / state.epsilon
    state.private_n[arm, lane] = state.length[arm, lane]
    state.batch_sum[arm, lane] = 0.0
    state.length[arm, lane] *= 2
    state.left[arm, lane] = state.length[arm, lane]


@njit
def advance(state: Thompson, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of all lanes; row 0 of the tape is round first."""
    advance_rounds(choose, update, state, tape, first, end, random_ties)


@njit
def play(state: Thompson, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


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
