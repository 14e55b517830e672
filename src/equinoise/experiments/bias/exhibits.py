"""The experiments on bias in adaptively gathered data: a row for each."""

from functools import partial

from equinoise._typing import Any
from equinoise.experiments.bias import arms, power, pvalues
from equinoise.experiments.bias.common import shown
from equinoise.experiments.steps import Experiment, Settings, Step


def _row(name: str, title: str, work: Any, quick: float = 1.0, seconds: Any = (1.0, 1.0)) -> Experiment:
    """Return an experiment, what runs and shows it, whose size is a factor for its replicates."""
    return Experiment(name, "bias", title, partial(shown, *work), quick, 1.0, seconds)


_FRONTIER, _SELECTION = "What a smaller bias costs", "Where adaptivity does break a test"
POWER = _row("bias-power", "Power against regret", (power.plan, power.show), 0.1, (8.0, 120.0))
EXPERIMENTS = (
    _row("bias-1", "Bias of 20 arms, and what removes it", (arms.experiment_1, arms.show)),
    _row("bias-2", "Bias after 100,000 rounds", (arms.experiment_2, arms.show), 0.4, (4.0, 9.0)),
    _row("bias-frontier", _FRONTIER, (arms.frontier, arms.show_frontier), 0.2, (4.0, 14.0)),
    _row("bias-3", "A test on a linear bandit", (pvalues.experiment_3, pvalues.show_regression)),
    _row("bias-selection", _SELECTION, (pvalues.selection, pvalues.show_selection)),
    POWER,
)


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar as steps of a plan."""
    return [experiment.step(settings) for experiment in EXPERIMENTS]
