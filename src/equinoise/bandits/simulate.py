"""Monte Carlo of a bandit policy: arm means, their bias, and the regret at which they were gathered."""

import functools

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._checkpoint import kept_as
from equinoise._typing import Any, Array, ArrayLike, Executor, Floats, Ints, NamedTuple, PathLike, Words
from equinoise.bandits.policies.registry import LARGEST, MAX_HORIZON, POLICIES, REWARDS, choose
from equinoise.bandits.result import BanditRun

_LANES = 64  # replicates side by side: state and tape of K = 20 arms stay in the first cache
_CHUNK = 64  # rounds drawn at a time
_WORTH_TABLES = 8  # replicates: for fewer it is quicker to compute what they need as they go
_FEW = 32  # arms, of which a round takes hardly longer than of two
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
    history: bool
    delay: int

    def _identity(self) -> tuple[Any, ...]:
        """Return what results depend on: tables only save time, and only where there are many replicates."""
        idle = 0 if self.delay else 1 if self.history else 2  # fields that came later, at their defaults
        return tuple(self._replace(tables=None))[: len(self) - idle]

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the tables, which can be thousands of times as large as the rest."""
        return _Task, tuple(self._replace(tables=None))


def simulate(
    policy: str,
    means: ArrayLike,
    *,
    horizon: int,
    epsilon: float | None = None,
    n_replicates: int | range = 1,
    seed: int | None = 0,
    reward: str = "bernoulli",
    sigma: float = 1.0,
    ties: str | None = None,
    n_checkpoints: int = 50,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | PathLike[str] | None = None,
    width: str = "counter",
    counter: str = "k-ary",
    history: bool = False,
    delay: int = 0,
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
        Rounds of a replicate, T: at least K, so that every arm can be pulled, and at most 10^12.
    epsilon : float, optional
        Privacy in the rewards: two histories that differ in the reward of one round, in [0, 1]. math.inf adds
        no noise. Needed by private policies and by their controls, ignored by the others.
    n_replicates, seed : int or range, int
        R and the seed: replicate r has the same bits for every R, block and executor, and the same random
        draws for every policy and epsilon. None takes randomness from the operating system. A range is a
        slice of a whole run, whose means of each replicate are given for all of it.
    reward : {"bernoulli", "gaussian"}
        Gaussian rewards, of standard deviation sigma, are not bounded, so that no policy is private with
        them: it then adds the noise that is right for [0, 1], and its run has no bound on the bias.
    ties : {"first", "random"}, optional
        Which of the arms with the largest index is played: by default the first, but for dp-klucb, whose
        index is clipped and ties often, a random one. Nothing to policies that draw arms, or play in turn.
    n_checkpoints : int
        C evenly spaced numbers of rounds, the horizon last; fewer where the horizon is shorter.
    block, executor, progress, resume
        As in :func:`equinoise.replicates.run`.
    history : bool
        Keep every round in the run: arms, rewards and, where the policy draws arms with probabilities that it
        knows, propensities. It takes (2 + K) T numbers a replicate, and some more time.
    delay : int
        The policy hears of the reward of a round only after so many more rounds, and goes by the rules of
        live bandits: an arm never selected comes first, one that waits for its first reward is left out.
        Rewards still out at the end count in the run. Private policies stay private, since when a reward
        enters a sum depends on the clock and the choices alone. Refused by dp-se, which has no such rules.
    width, counter, **options
        Options of the policy, as its row in POLICIES has them; the first two, {"counter", "published"} and
        {"k-ary", "binary", "hybrid"}, are of private-ucb, and the others leave them out.

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
    >>> private = simulate("private-ucb", [0.9, 0.6, 0.3], horizon=200, epsilon=0.1, n_replicates=500, seed=1)
    >>> private.mean_absolute_bias < 0.3 * run.mean_absolute_bias
    True
    """
    chosen = choose(policy, epsilon, ties, {"width": width, "counter": counter, **options})
    kind = _checks.choice("reward", reward, REWARDS)
    span = replicates.checked_span(n_replicates)
    n = len(span)
    low, high = REWARDS[kind]
    true_means = _checks.array("means", means, np.float64, None, low=low, high=high).copy()
    of, rows = true_means.shape, span.stop
    if len(of) not in (1, 2) or of[-1] == 0:
        raise ValueError(f"means must have shape (K,) or (n_replicates, K) with K arms, got {of}")
    if len(of) == 2 and (of[0] < rows or (of[0] > rows and not isinstance(n_replicates, range))):
        raise ValueError(f"means must have one row for each of the {rows} replicates, got shape {of}")
    true_means.flags.writeable = False
    n_arms = true_means.shape[-1]
    rounds = _checks.integer("horizon", horizon, n_arms, _checks.MOST_ROUNDS)
    spread = _checks.number("sigma", sigma, 0.0, LARGEST)
    checkpoints = _results.checkpoints(rounds, n_checkpoints)
    late = _checks.integer("delay", delay, 0, MAX_HORIZON)
    if late and not hasattr(chosen.spec.kernels, "play_late"):
        raise ValueError(f"delay must be 0 for the policy {policy!r}, got {late}")
    _results.check_work(n, rounds * _arms_of_work(n_arms))
    kept = (2 + n_arms) * rounds if _checks.flag("history", history) else 0
    _results.check_memory(n, 2 * n_arms + len(checkpoints) + kept + 3 * _LANES * min(late, rounds) // n)
    from equinoise._random import stream_key

    spec, budget, given, order = chosen
    tables = _tables(spec.name, tuple(given.items()), n_arms, rounds, budget, n)
    drawn = list(REWARDS).index(kind), spread, order == "random", checkpoints, stream_key(seed), bool(history)
    task = _Task(spec.name, true_means, rounds, budget, given, tables, *drawn, min(late, rounds))
    how: dict[str, Any] = {"block": block, "executor": executor, "progress": progress, "resume": resume}
    result = replicates.run(functools.partial(_run_block, task), span, work=rounds, **how)
    return BanditRun(
        **result,
        trials=checkpoints,
        policy=spec.name,
        true_means=true_means[span.start : span.stop] if true_means.ndim == 2 else true_means,
        epsilon=chosen.given_epsilon,
        reward=kind,
        sigma=spread if kind == "gaussian" else None,
        ties=order,
        options=given,
        seed=_checks.seed(seed),
        delay=late,
        first_replicate=span.start,
    )


def _arms_of_work(n_arms: int) -> int:
    """Return as how many rounds of few arms a round counts."""
    return max(1, n_arms // _FEW)


def _tables(policy: str, options: tuple[Any, ...], n_arms: int, horizon: int, epsilon: float, n: int) -> Any:
    rounds = horizon if n >= _WORTH_TABLES else 0
    return POLICIES[policy].make_tables(n_arms, horizon, epsilon, rounds, dict(options))


_kept_tables = functools.lru_cache(maxsize=1)(_tables)  # of another process, which does many blocks of a run


@kept_as("equinoise.bandits.simulate._run_block")
def _run_block(task: _Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1; this is what executors are given."""
    from equinoise.bandits import rewards

    if task.tables is None and POLICIES[task.policy].tabulated:
        setting = task.true_means.shape[-1], task.horizon, task.epsilon
        tables = _kept_tables(task.policy, tuple(task.options.items()), *setting, stop - start)
        task = task._replace(tables=tables)
    return rewards.in_lanes(functools.partial(_run_lanes, task), start, stop, _LANES)


def _run_lanes(task: _Task, first: int, end: int) -> dict[str, Array]:
    """Run the replicates first..end-1 side by side."""
    from equinoise.bandits import rewards

    spec, n = POLICIES[task.policy], end - first
    lanes = rewards.full(n) if spec.tabulated else n
    own = task.true_means.ndim == 2
    mean = np.ascontiguousarray(rewards.of_lanes(task.true_means, first, end, lanes, own=own).T)
    tape = rewards.make_tape(mean, _CHUNK, task.kind, noise=spec.needs_noise, ties=task.random_ties)
    drawn = tape, rewards.make_streams(task.key, first, lanes), task.sigma
    regret = np.empty((len(task.checkpoints), lanes))
    run = rewards.Run(*drawn, task.checkpoints, mean.max(axis=0) - mean, regret, task.random_ties, 0, 0)
    setting = len(mean), lanes, task.horizon, task.epsilon, task.options
    state = spec.make_state(*setting, tables=task.tables, key=task.key, first=first)
    play = spec.kernels.play_late if task.delay else spec.kernels.play
    played = rewards.make_late(state, task.delay) if task.delay else state
    piece = 1 if task.history else max(1, _WORK_A_PIECE // (lanes * _arms_of_work(len(mean))))
    story: list[dict[str, Array]] = []
    for begin in range(0, task.horizon, piece):
        stop, before = min(begin + piece, task.horizon), played.pulls.copy()
        play(played, run._replace(first=begin, end=stop))
        replicates.tick((stop - begin) * n)
        if task.history:
            arms = (played.pulls - before).argmax(axis=0)[:n]
            luck, of_arm, share = tape.reward[0, :n], mean[arms, np.arange(n)], rewards.shares_of(state)
            paid = np.where(luck < of_arm, 1.0, 0.0) if task.kind == rewards.BERNOULLI else of_arm + luck
            known = {} if share is None else {"propensities": share.T[:n].copy()}
            story.append({"arms": arms, "rewards": paid, **known})
    arrays = {"reward_sum": played.reward_sum, "pulls": played.pulls, "regret": regret}
    made = {name: np.ascontiguousarray(array.T[:n]) for name, array in arrays.items()}
    return made | {name: np.stack([one[name] for one in story], 1) for name in (story[0] if story else {})}
