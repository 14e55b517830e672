"""Where adaptivity breaks a right test: the mean of the arm that a bandit pulled least."""

from __future__ import annotations

import math
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise import bandits, inference
from equinoise.experiments.bias.published import Beside, Reproduction, scaled
from equinoise.report import bandit_figures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CASES", "LEVEL", "Case", "SelectionExperiment", "least_pulled", "rejected", "selection"]

LEVEL = 0.05


class Case(NamedTuple):
    """One policy on equal N(0, 1) arms, and the mean that is tested to be 0.

    Attributes
    ----------
    policy : str
    n_arms : int
    arm : {"least pulled", "fixed"}
        The arm with the fewest pulls, the first of equals; or arm 0.
    alternative : {"two-sided", "less"}
    why : str
    """

    policy: str
    n_arms: int
    arm: str = "least pulled"
    alternative: str = "two-sided"
    why: str = ""

    @property
    def label(self) -> str:
        """What tables call it."""
        tail = ", lower tail" if self.alternative == "less" else ""
        return f"{self.policy}, {self.n_arms} arms, {self.arm} arm{tail}"


CASES = (
    Case("uniform", 20, why="control: without adaptivity the test is right"),
    Case("ucb", 2, why="an arm is pulled less where its first rewards were low, and so its mean stays low"),
    Case("ucb", 5, why="more arms to fall behind"),
    Case("ucb", 20, why="more arms to fall behind"),
    Case("ucb1", 2, why="a wider index explores more, and selects less"),
    Case("ucb1", 5, why="a wider index explores more, and selects less"),
    Case("ucb1", 2, "fixed", "less", why="even an arm that was named beforehand has a mean that is too low"),
    Case("uniform", 2, "fixed", "less", why="control: without adaptivity the test is right"),
)


@dataclass(frozen=True, eq=False)
class SelectionExperiment(Reproduction):
    """P-values of true nulls.

    Attributes
    ----------
    horizon, replicates, seed, seconds
        See :class:`~equinoise.experiments.bias.published.Reproduction`.
    cases : tuple of Case
    p_values : dict of str to float64[R]
        By the labels of the cases.
    """

    cases: tuple[Case, ...]
    p_values: dict[str, NDArray[np.float64]]

    @property
    def name(self) -> str:
        """What its files are called."""
        return "selected-arms"

    def beside(self) -> list[Beside]:
        """Return the share of true nulls that a test at 5% rejects; the paper has no such setting."""
        return [
            Beside(f"rejected at 5%: {case.label}", None, *rejected(self.p_values[case.label]), case.why)
            for case in self.cases
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a case and replicate: case, replicate, p_value."""
        import pandas as pd

        parts = [
            pd.DataFrame({"case": label, "replicate": np.arange(len(values)), "p_value": values})
            for label, values in self.p_values.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the p-values of the least pulled arm under `ucb` and under uniform play; return the Axes."""
        labels = [case.label for case in self.cases if case.arm != "fixed" and case.policy != "ucb1"]
        ax = bandit_figures.p_value_histogram(ax, [(label, self.p_values[label]) for label in labels])
        ax.set_title("Equal arms: is the mean of the least pulled one 0?", fontsize="medium")
        return ax


def rejected(p_values: NDArray[np.float64], level: float = LEVEL) -> tuple[float, float]:
    """Return the share of p-values at or below a level, and its standard error."""
    share = float(np.mean(p_values <= level))
    return share, math.sqrt(share * (1.0 - share) / len(p_values))


def least_pulled(pulls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the arm with the fewest pulls of each replicate, the first of equals: int64[R] of int64[R, K].

    It is a function of the actions alone, as the correction of p-values asks.
    """
    first: NDArray[np.int64] = np.argmin(pulls, axis=1)
    return first


def selection(
    scale: float = 1.0,
    *,
    horizon: int = 500,
    replicates: int = 4000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> SelectionExperiment:
    """Test a true null on data that bandits gathered from equal N(0, 1) arms.

    Parameters
    ----------
    scale : float
        Times the replicates.
    horizon, replicates : int
    seed : int
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    SelectionExperiment

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, before any work.

    Examples
    --------
    >>> made = selection(0.01, horizon=50)
    >>> made.p_values["uniform, 20 arms, least pulled arm"].shape
    (40,)
    """
    n = scaled(replicates, scale)
    begun = time.perf_counter()
    p_values = {}
    for case in CASES:
        run = bandits.simulate(
            case.policy,
            np.zeros(case.n_arms),
            horizon=horizon,
            n_replicates=n,
            seed=seed,
            reward="gaussian",
            executor=executor,
            progress=progress and case.label,
        )
        p_values[case.label] = _tested(run, case)
    return SelectionExperiment(horizon, n, seed, time.perf_counter() - begun, CASES, p_values)


def _tested(run: bandits.BanditRun, case: Case) -> NDArray[np.float64]:
    """Return the p-value of each replicate."""
    rows = np.arange(len(run.pulls))
    arm = least_pulled(run.pulls) if case.arm == "least pulled" else np.zeros(len(rows), dtype=np.int64)
    pulls = run.pulls[rows, arm]
    made = inference.z_test(run.reward_sum[rows, arm] / pulls, 0.0, 1.0 / np.sqrt(pulls), case.alternative)
    return np.asarray(made, dtype=np.float64)
