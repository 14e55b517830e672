"""Bias and regret of one run in one line: what tables print, and what the frontier draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equinoise import _results
from equinoise._typing import Floats

if TYPE_CHECKING:
    from equinoise.bandits import BanditRun

__all__ = ["Summary", "arm_errors", "summarise"]

_CLEAR = 0.05  # the risk that bias is called clear where there is none


class Summary(NamedTuple):
    """Bias over the arms, and the regret at the horizon.

    Attributes
    ----------
    mean_absolute_bias, stderr : float
        Mean over the arms of the absolute value of each arm's bias.
    luck : float
        The mean absolute bias that these replicates would show on average if no arm had any.
    largest_bias : float
        The one with the largest absolute value, with its sign.
    arms_at_zero : int or None
        Arms whose 95% interval contains zero; None for one replicate, which gives no intervals.
    clear : bool
        Whether all arms together differ from no bias at 5% (chi-squared, arms as independent).
    regret, regret_stderr : float
    """

    mean_absolute_bias: float
    stderr: float
    luck: float
    largest_bias: float
    arms_at_zero: int | None
    clear: bool
    regret: float
    regret_stderr: float


def arm_errors(run: BanditRun) -> Floats:
    """Return each arm's mean reward less its true mean, float64[R, K]; NaN where it was never pulled."""
    return run.means - run.true_means


def summarise(run: BanditRun) -> Summary:
    """Return bias and regret of a run with their standard errors, NaN for those of one replicate.

    An arm's bias is over the replicates that pulled it; one that none pulled is left out.

    Notes
    -----
    The mean absolute bias is the mean over arms of s_a b_a with s_a the sign of arm a's estimated bias b_a.
    Its standard error is that of the replicates' own such means, the signs taken as known.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> seen, true = np.array([[0.75, 0.25], [1.0, 0.25]]), np.array([0.75, 0.5])
    >>> made = summarise(SimpleNamespace(means=seen, true_means=true, regret=np.array([[2.0], [4.0]])))
    >>> made.mean_absolute_bias, made.largest_bias, made.regret
    (0.1875, -0.25, 3.0)
    """
    errors = arm_errors(run)
    errors = errors[:, ~np.isnan(errors).all(axis=0)]
    counts = (~np.isnan(errors)).sum(axis=0)
    bias = np.nanmean(errors, axis=0)
    stderr, total, alone = np.full(len(bias), np.nan), math.nan, len(errors) < 2
    if not alone:
        with np.errstate(divide="ignore", invalid="ignore"):
            stderr = np.sqrt(np.nansum((errors - bias) ** 2, axis=0) / (counts - 1) / counts)
        # each replicate's share of every arm's mean: the arms of a replicate need not be independent
        shares = np.where(np.isnan(errors), 0.0, np.sign(bias) * errors) / counts
        total = float(np.std(shares.sum(axis=1), ddof=1) * math.sqrt(len(errors)) / len(bias))
    regret = _results.summarise(run.regret[:, -1])
    return Summary(
        float(np.abs(bias).mean()),
        total,
        float(math.sqrt(2.0 / math.pi) * stderr.mean()),
        float(bias[np.argmax(np.abs(bias))]),
        None if alone else int((np.abs(bias) <= _results.Z95 * stderr).sum()),
        _is_clear(bias, stderr),
        float(regret.mean),
        float(regret.stderr),
    )


def _is_clear(bias: Floats, stderr: Floats) -> bool:
    """Return whether the biases of the arms that vary are inconsistent with zero, taken together."""
    from scipy.special import chdtrc

    varies = stderr > 0.0
    if not varies.any():
        return bool((np.abs(bias[~np.isnan(stderr)]) > 1e-12).any())
    chi_squared = float(((bias[varies] / stderr[varies]) ** 2).sum())
    return float(chdtrc(int(varies.sum()), chi_squared)) < _CLEAR
