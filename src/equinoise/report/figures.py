"""Figures in one style, and the only place that imports matplotlib.

Lines differ in colour (a palette that colour-blind readers tell apart), in dashes and in markers, so a
figure can be read in grey. Nothing here chooses a backend: files are drawn on a bare ``Figure``, which needs
no display, and ``ax=None`` means a new figure of whatever pyplot uses.
"""

import io
import math
import warnings
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Literal

import numpy as np

from equinoise import _checks
from equinoise._results import summarise
from equinoise._typing import Any, ArrayLike, Axes, Callable, Figure, Floats, Iterator, NamedTuple, Sequence


class _Style(NamedTuple):
    color: str
    dashes: tuple[float, ...]  # lengths on and off; () is a solid line
    marker: str

    @property
    def stroke(self) -> dict[str, Any]:
        """How a line of this style is drawn."""
        return {"color": self.color} | ({"dashes": self.dashes} if self.dashes else {})


STYLES = (
    _Style("#0072B2", (), "o"),
    _Style("#D55E00", (6, 2), "s"),
    _Style("#000000", (1, 1.5), "^"),
    _Style("#009E73", (6, 2, 1, 2), "D"),
    _Style("#CC79A7", (3, 1.5), "v"),
    _Style("#E69F00", (8, 2, 1, 2, 1, 2), "P"),
)
LEGEND: dict[str, Any] = {"fontsize": "small", "frameon": False}
Series = Sequence[tuple[str, Any]]  # legend entries and runs


def figure(width: float = 7.0, height: float = 4.5) -> Figure:
    """Return an empty figure for a file: no display, no pyplot, nothing kept open. Sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def drawn(plot: Callable[[Axes], object], height: float = 4.5, width: float = 7.0) -> Figure:
    """Return a figure for a file on whose axes `plot` has drawn."""
    made = figure(width, height)
    plot(made.subplots())
    return made


def new_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the Axes of a new pyplot figure where it is None; TypeError for anything else."""
    if ax is not None and hasattr(ax, "fill_between"):
        return ax
    if ax is not None:
        raise TypeError(f"ax must be Axes of Matplotlib or None, got {_checks.shown(ax)}")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.0, 4.5), layout="constrained")[1]


def png(drawn: Figure, dots_per_inch: int = 150) -> bytes:
    """Return a figure as the bytes of a PNG; a box stands for what the font lacks, without a warning."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        drawn.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


def svg(drawn: Figure, salt: str) -> bytes:
    """Return a figure as SVG: glyphs are outlines, and the same figure and salt give the same bytes."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def printable(text: str) -> str:
    """Return text that can be drawn: no formulas (``$``), and escapes for what is no character."""
    return text.encode("utf-8", "backslashreplace").decode().replace("$", r"\$")


def regret_curve(ax: Axes | None, series: Series, color: str | None = None) -> Axes:
    """Draw cumulative regret against trials as :func:`regret_means`, and each run's ``tuning.bound(trials)``.

    In place of bounds above the trivial regret, one line shows that: 1 per trial.
    """
    ax = means(ax, series, "regret", color, bound=True)
    return finish(ax, "trials (users)", "cumulative regret (losses in [0, 1])", "0.85", below="line")


def regret_means(ax: Axes | None, series: Series) -> Axes:
    """Draw cumulative pseudo-regret of runs (``trials`` int64[C], ``regret`` float64[R, C]) against rounds.

    Shaded are normal 95% intervals of the means. Both axes are logarithmic; where a mean is not positive, the
    regret's is linear. Without `ax`, in a new figure.
    """
    return finish(means(ax, series, "regret"), "rounds", "cumulative pseudo-regret")


def means(ax: Axes | None, series: Series, name: str, color: str | None = None, bound: bool = False) -> Axes:
    """Draw one quantity of runs as :func:`regret_means` does; on axes that have some, in the next colours."""
    ax = new_axes(ax)
    positive, trivial = True, None
    for style, (label, run) in zip(repeated(len(ax.collections)), series, strict=False):
        style = style._replace(color=color or style.color)
        mean, _, low, high = summarise(getattr(run, name))
        positive &= bool((mean > 0).all())
        line(ax, run.trials, mean, style, label)
        ax.fill_between(run.trials, low, high, color=style.color, alpha=0.2, linewidth=0)
        proven = np.asarray(run.tuning.bound(run.trials) if bound else run.trials, dtype=np.float64)
        if (proven < run.trials).any():
            line(ax, run.trials, proven, style._replace(dashes=(1, 1)), f"{label}: proven bound", proven=True)
        elif bound:
            trivial = run.trials
    if trivial is not None and "trivial bound (1 per trial)" not in ax.get_legend_handles_labels()[1]:
        ax.plot(trivial, trivial, color="0.5", dashes=(1, 1), lw=1.0, label="trivial bound (1 per trial)")
    ax.set_xscale("log")
    ax.set_yscale("log" if positive else "linear")
    return ax


def bandit_bias(ax: Axes | None, series: Series, *, bound: Floats | None = None) -> Axes:
    """Draw the bias of every arm's mean reward, with 95% intervals, from the frame ``bias()`` of each run.

    All runs have the same arms: one place each, labelled with its true mean where there are few. `bound`,
    float64[K], is what the absolute bias of each arm is proven to stay within. Without `ax`, in a new figure.
    """
    ax = new_axes(ax)
    frames = [(label, run.bias()) for label, run in series]
    means = frames[0][1]["mean"].to_numpy()
    arms, few = np.arange(len(means)), len(means) <= 25
    step = min(0.7 / len(frames), 0.16)
    for i, (style, (label, frame)) in enumerate(zip(repeated(), frames, strict=False)):
        bias, low, high = (frame[name].to_numpy() for name in ("bias", "ci_low", "ci_high"))
        places, bars = arms + (i - (len(frames) - 1) / 2) * step, [bias - low, high - bias]
        look: dict[str, Any] = {"color": style.color, "fmt": style.marker, "markersize": 3.5}
        ax.errorbar(places, bias, bars, elinewidth=1.0, capsize=1.5, label=label, **look)
    if bound is not None:
        edges = np.arange(len(means) + 1) - 0.5
        options: dict[str, Any] = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (1, 1))}
        ax.stairs(bound, edges, baseline=None, label="proven bound", **options)
        ax.stairs(-bound, edges, baseline=None, **options)
    ax.axhline(0.0, color="0.3", linewidth=0.8)
    if few:
        ax.set_xticks(arms, [f"{mean:.3g}" for mean in means], fontsize="small")
    finish(ax, "arm, by its true mean" if few else "arm", "bias of the arm's mean reward")
    ax.grid(False, axis="x")
    # below the axes: intervals are everywhere within
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, **LEGEND)
    return ax


def finish(
    ax: Axes, horizontal: str, vertical: str, grid: str = "0.9", *, below: bool | Literal["line"] = True
) -> Axes:
    """Name the axes, and put a light grid and a legend; return the axes."""
    ax.set(xlabel=horizontal, ylabel=vertical)
    ax.grid(True, which="major", color=grid, linewidth=0.6)
    ax.set_axisbelow(below)
    ax.legend(**LEGEND)
    return ax


def repeated(first: int = 0) -> Iterator[_Style]:
    """Yield the styles again and again, from one of them on."""
    return islice(cycle(STYLES), first, None)


def line(
    ax: Axes, x: Any, y: Any, style: _Style, label: str, *, proven: bool = False, even: bool = False
) -> None:
    """Draw a curve with about nine markers, evenly on a logarithmic axis, or `even`; hollow for bounds."""
    look: dict[str, Any] = {"linewidth": 1.0, "markerfacecolor": "white"} if proven else {"linewidth": 1.6}
    places = np.linspace(x[0], x[-1], 9) if even else np.geomspace(max(x[0], 1), x[-1], 9)
    shown = np.unique(np.searchsorted(x, places).clip(0, len(x) - 1)).tolist()
    marks: dict[str, Any] = {"marker": style.marker, "markersize": 4.5, "markevery": shown}
    ax.plot(x, y, label=label, **style.stroke, **look, **marks)


# Curves over a parameter: what was measured with its intervals, what is proven, and what was published.

_MOST_TICKS = 8
_COLUMNS = {3: 16, 2: 34}  # columns of a legend, and how many characters its longest label may have then
_WIDTH = 5.6  # inches, of a column of the report
_FEW_LABELS = 10  # along the axis of such a column
KINDS = ("measured", "bound", "published", "level")


@dataclass(frozen=True, eq=False)
class Curve:
    """One entry of the legend: points float64[n], and ends of intervals around y; NaN leaves a point out.

    "measured" is a line with points and intervals, "bound" a thin dotted line with hollow points in the
    colour of the curve before it, "published" hollow points alone, "level" one y over the whole width.
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
    """Draw curves, told apart by colour, dashes and markers, with the legend below.

    `horizontal` and `vertical` say what the axes show, with units, and `logarithmic` ("", "x", "y" or "xy")
    which are logarithmic; `ticks` are the only ones of the horizontal axis where there are any.
    """
    _checks.choice("logarithmic", logarithmic, ("", "x", "y", "xy"))
    ax = new_axes(ax)
    used = -1
    for curve in series:
        used += curve.kind != "bound"
        _draw(ax, curve, STYLES[max(used, 0) % len(STYLES)])
    ax.set_xscale("log" if "x" in logarithmic else "linear")
    ax.set_yscale("log" if "y" in logarithmic else "linear")
    for letter in logarithmic:
        _more_ticks(ax, letter)
    if len(ticks):
        ax.set_xticks(list(ticks), [f"{tick:,g}" for tick in ticks])
        ax.set_xticks([], minor=True)
    finish(ax, horizontal, vertical, "0.88")
    legend_below(ax)
    return ax


def column(plot: Callable[[Axes], object], height: float = 4.0) -> Figure:
    """Return a figure for a column of the report, where `plot` has drawn: few labels, the legend below."""
    made = drawn(plot, height, _WIDTH)
    axes = made.axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    if len(labels) > _FEW_LABELS and axes.get_xscale() == "linear":
        axes.set_xticks(axes.get_xticks()[::2], labels[::2])
    if axes.get_legend() is not None:
        legend_below(axes)
    return made


def legend_below(ax: Axes) -> None:
    """Move the legend under the figure, where it hides nothing: in as many columns as its labels allow."""
    drawn, own = ax.get_figure(root=True), ax.get_legend()
    if own is not None:
        own.remove()
    handles, labels = ax.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)
    columns = next((n for n, most in _COLUMNS.items() if longest <= most), 1)
    if drawn is not None and labels:
        drawn.legend(handles, labels, ncols=columns, loc="outside lower center", **LEGEND)


def _more_ticks(ax: Axes, letter: str) -> None:
    """Label 1, 2 and 5 of every decade of an axis, x or y, where powers of ten alone would be too few."""
    low, high = getattr(ax, f"get_{letter}lim")()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [digit * 10.0**power for power in range(first, last) for digit in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    if 0 < len(inside) <= _MOST_TICKS:
        of: Any = getattr(ax, f"{letter}axis")
        of.set_ticks(inside, labels=[f"{tick:,g}" for tick in inside])
        of.set_ticks([], minor=True)
        getattr(ax, f"set_{letter}lim")(low, high)


def _draw(ax: Axes, curve: Curve, style: _Style) -> None:
    x, y = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64)
    if curve.kind == "level":
        ax.axhline(float(y.flat[0]), linewidth=1.2, label=curve.label, **style.stroke)
        return
    look: dict[str, dict[str, Any]] = {
        "measured": {"linewidth": 1.6, "markersize": 4.5, **style.stroke},
        "bound": {"linewidth": 1.0, "dashes": (1, 1), "markersize": 4.5, "markerfacecolor": "white"},
        "published": {"linestyle": "none", "markersize": 7.0, "markerfacecolor": "none"},
    }
    ax.plot(x, y, marker=style.marker, label=curve.label, **{"color": style.color, **look[curve.kind]})
    if curve.low is not None and curve.high is not None:
        spread = np.maximum([y - np.asarray(curve.low), np.asarray(curve.high) - y], 0.0)
        ax.errorbar(x, y, yerr=spread, fmt="none", ecolor=style.color, capsize=2.5, lw=1.0)
