"""Two columns at once: records on a grid of cells, with noise that is a product of noise on each axis.

A record's cell is a pair of bins. One draw hands out a cell, so what the two columns have to do with each
other comes through. Privacy is checked as in one column, from the definition, over all cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks
from equinoise.nvo.evaluation import Evaluation, evaluate
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import ProductNoise
from equinoise.nvo.profile import Judged
from equinoise.nvo.ratios import checked_counts
from equinoise.nvo.release.draw import sample
from equinoise.nvo.scales import MULTIPLES, positive
from equinoise.nvo.search.local import anneal

__all__ = ["PairGame", "PairHistogram", "PairProfile"]

_LARGEST = 2**27  # masses of all occupied cells: 1 GiB

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairHistogram:
    """Counts of n records over the cells of a grid; made by :meth:`from_values`.

    Attributes
    ----------
    first, second : Histogram
        Of each column, with K1 and K2 bins.
    counts : int64[K1 K2]
        Records in each cell; cell k1 K2 + k2 is bin k1 of the first column and k2 of the second.
    """

    first: Histogram
    second: Histogram
    counts: Ints

    @classmethod
    def from_values(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        n_bins: int | tuple[int, int] = 41,
        *,
        bounds: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None),
        **options: Any,
    ) -> PairHistogram:
        """Count pairs of values over cells.

        Parameters
        ----------
        first, second : array_like, shape (n,)
            The two columns, a record the values at one index.
        n_bins : int or (int, int)
            Bins of each column.
        bounds : pair of (float, float) or None
            Of each column, as :meth:`Histogram.from_values` takes them.
        **options
            Passed on to :meth:`Histogram.from_values`.

        Returns
        -------
        PairHistogram

        Raises
        ------
        TypeError, ValueError
            When an argument is of the wrong kind or out of range, or the columns differ in length.
        """
        bins = n_bins if isinstance(n_bins, tuple) else (n_bins, n_bins)
        x, y = (
            Histogram.from_values(values, k, bounds=limits, **options)
            for values, k, limits in zip((first, second), bins, bounds, strict=True)
        )
        if x.n != y.n:
            raise ValueError(f"second must have a value for each of the {x.n} in first, got {y.n}")
        cells = x.bin_of * y.n_bins + y.bin_of
        counts = np.bincount(cells, minlength=x.n_bins * y.n_bins)
        counts.flags.writeable = False
        return cls(x, y, counts)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.first.n

    @property
    def pmf(self) -> Floats:
        """Share of the records in each cell, float64[K1 K2]."""
        return np.asarray(self.counts / self.n)

    def split(self, cells: ArrayLike) -> tuple[Ints, Ints]:
        """Return the bins of each column that cells stand for."""
        given: Ints = _checks.array("cells", cells, np.int64, None, low=0, high=len(self.counts) - 1)
        return given // self.second.n_bins, given % self.second.n_bins

    def to_units(self, cells: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return midpoints of cells in the units of each column."""
        x, y = self.split(cells)
        return self.first.to_units(x), self.second.to_units(y)


@dataclass(frozen=True, eq=False)
class PairGame:
    """The game on a grid: every record chooses one scale for both of its values.

    Parameters
    ----------
    histogram : PairHistogram
    epsilon : float
        What every record asks for, for both values together: positive and finite.
    multiples : "default", "paper" or float64[V]
        Scales, in sensitivity/epsilon of each column.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, or the grid is too large.

    Examples
    --------
    >>> heights, weights = [160, 171, 172, 172, 175, 176, 180, 183], [61, 68, 70, 71, 69, 75, 84, 90]
    >>> histogram = PairHistogram.from_values(heights, weights, 11, bounds=((140, 220), (40, 120)))
    >>> profile = PairGame(histogram, epsilon=1.0).solve()
    >>> profile.certified
    True
    >>> height, weight = profile.sample(3, seed=1)
    """

    histogram: PairHistogram
    epsilon: float
    multiples: Any = "default"

    def __post_init__(self) -> None:
        if not isinstance(self.histogram, PairHistogram):
            raise TypeError(f"histogram must be a PairHistogram, got {_checks.shown(self.histogram)}")
        _checks.epsilon(self.epsilon, allow_infinite=False)
        if isinstance(self.multiples, str):
            chosen = np.array(MULTIPLES[_checks.choice("multiples", self.multiples, MULTIPLES)])
        else:
            chosen = positive("multiples", self.multiples)
        cells = int((self.histogram.counts > 0).sum())
        if cells * len(chosen) * len(self.histogram.counts) > _LARGEST:
            raise ValueError(
                f"histogram must be on a coarser grid, got {cells:,} cells with records of "
                f"{len(self.histogram.counts):,}: their noise would take more than 1 GiB"
            )
        object.__setattr__(self, "multiples", chosen)

    @cached_property
    def noise(self) -> ProductNoise:
        """Where masses come from."""
        parts = self.histogram.first, self.histogram.second
        scales = [self.multiples * part.sensitivity / self.epsilon for part in parts]
        return ProductNoise.of((parts[0].n_bins, parts[1].n_bins), (scales[0], scales[1]))

    @property
    def n(self) -> int:
        """Number of records."""
        return self.histogram.n

    def evaluate(self, counts: ArrayLike) -> Evaluation:
        """Evaluate a profile int64[K1 K2, V] from the definition."""
        return evaluate(self.noise, self.histogram.counts, self._checked(counts), self.epsilon)

    def _checked(self, counts: ArrayLike) -> Ints:
        return checked_counts("counts", counts, self.histogram.counts, len(self.multiples))

    def profile(self, counts: ArrayLike, method: str = "given") -> PairProfile:
        """Return a profile of this game from its counts, int64[K1 K2, V]."""
        return PairProfile(self, self._checked(counts), method)

    def uniform(self, v: int = 0) -> PairProfile:
        """Return the profile in which all records use scale v."""
        counts = np.zeros((len(self.histogram.counts), len(self.multiples)), dtype=np.int64)
        counts[:, _checks.integer("v", v, 0, len(self.multiples) - 1)] = self.histogram.counts
        return self.profile(counts, "uniform")

    def solve(self, seed: int | None = 0, **options: Any) -> PairProfile:
        """Search by annealing among certified profiles; options of :func:`equinoise.nvo.search.anneal`."""
        masses = self.noise.rows(np.flatnonzero(self.histogram.counts))
        found = anneal(masses, self.histogram.counts, self.epsilon, seed=seed, **options)
        return self.profile(found.counts, "annealing")


@dataclass(frozen=True, eq=False)
class PairProfile(Judged):
    """What every record chose, with its privacy checked from the definition.

    Attributes
    ----------
    game : PairGame
    counts : int64[K1 K2, V]
    method : str
    """

    game: PairGame
    counts: Ints
    method: str = "given"

    def sample(
        self, size: int, seed: int | None = None, *, allow_uncertified: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows, as :func:`equinoise.nvo.release.sample` does, as one array for each column."""
        first, second = sample(self, size, seed, allow_uncertified=allow_uncertified)
        return first, second
