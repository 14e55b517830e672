"""One game's exhibit: what simulate gives, with its bounds, in frames, words and curves."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from equinoise import efb, games
from equinoise.experiments.efb.exhibits import EXPERIMENTS, UNIFORM, Study, cells, study
from equinoise.experiments.steps import Job, Settings

SMALL = Study("kuhn_poker", 3000, 4, (1.0, 8.0), (8.0,), (8.0,), 8.0)


def shown(settings, progress=lambda share: None):
    return study(Job(EXPERIMENTS[0], SMALL, settings, None, progress))


def final_of(**options):
    tree, environment = games.load("kuhn_poker")
    run = efb.simulate(tree, environment, horizon=3000, n_replicates=4, seed=5, **options)
    return float(run.regret[:, -1].mean()), run.regret_bound


@pytest.mark.compiled
def test_a_study_shows_what_simulate_gives_beside_the_bound():
    shares = []
    made = shown(Settings(seed=5), shares.append)
    assert shares[-1] == 1.0 and shares == sorted(shares) and len(shares) == 9
    frame = made.tables["regret"].frame
    assert frame["learner"].tolist() == ["dp-efb"] * 5 + ["flat-exp3", "dp-efb", "ixomd", "uniform"]
    for row, options in enumerate(
        (
            {"epsilon": 8.0, "mechanism": "laplace", "tuning": "paper"},
            {"epsilon": 1.0, "mechanism": "laplace"},
            {"epsilon": 8.0, "mechanism": "laplace"},
            {"epsilon": 1.0},
            {"epsilon": 8.0},
            {"epsilon": 8.0, "learner": "flat-exp3"},
            {"epsilon": math.inf},
            {"epsilon": math.inf, "learner": "ixomd"},
            {"epsilon": math.inf, "learner": "uniform"},
        )
    ):
        mean, bound = final_of(**options)
        assert frame["regret"][row] == pytest.approx(mean, rel=1e-12)
        assert frame["ci_low"][row] <= mean <= frame["ci_high"][row]
        if options.get("learner") != "uniform":
            assert frame["bound"][row] == pytest.approx(bound)
            assert frame["regret_to_bound"][row] == pytest.approx(mean / bound)
    assert math.isnan(frame["bound"].iloc[-1])
    theory = made.tables["theory"].frame
    mean, bound = final_of(epsilon=8.0, mechanism="laplace", tuning="paper")
    noised, symbol = (final_of(epsilon=8.0, mechanism=name)[1] for name in ("laplace", "hashing"))
    assert theory["published"].tolist() == pytest.approx([bound] * 3)
    assert theory["ours"].tolist() == pytest.approx([mean, noised, symbol])
    assert frame["bytes"].tolist() == [76] * 3 + [4, 4, 28, 76, 76, 0]
    assert f"{final_of(epsilon=8.0)[0]:,.0f}" in made.headline
    assert set(made.figures) == {"curve", "epsilons"}


@pytest.mark.compiled
def test_the_trial_from_which_a_bound_says_something_is_where_it_is_one_a_trial():
    tree, _ = games.load("kuhn_poker")
    made = shown(Settings())
    frame = made.tables["regret"].frame
    from_trial = frame["bound_informative_from_trial"][2]
    bound = efb.tune(tree, round(from_trial), 8.0, mechanism="laplace").regret_bound
    assert bound == pytest.approx(from_trial, rel=0.01)


@pytest.mark.compiled
def test_curves_of_a_study_are_drawn_with_their_bounds():
    made = shown(Settings(seed=5))
    (ax,) = made.figures["epsilons"].figure.axes
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"one symbol", "one symbol: proven bound", "uniform play", "no privacy"} <= set(lines)
    np.testing.assert_allclose(lines["one symbol"].get_xdata(), [1.0, 8.0])
    np.testing.assert_allclose(
        lines["one symbol"].get_ydata(), [final_of(epsilon=e)[0] for e in (1.0, 8.0)], rtol=1e-12
    )
    (ax,) = made.figures["curve"].figure.axes
    assert "as published, ε = 8" in {line.get_label() for line in ax.get_lines()}


@pytest.mark.compiled
def test_blocks_of_a_study_are_kept_and_used(tmp_path):
    settings = Settings(seed=5, resume=str(tmp_path))
    made = shown(settings)
    assert len(list(tmp_path.iterdir())) == 9
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("replicates*")}
    again = shown(settings)
    pd.testing.assert_frame_equal(again.tables["regret"].frame, made.tables["regret"].frame)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("replicates*")} == before


def test_cells_name_every_run_once():
    plan = cells(SMALL)
    assert len(set(plan)) == len(plan) == 9
    assert UNIFORM in plan
