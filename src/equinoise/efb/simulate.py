"""Monte Carlo of a learner against an environment: many replicates, expected regret at checkpoints."""

import functools
import math
import os
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._checkpoint import kept_as
from equinoise._files import loaded, save_arrays
from equinoise._random import stream_key
from equinoise._typing import Any, Axes, DataFrame, Executor, Floats, Ints, Iterator, NamedTuple, Words
from equinoise.efb.baselines import LEARNERS, Learner, flatten, strategies
from equinoise.efb.kernels import learner as _learner, setup, weights as _weights
from equinoise.efb.protocol.user import Report
from equinoise.efb.tuning import MECHANISMS, RULES, Tuning, checked_for, packed, unpacked
from equinoise.games import Environment, GameTree, Policy, Schedule
from equinoise.games.kernels import best_response_value
from equinoise.games.policy import behaviour

_KIND = "equinoise run in a game, version 1"
_ARRAYS = ("trials", "regret", "loss", "policy")
_WORDS = ("regret_bound", "learner", "epsilon", "seed", "first_replicate")
WORK_A_PIECE = 2_000_000  # visits between two reports of progress: about a twentieth of a second


@dataclass(frozen=True, eq=False)
class EfbRun:
    """Replicates of one learner against one environment: R replicates, C checkpoints, A actions.

    Attributes
    ----------
    trials : int64[C]
        Trials played at each checkpoint; the last is the horizon.
    regret, loss : float64[R, C]
        Cumulative: expected loss of the drawn strategies less that of the best fixed one; what users saw.
    policy : float64[R, A]
        Final behaviour policy.
    regret_bound : float
        Proven for the expected regret at the horizon; see ``tuning.bound`` for the other checkpoints.
    tuning : Tuning
    learner, epsilon, seed, tree, first_replicate
        As of :func:`simulate`, which makes it. The first replicate is not 0 in a slice.

    Examples
    --------
    >>> from equinoise.games import load
    >>> run = simulate(*load("bandit(3)"), horizon=100, epsilon=4, n_replicates=2, n_checkpoints=2)
    >>> run.label, list(run.summary().columns[6:])
    ('dp-efb, ε = 4', ['bound', 'learner', 'mechanism', 'tuning', 'epsilon', 'seed'])
    """

    trials: Ints
    regret: Floats
    loss: Floats
    policy: Floats
    regret_bound: float
    tuning: Tuning
    learner: str
    epsilon: float
    seed: int | None
    tree: GameTree
    first_replicate: int = 0

    def __repr__(self) -> str:
        return f"EfbRun({self.label}, {len(self.regret)} replicates of {self.trials[-1]} trials, {self.tree})"

    def to_frame(self) -> DataFrame:
        """Return a long frame: replicate, trials, regret, loss, and what the run was."""
        values = {"regret": self.regret, "loss": self.loss}
        return self._made(_results.long_frame({"trials": self.trials}, values, self.first_replicate))

    def _made(self, frame: DataFrame) -> DataFrame:
        return _results.made_by(frame.assign(**self._what()), **self._what())

    def _what(self) -> dict[str, Any]:
        private = math.isfinite(self.epsilon) and self.tuning.learning_rate > 0.0
        how = {"mechanism": self.tuning.mechanism if private else "none", "tuning": self.tuning.rule}
        return {"learner": self.learner, **how, "epsilon": self.epsilon, "seed": self.seed}

    def summary(self) -> DataFrame:
        """Return mean, standard error and 95% interval of the regret, the bound, and what the run was."""
        frame = _results.summary_frame({"trials": self.trials}, {"regret": self.regret})
        return self._made(frame.assign(bound=self.tuning.bound(self.trials)))

    def plot(self, ax: Axes | None = None, *, label: str | None = None, color: str | None = None) -> Axes:
        """Draw mean regret, its 95% interval and the bound; on axes that have curves, in the next colour."""
        from equinoise.report import figures

        return figures.regret_curve(ax, [(label or self.label, self)], color)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a file (NumPy's ``.npz``, without pickles) under just this name, atomically."""
        arrays, meta = packed(self.tree, self.tuning)
        arrays |= {name: getattr(self, name) for name in _ARRAYS}
        save_arrays(path, _KIND, arrays, meta | {name: getattr(self, name) for name in _WORDS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "EfbRun":
        """Read what :meth:`save` wrote; ValueError for a file that is damaged or something else."""
        with loaded(path, _KIND, "run") as (arrays, meta):
            tree, tuning = unpacked(arrays, meta)
            trials = _checks.array("trials", arrays["trials"], np.int64, (None,), low=1)
            if (np.diff(trials) <= 0).any():
                raise ValueError("trials must increase")
            n, shape = len(arrays["regret"]), (len(arrays["regret"]), len(trials))
            regret, loss = (_checks.array(x, arrays[x], np.float64, shape) for x in ("regret", "loss"))
            policy = _checks.array("policy", arrays["policy"], np.float64, (n, tree.n_actions), low=0.0)
            bound = _checks.number("regret_bound", meta["regret_bound"], 0.0)
            learner = _checks.choice("learner", meta["learner"], LEARNERS)
            epsilon, seed = _checks.epsilon(meta["epsilon"]), _checks.seed(meta["seed"])
            first = _checks.integer("first_replicate", meta.get("first_replicate", 0), 0)
            return cls(trials, regret, loss, policy, bound, tuning, learner, epsilon, seed, tree, first)

    @property
    def bytes_a_report(self) -> int:
        """Size of the largest message that a user sends to the server; 0 where nobody reports."""
        if self.tuning.learning_rate == 0.0:
            return 0
        if self.tuning.symbols:
            return len(Report(self.tuning.horizon - 1, symbol=self.tuning.symbols - 1).to_bytes())
        n = 1 if LEARNERS[self.learner].flat else setup.longest(self.tree)
        return len(Report(0, np.zeros(n)).to_bytes())

    @property
    def label(self) -> str:
        """Name of the learner with its epsilon, for legends."""
        if self.learner == "uniform":
            return "uniform play"
        return f"{self.learner}, {named_epsilon(self.epsilon)}"

    def final_policy(self, replicate: int = 0) -> Policy:
        """Return the final policy of one replicate with its tree, ready to travel."""
        r = _checks.integer("replicate", replicate, 0, len(self.policy) - 1)
        return Policy(self.tree, self.policy[r])


def named_epsilon(epsilon: float) -> str:
    """Return how a legend says epsilon."""
    return "no privacy" if math.isinf(epsilon) else f"ε = {epsilon:g}"


@kept_as("equinoise.efb.simulate._Task")
class _Task(NamedTuple):
    tree: GameTree
    plan: setup.Plan | setup.SymbolPlan
    chances: tuple[setup.Chance, ...]
    segments: tuple[tuple[int, int, int, int], ...]  # (environment, first trial, end, checkpoint or -1)
    learner: Learner
    key: Words
    n_checkpoints: int

    def _identity(self) -> Any:
        """Return what fingerprints are made of, which is older than the form of the chances."""
        return self._replace(chances=tuple([setup.first_chance(self.tree, one) for one in self.chances]))


def simulate(
    tree: GameTree,
    environment: Environment | Schedule,
    *,
    horizon: int,
    epsilon: float,
    n_replicates: int | range = 1,
    seed: int | None = 0,
    tuning: str | Tuning = "sharp",
    mechanism: str = "hashing",
    learner: str = "dp-efb",
    n_checkpoints: int = 50,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | os.PathLike[str] | None = None,
) -> EfbRun:
    """Let a learner play against an environment, many times over.

    Parameters
    ----------
    tree, environment : GameTree, Environment or Schedule
        With A actions; a schedule covers at least the horizon.
    horizon, epsilon : int, float
        Trials of a replicate, T, at most 10^12; local privacy of each user's report, math.inf for none.
    n_replicates : int or range
        R, or a slice of a whole run. Replicate r is the same for every R and slice.
    seed : int or None
        The same seed gives the same bits, whatever block or executor. None takes the operating system's.
    tuning : {"sharp", "paper"} or Tuning
        See :func:`equinoise.efb.tune`; learners without that option ignore it. Of parameters of your own
        nothing is proven: their bound is 1 per trial.
    mechanism : {"hashing", "laplace"}
        What a user sends, one symbol or a noised loss for each action; "laplace" with "paper" is the
        published algorithm. The ranges of losses that "hashing" profits from are those of the environment.
    learner : str
        A name of :data:`equinoise.efb.LEARNERS`. All but "flat-exp3" face the same random draws.
    n_checkpoints : int
        C evenly spaced trial counts, the horizon last; fewer where the horizon is shorter.
    block, executor, progress, resume
        As of :func:`equinoise.replicates.run`.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong or do not fit together.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Section 4; the bound is Theorem 1, or the sharper one of :func:`tune`.

    Examples
    --------
    >>> from equinoise.games import load
    >>> run = simulate(*load("kuhn_poker"), horizon=2000, epsilon=4, n_replicates=3, n_checkpoints=4)
    >>> run.trials, run.regret.shape, run.policy.shape, bool((run.regret[:, -1] < run.regret_bound).all())
    (array([ 500, 1000, 1500, 2000]), (3, 4), (3, 13), True)
    """
    _checks.instance("tree", tree, GameTree)
    if not _checks.instance("environment", environment, Environment, Schedule).tree.same_as(tree):
        raise ValueError("environment must be one on the given tree, got one on another tree")
    trials = _checks.integer("horizon", horizon, 1, _checks.MOST_ROUNDS)
    schedule = environment if isinstance(environment, Schedule) else Schedule(((environment, trials),))
    if schedule.total < trials:
        raise ValueError(f"horizon must be at most the schedule's {schedule.total} trials, got {trials}")
    budget = _checks.epsilon(epsilon)
    row = LEARNERS[_checks.choice("learner", learner, LEARNERS)]
    if not isinstance(tuning, Tuning):
        _checks.choice("tuning", tuning, RULES)
    sent = _checks.choice("mechanism", mechanism, MECHANISMS)
    checkpoints = _results.checkpoints(trials, n_checkpoints)
    span = replicates.checked_span(n_replicates)
    _results.check_memory(len(span), 2 * len(checkpoints) + tree.n_actions)
    key = stream_key(seed)
    game, table, faced = tree, None, environment
    if row.flat:
        table = strategies(tree)
        faced = schedule = flatten(schedule, table)
        game = schedule.tree
    sent = sent if "mechanism" in row.options else "laplace"
    how = tuning, (trials, budget, sent)
    given = checked_for(game, *how, faced.loss_range if sent == "hashing" else (0.0, 1.0), row.sensitivity)
    task = _task(game, schedule, row.start(game, given), checkpoints, key)
    options: Any = {"block": block, "executor": executor, "progress": progress, "resume": resume}
    result = replicates.run(functools.partial(_run_block, task), span, work=trials, **options)
    policy, chosen = result["policy"], task.learner.tuning
    if table is not None:  # of each action, how often the strategies that have it are played
        policy = behaviour(tree, np.stack([(row[:, None] * table).sum(axis=0) for row in policy]))
    regret = result["expected"] - _best_fixed(tree, environment, checkpoints)
    made = regret, result["observed"], policy, chosen.regret_bound, chosen
    return EfbRun(checkpoints, *made, row.name, budget, _checks.seed(seed), tree, span.start)


def _task(tree: GameTree, schedule: Schedule, learner: Learner, checkpoints: Ints, key: Words) -> _Task:
    chances = {id(part): setup.make_chance(part) for part in schedule.environments}
    number = {part: i for i, part in enumerate(chances)}
    ends = np.cumsum(schedule.trials)
    stops = np.union1d(ends[ends < checkpoints[-1]], checkpoints)
    places = np.searchsorted(checkpoints, stops)
    reached = np.where(checkpoints[places] == stops, places, -1)
    at = [number[id(schedule.entries[i][0])] for i in np.searchsorted(ends, stops)]
    segments = zip(at, [0, *stops[:-1].tolist()], stops.tolist(), reached.tolist(), strict=True)
    plan = setup.make_plan(tree, learner.tuning.exploration, learner.tuning.radius)
    return _Task(tree, plan, tuple(chances.values()), tuple(segments), learner, key, len(checkpoints))


def pieces(start: int, stop: int, work: int) -> Iterator[tuple[int, int]]:
    """Yield trials as ranges (begin, end), `work` visits a trial, and tell of progress after each."""
    size = max(1, WORK_A_PIECE // work)
    for begin in range(start, stop, size):
        end = min(begin + size, stop)
        yield begin, end
        replicates.tick(end - begin)


@kept_as("equinoise.efb.simulate._run_block")
def _run_block(task: _Task, start: int, stop: int) -> dict[str, Floats]:
    for chance in task.chances:
        setup.sealed(chance)
    visits, ptr = setup.make_visits(task.tree), task.tree.action_ptr
    expected, observed = np.empty((2, stop - start, task.n_checkpoints))
    policy = np.empty((stop - start, task.tree.n_actions))
    for i in range(stop - start):
        seat = setup.make_seat(task.tree, task.plan, visits, task.learner, task.key, start + i)
        totals = np.zeros(2)
        for which, first, end, checkpoint in task.segments:
            ran = np.zeros(2)
            for piece in pieces(first, end, len(visits.infoset)):
                ran += _learner.run_trials(seat, task.chances[which], *piece)
            totals += ran
            if checkpoint >= 0:
                expected[i, checkpoint], observed[i, checkpoint] = totals
        _weights.policy(ptr, seat.weights.weight, policy[i])
    return {"expected": expected, "observed": observed, "policy": policy}


def _best_fixed(tree: GameTree, environment: Environment | Schedule, checkpoints: Ints) -> Floats:
    """Return the cumulative loss of the best fixed strategy at every checkpoint, float64[C]."""
    if isinstance(environment, Environment):
        return np.multiply(checkpoints, environment.best_response()[0])
    best: list[float] = []
    pointers, total, done = (tree.action_ptr, tree.infoset_ptr), np.zeros(tree.n_actions), 0
    for part, lasts in environment.entries:  # once through them, whatever the number of checkpoints
        for t in checkpoints[len(best) :][checkpoints[len(best) :] <= done + lasts].tolist():
            best.append(best_response_value(*pointers, total + (t - done) * part.action_loss)[0])
        total += lasts * part.action_loss
        done += lasts
    return np.array(best)
