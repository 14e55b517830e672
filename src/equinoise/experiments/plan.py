"""Everything in one run: the plan of experiments, and a report that is whole after each of them."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import shutil
import time
import warnings
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from equinoise import _checks, _files, _results
from equinoise._typing import Any, Callable, Iterator, Mapping
from equinoise.experiments.steps import PILLARS, SCALES, SECTIONS, Settings, Step, versions
from equinoise.report.exhibit import Exhibit
from equinoise.report.html import page

__all__ = ["PILLARS", "SCALES", "Finished", "Report", "Settings", "Step", "perform", "plan"]

_UNFINISHED = ".unfinished"  # folder for the blocks of experiments that were interrupted
_KINDS = {"name": str, "pillar": str, "sha256": dict}  # of what a row of run.json says
_OURS = re.compile(r"(tables/[a-z0-9-]+\.csv|figures/[a-z0-9-]+\.(png|svg))")


@dataclass(frozen=True, eq=False)
class Finished:
    """An experiment that is done: its pillar, what it shows, and how long it took, drawing included.

    Of the `seconds` the processors worked `cpu_seconds`. `mark` is that of its settings and versions, and
    `kept` says whether an earlier run did it.
    """

    pillar: str
    exhibit: Exhibit
    files: Mapping[str, bytes]
    seconds: float
    cpu_seconds: float
    mark: str
    kept: bool = False

    def row(self) -> dict[str, Any]:
        """Return its row of ``run.json``, which with the files is all that :meth:`restored` needs."""
        exhibit = self.exhibit.document()
        for table in exhibit["tables"].values():
            del table["rows"]  # they are in the files
        row: dict[str, Any] = {"name": exhibit["name"], "pillar": self.pillar}
        row |= {"title": exhibit["title"], "headline": exhibit["headline"]}
        row |= {"seconds": round(self.seconds, 3), "cpu_seconds": round(self.cpu_seconds, 3)}
        row |= {"files": list(self.files), "sha256": _digests(self.files), "exhibit": exhibit}
        return {**row, "mark": _signed(self.mark, row)}

    @classmethod
    def restored(cls, row: Mapping[str, Any], folder: Path, settings: Settings) -> Finished | None:
        """Return what an earlier run did, None where it has other settings or versions, or was changed."""
        row = dict(row)
        said, mark = row.pop("mark", None), settings.mark(row.get("pillar", ""))
        if said != _signed(mark, row):
            return None
        with suppress(OSError):
            files = {name: _files.content(folder / name) for name in row["files"]}
            if row["sha256"] == _digests(files):
                exhibit, took = Exhibit.restored(row["exhibit"], files), (row["seconds"], row["cpu_seconds"])
                return cls(row["pillar"], exhibit, files, *took, mark, kept=True)
        return None


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _signed(mark: str, row: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([mark, row], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Report:
    """What is finished of a plan: `which` is a pillar or "all", and `steps` are the plan.

    `finished` are in the order in which they are shown, among them those of other pillars in the folder.
    """

    which: str
    settings: Settings
    steps: tuple[Step, ...]
    finished: tuple[Finished, ...] = ()

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that are not done."""
        names = {done.exhibit.name for done in self.finished}
        return tuple(step for step in self.steps if step.name not in names)

    @property
    def complete(self) -> bool:
        """Whether every step is done."""
        return not self.left

    def having(self, *finished: Finished) -> Report:
        """Return the report with more that is finished."""
        places = {step.name: i for i, step in enumerate(self.steps)}
        order = sorted((*self.finished, *finished), key=lambda done: places.get(done.exhibit.name, 0))
        return replace(self, finished=tuple(sorted(order, key=lambda done: PILLARS.index(done.pillar))))

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, and a row for each experiment that is finished."""
        parameters = {"which": self.which, **asdict(self.settings)}
        seed = parameters.pop("seed")
        del parameters["resume"]
        made = _results.provenance(parameters, seed=seed, seconds=sum(done.seconds for done in self.finished))
        made["versions"] |= versions()
        steps, left = [done.row() for done in self.finished], [step.name for step in self.left]
        return {"experiment": "reproduce", **made, "complete": self.complete, "steps": steps, "left": left}

    def html(self) -> bytes:
        """Return ``report.html``."""
        made, given = self.document(), self.settings
        facts = {
            "Command": f"equinoise reproduce {self.which} --scale {given.scale} --seed {given.seed}",
            "Finished": made["finished"],
            "Versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
            "Machine": ", ".join(made["machine"].values()),
            "Seconds (and of all processors)": "; ".join(
                f"{done.exhibit.name} {done.seconds:.1f} ({done.cpu_seconds:.1f})" for done in self.finished
            ),
        }
        exhibits = [done.exhibit for done in self.finished]
        return page("equinoise: what came out", self._intro(), exhibits, facts)

    def _intro(self) -> list[str]:
        sizes = "the papers' sizes" if self.settings.full else "small sizes"
        paragraphs = [
            "The experiments of three papers on differential privacy, done again. Each part begins with "
            "its answer; tables show every published figure next to ours, with their ratio and why they "
            "differ. Tables and figures are also files, in the folders tables and figures next to this page. "
            f"{self.settings.scale.capitalize()} scale: {sizes}."
        ]
        if not self.complete:
            n, left = len(self.steps), ", ".join(step.title for step in self.left)
            paragraphs.append(f"{n - len(self.left)} of {n} experiments are finished; not yet: {left}.")
        return paragraphs


def plan(which: str, settings: Settings) -> Report:
    """Return the experiments of one pillar ("efb", "nvo", "bias"), or of "all", with nothing done yet.

    Raises TypeError, ValueError or OSError when an argument, the CSV file or a column of it cannot be used,
    and ImportError when one pillar is asked for and needs a package that is not installed. Among all pillars
    it is left out, and its place says why.

    Examples
    --------
    >>> [step.name for step in plan("efb", Settings()).steps]
    ['efb-kuhn', 'efb-leduc', 'efb-growth', 'efb-self-play']
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
            exhibit = Exhibit(pillar, SECTIONS[pillar], "Left out", "Left out.", f"Left out: {error}")
            steps.append(Step(pillar, pillar, exhibit.title, lambda *_, made=exhibit: made, 0.1))
    return Report(chosen, settings, tuple(steps))


def perform(
    report: Report,
    folder: Path,
    *,
    executor: Executor | None = None,
    watch: Callable[[Step, float], None] = lambda step, share: None,
) -> Iterator[Report]:
    """Do a plan step by step, and keep a folder in which the report of what is finished is always whole.

    The folder, made where it is missing, gets ``report.html``, ``run.json``, ``tables/`` and ``figures/``.
    What an earlier run with the same settings, data and versions finished there is shown at once and not
    done again, also that of other pillars; other files of earlier runs are removed. At the full scale,
    finished parts of an experiment stay in a hidden folder there until it is done. The report is yielded
    after every step, when its files have been written; `watch` takes a step and the share of it that is done.
    Of two processes in one folder the second waits, which a warning says.
    """
    new, busy = not folder.exists(), f"waiting for another process to end, which is at work in {folder}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _files.alone(folder, lambda: warnings.warn(busy, stacklevel=2)):
            yield from _performed(report, folder, executor, watch)
    finally:
        if new:
            with suppress(OSError):  # there is a report in it
                folder.rmdir()


def _performed(
    report: Report, folder: Path, executor: Executor | None, watch: Callable[[Step, float], None]
) -> Iterator[Report]:
    earlier, planned = _rows(folder), {(step.pillar, step.name) for step in report.steps}
    pillars = {pillar for pillar, _ in planned}
    for row in earlier:
        if (row["pillar"], row["name"]) in planned or row["pillar"] not in pillars:
            done = Finished.restored(row, folder, report.settings)
            report = report if done is None else report.having(done)
    if report.finished:
        _write(folder, {}, report, earlier)
    for step in report.steps:
        if step in report.left:
            watch(step, 0.0)
            blocks = folder / _UNFINISHED / step.name
            settings = replace(report.settings, resume=str(blocks) if report.settings.full else None)
            begun, worked = time.perf_counter(), time.process_time()
            exhibit = step.make(settings, executor, partial(watch, step))
            files = exhibit.files()
            took = time.perf_counter() - begun, time.process_time() - worked
            report = report.having(Finished(step.pillar, exhibit, files, *took, settings.mark(step.pillar)))
            _write(folder, files, report, earlier)
            shutil.rmtree(blocks, ignore_errors=True)
        watch(step, 1.0)
        yield report
    with suppress(OSError):  # parts of other runs are in it, or it is not there
        (folder / _UNFINISHED).rmdir()


def _rows(folder: Path) -> list[dict[str, Any]]:
    """Return what the ``run.json`` of an earlier run says of experiments; nothing where there is none."""
    try:
        steps = _files.json_of(_files.content(folder / "run.json"))["steps"]
        rows = [{"sha256": {}, **row} for row in steps if row["name"] and row["pillar"]]
        return [row for row in rows if all(isinstance(row[name], kind) for name, kind in _KINDS.items())]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _write(folder: Path, files: Mapping[str, bytes], report: Report, earlier: list[dict[str, Any]]) -> None:
    """Write files and the report; then remove what earlier runs wrote, nobody changed and it lacks."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    summary = {"run.json": _files.json_bytes(report.document()), "report.html": report.html()}
    _files.write_all(folder, {**summary, **files}, held=True)  # which puts the last in its place first
    shown = {name for done in report.finished for name in done.files}
    for name, digest in (pair for row in earlier for pair in row["sha256"].items()):
        if name not in shown and _OURS.fullmatch(name):
            with suppress(OSError):
                if _digests({"": _files.content(folder / name)}) == {"": digest}:
                    (folder / name).unlink()
