"""The built-in games, and one door to every game: by name, of OpenSpiel, of Gambit's files."""

import inspect
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equinoise import _checks, _results
from equinoise._checks import Row
from equinoise._typing import Any, Callable, Mapping
from equinoise.games.environment import Environment
from equinoise.games.openspiel import OpenSpielGame, is_game, load_openspiel
from equinoise.games.poker import kuhn_poker, leduc_poker
from equinoise.games.tree import GameTree, seal
from equinoise.games.walk.walk import MAX_BYTES, MAX_HISTORIES, Limits, Source, player_number, walk

_PREFIX = "openspiel:"
_MOST = 2**31
_NUMBERS = 8  # of 8 bytes that an action of these games takes, with what is made on the way
_WORDS = re.compile(r"([a-z_]+)\s*(?:\((.*)\))?")


def bandit(n: int) -> tuple[GameTree, Environment]:
    """Return one infoset with n actions, from 1 to 2^31, each of which has a sure loss; else ValueError.

    Action ``n // 2`` is the best and loses 1/4; any other action i loses ``1/2 + (7919 i mod 1024)/4096``,
    which lies in [1/2, 3/4). Ten millions take a third of a gigabyte.

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

    An infoset has so many `actions`, an action leads to so many equally likely infosets (`observations`), and
    on the last level, the `depth`-th, to one leaf; ValueError for more than 2^31 actions in all. One action
    of each infoset is good: number ``s mod actions`` of infoset s. A leaf loses ``3/4 - k/(2 depth)`` with k
    the number of good actions on its path: the best strategy loses 1/4, uniform play ``3/4 - 1/(2 actions)``.

    Examples
    --------
    >>> tree, environment = complete(2, 2, 6)
    >>> tree, tree.depth, environment.best_response()[0]
    (GameTree(1365 infosets, 2730 actions, 2048 leaves), 6, 0.25)
    """
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
    n_actions = total * actions
    _results.check_memory(n_actions, _NUMBERS, "actions, observations and depth")
    n_inner = n_actions - sizes[-1] * actions
    number = np.arange(n_actions + 1, dtype=np.int64)
    tree = GameTree(
        action_ptr=seal(np.arange(0, n_actions + 1, actions, dtype=np.int64)),
        infoset_ptr=seal(1 + observations * np.minimum(number, n_inner)),
        leaf_ptr=seal(np.maximum(number - n_inner, 0)),
    )
    picks, first = np.zeros(0), 0
    for size in sizes:
        picks = np.repeat(np.repeat(picks, observations) if first else np.zeros(1), actions)
        picks[np.arange(size) * actions + np.arange(first, first + size) % actions] += 1.0
        first += size
    probability = np.full(total, 1.0 / observations)
    probability[0] = 1.0
    loss = 0.75 - 0.5 * (picks / depth)
    return tree, Environment(tree, seal(probability), seal(np.ones(len(loss))), seal(loss))


@dataclass(frozen=True, kw_only=True)
class Game(Row):
    """A built-in game: what makes it, of parameters that are all integers, and small examples."""

    make: Callable[..., Any]
    examples: tuple[str, ...]

    @property
    def form(self) -> str:
        """How the game is written with its parameters."""
        names = ", ".join(inspect.signature(self.make).parameters)
        return f"{self.name}({names})" if names else self.name


def _game(make: Any, source: str, summary: str, *examples: str) -> Game:
    return Game(name=make.__name__, summary=summary, source=source, make=make, examples=examples)


_KUHN = "Kuhn (1950), A simplified two-person poker"
_LEDUC = "Southey and others (2005), Bayes' bluff: opponent modelling in poker"
_ONE_CARD = "one card each and one bet, for two players or as many as one says"
_MEASURE = "for measuring"
_GAMES = (
    _game(kuhn_poker, _KUHN, _ONE_CARD, "kuhn_poker", "kuhn_poker(players=3)"),
    _game(leduc_poker, _LEDUC, "six cards, two rounds of bets, a public card between them", "leduc_poker"),
    _game(bandit, _MEASURE, "one infoset with n actions, each of which has a sure loss", "bandit(10)"),
    _game(complete, _MEASURE, "a tree in which all infosets of a level look alike", "complete(3,3,3)"),
)
#: The built-in games by name.
BUILT_IN: Mapping[str, Game] = {row.name: row for row in _GAMES}


def from_words(words: str) -> Any:
    """Make a built-in game, a source or (GameTree, Environment), of what a person writes, or return None."""
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


def load(
    game: object,
    player: int | str = 0,
    opponents: object = "uniform",
    *,
    recall: str = "check",
    max_histories: int = MAX_HISTORIES,
    max_bytes: float = MAX_BYTES,
    max_seconds: float = math.inf,
    progress: bool = False,
) -> tuple[GameTree, Environment]:
    """Load a game as one player meets it.

    Parameters
    ----------
    game : str, path, pyspiel.Game or Source
        A built-in game, such as ``"kuhn_poker(players=3)"`` (:data:`equinoise.games.catalog.BUILT_IN`);
        ``"openspiel:NAME(...)"``, any game of OpenSpiel by its own name and parameters, or the game object;
        the path of a Gambit ``.efg`` file; or a game of your own, as :func:`equinoise.games.from_dict`
        returns it or a class that is a :class:`equinoise.games.Source`.
    player : int or str
        The learner: a number from 0, or a player's label. A string that is no label may be a number.
    opponents : "uniform", mapping, function or policy
        How the other players move: uniformly; or ``{infoset label: {action label: probability}}`` or
        ``{infoset label: [probability, ...]}``, which must cover all their infosets; or a function that takes
        a label and returns such a row; or a :class:`equinoise.games.Policy`; or for a game of OpenSpiel any
        policy of its own, in C++ or Python, or an object with ``action_probabilities(state, player)``.
    recall : "check" or "refine"
        An infoset that forgets what the learner itself did is refused, or split by the learner's own past. A
        game of OpenSpiel that has observations and no information states can be refined only: then the
        learner remembers what it observed whenever it moved, and what it did.
    max_histories, max_bytes, max_seconds : float
        Stop with an error, which names the argument to raise, at a game of more nodes than a million, one
        whose tree takes more than a gigabyte (roughly), or one that takes longer. OpenSpiel's games have
        100,000 nodes a second or so. One that is far too large is refused after a few thousand, by random
        playouts that tell so; the chance that one of at most `max_histories` is refused is below 1e-12.
    progress : bool
        Whether to count nodes on stderr meanwhile, where that is a terminal.

    Returns
    -------
    tree : GameTree
        The learner's infosets and actions. Where the first move is not the learner's, the root is an infoset
        with the single action "(start)".
    environment : Environment
        Probabilities given that the action above is played and reached. Branches of probability zero are
        kept, those below an unreachable action are equally likely. A payoff u is the loss
        ``(u_max - u)/(u_max - u_min)``, with the payoffs found at the leaves, those of probability zero
        included: so all environments of one game share one scale. Leaves of one action and payoff are one.
        Where a game gives fractions everything is exact until the last rounding.

    Raises
    ------
    FileNotFoundError, ImportError, TypeError, ValueError
        There is no such ``.efg`` file; OpenSpiel is not installed; an argument is wrong. An infoset forgets
        (the message names it and two histories of the learner) or has now more, now fewer actions, a
        probability is wrong (UserWarning where its sum is off by 1e-9 to 1e-5, and scaled), a payoff is not
        finite, the game is too large; or the learner never moves, though others do or the game is over.

    Examples
    --------
    >>> tree, environment = load("kuhn_poker", player=1)
    >>> tree.n_infosets, tree.action_labels[:3]
    (7, ('(start)', 'Pass', 'Bet'))
    """
    source = source_of(game, recall)
    if not isinstance(source, tuple):
        limits: Any = {"max_histories": max_histories, "max_bytes": max_bytes, "max_seconds": max_seconds}
        return walk(source, player, opponents, recall=recall, progress=progress, **limits)
    player_number(("0",), player)  # a game with one player, who forgets nothing
    if opponents != "uniform":
        raise ValueError(f"opponents must be 'uniform' in a game without any, got {_checks.shown(opponents)}")
    _checks.choice("recall", recall, ("check", "refine"))
    Limits(max_histories, max_bytes, max_seconds, progress)
    return source


def source_of(game: object, recall: str = "check") -> Any:
    """Find what `game` names: a source, or a finished tree and environment."""
    if isinstance(game, Source) and not isinstance(game, type):
        return game
    if is_game(game):
        return OpenSpielGame(game, recall)
    if isinstance(game, str) and game.startswith(_PREFIX):
        return load_openspiel(game.removeprefix(_PREFIX), recall)
    if isinstance(game, os.PathLike) or (isinstance(game, str) and game.lower().endswith(".efg")):
        if not Path(game).is_file():
            raise FileNotFoundError(f"game must be an existing .efg file, but there is no file {str(game)!r}")
        from equinoise.games.efg.reader import read_efg

        return read_efg(game)
    source = from_words(game) if isinstance(game, str) else None
    if source is None:
        names = ", ".join(row.form for row in BUILT_IN.values())
        takes = f"one of {names}, openspiel:NAME(...) or the path of an .efg file"
        words = f"game must be {takes} (in Python also a game object), got {_checks.shown(game)}"
        raise ValueError(words) if isinstance(game, str) else TypeError(words)
    return source
