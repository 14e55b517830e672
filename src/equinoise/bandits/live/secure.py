"""How a reward reaches a policy: as it is, with drawn noise next to it, or as a securely noised sum alone.

In the secure forms the kernels never see a reward. They are told a reward of 0 and, in the place of noise,
what OpenDP made of exact sums on a grid: the private sum of a counter, or of a full batch. Whatever a policy
computes, and however it rounds, is then made of private numbers only.
"""

from equinoise import _checks
from equinoise._typing import Any, Words
from equinoise.bandits.live.player import Player, Setting
from equinoise.bandits.policies.registry import policy
from equinoise.mechanisms import COUNTERS, secure_laplace

_STEPS = 2**24  # of a batch's grid, from 0 to 1: sums of up to 2^29 rewards are exact in a float64


class CounterPlayer(Player):
    """Keeps a secure counter for each row, whose private sums are all that the policy hears of rewards."""

    def _fresh(self) -> Any:
        horizon = self._setting.horizon
        if horizon is None or self._setting.options["counter"] == "hybrid":
            return COUNTERS["hybrid"].make(self._epsilon)
        return COUNTERS[self._setting.options["counter"]].make(self._epsilon, horizon)

    def give(self, t: int, row: int, reward: float, noise: float) -> None:
        """Give a row's counter a reward in round t, and the policy the private sum."""
        total = self._kept[row].add(reward)
        self._kernels.update(self.state, 0, t, row, 0.0, 0.0)
        self.state.mean[row, 0] = total / self.state.pulls[row, 0]

    def secure(self) -> list[dict[str, Any]]:
        """Return the counters' states."""
        return [counter.state() for counter in self._kept]

    def _go_on(self, secure: Any) -> None:
        _check_rows(secure, self._kept, "counter")
        for row, (fresh, entry) in enumerate(zip(self._kept, secure, strict=True)):
            counter = type(fresh).from_state(entry)
            if not counter.secure or entry["options"] != fresh.state()["options"]:
                raise ValueError("secure must hold counters of this epsilon and horizon")
            if counter.n != self.pulls[row]:
                raise ValueError("secure must hold counters of as many rewards as the arms have")
            self._kept[row] = counter


class BatchPlayer(Player):
    """Keeps an exact sum for each row, in steps of the grid, noised once, when the row's batch is full."""

    def _fresh(self) -> int:
        return 0

    def _noised(self, steps: int) -> float:
        return float(secure_laplace([steps / _STEPS], 1.0, self._epsilon)[0])

    def give(self, t: int, row: int, reward: float, noise: float) -> None:
        """Give a row a reward in round t; the policy hears of its batch when that is full."""
        steps = self._kept[row] + round(reward * _STEPS)
        if self.state.left[row, 0] > 1:
            self._kernels.update(self.state, 0, t, row, 0.0, 0.0)
            self._kept[row] = steps
        else:
            # as a standard draw that the policy divides by epsilon: rounding what is private keeps it so
            released = self._noised(steps) * self._epsilon
            self._kept[row] = 0  # first: whatever fails now, no reward is released twice
            self._kernels.update(self.state, 0, t, row, 0.0, released)

    def secure(self) -> list[int]:
        """Return the sums of open batches."""
        return list(self._kept)

    def _go_on(self, secure: Any) -> None:
        _check_rows(secure, self._kept, "sum")
        gathered = (self.state.length - self.state.left)[:, 0].tolist()
        self._kept = [
            _checks.integer("secure", entry, 0, n * _STEPS) for entry, n in zip(secure, gathered, strict=True)
        ]


def _check_rows(secure: Any, kept: list[Any], what: str) -> None:
    if not isinstance(secure, list) or len(secure) != len(kept):
        raise ValueError(f"secure must hold a {what} for each arm in play")


def player_of(setting: Setting, key: Words, n_rows: int) -> Player:
    """Return the player that rewards reach as the registry says."""
    live = policy(setting.policy).live
    if live is None or live.feed == "plain" or not setting.secure:
        return Player(setting, key, n_rows)
    if live.feed == "counter":
        return CounterPlayer(setting, key, n_rows)
    made = BatchPlayer(setting, key, n_rows)
    made._noised(0)  # what is missing is missed now, not at the first reward
    return made
