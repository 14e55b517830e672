"""How chance and the other players move, as the learner meets them."""

from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, ArrayLike, Callable, Floats, Ints, Iterable
from equinoise.games import kernels
from equinoise.games.tree import GameTree, keep, rebuilt, seal

_SUM_TOLERANCE = 1e-9
_POLICY_TOLERANCE = 1e-8


def check_policy(tree: GameTree, policy: ArrayLike, name: str = "policy") -> Floats:
    """Return a behaviour policy as float64[A], itself where it is one; over infosets it must add up to 1."""
    _checks.instance("tree", tree, GameTree)
    checked = _checks.array(name, policy, np.float64, (tree.n_actions,), low=0.0)
    none = np.zeros_like(tree.action_ptr), np.empty(0)  # no leaves
    infoset, total = kernels.child_sums(tree.action_ptr, none[0], checked, none[1])
    if not abs(total - 1.0) <= _POLICY_TOLERANCE:
        raise ValueError(f"{name} must add up to 1 over every infoset, got {total} at infoset {infoset}")
    return checked


@dataclass(frozen=True, eq=False)
class Environment:
    """The probabilities with which the children of every action come about, and the losses at the leaves.

    Arrays are kept or copied as :class:`GameTree` does it, and are read-only.

    Parameters
    ----------
    tree : GameTree
        With I infosets, A actions, L leaves.
    infoset_prob : float64[I]
        Probability of each infoset, given that the action above it was played and reached. One for the root.
    leaf_prob : float64[L]
        The same for leaves. Over the infosets and leaves below an action they add up to one, within 1e-9.
    leaf_loss : float64[L]
        What the learner loses at each leaf, in [0, 1].
    payoff_range : (float, float), optional
        Smallest and largest payoff ``(u_min, u_max)`` of the game that the losses stand for: a payoff u is
        the loss ``(u_max - u)/(u_max - u_min)``. When both are equal every loss is 0. ValueError for what is
        out of range or does not add up, TypeError for another kind of thing.

    Examples
    --------
    >>> tree = GameTree(action_ptr=[0, 2], infoset_ptr=[1, 1, 1], leaf_ptr=[0, 1, 3])
    >>> environment = Environment(tree, [1.0], [1.0, 0.5, 0.5], [0.25, 0.0, 1.0], payoff_range=(-1, 3))
    >>> environment.action_loss
    array([0.25, 0.5 ])
    >>> loss, policy = environment.best_response()
    >>> loss, policy, environment.utility(loss)
    (0.25, array([1., 0.]), 2.0)
    """

    tree: GameTree
    infoset_prob: Floats
    leaf_prob: Floats
    leaf_loss: Floats
    payoff_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _checks.instance("tree", self.tree, GameTree)
        lengths = (self.tree.n_infosets, self.tree.n_leaves, self.tree.n_leaves)
        for name, length in zip(("infoset_prob", "leaf_prob", "leaf_loss"), lengths, strict=True):
            given = getattr(self, name)
            checked = _checks.array(name, given, np.float64, (length,), low=0.0, high=1.0)
            object.__setattr__(self, name, keep(checked, given))
        if self.infoset_prob[0] != 1.0:
            raise ValueError(f"infoset_prob must be 1 at the root, got {self.infoset_prob[0]} at index 0")
        pointers = self.tree.infoset_ptr, self.tree.leaf_ptr
        worst, total = kernels.child_sums(*pointers, self.infoset_prob, self.leaf_prob)
        if abs(total - 1.0) > _SUM_TOLERANCE:
            what = "infoset_prob and leaf_prob must add up to 1 over the children of every action"
            raise ValueError(f"{what}, got {total} at action {worst}")
        object.__setattr__(self, "payoff_range", _payoff_range(self.payoff_range))

    def __repr__(self) -> str:
        return f"Environment({self.tree!r}, payoff_range={self.payoff_range})"

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self.infoset_prob, self.leaf_prob, self.leaf_loss
        return rebuilt, (Environment, self.tree, *arrays, self.payoff_range)

    @cached_property
    def action_loss(self) -> Floats:
        """``g(a)``, what each action loses at its own leaves, weighed by the chance to get there, float64[A].

        The product of the probabilities on the path (the learner's own moves left out) times the expected
        loss of the leaves directly below a. A reduced strategy loses the sum of g over its actions.
        """
        mean, reach = kernels.mean_loss(self.tree, self.infoset_prob, self.leaf_prob, self.leaf_loss)
        return seal(np.repeat(reach, np.diff(self.tree.action_ptr)) * mean)

    @property
    def loss_range(self) -> Floats:
        """Smallest and largest loss of each action's own leaves, float64[A, 2]; 1/2 where it has none."""
        return _loss_range(self.tree, self.leaf_loss, self.leaf_loss)

    @cached_property
    def cumulative(self) -> tuple[Floats, Floats]:
        """Running sums of the probabilities below every action, infosets first: float64[I] and float64[L].

        The first child with ``u < cumulative`` is a draw from them, for a uniform u in (0, 1); it exists for
        every such u and never has probability zero.
        """
        pointers = self.tree.infoset_ptr, self.tree.leaf_ptr
        infosets, leaves = kernels.cumulative(*pointers, self.infoset_prob, self.leaf_prob)
        return seal(infosets), seal(leaves)

    def expected_loss(self, policy: ArrayLike) -> float:
        """Return the expected loss, in [0, 1], of a behaviour policy float64[A]."""
        checked = check_policy(self.tree, policy)
        plan = kernels.realization_plan(self.tree.action_ptr, self.tree.infoset_ptr, checked)
        return float(np.dot(plan, self.action_loss))

    def best_response(self) -> tuple[float, Floats]:
        """Return the least expected loss of any strategy and a pure policy float64[A] that has it.

        The policy is one at the picked action of every infoset, the first of several best ones.
        """
        return kernels.best_response_value(self.tree.action_ptr, self.tree.infoset_ptr, self.action_loss)

    @overload
    def utility(self, loss: float) -> float: ...
    @overload
    def utility(self, loss: Floats) -> Floats: ...
    def utility(self, loss: float | Floats) -> float | Floats:
        """Turn a loss, or an array of them, back into the game's payoff, ``u_max - loss (u_max - u_min)``.

        ValueError where the environment was made of losses alone and knows no payoffs.
        """
        if self.payoff_range is None:
            missing = "the payoff_range that the losses stand for, and this environment has none"
            raise ValueError(f"utility needs {missing}")
        low, high = self.payoff_range
        if not _checks.entries("loss", loss).ndim:
            value = _checks.number("loss", loss)
            return high * (1.0 - value) + low * value
        values = _checks.array("loss", loss, np.float64, None)
        return high * (1.0 - values) + low * values  # the difference of the two may overflow, this does not


def _loss_range(tree: GameTree, low: Floats, high: Floats) -> Floats:
    """Return the smallest of `low` float64[L] and largest of `high` below each action, float64[A, 2]."""
    some = np.diff(tree.leaf_ptr) > 0
    starts = tree.leaf_ptr[:-1][some]
    ranges = np.full((tree.n_actions, 2), 0.5)
    if len(starts):
        ranges[some, 0] = np.minimum.reduceat(low, starts)
        ranges[some, 1] = np.maximum.reduceat(high, starts)
    return seal(ranges)


def _payoff_range(value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    got = _checks.shown(value)
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"payoff_range must be a pair (smallest, largest) or None, got {got}")
    low, high = (_checks.number("payoff_range", end) for end in value)
    if low > high:
        raise ValueError(f"payoff_range must be (smallest, largest), got {got}")
    return low, high


# Environments one after the other: an adversary that was fixed beforehand.
_MOST_TRIALS = 2**62  # sums of them are int64


@dataclass(frozen=True, eq=False)
class Schedule:
    """An oblivious adversary that changes over time: one environment after the other, each for some trials.

    Parameters
    ----------
    entries : sequence of (Environment, int)
        Environments on one tree (the same object, or equal pointer arrays), and how many trials each lasts;
        TypeError or ValueError for anything else. ``entries * 10`` goes through a list of them ten times.

    Examples
    --------
    >>> tree = GameTree(action_ptr=[0, 2], infoset_ptr=[1, 1, 1], leaf_ptr=[0, 1, 2])
    >>> first = Environment(tree, [1.0], [1.0, 1.0], [0.0, 1.0])
    >>> second = Environment(tree, [1.0], [1.0, 1.0], [1.0, 0.0])
    >>> schedule = Schedule([(first, 100), (second, 50)])
    >>> schedule.total, schedule.action_loss(120)
    (150, array([ 20., 100.]))
    """

    entries: tuple[tuple[Environment, int], ...]

    def __post_init__(self) -> None:
        if isinstance(self.entries, str | dict) or not isinstance(self.entries, Iterable):
            raise TypeError(f"entries must be pairs (environment, trials), got {_checks.shown(self.entries)}")
        entries = tuple(_entry(i, entry) for i, entry in enumerate(self.entries))
        if not entries:
            raise ValueError("entries must hold at least one pair (environment, trials), got none")
        for i, (environment, _) in enumerate(entries):
            if not environment.tree.same_as(entries[0][0].tree):
                other = f"entries[{i}] differs from the first"
                raise ValueError(f"entries must share one tree, but that of {other}")
        if sum(trials for _, trials in entries) > _MOST_TRIALS:
            raise ValueError(f"entries must last at most {_MOST_TRIALS} trials together")
        object.__setattr__(self, "entries", entries)

    @classmethod
    def of_losses(
        cls,
        environment: Environment,
        losses: ArrayLike | Callable[[int], ArrayLike],
        trials: int | None = None,
    ) -> "Schedule":
        """Return a schedule in which the losses change from trial to trial, and nothing else does.

        Parameters
        ----------
        environment : Environment
            Its tree, of L leaves, its probabilities and its payoff range are those of every trial.
        losses : float64[T, L] or callable
            The losses at the leaves in each trial, in [0, 1]; or what returns those of trial t, float64[L],
            and is asked once for each, beforehand: the adversary does not see how the learner plays.
        trials : int, optional
            T, which a callable does not tell.

        Raises
        ------
        TypeError, ValueError
            For wrong arguments.

        Examples
        --------
        >>> from equinoise.games import load
        >>> tree, environment = load("bandit(2)")
        >>> schedule = Schedule.of_losses(environment, lambda t: [t % 2, 0.5], trials=100)
        >>> schedule.action_loss(100)
        array([50., 50.])
        """
        length = _known(environment).tree.n_leaves
        if callable(losses):
            n = _checks.integer("trials", trials, 1, _MOST_TRIALS)
            _results.check_memory(n, 3 * length + 32, "trials")
            losses = np.array([_losses(f"losses({t})", losses(t), length) for t in range(n)])
        rows = _losses("losses", losses, trials, length)
        different, which = np.unique(rows, axis=0, return_inverse=True)
        environments = [_losing(environment, row) for row in different]
        return cls(tuple((environments[i], 1) for i in which.tolist()))

    @property
    def tree(self) -> GameTree:
        """The tree that all environments share."""
        return self.entries[0][0].tree

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environments, in order."""
        return tuple(environment for environment, _ in self.entries)

    @cached_property
    def trials(self) -> Ints:
        """How many trials each environment lasts, int64[E]."""
        return seal(np.array([trials for _, trials in self.entries], dtype=np.int64))

    @cached_property
    def loss_range(self) -> Floats:
        """Smallest and largest loss of each action's own leaves in any environment, float64[A, 2]."""
        low = high = self.entries[0][0].leaf_loss
        for environment in set(self.environments):
            low, high = np.minimum(low, environment.leaf_loss), np.maximum(high, environment.leaf_loss)
        return _loss_range(self.tree, low, high)

    @property
    def total(self) -> int:
        """Number of trials of all entries together."""
        return int(self.trials.sum())

    def action_loss(self, trials: int) -> Floats:
        """Return the losses of the actions (``g(a)``) summed over the first `trials`, float64[A]."""
        left = _checks.integer("trials", trials, 0, self.total)
        result = np.zeros(self.tree.n_actions)
        for environment, lasts in self.entries:
            result += min(left, lasts) * environment.action_loss
            left -= min(left, lasts)
        return seal(result)


def _losses(name: str, losses: ArrayLike, *shape: int | None) -> Floats:
    return _checks.array(name, losses, np.float64, shape, low=0.0, high=1.0)


def _losing(environment: Environment, leaf_loss: Floats) -> Environment:
    """Return an environment with other losses, which were checked; a thousand take no time."""
    changed = Environment.__new__(Environment)
    keeps = ("tree", "infoset_prob", "leaf_prob", "payoff_range", "cumulative")
    vars(changed).update({name: getattr(environment, name) for name in keeps}, leaf_loss=seal(leaf_loss))
    return changed


def _entry(i: int, entry: object) -> tuple[Environment, int]:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise TypeError(f"entries[{i}] must be a pair (environment, trials), got {_checks.shown(entry)}")
    environment = _checks.instance(f"entries[{i}][0]", entry[0], Environment)
    return environment, _checks.integer(f"entries[{i}][1] (trials)", entry[1], 1, _MOST_TRIALS)


# What play is worth, in the game's own payoff.


def uniform_value(environment: Environment) -> float:
    """Return the expected payoff of uniform play; ValueError where the environment knows no payoff_range.

    Examples
    --------
    >>> from equinoise.games import load
    >>> round(uniform_value(load("kuhn_poker")[1]), 12)
    0.125
    """
    return policy_value(environment, _known(environment).tree.uniform_policy())


def policy_value(environment: Environment, policy: ArrayLike) -> float:
    """Return the expected payoff of a policy float64[A]; errors are as of :func:`uniform_value`.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> round(policy_value(environment, environment.best_response()[1]), 12)
    0.5
    """
    return _known(environment).utility(environment.expected_loss(policy))


def best_response_value(environment: Environment) -> float:
    """Return the largest expected payoff of any strategy; ValueError as in :func:`uniform_value`.

    Examples
    --------
    >>> from equinoise.games import load
    >>> round(best_response_value(load("kuhn_poker")[1]), 12)
    0.5
    """
    return _known(environment).utility(environment.best_response()[0])


def _known(environment: object) -> Environment:
    known: Environment = _checks.instance("environment", environment, Environment)
    return known
