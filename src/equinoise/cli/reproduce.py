"""``equinoise reproduce``: the experiments of all three papers, and a report to look at."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from equinoise.cli import common
from equinoise.cli.common import option, say

_COMPILING = "compiling (first use, some minutes in all)"
_PATIENCE = 0.6  # seconds that threads have to end after Ctrl-C
_SIZES = ": a minute or two, or the papers' sizes"
_Pillar = typer.Argument(
    metavar="PILLAR",
    help="efb, nvo, bias or all.",
    autocompletion=common.completing(lambda _: ("efb", "nvo", "bias", "all")),
)
_Csv = option("A CSV file for nvo, instead of built-in columns.", metavar="FILE")
_Column = option("Its column that is released.", metavar="NAME")
_Target = option("Another one, predicted from the first.", metavar="NAME")
_Out = option("Folder for report.html, run.json, tables/ and figures/.")


def command(
    context: typer.Context,
    which: Annotated[str, _Pillar] = "all",
    scale: Annotated[str, common.one_of("quick", "full", more=_SIZES)] = "quick",
    out: Annotated[Path, _Out] = Path("equinoise-report"),
    seed: common.Seed = 0,
    jobs: common.Jobs = None,
    csv: Annotated[Path | None, _Csv] = None,
    column: Annotated[str | None, _Column] = None,
    target: Annotated[str | None, _Target] = None,
    as_json: common.AsJson = False,
) -> None:
    """Do the experiments of the papers again, and write a report.

    Every published figure is shown next to ours. The report is whole after each experiment, so it can be
    opened while others run. After Ctrl-C the same command goes on where it was stopped: what is finished
    in the folder with the same settings is shown and not done again.
    """
    from equinoise.experiments import plan

    with common.refusing(context, path="--csv", values="--column") as (folder, threads):
        settings = plan.Settings(scale, seed, None if csv is None else str(csv), column, target)
        report = plan.plan(which, settings)
    if csv is not None:
        say("warning: the report shows the data of --csv and the noise scales, which a release keeps secret")
    with _threads(threads or _processors()) as (pool, driver):
        try:
            with _bars(report.steps) as watch:
                steps = plan.perform(report, folder, executor=pool, watch=watch)
                while done := _heard(driver.submit(next, steps, None)):
                    report = done
        except KeyboardInterrupt:
            if report.finished or settings.full:
                say("finished parts are kept: the same command goes on from them")
            raise
        finally:
            if report.finished:
                _print(report, folder, as_json=as_json)


def _heard(future: Future[Any]) -> Any:
    """Wait for a result, waking now and then: Ctrl-C just before an endless wait would not be heard."""
    while not wait([future], timeout=0.2).done:
        pass
    return future.result()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _threads(n: int) -> Iterator[tuple[Executor, Executor]]:
    """Open a pool for work, and a thread that hands it out: this one hears of Ctrl-C whatever they do.

    Threads that do not end soon after it, in the middle of compiling, end with the process.
    """
    pools = ThreadPoolExecutor(n), ThreadPoolExecutor(1)
    try:
        yield pools
    finally:
        interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        for pool in pools:
            pool.shutdown(wait=not interrupted, cancel_futures=True)
        ending = Thread(target=lambda: list(map(ThreadPoolExecutor.shutdown, pools)), daemon=True)
        ending.start()
        ending.join(_PATIENCE)
        if ending.is_alive():
            say("interrupted")
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(130)


@contextlib.contextmanager
def _bars(steps: tuple[Any, ...]) -> Iterator[Callable[[Any, float], None]]:
    """Show a bar for each experiment that has begun and one for all, on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda step, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from equinoise import _jit

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    plain: Any = {"console": Console(stderr=True), "redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, **plain) as bars:
        compiling = bars.add_task(_COMPILING, total=None, visible=False)
        whole = bars.add_task("all experiments", total=sum(step.seconds for step in steps))
        hidden: Any = {"total": 1.0, "visible": False, "start": False}
        lines = {step.name: bars.add_task(step.title, **hidden) for step in steps}
        shares = dict.fromkeys(lines, 0.0)

        def watch(step: Any, share: float) -> None:
            line = lines[step.name]
            if not bars.tasks[line].visible:
                bars.start_task(line)
            shares[step.name] = share
            bars.update(line, completed=share, visible=True)
            bars.update(whole, completed=sum(step.seconds * shares[step.name] for step in steps))

        with _jit.compiling(lambda begun: bars.update(compiling, visible=begun)):
            yield watch


def _print(report: Any, folder: Path, *, as_json: bool) -> None:
    if as_json:
        common.print_json(report.document())
        return
    from rich.markup import escape

    rows = []
    for done in report.finished:
        seconds = "kept" if done.kept else f"{done.seconds:.1f}"
        rows.append((done.exhibit.name, seconds, escape(done.exhibit.headline)))
    common.print_table(rows, "experiment", "seconds", last="what came out")
    if not report.complete:
        n = len(report.steps)
        print(f"Not done: {len(report.left)} of {n} experiments. The report holds the others.")
    print(f"Wrote {folder / 'report.html'}, and into {folder}: run.json, tables/ and figures/")
