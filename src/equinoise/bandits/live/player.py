"""A policy played by hand: its kernels on a state of one lane, whose arms come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from equinoise._typing import Array, Floats, Ints, Words
from equinoise.bandits.live.rows import arm_fields, move_rows, restore_rows
from equinoise.bandits.live.secure import make_feed
from equinoise.bandits.live.setting import Setting
from equinoise.bandits.policies.registry import policy

__all__ = ["Player"]

_SCRATCH = ("score",)  # fields of states that nothing reads before it is written


class Player:
    """The arms in play, called rows here, and what the policy knows of them.

    The key uint64[2] is for what the policy draws for itself.
    """

    def __init__(self, setting: Setting, key: Words, n_rows: int) -> None:
        self._setting, self._key = setting, key
        self._spec = policy(setting.policy)
        self._kernels = self._spec.kernels
        self._fields = arm_fields(self._make)
        self._random_ties = setting.ties == "random"
        self._feed = make_feed(self._spec.live.feed if self._spec.live else "plain", n_rows, setting)
        self.state = self._make(n_rows)
        self.waiting = np.zeros(n_rows, dtype=np.int64)  # selections without a reward so far

    def _make(self, n_rows: int) -> Any:
        setting = self._setting
        epsilon = np.inf if setting.epsilon is None else setting.epsilon
        return self._spec.make_state(n_rows, 1, setting.horizon, epsilon, setting.options, key=self._key)

    @property
    def pulls(self) -> Ints:
        """Rewards of each row so far, int64[n_rows]."""
        return self.state.pulls[:, 0]  # type: ignore[no-any-return]

    @property
    def releases(self) -> Floats:
        """What a private policy knows of each row: a noised mean float64[n_rows], NaN before the first."""
        state = self.state
        if "private_n" in state._fields:
            sums, n = state.private_sum[:, 0], state.private_n[:, 0]
            return np.where(n > 0, sums / np.maximum(n, 1), np.nan)
        return np.where(self.pulls > 0, state.mean[:, 0], np.nan)

    def choose(self, t: int, tie_word: Any) -> int:
        """Return the row of round t, and wait for its reward.

        A row that was never selected comes first. Rows whose first reward is still to come are left out;
        where there are no others, the one that was selected least.
        """
        pulls = self.pulls
        untouched = pulls + self.waiting == 0
        if untouched.any():
            row = int(untouched.argmax())
        elif pulls.all():
            row = int(self._kernels.choose(self.state, 0, t, tie_word, self._random_ties))
        elif pulls.any():
            known = np.flatnonzero(pulls).tolist()
            part = self._only(known)
            row = known[int(self._kernels.choose(part, 0, t, tie_word, self._random_ties))]
        else:
            row = int(self.waiting.argmin())
        self.waiting[row] += 1
        self._open_batch(row)
        return row

    def _only(self, rows: list[int]) -> Any:
        """Return a state of some rows, with the numbers (such as K in a width) of all."""
        part = self._make(len(rows))
        numbers = {
            name: value for name, value in self.state._asdict().items() if not isinstance(value, np.ndarray)
        }
        return move_rows(self.state, part._replace(**numbers), rows, self._fields)

    def _open_batch(self, row: int) -> None:
        """Keep a policy of batches to the row that it last selected, until that row's batch is full."""
        if "current" in self.state._fields:
            self.state.current[0] = row

    def give(self, t: int, row: int, reward: float, noise: float) -> None:
        """Give a row a reward in round t; after an exception nothing has changed."""
        current = int(self.state.current[0]) if "current" in self.state._fields else row
        self._feed.give(self._kernels, self.state, t, row, reward, noise)
        if row != current:  # a late reward of another row: it neither opens nor closes the batch
            self.state.current[0] = current

    def add_row(self) -> None:
        """Begin one more row, which knows nothing."""
        n_rows = len(self.waiting)
        self._feed.add_row()
        self.state = move_rows(self.state, self._make(n_rows + 1), range(n_rows), self._fields)
        self.waiting = np.append(self.waiting, 0)

    def drop_row(self, row: int) -> None:
        """Forget a row; those after it move up."""
        rows = [other for other in range(len(self.waiting)) if other != row]
        self._feed.keep(rows)
        self.state = move_rows(self.state, self._make(len(rows)), rows, self._fields)
        self.waiting = self.waiting[rows]

    def saved(self) -> tuple[dict[str, Array], Any]:
        """Return arrays by name, and what the secure noise keeps, in the types of JSON."""
        names = [name for name in self._fields if name not in _SCRATCH]
        names += ["current"] if "current" in self.state._fields else []
        return {f"state_{name}": getattr(self.state, name) for name in names}, self._feed.saved()

    def restore(self, arrays: Mapping[str, Array], secure: Any) -> None:
        """Take over what :meth:`saved` returned, or raise as :func:`restore_rows` does where it cannot be."""
        mine = {name.removeprefix("state_"): array for name, array in arrays.items() if name[:6] == "state_"}
        names = tuple(name for name in self._fields if name not in _SCRATCH)
        restore_rows(self.state, mine, names)
        self._feed.restore(secure, self.state)
