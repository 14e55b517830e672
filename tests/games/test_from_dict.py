"""Games as nested dicts: the game they mean, what JSON holds of it, and the place that an error names."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import naive
from equinoise.games import Source, best_response_value, from_dict, load
from equinoise.games.catalog import source_of
from equinoise.games.walk.walk import walk
from naive import ListedGame


def as_dict(source):
    """A game as nested dicts, by plain recursion over its states."""

    def node(state):
        kind = source.kind(state)
        if kind == -4:
            return {"payoffs": [str(Fraction(source.payoff(state, p))) for p in range(source.n_players)]}
        chances = source.chance(state) if kind == -1 else ()
        labels = source.actions(state) if kind >= 0 else [f"outcome {i}" for i in range(len(chances))]
        actions = {label: node(source.child(state, i)) for i, label in enumerate(labels)}
        if kind == -1:
            return {
                "chance": dict(zip(labels, (str(Fraction(p)) for p in chances), strict=True)),
                "actions": actions,
            }
        return {
            "player": source.player_labels[kind],
            "infoset": source.infoset(state)[1],
            "actions": actions,
        }

    return json.loads(json.dumps({"players": list(source.player_labels), "root": node(source.root())}))


def assert_equal(ours, theirs, atol=0.0):
    for attribute in ("action_ptr", "infoset_ptr", "leaf_ptr", "infoset_labels", "action_labels"):
        assert np.array_equal(getattr(ours[0], attribute), getattr(theirs[0], attribute))
    for attribute in ("infoset_prob", "leaf_prob", "leaf_loss", "payoff_range"):
        np.testing.assert_allclose(
            *(getattr(pair[1], attribute) for pair in (ours, theirs)), rtol=0, atol=atol
        )


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker"])
def test_the_built_in_games_in_every_array(name):
    game = from_dict(as_dict(source_of(name)))
    for player in range(game.n_players):
        assert_equal(load(game, player), load(name, player))


@pytest.mark.parametrize("seed", range(30))
def test_random_games(seed):
    listed = naive.random_game(np.random.default_rng(seed), players=3)
    source = ListedGame(3, ("move", 0, "root", ("only",), (listed,)), ("Ann", "Bob", "Cleo"))
    assert_equal(load(from_dict(as_dict(source)), "Ann"), walk(source, "Ann"), 1e-12)


def end(*payoffs):
    return {"payoffs": list(payoffs)}


def move(player, infoset, **actions):
    return {"player": player, "infoset": infoset, "actions": actions}


def game(root, players=("Ann", "Bob")):
    return {"players": list(players), "root": root}


OK = end(0, 0)


def test_players_by_label_and_by_number():
    by_label, by_number = (
        from_dict(game(move(a, "s", left=move(b, "t", up=end(1, 0), down=end(0, 1)), right=end(0.5, 0))))
        for a, b in (("Ann", "Bob"), (0, 1))
    )
    assert by_label == by_number
    for player in (1, "1", "Bob"):
        assert best_response_value(load(by_label, player)[1]) == 0.5
    uneven = load(by_label, opponents={"t": {"up": 0.25, "down": 0.75}})[1]
    assert best_response_value(uneven) == 0.5


def test_numbers_of_all_kinds_are_exact():
    numbers = ["1/6", Fraction(1, 6), "1.5e-1", 0.25, np.float32(0.125)]
    rest = 1 - Fraction(1, 3) - Fraction("0.15") - Fraction(3, 8)
    chance = dict(zip("abcdef", [*numbers, str(rest)], strict=True))
    source = from_dict(game({"chance": chance, "actions": dict.fromkeys("abcdef", end(1, np.int64(2)))}))
    assert sum(source.chance(source.root())) == 1
    assert source.chance(0)[:2] == (Fraction(1, 6), Fraction(1, 6))
    assert source.payoff(source.child(0, 3), 1) == 2
    with pytest.warns(UserWarning, match="at 1 places"):
        from_dict(
            game({"chance": {"a": 0.333333, "b": 0.666666}, "actions": {"a": end(0, 0), "b": end(1, 1)}})
        )


def test_a_dict_may_stand_in_several_places():
    shared = move("Ann", "later", stop=end(1, 0), go=end(0, 1))
    chance = {"chance": {"a": "1/2", "b": "1/2"}, "actions": {"a": shared, "b": shared}}
    copied = json.loads(json.dumps(chance))
    assert_equal(load(from_dict(game(chance))), load(from_dict(game(copied))))
    for _ in range(100):  # 2^100 histories
        chance = {"chance": {"a": "1/2", "b": "1/2"}, "actions": {"a": chance, "b": chance}}
    with pytest.raises(ValueError, match=r"max_histories must.*as playouts show"):
        load(from_dict(game(chance)), max_histories=1_000_000)


def deep(levels, last):
    node = last
    for i in range(levels):
        node = move(i % 2, f"{levels - i}", on=node, off=end(0, 0))
    return node


def test_ten_thousand_levels():
    tree, _ = load(from_dict(game(deep(10_000, end(1, 1)))), "Bob")
    assert (tree.depth, tree.n_actions) == (5_000, 10_000)
    place = r"^game\['root'\]\['on'\].*9989 more.*\['on'\]: payoffs must"
    with pytest.raises(TypeError, match=place) as caught:
        from_dict(game(deep(10_000, end(1))))
    assert len(str(caught.value)) < 200


def test_dicts_that_never_end():
    node = move("Ann", "s", on=end(0, 0))
    node["actions"]["again"] = node
    with pytest.raises(ValueError, match="game must end, but something in it holds itself"):
        from_dict(game(node))
    lists = []
    lists.append(lists)
    for root in (lists, end(lists), move("Ann", "s", on=lists)):
        with pytest.raises(ValueError, match="must end"):
            from_dict(game(root))


WRONG = {
    "no dict": (None, "game must be a dict of players and root"),
    "no root": ({"players": ["Ann"]}, "game must be a dict of players and root"),
    "more": (game(OK) | {"title": "x"}, "game must be a dict of players and root"),
    "no players": (game(OK, ()), r"game\['players'\]"),
    "a word": ({"players": "Ann", "root": OK}, r"game\['players'\]"),
    "numbers": (game(OK, (1, 2)), r"game\['players'\]"),
    "a list": (game([]), r"^game\['root'\]: a node must"),
    "a number": (game(move("Ann", "s", on=3)), r"^game\['root'\]\['on'\]: a node must"),
    "a key too many": (game(OK | {"player": 1}), r"^game\['root'\]: a node must"),
    "no actions": (game(move("Ann", "s")), r"^game\['root'\]: actions must"),
    "listed actions": (game(move("Ann", "s") | {"actions": [OK]}), r"actions must"),
    "numbered actions": (game(move("Ann", "s") | {"actions": {1: OK}}), r"actions must"),
    "nobody": (game(move("Eve", "s", on=OK)), r"^game\['root'\]: player must.*'Eve'"),
    "number 2": (game(move(2, "s", on=OK)), r"^game\['root'\]: player must"),
    "player None": (game(move(None, "s", on=OK)), r"^game\['root'\]: player must"),
    "infoset": (game(move(0, 3, on=OK)), "infoset must"),
    "no infoset": (game(move(0, "", on=OK)), "infoset must"),
    "few payoffs": (game(move(0, "s", on=OK, off=end(1))), r"^game\['root'\]\['off'\]: payoffs must.* 2 "),
    "a payoff": (game({"payoffs": 1}), "payoffs must"),
    "a payoff in words": (game(end("one", 0)), "number must be finite, .* got 'one'"),
    "infinite": (game(end(math.inf, 0)), "number must be finite"),
    "1e400": (json.loads('{"players": ["a"], "root": {"payoffs": [1e400]}}'), "number must be finite"),
    "1e400 in quotes": (game(end("1e4000", 0)), "exponent"),
    "1/0": (game(end("1/0", 0)), "zero denominator"),
    "NaN": (game(end(math.nan, 0)), "number must be finite, .* got nan"),
    "a bool": (game(end(True, 0)), "number must be finite, .* got True"),
    "chance of another": (game({"chance": {"a": 1}, "actions": {"b": OK}}), "chance must"),
    "chance in a list": (game({"chance": [1], "actions": {"b": OK}}), "chance must"),
    "a sum": (game({"chance": {"a": 0.5}, "actions": {"a": OK}}), r"^game\['root'\]: chance must.*sum"),
    "a huge chance": (game({"chance": {"a": "1e999"}, "actions": {"a": OK}}), r"chance must.*\[0, 1\]"),
    "below zero": (game({"chance": {"a": 2, "b": -1}, "actions": {"a": OK, "b": OK}}), "chance must"),
    "other actions": (
        game(move(0, "s", a=move(1, "t", x=OK), b=move(1, "t", y=OK))),
        r"^game\['root'\]\['b'\]: infoset 't' has the actions",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_name_the_place(case):
    given, words = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        from_dict(given)
    assert "\n" not in str(caught.value)


def test_what_is_a_source():
    assert isinstance(source_of("kuhn_poker"), Source)
    assert isinstance(from_dict(game(OK)), Source)
    assert not isinstance([[0.5]], Source)
