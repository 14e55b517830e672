"""Confidence sequences and e-values: answers that hold whenever they are looked at.

A bettor against "the mean is at most m" multiplies its wealth by 1 + c (X/m - 1) with each reward X in
[0, 1], c in [0, 1] fixed beforehand. Where the hypothesis is true, wealth is a supermartingale, whatever
policy pulls the arm: an **e-value** at any time, that ever reaches 1/alpha with probability alpha at most
(Ville). The m against which it is lower are a **confidence sequence**: an interval, since wealth grows as m
falls. Against "at least m" one bets on 1 - X. Wealth is an average over bets c:

* "betting": 16 bets from 1e-4 to 0.95, evenly spaced in logarithms, with weights like c^0.3. Intervals are
  at most 1.9 times as wide as exact ones for a single look, from 20 to 100,000 rewards of 0 and 1 (wider for
  a few hundred rewards that hardly vary);
* "beta-binomial": c uniform on [0, 1], in 64 bets; of rewards of 0 and 1 this averages the likelihood over
  all larger means. A little narrower for a few pulls of good arms, 20% wider at 100,000 pulls of bad ones.

**Totals are enough.** Of n rewards let S be the sum, Q that of squares, A = Q/S, W = S^2/Q. The parabola
through ln(1 + c (x/m - 1)) at x = 0 that touches it at A lies below it on [0, 1], since its third derivative
is positive, and its sum over the rewards depends on n, S and Q alone. So wealth is at least
(1 - c)^(n - W) (1 + c (A/m - 1))^W, and just that for rewards of 0 and 1. This is what is used.

**Two arms.** Wealth against "the first mean is at most m + d" times wealth against "the second is at least
m", at the m that is worst for the bettor, is an e-value against "the first is larger by at most d". Its
logarithm is convex in m and d together.

**After private choices** (``epsilon=``) wealth is counted against the shifted means, on the conditions at
the head of :mod:`equinoise.inference.shift`.
"""

import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, ArrayLike, Flags, Floats
from equinoise.inference.shift import shifted
from equinoise.inference.tests import ALTERNATIVES, Numbers, together

_HALVINGS = 24
_ALONE, _COMPARED = 20, 32  # arrays float64[..., T, K] at once, without a control and with one


def _bets(c: Floats, weight: Floats) -> Floats:
    return np.stack([c, np.log(weight / weight.sum()), np.log1p(-c)])


_GRID, _LOGISTIC = np.geomspace(1e-4, 0.95, 16), 1.0 / (1.0 + np.exp(np.linspace(-9.2, 9.2, 64)))
_METHODS = {
    "betting": _bets(_GRID, _GRID**0.3),
    "beta-binomial": _bets(_LOGISTIC, _LOGISTIC * (1.0 - _LOGISTIC)),
}


@dataclass(frozen=True, eq=False)
class Totals:
    """All that sequences need to know of the rewards of K arms, at one or many times.

    Raises TypeError or ValueError where no rewards in [0, 1] have such totals.

    Attributes
    ----------
    pulls : int64[..., K]
    reward_sum : float64[..., K]
        NaN counts as 0 for an arm never pulled: so ``pulls * means`` will do.
    square_sum : float64[..., K], optional
        Sum of the squares. `reward_sum` by default: right for rewards of 0 and 1, and safe for all.
    pending : int64[..., K], optional
        More pulls, whose rewards are not known yet: 0 for a lower end, and 1 for an upper one.

    Examples
    --------
    >>> confidence_sequence(Totals([100, 50], [31.0, 30.0]))[0].round(2)
    array([0.17, 0.35])
    """

    pulls: Any
    reward_sum: Any
    square_sum: Any = None
    pending: Any = 0

    def __post_init__(self) -> None:
        n = _checks.array("pulls", self.pulls, np.int64, None, low=0, high=2**53)
        more = _checks.array("pending", self.pending, np.int64, None, low=0, high=2**53)
        s = self.reward_sum
        _checks.present("reward_sum", s)
        if isinstance(s, np.ndarray) and s.shape == n.shape and s.dtype.kind == "f":
            s = np.where((n == 0) & np.isnan(s), 0.0, s)
        s = _checks.array("reward_sum", s, np.float64, None, low=0.0)
        q = (
            s
            if self.square_sum is None
            else _checks.array("square_sum", self.square_sum, np.float64, None, high=2.0**54)
        )
        n, s, q, more = together(pulls=n, reward_sum=s, square_sum=q, pending=more)
        if not n.ndim or not n.shape[-1]:
            raise ValueError(f"pulls must have an axis of arms, at least one, got shape {n.shape}")
        near = 1e-9 * n
        if (s > n + near).any():
            raise ValueError("reward_sum must be at most pulls, for rewards in [0, 1]")
        if ((q > s + near) | ((q + near) * n < s * s)).any():
            raise ValueError("square_sum must be from reward_sum^2/pulls to reward_sum, for such rewards")
        for name, value in (("pulls", n), ("reward_sum", s), ("square_sum", q), ("pending", more)):
            object.__setattr__(self, name, np.array(value))  # its own: what was checked stays as it was

    def sides(self, control: int | None) -> list[tuple[Floats, Floats | None]]:
        """Return what is bet on for each end, n, W and A float64[3, M, K]: arms, and a control from above."""
        n, k = self.pulls.astype(np.float64), self.pulls.shape[-1]
        made, won, squares = [], self.reward_sum, self.square_sum
        for s, q in ((won, squares), (n - won, n - 2.0 * won + squares)):
            some = s > 1e-12 * n  # less is rounding
            total = np.where(some, s, 1.0)
            square = np.where(some, np.clip(q, total * total / np.fmax(n, 1.0), total), np.inf)
            totals = [n + self.pending, total * total / square, np.where(some, square / total, 1.0)]
            made.append(np.stack(totals).reshape(3, -1, k))
        if control is None:
            return [(low, None) for low in made]
        if _checks.integer("control", control, 0, k - 1) + k == 1:
            raise ValueError("control must be one of several arms, got one arm")
        return [(one, np.repeat(other[:, :, [control]], k, axis=2)) for one, other in (made, made[::-1])]


def confidence_sequence(
    rewards: ArrayLike | Totals,
    arms: ArrayLike | None = None,
    *,
    alpha: float = 0.05,
    method: str = "betting",
    epsilon: float | None = None,
    control: int | None = None,
    simultaneous: bool = True,
) -> tuple[Floats, Floats]:
    """Return intervals for arms' means, or differences of means, that hold at all times at once.

    Valid for rewards of an arm that have one mean, given all that went before: **whatever policy pulls it,
    however often one looks, and whenever and for whatever reason one stops**. So intersections over time
    hold too. An arm may be picked by any look at the data if the intervals are simultaneous.

    With `epsilon` they are wider, and hold given all choices of a private learner: one arm that *the choices*
    picked needs no Bonferroni then. That choices alone picked it, and that rewards are independent, are among
    the conditions at the head of :mod:`equinoise.inference.shift`.

    Parameters
    ----------
    rewards : float64[..., T], bool[..., T] or Totals
        In [0, 1], in the order of rounds; leading axes are replicates.
    arms : int64[..., T], optional
        The arm of each round, from 0. None is one arm.
    alpha : float
        The chance to be ever wrong, in (0, 1): half for each end.
    method : {"betting", "beta-binomial"}
        The bets, as at the head of :mod:`equinoise.inference.sequences`.
    epsilon : float, optional
        Privacy of the choices in each reward, at least 0.
    control : int, optional
        An arm: then of each other arm's mean less that of this one; NaN for itself.
    simultaneous : bool
        Whether all means (or differences) hold together, by Bonferroni over the arms that there are, or each
        alone. At all looks together, where the arms are the same at each.

    Returns
    -------
    tuple of float64 arrays
        low and high: [..., T] of one arm, [..., T, K] with `arms`, or the shape of the totals. NaN where
        an arm was not yet pulled.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86,
       Section 4 and Theorem 3: wealth, from both sides.
    .. [2] Howard, Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
       sequences, Annals of Statistics 49: the one-sided beta-binomial mixture.

    Examples
    --------
    >>> low, high = confidence_sequence([1, 0, 0, 1, 1, 0, 1, 1] * 25, arms=[0, 1, 1, 0] * 50)
    >>> low[-1].round(2), high[-1].round(2)
    (array([0.94, 0.12]), array([1.  , 0.42]))
    >>> [end.round(2) for end in confidence_sequence(Totals([100, 50], [31, 30.0]), control=0)]
    [array([  nan, -0.02]), array([ nan, 0.57])]
    """
    of, bets, shift = _checked(rewards, arms, method, epsilon, control)
    wrong = _checks.number("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    sides, known = of.sides(control), of.pulls > 0
    if control is not None:
        known &= known[..., [control]] & (np.arange(known.shape[-1]) != control)
    many = known.shape[-1] - (control is not None) if _checks.flag("simultaneous", simultaneous) else 1
    ends = [_lowest(math.log(2.0 * many) - math.log(wrong), one, other, bets, shift) for one, other in sides]
    low, high = (np.where(known, end.reshape(known.shape), np.nan) for end in ends)
    return _shaped(low, rewards, arms), _shaped((control is None) - high, rewards, arms)


def e_value(
    rewards: ArrayLike | Totals,
    null: Numbers | None = None,
    arms: ArrayLike | None = None,
    *,
    alternative: str = "greater",
    method: str = "betting",
    epsilon: float | None = None,
    control: int | None = None,
) -> Floats:
    """Return evidence against a mean of `null`, or against arms that are no better than a control.

    An e-value has expectation at most 1 where the hypothesis is true, at every time at which one may stop.
    Reject when it reaches 1/alpha, or see :func:`e_bh` for many arms.

    Parameters
    ----------
    rewards, arms, method, epsilon
        As in :func:`confidence_sequence`, whose conditions these are too.
    null : float or float64[K], optional
        In [0, 1]: at most, at least or exactly an arm's mean, for "greater", "less" and "two-sided".
    alternative : {"greater", "less", "two-sided"}
        Where rewards would speak against the hypothesis. Two-sided is the mean of the two others.
    control : int, optional
        In place of `null`: an arm that the others are compared with; NaN for itself.

    Returns
    -------
    float64[..., T], float64[..., T, K] with `arms`, or of the shape of the totals
        1 for an arm that was not yet pulled, with a control at most 1.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, or not one of null and control is given.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86,
       Section 4.

    Examples
    --------
    >>> e_value([1, 1, 1, 0, 1, 1, 1, 1, 1, 1] * 2, 0.5)[[0, 9, 19]].round(1)
    array([  1.3,   8.3, 142.2])
    """
    side = ALTERNATIVES.index(_checks.choice("alternative", alternative, ALTERNATIVES))
    of, bets, shift = _checked(rewards, arms, method, epsilon, control)
    if (null is None) is (control is None):
        raise ValueError("null must be given, or control in its place, and not both")
    mean = _checks.array("null", 0.0 if null is None else null, np.float64, None, low=0.0, high=1.0)
    if mean.shape not in {(), of.pulls.shape[-1:]}:
        raise ValueError(f"null must be one number, or one per arm, got shape {mean.shape}")
    logs = []
    for (one, other), m in zip(of.sides(control), (mean, 1.0 - mean), strict=True):
        log = _wealth(np.full(one.shape[1:], m), one, bets, shift)[0]
        logs.append(log if other is None else _least_product(one, other, bets, shift))
    with np.errstate(over="ignore", under="ignore"):
        made = np.exp((np.logaddexp(*logs) - math.log(2.0), logs[1], logs[0])[side]).reshape(of.pulls.shape)
    if control is not None:
        made[..., control] = np.nan
    return _shaped(made, rewards, arms)


@np.errstate(over="ignore")  # what is beyond all floats is large enough
def e_bh(e_values: ArrayLike, alpha: float = 0.05) -> Flags:
    """Return which of K hypotheses to reject so that the false discovery rate is at most alpha.

    The k with the largest e-values, for the largest k of which the smallest is at least K/(alpha k): valid
    however the e-values depend on each other.

    Parameters
    ----------
    e_values : float64[..., K]
        At least 0, or infinite, all of one time: largest values so far are no e-values. NaN is no hypothesis.
    alpha : float
        In (0, 1).

    Returns
    -------
    bool[..., K]

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Wang and Ramdas (2022), False discovery rate control with e-values, JRSS B 84, Section 4, e-BH.

    Examples
    --------
    >>> e_bh([100.0, 45.0, 25.0, 2.0])
    array([ True,  True, False, False])
    """
    wrong = _checks.number("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    e = _checks.entries("e_values", e_values)
    if e.dtype.kind not in "iuf" or not e.ndim:
        raise TypeError(f"e_values must be an array of numbers, got {_checks.shown(e_values)}")
    if (e < 0.0).any():
        raise ValueError(f"e_values must be at least 0, got {_checks.shown(e_values)}")
    sorted_ = -np.sort(-e, axis=-1)  # NaN last
    enough = sorted_ * np.arange(1, e.shape[-1] + 1) * wrong >= (~np.isnan(e)).sum(axis=-1, keepdims=True)
    rejected: Flags = e >= np.where(enough, sorted_, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    return rejected


def _checked(
    rewards: ArrayLike | Totals, arms: ArrayLike | None, method: str, epsilon: float | None, control: object
) -> tuple[Totals, Floats, Floats]:
    """Return totals after every round, bets, and the shift."""
    bets = _METHODS[_checks.choice("method", method, _METHODS)]
    shift = np.array(_checks.number("epsilon", 0.0 if epsilon is None else epsilon, 0.0, finite=False))
    if isinstance(rewards, Totals):
        if arms is not None:
            raise ValueError("arms must be None where rewards are totals, which know their arms")
        return rewards, bets, shift
    x = _checks.array("rewards", rewards, np.float64, None, low=0.0, high=1.0, truth=True)
    if not x.ndim:
        raise ValueError("rewards must have an axis of rounds, got a scalar")
    given: ArrayLike = np.zeros(x.shape, np.int64) if arms is None else arms
    pulled = _checks.array("arms", given, np.int64, x.shape, low=0)
    k = int(pulled.max(initial=0)) + 1
    each = _ALONE if control is None else _COMPARED
    _results.check_memory(k, each * x.size, "the largest number in arms")
    took = pulled[..., None] == np.arange(k)
    sums = (np.cumsum(np.where(took, x[..., None] ** power, 0.0), axis=-2) for power in (1, 2))
    return Totals(np.cumsum(took, axis=-2), *sums), bets, shift


def _shaped(made: Floats, rewards: ArrayLike | Totals, arms: ArrayLike | None) -> Floats:
    return made if arms is not None or isinstance(rewards, Totals) else made[..., 0]


def _wealth(m: Floats, of: Floats, bets: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return the logarithm of wealth against means of at most m, and its slope in m, float64[M, K]."""
    from equinoise.inference.kernels import log_wealths

    moved, made = shifted(m, shift), np.empty((2, *m.shape))
    log_wealths(moved, of, bets, made)
    return made[0], made[1] * (1.0 - moved) / np.fmax(m * (1.0 - m), 1e-300)


def _ends(level: Floats, of: Floats, bets: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return the means at which wealth falls to e^level, and how fast they fall with it, float64[M, K]."""
    from equinoise.inference.kernels import lowest_means

    made = np.empty((2, *level.shape))
    lowest_means(level, of, bets, made)
    m, moved = made[0], shifted(made[0], -shift)
    inside = (m > 0.0) & (m < 1.0)
    grown = moved * (1.0 - moved) / np.where(inside, m * (1.0 - m), 1.0)
    return moved, made[1] * np.where(inside, grown, 1.0)


def _lowest(level: float, one: Floats, other: Floats | None, bets: Floats, shift: Floats) -> Floats:
    """Return the lowest means at e^level, or differences x - y where wealth against both has that product."""
    whole = np.full(one.shape[1:], level)
    if other is None:
        return _ends(whole, one, bets, shift)[0]
    low, high = (_wealth(np.ones(whole.shape), of, bets, shift)[0] for of in (one, other))
    high = whole - high
    for _ in range(_HALVINGS):  # x - y is convex in the part of x, and least where both fall equally fast
        part = 0.5 * (low + high)
        above = _ends(part, one, bets, shift)[1] > _ends(whole - part, other, bets, shift)[1]
        low, high = np.where(above, part, low), np.where(above, high, part)
    return _ends(high, one, bets, shift)[0] + _ends(whole - low, other, bets, shift)[0] - 1.0


def _least_product(one: Floats, other: Floats, bets: Floats, shift: Floats) -> Floats:
    """Return the logarithm of the least product of wealth against m, and from above; it is convex in m."""
    low, high = np.zeros(one.shape[1:]), np.ones(one.shape[1:])
    for _ in range(_HALVINGS):
        m = 0.5 * (low + high)
        falls = _wealth(m, one, bets, shift)[1] < _wealth(1.0 - m, other, bets, shift)[1]
        low, high = np.where(falls, m, low), np.where(falls, high, m)
    return _wealth(high, one, bets, shift)[0] + _wealth(1.0 - low, other, bets, shift)[0]
