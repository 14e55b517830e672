"""Experiments 1 and 2 of Neel and Roth (2018), section 5.1: the bias of arm means, and what explains it."""

import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, bandits, inference
from equinoise._typing import Axes, DataFrame, Mapping, NamedTuple, Sequence, Unpack
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias import common
from equinoise.experiments.bias.common import Result, Summary, summarise
from equinoise.experiments.steps import Experiment, Running, gather, named
from equinoise.report import figures, pictures
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison, frame_of


class Spec(NamedTuple):
    """One run: what plays, on which of the arms below, why ours differs, and whether the figure shows it.

    Published are the mean absolute bias, the largest bias with its sign, and the number of arms whose 95%
    interval contains zero; NaN stands for none.
    """

    policy: str
    arms: str
    why: str
    epsilon: float | None = None
    width: str = "counter"
    published: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    shown: bool = False

    @property
    def label(self) -> str:
        """What figures and tables call it."""
        width = f"{self.width} width" if self.policy in ("private-ucb", "width-only") else ""
        budget = "" if self.epsilon is None else f"ε = {self.epsilon:g}"
        return ", ".join(filter(None, (self.policy, width, budget, self.arms)))


def _falling(first: float, gap: float, n: int) -> tuple[float, ...]:
    return tuple(round(first - gap * i, 10) for i in range(n))


_20, _5, _LOWER, _WIDE = "", "gap 0.05", "gap 0.05, means from 0.9", "gap 0.1"
_ARMS = {
    _20: _falling(1.0, 0.05, 20),
    _5: _falling(1.0, 0.05, 5),
    _LOWER: _falling(0.9, 0.05, 5),
    _WIDE: _falling(1.0, 0.1, 5),
}
_INDEX = "The paper does not print its index; one that is narrower explores less and has more bias."
_EVEN = "Play is round-robin and no arm has a bias: what is left is the chance of the replicates."
_COUNTER = "Ours: a width as small as the counter's noise allows is still round-robin at this epsilon."
_CONTROL = "Control: the bias and the regret of learning nothing."
_QUIET = "Control: the noise is nearly gone, and the bias is still small."
_BARE = "Control: without any noise the width alone gives the same bias and the same regret."
_NOISY = "Control: without the width the noise leaves the bias of plain ucb."
_GAP = "The text says a gap of 0.05; the figures show arms from 0.6 to 1, and at that gap ours agrees."
_START = "The text does not say where the means begin."
_FIGURES = "The arms of the paper's figures: here published and ours agree."
_ONE_WIDTH = "The paper's intervals have one width for all arms, sqrt(ln(2/0.975)/(2 R)); ours are normal."
_PLAIN, _PRIVATE, _NONE = (0.011, math.nan, math.nan), (0.0015, math.nan, 5.0), (0.0015, math.nan, math.nan)
EXPERIMENT_1 = (
    Spec("ucb", _20, _INDEX, published=(0.0698, -0.14, 4.0), shown=True),
    Spec("private-ucb", _20, _EVEN, 0.05, "published", (0.00176, math.nan, 20.0), shown=True),
    Spec("private-ucb", _20, _COUNTER, 0.05),
    Spec("uniform", _20, _CONTROL, shown=True),
    Spec("private-ucb", _20, _QUIET, 400.0, "published"),
    Spec("width-only", _20, _BARE, 400.0, "published", shown=True),
    Spec("noise-only", _20, _NOISY, 400.0, shown=True),
)
EXPERIMENT_2 = (
    Spec("ucb", _5, _GAP, published=_PLAIN),
    Spec("private-ucb", _5, _GAP, 400.0, "published", _PRIVATE),
    Spec("uniform", _5, _CONTROL),
    Spec("ucb", _LOWER, _START, published=_PLAIN),
    Spec("private-ucb", _LOWER, _START, 400.0, "published", _NONE),
    Spec("ucb", _WIDE, _FIGURES, published=_PLAIN, shown=True),
    Spec("private-ucb", _WIDE, _FIGURES, 400.0, "published", _PRIVATE, shown=True),
    Spec("uniform", _WIDE, _CONTROL, shown=True),
)


@dataclass(frozen=True, eq=False)
class BiasExperiment(Result):
    """Runs of one experiment by the labels of their specs; equal arms face the same random draws."""

    specs: tuple[Spec, ...]
    runs: dict[str, bandits.BanditRun]

    def summary(self, label: str) -> Summary:
        """Return bias and regret of one run."""
        return summarise(self.runs[label])

    @property
    def shown(self) -> list[tuple[str, bandits.BanditRun]]:
        """What the figures show: labels and runs."""
        return [(spec.label, self.runs[spec.label]) for spec in self.specs if spec.shown]

    def claims(self) -> list[Claim]:
        """Return what the paper publishes, ours, and the regret that belongs to every bias."""
        rows = []
        for spec in self.specs:
            made, of = self.summary(spec.label), f": {spec.label}"
            bias, largest, at_zero = spec.published
            ours = made.mean_absolute_bias
            rows.append(Claim(f"Mean absolute bias{of}", bias, ours, spec.why, stderr=made.stderr))
            if not math.isnan(largest):
                rows.append(Claim(f"Largest bias{of}", largest, made.largest_bias, spec.why))
            if not math.isnan(at_zero) and made.arms_at_zero is not None:
                quantity = f"Of {len(_ARMS[spec.arms])} arms, intervals containing zero{of}"
                rows.append(Claim(quantity, at_zero, made.arms_at_zero, _ONE_WIDTH))
            price = (math.nan, made.regret, "Regret incurred.")
            rows.append(Claim(f"Regret{of}", *price, stderr=made.regret_stderr))
        return rows

    def to_frame(self) -> DataFrame:
        """Return one row per run and arm: run, arm, mean, bias, stderr, ci_low, ci_high."""
        return common.bias_frame(self.runs)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bias of every arm with 95% intervals, published policies and controls; return the Axes."""
        return figures.bandit_bias(ax, self.shown)


def experiment_1(
    scale: float = 1.0, *, horizon: int = 500, replicates: int = 10_000, **running: Unpack[Running]
) -> BiasExperiment:
    """Run experiment 1: 20 arms with means 1, 0.95, .., 0.05, T = 500, epsilon 0.05, 10,000 replicates.

    With plain and private UCB run uniform play and, at epsilon 400, private UCB without its noise and without
    its width: the bias falls because of the width, and with it the regret rises to that of learning nothing.
    As in all experiments here, `scale` is a factor for the replicates, and what is wrong with an argument is
    refused before any work, with a TypeError or ValueError. The paper's figures are 1 and 2.
    """
    return _run(EXPERIMENT_1, common.scaled(replicates, scale), horizon, running)


def experiment_2(
    scale: float = 1.0, *, horizon: int = 100_000, replicates: int = 1000, **running: Unpack[Running]
) -> BiasExperiment:
    """Run experiment 2: 5 arms, T = 100,000, epsilon 400, 1,000 replicates.

    The paper's text has a gap of 0.05 between the arms and does not say where they begin; its figures (3 to
    5) show arms from 0.6 to 1. So it is run with gaps of 0.05 from 1 and from 0.9, and with a gap of 0.1 from
    1: with that one the published figures come out, and it is the one that is drawn.
    """
    return _run(EXPERIMENT_2, common.scaled(replicates, scale), horizon, running)


def _run(specs: tuple[Spec, ...], replicates: int, horizon: int, running: Running) -> BiasExperiment:
    names = ("policy", "epsilon", "width")
    jobs = {
        spec.label: {"means": _ARMS[spec.arms]} | {name: getattr(spec, name) for name in names}
        for spec in specs
    }
    fixed = {"horizon": horizon, "counter": "binary"}  # as published
    runs = gather(bandits.simulate, jobs, replicates, running, **fixed)
    return BiasExperiment(horizon, replicates, specs, runs)


def show(experiment: Experiment, made: BiasExperiment) -> Exhibit:
    """Show experiment 1 or 2: bias of every arm with its interval, the regret, and the controls."""
    of = {label: summarise(run) for label, run in made.runs.items()}
    first = made.specs is EXPERIMENT_1
    means = np.array(_ARMS[made.specs[0].arms])
    bound = np.asarray(inference.bias_bound(0.05, means)) if first else None
    said = "; ".join(
        f"{label}: {of[label].mean_absolute_bias:.2g} at a regret of {of[label].regret:,.0f}"
        for label, _ in made.shown
    )
    headline, reason, different = _first(of) if first else _second(of)
    return experiment.exhibit(
        question="Does a private bandit gather data with less bias, and is it the privacy that does it?",
        headline=headline,
        text=(
            f"{len(means)} Bernoulli arms, {made.size}, all facing the same random draws.",
            reason,
            f"Why ours differs from what was published: {different}",
        ),
        tables={
            "published": Table(common.PUBLISHED, comparison(made.claims())),
            "arms": Table("Bias of every arm, with its 95% interval", made.to_frame()),
        },
        figures={
            "bias": Picture(
                "Bias of each arm's mean reward, with 95% intervals"
                + (", and the proven bound at ε = 0.05" if first else ""),
                f"Mean absolute bias over the arms and regret of what is drawn. {said}.",
                figures.column(lambda ax: figures.bandit_bias(ax, made.shown, bound=bound), 4.4),
            ),
            "regret": Picture(
                "The regret that goes with that bias, with 95% intervals",
                f"Cumulative regret over {made.horizon:,} rounds of the same runs. {said}.",
                figures.column(lambda ax: figures.regret_means(ax, made.shown), 4.4),
            ),
        },
    )


def _first(of: Mapping[str, Summary]) -> tuple[str, str, str]:
    """Return the headline of experiment 1, what explains it, and why it differs from the paper."""
    plain, private = of["ucb"], of["private-ucb, published width, ε = 0.05"]
    bare = of["width-only, published width, ε = 400"]
    return (
        f"The mean absolute bias falls from {plain.mean_absolute_bias:.3f} to "
        f"{private.mean_absolute_bias:.4f}, and the regret rises from {plain.regret:.0f} to "
        f"{private.regret:.0f}; the private width without any noise gives {bare.mean_absolute_bias:.4f} "
        f"at {bare.regret:.0f}.",
        "Low bias is never free: at epsilon 0.05 private UCB with the published width plays nearly in turn, "
        "and has the regret of uniform play. By the controls at epsilon 400 it is the width that lowers the "
        "bias, and not the noise.",
        "the paper does not print the index of its plain UCB, and a narrower one has more bias.",
    )


def _second(of: Mapping[str, Summary]) -> tuple[str, str, str]:
    plain, private = of["ucb, gap 0.1"], of["private-ucb, published width, ε = 400, gap 0.1"]
    return (
        f"With the arms of the paper's figures plain UCB has a bias of {plain.mean_absolute_bias:.4f} "
        f"(published 0.011), private UCB {private.mean_absolute_bias:.4f} (0.0015), at "
        f"{private.regret / plain.regret:.1f} times the regret.",
        "Epsilon is 400, where no bound on the bias says anything; what lowers it is the width, which "
        "explores more, and the regret rises with it.",
        "the paper's text has a gap of 0.05 between the arms and does not say where they begin, while its "
        "figures show arms from 0.6 to 1. With a gap of 0.1 the published figures come out.",
    )


# The frontier of bias against regret: every policy at every epsilon.


@dataclass(frozen=True, eq=False)
class Frontier(Result):
    """Bias and regret by policy and epsilon, which is None where the policy takes none."""

    means: tuple[float, ...]
    summaries: dict[tuple[str, float | None], Summary]

    def to_frame(self) -> DataFrame:
        """Return one row per point: policy, epsilon, private, bias and regret with their standard errors."""
        rows = [
            {"policy": name, "epsilon": epsilon, "private": policy(name).private} | made._asdict()
            for (name, epsilon), made in self.summaries.items()
        ]
        return frame_of(rows).astype({"epsilon": float})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bias against regret, every point labelled, with 95% intervals; return the Axes."""
        return pictures.frontier(ax, self.summaries)


def frontier(
    scale: float = 1.0,
    *,
    policies: Sequence[str] = tuple(bandits.POLICIES),
    epsilons: Sequence[float] = (0.1, 0.5, 2.0, 10.0),
    means: Sequence[float] = (0.75, 0.625, 0.5, 0.375, 0.25),
    horizon: int = 10_000,
    replicates: int = 1000,
    **running: Unpack[Running],
) -> Frontier:
    """Run every policy, at every epsilon where it takes one, on the same Bernoulli arms and random draws."""
    n = common.scaled(replicates, scale)
    given = tuple(_checks.epsilon(epsilon, "epsilons") for epsilon in epsilons)
    true = np.array(means, dtype=np.float64)
    jobs = {
        (name, epsilon): {"policy": name, "epsilon": epsilon}
        for name in policies
        for epsilon in (given if policy(name).needs_epsilon else (None,))
    }
    same = {"means": true, "horizon": horizon, "n_checkpoints": 1}
    runs = gather(bandits.simulate, jobs, n, running, **same)
    return Frontier(horizon, n, tuple(true.tolist()), {case: summarise(run) for case, run in runs.items()})


def show_frontier(experiment: Experiment, made: Frontier) -> Exhibit:
    """Show bias against regret, every policy at every epsilon."""
    plain, even = made.summaries["ucb", None], made.summaries["uniform", None]
    quiet = {case: one.regret for case, one in made.summaries.items() if not one.clear}
    least = min(quiet, key=lambda case: quiet[case])
    frame = made.to_frame()
    return experiment.exhibit(
        question="Which policy gathers data with how much bias, and at what regret?",
        headline=f"The least regret at which the bias is consistent with zero is {quiet[least]:,.0f} "
        f"({named(*least)}); plain UCB has a bias of {plain.mean_absolute_bias:.3f} at "
        f"{plain.regret:,.0f}.",
        text=(
            f"Arms with means {', '.join(f'{mean:g}' for mean in made.means)}, {made.size}. In "
            f"{len(frame) - len(quiet)} of {len(frame)} cases the bias of all arms together is inconsistent "
            "with zero at 5%. The column luck is the bias that chance alone would show.",
            "Why ours differs from what was published: the paper shows bias alone, and no regret with it.",
        ),
        tables={"points": Table("Bias and regret of every policy and epsilon", frame)},
        figures={
            "frontier": Picture(
                "Mean absolute bias against regret by epsilon, with 95% intervals; hollow where it may be 0",
                f"Both axes are logarithmic. From plain UCB, bias {plain.mean_absolute_bias:.2g} at a regret "
                f"of {plain.regret:,.0f}, it falls as the regret rises to {even.regret:,.0f}.",
                figures.column(made.plot, 6.0),
            )
        },
    )
