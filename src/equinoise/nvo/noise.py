"""Noise on bins: which share M[k, v, x] of a record of bin k with scale v goes to outcome x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equinoise.nvo.kernels import noise as _noise_kernels

__all__ = ["GaussianNoise", "Kernel", "LaplaceNoise", "ProductNoise", "masses"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LARGEST = 2**28  # masses at once: 2 GiB
_SMALLEST = -690.0  # ln of the smallest Gaussian mass, as for Laplace noise


class Kernel(Protocol):
    """Where masses come from: some of them at a time, for all of them may be too many."""

    @property
    def n_bins(self) -> int:
        """K."""
        ...

    @property
    def n_scales(self) -> int:
        """V."""
        ...

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, X]."""
        ...

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        ...


def masses(noise: Kernel, bins: Ints) -> Floats:
    """Return the rows M of the given bins int64[B], float64[B, V, X], sealed.

    Raises
    ------
    ValueError
        When they would take more than 2 GiB.
    """
    size = len(bins) * noise.n_scales * noise.n_bins
    if size > _LARGEST:
        raise ValueError(
            f"n_bins must be small enough for noise of 2 GiB here, got {noise.n_bins} bins, {len(bins)} of "
            f"them needed, and {noise.n_scales} scales, which take {8 * size / 2**30:.1f} GiB"
        )
    rows = noise.rows(bins)
    rows.flags.writeable = False
    return rows


@dataclass(frozen=True, eq=False)
class LaplaceNoise:
    """Laplace noise on equal bins; noise that would leave the range is not added.

    The mass M[k, v, x] is proportional to exp(-|x_k - x|/b_v) and adds up to one over x. It is
    decay[v, |k - x|]/total[k, v].

    Attributes
    ----------
    decay : float64[V, K]
        By distance in bins.
    total : float64[K, V]

    Examples
    --------
    >>> noise = LaplaceNoise.of(3, np.array([0.5]))
    >>> noise.rows(np.array([0])).round(3)
    array([[[0.563, 0.289, 0.148]]])
    """

    decay: Floats
    total: Floats

    @classmethod
    def of(cls, n_bins: int, scales: Floats) -> LaplaceNoise:
        """Return the noise of scales float64[V], normalised, on K bins."""
        decay, total = np.empty((len(scales), n_bins)), np.empty((n_bins, len(scales)))
        _noise_kernels.noise_decay(scales, decay)
        _noise_kernels.noise_total(decay, total)
        return cls(decay, total)

    @property
    def n_bins(self) -> int:
        """Number of bins, K."""
        return len(self.total)

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return len(self.decay)

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        out = np.empty((len(bins), self.n_scales, self.n_bins))
        _noise_kernels.noise_rows(self.decay, self.total, bins, out)
        return out

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        return self.decay[:, np.abs(np.arange(self.n_bins) - x)].T / self.total


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Gaussian noise on equal bins; noise that would leave the range is not added.

    The mass M[k, v, x] is proportional to exp(-(x_k - x)^2/(2 s_v^2)) and adds up to one over x.

    Attributes
    ----------
    n_bins : int
    scales : float64[V]
        Standard deviations before noise that would leave the range is left out, normalised.
    """

    n_bins: int
    scales: Floats

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return len(self.scales)

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        distance = np.abs(bins[:, None] - np.arange(self.n_bins)) / self.n_bins
        exponent = -0.5 * (distance[:, None, :] / self.scales[:, None]) ** 2
        mass = np.where(exponent > _SMALLEST, np.exp(np.maximum(exponent, _SMALLEST)), 0.0)
        return np.asarray(mass / mass.sum(axis=2, keepdims=True))

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        bins = np.arange(self.n_bins)
        return np.concatenate([self.rows(bins[k : k + 1])[:, :, x] for k in range(self.n_bins)])


@dataclass(frozen=True, eq=False)
class ProductNoise:
    """Noise on each of two axes by itself; cell k1 K2 + k2 is bin k1 of the first and k2 of the second.

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
