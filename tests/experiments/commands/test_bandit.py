"""The comparison of ``equinoise bandit``: its runs, figures, files, and parameters."""

from __future__ import annotations

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equinoise import bandits, inference
from equinoise.experiments.commands import common
from equinoise.experiments.commands.bandit import Parameters, compare, parsed, sentences


@pytest.fixture(scope="module")
def made():
    parameters = Parameters(
        means=(1.0, 0.5, 0.2),
        epsilon=0.05,
        horizon=60,
        replicates=40,
        seed=3,
        checkpoints=6,
        width="published",
    )
    return compare(parameters)


def test_each_run_of_a_comparison_is_what_simulate_gives(made):
    for name, options in (
        ("private-ucb", {"epsilon": 0.05, "width": "published"}),
        ("ucb", {}),
        ("uniform", {}),
        ("width-only", {"epsilon": 0.05, "width": "published"}),
        ("noise-only", {"epsilon": 0.05}),
    ):
        alone = bandits.simulate(
            name, (1.0, 0.5, 0.2), horizon=60, n_replicates=40, seed=3, n_checkpoints=6, **options
        )
        np.testing.assert_array_equal(made.runs[name].reward_sum, alone.reward_sum)
        np.testing.assert_array_equal(made.runs[name].regret, alone.regret)
    assert list(made.runs) == ["private-ucb", "ucb", "uniform", "width-only", "noise-only"]


@pytest.mark.parametrize(
    ("policy", "option"),
    [
        ("private-ucb", {"counter": "hybrid"}),
        ("private-ucb", {"width": "published"}),
        ("private-ucb", {"reward": "gaussian"}),
        ("ucb", {"ties": "random"}),
    ],
)
def test_options_reach_the_runs(policy, option):
    means = (0.5, 0.5, 0.2)
    parameters = Parameters(policy, means, horizon=40, epsilon=30.0, replicates=9, seed=1, **option)
    run = compare(parameters).runs[policy]

    def simulated(**options):
        return bandits.simulate(
            policy, means, horizon=40, epsilon=30.0, n_replicates=9, seed=1, **options
        ).reward_sum

    np.testing.assert_array_equal(run.reward_sum, simulated(**option))
    assert (run.reward_sum != simulated()).any()


def test_threads_do_not_change_the_bits(made):
    with ThreadPoolExecutor(3) as pool:
        again = compare(made.parameters, executor=pool)
    np.testing.assert_array_equal(again.runs["ucb"].reward_sum, made.runs["ucb"].reward_sum)


def test_the_arms_of_a_comparison_are_those_of_the_runs(made):
    for name, run in made.runs.items():
        frame = run.bias()
        for key in ("bias", "stderr", "ci_low", "ci_high"):
            ours = [row[name][key] for row in made.arms()]
            np.testing.assert_allclose(ours, frame[key], rtol=1e-12, atol=1e-15)
        assert made.summaries[name].mean_absolute_bias == pytest.approx(run.mean_absolute_bias, rel=1e-12)
    np.testing.assert_allclose(
        [row["bound"] for row in made.arms()], inference.bias_bound(0.05, np.array([1.0, 0.5, 0.2]))
    )


def test_files_agree_with_the_comparison(made):
    files = common.files(made.exhibit(), made.document())
    assert list(files) == ["bias.csv", "regret.csv", "bias.png", "frontier.png", "regret.png", "run.json"]
    table = list(csv.DictReader(io.StringIO(files["bias.csv"].decode())))
    assert [row["run"] for row in table] == [name for name in made.runs for _ in range(3)]
    document = json.loads(files["run.json"])
    assert document["arms"] == made.arms()
    assert document["runs"]["ucb"]["regret"] == pytest.approx(made.runs["ucb"].regret[:, -1].mean())
    assert document["notes"] == list(sentences(made.parameters))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"policy": "best"}, ValueError, "policy must"),
        ({"policy": 3}, TypeError, "policy must"),
        ({"means": ()}, ValueError, "means must be at least one number"),
        ({"means": (0.5, 1.2)}, ValueError, "means must be at most 1"),
        ({"means": (0.5, math.nan)}, ValueError, "means must be finite"),
        ({"means": ("a",)}, TypeError, "means must"),
        ({"horizon": 3}, ValueError, "horizon must be an integer from 4 to"),
        ({"horizon": 10.0}, TypeError, "horizon must"),
        ({"epsilon": -1.0}, ValueError, "epsilon must"),
        ({"replicates": 0}, ValueError, "replicates must"),
        ({"checkpoints": 0}, ValueError, "checkpoints must"),
        ({"width": "wide"}, ValueError, "width must"),
        ({"counter": "tree"}, ValueError, "counter must"),
        ({"reward": "beta"}, ValueError, "reward must"),
        ({"ties": "last"}, ValueError, "ties must"),
        ({"seed": -1}, ValueError, "seed must"),
    ],
)
def test_wrong_parameters(changes, error, words):
    with pytest.raises(error, match=words):
        Parameters(**{"epsilon": 1.0} | changes)


def test_a_policy_that_needs_an_epsilon_has_one_and_no_other():
    made = Parameters()
    assert (made.epsilon, made.policies[-1]) == (0.1, "noise-only")
    assert Parameters(policy="ucb").epsilon is None


def test_options_are_parsed_as_the_registry_says():
    assert parsed("dp-klucb", ["clip_sums=no"]) == {"clip_sums": False}
    assert parsed("private-ucb", ["counter=hybrid", "speed=3"]) == {"counter": "hybrid", "speed": "3"}
    with pytest.raises(ValueError, match="option must be NAME=VALUE, got 'clip_sums'"):
        parsed("dp-klucb", ["clip_sums"])
    with pytest.raises(TypeError, match="'speed' is no option"):
        Parameters(policy="dp-klucb", options={"speed": "3"})
    made = compare(Parameters("dp-klucb", (0.9, 0.1), 40, 1.0, 9, options={"clip_sums": False}))
    alone = bandits.simulate("dp-klucb", (0.9, 0.1), horizon=40, epsilon=1.0, n_replicates=9, clip_sums=False)
    np.testing.assert_array_equal(made.runs["dp-klucb"].reward_sum, alone.reward_sum)
    assert made.document()["parameters"]["clip_sums"] is False


def test_gaussian_means_may_be_anything():
    assert Parameters(policy="ucb", means=(3.0, -2.0), reward="gaussian").policies == ("ucb", "uniform")
