"""Linear contextual bandits: a ridge regression for every arm, played optimistically, privately or not."""

from equinoise.bandits.linear.live import LinearBandit, Selection
from equinoise.bandits.linear.replay import replay
from equinoise.bandits.linear.simulate import POLICIES, LinearRun, simulate

__all__ = ["POLICIES", "LinearBandit", "LinearRun", "Selection", "replay", "simulate"]
