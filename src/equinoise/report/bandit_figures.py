"""Figures about bandits, in the style of :mod:`equinoise.report.figures`: the frontier, and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise._results import Z95
from equinoise.report.figures import STYLES, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

__all__ = ["FrontierPoint", "frontier", "p_value_histogram"]

# One a policy, so that colour is never all that tells two apart.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
# Where a label may stand around its point: directions, the preferred ones first, and distances in points.
_DIRECTIONS = ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
_DISTANCES = (5.0, 8.0, 12.0, 16.0, 24.0, 32.0)


class FrontierPoint(NamedTuple):
    """One policy at one epsilon.

    Attributes
    ----------
    group : str
        Name of the policy; points of one group share a colour, a marker and a line.
    label : str
        What stands beside the point; its epsilon, say.
    regret, regret_stderr : float
    bias, bias_stderr : float
        Mean absolute bias over the arms.
    clear : bool
        Whether the bias can be told from none; a point that cannot is hollow.
    """

    group: str
    label: str
    regret: float
    regret_stderr: float
    bias: float
    bias_stderr: float
    clear: bool


def frontier(ax: Axes | None, points: Iterable[FrontierPoint]) -> Axes:
    """Draw what a smaller bias costs: mean absolute bias against regret, every point with its label.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    points : iterable of FrontierPoint
        Those of a group are joined in the given order.

    Returns
    -------
    matplotlib.axes.Axes
        An axis is logarithmic where its values are positive and differ by a factor of three or more. Bars
        are 95% intervals; hollow points have no bias that can be told from luck.
    """
    ax = new_axes(ax)
    shown = list(points)
    ax.set_xscale(_scale([point.regret for point in shown]))
    ax.set_yscale(_scale([point.bias for point in shown]))
    groups: dict[str, list[FrontierPoint]] = {}
    for point in shown:
        groups.setdefault(point.group, []).append(point)
    for i, (name, group) in enumerate(groups.items()):
        _draw_group(ax, name, group, STYLES[i % len(STYLES)].color, MARKERS[i % len(MARKERS)])
    ax.plot([], [], "o", color="0.4", markersize=5.5, markerfacecolor="white", label="hollow: luck alone")
    ax.margins(0.12, 0.08)
    left, right = ax.get_xlim()
    if ax.get_xscale() == "log" and right < 20.0 * left:  # else too few ticks are labelled
        ax.xaxis.set_minor_formatter("{x:g}")
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("pseudo-regret at the horizon")
    ax.set_ylabel("mean absolute bias of the arms' means")
    ax.grid(True, which="major", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _place_labels(ax, [point for group in groups.values() for point in group])
    return ax


def _draw_group(ax: Axes, name: str, group: list[FrontierPoint], color: str, marker: str) -> None:
    x, y = np.array([p.regret for p in group]), np.array([p.bias for p in group])
    if len(group) > 1:
        ax.plot(x, y, color=color, linewidth=0.8, alpha=0.6)
    left, right, down, up = _bars(ax, group)
    ax.errorbar(
        x, y, [y - down, up - y], [x - left, right - x], fmt="none", ecolor=color, elinewidth=0.9, capsize=1.5
    )
    ax.plot([], [], color=color, marker=marker, linestyle="none", markersize=5.5, label=name)
    for clear, face in ((True, color), (False, "white")):
        kept = [p.clear is clear for p in group]
        if any(kept):
            ax.plot(
                x[kept],
                y[kept],
                color=color,
                marker=marker,
                linestyle="none",
                markersize=5.5,
                markerfacecolor=face,
            )


def _scale(values: Sequence[float]) -> str:
    return "log" if values and 0.0 < 3.0 * min(values) <= max(values) else "linear"


def _bars(ax: Axes, points: list[FrontierPoint]) -> NDArray[np.float64]:
    """Return the ends of the intervals, left, right, down and up, float64[4, N]; the points where unknown."""
    x, dx, y, dy = np.array([(p.regret, p.regret_stderr, p.bias, p.bias_stderr) for p in points]).T
    dx, dy = Z95 * np.nan_to_num(dx), Z95 * np.nan_to_num(dy)
    left, down = x - dx, y - dy
    # what reaches below zero would leave a logarithmic axis
    if ax.get_xscale() == "log":
        left = np.maximum(left, 0.1 * x)
    if ax.get_yscale() == "log":
        down = np.maximum(down, 0.1 * y)
    return np.array([left, x + dx, down, y + dy])


def _place_labels(ax: Axes, points: list[FrontierPoint]) -> None:
    """Write each label near its point, where it covers no point and no other label if that can be."""
    drawn = ax.get_figure(root=True)
    if drawn is None or not points:
        return
    drawn.draw_without_rendering()  # settles the layout, and with it where a point is on the page
    size = 3.5 * drawn.dpi / 72.0
    left, right, down, up = _bars(ax, points)
    x, y = np.array([(p.regret, p.bias) for p in points]).T
    ends = [
        ax.transData.transform(np.column_stack(pair)) for pair in ((left, y), (right, y), (x, down), (x, up))
    ]
    pixels = ax.transData.transform(np.column_stack([x, y]))
    taken = np.column_stack([pixels - size, pixels + size])
    bars = np.concatenate(
        [np.column_stack([ends[0] - 1.0, ends[1] + 1.0]), np.column_stack([ends[2] - 1.0, ends[3] + 1.0])]
    )
    frame, away = _corners(ax.bbox), np.repeat(_DISTANCES, len(_DIRECTIONS))
    for point, own in zip(points, pixels, strict=True):
        text = ax.annotate(
            point.label,
            (point.regret, point.bias),
            (0, 0),
            textcoords="offset points",
            fontsize=7,
            va="bottom",
        )
        box = text.get_window_extent()
        wide = np.array([box.width, box.height])
        offsets = _offsets(wide * 72.0 / drawn.dpi)
        low = own + offsets * drawn.dpi / 72.0
        cost = [
            10.0 * _overlap(corners, taken)
            + _overlap(corners, bars)
            + 1e4 * _outside(corners, frame)
            + 3.0 * distance
            for corners, distance in zip(np.column_stack([low, low + wide]), away, strict=True)
        ]
        text.set_position(offsets[np.argmin(cost)])
        taken = np.vstack([taken, _corners(text.get_window_extent())])


def _offsets(wide: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where the lower left corner of a label of some width and height may stand, the best place first.

    All in points, from the point that it belongs to: float64[N, 2].
    """
    directions = np.array(_DIRECTIONS, dtype=np.float64)
    around = [distance * directions * (1.0, 0.8) for distance in _DISTANCES]
    return np.concatenate([place + (directions - 1.0) * wide / 2.0 for place in around])


def _corners(box: Bbox) -> NDArray[np.float64]:
    return np.array([box.x0, box.y0, box.x1, box.y1])


def _overlap(corners: NDArray[np.float64], taken: NDArray[np.float64]) -> float:
    """Return the area in pixels that a box shares with those that are taken, float64[N, 4]."""
    sides = np.minimum(corners[2:], taken[:, 2:]) - np.maximum(corners[:2], taken[:, :2])
    return float(np.prod(sides.clip(min=0.0), axis=1).sum())


def _outside(corners: NDArray[np.float64], frame: NDArray[np.float64]) -> bool:
    return bool((corners[:2] < frame[:2]).any() or (corners[2:] > frame[2:]).any())


def p_value_histogram(
    ax: Axes | None, series: Sequence[tuple[str, NDArray[np.float64]]], *, level: float = 0.05
) -> Axes:
    """Draw histograms of p-values of true nulls beside the flat one that an honest test gives.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    series : sequence of (str, float64[R])
        A legend entry and p-values; the legend adds the share of them at or below `level`.
    level : float
        In (0, 1): the width of a bin, and where the dashed line stands.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_axes(ax)
    edges = np.append(np.arange(0.0, 1.0 - level / 2, level), 1.0)
    centres = (edges[:-1] + edges[1:]) / 2
    for i, (label, p_values) in enumerate(series):
        style = STYLES[i % len(STYLES)]
        share = np.histogram(p_values, edges)[0] / len(p_values) / np.diff(edges)
        below = float(np.mean(np.asarray(p_values) <= level))
        options: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
        ax.step(edges, np.append(share, share[-1]), where="post", color=style.color, linewidth=1.4, **options)
        ax.plot(centres, share, color=style.color, marker=style.marker, markersize=4, linestyle="none")
        ax.plot(
            [],
            [],
            color=style.color,
            marker=style.marker,
            markersize=4,
            label=f"{label}: {below:.1%} at or below {level:g}",
            **options,
        )
    ax.axhline(1.0, color="0.5", linewidth=1.0, linestyle=(0, (1, 1)), label="an honest test")
    ax.axvline(level, color="0.5", linewidth=1.0, linestyle=(0, (4, 2)))
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("p-value, where the null hypothesis is true")
    ax.set_ylabel("density")
    ax.grid(True, which="major", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", frameon=False)
    return ax
