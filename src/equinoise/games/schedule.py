"""Environments one after the other: an adversary that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks
from equinoise._typing import Floats, Ints
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree, seal

__all__ = ["Schedule"]

_MOST_TRIALS = 2**62  # sums of them are int64


@dataclass(frozen=True, eq=False)
class Schedule:
    """An oblivious adversary that changes over time: one environment after the other, each for some trials.

    Parameters
    ----------
    entries : sequence of (Environment, int)
        Environments on one tree (the same object, or equal pointer arrays), and how many trials each lasts.

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
                raise ValueError(
                    f"entries must share one tree, but that of entries[{i}] differs from the first"
                )
        if sum(trials for _, trials in entries) > _MOST_TRIALS:
            raise ValueError(f"entries must last at most {_MOST_TRIALS} trials together")
        object.__setattr__(self, "entries", entries)

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


def _entry(i: int, entry: object) -> tuple[Environment, int]:
    """Check one pair of a schedule."""
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise TypeError(f"entries[{i}] must be a pair (environment, trials), got {_checks.shown(entry)}")
    if not isinstance(entry[0], Environment):
        raise TypeError(f"entries[{i}][0] must be an Environment, got {_checks.shown(entry[0])}")
    return entry[0], _checks.integer(f"entries[{i}][1] (trials)", entry[1], minimum=1, maximum=2**62)
