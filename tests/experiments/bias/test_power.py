"""Power against regret: what a plan says is what its runs show, and what is known of power comes out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equinoise import bandits, inference
from equinoise.experiments.bias import power


def rows_of(frame):
    return {
        (row.policy, row.epsilon if row.epsilon > 0 else None, row.test): row for row in frame.itertuples()
    }


def judge(**changed):
    made = {"means": np.array([0.5, 0.7, 0.5]), "null": 0.5, "control": None, "alpha": 0.05}
    return power._Judge(**{**made, "looks": np.array([50, 100]), "wanted": 0.5, **changed})


def test_a_row_counts_right_and_wrong_answers():
    shown = np.zeros((4, 2, 3))
    shown[:3, 1, 1] = 1.0  # the best arm, at the last look
    shown[0, 0, 1] = 1.0
    shown[3, 1, 1] = -1.0  # wrong: it is not worse
    shown[0, 1, 2] = 1.0  # wrong: arm 2 is as good as what it is compared with
    row = judge().row("ucb", None, "a test", shown, np.array([6.0, 10.0, 6.0, 10.0]))
    assert (row["power"], row["wrong"], row["regret"], row["rounds"]) == (0.75, 0.5, 8.0, 100)
    assert row["of_uniform"] == pytest.approx(8.0 / (100 * (0.7 - 1.7 / 3)))
    assert row["stderr"] == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    assert math.isnan(judge(wanted=0.8).row("ucb", None, "a test", shown, np.ones(4))["rounds"])
    of_control = judge(null=0.0, control=0).row("ucb", None, "a test", shown, np.ones(4))
    assert (of_control["power"], of_control["wrong"]) == (0.75, 0.5)


@pytest.mark.parametrize(("null", "best"), [(0.5, 0.68), (None, 0.8)])
def test_what_is_counted_is_what_the_runs_show(null, best):
    """Uniform play and ucb, replicate by replicate, by scipy and by intervals of one replicate alone."""
    means = (0.5, 0.5, best, 0.5, 0.5)
    found = rows_of(power.plan(0.02, means=means, null=null, policies=("ucb",), horizon=400).frame)
    runs = {
        name: bandits.simulate(name, means, horizon=400, n_replicates=40, history=True)
        for name in ("uniform", "ucb")
    }
    plain, anytime = 0, {"uniform": 0, "ucb": 0}
    level = 0.05 / (5 if null else 4)
    for r in range(40):
        own = [runs["uniform"].rewards[r][runs["uniform"].arms[r] == arm] for arm in range(5)]
        estimate = own[2].mean() - (null or own[0].mean())
        error = math.hypot(stats.sem(own[2]), 0.0 if null else stats.sem(own[0]))
        plain += estimate > 0 and 2 * stats.norm.sf(estimate / error) <= level
        for name, run in runs.items():
            ends = np.arange(40, 401, 40)
            own = [[run.rewards[r, :t][run.arms[r, :t] == arm] for arm in range(5)] for t in ends]
            totals = inference.Totals(*([[f(y) for y in ys] for ys in own] for f in (len, np.sum)))
            low, _ = inference.confidence_sequence(totals, control=None if null else 0)
            anytime[name] += (low[:, 2] > (null or 0.0)).any()
    assert found["uniform", None, "plain"].power == plain / 40
    for name, count in anytime.items():
        assert found[name, None, "e-values"].power == count / 40
        assert 0 < count < 40
    assert found["ucb", None, "e-values"].regret == pytest.approx(runs["ucb"].regret[:, -1].mean())
    assert found["uniform", None, "plain"].of_uniform == pytest.approx(1.0)


@pytest.mark.compiled
@pytest.mark.slow
def test_power_against_a_known_mean():
    """800 replicates: standard errors of at most 1.8%; every bound is 2.5 of them or more away."""
    found = rows_of(power.plan(0.4, policies=("thompson", "ucb", "dp-klucb"), epsilons=(0.1, 1.0)).frame)
    for test in ("aipw", "batched-ols"):
        assert found["thompson", None, test].power > 0.94 and found["thompson", None, test].of_uniform < 0.5
    assert found["thompson", None, "e-values"].power > 0.90
    assert 0.86 < found["ucb", None, "e-values"].power < 0.96
    assert 0.80 < found["uniform", None, "plain"].power < 0.89
    assert 0.82 < found["uniform", None, "split"].power < 0.92
    assert 0.55 < found["uniform", None, "split"].of_uniform < 0.61
    assert found["dp-klucb", 0.1, "max information"].power < found["dp-klucb", 0.1, "shift"].power < 0.40
    assert found["dp-klucb", 1.0, "shift"].power == 0.0  # an effect of 0.09 is within the shift
    assert all(row.wrong < 0.075 for row in found.values())
    assert found["thompson", None, "aipw"].rounds < found["uniform", None, "plain"].rounds <= 2000


@pytest.mark.compiled
def test_a_control_that_is_hardly_pulled_costs_power():
    found = rows_of(power.plan(0.06, null=None, policies=("thompson",)).frame)
    assert found["thompson", None, "aipw"].power < 0.3 < found["uniform", None, "plain"].power
    assert found["uniform", None, "split"].power > found["uniform", None, "plain"].power
    assert all(row.wrong < 0.12 for row in found.values())


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("means must be of two arms", {"means": (0.5,)}),
        ("means must be of two arms", {"means": (0.6, 0.6)}),
        ("means must be at most 1", {"means": (0.5, 1.5)}),
        ("not arm 0, the control", {"means": (0.6, 0.5), "null": None}),
        ("null must be", {"null": 1.5}),
        ("alpha must be", {"alpha": 0.0}),
        ("wanted must be", {"wanted": 1.5}),
        ("horizon must be", {"horizon": 10}),
        ("epsilons must be", {"epsilons": (0.0,)}),
        ("policy must be", {"policies": ("best",)}),
    ],
)
def test_a_plan_refuses_before_any_work(said, arguments):
    with pytest.raises(ValueError, match=said):
        power.plan(0.01, **arguments)
