"""What an experiment shows: a question, sentences, tables and figures, and what was published beside ours."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from equinoise import _checks
from equinoise._results import Z95
from equinoise.report import figures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Claim", "Exhibit", "Picture", "Table", "comparison", "csv_bytes"]

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NEAR = 0.1  # relative difference up to which two figures agree


class Table(NamedTuple):
    """A table: its caption, and a frame whose column names become headings."""

    caption: str
    frame: pd.DataFrame


class Picture(NamedTuple):
    """A figure: its caption, what somebody should know of it who does not see it, and the drawing."""

    caption: str
    description: str
    figure: Figure


@dataclass(frozen=True, eq=False)
class Exhibit:
    """What one experiment shows; files, the page and the terminal are made of it.

    Attributes
    ----------
    name : str
        Lower-case words joined by hyphens; the names of its files begin with it.
    section : str
        The heading under which it stands, a pillar.
    title : str
    question : str
        What it answers.
    headline : str
        The answer in one line.
    text : tuple of str
        Paragraphs, plain sentences.
    tables : mapping of str to Table
        By a name like the exhibit's.
    figures : mapping of str to Picture

    Raises
    ------
    ValueError
        When a name could not be one of a file, or a headline has more than one line.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table("Squares", pd.DataFrame({"x": [1, 2], "square": [1, 4]}))
    >>> list(Exhibit("squares", "Numbers", "Squares", "How large?", "Four.", tables={"all": table}).files())
    ['tables/squares-all.csv']
    """

    name: str
    section: str
    title: str
    question: str
    headline: str
    text: tuple[str, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Picture] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, names in (("name", [self.name]), ("tables", self.tables), ("figures", self.figures)):
            for name in names:
                if not _SLUG.fullmatch(name):
                    raise ValueError(
                        f"{what} must be lower-case words joined by hyphens, got {_checks.shown(name)}"
                    )
        if len(self.headline.splitlines()) != 1:
            raise ValueError(f"headline must be one line, got {_checks.shown(self.headline)}")

    @cached_property
    def drawings(self) -> dict[str, bytes]:
        """Every figure as SVG, drawn once."""
        return {
            stem: figures.svg(picture.figure, f"{self.name}-{stem}") for stem, picture in self.figures.items()
        }

    def files(self) -> dict[str, bytes]:
        """Return bytes by their paths: ``tables/NAME-STEM.csv``, ``figures/NAME-STEM.png`` and ``.svg``."""
        made = {
            f"tables/{self.name}-{stem}.csv": csv_bytes(table.frame) for stem, table in self.tables.items()
        }
        for stem, picture in self.figures.items():
            made[f"figures/{self.name}-{stem}.png"] = figures.png(picture.figure)
            made[f"figures/{self.name}-{stem}.svg"] = self.drawings[stem]
        return made


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a frame as the bytes of a CSV file."""
    table = io.BytesIO()
    frame.to_csv(table, index=False, lineterminator="\n", encoding="utf-8")
    return table.getvalue()


class Claim(NamedTuple):
    """A published figure and ours.

    Attributes
    ----------
    quantity : str
        What both are figures of.
    published, ours : float
        NaN for none.
    why : str
        Why they differ, one line; shown only where they do.
    decimals : int or None
        Decimals that were printed: figures that round to the same agree.
    stderr : float
        Standard error of ours; NaN where it has none.
    """

    quantity: str
    published: float
    ours: float
    why: str
    decimals: int | None = None
    stderr: float = math.nan


def comparison(claims: Iterable[Claim]) -> pd.DataFrame:
    """Put published figures and ours side by side.

    Parameters
    ----------
    claims : iterable of Claim

    Returns
    -------
    pandas.DataFrame
        ``quantity``, ``published``, ``ours``, ``stderr`` (of ours, where any has one), ``ratio`` (ours to
        published; NaN where that is no number) and ``why``, which says that they agree where they are within
        a tenth of each other, equal in the decimals that were printed, or where the 95% interval of ours
        holds what was published.

    Raises
    ------
    ValueError
        When a difference is left without a reason.

    Examples
    --------
    >>> frame = comparison([Claim("KL", 2.0, 1.0, "Other data."), Claim("cosine", 0.99, 1.0, "Other data.")])
    >>> frame["ratio"].round(2).tolist(), frame["why"].tolist()
    ([0.5, 1.01], ['Other data.', 'Agree within a tenth.'])
    """
    import pandas as pd

    rows = []
    for claim in claims:
        if not claim.why.strip():
            raise ValueError(f"why must say why figures of {claim.quantity!r} may differ, got none")
        defined = claim.published != 0.0 and math.isfinite(claim.published) and math.isfinite(claim.ours)
        ratio = claim.ours / claim.published if defined else math.nan
        why = _verdict(claim, ratio)
        rows.append((claim.quantity, claim.published, claim.ours, claim.stderr, ratio, why))
    frame = pd.DataFrame(rows, columns=["quantity", "published", "ours", "stderr", "ratio", "why"])
    return frame.drop(columns="stderr") if frame["stderr"].isna().all() else frame


def _verdict(claim: Claim, ratio: float) -> str:
    if claim.decimals is not None and abs(claim.ours - claim.published) <= 0.5 * 10.0**-claim.decimals:
        return "Agree in all decimals that were printed."
    if abs(ratio - 1.0) <= _NEAR:
        return "Agree within a tenth."
    if abs(claim.ours - claim.published) <= Z95 * claim.stderr:
        return "Agree: the 95% interval of ours holds what was published."
    return claim.why
