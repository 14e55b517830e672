"""The policies by name: what each is, what it needs, and the kernel module that plays it.

All kernel modules have one shape. ``make_state(n_arms, lanes, horizon, epsilon, **options)`` is plain Python
and returns the arrays of W lanes; ``choose(state, lane, t, tie_word, random_ties) -> arm`` and
``update(state, lane, t, arm, reward, noise)``, noise a standard Laplace draw, play one round of one lane; and
``advance(state, luck, first, end, random_ties)`` plays a chunk of rounds for all lanes. Round numbers count
from 0. A module that shares tables between lanes has ``make_tables(n_arms, horizon, epsilon, n_rounds,
**options)`` too.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks

__all__ = ["POLICIES", "Policy", "policy"]


@dataclass(frozen=True)
class Policy:
    """One policy and how to play it.

    Attributes
    ----------
    name, summary, source : str
    module : str
        The kernel module inside this package; loaded by :attr:`kernels`.
    private : bool
        Whether its choices are epsilon-private in the rewards, so that its bias has a bound.
    needs_epsilon : bool
        Controls take an epsilon and are not private.
    needs_noise : bool
        Whether it reads the Laplace draws of the luck.
    ties : {"first", "random"}
        How ties are broken where the caller does not say.
    fixed : mapping
        Arguments of make_state and make_tables that make it this policy.
    options : mapping
        Further arguments that the caller may set, and their defaults.
    tabulated : bool
        Whether lanes share tables.
    posterior : bool
        Whether it draws from a posterior by address, so that make_state takes ``key`` uint64[2] and the
        number ``first`` of its first replicate.
    """

    name: str
    summary: str
    source: str
    module: str
    private: bool = False
    needs_epsilon: bool = False
    needs_noise: bool = False
    ties: str = "first"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    tabulated: bool = False
    posterior: bool = False

    @property
    def kernels(self) -> Any:
        """The kernel module."""
        return importlib.import_module(f"equinoise.bandits.policies.{self.module}")

    @property
    def lockstep(self) -> bool:
        """Whether lanes go through a round together, so that spare ones of a vector cost nothing."""
        return self.tabulated

    @property
    def play(self) -> Any:
        """The compiled function that plays many rounds; see :mod:`~equinoise.bandits.play`."""
        play = importlib.import_module("equinoise.bandits.play")
        return getattr(play, self.module)

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
        given = {**self.options, **(options or {}), **self.fixed}
        return self.kernels.make_tables(n_arms, horizon, epsilon, n_rounds, **given)

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

        Its first two fields are pulls int64[K, W] and reward_sum float64[K, W]. Without `tables` it has
        empty ones, and what they hold is computed as rounds come.
        """
        given = {**self.options, **(options or {}), **self.fixed}
        if self.tabulated:
            given["tables"] = (
                self.make_tables(n_arms, horizon, epsilon, 0, options) if tables is None else tables
            )
        if self.posterior:
            given |= {"key": key, "first": first}
        return self.kernels.make_state(n_arms, lanes, horizon, epsilon, **given)


_INDEX: dict[str, Any] = {"module": "ucb", "tabulated": True}
_PRIVATE: dict[str, Any] = {"module": "private_ucb", "tabulated": True, "needs_epsilon": True}

_ALL = (
    Policy(
        "ucb",
        "optimism with probability 1/(1 + t ln^2 t)",
        "Auer, Cesa-Bianchi, Fischer (2002)",
        fixed={"rule": 2},
        **_INDEX,
    ),
    Policy(
        "ucb1",
        "optimism with sqrt(2 ln t / n)",
        "Auer, Cesa-Bianchi, Fischer (2002)",
        fixed={"rule": 3},
        **_INDEX,
    ),
    Policy(
        "private-ucb",
        "ucb on sums from a private counter, widened for its noise",
        "Mishra, Thakurta (2015); Tossou, Dimitrakakis (2016); Nie et al. (2018)",
        private=True,
        needs_noise=True,
        options={"width": "counter", "counter": "binary"},
        **_PRIVATE,
    ),
    Policy(
        "dp-klucb",
        "doubling batches, nothing forgotten, the index of a private divergence",
        "Azize, Wu, Honda, Orabona, Ito, Basu (2025)",
        "dp_klucb",
        private=True,
        needs_epsilon=True,
        needs_noise=True,
        ties="random",
        options={"clip_sums": True},
    ),
    Policy(
        "dp-se",
        "successive elimination on noised means of fresh pulls",
        "Sajed, Sheffet (2019)",
        "dp_se",
        private=True,
        needs_epsilon=True,
        needs_noise=True,
    ),
    Policy(
        "adap-ucb",
        "episodes that double an arm's pulls, only the last one counted",
        "Azize, Basu (2022)",
        "adap_ucb",
        private=True,
        needs_epsilon=True,
        needs_noise=True,
    ),
    Policy(
        "lazy-dp-ts",
        "Thompson sampling from the noised mean of the last full buffer",
        "Hu, Hegde (2022)",
        "lazy_dp_ts",
        private=True,
        needs_epsilon=True,
        needs_noise=True,
        posterior=True,
    ),
    Policy("uniform", "one arm after the other", "a control", fixed={"rule": 0}, **_INDEX),
    Policy("greedy", "the largest mean", "a control", fixed={"rule": 1}, **_INDEX),
    Policy(
        "width-only",
        "private-ucb without its noise: a control, not private",
        "a control",
        fixed={"noisy": False},
        options={"width": "counter", "counter": "binary"},
        **_PRIVATE,
    ),
    Policy(
        "noise-only",
        "private-ucb without its width: a control of what the width does",
        "a control",
        needs_noise=True,
        fixed={"width": "none"},
        options={"counter": "binary"},
        **_PRIVATE,
    ),
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ALL}


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
