"""A policy played by hand: its kernels on a state of one lane, whose arms come and go."""

from dataclasses import dataclass, field

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, Floats, Ints, Mapping, Sequence, Words
from equinoise.bandits.policies.registry import LARGEST, check_bounds, policy
from equinoise.bandits.result import UNSEEDED, means_of
from equinoise.bandits.rewards import shares_of
from equinoise.mechanisms import COUNTERS, secure_laplace

_MOST_ROUNDS = 2**40
_LEAST_EPSILON = 1e-9  # below, nothing is learnt in any number of rounds that a live object can see


@dataclass(frozen=True)
class Setting:
    """How a live bandit was made, but for its arms and key; checked for a new object and a loaded one."""

    policy: str
    ties: str
    low: float | None  # both are None where rewards have no bounds
    high: float | None
    epsilon: float | None = None  # of a private policy, as is noise
    horizon: int | None = None
    noise: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        spec = policy(self.policy)
        _checks.choice("ties", self.ties, ("first", "random"))
        if self.low is not None or self.high is not None:
            check_bounds((self.low, self.high))
        elif spec.private:
            raise ValueError("bounds must be (lo, hi): they say what one reward can change, got None")
        if spec.private:
            epsilon = _checks.epsilon(self.epsilon, allow_infinite=False)
            if not _LEAST_EPSILON <= epsilon <= LARGEST:
                raise ValueError(f"epsilon must be from {_LEAST_EPSILON:g} to {LARGEST:g}, got {epsilon!r}")
            vars(self).update(epsilon=epsilon)  # no number of NumPy's, which no file and no kernel takes
            _checks.choice("noise", self.noise, ("secure", "float"))
        elif (self.epsilon, self.noise) != (None, None):
            raise ValueError(f"epsilon and noise must be None for the policy {self.policy!r}, which has none")
        if self.secure and self.seed is not None:
            raise ValueError(f"seed must be {UNSEEDED}, got {self.seed!r}")
        vars(self).update(seed=_checks.seed(self.seed))
        if self.horizon is not None:
            vars(self).update(horizon=_checks.integer("horizon", self.horizon, 1, _MOST_ROUNDS))
        if not set(self.options) <= set(spec.options):
            raise ValueError(f"options must be those of {self.policy!r}, got {_checks.shown(self.options)}")
        chosen = spec.checked_options(self.options)
        vars(self).update(options={name: chosen[name] for name in self.options})  # no number of NumPy's
        free = spec.live.without_horizon if spec.live else None
        if self.horizon is None and free is not None and any(chosen[name] != free[name] for name in free):
            given = " and ".join(f"{name}={chosen[name]!r}" for name in free)
            raise ValueError(f"horizon must be given with {given}, got None")

    @property
    def secure(self) -> bool:
        """Whether noise comes from the operating system."""
        return self.noise == "secure"

    @property
    def span(self) -> float:
        """Length of the interval of the rewards, 1 where there is none."""
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    def inside(self, reward: object) -> float:
        """Return a reward on the policy's scale: from 0 to 1, or as it is where there are no bounds."""
        reward = float(reward) if isinstance(reward, bool | np.bool_) else reward
        if self.low is None or self.high is None:
            return _checks.number("reward", reward, -LARGEST, LARGEST)
        return min((_checks.number("reward", reward, self.low, self.high) - self.low) / self.span, 1.0)

    def outside(self, value: Any) -> Any:
        """Return a mean of the policy's scale in the units of the rewards."""
        return (self.low or 0.0) + self.span * value


_SCRATCH = ("score", "pending", "chances")  # fields of states that are written before they are read
_LEAST = {"left": 1, "length": 1}  # other integers are not negative
_STEPS = 2**24  # of a secure batch's grid, from 0 to 1: sums of up to 2^29 rewards are exact in a float64


class Player:
    """The arms in play, called rows here, and what the policy knows of them, in a state of one lane.

    Here it hears of rewards as they are, with drawn noise next to them.
    """

    def __init__(self, setting: Setting, key: Words, n_rows: int) -> None:
        self._setting, self._key = setting, key
        self._epsilon = np.inf if setting.epsilon is None else setting.epsilon
        self._spec = policy(setting.policy)
        self._kernels = self._spec.kernels
        self._random_ties = setting.ties == "random"
        self._kept = [self._fresh() for _ in range(n_rows)]
        self.state, more = self._make(n_rows), self._make(n_rows + 1)
        # the arrays that grow with the arms: an arm's part is one of as many equal pieces as there are arms
        self._fields = [
            name
            for name, part in self.state._asdict().items()
            if name not in _SCRATCH and np.shape(part) != np.shape(getattr(more, name))
        ]
        # whether one arm's batch is finished before the next
        self._in_batches = "current" in self.state._fields and self.state.current.size > 0
        self.waiting = np.zeros(n_rows, dtype=np.int64)  # selections without a reward so far

    def _make(self, n_rows: int) -> Any:
        given = self._setting.horizon, self._epsilon, self._setting.options
        return self._spec.make_state(n_rows, 1, *given, key=self._key)

    @property
    def pulls(self) -> Ints:
        """Rewards of each row so far, int64[n_rows]."""
        return self.state.pulls[:, 0]  # type: ignore[no-any-return]

    @property
    def releases(self) -> Floats:
        """What a private policy knows of each row: a noised mean float64[n_rows], NaN before the first."""
        state = self.state
        if "private_n" in state._fields:
            return means_of(state.private_sum[:, 0], state.private_n[:, 0])
        return np.where(self.pulls > 0, state.mean[:, 0], np.nan)

    @property
    def shares(self) -> Floats | None:
        """With what probabilities the last row was drawn, float64[n_rows]; None where nobody knows them."""
        shares = shares_of(self.state)
        return None if shares is None else shares[:, 0]

    def choose(self, t: int, tie_word: Any) -> int:
        """Return the row of round t, as ``choose_late`` of its kernels says, and wait for its reward."""
        self.state.pending[:, 0] = self.waiting
        row = int(self._kernels.choose_late(self.state, 0, t, tie_word, self._random_ties))
        self.waiting[row] += 1
        return row

    def _moved(self, new: Any, rows: Sequence[int]) -> Any:
        """Copy row rows[i] to row i of a new state, and the open batch if its row goes along; return it."""
        for name in self._fields:
            source = getattr(self.state, name).reshape(len(self.pulls), -1)
            getattr(new, name).reshape(new.pulls.shape[0], -1)[: len(rows)] = source[list(rows)]
        if self._in_batches:
            current = int(self.state.current[0])
            new.current[0] = rows.index(current) if current in rows else -1
        return new

    def give(self, t: int, row: int, reward: float, noise: float) -> None:
        """Give a row a reward in round t; after an exception nothing has changed."""
        self._kernels.update(self.state, 0, t, row, reward, noise)

    def _fresh(self) -> Any:
        """Return what is kept of a new row, so that the policy does not hear of it."""

    def secure(self) -> Any:
        """Return what is kept of all rows, in the types of JSON."""

    def _go_on(self, secure: Any) -> None:
        """Go on from what :meth:`secure` returned; ValueError when it does not fit the state."""
        if secure is not None:
            raise ValueError("secure must be None without secure noise")

    def add_row(self) -> None:
        """Begin one more row, which knows nothing."""
        n_rows = len(self.waiting)
        self._kept.append(self._fresh())
        self.state = self._moved(self._make(n_rows + 1), range(n_rows))
        self.waiting = np.append(self.waiting, 0)

    def drop_row(self, row: int) -> None:
        """Forget a row; those after it move up."""
        rows = [other for other in range(len(self.waiting)) if other != row]
        self._kept = [self._kept[other] for other in rows]
        self.state = self._moved(self._make(len(rows)), rows)
        self.waiting = self.waiting[rows]

    def saved(self) -> dict[str, Array]:
        """Return arrays by name, all there is beside :meth:`secure`."""
        names = [*self._fields, *(["current"] if self._in_batches else [])]
        arrays = {f"state_{name}": getattr(self.state, name) for name in names}
        if self.shares is not None:
            arrays |= {"state_share": self.shares, "state_until": self.state.chances.until}
        return arrays

    def restore(self, arrays: Mapping[str, Array], secure: Any) -> None:
        """Take over what was saved; KeyError, TypeError or ValueError where it cannot be."""
        state = self.state
        pulled = np.asarray(arrays["state_pulls"]) > 0
        for name in self._fields:
            here, given = getattr(state, name), np.asarray(arrays[f"state_{name}"])
            if given.dtype != here.dtype or given.shape != here.shape:
                raise ValueError(f"{name} must be {here.dtype} of shape {here.shape}")
            least = _LEAST.get(name, 0) if here.dtype == np.int64 else None
            known = given[pulled] if name == "mean" else given  # infinite for an arm never pulled
            _checks.array(name, known, here.dtype, None, low=least)
            here[...] = given
        if "kind" in state._fields and (state.kind >= state.widths.shape[1]).any():
            raise ValueError("kind must be a column of the widths")
        if "private_n" in state._fields and ((state.private_n > 0) != pulled).any():
            raise ValueError("private_n must be positive where there are pulls")
        if "left" in state._fields and ((state.left > state.length) | (~pulled & (state.length > 1))).any():
            raise ValueError("left must be what a batch still needs, 1 before the first pull")
        if self._in_batches:
            state.current[0] = _checks.integer("current", arrays["state_current"].item(), -1, len(pulled) - 1)
        if self.shares is not None:
            shares = _checks.array("share", arrays["state_share"], np.float64, pulled.shape[:1], low=0.0)
            if abs(shares.sum() - 1.0) > 1e-9:
                raise ValueError("share must sum to one")
            self.shares[:] = shares
            state.chances.until[:] = _checks.array("until", arrays["state_until"], np.int64, (1,), low=0)
        self._go_on(secure)


# With secure noise the kernels never see a reward. They are told a reward of 0 and, in the place of noise,
# what OpenDP made of exact sums on a grid: the private sum of a counter, or of a full batch. Whatever a
# policy computes, and however it rounds, is then made of private numbers only.


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
