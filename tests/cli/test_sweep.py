"""``equinoise sweep`` and ``equinoise merge``, slices, kills, and a cluster that loses a worker."""

from __future__ import annotations

import _thread
import contextlib
import csv
import errno
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

from equinoise import _files, replicates
from equinoise.cli import main

SOURCE = Path(__file__).resolve().parents[2] / "src"
START = "import sys; from equinoise.cli import main; sys.exit(main())"
BANDITS = """
simulate = "bandits"
means = [0.75, 0.5]
horizon = 40
n_replicates = 9
[grid]
policy = ["ucb", "uniform"]
seed = [0, 1]
"""
BANDIT = ["bandit", "--means", "1,0.5", "--horizon", "20", "--epsilon", "0.5", "--policy", "ucb"]
GAME = ["efb", "kuhn_poker", "--trials", "30", "--epsilon", "inf", "--epsilon", "4"]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def wrote(text, *options, out="out"):
    Path("file.toml").write_text(textwrap.dedent(text), encoding="utf-8")
    return main(["sweep", "file.toml", "--out", out, *options])


def rows(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same_files(one, other):
    """Whether two folders hold the same results, but for when they were made and how long it took."""
    results = [{p.name: p.read_bytes() for p in Path(f).iterdir() if p.is_file()} for f in (one, other)]
    for files in results:
        run = json.loads(files["run.json"])
        del run["finished"], run["seconds"]
        files["run.json"] = run
    return results[0] == results[1]


def test_a_sweep_writes_a_table_of_all_points(capsys):
    assert wrote(BANDITS) == 0
    out, err = capsys.readouterr()
    assert out.startswith("4 points. Wrote out/sweep.csv, out/summary.csv, out/run.json")
    assert err == ""
    found = rows("out/sweep.csv")
    assert len(found) == 4 * 9 * 2
    assert list(found[0])[:5] == ["policy", "seed", "epsilon", "version", "replicate"]
    document = json.loads(Path("out/run.json").read_bytes())
    assert document["points"][1] == {"policy": "ucb", "seed": 1}
    assert document["seed"] == [0, 1, 0, 1]
    assert document["parameters"]["horizon"] == 40
    assert wrote(BANDITS, "--json") == 0
    assert json.loads(capsys.readouterr().out)["experiment"] == "sweep"


@pytest.mark.parametrize(
    "text",
    [
        'simulate="efb"\ngame="kuhn_poker"\nhorizon=9\n[grid]\nepsilon=[4, inf]\nplayer=[0, 1]',
        'simulate="self-play"\ngame="kuhn_poker"\n[[grid]]\nepsilon=4\nhorizon=9\n[[grid]]\nepsilon=inf\nhorizon=8',
        'simulate="linear"\nn_arms=2\nhorizon=9\n[grid]\ndimension=[1, 2]\npolicy=["oful"]',
    ],
)
def test_every_kind_of_simulation_has_a_name(text):
    assert wrote("\ufeff" + text) == 0  # with the mark that some editors put first
    assert len(rows("out/summary.csv")) > 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "FILE.toml must be a TOML file, got 'file.toml': "),
        ("horizon = 3", "FILE.toml must have the key 'simulate', got 'horizon'"),
        ("simulate = 'bandits'\nn_replicates = 3", "key 'grid', got 'simulate', 'n_replicates'"),
        (BANDITS.replace("= 9", "= '9'"), "n_replicates must be an integer, got '9'"),
        ("simulate='efb'\nhorizon=9\nepsilon=1\n[grid]\ngame=[['kuhn_poker']]", "game must be one of "),
        (
            "simulate = 'bandit'\n[grid]",
            "simulate must be one of 'bandits', 'linear', 'efb', 'self-play', got 'bandit'",
        ),
        (
            "simulate = 'bandits'\ngrid = 3",
            "grid must be lists of values by name, or a list of points, got 3",
        ),
        (
            BANDITS + "policies = ['ucb']",
            "'policies' is no option of the policy 'ucb' (at the point policy='ucb', ",
        ),
        (BANDITS.replace("0.75", "1.75"), "means must be at most 1, got 1.75"),
        (
            BANDITS.replace("'uniform'", "'uniformly'").replace('"uniform"', '"unif"'),
            "policy must be one of ",
        ),
        (BANDITS + "horizon = [1, 2]", "horizon must not be a key of 'file.toml' and of its grid"),
        (BANDITS.replace("uniform", "ucb"), "grid must have points that differ"),
        ("resume = 'x'" + BANDITS, "resume must not be a key of 'file.toml'"),
        (BANDITS.replace("means", "#"), "FILE.toml must have the key 'means', in its grid or outside"),
        (
            "simulate='efb'\nhorizon=9\n[grid]\nepsilon=[1.0]",
            "must have the key 'game', in its grid or outside",
        ),
        ("simulate='self-play'\nhorizon=9\n[grid]\nseed=[1]", "for simulate = 'self-play'"),
        ('simulate="efb"\ngame="kuhn"\nhorizon=9\n[grid]\nepsilon=[4]', "game must be one of "),
        ('simulate="linear"\nhorizn=9\n[grid]\nn_arms=[4]', "unexpected keyword argument 'horizn'"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_key(capsys, text, words):
    assert wrote(text) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("equinoise: ") and err.count("\n") == 1
    assert words in err
    assert not Path("out").exists()


def test_a_changed_file_is_refused_by_name_and_more_points_are_taken(capsys):
    assert wrote(BANDITS) == 0
    assert wrote(BANDITS.replace("40", "41")) == 2
    said = capsys.readouterr().err
    assert said.startswith("equinoise: --out must be a folder of this very run, got 'out/")
    assert "of another: horizon is 40 there and 41 here" in said
    assert wrote(BANDITS.replace("[0, 1]", "[0, 1, 2]").replace("= 9", "= 12")) == 0
    assert len(rows("out/sweep.csv")) == 6 * 12 * 2


@pytest.mark.parametrize("left", ["nothing", "a file", "no run.json"])
def test_a_folder_that_is_no_run_s_is_one_line(capsys, left):
    assert wrote(BANDITS) == 0
    kept = next(path for path in Path("out/replicates").iterdir() if path.is_dir())
    if left == "a file":
        shutil.rmtree(kept)
        kept.write_text("")
    elif left == "no run.json":
        (kept / "run.json").unlink()
    capsys.readouterr()
    assert wrote(BANDITS) == (0 if left == "nothing" else 2)
    err = capsys.readouterr().err
    assert err == "" if left == "nothing" else err.startswith("equinoise: --out must be a")
    assert err.count("\n") == (left != "nothing")


@pytest.mark.parametrize("command", [BANDIT, GAME, ["sweep", "file.toml"]], ids=["bandit", "efb", "sweep"])
def test_slices_merge_to_the_files_of_one_run(capsys, command):
    Path("file.toml").write_text(BANDITS)
    for name, n in (("whole", "9"), ("a", "0:4"), ("b", "4:5"), ("c", "5:9")):
        assert main([*command, "--replicates", n, "--out", name]) == 0
    assert Path("whole/replicates").exists() is (command[0] == "sweep")
    capsys.readouterr()
    assert main(["merge", "c", "a", "b", "--out", "merged"]) == 0
    assert capsys.readouterr().out.endswith("Joined 3 slices: replicates 0 to 8\n")
    assert same_files("whole", "merged")
    assert not same_files("whole", "a")
    assert main(["merge", "a", "--out", "alone"]) == 0
    assert capsys.readouterr().out.endswith("Joined 1 slice: replicates 0 to 3\n")
    assert main(["merge", "b", "a", "--out", "ab"]) == 0
    assert main(["merge", "ab", "c", "--out", "again"]) == 0
    assert same_files("whole", "again")


GUESS = """
EFG 2 R "guess" { "A" "B" }
p "" 1 1 "x" { "l" "r" } 0
p "" 2 1 "y" { "l" "r" } 0
t "" 1 "" { 1, 0 }
t "" 2 "" { 0, 1 }
t "" 2 "" { 0, 1 }
"""


@pytest.mark.parametrize("own", [["guess.efg"], ["./1:x.efg"], ["kuhn_poker", "--schedule", "5:others.json"]])
def test_slices_of_a_file_merge_from_another_folder(capsys, monkeypatch, tmp_path, own):
    Path("guess.efg").write_text(GUESS)
    Path("1:x.efg").write_text(GUESS)
    passing = {f"{card}{past}": [1, 0] for card in "012" for past in "pb"}
    Path("others.json").write_text(json.dumps(passing))
    command = ["efb", *own, "--trials", "20"]
    for name, n in (("whole", "3"), ("a", "0:2"), ("deep/b", "2:3")):
        assert main([*command, "--replicates", n, "--out", name]) == 0
    assert str(tmp_path) not in Path("a/replicates/command.json").read_text()
    Path("away").mkdir()
    monkeypatch.chdir("away")
    assert main(["merge", "../a", "../deep/b", "--out", "merged"]) == 0
    assert main(["merge", "merged", "--out", "again"]) == 0
    for name in ("merged", "again"):
        assert same_files(tmp_path / "whole", name)
    name = own[-1] if own[-1].endswith("efg") else own[-1].rpartition(":")[2]
    text = Path("..", name).read_text()
    Path("..", name).write_text(text.replace("{ 1, 0 }", "{ -1, 0 }").replace("[1, 0]", "[0, 1]"))
    capsys.readouterr()
    assert main(["merge", "../a", "--out", "none"]) == 2
    wanted = "equinoise: FOLDERS must be slices of this very run, got ../a, made of another"
    assert capsys.readouterr().err == f"{wanted} {name} or version\n"
    assert not Path("none").exists()
    for each in ("guess.efg", "1:x.efg", "others.json"):
        Path("..", each).unlink()
    assert main(["merge", "../a", "--out", "none"]) == 2
    assert name in capsys.readouterr().err
    assert not Path("none").exists()


def test_merging_refuses_what_does_not_fit(capsys):
    for name, options in {
        "a": ["--replicates", "0:2"],
        "c": ["--replicates", "3:4"],
        "seed": ["--replicates", "2:3", "--seed", "1"],
        "whole": ["--replicates", "4"],
    }.items():
        assert main([*BANDIT, *options, "--out", name]) == 0
    assert main([*GAME, "--replicates", "2:3", "--out", "game"]) == 0
    capsys.readouterr()
    shutil.copytree("a", "long")
    made = json.loads(Path("long/replicates/command.json").read_text())
    Path("long/replicates/command.json").write_text(json.dumps(made | {"home": 999 * "9"}))
    for folders, words in (
        (["long"], "FOLDERS must be finished slices (--replicates A:B), got 'long'"),
        (["a", "c"], "replicates 2 to 2 are in none"),
        (["a", "a"], "replicates 0 to 1 are in both"),
        (["a", "seed"], "FOLDERS must be slices of one run, got a and seed: not the same --seed"),
        (["a", "game"], "got a and game: not the same command, "),
        (["a", "whole"], "FOLDERS must be finished slices (--replicates A:B), got 'whole'"),
        (["a", "absent"], "FOLDERS must be finished slices (--replicates A:B), got 'absent'"),
    ):
        assert main(["merge", *folders, "--out", "new"]) == 2
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == 1
        assert not Path("new/replicates").exists()
    assert main(["merge", "a", "--out", "c"]) == 2
    assert "--out must be a folder without slices, got c" in capsys.readouterr().err
    assert Path("c/replicates/command.json").exists()
    Path("file").mkdir()
    Path("file/replicates").touch()
    assert main([*BANDIT, "--replicates", "0:2", "--out", "file"]) == 2
    assert "--out must be a folder, got 'file/replicates' where" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["null", "5", '"x"', "[]", "{}", '{"command": "sweep", "FILE": 5}'])
def test_what_is_no_record_of_a_slice_is_refused(content, capsys):
    made(content)
    assert "FOLDERS must be finished slices (--replicates A:B), got 'a'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["--out", "--out=x", "--json", "-x", "--x y", "--", "--Out"])
def test_a_slice_says_what_was_run_and_not_where_to(name, capsys):
    whole = {"command": "bandit", "slice": "0:2", "--policy": ["ucb"], "--epsilon": ["1"], "--means": ["1,0"]}
    made(json.dumps(whole | {name: ["../victim"]}))
    assert "FOLDERS must be finished slices (--replicates A:B), got 'a'" in capsys.readouterr().err
    assert not Path("../victim").exists()


@pytest.mark.parametrize("command", [["sweep", "one.toml"], GAME])  # of one run and of two
def test_blocks_that_are_lost_at_an_end_are_missed(command, capsys, monkeypatch):
    Path("one.toml").write_text(BANDITS.replace(', "uniform"', "").replace(", 1", ""))
    run = replicates.run
    monkeypatch.setattr(replicates, "run", lambda *given, **named: run(*given, **named | {"block": 1}))
    for name, n in (("a", "1:3"), ("b", "3:5")):
        assert main([*command, "--replicates", n, "--out", name]) == 0
    for path in (min(Path("a").rglob("replicates-*")), max(Path("b").rglob("replicates-*"))):
        content = path.read_bytes()
        for damaged in (None, content[:-9]):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            capsys.readouterr()
            assert main(["merge", "a", "b", "--out", "new"]) == 2
            assert "FOLDERS must have all replicates of their slices, got range(" in capsys.readouterr().err
            assert not Path("new").exists()
        path.write_bytes(content)
    assert main(["merge", "a", "b", "--out", "new"]) == 0


def made(content):
    """A slice whose record says something else."""
    assert main([*BANDIT, "--replicates", "0:2", "--out", "a"]) == 0
    Path("a/replicates/command.json").write_text(content)
    assert main(["merge", "a", "--out", "new"]) == 2


def test_a_slice_is_what_its_command_wrote_and_nothing_writes_into_it(capsys, monkeypatch):
    for name, n in (("whole", "4"), ("a", "0:2"), ("b", "2:4")):
        assert main([*BANDIT, "--replicates", n, "--out", name]) == 0
    Path("a/replicates/.ipynb_checkpoints").mkdir()  # as a notebook's browser leaves it
    for command in (BANDIT, ["merge", "a", "b"]):
        capsys.readouterr()
        assert main([*command, "--out", "a/replicates"]) == 2
        err = capsys.readouterr().err
        assert err.startswith("equinoise: --out must ") and "a/replicates" in err and err.count("\n") == 1
    with monkeypatch.context() as full:
        full.setattr("shutil.copyfile", failing)
        assert main(["merge", "a", "b", "--out", "merged"]) == 1
    assert capsys.readouterr().err == "equinoise: failed: [Errno 28] No space left on device\n"
    assert main(["merge", "a", "b", "--out", "merged"]) == 0
    assert same_files("whole", "merged")


@pytest.mark.parametrize(
    ("seeds", "words"),
    [("[0, 1, 2]", "seed=2-c9e1ff7d1148 is not in the slices"), ("[0]", "only in the slices")],
)
def test_a_file_with_another_grid_than_the_slices_is_refused(capsys, seeds, words):
    for name, n in (("a", "0:4"), ("b", "4:9")):
        assert wrote(BANDITS, "--replicates", n, out=name) == 0
    Path("file.toml").write_text(BANDITS.replace("[0, 1]", seeds))
    capsys.readouterr()
    assert main(["merge", "a", "b", "--out", "merged"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        "equinoise: FILE.toml must have the grid of the slices, got another: policy=ucb-seed="
    )
    assert words in err and err.count("\n") == 1
    Path("file.toml").write_text(BANDITS)
    assert main(["merge", "a", "b", "--out", "merged"]) == 0


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
@pytest.mark.parametrize("moment", ["shutil.copyfile", "equinoise.experiments.commands.sweep.Plan.run"])
def test_a_merge_that_was_killed_is_done_again_and_one_at_work_is_not_disturbed(capsys, moment):
    for name, n in (("whole", "9"), ("a", "0:4"), ("b", "4:9")):
        assert wrote(BANDITS, "--replicates", n, out=name) == 0
    kill = f"mock.patch({moment!r}, lambda *_, **__: os.kill(os.getpid(), 9)).start()"
    command = ["merge", "a", "b", "--out", "merged"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", f"import os; from unittest import mock; {kill}; {START}", *command],
        env=environment,
    )
    assert done.returncode == -signal.SIGKILL and list(Path("merged/replicates").glob("policy*"))
    with Path("merged/replicates/.merging").open("rb") as held:
        assert _files.claimed(held)
        capsys.readouterr()
        assert main(command) == 2
        assert capsys.readouterr().err == "equinoise: --out must be a folder without slices, got merged\n"
    assert main(command) == 0
    assert same_files("whole", "merged") and not Path("merged/replicates/.merging").exists()


def failing(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1:", ":2", "2:2", "3:1", "1:2:3", "a", "1.5", "1 :2", "9" * 19]
)
def test_replicates_that_are_none_are_refused(capsys, text):
    assert main([*BANDIT, f"--replicates={text}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("equinoise: --replicates must be ") and err.count("\n") == 1
    assert "range" not in err  # which nobody wrote


def test_replicates_are_said_once(capsys):
    text = BANDITS.replace("n_replicates = 9\n", "") + "n_replicates = [3, 4]\n"
    Path("file.toml").write_text(text, encoding="utf-8")
    assert main(["sweep", "file.toml", "--out", "out", "--replicates", "5"]) == 2
    wanted = "equinoise: --replicates must be left out where the grid of 'file.toml' says how many\n"
    assert capsys.readouterr().err == wanted


def test_a_plan_takes_no_slice(capsys):
    assert main([*BANDIT, "--plan", "--replicates", "2:4"]) == 2
    assert "--replicates must be a number for a plan, got a slice" in capsys.readouterr().err


def test_epsilons_and_what_belongs_to_them_are_lists_together():
    assert main([*GAME, "--replicates", "2", "--out", "two"]) == 0
    assert main([*GAME[:-2], "--replicates", "2", "--out", "one"]) == 0
    two, one = (json.loads(Path(name, "run.json").read_bytes()) for name in ("two", "one"))
    assert two["parameters"]["epsilon"] == ["inf", 4.0]
    assert [len(two[name]) for name in ("regret_bound", "symbols", "bytes_a_report", "learning_rate")] == [
        2
    ] * 4
    assert two["regret_bound"][0] == one["regret_bound"] <= two["regret_bound"][1]


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_killed_sweep_goes_on_to_the_same_bits():
    text = BANDITS.replace("40", "4000").replace("= 9", "= 256")
    Path("file.toml").write_text(text)
    command = [sys.executable, "-c", START, "sweep", "file.toml", "--out", "killed", "--jobs", "1"]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(SOURCE)})
    deadline = time.monotonic() + 120
    while len(list(Path("killed").rglob("*.npz"))) < 3:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not Path("killed/sweep.csv").exists()
    before = {path: path.stat().st_mtime_ns for path in Path("killed").rglob("*.npz")}
    assert main(command[3:]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert wrote(text, out="whole") == 0
    assert same_files("whole", "killed")


@pytest.mark.slow
@pytest.mark.compiled
def test_a_cluster_that_loses_a_worker_gives_the_same_bits():
    pytest.importorskip("distributed")
    script = """
        import os, signal, sys, threading, time
        from pathlib import Path
        from distributed import LocalCluster
        from equinoise.cli import main
        if __name__ == "__main__":
            with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
                first = cluster.workers[0].pid
                def kill():
                    while not list(Path("killed").rglob("*.npz")):
                        time.sleep(0.01)
                    os.kill(first, signal.SIGKILL)
                killer = threading.Thread(target=kill)
                killer.start()
                options = ["sweep", "file.toml", "--out", "killed", "--dask", cluster.scheduler_address]
                code = main(options)
                killer.join()
                print("pids differ", first not in [w.pid for w in cluster.workers.values()], code)
    """
    Path("script.py").write_text(textwrap.dedent(script))
    text = BANDITS.replace("40", "20000").replace("= 9", "= 24")  # of 96 blocks one or two are done then
    Path("file.toml").write_text(text)
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "script.py"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.endswith("pids differ True 0\n"), done.stderr
    assert wrote(text, out="whole") == 0
    assert same_files("whole", "killed")


def test_a_cluster_that_is_not_there_is_one_line(capsys, monkeypatch):
    pytest.importorskip("distributed")
    assert main([*BANDIT, "--dask", "tcp://127.0.0.1:1", "--jobs", "2"]) == 2
    assert "jobs must be left out where --dask is given" in capsys.readouterr().err
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert main([*BANDIT, "--dask", "tcp://127.0.0.1:1"]) == 1
    err = capsys.readouterr().err
    assert "failed: --dask tcp://127.0.0.1:1: " in err and err.count("\n") == 1
    assert main([*BANDIT, "--dask", ""]) == 1  # a variable that is not set
    assert "failed: --dask : " in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main([*BANDIT, "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "pip install 'equinoise[distributed]'" in capsys.readouterr().err


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_a_cluster_that_is_lost_is_one_line(capsys, caplog, monkeypatch, lost):
    distributed = pytest.importorskip("distributed")

    class Lost(Executor):
        def submit(self, *_, **__):
            logging.getLogger("tornado.application").error("Exception in callback: Traceback")
            future = Future()
            if lost == "workers":
                future.set_exception(distributed.KilledWorker("block", None, 3))
            elif future.cancel():
                future.set_running_or_notify_cancel()
            return future

    class Client(contextlib.nullcontext):
        get_executor = Lost

    monkeypatch.setattr("distributed.Client", Client)
    assert main([*BANDIT, "--dask", "tcp://host:1"]) == 1
    name = {"scheduler": "CancelledError", "workers": "KilledWorker"}[lost]
    failed = f"equinoise: failed: --dask tcp://host:1: the cluster was lost ({name})\n"
    assert capsys.readouterr().err == failed
    assert not caplog.records and logging.getLogger("tornado.application").isEnabledFor(logging.ERROR)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_on_a_cluster_is_130_and_takes_back_what_it_was_given(capsys, monkeypatch):
    pytest.importorskip("distributed")
    given = []

    class Busy(Executor):
        def submit(self, *_, **__):
            if not given:
                threading.Timer(0.3, _thread.interrupt_main).start()
            given.append(Future())
            return given[-1]

    class Client(contextlib.nullcontext):
        get_executor = Busy

    monkeypatch.setattr("distributed.Client", Client)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        assert main([*BANDIT, "--dask", "tcp://host:1"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "equinoise: interrupted\n"
    assert given and all(future.cancelled() for future in given)
