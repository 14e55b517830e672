"""How a reward reaches a policy: as it is, with drawn noise next to it, or as a securely noised sum alone.

In the secure forms the kernels never see a reward. They are told a reward of 0 and, in the place of noise,
what OpenDP made of exact sums on a grid: the private sum of a counter, or of a full batch. Whatever a policy
computes, and however it rounds, is then made of private numbers only.
"""

from equinoise import _checks
from equinoise._typing import Any
from equinoise.mechanisms import BinaryCounter, HybridCounter, KaryCounter, secure_laplace

_STEPS = 2**24  # of a batch's grid, from 0 to 1: sums of up to 2^29 rewards are exact in a float64


class _Feed:
    """Gives rewards to the arms (rows) of a policy's state: here as they are, with drawn noise."""

    def __init__(self, n_rows: int, setting: Any) -> None:
        self._setting, self._epsilon = setting, setting.epsilon or 0.0
        self._kept = [self._make() for _ in range(n_rows)]

    def _make(self) -> Any:
        """Return what is kept of a new row."""

    def give(self, kernels: Any, state: Any, t: int, row: int, reward: float, noise: float) -> None:
        """Give row its reward in round t; after an exception nothing has changed."""
        kernels.update(state, 0, t, row, reward, noise)

    def keep(self, rows: list[int]) -> None:
        """Keep these rows alone, in this order."""
        self._kept = [self._kept[row] for row in rows]

    def add_row(self) -> None:
        """Begin with one more row."""
        self._kept.append(self._make())

    def saved(self) -> Any:
        """Return what it keeps, in the types of JSON."""

    def restore(self, saved: Any, state: Any) -> None:
        """Go on from what :meth:`saved` returned; ValueError when it does not fit the state."""
        if saved is not None:
            raise ValueError("secure must be None without secure noise")

    def _check(self, saved: Any, kept: str) -> None:
        if not isinstance(saved, list) or len(saved) != len(self._kept):
            raise ValueError(f"secure must hold a {kept} for each arm in play")


class _CounterFeed(_Feed):
    """A secure counter for each row, whose private sums are all that the policy hears of rewards."""

    def _make(self) -> BinaryCounter | HybridCounter | KaryCounter:
        horizon, counter = self._setting.horizon, self._setting.options["counter"]
        if horizon is None or counter == "hybrid":
            return HybridCounter(self._epsilon)
        return (KaryCounter if counter == "k-ary" else BinaryCounter)(self._epsilon, horizon)

    def give(self, kernels: Any, state: Any, t: int, row: int, reward: float, noise: float) -> None:
        total = self._kept[row].add(reward)
        kernels.update(state, 0, t, row, 0.0, 0.0)
        state.mean[row, 0] = total / state.pulls[row, 0]

    def saved(self) -> list[dict[str, Any]]:
        return [counter.state() for counter in self._kept]

    def restore(self, saved: Any, state: Any) -> None:
        self._check(saved, "counter")
        for row, (fresh, entry) in enumerate(zip(self._kept, saved, strict=True)):
            counter = type(fresh).from_state(entry)
            if not counter.secure or entry["options"] != fresh.state()["options"]:
                raise ValueError("secure must hold counters of this epsilon and horizon")
            if counter.n != state.pulls[row, 0]:
                raise ValueError("secure must hold counters of as many rewards as the arms have")
            self._kept[row] = counter


class _BatchFeed(_Feed):
    """An exact sum for each row, in steps of the grid, noised once, when the row's batch is full."""

    def __init__(self, n_rows: int, setting: Any) -> None:
        super().__init__(n_rows, setting)
        self._noised(0)  # what is missing is missed now, not at the first reward

    def _make(self) -> int:
        return 0

    def _noised(self, steps: int) -> float:
        return float(secure_laplace([steps / _STEPS], 1.0, self._epsilon)[0])

    def give(self, kernels: Any, state: Any, t: int, row: int, reward: float, noise: float) -> None:
        steps = self._kept[row] + round(reward * _STEPS)
        if state.left[row, 0] > 1:
            kernels.update(state, 0, t, row, 0.0, 0.0)
            self._kept[row] = steps
        else:
            # as a standard draw that the policy divides by epsilon: rounding what is private keeps it so
            released = self._noised(steps) * self._epsilon
            self._kept[row] = 0  # first: whatever fails now, no reward is released twice
            kernels.update(state, 0, t, row, 0.0, released)

    def saved(self) -> list[int]:
        return list(self._kept)

    def restore(self, saved: Any, state: Any) -> None:
        self._check(saved, "sum")
        gathered = (state.length - state.left)[:, 0].tolist()
        self._kept = [
            _checks.integer("secure", entry, 0, n * _STEPS) for entry, n in zip(saved, gathered, strict=True)
        ]


FEEDS = {"plain": _Feed, "counter": _CounterFeed, "batch": _BatchFeed}  # what a row of the registry says
