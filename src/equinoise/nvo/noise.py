"""Noise on bins: which share M[k, v, x] of a record of bin k with scale v goes to outcome x.

A family of noise is a class with the parts of :class:`Noise`, and a row in :mod:`equinoise.nvo.registry`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equinoise._typing import Floats, Ints
from equinoise.nvo.kernels import noise as _compiled

_LARGEST = 2**28  # masses at once: 2 GiB


class Noise(Protocol):
    """A noise matrix M[k, v, x], some of it at a time, for all of it may be too much."""

    @property
    def n_bins(self) -> int:
        """Number of bins, K."""
        ...

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        ...

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        ...

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        ...

    @staticmethod
    def tail(share: float) -> float:
        """Return below how many scales the noise stays, on one side, with a probability of share >= 1/2."""
        ...


def masses(noise: Noise, bins: Ints) -> Floats:
    """Return the rows M of the given bins int64[B], float64[B, V, K], sealed; refused above 2 GiB."""
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

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), definition 3.2 and section 4.2.1.

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
        _compiled.noise_decay(scales, decay)
        _compiled.noise_total(decay, total)
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
        _compiled.noise_rows(self.decay, self.total, bins, out)
        return out

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        return self.decay[:, np.abs(np.arange(self.n_bins) - x)].T / self.total

    @staticmethod
    def tail(share: float) -> float:
        """Return below how many scales the noise stays, on one side, with a probability of share >= 1/2."""
        return abs(math.log(2.0 - 2.0 * share))
