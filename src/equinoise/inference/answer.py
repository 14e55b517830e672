"""An experiment's answer: which arm is better, by how much, and what that rests on."""

import html
import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Axes, DataFrame, Floats, Hashable, Ints, Iterable
from equinoise.inference.sequences import Totals, confidence_sequence

_FACTORS = 2.0 ** (np.arange(1, 41) / 4.0)  # by which an experiment is thought to be continued
_LOOKED_AT = 16  # arms nearest to a difference, of which one will show it first


@dataclass(frozen=True, eq=False)
class Report:
    """What the rewards of K arms say, at the last of T times and before.

    Attributes
    ----------
    verdict : str
        The answer in a sentence or two.
    frame : pandas.DataFrame
        A row an arm: arm, pulls, mean, low, high, and difference, difference_low, difference_high from the
        control; NaN for the control itself, and where a reward is missing.
    assumed : str
        What the intervals rest on.
    rounds : int64[T]
    mean, low, high : float64[T, K]
        Means and the ends of their intervals over time, of which the frame has the last.

    Examples
    --------
    >>> print(report(Totals([500, 500], [150, 210]), labels=["A", "B"]).verdict)
    B is better than A, by 0.12 (0.00371 to 0.234).
    """

    verdict: str
    frame: DataFrame
    assumed: str
    rounds: Ints
    mean: Floats
    low: Floats
    high: Floats

    def __repr__(self) -> str:
        frame = self.frame.assign(arm=self.frame["arm"].map(_checks.line))
        table = frame.to_string(index=False, float_format=self._digits, na_rep="")
        return f"{self.verdict}\n\n{table}\n\n{self.assumed}"

    def _repr_html_(self) -> str:
        table = self.frame.to_html(index=False, float_format=self._digits, na_rep="")
        return f"<p>{html.escape(self.verdict)}</p>{table}<p><small>{html.escape(self.assumed)}</small></p>"

    def _digits(self, value: float) -> str:
        """Return a number with four digits of what the means' intervals span."""
        span = np.nanmax(self.high, initial=0.0) - np.nanmin(self.low, initial=np.inf)
        more = np.log10(max(abs(value) / span, 1.0)) if np.isfinite(span) and span > 0.0 else 0.0
        return f"{value:.{4 + math.ceil(more)}g}"

    def to_frame(self) -> DataFrame:
        """Return the frame."""
        return self.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the means' intervals over the rounds; return the Axes."""
        from equinoise.report import figures

        series = [
            figures.Curve(figures.printable(str(label)), self.rounds, *parts)
            for label, *parts in zip(self.frame["arm"], self.mean.T, self.low.T, self.high.T, strict=True)
        ]
        return figures.curves(ax, series, horizontal="rounds", vertical="mean reward, with its interval")


def report(
    totals: Totals,
    *,
    labels: Iterable[Hashable] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    control: int = 0,
    alpha: float = 0.05,
    method: str = "betting",
) -> Report:
    """Answer which arms are better or worse than a control, by confidence sequences.

    The intervals of several times are intersected. What would be shown by more rounds is looked for in up to
    1,000 times as many, in which all totals grow alike: a guess, and no promise. Several reports hold at once
    where all have the same arms and control; an arm that comes later may be in all, first with no pulls.

    Parameters
    ----------
    totals : Totals
        Of K arms, or [T, K] at T times, of rewards that are scaled to [0, 1].
    labels : iterable, optional
        What the arms are called; their numbers by default.
    bounds : (float, float)
        The rewards that 0 and 1 stand for.
    control : int
        The arm that the others are compared with.
    alpha, method
        As in :func:`confidence_sequence`; the means hold together, and so do the differences.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B 86,
       Theorem 3; the comparison with a control is at the head of :mod:`equinoise.inference.sequences`.

    Examples
    --------
    >>> print(report(Totals([60, 60], [30.0, 36.0]), labels="AB").verdict)
    No difference from A is shown yet. If B keeps its 0.1, about 1,400 more rounds alike show it.
    """
    import pandas as pd

    if not _checks.instance("totals", totals, Totals).pulls.size:
        raise ValueError("totals must have an arm and a time, got none")
    ends_of = _checks.array("bounds", bounds, np.float64, (2,), low=-1e100, high=1e100)
    if not ends_of[0] < ends_of[1]:
        raise ValueError(f"bounds must be (lo, hi), got {_checks.shown(bounds)}")
    k = totals.pulls.shape[-1]
    if totals.pulls.ndim > 2:
        raise ValueError(f"totals must be of K arms, or [T, K] at T times, got shape {totals.pulls.shape}")
    arm = _checks.integer("control", control, 0, k - 1)
    given = list(range(k) if labels is None else _checks.instance("labels", labels, Iterable))
    if len(given) != k or len({str(name) for name in given}) < k:
        raise ValueError(f"labels must be {k} different ones, one for each arm, got {_checks.shown(given)}")
    names = [*map(_checks.line, given)]
    base, span = ends_of[0], ends_of[1] - ends_of[0]
    over = Totals(*(part.reshape(-1, k) for part in vars(totals).values()))
    more, won = (np.diff(part, axis=0) for part in (over.pulls, over.reward_sum))
    near = 1e-9 * over.pulls[1:]
    if ((more < 0) | (won < -near) | (won > more + near)).any():
        raise ValueError("totals must be of one experiment over time, got others")
    last = Totals(*(part[-1] for part in vars(over).values()))
    low, high = (base + span * end for end in _together(over, None, alpha, method))
    means = np.where(over.pulls > 0, base + span * over.reward_sum / np.maximum(over.pulls, 1), np.nan)
    mean = means[-1]
    ends = _together(over, arm, alpha, method) if k > 1 else (np.full((1, 1), np.nan),) * 2
    away = np.where(np.arange(k) == arm, np.nan, mean - mean[arm]), span * ends[0][-1], span * ends[1][-1]
    columns = {"arm": given, "pulls": last.pulls, "mean": mean, "low": low[-1], "high": high[-1]}
    columns |= dict(zip(("difference", "difference_low", "difference_high"), away, strict=True))
    assumed = (
        f"With a chance of at most {float(alpha):g} any mean is ever outside its interval, and with at most "
        "as much any difference outside its own, whatever chose the arms, and whenever one looks or stops. "
        "That takes these arms and one control at every look, "
        f"rewards from {base:.15g} to {base + span:.15g}, each with its arm's mean whatever came before, "
        "and none that is missing because of what it is."
    )
    crossed = (low[-1] > high[-1]) | (away[1] > away[2])
    if crossed.any():
        torn = f" ({', '.join(said for said, cross in zip(names, crossed, strict=True) if cross)})"
        said = f"No answer: the rewards do not have one mean an arm{torn}. Do they drift, or are rows sorted?"
    elif k == 1:
        known = f"lies between {low[-1, 0]:.3g} and {high[-1, 0]:.3g}" if last.pulls[0] else "is not known"
        said = f"The mean of {names[0]} {known}."
    else:
        said = _shown(names, arm, *away) or _not_shown(names, arm, away, last, alpha, method)
    if waiting := int(over.pending[-1].sum()):
        said += f" {waiting:,} rewards are still to come, and count as the worst that they may be."
    frame = _results.made_by(pd.DataFrame(columns), control=control, alpha=alpha, method=method)
    return Report(said, frame, assumed, over.pulls.sum(axis=1), means, low, high)


def _together(over: Totals, control: int | None, alpha: float, method: str) -> tuple[Floats, Floats]:
    """Return intervals at all times intersected, NaN before there is any."""
    low, high = confidence_sequence(over, alpha=alpha, method=method, control=control)
    return np.fmax.accumulate(low), np.fmin.accumulate(high)


def _shown(names: list[str], control: int, away: Floats, low: Floats, high: Floats) -> str:
    """Say which arms are better or worse than the control; nothing where none is."""
    said = []
    for name, size, *ends in zip(names, away.tolist(), low.tolist(), high.tolist(), strict=True):
        if ends[0] > 0.0 or ends[1] < 0.0:
            how, (least, most) = "better" if ends[0] > 0.0 else "worse", sorted(map(abs, ends))
            by = f"{abs(size):.3g} ({least:.3g} to {most:.3g})"
            said.append(f"{name} is {how} than {names[control]}, by {by}.")
    return " ".join(said)


def _not_shown(
    names: list[str], control: int, away: tuple[Floats, ...], last: Totals, alpha: float, method: str
) -> str:
    """Say that no difference is shown, and how many rounds more of the same would show one."""
    yet = f"No difference from {names[control]} is shown yet."
    if np.isnan(away[0]).all():
        return yet
    nearest = np.argsort(-np.nan_to_num(np.abs(away[0]) / (away[2] - away[1])), kind="stable")
    some = np.sort(np.append(nearest[nearest != control][:_LOOKED_AT], control))
    alpha *= (len(some) - 1) / (len(names) - 1)
    rounds_played, last = last.pulls.sum(), Totals(*(part[some] for part in vars(last).values()))
    names, sizes, control = [names[i] for i in some], away[0][some], int(np.searchsorted(some, control))
    factors = _FACTORS
    for _ in range(2):  # a coarse look, then a fine one between it and the factor before
        pulls = np.rint(last.pulls * factors[:, None]).astype(np.int64)
        grown = pulls / np.maximum(last.pulls, 1)
        more = Totals(pulls, last.reward_sum * grown, last.square_sum * grown, last.pending)
        low, high = confidence_sequence(more, alpha=alpha, method=method, control=control)
        needed = np.where((low > 0.0) | (high < 0.0), factors[:, None], np.inf).min(axis=0)
        arm = int(needed.argmin())
        if needed[arm] == np.inf:
            return f"{yet} As the arms look now, {_FACTORS[-1]:,.0f} times as many rounds would not show any."
        factors = np.linspace(max(needed[arm] / _FACTORS[0], 1.0), needed[arm], 33)[1:]
    rounds = float(f"{(needed[arm] - 1.0) * rounds_played:.1e}")
    return f"{yet} If {names[arm]} keeps its {sizes[arm]:.3g}, about {rounds:,.0f} more rounds alike show it."
