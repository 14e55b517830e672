"""Locally private play in one game, with the same learner without privacy and uniform play."""

import math
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from equinoise import _checks, _files, _results, efb, games, replicates
from equinoise._typing import Any, DataFrame
from equinoise.efb.tuning import RULES, checked_mechanism
from equinoise.experiments.commands import common
from equinoise.experiments.steps import SECTIONS
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, Picture, Table, joined

_MOST_PARTS = 1_000_000  # of a schedule


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made; the names are those of the command's options.

    `opponents` is "uniform" or a JSON file of a policy, as :meth:`equinoise.games.Policy.to_dict` gives it;
    `schedule` is of texts ``TRIALS:OPPONENTS``, one after the other again and again, in place of it.
    """

    game: str
    player: int | str = 0
    epsilon: float | tuple[float, ...] = 4.0
    learner: str = "dp-efb"
    opponents: str = "uniform"
    schedule: tuple[str, ...] = ()
    trials: int = 200_000
    replicates: int | range = 8  # a range is a slice of a run
    mechanism: str = "hashing"
    tuning: str = "sharp"
    seed: int = 0
    checkpoints: int = 50
    recall: str = "check"
    max_histories: int | None = None  # that of :func:`equinoise.games.load`

    def __post_init__(self) -> None:
        for epsilon in self.epsilons:
            _checks.epsilon(epsilon)
        if len({f"{epsilon:g}" for epsilon in self.epsilons}) < max(1, len(self.epsilons)):
            raise ValueError(f"epsilon must be values that differ, got {_checks.shown(self.epsilons)}")
        _checks.choice("learner", self.learner, efb.LEARNERS)
        trials = _checks.integer("trials", self.trials, 1, _checks.MOST_ROUNDS)
        _results.check_work(len(replicates.checked_span(self.replicates)), trials)
        _checks.integer("checkpoints", self.checkpoints, 1, _results.MOST_CHECKPOINTS)
        if self.schedule and self.opponents != "uniform":
            raise ValueError(f"schedule must be in place of opponents={self.opponents!r}, not beside it")
        _checks.integer("seed", self.seed, minimum=0)
        checked_mechanism(self.mechanism, _checks.choice("tuning", self.tuning, RULES))

    @property
    def n_replicates(self) -> int:
        """How many replicates are run."""
        return len(replicates.checked_span(self.replicates))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """One epsilon or more."""
        return self.epsilon if isinstance(self.epsilon, tuple) else (self.epsilon,)

    @property
    def names(self) -> dict[str, float]:
        """What the runs of the learner are called, with their epsilons."""
        private = [epsilon for epsilon in self.epsilons if math.isfinite(epsilon)]
        alone = len(private) == 1
        return {"private" if alone else f"epsilon {e:g}": e for e in private} | {"no privacy": math.inf}


def prepare(parameters: Parameters) -> tuple[games.GameTree, games.Environment | games.Schedule]:
    """Load the game and begin to play, so that what is wrong with the parameters shows before any work."""
    options: dict[str, Any] = {"recall": parameters.recall}
    if parameters.max_histories is not None:
        options["max_histories"] = parameters.max_histories
    entries = [_entry(text) for text in parameters.schedule]
    players = [who for _, who in entries] or [_others("opponents", parameters.opponents)]
    loaded = [games.load(parameters.game, parameters.player, who, **options) for who in players]
    tree, environment = loaded[0]
    for epsilon in parameters.epsilons:
        efb.simulate(tree, environment, horizon=1, epsilon=epsilon, **_how(parameters))
    kept = 2 * min(parameters.checkpoints, parameters.trials) + tree.n_actions
    _results.check_memory(parameters.n_replicates, kept)
    if not entries:
        return tree, environment
    parts = zip(loaded, entries, strict=True)
    once = games.Schedule(tuple((each, trials) for (_, each), (trials, _) in parts))
    rounds = -(-parameters.trials // once.total)
    if (n := rounds * len(entries)) > _MOST_PARTS:
        raise ValueError(f"schedule must have at most {_MOST_PARTS:,} parts in all trials, has {n:,}")
    return tree, games.Schedule(once.entries * rounds)


def _how(parameters: Parameters) -> dict[str, Any]:
    """Return what all runs share."""
    return {name: getattr(parameters, name) for name in ("learner", "seed", "tuning", "mechanism")}


def _entry(text: str) -> tuple[int, Any]:
    """Return trials and opponents of ``TRIALS:OPPONENTS``."""
    trials, _, opponents = text.partition(":")
    if not trials.isdecimal() or not opponents:
        raise ValueError(f"schedule must be of TRIALS:OPPONENTS, such as 1000:uniform, got {text!r}")
    return _checks.integer("schedule", int(trials), 1, _checks.MOST_ROUNDS), _others("schedule", opponents)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what an object of JSON holds; ValueError where a name has two values, or one would be lost."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("it names an infoset or an action twice")
    return found


def _others(name: str, opponents: str) -> Any:
    """Return 'uniform', or the policy that a JSON file holds."""
    if opponents == "uniform":
        return opponents
    try:
        found = _files.json_of(_files.content(Path(opponents), pipe=True), object_pairs_hook=_once)
        if not isinstance(found, dict):
            raise ValueError("it must hold {INFOSET: {ACTION: PROBABILITY}}")
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} must be 'uniform' or a JSON file, got {opponents!r}: {error}") from None
    return found


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs that faced the same random draws, by name, and the seconds that they took together.

    First the learner at each finite epsilon ("private" where it is one), then "no privacy", the same without
    noise, and "uniform", uniform play.
    """

    parameters: Parameters
    tree: games.GameTree
    environment: games.Environment | games.Schedule
    runs: dict[str, efb.EfbRun]
    seconds: float

    def to_frame(self) -> DataFrame:
        """Return learner, trials, mean, stderr, ci_low, ci_high of the regret, and its proven bound."""
        frame = joined(run.summary().assign(learner=name) for name, run in self.runs.items())
        return frame[["learner", "trials", "mean", "stderr", "ci_low", "ci_high", "bound"]]

    def rows(self, n: int = 10) -> list[dict[str, Any]]:
        """Return ``trials`` and the regret of each run with its bound at about `n` checkpoints."""
        trials = self.runs["uniform"].trials
        kept = _results.checkpoints(len(trials), n) - 1
        table: list[dict[str, Any]] = [{"trials": int(trials[c])} for c in kept]
        for name, run in self.runs.items():
            found = {**_results.summarise(run.regret)._asdict(), "bound": run.tuning.bound(run.trials)}
            for row, c in zip(table, kept, strict=True):
                row[name] = common.finite({key: float(array[c]) for key, array in found.items()})
        return table

    @cached_property
    def exhibit(self) -> Exhibit:
        """What is shown: regret at all checkpoints, as a table and as curves."""
        parameters, tree, first = self.parameters, self.tree, next(iter(self.runs.values()))
        noise = first.summary()["mechanism"][0]
        title = f"{parameters.game}, player {parameters.player}"
        means = [f"{run.regret[:, -1].mean():,.0f}" for run in self.runs.values()]
        text = (
            f"{title}: {tree.n_infosets:,} infosets, {tree.n_actions:,} actions, ln S = "
            f"{tree.log_n_strategies:.1f}; {parameters.n_replicates} replicates, seed {parameters.seed}",
            f"Learner {first.learner}, mechanism {noise}, tuning {first.tuning.rule}: a user sends at most "
            f"{first.bytes_a_report:,} bytes.",
            f"For {parameters.trials:,} trials no bound is proven below the trivial regret of 1 per trial.",
        )
        pairs = list(zip(means, parameters.names.values(), strict=False))
        said = [f"{x} without privacy" if math.isinf(e) else f"{x} at epsilon {e:g}" for x, e in pairs]
        found = f"{', '.join(said)} and {means[-1]} for uniform play"
        headline = f"After {parameters.trials:,} trials the regret is {found}."
        series = [(run.label, run) for run in self.runs.values()]
        drawn = common.titled(lambda ax: figures.regret_curve(ax, series), title)
        return Exhibit(
            name="efb",
            section=SECTIONS["efb"],
            title=title,
            question="How much regret does a learner have whose reports are private?",
            headline=headline,
            text=text if first.regret_bound >= parameters.trials else text[:2],
            tables={"regret": Table("Regret by learner and trials, and its proven bound", self.to_frame())},
            figures={"regret": Picture("Regret over trials", headline, drawn)},
        )

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the game, and the table."""
        game, runs = common.sizes(self.tree, self.environment), list(self.runs.values())
        asked = [next(run for run in runs if run.epsilon == e) for e in self.parameters.epsilons]
        names = "regret_bound", "learning_rate", "symbols", "bytes_a_report"
        facts = [(r.regret_bound, r.tuning.learning_rate, r.tuning.symbols, r.bytes_a_report) for r in asked]
        parts: Any = dict(zip(names, facts[0] if len(facts) == 1 else zip(*facts, strict=True), strict=True))
        return common.document("efb", self.parameters, self.seconds, game=game, **parts, regret=self.rows())

    def files(self) -> dict[str, bytes]:
        """Return ``regret.csv`` (all checkpoints), ``regret.png`` and ``run.json`` as bytes."""
        return common.files(self.exhibit, self.document())


def compare(
    tree: games.GameTree,
    environment: games.Environment | games.Schedule,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    resume: Path | None = None,
) -> Comparison:
    """Run the learner at every epsilon, without privacy, and uniform play, on the same random draws.

    The game is as :func:`prepare` returns it; `progress` shows a bar for each run, and `resume` is a folder
    with one of its own for the blocks of each.
    """
    begun = time.perf_counter()
    runs: dict[str, dict[str, Any]] = {name: {"epsilon": e} for name, e in parameters.names.items()}
    runs["uniform"] = {"epsilon": math.inf, "learner": "uniform"}
    bars = {"private": f"epsilon {parameters.epsilons[0]:g}", "uniform": "uniform play"}
    same: dict[str, Any] = {"horizon": parameters.trials, "n_replicates": parameters.replicates}
    same |= {"n_checkpoints": parameters.checkpoints, "executor": executor, **_how(parameters)}
    made = {}
    for name, own in runs.items():
        own |= {"progress": progress and bars.get(name, name), "resume": resume and resume / name}
        made[name] = efb.simulate(tree, environment, **(same | own))
    return Comparison(parameters, tree, environment, made, time.perf_counter() - begun)
