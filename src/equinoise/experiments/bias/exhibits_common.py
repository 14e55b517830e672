"""What the exhibits on bias share: section, table of published figures, and how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from equinoise.experiments.bias.published import Beside, Reproduction
from equinoise.experiments.steps import SECTIONS
from equinoise.report import figures
from equinoise.report.curves import legend_below
from equinoise.report.exhibit import Claim, Exhibit, Table, comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["drawn", "exhibit", "published"]

_FEW_LABELS = 10


def exhibit(name: str, title: str, **parts: Any) -> Exhibit:
    """Return an exhibit of this pillar."""
    return Exhibit(name=name, section=SECTIONS["bias"], title=title, **parts)


def _claims(rows: Iterable[Beside]) -> Iterable[Claim]:
    """Yield the rows of an experiment in the form of all pillars."""
    for row in rows:
        published = math.nan if row.published is None else row.published
        stderr = math.nan if row.stderr is None else row.stderr
        yield Claim(_capital(row.figure), published, row.ours, f"{_capital(row.why)}.", stderr=stderr)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def published(made: Reproduction) -> Table:
    """Return the table of published figures beside ours, with the controls."""
    return Table(
        "Published figures and ours, with the standard error of ours", comparison(_claims(made.beside()))
    )


def drawn(plot: Callable[[Axes], Any], height: float = 4.4) -> Figure:
    """Return a figure as wide as the others of the report: no title, few labels, the legend below."""
    made = figures.figure(5.6, height)
    axes = made.subplots()
    plot(axes)
    axes.set_title("")  # the caption says it
    labels = [label.get_text() for label in axes.get_xticklabels()]
    if len(labels) > _FEW_LABELS and axes.get_xscale() == "linear":
        axes.set_xticks(axes.get_xticks()[::2], labels[::2])
    legend_below(axes)
    return made
