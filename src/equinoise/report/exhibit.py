"""The one way to show a result: a question, its answer, tables, figures, and ours next to the published."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass, field
from functools import cached_property

from equinoise import _checks
from equinoise._results import Z95, plain
from equinoise._typing import Any, DataFrame, Figure, Iterable, Mapping, NamedTuple
from equinoise.report import figures

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NEAR = 0.1  # relative difference up to which two figures agree


class Table(NamedTuple):
    """A table: its caption, and a frame whose column names become headings."""

    caption: str
    frame: DataFrame


class Drawn(NamedTuple):
    """A figure as the bytes of its files."""

    png: bytes
    svg: bytes


class Picture(NamedTuple):
    """A figure: its caption, a description for readers who do not see it, and the drawing."""

    caption: str
    description: str
    figure: Figure | Drawn

    def png(self) -> bytes:
        """Return the drawing as PNG."""
        return self.figure.png if isinstance(self.figure, Drawn) else figures.png(self.figure)

    def svg(self, salt: str) -> bytes:
        """Return the drawing as SVG, whose inner names depend on the salt."""
        return self.figure.svg if isinstance(self.figure, Drawn) else figures.svg(self.figure, salt)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """What one experiment shows; files, JSON, the page and the terminal are made from it.

    The `section` is the heading under which it stands, the `headline` the answer to the `question` in one
    line, `text` paragraphs of plain sentences. The names of its files begin with its `name`. Raises
    ValueError for names that are not lower-case words joined by hyphens, and a headline of several lines.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table("Squares", pd.DataFrame({"x": [1, 2], "square": [1, 4]}))
    >>> made = Exhibit("squares", "Numbers", "Squares", "How large?", "Four.", tables={"all": table})
    >>> list(made.files()), made.document()["tables"]["all"]["rows"]
    (['tables/squares-all.csv'], [[1, 1], [2, 4]])
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
                    said = _checks.shown(name)
                    raise ValueError(f"{what} must be lower-case words joined by hyphens, got {said}")
        if len(self.headline.splitlines()) != 1:
            raise ValueError(f"headline must be one line, got {_checks.shown(self.headline)}")

    @cached_property
    def drawings(self) -> dict[str, bytes]:
        """Every figure as SVG, drawn once."""
        return {stem: picture.svg(f"{self.name}-{stem}") for stem, picture in self.figures.items()}

    def files(self) -> dict[str, bytes]:
        """Return bytes by their paths: ``tables/NAME-STEM.csv``, ``figures/NAME-STEM.png`` and ``.svg``."""
        made = {f"tables/{self.name}-{stem}.csv": csv_bytes(one.frame) for stem, one in self.tables.items()}
        for stem, picture in self.figures.items():
            made[f"figures/{self.name}-{stem}.png"] = picture.png()
            made[f"figures/{self.name}-{stem}.svg"] = self.drawings[stem]
        return made

    def document(self) -> dict[str, Any]:
        """Return everything but the drawings in the types of JSON; a missing value in a table is None."""
        made = {name: getattr(self, name) for name in ("name", "section", "title", "question", "headline")}
        made["text"] = list(self.text)
        made["tables"] = {
            stem: {
                "caption": caption,
                "columns": {str(name): str(kind) for name, kind in frame.dtypes.items()},
                "rows": plain(list(frame.astype(object).where(frame.notna(), None).to_numpy())),
            }
            for stem, (caption, frame) in self.tables.items()
        }
        made["figures"] = {stem: {"caption": c, "description": d} for stem, (c, d, _) in self.figures.items()}
        return made

    @classmethod
    def restored(cls, document: Mapping[str, Any], files: Mapping[str, bytes]) -> Exhibit:
        """Return the exhibit with such a document, which may lack the rows of its tables, and such files."""
        name, parts = document["name"], dict(document, text=tuple(document["text"]))
        parts["tables"] = {
            stem: Table(table["caption"], _frame(files[f"tables/{name}-{stem}.csv"], table["columns"]))
            for stem, table in document["tables"].items()
        }
        parts["figures"] = {}
        for stem, words in document["figures"].items():
            drawn = Drawn(*(files[f"figures/{name}-{stem}.{end}"] for end in Drawn._fields))
            parts["figures"][stem] = Picture(**words, figure=drawn)
        return cls(**parts)


def frame_of(rows: Any, columns: Any = None) -> DataFrame:
    """Return a frame of a list of rows, or of a mapping of columns."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def joined(frames: Iterable[DataFrame]) -> DataFrame:
    """Return frames below one another as one, its rows numbered anew."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


def csv_bytes(frame: DataFrame) -> bytes:
    """Return a frame as the bytes of a CSV file."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def _frame(content: bytes, columns: Mapping[str, str]) -> DataFrame:
    """Return the frame of a CSV file whose columns have such types, with the very same numbers."""
    import pandas as pd

    def number(cell: str) -> float:  # in full precision, unlike the readers of some versions of pandas
        return float(cell or "nan")

    texts = {name: kind for name, kind in columns.items() if not kind.startswith(("int", "uint", "bool"))}
    read: Any = {n: number if k.startswith("float") else lambda cell: cell or None for n, k in texts.items()}
    kinds: Any = dict(columns)
    return pd.read_csv(io.BytesIO(content), converters=read, keep_default_na=False).astype(kinds)


class Claim(NamedTuple):
    """A published figure and ours, NaN for none, and a line on why they differ, shown only where they do."""

    quantity: str
    published: float
    ours: float
    why: str
    decimals: int | None = None  # those that were printed: figures that round to the same agree
    stderr: float = math.nan  # of ours


def comparison(claims: Iterable[Claim]) -> DataFrame:
    """Put published figures next to ours, with their ratio and why they differ; ValueError without a reason.

    The columns are ``quantity``, ``published``, ``ours``, ``stderr`` (of ours, where any has one), ``ratio``
    (ours to published; NaN where that is no number) and ``why``, which instead says how they agree where they
    are within 10%, equal in all printed decimals, or where our 95% interval contains the published one.

    Examples
    --------
    >>> frame = comparison([Claim("KL", 2.0, 1.0, "Other data."), Claim("cosine", 0.99, 1.0, "Other data.")])
    >>> frame["ratio"].round(2).tolist(), frame["why"].tolist()
    ([0.5, 1.01], ['Other data.', 'Within 10%.'])
    """
    rows = []
    for claim in claims:
        if not claim.why.strip():
            raise ValueError(f"why must say why figures of {claim.quantity!r} may differ, got none")
        defined = claim.published != 0.0 and math.isfinite(claim.published) and math.isfinite(claim.ours)
        ratio = claim.ours / claim.published if defined else math.nan
        rows.append((*claim[:3], claim.stderr, ratio, _verdict(claim, ratio)))
    frame = frame_of(rows, ["quantity", "published", "ours", "stderr", "ratio", "why"])
    return frame.drop(columns="stderr") if frame["stderr"].isna().all() else frame


def _verdict(claim: Claim, ratio: float) -> str:
    difference = abs(claim.ours - claim.published)
    if claim.decimals is not None and difference <= 0.5 * 10.0**-claim.decimals:
        return "Equal in all printed decimals."
    if abs(ratio - 1.0) <= _NEAR:
        return "Within 10%."
    within = difference <= Z95 * claim.stderr
    return "Our 95% interval contains the published figure." if within else claim.why
