"""Figures about bandits: what is drawn, told apart without colour, labels that cover nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from equinoise.report import figures, pictures

MEANS = np.array([0.9, 0.5, 0.1])


def run(bias, stderr=0.01):
    bias = np.asarray(bias, dtype=float)
    frame = pd.DataFrame(
        {
            "arm": np.arange(len(bias)),
            "mean": MEANS[: len(bias)] if len(bias) <= 3 else 0.5,
            "bias": bias,
            "stderr": stderr,
            "ci_low": bias - 2 * stderr,
            "ci_high": bias + 2 * stderr,
        }
    )
    trials = np.arange(10, 110, 10)
    regret = np.sqrt(trials) * np.array([[1.0], [1.2]])
    return SimpleNamespace(bias=lambda: frame, trials=trials, regret=regret)


def test_the_bias_of_every_arm_is_drawn_with_its_interval():
    ax = figures.figure().subplots()
    bound = 0.05 * MEANS
    series = [("one", run([0.0, -0.1, 0.02])), ("two", run([0.01, 0.0, 0.0]))]
    assert figures.bandit_bias(ax, series, bound=bound) is ax
    first, second = ax.containers
    points, _, (bars,) = first
    np.testing.assert_allclose(points.get_ydata(), [0.0, -0.1, 0.02])
    ends = np.array(bars.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, [[-0.02, 0.02], [-0.12, -0.08], [0.0, 0.04]])
    # the arms of one place stand side by side, and differ in their markers
    assert (points.get_xdata() < second[0].get_xdata()).all()
    assert points.get_marker() != second[0].get_marker()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.9", "0.5", "0.1"]
    steps = [patch.get_data().values for patch in ax.patches]
    np.testing.assert_allclose(steps, [bound, -bound])
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"one", "two", "proven bound"}


def test_many_arms_are_not_labelled_one_by_one():
    ax = figures.bandit_bias(figures.figure().subplots(), [("one", run(np.zeros(40)))])
    assert ax.get_xlabel() == "arm"
    assert len(ax.get_xticks()) < 40


def test_mean_regrets_are_drawn_with_intervals():
    ax = figures.figure().subplots()
    one = run([0.0])
    assert figures.regret_means(ax, [("one", one), ("two", run([0.0]))]) is ax
    lines = ax.get_lines()
    np.testing.assert_allclose(lines[0].get_ydata(), one.regret.mean(axis=0))
    assert lines[0].get_marker() != lines[1].get_marker()
    assert len(ax.collections) == 2
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    flat = SimpleNamespace(trials=one.trials, regret=np.zeros((2, 10)))
    assert figures.regret_means(figures.figure().subplots(), [("flat", flat)]).get_yscale() == "linear"


def point(regret, bias, clear=True, regret_stderr=None, stderr=None):
    return SimpleNamespace(
        regret=regret,
        regret_stderr=0.01 * regret if regret_stderr is None else regret_stderr,
        mean_absolute_bias=bias,
        stderr=0.1 * bias if stderr is None else stderr,
        clear=clear,
    )


POINTS = {
    **{("private", e): point(100.0 / (1 + e), 0.001 * (1 + e), e > 0.5) for e in (0.1, 1.0, 10.0)},
    ("ucb", None): point(30.0, 0.04),
    ("uniform", None): point(102.0, 0.0009, False),
    **{(f"other {i}", float(i)): point(95.0 + i, 0.0011 + 0.0001 * i) for i in range(6)},
}


def boxes(ax):
    ax.get_figure().draw_without_rendering()
    return [text.get_window_extent() for text in ax.texts]


def test_every_point_of_the_frontier_has_its_label_and_interval():
    ax = figures.figure().subplots()
    assert pictures.frontier(ax, POINTS) is ax
    labels = ["0.1", "1", "10", "ucb", "uniform", *map(str, range(6))]
    assert [text.get_text() for text in ax.texts] == labels
    assert [tuple(text.xy) for text in ax.texts] == [
        (p.regret, p.mean_absolute_bias) for p in POINTS.values()
    ]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    first = ax.containers[0]
    across, upright = (np.array(bars.get_segments()) for bars in first[2])
    np.testing.assert_allclose(across[1, :, 0], [50.0 - 1.96 * 0.5, 50.0 + 1.96 * 0.5])
    np.testing.assert_allclose(upright[1, :, 1], [0.002 - 1.96 * 0.0002, 0.002 + 1.96 * 0.0002])
    names = [text.get_text() for text in ax.get_figure().legends[0].get_texts()]
    assert names == [
        "private",
        "ucb",
        "uniform",
        *(f"other {i}" for i in range(6)),
        "hollow: consistent with zero bias",
    ]


def test_hollow_points_are_those_without_a_clear_bias():
    ax = pictures.frontier(figures.figure().subplots(), POINTS)
    hollow, full = set(), set()
    for line in ax.get_lines():
        if line.get_marker() in pictures.MARKERS:
            kept = hollow if line.get_markerfacecolor() == "white" else full
            kept.update(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert hollow == {(p.regret, p.mean_absolute_bias) for p in POINTS.values() if not p.clear}
    assert full == {(p.regret, p.mean_absolute_bias) for p in POINTS.values() if p.clear}


@pytest.mark.parametrize(
    "draw", [lambda plot: figures.drawn(plot, 5.5), lambda plot: figures.column(plot, 6.0)]
)
def test_labels_cover_neither_points_nor_one_another_and_stay_inside(draw):
    ax = draw(lambda ax: pictures.frontier(ax, POINTS)).axes[0]
    places = boxes(ax)
    frame = ax.get_window_extent()
    for i, box in enumerate(places):
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        for other in places[i + 1 :]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert wide <= 1.0 or high <= 1.0
    for x, y in ax.transData.transform([(p.regret, p.mean_absolute_bias) for p in POINTS.values()]):
        assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in places)


def test_a_long_label_at_the_edge_stays_inside():
    long = "a label that does not fit to the right of its point"
    ax = pictures.frontier(
        figures.figure().subplots(), dict(list(POINTS.items())[:3]) | {(long, None): point(400.0, 0.05)}
    )
    box, frame = boxes(ax)[-1], ax.get_window_extent()
    assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1


def test_markers_are_enough_for_all_policies():
    assert len(set(pictures.MARKERS)) == len(pictures.MARKERS) >= 11


def test_axes_are_linear_where_values_are_close_or_not_positive():
    near = {("one", 1.0): point(20.0, 0.01), ("two", 2.0): point(21.0, 0.04)}
    ax = pictures.frontier(figures.figure().subplots(), near)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    none = dict.fromkeys([("one", 1.0), ("one", 2.0)], point(0.0, 0.0, False, math.nan, math.nan))
    ax = pictures.frontier(figures.figure().subplots(), none)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    assert figures.png(ax.get_figure()).startswith(b"\x89PNG")


def test_an_interval_that_reaches_below_zero_stays_on_a_logarithmic_axis():
    wide = {("one", 1.0): point(10.0, 0.001, False, 20.0, 0.01), ("two", 2.0): point(50.0, 0.1)}
    ax = pictures.frontier(figures.figure().subplots(), wide)
    assert min(ax.get_ylim()) > 0.0 and min(ax.get_xlim()) > 0.0
    assert figures.png(ax.get_figure()).startswith(b"\x89PNG")


def test_p_values_are_drawn_as_a_density_with_their_share_below_the_level():
    ax = figures.figure().subplots()
    p_values = np.array([0.0, 0.01, 0.05, 0.9])
    series = [("skewed", p_values), ("even", np.linspace(0, 1, 201))]
    assert pictures.p_value_histogram(ax, series) is ax
    step = ax.get_lines()[0]
    np.testing.assert_allclose(step.get_xdata(), np.linspace(0, 1, 21))
    # 0 and 0.01 in the first bin; 0.05 is an edge, and belongs to the bin above it
    np.testing.assert_allclose(step.get_ydata()[:3], [10.0, 5.0, 0.0])
    np.testing.assert_allclose(np.sum(step.get_ydata()[:-1]) * 0.05, 1.0)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "skewed: 75.0% at or below 0.05"
    assert labels[-1] == "an honest test"


@pytest.mark.parametrize("draw", [figures.bandit_bias, pictures.frontier])
def test_nothing_imports_pyplot_for_a_file(draw):
    argument = [("one", run([0.0]))] if draw is figures.bandit_bias else POINTS
    drawn = figures.figure()
    draw(drawn.subplots(), argument)
    assert figures.png(drawn).startswith(b"\x89PNG")
