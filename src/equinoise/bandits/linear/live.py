"""A linear bandit for a real experiment: shown contexts, asked for an arm, told its reward."""

from dataclasses import dataclass, field

import numpy as np

from equinoise import _checks, _results
from equinoise._files import loaded
from equinoise._live import Live, locked, whole
from equinoise._random import stream_key
from equinoise._typing import Any, ArrayLike, DataFrame, Floats, Ints, Mapping, PathLike, Self, Sequence
from equinoise.bandits.linear import kernels, task
from equinoise.bandits.linear.simulate import (
    LARGEST,
    LEAST_DELTA,
    MAX_HORIZON,
    POLICIES,
    checked_sizes,
    regular_ridge,
)
from equinoise.bandits.policies.registry import check_bounds
from equinoise.bandits.result import UNSEEDED, arm_labels, means_of
from equinoise.bandits.rewards import make_streams
from equinoise.mechanisms import VectorCounter

_KIND = "equinoise linear bandit, version 1"


@dataclass(frozen=True)
class Selection:
    """One selection: its number, from 0, and its arm, for :meth:`LinearBandit.update`.

    Examples
    --------
    >>> LinearBandit(["red", "green"], 1).request([1.0])
    Selection(number=0, arm='red')
    """

    number: int
    arm: int | str
    owner: int = field(default=0, repr=False)


class LinearBandit(Live):
    """Plays a policy of :func:`equinoise.bandits.linear.simulate` with its kernels, on rewards as they come.

    Told each reward right after its selection, and with the same seed (and ``noise="float"``), it chooses
    what :func:`equinoise.bandits.linear.replay` chooses. Rewards may come late and in any order: an arm's
    regression knows those that have been told. Threads may share a bandit: it lets in one at a time. It has
    no report, because an arm has no one mean: what it pays depends on the context.

    Parameters
    ----------
    n_arms : int or sequence of str
        The number of arms, which are then called 0, 1, ..., or their names.
    dimension : int
        Numbers of a context, d. One of them is 1 in every context where the arms have an intercept.
    policy : str
        A name in ``linear.POLICIES``.
    epsilon, horizon, longest : float, int, float
        Of "private-oful" alone, which needs all three: privacy of all choices in each reward, most rounds,
        and the largest L1 norm of a context. Contexts are public; longer ones are refused.
    ridge, delta, sigma
        As in :func:`equinoise.bandits.linear.simulate`; 1/2 is right for all rewards within the bounds.
    bounds : (float, float)
        Smallest and largest reward. Policy, coefficients and their errors are on a scale from 0 to 1.
    noise : {"secure", "float"}
        Of "private-oful": from OpenDP and the operating system, or for simulations, which are not private.
    seed : int, optional
        Of "float" noise, without which a forked child is refused (RuntimeError).

    Raises
    ------
    TypeError, ValueError, ImportError
        For arguments of the wrong kind or out of range; without OpenDP where the noise is secure.

    References
    ----------
    .. [1] Abbasi-Yadkori, Pal, Szepesvari (2011), Improved algorithms for linear stochastic bandits.
    .. [2] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML.

    Examples
    --------
    >>> bandit = LinearBandit(["red", "green"], 2)
    >>> for i in range(200):
    ...     x = [1.0, (-1.0) ** i]  # red pays for even rounds, green for odd ones
    ...     shown = bandit.request(x)
    ...     bandit.update(shown, (shown.arm == "red") == (i % 2 == 0))
    >>> bandit.select([1.0, 1.0]), bandit.select([1.0, -1.0])
    ('red', 'green')
    """

    def __init__(
        self,
        n_arms: int | Sequence[str],
        dimension: int,
        *,
        policy: str = "oful",
        epsilon: float | None = None,
        horizon: int | None = None,
        longest: float | None = None,
        ridge: float = 1.0,
        delta: float = 0.05,
        sigma: float = 0.5,
        bounds: tuple[float, float] = (0.0, 1.0),
        noise: str = "secure",
        seed: int | None = None,
    ) -> None:
        self._row = POLICIES[_checks.choice("policy", policy, POLICIES)]
        self.arms: tuple[int | str, ...] = tuple(arm_labels(n_arms))
        k, d = checked_sizes(len(self.arms), dimension)
        self.dimension, (self._low, self._high) = d, check_bounds(bounds)
        for name, value in (("epsilon", epsilon), ("horizon", horizon), ("longest", longest)):
            if self._row.private == (value is None):
                wanted = "given with" if value is None else "None without"
                raise ValueError(f"{name} must be {wanted} policy='private-oful', got {value!r}")
        regular = regular_ridge(ridge, np.zeros((0, d)))
        self._setting: dict[str, Any] = {
            "dimension": d,
            "policy": self._row.name,
            "bounds": [self._low, self._high],
            "ridge": regular,
            "noise": _checks.choice("noise", noise, ("secure", "float")),
            "delta": _checks.number("delta", delta, LEAST_DELTA, 1.0, open_high=True),
            "sigma": _checks.number("sigma", sigma, 0.0, LARGEST),
            "n_arms": [*self.arms] if isinstance(self.arms[0], str) else k,
            "seed": _checks.seed(seed),
        }
        self._counters: list[VectorCounter] = []
        if self._row.private:
            budget = self._setting["epsilon"] = _checks.epsilon(epsilon, allow_infinite=False)
            most = self._setting["horizon"] = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
            reach = self._setting["longest"] = _checks.number("longest", longest, 0.0, LARGEST, open_low=True)
            if noise == "secure":
                if seed is not None:
                    raise ValueError(f"seed must be {UNSEEDED}, got {seed!r}")
                self._counters = [VectorCounter(budget, most, d, reach) for _ in range(k)]
        key, self._repeats = stream_key(seed), self._row.private and noise == "float" and seed is None
        self._widen(0)
        self._learner = task.make_learner(self._plan, k, d, regular)
        self._scratch, self._streams = task.make_round(k, d, 1), make_streams(key, 0, 1, task.PURPOSES)
        self._moment, self._sums = np.zeros((k, d)), np.zeros(k)  # of the rewards as they are: the analyst's
        self._open: dict[int, tuple[int, Floats]] = {}  # selections without a reward: arm and context
        self._rounds = 0

    def _widen(self, pulls: int) -> None:
        """Plan with the widths of an arm after so many pulls; a table of all would grow with them."""
        given, longest = self._setting, np.zeros((1, 1, self.dimension))
        longest[0, 0, 0] = given.get("longest", 1.0)
        of = given.get("horizon", MAX_HORIZON), given["ridge"], given["delta"], given["sigma"]
        epsilon, at = given.get("epsilon", np.inf), np.array([pulls])
        self._plan = task.make_plan(given["policy"], longest, *of, epsilon=epsilon, lanes=1, pulls=at)

    def __repr__(self) -> str:
        return f"LinearBandit({len(self.arms)} arms, {self._row.name}, round {self._rounds})"

    @property
    def rounds(self) -> int:
        """Number of selections so far."""
        return self._rounds

    @property
    @locked
    def pulls(self) -> Ints:
        """Rewards told so far, int64[K]."""
        return self._learner.pulls[:, 0].copy()

    @property
    @locked
    def gram_inverse(self) -> Floats:
        """V^-1 of every arm, float64[K, d, d], V = ridge I + the sum of x x' over its told rewards."""
        return task.gram_inverse(self._learner, len(self.arms), self.dimension)[0]

    @property
    @locked
    def theta_hat(self) -> Floats:
        """Ridge estimates V^-1 b from the rewards as they are, on a scale from 0 to 1, float64[K, d].

        They are not private.
        """
        return np.einsum("kij,kj->ki", self.gram_inverse, self._moment)

    @property
    @locked
    def estimate(self) -> Floats:
        """What choices are made from, float64[K, d]: of "private-oful" V^-1 times the noised sums."""
        return self._learner.estimate.reshape(len(self.arms), self.dimension).copy()

    @locked
    def to_frame(self) -> DataFrame:
        """Return one row for each arm: arm, pulls, pending, mean (of its rewards, in their units)."""
        pending = np.bincount([arm for arm, _ in self._open.values()], minlength=len(self.arms))
        means = self._low + (self._high - self._low) * means_of(self._sums, self.pulls)
        return self._made({"arm": self.arms, "pulls": self.pulls, "pending": pending, "mean": means})

    def _made(self, columns: dict[str, Any]) -> DataFrame:
        import pandas as pd

        what = {name: self._setting.get(name) for name in ("policy", "epsilon", "seed")}
        return _results.made_by(pd.DataFrame(columns), **what)

    @locked
    def coefficients(self) -> DataFrame:
        """Return a long frame: arm, coordinate, pulls, theta_hat, stderr; NaN where there are no pulls.

        The standard error is sigma sqrt(V^-1[i, i]), as if the pulls had been planned.
        """
        arm, coordinate = np.divmod(np.arange(len(self.arms) * self.dimension), self.dimension)
        pulls, spread = self.pulls[arm], np.diagonal(self.gram_inverse, axis1=1, axis2=2)
        known = {"theta_hat": self.theta_hat, "stderr": self._setting["sigma"] * np.sqrt(spread)}
        columns = {name: np.where(pulls > 0, part.ravel(), np.nan) for name, part in known.items()}
        labels = np.array(self.arms, dtype=object)[arm]
        return self._made({"arm": labels, "coordinate": coordinate, "pulls": pulls, **columns})

    def select(self, contexts: ArrayLike) -> int | str:
        """Return the arm to play for contexts; see :meth:`request`."""
        return self.request(contexts).arm

    @whole
    def request(self, contexts: ArrayLike) -> Selection:
        """Select an arm for contexts float64[K, d], or float64[d] where all arms have the same."""
        k, d = len(self.arms), self.dimension
        given = _checks.array("contexts", contexts, np.float64, None, low=-LARGEST, high=LARGEST)
        shape = (d,) if given.ndim == 1 else (k, d)
        shown = np.broadcast_to(_checks.array("contexts", given, np.float64, shape), (k, d))
        regular_ridge(self._setting["ridge"], shown)
        norm, reach = float(np.abs(shown).sum(axis=1).max()), self._setting.get("longest", np.inf)
        if norm > reach:
            raise ValueError(f"contexts must have an L1 norm of at most {reach:g} (longest), got {norm:g}")
        if self._rounds >= self._setting.get("horizon", np.inf):
            raise ValueError(f"horizon of {self._rounds} rounds is over; a new bandit may have more")
        place = self._choose(shown)
        self._open[self._rounds] = place, shown[place].copy()
        self._rounds += 1
        return Selection(self._rounds - 1, self.arms[place], self._line)

    def _choose(self, shown: Floats) -> int:
        self._scratch.context[:, 0] = shown.reshape(-1)
        kernels.choose(self._plan, self._learner, self._scratch, self._rounds)
        return int(self._scratch.arm[0])

    @whole
    def update(self, arm: int | str | Selection, reward: float) -> None:
        """Tell the reward of a selection, or of the oldest open one of an arm; it is within the bounds."""
        number = self._number(arm)
        value = float(reward) if isinstance(reward, bool | np.bool_) else reward
        told = (_checks.number("reward", value, self._low, self._high) - self._low) / (self._high - self._low)
        place, x = self._open[number]
        self._widen(int(self._learner.pulls[place, 0]) + 1)
        noised = self._counters[place].add(told * x) if self._counters else None
        self._choose(np.broadcast_to(x, (len(self.arms), self.dimension)))  # what V says of x now
        self._scratch.arm[0], self._scratch.reward[0] = place, 0.0 if self._counters else told
        kernels.learn(self._plan, self._learner, self._streams, self._scratch)
        if noised is not None:  # all that choices hear of rewards
            self._learner.estimate.reshape(len(self.arms), -1)[place] = self.gram_inverse[place] @ noised
            width = self._counters[place].width(self._setting["delta"] / self.dimension)
            self._learner.noise_bonus[place, 0] = width
        self._moment[place] += told * x
        self._sums[place] += told
        del self._open[number]

    @whole
    def cancel(self, selection: int | str | Selection) -> None:
        """Close a selection whose reward will never come; its round stays counted."""
        del self._open[self._number(selection)]

    def _number(self, arm: object) -> int:
        """Return the number of an open selection."""
        if isinstance(arm, Selection):
            if arm.owner != self._line or arm.number not in self._open:
                raise ValueError(f"arm must be an open selection of this bandit, got {arm!r}")
            return arm.number
        arm = arm if isinstance(self.arms[0], str) else _checks.integer("arm", arm)  # not True, nor 1.0
        if arm not in self.arms:
            raise ValueError(f"arm must be one of {_checks.shown(list(self.arms))}, got {_checks.shown(arm)}")
        place = self.arms.index(arm)
        for number, (of, _) in self._open.items():
            if of == place:
                return number
        raise ValueError(f"arm must have an open selection, got {arm!r}, which has none")

    def _parts(self) -> dict[str, Any]:
        learner = {f"learner_{name}": part for name, part in self._learner._asdict().items()}
        return {**learner, "streams": self._streams, "moment": self._moment, "sums": self._sums}

    @locked
    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write everything to a file, atomically, as :meth:`equinoise.bandits.Bandit.save` does.

        The file is as secret as the rewards are: only its owner may read it.
        """
        opened = np.array([(number, arm) for number, (arm, _) in self._open.items()], dtype=np.int64)
        contexts = np.array([x for _, x in self._open.values()]).reshape(-1, self.dimension)
        arrays = {"open": opened.reshape(-1, 2), "contexts": contexts, **self._parts()}
        meta: dict[str, Any] = {"setting": self._setting, "rounds": self._rounds}
        meta["counters"] = [counter.state() for counter in self._counters]
        self._save(
            path, overwrite, _KIND, meta, lambda: self._restored(arrays, meta), arrays=arrays, mode=0o600
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, and go on; errors as of :meth:`equinoise.bandits.Bandit.load`."""
        with loaded(path, _KIND, cls.__name__) as (arrays, meta):
            return cls._restored(arrays, meta)._came_from(meta)

    @classmethod
    def _restored(cls, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> Self:
        """Return the bandit of what is saved, or raise where there can be none."""
        k, d = (meta["setting"][name] for name in ("n_arms", "dimension"))
        k, d = checked_sizes(len(k) if isinstance(k, list) else k, d)
        pulls = _checks.array("pulls", arrays["learner_pulls"], np.int64, (k, 1), low=0)
        _checks.array("inverse", arrays["learner_inverse"], np.float64, (k * d * (d + 1) // 2, 1))
        made = cls(**meta["setting"])  # no larger than what there is
        made._rounds = _checks.integer("rounds", meta["rounds"], 0, MAX_HORIZON)
        if (told := sum(pulls.ravel().tolist())) > made._rounds:
            raise ValueError("pulls must be those of rounds")
        for name, here in made._parts().items():
            here[...] = _checks.array(name, arrays[name], here.dtype, here.shape)
        opened = _checks.array("open", arrays["open"], np.int64, (None, 2), low=0)
        contexts = _checks.array("contexts", arrays["contexts"], np.float64, (len(opened), d))
        if told + len(opened) > made._rounds:
            raise ValueError("open must be of the rounds")
        if (opened >= [made._rounds, k]).any() or (np.diff(opened[:, 0]) <= 0).any():
            raise ValueError("open must name rounds in order, each with an arm")
        made._open = {int(n): (int(arm), x.copy()) for (n, arm), x in zip(opened, contexts, strict=True)}
        counters = [VectorCounter.from_state(state) for state in meta["counters"]]
        found, wanted = ([c.state()["options"] for c in some] for some in (counters, made._counters))
        told_of = zip(counters, made.pulls, strict=False)
        if found != wanted or any(not counter.secure or counter.n != n for counter, n in told_of):
            raise ValueError("counters must be secure ones of this setting, with as many rewards")
        made._counters = counters
        return made
