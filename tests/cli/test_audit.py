"""The command that audits: its table, its files, and an exit code that says whether a violation is shown."""

from __future__ import annotations

import json
import sys

import pandas as pd
import pytest

from equinoise.cli import main
from equinoise.experiments.commands import audit as audits
from equinoise.inference.privacy import Audit

ROWS = [Audit("kept", 1.0, 0.0, 0.9, 3), Audit("broken", 1.0, 0.0, 1.2, 5, exact=True)]


@pytest.fixture(autouse=True)
def _few(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(audits.AUDITS, "user", lambda epsilon, size, seed: iter(ROWS[:1]))
    monkeypatch.setitem(audits.AUDITS, "counter", lambda epsilon, size, seed: iter(ROWS))


def test_no_violation_is_0(capsys):
    assert main(["audit", "user"]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines() if "kept" in line] == [
        ["kept", "3", "1", "0.900", "sampled", "none", "shown"]
    ]
    assert "equinoise-audit/audit.csv" in out and err == ""


def test_on_a_terminal_there_is_a_bar_with_the_time_that_is_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["audit", "counter"]) == 1
    assert "auditing counter" in (err := capsys.readouterr().err) and "0:00:00" in err


def test_the_help_says_that_secure_noise_has_no_seed(capsys):
    assert main(["audit", "--help"]) == 0
    assert "secure noise" in " ".join(capsys.readouterr().out.split()).partition("--seed")[2]


def test_a_violation_is_1_and_named(capsys, tmp_path):
    assert main(["audit", "counter", "--json", "--out", "here", "--jobs", "1"]) == 1
    out, err = capsys.readouterr()
    assert err == "equinoise: violation shown: broken\n"
    document = json.loads(out)
    assert document == json.loads((tmp_path / "here/run.json").read_text())
    assert document["parameters"]["which"] == "counter"
    frame = pd.read_csv(tmp_path / "here/audit.csv")
    assert frame.to_dict("records") == document["rows"]
    assert frame["violated"].tolist() == [False, True] and frame["how"].tolist() == ["sampled", "exact"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["nothing"], "WHICH"),
        (["user", "--epsilon", "0"], "--epsilon"),
        (["user", "--draws", "10"], "--draws"),
        (["user", "--alpha", "1"], "--alpha"),
        (["user", "--seed", "-1"], "--seed"),
        (["user", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_use_is_2(capsys, wrong, named):
    assert main(["audit", *wrong]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"equinoise: {named} must") and err.count("\n") == 1
