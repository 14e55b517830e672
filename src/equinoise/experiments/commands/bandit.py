"""One bandit policy beside plain UCB, uniform play and the controls: bias of every arm, and regret."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _files, _results, bandits, inference
from equinoise.experiments.bias.summary import Summary, arm_errors, summarise
from equinoise.experiments.commands import bandit_words
from equinoise.experiments.commands.bandit_parameters import Parameters

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Parameters", "compare"]

_EMPTY = math.log(2.0)  # above this epsilon Theorem 1 says less than that rewards are in [0, 1]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs that met the same luck.

    Attributes
    ----------
    parameters : Parameters
    runs : dict of str to BanditRun
        By policy, the one that was asked for first.
    seconds : float
        How long they took.
    """

    parameters: Parameters
    runs: dict[str, bandits.BanditRun]
    seconds: float

    @property
    def means(self) -> NDArray[np.float64]:
        """True means of the arms, float64[K]."""
        return np.array(self.parameters.means, dtype=np.float64)

    @property
    def bound(self) -> NDArray[np.float64] | None:
        """What the absolute bias of each arm is proven to stay within, float64[K]; None for no bound."""
        epsilon = self.parameters.epsilon
        if epsilon is None or not self.parameters.bounded or epsilon > _EMPTY:
            return None
        return np.asarray(inference.bias_bound(epsilon, self.means), dtype=np.float64)

    def summaries(self) -> dict[str, Summary]:
        """Return bias and regret of every run."""
        return {name: summarise(run) for name, run in self.runs.items()}

    def arms(self) -> list[dict[str, Any]]:
        """Return the bias of every arm.

        Returns
        -------
        list of dict
            ``arm``, ``mean``, ``bound`` (None where there is none), and for each run a dict of ``bias``,
            ``stderr``, ``ci_low`` and ``ci_high`` (None where one replicate gives none, or nothing was seen).
        """
        bound = self.bound
        table: list[dict[str, Any]] = [
            {"arm": arm, "mean": float(mean), "bound": None if bound is None else float(bound[arm])}
            for arm, mean in enumerate(self.means)
        ]
        for name, run in self.runs.items():
            errors = arm_errors(run)
            for row, seen in zip(table, errors.T, strict=True):
                row[name] = _interval(seen[~np.isnan(seen)])
        return table

    def to_frame(self) -> pd.DataFrame:
        """Return one row a run and arm: run, arm, mean, bias, stderr, ci_low, ci_high, bound."""
        import pandas as pd

        names = ("bias", "stderr", "ci_low", "ci_high")
        rows = [
            (
                name,
                row["arm"],
                row["mean"],
                *(row[name][key] for key in names),
                row["bound"] if first else None,
            )
            for first, name in ((name == self.parameters.policy, name) for name in self.runs)
            for row in self.arms()
        ]
        frame = pd.DataFrame(rows, columns=["run", "arm", "mean", *names, "bound"])
        return frame.astype(dict.fromkeys((*names, "bound"), float))

    def regret_frame(self) -> pd.DataFrame:
        """Return one row a run and checkpoint: run, trials, mean, stderr, ci_low, ci_high."""
        from equinoise.experiments.bias.bias import regret_frame

        return regret_frame(self.runs)

    def sentences(self) -> list[str]:
        """Return in plain words what is protected, what is not, and how to read the table."""
        return bandit_words.sentences(self.parameters)

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the tables, and the sentences."""
        plain: dict[str, Any] = _results.plain(
            {
                "experiment": "bandit",
                **_results.provenance(
                    asdict(self.parameters), seed=self.parameters.seed, seconds=self.seconds
                ),
                "runs": {name: _finite(made._asdict()) for name, made in self.summaries().items()},
                "arms": self.arms(),
                "notes": self.sentences(),
            }
        )
        return plain

    def drawings(self) -> Mapping[str, Figure]:
        """Return the figures: bias per arm, bias against regret, and regret."""
        from equinoise.experiments.bias.frontier import points
        from equinoise.report import bandit_figures, figures

        series = [(run.label, run) for run in self.runs.values()]
        made = self.summaries()
        found = points({(name, None): summary for name, summary in made.items()})
        return {
            "bias": figures.drawn(lambda ax: figures.bandit_bias(ax, series, bound=self.bound)),
            "frontier": figures.drawn(lambda ax: bandit_figures.frontier(ax, found)),
            "regret": figures.drawn(lambda ax: figures.regret_means(ax, series)),
        }

    def files(self) -> dict[str, bytes]:
        """Return ``bias.csv``, ``regret.csv``, the figures as PNG, and ``run.json`` as bytes."""
        from equinoise.report import figures
        from equinoise.report.exhibit import csv_bytes

        return {
            "bias.csv": csv_bytes(self.to_frame()),
            "regret.csv": csv_bytes(self.regret_frame()),
            **{f"{name}.png": figures.png(drawing) for name, drawing in self.drawings().items()},
            "run.json": _files.json_bytes(self.document()),
        }


def compare(
    parameters: Parameters, *, executor: Executor | None = None, progress: bool = False
) -> Comparison:
    """Run the policy, plain UCB, uniform play and, where there is an epsilon, the controls on the same luck.

    The controls are `width-only`, private UCB without its noise, and `noise-only`, private UCB without the
    width that allows for the noise.

    Parameters
    ----------
    parameters : Parameters
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> made = compare(Parameters(epsilon=0.05, horizon=100, replicates=20))
    >>> list(made.runs)
    ['private-ucb', 'ucb', 'uniform', 'width-only', 'noise-only']
    """
    begun = time.perf_counter()
    runs = {
        name: bandits.simulate(
            name,
            parameters.means,
            horizon=parameters.horizon,
            epsilon=parameters.epsilon,
            n_replicates=parameters.replicates,
            seed=parameters.seed,
            reward=parameters.reward,
            width=parameters.width,
            counter=parameters.counter,
            ties=parameters.ties,
            n_checkpoints=parameters.checkpoints,
            executor=executor,
            progress=progress and name,
        )
        for name in parameters.policies
    }
    return Comparison(parameters, runs, time.perf_counter() - begun)


def _interval(errors: NDArray[np.float64]) -> dict[str, float | None]:
    """Return mean, standard error and 95% interval of one arm's errors."""
    names = ("bias", "stderr", "ci_low", "ci_high")
    if not errors.size:
        return dict.fromkeys(names)
    return _finite(dict(zip(names, map(float, _results.summarise(errors)), strict=True)))


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
