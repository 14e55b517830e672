"""Games of OpenSpiel, by name or as objects, as a source for the walk."""

from __future__ import annotations

import contextlib
import os
import sys
from operator import methodcaller

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Callable, Hashable, Iterable, Iterator, Mapping, Sequence


def pyspiel_module() -> Any:
    """Import OpenSpiel; ImportError says how to install it."""
    try:
        import pyspiel
    except ImportError as error:
        raise ImportError('games of OpenSpiel need it: pip install "equinoise[games]"') from error
    return pyspiel


def is_game(value: object) -> bool:
    """Tell whether something is a game object of OpenSpiel, without importing it."""
    module = sys.modules.get("pyspiel")
    return module is not None and isinstance(value, module.Game)


def load_openspiel(name: str, recall: str = "check") -> OpenSpielGame:
    """Load a game by the name and parameters that OpenSpiel gives it: ``"liars_dice(dice_sides=4)"``."""
    pyspiel = pyspiel_module()
    plain = name.partition("(")[0].strip()
    if plain not in pyspiel.registered_names():
        with contextlib.suppress(ImportError):
            import open_spiel.python.games  # noqa: F401 - registers those that are written in Python
    if plain not in pyspiel.registered_names():
        raise ValueError(f"game must name a game of OpenSpiel after 'openspiel:', got {_checks.shown(name)}")
    try:
        with _quiet_stderr():
            game = pyspiel.load_game(name)
    except Exception as error:
        words = f"{_checks.shown(name)}: {_checks.line(error, 200)}"
        raise ValueError(f"game is refused by OpenSpiel, got {words}") from error
    return OpenSpielGame(game, recall)


class OpenSpielGame:
    """A game of OpenSpiel as a source for :func:`equinoise.games.walk.walk`. Its states are OpenSpiel's.

    Infosets are told apart by ``information_state_string``, or by the bytes of ``information_state_tensor``
    where there are no strings; in a game of perfect information that has neither, by the history; in any
    other, and only when `recall` is "refine", by ``observation_string``, for the walk to split them by the
    learner's own past. A game of simultaneous moves is made turn-based, players in order, none of whom sees
    what those before did in the same turn; `game` is the one that is walked.
    """

    exact = False

    def __init__(self, game: Any, recall: str = "check") -> None:
        pyspiel = pyspiel_module()
        kind, name = game.get_type(), _checks.line(game, 200)
        if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
            raise ValueError(f"game must be one of finitely many players, got the mean-field game {name}")
        if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
            raise ValueError(f"game must give the probabilities of chance, but {name} only samples from them")
        if kind.short_name == "morpion_solitaire":
            raise ValueError("game must not be morpion_solitaire, in which OpenSpiel itself crashes")
        simultaneous = kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        self.game = pyspiel.convert_to_turn_based(game) if simultaneous else game
        self.n_players: int = game.num_players()
        self.player_labels = tuple(map(str, range(self.n_players)))
        self.infoset = _infoset_reader(pyspiel, self.game, simultaneous, recall)

    def root(self) -> Any:
        """Return the initial state."""
        try:
            with _quiet_stderr():
                return self.game.new_initial_state()
        except Exception as error:
            words = f"says OpenSpiel: {_checks.line(error, 200)}"
            raise ValueError(f"game {_checks.line(self.game, 200)} has no initial state, {words}") from error

    def kind(self, state: Any) -> int:
        """Return the player to move; OpenSpiel numbers chance and the end as the walk does."""
        return state.current_player()  # type: ignore[no-any-return]

    def actions(self, state: Any) -> Sequence[str]:
        """Return OpenSpiel's words for the legal actions."""
        return [state.action_to_string(state.current_player(), action) for action in state.legal_actions()]

    def expand(self, state: Any) -> tuple[int, Iterable[Any]]:
        """Return the number of children and the children."""
        chance = state.is_chance_node()
        actions = [action for action, _ in state.chance_outcomes()] if chance else state.legal_actions()
        return len(actions), map(state.child, actions)

    def child(self, state: Any, i: int) -> Any:
        """Return the state after the i-th legal action or outcome."""
        chance = state.is_chance_node()
        return state.child(state.chance_outcomes()[i][0] if chance else state.legal_actions()[i])

    def chance(self, state: Any) -> Sequence[float]:
        """Return the probabilities of the outcomes."""
        return [probability for _, probability in state.chance_outcomes()]

    def payoff(self, state: Any, player: int) -> float:
        """Return the sum of a player's rewards."""
        return state.player_return(player)  # type: ignore[no-any-return]

    def where(self, state: Any) -> str:
        """Name a state by its history."""
        return f"the state of {_checks.line(self.game, 200)} after the actions [{state.history_str()}]"

    def policy_probabilities(self, policy: Any, state: Any, player: int) -> Sequence[float]:
        """Ask a policy of OpenSpiel for the probabilities of the legal actions."""
        compiled = isinstance(policy, sys.modules["pyspiel"].Policy)  # which takes no player
        try:
            given = dict(policy.action_probabilities(state, *[player] * (not compiled)))
        except RuntimeError as error:  # OpenSpiel's own
            words = f"{_checks.line(self.game, 200)}: {_checks.line(error, 200)}"
            raise ValueError(f"opponents cannot play {words}") from error
        legal = state.legal_actions()
        if not given.keys() <= set(legal):
            words = f"{legal} at {self.where(state)}"
            raise ValueError(f"opponents may take legal actions only, {words}, got {given}")
        return [given.get(action, 0.0) for action in legal]


def _infoset_reader(
    pyspiel: Any, game: Any, simultaneous: bool, recall: str = "check"
) -> Callable[[Any], tuple[Hashable, str]]:
    """Return what reads the infoset of a state, whichever way the game offers."""
    kind, why = game.get_type(), "does not"
    if kind.provides_information_state_string:
        read = methodcaller("information_state_string")
    elif kind.provides_information_state_tensor:
        tensor = methodcaller("information_state_tensor")
        return lambda state: (np.asarray(tensor(state), dtype=np.float32).tobytes(), "")
    elif kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION and not simultaneous:
        read = methodcaller("history_str")
    elif kind.provides_observation_string and recall == "refine":
        read = methodcaller("observation_string")
    else:
        if kind.provides_observation_string:
            why = "has observations, but no information states: recall='refine' would remember them"
        raise ValueError(f"game must say what its players know, but {_checks.line(game, 200)} {why}")
    return lambda state: (read(state),) * 2


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Keep OpenSpiel from writing the message of an exception to the standard error as well."""
    try:
        saved = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def as_openspiel(game: Any, player: int, rows: Mapping[str, Sequence[float]]) -> Any:
    """Return a policy of OpenSpiel: one player's `rows` of probabilities by infoset label, else uniform."""
    if not isinstance(game, str) and not is_game(game):
        raise TypeError(f"game must be a pyspiel.Game or the name of one, got {_checks.shown(game)}")
    source = load_openspiel(game.removeprefix("openspiel:")) if isinstance(game, str) else OpenSpielGame(game)
    owner = _checks.integer("player", player, 0, source.n_players - 1)
    from open_spiel.python.policy import Policy

    class TablePolicy(Policy):  # type: ignore[misc]
        """One player's table, and uniform play for the others."""

        def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
            """Return the probability of every legal action."""
            legal = state.legal_actions()
            if (state.current_player() if player_id is None else player_id) != owner:
                return dict.fromkeys(legal, 1.0 / len(legal))
            label = source.infoset(state)[1]
            if len(rows.get(label, ())) != len(legal):
                raise ValueError(f"game must be the one that the policy is for: it has no infoset {label!r}")
            return dict(zip(legal, rows[label], strict=True))

    return TablePolicy(source.game, list(range(source.n_players)))
