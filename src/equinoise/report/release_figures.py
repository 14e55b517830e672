"""Figures about releases, in the style of :mod:`equinoise.report.figures`: distributions and noise.

All draw on the Axes `ax`, or a new figure where it is None, and return the Axes. A `series` is pairs of a
legend entry and float64[K], a probability for each bin; `unit` says what the values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equinoise._typing import Axes, Floats, Ints
from equinoise.report.figures import STYLES, finish, line, new_axes, repeated

__all__ = ["distributions", "noise_scales", "noise_shapes"]

Series = Sequence[tuple[str, Floats]]


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
    finish(ax, unit, "probability")
    ax.set_ylim(bottom=0.0)
    return ax


def noise_shapes(ax: Axes | None, offsets: Floats, series: Series, *, unit: str = "bins") -> Axes:
    """Draw the probabilities of noise by how far it moves a value, `offsets` float64[K], down to 10^-6."""
    ax = new_axes(ax)
    for style, (name, mass) in zip(repeated(), series, strict=False):
        line(ax, offsets, mass, style, name, even=True)
    finish(ax, f"noise ({unit})", "probability")
    ax.set_yscale("log")
    ax.set_ylim(1e-6, 2.0)
    return ax


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
    style = STYLES[0]
    ax.scatter(values[k], scales[v], s=area, color=style.color, alpha=0.7, linewidths=0, label="records")
    for style, (label, scale) in zip(repeated(1), lines, strict=False):
        options: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
        ax.axhline(scale, color=style.color, linewidth=1.2, label=label, **options)
    ax.set_yscale("log")
    finish(ax, unit, f"noise scale ({unit})")
    return ax
