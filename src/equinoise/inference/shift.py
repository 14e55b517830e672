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
from equinoise.inference.arguments import Number, Numbers, as_given, counts, positive, together, unit
from equinoise.inference.tests import ALTERNATIVES, at_least, at_most, outcomes


def shifted(mean: Floats, epsilon: Floats) -> Floats:
    """Return sigma(logit mean + epsilon); 0 and 1 stay as they are, whatever epsilon is."""
    small = np.exp(-np.abs(epsilon))
    good, bad = np.where(epsilon < 0.0, small, 1.0) * mean, np.where(epsilon < 0.0, 1.0, small) * (1.0 - mean)
    inside = (mean > 0.0) & (mean < 1.0)
    return np.where(inside, good / np.where(inside, good + bad, 1.0), mean)


def bias_bound(
    epsilon: Numbers, mean: Numbers | None = None, delta: Numbers = 0.0, horizon: Numbers | None = None
) -> Number:
    """Bound the bias of an arm's mean that a differentially private learner gathered.

    For independent rewards in [0, 1] and a learner whose choices are epsilon-private in every reward,

        |E[mean of the rewards seen] - mu| <= sigma(logit m + epsilon) - m,  m = min(mu, 1 - mu),

    with sigma(z) = 1/(1 + e^-z), which is at most tanh(epsilon/4), whatever mu is.

    Parameters
    ----------
    epsilon : float or array
        At least 0; math.inf is no privacy.
    mean : float or array, optional
        The arm's true mean mu, in [0, 1]. None bounds every arm, by tanh(epsilon/4).
    delta : float or array
        In [0, 1]. Where it is not 0 the bound is the published one, (e^epsilon - 1 + delta T) mu; mu is 1
        without a mean.
    horizon : int or array, optional
        Rounds T, at least 1; needed where delta is not 0.

    Returns
    -------
    float, or float64 array of the shape that the arguments broadcast to

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, or delta comes without a horizon.

    Notes
    -----
    It is the third consequence at the head of :mod:`equinoise.inference.shift`, where its conditions stand.
    An expectation is at most sigma(logit mu + epsilon) and at least sigma(logit mu - epsilon): above one half
    the lower end is the farther one, hence m. The published (e^epsilon - 1) mu is never smaller, and above
    epsilon = ln 2 it says nothing of an arm of mean 1. The bias of a real policy is most often far smaller
    than either; how evenly arms are pulled is what lowers it, so look at the regret as well.

    References
    ----------
    .. [1] Neel and Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy, ICML,
       Theorem 1: the published bound. The proof of ours is at the head of the module.

    Examples
    --------
    >>> round(bias_bound(0.1), 4)
    0.025
    >>> bias_bound(0.1, mean=[0.1, 0.5, 1.0]).round(4)
    array([0.0094, 0.025 , 0.    ])
    >>> round(bias_bound(0.05, 0.5, delta=1e-6, horizon=1000), 4)
    0.0261
    """
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    worst = np.ones(()) if mean is None else _checks.array("mean", mean, np.float64, None, low=0.0, high=1.0)
    slack = _checks.array("delta", delta, np.float64, None, low=0.0, high=1.0)
    if horizon is None and slack.any():
        raise ValueError("horizon must be given where delta is not 0, got None")
    rounds = counts("horizon", 1 if horizon is None else horizon, 1)
    budget, true, slack, rounds = together(epsilon=budget, mean=worst, delta=slack, horizon=rounds)
    least = np.fmin(true, 1.0 - true)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        moved = least * (1.0 - least) * -np.expm1(-budget)
        ours = np.where(least > 0.0, moved / (least + (1.0 - least) * np.exp(-budget)), 0.0)
        published = np.where(true > 0.0, (np.expm1(budget) + slack * rounds) * true, 0.0)
        return as_given(np.where(slack > 0.0, published, np.tanh(budget / 4.0) if mean is None else ours))


def shifted_p_value(
    successes: Numbers, trials: Numbers, null: Numbers, epsilon: Numbers, alternative: str = "greater"
) -> Number:
    """Return the exact p-value that an arm of a private bandit has a success probability of `null`.

    P(X >= successes) for X binomial(trials, sigma(logit null + epsilon)), sigma(z) = 1/(1 + e^-z); with
    "less" P(X <= successes) at -epsilon; "two-sided" is twice the smaller one, and 1 at most.

    Parameters
    ----------
    successes : int or array
        Sum of the arm's rewards, which are 0 or 1: from 0 to `trials`.
    trials : int or array
        The arm's pulls, at least 0; no trial gives 1.
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

    Notes
    -----
    Valid however the arm, `null`, the direction and the number of rounds were picked **from the choices**
    (arms, pulls, private means) of a learner that is epsilon-private in each of the independent rewards; not
    where raw rewards chose them or ended the experiment: then see
    :func:`equinoise.inference.confidence_sequence`. It is the first consequence at the head of
    :mod:`equinoise.inference.shift`, and cannot be improved: randomised response attains it. There is no loss
    with the number of rounds, but no effect within sigma(logit null + epsilon) can ever be shown.

    References
    ----------
    .. [1] Rosenbaum (2002), Observational Studies, second edition, Chapter 4: the same bounds, for
       assignments whose odds an unobserved cause moves by at most Gamma = e^epsilon.

    Examples
    --------
    >>> round(shifted_p_value(75, 110, 0.5, epsilon=0.1), 4)
    0.0006
    >>> shifted_p_value(75, 110, 0.5, epsilon=[0.1, 0.5, 1.0]).round(3)
    array([0.001, 0.117, 0.897])
    """
    side = _checks.choice("alternative", alternative, ALTERNATIVES)
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    good, total, chance, budget = outcomes(successes, trials, null, epsilon=budget)
    up = at_least(good, total, shifted(chance, budget))
    down = at_most(good, total, shifted(chance, -budget))
    return as_given({"greater": up, "less": down, "two-sided": np.fmin(2.0 * np.fmin(up, down), 1.0)}[side])


def shifted_interval(low: Numbers, high: Numbers, epsilon: Numbers) -> tuple[Number, Number]:
    """Widen an interval for an arm's mean so that it holds on the data of a private bandit.

    (sigma(logit low - epsilon), sigma(logit high + epsilon)), with sigma(z) = 1/(1 + e^-z).

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

    Notes
    -----
    Valid on the conditions of :func:`shifted_p_value`; for a confidence sequence also when raw rewards are
    looked at all the time (the second consequence at the head of :mod:`equinoise.inference.shift`).

    References
    ----------
    .. [1] Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
       binomial, Biometrika 26: intervals that may be widened so.

    Examples
    --------
    >>> from scipy.stats import binomtest
    >>> interval = binomtest(75, 110).proportion_ci()
    >>> [round(end, 3) for end in interval], [round(end, 3) for end in shifted_interval(*interval, 0.1)]
    ([0.586, 0.767], [0.562, 0.785])
    """
    budget = positive("epsilon", epsilon, finite=False, zero=True)
    below, above, budget = together(low=unit("low", low), high=unit("high", high), epsilon=budget)
    if (below > above).any():
        raise ValueError(f"low must be at most high, got {_checks.shown(low)} and {_checks.shown(high)}")
    return as_given(shifted(below, -budget)), as_given(shifted(above, budget))
