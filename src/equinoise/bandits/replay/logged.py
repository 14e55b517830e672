"""Replay of a policy on the log of a randomised experiment, by rejection sampling."""

import contextlib
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equinoise import _checks, _results, inference
from equinoise._typing import Any, Callable, DataFrame, Floats, Hashable, Ints, Mapping, Words
from equinoise.bandits.policies.registry import MAX_HORIZON, check_bounds, choose
from equinoise.bandits.result import History, arm_means, numbers_of

_UNLIKELY = 1e-6  # of arms drawn with equal probabilities: below, they were not
_TIMES = 20  # of a report at which intervals are computed
_FEW = 0.05  # of the rows of a log: where fewer are used there is a warning
_SUM = 1e-6  # how far probabilities may be from a sum of one
_THIN, _ORDER = 1, 2  # entities of the streams that thin and shuffle


def _column(frame: DataFrame, argument: str, name: object) -> Any:
    """Return a column, refused where it is missing or has missing values."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame, got {_checks.shown(frame)}")
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be the name of a column, got {_checks.shown(name)}")
    if name not in frame.columns:
        raise ValueError(f"{argument} must be one of the columns {list(frame.columns)}, got {name!r}")
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise ValueError(f"{argument} must be the name of one column, got {name!r}, which several have")
    if len(column) == 0:
        raise ValueError("frame must have at least one row, got none")
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"column {name!r} must have no missing values, got one in row {missing.argmax()}")
    return column


def number_column(frame: DataFrame, argument: str, name: object, low: float, high: float) -> Floats:
    """Return a column of numbers or truth values within [low, high]."""
    given = numbers_of(_column(frame, argument, name))
    return _checks.array(f"column {name!r}", given, np.float64, (None,), low=low, high=high)


def arm_column(frame: DataFrame, arm: object) -> tuple[tuple[Hashable, ...], Ints]:
    """Return the arms' labels, sorted where they can be, and each row's index into them."""
    import pandas as pd

    column = _column(frame, "arm", arm)
    try:
        codes, labels = pd.factorize(column)
    except TypeError:
        raise TypeError(f"column {arm!r} must hold labels that are hashable, got others") from None
    seen = column if column.dtype == object else ()
    if len({isinstance(x, bool | np.bool_) for x in seen if x in (0, 1)}) > 1:
        raise ValueError(f"column {arm!r} must not hold truth values beside 0 or 1, which are equal to them")
    with contextlib.suppress(TypeError):  # labels of several kinds: in order of their first rows
        codes, labels = pd.factorize(column, sort=True)
    return tuple(labels.tolist()), codes.astype(np.int64)


def kept_share(frame: DataFrame, propensity: object, labels: tuple[Hashable, ...], arms: Ints) -> Floats:
    """Return with what probability each row is kept, float64[M], so that every arm becomes equally likely."""
    if propensity is None:
        counts, expected = np.bincount(arms, minlength=len(labels)), len(arms) / len(labels)
        if len(labels) > 1:
            from scipy import special

            square = ((counts - expected) ** 2).sum() / expected
            if (p_value := special.chdtrc(len(labels) - 1, square)) < _UNLIKELY:
                got = f"{dict(zip(labels, counts.tolist(), strict=True))} rows of each arm"
                what = "given for a log whose arms were not drawn with equal probabilities"
                why = f"got {got} (as unequal by chance: p = {p_value:.1g})"
                raise ValueError(f"propensity must be {what}, {why}")
        return np.ones(len(arms))
    if isinstance(propensity, Mapping):
        if set(propensity) != set(labels):
            got = _checks.shown(list(propensity))
            raise ValueError(f"propensity must have the arms {list(labels)} of the log, got {got}")
        bounds: dict[str, Any] = {"low": 0.0, "high": 1.0, "open_low": True}
        given = np.array([_checks.number(f"propensity[{k!r}]", propensity[k], **bounds) for k in labels])
        if abs(given.sum() - 1.0) > _SUM:
            raise ValueError(f"propensity must sum to 1 over the arms, got {given.sum():g}")
        of_row = given[arms]
    else:
        of_row = number_column(frame, "propensity", propensity, 0.0, 1.0)
        if not of_row.min() > 0.0:
            raise ValueError(f"column {propensity!r} must be positive, got 0 in row {of_row.argmin()}")
    return np.asarray(of_row.min() / of_row)


@dataclass(frozen=True, eq=False, repr=False)
class Replay(History):
    """What a policy would have done in a logged experiment: N rounds out of M rows, K arms.

    A :class:`History` whose arms are indices of `labels`, and whose rewards are as logged.

    Attributes
    ----------
    rows : int64[N]
        Positions in the frame of the rows that were used.
    labels : tuple
        What the log calls the arms, K of them.
    logged, logged_means : int64[K], float64[K]
        Rows of each arm in the log, and their mean rewards: what no policy has biased.

    Examples
    --------
    >>> import pandas as pd
    >>> shown = replay("uniform", pd.DataFrame({"arm": list("abba"), "reward": [1, 0, 1, 0]}))
    >>> shown.to_frame().row.tolist(), shown.n_used, shown.logged.tolist()
    ([0, 1, 3], 3, [2, 2])
    """

    rows: Ints
    labels: tuple[Hashable, ...]
    logged: Ints
    logged_means: Floats

    @property
    def n_rows(self) -> int:
        """Rows of the log, M."""
        return int(self.logged.sum())

    @property
    def n_used(self) -> int:
        """Rows that were used, N: about one in K of those that the policy came to."""
        return len(self.rows)

    def to_frame(self) -> DataFrame:
        """Return one row per round: round, row (of the log), arm (its label), reward; propensity if known."""
        import pandas as pd

        label = pd.Series(self.labels, dtype=object)[self.arms].infer_objects()
        frame = super().to_frame().assign(arm=label.to_numpy())
        frame.insert(1, "row", self.rows)
        return frame

    def summary(self) -> DataFrame:
        """Return one row per arm: arm (its label), pulls, mean, logged, logged_mean."""
        import pandas as pd

        columns = {"arm": list(self.labels), "pulls": self.pulls, "mean": self.means}
        frame = pd.DataFrame({**columns, "logged": self.logged, "logged_mean": self.logged_means})
        return _results.made_by(frame, policy=self.policy, epsilon=self.epsilon, seed=self.seed)


def replay(
    policy: str,
    frame: DataFrame,
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str | Mapping[Hashable, float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    epsilon: float | None = None,
    horizon: int | None = None,
    seed: int | None = 0,
    replicate: int = 0,
    shuffle: bool = False,
    ties: str | None = None,
    **options: Any,
) -> Replay:
    """Replay a policy on a log in which arms were randomised.

    Walk the log: where the policy's next arm is the logged one, the row's reward is its reward; any other
    row is skipped, and the policy never knows of it. If the arms were drawn independently of everything, the
    used rows are distributed as the policy's own experiment would have been [1]_.

    Parameters
    ----------
    policy : str
        One of :data:`equinoise.bandits.POLICIES`.
    frame : pandas.DataFrame
        One row a unit, in the order of the experiment.
    arm, reward : str
        Columns: the arm that was drawn (any labels), and a number or truth value.
    propensity : str or mapping, optional
        With what probability the row's arm was drawn: a column, or a mapping from every arm to a number.
        Rows are then thinned, a row of propensity p kept with probability c/p for the least propensity c,
        after which every arm is as likely as any other. Of a column c is the least one seen. By default arms
        are taken as equally likely, and a log that can hardly be such is refused.
    bounds : (float, float)
        Smallest and largest reward; the policy sees them as 0 and 1. Rewards outside are refused.
    epsilon, ties, **options
        As in :func:`equinoise.bandits.simulate`.
    horizon : int, optional
        Rounds to stop after, and to make policies for; by default the rows of the log, the most that can be.
    seed, replicate : int
        Of thinning, shuffling, ties and noise; a seed of None takes randomness from the operating system.
    shuffle : bool
        Walk the rows in a random order, as if they had come in that order.

    Returns
    -------
    Replay
        If the log has no row left for the policy's next arm, it ends there: about one in K of the rows that
        were not thinned away is used, and a warning says where that is less than one in 20 of all. Raises
        TypeError or ValueError for columns and arguments of the wrong kind or out of range.

    References
    ----------
    .. [1] Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article
       recommendation algorithms.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"arm": list("abbaabab"), "reward": [1, 0, 0, 1, 0, 1, 1, 0]})
    >>> shown = replay("ucb", log)
    >>> shown, shown.n_rows, shown.rows.tolist()
    (Replay(ucb, 5 rounds, 2 arms), 8, [0, 1, 3, 4, 6])
    >>> shown.summary()
      arm  pulls  mean  logged  logged_mean
    0   a      4  0.75       4         0.75
    1   b      1  0.00       4         0.25
    """
    chosen = choose(policy, epsilon, ties, options)

    def play(n_arms: int, order: Ints, told: Any, rounds: int, key: Words, first: int) -> tuple[Ints, Any]:
        from equinoise.bandits.rewards import Stepper

        player = Stepper(chosen, n_arms, rounds, key, first)
        places = [np.flatnonzero(told[0] == k) for k in range(n_arms)]
        used: list[int] = []
        at = 0  # for a choice the next row of its arm, until there is none
        while len(used) < rounds:
            k = player.choose()
            i = int(np.searchsorted(places[k], at))
            if i == len(places[k]):
                break
            at = int(places[k][i]) + 1
            used.append(at - 1)
            player.update(k, float(told[1][at - 1]))
        return order[used], player.propensities

    columns, how = (arm, reward, propensity, bounds), (horizon, seed, replicate, shuffle)
    return walked(play, (chosen.spec.name, chosen.given_epsilon), frame, columns, how)


def walked(
    play: Callable[..., Any], named: tuple[str, float | None], frame: DataFrame, columns: Any, how: Any
) -> Replay:
    """Return the replay of a policy, (name, epsilon), on the columns of a log; see :func:`replay`.

    play(n_arms, order, told, rounds, key, replicate) walks rows int64[N], told their arms int64[N] and their
    rewards float64[N] from 0 to 1, and returns the rows that it used, and propensities or None.
    """
    (arm, reward, propensity, bounds), (horizon, seed, replicate, shuffle) = columns, how
    labels, arms = arm_column(frame, arm)
    low, high = check_bounds(bounds)
    rewards = number_column(frame, "reward", reward, low, high)
    keep = kept_share(frame, propensity, labels, arms)
    rounds = len(arms) if horizon is None else _checks.integer("horizon", horizon, 1, MAX_HORIZON)
    first = _checks.integer("replicate", replicate, 0, MAX_HORIZON)
    shuffled = _checks.flag("shuffle", shuffle)
    from equinoise._random import stream_key

    key = stream_key(seed)
    walk = np.argsort(_uniforms(key, _ORDER, first, len(arms))) if shuffled else np.arange(len(arms))
    walk = walk[_uniforms(key, _THIN, first, len(arms))[walk] < keep[walk]]
    told = arms[walk], np.minimum((rewards[walk] - low) / (high - low), 1.0)
    rows, shares = play(len(labels), walk, told, rounds, key, first)
    if len(rows) < min(rounds, _FEW * len(arms)):
        expected = f"about {keep.sum() / len(labels):,.0f} were expected, one in {len(labels)} of those kept"
        warnings.warn(f"replay used {len(rows):,} of {len(arms):,} rows: {expected}", stacklevel=3)
    used, logged = (arm_means(arms[i], rewards[i], len(labels)) for i in (rows, slice(None)))
    made = *used, *named, _checks.seed(seed), shares
    return Replay(arms[rows], rewards[rows], *made, rows, labels, *logged)


def _uniforms(key: Words, entity: int, replicate: int, n: int) -> Floats:
    """Return n uniforms in (0, 1) of the stream (key; 0, entity, replicate, SAMPLE)."""
    from equinoise._random import SAMPLE, fill_words, start_streams

    states, words = np.empty((4, 1), dtype=np.uint64), np.empty((n, 1), dtype=np.uint64)
    start_streams(key, entity, replicate, SAMPLE, states)
    fill_words(states, n, words)
    return ((words[:, 0] >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def report(
    frame: DataFrame,
    *,
    arm: str = "arm",
    reward: str = "reward",
    bounds: tuple[float, float] = (0.0, 1.0),
    control: Hashable = None,
    alpha: float = 0.05,
) -> "inference.Report":
    """Answer from a log which arms are better or worse than a control, whatever policy gathered it.

    Parameters
    ----------
    frame, arm, reward, bounds
        As in :func:`replay`, rows in the order of the experiment.
    control : label, optional
        An arm of the log, by default the first.
    alpha : float
        As in :func:`equinoise.inference.report`, which says more.

    Returns
    -------
    Report
        With intervals over time. Raises TypeError or ValueError for wrong columns and arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"arm": list("AB") * 500, "reward": [0, 1, 1, 1, 0, 0, 0, 1, 0, 1] * 100})
    >>> print(report(log).verdict)
    B is better than A, by 0.6 (0.5 to 0.693).
    """
    labels, arms = arm_column(frame, arm)
    if len({*map(str, labels)}) < len(labels):
        raise ValueError(f"column {arm!r} must hold arms of different names, got {_checks.shown(labels)}")
    low, high = check_bounds(bounds)
    values = (number_column(frame, "reward", reward, low, high) - low) / (high - low)
    if control is not None and control not in labels:
        raise ValueError(f"control must be one of the arms {list(labels)}, got {_checks.shown(control)}")
    ends = [0, *_results.checkpoints(len(arms), _TIMES).tolist()]
    parts = [
        [np.bincount(arms[a:b], values[a:b] ** power, len(labels)) for a, b in pairwise(ends)]
        for power in (0, 1, 2)
    ]
    n, s, q = (np.cumsum(part, axis=0) for part in parts)
    at = 0 if control is None else labels.index(control)
    totals = inference.Totals(n.astype(np.int64), s, q)
    return inference.report(totals, labels=labels, bounds=(low, high), control=at, alpha=alpha)
