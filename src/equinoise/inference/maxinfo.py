"""Max information: what a private selection costs the tests that follow it.

A learner that is epsilon-private in each of n independent records has chosen, by what it released, which
hypothesis to test. With I bits of beta-approximate max information between records and release, an event
that has probability q under a hypothesis fixed beforehand has at most 2^I q + beta under the one chosen
(Dwork et al., 2015). Two bounds on I, in bits:

* "dwork", as published: ``log2(e) (epsilon^2 n/2 + epsilon sqrt(n ln(2/beta)/2))``;
* "tight", under the same assumptions: ``log2(e) (epsilon^2 n/8 + epsilon sqrt(n ln(1/beta)/2))``;

and for every beta, 0 among them, ``log2(e) epsilon n``. Levels and p-values of "tight" need no beta, and lose
less without it. The proofs stand in ``docs/papers/bias.md``.

What a correction is for, and not for. It holds for records that are independent of each other (product
data), and for hypotheses picked by looking at what the private mechanism released: a private bandit's
actions, the counts of pulls, its noised sums. Picking an arm by its true mean is not covered. It takes any
p-value, and pays for all n records: a level of 0.05 becomes 0.013 at epsilon sqrt(n) = 1, and 0.000016 at
4.5. For an arm's mean use the log-odds shift (:mod:`equinoise.inference.shift`), which pays nothing for n.
"""

import numpy as np

from equinoise import _checks
from equinoise._typing import Floats
from equinoise.inference.tests import Number, Numbers, as_given, counts, positive, together

METHODS = ("tight", "dwork")

_LOG2_E = 1.0 / np.log(2.0)
_SMALLEST = 5e-324  # a p-value of 0 is one that no float64 could tell from 0
_LOG_BETAS = -700.0 * np.linspace(0.0, 1.0, 400) ** 3  # where the best beta of "dwork" is looked for


def max_information(epsilon: Numbers, n: Numbers, beta: Numbers = 0.0, method: str = "tight") -> Number:
    """Bound the beta-approximate max information of an epsilon-private release about n records, in bits.

    Parameters
    ----------
    epsilon : float or array
        Positive; math.inf is no privacy.
    n : int or array
        Independent records, at least 1: a bandit's rounds.
    beta : float or array
        Probability that is set aside, in [0, 1].
    method : {"tight", "dwork"}
        "dwork" is the published bound alone; "tight" is ours, and never above it.

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to
        At beta = 0 both are ``log2(e) epsilon n``, and "tight" is nowhere above that.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold and Roth (2015), Generalization in adaptive data analysis
       and holdout reuse, NeurIPS, Theorem 20: "dwork".

    Examples
    --------
    >>> round(max_information(0.05, 500), 2), max_information(0.05, 500, [0.01], method="dwork").round(2)
    (36.07, array([3.53]))
    """
    budget, records, aside = _arguments(epsilon, n, method, beta=beta)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        pure = budget * records
        nats = np.where(aside == 0.0, pure, _nats(budget, records, np.log(aside), method))
        return as_given(_LOG2_E * (np.fmin(nats, pure) if method == "tight" else nats))


def corrected_level(alpha: Numbers, epsilon: Numbers, n: Numbers, method: str = "tight") -> Number:
    """Return the level at which to test a hypothesis that a private release chose, to be wrong with alpha.

    "tight" is exp(-(sqrt(ln(1/alpha)) + sqrt(v))^2) with v = n epsilon^2/8, and "dwork" the largest
    (alpha - beta)/2^I over beta in [0, alpha), I the published max information at beta, of a grid, each of
    which is valid. Both are at least e^(-epsilon n) alpha. Conditions are at the head of the module.
    For p-values of any kind; an arm's mean keeps more power with :func:`shifted_p_value`.

    Parameters
    ----------
    alpha : float or array
        The level that is wanted, in (0, 1).
    epsilon, n, method
        As of :func:`max_information`; "tight" is never below "dwork".

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to
        Reject where the plain p-value is at most this; nothing where it is 0, as without privacy.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel and Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy, ICML,
       Theorem 3 and Corollary 2, which set beta beforehand.

    Examples
    --------
    >>> [f"{corrected_level(0.05, 0.05, 500, method):.2g}" for method in ("tight", "dwork")]
    ['0.011', '0.0035']
    """
    budget, records, wanted = _arguments(epsilon, n, method, alpha=alpha)
    if not ((wanted > 0.0) & (wanted < 1.0)).all():
        raise ValueError(f"alpha must be in (0, 1), got {_checks.shown(alpha)}")
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        given = np.log(wanted)
        if method == "tight":
            level = -((np.sqrt(-given) + np.sqrt(records / 8.0) * budget) ** 2)
        else:
            left = np.log(-np.expm1(np.fmin(_LOG_BETAS - given[..., None], 0.0)))
            level = given + (left - _dwork(budget, records)).max(axis=-1)
        return as_given(np.exp(np.fmax(level, given - budget * records)))


def adjusted_p_value(p: Numbers, epsilon: Numbers, n: Numbers, method: str = "tight") -> Number:
    """Return a p-value that is valid for a hypothesis that a private release chose.

    "tight" is exp(-(sqrt(ln(1/p)) - sqrt(v))^2) where ln(1/p) > v = n epsilon^2/8, and 1 elsewhere; "dwork"
    is the smallest 2^I p + beta over beta in (0, 1), I the published max information at beta. Both are at
    most 1 and e^(epsilon n) p, and at most alpha where `p` is at most ``corrected_level(alpha, ...)``.

    Parameters
    ----------
    p : float or array
        Valid for a hypothesis that is fixed beforehand, in [0, 1]. A p-value of 0 counts as 5e-324.
    epsilon, n, method
        As of :func:`max_information`; "tight" is never above "dwork".

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to
        1 without privacy.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel and Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy, ICML,
       Theorem 3 and Corollary 2, turned from levels to p-values.

    Examples
    --------
    >>> [f"{adjusted_p_value(1e-4, 0.05, 500, method):.2g}" for method in ("tight", "dwork")]
    ['0.00094', '0.0022']
    """
    budget, records, plain = _arguments(epsilon, n, method, p=p)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_p = np.log(np.fmax(plain, _SMALLEST))
        if method == "tight":
            best = -(np.fmax(np.sqrt(-log_p) - np.sqrt(records / 8.0) * budget, 0.0) ** 2)
        else:
            best = np.logaddexp(log_p[..., None] + _dwork(budget, records), _LOG_BETAS).min(axis=-1)
        return as_given(np.exp(np.fmin(np.fmin(best, log_p + budget * records), 0.0)))


def _arguments(epsilon: Numbers, n: Numbers, method: str, **share: Numbers) -> list[Floats]:
    """Return epsilon, n and a share in [0, 1] as float64 of one shape, checked."""
    _checks.choice("method", method, METHODS)
    given = {"epsilon": positive("epsilon", epsilon, finite=False), "n": counts("n", n, 1)}
    of = {name: _checks.array(name, x, np.float64, None, low=0.0, high=1.0) for name, x in share.items()}
    return together(**given, **of)


def _nats(budget: Floats, records: Floats, log_beta: Floats, method: str) -> Floats:
    """Return the max information at beta > 0 in nats, w + c sqrt(ln(kappa/beta))."""
    share, kappa = (8.0, 1.0) if method == "tight" else (2.0, 2.0)
    spread = budget * np.sqrt(records / 2.0)
    nats: Floats = budget**2 * records / share + spread * np.sqrt(np.log(kappa) - log_beta)
    return nats


def _dwork(budget: Floats, records: Floats) -> Floats:
    """Return the published max information in nats at every beta of the grid."""
    return _nats(budget[..., None], records[..., None], _LOG_BETAS, "dwork")
