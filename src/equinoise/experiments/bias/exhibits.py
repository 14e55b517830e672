"""Experiments on bias in adaptively gathered data, in words, figures, and beside what the paper prints."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import inference
from equinoise.experiments.bias import exhibits_tests as tests
from equinoise.experiments.bias.bias import BiasExperiment, experiment_1, experiment_2
from equinoise.experiments.bias.correction import correction
from equinoise.experiments.bias.exhibits_common import drawn, exhibit, published
from equinoise.experiments.bias.frontier import Frontier, frontier
from equinoise.experiments.bias.regression import experiment_3
from equinoise.experiments.bias.selection import selection
from equinoise.experiments.steps import Progress, Settings, Step
from equinoise.report import figures
from equinoise.report.curves import legend_below
from equinoise.report.exhibit import Exhibit, Picture, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["arms", "frontier_exhibit", "steps"]

_UCB = "ucb"
_PRIVATE = "private-ucb, published width, ε = 0.05"
_EPSILON = 0.05  # of experiment 1
_DIFFERENT = {
    1: "the paper does not print the index of its plain UCB, and a narrower one has more bias.",
    2: "the paper's text has a gap of 0.05 between the arms and does not say where they begin, while its "
    "figures show arms from 0.6 to 1. With a gap of 0.1 the published figures come out.",
}


@dataclass(frozen=True)
class _Plan:
    """An experiment, how it is shown, and by how much its replicates are fewer at the quick scale."""

    name: str
    title: str
    compute: Callable[..., Any]
    show: Callable[[Any, str, str], Exhibit]
    quick: float = 1.0
    seconds: tuple[float, float] = (1.0, 1.0)

    def make(self, settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
        """Run and show it."""
        scale = 1.0 if settings.full else self.quick
        made = self.compute(scale, seed=settings.seed, executor=executor)
        progress(0.9)  # the rest is drawing
        return self.show(made, self.name, self.title)


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar; at the quick scale two have fewer replicates."""
    plan = (
        _Plan("bias-1", "Bias of 20 arms, and what removes it", experiment_1, partial(arms, 1)),
        _Plan("bias-2", "Bias after 100,000 rounds", experiment_2, partial(arms, 2), 0.4, (4.0, 9.0)),
        _Plan("bias-frontier", "What a smaller bias costs", frontier, frontier_exhibit, 0.2, (4.0, 14.0)),
        _Plan("bias-3", "A test on a linear bandit", experiment_3, tests.z_tests),
        _Plan("bias-selection", "Where adaptivity does break a test", selection, tests.selection_exhibit),
        _Plan("bias-correction", "P-values that are corrected", correction, tests.power_exhibit),
    )
    return [Step(made.name, "bias", made.title, made.make, made.seconds[settings.full]) for made in plan]


def arms(number: int, made: BiasExperiment, name: str, title: str) -> Exhibit:
    """Show experiment 1 or 2: bias of every arm with its interval, the regret beside it, and the controls."""
    shown = [(spec.label, made.runs[spec.label]) for spec in made.specs if spec.shown]
    summaries = {label: made.summary(label) for label, _ in shown}
    means = np.array(made.specs[0].means)
    bound = np.asarray(inference.bias_bound(_EPSILON, means)) if number == 1 else None
    said = "; ".join(
        f"{label}: {one.mean_absolute_bias:.2g} at a regret of {one.regret:,.0f}"
        for label, one in summaries.items()
    )
    pictures = {
        "bias": Picture(
            "Bias of each arm's mean reward, with 95% intervals"
            + (f", and what Theorem 1 allows at ε = {_EPSILON:g}" if number == 1 else ""),
            f"Mean absolute bias over the arms and regret of what is drawn. {said}.",
            drawn(lambda ax: figures.bandit_bias(ax, shown, bound=bound)),
        ),
        "regret": Picture(
            "The regret that goes with that bias, with 95% intervals",
            f"Cumulative regret over {made.horizon:,} rounds of the same runs. {said}.",
            drawn(lambda ax: figures.regret_means(ax, shown)),
        ),
    }
    return exhibit(
        name,
        title,
        question="Does a private bandit gather data with less bias, and is it the privacy that does it?",
        headline=_bias_headline(made, number),
        text=_bias_text(made, number),
        tables={
            "published": published(made),
            "arms": Table("Bias of every arm, with its 95% interval", made.to_frame()),
        },
        figures=pictures,
    )


def _bias_headline(made: BiasExperiment, number: int) -> str:
    if number == 1:
        plain, private = made.summary(_UCB), made.summary(_PRIVATE)
        bare = made.summary("width-only, published width, ε = 400")
        return (
            f"The mean absolute bias falls from {plain.mean_absolute_bias:.3f} to "
            f"{private.mean_absolute_bias:.4f}, and the regret rises from {plain.regret:.0f} to "
            f"{private.regret:.0f}; the private width without any noise gives {bare.mean_absolute_bias:.4f} "
            f"at {bare.regret:.0f}."
        )
    plain = made.summary("ucb, gap 0.1")
    private = made.summary("private-ucb, published width, ε = 400, gap 0.1")
    return (
        f"With the arms of the paper's figures plain UCB has a bias of {plain.mean_absolute_bias:.4f} "
        f"(published 0.011), private UCB {private.mean_absolute_bias:.4f} (0.0015), at "
        f"{private.regret / plain.regret:.1f} times the regret."
    )


def _bias_text(made: BiasExperiment, number: int) -> tuple[str, ...]:
    setting = (
        f"{len(made.specs[0].means)} Bernoulli arms, {made.horizon:,} rounds, {made.replicates:,} "
        "replicates, all on the same luck."
    )
    reasons = {
        1: "Bias is never free: at epsilon 0.05 private UCB with the published width plays nearly in turn, "
        "and has the regret of uniform play. The controls at epsilon 400 tell the causes apart: the width "
        "without noise lowers the bias as much as both do, the noise without the width does not lower it.",
        2: "Epsilon is 400, where Theorem 1 says nothing; what lowers the bias is the width, which "
        "explores more, and the regret rises with it.",
    }
    return (
        setting,
        reasons[number],
        f"Why ours differs from what was published: {_DIFFERENT[number]}",
    )


def frontier_exhibit(made: Frontier, name: str, title: str) -> Exhibit:
    """Show bias against regret, every policy at every epsilon."""
    plain = made.summaries[_UCB, None]
    clear = sum(one.clear for one in made.summaries.values())
    quiet = {key: one.regret for key, one in made.summaries.items() if not one.clear}
    policy, epsilon = min(quiet, key=lambda key: quiet[key])
    of = policy if epsilon is None else f"{policy} at epsilon {epsilon:g}"
    frame = made.to_frame()
    return exhibit(
        name,
        title,
        question="Which policy gathers data with how much bias, and at what regret?",
        headline=f"The least regret at which no bias can be told from luck is {quiet[policy, epsilon]:,.0f} "
        f"({of}); plain UCB has a bias of {plain.mean_absolute_bias:.3f} at {plain.regret:,.0f}.",
        text=(
            f"Arms with means {', '.join(f'{mean:g}' for mean in made.means)}, {made.horizon:,} rounds, "
            f"{made.replicates:,} replicates. In {clear} of {len(frame)} cases the arms together have a "
            "bias that can be told from none at 5%; luck is what the replicates would show if no arm had "
            "any.",
            "Why ours differs from what was published: the paper has no such figure. It shows bias alone, "
            "which a policy that learns nothing has least of.",
        ),
        tables={"points": Table("Bias and regret of every policy and epsilon", frame)},
        figures={
            "frontier": Picture(
                "Mean absolute bias against regret, labelled with epsilon, with 95% intervals; hollow "
                "where the bias can be luck",
                f"Both axes are logarithmic. From plain UCB, bias {plain.mean_absolute_bias:.2g} at a "
                f"regret of {plain.regret:,.0f}, the bias falls as the regret rises towards that of uniform "
                f"play, {made.summaries['uniform', None].regret:,.0f}.",
                _frontier_figure(made),
            )
        },
    )


def _frontier_figure(made: Frontier) -> Figure:
    whole = figures.figure(5.6, 6.0)
    axes = made.plot(whole.subplots())
    axes.set_title("")
    legend_below(axes)
    return whole
