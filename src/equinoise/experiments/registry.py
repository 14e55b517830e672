"""A row for each experiment of ``equinoise reproduce``: all that is said about it is said there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from equinoise.experiments.steps import SECTIONS, Settings, Step
from equinoise.report.exhibit import Exhibit

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One experiment, at either scale.

    Attributes
    ----------
    name : str
        Of its step, its exhibit and its files.
    pillar : {"efb", "nvo", "bias"}
    title : str
    function : callable
        ``function(experiment, size, settings, executor, progress) -> Exhibit``. The executor may be None;
        progress takes the share that is done.
    quick, full
        What the function gets as `size` at either scale.
    seconds : (float, float)
        About how long it takes at either scale, for nothing but the time left.
    """

    name: str
    pillar: str
    title: str
    function: Callable[..., Exhibit]
    quick: Any
    full: Any
    seconds: tuple[float, float]

    def step(self, settings: Settings) -> Step:
        """Return the experiment at the scale of the settings."""
        make = partial(self.function, self, self.full if settings.full else self.quick)
        return Step(self.name, self.pillar, self.title, make, self.seconds[settings.full])

    def exhibit(self, **parts: Any) -> Exhibit:
        """Return an exhibit under this experiment's name and title; `parts` are its other attributes."""
        return Exhibit(self.name, SECTIONS[self.pillar], self.title, **parts)
