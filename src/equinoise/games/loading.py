"""One door to every game: built-in names, OpenSpiel, Gambit's files."""

import os
from pathlib import Path
from typing import Any

from equinoise import _checks
from equinoise.games.catalog import BUILT_IN, from_words
from equinoise.games.environment import Environment
from equinoise.games.openspiel import OpenSpielGame, is_game, load_openspiel
from equinoise.games.tree import GameTree
from equinoise.games.walk.walk import MAX_HISTORIES, player_number, walk

_PREFIX = "openspiel:"


def load(
    game: object,
    player: int | str = 0,
    opponents: object = "uniform",
    *,
    recall: str = "check",
    max_histories: int = MAX_HISTORIES,
) -> tuple[GameTree, Environment]:
    """Load a game as one player meets it.

    Parameters
    ----------
    game : str, path or pyspiel.Game
        A built-in game, such as ``"kuhn_poker(players=3)"`` (:data:`equinoise.games.catalog.BUILT_IN`);
        ``"openspiel:NAME(...)"``, any game of OpenSpiel by its own name and parameters, or the game object;
        the path of a Gambit ``.efg`` file.
    player : int or str
        The learner: a number from 0, or a player's label.
    opponents : "uniform", mapping or policy
        How the other players move: uniformly; or ``{infoset label: {action label: probability}}`` (see
        :meth:`equinoise.games.Policy.to_dict`) or ``{infoset label: [probability, ...]}``, which must cover
        all their infosets; or for OpenSpiel an object with ``action_probabilities(state, player)``.
    recall : "check" or "refine"
        An infoset that forgets what the learner itself did is refused, or split by the learner's own past.
    max_histories : int
        Stop with an error after so many nodes of the game.

    Returns
    -------
    tree : GameTree
        The learner's side.
    environment : Environment
        Everybody else.

    Raises
    ------
    FileNotFoundError
        There is no such ``.efg`` file.
    ImportError
        The game is one of OpenSpiel, which is not installed.
    TypeError, ValueError
        An argument is wrong, or the game cannot be loaded; see :func:`equinoise.games.walk.walk`.

    Examples
    --------
    >>> tree, environment = load("kuhn_poker", player=1)
    >>> tree.n_infosets, tree.action_labels[:3]
    (7, ('(start)', 'Pass', 'Bet'))
    """
    source = source_of(game)
    if isinstance(source, tuple):
        _alone(player, opponents, recall, max_histories)
        return source
    return walk(source, player, opponents, recall=recall, max_histories=max_histories)


def source_of(game: object) -> Any:
    """Find what `game` names: a source, or a finished tree and environment."""
    if is_game(game):
        return OpenSpielGame(game)
    if isinstance(game, os.PathLike):
        return _gambit(Path(game))
    if not isinstance(game, str):
        raise TypeError(f"game must be {_takes()}, got {_checks.shown(game)}")
    if game.startswith(_PREFIX):
        return load_openspiel(game.removeprefix(_PREFIX))
    if game.lower().endswith(".efg"):
        return _gambit(Path(game))
    source = from_words(game)
    if source is None:
        raise ValueError(f"game must be {_takes()}, got {_checks.shown(game)}")
    return source


def _takes() -> str:
    """Say what can be loaded."""
    names = ", ".join(game.form for game in BUILT_IN.values())
    return f"one of {names}, openspiel:NAME(...), a pyspiel.Game or the path of an .efg file"


def _gambit(path: Path) -> Any:
    """Read a file of Gambit's."""
    if not path.is_file():
        raise FileNotFoundError(f"game must be an existing .efg file, but there is no file {str(path)!r}")
    from equinoise.games.efg.reader import read_efg

    return read_efg(path)


def _alone(player: object, opponents: object, recall: str, max_histories: object) -> None:
    """Check the arguments for a game with one player, who forgets nothing."""
    player_number(("0",), player)
    if opponents != "uniform":
        raise ValueError(f"opponents must be 'uniform' in a game without any, got {_checks.shown(opponents)}")
    _checks.choice("recall", recall, ("check", "refine"))
    _checks.integer("max_histories", max_histories, minimum=1)
