"""Bandits that gather data privately, so that arm means are nearly unbiased.

``simulate`` runs a policy many times over on arms of known means, and reports the bias of their sample means
and the regret; ``POLICIES`` says what there is. ``UCB``, ``PrivateUCB`` and the other classes are for a
real experiment, one choice and one reward at a time. :mod:`~equinoise.bandits.tableau` plays policies on
rewards that were drawn or logged before, :mod:`~equinoise.bandits.linear` has policies that see contexts.

What is only for live experiments, contexts or given rewards is loaded when first used.
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
    from equinoise.bandits.live import DPKLUCB, UCB, UCB1, Bandit, LazyDPTS, PrivateBandit, PrivateUCB, Ticket
    from equinoise.bandits.replay import tableau

__all__ = ["DPKLUCB", "POLICIES", "UCB", "UCB1", "Bandit", "BanditRun", "History", "LazyDPTS", "Policy"]
__all__ += ["PrivateBandit", "PrivateUCB", "Replay", "Ticket", "interact", "linear", "replay", "report"]
__all__ += ["simulate", "tableau"]

__getattr__, __dir__ = attach(
    __name__, {"": ("linear",), "live": live_names(), "replay.tableau": ("tableau",)}
)
