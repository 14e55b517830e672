"""One runner for everything that is repeated: blocks of replicates on threads or on any executor.

A *task* is a function of the replicates ``start`` to ``stop - 1``, and of nothing else (random numbers have
addresses, see :mod:`equinoise._random`), so neither blocks nor executors nor the order in which blocks end
can change a result. Kernels release the GIL: threads are enough on one machine.
"""

import contextlib
import os
import pickle
import queue
import signal
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait

import numpy as np

from equinoise import _checks
from equinoise._checkpoint import Blocks, merge
from equinoise._progress import Watch, bar_of, named, showing, tick, watched, watching
from equinoise._results import check_memory, check_work
from equinoise._sweep import Sweep, sweep
from equinoise._typing import Any, Array, Callable, Iterator, TypeVar

__all__ = ["Sweep", "merge", "run", "showing", "sweep", "tick"]

Arrays = TypeVar("Arrays", tuple[Array, ...], dict[str, Array])

_LARGEST_BLOCK = 1024  # results of a block are copied as a whole
_BLOCKS_A_WORKER = 4  # more would cost calls, fewer would leave workers idle at the end
_FINER = 8  # times as many where finished blocks are kept, so that a kill loses little
_UNKNOWN_WORKERS = 64  # assumed of an executor that does not say
_SENT = 2**30  # bytes of tasks that such a one is given, all of which it may hold at once
_LEAST = 16  # blocks of them, however large
_POLL = 0.1  # seconds between two looks at progress and cancellation


def run(
    task: Callable[[int, int], Arrays],
    n_replicates: int | range,
    *,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | os.PathLike[str] | None = None,
    work: float = 1.0,
    partly: bool = False,
) -> Arrays:
    """Run a task over all replicates, block by block, and join what the blocks return, in order.

    TypeError or ValueError for wrong arguments, a folder of another run, and blocks that do not fit together.
    An exception of a task is raised as it is, after the other blocks were cancelled. So is Ctrl-C; blocks on
    threads of this process then stop at their next :func:`tick`.

    Parameters
    ----------
    task : callable
        ``task(start, stop)`` returns a tuple or a dict of arrays for the replicates ``start`` to
        ``stop - 1``, one entry of the leading axis each. For other processes it must pickle: a function of
        a module, or a :func:`functools.partial` of one.
    n_replicates : int or range
        At least 1. A range is a slice of them, such as ``range(300, 400)``: the same bits as in a whole run.
    block : int, optional
        Replicates of one call, at most. By default about four blocks a worker, and at most 1024; more, of a
        large task, for an executor that does not say how many workers it has.
    executor : concurrent.futures.Executor, optional
        Where blocks run: a process pool, Dask's ``Client.get_executor()``, MPI's pool. It is only submitted
        to, and stays open. By default threads of this process, as many as it has processors.
    progress : bool or str
        Whether to show a bar, on stderr and only where that is a terminal; elsewhere a line says how long it
        takes, if hours. A string also names the bar.
    resume : path, optional
        A folder for finished blocks, each kept whole as it ends. The same call started again, with any
        executor or blocks and as many replicates as one likes, goes on from them to the same bits.
    work : float
        Of one replicate in the units of :func:`tick`; without ticks it counts when a block ends.
    partly : bool
        Whether Ctrl-C ends it with the replicates of the blocks that are done, in order, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> def squares(start, stop):
    ...     return {"square": np.arange(start, stop) ** 2}
    >>> run(squares, 5, block=2)
    {'square': array([ 0,  1,  4,  9, 16])}
    """
    if not callable(task):
        raise TypeError(f"task must be a function of (start, stop), got {_checks.shown(task)}")
    n = len(span := checked_span(n_replicates))
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {_checks.shown(executor)}")
    shown, label = named(progress)
    check_work(n, work := _checks.number("work", work, 0.0, open_low=True))
    if block is None:
        block = _block_of(n, task, executor, kept=resume is not None)
    block = _checks.integer("block", block, minimum=1)
    joined, kept = _Joined(span), None if resume is None else Blocks(resume, task)
    gaps = [(span.start, span.stop)] if kept is None else kept.missing(span, joined.put)
    spans = [(start, min(start + block, end)) for first, end in gaps for start in range(first, end, block)]
    known = n - sum(stop - start for start, stop in spans)

    def keep(start: int, stop: int, arrays: Any) -> None:
        joined.put(start, stop, arrays)
        if kept is not None:
            kept.put(start, stop, arrays)

    if executor is None and len(spans) == 1 and not shown and not watching.get():
        keep(*spans[0], task(*spans[0]))  # to start a thread takes 0.2 ms
        return joined.arrays  # type: ignore[return-value]
    threads = ThreadPoolExecutor(max(1, min(workers(), len(spans))), thread_name_prefix="equinoise")
    where = threads if executor is None else contextlib.nullcontext(executor)
    with _ctrl_c(executor or threads) as look, where as pool, bar_of(shown, label, n * work) as bar:

        def show(done: int, ticked: float) -> None:
            look()
            bar((known + done) * work + ticked)

        try:
            _run_blocks(task, pool, spans, keep, show)
        except KeyboardInterrupt:
            if not (partly and joined.spans):
                raise
            joined.shorten()
    return joined.arrays  # type: ignore[return-value]


def checked_span(n_replicates: int | range) -> range:
    """Return the replicates that a number, or a range of consecutive ones, stands for."""
    span = n_replicates
    if not isinstance(span, range):
        span = range(_checks.integer("n_replicates", n_replicates, 1, _checks.MOST))
    elif span.step != 1 or not 0 <= span.start < span.stop <= _checks.MOST:
        what = f"a range of consecutive ones up to {_checks.MOST}"
        raise ValueError(f"n_replicates must be {what}, got {_checks.shown(n_replicates)}")
    check_memory(len(span), 1)
    return span


def workers(executor: Executor | None = None) -> int:
    """Return how many tasks an executor does at a time, or how many threads this process may use."""
    if executor is not None:
        known = getattr(executor, "_max_workers", None)
        return known if isinstance(known, int) and known > 0 else _UNKNOWN_WORKERS
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run_blocks(
    task: Callable[[int, int], Any],
    pool: Executor,
    spans: list[tuple[int, int]],
    keep: Callable[[int, int, Any], None],
    show: Callable[[int, float], None],
) -> None:
    """Give each block's arrays to `keep` as it ends; whatever is left when something raises is cancelled."""
    here = _here(pool)
    stopping = threading.Event()
    ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    running: dict[Future[Any], tuple[int, int, Watch]] = {}
    waiting = iter(spans)
    finished, due = 0, 0.0
    try:
        while (span := next(waiting, None)) or running:
            tick()  # a run inside a task of another run ends with that one
            if span:
                watch = Watch(stopping)
                future: Future[Any] = pool.submit(*(watched, task, *span, watch) if here else (task, *span))
                running[future] = (*span, watch)
                future.add_done_callback(ended.put)
            done = None
            with contextlib.suppress(queue.Empty):  # wait for a block to end, but not for long
                done = ended.get(timeout=0.0 if span else _POLL)
            if done is not None:
                start, stop, _ = running.pop(done)
                keep(start, stop, done.result())
                finished += stop - start
            if time.monotonic() >= due:
                show(finished, sum(watch.done for *_, watch in running.values()))
                due = time.monotonic() + _POLL
        show(finished, 0.0)
    finally:
        stopping.set()
        busy = [future for future in running if not future.cancel()]
        if here:
            wait(busy)
        for future, (start, stop, _) in running.items():  # some may be done that nobody has looked at
            if future.done() and not future.cancelled() and future.exception() is None:
                with contextlib.suppress(Exception):  # another one is on its way
                    keep(start, stop, future.result())


def _block_of(n: int, task: Callable[[int, int], Any], executor: Executor | None, *, kept: bool) -> int:
    """Return how many replicates keep all workers busy, and more where all of large tasks may be held."""
    known = executor is None or hasattr(executor, "_max_workers")
    blocks = _BLOCKS_A_WORKER * workers(executor) * (_FINER if kept and known else 1)
    block = min(_LARGEST_BLOCK, -(-n // blocks))
    with contextlib.suppress(Exception):  # where only the executor knows how a task is pickled
        if not known:
            size = len(pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            block = max(block, -(-n // max(_LEAST, _SENT // size)))
    return block


def _here(pool: Executor) -> bool:
    """Return whether tasks see our memory, which those of a subclass may not."""
    return type(pool) is ThreadPoolExecutor


@contextlib.contextmanager
def _ctrl_c(pool: Executor) -> Iterator[Callable[[], object]]:
    """Yield a function that does what Ctrl-C does, if it was pressed; pressed again, it is done at once.

    Raised wherever the interpreter is, it may leave a lock of `threading` held, for which a thread then
    waits for ever. Processes that a pool forks shall not hear it so.
    """
    before = signal.getsignal(signal.SIGINT)
    if not (_here(pool) and threading.current_thread() is threading.main_thread() and callable(before)):
        yield lambda: None
        return
    pressed = list[int]()

    def hear(number: int, _: Any) -> None:
        signal.signal(signal.SIGINT, before)
        pressed.append(number)

    def look() -> None:
        if pressed:
            before(pressed.pop(), None)

    signal.signal(signal.SIGINT, hear)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)
    look()


class _Joined:
    """Arrays for a span of replicates, filled block by block; a block's own arrays can go at once."""

    def __init__(self, span: range) -> None:
        self.span, self.spans = span, list[tuple[int, int]]()
        self.arrays: tuple[Array, ...] | dict[str, Array] | None = None

    def put(self, start: int, stop: int, block: Any) -> None:
        """Copy a block's arrays to their replicates, or refuse arrays that are not like the others'."""
        if not isinstance(block, tuple | dict):
            raise TypeError(f"task must return a tuple or a dict of arrays, got {type(block).__name__}")
        given = {k: np.asarray(_checks.present(f"task's array {k!r}", a)) for k, a in _items(block).items()}
        if self.arrays is None:
            whole = [*given.values()]
            if stop - start < len(self.span):  # a single block needs no copy
                whole = [np.empty((len(self.span), *a.shape[1:]), a.dtype) for a in whole]
            self.arrays = tuple(whole) if isinstance(block, tuple) else dict(zip(given, whole, strict=True))
        joined = _items(self.arrays)
        if joined.keys() != given.keys():
            found = _checks.shown([*given])
            raise ValueError(f"task must return the arrays {[*joined]} for every block, got {found}")
        for key, array in given.items():
            wanted = (stop - start, *joined[key].shape[1:])
            if array.shape != wanted or array.dtype != joined[key].dtype:
                what = f"array {key!r} of shape {wanted} and dtype {joined[key].dtype} for the replicates"
                got = f"{array.shape} and {array.dtype}"
                raise ValueError(f"task must return {what} {start} to {stop - 1}, got {got}")
            if joined[key] is not array:
                joined[key][start - self.span.start : stop - self.span.start] = array
        self.spans.append((start, stop))

    def shorten(self) -> None:
        """Leave out the replicates that no block has filled."""
        rows = np.concatenate([np.arange(*span) for span in sorted(self.spans)]) - self.span.start
        whole = {key: array[rows] for key, array in _items(self.arrays or {}).items()}
        self.arrays = tuple(whole.values()) if isinstance(self.arrays, tuple) else whole


def _items(arrays: tuple[Array, ...] | dict[str, Array]) -> dict[Any, Array]:
    return arrays if isinstance(arrays, dict) else dict(enumerate(arrays))
