"""``equinoise reproduce``: the experiments of all three papers, and a report to look at."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equinoise.cli.common import console, refusing, say

if TYPE_CHECKING:
    from equinoise.experiments.plan import Report, Step

__all__ = ["command"]

_OPTIONS = {
    "which": "PILLAR",
    "path": "--csv",
    "values": "--column",
    **{name: f"--{name}" for name in ("scale", "seed", "jobs", "csv", "column", "target", "out")},
}


def command(
    which: Annotated[str, typer.Argument(metavar="PILLAR", help="efb, nvo, bias or all.")] = "all",
    scale: Annotated[
        str, typer.Option(help="quick takes a minute or two, full the papers' sizes.")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for report.html, run.json, tables/ and figures/.")] = Path(
        "equinoise-report"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one a processor.")] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A CSV file for nvo, in place of built-in columns.")
    ] = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="Its column that is released.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another one, predicted from the first.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json in place of the table.")] = False,
) -> None:
    """Do the experiments of the papers again, and write a report.

    Every published figure stands beside ours. The report is whole after each experiment, so it can be
    opened while others run, or after Ctrl-C. At the full scale the same command goes on where it was
    stopped.
    """
    from concurrent.futures import ThreadPoolExecutor

    from equinoise import _checks, _files
    from equinoise.experiments import plan

    with refusing(_OPTIONS):
        folder = _files.writable_folder("out", out)
        threads = _processors() if jobs is None else _checks.integer("jobs", jobs, minimum=1)
        settings = plan.Settings(scale, seed, None if csv is None else str(csv), column, target)
        report = plan.plan(which, settings)
    if csv is not None:
        say("warning: the report shows the data of --csv and the noise scales, which a release keeps secret")
    try:
        with ThreadPoolExecutor(threads) as pool, _bars(report.steps) as watch:
            for done in plan.perform(report, folder, executor=pool, watch=watch):
                report = done
    except KeyboardInterrupt:
        if settings.full:
            say("finished parts are kept: the same command goes on from them")
        raise
    finally:
        if report.finished:
            _print(report, folder, as_json=as_json)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _bars(steps: tuple[Step, ...]) -> Iterator[Callable[[Step, float], None]]:
    """Show a bar for each experiment that has begun and one for all, on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda step, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False
    ) as bars:
        whole = bars.add_task("all experiments", total=sum(step.seconds for step in steps))
        lines = {
            step.name: bars.add_task(step.title, total=1.0, visible=False, start=False) for step in steps
        }
        shares = dict.fromkeys(lines, 0.0)

        def watch(step: Step, share: float) -> None:
            line = lines[step.name]
            if not bars.tasks[line].visible:
                bars.start_task(line)
            shares[step.name] = share
            bars.update(line, completed=share, visible=True)
            bars.update(whole, completed=sum(step.seconds * shares[step.name] for step in steps))

        yield watch


def _print(report: Report, folder: Path, *, as_json: bool) -> None:
    if as_json:
        json.dump(report.document(), sys.stdout, indent=2)
        print()
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("experiment", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("what came out")
    for done in report.finished:
        table.add_row(done.step.name, f"{done.seconds:.1f}", escape(done.exhibit.headline))
    console().print(table)
    left = len(report.steps) - len(report.finished)
    if left:
        print(f"Not done: {left} of {len(report.steps)} experiments. The report holds the others.")
    print(f"Wrote {folder / 'report.html'}, and into {folder}: run.json, tables/ and figures/")
