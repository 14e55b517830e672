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

import math
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
_HIGH = 2.0**900  # a weight above asks for a shift of exponents,
_LOW = 2.0**-900  # and one below;
_LEVEL = 700  # it brings the largest weight of the infoset to about 2^700,
_FLOOR = 2.0**-1020  # and no weight falls below this, 1e-517 of the largest
_STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
_STEP_MAX = 80.0
_FACTOR_MAX = 2.0**115
_FACTOR_MIN = 2.0**-1000

PLAN_INFOSET = np.dtype([("first", np.int64), ("exploration", np.float64)])
PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
CHANCE_ACTION = np.dtype([("leaf", np.int64), ("loss", np.float64)])


class Plan(NamedTuple):
    """What a learner knows: infosets PLAN_INFOSET[I+1], actions PLAN_ACTION[A+1].

    Of an infoset: its first action, and gamma where all its actions share one and none leads to another
    infoset, else -1; most infosets are of that kind. Of an action: gamma(a), its first child infoset. Fields
    that are read together lie together, since on a large tree a trial waits for memory.
    """

    infosets: NDArray[np.void]
    actions: NDArray[np.void]


class Weights(NamedTuple):
    """A policy, unnormalised: weight float64[A+3], sum_ptr int64[I], sums float64[any+3].

    The three at the end are padding: a block may be read a little too far.
    """

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
    """An environment: action_loss float64[A], actions CHANCE_ACTION[A+1], infoset_cum float64[I], leaf_cum,
    leaf_loss float64[L].

    Of an action: g(a); its first leaf, and the loss of that leaf, which spares most plays a look-up. Of its
    children the first with u < cum comes.
    """

    action_loss: Floats
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
def _sum_few(values: Floats, start: int, width: int) -> float:
    """Return the sum of the first 4 values, of fewer where width is less, 0 where it is not positive."""
    k = _at(start)
    if width >= 4:
        return (values[k] + values[k + _at(1)]) + (values[k + _at(2)] + values[k + _at(3)])
    total = 0.0
    if width > 0:
        total = values[k]
    if width > 1:
        total += values[k + _at(1)]
    if width > 2:
        total += values[k + _at(2)]
    return total


@njit(forceinline=True)
def _quarters(values: Floats, start: int, width: int) -> Any:
    """Return the sums of a block of at most 16 values, four by four."""
    return (
        _sum_few(values, start, width),
        _sum_few(values, start + 4, width - 4),
        _sum_few(values, start + 8, width - 8),
        _sum_few(values, start + 12, width - 12),
    )


@njit(forceinline=True)
def _block_sum(values: Floats, start: int, width: int) -> float:
    """Return the sum of at most 16 values."""
    a, b, c, d = _quarters(values, start, width)
    return (a + b) + (c + d)


@njit(forceinline=True)
def _find(values: Floats, start: int, width: int, quarters: Any, target: float) -> Any:
    """Return (k, left): the first k whose running sum passes target, and how far target is into value k.

    First the quarter, then the value in it, by comparisons that all happen: leaving early would be a branch
    on a coin. Up to 3 values behind the block are read, and never matter.
    """
    one, two, three = _running(quarters[0], quarters[1], quarters[2])
    quarter, left = _place(one, two, three, target, (width - 1) >> 2)
    k = start + 4 * quarter
    first = _at(k)
    one, two, three = _running(values[first], values[first + _at(1)], values[first + _at(2)])
    place, left = _place(one, two, three, left, width - 1 - 4 * quarter)
    return k + place, left


@njit(forceinline=True)
def _running(a: float, b: float, c: float) -> Any:
    """Return the running sums of three values."""
    return a, a + b, (a + b) + c


@njit(forceinline=True)
def _place(one: float, two: float, three: float, target: float, last: int) -> Any:
    """Return (number of running sums up to target, at most last; target less the largest of these)."""
    below = one if target >= one else 0.0
    below = two if target >= two else below
    below = three if target >= three else below
    k = int(target >= one) + int(target >= two) + int(target >= three)
    return (k if k < last else last), target - below


@njit(forceinline=True)
def _others(values: Floats, start: int, width: int, k: int, total: float) -> float:
    """Return the sum of a block without entry k; added up anew where total - value would cancel."""
    value = values[_at(k)]
    if value <= 0.5 * total:
        return total - value
    rest = 0.0
    for j in range(start, start + width):
        if j != k:
            rest += values[_at(j)]
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
                weights.sums[start + k] = _block_sum(weights.weight, first + low, high - low)
            else:
                weights.sums[start + k] = _block_sum(weights.sums, below + low, high - low)


@njit
def build_sums(action_ptr: Ints, weights: Weights) -> None:
    """Compute the sums of every wide infoset."""
    for s in range(action_ptr.size - 1):
        width = action_ptr[s + 1] - action_ptr[s]
        if width > _BLOCK:
            _rebuild(weights, action_ptr[s], width, s)


@njit(forceinline=True)
def _pick_block(weight: Floats, first: int, width: int, u: float) -> Any:
    """Draw from an infoset of at most 16 actions: return (action, its weight, the others' sum)."""
    quarters = _quarters(weight, first, width)
    total = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3])
    a, _ = _find(weight, first, width, quarters, u * total)
    return a, weight[a], _others(weight, first, width, a, total)


@njit(forceinline=True)
def _pick_narrow(weight: Floats, first: int, width: int, u: float) -> Any:
    """Draw from an infoset of at most 4 actions: return (action, its weight, the others' sum)."""
    one = weight[first]
    two = one + (weight[first + 1] if width > 1 else 0.0)
    three = two + (weight[first + 2] if width > 2 else 0.0)
    total = three + (weight[first + 3] if width > 3 else 0.0)
    k, _ = _place(one, two, three, u * total, width - 1)
    return first + k, weight[first + k], _others(weight, first, width, first + k, total)


@njit(forceinline=True)
def _pick_wide(weights: Weights, ahead: Any, first: int, width: int, s: int, u: float) -> Any:
    """Draw from a wide infoset, from the top sums down: return (action, its weight, the others' sum)."""
    shift = _top_shift(width)
    base = weights.sum_ptr[s]
    size = _level_size(width, shift)
    target = u * _block_sum(weights.sums, base, size)
    low = 0
    rest = 0.0
    while shift > 0:
        n = min(size - low, _BLOCK)
        quarters = _quarters(weights.sums, base + low, n)
        total = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3])
        k, target = _find(weights.sums, base + low, n, quarters, target)
        rest += _others(weights.sums, base + low, n, k, total)
        low = (k - base) * _BLOCK
        base += size
        shift -= 4
        size = _level_size(width, shift)
    for k in range(0, _BLOCK, 4):
        prefetch(ahead, first + low + k)
    n = min(width - low, _BLOCK)
    quarters = _quarters(weights.weight, first + low, n)
    total = (quarters[0] + quarters[1]) + (quarters[2] + quarters[3])
    a, _ = _find(weights.weight, first + low, n, quarters, target)
    return a, weights.weight[a], rest + _others(weights.weight, first + low, n, a, total)


@njit(forceinline=True)
def _update_wide(weights: Weights, first: int, width: int, s: int, a: int) -> None:
    """Recompute the sums above one weight: never adjusted by differences, so they do not drift."""
    top = _top_shift(width)
    base = weights.sum_ptr[s]
    for above in range(top, 4, -4):
        base += _level_size(width, above)
    block = (a - first) >> 4
    low = block * _BLOCK
    weights.sums[base + block] = _block_sum(weights.weight, first + low, min(width - low, _BLOCK))
    for shift in range(8, top + 1, 4):
        below = base
        size = _level_size(width, shift - 4)
        base -= _level_size(width, shift)
        block >>= 4
        low = block * _BLOCK
        weights.sums[base + block] = _block_sum(weights.sums, below + low, min(size - low, _BLOCK))


@njit
def _multiply_far(weights: Weights, first: int, width: int, s: int, a: int, by: float) -> None:
    """Multiply one weight where the result leaves [2^-900, 2^900], and shift the infoset's exponents.

    All weights take the power of two that brings the largest to about 2^700. Ratios stay exact down to
    2^-1720; a weight that would fall below is kept at 2^-1020, so that it can grow again.
    """
    part, exponent = math.frexp(weights.weight[a])
    factor, more = math.frexp(by)
    exponent += more
    top = exponent
    for k in range(first, first + width):
        if k != a:
            top = max(top, math.frexp(weights.weight[k])[1])
    shift = _LEVEL - top
    for k in range(first, first + width):
        if k != a:
            weights.weight[k] = max(math.ldexp(weights.weight[k], shift), _FLOOR)
    weights.weight[a] = max(math.ldexp(part * factor, exponent + shift), _FLOOR)
    if width > _BLOCK:
        _rebuild(weights, first, width, s)


@njit(forceinline=True)
def draw(
    plan: Plan,
    weights: Weights,
    visits: Visits,
    ahead: NDArray[np.void],
    key_0: Any,
    key_1: Any,
    replicate: Any,
    trial: Any,
) -> int:
    """Draw a reduced strategy from the policy, breadth first; fill the visit list and return its length n.

    At each visited infoset s an action is drawn from pi(. | s) = w / sum of w over s. mu(a) is the product of
    pi along the path, ``divisor`` is mu(a) + gamma(a). Position i takes word i of the stream (key; 0,
    trial, replicate, STRATEGY). Of `ahead`, an array over actions of 16 bytes each, the lines around an action
    of a wide infoset are asked for while its weight is being looked for.
    """
    infosets, actions = plan
    weight = weights.weight
    s0, s1, s2, s3 = philox(key_0, key_1, _ZERO, np.uint64(trial), np.uint64(replicate), STRATEGY)
    visits.infoset[0] = 0
    visits.reach[0] = 1.0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = infosets[s]["first"]
        width = infosets[s + 1]["first"] - first
        shared = infosets[s]["exploration"]
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
            a, w, rest = _pick_block(weight, first, width, u)
        else:
            a, w, rest = _pick_wide(weights, ahead, first, width, s, u)
        scale = 1.0 / (w + rest)
        mu = visits.reach[i] * (w * scale)
        visits.action[i] = a
        visits.picked[i] = w * scale
        visits.others[i] = rest * scale
        visits.child[i] = n
        i += 1
        if shared >= 0.0:
            visits.divisor[i - 1] = mu + shared
            continue
        visits.divisor[i - 1] = mu + actions[a]["exploration"]
        for c in range(actions[a]["child"], actions[a + 1]["child"]):
            visits.infoset[n] = c
            visits.reach[n] = mu
            prefetch(weight, infosets[c]["first"])
            prefetch(weight, infosets[c]["first"] + 8)
            n += 1
    return n


@njit(forceinline=True)
def walk(
    plan: Plan, chance: Chance, visits: Visits, key_0: Any, key_1: Any, replicate: Any, trial: Any
) -> Any:
    """Walk the drawn strategy against the environment; return (position of the last action, u for its leaf).

    The d-th move of the environment takes word d of the stream (key; 0, trial, replicate, CHANCE): the
    address names no policy, so different learners meet the same luck.
    """
    s0, s1, s2, s3 = philox(key_0, key_1, _ZERO, np.uint64(trial), np.uint64(replicate), CHANCE)
    i = 0
    while True:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        if plan.infosets[visits.infoset[i]]["exploration"] >= 0.0:
            return i, u
        a = visits.action[i]
        low, high = plan.actions[a]["child"], plan.actions[a + 1]["child"]
        if low == high or u >= chance.infoset_cum[high - 1]:
            return i, u
        i = visits.child[i] + _first_above(chance.infoset_cum, low, high, u) - low


@njit(forceinline=True)
def leaf_loss(chance: Chance, a: int, u: float) -> float:
    """Return the loss of the leaf of action a that comes with u."""
    low, high = chance.actions[a]["leaf"], chance.actions[a + 1]["leaf"]
    if high - low == 1:
        return chance.actions[a]["loss"]
    return chance.leaf_loss[_first_above(chance.leaf_cum, low, high, u)]


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
    first = plan.infosets[s]["first"]
    width = plan.infosets[s + 1]["first"] - first
    new = weights.weight[a] * by
    if not _LOW <= new <= _HIGH:
        _multiply_far(weights, first, width, s, a, by)
        return
    weights.weight[a] = new
    if width > _BLOCK:
        _update_wide(weights, first, width, s, a)


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
        n = draw(plan, weights, visits, chance.actions, key_0, key_1, replicate, trial)
        last, u = walk(plan, chance, visits, key_0, key_1, replicate, trial)
        prefetch(chance.actions, visits.action[last])
        for i in range(n):
            prefetch(chance.action_loss, visits.action[i])
        if learning_rate > 0.0:
            add_noise(visits.value, visits.word, n, scale, key_0, key_1, replicate, trial)
        loss = leaf_loss(chance, visits.action[last], u)
        observed += loss
        if learning_rate > 0.0:
            visits.value[last] += loss
            update(plan, weights, visits, n, learning_rate)
        for i in range(n):
            expected += chance.action_loss[_at(visits.action[i])]
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
