"""What a simulation of a bandit policy returns: arm means, their bias with intervals, and the regret."""

import contextlib
import math
import numbers
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results, inference
from equinoise._typing import Any, Array, Axes, DataFrame, Floats, Ints, Mapping
from equinoise.bandits.policies.registry import POLICIES

_MOST_ARMS = 2**20
UNSEEDED = "None with noise='secure', which repeats nothing"  # what a seed must be


def arm_labels(arms: Any) -> list[Any]:
    """Return what the arms are called: 0, 1, ... where `arms` is a number, else their names."""
    if isinstance(arms, str | set | frozenset):  # a set has another order in every process
        raise TypeError(f"n_arms must be a number of arms or a sequence of names, got {_checks.shown(arms)}")
    try:
        names = list(arms)
    except TypeError:
        return [*range(_checks.integer("n_arms", arms, 1, _MOST_ARMS))]
    names = [check_name("n_arms", name) for name in names]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"n_arms must be at least one name, none of them twice, got {_checks.shown(names)}")
    return names


def check_name(argument: str, name: object) -> str:
    """Return the name of an arm."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be named by text, got {_checks.shown(name)}")
    if not _checks.text(name):
        raise ValueError(f"{argument} must be named by text that is not empty, got {_checks.shown(name)}")
    return str(name)


def means_of(sums: Array, n: Ints) -> Floats:
    """Return the means of n numbers of such sums, NaN where there are none."""
    return np.asarray(np.divide(sums, n, out=np.full(n.shape, np.nan), where=n > 0))


def numbers_of(values: Any) -> Array:
    """Return values that are numbers or truth values, of whatever type, as numbers; others as they are."""
    given = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    known = given.dtype == object and all(isinstance(one, numbers.Real | np.bool_) for one in given.flat)
    with contextlib.suppress(OverflowError):  # whole numbers beyond all floats stay as they are
        return given.astype(np.float64) if known or given.dtype == bool else given
    return given


def arm_means(arms: Ints, rewards: Floats, n_arms: int) -> tuple[Ints, Floats]:
    """Return (pulls int64[K], mean rewards float64[K]) of a history; NaN for an arm never pulled."""
    pulls = np.bincount(arms, minlength=n_arms)
    return pulls, means_of(np.bincount(arms, weights=rewards, minlength=n_arms), pulls)


def named(policy: str, epsilon: float | None) -> str:
    """Return the name of a policy with its epsilon, None for one that takes none."""
    if epsilon is None:
        return policy
    return f"{policy}, {'no privacy' if math.isinf(epsilon) else f'ε = {epsilon:g}'}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Regretted:
    """What results of all policies have: regret float64[R, C] at `trials` int64[C], and a name for plots."""

    policy: str
    epsilon: float | None
    trials: Ints
    regret: Floats
    seed: int | None
    first_replicate: int = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}, {len(self.regret)} replicates, {self.trials[-1]} rounds)"

    def summary(self) -> DataFrame:
        """Return mean, standard error and 95% interval over replicates of the regret at each checkpoint."""
        frame = _results.summary_frame({"trials": self.trials}, {"regret": self.regret})
        return _results.made_by(frame, **self._what())

    def _what(self) -> dict[str, Any]:
        return {"policy": self.policy, "epsilon": self.epsilon, "seed": self.seed}

    def _frame(self, index: Mapping[str, Array], values: Mapping[str, Array]) -> DataFrame:
        return _results.made_by(_results.long_frame(index, values, self.first_replicate), **self._what())

    @property
    def label(self) -> str:
        """Name of the policy with its epsilon, for legends."""
        return named(self.policy, self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class BanditRun(Regretted):
    """Replicates of one policy: R replicates, K arms, C checkpoints.

    Examples
    --------
    >>> from equinoise.bandits import simulate
    >>> run = simulate("uniform", [0.5, 0.5], horizon=10, n_replicates=20)
    >>> run.pulls[0].tolist(), run.means.shape, list(run.bias())
    ([5, 5], (20, 2), ['arm', 'mean', 'bias', 'stderr', 'ci_low', 'ci_high'])

    Attributes
    ----------
    reward_sum : float64[R, K]
        Sum of an arm's rewards over all rounds, without noise.
    pulls : int64[R, K]
        How often an arm was played; a row sums to the horizon.
    trials : int64[C]
        Rounds played at each checkpoint; the last is the horizon.
    regret : float64[R, C]
        Cumulative pseudo-regret: over the arms, how far the mean is below the best one times the pulls.
    true_means : float64[K] or float64[R, K]
    policy, epsilon, reward, sigma, ties, options, seed, delay, first_replicate
        As given or chosen; None for an epsilon or a sigma of no use. A slice's first replicate is not 0.
    arms, rewards, propensities : int64[R, T], float64[R, T], float64[R, T, K]
        Every round, where the history was asked for, else None. Propensities are the exact probabilities with
        which arms were drawn, given all that came before; None for policies that do not have them.
    """

    reward_sum: Floats
    pulls: Ints
    true_means: Floats
    reward: str
    sigma: float | None
    ties: str
    options: Mapping[str, Any]
    arms: Ints | None = None
    rewards: Floats | None = None
    propensities: Floats | None = None
    delay: int = 0

    @property
    def means(self) -> Floats:
        """The arms' sample means float64[R, K], what an analyst would report; NaN for an arm never pulled."""
        return means_of(self.reward_sum, self.pulls)

    def bias(self, interval: str = "normal") -> DataFrame:
        """Return the bias of each arm's sample mean, averaged over replicates, with 95% intervals.

        One row per arm: ``arm``, ``mean`` (the true one), ``bias``, ``stderr``, ``ci_low``, ``ci_high``.
        Replicates that never pulled the arm are left out, and where none did all is NaN. Interval "normal" is
        1.96 standard errors over the replicates to either side, "hoeffding" sqrt(ln(2/0.05)/(2 R)), which
        holds for every number of replicates, and is refused with ValueError for rewards without bounds.
        """
        import pandas as pd

        kind = _checks.choice("interval", interval, ("normal", "hoeffding"))
        if kind == "hoeffding" and self.reward != "bernoulli":
            raise ValueError("interval must be 'normal' for rewards that are not bounded, got 'hoeffding'")
        n, bias, stderr = self._errors()
        half = _results.Z95 * stderr
        if kind == "hoeffding":
            half = np.sqrt(math.log(2.0 / 0.05) / (2.0 * np.maximum(n, 1)))
        columns = {"arm": np.arange(len(n)), "mean": np.atleast_2d(self.true_means).mean(axis=0)}
        columns |= {"bias": bias, "stderr": stderr, "ci_low": bias - half, "ci_high": bias + half}
        return _results.made_by(pd.DataFrame(columns), **self._what())

    def _errors(self) -> tuple[Ints, Floats, Floats]:
        """Return n [K], and the mean and standard error of means less true means over n replicates."""
        n = np.count_nonzero(self.pulls, axis=0)
        error = np.where(self.pulls > 0, self.means - self.true_means, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            bias = error.sum(axis=0) / n
            stderr = np.sqrt((np.where(self.pulls > 0, error - bias, 0.0) ** 2).sum(axis=0) / (n - 1) / n)
        return n, bias, np.where(n > 1, stderr, np.nan)

    @property
    def mean_absolute_bias(self) -> float:
        """The absolute value of each arm's bias (averaged over replicates), averaged over the arms."""
        return float(np.abs(self._errors()[1]).mean())

    @property
    def bias_bound(self) -> Floats | None:
        """What no arm's absolute bias can exceed, float64[K]: :func:`equinoise.inference.bias_bound`.

        Averaged where replicates have their own means. None without privacy, or bounds of the rewards.
        """
        if not POLICIES[self.policy].private or self.reward != "bernoulli" or self.epsilon is None:
            return None
        return np.asarray(np.atleast_2d(inference.bias_bound(self.epsilon, self.true_means)).mean(axis=0))

    def to_frame(self) -> DataFrame:
        """Return a long frame, one row per replicate and arm: replicate, arm, pulls, reward_sum, mean."""
        values = {"pulls": self.pulls, "reward_sum": self.reward_sum, "mean": self.means}
        return self._frame({"arm": np.arange(self.pulls.shape[1])}, values)

    def regret_frame(self) -> DataFrame:
        """Return a long frame, one row per replicate and checkpoint: replicate, trials, regret."""
        return self._frame({"trials": self.trials}, {"regret": self.regret})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each arm's bias with its 95% interval; return the Axes."""
        from equinoise.report import figures

        return figures.bandit_bias(ax, [(self.label, self)])


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What a policy did on given rewards: T rounds, K arms.

    Attributes
    ----------
    arms : int64[T]
        The arm of each round.
    rewards : float64[T]
    pulls, means : int64[K], float64[K]
        Number and mean of each arm's rewards; NaN for an arm never pulled.
    policy, epsilon, seed
        As they were given; epsilon is None for a policy that takes none.
    propensities : float64[T, K] or None
        With what probabilities the arms were drawn, as in :class:`BanditRun`; None for policies without.

    Examples
    --------
    >>> from equinoise.bandits import interact
    >>> interact("uniform", [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    History(uniform, 3 rounds, 2 arms)
    """

    arms: Ints
    rewards: Floats
    pulls: Ints
    means: Floats
    policy: str
    epsilon: float | None
    seed: int | None
    propensities: Floats | None

    def __repr__(self) -> str:
        name = named(self.policy, self.epsilon)
        return f"{type(self).__name__}({name}, {len(self.arms)} rounds, {len(self.pulls)} arms)"

    def to_frame(self) -> DataFrame:
        """Return one row per round: round (from 0), arm, reward; and propensity, of the arm, where known."""
        import pandas as pd

        rounds, known = np.arange(len(self.arms)), self.propensities
        frame = pd.DataFrame({"round": rounds, "arm": self.arms, "reward": self.rewards})
        frame = frame if known is None else frame.assign(propensity=known[rounds, self.arms])
        return _results.made_by(frame, policy=self.policy, epsilon=self.epsilon, seed=self.seed)
