"""A grid of parameters from a file, for any simulation of the package: one table, kept point by point."""

import functools
import importlib.util
import inspect
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from equinoise import _checks, _files, _results, _sweep, bandits, efb, games
from equinoise._typing import Any, Callable, Executor
from equinoise.report.exhibit import csv_bytes

_load = functools.lru_cache(maxsize=4)(games.load)


def simulate(game: Any, player: Any = 0, opponents: Any = "uniform", **options: Any) -> efb.EfbRun:
    """Simulate a game, which is loaded once for all points."""
    load = games.load if any(isinstance(one, dict | list) for one in (game, player, opponents)) else _load
    return efb.simulate(*load(game, player, opponents), **options)


SIMULATE: dict[str, Callable[..., Any]] = {
    "bandits": bandits.simulate,
    "linear": bandits.linear.simulate,
    "efb": simulate,
    "self-play": efb.self_play,
}


@dataclass(frozen=True, eq=False)
class Plan:
    """What a file asks for: its keys but those of the grid, and the points of the grid, all checked."""

    given: dict[str, Any]
    points: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, path: Path, n_replicates: int | range | None = None) -> "Plan":
        """Read a TOML file, replicates in place of its own; ValueError or TypeError names a wrong key."""
        try:
            given = tomllib.loads(_files.content(path, pipe=True).decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"file must be a TOML file, got {str(path)!r}: {_checks.line(error)}") from None
        for name in ("simulate", "grid"):
            if name not in given:
                found = _checks.line(", ".join(map(repr, given))) or "none"
                raise ValueError(f"file must have the key {name!r}, got {found}")
        _checks.choice("simulate", given["simulate"], SIMULATE)
        if n_replicates is not None:
            given["n_replicates"] = n_replicates
        points = _sweep.points_of(given.pop("grid"))
        names = _sweep.names_of(points)
        if n_replicates is not None and "n_replicates" in names:
            raise ValueError(f"replicates must be left out where the grid of {str(path)!r} says how many")
        twice = [name for name in names if name in given]
        if wrong := [*twice, *(name for name in ("executor", "resume", "progress") if name in given)]:
            also = " and of its grid" if twice else ""
            raise ValueError(f"{wrong[0]} must not be a key of {str(path)!r}{also}")
        try:
            return cls(given, _sweep.checked(cls(given, ()).function, points, kept=True))
        except TypeError as error:  # in Python's words where a parameter is missing
            for name, one in inspect.signature(SIMULATE[given["simulate"]]).parameters.items():
                given_all = name in given or all(name in point for point in points)
                if one.default is one.empty and not given_all and "() missing " in str(error):
                    where = f"in its grid or outside, for simulate = {given['simulate']!r}"
                    raise ValueError(f"file must have the key {name!r}, {where}") from None
            raise

    @property
    def function(self) -> Callable[..., Any]:
        """What is called at each point."""
        fixed = {name: value for name, value in self.given.items() if name != "simulate"}
        return functools.partial(SIMULATE[self.given["simulate"]], **fixed)

    def refuse_other_points(self, folders: set[str]) -> None:
        """Raise ValueError where the folders that were kept are those of other points."""
        own = set(map(_sweep.folder_of, self.points))
        if changed := sorted(own ^ folders):
            where = "not in the slices" if changed[0] in own else "only in the slices"
            raise ValueError(f"file must have the grid of the slices, got another: {changed[0]} is {where}")

    def run(self, executor: Executor | None, resume: Path, progress: bool = False) -> "Swept":
        """Run all points, kept in a folder."""
        begun = time.perf_counter()
        made = _sweep.perform(self.function, self.points, executor=executor, resume=resume, progress=progress)
        return Swept(self, made, time.perf_counter() - begun)


@dataclass(frozen=True, eq=False)
class Swept:
    """Runs at all points, and the seconds that they took together."""

    plan: Plan
    sweep: _sweep.Sweep
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds; the seed is a list where points have their own, in their order."""
        own = [point.get("seed", 0) for point in self.plan.points]
        seed: Any = own if any(own) else self.plan.given.get("seed", 0)
        made = _results.provenance(self.plan.given, seed=seed, seconds=self.seconds)
        return {"experiment": "sweep", **made, "points": _results.plain(self.plan.points)}

    def write(self, folder: Path) -> list[Path]:
        """Write ``sweep.csv`` (all replicates), ``summary.csv``, ``run.json``, and Parquet if it can be."""
        frames = {"sweep": self.sweep.to_frame(), "summary": self.sweep.summary()}
        files = {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()}
        files["run.json"] = _files.json_bytes(self.document())
        if importlib.util.find_spec("pyarrow") is not None:
            files["sweep.parquet"] = frames["sweep"].to_parquet(engine="pyarrow", index=False)
        return _files.write_all(folder, files)
