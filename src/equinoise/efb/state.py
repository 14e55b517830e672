"""Arrays for the kernels, made from trees, environments and policies."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from equinoise._typing import Floats, Words
from equinoise.efb.kernels import setup, trial, weights as _weights
from equinoise.efb.kernels.trial import Chance, Plan, Visits
from equinoise.efb.kernels.weights import Weights
from equinoise.games import Environment, GameTree

Sealed = TypeVar("Sealed", bound=tuple[Any, ...])
_LINE = 64  # bytes of a cache line
_PADDING = 3  # values that a kernel may read behind the last block


def first_source(key: Words) -> trial.Source:
    """Return what the streams of the protocol are drawn from: those of replicate 0."""
    return key[0], key[1], np.uint64(0)


def make_plan(tree: GameTree, exploration: Floats) -> Plan:
    """Return what a learner knows, read-only; exploration is gamma float64[A]."""
    actions = np.empty(tree.n_actions + 1, dtype=trial.PLAN_ACTION)
    actions["exploration"][:-1] = exploration
    actions["exploration"][-1] = 0.0
    actions["child"] = tree.infoset_ptr
    infosets = np.empty(tree.n_infosets + 1, dtype=trial.PLAN_INFOSET)
    infosets["first"] = tree.action_ptr
    starts, ends = tree.action_ptr[:-1], tree.action_ptr[1:]
    ends_here = tree.infoset_ptr[starts] == tree.infoset_ptr[ends]
    largest = np.maximum.reduceat(exploration, starts)
    shared = ends_here & (largest == np.minimum.reduceat(exploration, starts))
    infosets["exploration"][:-1] = np.where(shared, largest, -1.0)
    infosets["exploration"][-1] = -1.0
    return sealed(Plan(infosets, actions))


def make_chance(environment: Environment) -> Chance:
    """Return an environment as the kernels take it, read-only."""
    tree = environment.tree
    infoset_cum, leaf_cum = environment.cumulative
    actions = np.zeros(tree.n_actions + 1, dtype=trial.CHANCE_ACTION)
    actions["leaf"] = tree.leaf_ptr
    if tree.n_leaves:
        actions["loss"][:-1] = environment.leaf_loss[np.minimum(tree.leaf_ptr[:-1], tree.n_leaves - 1)]
    return sealed(Chance(environment.action_loss, actions, infoset_cum, leaf_cum, environment.leaf_loss))


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


def make_visits(tree: GameTree) -> Visits:
    """Return an empty visit list that is long enough for any reduced strategy."""
    m = setup.longest_strategy(tree.action_ptr, tree.infoset_ptr, np.empty(tree.n_infosets, dtype=np.int64))
    types: dict[str, Any] = {"infoset": np.int64, "action": np.int64, "child": np.int64, "word": np.uint64}
    return Visits._make(np.zeros(m, dtype=types.get(name, np.float64)) for name in Visits._fields)


def _aligned(n: int) -> Floats:
    """Return an empty float64[n] that begins at a cache line, so that a block of 16 touches two lines."""
    memory = np.empty(n + _LINE // 8, dtype=np.float64)
    skip = -memory.ctypes.data % _LINE // 8
    return memory[skip : skip + n]
