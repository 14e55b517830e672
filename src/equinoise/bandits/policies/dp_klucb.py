"""The policy dp-klucb: KL-UCB with a divergence that knows the Laplace noise (Azize et al., 2025).

Each arm is pulled in batches of 1, 2, 4, 8, ... rounds. At the end of a batch its sum, with fresh
Laplace(1/eps) noise, joins the arm's private sum; nothing is forgotten. The next batch goes to the arm of the
largest index, x = clip(private sum / n, 0, 1) and t the number of the round::

    max { q : d_eps(x, q) <= ln t / n },   d_eps(x, y) = min over z in [x, y] of eps (z - x) + kl(z, y).

One thing is ours: after each release the private sum of n rewards is put back into [0, n], where the true sum
is. That never moves it away from the true sum, and a wild draw in an early batch does not hide the best arm
for thousands of rounds. With means 0.75, 0.625, .., 0.25, eps = 0.1 and T = 100,000, over 4,000 replicates,
the mean regret falls from 695 to 669 and the largest from 13,000 to 2,800. ``clip_sums=False`` is the policy
of the source.

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


def make_state(
    n_arms: int, lanes: int, horizon: int | None, epsilon: float, clip_sums: bool = True
) -> Batches:
    """Return the state of `lanes` replicates before the first round.

    With `clip_sums` false the private sums are those of the source, wherever noise takes them.
    """
    return make_batches(n_arms, lanes, epsilon, clip=clip_sums)


@njit
def choose(state: Batches, lane: int, t: int, tie_word: Any, random_ties: bool) -> int:
    """Return the arm of round t (from 0): the one whose batch is open, else that of the largest index."""
    if state.current[lane] >= 0:
        return state.current[lane]
    arm = never_pulled(state.pulls, lane)
    if arm >= 0:
        return arm
    log_t = np.log(t + 1.0)
    for a in range(state.pulls.shape[0]):
        n = state.private_n[a, lane]
        mean = min(max(state.private_sum[a, lane] / n, 0.0), 1.0)
        state.score[a, lane] = log_odds_bound(mean, log_t / n, state.epsilon)
    return best(state.score, lane, tie_word, random_ties)


@njit
def update(state: Batches, lane: int, t: int, arm: int, reward: float, noise: float) -> None:
    """Take the reward of round t; noise is a standard Laplace draw, used where a batch ends."""
    state.current[lane] = arm
    if pull(state, lane, arm, reward):
        _release(state, lane, arm, noise)


@njit
def _release(state: Batches, lane: int, arm: int, noise: float) -> None:
    """Add a full batch to the private sum, with its own noise, and make the next one twice as long."""
    state.private_sum[arm, lane] += state.batch_sum[arm, lane] + noise / state.epsilon
    state.private_n[arm, lane] += state.length[arm, lane]
    if state.clip:
        total = max(state.private_sum[arm, lane], 0.0)
        state.private_sum[arm, lane] = min(total, np.float64(state.private_n[arm, lane]))
    state.batch_sum[arm, lane] = 0.0
    state.length[arm, lane] *= 2
    state.left[arm, lane] = state.length[arm, lane]
    state.current[lane] = -1


@njit
def advance(state: Batches, tape: Tape, first: int, end: int, random_ties: bool) -> None:
    """Play the rounds first..end-1 of all lanes, a batch at a time; row 0 of the tape is round first."""
    advance_batches(choose, _release, state, tape, first, end, random_ties)


@njit
def play(state: Batches, run: Run) -> None:
    """Play a run; see :func:`~equinoise.bandits.rewards.play_rounds`."""
    play_rounds(advance, state, run)


@njit
def log_odds_bound(x: float, budget: float, epsilon: float) -> float:
    """Return ln(q/(1-q)) of the largest q with d_eps(x, q) <= budget; infinity where q = 1 is allowed.

    Log-odds keep indices apart that a float64 near 1 cannot tell from 1. With y between x and the kink,
    where logit y = logit x + eps, the best z is x and d_eps is kl(x, y). Beyond the kink z is interior,
    logit z = logit y - eps, and d_eps(x, y) = -ln(1 - y + y e^-eps) - eps x, which has an inverse.

    Parameters
    ----------
    x : float
        In [0, 1].
    budget : float
        Positive.
    epsilon : float
        Positive; infinity gives the bound of KL-UCB.
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
