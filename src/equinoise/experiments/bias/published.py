"""What every experiment on bandits gives: published figures beside ours, frames, figures, a document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from equinoise import _checks, _files, _results
from equinoise.report import figures
from equinoise.report.exhibit import csv_bytes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Beside", "Reproduction", "beside_frame", "scaled"]


class Beside(NamedTuple):
    """One figure.

    Attributes
    ----------
    figure : str
        What it is.
    published : float or None
        None where the paper gives none.
    ours : float
    stderr : float or None
        Of ours, over the replicates; None where it has none.
    why : str
        Why they differ, or what a figure of our own is for.
    """

    figure: str
    published: float | None
    ours: float
    stderr: float | None
    why: str


def beside_frame(rows: Iterable[Beside]) -> pd.DataFrame:
    """Return figures as a frame: figure, published, ours, stderr, why."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(Beside._fields))
    return frame.astype({"published": float, "stderr": float})


def scaled(replicates: int, scale: float) -> int:
    """Return a number of replicates times `scale`, at least 2, so that there are intervals.

    Raises
    ------
    TypeError, ValueError
        When either is of the wrong kind or out of range.
    """
    n = _checks.integer("replicates", replicates, 2)
    return max(2, round(n * _checks.number("scale", scale, 0.0, open_low=True)))


@dataclass(frozen=True, eq=False)
class Reproduction(ABC):
    """The result of one experiment.

    Attributes
    ----------
    horizon, replicates, seed : int
    seconds : float
        How long it took.
    """

    horizon: int
    replicates: int
    seed: int
    seconds: float

    @property
    @abstractmethod
    def name(self) -> str:
        """What its files are called."""

    @abstractmethod
    def beside(self) -> list[Beside]:
        """Return the published figures beside ours."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return what was computed, as a long frame."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the main figure; return the Axes."""

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, but for the seed."""
        return {"horizon": self.horizon, "replicates": self.replicates}

    def frames(self) -> Mapping[str, pd.DataFrame]:
        """Return the frames that are written, by the ends of their names."""
        return {"table": self.beside_frame(), "data": self.to_frame()}

    def drawings(self) -> Mapping[str, Figure]:
        """Return the figures, by the ends of their names."""
        return {"figure": figures.drawn(self.plot)}

    def figures(self) -> dict[str, bytes]:
        """Return the figures as the bytes of PNG files, by the ends of their names."""
        return {end: figures.png(drawing) for end, drawing in self.drawings().items()}

    def beside_frame(self) -> pd.DataFrame:
        """Return the published figures beside ours: figure, published, ours, stderr, why."""
        return beside_frame(self.beside())

    def document(self) -> dict[str, Any]:
        """Return how it was made and the figures, in the types of JSON."""
        plain: dict[str, Any] = _results.plain(
            {
                "experiment": self.name,
                **_results.provenance(self.parameters(), seed=self.seed, seconds=self.seconds),
                "figures": [row._asdict() for row in self.beside()],
            }
        )
        return plain

    def files(self) -> dict[str, bytes]:
        """Return frames, figures and document as the bytes of files, by their names."""
        return {
            **{f"{self.name}-{end}.csv": csv_bytes(frame) for end, frame in self.frames().items()},
            **{f"{self.name}-{end}.png": picture for end, picture in self.figures().items()},
            f"{self.name}.json": _files.json_bytes(self.document()),
        }
