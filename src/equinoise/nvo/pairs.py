"""Two columns at once: records on a grid of cells, with noise that is a product of noise on each axis.

A record's cell is a pair of bins. One draw hands out a cell, so what the two columns have to do with each
other comes through. Privacy is checked as in one column, from the definition, over all cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, Array, ArrayLike, Floats, Ints
from equinoise.nvo.game import LimitedGame
from equinoise.nvo.histogram import Binned, Histogram, sealed
from equinoise.nvo.noise import LaplaceNoise, named

__all__ = ["PairGame", "PairHistogram", "ProductNoise"]

_LARGEST = 2**27  # masses of all occupied cells: 1 GiB


@dataclass(frozen=True, eq=False)
class ProductNoise:
    """Noise on each of two axes by itself; cell k1 K2 + k2 is bin k1 of the first and k2 of the second.

    The mass M[k1 k2, v, x1 x2] is the product of those on the axes, M1[k1, v, x1] M2[k2, v, x2], which are
    `first` float64[K1, V, K1] and `second` float64[K2, V, K2]: scale v of a record is scale v of both.

    Examples
    --------
    >>> ProductNoise.of((2, 2), (np.array([0.5]), np.array([0.1]))).rows(np.array([0])).round(3)
    array([[[0.726, 0.005, 0.267, 0.002]]])
    """

    first: Floats
    second: Floats

    @classmethod
    def of(cls, n_bins: tuple[int, int], scales: tuple[Floats, Floats]) -> ProductNoise:
        """Return truncated Laplace noise with scales float64[V] on each axis, normalised."""
        return cls(*(LaplaceNoise.of(k, b).rows(np.arange(k)) for k, b in zip(n_bins, scales, strict=True)))

    @property
    def n_bins(self) -> int:
        """Number of cells, K1 K2."""
        return len(self.first) * len(self.second)

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return int(self.first.shape[1])

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given cells int64[B], float64[B, V, K1 K2]."""
        x, y = self.first[bins // len(self.second)], self.second[bins % len(self.second)]
        return np.asarray((x[:, :, :, None] * y[:, :, None, :]).reshape(len(bins), self.n_scales, -1))

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K1 K2, V]."""
        a, b = self.first[:, :, x // len(self.second)], self.second[:, :, x % len(self.second)]
        return np.asarray((a[:, None] * b).reshape(-1, self.n_scales))


@dataclass(frozen=True, eq=False)
class PairHistogram(Binned):
    """Counts of n records over the cells of a grid; made by :meth:`from_values`.

    `first` and `second` are the histograms of each column, with K1 and K2 bins; counts int64[K1 K2] the
    records in each cell, bin_of int64[n] the cell of each record, in the order they were given. Cell
    k1 K2 + k2 is bin k1 of the first column and k2 of the second.

    Examples
    --------
    >>> histogram = PairHistogram.from_values([1, 2, 3], [5, 5, 9], 4, bounds=((0, 4), (0, 10)))
    >>> histogram.bin_of, histogram.to_units(histogram.bin_of)
    (array([ 6, 10, 15]), (array([1, 2, 3]), array([6, 6, 9])))
    """

    first: Histogram
    second: Histogram
    counts: Ints
    bin_of: Ints

    @classmethod
    def from_values(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        n_bins: int | tuple[int, int] = 41,
        *,
        bounds: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None),
        percentile: float = 0.9,
        range_epsilon: float = 1.0,
        margin: float | str | None = None,
    ) -> PairHistogram:
        """Count pairs of values over cells, a record the values at one index; for each column as in one.

        Columns of different lengths raise ValueError. `n_bins` may be two numbers, `bounds` a pair for each.
        """
        bins = n_bins if isinstance(n_bins, tuple) else (n_bins, n_bins)
        for name, pair in (("n_bins", bins), ("bounds", bounds)):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"{name} must be a pair, one for each column, got {_checks.shown(pair)}")
        how: dict[str, Any] = {"percentile": percentile, "range_epsilon": range_epsilon, "margin": margin}
        both = zip((first, second), bins, bounds, strict=True)
        x, y = (Histogram.from_values(values, k, bounds=limits, **how) for values, k, limits in both)
        _results.check_memory(x.n_bins, y.n_bins, "n_bins")
        if x.n != y.n:
            raise ValueError(f"second must have a value for each of the {x.n} in first, got {y.n}")
        cells = x.bin_of * y.n_bins + y.bin_of
        return cls(x, y, sealed(np.bincount(cells, minlength=x.n_bins * y.n_bins)), sealed(cells))

    @property
    def columns(self) -> tuple[Histogram, ...]:
        """The histogram of each column."""
        return self.first, self.second

    @property
    def midpoints(self) -> Floats:
        """Of each cell in both columns, normalised, float64[2, K1 K2]."""
        cells = self.split(np.arange(self.n_bins))
        return np.stack([part.midpoints[bins] for part, bins in zip(self.columns, cells, strict=True)])

    def split(self, cells: ArrayLike) -> tuple[Ints, Ints]:
        """Return the bins of each column that cells stand for."""
        given: Ints = _checks.array("cells", cells, np.int64, None, low=0, high=len(self.counts) - 1)
        return given // self.second.n_bins, given % self.second.n_bins

    def to_units(self, cells: ArrayLike) -> tuple[Array, Array]:
        """Return midpoints of cells in the units of each column."""
        x, y = self.split(cells)
        return self.first.to_units(x), self.second.to_units(y)


@dataclass(frozen=True, eq=False)
class PairGame(LimitedGame):
    """The game on a grid: every record chooses one scale for both of its values.

    Parameters
    ----------
    histogram, epsilon : PairHistogram, float
        Records, and what each asks for, for both values together: finite, and at least 1e-15.
    multiples : "default", "paper" or float64[V]
        Scales, in sensitivity/epsilon of each column. A grid too fine for its noise raises ValueError.

    Examples
    --------
    >>> heights, weights = [160, 171, 172, 172, 175, 176, 180, 183], [61, 68, 70, 71, 69, 75, 84, 90]
    >>> histogram = PairHistogram.from_values(heights, weights, 11, bounds=((140, 220), (40, 120)))
    >>> PairGame(histogram, epsilon=1.0).solve().certified
    True
    """

    histogram: PairHistogram
    epsilon: float
    multiples: Any = "default"

    def __post_init__(self) -> None:
        self._begin(PairHistogram)
        chosen = named("multiples", self.multiples)
        cells, of = int((self.histogram.counts > 0).sum()), self.histogram.n_bins
        if cells * len(chosen) * of > _LARGEST:
            found = f"got {cells:,} cells with records of {of:,}: their noise would take more than 1 GiB"
            raise ValueError(f"histogram must be on a coarser grid, {found}")
        self._keep("multiples", chosen)
        self._keep("scales", chosen)

    @cached_property
    def noise(self) -> ProductNoise:
        """Where masses come from."""
        parts = self.histogram.columns
        scales = [self.multiples * part.sensitivity / self.epsilon for part in parts]
        return ProductNoise.of((parts[0].n_bins, parts[1].n_bins), (scales[0], scales[1]))

    solve = LimitedGame.anneal
