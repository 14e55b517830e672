"""One function at every point of a grid: checked before any work, kept point by point, one frame."""

import importlib.util
import inspect
import itertools
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from equinoise import _checks, _files, _results
from equinoise._checkpoint import fingerprint
from equinoise._typing import Any, Callable, DataFrame, Executor, Iterable, Mapping, Sequence

_OURS = ("executor", "resume", "progress")
_MOST_POINTS = 10**6


class _Ready(BaseException):
    """All checks of a call have passed: it asked for work."""


class _Idle(Executor):
    """Does no work, so that a call ends after its checks."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise _Ready


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a function returned at the points of a grid; :func:`equinoise.replicates.sweep` makes it.

    Attributes
    ----------
    points : tuple of dict
        The parameters of each point.
    runs : tuple
        What the function returned there, in the same order.

    Examples
    --------
    >>> import functools
    >>> from equinoise import bandits
    >>> task = functools.partial(bandits.simulate, means=[0.9, 0.8], horizon=50)
    >>> made = sweep(task, {"policy": ["ucb", "uniform"], "seed": [0, 1]})
    >>> made.points[1], made.to_frame().columns[:5].tolist()
    ({'policy': 'ucb', 'seed': 1}, ['policy', 'seed', 'epsilon', 'version', 'replicate'])
    """

    points: tuple[dict[str, Any], ...]
    runs: tuple[Any, ...]

    def to_frame(self) -> DataFrame:
        """Return all runs' long frames in one, parameters first, with what made each run and the version.

        A parameter is as it was given, or text where it is neither numbers of 64 bits nor words alone. One
        that a point leaves out is as its run says, or missing; a word, as the mechanism's, is the run's. A
        result called like a parameter, such as ``mean``, is ``run_mean``.
        """
        return self._joined([run.to_frame() for run in self.runs])

    def summary(self) -> DataFrame:
        """Return all runs' means, standard errors and 95% intervals in one frame, parameters first."""
        return self._joined([run.summary() for run in self.runs])

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_frame` as a Parquet file, atomically; ImportError without pyarrow."""
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError("to_parquet needs pyarrow: pip install 'equinoise[parquet]'")
        with _files.replacing(path) as file:
            self.to_frame().to_parquet(file, engine="pyarrow", index=False)

    def _joined(self, frames: Sequence[DataFrame]) -> DataFrame:
        import pandas as pd

        told = [{str(name): value for name, value in frame.attrs.items()} for frame in frames]
        pairs = zip(told, self.points, strict=True)
        made = [a | {k: v for k, v in b.items() if not type(a.get(k)) is type(v) is str} for a, b in pairs]
        whole = pd.concat(frames, ignore_index=True)
        sizes, names = [len(frame) for frame in frames], names_of(self.points)
        results = {name: f"run_{name}" for name in names if name not in names_of(told)}
        whole = whole.rename(columns=results)
        names += [name for name in names_of(told) if name not in names and name not in whole]
        cells = {name: _column([one.get(name) for one in made]) for name in names}
        columns = {name: pd.Series(**own).repeat(sizes).array for name, own in cells.items()}
        return pd.concat([pd.DataFrame(columns), whole.drop(columns=names, errors="ignore")], axis=1)


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    executor: Executor | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Sweep:
    """Call a function at every point of a grid, one after the other, each with its replicates on an executor.

    Parameters
    ----------
    function : callable
        A ``simulate`` of this package or like one: it returns a result with ``to_frame()``, and all its
        parameters can be given by name. :func:`functools.partial` fixes what is the same everywhere.
    grid : mapping of iterables, or iterable of mappings
        Values by the name of a parameter, of which every combination is a point, the last name fastest; or
        the points themselves, each with its parameters by name.
    executor, progress
        As of :func:`equinoise.replicates.run`; a bar for each point.
    resume : path, optional
        A folder with one of its own for every point, in which finished blocks are kept. The same call goes
        on from them, also with more points or replicates.

    Raises
    ------
    TypeError, ValueError
        For a grid that is none, and for parameters that the function refuses, before any work, by the point.

    Examples
    --------
    >>> import functools
    >>> from equinoise import bandits
    >>> task = functools.partial(bandits.simulate, means=[0.9, 0.8], horizon=50, n_replicates=10)
    >>> len(sweep(task, [{"policy": "ucb"}, {"policy": "uniform", "seed": 1}]).to_frame())
    40
    """
    folder = None if resume is None else _checks.path("resume", resume)
    points = checked(function, grid, kept=folder is not None)
    return perform(function, points, executor=executor, resume=folder, progress=progress)


def checked(function: Callable[..., Any], grid: Any, kept: bool) -> tuple[dict[str, Any], ...]:
    """Return the points of a grid; TypeError or ValueError where the function refuses one, before work."""
    if not callable(function):
        raise TypeError(f"function must be callable, got {_checks.shown(function)}")
    points, whole = points_of(grid), 0
    for point in points:
        token = _results.needs.set(needed := [0])
        try:
            if _takes(function, "executor"):
                function(**point, executor=_Idle())
            else:
                inspect.signature(function).bind(**point)
        except _Ready:
            pass
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{_checks.line(error)} (at the point {_checks.line(_label(point))})") from error
        finally:
            _results.needs.reset(token)
        whole += max(needed)
    _results.check_memory(len(points), -(-whole // (8 * len(points))), "the number of points in grid")
    if kept and len({folder_of(point) for point in points}) < len(points):
        raise ValueError("grid must have points that differ, where they are kept")
    return points


def perform(function: Callable[..., Any], points: tuple[dict[str, Any], ...], **given: Any) -> Sweep:
    """Call the function at points that were checked, with executor, resume and progress."""
    resume, progress = given["resume"], given["progress"]
    for name, value in given.items():
        if value and not _takes(function, name):
            raise TypeError(f"{name} must be left out for a function that takes none, got {value!r}")
    runs = []
    for point in points:
        folder = None if resume is None else Path(resume, folder_of(point))
        own = {**given, "progress": progress and _label(point), "resume": folder}
        runs.append(function(**point, **{name: value for name, value in own.items() if value}))
    return Sweep(points, tuple(runs))


def _takes(function: Any, name: str) -> bool:
    parameters = inspect.signature(getattr(function, "func", function)).parameters  # of a partial
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def points_of(grid: Any) -> tuple[dict[str, Any], ...]:
    lists = grid.values() if isinstance(grid, Mapping) else [grid]
    others = (str, Mapping, set, frozenset)  # sets have another order in every process
    if any(isinstance(values, others) or not isinstance(values, Iterable) for values in lists):
        got = _checks.shown(grid)
        raise TypeError(f"grid must be lists of values by name, or a list of points, got {got}")
    lists = [list(itertools.islice(values, _MOST_POINTS + 1)) for values in lists]  # which may have no end
    if (n := math.prod(map(len, lists))) > _MOST_POINTS:
        raise ValueError(f"grid must have at most {_MOST_POINTS:,} points, got {n:,} or more")
    if isinstance(grid, Mapping):
        points = [dict(zip(grid, point, strict=True)) for point in itertools.product(*lists)]
    else:
        points = [dict(_checks.instance("grid's points", point, Mapping)) for point in lists[0]]
    if not points or not all(points):
        raise ValueError("grid must have at least one point, and every point a parameter")
    for name in names_of(points):
        if not isinstance(name, str) or name in _OURS:
            raise TypeError(f"grid must have names of the function's parameters, got {name!r}")
    return tuple(points)


def names_of(points: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for point in points for name in point))


def _cell(value: Any) -> Any:
    """Return a value as a column has it."""
    plain = value.item() if getattr(value, "ndim", 1) == 0 else value  # of NumPy
    return plain if isinstance(plain, int | float | str | None) else str(_results.plain(plain))


def _column(values: Sequence[Any]) -> dict[str, Any]:
    """Return cells of one type, as Parquet needs, and a type that keeps all digits beside None."""
    cells = [_cell(value) for value in values]
    kinds = {type(cell) for cell in cells if cell is not None}
    wide = any(isinstance(cell, int) and cell.bit_length() > (53 if float in kinds else 63) for cell in cells)
    if wide or (len(kinds) > 1 and kinds != {int, float}):
        return {"data": [cell if cell is None else str(cell) for cell in cells]}
    return {"data": cells, "dtype": "Int64" if kinds == {int} and None in cells else None}


def _label(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_checks.shown(value)}" for name, value in point.items())


def folder_of(point: Mapping[str, Any]) -> str:
    """Return the name of a point's folder: to read, and to tell it from others in every version."""
    point = {k: v.item() if getattr(v, "ndim", 1) == 0 else v for k, v in sorted(point.items())}
    words = re.sub(r"[^\w.=+-]+", "-", _label(point).replace("'", ""))
    return f"{words[:60]}-{fingerprint(point, '')[:12]}"
