"""`equinoise reproduce`: a report after each experiment, wrong use before any work, Ctrl-C, and the bars."""

from __future__ import annotations

import io
import json
import re

import pytest
from equinoise.experiments.efb.views import Study

from equinoise.cli import main, reproduce
from equinoise.experiments.efb import exhibits, growth
from equinoise.experiments.efb.growth import Growth

SMALL = (
    Study("efb-kuhn", "Kuhn: small", "kuhn_poker", 500, 2, (1.0, 8.0), (8.0,), (8.0,), 8.0),
    Study("efb-leduc", "Leduc: small", "leduc_poker", 100, 2, (4.0,), (), (), 4.0),
)
NAMES = ["efb-kuhn", "efb-leduc", "efb-growth"]


@pytest.fixture(autouse=True)
def _small_and_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(exhibits, "STUDIES", {"quick": SMALL, "full": SMALL[:1]})
    monkeypatch.setattr(growth, "GROWTHS", {"quick": Growth((100, 300), 2), "full": Growth((100, 300), 2)})


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_report_is_written_and_a_table_printed(capsys, tmp_path):
    assert main(["reproduce", "efb", "--out", "deep/here", "--seed", "3", "--jobs", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert re.findall(r"^ +(efb-\w+) +\d+\.\d +\S", out, re.MULTILINE) == NAMES
    assert "At epsilon 8 the regret is" in out
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
    assert err == ""
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
    (["nvo", "--csv", "people.csv"], "--column must be given with csv"),
    (["nvo", "--column", "height"], "--csv must be given with column"),
    (["efb", *CSV], "--csv is for nvo or all"),
    (["nvo", "--csv", "nobody.csv", "--column", "height"], "nobody.csv"),
    (["nvo", "--csv", "people.csv", "--column", "age"], "--column must be one of"),
    (["nvo", *CSV, "--target", "age"], "must be one of"),
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
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(growth, "GROWTHS", {"quick": None})
    monkeypatch.setattr(growth, "growth", interrupted)
    assert main(["reproduce", "efb"]) == 130
    out, err = capsys.readouterr()
    assert err == "equinoise: interrupted\n"
    assert re.findall(r"^ +(efb-\w+) ", out, re.MULTILINE) == NAMES[:2]
    assert "Not done: 1 of 3 experiments" in out
    folder = tmp_path / "equinoise-report"
    assert json.loads((folder / "run.json").read_text())["left"] == ["efb-growth"]
    assert "2 of 3 experiments are finished" in (folder / "report.html").read_text()
    assert "tables/efb-leduc-regret.csv" in names(folder)


def test_ctrl_c_in_the_first_experiment_leaves_nothing(capsys, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(exhibits.efb, "simulate", interrupted)
    assert main(["reproduce", "efb"]) == 130
    assert capsys.readouterr() == ("", "equinoise: interrupted\n")
    assert names(tmp_path) == []
    assert main(["reproduce", "efb", "--scale", "full"]) == 130
    assert capsys.readouterr().err.startswith("equinoise: finished parts are kept: the same command goes on")


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
    for title in ("Kuhn: small", "Leduc: small", "How regret grows with the number of users"):
        assert re.search(rf"{title} +━+ 100% 0:0\d:\d\d", last), title
    assert re.match(r" +━+ 100% 0:0\d:\d\d", last)
    frames = [frame for frame in shown.split("all experiments") if "Kuhn: small" in frame]
    early = [frame for frame in frames if not re.search(r"Kuhn: small +━+ 100%", frame)]
    assert not any("Leduc: small" in frame for frame in early)  # it has not begun yet
    assert "efb-growth" in capsys.readouterr().out


def test_bars_are_not_shown_in_a_pipe(capsys):
    with reproduce._bars(()) as watch:
        watch(None, 0.5)
    assert capsys.readouterr() == ("", "")


def test_help_names_every_option(capsys):
    assert main(["reproduce", "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("--scale", "--out", "--seed", "--jobs", "--csv", "--column", "--target", "--json"):
        assert option in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["--help"]) == 0
    assert "reproduce" in capsys.readouterr().out
