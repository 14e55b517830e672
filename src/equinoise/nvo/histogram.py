"""A column of numbers as counts over equal bins of [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, ArrayLike, Floats, Ints

MAX_BINS = 10**6
_CHUNK = 2**18  # values converted at a time: what is in the cache costs no memory
_SNAP = 1e-9  # of a bin: ten times 0.1 falls where 1 does
_LARGEST_INTEGER = 2.0**62
_SEEN = 0.001  # the Jaccard index looks at bins of a larger probability


class Binned:
    """What counts over bins, `counts` int64[K], and the bin of each record, `bin_of` int64[n], say."""

    counts: Ints
    bin_of: Ints

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.bin_of)

    @property
    def n_bins(self) -> int:
        """Number of bins, K; of pairs these are the cells of their grid, K1 K2."""
        return len(self.counts)

    @cached_property
    def pmf(self) -> Floats:
        """Share of the records in each bin, float64[K]."""
        return sealed(self.counts / self.n)

    def without(self, k: int) -> Any:
        """Return the same bins less a record of bin k, the first of them."""
        counts, whole = self.counts.copy(), self  # a frozen dataclass, whichever
        counts[k] -= 1
        bin_of = np.delete(self.bin_of, int(np.flatnonzero(self.bin_of == k)[0]))
        return replace(whole, counts=sealed(counts), bin_of=sealed(bin_of))  # type: ignore[type-var]


class Released:
    """What is released in place of a histogram: how far from it the probabilities `pmf` float64[K] are."""

    histogram: Any
    pmf: Any

    @cached_property
    def sd_l1(self) -> float:
        """Difference of the standard deviations before and after, normalised; the sum over columns."""
        p, q = self.histogram.pmf, self.pmf
        return sum(float(abs(_sd(x, p) - _sd(x, q))) for x in np.atleast_2d(self.histogram.midpoints))

    @cached_property
    def jaccard(self) -> float:
        """Bins of probability above 0.001 in both histogram and release, as a share of those in either."""
        before, after = self.histogram.pmf > _SEEN, self.pmf > _SEEN
        either = int((before | after).sum())
        return int((before & after).sum()) / either if either else 1.0

    @cached_property
    def cosine(self) -> float:
        """Cosine of the angle between histogram and release."""
        p, q = self.histogram.pmf, self.pmf
        return float((p * q).sum() / np.sqrt((p * p).sum() * (q * q).sum()))

    def certificate(self) -> dict[str, Any]:
        """Return what is and is not protected; see :mod:`equinoise.nvo.release.certificate`."""
        from equinoise.nvo.release.certificate import certificate

        return certificate(self)

    def sample(self, size: int, seed: int | None = None, *, allow_uncertified: bool = False) -> Any:
        """Draw rows, in the data's units, per column; see :func:`equinoise.nvo.release.sample`."""
        from equinoise.nvo.release.rows import sample

        return sample(self, size, seed, allow_uncertified=allow_uncertified)


def _sd(x: Floats, p: Floats) -> Any:
    return np.sqrt(max(0.0, float((p * (x - (p * x).sum()) ** 2).sum())))


@dataclass(frozen=True, eq=False)
class Histogram(Binned):
    """Counts of n values over K equal bins; made by :meth:`from_values`.

    The bins divide public bounds, or a range wider than the values, so that most of the noise stays inside.
    Places are normalised: the range is [0, 1], bin k has the midpoint (k + 1/2)/K.

    Attributes
    ----------
    counts, bin_of : int64[K], int64[n]
        Values in each bin, n in all, and the bin of each value, in the order they were given.
    midpoints, sensitivity : float64[K], float
        Normalised; how far apart two values can be, (high - low) over the length of the range, too.
    range, bounds, bounds_given : (float, float), (float, float), bool
        Where bin 0 starts and bin K - 1 stops, and the smallest and largest value that could occur, in the
        data's units; whether these came from the user: the data's own tell something about two records.
    integers, spike : bool, (int, float) or None
        Whether :meth:`to_units` gives integers; and the bin that stands for one value alone, and this value.

    Examples
    --------
    >>> histogram = Histogram.from_values([170, 182, 183, 205], n_bins=25, bounds=(150, 210))
    >>> histogram.bin_of, histogram.to_units(histogram.bin_of)
    (array([ 8, 13, 13, 22]), array([170, 182, 182, 204]))
    """

    counts: Ints
    bin_of: Ints
    midpoints: Floats
    sensitivity: float
    range: tuple[float, float]
    bounds: tuple[float, float]
    bounds_given: bool
    integers: bool
    spike: tuple[int, float] | None = None

    def __repr__(self) -> str:
        return f"Histogram(n={self.n}, n_bins={self.n_bins}, range={self.range})"

    @property
    def columns(self) -> tuple[Histogram, ...]:
        """The histogram itself: there is one column."""
        return (self,)

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        n_bins: int = 101,
        *,
        percentile: float = 0.9,
        range_epsilon: float = 1.0,
        bounds: tuple[float, float] | None = None,
        margin: float | str | None = None,
        whole: bool | None = None,
        spike: float | None = None,
    ) -> Histogram:
        """Count values over bins.

        Parameters
        ----------
        values : array_like, shape (n,)
            Two or more, none missing, not all equal without `bounds`: ValueError; for no numbers TypeError.
        n_bins : int
            K, from 2 to a million.
        percentile, range_epsilon : float
            Of the margin "paper": p in (1/2, 1), and epsilon of a Laplace mechanism (not that of any game) up
            to whose percentile the range leaves room for noise.
        bounds : (float, float), optional
            Smallest and largest value that anybody could have, known without the data. No value may lie
            outside. By default the data's own.
        margin : float or "paper", optional
            By how much the range goes beyond either bound, in high - low. By default 0 with public bounds, so
            that nothing is released outside them, else "paper": ``|ln(2 - 2p)|/range_epsilon``.
        whole : bool, optional
            Whether rows are whole numbers. By default where public bounds are whole and a bin is at least one
            wide; without such bounds where all values are, which one value can change.
        spike : float, optional
            A value, known without the data, that many have, such as 0: it has a bin of its own, and the rest
            of that bin goes to the one beside it. With two bins it must be one of the bounds.

        Notes
        -----
        A value within 1e-9 of a bin's lower edge, in widths of a bin, belongs to that bin.

        References
        ----------
        .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
           (anonymous, under review), section 4.1.

        Examples
        --------
        >>> Histogram.from_values([0.0, 0.5, 1.0], n_bins=11).bin_of
        array([4, 5, 6])
        """
        given, public = _column(values), bounds is not None
        k = _checks.integer("n_bins", n_bins, 2, MAX_BINS)
        p = _checks.number("percentile", percentile, 0.5, 1.0, open_low=True, open_high=True)
        reference = _checks.number("range_epsilon", range_epsilon, 0.0, open_low=True)
        chosen = (0.0 if public else "paper") if margin is None else margin
        if paper := isinstance(chosen, str):
            _checks.choice("margin", chosen, ("paper",))
        # in units of high - low
        beyond = abs(math.log(2.0 - 2.0 * p)) / reference if paper else _checks.number("margin", chosen, 0.0)
        low, high = _bounds(bounds, given)
        span = high - low
        length = span * (1.0 + 2.0 * beyond)
        edges = (low - span * beyond, low - span * beyond + length if beyond else high)
        if not all(map(math.isfinite, (length, *edges))):
            name, found = ("range_epsilon", range_epsilon) if paper else ("margin", margin)
            raise ValueError(f"{name} must leave a finite range, got {found!r}")
        sensitivity = 1.0 / (1.0 + 2.0 * beyond)
        into = (low, span, beyond, sensitivity, k)
        bin_of, counts = _count(given, *into)
        apart = None
        if spike is not None:
            if not low <= (spike := _checks.number("spike", spike) + 0.0) <= high:
                raise ValueError(f"spike must be within the bounds, got {spike!r}")
            if k == 2 and low < spike < high:  # the other bin would stand for what is below and above
                raise ValueError(f"n_bins must be at least 3 for a spike between the bounds, got {k}")
            apart = (int(_count(np.array([spike]), *into)[0][0]), spike)
            bin_of, counts = _apart(given, bin_of, *apart, k)
        if whole and spike is not None and not spike.is_integer():
            raise ValueError(f"spike must be a whole number for whole=True, got {spike!r}")
        if whole is None:
            ends = (low, high, spike or 0.0) if public else (spike or 0.0,)
            plain = all(float(end).is_integer() for end in ends)
            whole = plain and (length >= k if public else not (given % 1).any())
        elif _checks.flag("whole", whole) and math.ceil(edges[0]) > math.floor(edges[1]):
            raise ValueError("whole must be False where no whole number is in the range, got True")
        integers = bool(whole) and max(map(abs, edges)) <= _LARGEST_INTEGER
        midpoints = sealed((np.arange(k) + 0.5) / k)
        return cls(counts, bin_of, midpoints, sensitivity, edges, (low, high), public, integers, apart)

    @property
    def inside(self) -> slice:
        """The bins within the bounds."""
        outside = (1.0 - self.sensitivity) / 2.0 * self.n_bins
        return slice(int(outside + _SNAP), min(int(self.n_bins - outside + _SNAP), self.n_bins - 1) + 1)

    def to_units(self, bins: ArrayLike) -> Array:
        """Return midpoints of bins int64[...], 0 to K - 1, in the data's units, float64[...] or int64[...].

        They are rounded to integers, none outside the range, where `integers` is true.
        """
        chosen = _checks.array("bins", bins, np.int64, None, low=0, high=self.n_bins - 1)
        start, stop = self.range
        units = start + self.midpoints * (stop - start)
        if self.spike:
            units[self.spike[0]] = self.spike[1]
        if self.integers:
            units = np.clip(np.ceil(units - 0.5 - _SNAP), math.ceil(start), math.floor(stop)).astype(np.int64)
        return np.asarray(units[chosen])


def sealed(array: Array) -> Array:
    """Return an array that nobody can write into."""
    array.flags.writeable = False
    return array


def _column(values: ArrayLike) -> Array:
    """Return values as a one-dimensional array of integers or floats, or refuse them."""
    _checks.present("values", values)
    try:
        given = np.asarray(values)
    except ValueError:
        raise TypeError("values must be an array of numbers, got a ragged sequence") from None
    if given.ndim != 1:
        raise ValueError(f"values must have shape (any), got {given.shape}")
    if given.size and given.dtype.kind not in "iuf":
        _refuse(given)
    if given.size < 2:
        raise ValueError(f"values must be at least 2 numbers, got {given.size or 'none'}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        where = int(np.isfinite(given).argmin())
        raise ValueError(f"values must be finite, got {given[where]} at index {where}")
    return given


def _refuse(given: Array) -> None:
    found = f"dtype {given.dtype}"
    if given.dtype.kind == "O":
        for where, entry in enumerate(given):
            named = type(entry).__name__ in ("NoneType", "NAType", "NaTType")
            if named or (isinstance(entry, float) and math.isnan(entry)):
                raise ValueError(f"values must have none missing, got {entry} at index {where}")
        wrong = [e for e in given if isinstance(e, bool | str) or not isinstance(e, int | float)]
        _checks.refuse_long("values", given, np.dtype(np.int64))
        found = f"objects such as {_checks.shown([*wrong, given[0]][0])}"
    elif given.dtype.kind in "US":
        found = f"text such as {_checks.shown(given[0].item())}"
    raise TypeError(f"values must be an array of numbers, got {found}")


def _bounds(bounds: object, given: Array) -> tuple[float, float]:
    """Return the user's bounds or the data's, or refuse them; a bin's edge forgives a value a little."""
    if bounds is None:
        low, high = float(given.min()), float(given.max())
        if low == high:
            raise ValueError("values must differ where bounds are not given, got one value only")
        if not math.isfinite(high - low):
            raise ValueError("values must span a finite range, got two that are too far apart")
        return low, high
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        raise TypeError(f"bounds must be a pair of numbers, got {_checks.shown(bounds)}")
    low, high = (_checks.number("bounds", bound) for bound in bounds)
    if not low < high:
        raise ValueError(f"bounds must be a lower and a higher number, got {_checks.shown(bounds)}")
    if not math.isfinite(high - low):
        raise ValueError(f"bounds must span a finite range, got {_checks.shown(bounds)}")
    slack = _SNAP * (high - low) / MAX_BINS
    for where in (int(given.argmin()), int(given.argmax())):
        if not low - slack <= float(given[where]) <= high + slack:
            found = f"{_checks.shown(bounds)} and the value {given[where]} at index {where}"
            raise ValueError(f"bounds must not leave a value out, got {found}")
    return low, high


def _count(
    given: Array, low: float, span: float, margin: float, sensitivity: float, k: int
) -> tuple[Ints, Ints]:
    """Return the bin of every value, int64[n], and the number in every bin, int64[K]."""
    bin_of, counts = np.empty(len(given), dtype=np.int64), np.zeros(k, dtype=np.int64)
    for start in range(0, len(given), _CHUNK):
        place = given[start : start + _CHUNK].astype(np.float64)
        place -= low
        place /= span
        place += margin
        place *= sensitivity * k
        place += _SNAP
        part = bin_of[start : start + _CHUNK]
        part[:] = place  # a cast cuts off what follows the point: no place is below 0
        np.clip(part, 0, k - 1, out=part)
        counts += np.bincount(part, minlength=k)
    return sealed(bin_of), sealed(counts)


def _apart(given: Array, bin_of: Ints, at: int, spike: float, k: int) -> tuple[Ints, Ints]:
    """Return bins int64[n] and counts int64[K] where bin `at` holds one value alone, and others go beside."""
    beside = np.where((given > spike) & (at < k - 1) | (at == 0), at + 1, at - 1)
    bins = np.where((bin_of == at) & (given != spike), beside, bin_of)
    return sealed(bins), sealed(np.bincount(bins, minlength=k))
