"""Games as one learner meets them: its tree of infosets, and what chance and the others do in it.

* :func:`load` takes a game's name, a game of OpenSpiel, a Gambit file, or a game of your own, as dicts
  (:func:`from_dict`) or a class (:class:`Source`), :func:`from_nested` one learner's tree as nested lists.
  All give a :class:`GameTree` and an :class:`Environment`, of which a :class:`Schedule` is a sequence.
* :class:`Policy` carries what was learned: as a table, a dictionary, a realization plan, to OpenSpiel.
* :func:`load_joint` takes a game as all its players meet it; :func:`exploitability` and :func:`best_response`
  say how far policies are from an equilibrium, and :func:`average_policy` is what self-play is judged by.
* :func:`uniform_value`, :func:`policy_value` and :func:`best_response_value` speak in the game's own payoff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach

if TYPE_CHECKING:
    from equinoise.games.catalog import bandit, complete, load
    from equinoise.games.efg.reader import read_efg
    from equinoise.games.environment import (
        Environment,
        Schedule,
        best_response_value,
        policy_value,
        uniform_value,
    )
    from equinoise.games.joint import JointGame, best_response, exploitability, load_joint
    from equinoise.games.nested import from_dict, from_nested
    from equinoise.games.poker import kuhn_poker, leduc_poker
    from equinoise.games.policy import Policy, average_policy, realization_plan
    from equinoise.games.tree import GameTree
    from equinoise.games.walk.walk import Source

__all__ = ["Environment", "GameTree", "JointGame", "Policy", "Schedule", "Source", "average_policy", "bandit"]
__all__ += ["best_response", "best_response_value", "complete", "exploitability", "from_dict", "from_nested"]
__all__ += ["kuhn_poker", "leduc_poker", "load", "load_joint", "policy_value", "read_efg", "realization_plan"]
__all__ += ["uniform_value"]

_HOMES = {
    "catalog": ("bandit", "complete", "load"),
    "efg": ("read_efg",),
    "environment": ("Environment", "Schedule", "best_response_value", "policy_value", "uniform_value"),
    "joint": ("JointGame", "best_response", "exploitability", "load_joint"),
    "nested": ("from_dict", "from_nested"),
    "policy": ("Policy", "average_policy", "realization_plan"),
    "poker": ("kuhn_poker", "leduc_poker"),
    "tree": ("GameTree",),
    "walk.walk": ("Source",),
}
__getattr__, __dir__ = attach(__name__, _HOMES)
