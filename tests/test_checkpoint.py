"""Kept blocks: the same bits after a kill, and no block of another run."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from equinoise import _checkpoint, _files, bandits, efb, games, replicates
from equinoise._checkpoint import fingerprint, kept_as

SOURCE = Path(__file__).resolve().parents[1] / "src"


class Parts(NamedTuple):
    numbers: np.ndarray
    power: float = 2.0


@dataclass(frozen=True)
class Whole:
    parts: Parts
    name: str | None = None


@kept_as("task")
def task(whole, start, stop):
    return {"value": np.arange(start, stop) ** whole.parts.power + whole.parts.numbers[0]}


@kept_as("pair")
def pair(_, start, stop):
    return np.arange(start, stop), np.zeros((stop - start, 2), dtype=np.float32)


def made(value=1.0, function=task, **options):
    return functools.partial(function, Whole(Parts(np.array([value]), **options)))


def counting(calls, function):
    def counted(whole, start, stop):
        calls.append((start, stop))
        return function(whole, start, stop)

    return kept_as(function._kept_as)(counted)


@pytest.mark.parametrize("function", [task, pair])
def test_only_gaps_are_run_again_and_the_bits_are_the_same(tmp_path, function):
    calls = []
    counted = functools.partial(counting(calls, function), Whole(Parts(np.array([1.0]))))
    whole = replicates.run(counted, 20, block=3, resume=tmp_path / "kept")
    for name in ("replicates-000000003-000000006.npz", "replicates-000000018-000000020.npz"):
        (tmp_path / "kept" / name).unlink()
    calls.clear()
    again = replicates.run(counted, 20, block=2, resume=tmp_path / "kept")
    assert sorted(calls) == [(3, 5), (5, 6), (18, 20)]
    for one, other in zip(*(x.values() if isinstance(x, dict) else x for x in (whole, again)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert other.flags.writeable
    calls.clear()
    replicates.run(counted, 20, resume=tmp_path / "kept")
    assert calls == []


@pytest.mark.parametrize("n", [1, 7, 9, 10, 25])
def test_more_or_fewer_replicates_use_what_is_there(tmp_path, n):
    replicates.run(made(), 10, block=4, resume=tmp_path)
    calls = []
    result = replicates.run(
        functools.partial(counting(calls, task), *made().args), n, block=100, resume=tmp_path
    )
    np.testing.assert_array_equal(result["value"], replicates.run(made(), n)["value"])
    assert calls == ([(10, 25)] if n == 25 else [])


def test_overlapping_blocks_of_two_sizes(tmp_path):
    replicates.run(made(), 10, block=4, resume=tmp_path / "a")
    replicates.run(made(), 10, block=3, resume=tmp_path / "b")
    (tmp_path / "a/replicates-000000004-000000008.npz").unlink()
    for path in (tmp_path / "b").glob("*.npz"):
        shutil.copy(path, tmp_path / "a" / path.name)
    (tmp_path / "a/replicates-000000006-000000009.npz").unlink()
    calls = []
    counted = functools.partial(counting(calls, task), *made().args)
    result = replicates.run(counted, 10, block=100, resume=tmp_path / "a")
    assert calls == [(6, 8)]
    np.testing.assert_array_equal(result["value"], replicates.run(made(), 10)["value"])


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nothing", None])
def test_a_damaged_block_is_run_again(tmp_path, damage):
    whole = replicates.run(made(), 9, block=3, resume=tmp_path)
    path = tmp_path / "replicates-000000003-000000006.npz"
    path.write_bytes(path.read_bytes()[:-30] if damage is None else damage)
    calls = []
    again = replicates.run(functools.partial(counting(calls, task), *made().args), 9, resume=tmp_path)
    assert {(min(c), max(c)) for c in calls} <= {(s, e) for s in range(3, 6) for e in range(4, 7)}
    assert sum(stop - start for start, stop in calls) == 3
    np.testing.assert_array_equal(again["value"], whole["value"])


def test_a_block_under_another_name_is_run_again(tmp_path):
    replicates.run(made(), 9, block=3, resume=tmp_path)
    path = tmp_path / "replicates-000000003-000000006.npz"
    shutil.copy(tmp_path / "replicates-000000000-000000003.npz", path)
    again = replicates.run(made(), 9, resume=tmp_path)
    np.testing.assert_array_equal(again["value"], replicates.run(made(), 9)["value"])


def test_a_block_of_another_run_is_run_again(tmp_path):
    for value, folder in ((1.0, "mine"), (2.0, "other")):
        replicates.run(made(value), 9, block=3, resume=tmp_path / folder)
    name = "replicates-000000003-000000006.npz"
    shutil.copy(tmp_path / "other" / name, tmp_path / "mine" / name)
    shutil.copytree(tmp_path / "mine", tmp_path / "slice")
    with pytest.raises(ValueError, match="replicates 3 to 5 are in none"):
        replicates.merge([tmp_path / "slice"], tmp_path / "merged")
    again = replicates.run(made(), 9, resume=tmp_path / "mine")
    np.testing.assert_array_equal(again["value"], replicates.run(made(), 9)["value"])


@pytest.mark.parametrize("other", [made(2.0), made(power=3.0), made(function=pair)])
def test_a_folder_of_another_run_is_refused_and_left_alone(tmp_path, other):
    replicates.run(made(), 4, resume=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"^resume must be a folder of this very run, got '.*' of another"):
        replicates.run(other, 4, resume=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"value": 2.0}, "numbers differs$"),
        ({"power": 3.0}, "power is 2.0 there and 3.0 here$"),
        ({"name": "x"}, "name differs$"),
        ({"value": 2.0, "power": 3.0}, "numbers differs; power is 2.0 there and 3.0 here$"),
        ({"function": pair}, "function is '.*task' there and '.*pair' here$"),
    ],
)
def test_a_refusal_names_what_differs(tmp_path, changed, words):
    replicates.run(described(), 4, resume=tmp_path)
    with pytest.raises(ValueError, match=words):
        replicates.run(described(**changed), 4, resume=tmp_path)


def described(value=1.0, function=task, name=None, **options):
    parts = Parts(np.array([value]), **options)
    return functools.partial(function, Whole(parts, name))


def test_a_refusal_names_arguments_of_simulations(tmp_path):
    tree, environment = games.load("kuhn_poker")
    same = {"horizon": 9, "n_replicates": 2, "epsilon": 1.0}
    bandits.simulate("private-ucb", [0.5, 0.25], resume=tmp_path / "bandit", **same)
    efb.simulate(tree, environment, resume=tmp_path / "efb", **same)
    for name, more, words in (
        ("bandit", {"epsilon": 2.0}, "epsilon is 1.0 there and 2.0 here$"),
        ("bandit", {"seed": 1}, r"seed differs \(None is a new seed every time\)$"),
        ("bandit", {"delay": 1}, "delay differs$"),
        ("bandit", {"reward": "gaussian"}, "reward is 0 there and 1 here$"),
        ("bandit", {"counter": "binary"}, "options differs|counter is 'k-ary' there and 'binary' here"),
        ("efb", {"epsilon": 2.0}, "another: epsilon is 1.0 there and 2.0 here; "),
        ("efb", {"horizon": 8}, "another: .*horizon is 9 there and 8 here"),
        ("efb", {"seed": None}, "seed differs"),
    ):
        with pytest.raises(ValueError, match=words):
            if name == "bandit":
                bandits.simulate("private-ucb", [0.5, 0.25], resume=tmp_path / name, **same | more)
            else:
                efb.simulate(tree, environment, resume=tmp_path / name, **same | more)


def test_another_version_is_named_alone_and_damage_is_said(tmp_path, monkeypatch):
    replicates.run(made(), 4, resume=tmp_path)
    with monkeypatch.context() as other:
        other.setattr(_checkpoint, "__version__", "99.0")
        with pytest.raises(ValueError, match=r"of another: version is '.*' there and '99.0' here$"):
            replicates.run(made(), 4, resume=tmp_path)
    for content in (b"", b"[]", b'{"kind": 1}', b'{"kind": 1, "run": 2, "parts": 3}', b"\xff"):
        (tmp_path / "run.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"its run\.json is damaged$"):
            replicates.run(made(), 4, resume=tmp_path)
    (tmp_path / "run.json").write_text('{"kind": "equinoise replicates, version 1", "run": "of old"}')
    with pytest.raises(ValueError, match="its arguments, seed or version differ"):
        replicates.run(made(), 4, resume=tmp_path)


@pytest.mark.parametrize("flip", [0xFF, 0x01, 0x20])
def test_a_flipped_byte_anywhere_in_a_block_is_found_or_changes_nothing(tmp_path, flip):
    whole = replicates.run(made(), 3, block=3, resume=tmp_path)["value"]
    path = tmp_path / "replicates-000000000-000000003.npz"
    content = path.read_bytes()
    found = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
        block = _checkpoint._read(path, 0, 3, _checkpoint.fingerprint(made()))
        found += block is None
        if block is not None:  # a date in the archive, or the like
            assert block["value"].dtype == whole.dtype
            np.testing.assert_array_equal(block["value"], whole)
    assert found > len(content) / 2
    path.write_bytes(content[:-100] + b"x" + content[-99:])
    np.testing.assert_array_equal(replicates.run(made(), 3, resume=tmp_path)["value"], whole)


TWO = """
    import functools, sys, time
    import numpy as np
    from equinoise import replicates
    def slow(value, start, stop):
        time.sleep(0.01)
        return (np.arange(start, stop) * value,)
    try:
        result, = replicates.run(functools.partial(slow, float(sys.argv[2])), 40, block=2, resume=sys.argv[1])
        assert (result == np.arange(40) * float(sys.argv[2])).all()
        print("done")
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("values", [("3", "3"), ("3", "4")])
def test_two_processes_share_a_folder_of_one_run_and_one_of_two_runs_is_refused(tmp_path, values):
    command = [sys.executable, "-c", textwrap.dedent(TWO), str(tmp_path / "kept")]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    both = [
        subprocess.Popen([*command, v], env=environment, stdout=subprocess.PIPE, text=True) for v in values
    ]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == "done"
    if values[0] == values[1]:
        assert said[1] == "done"
    else:
        assert re.search(r"of another: value is [34].0 there and [34].0 here$", said[1])
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 20
    assert {path.suffix for path in (tmp_path / "kept").iterdir()} == {".npz", ".json"}


def test_of_two_runs_that_begin_together_one_is_refused(tmp_path, monkeypatch):
    """One is held where a folder was found empty, for as long as the other would need to find so too."""
    both, clear = threading.Barrier(2, timeout=1.0), _files.clear

    def meet(*args):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()
        clear(*args)

    def begun(value):
        try:
            return _checkpoint.Blocks(tmp_path / "kept", made(value)) and ""
        except ValueError as error:
            return str(error)

    monkeypatch.setattr(_files, "clear", meet)
    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(begun, [3.0, 4.0]))
    assert said[0] == "" and "of another: " in said[1]


def test_folders_with_other_files_and_things_that_are_no_folder_are_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(ValueError, match=r"^resume must be an empty folder or one of this run"):
        replicates.run(made(), 4, resume=tmp_path)
    with pytest.raises(ValueError, match=r"^resume must be a folder, got"):
        replicates.run(made(), 4, resume=tmp_path / "mine.txt")
    with pytest.raises(TypeError, match=r"^resume must be a str or a path, got 3"):
        replicates.run(made(), 4, resume=3)
    with pytest.raises(TypeError, match=r"^resume needs a task of arrays and numbers, got"):
        replicates.run(functools.partial(task, object()), 4, resume=tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "mine.txt").rename(tmp_path / ".run.json.0123456789ab.tmp")
    replicates.run(made(), 4, resume=tmp_path)


def test_functions_that_hold_one_another_are_refused(tmp_path):
    def here(start, stop):
        return (np.arange(start, stop),) if stop else there(start, stop)

    def there(start, stop):
        return here(start, stop)

    with pytest.raises(TypeError, match=r"^resume needs a task that does not hold itself"):
        replicates.run(here, 4, resume=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def without_a_value():
    def task(start, stop):
        return (np.arange(start, stop) + later,)

    if task is None:
        later = 1
    return task


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (without_a_value(), r"variables have values, which not all of without_a_value\.<locals>\.task do$"),
        (functools.partial(max, 3), "arguments have names, got a partial of <built-in function max>$"),
    ],
)
def test_a_task_that_cannot_be_told_from_others_is_refused_in_clear_words(tmp_path, task, words):
    with pytest.raises(TypeError, match=f"^resume needs a task whose {words}"):
        replicates.run(task, 4, resume=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_objects_are_not_kept_and_nobody_advises_to_pickle_them(tmp_path):
    with pytest.raises(
        TypeError, match=r"^task must return arrays that are not of objects, where they are kept$"
    ):
        replicates.run(lambda start, stop: (np.array([{}] * (stop - start)),), 4, resume=tmp_path / "kept")


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0:UserWarning")
@pytest.mark.parametrize("name", ["длина", "長さ", "🎲 \\ '"])
def test_fields_of_any_name_are_kept(tmp_path, name):
    calls = []

    def task(start, stop):
        calls.append((start, stop))
        return (np.array([(i, 0.5) for i in range(start, stop)], dtype=[(name, np.int32), ("b", float)]),)

    task = kept_as("fields")(task)
    (whole,) = replicates.run(task, 6, block=2, resume=tmp_path)
    calls.clear()
    (again,) = replicates.run(task, 6, resume=tmp_path)
    assert calls == [] and again.dtype == whole.dtype and again.dtype.names == (name, "b")
    np.testing.assert_array_equal(again, whole)


def test_fingerprints_tell_values_apart_and_are_stable():
    values = [
        *(None, True, 1, 1.0, "1", b"1", (1,), [1], (1, 1), ((1,), 1), (1, (1,)), {"a": 1}, {"b": 1}),
        *(np.arange(3), np.arange(3.0), np.arange(3)[:, None], np.float64(1.0), np.zeros(2), -np.zeros(2)),
        *(Parts(np.zeros(1)), Whole(Parts(np.zeros(1))), Whole(Parts(np.zeros(1)), "x"), task, pair, made()),
        *(np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "x" * 2, ("x", "x"), ("xx",), ("", "xx")),
    ]
    marks = [fingerprint(value) for value in values]
    assert len(set(marks)) == len(marks)
    assert fingerprint(np.arange(6).reshape(2, 3).T) == fingerprint(np.arange(6).reshape(2, 3).T.copy())
    assert marks[-6] == fingerprint(made())


RATE, STEPS, CALLS = 1.0, [1, 2], 0


def rated(start, stop):
    global CALLS
    CALLS += 1  # what a task sets itself makes no other run of it
    return (np.array([RATE * sum(STEPS) for _ in range(start, stop)]),)


@dataclass(frozen=True)
class Called:
    rate: float

    def __call__(self, start, stop):
        return (np.full(stop - start, self.rate),)


def test_a_global_that_a_task_reads_and_what_an_object_does_make_other_runs(tmp_path, monkeypatch):
    """Or a number that was changed in a notebook would give the results of the one before."""
    first = replicates.run(rated, 4, resume=tmp_path / "read")
    np.testing.assert_array_equal(replicates.run(rated, 6, resume=tmp_path / "read")[0][:4], first[0])
    for name, other in (("RATE", 2.0), ("STEPS", [1, 3]), ("STEPS", (1, 2))):
        with monkeypatch.context() as changed, pytest.raises(ValueError, match="what function does differs"):
            changed.setitem(globals(), name, other)
            replicates.run(rated, 4, resume=tmp_path / "read")
    replicates.run(Called(1.0), 4, resume=tmp_path / "called")
    replicates.run(Called(1.0), 4, resume=tmp_path / "called")
    monkeypatch.setattr(Called, "__call__", lambda self, start, stop: (np.zeros(stop - start),))
    with pytest.raises(ValueError, match="of another"):
        replicates.run(Called(1.0), 4, resume=tmp_path / "called")


def test_functions_of_one_name_that_do_not_the_same_are_other_runs(tmp_path):
    def fill(value, twice=False):
        def filled(start, stop, times=2 if twice else 1):
            return (np.full(stop - start, value * times if stop > start else filled(start, stop)),)

        return filled

    tasks = [
        fill(1),
        fill(2),
        fill(1, twice=True),
        lambda a, b: (np.arange(a, b),),
        lambda a, b: (-np.arange(a, b),),
    ]
    tasks += [lambda a, b: (np.arange(a, b) * 2 + 3,), lambda a, b: (np.arange(a, b) * 3 + 2,)]
    for one in tasks:
        name = tmp_path / one.__name__
        shutil.rmtree(name, ignore_errors=True)
        first = replicates.run(one, 4, resume=name)
        for other in tasks:
            if other is one:
                np.testing.assert_array_equal(replicates.run(other, 4, resume=name), first)
                continue
            with pytest.raises(ValueError, match=r"of another: .*function.* differs|function is .* there"):
                replicates.run(other, 4, resume=name)
    replicates.run(fill(1), 4, resume=tmp_path / "again")
    replicates.run(fill(1), 4, resume=tmp_path / "again")  # the same, made twice
    run = tmp_path / "again" / "run.json"
    run.write_text(run.read_text().replace("replicates, version 1", "replicates, version 2"))
    with pytest.raises(ValueError, match=r"of another: its arguments, seed or version differ$"):
        replicates.run(fill(1), 4, resume=tmp_path / "again")


def test_a_kill_loses_only_unfinished_blocks(tmp_path):
    script = textwrap.dedent("""
        import functools, os, sys, time
        import numpy as np
        from equinoise import replicates
        def slow(seconds, start, stop):
            for _ in range(stop - start):
                time.sleep(seconds)
                os.write(1, b"x")  # in one piece, whatever other threads write
            return (np.arange(start, stop) * np.pi,)
        result, = replicates.run(functools.partial(slow, 0.02), 40, block=2, resume=sys.argv[1])
        assert (result == np.arange(40) * np.pi).all()
    """)
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, tmp_path / "script.py", tmp_path / "kept"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "kept").glob("*.npz"))) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = len(list((tmp_path / "kept").glob("*.npz")))
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert len(done.stdout) == 40 - 2 * finished < 40


def test_simulations_resume(tmp_path):
    tree, environment = games.load("kuhn_poker")

    def simulate(**options):
        chosen = {"horizon": 50, "epsilon": 1.0, "n_replicates": 6, "seed": 3, "block": 2} | options
        return efb.simulate(tree, environment, **chosen)

    whole = simulate(resume=tmp_path)
    tree.n_leaves, tree.depth, environment.best_response()  # kept on the objects, no part of the run
    next(tmp_path.glob("*.npz")).unlink()
    again = simulate(resume=tmp_path, block=None)
    np.testing.assert_array_equal(whole.regret, again.regret)
    np.testing.assert_array_equal(whole.policy, again.policy)
    for other in ({"seed": 4}, {"epsilon": 2.0}, {"horizon": 51}, {"learner": "uniform"}, {"seed": None}):
        with pytest.raises(ValueError, match=r"^resume must be a folder of this very run"):
            simulate(resume=tmp_path, **other)


# ----------------------------------------------------------------------------------------------------------
# A move of code refuses no folder
# ----------------------------------------------------------------------------------------------------------

SIMULATIONS = ("efb", "bandit", "linear")


def simulated(name, **options):
    """The run that the folder of this name in tests/data/resume is of, with exact numbers only."""
    chosen = {"horizon": 20, "n_replicates": 4, "seed": 3, "n_checkpoints": 2, **options}
    if name == "efb":
        return efb.simulate(*games.load("kuhn_poker"), epsilon=1.0, learner="uniform", **chosen)
    if name == "bandit":
        return bandits.simulate("private-ucb", [0.25, 0.5], epsilon=0.5, counter="binary", **chosen)
    return bandits.linear.simulate("uniform", n_arms=2, dimension=2, **chosen)


@pytest.mark.parametrize("name", SIMULATIONS)
def test_folders_from_before_the_package_had_folders_are_taken(tmp_path, monkeypatch, name):
    monkeypatch.setattr(_checkpoint, "__version__", "0.1.0")
    folder = tmp_path / name
    shutil.copytree(Path(__file__).parent / "data/resume" / name, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    kept = simulated(name, resume=folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    np.testing.assert_allclose(kept.regret, simulated(name).regret, rtol=1e-12)


@pytest.mark.parametrize("name", SIMULATIONS)
def test_what_tasks_of_the_package_are_made_of_has_a_name_that_stays(tmp_path, monkeypatch, name):
    named, seen = _checkpoint._name, []

    def watched(part):
        seen.append(part)
        return named(part)

    monkeypatch.setattr(_checkpoint, "_name", watched)
    simulated(name, resume=tmp_path)
    ours = {part for part in seen if part.__module__.startswith("equinoise")}
    assert ours
    assert {part for part in ours if not hasattr(part, "_kept_as")} == set()


def test_a_method_of_what_is_built_in_is_told_by_its_object():
    assert fingerprint({1: 2}.get) == fingerprint({1: 2}.get)
    assert len({fingerprint(task) for task in ({1: 2}.get, {3: 4}.get, [5].index, max, min)}) == 5
    with pytest.raises(TypeError, match="resume needs a task of arrays and numbers, got"):
        fingerprint(np.random.default_rng(1).normal)
