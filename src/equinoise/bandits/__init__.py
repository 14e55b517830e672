"""Bandits that gather data privately, so that arm means are nearly unbiased.

``simulate`` runs a policy many times over on arms of known means, and reports the bias of their sample means
beside the regret; ``POLICIES`` says what there is. ``UCB``, ``PrivateUCB`` and the other classes are for a
real experiment, one choice and one reward at a time. :mod:`~equinoise.bandits.tableau` plays policies on
rewards that were drawn or logged before, :mod:`~equinoise.bandits.linear` has policies that see contexts.

What is only for live experiments, contexts or given rewards is loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from equinoise.bandits.policies import POLICIES, Policy
from equinoise.bandits.run import BanditRun
from equinoise.bandits.simulate import simulate

if TYPE_CHECKING:
    from equinoise.bandits import linear, tableau
    from equinoise.bandits.live import (
        DPKLUCB,
        UCB,
        UCB1,
        Bandit,
        LazyDPTS,
        PrivateBandit,
        PrivateUCB,
        Ticket,
    )
    from equinoise.bandits.tableau import History, Replay, interact, replay

__all__ = [
    "DPKLUCB",
    "POLICIES",
    "UCB",
    "UCB1",
    "Bandit",
    "BanditRun",
    "History",
    "LazyDPTS",
    "Policy",
    "PrivateBandit",
    "PrivateUCB",
    "Replay",
    "Ticket",
    "interact",
    "linear",
    "replay",
    "simulate",
    "tableau",
]

_LIVE = {"Bandit", "DPKLUCB", "LazyDPTS", "PrivateBandit", "PrivateUCB", "Ticket", "UCB", "UCB1"}
_GIVEN = {"History", "Replay", "interact", "replay"}


def __getattr__(name: str) -> Any:
    if name in ("linear", "tableau"):
        return importlib.import_module(f"equinoise.bandits.{name}")
    for names, module in ((_LIVE, "live"), (_GIVEN, "tableau")):
        if name in names:
            return getattr(importlib.import_module(f"equinoise.bandits.{module}"), name)
    raise AttributeError(f"module 'equinoise.bandits' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
