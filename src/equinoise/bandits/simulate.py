"""Monte Carlo of a bandit policy: arm means, their bias, and the regret at which they were gathered."""

import functools
import os
from concurrent.futures import Executor

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._checkpoint import kept_as
from equinoise._typing import Any, Array, ArrayLike, Floats, Ints, Mapping, NamedTuple, Words
from equinoise.bandits.entry import MAX_HORIZON
from equinoise.bandits.policies.registry import POLICIES
from equinoise.bandits.result import BanditRun

_LARGEST_MEAN = 1e100
_LANES = 64  # replicates side by side: state and tape of K = 20 arms stay in the first cache
_CHUNK = 64  # rounds drawn at a time
_WORTH_TABLES = 8  # replicates: for fewer it is quicker to compute what they need as they go
_VECTOR = 8  # lanes of the widest vector
_WORK_A_PIECE = 1_000_000  # rounds between two reports of progress: about a twentieth of a second


class _Task(NamedTuple):
    """All that a block of replicates needs, picklable."""

    policy: str
    true_means: Floats  # [K], or [R, K]
    horizon: int
    epsilon: float
    options: dict[str, Any]
    tables: Any
    kind: int
    sigma: float
    random_ties: bool
    checkpoints: Ints
    key: Words

    def _identity(self) -> tuple[Any, ...]:
        """Return what results depend on: tables only save time, and only where there are many replicates."""
        return tuple(self._replace(tables=None))


def simulate(
    policy: str,
    means: ArrayLike,
    *,
    horizon: int,
    epsilon: float | None = None,
    n_replicates: int = 1,
    seed: int | None = 0,
    reward: str = "bernoulli",
    sigma: float = 1.0,
    width: str = "counter",
    counter: str = "binary",
    ties: str | None = None,
    n_checkpoints: int = 50,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | os.PathLike[str] | None = None,
    **options: Any,
) -> BanditRun:
    """Let a policy gather rewards from K arms over T rounds, many times over [1]_.

    Parameters
    ----------
    policy : str
        A name in :data:`equinoise.bandits.POLICIES`, which says what each is and what options it takes.
    means : float64[K] or float64[R, K]
        True means of the arms, or of the arms of every replicate.
    horizon : int
        Rounds of a replicate, T; at least K, so that every arm can be pulled.
    epsilon : float, optional
        Privacy in the rewards: two histories that differ in the reward of one round, in [0, 1]. math.inf adds
        no noise. Needed by private policies and by their controls, ignored by the others.
    n_replicates, seed : int
        R and the seed: replicate r has the same bits for every R, block and executor, and the same random
        draws for every policy and epsilon. None takes randomness from the operating system.
    reward : {"bernoulli", "gaussian"}
        Gaussian rewards, of standard deviation sigma, are not bounded, so that no policy is private with
        them: it then adds the noise that is right for [0, 1], and its run has no bound on the bias.
    width : {"counter", "published"}
        Of private-ucb and width-only: what an index is widened by for the noise, over the pulls. "counter" is
        the tail of the counter's own noise at probability 1/t^2; "published" is
        K ln^2(T) ln(K T ln(T) (1 + t ln^2 t))/epsilon.
    counter : {"binary", "hybrid"}
        Of private-ucb and its controls: "binary" is made for the horizon, "hybrid" needs none.
    ties : {"first", "random"}, optional
        Which of the arms with the largest index is played: by default the first, but for dp-klucb, whose
        index is clipped and ties often, a random one. Uniform play has no ties.
    n_checkpoints : int
        C evenly spaced numbers of rounds, the horizon last; fewer where the horizon is shorter.
    block, executor, progress, resume
        As in :func:`equinoise.replicates.run`.
    **options
        Options of one policy: ``clip_sums`` of dp-klucb.

    Returns
    -------
    BanditRun
        Raises TypeError or ValueError for arguments of the wrong kind or out of range.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML,
       theorem 1 and the experiments.

    Examples
    --------
    >>> run = simulate("ucb", [0.9, 0.6, 0.3], horizon=200, n_replicates=500, seed=1)
    >>> run.pulls.shape, int(run.pulls.sum(axis=1).max())
    ((500, 3), 200)
    >>> (run.bias()["bias"] < 0).tolist()
    [True, True, True]
    >>> private = simulate("private-ucb", [0.9, 0.6, 0.3], horizon=200, epsilon=0.1, n_replicates=500, seed=1)
    >>> private.mean_absolute_bias < 0.3 * run.mean_absolute_bias
    True
    """
    spec = POLICIES[_checks.choice("policy", policy, POLICIES)]
    kind = _checks.choice("reward", reward, ("bernoulli", "gaussian"))
    n = _checks.integer("n_replicates", n_replicates, 1)
    true_means = _true_means(means, n, kind)
    n_arms = true_means.shape[-1]
    rounds = _checks.integer("horizon", horizon, n_arms, MAX_HORIZON)
    budget = spec.checked_epsilon(epsilon)
    spread = _checks.number("sigma", sigma, 0.0, _LARGEST_MEAN)
    chosen = spec.checked_options({"width": width, "counter": counter, **options})
    order = spec.ties if ties is None else _checks.choice("ties", ties, ("first", "random"))
    checkpoints = _results.checkpoints(rounds, n_checkpoints)
    _results.check_memory(n, 2 * n_arms + len(checkpoints))
    from equinoise._random import stream_key
    from equinoise.bandits import rewards

    tables = spec.make_tables(n_arms, rounds, budget, rounds if n >= _WORTH_TABLES else 0, chosen)
    task = _Task(
        spec.name,
        true_means,
        rounds,
        budget,
        chosen,
        tables,
        rewards.BERNOULLI if kind == "bernoulli" else rewards.GAUSSIAN,
        spread,
        order == "random",
        checkpoints,
        stream_key(seed),
    )
    result = replicates.run(
        functools.partial(_run_block, task),
        n,
        block=block,
        executor=executor,
        progress=progress,
        resume=resume,
        work=rounds,
    )
    return BanditRun(
        **result,
        trials=checkpoints,
        policy=spec.name,
        true_means=true_means,
        epsilon=budget if spec.needs_epsilon else None,
        reward=kind,
        sigma=spread if kind == "gaussian" else None,
        ties=order,
        options=chosen,
        seed=seed,
    )


def _true_means(means: ArrayLike, n_replicates: int, reward: str) -> Floats:
    low, high = (0.0, 1.0) if reward == "bernoulli" else (-_LARGEST_MEAN, _LARGEST_MEAN)
    given = _checks.array("means", means, np.float64, None, low=low, high=high)
    if given.ndim not in (1, 2) or given.shape[-1] == 0:
        raise ValueError(f"means must have shape (K,) or (n_replicates, K) with K arms, got {given.shape}")
    if given.ndim == 2 and len(given) != n_replicates:
        raise ValueError(
            f"means must have one row for each of the {n_replicates} replicates, got shape {given.shape}"
        )
    result = given.copy()
    result.flags.writeable = False
    return result


@kept_as("equinoise.bandits.simulate._run_block")
def _run_block(task: _Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1; this is what executors are given."""
    n, n_arms = stop - start, task.true_means.shape[-1]
    results = {
        "reward_sum": np.empty((n, n_arms)),
        "pulls": np.empty((n, n_arms), dtype=np.int64),
        "regret": np.empty((n, len(task.checkpoints))),
    }
    for first in range(start, stop, _LANES):
        end = min(first + _LANES, stop)
        lanes = {name: array[first - start : end - start] for name, array in results.items()}
        _run_lanes(task, first, end, lanes)
    return results


def _run_lanes(task: _Task, first: int, end: int, results: Mapping[str, Array]) -> None:
    """Run the replicates first..end-1 side by side, and write their rows of the results."""
    from equinoise.bandits import rewards

    spec, n = POLICIES[task.policy], end - first
    lanes = n
    if spec.tabulated and n > _VECTOR // 2:  # one that is not full costs as much: its rest is thrown away
        lanes = -(-n // _VECTOR) * _VECTOR
    mean = _lane_means(task.true_means, first, end, lanes)
    run = rewards.Run(
        rewards.make_tape(mean, _CHUNK, task.kind, noise=spec.needs_noise, ties=task.random_ties),
        rewards.make_streams(task.key, first, lanes),
        task.sigma,
        task.checkpoints,
        gap=mean.max(axis=0) - mean,
        regret=np.empty((len(task.checkpoints), lanes)),
        random_ties=task.random_ties,
        first=0,
        end=0,
    )
    setting = len(mean), lanes, task.horizon, task.epsilon, task.options
    state = spec.make_state(*setting, tables=task.tables, key=task.key, first=first)
    piece = max(_CHUNK, _WORK_A_PIECE // lanes)
    for begin in range(0, task.horizon, piece):
        stop = min(begin + piece, task.horizon)
        spec.kernels.play(state, run._replace(first=begin, end=stop))
        replicates.tick((stop - begin) * n)
    results["reward_sum"][:] = state.reward_sum.T[:n]
    results["pulls"][:] = state.pulls.T[:n]
    results["regret"][:] = run.regret.T[:n]


def _lane_means(true_means: Floats, first: int, end: int, lanes: int) -> Floats:
    """Return the arms' means of the lanes, float64[K, W]; spare lanes take the last replicate's."""
    if true_means.ndim == 1:
        return np.repeat(true_means[:, None], lanes, axis=1)
    rows = np.minimum(np.arange(first, first + lanes), end - 1)
    return np.ascontiguousarray(true_means[rows].T)
