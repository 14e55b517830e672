"""Curves over a parameter: what was measured with its intervals, what is proven, and what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Axes, Figure
from equinoise.report.figures import STYLES, figure, new_axes

__all__ = ["Curve", "column", "curves", "legend_below"]

_MOST_TICKS = 8
_COLUMNS = {3: 16, 2: 32}  # columns of a legend, and how many characters its longest label may have then
_WIDTH = 5.6  # inches, of a column of the report
KINDS = ("measured", "bound", "published", "level")


@dataclass(frozen=True, eq=False)
class Curve:
    """One entry of the legend.

    Attributes
    ----------
    label : str
    x, y : float64[n]
        NaN leaves a point out.
    low, high : float64[n], optional
        Ends of an interval around y.
    kind : {"measured", "bound", "published", "level"}
        "measured" is a line with points and intervals; "bound" a thin dotted line with hollow points in the
        colour of the curve before it; "published" hollow points alone; "level" one value of y, a
        horizontal line over the whole width.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    kind: str = "measured"

    def __post_init__(self) -> None:
        _checks.choice("kind", self.kind, KINDS)


def curves(
    ax: Axes | None,
    series: Sequence[Curve],
    *,
    horizontal: str,
    vertical: str,
    logarithmic: str = "",
    ticks: Sequence[float] = (),
) -> Axes:
    """Draw curves in the style of :mod:`equinoise.report.figures`: told apart by colour, dashes and markers.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    series : sequence of Curve
    horizontal, vertical : str
        What the axes show, with units.
    logarithmic : {"", "x", "y", "xy"}
        Which axes are logarithmic.
    ticks : sequence of float
        Where the horizontal axis has its only ticks; by default where matplotlib puts them.
    """
    _checks.choice("logarithmic", logarithmic, ("", "x", "y", "xy"))
    ax = new_axes(ax)
    used = -1
    for curve in series:
        used += curve.kind != "bound"
        _draw(ax, curve, STYLES[max(used, 0) % len(STYLES)])
    ax.set_xscale("log" if "x" in logarithmic else "linear")
    ax.set_yscale("log" if "y" in logarithmic else "linear")
    if "y" in logarithmic:
        _more_ticks(ax)
    if len(ticks):
        ax.set_xticks(list(ticks), [f"{tick:,g}" for tick in ticks])
        ax.set_xticks([], minor=True)
    ax.set_xlabel(horizontal)
    ax.set_ylabel(vertical)
    ax.grid(True, which="major", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    legend_below(ax)
    return ax


def column(plot: Callable[[Axes], object], height: float = 4.0) -> Figure:
    """Return a figure for a column of the report, on whose axes `plot` has drawn, with the legend below."""
    drawn = figure(_WIDTH, height)
    axes = drawn.subplots()
    plot(axes)
    if axes.get_legend() is not None:
        legend_below(axes)
    return drawn


def legend_below(ax: Axes) -> None:
    """Move the legend under the figure, where it hides nothing: in as many columns as its labels allow."""
    drawn, own = ax.get_figure(root=True), ax.get_legend()
    if own is not None:
        own.remove()
    handles, labels = ax.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)
    columns = next((n for n, most in _COLUMNS.items() if longest <= most), 1)
    if drawn is not None and labels:
        drawn.legend(
            handles, labels, fontsize="small", frameon=False, ncols=columns, loc="outside lower center"
        )


def _more_ticks(ax: Axes) -> None:
    """Label 1, 2 and 5 of every decade of the vertical axis where powers of ten alone would be too few."""
    low, high = ax.get_ylim()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [digit * 10.0**power for power in range(first, last) for digit in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    if len(inside) <= _MOST_TICKS:
        ax.set_yticks(inside, [f"{tick:,g}" for tick in inside])
        ax.set_yticks([], minor=True)
        ax.set_ylim(low, high)


def _draw(ax: Axes, curve: Curve, style: Any) -> None:
    x, y = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64)
    dashes: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
    if curve.kind == "level":
        ax.axhline(float(y.flat[0]), color=style.color, linewidth=1.2, label=curve.label, **dashes)
        return
    look: dict[str, dict[str, Any]] = {
        "measured": {"linewidth": 1.6, "markersize": 4.5, **dashes},
        "bound": {"linewidth": 1.0, "dashes": (1, 1), "markersize": 4.5, "markerfacecolor": "white"},
        "published": {"linestyle": "none", "markersize": 7.0, "markerfacecolor": "none"},
    }
    ax.plot(x, y, color=style.color, marker=style.marker, label=curve.label, **look[curve.kind])
    if curve.low is not None and curve.high is not None:
        low, high = np.asarray(curve.low, dtype=np.float64), np.asarray(curve.high, dtype=np.float64)
        spread = np.maximum([y - low, high - y], 0.0)
        ax.errorbar(x, y, yerr=spread, fmt="none", ecolor=style.color, capsize=2.5, lw=1.0)
