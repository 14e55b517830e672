"""Locally private play in one game, beside the same learner without privacy and beside uniform play."""

from __future__ import annotations

import io
import math
import time
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import _checks, _files, _results, efb, games
from equinoise.report import figures

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Parameters", "compare", "prepare"]


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made.

    Attributes
    ----------
    game : str
        As :func:`equinoise.games.load` takes it.
    player : int or str
        The learner: a number from 0, or a label.
    epsilon : float
        Local privacy of a report, positive.
    trials : int
        Trials of a replicate.
    replicates : int
        At least 2 give an interval.
    tuning : {"sharp", "paper"}
        See :func:`equinoise.efb.tune`.
    seed : int
        The same seed gives the same bits.
    checkpoints : int
        Trial counts at which the regret is kept, at most.
    recall : {"check", "refine"}
        What to do with an infoset at which the learner has forgotten its own past.
    max_histories : int or None
        Give up on a game with more nodes; None for the loader's own limit.
    """

    game: str
    player: int | str = 0
    epsilon: float = 4.0
    trials: int = 200_000
    replicates: int = 8
    tuning: str = "sharp"
    seed: int = 0
    checkpoints: int = 50
    recall: str = "check"
    max_histories: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.game, str):
            raise TypeError(f"game must be a name or the path of a file, got {_checks.shown(self.game)}")
        _checks.epsilon(self.epsilon)
        for name in ("trials", "replicates", "checkpoints"):
            _checks.integer(name, getattr(self, name), minimum=1)
        _checks.integer("seed", self.seed, minimum=0)
        _checks.choice("tuning", self.tuning, ("sharp", "paper"))
        _checks.choice("recall", self.recall, ("check", "refine"))


def prepare(parameters: Parameters) -> tuple[games.GameTree, games.Environment]:
    """Load the game and tune once, so that whatever is wrong with the parameters shows before any work.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As :func:`equinoise.games.load` and :func:`equinoise.efb.tune` raise them.
    ImportError
        If the game needs a package that is not installed.
    """
    limit = {} if parameters.max_histories is None else {"max_histories": parameters.max_histories}
    tree, environment = games.load(parameters.game, parameters.player, recall=parameters.recall, **limit)
    efb.tune(tree, parameters.trials, parameters.epsilon, parameters.tuning)
    return tree, environment


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three runs that met the same luck.

    Attributes
    ----------
    parameters : Parameters
    tree : GameTree
    environment : Environment
    private, noiseless, uniform : EfbRun
        DP-EFB at epsilon, DP-EFB without noise, uniform play.
    seconds : float
        How long the three took.
    """

    parameters: Parameters
    tree: games.GameTree
    environment: games.Environment
    private: efb.EfbRun
    noiseless: efb.EfbRun
    uniform: efb.EfbRun
    seconds: float

    @property
    def runs(self) -> dict[str, efb.EfbRun]:
        """The three runs by what they are called in files and tables."""
        return {"private": self.private, "no privacy": self.noiseless, "uniform": self.uniform}

    def to_frame(self) -> pd.DataFrame:
        """Return learner, trials, mean, stderr, ci_low, ci_high of the regret, and its proven bound."""
        import pandas as pd

        parts = [run.summary().assign(learner=name) for name, run in self.runs.items()]
        frame = pd.concat(parts, ignore_index=True)
        return frame[["learner", "trials", "mean", "stderr", "ci_low", "ci_high", "bound"]]

    def rows(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the regret at about `n` checkpoints.

        Parameters
        ----------
        n : int
            Rows, at most; the last is at the horizon.

        Returns
        -------
        list of dict
            ``trials``, and for each run a dict of ``mean``, ``stderr``, ``ci_low``, ``ci_high`` (None where
            one replicate gives none) and ``bound``.
        """
        count = len(self.private.trials)
        kept = sorted({(i + 1) * count // min(n, count) - 1 for i in range(min(n, count))})
        table: list[dict[str, Any]] = [{"trials": int(self.private.trials[c])} for c in kept]
        for name, run in self.runs.items():
            estimate, bound = _results.summarise(run.regret)._asdict(), run.tuning.bound(run.trials)
            for row, c in zip(table, kept, strict=True):
                row[name] = {key: _finite(array[c]) for key, array in {**estimate, "bound": bound}.items()}
        return table

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the game, and the table."""
        _, best = self.environment.best_response()
        uniform = np.repeat(1.0 / np.diff(self.tree.action_ptr), np.diff(self.tree.action_ptr))
        return {
            "experiment": "efb",
            **_results.provenance(asdict(self.parameters), seed=self.parameters.seed, seconds=self.seconds),
            "game": {
                "infosets": self.tree.n_infosets,
                "actions": self.tree.n_actions,
                "depth": self.tree.depth,
                "log_n_strategies": self.tree.log_n_strategies,
                "loss_of_best_strategy": self.environment.expected_loss(best),
                "loss_of_uniform_play": self.environment.expected_loss(uniform),
            },
            "regret_bound": self.private.regret_bound,
            "learning_rate": self.private.tuning.learning_rate,
            "regret": self.rows(),
        }

    def files(self) -> dict[str, bytes]:
        """Return ``regret.csv`` (all checkpoints), ``regret.png`` and ``run.json`` as bytes."""
        figure = figures.figure()
        axes = figures.regret_curve(figure.subplots(), [(run.label, run) for run in self.runs.values()])
        title = f"{self.parameters.game}, player {self.parameters.player}"
        axes.set_title(figures.printable(title), fontsize="medium")
        table = io.StringIO()
        self.to_frame().to_csv(table, index=False, lineterminator="\n")
        return {
            "regret.csv": table.getvalue().encode(),
            "regret.png": figures.png(figure),
            "run.json": _files.json_bytes(self.document()),
        }


def compare(
    tree: games.GameTree,
    environment: games.Environment,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
) -> Comparison:
    """Run the private learner, the same without privacy, and uniform play, on the same luck.

    Parameters
    ----------
    tree : GameTree
    environment : Environment
        As :func:`prepare` returns them.
    parameters : Parameters
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range, before any work.

    Examples
    --------
    >>> parameters = Parameters("kuhn_poker", epsilon=4, trials=2000, replicates=2)
    >>> made = compare(*prepare(parameters), parameters)
    >>> [row["trials"] for row in made.rows(4)]
    [480, 1000, 1480, 2000]
    """
    begun = time.perf_counter()
    shared = (tree, environment, parameters, executor)
    private = _simulate(*shared, progress and f"epsilon {parameters.epsilon:g}", epsilon=parameters.epsilon)
    noiseless = _simulate(*shared, progress and "no privacy", epsilon=math.inf)
    uniform = _simulate(*shared, progress and "uniform play", epsilon=math.inf, learner="uniform")
    seconds = time.perf_counter() - begun
    return Comparison(parameters, tree, environment, private, noiseless, uniform, seconds)


def _simulate(
    tree: games.GameTree,
    environment: games.Environment,
    parameters: Parameters,
    executor: Executor | None,
    progress: Any,
    *,
    epsilon: float,
    learner: str = "dp-efb",
) -> efb.EfbRun:
    return efb.simulate(
        tree,
        environment,
        horizon=parameters.trials,
        epsilon=epsilon,
        n_replicates=parameters.replicates,
        seed=parameters.seed,
        tuning=parameters.tuning,
        learner=learner,
        n_checkpoints=parameters.checkpoints,
        executor=executor,
        progress=progress,
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
