"""What kernels take: arrays in named tuples, and how they are made of trees, environments and policies.

Infosets have breadth-first numbers, so children come after parents and nothing recurses.
"""

import math
from collections import namedtuple
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from equinoise._checkpoint import kept_as
from equinoise._jit import njit
from equinoise._random import HASH, philox
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.efb.kernels import weights as _weights
from equinoise.efb.kernels.weights import Weights
from equinoise.games import Environment, GameTree
from equinoise.games.kernels import mean_loss as mean_losses

Source = tuple[Any, Any, Any]  # the two words of the key, and the replicate, all uint64
# Where no action leads to another infoset, as nearly everywhere, all actions of one may share a gamma.
PLAN_INFOSET = np.dtype([("first", np.int64), ("exploration", np.float64)])
PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
PLAN_OWN = np.dtype([("exploration", np.float64), ("radius", np.float64)])


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


class Chance(NamedTuple):
    """An environment, with I infosets, A actions, L leaves. g(a) = reach |mean_loss|."""

    reach: Floats  # [I]
    mean_loss: Floats  # [A], of an action's own leaves; with a minus sign where that is no sure leaf's loss
    leaf_ptr: Ints  # [A+1]
    ahead: Floats  # [A..], what a leaf's loss waits for: mean_loss, or bits of leaf_ptr if not all are sure
    infoset_cum: Floats  # [I], running sums of probabilities, of which the first above u comes
    leaf_cum: Floats  # [L]
    leaf_loss: Floats  # [L]


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


def fold(tree: GameTree, cost: Floats, how: tuple[bool, bool, bool]) -> tuple[float, Floats, Floats]:
    """Fold costs from the leaves up: return the root's value, those of infosets float64[I] and of actions.

    `cost` are c(a), float64[A], or float64[1] for one that all have. v(a) = c(a) + sum of v(s) over child
    infosets s, and v(s) = sum of v(a) over its actions. `how` is (a, b, c): a takes the largest v(a) of an
    infoset instead of their sum; b takes max(c(a), largest v(s)) instead of the sum; c makes v(a) the root of
    c(a) + sum of v(s)^2.
    """
    values = np.empty(tree.n_infosets), np.empty(tree.n_actions)
    _fold((tree.action_ptr, tree.infoset_ptr), cost, values, how)
    return float(values[0][0]), *values


@njit
def _fold(tree: tuple[Ints, Ints], cost: Floats, values: tuple[Floats, Floats], how: Any) -> None:
    (action_ptr, infoset_ptr), (of_infoset, of_action) = tree, values
    (largest_action, largest_child, rooted), alike = how, cost.size == 1
    for s in range(action_ptr.size - 2, -1, -1):
        total = most = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            value = cost[0] if alike else cost[a]
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                below = of_infoset[c] * of_infoset[c] if rooted else of_infoset[c]
                value = max(value, below) if largest_child else value + below
            value = math.sqrt(value) if rooted else value
            of_action[a] = value
            total += value  # beside the largest, not in its place: neither waits for the other
            most = value if value > most else most
        of_infoset[s] = most if largest_action else total


#: Ways to fold. kappa: how many actions lie below; Q: roots of the L2 split; LONGEST: the most that a reduced
#: strategy adds up; LAST: the most that actions add up which one deterministic environment can make last.
ONE = np.ones(1)  # a cost that all actions have
KAPPA, Q, LONGEST, LAST = (False,) * 3, (False, False, True), (True, False, False), (False, True, False)


@njit
def split(action_ptr: Ints, infoset_ptr: Ints, of_infoset: Floats, of_action: Floats, at_root: float) -> None:
    """Turn shares of a fold into exploration, in place, from the root down.

    gamma(root) = at_root, gamma(a) = gamma(s) share(a) / share(s), alike for all a where share(s) is 0, and a
    child infoset takes the value of its action.
    """
    of_infoset[0] = at_root
    for s in range(action_ptr.size - 1):
        total = 0.0
        for a in range(action_ptr[s], action_ptr[s + 1]):
            total += of_action[a]
        if total <= 0.0:
            of_action[action_ptr[s] : action_ptr[s + 1]] = 1.0
            total = float(action_ptr[s + 1] - action_ptr[s])
        for a in range(action_ptr[s], action_ptr[s + 1]):
            of_action[a] = of_infoset[s] * (of_action[a] / total)
            for c in range(infoset_ptr[a], infoset_ptr[a + 1]):
                of_infoset[c] = of_action[a]


@njit
def running_shares(action_ptr: Ints, exploration: Floats, out: Floats) -> None:
    """Fill out float64[A] with running sums of nu over each infoset, alike for all where exploration is 0."""
    for s in range(action_ptr.size - 1):
        first, end = action_ptr[s], action_ptr[s + 1]
        total = 0.0
        for a in range(first, end):
            total += exploration[a]
            out[a] = total
        for a in range(first, end):
            out[a] = out[a] / total if total > 0.0 else (a + 1 - first) / (end - first)


# Arrays for the kernels, made from trees, environments and policies.

Sealed = TypeVar("Sealed", bound=tuple[Any, ...])
_LINE = 64  # bytes of a cache line
_PADDING = 3  # values that a kernel may read behind the last block


def first_source(key: Words, replicate: int = 0) -> Source:
    """Return what the streams of a replicate are drawn from; those of the protocol are of replicate 0."""
    return key[0], key[1], np.uint64(replicate)


def derived_key(key: Words, purpose: np.uint64, number: int = 0) -> Words:
    """Return two words of the block (key; 0, number, 0, purpose), which do not give the key away."""
    zero = np.uint64(0)
    return np.array(philox(key[0], key[1], zero, np.uint64(number), zero, purpose)[:2], dtype=np.uint64)


def make_plan(tree: GameTree, exploration: Floats, radius: Floats | None = None) -> Any:
    """Return what a learner knows, read-only; exploration float64[A] is gamma, or rho nu with a radius r."""
    starts, ptr = tree.action_ptr[:-1], tree.infoset_ptr
    largest = np.maximum.reduceat(exploration, starts)
    shared = np.where(largest == np.minimum.reduceat(exploration, starts), largest, -1.0)
    ends_here = ptr[starts] == ptr[tree.action_ptr[1:]]
    infosets = np.empty(tree.n_infosets + 1, dtype=PLAN_INFOSET)
    infosets["first"] = tree.action_ptr
    infosets["exploration"][:-1] = np.where(ends_here, shared if radius is None else 0.0, -1.0)
    infosets["exploration"][-1] = -1.0
    if radius is None:
        actions = np.zeros(tree.n_actions + 1, dtype=PLAN_ACTION)
        actions["exploration"][:-1], actions["child"] = exploration, ptr
        return sealed(Plan(infosets, actions))
    own, cumulative = np.empty(tree.n_actions, dtype=PLAN_OWN), np.empty(tree.n_actions)
    own["exploration"], own["radius"] = exploration, radius
    running_shares(tree.action_ptr, exploration, cumulative)
    return sealed(SymbolPlan(infosets, ptr.view([("child", np.int64)]), own, cumulative))


def make_chance(environment: Environment) -> Chance:
    """Return an environment as the kernels take it, read-only."""
    tree, prob, loss = environment.tree, environment.leaf_prob, environment.leaf_loss
    mean, reach = mean_losses(tree, environment.infoset_prob, prob, loss)
    ptr, n_leaves = tree.leaf_ptr, np.diff(tree.leaf_ptr)
    sure = n_leaves == 1
    sure[sure] = prob[ptr[:-1][sure]] == 1.0
    mean_loss = np.copysign(mean, sure - 0.5, out=_aligned(len(mean)))
    ahead = mean_loss if sure.sum() == np.count_nonzero(n_leaves) else ptr.view(np.float64)
    return sealed(Chance(reach, mean_loss, ptr, ahead, *environment.cumulative, loss))


_FirstChance = namedtuple("_FirstChance", "action_loss actions infoset_cum leaf_cum leaf_loss")
kept_as("equinoise.efb._kernels.Chance")(_FirstChance)


def first_chance(tree: GameTree, chance: Chance) -> Any:
    """Return a Chance in the form of the first folders of runs, by which fingerprints know it."""
    actions = np.zeros(tree.n_actions + 1, dtype=[("leaf", np.int64), ("loss", np.float64)])
    actions["leaf"] = tree.leaf_ptr
    if tree.n_leaves:
        actions["loss"][:-1] = chance.leaf_loss[np.minimum(tree.leaf_ptr[:-1], tree.n_leaves - 1)]
    action_loss = np.repeat(chance.reach, np.diff(tree.action_ptr)) * abs(chance.mean_loss)
    return _FirstChance(action_loss, actions, *chance[4:])


def sealed(arrays: Sealed) -> Sealed:
    """Make all arrays of a tuple read-only (again, where they come from another process) and return it."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


def make_weights(tree: GameTree, policy: Floats) -> Weights:
    """Return weights that stand for a policy float64[A], their sums computed."""
    weight = _aligned(len(policy) + _PADDING)
    weight[: len(policy)] = policy
    weight[len(policy) :] = 0.0
    sum_ptr = np.empty(tree.n_infosets, dtype=np.int64)
    weights = Weights(weight, sum_ptr, _aligned(_weights.sum_sizes(tree.action_ptr, sum_ptr) + _PADDING))
    weights.sums[-_PADDING:] = 0.0
    _weights.build_sums(tree.action_ptr, weights)
    return weights


def longest(tree: GameTree) -> int:
    """Return the most infosets that a reduced strategy of a tree visits."""
    return int(fold(tree, ONE, LONGEST)[0])


def make_visits(tree: GameTree) -> Visits:
    """Return an empty visit list, longer than any reduced strategy and of even length."""
    m = longest(tree) // 2 * 2 + 2
    integers = "infoset", "action", "child", "parent", "half", "marked", "moved"
    types: dict[str, Any] = {**dict.fromkeys(integers, np.int64), "word": np.uint64}
    return Visits._make(np.zeros(m, dtype=types.get(name, np.float64)) for name in Visits._fields)


def make_seat(tree: GameTree, plan: Any, visits: Visits, learner: Any, *of: Any) -> Seat:
    """Return the seat of a :class:`equinoise.efb.baselines.Learner`, of a key and a replicate, 0 if none."""
    policy, tuning, scale = learner
    public = first_source(derived_key(of[0], HASH), *of[1:])
    how = tuning.learning_rate, tuning.explore, tuning.code, None if tuning.code else scale
    return Seat(sealed(plan), make_weights(tree, policy), visits, first_source(*of), public, *how)


def _aligned(n: int) -> Floats:
    """Return an empty float64[n] that begins at a cache line, so that a block of 16 touches two lines."""
    memory = np.empty(n + _LINE // 8, dtype=np.float64)
    skip = -memory.ctypes.data % _LINE // 8
    return memory[skip : skip + n]
