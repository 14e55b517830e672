"""The built-in games: sizes and values by formula, memory, the poker games move by move."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numba
import numpy as np
import pytest

import naive
from equinoise.games import (
    bandit,
    best_response_value,
    complete,
    kuhn_poker,
    leduc_poker,
    load,
    uniform_value,
)
from equinoise.games.catalog import from_words
from equinoise.games.walk.walk import CHANCE, TERMINAL, walk

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="ten million steps of plain Python")


@pytest.mark.parametrize("n", [1, 2, 10, 2000])
def test_bandit(n):
    tree, environment = bandit(n)
    assert (tree.n_infosets, tree.n_actions, tree.n_leaves, tree.depth) == (1, n, n, 1)
    assert tree.log_n_strategies == pytest.approx(np.log(n))
    losses = [0.25 if i == n // 2 else 0.5 + (7919 * i % 1024) / 4096 for i in range(n)]
    assert environment.action_loss.tolist() == losses
    assert environment.best_response()[0] == 0.25


@compiled
def test_bandit_with_ten_million_actions():
    tree, environment = bandit(10_000_000)
    assert tree.n_actions == 10_000_000
    assert environment.best_response()[0] == 0.25
    assert environment.leaf_loss.min() == environment.leaf_loss[5_000_000] == 0.25
    assert 0.5 <= np.delete(environment.leaf_loss[:100_000], 5_000_000 % 100_000).mean() < 0.75


MEMORY = """
from equinoise.games import bandit
def kilobytes(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what))
def use(n):
    tree, environment = bandit(n)
    environment.cumulative, environment.action_loss, environment.best_response()
    tree.action_infoset, tree.leaf_action, tree.infoset_action, tree.log_n_strategies, tree.depth
    environment.expected_loss(tree.uniform_policy())
use(10)
before = kilobytes("VmRSS")
use(10_000_000)
print((kilobytes("VmHWM") - before) * 1024 / 10_000_000)
"""


@compiled
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_tree_and_environment_take_at_most_105_bytes_an_action():
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert 48 <= float(run.stdout) <= 105  # three pointer-sized arrays of the tree, three of the environment


@pytest.mark.parametrize(
    ("sizes", "infosets", "actions"),
    [
        ((2, 2, 6), 1365, 2730),
        ((3, 3, 4), 820, 2460),
        ((10, 2, 4), 8421, 84210),
        ((1000, 1, 2), 1001, 1001000),
        ((1, 1, 1), 1, 1),
        ((4, 3, 1), 1, 4),
    ],
)
def test_complete(sizes, infosets, actions):
    width, observations, depth = sizes
    if numba.config.DISABLE_JIT and actions > 10_000:
        pytest.skip("too many steps of plain Python")
    tree, environment = complete(*sizes)
    assert (tree.n_infosets, tree.n_actions, tree.depth) == (infosets, actions, depth)
    assert tree.max_actions == width
    below = np.diff(tree.infoset_ptr)
    assert set(below.tolist()) <= {0, observations}
    assert tree.n_leaves == width * (width * observations) ** (depth - 1)
    assert environment.best_response()[0] == pytest.approx(0.25, abs=1e-12)
    uniform = environment.expected_loss(tree.uniform_policy())
    assert uniform == pytest.approx(0.75 - 0.5 / width, abs=1e-12)


def test_complete_is_as_described():
    tree, environment = complete(3, 2, 3)
    best = environment.best_response()[1]
    for s in range(tree.n_infosets):
        assert np.flatnonzero(best[list(naive.actions_of(tree, s))]).tolist() == [s % 3]
    for leaf in range(tree.n_leaves):
        a, good = tree.leaf_action[leaf], 0
        while a >= 0:
            s = tree.action_infoset[a]
            good += a - tree.action_ptr[s] == s % 3
            a = tree.infoset_action[s]
        assert environment.leaf_loss[leaf] == 0.75 - 0.5 * (good / 3)


def test_complete_goes_deep():
    tree, environment = complete(1, 1, 5000)
    assert tree.depth == 5000
    assert environment.best_response()[0] == pytest.approx(0.25)


# infosets and actions without the one-action root, ln S, value of uniform play and of the best response
POKER = {
    "kuhn_poker": (6, 12, 3.2958, 0.125, 0.5),
    "kuhn_poker(players=3)": (16, 32, 8.79, 0.234375, 0.78125),
    "leduc_poker": (468, 1092, 103.2, -0.078125, 2.0875),
}


@pytest.mark.parametrize("game", POKER)
def test_poker_counts_and_values(game):
    infosets, actions, log_n, uniform, best = POKER[game]
    tree, environment = load(game)
    assert (tree.n_infosets - 1, tree.n_actions - 1) == (infosets, actions)
    assert tree.action_labels[0] == "(start)"
    assert tree.log_n_strategies == pytest.approx(log_n, rel=5e-4)
    assert uniform_value(environment) == pytest.approx(uniform, abs=1e-12)
    assert best_response_value(environment) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("game", [*POKER, "kuhn_poker(players=4)"])
def test_poker_is_openspiels(game):
    """The same trees up to the order of siblings, for every player, and the same labels: policies travel."""
    pytest.importorskip("pyspiel")
    for player in range(from_words(game).n_players):
        tree, environment = load(game, player=player)
        theirs, their_environment = load(f"openspiel:{game}", player=player)
        assert naive.shape(environment) == naive.shape(their_environment)
        assert environment.payoff_range == their_environment.payoff_range
        assert sorted(tree.infoset_labels) == sorted(theirs.infoset_labels)
        assert sorted(tree.action_labels) == sorted(theirs.action_labels)


@pytest.mark.parametrize("source", [kuhn_poker(), kuhn_poker(players=3), leduc_poker()])
def test_poker_is_zero_sum_and_chance_sums_to_one(source):
    stack = [source.root()]
    while stack:
        state = stack.pop()
        kind = source.kind(state)
        if kind == TERMINAL:
            assert sum(source.payoff(state, player) for player in range(source.n_players)) == 0
            continue
        if kind == CHANCE:
            assert sum(source.chance(state)) == Fraction(1)
        n = len(source.chance(state) if kind == CHANCE else source.actions(state))
        stack += [source.child(state, i) for i in range(n)]


def test_a_kuhn_hand_by_hand():
    game = kuhn_poker(players=3)
    state = game.root()
    for i in (1, 2, 0):  # cards 1, 3, 0
        state = game.child(state, i)
    for i in (0, 1, 0, 1):  # pass, bet, fold, call
        state = game.child(state, i)
    assert game.kind(state) == TERMINAL
    assert [game.payoff(state, player) for player in range(3)] == [-2, 3, -1]


def test_walk_of_a_built_in_source():
    tree, _ = walk(kuhn_poker(), player="1")
    assert tree.same_as(load("kuhn_poker", player=1)[0])


WRONG = [
    (bandit, (0,), ValueError, "n"),
    (bandit, (-3,), ValueError, "n"),
    (bandit, (2**31 + 1,), ValueError, "n"),
    (bandit, (2.0,), TypeError, "n"),
    (bandit, (True,), TypeError, "n"),
    (complete, (0, 1, 1), ValueError, "actions"),
    (complete, (1, 0, 1), ValueError, "observations"),
    (complete, (1, 1, 0), ValueError, "depth"),
    (complete, (2, "2", 2), TypeError, "observations"),
    (complete, (10, 10, 10), ValueError, "actions, observations and depth"),
    (complete, (2**40, 1, 1), ValueError, "actions, observations and depth"),
    (kuhn_poker, (1,), ValueError, "players"),
    (kuhn_poker, (11,), ValueError, "players"),
    (kuhn_poker, (2.5,), TypeError, "players"),
]


@pytest.mark.parametrize(("make", "arguments", "error", "name"), WRONG)
def test_refusals_name_the_argument(make, arguments, error, name):
    with pytest.raises(error, match=name):
        make(*arguments)


@pytest.mark.parametrize(
    "words",
    [
        "bandit",
        "bandit()",
        "bandit(10",
        "bandit(1e3)",
        "bandit(10.0)",
        "bandit(x)",
        "bandit(10,)",
        "bandit(10,10)",
        "bandit(m=10)",
        "bandit(n=10,n=10)",
        "bandit(10)(10)",
        "bandit(0)",
        "complete(3,3)",
        "complete(3,3,3,3)",
        "complete(3,actions=3,depth=2)",
        "complete(depth=2,3,3)",
        "complete(actions=2,3,3)",
        "leduc_poker(2)",
        "kuhn_poker(players=two)",
        "Kuhn_Poker",
        "chess",
        "",
    ],
)
def test_words_are_read_strictly(words):
    with pytest.raises(ValueError, match="game"):
        load(words)


@pytest.mark.parametrize(
    ("words", "actions"),
    [
        ("bandit(7)", 7),
        (" bandit( n = 7 ) ", 7),
        ("complete(3,2,2)", 21),
        ("complete(3, depth=2, observations=2)", 21),
        ("kuhn_poker()", 13),
        ("kuhn_poker( 3 )", 33),
    ],
)
def test_words_that_are_taken(words, actions):
    assert load(words)[0].n_actions == actions
