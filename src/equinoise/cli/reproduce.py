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
from equinoise.cli.common import argument, one_of, option, say

_PATIENCE = 0.6  # seconds that threads have to end after Ctrl-C
_PILLARS = ("efb", "nvo", "bias", "all")


def command(
    context: typer.Context,
    which: Annotated[str, argument("efb, nvo, bias or all.", "PILLAR", lambda _: _PILLARS)] = "all",
    scale: Annotated[str, one_of("quick", "full", more=": a minute or two, or the papers' sizes")] = "quick",
    out: Annotated[Path, option("Folder for report.html, run.json and the rest.")] = Path("equinoise-report"),
    seed: common.Seed = 0,
    jobs: common.Jobs = None,
    csv: Annotated[Path | None, option("A CSV file for nvo, not built-in columns.", metavar="FILE")] = None,
    column: Annotated[str | None, option("Its column that is released.", metavar="NAME")] = None,
    target: Annotated[str | None, option("Another one, predicted from the first.", metavar="NAME")] = None,
    as_json: common.AsJson = False,
) -> None:
    """Do the experiments of the papers again, and write a report.

    Every published figure is shown next to ours. The report is whole after each experiment. After Ctrl-C the
    same command goes on: what is finished in the folder with the same settings is shown and not done again.
    """
    from equinoise import replicates
    from equinoise.experiments import plan

    with common.refusing(context, path="--csv", values="--column") as (folder, _):
        settings = plan.Settings(scale, seed, None if csv is None else str(csv), column, target)
        report = plan.plan(which, settings)
    if csv is not None:
        say("warning: the report shows the data of --csv and the noise scales, which a release keeps secret")
    with _threads(jobs or replicates.workers()) as (pool, driver):
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
            if report.finished and as_json:
                common.print_json(report.document())
            elif report.finished:
                _print(report, folder)


def _heard(future: Future[Any]) -> Any:
    """Wait for a result, waking now and then: Ctrl-C just before an endless wait would not be heard."""
    while not wait([future], timeout=0.2).done:
        pass
    return future.result()


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
    """Show a bar for each experiment that has begun and one for all; a line where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda step, share: None if share else say(f"doing {step.name}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from equinoise import _jit

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    plain: Any = {"console": Console(stderr=True), "redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, **plain) as bars:
        compiling = bars.add_task("compiling (first use, some minutes in all)", total=None, visible=False)
        whole = bars.add_task("all experiments", total=sum(step.seconds for step in steps))
        lines = {step: bars.add_task(step.title, total=1.0, visible=False, start=False) for step in steps}

        def watch(step: Any, share: float) -> None:
            bars.start_task(lines[step])
            bars.update(lines[step], completed=share, visible=True)
            done = sum(each.seconds * bars.tasks[line].completed for each, line in lines.items())
            bars.update(whole, completed=done)

        with _jit.compiling(lambda begun: bars.update(compiling, visible=begun)):
            yield watch


def _print(report: Any, folder: Path) -> None:
    took = [(done.exhibit, "kept" if done.kept else f"{done.seconds:.1f}") for done in report.finished]
    rows = [(exhibit.name, seconds, exhibit.headline) for exhibit, seconds in took]
    common.print_table(rows, ("experiment", "seconds", "what came out"), ("", "s", ""))
    if not report.complete:
        missing, n = len(report.left), len(report.steps)
        print(f"Not done: {missing} of {n} experiments. The report holds the others.")
    print(f"Wrote {folder / 'report.html'}, and into {folder}: run.json, tables/ and figures/")
