"""One bandit policy with plain UCB, uniform play and the controls: bias of every arm, and regret."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _results, bandits, inference
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias.common import Running, gather
from equinoise.experiments.bias.frontier import points
from equinoise.experiments.bias.summary import Summary, arm_errors, summarise
from equinoise.experiments.commands import bandit_words, common
from equinoise.experiments.commands.bandit_parameters import Parameters
from equinoise.experiments.steps import SECTIONS
from equinoise.report import bandit_figures, figures
from equinoise.report.exhibit import Exhibit, Picture, Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Parameters", "compare", "parsed"]

_NAMES = ("bias", "stderr", "ci_low", "ci_high")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs that faced the same random draws.

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
    def title(self) -> str:
        """How it was made, in one line."""
        made = self.parameters
        budget = "" if made.epsilon is None else f", epsilon {made.epsilon:g}"
        return (
            f"{made.policy}{budget}: {len(made.means):,} arms, {made.horizon:,} rounds, "
            f"{made.replicates:,} replicates, seed {made.seed}"
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is protected, what is not, and how to read the tables, in plain words."""
        return bandit_words.sentences(self.parameters)

    @property
    def bound(self) -> NDArray[np.float64] | None:
        """What the absolute bias of each arm is proven to stay within, float64[K]; None for no bound."""
        epsilon = self.parameters.epsilon
        if epsilon is None or not self.parameters.bounded or epsilon > math.log(2.0):
            return None
        return np.asarray(inference.bias_bound(epsilon, self.parameters.means), dtype=np.float64)

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Bias and regret of every run."""
        return {name: summarise(run) for name, run in self.runs.items()}

    @cached_property
    def biases(self) -> dict[str, NDArray[np.float64]]:
        """Bias, standard error and 95% interval of every arm, float64[K, 4]; NaN where it has none."""
        made = {}
        for name, run in self.runs.items():
            seen = [errors[~np.isnan(errors)] for errors in arm_errors(run).T]
            nothing = (math.nan,) * len(_NAMES)
            made[name] = np.array([_results.summarise(one) if one.size else nothing for one in seen])
        return made

    def arms(self) -> list[dict[str, Any]]:
        """Return a dict for each arm: ``arm``, ``mean``, ``bound``, and for each run a dict of its bias.

        None stands for no bound, for intervals of one replicate, and for the bias of an arm never pulled.
        """
        bound = [None] * len(self.parameters.means) if self.bound is None else self.bound.tolist()
        return [
            {"arm": arm, "mean": float(mean), "bound": bound[arm]}
            | {
                name: _finite(zip(_NAMES, rows[arm].tolist(), strict=True))
                for name, rows in self.biases.items()
            }
            for arm, mean in enumerate(self.parameters.means)
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a run and arm: run, arm, mean, bias, stderr, ci_low, ci_high, bound."""
        import pandas as pd

        n_arms = len(self.parameters.means)
        first = {"arm": np.arange(n_arms), "mean": np.array(self.parameters.means, dtype=np.float64)}
        parts = [
            pd.DataFrame({"run": name, **first, **dict(zip(_NAMES, rows.T, strict=True))})
            for name, rows in self.biases.items()
        ]
        bound = np.full(n_arms, np.nan) if self.bound is None else self.bound
        parts[0]["bound"] = bound
        return pd.concat(parts, ignore_index=True)

    def regret_frame(self) -> pd.DataFrame:
        """Return one row a run and checkpoint: run, trials, mean, stderr, ci_low, ci_high."""
        import pandas as pd

        parts = [
            pd.DataFrame({"run": name, "trials": run.trials, **_results.summarise(run.regret)._asdict()})
            for name, run in self.runs.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def exhibit(self) -> Exhibit:
        """Return what it shows: how it was made, tables, figures, and how to read them."""
        asked, plain = self.summaries[self.parameters.policy], self.summaries["ucb"]
        series = [(run.label, run) for run in self.runs.values()]
        found = points({(name, None): summary for name, summary in self.summaries.items()})
        pictures = {
            "bias": (
                "Bias of each arm's mean reward",
                lambda ax: figures.bandit_bias(ax, series, bound=self.bound),
            ),
            "frontier": ("Bias against regret", lambda ax: bandit_figures.frontier(ax, found)),
            "regret": ("Cumulative regret", lambda ax: figures.regret_means(ax, series)),
        }
        headline = (
            f"Mean absolute bias {asked.mean_absolute_bias:.4f} at a regret of {asked.regret:,.1f}; plain UCB: "
            f"{plain.mean_absolute_bias:.4f} at {plain.regret:,.1f}."
        )
        return Exhibit(
            "bandit",
            SECTIONS["bias"],
            self.title,
            "How biased are the means that a bandit gathers, and what does a smaller bias cost in regret?",
            headline,
            self.sentences,
            {
                "bias": Table("Bias of every arm, with its 95% interval", self.to_frame()),
                "regret": Table("Mean regret at the checkpoints, with its 95% interval", self.regret_frame()),
            },
            {
                stem: Picture(f"{caption}, with 95% intervals", headline, figures.drawn(plot))
                for stem, (caption, plot) in pictures.items()
            },
        )

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the tables, and the sentences."""
        runs = {name: _finite(made._asdict().items()) for name, made in self.summaries.items()}
        parts: dict[str, Any] = {"runs": runs, "arms": self.arms(), "notes": self.sentences}
        made = common.document("bandit", self.parameters, self.seconds, **parts)
        made["parameters"] |= made["parameters"].pop("options")
        return made


def compare(
    parameters: Parameters, *, executor: Executor | None = None, progress: bool = False
) -> Comparison:
    """Run the policy, plain UCB, uniform play and, where there is an epsilon, the controls.

    The controls are `width-only`, private UCB without its noise, and `noise-only`, private UCB without the
    width that allows for the noise. All of them face the same random draws.

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
    names = ("means", "horizon", "epsilon", "reward", "width", "counter", "ties")
    common_to_all = {name: getattr(parameters, name) for name in names}
    common_to_all["n_checkpoints"] = parameters.checkpoints
    jobs: dict[str, Mapping[str, Any]] = {
        name: {"policy": name, **common_to_all} for name in parameters.policies
    }
    jobs[parameters.policy] = {**jobs[parameters.policy], **parameters.options}
    running = Running(seed=parameters.seed, executor=executor, progress=progress)
    runs = gather(bandits.simulate, jobs, parameters.replicates, running)
    return Comparison(parameters, runs, time.perf_counter() - begun)


def parsed(name: str, settings: Iterable[str]) -> dict[str, Any]:
    """Return options of a policy that are given as ``NAME=VALUE``.

    Examples
    --------
    >>> parsed("dp-klucb", ["clip_sums=no"])
    {'clip_sums': False}
    """
    options, made = policy(name).options, {}
    for setting in settings:
        key, is_given, text = setting.partition("=")
        if not is_given:
            raise ValueError(f"option must be NAME=VALUE, got {setting!r}")
        made[key] = options[key].parse(key, text) if key in options else text
    return made


def _finite(values: Any) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values}
