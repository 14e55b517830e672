"""Policies as tables, dictionaries, realization plans; values in payoffs."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import naive
from equinoise.games import (
    Environment,
    GameTree,
    Policy,
    best_response_value,
    from_nested,
    load,
    policy_value,
    realization_plan,
    uniform_value,
)

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=150)
@given(seeds)
def test_realization_plan_against_recursion(seed):
    rng = np.random.default_rng(seed)
    tree = naive.random_tree(rng)
    values = rng.random(tree.n_actions)
    values /= np.repeat(np.add.reduceat(values, tree.action_ptr[:-1]), np.diff(tree.action_ptr))
    reach = naive.own_reach(tree, values)
    plan = realization_plan(tree, values)
    assert plan == pytest.approx([reach[a] for a in range(tree.n_actions)], abs=1e-15)
    policy = Policy(tree, values)
    assert policy.realization_plan().tolist() == plan.tolist()
    assert policy.to_frame()["reach"].tolist() == plan.tolist()


def labelled(infosets, actions):
    tree = GameTree([0, 2, 4], [1, 1, 2, 2, 2], [0, 1, 2, 3, 4], infosets, actions)
    return Policy(tree, [0.25, 0.75, 1.0, 0.0])


def test_frame():
    frame = labelled(["I", "J"], ["l", "r", "l", "r"]).to_frame()
    assert frame.columns.tolist() == [
        "infoset",
        "infoset_label",
        "action",
        "action_label",
        "probability",
        "reach",
    ]
    assert frame["infoset"].tolist() == [0, 0, 1, 1]
    assert frame["infoset_label"].tolist() == ["I", "I", "J", "J"]
    assert frame["action"].tolist() == [0, 1, 2, 3]
    assert frame["action_label"].tolist() == ["l", "r", "l", "r"]
    assert frame["probability"].tolist() == [0.25, 0.75, 1.0, 0.0]
    assert frame["reach"].tolist() == [0.25, 0.75, 0.75, 0.0]
    bare = labelled(None, None).to_frame()
    assert bare["infoset_label"].tolist() == ["0", "0", "1", "1"]
    assert bare["action_label"].tolist() == ["0", "1", "0", "1"]


@pytest.mark.parametrize(
    ("infosets", "actions", "expected"),
    [
        (["I", "J"], ["l", "r", "l", "r"], {"I": {"l": 0.25, "r": 0.75}, "J": {"l": 1.0, "r": 0.0}}),
        (None, None, {"0": {"0": 0.25, "1": 0.75}, "1": {"0": 1.0, "1": 0.0}}),
        (["I", "I"], ["x", "x", "", "r"], {"0": {"0": 0.25, "1": 0.75}, "1": {"0": 1.0, "r": 0.0}}),
        (["", "0"], ["1", "", "", ""], {"0": {"0": 0.25, "1": 0.75}, "1": {"0": 1.0, "1": 0.0}}),
    ],
)
def test_dictionary_loses_no_entry(infosets, actions, expected):
    assert labelled(infosets, actions).to_dict() == expected


def test_policies_pickle_and_cannot_be_changed():
    policy = labelled(["I", "J"], None)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.values.tolist() == policy.values.tolist()
    assert copy.tree.infoset_labels == ("I", "J")
    for values in (copy.values, policy.values):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.5


def test_a_callers_array_stays_its_own():
    tree, _ = from_nested([[0.0], [1.0]])
    values = np.array([0.5, 0.5])
    policy = Policy(tree, values)
    values[:] = 0
    assert policy.values.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([0.5, 0.5, 1.0], ValueError),
        ([0.5, 0.6, 0.5, 0.5], ValueError),
        ([0.5, 0.5, math.nan, 0.5], ValueError),
        ([1.5, -0.5, 0.5, 0.5], ValueError),
        (None, TypeError),
    ],
)
def test_refusals_name_values(values, error):
    tree, _ = from_nested([[0.25], [[[1.0], [0.5]]]])
    with pytest.raises(error, match="values"):
        Policy(tree, values)
    with pytest.raises(error, match="policy"):
        realization_plan(tree, values)


def test_refusals_name_tree():
    for make in (Policy, realization_plan):
        with pytest.raises(TypeError, match="tree"):
            make("kuhn_poker", [0.5, 0.5])


@pytest.mark.parametrize("labels", [None, ["I", "I"]])
def test_openspiel_needs_labels(labels):
    with pytest.raises(ValueError, match="labels"):
        labelled(labels, None).to_openspiel("kuhn_poker")


def test_values():
    _, environment = load("kuhn_poker", player=1)
    assert uniform_value(environment) == pytest.approx(-0.125)
    assert best_response_value(environment) == pytest.approx(5 / 12)
    loss, best = environment.best_response()
    assert policy_value(environment, best) == pytest.approx(environment.utility(loss))


def test_values_refuse_what_has_none():
    tree, environment = from_nested([[0.25], [1.0]])
    for value in (uniform_value, best_response_value):
        with pytest.raises(ValueError, match="payoff_range"):
            value(environment)
        with pytest.raises(TypeError, match="environment"):
            value(tree)
    with pytest.raises(TypeError, match="environment"):
        policy_value(None, [0.5, 0.5])
    known = Environment(tree, [1], [1, 1], [0, 1], payoff_range=(0, 4))
    assert policy_value(known, [0.25, 0.75]) == 1.0
    with pytest.raises(ValueError, match="policy"):
        policy_value(known, [0.25, 0.25])
