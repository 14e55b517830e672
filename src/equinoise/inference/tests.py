"""Plain tests of one mean, for scalars or whole arrays of arms and replicates at once.

Their p-values hold for a hypothesis that is fixed beforehand. For one that a private bandit's actions chose
there is :func:`equinoise.inference.shifted_p_value`; where only a p-value is at hand, put it through
:func:`equinoise.inference.adjusted_p_value`.
"""

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, ArrayLike, Floats

Number = Any  # what functions return: a float, or float64[...]
Numbers = ArrayLike  # what they take
ALTERNATIVES = ("two-sided", "less", "greater")

_TIE = 1e-7  # outcomes as likely as the one seen, up to rounding, count as extreme: scipy's choice


def z_test(estimate: Numbers, null: Numbers, stderr: Numbers, alternative: str = "two-sided") -> Number:
    """Return the p-value of a normal test that a mean is `null`.

    The statistic is (estimate - null)/stderr, standard normal under the null hypothesis.

    Parameters
    ----------
    estimate, null, stderr : float or array
        Finite; the last is the standard error of the estimate, a root of a variance, positive.
    alternative : {"two-sided", "less", "greater"}
        Where the estimate would speak against the null hypothesis.

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> z_test([0.4, 0.6], 0.5, 0.1, alternative="less").round(4)
    array([0.1587, 0.8413])
    """
    from scipy.special import erfc, ndtr

    side = _checks.choice("alternative", alternative, ALTERNATIVES)
    seen = _checks.array("estimate", estimate, np.float64, None)
    expected = _checks.array("null", null, np.float64, None)
    error = positive("stderr", stderr)
    seen, expected, error = together(estimate=seen, null=expected, stderr=error)
    with np.errstate(over="ignore", under="ignore"):
        z = (seen - expected) / error
        if side == "two-sided":
            return as_given(erfc(np.abs(z) * np.sqrt(0.5)))
        return as_given(ndtr(z if side == "less" else -z))


def binomial_test(
    successes: Numbers, trials: Numbers, null: Numbers, alternative: str = "two-sided"
) -> Number:
    """Return the exact p-value that a success has probability `null`.

    Two-sided, it is the probability of all outcomes that are no more likely than the one seen, under `null`.

    Parameters
    ----------
    successes, trials : int or array
        At least 0, and no more successes than trials; no trial gives 1.
    null : float or array
        In [0, 1].
    alternative : {"two-sided", "less", "greater"}
        Where the successes would speak against the null hypothesis.

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to
        As ``scipy.stats.binomtest`` gives for one outcome at a time.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> binomial_test([0, 5, 10], 10, 0.5, alternative="greater").round(4)
    array([1.   , 0.623, 0.001])
    """
    side = _checks.choice("alternative", alternative, ALTERNATIVES)
    good, total, chance = outcomes(successes, trials, null)
    if side == "two-sided":
        return as_given(_two_sided(good, total, chance))
    return as_given(at_most(good, total, chance) if side == "less" else at_least(good, total, chance))


def outcomes(successes: Numbers, trials: Numbers, null: Numbers, **others: Array) -> list[Any]:
    """Return successes, trials, null and what else there is as float64 of one shape, checked."""
    total = counts("trials", trials, 0, 2.0**53)
    chance = _checks.array("null", null, np.float64, None, low=0.0, high=1.0)
    given = together(successes=counts("successes", successes, 0), trials=total, null=chance, **others)
    if (given[0] > given[1]).any():
        raise ValueError(f"successes must be at most trials, got {_checks.shown(successes)}")
    return given


def _two_sided(good: Floats, total: Floats, chance: Floats) -> Floats:
    """Return the probability of the outcomes that are no more likely than the one seen."""
    mean = total * chance
    low = good < mean  # so the other side is above the mean
    limit = _log_probability(good, total, chance) + _TIE
    start, sign = np.where(low, np.ceil(mean), np.floor(mean)), np.where(low, 1.0, -1.0)
    # outcomes grow less likely from the mean outwards: bisection finds where those that count begin
    near, far = np.zeros(good.shape), np.where(low, total - start, start) + 1.0  # at far nothing is left
    while (near < far).any():
        middle = np.floor(0.5 * (near + far))
        rare = (middle >= far) | (_log_probability(start + sign * middle, total, chance) <= limit)
        near, far = np.where(rare, near, middle + 1.0), np.where(rare, middle, far)
    edge = start + sign * near
    lower, upper = np.where(low, good, edge), np.where(low, edge, good)
    tails = at_most(lower, total, chance) + at_least(upper, total, chance)
    return np.where(good == mean, 1.0, np.fmin(tails, 1.0))


def _log_probability(k: Floats, total: Floats, chance: Floats) -> Floats:
    """Return ln P(X = k) for X binomial(total, chance) and k from 0 to total; outside it means nothing."""
    from scipy.special import betaln, xlog1py, xlogy

    k = np.clip(k, 0.0, total)
    ways = -np.log1p(total) - betaln(total - k + 1.0, k + 1.0)
    result: Floats = ways + xlogy(k, chance) + xlog1py(total - k, -chance)
    return result


def at_most(k: Floats, total: Floats, chance: Floats) -> Floats:
    """Return P(X <= k)."""
    from scipy.special import betaincc

    inside = (k >= 0.0) & (k < total)
    part = betaincc(np.where(inside, k, 0.0) + 1.0, np.where(inside, total - k, 1.0), chance)
    return np.where(inside, part, np.where(k < 0.0, 0.0, 1.0))


def at_least(k: Floats, total: Floats, chance: Floats) -> Floats:
    """Return P(X >= k)."""
    from scipy.special import betainc

    inside = (k > 0.0) & (k <= total)
    part = betainc(np.where(inside, k, 1.0), np.where(inside, total - k, 0.0) + 1.0, chance)
    return np.where(inside, part, np.where(k <= 0.0, 1.0, 0.0))


# Scalars or arrays alike: checked arguments in float64, and results of the kind that came in.


def positive(name: str, value: ArrayLike, *, finite: bool = True, zero: bool = False) -> Floats:
    """Return positive numbers as float64[...]; also infinity with ``finite=False``, and 0 with `zero`."""
    given = _checks.entries(name, value)
    infinite = given == np.inf if given.dtype.kind == "f" and not finite else np.False_
    known = np.where(infinite, 1.0, given) if infinite.any() else given
    numbers = _checks.array(name, known, np.float64, None)
    if not (numbers >= 0.0 if zero else numbers > 0.0).all():
        words = "at least 0" if zero else "positive"
        raise ValueError(f"{name} must be {words}, got {_checks.shown(value)}")
    return np.where(infinite, np.inf, numbers)


def counts(name: str, value: ArrayLike, low: int, high: float | None = None) -> Floats:
    """Return integers from `low` to `high` as float64[...]; it tells each up to 2^53 from the next."""
    return _checks.array(name, value, np.int64, None, low=low, high=high).astype(np.float64)


def together(**arrays: Array) -> list[Any]:
    """Return arrays broadcast against each other, read-only; ValueError names those that do not fit."""
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"arguments must have shapes that broadcast, got {shapes}") from None


def as_given(result: Floats) -> Number:
    """Return a float where every argument was a scalar, and the array otherwise."""
    return result if result.ndim else float(result)
