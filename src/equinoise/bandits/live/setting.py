"""How a live bandit was made: checked once, the same for a new object and for one that is loaded."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from equinoise import _checks
from equinoise.bandits.entry import LARGEST, check_bounds
from equinoise.bandits.policies.registry import policy

__all__ = ["Setting", "arm_names"]

_MOST_ARMS = 2**20
_MOST_ROUNDS = 2**40
_LEAST_EPSILON = 1e-9  # below, nothing is learnt in any number of rounds that a live object can see


@dataclass(frozen=True)
class Setting:
    """Everything but the arms and the key.

    policy is a name of the registry; low and high are both None where rewards have no bounds; epsilon and
    noise are those of a private policy; options are those that were given; counters are made for the horizon.
    """

    policy: str
    ties: str
    low: float | None
    high: float | None
    epsilon: float | None = None
    horizon: int | None = None
    noise: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        spec = policy(self.policy)
        _checks.choice("ties", self.ties, ("first", "random"))
        if self.low is not None or self.high is not None:
            check_bounds((self.low, self.high))
        elif spec.private:
            raise ValueError("bounds must be (lo, hi): they say what one reward can change, got None")
        if spec.private:
            if _checks.epsilon(self.epsilon, allow_infinite=False) < _LEAST_EPSILON:
                raise ValueError(f"epsilon must be at least {_LEAST_EPSILON:g}, got {self.epsilon!r}")
            _checks.choice("noise", self.noise, ("secure", "float"))
        if self.horizon is not None:
            _checks.integer("horizon", self.horizon, 1, _MOST_ROUNDS)
        self._check_options()

    def _check_options(self) -> None:
        spec = policy(self.policy)
        if not set(self.options) <= set(spec.options):
            raise ValueError(f"options must be those of {self.policy!r}, got {_checks.shown(self.options)}")
        chosen = spec.checked_options(self.options)
        free = spec.live.without_horizon if spec.live else None
        if self.horizon is None and free is not None and any(chosen[name] != free[name] for name in free):
            given = " and ".join(f"{name}={chosen[name]!r}" for name in free)
            raise ValueError(f"horizon must be given with {given}, got None")

    @property
    def secure(self) -> bool:
        """Whether noise comes from the operating system."""
        return self.noise == "secure"

    @property
    def span(self) -> float:
        """Length of the interval of the rewards, 1 where there is none."""
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    def inside(self, reward: object) -> float:
        """Return a reward on the policy's scale: from 0 to 1, or as it is where there are no bounds."""
        if self.low is None or self.high is None:
            return _checks.number("reward", reward, -LARGEST, LARGEST)
        value = _checks.number("reward", reward, self.low, self.high)
        return min((value - self.low) / self.span, 1.0)

    def outside(self, value: Any) -> Any:
        """Return a mean of the policy's scale in the units of the rewards."""
        return (self.low or 0.0) + self.span * value


def arm_names(arms: Any) -> tuple[int, list[str] | None]:
    """Return (number of arms, their names); names are None where `arms` is a number."""
    if isinstance(arms, str):
        raise TypeError(f"n_arms must be a number of arms or a sequence of names, got {arms!r}")
    try:
        names = list(arms)
    except TypeError:
        return _checks.integer("n_arms", arms, 1, _MOST_ARMS), None
    for name in names:
        check_name("n_arms", name)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"n_arms must be at least one name, none of them twice, got {_checks.shown(names)}")
    return len(names), [str(name) for name in names]


def check_name(argument: str, name: object) -> str:
    """Return the name of an arm."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be named by text, got {_checks.shown(name)}")
    if not name:
        raise ValueError(f"{argument} must be named by text that is not empty, got ''")
    return str(name)
