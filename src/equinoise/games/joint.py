"""All players of a game at once: the histories that join their trees, best responses, exploitability."""

import math
from array import array
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks
from equinoise._typing import Any, Floats, Ints, Iterable, Iterator, NamedTuple, Sequence
from equinoise.games import kernels
from equinoise.games.catalog import source_of
from equinoise.games.policy import Policy, listed, plans_on
from equinoise.games.tree import GameTree, seal
from equinoise.games.walk.others import CHANCE, TERMINAL, Distributions
from equinoise.games.walk.record import Record, losses
from equinoise.games.walk.walk import BUDGETS, Limits, Source, check_source, visit

NODE = np.dtype([("mover", np.int64), ("first", np.int64), ("own", np.int64)])


class Histories(NamedTuple):
    """Every history of a game of P players, Z of them terminal, as kernels take them.

    A node has who moves (a player, CHANCE or TERMINAL), the first child, which the others follow, and
    a number, of the infoset in the mover's tree, the chance node, or the terminal history.
    """

    nodes: NDArray[np.void]  # NODE[H], the root first
    outcome_ptr: Ints  # [N+1], where a chance node's probabilities stand
    outcome_cum: Floats  # running sums of these
    reach: Floats  # [Z], the product of chance's probabilities
    last: Ints  # [Z, P], each player's last action, in its tree
    loss: Floats  # [Z, P]


@dataclass(frozen=True, eq=False)
class JointGame:
    """A game of P players as all of them meet it; :func:`load_joint` makes it.

    Attributes
    ----------
    trees : tuple of GameTree
        One for each player, as of :func:`load`.
    loss_range : tuple of float64[A, 2]
        As of each player's :class:`Environment`.
    payoff_range : float64[P, 2]
        Smallest and largest payoff of each player: a payoff u is the loss (high - u)/(high - low).
    histories : Histories
    name : str
        What it was loaded by; of a Source its own `name`, or its class's.

    Examples
    --------
    >>> load_joint("kuhn_poker").trees[1]
    GameTree(7 infosets, 13 actions, 18 leaves)
    """

    trees: tuple[GameTree, ...]
    loss_range: tuple[Floats, ...]
    payoff_range: Floats
    histories: Histories
    name: str = ""

    def __repr__(self) -> str:
        return f"JointGame({len(self.trees)} players, {len(self.histories.nodes)} histories)"

    @cached_property
    def constant_sum(self) -> bool:
        """Whether there are two players, whose payoffs always add up to the same."""
        widths = np.diff(self.payoff_range)[:, 0]
        return len(widths) == 2 and bool(np.ptp(self.histories.loss @ widths) <= 1e-9 * widths.max())

    def others(self, plans: Sequence[Floats], player: int) -> Floats:
        """Return how often chance and the others play towards each terminal history, float64[Z]."""
        share = self.histories.reach.copy()
        for j, plan in enumerate(plans):
            if j != player:
                share *= plan[self.histories.last[:, j]]
        return share

    def response(self, player: int, others: Floats) -> tuple[Floats, float, Floats]:
        """Return g(a) float64[A] against such `others`, the least loss, and a pure policy that has it."""
        tree, (*_, last, loss) = self.trees[player], self.histories
        lost = np.bincount(last[:, player], others * loss[:, player], tree.n_actions).astype(np.float64)
        return lost, *kernels.best_response_value(tree.action_ptr, tree.infoset_ptr, lost)

    def exploitability(self, plans: Sequence[Floats]) -> float:
        """Return what the function :func:`exploitability` does, of realization plans float64[A]."""
        total = 0.0
        for i, (low, high) in enumerate(self.payoff_range.tolist()):
            lost, least, _ = self.response(i, self.others(plans, i))
            total += (high - low) * (float((lost * plans[i]).sum()) - least)
        return total / 2.0 if self.constant_sum else total


def load_joint(game: object, *, recall: str = "check", **limits: Any) -> JointGame:
    """Load a game as all its players meet it; a JointGame is returned as it is.

    Options, errors and warnings are those of :func:`load`; a game of one player alone, such as
    ``"bandit(3)"``, is a ValueError, and so are payoffs too far apart for a float. It keeps 24 bytes a
    history and 16 a player more for each terminal one; `max_bytes` counts only the largest of the trees.

    Examples
    --------
    >>> load_joint("leduc_poker", max_histories=10_000)
    JointGame(2 players, 9457 histories)
    """
    if unknown := set(limits) - set(BUDGETS):
        raise TypeError(f"{min(unknown)!r} is no option of load_joint")
    if isinstance(game, JointGame):
        if limits or recall != "check":
            raise TypeError(f"game must be one to load where there are options, got {game}")
        return game
    refine = _checks.choice("recall", recall, ("check", "refine")) == "refine"
    budgets, source = Limits(**limits), source_of(game, recall)
    if isinstance(source, tuple):
        raise ValueError(f"game must have players of its own, got {_checks.shown(game)}")
    check_source(source)
    exact = getattr(source, "exact", True)
    records = [Record(player, refine=refine, exact=exact) for player in range(source.n_players)]
    found, distributions = _Found(), Distributions()
    with budgets.watching():
        visit(source, records, budgets, distributions, None, found)
        distributions.warn(stacklevel=3)
        trees, environments = zip(*(record.finish() for record in records), strict=True)
    nodes = np.empty(len(found.mover), dtype=NODE)
    nodes["mover"], nodes["first"], nodes["own"] = found.mover, found.first, found.own
    last = np.array(found.last, dtype=np.int64).reshape(-1, len(trees))
    loss = np.empty(last.shape)
    for i, (record, tree) in enumerate(zip(records, trees, strict=True)):
        own = nodes["mover"] == i
        nodes["own"][own] = tree.action_infoset[record.new_action[nodes["own"][own]]]
        last[:, i] = record.new_action[last[:, i]]
        loss[:, i] = losses(found.payoff[i :: len(trees)])[0]
    ranges = [environment.payoff_range or (-np.inf, np.inf) for environment in environments]
    if not all(math.isfinite(high - low) for low, high in ranges):
        raise ValueError("game must have payoffs that a float can hold, and their differences")
    ptr = np.cumsum([0, *found.n_outcomes])
    cumulative = kernels.cumulative(np.zeros_like(ptr), ptr, np.empty(0), np.array(found.outcome))[1]
    histories = Histories(*map(seal, (nodes, ptr, cumulative, np.array(found.reach), last, loss)))
    loss_range = tuple(environment.loss_range for environment in environments)
    name = getattr(game, "name", type(game).__name__) if isinstance(game, Source) else game
    return JointGame(trees, loss_range, np.array(ranges), histories, str(name))


class _Found:
    """What a walk meets; histories are numbered as they are opened, the children of one together."""

    def __init__(self) -> None:
        self.mover, self.first, self.own = array("q", [0]), array("q", [0]), array("q", [0])
        self.n_outcomes, self.outcome = array("q"), array("d")
        self.reach, self.last = array("d"), array("q")
        self.payoff: list[Any] = []

    def open(self, number: int, kind: int, own: Any, n: int) -> Iterator[int]:
        """Keep a history: its first action or its probabilities; return the numbers of its children."""
        if kind == CHANCE:
            self.outcome.extend(map(float, own))
            own = len(self.n_outcomes)
            self.n_outcomes.append(n)
        self.mover[number], self.first[number], self.own[number] = int(kind), len(self.mover), own
        for column in (self.mover, self.first, self.own):
            column.extend(repeat(0, n))
        return count(self.first[number])

    def end(self, number: int, weight: Any, above: tuple[int, ...], payoffs: list[Any]) -> None:
        """Keep a history that is terminal."""
        self.mover[number], self.own[number] = TERMINAL, len(self.reach)
        self.reach.append(float(weight))
        self.last.extend(above)
        self.payoff += payoffs


def exploitability(game: object, policies: Iterable[object]) -> float:
    """Return how much the players could gain, each by a best response to what the others play.

    In the game's own payoff: the sum of all gains, called NashConv [1]_, 0 in an equilibrium. For two players
    whose payoffs always add up to the same it is halved, as OpenSpiel's exploitability is.

    Parameters
    ----------
    game : str, path, pyspiel.Game, Source or JointGame
        As of :func:`load_joint`, with its errors.
    policies : P of Policy, float64[A], mapping, function or "uniform"
        One for each player, on its tree, else TypeError or ValueError; mappings and functions as opponents of
        :func:`load`.

    References
    ----------
    .. [1] Lanctot and others (2017), A unified game-theoretic approach to multiagent reinforcement learning,
       NeurIPS, Section 4.

    Examples
    --------
    >>> round(exploitability("kuhn_poker", ["uniform", "uniform"]), 9)
    0.458333333
    """
    joint = load_joint(game)
    return joint.exploitability(_plans(joint, policies))


def best_response(game: object, policies: Iterable[object], player: int) -> tuple[float, Policy]:
    """Return the largest payoff that a player, from 0, can get, and a pure policy that gets it.

    `game`, `policies` and errors are those of :func:`exploitability`; of `policies` the player's own does not
    matter, but must be there.

    Examples
    --------
    >>> value, policy = best_response("kuhn_poker", ["uniform", "uniform"], 1)
    >>> round(value, 9), policy.to_dict()["2b"]
    (0.416666667, {'Pass': 0.0, 'Bet': 1.0})
    """
    joint = load_joint(game)
    i = _checks.integer("player", player, 0, len(joint.trees) - 1)
    _, least, policy = joint.response(i, joint.others(_plans(joint, policies), i))
    low, high = joint.payoff_range[i].tolist()
    return high - (high - low) * least, Policy(joint.trees[i], policy)


def _plans(game: JointGame, policies: Iterable[object]) -> list[Floats]:
    given = listed(policies)
    if len(given) != len(game.trees):
        raise ValueError(f"policies must be {len(game.trees)}, one for each player, got {len(given)}")
    return plans_on(game.trees, given)
