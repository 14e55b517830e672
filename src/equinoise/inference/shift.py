"""The log-odds shift: how far epsilon-private choices can move the rewards that they gather.

Rewards X_1, X_2, ... are independent and in [0, 1], those of one arm of one mean mu. Let a be all that was
chosen: the arms of all rounds and, where the choices decide it, their number. *The choices are
epsilon-private in each reward*: with another X_j in place of one of them, the probability q(a | x) of every a
changes by a factor of at most e^epsilon. With sigma(z) = 1/(1 + e^-z), logit its inverse and
mu+- = sigma(logit mu +- epsilon):

**Lemma.** Given a and all other rewards, the mean of X_j lies in [mu-, mu+].

Proof. Given these the law of X_j has the weight g(x) = q(a | X_j = x, the others) on its own, and
c <= g <= c e^epsilon for some c. The mean is E[X g]/(E[X g] + E[(1 - X) g]), which grows in the first part
and falls in the second. Those are at most c e^epsilon mu and at least c (1 - mu), so the mean is at most
mu e^epsilon/(mu e^epsilon + 1 - mu) = mu+. The same for 1 - X_j gives the lower end.

What follows, given a, and so **however arm, null hypothesis, direction and number of rounds were picked from
the choices**, or from anything else that the same epsilon covers:

1. Rewards of 0 and 1: the sum S over an arm's N pulls lies stochastically between binomial(N, mu-) and
   binomial(N, mu+) (couple one reward after the other). Exact tests and intervals hold with mu+-. Randomised
   response of every reward attains it.
2. Rewards in [0, 1]: products of 1 + lambda_j (X_j - mu+), lambda_j >= 0 known before X_j, are
   supermartingales. Bets, and so the confidence sequences and e-values of this package, hold with mu+-. **Raw
   rewards may be looked at all the time, and end the experiment**: the choices that would have followed can
   be thought of as made. Then an arm must have been picked beforehand, or all of them be counted.
3. The mean of an arm that was pulled has an expectation in [mu-, mu+].

What is not covered: choices that a look at raw rewards has influenced (an arm dropped for its raw mean; in 1
the end of the experiment); rewards that depend on each other, such as several of one person, or that go
missing for reasons that depend on them; (epsilon, delta)-privacy; noise that is not of pure privacy, such as
Gaussian; rewards without bounds.
"""

import numpy as np

from equinoise import _checks
from equinoise._typing import Floats
from equinoise.inference import tests
from equinoise.inference.tests import Number, Numbers, as_given, positive, together


def shifted(mean: Floats, epsilon: Floats) -> Floats:
    """Return sigma(logit mean + epsilon); 0 and 1 stay as they are, whatever epsilon is."""
    small = np.exp(-np.abs(epsilon))
    good, bad = np.where(epsilon < 0.0, small, 1.0) * mean, np.where(epsilon < 0.0, 1.0, small) * (1.0 - mean)
    inside = (mean > 0.0) & (mean < 1.0)
    return np.where(inside, good / np.where(inside, good + bad, 1.0), mean)


def bias_bound(epsilon: Numbers, mean: Numbers | None = None) -> Number:
    """Bound the bias of an arm's mean that a differentially private learner gathered.

    For independent rewards in [0, 1] and a learner whose choices are epsilon-private in every reward,

        |E[mean of the rewards seen] - mu| <= sigma(logit m + epsilon) - m,  m = min(mu, 1 - mu),

    with sigma(z) = 1/(1 + e^-z), which is at most tanh(epsilon/4), whatever mu is: the third consequence at
    the head of :mod:`equinoise.inference.shift`, where its conditions stand; above one half the lower end of
    the expectation is the farther one, hence m. The published (e^epsilon - 1) mu is never smaller, and says
    nothing above ln 2. The bias of a real policy is most often far smaller: how evenly arms are pulled is
    what lowers it, so look at the regret as well.

    Parameters
    ----------
    epsilon : float or array
        At least 0; math.inf is no privacy.
    mean : float or array, optional
        The arm's true mean mu, in [0, 1]. None bounds every arm, by tanh(epsilon/4).

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel and Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy, ICML,
       Theorem 1: the published bound. The proof of ours is at the head of the module.

    Examples
    --------
    >>> round(bias_bound(0.1), 4), bias_bound(0.1, mean=[0.1, 0.5, 1.0]).round(4)
    (0.025, array([0.0094, 0.025 , 0.    ]))
    """
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    if mean is None:
        return as_given(np.tanh(budget / 4.0))
    true = _checks.array("mean", mean, np.float64, None, low=0.0, high=1.0)
    budget, least = together(epsilon=budget, mean=np.fmin(true, 1.0 - true))
    moved, other = least * (1.0 - least) * -np.expm1(-budget), (1.0 - least) * np.exp(-budget)
    return as_given(np.where(least > 0.0, moved / np.where(least > 0.0, least + other, 1.0), 0.0))


def shifted_p_value(
    successes: Numbers, trials: Numbers, null: Numbers, epsilon: Numbers, alternative: str = "greater"
) -> Number:
    """Return the exact p-value that an arm of a private bandit has a success probability of `null`.

    P(X >= successes) for X binomial(trials, sigma(logit null + epsilon)), sigma(z) = 1/(1 + e^-z); with
    "less" P(X <= successes) at -epsilon; "two-sided" is twice the smaller one, and 1 at most.

    Valid however the arm, `null`, the direction and the number of rounds were picked **from the choices**
    (arms, pulls, private means) of a learner that is epsilon-private in each of the independent rewards; not
    where raw rewards picked them or ended the experiment (see :func:`confidence_sequence`): the first
    consequence at the head of :mod:`equinoise.inference.shift`. The number of rounds costs nothing, but no
    effect within sigma(logit null + epsilon) can ever be shown.

    Parameters
    ----------
    successes, trials : int or array
        Sum of the arm's rewards, which are 0 or 1, and number of its pulls; no trial gives 1.
    null : float or array
        In [0, 1]: at most, at least or exactly the arm's mean, for "greater", "less" and "two-sided".
    epsilon : float or array
        Privacy of the choices in each reward, at least 0; math.inf is no privacy and no evidence.
    alternative : {"greater", "less", "two-sided"}
        Where the successes would speak against the null hypothesis.

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to
        At epsilon 0 with one side, :func:`equinoise.inference.binomial_test`.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Rosenbaum (2002), Observational Studies, second edition, Chapter 4: the same bounds, for
       assignments whose odds an unobserved cause moves by at most Gamma = e^epsilon.

    Examples
    --------
    >>> shifted_p_value(75, 110, 0.5, epsilon=[0.1, 0.5, 1.0]).round(3)
    array([0.001, 0.117, 0.897])
    """
    side = _checks.choice("alternative", alternative, tests.ALTERNATIVES)
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    good, total, chance, budget = tests.outcomes(successes, trials, null, epsilon=budget)
    up = tests.at_least(good, total, shifted(chance, budget))
    down = tests.at_most(good, total, shifted(chance, -budget))
    return as_given({"greater": up, "less": down, "two-sided": np.fmin(2.0 * np.fmin(up, down), 1.0)}[side])


def shifted_interval(low: Numbers, high: Numbers, epsilon: Numbers) -> tuple[Number, Number]:
    """Widen an interval for an arm's mean so that it holds on the data of a private bandit.

    (sigma(logit low - epsilon), sigma(logit high + epsilon)), with sigma(z) = 1/(1 + e^-z). Valid as
    :func:`shifted_p_value` is; a confidence sequence also where raw rewards are looked at.

    Parameters
    ----------
    low, high : float or array
        Ends of an interval for a mean in [0, 1]: each of them valid alone, in half of the error, as those
        of :func:`equinoise.inference.confidence_sequence` are, and those of Clopper and Pearson for rewards
        of 0 and 1. NaN stays NaN.
    epsilon : float or array
        Privacy of the choices in each reward, at least 0; math.inf is no privacy.

    Returns
    -------
    tuple of float, or of float64 arrays of the shape that the arguments broadcast to

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, or low is above high.

    References
    ----------
    .. [1] Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
       binomial, Biometrika 26: the intervals of the example. The proof is at the head of the module.

    Examples
    --------
    >>> from scipy.stats import binomtest
    >>> interval = binomtest(75, 110).proportion_ci()
    >>> [[round(float(end), 3) for end in ends] for ends in (interval, shifted_interval(*interval, 0.1))]
    [[0.586, 0.767], [0.562, 0.785]]
    """
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    for name, end in (("low", low), ("high", high)):
        _checks.array(name, np.nan_to_num(_checks.entries(name, end)), np.float64, None, low=0.0, high=1.0)
    below, above, budget = together(low=np.asarray(low), high=np.asarray(high), epsilon=budget)
    if (below > above).any():
        raise ValueError(f"low must be at most high, got {_checks.shown(low)} and {_checks.shown(high)}")
    return as_given(shifted(below, -budget)), as_given(shifted(above, budget))
