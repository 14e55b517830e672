"""Figures about bandits and about releases, in the style of :mod:`equinoise.report.figures`."""

import numpy as np

from equinoise._results import Z95
from equinoise._typing import Any, Axes, Collection, Floats, Ints, Mapping, Sequence
from equinoise.report.figures import STYLES, Series, finish, legend_below, line, new_axes, repeated

# One per policy, so that colour is never all that tells two apart.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
# Where a label may stand around its point: directions, the preferred ones first, and distances in points.
_DIRECTIONS = np.array([(1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)], np.float64)
_DISTANCES = (5.0, 8.0, 12.0, 16.0, 24.0, 32.0)
_BIAS = "pseudo-regret at the horizon", "mean absolute bias of arm means", "consistent with zero bias"


def frontier(ax: Axes | None, points: Mapping[Any, Any], words: Sequence[str] = _BIAS) -> Axes:
    """Draw what a smaller bias costs: mean absolute bias against regret, by policy and epsilon.

    A point has `mean_absolute_bias` (or what else `words` say), `stderr`, `clear`, `regret`, `regret_stderr`.
    Points of a policy share a colour, a marker and a line, and are labelled with their epsilon, or else with
    the policy. An axis is logarithmic where its values are positive and differ by a factor of three or more.
    Bars are 95% intervals; points that are not clear are hollow.
    """
    ax = new_axes(ax)
    groups: dict[str, dict[str, Any]] = {}
    for (name, epsilon), point in points.items():
        groups.setdefault(name, {})[name if epsilon is None else f"{epsilon:g}"] = point
    shown = [point for group in groups.values() for point in group.values()]
    ax.set_xscale(_scale([point.regret for point in shown]))
    ax.set_yscale(_scale([point.mean_absolute_bias for point in shown]))
    for i, (name, group) in enumerate(groups.items()):
        color = STYLES[i % len(STYLES)].color
        marks: Any = {"color": color, "marker": MARKERS[i % len(MARKERS)], "markersize": 5.5, "ls": "none"}
        x, y = _places(group.values())
        if len(group) > 1:
            ax.plot(x, y, color=color, linewidth=0.8, alpha=0.6)
        left, right, down, up = _bars(ax, group.values())
        bars = [y - down, up - y], [x - left, right - x]
        ax.errorbar(x, y, *bars, fmt="none", ecolor=color, elinewidth=0.9, capsize=1.5)
        ax.plot([], [], label=name, **marks)
        for clear, face in ((True, color), (False, "white")):
            kept = [point.clear is clear for point in group.values()]
            if any(kept):
                ax.plot(x[kept], y[kept], markerfacecolor=face, **marks)
    hollow: dict[str, Any] = {"color": "0.4", "markersize": 5.5, "markerfacecolor": "white"}
    ax.plot([], [], "o", label=f"hollow: {words[2]}", **hollow)
    ax.margins(0.12, 0.08)
    low, high = ax.get_xlim()
    if ax.get_xscale() == "log" and high < 20.0 * low:  # else too few ticks are labelled
        ax.xaxis.set_minor_formatter("{x:g}")
        ax.xaxis.set_major_formatter("{x:g}")
    finish(ax, words[0], words[1], "0.88")
    legend_below(ax)  # before labels find their places
    if shown:
        _place_labels(ax, [label for group in groups.values() for label in group], shown)
    return ax


def _scale(values: Sequence[float]) -> str:
    return "log" if values and 0.0 < 3.0 * min(values) <= max(values) else "linear"


def _places(points: Collection[Any]) -> Floats:
    return np.array([(point.regret, point.mean_absolute_bias) for point in points]).T


def _bars(ax: Axes, points: Collection[Any]) -> Floats:
    """Return the ends of the intervals, left, right, down and up, float64[4, N]; the points where unknown."""
    x, y = _places(points)
    dx, dy = Z95 * np.nan_to_num([(point.regret_stderr, point.stderr) for point in points]).T
    # what reaches below zero would leave a logarithmic axis
    left = np.maximum(x - dx, 0.1 * x) if ax.get_xscale() == "log" else x - dx
    down = np.maximum(y - dy, 0.1 * y) if ax.get_yscale() == "log" else y - dy
    return np.array([left, x + dx, down, y + dy])


def _place_labels(ax: Axes, labels: Sequence[str], points: Sequence[Any]) -> None:
    """Write each label near its point, where it covers no point and no other label if that can be."""
    drawn: Any = ax.get_figure(root=True)
    drawn.draw_without_rendering()  # settles the layout, and with it where a point is on the page
    to_pixels, pixels_a_point = ax.transData.transform, drawn.dpi / 72.0
    left, right, down, up = _bars(ax, points)
    x, y = _places(points)
    at = to_pixels(np.column_stack([x, y]))
    taken = np.column_stack([at - 3.5 * pixels_a_point, at + 3.5 * pixels_a_point])
    low = np.column_stack([np.append(left, x), np.append(y, down)])
    high = np.column_stack([np.append(right, x), np.append(y, up)])
    bars = np.column_stack([to_pixels(low) - 1.0, to_pixels(high) + 1.0])
    away = np.repeat(_DISTANCES, len(_DIRECTIONS))[:, None]
    nudges = away * np.tile(_DIRECTIONS * (1.0, 0.8), (len(_DISTANCES), 1))
    sides = np.tile(_DIRECTIONS - 1.0, (len(_DISTANCES), 1)) / 2.0
    for label, place, own in zip(labels, zip(x, y, strict=True), at, strict=True):
        text = ax.annotate(label, place, (0, 0), textcoords="offset points", fontsize=7, va="bottom")
        size = text.get_window_extent().size
        offsets = nudges + sides * size / pixels_a_point  # of the lower left corner, the best place first
        corner = own + offsets * pixels_a_point
        boxes = np.column_stack([corner, corner + size])
        frame = ax.bbox.extents
        outside = (boxes[:, :2] < frame[:2]).any(axis=1) | (boxes[:, 2:] > frame[2:]).any(axis=1)
        cost = 10.0 * _overlap(boxes, taken) + _overlap(boxes, bars) + 1e4 * outside + 3.0 * away[:, 0]
        text.set_position(offsets[np.argmin(cost)])
        taken = np.vstack([taken, text.get_window_extent().extents])


def _overlap(boxes: Floats, taken: Floats) -> Floats:
    """Return the area in pixels that each box shares with those that are taken, both float64[N, 4]."""
    ends = np.minimum(boxes[:, None, 2:], taken[:, 2:]) - np.maximum(boxes[:, None, :2], taken[:, :2])
    area: Floats = np.prod(ends.clip(min=0.0), axis=2).sum(axis=1)
    return area


def p_value_histogram(ax: Axes | None, series: Series, *, level: float = 0.05) -> Axes:
    """Draw histograms of p-values of true nulls, and the flat one that an honest test gives.

    `level` in (0, 1) is the width of a bin, and where the dashed line stands; the legend adds to a label the
    share of p-values at or below it.
    """
    ax = new_axes(ax)
    edges = np.append(np.arange(0.0, 1.0 - level / 2, level), 1.0)
    for style, (label, p_values) in zip(repeated(), series, strict=False):
        share = np.histogram(p_values, edges)[0] / len(p_values) / np.diff(edges)
        below = f"{label}: {np.mean(np.asarray(p_values) <= level):.1%} at or below {level:g}"
        marks: dict[str, Any] = {"marker": style.marker, "markersize": 4}
        ax.step(edges, np.append(share, share[-1]), where="post", linewidth=1.4, **style.stroke)
        ax.plot((edges[:-1] + edges[1:]) / 2, share, color=style.color, linestyle="none", **marks)
        ax.plot([], [], label=below, **style.stroke, **marks)
    ax.axhline(1.0, color="0.5", linewidth=1.0, linestyle=(0, (1, 1)), label="an honest test")
    ax.axvline(level, color="0.5", linewidth=1.0, linestyle=(0, (4, 2)))
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(bottom=0.0)
    return finish(ax, "p-value, where the null hypothesis is true", "density", "0.88")


def distributions(
    ax: Axes | None,
    histogram: Floats,
    series: Series,
    *,
    values: Floats | None = None,
    unit: str = "bin",
    label: str = "original",
) -> Axes:
    """Draw a histogram, float64[K], as a grey area, and what is released in its place as lines.

    `values` float64[K] are what the bins stand for, ascending; their numbers by default.
    """
    ax = new_axes(ax)
    x = np.arange(len(histogram)) if values is None else np.asarray(values)
    half = (x[-1] - x[0]) / (len(x) - 1) / 2
    edges = np.concatenate([x - half, [x[-1] + half]])
    ax.stairs(histogram, edges, fill=True, color="0.8", label=label)
    for style, (name, released) in zip(repeated(), series, strict=False):
        line(ax, x, released, style, name, even=True)
    ax.set_ylim(bottom=0.0)
    return finish(ax, unit, "probability")


def noise_scales(
    ax: Axes | None,
    values: Floats,
    scales: Floats,
    counts: Ints,
    lines: Sequence[tuple[str, float]] = (),
    *,
    unit: str = "bin",
) -> Axes:
    """Draw how much noise records have, by their value, on a logarithmic axis.

    `values` float64[K] are what the bins stand for, `scales` float64[V] in their units, `counts` int64[K, V]
    the records of each bin that use each scale: areas of points grow with their logarithm. `lines` are
    scales to compare with, which all records share.
    """
    ax = new_axes(ax)
    k, v = np.argwhere(counts).T
    area = 12.0 * (1.0 + np.log2(counts[k, v]))
    ax.scatter(values[k], scales[v], s=area, color=STYLES[0].color, alpha=0.7, linewidths=0, label="records")
    for style, (label, scale) in zip(repeated(1), lines, strict=False):
        ax.axhline(scale, linewidth=1.2, label=label, **style.stroke)
    ax.set_yscale("log")
    return finish(ax, unit, f"noise scale ({unit})")
