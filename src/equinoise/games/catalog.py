"""The built-in games: two pokers, and two families of any size for measuring."""

import re
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results
from equinoise._checks import Row
from equinoise._typing import Any, Callable, Mapping
from equinoise.games.environment import Environment
from equinoise.games.poker import kuhn_poker, leduc_poker
from equinoise.games.tree import GameTree, seal

_MOST = 2**31
_NUMBERS = 8  # of 8 bytes that an action of these games takes, with what is made on the way
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
    _results.check_memory(n, _NUMBERS, "n")
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
    _results.check_memory(n_actions, _NUMBERS, "actions, observations and depth")
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
    """
    match = _WORDS.fullmatch(words.strip())
    if match is None or match[1] not in BUILT_IN:
        return None
    game = BUILT_IN[match[1]]
    try:
        placed, named = _parameters(match[2] or "")
        return game.make(*placed, **named)
    except TypeError:
        raise ValueError(f"game must be like {game.form}, got {_checks.shown(words)}") from None
    except ValueError as error:
        raise ValueError(f"game {_checks.shown(words)}: {error}") from None


def _parameters(text: str) -> tuple[list[int], dict[str, int]]:
    """Read integers in brackets, by place and then by name; raise TypeError where they are none."""
    placed: list[int] = []
    named: dict[str, int] = {}
    for part in text.split(",") if text.strip() else ():
        match = re.fullmatch(r"\s*(?:([a-z]+)\s*=\s*)?(-?[0-9]{1,18})\s*", part)
        if match is None or match[1] in named or (match[1] is None and named):
            raise TypeError
        if match[1] is None:
            placed.append(int(match[2]))
        else:
            named[match[1]] = int(match[2])
    return placed, named
