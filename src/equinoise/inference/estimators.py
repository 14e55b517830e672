"""Arms' means, and the value of another policy, from rounds whose arm was drawn with known probabilities.

With A_t the arm, Y_t the reward and e_t(a) the probability of arm a in round t, given all that went before:

* "ols": the mean of an arm's rewards, biased where the past decides what is pulled;
* "ipw": the mean over all rounds of 1{A_t = a} Y_t / e_t(a). Unbiased, of large variance;
* "hajek": the same weights, divided by their sum and not by T. Less variance, some bias;
* "aipw": sum_t h_t(a) G_t(a) / sum_t h_t(a) of G_t(a) = m_t(a) + 1{A_t = a} (Y_t - m_t(a))/e_t(a), where
  m_t(a) is the mean of the arm's rewards before round t. With weights h of 1 ("uniform") it is unbiased. With
  sqrt(e_t(a)) ("constant") every round has the same share of the variance, and so the normal interval is
  right where some e_t get small; with sqrt(e_t(a) l_t(a)) ("two-point") the shares l_t(a) are larger early,
  as for an arm that is hardly pulled later on;
* "batched-ols": sum_b w_b (y_b(a) - y_b(c)) / sum_b w_b for the difference of arms a and c, of their mean
  rewards in batches b, w_b = (s(a)/n_b(a) + s(c)/n_b(c))^(-1/2), where n_b are pulls and s(a) is the variance
  of rewards in batches; standard error sqrt(B)/sum_b w_b, over the B batches in which both were pulled. An
  arm's own mean is made alike. A drift that all arms share makes no difference wrong.

Standard errors sum the squares of the rounds' own deviations, which measure a martingale's variance, so
adaptive rounds may be used. Intervals and p-values are normal, for **one look, at a number of rounds that was
fixed beforehand**; at any time and for any policy there is :func:`equinoise.inference.confidence_sequence`.
NaN stands where nothing is known: an arm never pulled, a spread from one pull or from rewards all alike.
"""

from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, ArrayLike, DataFrame, Floats, Hashable, Ints, Mapping
from equinoise.inference.logs import PAID, SUM, Log, checked_log, earlier_means, names_of, of_rounds
from equinoise.inference.tests import Number, Numbers, as_given, z_test

__all__ = ["Estimates", "arm_means", "off_policy_value"]

METHODS = ("ols", "ipw", "hajek", "aipw", "batched-ols")
WEIGHTS = ("uniform", "constant", "two-point")
_AT_ONCE = 2**28  # sums of products that a kernel makes before it hears Ctrl-C
_MOST_SUMS = 10**14  # about a day of a processor


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates with standard errors: of K arms, of their differences, or of one value.

    Attributes
    ----------
    estimate, stderr : float64[..., K] or float64[...]
        NaN where nothing is known.
    pairs : tuple of float64[..., K, K], or None
        Of arms: every arm's mean (rows) less that of another (columns), and its standard error.
    labels : tuple
        What the arms are called, where they were not numbers.

    Examples
    --------
    >>> made = arm_means([0, 1, 1, 0] * 50, [1, 0, 1, 1, 1, 1, 0, 0] * 25, [[0.5, 0.5]] * 200)
    >>> made.estimate.round(2), made.against(0).p_value().round(2)
    (array([0.76, 0.5 ]), array([nan,  0.]))
    """

    estimate: Floats
    stderr: Floats
    pairs: tuple[Floats, Floats] | None = None
    labels: tuple[Hashable, ...] = ()

    def interval(self, alpha: float = 0.05) -> tuple[Floats, Floats]:
        """Return the ends of normal intervals, each of which misses with chance `alpha`."""
        from scipy.special import ndtri

        risk = _checks.number("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
        half = -ndtri(risk / 2.0) * self.stderr
        return self.estimate - half, self.estimate + half

    def p_value(self, null: Numbers = 0.0, alternative: str = "two-sided") -> Number:
        """Return p-values of :func:`equinoise.inference.z_test` that what is estimated is `null`; or NaN."""
        known = ~np.isnan(self.stderr)
        seen, error = np.where(known, self.estimate, 0.0), np.where(known, self.stderr, 1.0)
        return as_given(np.where(known, z_test(seen, null, error, alternative), np.nan))

    def against(self, control: Hashable) -> "Estimates":
        """Return what is estimated of every arm's mean less that of a control; NaN for the control itself."""
        if self.pairs is None:
            raise ValueError("control must be an arm, and these are estimates of other values")
        at = self._place("control", control)
        return Estimates(self.pairs[0][..., at], self.pairs[1][..., at], labels=self.labels)

    def contrast(self, arm: Hashable, control: Hashable) -> "Estimates":
        """Return what is estimated of the mean of one arm less that of a control."""
        of, at = self.against(control), self._place("arm", arm)
        return Estimates(of.estimate[..., at], of.stderr[..., at])

    def _place(self, name: str, arm: Hashable) -> int:
        if not self.labels:
            return _checks.integer(name, arm, 0, self.estimate.shape[-1] - 1)
        if arm not in self.labels:
            raise ValueError(f"{name} must be one of {list(self.labels)}, got {_checks.shown(arm)}")
        return self.labels.index(arm)

    def to_frame(self, alpha: float = 0.05) -> DataFrame:
        """Return a row an arm: arm, mean, stderr, and its interval, ci_low and ci_high."""
        import pandas as pd

        if np.ndim(self.estimate) != 1:
            what = "the arms of one log, not of one value or of replicates"
            raise ValueError(f"to_frame must be asked of {what}")
        low, high = self.interval(alpha)
        columns = {"arm": self.labels or range(len(low)), "mean": self.estimate, "stderr": self.stderr}
        return _results.made_by(pd.DataFrame({**columns, "ci_low": low, "ci_high": high}), alpha=alpha)


def arm_means(
    arms: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike | None = None,
    *,
    method: str = "aipw",
    weights: str = "constant",
    decay: float = 0.7,
    initial: float = 0.0,
    batches: int | ArrayLike = 20,
    n_arms: int | None = None,
) -> Estimates:
    """Estimate each arm's mean, and differences of means, from rounds of a randomised policy.

    Parameters
    ----------
    arms : int64[..., T]
        Arms pulled, from 0, or their labels; leading axes are replicates.
    rewards : float64[..., T]
        Numbers or truth values.
    propensities : float64[..., T, K] or float64[..., T], optional
        Probabilities of every arm, which sum to 1 within 1e-6; or of the arm that was pulled, which is enough
        but for weights "constant" and "two-point". Where arms are labels, those of every arm are a frame with
        a column for each label. Positive, of pulled arms at least 1e-50: an arm that could not be pulled has
        no unbiased estimate there; with those two weights such a round does not count. Not needed by "ols"
        and "batched-ols".
    method : {"aipw", "ols", "ipw", "hajek", "batched-ols"}
        As at the head of :mod:`equinoise.inference.estimators`.
    weights : {"constant", "uniform", "two-point"}
        For "aipw".
    decay : float
        In [0, 1), for "two-point": e_t(a) is at least of the order t^-decay. At 0 it is "constant".
    initial : float
        m_t(a) before the arm's first pull, for "aipw".
    batches : int or int64[T]
        For "batched-ols": number of batches, of consecutive rounds; or the batch of every round, from 0. The
        policy should not change within a batch.
    n_arms : int, optional
        K where propensities do not say; by default the largest arm and one.

    Returns
    -------
    Estimates
        Raises TypeError or ValueError for arguments of the wrong kind or out of range. Rounds in which every
        arm is pulled once first are left out by the caller.

    References
    ----------
    .. [1] Hadad, Hirshberg, Zhan, Wager and Athey (2021), Confidence intervals for policy evaluation in
       adaptive experiments, PNAS 118(15): adaptively weighted AIPW, its variance, the constant and the
       two-point allocation rate, and contrasts of arms.
    .. [2] Zhang, Janson and Murphy (2020), Inference for batched bandits, NeurIPS 33, Section 4: batched OLS,
       there with one variance for all arms.

    Examples
    --------
    >>> log = [0, 1, 1, 0] * 25, [1, 0, 1, 0, 1] * 20, [[0.5, 0.5]] * 100
    >>> made = arm_means(*log, weights="uniform")
    >>> made.estimate.round(2), round(made.contrast(0, 1).p_value(), 2)
    (array([0.61, 0.6 ]), 0.95)
    """
    kind = _checks.choice("method", method, METHODS)
    rate = _checks.choice("weights", weights, WEIGHTS)
    first = _checks.number("initial", initial, **PAID)
    falls = _checks.number("decay", decay, 0.0, 1.0, open_high=True)
    if kind == "aipw":
        kind = rate
    if propensities is None and kind in ("ipw", "hajek", *WEIGHTS):
        raise ValueError(f"propensities must be given for method {method!r}")
    log = checked_log(arms, rewards, propensities, n_arms, zeros=kind not in ("ipw", "hajek", "uniform"))
    if kind in WEIGHTS[1:] and not log.chance.size:
        raise ValueError(f"propensities must be those of all arms for weights {kind!r}, got one a round")
    if kind == "batched-ols":
        return _batched(log, batches)
    return _weighted(kind, log, first, falls)


def off_policy_value(
    target: ArrayLike | Mapping[Any, float],
    arms: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike,
    *,
    method: str = "ips",
    predicted: ArrayLike | None = None,
) -> Estimates:
    """Return the mean reward that another policy would have had in the rounds of a log.

    With w_t = p_t(A_t)/e_t(A_t), p_t the other policy's probabilities: the mean of w_t Y_t ("ips"); the same
    divided by the mean of w_t ("snips"); or the mean of sum_a p_t(a) q_t(a) + w_t (Y_t - q_t(A_t)) ("dr").

    Parameters
    ----------
    target : float64[K], float64[..., T, K], mapping, series or frame
        The other policy's probabilities, that sum to 1; where arms have labels in it, in any order.
    arms, rewards, propensities
        As in :func:`arm_means`. Only propensities of the arms pulled are used.
    method : {"ips", "snips", "dr"}
    predicted : as target, optional
        For "dr": predictions of rewards, right or wrong, that know none of their round or later. By default
        the mean of an arm's earlier rewards, and 0 before there are any.

    Returns
    -------
    Estimates
        Of one value, or one for each replicate. NaN where the policy has no arm in common with the log.
        Raises TypeError or ValueError for arguments of the wrong kind or out of range.

    References
    ----------
    .. [1] Dudik, Langford and Li (2011), Doubly robust policy evaluation and learning, ICML, Section 2: "ips"
       and "dr".
    .. [2] Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual learning,
       NeurIPS, Section 4: "snips"; its variance is linearised.

    Examples
    --------
    >>> log = [0, 1, 1, 0] * 50, [1, 0, 1, 1, 1, 1, 0, 0] * 25, [0.5, 0.5, 0.5, 0.5] * 50
    >>> made = off_policy_value([0.2, 0.8], *log, method="snips")
    >>> float(made.estimate.round(3)), [float(end.round(2)) for end in made.interval()]
    (0.55, [0.47, 0.63])
    """
    kind = _checks.choice("method", method, ("ips", "snips", "dr"))
    if propensities is None:
        raise TypeError("propensities must be given, got None")
    names = names_of(target)
    k = (0, *_checks.entries("target", target).shape)[-1] if names is None else len(names)
    numbered = names is None or set(names) == set(range(k))
    log = checked_log(arms, rewards, propensities, None, zeros=True, least=k if numbered else 0)
    p = of_rounds("target", target, log, low=0.0, high=1.0)
    if float(np.abs(p.sum(axis=-1) - 1.0).max()) > SUM:
        raise ValueError("target must sum to 1 over the arms")
    at, y = log.arms[..., None], log.rewards
    w = np.take_along_axis(p, at, -1)[..., 0] / log.logged
    if kind == "dr":
        _results.check_memory(y.size, 5 * log.n_arms, "the rounds")
        q = earlier_means(log) if predicted is None else of_rounds("predicted", predicted, log, **PAID)
        terms = (p * q).sum(axis=-1) + w * (y - np.take_along_axis(q, at, -1)[..., 0])
    else:
        terms = w * y
    used, total = (w > 0.0).sum(axis=1), w.sum(axis=1) if kind == "snips" else np.full(len(w), w.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(used > 0, terms.sum(axis=1) / total, np.nan)
        off = terms - (w if kind == "snips" else 1.0) * value[:, None]
        spread = np.sqrt((off**2).sum(axis=1)) / total
    spread = np.where((used > 1) & (spread > 0.0), spread, np.nan)
    return Estimates(value.reshape(log.lead)[()], spread.reshape(log.lead)[()])


def weighted_sums(
    rows: tuple[Ints, Floats, Floats, Floats], k: int, kind: str, initial: float, decay: float
) -> tuple[Floats, Floats]:
    """Return means of K arms float64[R, K] and how they vary together float64[R, K, K], see the kernel."""
    from equinoise.inference.kernels import HAJEK, KINDS, weighted_means

    (n_runs, rounds), number = rows[0].shape, KINDS.index(kind)
    _results.check_memory(k, n_runs * (7 * k + 10), "the number of arms")  # seven arrays [R, K, K] in all
    each = n_runs * (k if number <= HAJEK else k * k)  # sums of products in a round
    if rounds * each > _MOST_SUMS:
        most = f"at most {_MOST_SUMS // each:,} for {k:,} arms and {kind!r}"
        raise ValueError(f"the rounds must be {most}, got {rounds:,}")
    mean, cross, work = np.zeros((n_runs, k)), np.zeros((n_runs, k, k)), np.zeros((n_runs, 5, k))
    step = max(_AT_ONCE // each, 1)
    for again in (False, True):
        work[:, :4] = 0.0
        for first in range(0, rounds, step):
            part = again, first, min(first + step, rounds)
            weighted_means(rows, part, number, initial, decay, work, mean, cross)
        if not again:
            with np.errstate(invalid="ignore"):  # of an arm never pulled
                mean /= work[:, 4]
    return mean, cross


def _weighted(kind: str, log: Log, initial: float = 0.0, decay: float = 0.0) -> Estimates:
    n_runs, k = len(log.arms), log.n_arms
    mean, cross = weighted_sums(log[:4], k, kind, initial, decay)
    cells = (np.arange(n_runs)[:, None] * k + log.arms).ravel()
    pulls = np.bincount(cells, minlength=n_runs * k).reshape(n_runs, k)
    mean = np.where(pulls > 0, mean, np.nan)
    variance = np.diagonal(cross, axis1=1, axis2=2)
    tiny = 1e-24 * float(np.abs(log.rewards).max()) ** 2  # less is rounding, of rewards that were all alike
    variance = np.where((pulls > 1) & (variance > tiny), variance, np.nan)
    if kind == "ols":  # the unbiased one
        variance = variance * pulls / np.fmax(pulls - 1, 1)
    apart = variance[:, :, None] + variance[:, None, :] - 2.0 * (cross + np.swapaxes(cross, 1, 2))
    difference = mean[:, :, None] - mean[:, None, :]
    return _shaped(log, mean, np.sqrt(variance), difference, np.sqrt(np.maximum(apart, 0.0)))


def _batched(log: Log, batches: int | ArrayLike) -> Estimates:
    (n_runs, rounds), k = log.arms.shape, log.n_arms
    if isinstance(batches, int | np.integer):
        count = min(_checks.integer("batches", batches, 1), rounds)
        batch = np.arange(rounds, dtype=np.int64) * count // rounds
    else:
        batch = _checks.array("batches", batches, np.int64, (rounds,), low=0, high=rounds - 1)
        count = int(batch.max()) + 1
    _results.check_memory(k, n_runs * (k * (5 * count + 3) + 8 * count), "the number of arms")
    cell = ((np.arange(n_runs)[:, None] * count + batch) * k + log.arms).ravel()
    middle = log.rewards.mean(axis=1)
    y = (log.rewards - middle[:, None]).ravel()
    n, s, q = (np.bincount(cell, y**power, n_runs * count * k).reshape(-1, count, k) for power in (0, 1, 2))
    some = np.fmax(n, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (q - s * s / some).sum(axis=1) / np.fmax(n - 1.0, 0.0).sum(axis=1)
        tiny = 1e-12 * float(np.abs(log.rewards).max()) ** 2
        spread = np.where(spread > tiny, spread, np.nan)[:, None]
        mean, error = s / some, spread / n
        own = _added(mean, error, np.sqrt(n))
        pairs = _added(mean[..., None] - mean[..., None, :], error[..., None] + error[..., None, :])
    return _shaped(log, own[0] + middle[:, None], own[1], *pairs)


def _added(mean: Floats, variance: Floats, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """Return means over batches [R, B, ...] weighted by the inverse of their errors, and standard errors."""
    w = np.where(np.isposinf(variance), 0.0, variance**-0.5)
    scale = w if weight is None else weight
    total = w.sum(axis=1)
    return (scale * mean).sum(axis=1) / scale.sum(axis=1), np.sqrt((w > 0.0).sum(axis=1)) / total


def _shaped(log: Log, mean: Floats, stderr: Floats, difference: Floats, apart: Floats) -> Estimates:
    """Return estimates of arms [R, K] and of differences [R, K, K] in the shape of the log."""
    k, same = log.n_arms, np.eye(log.n_arms, dtype=bool)
    first, second = (np.where(same, np.nan, part).reshape(*log.lead, k, k) for part in (difference, apart))
    return Estimates(mean.reshape(*log.lead, k), stderr.reshape(*log.lead, k), (first, second), log.labels)
