"""The policies by name: everything that is said about one is said here, in its row, and read from it.

A row names a kernel module of this package. All have one shape. ``make_state(n_arms, lanes, horizon, epsilon,
**options)`` is plain Python and returns the arrays of W lanes; ``choose(state, lane, t, tie_word,
random_ties) -> arm`` and ``update(state, lane, t, arm, reward, noise)``, noise a standard Laplace draw, play
one round of one lane; ``advance(state, tape, first, end, random_ties)`` plays a chunk of rounds for all
lanes, and ``play(state, run)`` all rounds (see :mod:`~equinoise.bandits.rewards`). Round numbers count from
0. Where rewards may come late there are ``choose_late``, which live bandits ask, and ``play_late``, and the
state has pending int64[K, W], selections without a reward. A module that shares tables between lanes has
``make_tables(n_arms, horizon, epsilon, n_rounds, **options)`` too.
"""

import importlib
import math
from dataclasses import dataclass, field
from functools import cached_property

from equinoise import _checks
from equinoise._checks import Option, Row, checked
from equinoise._typing import Any, Mapping, NamedTuple, Words

MAX_HORIZON = 2**48  # counts stay exact in float64
LARGEST = 1e100  # of a reward: squares of sums stay finite
REWARDS = {"bernoulli": (0.0, 1.0), "gaussian": (-LARGEST, LARGEST)}  # where means may be; numbered in order
_LEAST_EPSILON = 1e-100  # noise and widths stay finite

Options = Mapping[str, Any] | None

_COUNTER = "private counter of each arm: made for the horizon, or for any number of rounds"
_WIDTH = "what an index is widened by: the tail of the counter's noise, or as published"
COUNTER = {"counter": Option("choice", "k-ary", _COUNTER, ("k-ary", "binary", "hybrid"))}
_FLOOR = "with this probability any arm is drawn, so that each has at least a K-th of it"
_DRAWS = "joint draws from posteriors that probabilities are made of"
_DRAWN = {
    "draws": Option("integer", 100, _DRAWS, low=1, high=10**6),
    "batch": Option("integer", 10, "rounds for which probabilities are kept", low=1, high=10**6),
}
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
        """Return all options, given or by default; those that any call may have are left out if of no use."""
        idle = [name for name in WIDTHS if name in given and name not in self.options]
        for name in idle:
            WIDTHS[name].check(name, given[name])
        mine = {name: value for name, value in given.items() if name not in idle}
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
    name, summary, source, options, proof, noise
        What is said of it. Without a proof it is not private, without noise it reads none.
    ties : {"first", "random"}
        How ties are broken where the caller does not say.
    module, fixed
        The module of its kernels, and the arguments of make_state and make_tables that make it this policy.
    tabulated : bool
        Whether lanes share tables, and go through a round together.
    own_words : str or None
        What it draws for itself by address; make_state takes ``key`` uint64[2] and the ``first`` replicate.
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

        It has pulls int64[K, W] and reward_sum float64[K, W]. What `tables` lack is computed as rounds come.
        """
        given = self._arguments(options)
        if self.tabulated:
            given["tables"] = tables or self.make_tables(n_arms, horizon, epsilon, 0, options)
        if self.own_words is not None:
            given |= {"key": key, "first": first}
        return self.kernels.make_state(n_arms, lanes, horizon, epsilon, **given)


_TURNED = "the draws of a k-ary counter whose digit turns"
_INDEX: dict[str, Any] = {"module": "ucb", "tabulated": True}
_AUER: dict[str, Any] = {
    "source": "Auer, Cesa-Bianchi, Fischer (2002), Finite-time analysis of the multiarmed bandit problem",
    **_INDEX,
}
_CONTROL: dict[str, Any] = {"source": "a control", **_INDEX}


def _once(module: str, what: str) -> dict[str, Any]:
    """Return what is said of a policy that releases the sum of each such set of rewards once."""
    proof = (
        f"A reward, in [0, 1], enters exactly one {what}. Its sum moves by at most 1 with that reward and is "
        "released once, with Laplace(1/epsilon) noise, so it is epsilon-private. The releases are about "
        "disjoint rewards, so together they are epsilon-private too (parallel composition), though which "
        f"rounds a {what} takes depends on those before. Choices depend on nothing else (post-processing)."
    )
    noise = f"Laplace(1/epsilon) once per {what}"
    return {"module": module, "proof": proof, "noise": noise, "needs_epsilon": True}


_ALL = (
    Policy(
        name="ucb",
        summary="optimism with probability 1/(1 + t ln^2 t)",
        fixed={"rule": 2},
        live=Live("UCB"),
        **_AUER,
    ),
    Policy(
        name="ucb1", summary="optimism with sqrt(2 ln t / n)", fixed={"rule": 3}, live=Live("UCB1"), **_AUER
    ),
    Policy(
        name="private-ucb",
        summary="ucb on sums from a private counter, widened for its noise",
        source="Mishra, Thakurta (2015); Tossou, Dimitrakakis (2016); Neel, Roth (2018)",
        proof="A reward enters one arm's counter, whose sums are epsilon-private all together (Chan, Shi, "
        "Song, 2011; k-ary: Andersson, Pagh, Steiner, Torkamani, 2025); choices are made of these sums and "
        "of the numbers of pulls, which are choices.",
        own_words=_TURNED,
        noise="Laplace(h/epsilon) per node of a k-ary tree of height h; binary and hybrid counters likewise",
        options=WIDTHS,
        live=Live("PrivateUCB", "counter", without_horizon={"width": "counter", "counter": "hybrid"}),
        needs_epsilon=True,
        **_INDEX,
    ),
    Policy(
        name="dp-klucb",
        summary="doubling batches, nothing forgotten, the index of a private divergence",
        source="Azize, Wu, Honda, Orabona, Ito, Basu (2025), Optimal regret of Bernoulli bandits under "
        "global differential privacy",
        fixed={"rule": 0},
        ties="random",
        options={"clip_sums": Option("flag", True, "put private sums of n rewards back into [0, n]")},
        live=Live("DPKLUCB", "batch"),
        **_once("batches", "batch"),
    ),
    Policy(
        name="dp-se",
        summary="successive elimination on noised means of fresh pulls",
        source="Sajed, Sheffet (2019), An optimal private stochastic-MAB algorithm based on an optimal "
        "private stopping rule",
        **_once("dp_se", "epoch of an arm"),
    ),
    Policy(
        name="adap-ucb",
        summary="episodes that double an arm's pulls, only the last one counted",
        source="Azize, Basu (2022), When privacy meets partial information: a refined analysis of "
        "differentially private bandits",
        fixed={"rule": 1},
        **_once("batches", "episode"),
    ),
    Policy(
        name="lazy-dp-ts",
        summary="Thompson sampling from the noised mean of the last full buffer",
        source="Hu, Hegde (2022), Near-optimal Thompson sampling-based algorithms for differentially private "
        "stochastic bandits",
        fixed={"rule": 2},
        own_words="a posterior draw for each arm and round",
        options={"floor": Option("number", 0.0, _FLOOR, low=0, high=1), **_DRAWN},
        live=Live("LazyDPTS", "batch"),
        **_once("batches", "buffer"),
    ),
    Policy(
        name="thompson",
        summary="Thompson sampling from Beta posteriors, with known probabilities",
        source="Thompson (1933), On the likelihood that one unknown probability exceeds another",
        module="batches",
        fixed={"rule": 3},
        own_words="joint posterior draws for each batch, and a draw of the arm",
        options={"floor": Option("number", 0.1, _FLOOR, low=0, high=1), **_DRAWN},
        live=Live("Thompson"),
    ),
    Policy(
        name="epsilon-greedy",
        summary="the largest mean, or at times any arm, with known probabilities",
        source="Sutton, Barto (2018), Reinforcement learning: an introduction, section 2.2",
        module="batches",
        fixed={"rule": 4},
        own_words="a draw of the arm",
        options={"explore": Option("number", 0.1, _FLOOR, low=0, high=1)},
        live=Live("EpsilonGreedy"),
    ),
    Policy(
        name="uniform",
        summary="one arm after the other, or any with known probabilities",
        fixed={"rule": 0},
        own_words="a draw of the arm",
        options={"drawn": Option("flag", False, "draw each arm with probability 1/K, in place of turns")},
        live=Live("Uniform"),
        **_CONTROL,
    ),
    Policy(name="greedy", summary="the largest mean", fixed={"rule": 1}, **_CONTROL),
    Policy(
        name="width-only",
        summary="private-ucb without its noise: a control, not private",
        fixed={"noisy": False},
        options=WIDTHS,
        own_words=_TURNED,
        needs_epsilon=True,
        **_CONTROL,
    ),
    Policy(
        name="noise-only",
        summary="private-ucb without its width: a control of what the width does",
        noise="that of private-ucb",
        fixed={"width": "none"},
        options=COUNTER,
        own_words=_TURNED,
        needs_epsilon=True,
        **_CONTROL,
    ),
)

POLICIES: Mapping[str, Policy] = {row.name: row for row in _ALL}


def policy(name: str) -> Policy:
    """Return a policy by its name; TypeError or ValueError when there is none of that name."""
    return POLICIES[_checks.choice("policy", name, POLICIES)]


class Chosen(NamedTuple):
    """A policy and what was chosen for it; an epsilon of infinity where it takes none."""

    spec: Policy
    epsilon: float
    options: dict[str, Any]
    ties: str

    @property
    def random_ties(self) -> bool:
        """Whether ties are drawn."""
        return self.ties == "random"

    @property
    def given_epsilon(self) -> float | None:
        """The epsilon, None where the policy takes none."""
        return self.epsilon if self.spec.needs_epsilon else None


def choose(name: str, epsilon: float | None, ties: str | None, options: Mapping[str, object]) -> Chosen:
    """Return a policy as it was chosen; TypeError or ValueError for what it does not take."""
    spec = policy(name)
    order = spec.ties if ties is None else _checks.choice("ties", ties, ("first", "random"))
    return Chosen(spec, spec.checked_epsilon(epsilon), spec.checked_options(options), order)


def groups() -> dict[str, tuple[Policy, ...]]:
    """Return the policies that are private, those that take no epsilon, and the controls of private ones."""
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


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return bounds of the rewards as two numbers, the first below the second."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(f"bounds must be two numbers (lo, hi), got {_checks.shown(bounds)}")
    low = _checks.number("bounds[0]", bounds[0], -LARGEST, LARGEST)
    high = _checks.number("bounds[1]", bounds[1], -LARGEST, LARGEST)
    if not low < high or not math.isfinite(1.0 / (high - low)):
        raise ValueError(f"bounds must be (lo, hi) with lo < hi, got {_checks.shown(bounds)}")
    return low, high
