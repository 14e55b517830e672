"""The policies by name: everything that is said about one is said here, in its row, and read from it.

A row names a kernel module of this package. All have one shape. ``make_state(n_arms, lanes, horizon, epsilon,
**options)`` is plain Python and returns the arrays of W lanes; ``choose(state, lane, t, tie_word,
random_ties) -> arm`` and ``update(state, lane, t, arm, reward, noise)``, noise a standard Laplace draw, play
one round of one lane; ``advance(state, tape, first, end, random_ties)`` plays a chunk of rounds for all
lanes, and ``play(state, run)`` all rounds (see :mod:`~equinoise.bandits.rewards`). Round numbers count from
0. A module that shares tables between lanes has ``make_tables(n_arms, horizon, epsilon, n_rounds,
**options)`` too.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks
from equinoise._options import Option, checked

__all__ = [
    "MAX_HORIZON",
    "POLICIES",
    "Entry",
    "Live",
    "Policy",
    "check_bounds",
    "groups",
    "live_names",
    "policy",
]

MAX_HORIZON = 2**48  # counts stay exact in float64
LARGEST = 1e100  # of a reward: squares of sums stay finite
_LEAST_EPSILON = 1e-100  # noise and widths stay finite


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is said of a policy, of whatever kind of bandit.

    Attributes
    ----------
    name, summary, source : str
    proof : str or None
        What is private, and why; None for a policy that is not private.
    noise : str or None
        The noise that it adds; None for a policy that reads no noise.
    needs_epsilon : bool
        Controls take an epsilon and are not private.
    options : mapping of str to Option
    """

    name: str
    summary: str
    source: str
    proof: str | None = None
    noise: str | None = None
    needs_epsilon: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether its choices are epsilon-private in the rewards, so that its bias has a bound."""
        return self.proof is not None

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
        """Return all options of the policy, given or by default; those of no use to it may be `_SHARED`."""
        mine = dict(given)
        for name in given:
            if name in _SHARED and name not in self.options:
                _SHARED[name].check(name, mine.pop(name))
        return checked(f"policy {self.name!r}", self.options, mine)


@dataclass(frozen=True, kw_only=True)
class Live:
    """The live class of a policy, and how rewards reach it there.

    Attributes
    ----------
    name : str
        Of the class in :mod:`equinoise.bandits`.
    feed : {"plain", "counter", "batch"}
        What it knows of an arm: its rewards; the sums of a private counter, in the state's ``mean``; or the
        noised sums of batches, each of ``length`` rewards of which ``left`` are to come, in ``private_sum``
        with ``private_n`` rewards.
    without_horizon : mapping or None
        The options with which it needs no horizon; None for a policy that never needs one.
    """

    name: str
    feed: str = "plain"
    without_horizon: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Policy(Entry):
    """One policy and how to play it: an :class:`Entry`, and what follows.

    Attributes
    ----------
    module : str
        The kernel module inside this package; loaded by :attr:`kernels`.
    ties : {"first", "random"}
        How ties are broken where the caller does not say.
    own_words : str or None
        What it draws for itself by address, so that make_state takes ``key`` uint64[2] and the number
        ``first`` of its first replicate; None for nothing.
    fixed : mapping
        Arguments of make_state and make_tables that make it this policy.
    tabulated : bool
        Whether lanes share tables.
    live : Live or None
        None for a policy that is only simulated.
    """

    module: str
    ties: str = "first"
    own_words: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tabulated: bool = False
    live: Live | None = None

    @property
    def kernels(self) -> Any:
        """The kernel module."""
        return importlib.import_module(f"equinoise.bandits.policies.{self.module}")

    @property
    def lockstep(self) -> bool:
        """Whether lanes go through a round together, so that spare ones of a vector cost nothing."""
        return self.tabulated

    def _arguments(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: o.default for name, o in self.options.items()} | dict(options or {}) | dict(self.fixed)

    def make_tables(
        self,
        n_arms: int,
        horizon: int | None,
        epsilon: float,
        n_rounds: int,
        options: Mapping[str, Any] | None = None,
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
        options: Mapping[str, Any] | None = None,
        *,
        tables: Any = None,
        key: NDArray[np.uint64] | None = None,
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


_COUNTER = {
    "counter": Option(
        "choice",
        "binary",
        "private counter of each arm: made for the horizon, or for any number of rounds",
        ("binary", "hybrid"),
    )
}
_WIDTHS = {
    "width": Option(
        "choice",
        "counter",
        "what an index is widened by: the tail of the counter's noise, or as published",
        ("counter", "published"),
    ),
    **_COUNTER,
}
# What every policy may be given, so that one call serves private-ucb, its controls and what they are compared
# with. Where it is of no use, it is checked and left out.
_SHARED = _WIDTHS

_AUER = "Auer, Cesa-Bianchi, Fischer (2002), Finite-time analysis of the multiarmed bandit problem"
_ONCE = (
    "A reward enters exactly one {batch}, whose sum moves by at most 1 with it and is released once, with "
    "Laplace(1/epsilon) noise; releases about disjoint rewards are epsilon-private together, and choices are "
    "made of them alone (parallel composition and post-processing)."
)
_INDEX: dict[str, Any] = {"module": "ucb", "tabulated": True}
_PRIVATE: dict[str, Any] = {"module": "private_ucb", "tabulated": True, "needs_epsilon": True}
_BATCH_NOISE = "Laplace(1/epsilon) once a batch"

_ALL = (
    Policy(
        name="ucb",
        summary="optimism with probability 1/(1 + t ln^2 t)",
        source=_AUER,
        fixed={"rule": 2},
        live=Live(name="UCB"),
        **_INDEX,
    ),
    Policy(
        name="ucb1",
        summary="optimism with sqrt(2 ln t / n)",
        source=_AUER,
        fixed={"rule": 3},
        live=Live(name="UCB1"),
        **_INDEX,
    ),
    Policy(
        name="private-ucb",
        summary="ucb on sums from a private counter, widened for its noise",
        source="Mishra, Thakurta (2015); Tossou, Dimitrakakis (2016); Neel, Roth (2018)",
        proof="A reward enters one arm's counter, whose sums are epsilon-private all together (Chan, Shi, "
        "Song, 2011), and choices are made of these sums and the numbers of pulls alone (post-processing).",
        noise="Laplace(L/epsilon) a node of the binary counter, L = floor(log2 T) + 1; hybrid likewise",
        options=_WIDTHS,
        live=Live(
            name="PrivateUCB", feed="counter", without_horizon={"width": "counter", "counter": "hybrid"}
        ),
        **_PRIVATE,
    ),
    Policy(
        name="dp-klucb",
        summary="doubling batches, nothing forgotten, the index of a private divergence",
        source="Azize, Wu, Honda, Orabona, Ito, Basu (2025), Optimal regret of Bernoulli bandits under "
        "global differential privacy",
        module="dp_klucb",
        proof=_ONCE.format(batch="batch"),
        needs_epsilon=True,
        noise=_BATCH_NOISE,
        ties="random",
        options={"clip_sums": Option("flag", True, "put private sums of n rewards back into [0, n]")},
        live=Live(name="DPKLUCB", feed="batch"),
    ),
    Policy(
        name="dp-se",
        summary="successive elimination on noised means of fresh pulls",
        source="Sajed, Sheffet (2019), An optimal private stochastic-MAB algorithm based on an optimal "
        "private stopping rule",
        module="dp_se",
        proof=_ONCE.format(batch="epoch of an arm"),
        needs_epsilon=True,
        noise="Laplace(1/epsilon) once an epoch of an arm",
    ),
    Policy(
        name="adap-ucb",
        summary="episodes that double an arm's pulls, only the last one counted",
        source="Azize, Basu (2022), When privacy meets partial information: a refined analysis of "
        "differentially private bandits",
        module="adap_ucb",
        proof=_ONCE.format(batch="episode"),
        needs_epsilon=True,
        noise="Laplace(1/epsilon) once an episode",
    ),
    Policy(
        name="lazy-dp-ts",
        summary="Thompson sampling from the noised mean of the last full buffer",
        source="Hu, Hegde (2022), Near-optimal Thompson sampling-based algorithms for differentially private "
        "stochastic bandits",
        module="lazy_dp_ts",
        proof=_ONCE.format(batch="buffer"),
        needs_epsilon=True,
        noise="Laplace(1/epsilon) once a buffer",
        own_words="a posterior draw for each arm and round",
        live=Live(name="LazyDPTS", feed="batch"),
    ),
    Policy(
        name="uniform", summary="one arm after the other", source="a control", fixed={"rule": 0}, **_INDEX
    ),
    Policy(name="greedy", summary="the largest mean", source="a control", fixed={"rule": 1}, **_INDEX),
    Policy(
        name="width-only",
        summary="private-ucb without its noise: a control, not private",
        source="a control",
        fixed={"noisy": False},
        options=_WIDTHS,
        **_PRIVATE,
    ),
    Policy(
        name="noise-only",
        summary="private-ucb without its width: a control of what the width does",
        source="a control",
        noise="that of private-ucb",
        fixed={"width": "none"},
        options=_COUNTER,
        **_PRIVATE,
    ),
)

POLICIES: Mapping[str, Policy] = {row.name: row for row in _ALL}


def policy(name: str) -> Policy:
    """Return a policy by its name.

    Raises
    ------
    TypeError, ValueError
        When there is none of that name.

    Examples
    --------
    >>> policy("private-ucb").private
    True
    """
    return POLICIES[_checks.choice("policy", name, POLICIES)]


def groups() -> dict[str, tuple[Policy, ...]]:
    """Return the policies that are private, those that take no epsilon, and the controls of private ones.

    Examples
    --------
    >>> [policy.name for policy in groups()["controls"]]
    ['width-only', 'noise-only']
    """
    rows = POLICIES.values()
    return {
        "private": tuple(row for row in rows if row.private),
        "plain": tuple(row for row in rows if not row.needs_epsilon),
        "controls": tuple(row for row in rows if row.needs_epsilon and not row.private),
    }


def live_names() -> tuple[str, ...]:
    """Return the names of all live classes, and of what they share."""
    made = [row.live.name for row in POLICIES.values() if row.live is not None]
    return ("Bandit", "PrivateBandit", "Ticket", *made)
