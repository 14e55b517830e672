"""What importing costs: the package and the command's help stay clear of everything heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equinoise

SOURCE = Path(__file__).resolve().parents[1] / "src"
HEAVY = ("numba", "pandas", "scipy", "matplotlib", "pyspiel", "opendp")


def modules_after(statement):
    script = (
        f"import json, sys, time\nbegun = time.perf_counter()\n{statement}\n"
        "took = time.perf_counter() - begun\n"
        "print(json.dumps([took, sorted(sys.modules)]), file=sys.stderr)"
    )
    child = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(child.stderr.splitlines()[-1])


def test_importing_the_package_is_quick_and_light():
    runs = [modules_after("import equinoise") for _ in range(5)]
    assert not set(HEAVY) & set(runs[0][1])
    assert min(took for took, _ in runs) <= 0.3


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["--version"], 0), (["efb", "--help"], 0), (["efb"], 2), (["efb", "x", "--no"], 2)],
)
def test_help_and_wrong_options_need_nothing_heavy(arguments, code):
    _, modules = modules_after(f"from equinoise.cli import main\nassert main({arguments!r}) == {code}")
    assert not {*HEAVY, "numpy"} & set(modules)


def test_submodules_are_there_when_asked_for():
    assert equinoise.games.load is not None
    assert set(equinoise.__all__) <= set(dir(equinoise))
    for name in equinoise.__all__:
        assert getattr(equinoise, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = equinoise.nothing
