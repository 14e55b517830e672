"""The built-in games: two pokers, and two families of any size for measuring."""

import numbers
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from equinoise import _checks
from equinoise._checks import Row
from equinoise._typing import Any, Array, Callable, Mapping
from equinoise.games.environment import Environment
from equinoise.games.poker import kuhn_poker, leduc_poker
from equinoise.games.tree import GameTree, seal

# Small trees written down as nested lists.


def from_nested(nested: Any) -> tuple[GameTree, Environment]:
    """Build a tree and its environment from nested lists.

    Parameters
    ----------
    nested : list
        An infoset: a list of actions. An action is a list of children, all equally likely; a child is an
        infoset (a list) or a number in [0, 1], which is a leaf with that loss.

    Raises
    ------
    TypeError, ValueError
        Something in it is neither list nor number, an empty list, or a number outside [0, 1]; the message
        names the place, such as ``nested[0][1]``.

    Examples
    --------
    Take a sure loss of a half, or toss a coin: heads is free, after tails choose again.

    >>> tree, environment = from_nested([[0.5], [0.0, [[0.75], [1.0]]]])
    >>> tree
    GameTree(2 infosets, 4 actions, 4 leaves)
    >>> environment.best_response()
    (0.375, array([0., 1., 1., 0.]))
    """
    _check_ends(nested)
    infosets = [nested]
    parents: list[tuple[int, int, int]] = [
        (-1, 0, 0)
    ]  # for a message: infoset, action and child of each list
    action_ptr, infoset_ptr, leaf_ptr = [0], [1], [0]
    infoset_prob, leaf_prob, leaf_loss = [1.0], [], []
    for s, infoset in enumerate(infosets):  # the list grows while it is read, so it goes breadth first
        _check_list(infoset, "an infoset, a list of actions", parents, s)
        for a, action in enumerate(infoset):
            _check_list(action, "an action, a list of children", parents, s, a)
            share = 1.0 / len(action)
            for c, child in enumerate(action):
                if isinstance(child, list | tuple):
                    infosets.append(child)
                    parents.append((s, a, c))
                    infoset_prob.append(share)
                else:
                    leaf_loss.append(_loss(child, parents, s, a, c))
                    leaf_prob.append(share)
            infoset_ptr.append(len(infosets))
            leaf_ptr.append(len(leaf_loss))
        action_ptr.append(len(infoset_ptr) - 1)
    tree = GameTree(
        _sealed(action_ptr, np.int64), _sealed(infoset_ptr, np.int64), _sealed(leaf_ptr, np.int64)
    )
    probabilities = _sealed(infoset_prob, np.float64), _sealed(leaf_prob, np.float64)
    return tree, Environment(tree, *probabilities, _sealed(leaf_loss, np.float64))


def _check_ends(nested: object) -> None:
    """Refuse lists that hold themselves, however deep; what else is wrong is found later."""
    path, done = [(nested, iter(nested if isinstance(nested, list | tuple) else ()))], set()
    within = {id(nested)}
    while path:
        child = next((x for x in path[-1][1] if isinstance(x, list | tuple) and id(x) not in done), None)
        if child is None:
            done.add(id(path[-1][0]))
            within.discard(id(path.pop()[0]))
        elif id(child) in within:
            raise ValueError(f"nested must end, but a list in it holds itself, {len(path)} lists deep")
        else:
            within.add(id(child))
            path.append((child, iter(child)))


def _sealed(values: list[Any], dtype: DTypeLike) -> Array:
    return seal(np.array(values, dtype=dtype))


def _check_list(value: object, what: str, parents: list[tuple[int, int, int]], *place: int) -> None:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{_name(parents, *place)} must be {what}, got {_checks.shown(value)}")
    if not value:
        raise ValueError(f"{_name(parents, *place)} must be {what}, got an empty list")


def _loss(child: object, parents: list[tuple[int, int, int]], *place: int) -> float:
    if isinstance(child, bool) or not isinstance(child, numbers.Real):
        name = _name(parents, *place)
        raise TypeError(f"{name} must be an infoset (a list) or a loss in [0, 1], got {_checks.shown(child)}")
    loss = float(child)
    if not 0.0 <= loss <= 1.0:
        raise ValueError(f"{_name(parents, *place)} must be a loss in [0, 1], got {_checks.shown(child)}")
    return loss


def _name(parents: list[tuple[int, int, int]], infoset: int, *rest: int) -> str:
    """Write the place of an infoset, or of something in it, as indices into `nested`."""
    steps = list(rest[::-1])
    while infoset > 0:
        infoset, action, child = parents[infoset]
        steps += [child, action]
    places = [f"[{i}]" for i in reversed(steps)]
    cut = [*places[:6], f"...({len(places) - 12} more)...", *places[-6:]] if len(places) > 20 else places
    return "nested" + "".join(cut)


_MOST = 2**31
_WORDS = re.compile(r"([a-z_]+)\s*(?:\((.*)\))?")


def bandit(n: int) -> tuple[GameTree, Environment]:
    """Return one infoset with n actions, each of which has a sure loss.

    Action ``n // 2`` is the best and loses 1/4; any other action i loses ``1/2 + (7919 i mod 1024)/4096``,
    which lies in [1/2, 3/4).

    Parameters
    ----------
    n : int
        Number of actions, from 1 to 2^31, else ValueError; ten millions take a third of a gigabyte.

    Examples
    --------
    >>> tree, environment = bandit(3)
    >>> environment.action_loss
    array([0.5       , 0.25      , 0.61669922])
    """
    n = _checks.integer("n", n, 1, _MOST)
    tree = GameTree(
        action_ptr=seal(np.array([0, n], dtype=np.int64)),
        infoset_ptr=seal(np.ones(n + 1, dtype=np.int64)),
        leaf_ptr=seal(np.arange(n + 1, dtype=np.int64)),
    )
    spread = np.arange(n, dtype=np.int64)
    spread *= 7919
    spread %= 1024
    loss = spread / 4096.0
    del spread
    loss += 0.5
    loss[n // 2] = 0.25
    return tree, Environment(tree, seal(np.ones(1)), seal(np.ones(n)), seal(loss))


def complete(actions: int, observations: int, depth: int) -> tuple[GameTree, Environment]:
    """Return a tree in which all infosets of a level look alike.

    Every infoset has the same number of actions. Every action leads to equally likely infosets, and on the
    last level to one leaf. One action of each infoset is good: number ``s mod actions`` of infoset s. A leaf
    loses ``3/4 - k/(2 depth)`` with k the number of good actions on its path: the best strategy loses 1/4,
    and uniform play ``3/4 - 1/(2 actions)``.

    Parameters
    ----------
    actions : int
        Actions of an infoset.
    observations : int
        Infosets below an action, except on the last level.
    depth : int
        Infosets on a path. The tree may have 2^31 actions; ValueError for a larger one.

    Examples
    --------
    >>> tree, environment = complete(2, 2, 6)
    >>> tree, tree.depth, environment.best_response()[0]
    (GameTree(1365 infosets, 2730 actions, 2048 leaves), 6, 0.25)
    """
    sizes = _level_sizes(actions, observations, depth)
    n_infosets, n_actions = sum(sizes), sum(sizes) * actions
    n_inner = n_actions - sizes[-1] * actions
    number = np.arange(n_actions + 1, dtype=np.int64)
    tree = GameTree(
        action_ptr=seal(np.arange(0, n_actions + 1, actions, dtype=np.int64)),
        infoset_ptr=seal(1 + observations * np.minimum(number, n_inner)),
        leaf_ptr=seal(np.maximum(number - n_inner, 0)),
    )
    picks = np.zeros(0)
    first = 0
    for size in sizes:
        good = np.repeat(picks, observations) if first else np.zeros(1)
        picks = np.repeat(good, actions)
        infosets = np.arange(first, first + size)
        picks[np.arange(size) * actions + infosets % actions] += 1.0
        first += size
    probability = np.full(n_infosets, 1.0 / observations)
    probability[0] = 1.0
    loss = 0.75 - 0.5 * (picks / depth)
    return tree, Environment(tree, seal(probability), seal(np.ones(len(loss))), seal(loss))


def _level_sizes(actions: int, observations: int, depth: int) -> list[int]:
    """Return the number of infosets on every level, or refuse a tree that is too large."""
    actions = _checks.integer("actions", actions, 1)
    observations = _checks.integer("observations", observations, 1)
    depth = _checks.integer("depth", depth, 1)
    sizes, total = [1], 1
    while len(sizes) < depth and total * actions <= _MOST:
        sizes.append(sizes[-1] * actions * observations)
        total += sizes[-1]
    if total * actions > _MOST:
        asked = f"complete({actions},{observations},{depth})"
        raise ValueError(f"actions, observations and depth must give at most 2^31 actions, got {asked}")
    return sizes


@dataclass(frozen=True, kw_only=True)
class Game(Row):
    """A built-in game: what makes it, the names of its parameters (all integers), and small examples."""

    make: Callable[..., Any]
    parameters: tuple[str, ...] = ()
    examples: tuple[str, ...]

    @property
    def form(self) -> str:
        """How the game is written with its parameters."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


_ROWS = (
    Game(
        name="kuhn_poker",
        summary="one card each and one bet, for two players or as many as one says",
        source="Kuhn (1950), A simplified two-person poker",
        make=kuhn_poker,
        parameters=("players",),
        examples=("kuhn_poker", "kuhn_poker(players=3)"),
    ),
    Game(
        name="leduc_poker",
        summary="six cards, two rounds of bets, a public card between them",
        source="Southey and others (2005), Bayes' bluff: opponent modelling in poker",
        make=leduc_poker,
        examples=("leduc_poker",),
    ),
    Game(
        name="bandit",
        summary="one infoset with n actions, each of which has a sure loss",
        source="for measuring",
        make=bandit,
        parameters=("n",),
        examples=("bandit(10)",),
    ),
    Game(
        name="complete",
        summary="a tree in which all infosets of a level look alike",
        source="for measuring",
        make=complete,
        parameters=("actions", "observations", "depth"),
        examples=("complete(3,3,3)",),
    ),
)
#: The built-in games by name.
BUILT_IN: Mapping[str, Game] = {row.name: row for row in _ROWS}


def from_words(words: str) -> Any:
    """Make a built-in game from what a person writes: its name, with integers in brackets, or ``name=value``.

    Returns a source or (GameTree, Environment), and None when no built-in game has this name.

    Examples
    --------
    >>> from_words("kuhn_poker(players=3)").n_players, from_words("chess")
    (3, None)
    """
    match = _WORDS.fullmatch(words.strip())
    if match is None or match[1] not in BUILT_IN:
        return None
    game = BUILT_IN[match[1]]
    try:
        return game.make(**_parameters(match[2], game.parameters))
    except TypeError:
        form = f"{game.name}({', '.join(game.parameters)})"
        raise ValueError(f"game must be like {form}, got {_checks.shown(words)}") from None
    except ValueError as error:
        raise ValueError(f"game {_checks.shown(words)}: {error}") from None


def _parameters(text: str | None, names: tuple[str, ...]) -> dict[str, int]:
    """Read integers in brackets, by place or by name; raise TypeError where that is not what they are."""
    found: dict[str, int] = {}
    named = False
    for i, part in enumerate(text.split(",") if text and text.strip() else ()):
        match = re.fullmatch(r"\s*(?:([a-z]+)\s*=\s*)?(-?[0-9]{1,18})\s*", part)
        if match is None or (match[1] is None and (named or i >= len(names))):
            raise TypeError
        named = match[1] is not None
        name = match[1] or names[i]
        if name in found or name not in names:
            raise TypeError
        found[name] = int(match[2])
    return found
