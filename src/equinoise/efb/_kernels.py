"""Kernels of DP-EFB: draw a reduced strategy, play it, add noise, update. One trial costs what it visits.

Arrays travel in four named tuples. A trial visits infosets breadth first and writes position i of the
visit list for the i-th of them, so the children of a visit stand side by side:

* ``Plan``: the learner's tree and its exploration gamma(a), constant over a run.
* ``Weights``: one unnormalised weight an action; the policy is pi(a | s) = w(a) / sum of w over s. An update
  touches one weight an infoset, nothing is normalised. Infosets with more than 16 actions have sums of 16,
  of 16 x 16, ... weights (a flat tree of fan-out 16, top level first), so that a draw and an update cost
  O(log n).
* ``Visits``: scratch for one trial, as long as the longest reduced strategy.
* ``Chance``: the environment of a trial.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise._elementary import exp
from equinoise._intrinsics import prefetch
from equinoise._jit import njit
from equinoise._random import CHANCE, NOISE, STRATEGY, laplace, next_word, philox, uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ZERO = np.uint64(0)
_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one
_BLOCK = 16  # actions that a scan looks at; a sum tree's fan-out
_HIGH = 2.0**900  # a weight above asks for rescaling,
_LOW = 2.0**-900  # and one below;
_LEVEL = 700  # rescaling brings the largest weight of the infoset to about 2^700,
_FLOOR = 2.0**-1020  # and no weight falls below this, 1e-517 of the largest
_STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
_STEP_MAX = 80.0
_FACTOR_MAX = 2.0**115
_FACTOR_MIN = 2.0**-1000


PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
CHANCE_ACTION = np.dtype([("expected", np.float64), ("leaf", np.int64), ("loss", np.float64)])


class Plan(NamedTuple):
    """What a learner knows: action_ptr int64[I+1], actions PLAN_ACTION[A+1] (gamma(a), first child infoset).

    Fields that are read together lie together, since on a large tree a trial waits for memory.
    """

    action_ptr: Ints
    actions: NDArray[np.void]


class Weights(NamedTuple):
    """A policy, unnormalised: weight float64[A], sum_ptr int64[I], sums float64[any]."""

    weight: Floats
    sum_ptr: Ints
    sums: Floats


class Visits(NamedTuple):
    """The visit list of a trial, each array as long as the longest reduced strategy (m).

    infoset, action, child int64[m]: the infoset, its picked action, the position of that action's first
    child; reach float64[m]: probability of getting to the infoset; picked, others float64[m]: pi of the
    picked action and of all the others together; divisor float64[m]: mu(a) + gamma(a);
    word uint64[m] and value float64[m]: noise words and reported values; factor float64[m]: W, then Z.
    """

    infoset: Ints
    action: Ints
    child: Ints
    reach: Floats
    picked: Floats
    others: Floats
    divisor: Floats
    word: NDArray[np.uint64]
    value: Floats
    factor: Floats


class Chance(NamedTuple):
    """An environment: actions CHANCE_ACTION[A+1], infoset_cum float64[I], leaf_cum, leaf_loss float64[L].

    Of an action: g(a), its first leaf, and the loss of that leaf, which spares most plays a look-up. Of its
    children the first with u < cum comes.
    """

    actions: NDArray[np.void]
    infoset_cum: Floats
    leaf_cum: Floats
    leaf_loss: Floats


@njit(forceinline=True)
def _top_shift(width: int) -> int:
    """Return 4 times the number of levels above the weights of a sum tree over `width` actions."""
    shift = 4
    while width > _BLOCK << shift:
        shift += 4
    return shift


@njit(forceinline=True)
def _level_size(width: int, shift: int) -> int:
    """Return the number of entries on a level: each stands for 2^shift actions."""
    return (width + (1 << shift) - 1) >> shift


@njit(forceinline=True)
def _block_sum(values: Floats, start: int, stop: int) -> float:
    """Return the sum of at most 16 values; a whole block is added in four chains at once."""
    if stop - start == _BLOCK:
        k = _at(start)
        a = (values[k] + values[k + _at(4)]) + (values[k + _at(8)] + values[k + _at(12)])
        b = (values[k + _at(1)] + values[k + _at(5)]) + (values[k + _at(9)] + values[k + _at(13)])
        c = (values[k + _at(2)] + values[k + _at(6)]) + (values[k + _at(10)] + values[k + _at(14)])
        d = (values[k + _at(3)] + values[k + _at(7)]) + (values[k + _at(11)] + values[k + _at(15)])
        return (a + b) + (c + d)
    total = 0.0
    for j in range(start, stop):
        total += values[_at(j)]
    return total


@njit(forceinline=True)
def _find(values: Floats, start: int, stop: int, target: float) -> Any:
    """Return (k, before): the first k whose running sum passes target, and the sum left of it.

    The whole block is looked at: a loop that left early would be a branch on a coin.
    """
    k = start
    running = 0.0
    before = 0.0
    for j in range(start, stop - 1):
        running += values[_at(j)]
        passed = running <= target
        k += int(passed)
        before = running if passed else before
    return k, before


@njit(forceinline=True)
def _others(values: Floats, start: int, stop: int, k: int, total: float) -> float:
    """Return the sum of a block without entry k; added up anew where total - value would cancel."""
    if values[k] <= 0.5 * total:
        return total - values[k]
    rest = 0.0
    for j in range(start, stop):
        if j != k:
            rest += values[j]
    return rest


@njit
def sum_sizes(action_ptr: Ints, sum_ptr: Ints) -> int:
    """Fill sum_ptr int64[I] with where each wide infoset's sums start; return how many there are in all."""
    size = 0
    for s in range(action_ptr.size - 1):
        sum_ptr[s] = size
        width = action_ptr[s + 1] - action_ptr[s]
        if width > _BLOCK:
            for shift in range(4, _top_shift(width) + 1, 4):
                size += _level_size(width, shift)
    return size


@njit
def _rebuild(weights: Weights, first: int, width: int, s: int) -> None:
    """Compute all sums of infoset s from its weights, bottom level first."""
    top = _top_shift(width)
    base = weights.sum_ptr[s]
    for shift in range(4, top + 1, 4):
        start = base
        for above in range(top, shift, -4):
            start += _level_size(width, above)
        below = start + _level_size(width, shift)
        for k in range(_level_size(width, shift)):
            low = k * _BLOCK
            high = min(low + _BLOCK, _level_size(width, shift - 4))
            if shift == 4:
                weights.sums[start + k] = _block_sum(weights.weight, first + low, first + high)
            else:
                weights.sums[start + k] = _block_sum(weights.sums, below + low, below + high)


@njit
def build_sums(action_ptr: Ints, weights: Weights) -> None:
    """Compute the sums of every wide infoset."""
    for s in range(action_ptr.size - 1):
        width = action_ptr[s + 1] - action_ptr[s]
        if width > _BLOCK:
            _rebuild(weights, action_ptr[s], width, s)


@njit(forceinline=True)
def _pick_narrow(weight: Floats, first: int, width: int, u: float) -> Any:
    """Draw from an infoset of at most 4 actions: return (action, its weight, the others' sum)."""
    sum_1 = weight[first]
    sum_2 = sum_1 + (weight[first + 1] if width > 1 else 0.0)
    sum_3 = sum_2 + (weight[first + 2] if width > 2 else 0.0)
    total = sum_3 + (weight[first + 3] if width > 3 else 0.0)
    target = u * total
    k = int(target >= sum_1) + int(target >= sum_2) + int(target >= sum_3)
    a = first + (k if k < width else width - 1)
    return a, weight[a], _others(weight, first, first + width, a, total)


@njit(forceinline=True)
def _pick_wide(weights: Weights, actions: NDArray[np.void], first: int, width: int, s: int, u: float) -> Any:
    """Draw from a wide infoset, from the top sums down: return (action, its weight, the others' sum)."""
    shift = _top_shift(width)
    base = weights.sum_ptr[s]
    size = _level_size(width, shift)
    total = _block_sum(weights.sums, base, base + size)
    target = u * total
    low = 0
    rest = 0.0
    while shift > 0:
        high = min(low + _BLOCK, size)
        k, before = _find(weights.sums, base + low, base + high, target)
        target -= before
        rest += _others(weights.sums, base + low, base + high, k, total)
        total = weights.sums[k]
        low = (k - base) * _BLOCK
        base += size
        shift -= 4
        size = _level_size(width, shift)
    for k in range(0, _BLOCK, 4):
        prefetch(actions, first + low + k)
    high = min(low + _BLOCK, width)
    a, _ = _find(weights.weight, first + low, first + high, target)
    return a, weights.weight[a], rest + _others(weights.weight, first + low, first + high, a, total)


@njit(forceinline=True)
def _update_wide(weights: Weights, first: int, width: int, s: int, a: int) -> None:
    """Recompute the sums above one weight: never adjusted by differences, so they do not drift."""
    top = _top_shift(width)
    base = weights.sum_ptr[s]
    for above in range(top, 4, -4):
        base += _level_size(width, above)
    block = (a - first) >> 4
    start = first + block * _BLOCK
    weights.sums[base + block] = _block_sum(weights.weight, start, min(start + _BLOCK, first + width))
    for shift in range(8, top + 1, 4):
        below = base
        size = _level_size(width, shift - 4)
        base -= _level_size(width, shift)
        block >>= 4
        start = below + block * _BLOCK
        weights.sums[base + block] = _block_sum(weights.sums, start, min(start + _BLOCK, below + size))


@njit
def _rescale(weights: Weights, first: int, width: int, s: int) -> None:
    """Multiply an infoset's weights by a power of two that brings the largest to about 2^700.

    Ratios stay exact down to 2^-1720; a weight that would fall below is kept at 2^-1020, so that it can
    grow again.
    """
    largest = 0.0
    for a in range(first, first + width):
        largest = max(largest, weights.weight[a])
    exponent = _LEVEL - np.int64(np.floor(np.log2(largest)))
    half = exponent // 2  # in two steps, since 2^exponent alone may overflow
    one, two = 2.0**half, 2.0 ** (exponent - half)
    for a in range(first, first + width):
        weights.weight[a] = max(weights.weight[a] * one * two, _FLOOR)
    if width > _BLOCK:
        _rebuild(weights, first, width, s)


@njit(forceinline=True)
def draw(
    plan: Plan, weights: Weights, visits: Visits, key_0: Any, key_1: Any, replicate: Any, trial: Any
) -> int:
    """Draw a reduced strategy from the policy, breadth first; fill the visit list and return its length n.

    At each visited infoset s an action is drawn from pi(. | s) = w / sum of w over s. mu(a) is the product of
    pi along the path, ``divisor`` is mu(a) + gamma(a). Position i takes word i of the stream (key; 0,
    trial, replicate, STRATEGY).
    """
    action_ptr, actions = plan
    weight = weights.weight
    s0, s1, s2, s3 = philox(key_0, key_1, _ZERO, np.uint64(trial), np.uint64(replicate), STRATEGY)
    visits.infoset[0] = 0
    visits.reach[0] = 1.0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = action_ptr[s]
        width = action_ptr[s + 1] - first
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        if width == 2:
            left = weight[first]
            second = int(u * (left + weight[first + 1]) >= left)
            a = first + second
            w = weight[a]
            rest = weight[first + 1 - second]  # loads, not a branch on a coin
        elif width <= 4:
            a, w, rest = _pick_narrow(weight, first, width, u)
        elif width <= _BLOCK:
            total = _block_sum(weight, first, first + width)
            a, _ = _find(weight, first, first + width, u * total)
            w = weight[a]
            rest = _others(weight, first, first + width, a, total)
        else:
            a, w, rest = _pick_wide(weights, actions, first, width, s, u)
        scale = 1.0 / (w + rest)
        mu = visits.reach[i] * (w * scale)
        visits.action[i] = a
        visits.picked[i] = w * scale
        visits.others[i] = rest * scale
        visits.divisor[i] = mu + actions[a]["exploration"]
        visits.child[i] = n
        for c in range(actions[a]["child"], actions[a + 1]["child"]):
            visits.infoset[n] = c
            visits.reach[n] = mu
            prefetch(weight, action_ptr[c])
            prefetch(weight, action_ptr[c] + 8)
            n += 1
        i += 1
    return n


@njit(forceinline=True)
def play(
    plan: Plan, chance: Chance, visits: Visits, key_0: Any, key_1: Any, replicate: Any, trial: Any
) -> Any:
    """Walk the drawn strategy against the environment; return (position of the last action, loss).

    The d-th move of the environment takes word d of the stream (key; 0, trial, replicate, CHANCE): the
    address names no policy, so different learners meet the same luck.
    """
    s0, s1, s2, s3 = philox(key_0, key_1, _ZERO, np.uint64(trial), np.uint64(replicate), CHANCE)
    i = 0
    while True:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        a = visits.action[i]
        low, high = plan.actions[a]["child"], plan.actions[a + 1]["child"]
        if low == high or u >= chance.infoset_cum[high - 1]:
            break
        i = visits.child[i] + _first_above(chance.infoset_cum, low, high, u) - low
    low, high = chance.actions[a]["leaf"], chance.actions[a + 1]["leaf"]
    if high - low == 1:
        return i, chance.actions[a]["loss"]
    return i, chance.leaf_loss[_first_above(chance.leaf_cum, low, high, u)]


@njit(forceinline=True)
def _first_above(cumulative: Floats, low: int, high: int, u: float) -> int:
    """Return the first k in [low, high) with u < cumulative[k], by bisection; one is known to exist."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        below = u < cumulative[middle]
        high = middle if below else high
        low = low if below else middle + 1
    return low


@njit(forceinline=True)
def add_noise(
    value: Floats,
    word: NDArray[np.uint64],
    n: int,
    scale: float,
    key_0: Any,
    key_1: Any,
    replicate: Any,
    trial: Any,
) -> None:
    """Set value[i] = xi_i, n independent Laplace(scale) draws; scale 0 gives zeros. word is scratch.

    Position i takes word i of the stream (key; 0, trial, replicate, NOISE). The loss is added to the
    value of the last action afterwards.
    """
    if scale == 0.0:
        for i in range(n):
            value[i] = 0.0
        return
    s0, s1, s2, s3 = philox(key_0, key_1, _ZERO, np.uint64(trial), np.uint64(replicate), NOISE)
    for i in range(n):
        word[i], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    for i in range(n):
        value[i] = scale * laplace(word[i])


@njit(forceinline=True)
def update(plan: Plan, weights: Weights, visits: Visits, n: int, learning_rate: float) -> None:
    """Update the policy by a report, exactly as exponential weights over reduced strategies would.

    lhat(a) = y(a) / (mu(a) + gamma(a)); bottom-up over the visits, a the picked action,
    W = exp(-eta lhat(a)) times Z of the child infosets of a, w(a) becomes w(a) W, and
    Z(s) = sum of the new weights over the old = pi(others) + pi(a) W.
    """
    factor, value, divisor = visits.factor, visits.value, visits.divisor
    for i in range(n):
        step = -learning_rate * value[i] / divisor[i]
        factor[i] = exp(min(max(step, _STEP_MIN), _STEP_MAX))
    end = n  # the children of visit i are the visits child[i] .. end - 1
    for i in range(n - 1, -1, -1):
        start = visits.child[i]
        w = factor[i]
        for c in range(start, end):
            w *= factor[c]
        end = start
        w = min(max(w, _FACTOR_MIN), _FACTOR_MAX)
        factor[i] = visits.others[i] + visits.picked[i] * w
        a = visits.action[i]
        _multiply(plan, weights, visits.infoset[i], a, w)


@njit(forceinline=True)
def _multiply(plan: Plan, weights: Weights, s: int, a: int, by: float) -> None:
    """Multiply the weight of action a of infoset s, keep it in range, and its sums true."""
    new = max(weights.weight[a] * by, _FLOOR)
    weights.weight[a] = new
    first = plan.action_ptr[s]
    width = plan.action_ptr[s + 1] - first
    if width > _BLOCK:
        _update_wide(weights, first, width, s, a)
    if new > _HIGH or new < _LOW:
        _rescale(weights, first, width, s)


@njit
def run_trials(
    plan: Plan,
    weights: Weights,
    visits: Visits,
    chance: Chance,
    keys: NDArray[np.uint64],
    replicate: int,
    start: int,
    stop: int,
    learning_rate: float,
    scale: float,
) -> Any:
    """Run the trials start..stop-1 of one replicate against one environment.

    Parameters
    ----------
    keys : uint64[2]
        The key of all streams.
    learning_rate, scale : float
        eta, and the scale of the Laplace noise on each reported value (0 for none).

    Returns
    -------
    expected, observed : float
        Sums over the trials of the drawn strategy's expected loss, sum of g(a) over its actions, and of
        the loss that the user saw.
    """
    key_0, key_1 = keys[0], keys[1]
    expected = 0.0
    observed = 0.0
    for trial in range(start, stop):
        n = draw(plan, weights, visits, key_0, key_1, replicate, trial)
        for i in range(n):
            expected += chance.actions[visits.action[i]]["expected"]
        last, loss = play(plan, chance, visits, key_0, key_1, replicate, trial)
        observed += loss
        if learning_rate > 0.0:
            add_noise(visits.value, visits.word, n, scale, key_0, key_1, replicate, trial)
            visits.value[last] += loss
            update(plan, weights, visits, n, learning_rate)
    return expected, observed


@njit
def policy(action_ptr: Ints, weight: Floats, out: Floats) -> None:
    """Fill out float64[A] with the behaviour policy w(a) / sum of w over its infoset."""
    for s in range(action_ptr.size - 1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total += weight[a]
        for a in range(action_ptr[s], action_ptr[s + 1]):
            out[a] = weight[a] / total
