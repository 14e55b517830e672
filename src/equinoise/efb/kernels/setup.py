"""Set-up of a learner, two passes up and one down the tree: first policy, exploration, longest strategy.

All passes go over infosets in their breadth-first numbers, so children come after parents and nothing
recurses. Pointer arrays are those of a :class:`equinoise.games.GameTree`.
"""

from __future__ import annotations

import math

from equinoise._jit import njit
from equinoise._typing import Floats, Ints


@njit
def first_policy(action_ptr: Ints, log_strategies: Floats) -> None:
    """Turn ln N(a) float64[A] into pi_1(a | s) = N(a) / N(s), in place."""
    for s in range(action_ptr.size - 1):
        largest = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            largest = max(largest, log_strategies[a])
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            log_strategies[a] = math.exp(log_strategies[a] - largest)
            total += log_strategies[a]
        for a in range(action_ptr[s], action_ptr[s + 1]):
            log_strategies[a] /= total


@njit
def action_shares(
    action_ptr: Ints, infoset_ptr: Ints, of_infoset: Floats, of_action: Floats, root_of_sum: bool
) -> None:
    """Fill of_action float64[A] and of_infoset float64[I] from the leaves up.

    With root_of_sum False these are kappa: kappa(a) = 1 + sum of kappa over child infosets,
    kappa(s) = sum of kappa(a). With True they are the roots of Q: Q(a) = 1 + sum of Q over child infosets,
    sqrt Q(s) = sum of sqrt Q(a).
    """
    for s in range(action_ptr.size - 2, -1, -1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            value = 1.0
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                value += of_infoset[c] * of_infoset[c] if root_of_sum else of_infoset[c]
            of_action[a] = math.sqrt(value) if root_of_sum else value
            total += of_action[a]
        of_infoset[s] = total


@njit
def split_exploration(
    action_ptr: Ints, infoset_ptr: Ints, of_infoset: Floats, of_action: Floats, at_root: float
) -> None:
    """Turn shares into exploration, in place, from the root down.

    gamma(root) = at_root, gamma(a) = gamma(s) share(a) / share(s), and a child infoset takes the value of
    its action. of_infoset float64[I] is overwritten by gamma(s).
    """
    of_infoset[0] = at_root
    for s in range(action_ptr.size - 1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total += of_action[a]
        for a in range(action_ptr[s], action_ptr[s + 1]):
            of_action[a] = of_infoset[s] * (of_action[a] / total)
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                of_infoset[c] = of_action[a]


@njit
def longest_strategy(action_ptr: Ints, infoset_ptr: Ints, of_infoset: Ints) -> int:
    """Return the most infosets that a reduced strategy visits; of_infoset int64[I] is scratch."""
    for s in range(action_ptr.size - 2, -1, -1):
        longest = 0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            visits = 0
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                visits += of_infoset[c]
            longest = max(longest, visits)
        of_infoset[s] = 1 + longest
    return of_infoset[0]


@njit
def log_widths(action_ptr: Ints, infoset_ptr: Ints, of_infoset: Floats) -> float:
    """Return the largest sum of ln(number of actions) over the infosets of a reduced strategy.

    The divergence of any reduced strategy from play that is uniform at every infoset; of_infoset float64[I]
    is scratch.
    """
    for s in range(action_ptr.size - 2, -1, -1):
        largest = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total = 0.0
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                total += of_infoset[c]
            largest = max(largest, total)
        of_infoset[s] = largest + math.log(action_ptr[s + 1] - action_ptr[s])
    return of_infoset[0]
