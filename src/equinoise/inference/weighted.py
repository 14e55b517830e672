"""Arm means from adaptively gathered data, side by side: plain, inverse-propensity weighted, augmented."""

from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._results import Z95
from equinoise._typing import ArrayLike, DataFrame, Flags, Floats, Ints

ESTIMATORS = ("plain", "ipw", "hajek", "aipw", "weighted")


@dataclass(frozen=True, eq=False)
class ArmMeans:
    """Estimates of the arms' means with standard errors, K arms.

    Attributes
    ----------
    pulls : int64[K]
    plain, ipw, hajek, aipw, weighted : float64[K]
        The estimators of :func:`arm_means`. `plain` and `hajek` are NaN for an arm never pulled.
    plain_stderr, ipw_stderr, hajek_stderr, aipw_stderr, weighted_stderr : float64[K]
        NaN where nothing is known about the spread.

    Examples
    --------
    >>> made = arm_means([0, 1, 0], [1.0, 0.0, 0.0], [[0.5, 0.5]] * 3)
    >>> made.pulls, made.plain
    (array([2, 1]), array([0.5, 0. ]))
    """

    pulls: Ints
    plain: Floats
    plain_stderr: Floats
    ipw: Floats
    ipw_stderr: Floats
    hajek: Floats
    hajek_stderr: Floats
    aipw: Floats
    aipw_stderr: Floats
    weighted: Floats
    weighted_stderr: Floats

    def to_frame(self) -> DataFrame:
        """Return a long frame: estimator, arm, pulls, mean, stderr, ci_low, ci_high (normal, 95%)."""
        import pandas as pd

        parts = []
        for name in ESTIMATORS:
            mean, stderr = getattr(self, name), getattr(self, f"{name}_stderr")
            columns = {"estimator": name, "arm": np.arange(len(mean)), "pulls": self.pulls, "mean": mean}
            interval = {"stderr": stderr, "ci_low": mean - Z95 * stderr, "ci_high": mean + Z95 * stderr}
            parts.append(pd.DataFrame(columns | interval))
        return pd.concat(parts, ignore_index=True)


def arm_means(
    arms: ArrayLike, rewards: ArrayLike, propensities: ArrayLike, *, initial: float = 0.0
) -> ArmMeans:
    """Estimate each arm's mean from rounds whose arm was drawn with known probabilities.

    With A_t the arm, Y_t the reward and e_t(a) the probability of arm a in round t given the past:

    * plain: the mean of an arm's rewards, biased when the past decides what is pulled;
    * ipw (Horvitz-Thompson): mean over all T rounds of 1{A_t = a} Y_t / e_t(a). Unbiased, of large variance;
    * hajek: the same weights, divided by their sum and not by T. Less variance, some bias;
    * aipw: mean over all rounds of m_t(a) + 1{A_t = a} (Y_t - m_t(a)) / e_t(a), where m_t(a) is the mean of
      the arm's rewards before round t. Unbiased, since m_t is known before the round;
    * weighted: the terms of aipw weighted by sqrt(e_t(a)), which evens out their variances and so makes the
      normal interval right where some e_t get small. Slightly biased.

    Parameters
    ----------
    arms : int64[T]
        Arms pulled, at least one round.
    rewards : float64[T]
    propensities : float64[T, K]
        Probabilities of every arm, all positive, a row per round; rows sum to 1 within 1e-6.
    initial : float
        m_t(a) before the arm's first pull.

    Returns
    -------
    ArmMeans

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range. A propensity of 0 is refused: an arm
        that could not be pulled in a round has no unbiased estimate there. Rounds in which every arm is
        pulled once first are left out by the caller.

    Notes
    -----
    Standard errors of ipw and aipw are sqrt(sum over t of (term - mean)^2)/T, of the others the same with the
    weights of the rounds. Sums of squares measure a martingale's variance, so adaptive rounds may be used.

    References
    ----------
    .. [1] Hadad, Hirshberg, Zhan, Wager and Athey (2021), Confidence intervals for policy evaluation in
       adaptive experiments, PNAS 118(15): "aipw", and "weighted" with its constant allocation rate.
    .. [2] Horvitz and Thompson (1952), A generalization of sampling without replacement from a finite
       universe, JASA 47: "ipw".

    Examples
    --------
    >>> result = arm_means([0, 1, 1, 0], [1.0, 0.0, 1.0, 0.0], [[0.5, 0.5]] * 4)
    >>> result.plain, result.ipw
    (array([0.5, 0.5]), array([0.5, 0.5]))
    >>> result.to_frame().query("estimator == 'aipw'")[["arm", "pulls", "mean"]].values.tolist()
    [[0.0, 2.0, 0.75], [1.0, 2.0, 0.625]]
    """
    chance = _propensities(propensities)
    rounds, n_arms = chance.shape
    pulled: Ints = _checks.array("arms", arms, np.int64, (rounds,), low=0, high=n_arms - 1)
    reward = _checks.array("rewards", rewards, np.float64, (rounds,))[:, None]
    first = _checks.number("initial", initial)
    took = pulled[:, None] == np.arange(n_arms)
    earlier = _earlier_means(took, reward, first)
    scored = earlier + took * (reward - earlier) / chance
    ones = np.ones_like(chance)
    return ArmMeans(
        took.sum(axis=0),
        *_plain(took, reward),
        *_average(took * reward / chance, ones),
        *_average(np.broadcast_to(reward, chance.shape), took / chance),
        *_average(scored, ones),
        *_average(scored, np.sqrt(chance)),
    )


def _propensities(value: ArrayLike) -> Floats:
    chance = _checks.array("propensities", value, np.float64, (None, None), high=1.0)
    if not len(chance):
        raise ValueError(f"propensities must have at least one round, got shape {chance.shape}")
    if not (chance > 0.0).all():
        raise ValueError("propensities must all be positive, got one of 0 or less")
    worst = float(np.abs(chance.sum(axis=1) - 1.0).max())
    if worst > 1e-6:
        raise ValueError(f"propensities must sum to 1 in every round, got a sum that is off by {worst:g}")
    return chance


def _earlier_means(took: Flags, reward: Floats, initial: float) -> Floats:
    """Return the mean of each arm's rewards before each round, float64[T, K]."""
    pulls: Ints = np.cumsum(took, axis=0) - took
    sums = np.zeros(took.shape)
    np.cumsum((took * reward)[:-1], axis=0, out=sums[1:])
    return np.where(pulls > 0, sums / np.maximum(pulls, 1), initial)


def _plain(took: Flags, reward: Floats) -> tuple[Floats, Floats]:
    """Return the mean of an arm's rewards and its standard error, from the unbiased variance."""
    pulls = took.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (took * reward).sum(axis=0) / pulls
        square = np.where(took, (reward - mean) ** 2, 0.0).sum(axis=0)
        return mean, np.sqrt(square / (pulls - 1) / pulls)


def _average(terms: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean over rounds and its standard error, float64[K] each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = weights.sum(axis=0)
        mean = (weights * terms).sum(axis=0) / total
        return mean, np.sqrt((weights**2 * (terms - mean) ** 2).sum(axis=0)) / total
