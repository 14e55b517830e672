"""The walk against plain recursion over the game itself; recall, opponents, probabilities, limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import naive
from equinoise.games import load, realization_plan
from equinoise.games.walk.walk import MAX_HISTORIES, walk
from naive import chance, end, move

seeds = st.integers(0, 2**32 - 1)


def own_policy(tree, policy):
    """A policy of the learner as {infoset: probabilities}, for naive.game_value."""
    rows = {}
    for s in range(tree.n_infosets):
        own = slice(tree.action_ptr[s], tree.action_ptr[s + 1])
        rows[tree.infoset_labels[s]] = policy[own].tolist()
    return rows


def by_label(node):
    """The same game with its infosets' labels as their keys."""
    if node[0] == "end":
        return node
    children = tuple(by_label(child) for child in node[-1])
    return (*node[:2], str(node[2]), node[3], children) if node[0] == "move" else (*node[:2], children)


def random_walk(seed, **options):
    rng = np.random.default_rng(seed)
    game = naive.random_game(rng, **options)
    assume(naive.moves_of(game, 0))
    return rng, by_label(game)


def random_policy(rng, tree):
    policy = rng.random(tree.n_actions)
    sums = np.add.reduceat(policy, tree.action_ptr[:-1])
    return policy / np.repeat(sums, np.diff(tree.action_ptr))


def infosets_of(node, player):
    """Number of actions of every infoset of a player."""
    found = {}
    if node[0] != "end":
        if node[0] == "move" and node[1] == player:
            found[node[2]] = len(node[-1])
        for child in node[-1]:
            found |= infosets_of(child, player)
    return found


@settings(max_examples=300)
@given(seeds, st.sampled_from([2, 3]))
def test_values_equal_those_of_the_game(seed, players):
    rng, game = random_walk(seed, players=players)
    tree, environment = walk(naive.ListedGame(players, game))
    for _ in range(3):
        policy = random_policy(rng, tree)
        expected = naive.game_value(game, 0, own_policy(tree, policy))
        assert environment.utility(environment.expected_loss(policy)) == pytest.approx(expected, abs=1e-12)
    assert set(infosets_of(game, 0)) == set(tree.infoset_labels) - {"(start)"}


@settings(max_examples=100)
@given(seeds)
def test_best_response_equals_the_best_pure_strategy_of_the_game(seed):
    _, game = random_walk(seed, depth=4)
    tree, environment = walk(naive.ListedGame(2, game))
    assume(naive.count_strategies(tree) <= 500)
    values = []
    for picked in naive.strategies(tree):
        policy = np.zeros(tree.n_actions)
        policy[list(picked)] = 1.0
        values.append(naive.game_value(game, 0, own_policy(tree, policy)))
    assert environment.utility(environment.best_response()[0]) == pytest.approx(max(values), abs=1e-12)


@settings(max_examples=150)
@given(seeds)
def test_opponents_by_mapping(seed):
    """Random play of the others, some of it with probability zero, as dictionaries or as sequences."""
    rng, game = random_walk(seed, players=2)
    rows = {}
    for infoset, n in infosets_of(game, 1).items():
        weights = rng.integers(0, 3, size=n) + np.eye(n, dtype=int)[rng.integers(n)]
        rows[infoset] = [float(w) for w in weights / weights.sum()]
    named = {s: dict(zip("abc", row, strict=False)) if rng.random() < 0.5 else row for s, row in rows.items()}
    tree, environment = walk(naive.ListedGame(2, game), opponents=named)
    assert tree.same_as(walk(naive.ListedGame(2, game))[0])  # nothing is cut away
    policy = random_policy(rng, tree)
    others = {(1, infoset): row for infoset, row in rows.items()}
    expected = naive.game_value(game, 0, own_policy(tree, policy), others)
    assert environment.utility(environment.expected_loss(policy)) == pytest.approx(expected, abs=1e-12)


def forgetful(node):
    """Whether two nodes of one infoset of player 0 have different pasts of that player."""
    seen = {}

    def visit(node, past):
        if node[0] == "end":
            return False
        own = node[0] == "move" and node[1] == 0
        if own and seen.setdefault(node[2], past) != past:
            return True
        return any(visit(c, (*past, (node[2], i)) if own else past) for i, c in enumerate(node[-1]))

    return visit(node, ())


@settings(max_examples=300)
@given(seeds)
def test_recall_is_checked_and_refined(seed):
    _, game = random_walk(seed, remember=False)
    source = naive.ListedGame(2, game)
    if not forgetful(game):
        assert walk(source)[0].same_as(walk(source, recall="refine")[0])
        return
    with pytest.raises(ValueError, match="recall"):
        walk(source)
    tree, environment = walk(source, recall="refine")
    pairs = {(tree.infoset_labels[s], tree.infoset_action[s]) for s in range(tree.n_infosets)}
    assert len(pairs) == tree.n_infosets  # split by the own past, and no further
    uniform = tree.uniform_policy()
    expected = naive.game_value(game, 0, {s: [1 / n] * n for s, n in infosets_of(game, 0).items()})
    assert environment.utility(environment.expected_loss(uniform)) == pytest.approx(expected, abs=1e-12)


def listed(node, n_players=2, labels=None):
    return naive.ListedGame(n_players, node, labels)


def test_an_infoset_that_forgets_is_named_with_two_histories():
    later = move(0, "later", end(0, 0), end(1, 1))
    game = listed(move(0, "first", later, later, labels=("left", "right")))
    with pytest.raises(ValueError, match=r"'later'.*\['left' at 'first'\].*\['right' at 'first'\]"):
        walk(game)
    tree, _ = walk(game, recall="refine")
    assert tree.infoset_labels == ("first", "later", "later")


def test_forgetting_which_infoset_was_seen_is_refused():
    later = move(0, "later", end(0, 0), end(1, 1))
    half = (Fraction(1, 2),) * 2
    game = listed(chance(half, move(0, "red", later, end(0, 0)), move(0, "blue", later, end(0, 0))))
    with pytest.raises(ValueError, match=r"'later'.*\['a' at 'red'\].*\['a' at 'blue'\]"):
        walk(game)


def test_an_absent_minded_learner_is_refused():
    game = listed(move(0, "drive", end(0, 0), move(0, "drive", end(4, 0), end(1, 0))))
    with pytest.raises(ValueError, match=r"'drive'.*absent-minded.*\[no move\].*\['b' at 'drive'\]"):
        walk(game)
    tree, environment = walk(game, recall="refine")
    assert tree.n_infosets == 2
    assert environment.utility(environment.best_response()[0]) == 4


def test_long_histories_are_shown_from_where_they_part():
    def after(n, name, last):
        return move(0, f"{name}{n}", after(n - 1, name, last)) if n else last

    later = move(0, "later", end(0, 0))
    game = listed(after(40, "s", move(0, "fork", after(20, "t", later), later)))
    with pytest.raises(
        ValueError, match=r"40 moves, 'a' at 'fork'.*13 moves\] and \[40 moves, 'b' at 'fork'\]"
    ):
        walk(game)


def test_an_opponent_may_forget():
    later = move(1, "later", end(1, 0), end(3, 0))
    _, environment = walk(listed(move(0, "first", later, move(1, "other", later, end(0, 0)))))
    assert environment.utility(environment.best_response()[0]) == 2


@pytest.mark.parametrize("recall", ["check", "refine"])
def test_an_infoset_with_two_numbers_of_actions_is_refused(recall):
    half = (Fraction(1, 2),) * 2
    same_past = chance(half, move(0, "s", end(0, 0)), move(0, "s", end(0, 0), end(1, 1)))
    other_past = move(0, "r", move(0, "s", end(0, 0)), move(0, "s", end(0, 0), end(1, 1)))
    for game in (same_past, other_past):
        with pytest.raises(ValueError, match=r"'s'.* 1 at one and 2"):
            walk(listed(game), recall=recall)


def test_leaves_of_one_payoff_are_one():
    quarter = (Fraction(1, 4),) * 4
    game = listed(move(0, "s", chance(quarter, end(1, 0), end(2, 0), end(1, 7), end(1.0, 8)), end(0, 0)))
    tree, environment = walk(game)
    assert tree.leaf_ptr.tolist() == [0, 2, 3]
    assert environment.leaf_prob.tolist() == [0.75, 0.25, 1.0]
    assert environment.leaf_loss.tolist() == [0.5, 0.0, 1.0]
    assert environment.payoff_range == (0.0, 2.0)


def test_an_infoset_sums_the_reach_of_its_histories():
    third = (Fraction(1, 3),) * 3
    inner = move(0, "in", end(1, 0), end(0, 0))
    game = listed(move(0, "s", chance(third, inner, move(1, "o", inner, end(5, 0)), end(0, 0)), end(0, 0)))
    tree, environment = walk(game)
    assert tree.infoset_labels == ("s", "in")
    assert environment.infoset_prob.tolist() == [1.0, 0.5]
    assert environment.leaf_prob[:2].tolist() == pytest.approx([1 / 6, 1 / 3], abs=0)


def test_a_first_move_of_somebody_else_makes_a_root():
    tree, environment = walk(listed(move(1, "o", move(0, "s", end(0, 0), end(1, 0)), end(2, 0))))
    assert tree.infoset_labels == ("(start)", "s")
    assert tree.action_labels == ("(start)", "a", "b")
    assert environment.infoset_prob.tolist() == [1.0, 0.5]
    own_first, _ = walk(listed(move(0, "s", end(0, 0), end(1, 0))))
    assert own_first.infoset_labels == ("s",)


def test_branches_of_probability_zero_stay_and_share_equally():
    never = chance(
        (Fraction(1), Fraction(0)),
        end(1, 0),
        move(0, "in", end(9, 0), chance((0.5, 0.5), end(2, 0), end(3, 0))),
    )
    tree, environment = walk(listed(move(0, "s", never, end(0, 0))))
    assert environment.infoset_prob.tolist() == [1.0, 0.0]
    assert environment.payoff_range == (0.0, 9.0)
    assert dict(zip(tree.leaf_action.tolist(), environment.leaf_prob.tolist(), strict=True))[3] == 0.5
    assert environment.leaf_prob.tolist() == [1.0, 1.0, 1.0, 0.5, 0.5]


def test_payoffs_too_far_apart_for_floats():
    _, environment = walk(listed(move(0, "s", end(1e308, 0), end(-1e308, 0), end(0, 0))))
    assert environment.leaf_loss.tolist() == [0.0, 1.0, 0.5]
    assert environment.utility(0.5) == 0.0
    big = 10**40
    close = [Fraction(big), Fraction(big + 1), Fraction(big + 4)]  # equal as floats
    _, environment = walk(listed(move(0, "s", *(end(u, 0) for u in close))))
    assert environment.leaf_loss.tolist() == [1.0, 0.75, 0.0]
    huge = Fraction(10**400)  # beyond any float: losses, but no payoffs
    _, environment = walk(listed(move(0, "s", end(huge, 0), end(huge / 2, 0), end(0, 0))))
    assert environment.leaf_loss.tolist() == [0.0, 0.5, 1.0]
    assert environment.payoff_range is None


def test_equal_payoffs_lose_nothing():
    _, environment = walk(listed(move(0, "s", end(7, 0), end(7, 0))))
    assert environment.leaf_loss.tolist() == [0.0, 0.0]
    assert environment.utility(environment.expected_loss([0.5, 0.5])) == 7


def test_fractions_stay_exact_until_the_end():
    deep = end(1, 0)
    for _ in range(2000):  # 3^-2000 is far below the smallest float
        deep = chance((Fraction(1, 3), Fraction(2, 3)), deep, end(0, 0))
    third = (Fraction(1, 3), Fraction(2, 3))
    game = listed(move(0, "s", chance(third, deep, chance(third, deep, end(0, 0))), end(2, 0)))
    _, environment = walk(game)
    assert environment.leaf_prob.sum() == 2.0
    inner = move(0, "in", end(0, 0), end(1, 0))
    for _ in range(2000):
        inner = chance(third, inner, end(0, 0))
    _, environment = walk(listed(move(0, "s", inner, end(2, 0))))
    assert environment.infoset_prob[1] == float(Fraction(1, 3) ** 2000) == 0.0
    _, environment = walk(listed(inner))  # what lies below is right, however rarely it is reached
    assert environment.leaf_prob[-2:].tolist() == [1.0, 1.0]


class Corridor:
    """A game of one long path: chance, the opponent, eight times the learner, and again; each may leave."""

    n_players = 2
    player_labels = ("learner", "other")

    def __init__(self, depth):
        self.depth = depth

    def root(self):
        return 0

    def kind(self, state):
        return -4 if state < 0 or state == self.depth else {0: -1, 1: 1}.get(state % 10, 0)

    def actions(self, state):
        return ("on", "leave")

    def child(self, state, i):
        return state + 1 if i == 0 else -1

    def chance(self, state):
        return (Fraction(1), Fraction(0))

    def infoset(self, state):
        return state, f"at {state}"

    def payoff(self, state, player):
        return 1 if state == self.depth else 0


def test_thirty_thousand_moves_deep():
    stay = {f"at {state}": (1, 0) for state in range(1, 30_000, 10)}
    tree, environment = walk(Corridor(30_000), opponents=stay)
    assert (tree.depth, tree.n_actions) == (24_001, 48_001)
    loss, policy = environment.best_response()
    assert environment.utility(loss) == 1.0
    assert realization_plan(tree, policy)[-2:].tolist() == [1.0, 0.0]


def test_max_histories_says_how_far_it_came():
    words = r"max_histories.*after 100 histories, with 81 infosets and 161 actions.* 0 leaves, 100 moves deep"
    with pytest.raises(ValueError, match=words):
        walk(Corridor(300), max_histories=100)
    walk(Corridor(30), max_histories=61)
    with pytest.raises(ValueError, match="max_histories"):
        walk(Corridor(30), max_histories=60)
    assert MAX_HISTORIES == 1_000_000


def test_load_passes_everything_on():
    bets = {card + moves: [1, 0] for card in "012" for moves in ("", "pb")}  # the first player never bets
    _, environment = load("kuhn_poker", "1", bets)
    assert environment.utility(environment.best_response()[0]) == pytest.approx(1.0)  # bet, win the ante
    with pytest.raises(ValueError, match="max_histories"):
        load("kuhn_poker", max_histories=57)
    assert load("kuhn_poker", max_histories=58)[0].same_as(load("kuhn_poker", recall="refine")[0])
