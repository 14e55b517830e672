"""What results share: long frames, means with intervals over replicates, and how they were made."""

import importlib.metadata
import math
import os
import platform
import time
from contextvars import ContextVar

import numpy as np

import equinoise
from equinoise import _checks
from equinoise._typing import Any, Array, ArrayLike, DataFrame, Floats, Ints, Mapping, NamedTuple

Z95 = 1.96  # half the width of a normal 95% interval, in standard errors
MOST_CHECKPOINTS = 10**7
needs: ContextVar[list[int] | None] = ContextVar("needs", default=None)  # bytes, as a sweep hears them
_MOST_WORK = 10**15  # trials or rounds of all replicates: months to years of a processor


class Estimate(NamedTuple):
    """Mean over replicates, standard error and normal 95% interval; of one replicate only the mean."""

    mean: Floats
    stderr: Floats
    ci_low: Floats
    ci_high: Floats


def checkpoints(horizon: int, n_checkpoints: object) -> Ints:
    """Return evenly spaced counts up to the horizon, int64[n_checkpoints], or all where it is shorter."""
    n = min(_checks.integer("n_checkpoints", n_checkpoints, 1, MOST_CHECKPOINTS), horizon)
    i = np.arange(1, n + 1, dtype=np.int64)
    return horizon // n * i + horizon % n * i // n


def check_memory(n: int, numbers: int, name: str = "n_replicates") -> None:
    """Refuse replicates, or what `name` counts, whose numbers of 8 bytes each this machine cannot hold."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not a system that tells
        memory = 2**40
    needed = 8 * int(n) * int(numbers)  # small integers of NumPy would overflow
    if (heard := needs.get()) is not None:
        heard.append(needed)
    if needed > memory:
        got = f"{n}, which take {needed / 1e9:.3g} GB ({numbers:,} numbers each)"
        fits = f"fit into this machine's {memory / 1e9:.3g} GB"
        raise ValueError(f"{name} must be one whose results {fits}, got {got}")


def check_work(n: int, each: float) -> None:
    """Refuse replicates of so many trials or rounds each that no machine ends with them."""
    if n * each > _MOST_WORK:
        wanted = f"at most {int(_MOST_WORK / each):,} of {int(each):,} trials or rounds each (10^15 in all)"
        raise ValueError(f"n_replicates must be {wanted}, got {n:,}")


def summarise(values: ArrayLike) -> Estimate:
    """Estimate the mean over replicates, at least one, of values [R, ...]."""
    given = np.asarray(values, dtype=np.float64)
    mean = given.mean(axis=0)
    spread = given.std(axis=0, ddof=1) if len(given) > 1 else np.full_like(mean, np.nan)
    stderr = spread / math.sqrt(len(given))
    return Estimate(mean, stderr, mean - Z95 * stderr, mean + Z95 * stderr)


def long_frame(index: Mapping[str, Array], values: Mapping[str, Array], first: int = 0) -> DataFrame:
    """Return one row for each replicate and entry of the index, a replicate's rows together.

    `index` has columns [C] that all replicates share, such as the trial of a checkpoint, `values` columns of
    results [R, C]; a first column ``replicate`` counts from `first`.
    """
    import pandas as pd

    n_replicates, length = next(iter(values.values())).shape
    columns: dict[str, Array] = {"replicate": np.repeat(np.arange(first, first + n_replicates), length)}
    columns |= {name: np.tile(column, n_replicates) for name, column in index.items()}
    columns |= {name: column.reshape(-1) for name, column in values.items()}
    return pd.DataFrame(columns)


def made_by(frame: DataFrame, **what: Any) -> DataFrame:
    """Return a frame whose ``attrs`` say what made it, and with which version of the package."""
    frame.attrs |= {**what, "version": equinoise.__version__}
    return frame


def summary_frame(index: Mapping[str, Array], values: Mapping[str, Array]) -> DataFrame:
    """Return estimates over replicates of values [R, C], a row for each value and entry of the index [C].

    Columns are ``quantity`` (the name of the value), those of the index, and those of :class:`Estimate`.
    """
    import pandas as pd

    estimates = {name: summarise(value)._asdict() for name, value in values.items()}
    parts = [pd.DataFrame({"quantity": name, **index, **own}) for name, own in estimates.items()]
    return pd.concat(parts, ignore_index=True)


def plain(value: Any) -> Any:
    """Return a value in the types of JSON: lists for arrays, text for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, range):
        return f"{value.start}:{value.stop}"
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    numba, python = importlib.metadata.version("numba"), platform.python_version()
    return {"equinoise": equinoise.__version__, "numpy": np.__version__, "numba": numba, "python": python}


def provenance(parameters: Mapping[str, Any], *, seed: int, seconds: float | None = None) -> dict[str, Any]:
    """Return how a result was made of a seed and all other parameters, for a file, in the types of JSON."""
    return {
        "parameters": plain(parameters),
        "seed": seed,
        "versions": versions(),
        "machine": {"system": platform.system(), "processor": platform.machine()},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": seconds if seconds is None else round(seconds, 3),
    }
