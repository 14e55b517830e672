"""Bandits for real experiments: asked for an arm, told a reward, saved for the next day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach

if TYPE_CHECKING:
    from equinoise.bandits.live.classes import (
        DPKLUCB,
        UCB,
        UCB1,
        Bandit,
        LazyDPTS,
        PrivateBandit,
        PrivateUCB,
        Ticket,
    )

__all__ = ["DPKLUCB", "UCB", "UCB1", "Bandit", "LazyDPTS", "PrivateBandit", "PrivateUCB", "Ticket"]

__getattr__, __dir__ = attach(__name__, {"classes": __all__})
