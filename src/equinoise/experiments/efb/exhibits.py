"""DP-EFB on real games: regret beside its bound, over epsilon, beside other learners, and how it grows.

The paper publishes a bound and no experiment, so the bound is what stands beside our figures.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial

from equinoise import efb, games
from equinoise.experiments.efb import growth, views
from equinoise.experiments.efb.views import FREE, IXOMD, UNIFORM, Cell, Runs, Study
from equinoise.experiments.steps import SECTIONS, Progress, Settings, Step
from equinoise.report.exhibit import Exhibit, Table, comparison

__all__ = ["STUDIES", "cells", "steps", "study"]

_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_KUHN = ("efb-kuhn", "Kuhn poker: what privacy costs", "kuhn_poker")
_LEDUC = ("efb-leduc", "Leduc poker: a larger game", "leduc_poker")
STUDIES = {
    "quick": (
        Study(*_KUHN, 200_000, 8, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
        Study(*_LEDUC, 100_000, 4, (1.0, 4.0, 16.0), (4.0,), (), 4.0),
    ),
    "full": (
        Study(*_KUHN, 1_000_000, 32, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
        Study(*_LEDUC, 1_000_000, 8, (1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 4.0, 16.0), (), 4.0),
    ),
}
_SECONDS = {"efb-kuhn": (5.0, 90.0), "efb-leduc": (6.0, 150.0)}


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar at the settings' scale."""
    plan = [
        Step(made.name, "efb", made.title, partial(study, made), _SECONDS[made.name][settings.full])
        for made in STUDIES[settings.scale]
    ]
    return [*plan, *growth.steps(settings)]


def cells(study: Study) -> list[Cell]:
    """Return the runs of a study."""
    return [
        *(Cell("dp-efb", "sharp", epsilon) for epsilon in study.sharp),
        *(Cell("dp-efb", "paper", epsilon) for epsilon in study.paper),
        *(Cell("flat-exp3", "sharp", epsilon) for epsilon in study.flat),
        FREE,
        IXOMD,
        UNIFORM,
    ]


def study(study: Study, settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
    """Run one game's learners on the same luck, and show regret against bound.

    Parameters
    ----------
    study : Study
    settings : Settings
    executor : concurrent.futures.Executor or None
        Where replicates run.
    progress : callable
        Takes the share that is done.

    Returns
    -------
    Exhibit
    """
    tree, environment = games.load(study.game)
    runs: Runs = {}
    plan = cells(study)
    for i, cell in enumerate(plan, 1):
        runs[cell] = efb.simulate(
            tree,
            environment,
            horizon=study.trials,
            epsilon=cell.epsilon,
            n_replicates=study.replicates,
            seed=settings.seed,
            tuning=cell.tuning or "sharp",
            learner=cell.learner,
            executor=executor,
            resume=settings.kept(study.name, cell=tuple(cell), trials=study.trials),
        )
        progress(i / len(plan))
    return Exhibit(
        name=study.name,
        section=SECTIONS["efb"],
        title=study.title,
        question=f"How much regret does a server have after {study.trials:,} users, when each report is "
        "private?",
        headline=_headline(study, runs),
        text=_text(study, tree, environment, runs),
        tables={
            "regret": Table(
                f"Regret after {study.trials:,} trials, mean of {study.replicates} replicates with its 95% "
                "interval, and the bound that is proven for the mean",
                views.regret_frame(runs),
            ),
            "theory": Table(
                "What theory says and what came out; the published figures are bounds",
                comparison(views.claims(study, runs)),
            ),
        },
        figures={
            "curve": views.curve_picture(study, runs),
            "epsilons": views.epsilon_picture(study, runs),
        },
    )


def _headline(study: Study, runs: Runs) -> str:
    private = runs[Cell("dp-efb", "sharp", study.shown)]
    mean, free, uniform = (views.final(run)[0] for run in (private, runs[FREE], runs[UNIFORM]))
    share = f"{mean / private.regret_bound:.0%} of its bound"
    if private.regret_bound >= study.trials:
        share = "a bound says nothing yet"
    return (
        f"At epsilon {study.shown:g} the regret is {mean:,.0f} ({share}); "
        f"{free:,.0f} without privacy, {uniform:,.0f} for uniform play."
    )


def _text(study: Study, tree: games.GameTree, environment: games.Environment, runs: Runs) -> tuple[str, ...]:
    best = environment.best_response()[0]
    within = sum(views.final(run)[0] <= run.regret_bound for cell, run in runs.items() if cell != UNIFORM)
    played = len(runs) - 1
    return (
        f"The first player of {study.game} learns against opponents who play uniformly: {tree.n_infosets:,} "
        f"infosets, {tree.n_actions:,} actions, ln S = {tree.log_n_strategies:.1f}. The best strategy loses "
        f"{best:.4f} a trial, uniform play {environment.expected_loss(tree.uniform_policy()):.4f}, on a "
        "scale from 0 to 1.",
        "All learners but flat-exp3 meet the same luck. Without privacy (epsilon infinite) stand the same "
        "learner and IXOMD (Kozuno and others, 2021); flat-exp3 (Tossou and Dimitrakakis, 2017) is private "
        "and learns over whole strategies, which only a small game allows.",
        f"In {within} of {played} runs the mean regret is below the bound. A bound above one a trial says "
        "nothing yet; the last column says after how many trials it will.",
        "Why ours differs from what was published: the paper prints a bound and no experiment. " + views.KIND,
    )
