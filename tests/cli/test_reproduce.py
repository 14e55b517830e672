"""`equinoise reproduce`: a report after each experiment, wrong use before any work, Ctrl-C, and the bars."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from equinoise import _jit
from equinoise.cli import main, reproduce
from equinoise.experiments.efb import exhibits
from equinoise.experiments.efb.exhibits import Growth, Match, Study
from equinoise.experiments.steps import Step

SMALL = (
    Study("kuhn_poker", 500, 2, (1.0, 8.0), (8.0,), (8.0,), 8.0),
    Study("leduc_poker", 100, 2, (4.0,), (), (), 4.0),
    Growth((100, 300), 2),
    Match(200, 2),
)
EXPERIMENTS = tuple(
    replace(experiment, quick=size, full=size)
    for experiment, size in zip(exhibits.EXPERIMENTS, SMALL, strict=True)
)
NAMES = ["efb-kuhn", "efb-leduc", "efb-growth", "efb-self-play"]


@pytest.fixture(autouse=True)
def _small_and_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(exhibits, "EXPERIMENTS", EXPERIMENTS)


def interrupt(monkeypatch, i):
    """Let the experiment of that place be interrupted."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    changed = list(EXPERIMENTS)
    changed[i] = replace(changed[i], function=interrupted)
    monkeypatch.setattr(exhibits, "EXPERIMENTS", changed)


def doing(*steps):
    """Return what stderr says when experiments begin, where it is no terminal."""
    return "".join(f"equinoise: doing {step}\n" for step in steps)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_report_is_written_and_a_table_printed(capsys, tmp_path):
    assert main(["reproduce", "efb", "--out", "deep/here", "--seed", "3", "--jobs", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == doing(*NAMES)
    assert re.findall(r"^ +(efb-[\w-]+) +\d+\.\d +\S", out, re.MULTILINE) == NAMES
    assert "the regret at epsilon 8 is" in out
    assert "Wrote deep/here/report.html" in out
    folder = tmp_path / "deep/here"
    document = json.loads((folder / "run.json").read_text())
    assert (document["complete"], document["seed"], document["left"]) == (True, 3, [])
    none = dict.fromkeys(("csv", "column", "target"))
    assert document["parameters"] == {"which": "efb", "scale": "quick", **none}
    listed = [name for step in document["steps"] for name in step["files"]]
    assert names(folder) == sorted([*listed, "report.html", "run.json"])
    assert {name.split("/")[0] for name in listed} == {"tables", "figures"}
    assert {name.rsplit(".")[-1] for name in listed} == {"csv", "png", "svg"}


@pytest.mark.compiled
def test_the_folder_has_a_name_of_its_own_by_default_and_the_same_seed_gives_the_same_tables(tmp_path):
    assert main(["reproduce", "efb", "--jobs", "1"]) == 0
    assert main(["reproduce", "efb", "--jobs", "3", "--out", "again"]) == 0
    assert main(["reproduce", "efb", "--seed", "1", "--out", "other"]) == 0
    read = [(tmp_path / folder / "tables/efb-kuhn-regret.csv").read_bytes() for folder in
            ("equinoise-report", "again", "other")]  # fmt: skip
    assert read[0] == read[1] != read[2]
    drawn = [(tmp_path / folder / "figures/efb-kuhn-curve.svg").read_bytes() for folder in
             ("equinoise-report", "again")]  # fmt: skip
    assert drawn[0] == drawn[1]


def test_json_is_all_of_stdout(capsys, tmp_path):
    assert main(["reproduce", "efb", "--json", "--scale", "full"]) == 0
    out, err = capsys.readouterr()
    assert err == doing(*NAMES)
    assert json.loads(out) == json.loads((tmp_path / "equinoise-report/run.json").read_text()) | {
        "finished": json.loads(out)["finished"]
    }
    assert not [name for name in names(tmp_path / "equinoise-report") if name.startswith(".")]


CSV = ["--csv", "people.csv", "--column", "height"]
WRONG = [
    (["poker"], "PILLAR must be one of 'efb', 'nvo', 'bias', 'all', got 'poker'"),
    (["efb", "--scale", "huge"], "--scale must be one of 'quick', 'full', got 'huge'"),
    (["efb", "--seed", "-1"], "--seed must be an integer of at least 0, got -1"),
    (["efb", "--jobs", "0"], "--jobs must be an integer of at least 1, got 0"),
    (["nvo", "--csv", "people.csv"], "--column must be given with --csv"),
    (["nvo", "--column", "height"], "--csv must be given with --column"),
    (["efb", *CSV], "--csv is for nvo or all"),
    (["nvo", "--csv", "nobody.csv", "--column", "height"], "nobody.csv"),
    (["nvo", "--csv", "people.csv", "--column", "age"], "--column must be one of"),
    (["nvo", *CSV, "--target", "age"], "--target must be one of 'height', got 'age'"),
    (["efb", "--out", "people.csv"], "--out must be a folder"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(a) for a, _ in WRONG])
def test_wrong_use_is_one_line_and_leaves_nothing(capsys, tmp_path, arguments, words):
    (tmp_path / "people.csv").write_text("height\n170\n180\n190\n")
    assert main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("equinoise: ") and err.count("\n") == 1
    assert words in err
    assert names(tmp_path) == ["people.csv"]


def test_ctrl_c_leaves_what_is_finished(capsys, monkeypatch, tmp_path):
    interrupt(monkeypatch, 2)
    assert main(["reproduce", "efb"]) == 130
    out, err = capsys.readouterr()
    kept = "equinoise: finished parts are kept: the same command goes on from them\n"
    assert err == doing(*NAMES[:3]) + kept + "equinoise: interrupted\n"
    assert re.findall(r"^ +(efb-[\w-]+) ", out, re.MULTILINE) == NAMES[:2]
    assert "Not done: 2 of 4 experiments" in out
    folder = tmp_path / "equinoise-report"
    assert json.loads((folder / "run.json").read_text())["left"] == NAMES[2:]
    assert "2 of 4 experiments are finished" in (folder / "report.html").read_text()
    assert "tables/efb-leduc-regret.csv" in names(folder)


def test_ctrl_c_in_the_first_experiment_leaves_nothing(capsys, monkeypatch, tmp_path):
    interrupt(monkeypatch, 0)
    assert main(["reproduce", "efb"]) == 130
    assert capsys.readouterr() == ("", doing("efb-kuhn") + "equinoise: interrupted\n")
    assert names(tmp_path) == []
    assert main(["reproduce", "efb", "--scale", "full"]) == 130
    assert capsys.readouterr().err.startswith(
        doing("efb-kuhn") + "equinoise: finished parts are kept: the same command goes on"
    )


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_within_a_second_and_the_same_command_goes_on(tmp_path):
    """The second experiment sleeps in a thread, which hears of no signal, as one that compiles does."""
    script = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from equinoise import _jit
from equinoise.cli import main
from equinoise.experiments import plan
from equinoise.experiments.steps import Step
from equinoise.report.exhibit import Exhibit

def step(name, seconds):
    def make(settings, executor, progress):
        print("began", name, flush=True)
        list(executor.map(time.sleep, [seconds]))
        return Exhibit(name, "Part", name, "Why?", f"So {name}.")
    return Step(name, "efb", name, make, 1.0)

seconds = float(sys.argv[1])
plan.plan = lambda which, settings: plan.Report(which, settings, (step("one", 0.0), step("two", seconds)))
sys.exit(main(["reproduce", "efb", "--out", "here"]))
"""

    def start(seconds):
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        return subprocess.Popen([sys.executable, "-c", script, seconds], **given)

    child = start("60")
    assert [child.stdout.readline(), child.stdout.readline()] == ["began one\n", "began two\n"]
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    took = time.monotonic() - begun
    assert child.returncode == 130 and "So one." in out and "Not done: 1 of 2 experiments" in out
    kept = "equinoise: finished parts are kept: the same command goes on from them\n"
    assert err == doing("one", "two") + kept + "equinoise: interrupted\n"
    assert took < 3.0  # 0.7 on an idle machine
    child = start("0")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, doing("two")) and "began one" not in out and "began two" in out
    assert re.findall(r"^ +(one|two) +(kept)?", out, re.MULTILINE) == [("one", "kept"), ("two", "")]


def test_a_column_of_the_users_is_warned_about(capsys, monkeypatch, tmp_path):
    from equinoise.experiments import plan as experiment

    (tmp_path / "people.csv").write_text("height\n170\n180\n190\n")
    monkeypatch.setattr(experiment, "perform", lambda *_, **__: iter(()))
    assert main(["reproduce", "nvo", *CSV]) == 0
    assert "the report shows the data of --csv" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_shown_on_a_terminal_one_an_experiment(capsys, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["reproduce", "efb"]) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    last = shown.rsplit("all experiments", 1)[1]
    for title in (
        "Kuhn poker: what privacy costs",
        "Leduc poker: a larger game",
        "How regret grows with the number of users",
        "Kuhn poker: both players learn",
    ):
        assert re.search(rf"{title} +━+ 100% 0:0\d:\d\d", last), title
    assert re.match(r" +━+ 100% 0:0\d:\d\d", last)
    frames = [frame for frame in shown.split("all experiments") if "Kuhn poker: what privacy costs" in frame]
    early = [frame for frame in frames if not re.search(r"Kuhn poker: what privacy costs +━+ 100%", frame)]
    assert not any("Leduc poker: a larger game" in frame for frame in early)  # it has not begun yet
    assert "efb-growth" in capsys.readouterr().out


def test_a_terminal_is_told_while_something_is_compiled(monkeypatch):
    screen, tell = Terminal(), []

    @contextlib.contextmanager
    def compiling(told):
        tell.append(told)
        yield

    monkeypatch.setattr(_jit, "compiling", compiling)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with reproduce._bars(()):
        assert "compiling" not in screen.getvalue()
        tell[0](True)
        time.sleep(0.3)  # the screen is drawn ten times a second
        assert "compiling (first use" in screen.getvalue()
        tell[0](False)
    assert "compiling" not in screen.getvalue().rsplit("all experiments", 1)[1]


def test_bars_are_not_shown_in_a_pipe(capsys):
    step = Step("one", "efb", "One", lambda *_: None, 1.0)
    with reproduce._bars((step,)) as watch:
        watch(step, 0.5)
    assert capsys.readouterr() == ("", "")


def test_help_names_every_option(capsys):
    assert main(["reproduce", "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("--scale", "--out", "--seed", "--jobs", "--csv", "--column", "--target", "--json"):
        assert option in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["--help"]) == 0
    assert "reproduce" in capsys.readouterr().out
