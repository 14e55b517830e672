"""The policies of :func:`equinoise.bandits.simulate`, one file each, and the registry that describes them."""

from equinoise.bandits.policies.registry import POLICIES, Policy, policy

__all__ = ["POLICIES", "Policy", "policy"]
