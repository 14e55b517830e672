"""How far a private learner's arm means can be from the truth."""

import numpy as np

from equinoise import _checks
from equinoise.inference.arguments import Number, Numbers, as_given, counts, positive, together


def bias_bound(
    epsilon: Numbers, mean: Numbers = 1.0, delta: Numbers = 0.0, horizon: Numbers | None = None
) -> Number:
    """Bound the bias of an arm's mean that a differentially private learner gathered.

    For rewards in [0, 1] and a learner whose choices are (epsilon, delta)-private in every reward,

        |E[mean of the rewards seen] - mu| <= (e^epsilon - 1 + delta T) mu.

    Parameters
    ----------
    epsilon : float or array
        Positive; math.inf is no privacy, and no bound.
    mean : float or array
        The arm's true mean mu, in [0, 1]; 1 bounds every arm.
    delta : float or array
        In [0, 1].
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
    Empty for epsilon above ln 2: a mean that is too low is so by mu at most. It is a bound, and the bias of a
    real policy is most often far smaller. What lowers it is how evenly arms are pulled, so look at the
    regret as well.

    References
    ----------
    .. [1] Neel and Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy, ICML,
       Theorem 1.

    Examples
    --------
    >>> round(bias_bound(0.05), 4)
    0.0513
    >>> bias_bound(0.1, mean=[0.5, 1.0]).round(4)
    array([0.0526, 0.1052])
    >>> round(bias_bound(0.05, delta=1e-6, horizon=1000), 4)
    0.0523
    """
    budget = positive("epsilon", epsilon, finite=False)
    true = _checks.array("mean", mean, np.float64, None, low=0.0, high=1.0)
    slack = _checks.array("delta", delta, np.float64, None, low=0.0, high=1.0)
    if horizon is None and slack.any():
        raise ValueError("horizon must be given where delta is not 0, got None")
    rounds = counts("horizon", 1 if horizon is None else horizon, 1)
    budget, true, slack, rounds = together(epsilon=budget, mean=true, delta=slack, horizon=rounds)
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.expm1(budget) + slack * rounds
        return as_given(np.where(true > 0.0, factor * true, 0.0))
