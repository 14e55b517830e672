"""Linear contextual bandits: a ridge regression for every arm, played optimistically, privately or not."""

from typing import TYPE_CHECKING

from equinoise._lazy import attach
from equinoise.bandits.linear.replay import replay
from equinoise.bandits.linear.simulate import POLICIES, LinearRun, simulate

if TYPE_CHECKING:
    from equinoise.bandits.linear.live import LinearBandit, Selection

__all__ = ["POLICIES", "LinearBandit", "LinearRun", "Selection", "replay", "simulate"]

__getattr__, __dir__ = attach(__name__, {"live": ("LinearBandit", "Selection")})
