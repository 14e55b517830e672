"""The runner: the same arrays whatever the blocks and the executor, and an orderly end whatever happens."""

from __future__ import annotations

import functools
import io
import multiprocessing
import os
import pickle
import pty
import queue
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

from equinoise import _progress, replicates

SOURCE = Path(__file__).resolve().parents[1] / "src"


def square(start, stop, *, power=2):
    numbers = np.arange(start, stop)
    return {"power": numbers**power, "pair": np.stack([numbers, -numbers], axis=1).astype(np.float32)}


def expected(n, power=2):
    numbers = np.arange(n)
    return {"power": numbers**power, "pair": np.stack([numbers, -numbers], axis=1).astype(np.float32)}


def same(result, wanted):
    assert list(result) == list(wanted)
    for key in wanted:
        assert result[key].dtype == wanted[key].dtype
        np.testing.assert_array_equal(result[key], wanted[key])


class Late(Executor):
    """Runs what it was given only once all was given, in an order of its own."""

    def __init__(self, n_tasks, seed):
        self.n_tasks, self.seed, self.waiting = n_tasks, seed, []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.waiting.append((future, fn, args, kwargs))
        if len(self.waiting) == self.n_tasks:
            random.Random(self.seed).shuffle(self.waiting)
            threading.Thread(target=self.work).start()
        return future

    def work(self):
        for future, fn, args, kwargs in self.waiting:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except Exception as error:
                    future.set_exception(error)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("block", [None, 1, 3, 100, 1000])
def test_threads_join_blocks_in_order(n, block):
    same(replicates.run(square, n, block=block), expected(n))


def test_tuples_stay_tuples():
    first, second = replicates.run(lambda start, stop: tuple(square(start, stop).values()), 11, block=4)
    same({"power": first, "pair": second}, expected(11))


forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def processes(n):
    """Forked, since the tasks of a test file cannot be imported by a new interpreter."""
    return ProcessPoolExecutor(n, mp_context=multiprocessing.get_context("fork"))


@forks
def test_processes_take_partials_and_stay_open():
    task = functools.partial(square, power=3)
    with processes(2) as pool:
        same(replicates.run(task, 23, block=5, executor=pool), expected(23, 3))
        assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize("seed", range(5))
def test_order_of_ending_does_not_matter(seed):
    same(replicates.run(square, 40, block=3, executor=Late(14, seed)), expected(40))


def test_users_threads_stay_open():
    with ThreadPoolExecutor(2) as pool:
        same(replicates.run(square, 9, block=2, executor=pool), expected(9))
        assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize(
    ("executor", "workers"), [(None, replicates.workers()), ("three", 3), ("unknown", 64)]
)
def test_default_blocks_keep_every_worker_busy(executor, workers):
    spans = []

    def task(start, stop):
        spans.append((start, stop))
        return square(start, stop)

    with ThreadPoolExecutor(3) as three:
        pool = {"three": three, "unknown": Eager()}.get(executor)
        same(replicates.run(task, 1000, executor=pool), expected(1000))
    largest = max(stop - start for start, stop in spans)
    assert largest == -(-1000 // (4 * workers))
    spans.clear()
    replicates.run(task, 50_000, executor=pool if executor == "unknown" else None)
    assert max(stop - start for start, stop in spans) <= 1024


def weigh(start, stop, *, ballast):
    return square(start, stop)


class Eager(Executor):
    given = 0

    def submit(self, fn, /, *args, **kwargs):
        self.given += 1
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("size", "n", "blocks"), [(0, 2560, 256), (2**24, 2560, 64), (2**27, 2560, 16), (2**27, 40_000, 16)]
)
def test_an_executor_that_may_hold_all_it_is_given_gets_large_tasks_a_few_times(
    size, n, blocks, resume, tmp_path
):
    task, pool = functools.partial(weigh, ballast=np.zeros(size, np.uint8)), Eager()
    how = {"executor": pool, "resume": tmp_path if resume else None}
    same(replicates.run(task, n, **how), expected(n))
    assert blocks - 1 <= pool.given <= blocks


class Own(Exception):
    pass


def test_an_exception_comes_out_as_it_is_and_stops_the_rest():
    error, ended = Own("as it is"), []
    both = threading.Barrier(2)

    def task(start, stop):
        if start < 2:
            both.wait(10)
        if start == 0:
            raise error
        for _ in range(10_000):
            time.sleep(0.001)
            replicates.tick()
        ended.append(start)
        return square(start, stop)

    begun = time.perf_counter()
    with ThreadPoolExecutor(2) as pool, pytest.raises(Own) as caught:
        replicates.run(task, 50, block=1, executor=pool)
    assert caught.value is error
    assert not ended
    assert time.perf_counter() - begun < 5


def test_a_task_may_raise_what_the_runner_uses():
    def task(start, stop):
        raise queue.Empty

    with pytest.raises(queue.Empty):
        replicates.run(task, 3)


def fails_in_the_middle(start, stop):
    if start <= 5 < stop:
        raise LookupError(5)
    return square(start, stop)


@forks
def test_an_exception_of_another_process_comes_out():
    with processes(2) as pool, pytest.raises(LookupError, match="5"):
        replicates.run(fails_in_the_middle, 30, block=2, executor=pool)


@forks
def test_a_task_that_does_not_pickle_is_an_error_not_a_hang():
    with processes(1) as pool, pytest.raises((pickle.PicklingError, AttributeError)):
        replicates.run(lambda start, stop: square(start, stop), 3, executor=pool)


def test_a_run_inside_a_task_ends_with_it():
    begun, inner = threading.Event(), []

    def sleeper(start, stop):
        begun.set()
        for _ in range(10_000):
            time.sleep(0.001)
            replicates.tick()
        return square(start, stop)

    def task(start, stop):
        if start == 0:
            try:
                return replicates.run(sleeper, 2)
            except BaseException as error:
                inner.append(type(error).__name__)
                raise
        assert begun.wait(10)
        raise Own

    with pytest.raises(Own):
        replicates.run(task, 2, block=1)
    assert inner == ["Cancelled"]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (lambda start, stop: np.zeros(stop - start), "tuple or a dict"),
        (lambda start, stop: (np.zeros(stop - start + 1),), r"array 0 of shape \(2,\)"),
        (lambda start, stop: {"a": np.zeros((stop - start, 1 + start))}, "array 'a' of shape"),
        (lambda start, stop: {"a": np.zeros(stop - start, int if start else float)}, "dtype float64"),
        (lambda start, stop: {"b" if start else "a": np.zeros(stop - start)}, r"the arrays \['a'\]"),
    ],
)
def test_arrays_that_do_not_match_are_refused(task, words):
    with pytest.raises((TypeError, ValueError), match=f"task must return .*{words}"):
        replicates.run(task, 4, block=2, executor=Eager())


def test_a_number_under_a_mask_is_no_result():
    def task(start, stop):
        return {"a": np.ma.masked_equal(np.arange(start, stop), 3)}

    with pytest.raises(
        ValueError, match=r"^task's array 'a' must have none missing, got a masked one at index 1$"
    ):
        replicates.run(task, 4, block=2, executor=Eager())
    assert replicates.run(task, 3)["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"task": 3}, TypeError, "task must be"),
        ({"n_replicates": 0}, ValueError, "n_replicates must be"),
        ({"n_replicates": 2.0}, TypeError, "n_replicates must be"),
        ({"block": 0}, ValueError, "block must be"),
        ({"executor": 4}, TypeError, "executor must"),
        ({"executor": ThreadPoolExecutor}, TypeError, "executor must"),
        ({"progress": 1}, TypeError, "progress must be"),
        ({"work": 0.0}, ValueError, "work must be"),
    ],
)
def test_wrong_arguments(changes, error, words):
    arguments = {"task": square, "n_replicates": 3} | changes
    with pytest.raises(error, match=words):
        replicates.run(arguments.pop("task"), arguments.pop("n_replicates"), **arguments)


def test_no_bar_off_a_terminal(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    same(replicates.run(square, 5, progress=True), expected(5))
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    same(replicates.run(square, 5, progress=True), expected(5))


def slowly(start, stop):
    for _ in range(4):
        replicates.tick(1.0)
        time.sleep(0.15)
    return square(start, stop)


def test_a_run_of_hours_is_foretold_where_there_is_no_bar(monkeypatch, capfd):
    monkeypatch.setattr(_progress, "_SOON", 0.1)
    for progress, work in ((False, 1e6), (True, 8.0)):
        replicates.run(slowly, 1, progress=progress, work=work)
    assert capfd.readouterr() == ("", "")
    for progress, named in ((True, "this"), ("squares", "squares")):
        replicates.run(slowly, 2, progress=progress, work=1e6)
        out, err = capfd.readouterr()
        assert out == "" and re.fullmatch(rf"equinoise: {named} takes about \d+ hours\n", err)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_may_be_closed_in_another_thread_and_the_next_one_is_shown(monkeypatch):
    def held():
        with replicates.showing("one"):
            yield

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    generator = held()
    next(generator)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(generator.close).result()
    with replicates.showing("another"):
        replicates.tick(1.0)
    assert "another" in sys.stderr.getvalue()


def test_ticks_move_the_bar_before_a_block_ends(monkeypatch):
    def task(start, stop):
        for _ in range(5):
            replicates.tick(10.0 * (stop - start))
            time.sleep(0.15)
        return square(start, stop)

    seen = []
    from rich.progress import Progress

    update = Progress.update
    monkeypatch.setattr(
        Progress,
        "update",
        lambda *a, completed, **k: (seen.append(completed), update(*a, completed=completed, **k)),
    )
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    same(replicates.run(task, 4, block=4, progress="a [b]ar", work=50.0), expected(4))
    assert seen == sorted(seen)
    assert seen[-1] == 200.0
    assert {40.0, 80.0, 120.0} & set(seen)
    assert "a [b]ar" in sys.stderr.getvalue()


@pytest.mark.parametrize("kind", [tuple, dict])
def test_ctrl_c_leaves_the_blocks_that_are_done_where_they_are_asked_for(kind):
    """Of blocks of two the third has ended, then the first; the others never do."""
    begun, ended, plain = threading.Event(), [], replicates._Joined.put

    def task(start, stop):
        if start == 4:
            begun.wait(60)
        while start == 0 and not ended:
            time.sleep(0.001)
        if start in (0, 4):
            return kind([(0, np.arange(start, stop))]) if kind is dict else (np.arange(start, stop),)
        begun.set()
        while True:
            replicates.tick()
            time.sleep(0.001)

    def put(self, *block):
        plain(self, *block)
        ended.append(block)
        if len(ended) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replicates._Joined, "put", put)
        with ThreadPoolExecutor(4) as pool:
            found = replicates.run(task, range(8), block=2, executor=pool, partly=True)
    assert found[0].tolist() == [0, 1, 4, 5] and type(found) is kind


@pytest.mark.parametrize("options", [{}, {"partly": True}])
def test_ctrl_c_before_any_block_is_done_is_one(options):
    def task(start, stop):
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        replicates.run(task, 4, executor=pool, **options)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    from equinoise import _progress, replicates
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def task(start, stop):
        os.write(1, b"begun\\n")
        for _ in range(6000):
            time.sleep(0.01)
            replicates.tick(1)
        print("ended", flush=True)
        return (np.zeros(stop - start),)
    try:
        replicates.run(task, 20, block=1, progress=True, work=6000)
    except KeyboardInterrupt:
        for thread in threading.enumerate():  # one that was just being started is not waited for
            if thread is not threading.current_thread():
                thread.join(1)
        print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT and opens a terminal")
def test_ctrl_c_stops_tasks_on_threads():
    master, terminal = pty.openpty()
    script = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TERM": "xterm"}
    with subprocess.Popen(
        script, stdout=subprocess.PIPE, stderr=terminal, env=environment, text=True
    ) as child:
        os.close(terminal)
        watchdog = threading.Timer(60, child.kill)
        watchdog.start()
        assert child.stdout.readline() == "begun\n"
        begun = time.perf_counter()
        child.send_signal(signal.SIGINT)
        lines = child.stdout.read().split("\n")
        assert child.wait() == 0
        watchdog.cancel()
    took = time.perf_counter() - begun
    screen = os.read(master, 100_000).decode()
    os.close(master)
    assert "interrupted 1" in lines
    assert "ended" not in lines
    assert took < 2.0
    assert "%" in screen
    assert "Traceback" not in screen


LOCKED = """
    import signal, sys, threading, time
    import numpy as np
    from equinoise import _progress, replicates
    signal.signal(signal.SIGINT, signal.default_int_handler)
    enter, pressed = threading.Condition.__enter__, []
    def take(self):
        taken = enter(self)
        if sys._getframe(2).f_code.co_name == "start" and not pressed:  # of a thread that waits for this lock
            pressed.append(signal.raise_signal(signal.SIGINT))
        return taken
    def task(start, stop):
        while True:
            time.sleep(0.01)
            replicates.tick()
    threading.Condition.__enter__ = take
    try:
        replicates.run(task, 4, block=1)
    except KeyboardInterrupt:
        print("interrupted", len(pressed), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_while_a_thread_starts_leaves_no_lock_behind():
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    script = [sys.executable, "-c", textwrap.dedent(LOCKED)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 1\n", "")


def test_a_handler_of_ctrl_c_that_goes_on_is_kept_and_called(monkeypatch):
    heard = []

    def handler(number, frame):
        heard.append(number)

    def task(start, stop):
        if start == 0:
            signal.raise_signal(signal.SIGINT)
        return square(start, stop)

    before = signal.signal(signal.SIGINT, handler)
    try:
        same(replicates.run(task, 4, block=1), expected(4))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


class Refuses(Eager):
    """Does three tasks and then is gone."""

    def __init__(self):
        self.left = 3

    def submit(self, fn, /, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise Own("gone")
        return super().submit(fn, *args, **kwargs)


def test_an_executor_that_is_gone_leaves_the_blocks_that_it_did(tmp_path):
    with pytest.raises(Own, match="gone"):
        replicates.run(square, 10, block=1, executor=Refuses(), resume=tmp_path)
    assert len([*tmp_path.glob("*.npz")]) == 3
    same(replicates.run(square, 10, block=1, resume=tmp_path), expected(10))


def test_blocks_that_end_while_another_fails_are_kept(monkeypatch):
    """The first block fails while the second is at work, which hears nothing of it."""
    both, failed, kept = threading.Barrier(2), threading.Event(), []

    def task(start, stop):
        both.wait(10)
        if start == 0:
            failed.set()
            raise Own
        failed.wait(10)
        time.sleep(0.3)  # until the run has seen the failure
        return square(start, stop)

    monkeypatch.setattr(replicates._Joined, "put", lambda joined, *block: kept.append(block[:2]))
    with ThreadPoolExecutor(2) as pool, pytest.raises(Own):
        replicates.run(task, 2, block=1, executor=pool)
    assert kept == [(1, 2)]


# Recipes


class Remote:
    """What ``ray.remote`` makes of a function, and of nothing else; tasks are done at once."""

    def __init__(self, function):
        if not isinstance(function, FunctionType):
            raise TypeError("The @ray.remote decorator must be applied to either a function or a class.")
        self.function = function

    def remote(self, *args):
        made = Future()
        made.set_result(self.function(*pickle.loads(pickle.dumps(args))))
        return SimpleNamespace(future=lambda: made)


def test_the_recipe_for_ray_takes_what_is_submitted(monkeypatch):
    text = (SOURCE.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    recipe = re.search(r"## Ray\n.*?```python\n(.*?)```", text, re.DOTALL)[1]
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(remote=Remote))
    names = {}
    exec(recipe, names)
    task = functools.partial(square, power=3)
    found = replicates.run(task, 40, block=7, executor=names["RayExecutor"]())
    np.testing.assert_array_equal(found["power"], expected(40, 3)["power"])
