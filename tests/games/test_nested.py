"""Nested lists: the tree they mean, depth, and the place that an error names."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import naive
from equinoise.games import from_nested

leaf = st.floats(0, 1)
tree_lists = st.recursive(
    st.lists(st.lists(leaf, min_size=1, max_size=3), min_size=1, max_size=3),
    lambda infoset: st.lists(st.lists(leaf | infoset, min_size=1, max_size=3), min_size=1, max_size=3),
    max_leaves=6,
)


def value(infoset):
    """Least expected loss, straight from the lists."""
    return min(
        sum(value(child) if isinstance(child, list) else child for child in action) / len(action)
        for action in infoset
    )


@settings(max_examples=200)
@given(tree_lists)
def test_means_what_it_says(nested):
    tree, environment = from_nested(nested)
    assert environment.best_response()[0] == pytest.approx(value(nested), abs=1e-12)
    uniform = tree.uniform_policy()
    assert environment.expected_loss(uniform) == pytest.approx(
        naive.policy_loss(environment, uniform), abs=1e-12
    )

    def plays(infoset):
        return sum(
            sum(plays(c) if isinstance(c, list) else c for c in action) / len(action) for action in infoset
        ) / len(infoset)

    assert environment.expected_loss(uniform) == pytest.approx(plays(nested), abs=1e-12)


def test_by_hand():
    tree, environment = from_nested([[0.5], [0.0, [[0.75], [1.0]], 1]])
    assert tree.action_ptr.tolist() == [0, 2, 4]
    assert tree.infoset_ptr.tolist() == [1, 1, 2, 2, 2]
    assert tree.leaf_ptr.tolist() == [0, 1, 3, 4, 5]
    assert environment.infoset_prob.tolist() == [1, 1 / 3]
    assert environment.leaf_prob.tolist() == [1, 1 / 3, 1 / 3, 1, 1]
    assert environment.leaf_loss.tolist() == [0.5, 0, 1, 0.75, 1]
    assert environment.payoff_range is None


def test_numbers_of_numpy_and_tuples_are_taken():
    _, environment = from_nested(((np.float32(0.5),), (np.int64(1), ((0,),))))
    assert environment.leaf_loss.tolist() == [0.5, 1, 0]


def test_thirty_thousand_lists_deep():
    nested = [[1.0]]
    for _ in range(29_999):
        nested = [[1.0], [0.0, nested]]
    tree, environment = from_nested(nested)
    assert (tree.depth, tree.n_actions) == (30_000, 59_999)
    assert environment.best_response()[0] == 0.0
    assert tree.log_n_strategies == pytest.approx(math.log(30_000))
    assert environment.expected_loss(tree.uniform_policy()) == pytest.approx(0.5 / (1 - 0.25), rel=1e-12)


WRONG = {
    "a number": (0.5, TypeError, r"nested must be an infoset"),
    "a string": ("[[0.5]]", TypeError, r"nested must be an infoset"),
    "nothing": ([], ValueError, r"nested must be an infoset.*empty"),
    "an action that is a number": ([[0.5], 0.5], TypeError, r"nested\[1\] must be an action"),
    "an empty action": ([[0.5], []], ValueError, r"nested\[1\] must be an action.*empty"),
    "an empty infoset": ([[0.5], [0.1, []]], ValueError, r"nested\[1\]\[1\] must be an infoset"),
    "a word": ([[0.5], ["x"]], TypeError, r"nested\[1\]\[0\]"),
    "None": ([[None]], TypeError, r"nested\[0\]\[0\]"),
    "a bool": ([[True]], TypeError, r"nested\[0\]\[0\]"),
    "above one": ([[0.5], [0.1, [[0.2], [0.3, 1.5]]]], ValueError, r"nested\[1\]\[1\]\[1\]\[1\]"),
    "below zero": ([[[[0.2]], [[-0.1]]]], ValueError, r"nested\[0\]\[1\]\[0\]\[0\]"),
    "NaN": ([[math.nan]], ValueError, r"nested\[0\]\[0\]"),
    "infinite": ([[math.inf]], ValueError, r"nested\[0\]\[0\]"),
    "huge": ([[10**400]], ValueError, r"nested\[0\]\[0\]"),
    "complex": ([[1j]], TypeError, r"nested\[0\]\[0\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_name_the_place(case):
    nested, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        from_nested(nested)


def test_lists_that_hold_themselves():
    around, deep = [], [[0.5]]
    around.append([around])
    deep[0].append([[0.5], [0.1, deep]])
    for nested in (around, deep):
        with pytest.raises(
            ValueError, match=r"^nested must end, but something in it holds itself, \d levels deep$"
        ):
            from_nested(nested)


def test_an_error_thirty_thousand_lists_deep_is_short():
    nested = [["x"]]
    for _ in range(15_000):
        nested = [[0.5], [nested]]
    with pytest.raises(TypeError, match=r"^nested\[1\]\[0\].*\.\.\.\(29990 more\)\.\.\..*'x'$") as caught:
        from_nested(nested)
    assert len(str(caught.value)) < 200
