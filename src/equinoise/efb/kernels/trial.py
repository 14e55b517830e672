"""What the kernels of DP-EFB share: arrays in named tuples, the walk of a strategy, the push of an update.

A trial costs what it visits: infosets breadth first, of which the i-th has position i of the visit list, so
that children stand side by side.
"""

import numpy as np
from numpy.typing import NDArray

from equinoise._checkpoint import kept_as
from equinoise._elementary import exp
from equinoise._jit import njit
from equinoise._random import CHANCE, next_word, philox, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.efb.kernels.weights import Weights, multiply

Source = tuple[Any, Any, Any]  # the two words of the key, and the replicate, all uint64
STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
STEP_MAX = 80.0
FACTOR_MAX = 2.0**115
FACTOR_MIN = 2.0**-1000

# Where no action leads to another infoset, as nearly everywhere, all actions of one may share a gamma.
PLAN_INFOSET = np.dtype([("first", np.int64), ("exploration", np.float64)])
PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
PLAN_OWN = np.dtype([("exploration", np.float64), ("radius", np.float64)])
CHANCE_ACTION = np.dtype([("leaf", np.int64), ("loss", np.float64)])


@kept_as("equinoise.efb._kernels.Plan")
class Plan(NamedTuple):
    """What a learner knows; what is read together lies together, since large trees wait for memory."""

    infosets: NDArray[np.void]  # PLAN_INFOSET[I+1]: the first action, the gamma that all share, or -1
    actions: NDArray[np.void]  # PLAN_ACTION[A+1]: gamma(a), the first child infoset


@kept_as("equinoise.efb.kernels.symbol.SymbolPlan")
class SymbolPlan(NamedTuple):
    """What a learner of symbols knows."""

    infosets: NDArray[np.void]  # PLAN_INFOSET[I+1], 0 in place of gamma where no action leads to an infoset
    actions: NDArray[np.void]  # (child int64)[A+1]: the first child infoset
    own: NDArray[np.void]  # PLAN_OWN[A]: rho nu(a), r(a)
    cumulative: Floats  # [A], running sums of nu over an infoset, of which the first above u comes


class Visits(NamedTuple):
    """The visit list of a trial, each array of a length that is even and above any reduced strategy's."""

    infoset: Ints
    action: Ints  # that is picked there
    child: Ints  # the position of that action's first child
    parent: Ints  # the position of the visit above
    picked: Floats  # w, then pi, of the picked action
    others: Floats  # the same of all others together
    reach: Floats  # mu of the infoset; with symbols, of the picked action
    factor: Floats  # W, then Z
    divisor: Floats  # mu(a) + gamma(a)
    word: Words  # of noise
    value: Floats  # that was reported; with symbols, -eta lhat
    half: Ints  # 32 public bits of each block of k visits
    marked: Ints  # whether a report moves something below, 0 between trials,
    moved: Ints  # and where that is so


class Seat(NamedTuple):
    """A learner in a run."""

    plan: Any  # a Plan or a SymbolPlan
    weights: Weights
    visits: Visits
    source: Source  # where its own randomness comes from,
    public: Source  # and the public one
    rate: float  # eta
    explore: float  # rho
    code: Any  # a Hashing, or None where a report is a value for each action
    scale: Any  # of Laplace noise, or None with a code


@kept_as("equinoise.efb._kernels.Chance")
class Chance(NamedTuple):
    """An environment, with I infosets, A actions, L leaves."""

    action_loss: Floats  # [A], g(a)
    actions: NDArray[np.void]  # CHANCE_ACTION[A+1]: the first leaf and its loss, which spares most a look-up
    infoset_cum: Floats  # [I], running sums of probabilities, of which the first above u comes
    leaf_cum: Floats  # [L]
    leaf_loss: Floats  # [L]


@njit(forceinline=True)
def stream(source: Source, trial: Any, purpose: Any) -> Any:
    """Return the stream (key; 0, trial, replicate, purpose) of a source (key's two words, replicate)."""
    return philox(source[0], source[1], np.uint64(0), np.uint64(trial), source[2], purpose)


@njit(forceinline=True)
def walk(plan: Any, chance: Chance, visits: Visits, source: Source, trial: Any) -> Any:
    """Walk the drawn strategy against the environment; return (position of the last action, u for its leaf).

    The d-th move of the environment takes word d of the stream (key; 0, trial, replicate, CHANCE): the
    address names no policy, so different learners face the same random draws.
    """
    s0, s1, s2, s3 = stream(source, trial, CHANCE)
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
        i = visits.child[i] + first_above(chance.infoset_cum, low, high, u) - low


@njit(forceinline=True)
def leaf_loss(chance: Chance, a: int, u: float) -> float:
    """Return the loss of the leaf of action a that comes with u."""
    low, high = chance.actions[a]["leaf"], chance.actions[a + 1]["leaf"]
    if high - low == 1:
        return chance.actions[a]["loss"]
    return chance.leaf_loss[first_above(chance.leaf_cum, low, high, u)]


@njit(forceinline=True)
def first_above(cumulative: Floats, low: int, high: int, u: float) -> int:
    """Return the first k in [low, high) with u < cumulative[k], by bisection; one is known to exist."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        below = u < cumulative[middle]
        high = middle if below else high
        low = low if below else middle + 1
    return low


@njit(forceinline=True)
def moved_by(step: float) -> float:
    """Return the factor exp(step) of an action's own estimate, within bounds."""
    return exp(min(max(step, STEP_MIN), STEP_MAX))


@njit(forceinline=True)
def push(seat: Seat, n: int) -> None:
    """Multiply the weights by W, bottom-up; ``factor`` comes with each action's own part of it."""
    visits, factor = seat.visits, seat.visits.factor
    end = n  # the children of visit i are the visits child[i] .. end - 1
    for i in range(n - 1, -1, -1):
        start = visits.child[i]
        w = factor[i]
        for c in range(start, end):
            w *= factor[c]
        end = start
        factor[i] = move(seat, i, w)


@njit(forceinline=True)
def move(seat: Seat, i: int, w: float) -> float:
    """Multiply the weight of visit i by W, kept within bounds; return Z = pi(others) + pi(a) W."""
    infosets, visits = seat.plan.infosets, seat.visits
    w = min(max(w, FACTOR_MIN), FACTOR_MAX)
    s = visits.infoset[i]
    first = infosets[s]["first"]
    multiply(seat.weights, first, infosets[s + 1]["first"] - first, s, visits.action[i], w)
    return visits.others[i] + visits.picked[i] * w
