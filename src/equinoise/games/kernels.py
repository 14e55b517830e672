"""Passes over the pointer arrays of a one-sided tree.

Infosets are numbered breadth first, so a child has a larger number than its parent: a pass down is a loop
over rising numbers, a pass up one over falling numbers, and no depth is too deep. The pointer arrays are
those of :class:`equinoise.games.GameTree`, with I infosets, A actions and L leaves.

Each pass is a function that makes the arrays of the result, next to the kernel that fills them. Inputs reach
the kernel as a tuple of read-only views, a type of its own to the compiler, so that each is compiled once.
"""

import math

import numpy as np

from equinoise._jit import njit
from equinoise._typing import Any, Array, Floats, Ints, Iterable


def _run(kernel: Any, inputs: Iterable[Array], *results: Array) -> Any:
    views = [array.view() for array in inputs]
    for view in views:
        view.flags.writeable = False
    return kernel(tuple(views), *results)


def log_strategies(action_ptr: Ints, infoset_ptr: Ints) -> Floats:
    """Return ln N(a) float64[A], N(a) the number of reduced strategies below an action.

    ``ln N(a) = sum of ln N(s)`` over the child infosets s of a, and ``N(s) = sum of N(a)`` over the actions
    of s, taken as ``m + ln(sum of exp(ln N(a) - m))`` with m the largest term, so that no count overflows.
    """
    of_action = np.empty(len(infoset_ptr) - 1)
    _run(_log_strategies, (action_ptr, infoset_ptr), of_action, np.empty(len(action_ptr) - 1))
    return of_action


@njit
def _log_strategies(tree: tuple[Ints, Ints], of_action: Floats, of_infoset: Floats) -> None:
    action_ptr, infoset_ptr = tree
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


def child_sums(infoset_ptr: Ints, leaf_ptr: Ints, *probabilities: Floats) -> tuple[int, float]:
    """Return the first action whose children, infosets and leaves, miss a sum of one most, and that sum."""
    action, total = _run(_child_sums, (infoset_ptr, leaf_ptr, *probabilities))
    return int(action), float(total)


@njit
def _child_sums(given: Any) -> tuple[int, float]:
    infoset_ptr, leaf_ptr, infoset_prob, leaf_prob = given
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


def cumulative(infoset_ptr: Ints, leaf_ptr: Ints, *probabilities: Floats) -> tuple[Floats, ...]:
    """Return :attr:`equinoise.games.Environment.cumulative`; the root, which is nobody's child, holds one.

    From the last child of positive probability on the sum is exactly one.
    """
    sums = tuple(np.ones(len(each)) for each in probabilities)
    _run(_cumulative, (infoset_ptr, leaf_ptr, *probabilities), *sums)
    return sums


@njit
def _cumulative(given: Any, infoset_cum: Floats, leaf_cum: Floats) -> None:
    infoset_ptr, leaf_ptr, infoset_prob, leaf_prob = given
    for a in range(infoset_ptr.shape[0] - 1):
        total = 0.0
        for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
            total += infoset_prob[child]
            infoset_cum[child] = min(total, 1.0)
        for leaf in range(leaf_ptr[a], leaf_ptr[a + 1]):
            total += leaf_prob[leaf]
            leaf_cum[leaf] = min(total, 1.0)
        for leaf in range(leaf_ptr[a + 1] - 1, leaf_ptr[a] - 1, -1):
            leaf_cum[leaf] = 1.0
            if leaf_prob[leaf] > 0.0:
                break
        else:
            for child in range(infoset_ptr[a + 1] - 1, infoset_ptr[a] - 1, -1):
                infoset_cum[child] = 1.0
                if infoset_prob[child] > 0.0:
                    break


def mean_loss(tree: Any, *chance: Floats) -> tuple[Floats, Floats]:
    """Return the sum of leaf_prob * leaf_loss over the leaves of each action, and r of each infoset.

    ``r(root) = 1``, and a child infoset has r of its parent times its own probability. `chance` is
    infoset_prob float64[I], leaf_prob float64[L] and leaf_loss float64[L].
    """
    result, reach = np.empty(tree.n_actions), np.ones(tree.n_infosets)
    _run(_mean_loss, (tree.action_ptr, tree.infoset_ptr, tree.leaf_ptr, *chance), reach, result)
    return result, reach


@njit
def _mean_loss(given: Any, reach: Floats, result: Floats) -> None:
    action_ptr, infoset_ptr, leaf_ptr, infoset_prob, leaf_prob, leaf_loss = given
    for s in range(action_ptr.shape[0] - 1):
        for a in range(action_ptr[s], action_ptr[s + 1]):
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                reach[child] = reach[s] * infoset_prob[child]
            total = 0.0
            for leaf in range(leaf_ptr[a], leaf_ptr[a + 1]):
                total += leaf_prob[leaf] * leaf_loss[leaf]
            result[a] = total


def best_response_value(action_ptr: Ints, infoset_ptr: Ints, loss: Floats) -> tuple[float, Floats]:
    """Find the reduced strategy of least loss by backward induction.

    ``V(a) = g(a) + sum of V(s)`` over the child infosets of a, and ``V(s) = min of V(a)``; `loss` float64[A]
    is ``g(a)``. Returns ``V(root)`` and float64[A], one at the first best action of every infoset, else zero.
    """
    value, policy = np.empty(len(action_ptr) - 1), np.zeros(len(infoset_ptr) - 1)
    _run(_best_response_value, (action_ptr, infoset_ptr, loss), value, policy)
    return float(value[0]), policy


@njit
def _best_response_value(given: tuple[Ints, Ints, Floats], value: Floats, policy: Floats) -> None:
    action_ptr, infoset_ptr, loss = given
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
    """Return ``mu(a) = mu(parent action) * pi(a)`` float64[A], and ``mu(a) = pi(a)`` at the root."""
    result, reach = np.empty(len(infoset_ptr) - 1), np.ones(len(action_ptr) - 1)
    _run(_realization_plan, (action_ptr, infoset_ptr, policy), reach, result)
    return result


@njit
def _realization_plan(given: tuple[Ints, Ints, Floats], reach: Floats, result: Floats) -> None:
    action_ptr, infoset_ptr, policy = given
    for s in range(action_ptr.shape[0] - 1):
        for a in range(action_ptr[s], action_ptr[s + 1]):
            result[a] = reach[s] * policy[a]
            for child in range(infoset_ptr[a], infoset_ptr[a + 1]):
                reach[child] = result[a]
