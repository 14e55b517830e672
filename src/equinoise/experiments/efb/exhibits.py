"""The experiments of the DP-EFB paper, a row each at the end. It publishes a bound and no experiment."""

import math
from functools import partial

import numpy as np

from equinoise import _results, efb, games
from equinoise._typing import Any, Axes, DataFrame, Floats, Iterator, NamedTuple, Sequence
from equinoise.experiments.steps import Experiment, Job, Settings, Step, gather
from equinoise.report import figures
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison, frame_of
from equinoise.report.figures import Curve, column, curves

_KIND = "A bound holds for the worst environment; an opponent who plays uniformly is far from it."
_FIT = "A fit to few horizons; early trials, in which nothing is learned yet, make it larger."
_SHARPER = "The sharp tuning needs no logarithm of the horizon: it bounds the noise by its moments."
_SYMBOL = "One symbol in place of a noised loss for each action: less noise, so a smaller bound is proven."


class Study(NamedTuple):
    """One game, and how large its runs are; player 0 learns, the others play uniformly."""

    game: str
    trials: int
    replicates: int
    sharp: tuple[float, ...]  # epsilons of DP-EFB with the sharp tuning, one symbol or noised losses,
    paper: tuple[float, ...]  # with the paper's tuning,
    flat: tuple[float, ...]  # and of flat-exp3
    shown: float  # that of the regret curves, one of `sharp`


class Cell(NamedTuple):
    """One run of a study: a learner at an epsilon, with a mechanism and a tuning or none."""

    learner: str
    mechanism: str
    tuning: str
    epsilon: float


FREE = Cell("dp-efb", "", "sharp", math.inf)
IXOMD = Cell("ixomd", "", "", math.inf)
UNIFORM = Cell("uniform", "", "", math.inf)
_PAPER = "dp-efb", "laplace", "paper"
_NOISED = "dp-efb", "laplace", "sharp"
_ONE_SYMBOL = "dp-efb", "hashing", "sharp"
Runs = dict[Cell, efb.EfbRun]


def cells(study: Study) -> list[Cell]:
    """Return the runs of a study."""
    return [*(cell for line in _lines(study).values() for cell in line), FREE, IXOMD, UNIFORM]


def _lines(study: Study) -> dict[str, list[Cell]]:
    return {
        "as published": [Cell(*_PAPER, epsilon) for epsilon in study.paper],
        "noised losses": [Cell(*_NOISED, epsilon) for epsilon in study.sharp],
        "one symbol": [Cell(*_ONE_SYMBOL, epsilon) for epsilon in study.sharp],
        "flat-exp3": [Cell("flat-exp3", "laplace", "sharp", epsilon) for epsilon in study.flat],
    }


def study(job: Job) -> Exhibit:
    """Run one game's learners on the same random draws, and show regret against bound.

    The papers of the baselines are named in :data:`equinoise.efb.LEARNERS`, the bounds' at :func:`efb.tune`.
    """
    study: Study = job.size
    tree, environment = games.load(study.game)
    plan = {cell: {name: value for name, value in cell._asdict().items() if value} for cell in cells(study)}
    simulate = partial(efb.simulate, tree, environment, mechanism="hashing", tuning="sharp")
    runs = gather(simulate, plan, study.replicates, job.running, horizon=study.trials)
    game = job.row.title.partition(":")[0]
    caption = f"Regret of {study.replicates} replicates, with 95% intervals and proven bounds"
    theory = Table("Published bounds, and what came out", comparison(_claims(study, runs)))
    return job.row.exhibit(
        question=f"How much regret has a server after {study.trials:,} users, whose reports are private?",
        headline=_headline(study, runs),
        text=_text(study, tree, environment, runs),
        tables={"regret": Table(caption, _frame(runs)), "theory": theory},
        figures={"curve": _curve_picture(game, study, runs), "epsilons": _epsilon_picture(game, study, runs)},
    )


def _final(run: efb.EfbRun) -> tuple[float, float, float]:
    mean, _, low, high = map(float, _results.summarise(run.regret[:, -1]))
    return mean, low, high


def _frame(runs: Runs) -> DataFrame:
    rows = []
    for cell, run in runs.items():
        (mean, low, high), horizon, tuning = _final(run), int(run.trials[-1]), run.tuning
        bound = informative = math.nan  # until then the bound exceeds 1 per trial, however long the horizon
        if cell != UNIFORM:
            whole = tuning.start_cost / tuning.learning_rate + tuning.slope * horizon + tuning.offset
            bound, informative = run.regret_bound, whole**2 / horizon
        own = (cell.learner, cell.mechanism or None, cell.tuning or None, cell.epsilon, run.bytes_a_report)
        rows.append((*own, mean, low, high, bound, mean / bound, informative))
    names = "learner mechanism tuning epsilon bytes regret ci_low ci_high bound regret_to_bound"
    return frame_of(rows, [*names.split(), "bound_informative_from_trial"])


def _claims(study: Study, runs: Runs) -> Iterator[Claim]:
    """Yield the published bound with our regret, and with the bounds of noised losses and of one symbol."""
    for epsilon in study.paper:
        run = runs[Cell(*_PAPER, epsilon)]
        yield Claim(f"regret, as published, epsilon {epsilon:g}", run.regret_bound, _final(run)[0], _KIND)
    for name, cell, why in (("noised losses", _NOISED, _SHARPER), ("one symbol", _ONE_SYMBOL, _SYMBOL)):
        for epsilon in study.paper:
            published, ours = (runs[Cell(*each, epsilon)].regret_bound for each in (_PAPER, cell))
            yield Claim(f"bound, {name}, epsilon {epsilon:g}", published, ours, why)


def _headline(study: Study, runs: Runs) -> str:
    private, noised = runs[Cell(*_ONE_SYMBOL, study.shown)], runs[Cell(*_NOISED, study.shown)]
    mean, free, uniform = (_final(run)[0] for run in (private, runs[FREE], runs[UNIFORM]))
    share = f"{mean / private.regret_bound:.0%} of its bound"
    if private.regret_bound >= study.trials:
        share = "the bound still exceeds the trivial regret of 1 per trial"
    return (
        f"With one symbol a user the regret at epsilon {study.shown:g} is {mean:,.0f} ({share}), with noised "
        f"losses {_final(noised)[0]:,.0f}; {free:,.0f} without privacy, {uniform:,.0f} for uniform play."
    )


def _text(study: Study, tree: games.GameTree, environment: games.Environment, runs: Runs) -> tuple[str, ...]:
    best = environment.best_response()[0]
    within = sum(_final(run)[0] <= run.regret_bound for cell, run in runs.items() if cell != UNIFORM)
    return (
        f"The first player of {study.game} learns against uniform play: {tree.n_infosets:,} infosets, "
        f"{tree.n_actions:,} actions, ln S = {tree.log_n_strategies:.1f}. The best strategy loses {best:.4f} "
        f"per trial, uniform play {environment.expected_loss(tree.uniform_policy()):.4f}, on a scale to 1.",
        "Three ways to learn from private reports: as published, with a noised loss for each action and the "
        "paper's tuning; the same reports with the sharp tuning; and one symbol a user, the default.",
        "All but flat-exp3 face the same random draws. Not private (epsilon infinite) are the same learner "
        "and IXOMD (Kozuno and others, 2021); flat-exp3 (Tossou and Dimitrakakis, 2017) is private and "
        "learns over whole strategies, which only a small game allows.",
        f"In {within} of {len(runs) - 1} runs the mean regret is below the bound. The last column says from "
        "which trial on a bound is below the trivial regret of 1 per trial.",
        "Why ours differs from what was published: the paper prints a bound and no experiment. " + _KIND,
    )


def _curve_picture(game: str, study: Study, runs: Runs) -> Picture:
    epsilon = study.shown
    chosen = {
        f"as published, ε = {epsilon:g}": Cell(*_PAPER, epsilon),
        f"noised losses, ε = {epsilon:g}": Cell(*_NOISED, epsilon),
        f"one symbol, ε = {epsilon:g}": Cell(*_ONE_SYMBOL, epsilon),
        "no privacy": FREE,
        "uniform play": UNIFORM,
    }
    series = [(label, runs[cell]) for label, cell in chosen.items() if cell in runs]
    said = "; ".join(f"{label} ends at {_final(run)[0]:,.0f}" for label, run in series)
    return Picture(
        f"{game}: regret over {study.trials:,} trials, with 95% intervals; dotted are proven bounds",
        f"Both axes are logarithmic. {said}.",
        column(lambda ax: figures.regret_curve(ax, series), 4.8),
    )


def _epsilon_picture(game: str, study: Study, runs: Runs) -> Picture:
    series: list[Curve] = []
    for label, line in _lines(study).items():
        if line:
            series.extend(_over_epsilon(label, [runs[cell] for cell in line]))
    levels = {"no privacy": FREE, "ixomd, no privacy": IXOMD, "uniform play": UNIFORM}
    series += [Curve(label, [0.0], [_final(runs[cell])[0]], kind="level") for label, cell in levels.items()]
    axes = {"horizontal": "ε of a report", "vertical": f"regret after {study.trials:,} trials"}
    measured = ((e, _final(runs[Cell(*_ONE_SYMBOL, e)])[0]) for e in study.sharp)
    said = ", ".join(f"{mean:,.0f} at epsilon {epsilon:g}" for epsilon, mean in measured)
    return Picture(
        f"{game}: regret against epsilon, with 95% intervals; dotted are proven bounds below 1 per trial",
        f"Both axes are logarithmic. With one symbol the regret is {said}; without privacy "
        f"{_final(runs[FREE])[0]:,.0f}, for uniform play {_final(runs[UNIFORM])[0]:,.0f}.",
        column(lambda ax: curves(ax, series, **axes, logarithmic="xy", ticks=study.sharp), 4.8),
    )


def _over_epsilon(label: str, runs: Sequence[efb.EfbRun]) -> list[Curve]:
    x = [run.epsilon for run in runs]
    mean, low, high = (np.array(column) for column in zip(*(_final(run) for run in runs), strict=True))
    bounds = [run.regret_bound if run.regret_bound < run.trials[-1] else math.nan for run in runs]
    made = [Curve(label, x, mean, low, high)]
    if not np.isnan(bounds).all():
        made.append(Curve(f"{label}: proven bound", x, bounds, kind="bound"))
    return made


# How regret grows with the horizon: a power that is fitted to runs that were tuned for each.


class Growth(NamedTuple):
    """How large the experiment is: runs that were tuned for each of several horizons."""

    horizons: tuple[int, ...]
    replicates: int
    epsilon: float = 4.0


def growth(job: Job) -> Exhibit:
    """Run Kuhn poker to several horizons, each with its own tuning, and fit a power of T.

    By Theorem 1 of Pasteris, Savani and Turocy (2026) regret is of the order of the square root of T.
    """
    tree, environment = games.load("kuhn_poker")
    horizons, replicates, epsilon = job.size
    plan = {horizon: {"horizon": horizon} for horizon in horizons}

    def watch(share: float) -> None:
        job.progress(sum(horizons[: round(share * len(horizons))]) / sum(horizons))

    how: Any = job.running | {"watch": watch}
    runs = gather(partial(efb.simulate, tree, environment, epsilon=epsilon), plan, replicates, how).values()
    final = np.array([run.regret[:, -1] for run in runs]).T
    slope, low, high = power(np.array(horizons, dtype=np.float64), final)
    regret = _results.summarise(final)
    bounds = [run.regret_bound for run in runs]
    points = regret.mean, regret.ci_low, regret.ci_high
    rows = zip(horizons, *points, bounds, strict=True)
    frame = frame_of(rows, ["trials", "regret", "ci_low", "ci_high", "bound"])
    series = [Curve("measured", horizons, *points), Curve("proven bound", horizons, bounds, kind="bound")]
    axes: Any = {"horizontal": "trials T (users)", "vertical": "regret at T", "logarithmic": "xy"}
    theory = comparison([Claim("exponent of T", 0.5, slope, _FIT)])
    picture = Picture(
        f"Kuhn poker, ε = {epsilon:g}: regret at the horizon, 95% intervals, and its bound",
        f"Both axes are logarithmic. The slope of the points is {slope:.2f}, of the bound 0.50.",
        column(lambda ax: curves(ax, series, **axes)),
    )
    return job.row.exhibit(
        question="Theory says the square root: what does a fit say?",
        headline=f"Regret grows like T^{slope:.3f} (95% interval {low:.3f} to {high:.3f}); theory: 0.5.",
        text=(
            f"Kuhn poker at epsilon {epsilon:g}, one symbol a user, tuned anew for each horizon, "
            f"{replicates} replicates. The exponent is the slope of a line through logarithms.",
            "Why ours differs from what was published: the paper prints a bound and no experiment. " + _FIT,
        ),
        tables={
            "regret": Table("Regret at the end of each horizon, and its bound", frame),
            "theory": Table("What theory says and what came out", theory),
        },
        figures={"regret": picture},
    )


def power(x: Floats, values: Floats) -> tuple[float, float, float]:
    """Fit y = c x^p by least squares in logarithms; return p, and its 95% interval by the delta method.

    `x` float64[n] are positive, and `values` float64[R, n] are independent replicates with positive means.
    The ends of the interval are NaN for a single replicate.
    """
    estimate = _results.summarise(values)
    centred = np.log(x) - np.log(x).mean()
    weights = centred / (centred @ centred)
    slope = float(weights @ np.log(estimate.mean))
    half = _results.Z95 * float(_results.summarise(values / estimate.mean @ weights).stderr)
    return slope, slope - half, slope + half


# Both players learn, and come close to an equilibrium.


class Match(NamedTuple):
    """How large the experiment is, and its epsilons."""

    hands: int
    replicates: int
    epsilons: tuple[float, ...] = (0.5, 1.0, 4.0, math.inf)


def self_play(job: Job) -> Exhibit:
    """Run self-play at each epsilon, on the same deals; show how far average play is from an equilibrium."""
    match: Match = job.size
    plan, simulate = {e: {"epsilon": e} for e in match.epsilons}, partial(efb.self_play, "kuhn_poker")
    runs = gather(simulate, plan, match.replicates, job.running, horizon=match.hands).values()
    uniform, rows = games.exploitability("kuhn_poker", ["uniform"] * 2), []
    for run in runs:
        mean, _, low, high = (float(part[-1]) for part in _results.summarise(run.exploitability))
        rows.append((run.epsilon, mean, low, high, mean / uniform))
    names = ["epsilon", "exploitability", "ci_low", "ci_high", "of_uniform"]
    said = [f"{row[1]:.4f} " + (f"at epsilon {row[0]:g}" if row[0] < math.inf else "without") for row in rows]

    def draw(ax: Axes) -> None:
        for run in runs:
            run.plot(ax)
        ax.axhline(uniform, color="0.5", linewidth=1.0, label="uniform play")

    caption = f"Exploitability of average play, of {match.replicates} replicates, and the share of uniform"
    picture = Picture(
        f"Kuhn poker: exploitability of average play over {match.hands:,} hands, with 95% intervals",
        f"Both axes are logarithmic. The curves fall to {', '.join(said)} privacy.",
        column(draw, 4.4),
    )
    return job.row.exhibit(
        question="When both players learn from private reports, do they come to play an equilibrium?",
        headline=f"After {match.hands:,} hands average play can be exploited by {', '.join(said[:-1])} and "
        f"{said[-1]} privacy; uniform play by {uniform:.4f}.",
        text=(
            "Both seats run the learner, each with a new user a hand, who sends one symbol. Judged is play "
            "on average over all hands: exploitability is half of what both could gain a hand by a best "
            "response, in antes. It is half the sum of both regrets a hand, so it falls like the root of the "
            "hands. The paper proves its bound for opponents who do not react, and has no such experiment.",
        ),
        tables={"exploitability": Table(caption, frame_of(rows, names))},
        figures={"curve": picture},
    )


_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_KUHN = (
    Study("kuhn_poker", 200_000, 8, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
    Study("kuhn_poker", 1_000_000, 32, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
)
_LEDUC = (
    Study("leduc_poker", 100_000, 4, (1.0, 4.0, 16.0), (4.0,), (), 4.0),
    Study("leduc_poker", 1_000_000, 8, (1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 4.0, 16.0), (), 4.0),
)
_HORIZONS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
_GROWTH = Growth(_HORIZONS[:3], 12), Growth(_HORIZONS, 16)
_MATCH = Match(200_000, 4), Match(10_000_000, 4)
_TITLE = "How regret grows with the number of users"
EXPERIMENTS = (
    Experiment("efb-kuhn", "efb", "Kuhn poker: what privacy costs", study, *_KUHN, (5.0, 90.0)),
    Experiment("efb-leduc", "efb", "Leduc poker: a larger game", study, *_LEDUC, (6.0, 150.0)),
    Experiment("efb-growth", "efb", _TITLE, growth, *_GROWTH, (3.0, 26.0)),
    Experiment("efb-self-play", "efb", "Kuhn poker: both players learn", self_play, *_MATCH, (3.0, 90.0)),
)


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar at the settings' scale."""
    return [experiment.step(settings) for experiment in EXPERIMENTS]
