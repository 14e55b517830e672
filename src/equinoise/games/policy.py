"""A behaviour policy together with the tree it is for, ready to travel."""

from dataclasses import dataclass

import numpy as np

from equinoise._typing import Any, ArrayLike, DataFrame, Floats
from equinoise.games import kernels
from equinoise.games.environment import check_policy
from equinoise.games.tree import GameTree, keep, rebuilt
from equinoise.games.walk.others import distinct_names


def realization_plan(tree: GameTree, policy: ArrayLike) -> Floats:
    """Return the learner's own probability of playing each action: the product of its policy along the path.

    Parameters
    ----------
    tree : GameTree
    policy : float64[A]
        The probability of each action in its infoset.

    Returns
    -------
    float64[A]
        Also called the sequence form; the part of chance and of the others is left out.

    Raises
    ------
    TypeError, ValueError
        For what is no tree, and for a policy that does not add up to 1 over every infoset.

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
        return pd.DataFrame(
            {
                "infoset": tree.action_infoset,
                "infoset_label": infosets[tree.action_infoset].astype(str),
                "action": np.arange(tree.n_actions),
                "action_label": np.array(tree.action_labels or place, dtype=object).astype(str),
                "probability": self.values,
                "reach": self.realization_plan(),
            }
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{infoset label: {action label: probability}}``, which :func:`load` takes of an opponent.

        A label that is empty or repeated, or not there, is replaced by the number as a string: of the infoset
        in the tree, of the action in its infoset. So every action has its entry.
        """
        tree = self.tree
        actions = tree.action_labels or ("",) * tree.n_actions
        values = self.values.tolist()
        bounds = tree.action_ptr.tolist()
        result = {}
        for s, name in enumerate(distinct_names(tree.infoset_labels or ("",) * tree.n_infosets)):
            own = slice(bounds[s], bounds[s + 1])
            result[name] = dict(zip(distinct_names(actions[own]), values[own], strict=True))
        return result

    def to_openspiel(self, game: Any, player: int = 0) -> Any:
        """Return the policy as one of OpenSpiel, for its algorithms.

        Parameters
        ----------
        game : pyspiel.Game or str
            The game that the tree was made of, or its name. One of simultaneous moves is made turn-based
            (the result's ``game``), and the policy is for that.
        player : int
            Whose policy it is.

        Returns
        -------
        open_spiel.python.policy.Policy
            Uniform for all other players; ``to_tabular()`` makes a table of it.
        """
        from equinoise.games.openspiel import as_openspiel

        labels = self.tree.infoset_labels
        if labels is None or len(set(labels)) < len(labels):
            raise ValueError(
                "values must be for a tree whose infosets have labels of their own, as OpenSpiel's have"
            )
        bounds = self.tree.action_ptr.tolist()
        rows = {label: self.values[bounds[s] : bounds[s + 1]].tolist() for s, label in enumerate(labels)}
        return as_openspiel(game, player, rows)
