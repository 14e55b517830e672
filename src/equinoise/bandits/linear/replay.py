"""Replay of a linear policy on the log of a randomised experiment whose rows have contexts."""

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, DataFrame, Hashable, Ints, Mapping, Sequence, Words
from equinoise.bandits.linear.simulate import LARGEST, LEAST_DELTA, MAX_HORIZON, POLICIES, regular_ridge
from equinoise.bandits.replay.logged import Replay, number_column, walked


def replay(
    policy: str,
    frame: DataFrame,
    contexts: Sequence[str],
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
    ridge: float = 1.0,
    delta: float = 0.05,
    sigma: float = 0.5,
) -> Replay:
    """Replay a linear policy on a log with contexts, in which arms were randomised.

    Walk the log: the policy sees a row's context x, the same for every arm, and chooses. Where its arm is the
    logged one, the row's reward is its reward; the policy learns nothing of any other row. If rows are
    independent, the used ones are distributed as the policy's own experiment would have been [1]_.

    Parameters
    ----------
    policy, epsilon, ridge, delta, sigma
        As in :func:`equinoise.bandits.linear.simulate`; a sigma of 1/2 is right for all rewards in [0, 1].
    contexts : sequence of str
        The d columns of numbers that make x. Add a column of ones for an intercept.
    frame, arm, reward, propensity, bounds, horizon, seed, replicate, shuffle
        As in :func:`equinoise.bandits.replay`: the policy sees rewards on a scale from 0 to 1.

    Returns
    -------
    Replay
        With a warning where few rows were used. Raises TypeError or ValueError for wrong arguments.

    References
    ----------
    .. [1] Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article
       recommendation algorithms, algorithm 3.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"arm": list("abba") * 50, "reward": [1, 1, 0, 0] * 50, "x": [1, -1, 1, -1] * 50})
    >>> shown = replay("oful", log.assign(one=1.0), ["one", "x"])
    >>> shown.n_rows, bool(shown.rewards[20:].mean() > 0.9)
    (200, True)
    """
    row = POLICIES[_checks.choice("policy", policy, POLICIES)]
    if isinstance(contexts, str) or not isinstance(contexts, Sequence) or not contexts:
        raise TypeError(f"contexts must be names of columns, at least one, got {_checks.shown(contexts)}")
    x = np.stack([number_column(frame, "contexts", name, -LARGEST, LARGEST) for name in contexts], axis=1)
    budget, regular = row.checked_epsilon(epsilon, 0.0), regular_ridge(ridge, x)
    failure = _checks.number("delta", delta, LEAST_DELTA, 1.0, open_high=True)
    widths = regular, failure, _checks.number("sigma", sigma, 0.0, LARGEST)

    def play(k: int, order: Ints, told: Any, rounds: int, key: Words, first: int) -> tuple[Ints, None]:
        from equinoise.bandits.linear import kernels, task
        from equinoise.bandits.rewards import make_streams

        most, d = _checks.integer("horizon", rounds, 1, MAX_HORIZON), x.shape[1]
        plan = task.make_plan(row.name, x[order, np.newaxis], most, *widths, epsilon=budget, lanes=1)
        learner = task.make_learner(plan, k, d, regular)
        streams = make_streams(key, first, 1, task.PURPOSES)
        used = np.empty(min(most, len(order)), dtype=np.int64)
        n = kernels.walk(plan, learner, streams, task.make_round(k, d, 1), told, used)
        return order[used[:n]], None

    columns, how = (arm, reward, propensity, bounds), (horizon, seed, replicate, shuffle)
    return walked(play, (row.name, budget if row.needs_epsilon else None), frame, columns, how)
