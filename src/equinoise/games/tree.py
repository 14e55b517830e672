"""The learner's side of a game as three pointer arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks
from equinoise._checkpoint import kept_as
from equinoise._files import loaded, save_arrays
from equinoise._typing import Any, Array, Callable, Flags, Floats, Ints, Sequence

_KIND = "equinoise game tree, version 1"
POINTERS = ("action_ptr", "infoset_ptr", "leaf_ptr")
LABELS = ("infoset_labels", "action_labels")


def seal(array: Array) -> Array:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def keep(array: Array, given: object) -> Array:
    """Return an array that nobody else can change: itself when it is sealed and owns its memory, or a copy.

    `given` is the argument as it came: an array that was converted from it is nobody else's, and needs none.
    """
    if array.flags.owndata and not array.flags.writeable:
        return array
    fresh = isinstance(given, list | tuple) or (
        isinstance(given, np.ndarray) and not np.may_share_memory(array, given)
    )
    return seal(array if fresh and array.flags.owndata else array.copy())


def rebuilt(kind: Callable[..., Any], *fields: Any) -> Any:
    """Build an object of unpickled fields, whose arrays nobody else holds."""
    return kind(*(seal(field) if isinstance(field, np.ndarray) else field for field in fields))


@kept_as("equinoise.games.tree.GameTree")
@dataclass(frozen=True, eq=False)
class GameTree:
    """The infosets, actions and leaves of one player with perfect recall.

    The children of an infoset are its actions, the children of an action are infosets and leaves. Everything
    is numbered breadth first, so children are contiguous and three pointer arrays hold the whole tree. It is
    checked whole when it is built, and its arrays are read-only: one that is sealed (``flags.writeable`` is
    False) and owns its memory is kept as it is, any other is copied.

    Parameters
    ----------
    action_ptr : int64[I+1]
        Infoset s has the actions ``range(action_ptr[s], action_ptr[s + 1])``: at least one.
    infoset_ptr : int64[A+1]
        Action a leads to the infosets ``range(infoset_ptr[a], infoset_ptr[a + 1])``. The root is infoset 0
        and nobody's child, so the array begins with 1; it ends with I.
    leaf_ptr : int64[A+1]
        Action a leads to the leaves ``range(leaf_ptr[a], leaf_ptr[a + 1])``. Begins with 0 and ends with L.
        Every action has at least one child, infoset or leaf.
    infoset_labels, action_labels : sequence of str, optional
        One label for each infoset, and for each action. Labels may be empty or repeated. ValueError says what
        is wrong with pointers or labels, and TypeError with their kind.

    Examples
    --------
    >>> tree = GameTree(action_ptr=[0, 2, 4], infoset_ptr=[1, 1, 2, 2, 2], leaf_ptr=[0, 1, 2, 3, 4])
    >>> tree.action_infoset, tree.infoset_action, tree.leaf_action
    (array([0, 0, 1, 1]), array([-1,  1]), array([0, 1, 2, 3]))
    >>> round(np.exp(tree.log_n_strategies))
    3
    """

    action_ptr: Ints
    infoset_ptr: Ints
    leaf_ptr: Ints
    infoset_labels: tuple[str, ...] | None = None
    action_labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in POINTERS:
            given = getattr(self, name)
            object.__setattr__(self, name, keep(_checks.array(name, given, np.int64, (None,)), given))
        _check_pointers(self.action_ptr, self.infoset_ptr, self.leaf_ptr)
        for name, length in zip(LABELS, (self.n_infosets, self.n_actions), strict=True):
            object.__setattr__(self, name, _labels(name, getattr(self, name), length))

    def __repr__(self) -> str:
        return f"GameTree({self.n_infosets} infosets, {self.n_actions} actions, {self.n_leaves} leaves)"

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (GameTree, *(getattr(self, name) for name in POINTERS + LABELS))

    @property
    def n_infosets(self) -> int:
        """Number of infosets, I."""
        return len(self.action_ptr) - 1

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return len(self.infoset_ptr) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return int(self.leaf_ptr[-1])

    @cached_property
    def action_infoset(self) -> Ints:
        """The infoset that each action belongs to, int64[A]."""
        return seal(np.repeat(np.arange(self.n_infosets), np.diff(self.action_ptr)))

    @cached_property
    def infoset_action(self) -> Ints:
        """The action that leads to each infoset, int64[I]; -1 for the root."""
        return seal(np.append(-1, np.repeat(np.arange(self.n_actions), np.diff(self.infoset_ptr))))

    @cached_property
    def leaf_action(self) -> Ints:
        """The action that leads to each leaf, int64[L]."""
        return seal(np.repeat(np.arange(self.n_actions), np.diff(self.leaf_ptr)))

    @cached_property
    def level_ptr(self) -> Ints:
        """Where each level begins, int64[depth+1]: level k holds the infosets with k others above them."""
        bounds = [0, 1]
        while bounds[-1] < self.n_infosets:
            bounds.append(int(self.infoset_ptr[self.action_ptr[bounds[-1]]]))
        return seal(np.array(bounds, dtype=np.int64))

    @property
    def depth(self) -> int:
        """Number of infosets on the longest path."""
        return len(self.level_ptr) - 1

    @cached_property
    def max_actions(self) -> int:
        """Number of actions of the widest infoset."""
        return int(np.diff(self.action_ptr).max())

    @cached_property
    def log_n_strategies(self) -> float:
        """Natural logarithm of the number of reduced strategies, ln S."""
        from equinoise.games import kernels

        of_action = kernels.log_strategies(self.action_ptr, self.infoset_ptr)
        of_root = of_action[: self.action_ptr[1]]
        largest = of_root.max()
        return float(largest + np.log(np.exp(of_root - largest).sum()))

    def uniform_policy(self) -> Floats:
        """Return the policy that gives all actions of an infoset the same probability, float64[A]."""
        sizes = np.diff(self.action_ptr)
        return np.repeat(1.0 / sizes, sizes)

    def same_as(self, other: GameTree) -> bool:
        """Tell whether another tree has the same pointer arrays; labels do not matter."""
        return self is other or all(np.array_equal(getattr(self, n), getattr(other, n)) for n in POINTERS)

    def to_text(self, most: int = 200) -> str:
        """Draw the tree, at most so many lines: infosets, their actions and how many leaves these have."""
        most = _checks.integer("most", most, 1)
        infosets, actions = self.infoset_labels, self.action_labels
        lines: list[str] = []
        stack = [(0, 0, -1)]  # level, infoset, and action where it is one
        while stack and len(lines) < most:
            level, s, a = stack.pop()
            if a < 0:
                words = infosets[s] if infosets else f"infoset {s}"
                below = [(level + 1, s, a) for a in range(self.action_ptr[s], self.action_ptr[s + 1])]
            else:
                n = self.leaf_ptr[a + 1] - self.leaf_ptr[a]
                words = f"{actions[a] if actions else f'action {a}'}: {n} leaves"
                below = [(level + 1, s, -1) for s in range(self.infoset_ptr[a], self.infoset_ptr[a + 1])]
            lines.append("  " * level + _checks.line(words))
            stack += reversed(below)
        return "\n".join(lines + ["..."] * bool(stack))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a file (NumPy's ``.npz``, without pickles) under just this name, atomically."""
        save_arrays(path, _KIND, *parts(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GameTree:
        """Read a tree that :meth:`save` wrote; ValueError for a file that is damaged or something else."""
        with loaded(path, _KIND) as (arrays, labels):
            return cls(**arrays, **labels)


def parts(tree: GameTree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that make a tree: the pointer arrays and the labels, by name."""
    return {name: getattr(tree, name) for name in POINTERS}, {name: getattr(tree, name) for name in LABELS}


def _labels(name: str, labels: Sequence[str] | None, length: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"{name} must be a sequence of strings or None, got {_checks.shown(labels)}")
    result = tuple(labels)
    if len(result) != length:
        raise ValueError(f"{name} must hold {length} strings, got {len(result)}")
    for i, label in enumerate(result):
        if not isinstance(label, str):
            raise TypeError(f"{name} must hold strings, got {_checks.shown(label)} at index {i}")
    return result


def _check_pointers(action_ptr: Ints, infoset_ptr: Ints, leaf_ptr: Ints) -> None:
    n_infosets, n_actions = len(action_ptr) - 1, len(infoset_ptr) - 1
    for name, ptr in (("action_ptr", action_ptr), ("infoset_ptr", infoset_ptr)):
        if len(ptr) < 2:
            raise ValueError(f"{name} must have at least 2 entries, got {len(ptr)}")
    _ends("action_ptr", action_ptr, 0, n_actions, "the number of actions, len(infoset_ptr) - 1")
    _ends("infoset_ptr", infoset_ptr, 1, n_infosets, "the number of infosets, len(action_ptr) - 1")
    if (n := len(leaf_ptr)) != n_actions + 1:
        raise ValueError(f"leaf_ptr must have as many entries as infoset_ptr, {n_actions + 1}, got {n}")
    _ends("leaf_ptr", leaf_ptr, 0, None, "")
    rises = action_ptr[1:] > action_ptr[:-1]
    _all("action_ptr must rise: an infoset has at least one action", rises, "infoset")
    for name, ptr in (("infoset_ptr", infoset_ptr), ("leaf_ptr", leaf_ptr)):
        _all(f"{name} must not fall", ptr[1:] >= ptr[:-1], "action")
    has_child = infoset_ptr[1:] > infoset_ptr[:-1]
    has_child |= leaf_ptr[1:] > leaf_ptr[:-1]
    _all("infoset_ptr and leaf_ptr must give every action at least one child", has_child, "action")
    # Infoset s has its parent among 0..s-1 exactly when the children of those reach beyond s.
    below = infoset_ptr[action_ptr[:-1]] > np.arange(n_infosets)
    _all("infoset_ptr must number every infoset after its parent", below, "infoset")


def _ends(name: str, ptr: Ints, first: int, last: int | None, meaning: str) -> None:
    if ptr[0] != first:
        raise ValueError(f"{name} must begin with {first}, got {ptr[0]}")
    if last is not None and ptr[-1] != last:
        raise ValueError(f"{name} must end with {last} ({meaning}), got {ptr[-1]}")


def _all(words: str, right: Flags, place: str) -> None:
    if not right.all():
        raise ValueError(f"{words}, which fails at {place} {int(np.argmin(right))}")
