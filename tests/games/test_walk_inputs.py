"""What the walk is given: chance, players, opponents, limits; and what it refuses."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from equinoise.games import Policy, load, load_joint
from equinoise.games.walk.walk import walk
from naive import ListedGame, chance, end, move


def listed(node, n_players=2, labels=None):
    return ListedGame(n_players, node, labels)


def one_chance(*probabilities):
    return listed(
        move(0, "s", chance(probabilities, *(end(i, 0) for i in range(len(probabilities)))), end(9, 0))
    )


@pytest.mark.parametrize(
    ("probabilities", "error"),
    [
        ((0.5, -0.5, 1.0), ValueError),
        ((0.5, math.nan), ValueError),
        ((0.5, math.inf), ValueError),
        ((0.5, 0.6), ValueError),
        ((0.5, 0.49998), ValueError),
        ((0.0, 0.0), ValueError),
        ((0.5, "0.5"), TypeError),
        ((), ValueError),
        ((Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**4)), ValueError),
    ],
)
def test_wrong_chance_is_refused(probabilities, error):
    with pytest.raises(error, match="history 2 of the game must have"):
        walk(one_chance(*probabilities))


def test_chance_that_nearly_sums_to_one_is_scaled_with_one_warning():
    with pytest.warns(UserWarning, match=r"at 1 places.*0\.999999") as caught:
        _, environment = walk(one_chance(0.333333, 0.333333, 0.333333))
    assert len(caught) == 1
    assert environment.leaf_prob[:3].tolist() == [1 / 3] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walk(one_chance(0.1, 0.2, 0.7))
        walk(one_chance(0.5, 0.5 + 5e-10))


def test_a_learner_who_never_moves_is_refused():
    for game in (end(0, 0), move(1, "o", end(0, 0), end(1, 1))):
        with pytest.raises(ValueError, match=r"player.* 0 "):
            walk(listed(game))
    tree, environment = walk(listed(chance((0.25, 0.75), end(4, 0), end(0, 0))))  # a lottery has a value
    assert tree.n_actions == 1
    assert environment.utility(environment.expected_loss([1.0])) == 1.0


def test_players_by_label():
    game = move(0, "s", move(1, "o", end(0, 5), end(1, 6), end(1, 7)), end(0, 0))
    tree, _ = walk(listed(game, labels=("Ann", "Bob")), player="Bob")
    assert tree.infoset_labels == ("(start)", "o")
    for player, labels in [(1, ("Ann", "Bob")), ("1", ("Ann", "Bob")), ("1", ("2", "1")), ("1", ("1", "1"))]:
        assert walk(listed(game, labels=labels), player=player)[0].infoset_labels == ("(start)", "o")
    assert walk(listed(game, labels=("1", "2")), player="1")[0].infoset_labels == (
        "s",
    )  # a label comes first
    for player, labels, error in [
        ("Eve", ("Ann", "Bob"), ValueError),
        ("Ann", ("Ann", "Ann"), ValueError),
        (2, ("Ann", "Bob"), ValueError),
        ("2", ("Ann", "Bob"), ValueError),
        ("1" * 5000, ("Ann", "Bob"), ValueError),
        ("-1", ("Ann", "Bob"), ValueError),
        (-1, ("Ann", "Bob"), ValueError),
        (0.0, ("Ann", "Bob"), TypeError),
        (None, ("Ann", "Bob"), TypeError),
    ]:
        with pytest.raises(error, match="player"):
            walk(listed(game, labels=labels), player=player)


OPPONENT = move(0, "s", move(1, "o", end(0, 0), end(1, 1), labels=("up", "down")), end(0, 0))


@pytest.mark.parametrize(
    ("opponents", "error", "words"),
    [
        ("best", ValueError, "opponents"),
        (None, TypeError, "opponents"),
        (3, TypeError, "opponents"),
        ({}, ValueError, "opponents must cover infoset 'o'"),
        ({"o": [0.5, 0.4]}, ValueError, r"opponents\['o'\]"),
        ({"o": [1.0]}, ValueError, r"opponents\['o'\]"),
        ({"o": [1.5, -0.5]}, ValueError, r"opponents\['o'\]"),
        ({"o": "ab"}, TypeError, r"opponents\['o'\]"),
        ({"o": 0.5}, TypeError, r"opponents\['o'\]"),
        ({"o": {"up": 1.0}}, ValueError, r"opponents\['o'\].*'down'"),
        ({"o": {"up": 0.5, "down": 0.5, "left": 0.0}}, ValueError, r"opponents\['o'\]"),
        ({"o": {"up": True, "down": False}}, TypeError, r"opponents\['o'\]"),
    ],
)
def test_wrong_opponents_are_refused(opponents, error, words):
    with pytest.raises(error, match=words):
        walk(listed(OPPONENT), opponents=opponents)


def test_opponents_by_a_function_and_by_a_policy():
    row = {"up": 0.25, "down": 0.75}
    asked = []
    for opponents in ({"o": row}, lambda label: asked.append(label) or row, lambda label: [0.25, 0.75]):
        _, environment = walk(listed(OPPONENT), opponents=opponents)
        assert environment.utility(environment.best_response()[0]) == 0.75
    assert asked == ["o"]  # once for each infoset
    theirs, _ = walk(listed(OPPONENT), player=1)
    policy = Policy(theirs, [1.0, 0.25, 0.75])
    assert walk(listed(OPPONENT), opponents=policy)[1].action_loss.tolist() == [0.25, 1.0]
    with pytest.raises(ValueError, match=r"opponents\['o'\]"):
        walk(listed(OPPONENT), opponents=lambda label: [1.0])
    with pytest.raises(ValueError, match=r"opponents must cover infoset 's'"):
        walk(listed(OPPONENT), player=1, opponents=policy)


def test_a_policy_object_is_for_openspiel_only():
    class Uniform:
        def action_probabilities(self, state, player):
            return {}

    with pytest.raises(ValueError, match=r"opponents.*OpenSpiel"):
        walk(listed(OPPONENT), opponents=Uniform())


def test_two_opponents_infosets_of_one_label_cannot_be_told_apart():
    game = move(0, "s", move(1, "o", end(0, 0, 0), end(1, 1, 1)), move(2, "o", end(0, 0, 0), end(1, 1, 1)))
    with pytest.raises(ValueError, match=r"opponents.*'o'"):
        walk(listed(game, 3), opponents={"o": [0.5, 0.5]})


def test_numbers_stand_for_labels_that_are_none():
    game = move(0, "s", move(1, "o", end(0, 0), end(1, 1), end(4, 1), labels=("", "x", "x")), end(0, 0))
    _, environment = walk(listed(game), opponents={"o": {"0": 0, "1": np.float32(0.5), "2": Fraction(1, 2)}})
    assert environment.utility(environment.best_response()[0]) == 2.5


@pytest.mark.parametrize(
    "options", [{"recall": "none"}, {"max_histories": 0}, {"recall": None}, {"max_histories": 1.5}]
)
def test_other_arguments_are_checked(options):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        walk(listed(OPPONENT), **options)


@pytest.mark.parametrize("payoff", [math.nan, math.inf, -math.inf, 1e400])
def test_payoffs_must_be_finite(payoff):
    with pytest.raises(ValueError, match=r"^game must have finite payoffs, got .* for player 0$"):
        walk(listed(move(0, "s", end(0, 0), end(payoff, 0))))


@pytest.mark.parametrize("payoff", ["1", None, 1j, "x" * 1000])
def test_payoffs_must_be_numbers(payoff):
    with pytest.raises(
        TypeError, match=r"^game must have numbers as payoffs, got .* for player 0$"
    ) as caught:
        walk(listed(move(0, "s", end(0, 0), end(payoff, 0))))
    assert len(str(caught.value)) < 200


def test_payoffs_beyond_the_floats_are_losses_all_the_same():
    _, environment = walk(listed(move(0, "s", end(0, 0), end(10**400, 0), end(10**400 // 2, 0))))
    assert environment.leaf_loss.tolist() == [1.0, 0.0, 0.5]
    assert environment.payoff_range is None


def test_something_else_than_a_game_is_refused():
    for source in ("kuhn_poker", None, [[0.5]]):
        with pytest.raises(TypeError, match="source"):
            walk(source)


FAULTS = {
    "nobody moves": ({"kind": lambda self, state: None}, "game must say who moves.*: None"),
    "half a player": ({"kind": lambda self, state: 0.5}, "game must say who moves.*: 0.5"),
    "a word for an infoset": ({"infoset": lambda self, state: "ab"}, "pair of a hashable key.*got 'ab'"),
    "no label": ({"infoset": lambda self, state: ("s",)}, r"pair of a hashable key.*got \('s',\)"),
    "a label that is none": ({"infoset": lambda self, state: (1, 1)}, "pair of a hashable key"),
    "a key in a list": ({"infoset": lambda self, state: ([1], "s")}, "pair of a hashable key"),
    "actions None": ({"actions": lambda self, state: None}, "game must give a list of actions.*got None"),
    "chance None": ({"chance": lambda self, state: None}, "game must give a list of actions.*got None"),
    "no players": ({"n_players": 0}, "game.n_players must be an integer of at least 1, got 0"),
    "players in words": ({"n_players": "2"}, "game.n_players must be an integer, got '2'"),
    "labels None": ({"player_labels": None}, "game.player_labels must be 2 strings, got None"),
    "no labels": ({"player_labels": ()}, r"game.player_labels must be 2 strings, got \(\)"),
    "a label missing": ({"player_labels": ("a",)}, "game.player_labels must be 2 strings"),
    "labels in numbers": ({"player_labels": (0, 1)}, "game.player_labels must be 2 strings"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_source_is_told_what_is_wrong(fault):
    attributes, words = FAULTS[fault]

    root = chance((0.5, 0.5), OPPONENT, end(0, 0))
    loaders = [load, load_joint]
    if "infoset" in attributes:
        loaders.append(partial(load, opponents={"o": [0.5, 0.5]}))
    for loader in loaders:
        game = type("Faulty", (ListedGame,), attributes)(2, root)
        vars(game).update({name: value for name, value in attributes.items() if not callable(value)})
        with pytest.raises((TypeError, ValueError), match=words):
            loader(game)


def test_a_class_in_place_of_a_game_is_refused():
    for loader in (load, load_joint):
        with pytest.raises(TypeError, match=r"game must be one of .* game object\), got <class"):
            loader(ListedGame)
    with pytest.raises(TypeError, match="source must be"):
        walk(ListedGame)


def test_payoffs_of_numpy_are_taken():
    _, environment = walk(listed(move(0, "s", end(np.float32(0.5), 0), end(np.int64(1), 0), end(0, 0))))
    assert environment.leaf_loss.tolist() == [0.5, 0.0, 1.0]


def test_a_broken_source_is_refused():
    for node, words in [
        (move(7, "s", end(0, 0)), "no player"),
        (move(1, "s"), "actions"),
        (move(0, "s"), "actions"),
        (move(0, "s", end(0, 0), labels=("a", "b")), None),
    ]:
        game = listed(move(0, "root", node, end(0, 0)))
        with pytest.raises((ValueError, IndexError), match=words):
            walk(game)
