"""Small trees written down as nested lists."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from equinoise import _checks
from equinoise._typing import Array
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree, seal

__all__ = ["from_nested"]


def from_nested(nested: Any) -> tuple[GameTree, Environment]:
    """Build a tree and its environment from nested lists.

    Parameters
    ----------
    nested : list
        An infoset: a list of actions. An action is a list of children, all equally likely; a child is an
        infoset (a list) or a number in [0, 1], which is a leaf with that loss.

    Raises
    ------
    TypeError, ValueError
        Something in it is neither list nor number, an empty list, or a number outside [0, 1]; the message
        names the place, such as ``nested[0][1]``.

    Examples
    --------
    Take a sure loss of a half, or toss a coin: heads is free, after tails choose again.

    >>> tree, environment = from_nested([[0.5], [0.0, [[0.75], [1.0]]]])
    >>> tree
    GameTree(2 infosets, 4 actions, 4 leaves)
    >>> environment.best_response()
    (0.375, array([0., 1., 1., 0.]))
    """
    infosets = [nested]
    parents: list[tuple[int, int, int]] = [
        (-1, 0, 0)
    ]  # for a message: infoset, action and child of each list
    action_ptr, infoset_ptr, leaf_ptr = [0], [1], [0]
    infoset_prob, leaf_prob, leaf_loss = [1.0], [], []
    for s, infoset in enumerate(infosets):  # the list grows while it is read, so it goes breadth first
        _check_list(infoset, "an infoset, a list of actions", parents, s)
        for a, action in enumerate(infoset):
            _check_list(action, "an action, a list of children", parents, s, a)
            share = 1.0 / len(action)
            for c, child in enumerate(action):
                if isinstance(child, list | tuple):
                    infosets.append(child)
                    parents.append((s, a, c))
                    infoset_prob.append(share)
                else:
                    leaf_loss.append(_loss(child, parents, s, a, c))
                    leaf_prob.append(share)
            infoset_ptr.append(len(infosets))
            leaf_ptr.append(len(leaf_loss))
        action_ptr.append(len(infoset_ptr) - 1)
    tree = GameTree(
        _sealed(action_ptr, np.int64), _sealed(infoset_ptr, np.int64), _sealed(leaf_ptr, np.int64)
    )
    probabilities = _sealed(infoset_prob, np.float64), _sealed(leaf_prob, np.float64)
    return tree, Environment(tree, *probabilities, _sealed(leaf_loss, np.float64))


def _sealed(values: list[Any], dtype: DTypeLike) -> Array:
    return seal(np.array(values, dtype=dtype))


def _check_list(value: object, what: str, parents: list[tuple[int, int, int]], *place: int) -> None:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{_name(parents, *place)} must be {what}, got {_checks.shown(value)}")
    if not value:
        raise ValueError(f"{_name(parents, *place)} must be {what}, got an empty list")


def _loss(child: object, parents: list[tuple[int, int, int]], *place: int) -> float:
    if isinstance(child, bool) or not isinstance(child, numbers.Real):
        name = _name(parents, *place)
        raise TypeError(f"{name} must be an infoset (a list) or a loss in [0, 1], got {_checks.shown(child)}")
    loss = float(child)
    if not 0.0 <= loss <= 1.0:
        raise ValueError(f"{_name(parents, *place)} must be a loss in [0, 1], got {_checks.shown(child)}")
    return loss


def _name(parents: list[tuple[int, int, int]], infoset: int, *rest: int) -> str:
    """Write the place of an infoset, or of something in it, as indices into `nested`."""
    steps = list(rest[::-1])
    while infoset > 0:
        infoset, action, child = parents[infoset]
        steps += [child, action]
    return "nested" + "".join(f"[{i}]" for i in reversed(steps))
