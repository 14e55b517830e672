"""A behaviour policy together with the tree it is for, ready to travel."""

from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, ArrayLike, DataFrame, Floats, Iterable, Mapping, Sequence
from equinoise.games import kernels
from equinoise.games.environment import check_policy
from equinoise.games.tree import GameTree, keep, rebuilt
from equinoise.games.walk.others import Distributions, distinct_names, row_of


def realization_plan(tree: GameTree, policy: ArrayLike) -> Floats:
    """Return the learner's own probability of playing each action: the product of its policy along the path.

    `policy` and the result, also called the sequence form, are float64[A]; the part of chance and others is
    left out. TypeError for what is no tree, ValueError for a policy that does not add up to 1 everywhere.

    References
    ----------
    .. [1] von Stengel (1996), Efficient computation of behavior strategies, Games and Economic Behavior 14,
       Section 3.

    Examples
    --------
    >>> from equinoise.games import from_nested
    >>> tree, _ = from_nested([[0.5], [0.0, [[0.75], [1.0]]]])
    >>> realization_plan(tree, [0.25, 0.75, 0.5, 0.5])
    array([0.25 , 0.75 , 0.375, 0.375])
    """
    checked = check_policy(tree, policy)
    return kernels.realization_plan(tree.action_ptr, tree.infoset_ptr, checked)


@dataclass(frozen=True, eq=False)
class Policy:
    """How a learner plays: a tree, and as `values` float64[A] the probability of each action in its infoset.

    TypeError for another kind of thing, ValueError for values that do not add up to 1 over an infoset.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> best = Policy(tree, environment.best_response()[1])
    >>> best.to_dict()["1pb"]
    {'Pass': 0.0, 'Bet': 1.0}
    """

    tree: GameTree
    values: Floats

    def __post_init__(self) -> None:
        checked = check_policy(self.tree, self.values, "values")
        object.__setattr__(self, "values", keep(checked, self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (Policy, self.tree, self.values)

    def realization_plan(self) -> Floats:
        """Return the learner's own probability of playing each action, float64[A]."""
        return realization_plan(self.tree, self.values)

    def to_frame(self) -> DataFrame:
        """Return a table with one row for each action.

        Columns are infoset, infoset_label, action (numbers are those of the tree), action_label, probability
        (in the infoset) and reach (the realization plan). Without labels, numbers stand for them; those of
        actions count within the infoset.
        """
        import pandas as pd

        tree = self.tree
        place = np.arange(tree.n_actions) - tree.action_ptr[tree.action_infoset]
        infosets = np.array(tree.infoset_labels or range(tree.n_infosets), dtype=object)
        columns: dict[str, Any] = {"infoset": tree.action_infoset}
        columns |= {"infoset_label": infosets[tree.action_infoset].astype(str)}
        columns |= {"action": np.arange(tree.n_actions)}
        columns |= {"action_label": np.array(tree.action_labels or place, dtype=object).astype(str)}
        return pd.DataFrame(columns | {"probability": self.values, "reach": self.realization_plan()})

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{infoset label: {action label: probability}}``, which :func:`load` takes of an opponent.

        A label that is empty or repeated, or not there, is replaced by the number as a string: of the infoset
        in the tree, of the action in its infoset; where that is the label of another, all of them are. So
        every action has its entry.
        """
        tree, values, result = self.tree, self.values.tolist(), {}
        actions, bounds = tree.action_labels or ("",) * tree.n_actions, tree.action_ptr.tolist()
        for s, name in enumerate(distinct_names(tree.infoset_labels or ("",) * tree.n_infosets)):
            own = slice(bounds[s], bounds[s + 1])
            result[name] = dict(zip(distinct_names(actions[own]), values[own], strict=True))
        return result

    def to_openspiel(self, game: Any, player: int = 0) -> Any:
        """Return a player's policy as one of OpenSpiel, uniform for all others, for its algorithms.

        `game` is the pyspiel.Game that the tree was made of, or its name. One of simultaneous moves is made
        turn-based (the result's ``game``), and the policy is for that. ``to_tabular()`` makes a table of the
        result; ValueError where infosets share labels or have none.
        """
        from equinoise.games.openspiel import as_openspiel

        labels = self.tree.infoset_labels
        if labels is None or len(set(labels)) < len(labels):
            own = "whose infosets have labels of their own, as OpenSpiel's have"
            raise ValueError(f"values must be for a tree {own}")
        bounds = self.tree.action_ptr.tolist()
        rows = {label: self.values[bounds[s] : bounds[s + 1]].tolist() for s, label in enumerate(labels)}
        return as_openspiel(game, player, rows)


def behaviour(tree: GameTree, plan: Floats) -> Floats:
    """Return the policy of a realization plan, both float64[..., A]; uniform below what is never played."""
    widths = np.diff(tree.action_ptr)
    total = np.repeat(np.add.reduceat(plan, tree.action_ptr[:-1], axis=-1), widths, axis=-1)
    return np.where(total > 0.0, plan / np.where(total > 0.0, total, 1.0), tree.uniform_policy())


def average_policy(tree: GameTree, policies: Iterable[object], weights: ArrayLike | None = None) -> Policy:
    """Return the policy that plays as one of several, drawn anew for every play.

    Parameters
    ----------
    tree : GameTree
    policies : N of Policy, float64[A], mapping, function or "uniform"
        As of :func:`exploitability`, all on this tree. Their realization plans are averaged; in infosets that
        none of them gets to the result is uniform.
    weights : float64[N], optional
        How often each is drawn, up to a factor; alike by default. TypeError or ValueError for other policies,
        and for weights that are negative or all 0.

    Examples
    --------
    >>> from equinoise.games import from_nested
    >>> tree, _ = from_nested([[0.5], [0.0, [[0.75], [1.0]]]])
    >>> average_policy(tree, [[1, 0, 1, 0], [0, 1, 0.25, 0.75]], [1, 3]).values
    array([0.25, 0.75, 0.25, 0.75])
    """
    _checks.instance("tree", tree, GameTree)
    given = listed(policies)
    if not given:
        raise ValueError("policies must be at least one, got none")
    plans = np.stack(plans_on([tree] * len(given), given))
    share = np.ones(len(plans)) if weights is None else weights
    share = _checks.array("weights", share, np.float64, (len(plans),), low=0.0)
    if not share.any():
        raise ValueError("weights must not all be 0")
    share = share / share.max()  # the sum of huge ones may overflow
    return Policy(tree, behaviour(tree, share / share.sum() @ plans))


def listed(policies: object) -> list[object]:
    """Return policies as a list; one alone is refused."""
    if isinstance(policies, str | Mapping | Policy) or not isinstance(policies, Iterable):
        raise TypeError(f"policies must be a list of them, got {_checks.shown(policies)}")
    return list(policies)


def plans_on(trees: Sequence[GameTree], policies: list[object]) -> list[Floats]:
    """Return the realization plans of policies, each on its tree."""
    named = ((f"policies[{i}]", *pair) for i, pair in enumerate(zip(trees, policies, strict=True)))
    return [realization_plan(tree, values_on(tree, given, name)) for name, tree, given in named]


def values_on(tree: GameTree, given: object, name: str) -> Floats:
    """Return a policy float64[A] on a tree, given in any of the ways of :func:`exploitability`."""
    if isinstance(given, str):
        _checks.choice(name, given, ("uniform",))
        return tree.uniform_policy()
    values: Any = given
    if isinstance(given, Policy):
        if not given.tree.same_as(tree):
            same = repr(given.tree) == repr(tree)
            theirs = "another tree of that size, as another player may have" if same else f"a {given.tree}"
            raise ValueError(f"{name} must be for a {tree}, got one for {theirs}")
        values = given.values
    elif isinstance(given, Mapping) or callable(given):
        values, checked = [], Distributions()
        for label, row in Policy(tree, tree.uniform_policy()).to_dict().items():
            told = [1.0] if len(row) == 1 else row_of(name, given, label, tuple(row), checked)
            values += map(float, told)
    return check_policy(tree, values, name)
