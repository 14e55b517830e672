"""What is said of a policy in its row of a registry, and the checks that follow from it."""

import importlib
import math
from dataclasses import dataclass, field
from functools import cached_property

from equinoise import _checks
from equinoise._checks import Option, Row, checked
from equinoise._typing import Any, Mapping, Words

MAX_HORIZON = 2**48  # counts stay exact in float64
LARGEST = 1e100  # of a reward: squares of sums stay finite
REWARDS = {"bernoulli": (0.0, 1.0), "gaussian": (-LARGEST, LARGEST)}  # where means may be; numbered in order
_LEAST_EPSILON = 1e-100  # noise and widths stay finite

Options = Mapping[str, Any] | None

_COUNTER = "private counter of each arm: made for the horizon, or for any number of rounds"
_WIDTH = "what an index is widened by: the tail of the counter's noise, or as published"
COUNTER = {"counter": Option("choice", "binary", _COUNTER, ("binary", "hybrid"))}
WIDTHS = {"width": Option("choice", "counter", _WIDTH, ("counter", "published")), **COUNTER}


@dataclass(frozen=True, kw_only=True)
class Entry(Row):
    """What is said of a policy, of whatever kind of bandit: also the noise that it adds, None for none.

    Private are its choices, in the rewards; controls need an epsilon and are not private.
    """

    noise: str | None = None
    needs_epsilon: bool = False

    @property
    def needs_noise(self) -> bool:
        """Whether it reads Laplace draws."""
        return self.noise is not None

    def checked_epsilon(self, epsilon: float | None, least: float = _LEAST_EPSILON) -> float:
        """Return epsilon, or infinity for a policy that takes none."""
        if epsilon is None:
            if self.needs_epsilon:
                raise ValueError(f"epsilon must be given for the policy {self.name!r}, got None")
            return math.inf
        budget = _checks.epsilon(epsilon)
        return _checks.number("epsilon", budget, least, finite=False) if self.needs_epsilon else math.inf

    def checked_options(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return all options of the policy, given or by default.

        The two that every call may have, so that it serves private-ucb and what that is compared with, are
        checked and left out where they are of no use.
        """
        mine = dict(given)
        for name in given:
            if name in WIDTHS and name not in self.options:
                WIDTHS[name].check(name, mine.pop(name))
        return checked(f"policy {self.name!r}", self.options, mine)


@dataclass(frozen=True)
class Live:
    """The name of a policy's live class, and how rewards reach it there.

    The feed is what it knows of an arm: "plain", its rewards; "counter", the sums of a private counter, in
    the state's ``mean``; "batch", the noised sums of batches, each of ``length`` rewards of which ``left``
    are to come, in ``private_sum`` with ``private_n`` rewards. The options without_horizon are those with
    which it needs no horizon; None for a policy that never needs one.
    """

    name: str
    feed: str = "plain"
    without_horizon: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Policy(Entry):
    """One policy and how to play it.

    Its methods raise TypeError or ValueError for an epsilon or options that it does not take.

    Attributes
    ----------
    name, summary, source : str
    proof : str or None
        What is private, and why; None for a policy that is not private.
    noise : str or None
        What it adds; None for a policy that reads no noise. Controls that need an epsilon are not private.
    options : mapping of str to Option
    ties : {"first", "random"}
        How ties are broken where the caller does not say.
    module, fixed
        The module of its kernels, and the arguments of make_state and make_tables that make it this policy.
    tabulated : bool
        Whether lanes share tables, and go through a round together.
    own_words : str or None
        What it draws for itself by address, so that make_state takes ``key`` uint64[2] and the number
        ``first`` of its first replicate.
    live : Live or None
        None for a policy that is only simulated.

    Examples
    --------
    >>> from equinoise.bandits import POLICIES
    >>> row = POLICIES["dp-klucb"]
    >>> row.private, row.noise, row.options["clip_sums"].default
    (True, 'Laplace(1/epsilon) once per batch', True)
    """

    module: str
    ties: str = "first"
    own_words: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tabulated: bool = False
    live: Live | None = None

    @cached_property
    def kernels(self) -> Any:
        """The kernel module."""
        return importlib.import_module(f"equinoise.bandits.policies.{self.module}")

    def _arguments(self, options: Options) -> dict[str, Any]:
        return {name: o.default for name, o in self.options.items()} | dict(options or {}) | dict(self.fixed)

    def make_tables(
        self, n_arms: int, horizon: int | None, epsilon: float, n_rounds: int, options: Options = None
    ) -> Any:
        """Return the tables that lanes share, for the first n rounds, or None where there are none."""
        if not self.tabulated:
            return None
        return self.kernels.make_tables(n_arms, horizon, epsilon, n_rounds, **self._arguments(options))

    def make_state(
        self,
        n_arms: int,
        lanes: int,
        horizon: int | None,
        epsilon: float,
        options: Options = None,
        *,
        tables: Any = None,
        key: Words | None = None,
        first: int = 0,
    ) -> Any:
        """Return the state before the first round of the replicates first..first + lanes - 1.

        It has pulls int64[K, W] and reward_sum float64[K, W]. Without `tables` it has empty ones, and what
        they hold is computed as rounds come.
        """
        given = self._arguments(options)
        if self.tabulated:
            empty = tables is None
            given["tables"] = self.make_tables(n_arms, horizon, epsilon, 0, options) if empty else tables
        if self.own_words is not None:
            given |= {"key": key, "first": first}
        return self.kernels.make_state(n_arms, lanes, horizon, epsilon, **given)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return bounds of the rewards as two numbers, the first below the second."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(f"bounds must be two numbers (lo, hi), got {_checks.shown(bounds)}")
    low = _checks.number("bounds[0]", bounds[0], -LARGEST, LARGEST)
    high = _checks.number("bounds[1]", bounds[1], -LARGEST, LARGEST)
    if not low < high or not math.isfinite(1.0 / (high - low)):
        raise ValueError(f"bounds must be (lo, hi) with lo < hi, got {_checks.shown(bounds)}")
    return low, high
