"""Bandits that gather data privately, so that arm means are nearly unbiased.

``simulate`` runs a policy many times over on arms of known means, and reports the bias of their sample means
and the regret; ``POLICIES`` says what there is. ``UCB``, ``PrivateUCB`` and the other classes are for a
real experiment, one choice and one reward at a time. :mod:`~equinoise.bandits.tableau` plays policies on
rewards that were drawn or logged before, :mod:`~equinoise.bandits.linear` has policies that see contexts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach
from equinoise.bandits.policies.registry import POLICIES, Policy, live_names
from equinoise.bandits.replay.logged import report
from equinoise.bandits.replay.tableau import History, Replay, interact, replay
from equinoise.bandits.result import BanditRun
from equinoise.bandits.simulate import simulate

if TYPE_CHECKING:
    from equinoise.bandits import linear
    from equinoise.bandits.live import UCB, Bandit, PrivateBandit, PrivateUCB, Ticket
    from equinoise.bandits.replay import tableau

__all__ = ["POLICIES", "UCB", "Bandit", "BanditRun", "History", "Policy", "PrivateBandit", "PrivateUCB"]
__all__ += ["Replay", "Ticket", "interact", "linear", "replay", "report", "simulate", "tableau"]
__all__ += sorted({*live_names()} - {*__all__})

__getattr__, __dir__ = attach(
    __name__, {"": ("linear",), "live": live_names(), "replay.tableau": ("tableau",)}
)
