"""The policies by name: everything that is said about one is said here, in its row, and read from it.

A row names a kernel module of this package. All have one shape. ``make_state(n_arms, lanes, horizon, epsilon,
**options)`` is plain Python and returns the arrays of W lanes; ``choose(state, lane, t, tie_word,
random_ties) -> arm`` and ``update(state, lane, t, arm, reward, noise)``, noise a standard Laplace draw, play
one round of one lane; ``advance(state, tape, first, end, random_ties)`` plays a chunk of rounds for all
lanes, and ``play(state, run)`` all rounds (see :mod:`~equinoise.bandits.rewards`). Round numbers count from
0. A module that shares tables between lanes has ``make_tables(n_arms, horizon, epsilon, n_rounds,
**options)`` too.
"""

from equinoise import _checks
from equinoise._checks import Option
from equinoise._typing import Any, Mapping, NamedTuple
from equinoise.bandits.entry import COUNTER, WIDTHS, Live, Policy

__all__ = ["POLICIES", "Policy", "groups", "live_names", "policy"]

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
        "Song, 2011); choices are made of these sums and of the numbers of pulls, which are choices.",
        noise="Laplace(L/epsilon) per node of the binary counter, L = floor(log2 T) + 1; hybrid likewise",
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
        live=Live("LazyDPTS", "batch"),
        **_once("batches", "buffer"),
    ),
    Policy(name="uniform", summary="one arm after the other", fixed={"rule": 0}, **_CONTROL),
    Policy(name="greedy", summary="the largest mean", fixed={"rule": 1}, **_CONTROL),
    Policy(
        name="width-only",
        summary="private-ucb without its noise: a control, not private",
        fixed={"noisy": False},
        options=WIDTHS,
        needs_epsilon=True,
        **_CONTROL,
    ),
    Policy(
        name="noise-only",
        summary="private-ucb without its width: a control of what the width does",
        noise="that of private-ucb",
        fixed={"width": "none"},
        options=COUNTER,
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
