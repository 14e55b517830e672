"""How regret grows: a power whose interval covers it, and runs with tunings of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equinoise import efb, games
from equinoise.experiments.efb.exhibits import EXPERIMENTS, Growth, growth, power
from equinoise.experiments.steps import Job, Settings


@pytest.mark.parametrize("exponent", [0.5, 0.9])
def test_the_power_is_fitted_and_its_interval_covers_it(exponent):
    """400 fits of correlated replicates; a 95% interval covers in 380 +- 4.4, below 357 in 1 of 10^7, and a
    t interval of 20 replicates that is taken as normal loses about 1.5 points of that."""
    rng = np.random.default_rng(1)
    x = np.array([1e3, 1e4, 1e5])
    hits = 0
    for _ in range(400):
        common = rng.normal(0, 0.2, (20, 1))
        values = 3 * x**exponent * (1 + common * [1, 1, 0.2] + rng.normal(0, 0.1, (20, 3)))
        slope, low, high = power(x, values)
        assert low < slope < high
        hits += low <= exponent <= high
    assert 350 <= hits <= 395


@pytest.mark.compiled
def test_growth_runs_each_horizon_with_its_own_tuning():
    made = growth(
        Job(EXPERIMENTS[2], Growth((1000, 3000), 4, 8.0), Settings(seed=5), None, lambda share: None)
    )
    frame = made.tables["regret"].frame
    assert frame["trials"].tolist() == [1000, 3000]
    tree, environment = games.load("kuhn_poker")
    alone = efb.simulate(tree, environment, horizon=3000, epsilon=8.0, n_replicates=4, seed=5)
    assert frame["regret"][1] == pytest.approx(alone.regret[:, -1].mean(), rel=1e-12)
    assert frame["bound"][1] == pytest.approx(alone.regret_bound)
    slope = math.log(frame["regret"][1] / frame["regret"][0]) / math.log(3)
    assert made.tables["theory"].frame["ours"][0] == pytest.approx(slope)
    assert made.tables["theory"].frame["published"][0] == 0.5
    assert f"T^{slope:.3f} (" in made.headline
