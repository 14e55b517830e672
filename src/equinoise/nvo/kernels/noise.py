"""Compiled noise: masses of truncated Laplace noise on equal bins."""

from equinoise._elementary import exp
from equinoise._jit import njit
from equinoise._typing import Floats, Ints

_SMALLEST = -690.0  # ln of the smallest mass: what lies below is no outcome at all


@njit
def noise_decay(scales: Floats, out: Floats) -> None:
    """Fill out float64[V, K] with exp(-d/(K b_v)), the noise at a distance of d bins before it is normalised.

    Below e^-690 it is 0: so far away there is no noise. Sums of masses then never meet the
    numbers too small to be normal, whose digits are few.
    """
    n_scales, n_bins = out.shape
    for v in range(n_scales):
        for d in range(n_bins):
            exponent = -(d / n_bins) / scales[v]
            out[v, d] = exp(exponent) if exponent > _SMALLEST else 0.0


@njit
def noise_total(decay: Floats, out: Floats) -> None:
    """Fill out float64[K, V] with the sum of decay float64[V, K] over the distances of bin k from all."""
    n_scales, n_bins = decay.shape
    for v in range(n_scales):
        below = 0.0
        for k in range(n_bins):
            below += decay[v, k]
            out[k, v] = below
        above = 0.0
        for k in range(n_bins - 2, -1, -1):
            above += decay[v, n_bins - 1 - k]
            out[k, v] += above


@njit
def noise_rows(decay: Floats, total: Floats, bins: Ints, out: Floats) -> None:
    """Fill out float64[B, V, K] with the masses of the given bins int64[B]: decay at |k - x| over total."""
    n_rows, n_scales, n_bins = out.shape
    for i in range(n_rows):
        k = bins[i]
        for v in range(n_scales):
            for x in range(n_bins):
                out[i, v, x] = decay[v, abs(k - x)] / total[k, v]
