"""Locally private play in one game, with the same learner without privacy and uniform play."""

import math
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property

from equinoise import _checks, _results, efb, games
from equinoise._typing import Any, DataFrame
from equinoise.efb.tuning import RULES, checked_mechanism
from equinoise.experiments.commands import common
from equinoise.experiments.steps import SECTIONS
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, Picture, Table


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made; the names are those of the command's options."""

    game: str
    player: int | str = 0
    epsilon: float = 4.0
    trials: int = 200_000
    replicates: int = 8
    mechanism: str = "hashing"
    tuning: str = "sharp"
    seed: int = 0
    checkpoints: int = 50
    recall: str = "check"
    max_histories: int | None = None  # that of :func:`equinoise.games.load`

    def __post_init__(self) -> None:
        _checks.epsilon(self.epsilon)
        for name in ("trials", "replicates", "checkpoints"):
            _checks.integer(name, getattr(self, name), minimum=1)
        _checks.integer("seed", self.seed, minimum=0)
        checked_mechanism(self.mechanism, _checks.choice("tuning", self.tuning, RULES))


def prepare(parameters: Parameters) -> tuple[games.GameTree, games.Environment]:
    """Load the game and tune once, so that whatever is wrong with the parameters shows before any work."""
    limit = {} if parameters.max_histories is None else {"max_histories": parameters.max_histories}
    tree, environment = games.load(parameters.game, parameters.player, recall=parameters.recall, **limit)
    efb.tune(tree, parameters.trials, parameters.epsilon, parameters.tuning, parameters.mechanism)
    return tree, environment


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three runs that faced the same random draws, and the seconds that they took together.

    Of the runs, "private" is DP-EFB at epsilon, "no privacy" the same without noise, "uniform" uniform play.
    """

    parameters: Parameters
    tree: games.GameTree
    environment: games.Environment
    runs: dict[str, efb.EfbRun]
    seconds: float

    def to_frame(self) -> DataFrame:
        """Return learner, trials, mean, stderr, ci_low, ci_high of the regret, and its proven bound."""
        import pandas as pd

        parts = [run.summary().assign(learner=name) for name, run in self.runs.items()]
        frame = pd.concat(parts, ignore_index=True)
        return frame[["learner", "trials", "mean", "stderr", "ci_low", "ci_high", "bound"]]

    def rows(self, n: int = 10) -> list[dict[str, Any]]:
        """Return ``trials`` and the regret of each run with its bound at about `n` checkpoints."""
        trials = self.runs["private"].trials
        kept = _results.checkpoints(len(trials), n) - 1
        table: list[dict[str, Any]] = [{"trials": int(trials[c])} for c in kept]
        for name, run in self.runs.items():
            estimate, bound = _results.summarise(run.regret)._asdict(), run.tuning.bound(run.trials)
            for row, c in zip(table, kept, strict=True):
                found = {key: float(array[c]) for key, array in {**estimate, "bound": bound}.items()}
                row[name] = {key: value if math.isfinite(value) else None for key, value in found.items()}
        return table

    @cached_property
    def exhibit(self) -> Exhibit:
        """What is shown: regret at all checkpoints, as a table and as curves."""
        parameters, tree, private = self.parameters, self.tree, self.runs["private"]
        title = f"{parameters.game}, player {parameters.player}"
        means = [f"{run.regret[:, -1].mean():,.0f}" for run in self.runs.values()]
        text = (
            f"{title}: {tree.n_infosets:,} infosets, {tree.n_actions:,} actions, ln S = "
            f"{tree.log_n_strategies:.1f}; {parameters.replicates} replicates, seed {parameters.seed}",
            f"Mechanism {parameters.mechanism}, tuning {parameters.tuning}: a user sends at most "
            f"{private.bytes_a_report:,} bytes.",
            f"For {parameters.trials:,} trials no bound is proven below the trivial regret of 1 per trial.",
        )
        headline = (
            f"After {parameters.trials:,} trials the regret is {means[0]} at epsilon "
            f"{parameters.epsilon:g}, {means[1]} without privacy and {means[2]} for uniform play."
        )
        series = [(run.label, run) for run in self.runs.values()]
        drawn = common.titled(lambda ax: figures.regret_curve(ax, series), title)
        return Exhibit(
            name="efb",
            section=SECTIONS["efb"],
            title=title,
            question="How much regret does a learner have whose reports are private?",
            headline=headline,
            text=text if private.regret_bound >= parameters.trials else text[:2],
            tables={"regret": Table("Regret by learner and trials, and its proven bound", self.to_frame())},
            figures={"regret": Picture("Regret over trials", headline, drawn)},
        )

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the game, and the table."""
        game, private = common.sizes(self.tree, self.environment), self.runs["private"]
        parts: Any = {"regret_bound": private.regret_bound, "learning_rate": private.tuning.learning_rate}
        parts |= {"symbols": private.tuning.symbols, "bytes_a_report": private.bytes_a_report}
        return common.document("efb", self.parameters, self.seconds, game=game, **parts, regret=self.rows())

    def files(self) -> dict[str, bytes]:
        """Return ``regret.csv`` (all checkpoints), ``regret.png`` and ``run.json`` as bytes."""
        return common.files(self.exhibit, self.document())


def compare(
    tree: games.GameTree,
    environment: games.Environment,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
) -> Comparison:
    """Run the private learner, the same without privacy, and uniform play, on the same random draws.

    The game is as :func:`prepare` returns it; `progress` shows a bar for each run.
    """
    begun = time.perf_counter()
    learners = {
        "private": ("dp-efb", parameters.epsilon, f"epsilon {parameters.epsilon:g}"),
        "no privacy": ("dp-efb", math.inf, "no privacy"),
        "uniform": ("uniform", math.inf, "uniform play"),
    }
    same: dict[str, Any] = {"horizon": parameters.trials, "n_replicates": parameters.replicates}
    same |= {"n_checkpoints": parameters.checkpoints, "executor": executor}
    same |= {name: getattr(parameters, name) for name in ("seed", "tuning", "mechanism")}
    runs = {
        name: efb.simulate(
            tree, environment, epsilon=epsilon, learner=learner, progress=progress and bar, **same
        )
        for name, (learner, epsilon, bar) in learners.items()
    }
    return Comparison(parameters, tree, environment, runs, time.perf_counter() - begun)
