"""The experiments of the DP-EFB paper, a row each. It publishes a bound and no experiment."""

from equinoise.experiments.efb.growth import Growth, growth
from equinoise.experiments.efb.study import Study, study
from equinoise.experiments.steps import Experiment, Settings, Step

_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
EXPERIMENTS = (
    Experiment(
        "efb-kuhn",
        "efb",
        "Kuhn poker: what privacy costs",
        study,
        Study("kuhn_poker", 200_000, 8, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
        Study("kuhn_poker", 1_000_000, 32, _EPSILONS, _EPSILONS, _EPSILONS, 1.0),
        (5.0, 90.0),
    ),
    Experiment(
        "efb-leduc",
        "efb",
        "Leduc poker: a larger game",
        study,
        Study("leduc_poker", 100_000, 4, (1.0, 4.0, 16.0), (4.0,), (), 4.0),
        Study("leduc_poker", 1_000_000, 8, (1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 4.0, 16.0), (), 4.0),
        (6.0, 150.0),
    ),
    Experiment(
        "efb-growth",
        "efb",
        "How regret grows with the number of users",
        growth,
        Growth((100_000, 300_000, 1_000_000), 12),
        Growth((100_000, 300_000, 1_000_000, 3_000_000, 10_000_000), 16),
        (3.0, 26.0),
    ),
)


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar at the settings' scale."""
    return [experiment.step(settings) for experiment in EXPERIMENTS]
