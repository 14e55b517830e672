"""The comparison of learners on one game: the same random draws, the same bits, and files that say how."""

from __future__ import annotations

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests import naive

from equinoise import efb, games
from equinoise.experiments.commands.efb import Parameters, compare, prepare


@pytest.fixture(scope="module")
def made():
    parameters = Parameters("kuhn_poker", epsilon=2.0, trials=300, replicates=4, seed=5, checkpoints=30)
    return compare(*prepare(parameters), parameters)


def test_each_run_is_what_simulate_gives(made):
    for run, options in (
        (made.runs["private"], {"epsilon": 2.0}),
        (made.runs["no privacy"], {"epsilon": math.inf}),
        (made.runs["uniform"], {"epsilon": math.inf, "learner": "uniform"}),
    ):
        alone = efb.simulate(
            made.tree, made.environment, horizon=300, n_replicates=4, seed=5, n_checkpoints=30, **options
        )
        np.testing.assert_array_equal(run.regret, alone.regret)


def test_threads_do_not_change_the_bits(made):
    with ThreadPoolExecutor(3) as pool:
        again = compare(made.tree, made.environment, made.parameters, executor=pool)
    np.testing.assert_array_equal(again.runs["private"].regret, made.runs["private"].regret)


def test_rows_are_the_regret_at_about_ten_checkpoints(made):
    rows = made.rows()
    assert [row["trials"] for row in rows] == [30 * i for i in range(1, 11)]
    last, regret = rows[-1], made.runs["private"].regret[:, -1]
    assert last["private"]["mean"] == pytest.approx(regret.mean())
    half = 1.96 * regret.std(ddof=1) / 2
    assert last["private"]["ci_high"] - last["private"]["mean"] == pytest.approx(half)
    assert last["private"]["bound"] == pytest.approx(min(made.runs["private"].regret_bound, 300))
    assert last["uniform"]["bound"] == 300
    assert len(made.rows(7)) == 7
    assert made.rows(7)[-1] == last
    assert len(made.rows(1000)) == 30


def test_files_agree_with_the_runs(made):
    files = made.files()
    assert list(files) == ["regret.csv", "regret.png", "run.json"]
    assert files["regret.png"].startswith(b"\x89PNG")
    table = list(csv.DictReader(io.StringIO(files["regret.csv"].decode())))
    assert list(table[0]) == ["learner", "trials", "mean", "stderr", "ci_low", "ci_high", "bound"]
    assert [row["learner"] for row in table] == ["private"] * 30 + ["no privacy"] * 30 + ["uniform"] * 30
    np.testing.assert_allclose(
        [float(row["mean"]) for row in table[30:60]], made.runs["no privacy"].regret.mean(axis=0), rtol=1e-12
    )
    document = json.loads(files["run.json"])
    assert document["parameters"]["epsilon"] == 2.0
    assert document["seed"] == 5
    assert document["game"]["infosets"] == 7
    assert document["game"]["loss_of_best_strategy"] == pytest.approx(0.375)
    assert document["game"]["loss_of_uniform_play"] == pytest.approx(0.46875)
    assert document["regret"] == made.rows()


def test_one_replicate_and_no_privacy_make_json(made):
    parameters = Parameters("kuhn_poker", epsilon=math.inf, trials=50, replicates=1)
    alone = compare(*prepare(parameters), parameters)
    document = json.loads(alone.files()["run.json"])
    assert document["parameters"]["epsilon"] == "inf"
    assert document["regret"][0]["no privacy"]["stderr"] is None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must"),
        ({"epsilon": "4"}, TypeError, "epsilon must"),
        ({"trials": 0}, ValueError, "trials must"),
        ({"trials": 10**12 + 1}, ValueError, "trials must be an integer from 1 to 1000000000000"),
        ({"trials": 10**12, "replicates": 1001}, ValueError, r"n_replicates must be at most 1,000 of 1,0"),
        ({"trials": 1e5}, TypeError, "trials must"),
        ({"replicates": -1}, ValueError, "replicates must"),
        ({"checkpoints": 0}, ValueError, "checkpoints must"),
        ({"seed": -1}, ValueError, "seed must"),
        ({"tuning": "best"}, ValueError, "tuning must"),
        ({"epsilon": (1.0, 0.0)}, ValueError, "epsilon must"),
        ({"epsilon": (1.0, 4.0, 1.0)}, ValueError, "epsilon must be values that differ"),
        ({"epsilon": ()}, ValueError, "epsilon must"),
        ({"learner": "exp4"}, ValueError, "learner must"),
    ],
)
def test_wrong_parameters(changes, error, words):
    with pytest.raises(error, match=words):
        Parameters(**{"game": "kuhn_poker"} | changes)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"game": 3}, TypeError, "game must"),
        ({"recall": "forget"}, ValueError, "recall must"),
        ({"learner": "ixomd"}, ValueError, "epsilon must be math.inf for learner 'ixomd'"),
        ({"opponents": "nobody.json"}, ValueError, "opponents must be 'uniform' or a JSON file"),
        ({"schedule": ("uniform",)}, ValueError, "schedule must be of TRIALS:OPPONENTS"),
        ({"schedule": ("0:uniform",)}, ValueError, "schedule must"),
        ({"schedule": ("10:",)}, ValueError, "schedule must"),
        (
            {"schedule": ("1:uniform",), "trials": 10**12},
            ValueError,
            "schedule must have at most 1,000,000 parts",
        ),
    ],
)
def test_wrong_games(changes, error, words):
    with pytest.raises(error, match=words):
        prepare(Parameters(**{"game": "kuhn_poker"} | changes))


def test_several_epsilons_are_runs_by_their_names():
    parameters = Parameters("kuhn_poker", epsilon=(0.5, 4.0), trials=200, replicates=2, checkpoints=10)
    several = compare(*prepare(parameters), parameters)
    assert list(several.runs) == ["epsilon 0.5", "epsilon 4", "no privacy", "uniform"]
    assert [run.epsilon for run in several.runs.values()] == [0.5, 4.0, math.inf, math.inf]
    document = json.loads(several.files()["run.json"])
    assert document["symbols"] == [2, 14]
    assert document["regret_bound"] == [several.runs[name].regret_bound for name in list(several.runs)[:2]]
    assert list(document["regret"][0]) == ["trials", *several.runs]
    means = [f"{run.regret[:, -1].mean():,.0f}" for run in several.runs.values()]
    assert several.exhibit.headline == (
        f"After 200 trials the regret is {means[0]} at epsilon 0.5, {means[1]} at epsilon 4, {means[2]} "
        f"without privacy and {means[3]} for uniform play."
    )


def test_opponents_and_schedules_are_those_of_simulate(tmp_path):
    """A file of a policy, and a schedule that begins again: the same bits as with objects in Python."""
    other, _ = games.load("kuhn_poker", 1)
    rng = np.random.default_rng(7)
    heads = rng.random(6)
    bluffer = games.Policy(other, np.concatenate([[1.0], np.stack([heads, 1 - heads], 1).ravel()]))
    path = tmp_path / "bluffer.json"
    path.write_text(json.dumps(bluffer.to_dict()), encoding="utf-8")
    tree, uniform = games.load("kuhn_poker")
    _, against = games.load("kuhn_poker", opponents=bluffer.to_dict())
    assert (against.action_loss != uniform.action_loss).any()
    same = {"trials": 250, "replicates": 2, "checkpoints": 5}
    for changes, environment in (
        ({"opponents": str(path)}, against),
        ({"schedule": ("30:uniform", f"70:{path}")}, games.Schedule([(uniform, 30), (against, 70)] * 3)),
    ):
        parameters = Parameters("kuhn_poker", **same, **changes)
        ours = compare(*prepare(parameters), parameters)
        for run, epsilon in ((ours.runs["private"], 4.0), (ours.runs["no privacy"], math.inf)):
            again = efb.simulate(
                tree, environment, horizon=250, epsilon=epsilon, n_replicates=2, n_checkpoints=5
            )
            np.testing.assert_array_equal(run.regret, again.regret)
    mixed = 0.3 * uniform.action_loss + 0.7 * against.action_loss
    least = min(mixed[list(picked)].sum() for picked in naive.strategies(tree))
    plan = games.realization_plan(tree, tree.uniform_policy())
    game = ours.document()["game"]
    assert game["loss_of_best_strategy"] == pytest.approx(least, rel=1e-12)
    assert game["loss_of_uniform_play"] == pytest.approx(float(plan @ mixed), rel=1e-12)
