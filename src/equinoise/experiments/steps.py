"""What the experiments of ``equinoise reproduce`` share: settings, steps, and parts on an executor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from equinoise import _checks
from equinoise.report.exhibit import Exhibit

__all__ = ["PILLARS", "SCALES", "SECTIONS", "Progress", "Settings", "Step", "left_out", "spread"]

PILLARS = ("efb", "nvo", "bias")
SCALES = ("quick", "full")
SECTIONS = {
    "efb": "Locally private learning in games",
    "nvo": "Noise that every record chooses for itself",
    "bias": "Bias in data that a bandit gathered",
}

Item = TypeVar("Item")
Made = TypeVar("Made")
Progress = Callable[[float], None]  # takes the share of a step that is done, from 0 to 1


@dataclass(frozen=True)
class Settings:
    """What every experiment depends on, checked when made.

    Attributes
    ----------
    scale : {"quick", "full"}
        Sizes that take seconds, or those of the papers.
    seed : int
        The same seed gives the same figures.
    csv : str or None
        A CSV file, whose `column` takes the place of the built-in columns.
    column : str or None
    target : str or None
        A second column of the file, predicted from the first.
    resume : str or None
        A folder for what is finished of experiments that are not.
    """

    scale: str = "quick"
    seed: int = 0
    csv: str | None = None
    column: str | None = None
    target: str | None = None
    resume: str | None = None

    def __post_init__(self) -> None:
        _checks.choice("scale", self.scale, SCALES)
        _checks.integer("seed", self.seed, 0)
        if (self.csv is None) != (self.column is None):
            missing, given = ("column", "csv") if self.column is None else ("csv", "column")
            raise ValueError(f"{missing} must be given with {given}, got none")
        if self.target is not None and self.csv is None:
            raise ValueError("csv must be given with target, got none")

    @property
    def full(self) -> bool:
        """Whether the sizes are those of the papers."""
        return self.scale == "full"

    def keeping(self, folder: str | None) -> Settings:
        """Return the same settings with another folder for what is finished."""
        return replace(self, resume=folder)

    def kept(self, step: str, **parameters: Any) -> Path | None:
        """Return the folder for the blocks of one run of a step, None where nothing is kept.

        Runs of other parameters or another seed have other folders, so none meets the blocks of another.
        """
        if self.resume is None:
            return None
        mark = repr((self.seed, sorted(parameters.items())))
        return Path(self.resume, f"{step}-{hashlib.sha256(mark.encode()).hexdigest()[:16]}")


@dataclass(frozen=True)
class Step:
    """One experiment of the plan.

    Attributes
    ----------
    name : str
        Of the step and its exhibit.
    pillar : {"efb", "nvo", "bias"}
    title : str
    make : callable
        ``make(settings, executor, progress) -> Exhibit``. The executor may be None; progress takes the share
        that is done.
    seconds : float
        About how long it takes, for nothing but the time left.
    """

    name: str
    pillar: str
    title: str
    make: Callable[[Settings, Executor | None, Progress], Exhibit]
    seconds: float


def spread(
    function: Callable[[Item], Made], items: Sequence[Item], executor: Executor | None, progress: Progress
) -> list[Made]:
    """Apply a function to every item, on the executor where there is one, and return results in order.

    Parameters
    ----------
    function : callable
    items : sequence
    executor : concurrent.futures.Executor or None
        None works in this thread, one item after the other.
    progress : callable
        Takes the share of items that are done, each time one ends.

    Returns
    -------
    list

    Notes
    -----
    What a function raises is raised once all items that had begun have ended; the others are cancelled.

    Examples
    --------
    >>> spread(str, [1, 2], None, print)
    0.5
    1.0
    ['1', '2']
    """
    if executor is None:
        results = []
        for i, item in enumerate(items, 1):
            results.append(function(item))
            progress(i / len(items))
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


def left_out(step: Step, reason: str) -> Exhibit:
    """Return what stands in place of an experiment that cannot be done here."""
    return Exhibit(step.name, SECTIONS[step.pillar], step.title, "Left out.", f"Left out: {reason}")
