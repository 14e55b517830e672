"""How far from the best: a number that the divergence of no certified profile falls below."""

from equinoise.nvo.bound.lower import lower_bound

__all__ = ["lower_bound"]
