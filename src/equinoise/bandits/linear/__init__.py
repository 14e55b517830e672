"""Linear contextual bandits: a ridge regression for every arm, played optimistically, privately or not."""

from equinoise.bandits.linear.registry import POLICIES
from equinoise.bandits.linear.simulate import LinearRun, simulate

__all__ = ["POLICIES", "LinearRun", "simulate"]
