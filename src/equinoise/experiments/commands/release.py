"""What a release is written into: files for others, and files that stay with the steward."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _files, _results
from equinoise.nvo import Profile
from equinoise.nvo.columns import Column
from equinoise.nvo.noise import LaplaceNoise
from equinoise.report import figures, release_figures

if TYPE_CHECKING:
    import pandas as pd

    from equinoise.experiments.commands.nvo import Parameters

__all__ = ["FILES", "Release"]

PUBLIC = ("sample.csv", "certificate.json", "distribution.png", "noise.png")
PRIVATE = ("scales.csv", "distribution.png", "noise.png", "run.json")
FILES = (*PUBLIC, *(f"private/{name}" for name in PRIVATE))
_MEASURES = ("kl", "sd_l1", "jaccard", "cosine")
_SHAPES = 8  # scales whose noise is drawn
_ROWS = 2**16  # of records, written at a time: all at once take memory


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
        """Return the table: a row a mechanism, NVO first.

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
        seed = self.profile.seed or 0
        plain: dict[str, Any] = _results.plain(
            {
                "experiment": "nvo",
                **_results.provenance(asdict(self.parameters), seed=seed, seconds=self.seconds),
                "released": self.sample is not None,
                "table": self.rows(),
                "failing": self.failing(),
                "certificate": self.certificate,
            }
        )
        return plain

    def files(self) -> dict[str, bytes]:
        """Return the files of the release as bytes, by their paths in its folder.

        What lies in ``private/`` shows the data or which record has which scale. The other files follow from
        the sample and from what the certificate says: ``distribution.png`` there is of the sample, and
        ``noise.png`` of all the noise that there was to choose from.
        """
        contents = (
            self._sample_csv(),
            _files.json_bytes(self.certificate),
            self._sample_png(),
            self._shapes_png(),
            self._scales_csv(),
            self._distribution_png(),
            self._noise_png(),
            _files.json_bytes(self.document()),
        )
        return dict(zip(FILES, contents, strict=True))

    def scales_frame(self, start: int = 0, stop: int | None = None) -> pd.DataFrame:
        """Return one row a record, in the order of the file: row, value, bin, midpoint, scale (its units)."""
        import pandas as pd

        histogram, some = self.profile.game.histogram, slice(start, stop)
        return pd.DataFrame(
            {
                "row": self.column.row_of[some],
                "value": self.column.values[some],
                "bin": histogram.bin_of[some],
                "midpoint": histogram.to_units(histogram.bin_of[some]),
                "scale": self.profile.scale_of[some] * self._length,
            }
        )

    def _scales_csv(self) -> bytes:
        n = self.profile.game.n
        return _csv(self.scales_frame(start, start + _ROWS) for start in range(0, n, _ROWS))

    @property
    def _length(self) -> float:
        """Units of the data in one of the normalised range."""
        start, stop = self.profile.game.histogram.range
        return stop - start

    def _sample_csv(self) -> bytes:
        import pandas as pd

        frame = pd.DataFrame({self.column.name: self.sample})
        return _csv([frame], self.column.sep, self.parameters.decimal)

    def _values(self) -> NDArray[np.float64]:
        histogram = self.profile.game.histogram
        return histogram.range[0] + histogram.midpoints * self._length

    def _sample_png(self) -> bytes:
        drawn = figures.figure()
        histogram = self.profile.game.histogram
        rows = np.asarray(self.sample)
        places = np.searchsorted(histogram.to_units(np.arange(histogram.n_bins)), rows)
        share = np.bincount(places, minlength=histogram.n_bins) / len(rows)
        ax = release_figures.distributions(
            drawn.subplots(),
            share,
            [],
            values=self._values(),
            unit=figures.printable(self.column.name),
            label="sample",
        )
        ax.set_title(
            f"A sample of {len(rows):,} rows, ε = {self.profile.game.epsilon:.4g}", fontsize="medium"
        )
        return figures.png(drawn)

    def _shapes_png(self) -> bytes:
        drawn = figures.figure()
        game = self.profile.game
        scales = np.sort(game.scales)[::-1]
        shown = np.unique(np.linspace(0, len(scales) - 1, _SHAPES).astype(np.int64))[: len(scales)]
        middle = game.histogram.n_bins // 2
        mass = LaplaceNoise.of(game.histogram.n_bins, scales[shown]).rows(np.array([middle]))[0]
        values = self._values()
        lines = [
            (f"scale {scale:.3g}", m) for scale, m in zip(scales[shown] * self._length, mass, strict=True)
        ]
        ax = release_figures.noise_shapes(
            drawn.subplots(), values - values[middle], lines, unit=figures.printable(self.column.name)
        )
        ax.set_title(f"Noise to choose from, ε = {game.epsilon:.4g}", fontsize="medium")
        return figures.png(drawn)

    def _distribution_png(self) -> bytes:
        drawn = figures.figure()
        game = self.profile.game
        series = [("NVO", self.profile.pmf), *((name, other.pmf) for name, other in self.others.items())]
        ax = release_figures.distributions(
            drawn.subplots(),
            game.histogram.pmf,
            series,
            values=self._values(),
            unit=figures.printable(self.column.name),
        )
        ax.set_title(f"What is released, ε = {game.epsilon:.4g}", fontsize="medium")
        return figures.png(drawn)

    def _noise_png(self) -> bytes:
        drawn = figures.figure()
        game = self.profile.game
        lines = [
            (name, float(other.game.scales[0]) * self._length)
            for name, other in self.others.items()
            if math.isfinite(float(other.game.scales[0]))
        ]
        ax = release_figures.noise_scales(
            drawn.subplots(),
            self._values(),
            game.scales * self._length,
            self.profile.counts,
            lines,
            unit=figures.printable(self.column.name),
        )
        ax.set_title(f"Noise of records by their value, ε = {game.epsilon:.4g}", fontsize="medium")
        return figures.png(drawn)


def _csv(frames: Iterable[pd.DataFrame], sep: str = ",", decimal: str = ".") -> bytes:
    """Return the rows of frames of the same columns, under one header."""
    table = io.BytesIO()
    for i, frame in enumerate(frames):
        frame.to_csv(
            table, header=i == 0, index=False, sep=sep, decimal=decimal, lineterminator="\n", encoding="utf-8"
        )
    return table.getvalue()
