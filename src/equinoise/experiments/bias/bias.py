"""Experiments 1 and 2 of Neel and Roth (2018): the bias of arm means, with the controls that explain it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equinoise import _results, bandits
from equinoise.experiments.bias.published import Beside, Reproduction, scaled
from equinoise.experiments.bias.settings import EXPERIMENT_1, EXPERIMENT_2, Spec
from equinoise.experiments.bias.summary import Summary, summarise
from equinoise.report import figures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BiasExperiment", "experiment_1", "experiment_2", "regret_frame"]

_INTERVALS = (
    "the paper's intervals have one width for all arms, sqrt(ln(2/0.975)/(2 R)); these are normal ones"
)


@dataclass(frozen=True, eq=False)
class BiasExperiment(Reproduction):
    """The runs of one experiment, which met the same luck where they have the same arms.

    Attributes
    ----------
    horizon, replicates, seed, seconds
        See :class:`~equinoise.experiments.bias.published.Reproduction`.
    number : int
        1 or 2.
    specs : tuple of Spec
    runs : dict of str to BanditRun
        By the labels of the specs.
    """

    number: int
    specs: tuple[Spec, ...]
    runs: dict[str, bandits.BanditRun]

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"experiment-{self.number}"

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, but for the seed."""
        return super().parameters() | {"runs": [spec.setting for spec in self.specs]}

    def summary(self, label: str) -> Summary:
        """Return bias and regret of one run."""
        return summarise(self.runs[label])

    def beside(self) -> list[Beside]:
        """Return what the paper publishes beside ours, and the regret that belongs to every bias."""
        rows = []
        for spec in self.specs:
            made, of = self.summary(spec.label), f": {spec.label}"
            rows.append(
                Beside(
                    f"mean absolute bias{of}",
                    spec.published,
                    made.mean_absolute_bias,
                    made.stderr,
                    spec.why,
                )
            )
            if spec.published_largest is not None:
                largest = made.largest_bias
                rows.append(Beside(f"largest bias{of}", spec.published_largest, largest, None, spec.why))
            if spec.published_at_zero is not None and made.arms_at_zero is not None:
                what = f"of {len(spec.means)} arms, intervals that hold zero{of}"
                rows.append(Beside(what, spec.published_at_zero, made.arms_at_zero, None, _INTERVALS))
            price = "the price of that bias"
            rows.append(Beside(f"regret{of}", None, made.regret, made.regret_stderr, price))
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return one row a run and arm: run, arm, mean, bias, stderr, ci_low, ci_high."""
        import pandas as pd

        parts = [run.bias().assign(run=label) for label, run in self.runs.items()]
        frame = pd.concat(parts, ignore_index=True)
        return frame[["run", *(name for name in frame.columns if name != "run")]]

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the table, the bias of every arm, and the regret at the checkpoints."""
        return {"table": self.beside_frame(), "bias": self.to_frame(), "regret": regret_frame(self.runs)}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bias of every arm with 95% intervals, published policies and controls; return the Axes."""
        ax = figures.bandit_bias(ax, self._shown())
        ax.set_title(f"Experiment {self.number}: bias of each arm's mean", fontsize="medium")
        return ax

    def plot_regret(self, ax: Axes | None = None) -> Axes:
        """Draw the regret that goes with that bias; return the Axes."""
        ax = figures.regret_means(ax, self._shown())
        ax.set_title(f"Experiment {self.number}: what that bias costs", fontsize="medium")
        return ax

    def drawings(self) -> Mapping[str, Figure]:
        """Return the figures of bias and of regret."""
        return {"bias": figures.drawn(self.plot), "regret": figures.drawn(self.plot_regret)}

    def _shown(self) -> list[tuple[str, bandits.BanditRun]]:
        return [(spec.label, self.runs[spec.label]) for spec in self.specs if spec.shown]


def regret_frame(runs: Mapping[str, bandits.BanditRun]) -> pd.DataFrame:
    """Return the mean regret of runs at their checkpoints: run, trials, mean, stderr, ci_low, ci_high."""
    import pandas as pd

    parts = [
        pd.DataFrame({"run": label, "trials": run.trials, **_results.summarise(run.regret)._asdict()})
        for label, run in runs.items()
    ]
    return pd.concat(parts, ignore_index=True)


def experiment_1(
    scale: float = 1.0,
    *,
    horizon: int = 500,
    replicates: int = 10_000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> BiasExperiment:
    """Run experiment 1: 20 arms with means 1, 0.95, .., 0.05, T = 500, epsilon 0.05, 10,000 replicates.

    Beside plain and private UCB stand uniform play and, at epsilon 400, private UCB without its noise and
    without its width: the bias falls because of the width, and with it the regret rises to that of learning
    nothing.

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
    BiasExperiment

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, before any work.

    Examples
    --------
    >>> made = experiment_1(0.002, horizon=100)
    >>> made.replicates, made.summary("uniform").regret
    (20, 47.5)
    """
    return _run(1, EXPERIMENT_1, scale, horizon, replicates, seed, executor, progress)


def experiment_2(
    scale: float = 1.0,
    *,
    horizon: int = 100_000,
    replicates: int = 1000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> BiasExperiment:
    """Run experiment 2: 5 arms, T = 100,000, epsilon 400, 1,000 replicates.

    The paper's text has a gap of 0.05 between the arms and does not say where they begin; its figures show
    arms from 0.6 to 1. So it is run with gaps of 0.05 from 1 and from 0.9, and with a gap of 0.1 from 1: with
    that one the published figures come out, and it is the one that is drawn.

    Parameters
    ----------
    scale, horizon, replicates, seed, executor, progress
        As of :func:`experiment_1`.

    Returns
    -------
    BiasExperiment

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, before any work.

    Examples
    --------
    >>> made = experiment_2(0.002, horizon=100)
    >>> made.summary("uniform, gap 0.1").regret
    20.0
    """
    return _run(2, EXPERIMENT_2, scale, horizon, replicates, seed, executor, progress)


def _run(
    number: int,
    specs: tuple[Spec, ...],
    scale: float,
    horizon: int,
    replicates: int,
    seed: int,
    executor: Executor | None,
    progress: bool,
) -> BiasExperiment:
    n = scaled(replicates, scale)
    begun = time.perf_counter()
    runs = {}
    for spec in specs:
        runs[spec.label] = bandits.simulate(
            spec.policy,
            spec.means,
            horizon=horizon,
            epsilon=spec.epsilon,
            n_replicates=n,
            seed=seed,
            width=spec.width,
            executor=executor,
            progress=progress and spec.label,
        )
    return BiasExperiment(horizon, n, seed, time.perf_counter() - begun, number, specs, runs)
