"""Self-play, in which all players of a game learn on the same hands, and runs of any kind compared."""

import functools
import math
import os
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._checkpoint import kept_as
from equinoise._random import SEAT, stream_key
from equinoise._typing import Any, Axes, DataFrame, Floats, Ints, Mapping, NamedTuple, Sequence, Words
from equinoise.efb import baselines
from equinoise.efb.kernels import hands, setup
from equinoise.efb.simulate import EfbRun, named_epsilon, pieces
from equinoise.efb.tuning import RULES, Tuning, checked_for, checked_mechanism
from equinoise.games import JointGame, Policy, load_joint
from equinoise.games.policy import behaviour


@dataclass(frozen=True, eq=False)
class SelfPlayRun:
    """Replicates of self-play: R replicates, C checkpoints, P players.

    Attributes
    ----------
    trials : int64[C]
        Hands played at each checkpoint; the last is the horizon.
    exploitability : float64[R, C]
        Of average play so far, as :func:`equinoise.games.exploitability`, in the game's own payoff.
    regret : float64[R, C, P]
        Cumulative: losses in [0, 1] that a player saw, less those of its best fixed strategy against what the
        others played. Times the width of ``game.payoff_range`` they are payoffs. Luck of the hands dealt
        moves it by the order of sqrt(trials).
    plans : tuple of float64[R, A]
        Each player's realization plan, averaged over all hands.
    tunings : tuple of Tuning
        One for each player. Their bounds are for opponents who do not react to what the learner does.
    name, epsilon, seed, game, first_replicate
        As of :func:`self_play`; the name is the game's. The first replicate is not 0 in a slice.

    Examples
    --------
    >>> run = self_play("kuhn_poker", horizon=1000, epsilon=math.inf, n_replicates=2, n_checkpoints=4)
    >>> run.label, run.to_frame().columns[2:6].tolist()
    ('kuhn_poker, no privacy', ['exploitability', 'coarse_gap', 'regret_0', 'regret_1'])
    """

    trials: Ints
    exploitability: Floats
    regret: Floats
    plans: tuple[Floats, ...]
    tunings: tuple[Tuning, ...]
    name: str
    epsilon: float
    seed: int | None
    game: JointGame
    first_replicate: int = 0

    def __repr__(self) -> str:
        return f"SelfPlayRun({self.label}, {len(self.regret)} replicates of {self.trials[-1]} hands)"

    @property
    def label(self) -> str:
        """The game and epsilon, for legends."""
        return f"{self.name}, {named_epsilon(self.epsilon)}"

    @property
    def coarse_gap(self) -> Floats:
        """Distance of the play so far from a coarse correlated equilibrium, float64[R, C], in payoffs.

        The most that a player would have gained a hand by its best fixed strategy, or 0.
        """
        widths = np.diff(self.game.payoff_range)[:, 0]
        gains: Floats = (self.regret / self.trials[:, None] * widths).max(axis=2)
        return gains.clip(0.0)

    def average_policy(self, player: int, replicate: int = 0) -> Policy:
        """Return the policy of a player's average plan in one replicate; uniform where it never gets."""
        i = _checks.integer("player", player, 0, len(self.plans) - 1)
        r = _checks.integer("replicate", replicate, 0, len(self.regret) - 1)
        return Policy(self.game.trees[i], behaviour(self.game.trees[i], self.plans[i][r]))

    def to_frame(self) -> DataFrame:
        """Return a long frame: replicate, trials, what is measured, and what the run was."""
        return self._made(_results.long_frame({"trials": self.trials}, self._values(), self.first_replicate))

    def summary(self) -> DataFrame:
        """Return mean, standard error and 95% interval of all that is measured, at each checkpoint."""
        return self._made(_results.summary_frame({"trials": self.trials}, self._values()))

    def _made(self, frame: DataFrame) -> DataFrame:
        return _results.made_by(frame.assign(**self._what()), **self._what())

    def _values(self) -> dict[str, Floats]:
        regrets = {f"regret_{i}": self.regret[..., i] for i in range(len(self.plans))}
        return {"exploitability": self.exploitability, "coarse_gap": self.coarse_gap, **regrets}

    def _what(self) -> dict[str, Any]:
        mechanism = self.tunings[0].mechanism if math.isfinite(self.epsilon) else "none"
        how = {"game": self.name, "mechanism": mechanism, "tuning": self.tunings[0].rule}
        return {**how, "epsilon": self.epsilon, "seed": self.seed}

    def plot(self, ax: Axes | None = None, *, label: str | None = None, color: str | None = None) -> Axes:
        """Draw mean exploitability with its 95% interval; on axes that have curves, in the next colour."""
        from equinoise.report import figures

        drawn = figures.means(ax, [(label or self.label, self)], "exploitability", color)
        return figures.finish(drawn, "hands", "exploitability (payoff)")


@kept_as("equinoise.efb.self_play._Match")
class _Match(NamedTuple):
    game: JointGame
    plans: tuple[Any, ...]
    learners: tuple[baselines.Learner, ...]
    checkpoints: Ints
    key: Words


def self_play(
    game: object,
    *,
    horizon: int,
    epsilon: float,
    n_replicates: int | range = 1,
    seed: int | None = 0,
    tuning: str | Tuning | Sequence[Tuning] = "sharp",
    mechanism: str = "hashing",
    n_checkpoints: int = 50,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | os.PathLike[str] | None = None,
) -> SelfPlayRun:
    """Let all players of a game learn against each other, each from private reports, many times over.

    In every hand each seat has a user of its own, who plays a strategy that the seat's server drew, and sends
    a report on its own last action and loss. Averages are exact, over all hands, of what is played: (1 - rho)
    mu + rho nu. So for two players whose payoffs always add up to the same, 2 T times exploitability is the
    sum of both regrets in payoffs, and vanishes like them [1]_. Of more players, a regret is against what the
    others played together, for which every hand passes over all ends; their play nears a coarse correlated
    equilibrium, a Nash one by luck.

    Parameters
    ----------
    game : str, path, pyspiel.Game, Source or JointGame
        As of :func:`equinoise.games.load_joint`, whose other options a JointGame may be made with.
    horizon : int
        Hands of a replicate, T, at most 10^12.
    tuning : {"sharp", "paper"}, Tuning or sequence of Tuning
        A rule of :func:`equinoise.efb.tune`, or what it made for each player's tree and range of losses; one
        tuning alone where all players' are alike.
    epsilon, n_replicates, seed, mechanism, n_checkpoints, block, executor, progress, resume
        As of :func:`simulate`, with its errors and those of the game. Chance deals alike at every epsilon.

    References
    ----------
    .. [1] Freund and Schapire (1999), Adaptive game playing using multiplicative weights, Games and Economic
       Behavior 29, Section 2.5.

    Examples
    --------
    >>> run = self_play("kuhn_poker", horizon=100_000, epsilon=4, n_checkpoints=2)
    >>> run.exploitability.shape, run.regret.shape, bool(run.exploitability[0, -1] < 0.1)
    ((1, 2), (1, 2, 2), True)
    """
    trials = _checks.integer("horizon", horizon, 1, _checks.MOST_ROUNDS)
    budget = _checks.epsilon(epsilon)
    rule = _checks.choice("tuning", tuning, RULES) if isinstance(tuning, str) else None
    given = list(tuning) if isinstance(tuning, Sequence) and rule is None else [tuning]
    if rule is None and not all(isinstance(own, Tuning) for own in given):
        got = _checks.shown(tuning)
        raise TypeError(f"tuning must be a rule, a Tuning or one for each player, got {got}")
    sent = checked_mechanism(mechanism, rule)
    checkpoints = _results.checkpoints(trials, n_checkpoints)
    span = replicates.checked_span(n_replicates)
    key = stream_key(seed)
    joint = load_joint(game)
    trees, n_numbers = joint.trees, (1 + len(joint.trees)) * len(checkpoints)
    _results.check_memory(len(span), n_numbers + sum(tree.n_actions for tree in trees))
    given = given * len(trees) if isinstance(tuning, str | Tuning) else given
    if len(given) != len(trees):
        raise ValueError(f"tuning must be a rule or {len(trees)} tunings, one a player, got {len(given)}")
    learners, plans = [], []
    for i, (tree, own) in enumerate(zip(trees, given, strict=True)):
        try:
            made = checked_for(tree, own, (trials, budget, sent), joint.loss_range[i])
        except ValueError as error:
            raise ValueError(f"{error} (player {i})") from None
        learners.append(baselines.LEARNERS["dp-efb"].start(tree, made))
        plans.append(setup.make_plan(tree, made.exploration, made.radius))
    task = functools.partial(_run_block, _Match(joint, tuple(plans), tuple(learners), checkpoints, key))
    options: Any = {"block": block, "executor": executor, "progress": progress, "resume": resume}
    exploitability, regret, *average = replicates.run(task, span, work=trials, **options).values()
    what = tuple(average), tuple(learner.tuning for learner in learners), joint.name, budget
    return SelfPlayRun(checkpoints, exploitability, regret, *what, _checks.seed(seed), joint, span.start)


@kept_as("equinoise.efb.self_play._run_block")
def _run_block(match: _Match, start: int, stop: int) -> dict[str, Floats]:
    game, n = match.game, len(match.plans)
    setup.sealed(game.histories)
    shape = (stop - start, len(match.checkpoints))
    exploitability, regret = np.empty(shape), np.empty((*shape, n))
    plans = [np.empty((stop - start, tree.n_actions)) for tree in game.trees]
    for i in range(stop - start):
        players = tuple(_player(match, j, start + i) for j in range(n))
        # of two players the average plans tell it all
        ends = len(game.histories.reach) if n > 2 else 0
        table = np.zeros((2, n), dtype=np.int64), np.zeros(n), np.zeros((2, ends, n))
        source = setup.first_source(match.key, start + i)
        work = n * ends + sum(player.seat.visits.infoset.size for player in players)
        done = 0
        for c, end in enumerate(match.checkpoints.tolist()):
            for piece in pieces(done, end, work):
                hands.run_hands(game.histories, players, table, source, *piece)
            done = end
            for plan, player in zip(plans, players, strict=True):
                plan[i] = _average(player, done)
            average = [plan[i] for plan in plans]
            exploitability[i, c] = game.exploitability(average)
            for j in range(n):
                others = table[2][0, :, j] / done if ends else game.others(average, j)
                regret[i, c, j] = table[1][j] - done * game.response(j, others)[1]
    named = {f"plan_{j}": plan for j, plan in enumerate(plans)}
    return {"exploitability": exploitability, "regret": regret, **named}


def _player(match: _Match, number: int, replicate: int) -> hands.Player:
    tree, learner = match.game.trees[number], match.learners[number]
    own, visits = setup.derived_key(match.key, SEAT, number), setup.make_visits(tree)
    seat = setup.make_seat(tree, match.plans[number], visits, learner, own, replicate)
    (mixed, sums, scratch), two = np.zeros((3, tree.n_actions)), np.zeros((2, tree.n_infosets))
    if seat.code:
        mixed[:] = learner.tuning.exploration
    return hands.Player(seat, mixed, sums, two[0], scratch, two[1])


def _average(player: hands.Player, trials: int) -> Floats:
    """Return the average plan so far, and leave the player as it is."""
    sums, waiting = player.sums.copy(), player.waiting.copy()
    hands.settle_all(player.seat, sums, waiting)
    return (1.0 - player.seat.explore) * sums / trials + player.mixed


# Several runs side by side.
_TOLD = ("game", "learner", "mechanism", "tuning", "epsilon", "horizon", "seed")
Run = EfbRun | SelfPlayRun


def compare(runs: Sequence[Run] | Mapping[str, Run]) -> DataFrame:
    """Return the frames of several runs as one, whose first column ``run`` names each.

    Runs of the same seed, horizon and game face the same random draws. For one figure,
    ``for run in runs: ax = run.plot(ax)`` from ``ax = None`` on.

    Parameters
    ----------
    runs : sequence of EfbRun or of SelfPlayRun, or mapping from names to them
        Without names a run is called by what not all have in common of game, learner, mechanism, tuning,
        epsilon, horizon and seed, else by its number. TypeError or ValueError for anything else.

    Examples
    --------
    >>> from equinoise.efb import simulate
    >>> from equinoise.games import load
    >>> runs = [simulate(*load("bandit(3)"), horizon=10, epsilon=epsilon) for epsilon in (1, 4)]
    >>> compare(runs)["run"].unique().tolist()
    ['epsilon 1', 'epsilon 4']
    """
    import pandas as pd

    given = list(runs.values()) if isinstance(runs, Mapping) else runs
    if not isinstance(given, Sequence) or not all(isinstance(run, Run) for run in given):
        raise TypeError(f"runs must be those of simulate or of self_play, got {_checks.shown(runs)}")
    if len({type(run) for run in given}) != 1:
        raise ValueError(f"runs must be some of one kind, got {_checks.shown(given)}")
    frames = [run.to_frame() for run in given]
    names = list(runs) if isinstance(runs, Mapping) else _names(frames)
    for name, frame in zip(names, frames, strict=True):
        frame.insert(0, "run", name)
    first = frames[0].attrs
    same = {str(key): x for key, x in first.items() if all(frame.attrs[key] == x for frame in frames)}
    return _results.made_by(pd.concat(frames, ignore_index=True), **same)


def _names(frames: Sequence[DataFrame]) -> list[str]:
    """Call each run by what not all have in common, from the last row of its frame."""
    rows: list[Any] = [{**row, "horizon": row["trials"]} for row in (frame.iloc[-1] for frame in frames)]
    own = [key for key in _TOLD if key in rows[0] and len({row[key] for row in rows}) > 1]
    words = [", ".join(f"{k} {row[k]:g}" if k == "epsilon" else f"{k} {row[k]}" for k in own) for row in rows]
    if own and len(set(words)) == len(words):
        return words
    return [f"{i} {word}".strip() for i, word in enumerate(words)]
