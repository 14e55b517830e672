"""Bandits for real experiments: asked for an arm, told a reward, saved for the next day."""

from typing import Any

from equinoise.bandits.live import classes
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


def __getattr__(name: str) -> Any:
    return getattr(classes, name)
