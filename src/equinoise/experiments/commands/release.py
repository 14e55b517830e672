"""What a release is written into: files for others, and files that stay with the steward."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _files
from equinoise.experiments.commands import common
from equinoise.experiments.steps import SECTIONS
from equinoise.nvo import Profile
from equinoise.nvo.columns import Column
from equinoise.nvo.noise import LaplaceNoise
from equinoise.report import figures, release_figures
from equinoise.report.exhibit import Exhibit, Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equinoise.experiments.commands.nvo import Parameters

__all__ = ["FILES", "Release"]

PUBLIC = ("sample.csv", "certificate.json", "distribution.png", "noise.png")
PRIVATE = ("scales.csv", "distribution.png", "noise.png", "run.json")
FILES = (*PUBLIC, *(f"private/{name}" for name in PRIVATE))
_MEASURES = ("kl", "sd_l1", "jaccard", "cosine")
_SHAPES = 8  # scales whose noise is drawn


@dataclass(frozen=True, eq=False)
class Release:
    """A release, or why there is none.

    Attributes
    ----------
    parameters : Parameters
    column : Column
    profile : Profile
    others : dict of str to Profile
        The Laplace mechanisms, see :func:`baselines`.
    lower_bound : float
        No certified profile has a smaller KL; infinite where it is proven that there is none.
    certificate : dict
    sample : int64[rows] or float64[rows] or None
        None where the profile is not certified, or does not stay within the total.
    seconds : float
    """

    parameters: Parameters
    column: Column
    profile: Profile
    others: dict[str, Profile]
    lower_bound: float
    certificate: dict[str, Any]
    sample: NDArray[Any] | None
    seconds: float

    def rows(self) -> list[dict[str, Any]]:
        """Return the table: one row per mechanism, NVO first.

        Returns
        -------
        list of dict
            ``mechanism``, ``satisfied``, ``realised_epsilon``, ``realised_epsilon_addition``, ``kl``,
            ``lower_bound`` and ``gap`` (NVO only, else None), ``sd_l1``, ``jaccard``, ``cosine``.
        """
        table = []
        for name, profile in {"NVO": self.profile, **self.others}.items():
            row = {
                "mechanism": name,
                "satisfied": profile.n_satisfied,
                "realised_epsilon": profile.realised_epsilon,
                "realised_epsilon_addition": profile.realised_epsilon_addition,
                "lower_bound": self.lower_bound if name == "NVO" else None,
                "gap": profile.kl - self.lower_bound if name == "NVO" and profile.certified else None,
            }
            table.append(row | {measure: getattr(profile, measure) for measure in _MEASURES})
        return table

    def failing(self) -> list[dict[str, Any]]:
        """Return the bins that fail, the worst first: ``value``, ``records``, their largest ``epsilon``."""
        judged = self.profile.evaluation
        wrong = np.where(judged.satisfied, 0, self.profile.counts)
        bins = np.flatnonzero(wrong.any(axis=1))
        values = self.profile.game.histogram.to_units(bins)
        worst = np.where(wrong > 0, judged.epsilon, 0.0).max(axis=1)
        table = [
            {"value": value.item(), "records": int(wrong[k].sum()), "epsilon": float(worst[k])}
            for k, value in zip(bins, values, strict=True)
        ]
        return sorted(table, key=lambda row: -row["epsilon"])

    def document(self) -> dict[str, Any]:
        """Return what ``private/run.json`` holds: how it was made, the table, and the certificate."""
        return common.document(
            "nvo",
            self.parameters,
            self.seconds,
            seed=self.profile.seed or 0,
            released=self.sample is not None,
            table=self.rows(),
            failing=self.failing(),
            certificate=self.certificate,
        )

    def files(self) -> dict[str, bytes]:
        """Return the files of the release as bytes, by their paths in its folder.

        What lies in ``private/`` shows the data or which record has which scale. The other files follow from
        the sample and from what the certificate says: ``distribution.png`` there is of the sample, and
        ``noise.png`` of all the available noise scales.
        """
        import pandas as pd

        sample = pd.DataFrame({self.column.name: self.sample})
        written: Any = {"sep": self.column.sep, "decimal": self.parameters.decimal, "lineterminator": "\n"}
        return {
            "sample.csv": sample.to_csv(index=False, **written).encode(),
            "certificate.json": _files.json_bytes(self.certificate),
            "distribution.png": figures.png(self._draw(self._draw_sample)),
            "noise.png": figures.png(self._draw(self._draw_shapes)),
            **{
                f"private/{name}": content
                for name, content in common.files(self.exhibit(), self.document()).items()
            },
        }

    def exhibit(self) -> Exhibit:
        """Return what the steward sees: one row per record in the order of the file, and what is released.

        The columns of the table are row, value, bin, midpoint and scale, the last two in units of the data.
        """
        import pandas as pd

        histogram = self.profile.game.histogram
        scales = {
            "row": self.column.row_of,
            "value": self.column.values,
            "bin": histogram.bin_of,
            "midpoint": histogram.to_units(histogram.bin_of),
            "scale": self.profile.scale_of * self._length,
        }
        kl = {row["mechanism"]: row["kl"] for row in self.rows()}
        said = "KL divergence from the data: " + ", ".join(f"{name} {kl[name]:.4f}" for name in kl)
        return Exhibit(
            name="nvo",
            section=SECTIONS["nvo"],
            title=self.column.name,
            question="How accurate is a release where each record gets the least noise it needs?",
            headline=f"{self.profile.n_satisfied:,} of {histogram.n:,} records are satisfied. {said}.",
            text=(self.certificate["promise"], *self.certificate["limits"]),
            tables={"scales": Table("The noise scale of every record", pd.DataFrame(scales))},
            figures={
                "distribution": Picture(
                    "What is released, and the original", said, self._draw(self._draw_distribution)
                ),
                "noise": Picture(
                    "Noise of records by their value",
                    "Points are records, lines scales that all records share.",
                    self._draw(self._draw_noise),
                ),
            },
        )

    @property
    def _length(self) -> float:
        """Units of the data in one of the normalised range."""
        start, stop = self.profile.game.histogram.range
        return stop - start

    def _draw(self, plot: Callable[[Axes, NDArray[np.float64], str], str]) -> Any:
        """Return a figure that `plot` draws from the bins' values and a unit; it returns the title."""
        histogram, unit = self.profile.game.histogram, figures.printable(self.column.name)
        values = histogram.range[0] + histogram.midpoints * self._length
        title = f", ε = {self.profile.game.epsilon:.4g}"
        return figures.drawn(lambda ax: ax.set_title(plot(ax, values, unit) + title, fontsize="medium"))

    def _draw_sample(self, ax: Axes, values: NDArray[np.float64], unit: str) -> str:
        histogram, rows = self.profile.game.histogram, np.asarray(self.sample)
        places = np.searchsorted(histogram.to_units(np.arange(histogram.n_bins)), rows)
        share = np.bincount(places, minlength=histogram.n_bins) / len(rows)
        release_figures.distributions(ax, share, [], values=values, unit=unit, label="sample")
        return f"A sample of {len(rows):,} rows"

    def _draw_shapes(self, ax: Axes, values: NDArray[np.float64], unit: str) -> str:
        game = self.profile.game
        scales = np.sort(game.scales)[::-1]
        shown = np.unique(np.linspace(0, len(scales) - 1, _SHAPES).astype(np.int64))[: len(scales)]
        middle = game.histogram.n_bins // 2
        mass = LaplaceNoise.of(game.histogram.n_bins, scales[shown]).rows(np.array([middle]))[0]
        labels = [f"scale {scale:.3g}" for scale in scales[shown] * self._length]
        release_figures.noise_shapes(
            ax, values - values[middle], list(zip(labels, mass, strict=True)), unit=unit
        )
        return "Noise to choose from"

    def _draw_distribution(self, ax: Axes, values: NDArray[np.float64], unit: str) -> str:
        series = [(name, profile.pmf) for name, profile in {"NVO": self.profile, **self.others}.items()]
        pmf = self.profile.game.histogram.pmf
        release_figures.distributions(ax, pmf, series, values=values, unit=unit)
        return "What is released"

    def _draw_noise(self, ax: Axes, values: NDArray[np.float64], unit: str) -> str:
        scales = {name: float(other.game.scales[0]) * self._length for name, other in self.others.items()}
        lines = [(name, scale) for name, scale in scales.items() if math.isfinite(scale)]
        own = self.profile.game.scales * self._length
        release_figures.noise_scales(ax, values, own, self.profile.counts, lines, unit=unit)
        return "Noise of records by their value"
