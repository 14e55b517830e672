"""The learners by name: each is a first policy, a tuning and a noise scale for the same kernels."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from equinoise._checkpoint import kept_as
from equinoise._checks import Option, Row
from equinoise._typing import Any, Callable, Flags, Floats, Mapping, NamedTuple
from equinoise.efb.kernels import setup
from equinoise.efb.tuning import MECHANISMS, RULES, Tuning, noise_scale
from equinoise.games import Environment, GameTree, Schedule, kernels

_LARGEST_INCIDENCE = 50_000_000  # entries of the table (strategies, actions) that flat-exp3 may make


@kept_as("equinoise.efb.baselines.Learner")
class Learner(NamedTuple):
    """Start of a run."""

    first_policy: Floats  # [A]
    tuning: Tuning
    scale: float  # b of Laplace noise, 0 for none


def first_policy(tree: GameTree) -> Floats:
    """Return pi_1(a | s) = N(a)/N(s), float64[A]: the uniform distribution over reduced strategies."""
    policy = kernels.log_strategies(tree.action_ptr, tree.infoset_ptr)
    setup.first_policy(tree.action_ptr, policy)
    return policy


def _exponential(tree: GameTree, tuning: Tuning, sensitivity: float = 2.0) -> Learner:
    """Start exponential weights; the reports have this L1 sensitivity where they are values."""
    scale = 0.0 if tuning.symbols else noise_scale(tuning.epsilon, sensitivity)
    return Learner(first_policy(tree), tuning, scale)


def _uniform(tree: GameTree, tuning: Tuning) -> Learner:
    """Start what never learns: its regret is at most 1 per trial."""
    none, horizon = np.zeros(tree.n_actions), tuning.horizon
    made = Tuning(0.0, none, float(horizon), "uniform", horizon, tuning.epsilon, 0.0, 1.0)
    return Learner(tree.uniform_policy(), made, 0.0)


def _ixomd(tree: GameTree, given: Tuning) -> Learner:
    """Start IXOMD at its authors' rate for infosets of n actions: eta = sqrt(ln n / (n T)), gamma = eta/2.

    The bound is D/eta + eta A T, D the largest sum of ln(number of actions) over a reduced strategy.
    """
    if math.isfinite(given.epsilon):
        got = given.epsilon
        raise ValueError(f"epsilon must be math.inf for learner 'ixomd', which is not private, got {got}")
    widest, horizon = tree.max_actions, given.horizon
    rate = math.sqrt(math.log(widest) / (widest * horizon))
    widths = np.diff(tree.action_ptr)
    divergence = setup.fold(tree, np.repeat(np.log(widths), widths), setup.LONGEST)[0]
    slope = rate * tree.n_actions
    bound = min(divergence / rate + slope * horizon, float(horizon)) if rate > 0.0 else 0.0
    exploration = np.full(tree.n_actions, rate / 2.0)
    tuning = Tuning(rate, exploration, bound, "ixomd", horizon, math.inf, divergence, slope)
    return Learner(tree.uniform_policy(), tuning, 0.0)


@dataclass(frozen=True, kw_only=True)
class LearnerRow(Row):
    """A learner: `start` makes it for a tree and a tuning, which has horizon and epsilon."""

    start: Callable[[GameTree, Tuning], Learner]
    flat: bool = False  # then a whole reduced strategy is one action of its game
    sensitivity: float = 2.0  # of a report of values


_TUNING = {"tuning": Option("choice", "sharp", "learning rate and exploration", tuple(RULES))}
_MECHANISM = {"mechanism": Option("choice", "hashing", "what a user sends", tuple(MECHANISMS))}
_ROWS = (
    LearnerRow(
        name="dp-efb",
        summary="exponential weights over reduced strategies; a user sends one symbol, or noised losses",
        source="Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit "
        "Problem, Section 4",
        proof="; ".join(f"{name}: {row.proof}" for name, row in MECHANISMS.items()),
        options=_TUNING | _MECHANISM,
        start=_exponential,
    ),
    LearnerRow(
        name="ixomd",
        summary="mirror descent with implicit exploration; not private, needs epsilon=math.inf",
        source="Kozuno, Ménard, Munos and Valko (2021), Learning in two-player zero-sum partially observable "
        "Markov games with perfect recall, Algorithm 1",
        start=_ixomd,
    ),
    LearnerRow(
        name="flat-exp3",
        summary="exponential weights over a list of all reduced strategies, one noised loss; for small games",
        source="Tossou and Dimitrakakis (2017), Achieving privacy in the adversarial multi-armed bandit",
        proof="Laplace noise of scale 1/epsilon on one loss in [0, 1]",
        options=_TUNING,
        start=partial(_exponential, sensitivity=1.0),
        flat=True,
        sensitivity=1.0,
    ),
    LearnerRow(
        name="uniform",
        summary="plays every action of an infoset alike and learns nothing",
        source="a control",
        proof="it asks for no report",
        start=_uniform,
    ),
)
LEARNERS: Mapping[str, LearnerRow] = {row.name: row for row in _ROWS}


def strategies(tree: GameTree) -> Flags:
    """List the reduced strategies of a small tree, bool[S, A]: whether strategy x picks action a."""
    if tree.log_n_strategies + math.log(tree.n_actions) > math.log(_LARGEST_INCIDENCE):
        many = f"ln S = {tree.log_n_strategies:.1f}"
        raise ValueError(f"learner 'flat-exp3' lists every reduced strategy, and tree has too many: {many}")
    below: list[Flags] = [np.empty((0, 0), dtype=np.bool_)] * tree.n_infosets
    for s in range(tree.n_infosets - 1, -1, -1):
        options = []
        for a in range(tree.action_ptr[s], tree.action_ptr[s + 1]):
            rows = np.zeros((1, tree.n_actions), dtype=np.bool_)
            rows[0, a] = True
            for c in range(tree.infoset_ptr[a], tree.infoset_ptr[a + 1]):
                rows = (rows[:, None, :] | below[c][None, :, :]).reshape(-1, tree.n_actions)
                below[c] = rows[:0]
            options.append(rows)
        below[s] = np.concatenate(options)
    return below[0]


def flatten(schedule: Schedule, table: Flags) -> Schedule:
    """Make the game in which a reduced strategy, of `table` bool[S, A], is one action of one infoset."""
    losses = np.unique(np.concatenate([part.leaf_loss for part in schedule.environments]))
    n, root, leaf_loss = len(table), np.ones(1), np.tile(losses, len(table))  # of every loss a leaf each
    tree = GameTree(np.array([0, n]), np.ones(n + 1, dtype=np.int64), np.arange(n + 1) * len(losses))
    flat = [(_leaf_prob(part, table, losses), lasts) for part, lasts in schedule.entries]
    return Schedule(tuple((Environment(tree, root, prob, leaf_loss), lasts) for prob, lasts in flat))


def _leaf_prob(environment: Environment, table: Flags, losses: Floats) -> Floats:
    """Return the probability of each loss under each strategy, float64[S * losses]."""
    tree = environment.tree
    of_action = np.zeros((tree.n_actions, len(losses)))
    reach = np.ones(tree.n_infosets)
    for s in range(1, tree.n_infosets):  # breadth first: the parent comes before
        reach[s] = reach[tree.action_infoset[tree.infoset_action[s]]] * environment.infoset_prob[s]
    leaf_reach = reach[tree.action_infoset[tree.leaf_action]] * environment.leaf_prob
    np.add.at(of_action, (tree.leaf_action, np.searchsorted(losses, environment.leaf_loss)), leaf_reach)
    prob: Any = sum(map(np.outer, table.T, of_action))  # in this order, which BLAS does not keep
    return np.ascontiguousarray(np.minimum(prob / prob.sum(axis=1, keepdims=True), 1.0)).reshape(-1)
