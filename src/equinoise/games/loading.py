"""One door to every game: built-in names, OpenSpiel, Gambit's files."""

import math
import os
from pathlib import Path
from typing import Any

from equinoise import _checks
from equinoise.games.catalog import BUILT_IN, from_words
from equinoise.games.environment import Environment
from equinoise.games.openspiel import OpenSpielGame, is_game, load_openspiel
from equinoise.games.tree import GameTree
from equinoise.games.walk.limits import MAX_BYTES, MAX_HISTORIES, Limits
from equinoise.games.walk.walk import Source, player_number, walk

_PREFIX = "openspiel:"


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
    FileNotFoundError, ImportError
        There is no such ``.efg`` file; the game is one of OpenSpiel, which is not installed.
    TypeError, ValueError
        An argument is wrong. An infoset forgets (the message names it and two histories of the learner) or
        has now more, now fewer actions, a probability is wrong, a payoff is not finite, the game is too
        large; or the learner never moves, though others do or the game is over at once.

    Warns
    -----
    UserWarning
        Probabilities had to be scaled by more than 1e-9 to sum to one.

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
