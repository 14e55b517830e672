"""Figures: what is drawn, readable in grey, and no say in the user's backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from equinoise.report import figures

SOURCE = Path(__file__).resolve().parents[2] / "src"


def run(bound, scale=1.0, replicates=3):
    trials = np.arange(10, 110, 10)
    regret = scale * np.sqrt(trials) * (1 + 0.1 * np.arange(replicates))[:, None]
    return SimpleNamespace(trials=trials, regret=regret, tuning=SimpleNamespace(bound=bound))


def low(trials):
    return 8.0 * np.sqrt(trials)


def test_means_intervals_and_bounds_are_drawn():
    ax = figures.figure().subplots()
    one = run(low)
    assert figures.regret_curve(ax, [("one", one), ("two", run(lambda t: 1.0 * t, 2.0))]) is ax
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert list(lines) == ["one", "one: proven bound", "two", "one a trial, the trivial bound"]
    np.testing.assert_allclose(lines["one"].get_ydata(), one.regret.mean(axis=0))
    np.testing.assert_allclose(lines["one: proven bound"].get_ydata(), low(one.trials))
    np.testing.assert_allclose(lines["one a trial, the trivial bound"].get_ydata(), one.trials)
    assert lines["one"].get_marker() == lines["one: proven bound"].get_marker() != lines["two"].get_marker()
    assert len(ax.collections) == 2
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert edge.min() < one.regret.mean(axis=0)[0] < edge.max()
    assert ax.get_xlabel() == "trials (users)"
    assert "regret" in ax.get_ylabel()
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_regret_that_is_not_positive_gets_a_linear_axis():
    ax = figures.figure().subplots()
    figures.regret_curve(ax, [("one", run(low, -1.0))])
    assert ax.get_yscale() == "linear"


def test_one_replicate_is_drawn_without_an_interval():
    drawn = figures.figure()
    figures.regret_curve(drawn.subplots(), [("one", run(low, replicates=1))])
    assert figures.png(drawn).startswith(b"\x89PNG")


def test_styles_differ_without_colour():
    assert len({style.marker for style in figures.STYLES}) == len(figures.STYLES)
    assert len({style.dashes for style in figures.STYLES}) == len(figures.STYLES)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "f = figures.figure(); f.subplots(); figures.png(f); print('matplotlib.pyplot' in sys.modules)",
            "False",
        ),
        ("ax = figures.new_axes(None); figures.png(ax.figure); print(len(plt().get_fignums()))", "1"),
        (
            "import matplotlib as m; m.use('pdf'); figures.new_axes(None); print(m.get_backend())",
            "pdf",
        ),
    ],
)
def test_no_display_is_needed_and_no_backend_is_switched(lines, expected):
    script = f"""
import sys
from equinoise.report import figures
def plt():
    import matplotlib.pyplot
    return matplotlib.pyplot
{lines}
"""
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    }
    child = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.stdout.strip(), child.returncode) == (expected, 0), child.stderr
