"""Two columns at once: records on a grid of cells, with noise that is a product of noise on each axis.

A record's cell is a pair of bins. One draw hands out a cell, so what the two columns have to do with each
other comes through. Privacy is checked as in one column, from the definition, over all cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks
from equinoise.nvo import _kernels
from equinoise.nvo._descent import anneal
from equinoise.nvo.evaluation import divergence
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.release import MAX_ROWS, draw_bins
from equinoise.nvo.scales import MULTIPLES

__all__ = ["PairGame", "PairHistogram", "PairProfile", "ProductNoise"]

_LARGEST = 2**27  # masses of all occupied cells: 1 GiB
_ROUNDING = 1e-12  # of a ratio: a record is called satisfied only where it is so by this much

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
class ProductNoise:
    """Noise on each axis by itself, a :class:`equinoise.nvo.evaluation.Kernel` over cells.

    The mass M[k1 k2, v, x1 x2] is the product of those on the axes, M1[k1, v, x1] M2[k2, v, x2].

    Attributes
    ----------
    first, second : float64[K1, V, K1], float64[K2, V, K2]
        Noise on each axis; scale v of a record is scale v of both.
    """

    first: Floats
    second: Floats

    @classmethod
    def of(cls, n_bins: tuple[int, int], scales: tuple[Floats, Floats]) -> ProductNoise:
        """Return truncated Laplace noise with scales float64[V] on each axis, normalised."""
        parts = []
        for k, b in zip(n_bins, scales, strict=True):
            mass = np.empty((k, len(b), k))
            _kernels.noise_kernel((np.arange(k) + 0.5) / k, b, mass)
            parts.append(mass)
        return cls(*parts)

    @property
    def n_bins(self) -> int:
        """Number of cells, K1 K2."""
        return len(self.first) * len(self.second)

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return int(self.first.shape[1])

    def rows(self, start: int, stop: int) -> Floats:
        """Return M of the cells start..stop-1, float64[stop - start, V, K1 K2]."""
        return self.of_cells(np.arange(start, stop))

    def of_cells(self, cells: Ints) -> Floats:
        """Return M of any cells, float64[cells, V, K1 K2]."""
        x, y = self.first[cells // len(self.second)], self.second[cells % len(self.second)]
        return np.asarray((x[:, :, :, None] * y[:, :, None, :]).reshape(len(cells), self.n_scales, -1))

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K1 K2, V]."""
        a, b = self.first[:, :, x // len(self.second)], self.second[:, :, x % len(self.second)]
        return np.asarray((a[:, None] * b).reshape(-1, self.n_scales))


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
            chosen = np.array(MULTIPLES[_checks.choice("multiples", self.multiples, tuple(MULTIPLES))])
        else:
            chosen = np.array(_checks.array("multiples", self.multiples, np.float64, (None,)))
            if not (chosen.size and (chosen > 0.0).all()):
                raise ValueError(f"multiples must be positive numbers, got {_checks.shown(self.multiples)}")
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

    def profile(self, counts: ArrayLike, method: str = "given", rounds: int = 0) -> PairProfile:
        """Return a profile of this game from its counts, int64[K1 K2, V]."""
        shape = (len(self.histogram.counts), len(self.multiples))
        given: Ints = _checks.array("counts", counts, np.int64, shape, low=0)
        if (given.sum(axis=1) != self.histogram.counts).any():
            raise ValueError("counts must add up to the histogram's at every cell")
        return PairProfile(self, given, method, rounds)

    def uniform(self, v: int = 0) -> PairProfile:
        """Return the profile in which all records use scale v."""
        counts = np.zeros((len(self.histogram.counts), len(self.multiples)), dtype=np.int64)
        counts[:, _checks.integer("v", v, 0, len(self.multiples) - 1)] = self.histogram.counts
        return self.profile(counts, "uniform")

    def solve(self, seed: int | None = 0) -> PairProfile:
        """Search by annealing from everybody at the largest scale, and never leave what satisfies all."""
        cells = np.flatnonzero(self.histogram.counts)
        masses = self.noise.of_cells(cells)
        start = np.zeros((len(cells), len(self.multiples)), dtype=np.int64)
        start[:, int(np.argmax(self.multiples))] = self.histogram.counts[cells]
        found, rounds = anneal(masses, start, self.histogram.pmf, self._judge(masses), seed=seed)
        counts = np.zeros((len(self.histogram.counts), len(self.multiples)), dtype=np.int64)
        counts[cells] = found
        return self.profile(counts, "annealing", rounds)

    def _judge(self, masses: Floats) -> Any:
        """Return whether tau_lo <= M/S <= tau_hi for every type that is there and every cell."""
        n = self.histogram.n
        high = 1.0 - (1.0 - 1.0 / n) * math.exp(-self.epsilon) - _ROUNDING
        low = 1.0 - (1.0 - 1.0 / n) * math.exp(min(self.epsilon, 700.0)) + _ROUNDING

        def fine(counts: Ints, total: Floats) -> bool:
            few = (counts > 0) & (counts < 1.0 / high)  # more of them are fine whatever the others do
            if not few.any() and low <= 0.0:
                return True
            mass = masses[counts > 0 if low > 0.0 else few]
            return bool((mass <= high * total).all() and (low <= 0.0 or (mass >= low * total).all()))

        return fine


@dataclass(frozen=True, eq=False)
class PairProfile:
    """What every record chose, with its privacy checked from the definition.

    Attributes
    ----------
    game : PairGame
    counts : int64[K1 K2, V]
    method : str
    rounds : int
        Of the search.
    """

    game: PairGame
    counts: Ints
    method: str = "given"
    rounds: int = 0

    @cached_property
    def pmf(self) -> Floats:
        """Probability that a cell is released, float64[K1 K2]."""
        return self._released(self.counts) / self.game.histogram.n

    def _released(self, counts: Ints) -> Floats:
        """Return S = sum of counts M, float64[K1 K2]."""
        total = np.zeros(len(counts))
        for cell in np.flatnonzero(counts.sum(axis=1)):
            total += counts[cell] @ self.game.noise.of_cells(np.array([cell]))[0]
        return total

    @cached_property
    def epsilon_of(self) -> Floats:
        """Epsilon of a record of each type for its removal, float64[K1 K2, V]; 0 where there is none.

        From the definition: the largest |ln(P/Q)|, P with the record and Q the others' share. Where the
        record makes up most of a cell, the others are added up without it: a difference would lose digits.
        """
        n, noise = self.game.histogram.n, self.game.noise
        result = np.zeros(self.counts.shape)
        there = self.pmf > 0.0
        for cell, v in np.argwhere(self.counts):
            mass = noise.of_cells(np.array([cell]))[0, v]
            others = n * self.pmf - mass
            if (mass > others)[there].any():
                rest = self.counts.copy()
                rest[cell, v] -= 1
                others = self._released(rest)
            with np.errstate(divide="ignore"):
                loss = np.log(self.pmf[there]) - np.log(others[there] / (n - 1))
            result[cell, v] = np.abs(loss).max()
        return result

    @property
    def kl(self) -> float:
        """Kullback-Leibler divergence of what is released from the histogram, in nats."""
        return divergence(self.game.histogram.pmf, self.pmf)

    @property
    def n_satisfied(self) -> int:
        """Number of records whose own epsilon is at most the game's."""
        return int(self.counts[self.epsilon_of <= self.game.epsilon].sum())

    @property
    def realised_epsilon(self) -> float:
        """The largest epsilon of any record, for its removal."""
        return float(self.epsilon_of.max())

    @property
    def certified(self) -> bool:
        """Whether every record is satisfied."""
        return self.n_satisfied == self.game.histogram.n

    def sample(
        self, size: int, seed: int | None = None, *, allow_uncertified: bool = False
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows, as :func:`equinoise.nvo.release.sample` does, as one array for each column."""
        rows = _checks.integer("size", size, 1, MAX_ROWS)
        if not _checks.flag("allow_uncertified", allow_uncertified) and not self.certified:
            satisfied = f"{self.n_satisfied} of {self.game.histogram.n} records"
            raise ValueError(f"profile must be certified, got one that satisfies {satisfied}")
        return self.game.histogram.to_units(draw_bins(self.pmf, rows, seed))
