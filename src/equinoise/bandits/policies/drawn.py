"""Kernels of policies that draw each arm with a probability that they know.

Before a round the probabilities p of all arms are made from what is known and from words that are independent
of rewards; then another word draws the arm from p. So p is exact: the probability of each arm given all that
came before, and those words. No pull is forced: every arm has at least its part of the floor in every round.

Thompson sampling makes M joint draws from the posteriors Beta(a, b) of all arms, in which arm k has the
largest value W_k times, and keeps p until the next round whose number is a multiple of its batch::

    p_k = (1 - floor) W_k/M + floor/K.
"""

import numpy as np

from equinoise._elementary import exp, log
from equinoise._jit import njit
from equinoise._random import next_word, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.bandits.rewards import own_words

_LN4 = 1.3862943611198906
_TRIES = 32  # at a time


class Chances(NamedTuple):
    """With what probabilities W lanes draw their arms; no rows where they are not known."""

    share: Floats  # [K, W] those probabilities
    until: Ints  # [W] the first round in which they are old
    key: Words  # [2] where draws come from
    replicate: Words  # [W] likewise
    floor: float
    batch: int
    best: Floats  # [M] scratch, the largest value of each joint draw so far
    winner: Ints  # [M] and its arm
    tries: Floats  # [4, TRIES]


_NOBODY = np.empty((0, 0)), np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty((0, 0))


def make_chances(
    rows: int, lanes: int, key: Words | None, first: int, floor: float = 0.0, draws: int = 0, batch: int = 1
) -> Chances:
    """Return the chances of the replicates first..first+lanes-1: equal ones, that are old."""
    share, until, best, winner, tries = _NOBODY
    if rows:
        share, until = np.full((rows, lanes), 1.0 / rows), np.zeros(lanes, dtype=np.int64)
        best, winner, tries = np.empty(draws), np.empty(draws, dtype=np.int64), np.empty((4, _TRIES))
    address = np.array((0, 0) if key is None else key, dtype=np.uint64)
    replicate = np.arange(first, first + lanes, dtype=np.uint64)
    return Chances(share, until, address, replicate, float(floor), batch, best, winner, tries)


@njit
def draw_arm(chances: Chances, lane: int, t: int) -> int:
    """Return the arm that a word of round t draws, of entity K: those of posteriors are their arms."""
    left = uniform(own_words(chances, lane, t, chances.share.shape[0])[0])
    arm = 0
    for k in range(chances.share.shape[0]):
        if chances.share[k, lane] > 0.0:
            arm = k
            left -= chances.share[k, lane]
            if left < 0.0:
                break
    return arm


@njit(inline="always")
def sample(posterior: Any, state: Any, lane: int, t: int) -> int:
    """Return an arm drawn by Thompson sampling; posterior(state, lane, t, arm) are its a and b."""
    chances = state.chances
    if t >= chances.until[lane]:
        chances.until[lane] = t - t % chances.batch + chances.batch
        chances.best[:] = -1.0
        for k in range(chances.share.shape[0]):
            a, b = posterior(state, lane, t, k)
            _join(chances, lane, t, k, a, b)
        _count(chances, lane)
    return draw_arm(chances, lane, t)


@njit
def _join(chances: Chances, lane: int, t: int, arm: int, a: float, b: float) -> None:
    """Let an arm take part in the joint draws with Beta(a, b), a and b at least 1; of ties the first wins.

    A try takes two words. It is x = 1 - u^(1/b) where a is 1, and likewise where b is; else it comes from a
    log-logistic, and is kept or not (Cheng 1978, algorithm BB), in vector code.
    """
    u, v, x, fit = chances.tries[0], chances.tries[1], chances.tries[2], chances.tries[3]
    small, large, total = min(a, b), max(a, b), a + b
    beta = np.sqrt((total - 2.0) / (2.0 * a * b - total)) if small > 1.0 else 1.0
    slope, level = small + 1.0 / beta, total * log(total) - _LN4
    s0, s1, s2, s3 = own_words(chances, lane, t, arm)
    done = 0
    while done < chances.best.size:
        for i in range(_TRIES):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            u[i] = uniform(word)
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            v[i] = uniform(word)
        if small == 1.0:
            for i in range(_TRIES):
                x[i], fit[i] = 1.0 - exp(log(u[i]) / large), 0.0
        else:
            for i in range(_TRIES):
                step = beta * log(u[i] / (1.0 - u[i]))
                odds = small * exp(step)
                x[i] = odds / (large + odds)
                fit[i] = slope * step + level - total * log(large + odds) - log(u[i] * u[i] * v[i])
        for i in range(_TRIES):
            if fit[i] >= 0.0 and done < chances.best.size:
                value = x[i] if small == a else 1.0 - x[i]
                if value > chances.best[done]:
                    chances.best[done] = value
                    chances.winner[done] = arm
                done += 1


@njit
def _count(chances: Chances, lane: int) -> None:
    """Make probabilities of the joint draws that arms have won, and of the floor."""
    n_arms, draws = chances.share.shape[0], chances.best.size
    chances.share[:, lane] = 0.0
    for m in range(draws):
        chances.share[chances.winner[m], lane] += 1.0
    for k in range(n_arms):
        won = chances.share[k, lane] / draws
        chances.share[k, lane] = (1.0 - chances.floor) * won + chances.floor / n_arms
