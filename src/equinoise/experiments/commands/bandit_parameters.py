"""What a comparison of bandits depends on, refused as a whole before any work."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise.bandits.entry import MAX_HORIZON
from equinoise.bandits.policies.registry import policy

__all__ = ["BESIDE", "CONTROLS", "Parameters"]

BESIDE = ("ucb", "uniform")
CONTROLS = ("width-only", "noise-only")
_LEAST_EPSILON = 1e-100  # the noise of a smaller one is not finite
_LARGEST_MEAN = 1e100  # of Gaussian rewards


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made.

    Attributes
    ----------
    policy : str
        As :func:`equinoise.bandits.simulate` takes it.
    means : tuple of float
        True means of the arms, at least one.
    horizon : int
        Rounds of a replicate, at least one an arm.
    epsilon : float or None
        For private policies and the controls; without it there are no controls.
    replicates : int
        At least 2 give intervals.
    width : {"counter", "published"}
        Of private-ucb and width-only.
    counter : {"binary", "hybrid"}
        Of private-ucb and the controls.
    reward : {"bernoulli", "gaussian"}
    ties : {"first", "random"} or None
        None leaves it to each policy.
    seed : int
        The same seed gives the same bits.
    checkpoints : int
        Numbers of rounds at which the regret is kept, at most.
    """

    policy: str = "private-ucb"
    means: tuple[float, ...] = (1.0, 0.95, 0.9, 0.85)
    horizon: int = 500
    epsilon: float | None = None
    replicates: int = 1000
    width: str = "counter"
    counter: str = "binary"
    reward: str = "bernoulli"
    ties: str | None = None
    seed: int = 0
    checkpoints: int = 50

    def __post_init__(self) -> None:
        spec = policy(self.policy)
        _checks.choice("width", self.width, ("counter", "published"))
        _checks.choice("counter", self.counter, ("binary", "hybrid"))
        bernoulli = _checks.choice("reward", self.reward, ("bernoulli", "gaussian")) == "bernoulli"
        low, high = (0.0, 1.0) if bernoulli else (-_LARGEST_MEAN, _LARGEST_MEAN)
        given = _checks.array("means", self.means, np.float64, (None,), low=low, high=high)
        if not given.size:
            raise ValueError("means must be at least one number, got none")
        _checks.integer("horizon", self.horizon, given.size, MAX_HORIZON)
        if self.epsilon is not None:
            _checks.number("epsilon", _checks.epsilon(self.epsilon), _LEAST_EPSILON, finite=False)
        elif spec.needs_epsilon:
            raise ValueError(f"epsilon must be given for the policy {self.policy!r}, got None")
        for name in ("replicates", "checkpoints"):
            _checks.integer(name, getattr(self, name), minimum=1)
        _checks.integer("seed", self.seed, minimum=0)
        if self.ties is not None:
            _checks.choice("ties", self.ties, ("first", "random"))
        self._check_memory(given.size)

    def _check_memory(self, n_arms: int) -> None:
        """Refuse results that would not fit into this machine's memory."""
        needed = 8 * self.replicates * len(self.policies) * (2 * n_arms + min(self.checkpoints, self.horizon))
        if needed > _memory():
            raise ValueError(
                f"replicates must be as many as fit into memory, got {self.replicates}, whose results take "
                f"{needed / 1e9:.3g} GB"
            )

    @property
    def bounded(self) -> bool:
        """Whether Theorem 1 speaks of this policy and these rewards, empty or not."""
        return policy(self.policy).private and self.reward == "bernoulli"

    @property
    def policies(self) -> tuple[str, ...]:
        """What is run: the policy, and what stands beside it."""
        others = (*BESIDE, *(CONTROLS if self.epsilon is not None else ()))
        return (self.policy, *(name for name in others if name != self.policy))


def _memory() -> float:
    """Return the bytes of this machine's memory, infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
