"""What a game given as arrays must be, and which ratios of masses its epsilon allows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks

__all__ = ["Limits", "checked_counts", "checked_game", "ratio_limits"]


class Limits(NamedTuple):
    """A player is private iff ``low <= M[x] / S[x] <= high`` at every x; odds is (1 - high) / high.

    S is the mass of all, the player's own M among it. low = 0 says that the first inequality is void.
    """

    low: float
    high: float
    odds: float


def ratio_limits(n: int, epsilon: float) -> Limits:
    """Return the limits of the ratios M/S for n players.

    Without the player x has probability ``(S - M)/(n - 1)`` instead of ``S/n``. That changes by a factor of
    at most e^eps either way iff ``1 - (1 - 1/n) e^eps <= M/S <= 1 - (1 - 1/n) e^-eps``; written here so that
    neither a tiny nor a huge epsilon loses digits.

    Parameters
    ----------
    n : int
        At least 2.
    epsilon : float
        Positive and finite.

    Examples
    --------
    >>> ratio_limits(2, 700.0).low, round(ratio_limits(2, 0.5).low, 3), round(ratio_limits(2, 0.5).high, 3)
    (0.0, 0.176, 0.697)
    """
    high = -math.expm1(-epsilon) + math.exp(-epsilon) / n
    low = 0.0
    if epsilon < -math.log1p(-1.0 / n):
        low = max(math.exp(epsilon) / n - math.expm1(epsilon), 0.0)
    return Limits(low, high, (1.0 - 1.0 / n) * math.exp(-epsilon) / high)


def checked_game(
    kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
    """Return masses float64[R, V, K] of the R bins with players, bin_counts int64[K] and epsilon.

    The kernel may be given whole, float64[K, V, K], or of these bins only.

    Raises
    ------
    TypeError, ValueError
        Before any work, when an argument is of a wrong kind, shape or range, when there are fewer than two
        players, or when noise never leaves an occupied bin where it is.
    """
    counts: NDArray[np.int64] = _checks.array("bin_counts", bin_counts, np.int64, (None,), low=0)
    n_bins = len(counts)
    if n_bins < 2:
        raise ValueError(f"bin_counts must have at least 2 bins, got {n_bins}")
    occupied = np.flatnonzero(counts)
    masses: NDArray[np.float64] = _checks.array("kernel", kernel, np.float64, (None, None, n_bins), low=0.0)
    if len(masses) not in (n_bins, len(occupied)):
        raise ValueError(
            f"kernel must have shape ({n_bins}, any, {n_bins}), or ({len(occupied)}, any, {n_bins}) of the "
            f"bins with players, got {masses.shape}"
        )
    if masses.shape[1] < 1:
        raise ValueError(f"kernel must have at least one scale, got shape {masses.shape}")
    n = sum(counts.tolist())
    if not 2 <= n < 2**53:
        raise ValueError(f"bin_counts must add up to 2 players or more, below 2^53, got {n}")
    rows = occupied if len(masses) == n_bins else np.arange(len(occupied))
    missed = np.argwhere(masses[rows, :, occupied] <= 0.0)
    if len(missed):
        i, v = int(missed[0][0]), int(missed[0][1])
        where = (int(rows[i]), v, int(occupied[i]))
        raise ValueError(f"kernel must be positive at a player's own bin, got 0 at index {where}")
    return masses[rows], counts, _checks.epsilon(epsilon, allow_infinite=False)


def checked_counts(
    name: str, counts: ArrayLike, bin_counts: NDArray[np.int64], n_scales: int, whole: str = "the histogram's"
) -> NDArray[np.int64]:
    """Return a profile int64[K, V], or raise where it is none or does not add up to bin_counts int64[K]."""
    shape = (len(bin_counts), n_scales)
    given: NDArray[np.int64] = _checks.array(name, counts, np.int64, shape, low=0)
    wrong = np.flatnonzero(given.sum(axis=1) != bin_counts)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(f"{name} must add up to {whole} {bin_counts[k]} at bin {k}, got {given[k].sum()}")
    return given
