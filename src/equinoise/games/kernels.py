"""Passes over the pointer arrays of a one-sided tree.

Infosets are numbered breadth first, so a child has a larger number than its parent: a pass down is a loop
over rising numbers, a pass up one over falling numbers, and no depth is too deep. The pointer arrays are
those of :class:`equinoise.games.GameTree`: int64 ``action_ptr`` [I+1], ``infoset_ptr`` [A+1], ``leaf_ptr``
[A+1], with I infosets, A actions and L leaves.

Each pass is a function that makes the arrays of the result, next to the kernel that fills them. Inputs reach
the kernel as read-only views, a type of its own to the compiler, so that every kernel is compiled once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise._jit import njit

__all__ = [
    "action_loss",
    "best_response_value",
    "child_sums",
    "cumulative",
    "infoset_sum",
    "log_strategies",
    "realization_plan",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def log_strategies(action_ptr: Ints, infoset_ptr: Ints) -> Floats:
    """Count the reduced strategies below every action, as natural logarithms.

    ``ln N(a) = sum of ln N(s)`` over the child infosets s of a, and ``N(s) = sum of N(a)`` over the actions
    of s, taken as ``m + ln(sum of exp(ln N(a) - m))`` with m the largest term, so that no count overflows.

    Parameters
    ----------
    action_ptr, infoset_ptr : int64[I+1], int64[A+1]

    Returns
    -------
    float64[A]
        ``ln N(a)``; zero for an action that leads to leaves only.
    """
    of_action = np.empty(len(infoset_ptr) - 1)
    _log_strategies(_fixed(action_ptr), _fixed(infoset_ptr), of_action, np.empty(len(action_ptr) - 1))
    return of_action


@njit
def _log_strategies(action_ptr: Ints, infoset_ptr: Ints, of_action: Floats, of_infoset: Floats) -> None:
    for s in range(action_ptr.shape[0] - 2, -1, -1):
        largest = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total = 0.0
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                total += of_infoset[child]
            of_action[a] = total
            largest = max(largest, total)
        scaled = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            scaled += math.exp(of_action[a] - largest)
        of_infoset[s] = largest + math.log(scaled)


def child_sums(
    infoset_ptr: Ints, leaf_ptr: Ints, infoset_prob: Floats, leaf_prob: Floats
) -> tuple[int, float]:
    """Find the action whose children's probabilities miss one by most.

    Parameters
    ----------
    infoset_ptr, leaf_ptr : int64[A+1], int64[A+1]
    infoset_prob, leaf_prob : float64[I], float64[L]

    Returns
    -------
    action : int
        The action with the largest ``|sum - 1|``; the first of several.
    total : float
        The sum over its children.
    """
    action, total = _child_sums(
        _fixed(infoset_ptr), _fixed(leaf_ptr), _fixed(infoset_prob), _fixed(leaf_prob)
    )
    return int(action), float(total)


@njit
def _child_sums(
    infoset_ptr: Ints, leaf_ptr: Ints, infoset_prob: Floats, leaf_prob: Floats
) -> tuple[int, float]:
    worst, total_of_worst = 0, 1.0
    for a in range(infoset_ptr.shape[0] - 1):
        total = 0.0
        for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
            total += infoset_prob[child]
        for leaf in range(leaf_ptr[a], leaf_ptr[a + 1]):
            total += leaf_prob[leaf]
        if abs(total - 1.0) > abs(total_of_worst - 1.0):
            worst, total_of_worst = a, total
    return worst, total_of_worst


def cumulative(
    infoset_ptr: Ints, leaf_ptr: Ints, infoset_prob: Floats, leaf_prob: Floats
) -> tuple[Floats, Floats]:
    """Add up the probabilities over the children of every action, infosets first, then leaves.

    From the last child of positive probability on the sum is exactly one, so that the first child with
    ``u < cumulative`` exists for every u in (0, 1) and never has probability zero.

    Parameters
    ----------
    infoset_ptr, leaf_ptr : int64[A+1], int64[A+1]
    infoset_prob, leaf_prob : float64[I], float64[L]

    Returns
    -------
    infoset_cum, leaf_cum : float64[I], float64[L]
        The root, which is nobody's child, holds one.
    """
    infoset_cum, leaf_cum = np.ones(len(infoset_prob)), np.ones(len(leaf_prob))
    _cumulative(
        _fixed(infoset_ptr), _fixed(leaf_ptr), _fixed(infoset_prob), _fixed(leaf_prob), infoset_cum, leaf_cum
    )
    return infoset_cum, leaf_cum


@njit
def _cumulative(
    infoset_ptr: Ints,
    leaf_ptr: Ints,
    infoset_prob: Floats,
    leaf_prob: Floats,
    infoset_cum: Floats,
    leaf_cum: Floats,
) -> None:
    for a in range(infoset_ptr.shape[0] - 1):
        total = 0.0
        for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
            total += infoset_prob[child]
            infoset_cum[child] = min(total, 1.0)
        for leaf in range(leaf_ptr[a], leaf_ptr[a + 1]):
            total += leaf_prob[leaf]
            leaf_cum[leaf] = min(total, 1.0)
        leaf = leaf_ptr[a + 1] - 1
        while leaf >= leaf_ptr[a] and leaf_prob[leaf] == 0.0:
            leaf_cum[leaf] = 1.0
            leaf -= 1
        if leaf >= leaf_ptr[a]:
            leaf_cum[leaf] = 1.0
            continue
        child = infoset_ptr[a + 1] - 1
        while infoset_prob[child] == 0.0:
            infoset_cum[child] = 1.0
            child -= 1
        infoset_cum[child] = 1.0


def action_loss(
    action_ptr: Ints,
    infoset_ptr: Ints,
    leaf_ptr: Ints,
    infoset_prob: Floats,
    leaf_prob: Floats,
    leaf_loss: Floats,
) -> Floats:
    """Weigh what each action loses at its own leaves by the chance that the environment lets it be reached.

    ``g(a) = r(s) * sum of leaf_prob * leaf_loss`` over the leaves of a, an action of s; ``r(root) = 1`` and a
    child infoset has r of its parent times its own probability.

    Parameters
    ----------
    action_ptr, infoset_ptr, leaf_ptr : int64[I+1], int64[A+1], int64[A+1]
    infoset_prob, leaf_prob, leaf_loss : float64[I], float64[L], float64[L]

    Returns
    -------
    float64[A]
    """
    result = np.empty(len(infoset_ptr) - 1)
    _action_loss(
        _fixed(action_ptr),
        _fixed(infoset_ptr),
        _fixed(leaf_ptr),
        _fixed(infoset_prob),
        _fixed(leaf_prob),
        _fixed(leaf_loss),
        np.ones(len(infoset_prob)),
        result,
    )
    return result


@njit
def _action_loss(
    action_ptr: Ints,
    infoset_ptr: Ints,
    leaf_ptr: Ints,
    infoset_prob: Floats,
    leaf_prob: Floats,
    leaf_loss: Floats,
    reach: Floats,
    result: Floats,
) -> None:
    for s in range(action_ptr.shape[0] - 1):
        for a in range(action_ptr[s], action_ptr[s + 1]):
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                reach[child] = reach[s] * infoset_prob[child]
            total = 0.0
            for leaf in range(leaf_ptr[a], leaf_ptr[a + 1]):
                total += leaf_prob[leaf] * leaf_loss[leaf]
            result[a] = reach[s] * total


def best_response_value(action_ptr: Ints, infoset_ptr: Ints, loss: Floats) -> tuple[float, Floats]:
    """Find the reduced strategy of least loss by backward induction.

    ``V(a) = g(a) + sum of V(s)`` over the child infosets of a, and ``V(s) = min of V(a)``; the first of
    several best actions is taken.

    Parameters
    ----------
    action_ptr, infoset_ptr : int64[I+1], int64[A+1]
    loss : float64[A]
        ``g(a)``, for one environment or summed over trials.

    Returns
    -------
    value : float
        ``V(root)``.
    policy : float64[A]
        One at the best action of every infoset, zero elsewhere.
    """
    value, policy = np.empty(len(action_ptr) - 1), np.zeros(len(infoset_ptr) - 1)
    _best_response_value(_fixed(action_ptr), _fixed(infoset_ptr), _fixed(loss), value, policy)
    return float(value[0]), policy


@njit
def _best_response_value(
    action_ptr: Ints, infoset_ptr: Ints, loss: Floats, value: Floats, policy: Floats
) -> None:
    for s in range(action_ptr.shape[0] - 2, -1, -1):
        best, least = action_ptr[s], np.inf
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total = loss[a]
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                total += value[child]
            if total < least:
                best, least = a, total
        value[s] = least
        policy[best] = 1.0


def realization_plan(action_ptr: Ints, infoset_ptr: Ints, policy: Floats) -> Floats:
    """Multiply a behaviour policy along the path to every action.

    ``mu(a) = mu(parent action) * pi(a)``, and ``mu(a) = pi(a)`` at the root.

    Parameters
    ----------
    action_ptr, infoset_ptr : int64[I+1], int64[A+1]
    policy : float64[A]

    Returns
    -------
    float64[A]
    """
    result = np.empty(len(infoset_ptr) - 1)
    _realization_plan(
        _fixed(action_ptr), _fixed(infoset_ptr), _fixed(policy), np.ones(len(action_ptr) - 1), result
    )
    return result


@njit
def _realization_plan(
    action_ptr: Ints, infoset_ptr: Ints, policy: Floats, reach: Floats, result: Floats
) -> None:
    for s in range(action_ptr.shape[0] - 1):
        for a in range(action_ptr[s], action_ptr[s + 1]):
            result[a] = reach[s] * policy[a]
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                reach[child] = result[a]


def infoset_sum(action_ptr: Ints, policy: Floats) -> tuple[int, float]:
    """Find the infoset whose action probabilities miss one by most.

    Parameters
    ----------
    action_ptr : int64[I+1]
    policy : float64[A]

    Returns
    -------
    infoset : int
        The first of several.
    total : float
        The sum over its actions.
    """
    infoset, total = _infoset_sum(_fixed(action_ptr), _fixed(policy))
    return int(infoset), float(total)


@njit
def _infoset_sum(action_ptr: Ints, policy: Floats) -> tuple[int, float]:
    worst, total_of_worst = 0, 1.0
    for s in range(action_ptr.shape[0] - 1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total += policy[a]
        if abs(total - 1.0) > abs(total_of_worst - 1.0):
            worst, total_of_worst = s, total
    return worst, total_of_worst
