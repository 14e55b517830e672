"""Corrected p-values on private bandits: that they hold, and what power they cost."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, _results, bandits, inference
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias.published import Beside, Reproduction, scaled
from equinoise.experiments.bias.selection import LEVEL, least_pulled, rejected
from equinoise.report.curves import Curve, curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CorrectionExperiment", "Outcome", "correction"]

NULL = 0.5
_METHODS = ("plain", "tight", "dwork")


class Outcome(NamedTuple):
    """P-values that the mean of the least pulled arm is one half, R replicates.

    Attributes
    ----------
    policy : str
    epsilon : float or None
    mean : float
        The true mean of every arm; the null hypothesis is true where it is one half.
    p_values : dict of str to float64[R]
        "plain", and where the policy is private the corrected "tight" and "dwork".
    """

    policy: str
    epsilon: float | None
    mean: float
    p_values: dict[str, NDArray[np.float64]]

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.policy if self.epsilon is None else f"{self.policy}, ε = {self.epsilon:g}"


@dataclass(frozen=True, eq=False)
class CorrectionExperiment(Reproduction):
    """Plain and corrected p-values under every policy, epsilon and mean.

    Attributes
    ----------
    horizon, replicates, seed, seconds
        See :class:`~equinoise.experiments.bias.published.Reproduction`.
    n_arms : int
    outcomes : tuple of Outcome
    """

    n_arms: int
    outcomes: tuple[Outcome, ...]

    @property
    def name(self) -> str:
        """What its files are called."""
        return "corrected-p-values"

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, but for the seed."""
        return super().parameters() | {"n_arms": self.n_arms}

    def beside(self) -> list[Beside]:
        """Return shares of rejections at 5%: at most 5% where the null is true, and power where it is not."""
        rows = []
        for entry in self.outcomes:
            for method, values in entry.p_values.items():
                share, stderr = rejected(values)
                figure = f"rejected at 5%: {entry.label}, arms of mean {entry.mean:g}, {method}"
                rows.append(Beside(figure, None, share, stderr, self._why(entry, method)))
        return rows

    def _why(self, entry: Outcome, method: str) -> str:
        if method == "plain":
            if entry.mean != NULL:
                return "power without a correction"
            return "a true null" if entry.epsilon is not None else "a true null; no correction is known"
        budget = entry.epsilon or np.inf
        level = inference.corrected_level(LEVEL, budget, self.horizon, method)
        what = "a true null" if entry.mean == NULL else "power that is left"
        return f"{what}; the corrected level is {level:.2g}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row a policy, epsilon, mean and method: its share of rejections and standard error."""
        import pandas as pd

        rows = []
        for entry in self.outcomes:
            for method, values in entry.p_values.items():
                share, stderr = rejected(values)
                rows.append((entry.policy, entry.epsilon, entry.mean, method, share, stderr))
        names = ["policy", "epsilon", "mean", "method", "rejected", "stderr"]
        return pd.DataFrame(rows, columns=names).astype({"epsilon": float})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw rejections against epsilon for the first private policy, the null true and false; the Axes."""
        frame = self.to_frame().dropna(subset="epsilon")
        policy = frame["policy"].iloc[0]
        kept = frame[(frame["policy"] == policy) & frame["mean"].isin([NULL, frame["mean"].iloc[-1]])]
        series = []
        for (mean, method), part in kept.groupby(["mean", "method"], sort=False):
            if (mean, method) == (NULL, "dwork"):  # nearly the same as "tight"
                continue
            label = f"{method}, arms of mean {mean:g}{' (null true)' if mean == NULL else ''}"
            share, half = part["rejected"].to_numpy(), _results.Z95 * part["stderr"].to_numpy()
            series.append(Curve(label, part["epsilon"].to_numpy(), share, share - half, share + half))
        series.append(Curve("5%", [0.0], [LEVEL], kind="level"))
        ax = curves(ax, series, horizontal="epsilon", vertical="share of tests that reject", logarithmic="x")
        ax.set_title(f"{policy}: what the correction costs", fontsize="medium")
        return ax


def correction(
    scale: float = 1.0,
    *,
    policies: tuple[str, ...] = ("private-ucb", "dp-klucb"),
    epsilons: tuple[float, ...] = (0.01, 0.03, 0.1, 1.0),
    means: tuple[float, ...] = (0.5, 0.6, 0.7),
    n_arms: int = 5,
    horizon: int = 500,
    replicates: int = 2000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> CorrectionExperiment:
    """Test on equal Bernoulli arms that the mean of the least pulled arm is one half.

    Plain `ucb` comes first, for which there is no correction; then each private policy at each epsilon, with
    its exact binomial p-value as it is, and corrected for the choice of the arm by the max information of
    the actions about the `horizon` independent rounds.

    Parameters
    ----------
    scale : float
        Times the replicates.
    policies : tuple of str
        Private ones.
    epsilons : tuple of float
    means : tuple of float
        True means of all arms, in turn; 0.5 makes the null hypothesis true.
    n_arms, horizon, replicates : int
    seed : int
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    CorrectionExperiment

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> made = correction(0.01, horizon=100, epsilons=(0.05,), means=(0.5,), policies=("private-ucb",))
    >>> [entry.label for entry in made.outcomes]
    ['ucb', 'private-ucb, ε = 0.05']
    """
    n = scaled(replicates, scale)
    for name in policies:
        if not policy(name).private:
            raise ValueError(f"policies must be private ones, got {name!r}")
    begun = time.perf_counter()
    wanted = [("ucb", None), *((name, epsilon) for name in policies for epsilon in epsilons)]
    outcomes = []
    for name, epsilon in wanted:
        for mean in means:
            run = bandits.simulate(
                name,
                np.full(_checks.integer("n_arms", n_arms, 1), mean),
                horizon=horizon,
                epsilon=epsilon,
                n_replicates=n,
                seed=seed,
                executor=executor,
                progress=progress and f"{name}, {mean:g}",
            )
            outcomes.append(Outcome(name, epsilon, mean, _p_values(run, epsilon, horizon)))
    return CorrectionExperiment(horizon, n, seed, time.perf_counter() - begun, n_arms, tuple(outcomes))


def _p_values(run: bandits.BanditRun, epsilon: float | None, horizon: int) -> dict[str, NDArray[np.float64]]:
    """Return plain and corrected p-values of each replicate."""
    rows = np.arange(len(run.pulls))
    arm = least_pulled(run.pulls)
    successes = np.rint(run.reward_sum[rows, arm]).astype(np.int64)
    plain = np.asarray(inference.binomial_test(successes, run.pulls[rows, arm], NULL))
    made = {"plain": plain}
    if epsilon is not None:
        for method in _METHODS[1:]:
            made[method] = np.asarray(inference.adjusted_p_value(plain, epsilon, horizon, method))
    return made
