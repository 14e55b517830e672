"""Experiment 3 of Neel and Roth (2018): a z-test on a linear bandit, by two statistics."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, inference
from equinoise.bandits import linear
from equinoise.experiments.bias.published import Beside, Reproduction, scaled
from equinoise.experiments.bias.selection import rejected
from equinoise.report import bandit_figures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["PUBLISHED", "STATISTICS", "RegressionExperiment", "experiment_3"]

PUBLISHED = 0.76
_PUBLISHED_FOR = ("oful", "variance")
STATISTICS = {"standard error": "divided by its standard error", "variance": "divided by its variance"}
_WHY = {
    "variance": "no matter of adaptivity: too large by the root of pulls/dimension under every policy",
    "standard error": "the statistic as it should be: no policy breaks it here",
}
_WHY_PUBLISHED = (
    "the statistic is too large by the root of pulls/dimension, under uniform play as well; 76% is what some "
    "200 pulls would show, and here the most pulled arm has about 110"
)


@dataclass(frozen=True, eq=False)
class RegressionExperiment(Reproduction):
    """P-values of the true null that the first coefficient of the most pulled arm is 0.

    Attributes
    ----------
    horizon, replicates, seed, seconds
        See :class:`~equinoise.experiments.bias.published.Reproduction`.
    n_arms, dimension : int
    p_values : dict of (str, str) to float64[R]
        By policy, and by what the estimate was divided by: its "standard error", as is right, or its
        "variance", as in the program that the authors published.
    """

    n_arms: int
    dimension: int
    p_values: dict[tuple[str, str], NDArray[np.float64]]

    @property
    def name(self) -> str:
        """What its files are called."""
        return "experiment-3"

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, but for the seed."""
        return super().parameters() | {"n_arms": self.n_arms, "dimension": self.dimension}

    def beside(self) -> list[Beside]:
        """Return the share of p-values below 5%, published for OFUL alone, beside ours."""
        return [
            Beside(
                f"p-values below 0.05: {policy}, {STATISTICS[statistic]}",
                PUBLISHED if (policy, statistic) == _PUBLISHED_FOR else None,
                *rejected(values),
                _WHY_PUBLISHED if (policy, statistic) == _PUBLISHED_FOR else _WHY[statistic],
            )
            for (policy, statistic), values in self.p_values.items()
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a policy, statistic and replicate: policy, divided_by, replicate, p_value."""
        import pandas as pd

        parts = [
            pd.DataFrame(
                {
                    "policy": policy,
                    "divided_by": statistic,
                    "replicate": np.arange(len(values)),
                    "p_value": values,
                }
            )
            for (policy, statistic), values in self.p_values.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the p-values of OFUL and of uniform play by both statistics; return the Axes."""
        series = [
            (f"{policy}, {STATISTICS[statistic]}", values)
            for (policy, statistic), values in self.p_values.items()
            if policy in ("oful", "uniform")
        ]
        ax = bandit_figures.p_value_histogram(ax, series)
        ax.set_title("Experiment 3: is the first coefficient of the most pulled arm 0?", fontsize="medium")
        return ax


def experiment_3(
    scale: float = 1.0,
    *,
    policies: tuple[str, ...] = ("oful", "greedy", "uniform"),
    n_arms: int = 5,
    dimension: int = 5,
    horizon: int = 500,
    replicates: int = 1000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> RegressionExperiment:
    """Run experiment 3: five arms in five dimensions, T = 500, N(0, 1) noise, 1,000 replicates.

    Contexts and coefficients are uniform on the unit sphere, the coefficients with a first coordinate of 0.
    Whether it is 0 is tested for the arm that was pulled most, under OFUL and the controls.

    Parameters
    ----------
    scale : float
        Times the replicates.
    policies : tuple of str
        Of :func:`equinoise.bandits.linear.simulate`, without an epsilon.
    n_arms, dimension, horizon, replicates : int
    seed : int
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    RegressionExperiment

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, before any work.

    Notes
    -----
    The published program divides the estimate by V^-1[0, 0] in place of its root. An arm that n contexts in
    five dimensions were played on has V^-1[0, 0] of about 5/n: with a hundred of them the statistic is 4.5
    times too large, and about two thirds of all true nulls are rejected, whatever the policy.

    Examples
    --------
    >>> made = experiment_3(0.02, horizon=30)
    >>> made.p_values["uniform", "standard error"].shape
    (20,)
    """
    n = scaled(replicates, scale)
    for name in policies:
        _checks.choice("policies", name, ("oful", "greedy", "uniform"))
    begun = time.perf_counter()
    p_values = {}
    for name in policies:
        run = linear.simulate(
            name,
            n_arms=n_arms,
            dimension=dimension,
            horizon=horizon,
            n_replicates=n,
            seed=seed,
            executor=executor,
            progress=progress and name,
        )
        for statistic in STATISTICS:
            p_values[name, statistic] = _tested(run, statistic)
    seconds = time.perf_counter() - begun
    return RegressionExperiment(horizon, n, seed, seconds, n_arms, dimension, p_values)


def _tested(run: linear.LinearRun, statistic: str) -> NDArray[np.float64]:
    """Return the p-value of each replicate for the first coefficient of its most pulled arm."""
    rows, arm = np.arange(len(run.pulls)), np.argmax(run.pulls, axis=1)
    stderr = run.stderr[rows, arm, 0]
    divisor = stderr if statistic == "standard error" else stderr**2
    return np.asarray(inference.z_test(run.theta_hat[rows, arm, 0], 0.0, divisor), dtype=np.float64)
