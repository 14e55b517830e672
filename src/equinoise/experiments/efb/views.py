"""Runs of one game by learner, tuning and epsilon: as a frame, as figures, and beside what theory says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equinoise import _results, efb
from equinoise.report import figures
from equinoise.report.curves import Curve, curves, legend_below, ticks_at
from equinoise.report.exhibit import Claim, Picture

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FREE",
    "IXOMD",
    "KIND",
    "UNIFORM",
    "Cell",
    "Runs",
    "Study",
    "claims",
    "curve_picture",
    "epsilon_picture",
    "final",
    "regret_frame",
]

KIND = "A bound holds for the worst environment; an opponent who plays uniformly is far from it."
_SHARPER = "The sharp tuning needs no logarithm of the horizon: it bounds the noise by its moments."


@dataclass(frozen=True)
class Study:
    """One game, and how large its runs are.

    Attributes
    ----------
    name, title : str
    game : str
        As :func:`equinoise.games.load` takes it; player 0 learns, the others play uniformly.
    trials, replicates : int
    sharp, paper, flat : tuple of float
        Epsilons of DP-EFB with either tuning, and of the learner over whole strategies.
    shown : float
        The epsilon of the regret curves, one of `sharp`.
    """

    name: str
    title: str
    game: str
    trials: int
    replicates: int
    sharp: tuple[float, ...]
    paper: tuple[float, ...]
    flat: tuple[float, ...]
    shown: float


class Cell(NamedTuple):
    """One run of a study: a learner at an epsilon, with a tuning or none."""

    learner: str
    tuning: str
    epsilon: float


FREE = Cell("dp-efb", "sharp", math.inf)
IXOMD = Cell("ixomd", "", math.inf)
UNIFORM = Cell("uniform", "", math.inf)
Runs = dict[Cell, efb.EfbRun]


def final(run: efb.EfbRun) -> tuple[float, float, float]:
    """Return the mean regret at the horizon and its 95% interval."""
    estimate = _results.summarise(run.regret[:, -1])
    return float(estimate.mean), float(estimate.ci_low), float(estimate.ci_high)


def regret_frame(runs: Runs) -> pd.DataFrame:
    """Return a row for each run: its learner, its regret with an interval, the bound, and their ratio."""
    import pandas as pd

    rows = []
    for cell, run in runs.items():
        mean, low, high = final(run)
        horizon = int(run.trials[-1])
        bound = run.regret_bound if cell != UNIFORM else math.nan
        rows.append(
            {
                "learner": cell.learner,
                "tuning": cell.tuning or None,
                "epsilon": cell.epsilon,
                "regret": mean,
                "ci_low": low,
                "ci_high": high,
                "bound": bound,
                "regret_to_bound": mean / bound,
                "bound_informative_from_trial": bound**2 / horizon,
            }
        )
    return pd.DataFrame(rows)


def claims(study: Study, runs: Runs) -> Iterator[Claim]:
    """Yield the published bound beside our regret, and beside the bound of the sharp tuning."""
    for epsilon in study.paper:
        run = runs[Cell("dp-efb", "paper", epsilon)]
        yield Claim(f"regret, tuning paper, epsilon {epsilon:g}", run.regret_bound, final(run)[0], KIND)
    for epsilon in study.paper:
        sharp, paper = (runs[Cell("dp-efb", rule, epsilon)].regret_bound for rule in ("sharp", "paper"))
        yield Claim(f"bound, tuning sharp, epsilon {epsilon:g}", paper, sharp, _SHARPER)


def curve_picture(study: Study, runs: Runs) -> Picture:
    """Draw regret over the trials at the shown epsilon, with intervals and bounds."""
    epsilon = study.shown
    chosen = {
        f"tuning sharp, ε = {epsilon:g}": Cell("dp-efb", "sharp", epsilon),
        f"tuning paper, ε = {epsilon:g}": Cell("dp-efb", "paper", epsilon),
        "no privacy": FREE,
        "uniform play": UNIFORM,
    }
    drawn = figures.figure(5.6, 4.8)
    series = [(label, runs[cell]) for label, cell in chosen.items() if cell in runs]
    legend_below(figures.regret_curve(drawn.subplots(), series))
    said = "; ".join(f"{label} ends at {final(run)[0]:,.0f}" for label, run in series)
    return Picture(
        f"{study.title.split(':')[0]}: cumulative regret over {study.trials:,} trials, with 95% intervals "
        "and proven bounds",
        f"Both axes are logarithmic. {said}. Dotted lines with hollow points are the bounds.",
        drawn,
    )


def epsilon_picture(study: Study, runs: Runs) -> Picture:
    """Draw regret at the horizon over epsilon, with intervals and bounds."""
    drawn = figures.figure(5.6, 4.8)
    series: list[Curve] = []
    for label, learner, tuning, epsilons in (
        ("tuning sharp", "dp-efb", "sharp", study.sharp),
        ("tuning paper", "dp-efb", "paper", study.paper),
        ("flat-exp3", "flat-exp3", "sharp", study.flat),
    ):
        if epsilons:
            series.extend(_over_epsilon(label, [runs[Cell(learner, tuning, e)] for e in epsilons]))
    for label, cell in (
        ("no privacy", FREE),
        ("ixomd, no privacy", IXOMD),
        ("uniform play", UNIFORM),
    ):
        series.append(Curve(label, [0.0], [final(runs[cell])[0]], kind="level"))
    axes = curves(
        drawn.subplots(),
        series,
        horizontal="ε of a report",
        vertical=f"regret after {study.trials:,} trials",
        logarithmic="xy",
    )
    ticks_at(axes, study.sharp)
    measured = ((e, final(runs[Cell("dp-efb", "sharp", e)])[0]) for e in study.sharp)
    said = ", ".join(f"{mean:,.0f} at epsilon {epsilon:g}" for epsilon, mean in measured)
    return Picture(
        f"{study.title.split(':')[0]}: regret against epsilon, with 95% intervals and proven bounds",
        f"Both axes are logarithmic. With the sharp tuning the regret is {said}; without privacy "
        f"{final(runs[FREE])[0]:,.0f}, for uniform play {final(runs[UNIFORM])[0]:,.0f}. Dotted lines with "
        "hollow points are bounds, where they are below one a trial.",
        drawn,
    )


def _over_epsilon(label: str, runs: Sequence[efb.EfbRun]) -> list[Curve]:
    """Return the measured curve of runs over their epsilons, and that of bounds below one a trial."""
    x = [run.epsilon for run in runs]
    mean, low, high = (np.array(column) for column in zip(*(final(run) for run in runs), strict=True))
    bounds = [run.regret_bound if run.regret_bound < run.trials[-1] else math.nan for run in runs]
    made = [Curve(label, x, mean, low, high)]
    if not np.isnan(bounds).all():
        made.append(Curve(f"{label}: proven bound", x, bounds, kind="bound"))
    return made
