"""Figures: what is drawn, readable in grey, and no say in the user's backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from equinoise.report import figures, pictures

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
    assert list(lines) == ["one", "one: proven bound", "two", "trivial bound (1 per trial)"]
    np.testing.assert_allclose(lines["one"].get_ydata(), one.regret.mean(axis=0))
    np.testing.assert_allclose(lines["one: proven bound"].get_ydata(), low(one.trials))
    np.testing.assert_allclose(lines["trivial bound (1 per trial)"].get_ydata(), one.trials)
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
from equinoise.report import figures, pictures
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


def test_a_histogram_and_what_is_released_are_drawn():
    ax = figures.figure().subplots()
    histogram, released = np.array([0.2, 0.5, 0.3]), np.array([0.3, 0.4, 0.3])
    values = np.array([10.0, 20.0, 30.0])
    series = [("NVO", released), ("Laplace", released[::-1])]
    assert pictures.distributions(ax, histogram, series, values=values, unit="cm") is ax
    step = next(patch for patch in ax.patches if patch.get_label() == "original")
    np.testing.assert_array_equal(step.get_data().values, histogram)
    np.testing.assert_allclose(step.get_data().edges, [5.0, 15.0, 25.0, 35.0])
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert list(lines) == ["NVO", "Laplace"]
    np.testing.assert_array_equal(lines["NVO"].get_xdata(), values)
    np.testing.assert_array_equal(lines["NVO"].get_ydata(), released)
    assert lines["NVO"].get_marker() != lines["Laplace"].get_marker()
    assert ax.get_xlabel() == "cm"
    assert ax.get_ylim()[0] == 0.0


def test_without_values_the_bins_are_numbered():
    ax = pictures.distributions(figures.figure().subplots(), np.full(4, 0.25), [("one", np.full(4, 0.25))])
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [0, 1, 2, 3])
    assert ax.get_xlabel() == "bin"


def test_noise_is_drawn_where_there_are_records():
    ax = figures.figure().subplots()
    counts = np.array([[0, 0], [1, 0], [8, 2]])
    values, scales = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.01])
    pictures.noise_scales(ax, values, scales, counts, [("Laplace", 0.2)], unit="cm")
    points = ax.collections[0]
    np.testing.assert_array_equal(points.get_offsets(), [[2.0, 0.5], [3.0, 0.5], [3.0, 0.01]])
    areas = points.get_sizes()
    assert areas[1] > areas[2] > areas[0]
    assert [line.get_label() for line in ax.get_lines()] == ["Laplace"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0.2, 0.2])
    assert ax.get_yscale() == "log"
    assert "cm" in ax.get_ylabel()
