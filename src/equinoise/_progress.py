"""How a run says what it has done, and hears that it is to stop: ticks of tasks, and a bar on a terminal."""

import contextlib
import contextvars
import math
import sys
import threading
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass

from equinoise import _checks
from equinoise._typing import Any, Callable, Iterator

__all__ = ["showing", "tick"]

_SOON = 5.0  # seconds of work that tell how long the rest takes


class Cancelled(BaseException):
    """Raised by :func:`tick` in a task whose run was given up; no task should catch it."""


@dataclass(slots=True)
class Watch:
    """What one block of this process tells its run (work done), and hears from it (stop)."""

    stop: threading.Event
    done: float = 0.0
    show: Callable[[float], None] = lambda done: None
    over: bool = False  # and left behind in a context that was not there to be reset

    def __bool__(self) -> bool:
        return not self.over

    def tick(self, work: float) -> None:
        self.done += work
        self.show(self.done)
        if self.stop.is_set():
            raise Cancelled


watching: contextvars.ContextVar[Watch | None] = contextvars.ContextVar("equinoise_watch", default=None)


def tick(work: float = 0.0) -> None:
    """Tell the run that a task works for how much it has done, and let the run stop the task.

    A long task calls this between two kernels, every twentieth of a second or so, with the `work` since the
    last call, in the units of the run's. It moves the progress bar, and raises where the user pressed Ctrl-C
    or another block failed. In other processes, and outside of a run, it does nothing.

    Examples
    --------
    >>> tick(1000)
    """
    if watch := watching.get():
        watch.tick(work)


def watched(task: Callable[[int, int], Any], start: int, stop: int, watch: Watch) -> Any:
    """Do a block of a task, whose ticks the run of `watch` hears."""
    token = watching.set(watch)
    try:
        tick()
        return task(start, stop)
    except Cancelled:
        raise CancelledError from None  # nobody waits for this block any more
    finally:
        watching.reset(token)


@contextlib.contextmanager
def showing(progress: bool | str, work: float = 1.0) -> Iterator[None]:
    """Show a bar of what one long task, the block of this ``with``, says by :func:`tick`.

    As :func:`equinoise.replicates.run` does, but in this thread, in which Ctrl-C is raised. Inside of a run
    its ticks are that's.

    Examples
    --------
    >>> with showing("halves", work=2.0):
    ...     tick(1.0)
    """
    shown, label = named(progress)
    if not shown or watching.get():
        yield
        return
    with bar_of(shown, label, work) as show:
        watch = Watch(threading.Event(), show=show)
        token = watching.set(watch)
        try:
            yield
        finally:
            watch.over = True
            with contextlib.suppress(ValueError):  # a generator was closed in another context
                watching.reset(token)


def named(progress: bool | str) -> tuple[bool, str]:
    """Return whether a bar is asked for, and its name."""
    return (True, progress) if isinstance(progress, str) else (_checks.flag("progress", progress), "")


@contextlib.contextmanager
def bar_of(shown: bool, label: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the work done so far and shows it; off a terminal it may say a line."""
    if not (shown and sys.stderr is not None and sys.stderr.isatty()):
        yield _foretold(label, total) if shown and sys.stderr is not None else lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    quiet: Any = {"redirect_stdout": False, "redirect_stderr": False}  # what a task prints is its own
    with Progress(*columns, console=Console(stderr=True), transient=not label, **quiet) as bar:
        line = bar.add_task(label, total=total)
        yield lambda done: bar.update(line, completed=min(done, total))


def _foretold(label: str, total: float) -> Callable[[float], None]:
    """Return a function that takes the work done so far, and soon says once if the rest takes hours."""
    begun, first = time.monotonic(), -1.0

    def show(done: float) -> None:
        nonlocal first
        first = done if first < 0.0 else first  # of an earlier run
        if (took := time.monotonic() - begun) > _SOON and done > first:
            hours, first = took / 3600.0 * (total - done) / (done - first), math.inf
            if hours > 1.0:
                with contextlib.suppress(OSError):
                    print(f"equinoise: {label or 'this'} takes about {hours:,.0f} hours", file=sys.stderr)

    return show
