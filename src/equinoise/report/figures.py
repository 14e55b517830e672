"""Figures in one style, and the only place that imports matplotlib.

Lines differ in colour (a palette that colour-blind readers tell apart), in dashes and in markers, so a
figure can be read in grey. Nothing here chooses a backend: files are drawn on a bare ``Figure``, which needs
no display, and ``ax=None`` means a new figure of whatever pyplot uses.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from equinoise._results import summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure", "new_axes", "png", "regret_curve"]


class _Style(NamedTuple):
    color: str
    dashes: tuple[float, ...]  # lengths on and off; () is a solid line
    marker: str


STYLES = (
    _Style("#0072B2", (), "o"),
    _Style("#D55E00", (6, 2), "s"),
    _Style("#000000", (1, 1.5), "^"),
    _Style("#009E73", (6, 2, 1, 2), "D"),
    _Style("#CC79A7", (3, 1.5), "v"),
    _Style("#E69F00", (8, 2, 1, 2, 1, 2), "P"),
)


class _Bounded(Protocol):
    def bound(self, trials: NDArray[np.int64], /) -> Any: ...


class RegretRun(Protocol):
    """What is drawn of a run: trials int64[C], regret float64[R, C], and a proven bound for any trial."""

    @property
    def trials(self) -> NDArray[np.int64]: ...
    @property
    def regret(self) -> NDArray[np.float64]: ...
    @property
    def tuning(self) -> _Bounded: ...


def figure(width: float = 7.0, height: float = 4.5) -> Figure:
    """Return an empty figure for a file: no display, no pyplot, nothing kept open. Sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the Axes of a new pyplot figure where it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.0, 4.5), layout="constrained")[1]


def png(drawn: Figure, dots_per_inch: int = 150) -> bytes:
    """Return a figure as the bytes of a PNG."""
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


def regret_curve(ax: Axes | None, series: Sequence[tuple[str, RegretRun]]) -> Axes:
    """Draw cumulative regret against trials: means, 95% intervals, and each run's proven bound.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    series : sequence of (str, run)
        A legend entry and a run, with ``trials``, ``regret`` and ``tuning.bound(trials)``. In place of
        bounds that say nothing, one line shows the largest regret that there can be: one a trial.

    Returns
    -------
    matplotlib.axes.Axes
        Both axes logarithmic, so that growth like a power of T is a straight line. Where a mean is not
        positive, the regret axis is linear. Shaded: normal 95% intervals.
    """
    ax = new_axes(ax)
    positive, trivial = True, None
    for i, (label, run) in enumerate(series):
        style = STYLES[i % len(STYLES)]
        estimate = summarise(run.regret)
        positive &= bool((estimate.mean > 0).all())
        _line(ax, run.trials, estimate.mean, style, label)
        ax.fill_between(
            run.trials, estimate.ci_low, estimate.ci_high, color=style.color, alpha=0.2, linewidth=0
        )
        bound = np.asarray(run.tuning.bound(run.trials), dtype=np.float64)
        if (bound < run.trials).any():
            _line(ax, run.trials, bound, style._replace(dashes=(1, 1)), f"{label}: proven bound", proven=True)
        else:
            trivial = run.trials
    if trivial is not None:
        ax.plot(trivial, trivial, color="0.5", dashes=(1, 1), lw=1.0, label="one a trial, the trivial bound")
    ax.set_xscale("log")
    ax.set_yscale("log" if positive else "linear")
    ax.set_xlabel("trials (users)")
    ax.set_ylabel("cumulative regret (losses in [0, 1])")
    ax.grid(True, which="major", color="0.85", linewidth=0.6)
    ax.legend(fontsize="small", frameon=False)
    return ax


def _line(
    ax: Axes, x: NDArray[Any], y: NDArray[Any], style: _Style, label: str, *, proven: bool = False
) -> None:
    """Draw a curve with about nine markers, even on a logarithmic axis; thin and hollow for bounds."""
    options: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
    if proven:
        options["markerfacecolor"] = "white"
    shown = np.searchsorted(x, np.geomspace(max(x[0], 1), x[-1], 9)).clip(0, len(x) - 1)
    ax.plot(
        x,
        y,
        color=style.color,
        linewidth=1.0 if proven else 1.6,
        label=label,
        marker=style.marker,
        markersize=4.5,
        markevery=np.unique(shown).tolist(),
        **options,
    )
