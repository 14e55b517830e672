"""Figures about releases, in the style of :mod:`equinoise.report.figures`: distributions and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise.report.figures import STYLES, finish, line, new_axes, repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["distributions", "noise_scales", "noise_shapes"]


def distributions(
    ax: Axes | None,
    histogram: NDArray[np.float64],
    series: Sequence[tuple[str, NDArray[np.float64]]],
    *,
    values: NDArray[np.float64] | None = None,
    unit: str = "bin",
    label: str = "original",
) -> Axes:
    """Draw a histogram and what is released in its place.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    histogram : float64[K]
        Share of the records in each bin; drawn as a grey area.
    series : sequence of (str, float64[K])
        A legend entry and the probability that each bin is released.
    values : float64[K], optional
        What the bins stand for, ascending; their numbers by default.
    unit : str
        What the values are.
    label : str
        Legend entry of the histogram.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_axes(ax)
    x = (
        np.arange(len(histogram), dtype=np.float64)
        if values is None
        else np.asarray(values, dtype=np.float64)
    )
    half = (x[-1] - x[0]) / (len(x) - 1) / 2
    edges = np.concatenate([x - half, [x[-1] + half]])
    ax.stairs(histogram, edges, fill=True, color="0.8", label=label)
    for style, (name, released) in zip(repeated(), series, strict=False):
        line(ax, x, released, style, name, even=True)
    finish(ax, unit, "probability")
    ax.set_ylim(bottom=0.0)
    return ax


def noise_shapes(
    ax: Axes | None,
    offsets: NDArray[np.float64],
    series: Sequence[tuple[str, NDArray[np.float64]]],
    *,
    unit: str = "bins",
) -> Axes:
    """Draw the probabilities of noise by how far it moves a value.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    offsets : float64[K]
        Where a value comes out, from where it was; ascending.
    series : sequence of (str, float64[K])
        A legend entry and the probability of each offset.
    unit : str
        What the offsets are.

    Returns
    -------
    matplotlib.axes.Axes
        The axis of probabilities is logarithmic and ends at 10^-6.
    """
    ax = new_axes(ax)
    for style, (name, mass) in zip(repeated(), series, strict=False):
        line(ax, offsets, mass, style, name, even=True)
    finish(ax, f"noise ({unit})", "probability")
    ax.set_yscale("log")
    ax.set_ylim(1e-6, 2.0)
    return ax


def noise_scales(
    ax: Axes | None,
    values: NDArray[np.float64],
    scales: NDArray[np.float64],
    counts: NDArray[np.int64],
    lines: Sequence[tuple[str, float]] = (),
    *,
    unit: str = "bin",
) -> Axes:
    """Draw how much noise records have, by their value.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    values : float64[K]
        What the bins stand for.
    scales : float64[V]
        Positive, in the units of the values.
    counts : int64[K, V]
        Records of each bin that use each scale: the areas of the points grow with their logarithm.
    lines : sequence of (str, float)
        Legend entries and scales to compare with, which all records share.
    unit : str
        What the values are.

    Returns
    -------
    matplotlib.axes.Axes
        The axis of scales is logarithmic.
    """
    ax = new_axes(ax)
    used = np.argwhere(counts)
    k, v = used[:, 0], used[:, 1]
    area = 12.0 * (1.0 + np.log2(counts[k, v]))
    style = STYLES[0]
    ax.scatter(values[k], scales[v], s=area, color=style.color, alpha=0.7, linewidths=0, label="records")
    for style, (label, scale) in zip(repeated(1), lines, strict=False):
        options: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
        ax.axhline(scale, color=style.color, linewidth=1.2, label=label, **options)
    ax.set_yscale("log")
    finish(ax, unit, f"noise scale ({unit})")
    return ax
