"""Small games written down as what JSON holds: a whole game as dicts, or one learner's tree as lists."""

import numbers
import re
from array import array
from fractions import Fraction

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Iterator, Sequence
from equinoise.games.efg import grammar
from equinoise.games.efg.reader import GambitGame
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree, seal
from equinoise.games.walk.others import CHANCE, TERMINAL, Distributions
from equinoise.games.walk.walk import player_number

#: The number of the part that holds another one, and the indices of that within it.
_Above = tuple[int, tuple[Any, ...]]
#: A node as from_dict reads it: who moves, infoset, labels of actions, payoffs or probabilities of chance.
_Node = tuple[int, str, tuple[str, ...], tuple[Any, ...]]


def from_nested(nested: Any) -> tuple[GameTree, Environment]:
    """Build a tree and its environment from nested lists.

    Parameters
    ----------
    nested : list
        An infoset: a list of actions. An action is a list of children, all equally likely; a child is an
        infoset (a list) or a number in [0, 1], which is a leaf with that loss. TypeError or ValueError for
        anything else names the place, such as ``nested[0][1]``.

    Examples
    --------
    Take a sure loss of a half, or toss a coin: heads is free, after tails choose again.

    >>> tree, environment = from_nested([[0.5], [0.0, [[0.75], [1.0]]]])
    >>> tree
    GameTree(2 infosets, 4 actions, 4 leaves)
    >>> environment.best_response()
    (0.375, array([0., 1., 1., 0.]))
    """
    _check_ends("nested", nested)
    infosets = [nested]
    above: list[_Above] = [(-1, ())]
    action_ptr, infoset_ptr, leaf_ptr = [0], [1], [0]
    infoset_prob, leaf_prob, leaf_loss = [1.0], [], []
    for s, infoset in enumerate(infosets):  # the list grows while it is read, so it goes breadth first
        here: tuple[int, ...] = ()
        try:
            for a, action in enumerate(_filled(infoset, "an infoset, a list of actions")):
                here = (a,)
                for c, child in enumerate(_filled(action, "an action, a list of children")):
                    here = a, c
                    if isinstance(child, list | tuple):
                        infosets.append(child)
                        above.append((s, here))
                        infoset_prob.append(1.0 / len(action))
                    else:
                        leaf_loss.append(_loss(child))
                        leaf_prob.append(1.0 / len(action))
                infoset_ptr.append(len(infosets))
                leaf_ptr.append(len(leaf_loss))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{_place('nested', above, s, here)} must be {error}") from None
        action_ptr.append(len(infoset_ptr) - 1)
    pointers: Any = (seal(np.array(ptr, dtype=np.int64)) for ptr in (action_ptr, infoset_ptr, leaf_ptr))
    tree = GameTree(*pointers)
    chances: Any = (seal(np.array(values)) for values in (infoset_prob, leaf_prob, leaf_loss))
    return tree, Environment(tree, *chances)


def _filled(value: Any, what: str) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{what}, got {_checks.shown(value)}")
    if not value:
        raise ValueError(f"{what}, got an empty list")
    return value


def _loss(child: Any) -> float:
    number = isinstance(child, numbers.Real) and not isinstance(child, bool)
    if not number or not 0 <= child <= 1:
        words = f"an infoset (a list) or a loss in [0, 1], got {_checks.shown(child)}"
        raise ValueError(words) if number else TypeError(words)
    return float(child)


def _place(name: str, above: list[_Above], place: int, rest: tuple[Any, ...] = ()) -> str:
    """Write a place as indices into what is called `name`, of which the deepest are `rest`."""
    steps = [rest]
    while place >= 0:
        place, rest = above[place]
        steps.append(rest)
    places = [f"[{step!r}]" for part in reversed(steps) for step in part]
    cut = [*places[:6], f"...({len(places) - 12} more)...", *places[-6:]] if len(places) > 20 else places
    return name + "".join(cut)


def _check_ends(name: str, value: object) -> None:
    """Refuse lists and dicts that hold themselves, however deep; what else is wrong is found later."""
    path, done, within = [(value, _parts(value))], set(), {id(value)}
    while path:
        child = next((x for x in path[-1][1] if id(x) not in done), None)
        if child is None:
            done.add(id(path[-1][0]))
            within.discard(id(path.pop()[0]))
        elif id(child) in within:
            raise ValueError(f"{name} must end, but something in it holds itself, {len(path)} levels deep")
        else:
            within.add(id(child))
            path.append((child, _parts(child)))


def _parts(value: object) -> Iterator[object]:
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return (part for part in held if isinstance(part, dict | list | tuple))


def from_dict(game: dict[str, Any]) -> GambitGame:
    """Make a game of many players, for :func:`equinoise.games.load`, from nested dicts as JSON can hold them.

    Parameters
    ----------
    game : dict
        ``{"players": [label, ...], "root": node}``. A node is one of

        * ``{"player": label or number, "infoset": label, "actions": {label: node, ...}}``; nodes of
          one player and infoset look alike to the player and have the same actions in the same order;
        * ``{"chance": {label: probability, ...}, "actions": {label: node, ...}}`` with the same labels;
        * ``{"payoffs": [number, ...]}``, one for each player.

        Numbers may be strings, such as "1/3", and are exact then. TypeError or ValueError where a node is not
        like this, or the dicts never end, names the place, such as ``game['root']['heads']['bet']``.

    Examples
    --------
    Bob guesses a coin that is not fair:

    >>> def guess(payoffs):
    ...     ends = {"heads": {"payoffs": payoffs[0]}, "tails": {"payoffs": payoffs[1]}}
    ...     return {"player": "Bob", "infoset": "?", "actions": ends}
    >>> sides = {"heads": guess([[-1, 1], [1, -1]]), "tails": guess([[1, -1], [-1, 1]])}
    >>> coin = {"chance": {"heads": "1/4", "tails": "3/4"}, "actions": sides}
    >>> from equinoise.games import best_response_value, load
    >>> tree, environment = load(from_dict({"players": ["Ann", "Bob"], "root": coin}), player="Bob")
    >>> best_response_value(environment)
    0.5
    """
    if not isinstance(game, dict) or set(game) != {"players", "root"}:
        raise TypeError("game must be a dict of players and root")
    players = game["players"]
    if not isinstance(players, list | tuple) or not players or not all(isinstance(x, str) for x in players):
        raise TypeError("game['players'] must be a list of labels")
    _check_ends("game", game)
    nodes = [game["root"]]
    above: list[_Above] = [(-1, ("root",))]
    number, entry_of = {id(nodes[0]): 0}, dict[tuple[int, str], int]()
    infosets: list[_Node] = [(TERMINAL, "", (), ())]
    infoset_of, first_child, sum_of, children = array("q"), array("q"), array("q"), array("q", [0])
    sums = [Fraction(0)] * len(players)
    distributions = Distributions()
    for s, node in enumerate(nodes):  # the list grows while it is read
        try:
            player, label, actions, values = _node(node, players, distributions)
            entry = 0 if player == TERMINAL else entry_of.setdefault((player, label or str(s)), len(infosets))
            if entry == len(infosets):
                infosets.append((player, label, actions, values))
            elif entry and infosets[entry][2] != actions:
                here, there = map(_checks.shown, (actions, infosets[entry][2]))
                raise ValueError(f"infoset {label!r} has the actions {here} here and {there} elsewhere")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{_place('game', above, s)}: {error}") from None
        infoset_of.append(entry)
        first_child.append(len(children))
        sum_of.append(0 if entry else len(sums))
        sums += () if entry else values
        for action in actions:
            child = node["actions"][action]
            if number.setdefault(id(child), len(nodes)) == len(nodes):
                nodes.append(child)
                above.append((s, (action,)))
            children.append(number[id(child)])
    distributions.warn()
    movers, *columns = zip(*infosets, strict=True)
    said = "game", "", "", tuple(players), array("q", movers), array("q", range(len(infosets)))
    lines = array("q", bytes(8 * len(nodes)))
    parts: Any = *said, *columns, infoset_of, first_child, children, tuple(sums), sum_of, lines
    return GambitGame(*parts)


def _node(node: Any, players: Sequence[str], distributions: Distributions) -> _Node:
    """Return who moves at a node, the infoset, the labels of the actions, and payoffs or probabilities."""
    keys = set(node) if isinstance(node, dict) else set()
    if keys == {"payoffs"}:
        payoffs = node["payoffs"]
        if not isinstance(payoffs, list | tuple) or len(payoffs) != len(players):
            raise TypeError(f"payoffs must be a list of {len(players)} numbers")
        return TERMINAL, "", (), tuple(map(_number, payoffs))
    if keys not in ({"chance", "actions"}, {"player", "infoset", "actions"}):
        words = "of payoffs, of chance and actions, or of player, infoset and actions"
        raise TypeError(f"a node must be a dict {words}")
    actions = node["actions"]
    if not isinstance(actions, dict) or not actions or not all(isinstance(label, str) for label in actions):
        raise TypeError("actions must be a dict of nodes by their labels")
    if "chance" in keys:
        chance = node["chance"]
        if not isinstance(chance, dict) or chance.keys() != actions.keys():
            raise TypeError("chance must be a dict with the labels of actions")
        chances = distributions([_number(chance[x]) for x in actions], len(actions), lambda: "chance")
        return CHANCE, "", tuple(actions), tuple(chances)
    label = node["infoset"]
    if not isinstance(label, str) or not label:
        raise TypeError("infoset must be a label")
    return player_number(players, node["player"]), label, tuple(actions), ()


def _number(value: Any) -> Fraction:
    """Return a number, or a string that is one, exactly."""
    if isinstance(value, str) and re.fullmatch(grammar.NUMBER, value):
        return grammar.number(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value - value != 0:  # inf, NaN
        raise TypeError(f"a number must be finite, or a string like '1/3', got {_checks.shown(value)}")
    return Fraction(value if isinstance(value, numbers.Rational) else float(value))
