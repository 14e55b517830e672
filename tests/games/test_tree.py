"""GameTree: what it derives, what it refuses, who may change it, files."""

from __future__ import annotations

import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import naive
from equinoise.games import GameTree, complete, from_nested, load

seeds = st.integers(0, 2**32 - 1)


def small(**labels):
    """Two actions at the root; the second leads to an infoset with two actions, and to a leaf."""
    return GameTree([0, 2, 4], [1, 1, 2, 2, 2], [0, 1, 2, 3, 4], **labels)


def chain(depth):
    """One action everywhere, a leaf at the end."""
    number = np.arange(depth + 1)
    leaves = np.zeros(depth + 1, dtype=np.int64)
    leaves[-1] = 1
    return GameTree(number, np.append(number[1:], depth), leaves)


def same(one, other):
    return (
        one.same_as(other)
        and one.infoset_labels == other.infoset_labels
        and one.action_labels == other.action_labels
    )


def test_derived_by_hand():
    tree = small()
    assert (tree.n_infosets, tree.n_actions, tree.n_leaves, tree.depth, tree.max_actions) == (2, 4, 4, 2, 2)
    assert tree.action_infoset.tolist() == [0, 0, 1, 1]
    assert tree.infoset_action.tolist() == [-1, 1]
    assert tree.leaf_action.tolist() == [0, 1, 2, 3]
    assert tree.level_ptr.tolist() == [0, 1, 2]
    assert tree.log_n_strategies == pytest.approx(math.log(3), abs=1e-15)
    assert tree.uniform_policy().tolist() == [0.5] * 4


@settings(max_examples=150)
@given(seeds)
def test_derived_on_random_trees(seed):
    tree = naive.random_tree(np.random.default_rng(seed), max_infosets=12)
    for s in range(tree.n_infosets):
        assert set(tree.action_infoset[naive.actions_of(tree, s)]) == {s}
    for a in range(tree.n_actions):
        assert all(tree.infoset_action[s] == a for s in naive.infosets_below(tree, a))
        assert all(tree.leaf_action[i] == a for i in naive.leaves_below(tree, a))
    assert tree.infoset_action[0] == -1

    def height(s):
        below = [height(c) for a in naive.actions_of(tree, s) for c in naive.infosets_below(tree, a)]
        return 1 + max(below, default=0)

    assert tree.depth == height(0)
    assert tree.max_actions == max(len(naive.actions_of(tree, s)) for s in range(tree.n_infosets))
    assert tree.log_n_strategies == pytest.approx(
        math.log(naive.count_strategies(tree)), rel=1e-13, abs=1e-13
    )


@pytest.mark.parametrize(("actions", "observations", "depth"), [(3, 3, 3), (2, 2, 9), (10, 2, 4), (1, 1, 5)])
def test_log_n_strategies_where_the_number_overflows(actions, observations, depth):
    count = actions
    for _ in range(depth - 1):
        count = actions * count**observations
    tree, _ = complete(actions, observations, depth)
    assert tree.log_n_strategies == pytest.approx(math.log(count), rel=1e-13)


@pytest.mark.parametrize("order", [1, -1])
def test_log_n_strategies_of_very_unlike_actions(order):
    crowded, plain = [[[0.0], [1.0]]] * 2000, [0.5]  # 2^2000 strategies, and one
    tree, _ = from_nested([crowded, plain][::order])
    assert tree.log_n_strategies == pytest.approx(math.log(2**2000 + 1), rel=1e-12)


def test_a_hundred_thousand_infosets_deep():
    tree = chain(100_000)
    assert tree.depth == tree.n_infosets == 100_000
    assert tree.log_n_strategies == 0.0
    assert tree.level_ptr.tolist() == list(range(100_001))


WRONG = {
    "floats": ({"action_ptr": [0.0, 2.0]}, TypeError, "action_ptr"),
    "two dimensions": ({"leaf_ptr": [[0, 1, 2]]}, ValueError, "leaf_ptr"),
    "ragged": ({"infoset_ptr": [[1], [1, 2]]}, TypeError, "infoset_ptr"),
    "no infoset": ({"action_ptr": [0]}, ValueError, "action_ptr"),
    "no pointers": ({"infoset_ptr": []}, ValueError, "infoset_ptr"),
    "no action": ({"infoset_ptr": [1]}, ValueError, "infoset_ptr"),
    "actions start late": ({"action_ptr": [1, 2, 4]}, ValueError, "action_ptr"),
    "actions end early": ({"action_ptr": [0, 2, 3]}, ValueError, "action_ptr"),
    "infoset without actions": ({"action_ptr": [0, 4, 4]}, ValueError, "action_ptr"),
    "actions fall": ({"action_ptr": [0, 5, 4]}, ValueError, "action_ptr"),
    "root is a child": ({"infoset_ptr": [0, 1, 2, 2, 2]}, ValueError, "infoset_ptr"),
    "infosets end early": ({"infoset_ptr": [1, 1, 1, 1, 1]}, ValueError, "infoset_ptr"),
    "infosets fall": ({"infoset_ptr": [1, 2, 1, 2, 2]}, ValueError, "infoset_ptr"),
    "infoset below itself": ({"infoset_ptr": [1, 1, 1, 2, 2]}, ValueError, "infoset_ptr"),
    "leaves start late": ({"leaf_ptr": [1, 1, 2, 3, 4]}, ValueError, "leaf_ptr"),
    "leaves fall": ({"leaf_ptr": [0, 1, 0, 3, 4]}, ValueError, "leaf_ptr"),
    "too few leaf pointers": ({"leaf_ptr": [0, 1, 2, 3]}, ValueError, "leaf_ptr"),
    "action without children": ({"leaf_ptr": [0, 0, 2, 3, 4]}, ValueError, "leaf_ptr"),
    "too few infoset labels": ({"infoset_labels": ["a"]}, ValueError, "infoset_labels"),
    "a label that is no string": ({"action_labels": ["a", "b", 3, "d"]}, TypeError, "action_labels"),
    "labels as one string": ({"action_labels": "abcd"}, TypeError, "action_labels"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_name_the_argument(case):
    change, error, name = WRONG[case]
    right = {"action_ptr": [0, 2, 4], "infoset_ptr": [1, 1, 2, 2, 2], "leaf_ptr": [0, 1, 2, 3, 4]}
    with pytest.raises(error, match=name):
        GameTree(**right | change)


@settings(max_examples=300)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.data())
def test_whatever_is_taken_is_a_tree(action_ptr, data):
    """Any pointer arrays are refused, or every infoset hangs from the root by a chain of parents."""
    size = max(action_ptr[-1], 1) + 1
    infoset_ptr = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    leaf_ptr = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    try:
        tree = GameTree(action_ptr, infoset_ptr, leaf_ptr)
    except ValueError:
        return
    seen, queue = [], [0]
    while queue:
        s = queue.pop(0)
        seen.append(s)
        assert len(naive.actions_of(tree, s)) > 0
        for a in naive.actions_of(tree, s):
            assert len(naive.infosets_below(tree, a)) + len(naive.leaves_below(tree, a)) > 0
            queue += naive.infosets_below(tree, a)
    assert seen == list(range(tree.n_infosets))  # breadth first, everything once


def test_arrays_belong_to_the_tree():
    given_array = np.array([0, 1, 2, 3, 4])
    tree = GameTree([0, 2, 4], [1, 1, 2, 2, 2], given_array)
    given_array[-1] = 99
    assert tree.leaf_ptr[-1] == 4
    for array in (tree.leaf_ptr, tree.action_infoset, tree.infoset_action, tree.leaf_action, tree.level_ptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(AttributeError):
        tree.leaf_ptr = given_array


def test_a_view_of_a_writable_array_is_copied():
    base = np.array([0, 1, 2, 3, 4])
    view = base.view()
    view.flags.writeable = False
    tree = GameTree([0, 2, 4], [1, 1, 2, 2, 2], view)
    base[-1] = 99
    assert tree.leaf_ptr[-1] == 4


def test_a_sealed_array_is_not_copied():
    leaves = np.array([0, 1, 2, 3, 4])
    leaves.flags.writeable = False
    assert GameTree([0, 2, 4], [1, 1, 2, 2, 2], leaves).leaf_ptr is leaves


def test_same_as_looks_at_pointers_only():
    assert small().same_as(small(action_labels=list("abcd")))
    assert not small().same_as(chain(2))
    assert not small().same_as(GameTree([0, 2, 4], [1, 1, 2, 2, 2], [0, 1, 2, 3, 5]))


@pytest.mark.parametrize(
    "labels", [{}, {"infoset_labels": ["", "nœud\0王"], "action_labels": ["x", "x", "", "\ud800"]}]
)
def test_pickle_and_file_round_trips(tmp_path, labels):
    tree = small(**labels)
    assert tree.depth == 2
    tree.save(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]
    for copy in (GameTree.load(tmp_path / "tree"), pickle.loads(pickle.dumps(tree))):
        assert same(copy, tree)
        assert not copy.action_ptr.flags.writeable


def test_a_tree_that_an_earlier_version_saved_is_loaded():
    assert same(GameTree.load(Path(__file__).resolve().parents[1] / "data/tree.npz"), load("kuhn_poker")[0])


@pytest.fixture
def saved(tmp_path):
    tree = small(infoset_labels=["a", "b"])
    path = tmp_path / "tree.npz"
    tree.save(path)
    return tree, path, path.read_bytes()


def test_a_file_cut_anywhere_is_refused(saved):
    _, path, whole = saved
    for length in {*range(0, len(whole), 7), *range(len(whole) - 40, len(whole))}:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"tree\.npz"):
            GameTree.load(path)


def test_a_damaged_file_is_refused_or_means_the_same(saved):
    tree, path, whole = saved
    for place in range(0, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            copy = GameTree.load(path)
        except ValueError as error:
            assert "tree.npz" in str(error)
        else:
            assert same(copy, tree)


def test_foreign_files_are_refused(saved):
    _, path, _ = saved
    for content in (b"", b"hello", pickle.dumps([1, 2])):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"tree\.npz"):
            GameTree.load(path)
    for arrays in ({"a": np.arange(3)}, {"game_tree_format": np.array(99)}):
        with path.open("wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(ValueError, match=r"tree\.npz"):
            GameTree.load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match=r"tree\.npz"):
        GameTree.load(path)
    with pytest.raises(FileNotFoundError):
        GameTree.load(path.with_name("nothing"))


def test_a_crash_while_saving_keeps_the_old_file(saved, monkeypatch):
    _, path, whole = saved

    def crash(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(OSError, match="disk full"):
        chain(3).save(path)
    assert path.read_bytes() == whole
    assert [entry.name for entry in path.parent.iterdir()] == ["tree.npz"]


def test_a_tree_as_text(tmp_path):
    tree = load("kuhn_poker")[0]
    text = tree.to_text()
    assert text.splitlines()[:8] == [
        "(start)",
        "  (start): 0 leaves",
        "    0",
        "      Pass: 1 leaves",
        "        0pb",
        "          Pass: 1 leaves",
        "          Bet: 1 leaves",
        "      Bet: 2 leaves",
    ]
    assert len(text.splitlines()) == tree.n_infosets + tree.n_actions
    assert sum(int(n) for n in re.findall(r": (\d+) leaves", text)) == tree.n_leaves
    assert tree.to_text(3) == "(start)\n  (start): 0 leaves\n    0\n..."
    assert tree.to_text(tree.n_infosets + tree.n_actions) == text
    for most in ("x", -1, 0, 1.5):
        with pytest.raises((TypeError, ValueError), match="most must be"):
            tree.to_text(most)
    (tmp_path / "red.efg").write_text(
        'EFG 2 R "" { "A" } p "" 1 1 "\x1b[31mx" { "\x9b2J" } 0 t "" 1 "" { 1 }'
    )
    assert load(tmp_path / "red.efg")[0].to_text() == "\\x1b[31mx\n  \\x9b2J: 1 leaves"
