"""What a comparison of bandits depends on, refused as a whole before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equinoise import _checks, _results
from equinoise.bandits.entry import MAX_HORIZON
from equinoise.bandits.policies.registry import policy

__all__ = ["CONTROLS", "EPSILON", "Parameters"]

CONTROLS = ("width-only", "noise-only")
EPSILON = 0.1  # where a policy needs one and none is given
_LARGEST_MEAN = 1e100  # of Gaussian rewards


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made.

    Attributes
    ----------
    policy, means, horizon, epsilon, width, counter, reward, ties, seed
        As :func:`equinoise.bandits.simulate` takes them, at least one mean. A policy that needs an epsilon
        has 0.1 by default; for another, None means that there are no controls.
    replicates, checkpoints : int
        Its ``n_replicates`` (at least 2 give intervals) and ``n_checkpoints``.
    options : mapping of str to value
        Further options of the policy.
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
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spec = policy(self.policy)
        spec.checked_options({"width": self.width, "counter": self.counter, **self.options})
        bernoulli = _checks.choice("reward", self.reward, ("bernoulli", "gaussian")) == "bernoulli"
        low, high = (0.0, 1.0) if bernoulli else (-_LARGEST_MEAN, _LARGEST_MEAN)
        n_arms = _checks.array("means", self.means, np.float64, (None,), low=low, high=high).size
        if not n_arms:
            raise ValueError("means must be at least one number, got none")
        _checks.integer("horizon", self.horizon, n_arms, MAX_HORIZON)
        if self.epsilon is None and spec.needs_epsilon:
            object.__setattr__(self, "epsilon", EPSILON)
        if self.epsilon is not None:
            policy(CONTROLS[0]).checked_epsilon(self.epsilon)
        for name, least in (("replicates", 1), ("checkpoints", 1), ("seed", 0)):
            _checks.integer(name, getattr(self, name), least)
        if self.ties is not None:
            _checks.choice("ties", self.ties, ("first", "random"))
        kept = 2 * n_arms + min(self.checkpoints, self.horizon)
        _results.check_memory(self.replicates, len(self.policies) * kept)

    @property
    def bounded(self) -> bool:
        """Whether Theorem 1 speaks of this policy and these rewards, vacuous or not."""
        return policy(self.policy).private and self.reward == "bernoulli"

    @property
    def policies(self) -> tuple[str, ...]:
        """What is run: the policy, plain UCB, uniform play and, where there is an epsilon, the controls."""
        others = ("ucb", "uniform", *(CONTROLS if self.epsilon is not None else ()))
        return tuple(dict.fromkeys((self.policy, *others)))
