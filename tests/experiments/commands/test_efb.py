"""The comparison of learners on one game: the same random draws, the same bits, and files that say how."""

from __future__ import annotations

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equinoise import efb
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
    assert document["regret"][0]["private"]["stderr"] is None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must"),
        ({"epsilon": "4"}, TypeError, "epsilon must"),
        ({"trials": 0}, ValueError, "trials must"),
        ({"trials": 1e5}, TypeError, "trials must"),
        ({"replicates": -1}, ValueError, "replicates must"),
        ({"checkpoints": 0}, ValueError, "checkpoints must"),
        ({"seed": -1}, ValueError, "seed must"),
        ({"tuning": "best"}, ValueError, "tuning must"),
    ],
)
def test_wrong_parameters(changes, error, words):
    with pytest.raises(error, match=words):
        Parameters(**{"game": "kuhn_poker"} | changes)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [({"game": 3}, TypeError, "game must"), ({"recall": "forget"}, ValueError, "recall must")],
)
def test_wrong_games(changes, error, words):
    with pytest.raises(error, match=words):
        prepare(Parameters(**{"game": "kuhn_poker"} | changes))
