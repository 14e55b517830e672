"""Rewards drawn first: a tableau of all that arms would have paid, and policies that ask it for entries.

A bandit that is run online and an analyst who asks a fixed table for one entry after the other, each chosen
by the answers so far, have the same history on the same tableau, exactly. So what holds for private queries
holds for the data that a private policy gathers (Neel and Roth, 2018). :func:`replay` does without a table of
what was never seen: it plays a policy on the log of a randomised experiment.
"""

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, ArrayLike, Floats
from equinoise.bandits.policies.registry import LARGEST, MAX_HORIZON, REWARDS, choose
from equinoise.bandits.replay.logged import Replay, replay
from equinoise.bandits.result import History, arm_means, numbers_of

__all__ = ["History", "Replay", "interact", "replay", "tableau"]

_MOST_ENTRIES = 10**9


def tableau(
    means: ArrayLike,
    horizon: int,
    *,
    seed: int | None = 0,
    replicate: int = 0,
    reward: str = "bernoulli",
    sigma: float = 1.0,
) -> Floats:
    """Draw the rewards of all arms in all rounds [1]_.

    A policy that :func:`equinoise.bandits.simulate` plays with this seed meets these in this replicate.

    Parameters
    ----------
    means : float64[K]
        True means of the arms.
    horizon, seed, reward, sigma
        Rounds, T, and the others as in :func:`equinoise.bandits.simulate`.
    replicate : int
        The number of the replicate, from 0.

    Returns
    -------
    float64[T, K]
        One word makes a row: rewards of a round go up and down together, which who sees one cannot see.
        Raises TypeError or ValueError for arguments of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML: the
       bandit as queries to a tableau that was drawn before.

    Examples
    --------
    >>> tableau([0.9, 0.5], 2, seed=1)
    array([[1., 1.],
           [1., 0.]])
    """
    kind = _checks.choice("reward", reward, REWARDS)
    low, high = REWARDS[kind]
    given = _checks.array("means", means, np.float64, (None,), low=low, high=high)
    if given.size == 0:
        raise ValueError("means must have at least one arm, got none")
    rounds = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
    if rounds * given.size > _MOST_ENTRIES:
        raise ValueError(f"horizon must be one for which the table has at most 1e9 entries, got {horizon!r}")
    _results.check_memory(rounds, 2 * given.size, "horizon")
    spread = _checks.number("sigma", sigma, 0.0, LARGEST)
    first = _checks.integer("replicate", replicate, 0, MAX_HORIZON)
    from equinoise._random import stream_key
    from equinoise.bandits.rewards import fill_tape, make_streams, make_tape

    tape = make_tape(given[:, np.newaxis], rounds, list(REWARDS).index(kind), noise=False, ties=False)
    fill_tape(tape, make_streams(stream_key(seed), first, 1), rounds, spread)
    if kind == "bernoulli":
        return (tape.reward < given).astype(np.float64)
    return tape.reward + given


def interact(
    policy: str,
    tableau: ArrayLike,
    *,
    epsilon: float | None = None,
    seed: int | None = 0,
    replicate: int = 0,
    form: str = "query",
    ties: str | None = None,
    **options: Any,
) -> History:
    """Play a policy on a tableau [1]_.

    Parameters
    ----------
    policy : str
        One of :data:`equinoise.bandits.POLICIES`.
    tableau : float64[T, K]
        Rewards of all arms in all rounds, T at least K; in [0, 1] where the policy is to be private.
    epsilon, ties, **options
        As in :func:`equinoise.bandits.simulate`.
    seed, replicate : int
        Of the policy's own noise and of drawn ties, which are those of this replicate of a simulation. A seed
        of None takes randomness from the operating system.
    form : {"query", "online"}
        "query": in round t the analyst, who has seen nothing but the answers so far, asks the table for the
        entry (t, arm). "online": the compiled simulation plays on the table. The history is the same.

    Returns
    -------
    History
        Raises TypeError or ValueError for arguments of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML: an
       adaptive policy is an analyst who asks a tableau one query after the other.

    Examples
    --------
    >>> table = tableau([0.9, 0.5, 0.4], 100, seed=1)
    >>> played = interact("ucb", table, form="online")
    >>> bool((interact("ucb", table).arms == played.arms).all()), int(played.pulls.sum())
    (True, 100)
    """
    chosen = choose(policy, epsilon, ties, options)
    _checks.present("tableau", tableau)
    given = numbers_of(tableau)
    table = _checks.array("tableau", given, np.float64, (None, None), low=-LARGEST, high=LARGEST)
    if table.shape[1] == 0 or len(table) < table.shape[1]:
        what = "shape (T, K) with T rounds, at least as many as its K arms"
        raise ValueError(f"tableau must have {what}, got {table.shape}")
    first = _checks.integer("replicate", replicate, 0, MAX_HORIZON)
    kind = _checks.choice("form", form, ("query", "online"))
    from equinoise._random import stream_key
    from equinoise.bandits.rewards import Stepper

    rounds, n_arms = table.shape
    player = Stepper(chosen, n_arms, rounds, stream_key(seed), first)
    arms = np.empty(rounds, dtype=np.int64)
    for t, row in enumerate(table):
        if kind == "online":
            arms[t] = player.advance(row)
        else:  # the policy chooses by the answers so far, and is told that entry of the row alone
            arms[t] = arm = player.choose()
            player.update(arm, float(row[arm]))
    rewards = table[np.arange(rounds), arms]
    made = *arm_means(arms, rewards, n_arms), chosen.spec.name, chosen.given_epsilon
    return History(arms, rewards, *made, _checks.seed(seed), player.propensities)
