"""What the experiments on bias share: summaries of runs, sizes, and how they are shown."""

import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, Callable, DataFrame, Floats, Mapping, NamedTuple, TypeVar
from equinoise.bandits import BanditRun
from equinoise.experiments.steps import Experiment, Job
from equinoise.report.exhibit import Exhibit, joined

PUBLISHED = "Published figures and ours, with the standard error of ours"
_CLEAR = 0.05  # the risk that bias is called clear where there is none

Made = TypeVar("Made", bound="Result")


class Summary(NamedTuple):
    """Bias over the arms, and the regret at the horizon: what tables print, and what the frontier draws."""

    mean_absolute_bias: float  # mean over the arms of the absolute value of each arm's bias
    stderr: float
    luck: float  # the mean absolute bias that these replicates would show on average if no arm had any
    largest_bias: float  # the one with the largest absolute value, with its sign
    arms_at_zero: int | None  # arms whose 95% interval contains zero; None for one replicate, without any
    clear: bool  # whether all arms together differ from no bias at 5% (chi-squared, arms as independent)
    regret: float
    regret_stderr: float


def bias_frame(runs: Mapping[str, BanditRun]) -> DataFrame:
    """Return a row a run and arm: run, arm, mean, bias, stderr, ci_low, ci_high."""
    frame = joined(run.bias().assign(run=name) for name, run in runs.items())
    return frame[["run", *frame.columns.drop("run")]]


def summarise(run: BanditRun) -> Summary:
    """Return bias and regret of a run with their standard errors, NaN for those of one replicate.

    An arm's bias is over the replicates that pulled it; one that none pulled is left out. The standard error
    of the mean absolute bias is that of the replicates' own means, the signs of the biases taken as known.
    """
    errors = run.means - run.true_means  # NaN where an arm was never pulled
    errors = errors[:, ~np.isnan(errors).all(axis=0)]
    counts = (~np.isnan(errors)).sum(axis=0)
    bias = np.nanmean(errors, axis=0)
    stderr, total, alone = np.full(len(bias), np.nan), math.nan, len(errors) < 2
    if not alone:
        with np.errstate(divide="ignore", invalid="ignore"):
            stderr = np.sqrt(np.nansum((errors - bias) ** 2, axis=0) / (counts - 1) / counts)
        # each replicate's share of every arm's mean: the arms of a replicate need not be independent
        shares = np.where(np.isnan(errors), 0.0, np.sign(bias) * errors) / counts
        total = float(np.std(shares.sum(axis=1), ddof=1) * math.sqrt(len(errors)) / len(bias))
    regret = _results.summarise(run.regret[:, -1])
    return Summary(
        float(np.abs(bias).mean()),
        total,
        float(math.sqrt(2.0 / math.pi) * stderr.mean()),
        float(bias[np.argmax(np.abs(bias))]),
        None if alone else int((np.abs(bias) <= _results.Z95 * stderr).sum()),
        _is_clear(bias, stderr),
        float(regret.mean),
        float(regret.stderr),
    )


def _is_clear(bias: Floats, stderr: Floats) -> bool:
    """Return whether the biases of the arms that vary are inconsistent with zero, taken together."""
    from scipy.special import chdtrc

    varies = stderr > 0.0
    if not varies.any():
        return bool((np.abs(bias[~np.isnan(stderr)]) > 1e-12).any())
    chi_squared = float(((bias[varies] / stderr[varies]) ** 2).sum())
    return float(chdtrc(int(varies.sum()), chi_squared)) < _CLEAR


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment returns: its size, as integers and in words."""

    horizon: int
    replicates: int

    @property
    def size(self) -> str:
        """Rounds and replicates in words."""
        return f"{self.horizon:,} rounds, {self.replicates:,} replicates"


def scaled(replicates: int, scale: float) -> int:
    """Return a number of replicates times `scale`, at least 2, so that there are intervals."""
    n = _checks.integer("replicates", replicates, 2, _checks.MOST)
    return max(2, round(n * _checks.number("scale", scale, 0.0, open_low=True)))


def shown(run: Callable[..., Made], show: Callable[[Experiment, Made], Exhibit], job: Job) -> Exhibit:
    """Run an experiment at a scale, and show it."""
    watch: Any = {"watch": lambda share: job.progress(0.9 * share)}  # the rest is drawing
    return show(job.row, run(job.size, **(job.running | watch)))
