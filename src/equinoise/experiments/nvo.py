"""A release of one column: from a file to a sample, its certificate, and what stays with the steward."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, _files, _results, replicates
from equinoise.nvo import Histogram, NoiseGame, Profile
from equinoise.nvo.budget import epsilon_for_total
from equinoise.nvo.certificate import certificate
from equinoise.nvo.columns import Column, read_column
from equinoise.report import figures

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SEARCHES", "Parameters", "Release", "baselines", "prepare", "release", "solve"]

_METHODS = {"anneal": "annealing", "best-response": "best response", "genetic": "genetic search"}
SEARCHES = tuple(_METHODS)
LAPLACE = ("paper", "amplified", "smallest")
_MEASURES = ("kl", "sd_l1", "jaccard", "cosine")


@dataclass(frozen=True)
class Parameters:
    """What a release depends on, checked when made.

    Attributes
    ----------
    path : str
        A CSV file with a header.
    column : str
        Its column that is released.
    epsilon : float or None
        Of one drawn row; or instead:
    total_epsilon : float or None
        Of all drawn rows together.
    bounds : (float, float) or None
        Smallest and largest value that anybody could have; the data's own by default, which is a leak.
    rows : int or None
        Rows of the sample; as many as there are records by default.
    bins : int
        Bins of the range, K.
    scales : str, int or tuple of float
        "default", "paper", a number of geometric steps, or scales in the units of the column.
    search : {"anneal", "best-response", "genetic"}
    restarts : int
        Searches from different seeds, of which the best is taken.
    seed : int or None
        Of the sample, which is then not private; None for the operating system's randomness. The search
        starts from 0 then, whose result is kept secret anyway.
    drop_missing : bool
        Leave out rows in which the column is empty.
    sep, decimal : str
        How the file, and the sample, is written.
    """

    path: str
    column: str
    epsilon: float | None = None
    total_epsilon: float | None = None
    bounds: tuple[float, float] | None = None
    rows: int | None = None
    bins: int = 101
    scales: str | int | tuple[float, ...] = "default"
    search: str = "anneal"
    restarts: int = 1
    seed: int | None = None
    drop_missing: bool = False
    sep: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.total_epsilon is None):
            raise ValueError("epsilon must be given, or else total_epsilon, and not both")
        if self.epsilon is not None:
            _checks.epsilon(self.epsilon, allow_infinite=False)
        if self.total_epsilon is not None:
            _checks.epsilon(self.total_epsilon, "total_epsilon", allow_infinite=False)
        _checks.choice("search", self.search, SEARCHES)
        _checks.integer("restarts", self.restarts, 1)
        if self.rows is not None:
            _checks.integer("rows", self.rows, 1)
        if self.seed is not None:
            _checks.integer("seed", self.seed, 0)


def prepare(parameters: Parameters) -> tuple[Column, Histogram]:
    """Read the column and bin it, so that whatever is wrong with either shows before any work.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`equinoise.nvo.columns.read_column`, :class:`equinoise.nvo.Histogram` and
        :class:`equinoise.nvo.NoiseGame` raise them.
    """
    column = read_column(
        parameters.path,
        parameters.column,
        sep=parameters.sep,
        decimal=parameters.decimal,
        drop_missing=parameters.drop_missing,
    )
    histogram = Histogram.from_values(column.values, parameters.bins, bounds=parameters.bounds)
    epsilon = parameters.epsilon or parameters.total_epsilon or math.nan
    NoiseGame(histogram, epsilon, _normalised(parameters.scales, histogram))
    return column, histogram


def _normalised(scales: Any, histogram: Histogram) -> Any:
    """Return scales as :class:`NoiseGame` takes them."""
    if not isinstance(scales, tuple):
        return scales
    start, stop = histogram.range
    return np.array(scales) / (stop - start)


class _Task:
    """A search from several seeds, picklable."""

    def __init__(self, histogram: Histogram, epsilon: float, scales: Any, search: str, seed: int) -> None:
        self.histogram, self.epsilon, self.scales = histogram, epsilon, scales
        self.search, self.seed = search, seed

    def game(self) -> NoiseGame:
        return NoiseGame(self.histogram, self.epsilon, self.scales)

    def __call__(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        game = self.game()
        find: Callable[[int], Profile] = getattr(game, self.search.replace("-", "_"))
        found = [find(self.seed + r) for r in range(start, stop)]
        return {
            "counts": np.stack([profile.counts for profile in found]),
            "converged": np.array([profile.converged for profile in found]),
            "rounds": np.array([profile.rounds for profile in found]),
        }


def solve(
    histogram: Histogram,
    epsilon: float,
    *,
    scales: Any = "default",
    search: str = "anneal",
    restarts: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool | str = False,
) -> Profile:
    """Search from several seeds and return the best profile: most records satisfied, then the least KL.

    Parameters
    ----------
    histogram : Histogram
    epsilon : float
    scales
        As :class:`equinoise.nvo.NoiseGame` takes them.
    search : {"anneal", "best-response", "genetic"}
    restarts : int
        Seeds from `seed` on.
    seed : int
    executor : concurrent.futures.Executor, optional
        Where searches run; threads of this process by default.
    progress : bool or str
        Show a bar on stderr where that is a terminal; a string names it.

    Returns
    -------
    Profile
    """
    task = _Task(histogram, epsilon, scales, _checks.choice("search", search, SEARCHES), seed)
    n = _checks.integer("restarts", restarts, 1)
    found = replicates.run(task, n, block=1, executor=executor, progress=progress)
    game = task.game()
    profiles = [
        game.profile(counts, _METHODS[search], seed=seed + r, converged=bool(converged), rounds=int(rounds))
        for r, (counts, converged, rounds) in enumerate(zip(*found.values(), strict=True))
    ]
    return max(profiles, key=lambda profile: (profile.n_satisfied, -profile.kl))


def baselines(histogram: Histogram, epsilon: float) -> dict[str, Profile]:
    """Return the three Laplace mechanisms that a profile is compared with, by what tables call them.

    "paper" has the scale sensitivity/epsilon and ignores that only one record in n is drawn; "amplified" is
    the least scale that is private whatever the data, and "smallest" the least that is for these data.
    """
    game = NoiseGame(histogram, epsilon)
    return {f"Laplace, {rule}": game.laplace(rule) for rule in LAPLACE}


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

        Only ``sample.csv`` and ``certificate.json`` are for others. What shows the data or the scales goes
        into ``private/``: ``scales.csv``, ``distribution.png``, ``noise.png`` and ``run.json``.
        """
        return {
            "sample.csv": self._sample_csv(),
            "certificate.json": _files.json_bytes(self.certificate),
            "private/scales.csv": _csv(self.scales_frame()),
            "private/distribution.png": self._distribution_png(),
            "private/noise.png": self._noise_png(),
            "private/run.json": _files.json_bytes(self.document()),
        }

    def scales_frame(self) -> pd.DataFrame:
        """Return one row a record, in the order of the file: row, value, bin, midpoint, scale (its units)."""
        import pandas as pd

        histogram = self.profile.game.histogram
        return pd.DataFrame(
            {
                "row": self.column.row_of,
                "value": self.column.values,
                "bin": histogram.bin_of,
                "midpoint": histogram.to_units(histogram.bin_of),
                "scale": self.profile.scale_of * self._length,
            }
        )

    @property
    def _length(self) -> float:
        """Units of the data in one of the normalised range."""
        start, stop = self.profile.game.histogram.range
        return stop - start

    def _sample_csv(self) -> bytes:
        import pandas as pd

        frame = pd.DataFrame({self.column.name: self.sample})
        return _csv(frame, self.column.sep, self.parameters.decimal)

    def _values(self) -> NDArray[np.float64]:
        histogram = self.profile.game.histogram
        return histogram.range[0] + histogram.midpoints * self._length

    def _distribution_png(self) -> bytes:
        drawn = figures.figure()
        game = self.profile.game
        series = [("NVO", self.profile.pmf), *((name, other.pmf) for name, other in self.others.items())]
        ax = figures.distributions(
            drawn.subplots(), game.histogram.pmf, series, values=self._values(), unit=self.column.name
        )
        ax.set_title(f"What is released, ε = {game.epsilon:g}", fontsize="medium")
        return figures.png(drawn)

    def _noise_png(self) -> bytes:
        drawn = figures.figure()
        game = self.profile.game
        lines = [
            (name, float(other.game.scales[0]) * self._length)
            for name, other in self.others.items()
            if math.isfinite(float(other.game.scales[0]))
        ]
        ax = figures.noise_scales(
            drawn.subplots(),
            self._values(),
            game.scales * self._length,
            self.profile.counts,
            lines,
            unit=self.column.name,
        )
        ax.set_title(f"Noise of records by their value, ε = {game.epsilon:g}", fontsize="medium")
        return figures.png(drawn)


def _csv(frame: pd.DataFrame, sep: str = ",", decimal: str = ".") -> bytes:
    table = io.BytesIO()
    frame.to_csv(table, index=False, sep=sep, decimal=decimal, lineterminator="\n", encoding="utf-8")
    return table.getvalue()


def release(
    column: Column,
    histogram: Histogram,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Release:
    """Solve the game, compare, certify, and draw the sample where every record is satisfied.

    Parameters
    ----------
    column : Column
    histogram : Histogram
        As :func:`prepare` returns them.
    parameters : Parameters
    executor : concurrent.futures.Executor, optional
        Where restarts run; threads of this process by default.
    progress : bool
        Show a bar for each search on stderr where that is a terminal.
    working : callable
        From what is done between searches to a context in which it is done, for a spinner.

    Returns
    -------
    Release
    """
    begun = time.perf_counter()
    rows = histogram.n if parameters.rows is None else parameters.rows

    def found(epsilon: float) -> Profile:
        return solve(
            histogram,
            epsilon,
            scales=_normalised(parameters.scales, histogram),
            search=parameters.search,
            restarts=parameters.restarts,
            seed=parameters.seed or 0,
            executor=executor,
            progress=progress and f"{parameters.search}, epsilon {epsilon:.4g}",
        )

    within = True
    if parameters.epsilon is not None:
        profile = found(parameters.epsilon)
    else:
        budget = epsilon_for_total(found, parameters.total_epsilon or math.nan, rows)
        profile, within = budget.profile, budget.composition is not None
    with working("bounding what any profile can reach"):
        lower_bound = profile.game.lower_bound()
        others = baselines(histogram, profile.game.epsilon)
    with working(f"composing {rows:,} rows"):
        facts = certificate(profile, rows, parameters.seed)
    sample = profile.sample(rows, parameters.seed) if profile.certified and within else None
    seconds = time.perf_counter() - begun
    return Release(parameters, column, profile, others, lower_bound, facts, sample, seconds)
