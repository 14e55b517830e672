"""A release of one column: the best of several searches, the same bits, and files that agree with it."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from equinoise.experiments.commands.nvo import Parameters, prepare, release, shared, solve
from equinoise.nvo import NoiseGame
from equinoise.nvo.release import composition, folder
from equinoise.nvo.release.rows import seed_of


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(11)
    file = tmp_path_factory.mktemp("data") / "people.csv"
    values = np.append(np.round(rng.normal(50.0, 6.0, 250), 2), [5.0, 93.5])
    file.write_text("weight\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def made(path):
    parameters = Parameters(
        path,
        "weight",
        epsilon=1.0,
        bounds=(0.0, 120.5),
        bins=31,
        rows=40,
        seed=2,
        search="best-response",
        resolve=0,
    )
    return release(*prepare(parameters), parameters)


def test_it_is_the_profile_that_the_game_finds(made):
    column, histogram = prepare(made.parameters)
    assert column.values.dtype == np.float64
    assert histogram.bounds == (0.0, 120.5)
    seed = seed_of("weight", 2)
    alone = NoiseGame(histogram, 1.0).best_response(seed=seed)
    np.testing.assert_array_equal(made.profile.counts, alone.counts)
    np.testing.assert_array_equal(made.sample, alone.sample(40, seed))
    assert 0.0 <= made.lower_bound <= alone.game.lower_bound(enough=alone.kl, nodes=32)  # and all the time
    assert made.certificate["rows"] == 40
    assert made.certificate["seed"] == 2
    assert made.certificate["method"] == alone.method == "best response"


def test_the_table_is_of_nvo_and_three_laplace_mechanisms(made):
    rows = made.rows()
    assert [row["mechanism"] for row in rows] == [
        "NVO",
        "Laplace, paper",
        "Laplace, amplified",
        "Laplace, smallest",
    ]
    assert rows[0]["kl"] == made.profile.kl
    assert rows[0]["gap"] == made.profile.kl - made.lower_bound
    assert rows[1]["gap"] is None
    paper, amplified, smallest = made.others.values()
    game = made.profile.game
    assert paper.game.scales[0] == pytest.approx(game.histogram.sensitivity)
    assert amplified.certified
    assert smallest.certified
    assert smallest.game.scales[0] <= amplified.game.scales[0]
    assert smallest.realised_epsilon <= 1.0


def test_files_agree_with_the_release(made):
    files = made.files()
    assert list(files) == [
        "sample.csv",
        "certificate.json",
        "distribution.png",
        "private/scales.csv",
        "private/distribution.png",
        "private/noise.png",
        "private/run.json",
    ]
    table = list(csv.reader(io.StringIO(files["sample.csv"].decode())))
    assert table[0] == ["weight"]
    np.testing.assert_array_equal([float(row[0]) for row in table[1:]], made.sample)
    said = json.loads(files["certificate.json"])
    assert said["sample"] == {"rows": 40, "sha256": hashlib.sha256(files["sample.csv"]).hexdigest()}
    assert (said["column"], said["epsilon"], said["rows"], said["seed"]) == ("weight", 1.0, 40, 2)
    assert said["limits"] == made.certificate["limits"]
    assert "path" not in said
    scales = list(csv.DictReader(io.StringIO(files["private/scales.csv"].decode())))
    start, stop = made.profile.game.histogram.range
    np.testing.assert_allclose(
        [float(row["scale"]) for row in scales], made.profile.scale_of * (stop - start), rtol=1e-12
    )
    np.testing.assert_array_equal([float(row["value"]) for row in scales], made.column.values)
    document = json.loads(files["private/run.json"])
    assert document["table"][0]["kl"] == made.profile.kl
    assert document["parameters"]["bounds"] == [0.0, 120.5]


def test_nothing_of_single_records_is_in_what_is_for_others(made):
    # values of the data are no midpoints of bins, so none of them may come out
    public = made.files()["sample.csv"].decode().split()[1:]
    assert not {float(text) for text in public} & set(made.column.values.tolist())
    assert "scales.csv" not in made.files()["certificate.json"].decode()


def test_what_others_get_follows_from_the_sample_and_the_request(made):
    parts = made.parameters, made.column.name, made.column.sep
    mine, whole = shared(*parts, made.sample), made.files()
    assert {name: whole[name] for name in folder.PUBLIC} == mine
    assert shared(*parts, made.sample[::-1])["sample.csv"] != mine["sample.csv"]


def test_what_rounding_adds_to_a_standard_deviation_is_no_caution(made):
    same, alike = np.full(50, 5.0), np.full(40, 5.445544554455446)
    for values in (same, same + np.arange(50) % 2 * 2.0**-50):
        column = dataclasses.replace(made.column, values=values)
        said = dataclasses.replace(made, column=column, sample=alike).cautions()
        assert [caution for caution in said if "whole numbers" not in caution] == []


def test_any_name_of_a_column_can_be_drawn(made):
    column = dataclasses.replace(made.column, name="a $ and $_{ b")
    assert dataclasses.replace(made, column=column).files()["distribution.png"].startswith(b"\x89PNG")


def test_the_best_of_several_searches_is_taken(made):
    histogram = made.profile.game.histogram
    each = [solve(histogram, 1.0, search="best-response", seed=seed) for seed in range(4)]
    best = solve(histogram, 1.0, search="best-response", restarts=4)
    assert best.kl == min(profile.kl for profile in each)
    assert best.seed == int(np.argmin([profile.kl for profile in each]))
    with ThreadPoolExecutor(2) as pool:
        again = solve(histogram, 1.0, search="best-response", restarts=4, executor=pool)
    np.testing.assert_array_equal(best.counts, again.counts)


def test_a_search_that_satisfies_everybody_comes_before_one_of_less_noise(made, monkeypatch):
    monkeypatch.setattr(NoiseGame, "best_response", lambda game, seed: game.uniform(seed))
    how = {"scales": [10.0, 1e-4], "search": "best-response"}
    private, open_ = (solve(made.profile.game.histogram, 1.0, seed=seed, **how) for seed in (0, 1))
    assert private.certified and not open_.certified and open_.kl < private.kl
    assert solve(made.profile.game.histogram, 1.0, restarts=2, **how).certified


@pytest.mark.slow
def test_searches_run_in_other_processes(made):
    histogram = made.profile.game.histogram
    with ProcessPoolExecutor(1) as pool:
        there = solve(histogram, 1.0, search="best-response", restarts=2, executor=pool)
    here = solve(histogram, 1.0, search="best-response", restarts=2)
    np.testing.assert_array_equal(there.counts, here.counts)


def test_a_total_is_kept(path):
    parameters = Parameters(
        path,
        "weight",
        total_epsilon=0.8,
        bounds=(0.0, 120.0),
        bins=31,
        rows=20,
        search="best-response",
        resolve=0,
    )
    made = release(*prepare(parameters), parameters)
    assert made.sample is not None
    assert made.certificate["composed"]["epsilon"] <= 0.8
    assert made.profile.game.epsilon < 0.8
    said = json.loads(made.files()["certificate.json"])
    assert (said["epsilon"], said["total_epsilon"]) == (None, 0.8)  # that of a row was chosen by the data


def test_there_is_no_sample_where_the_total_is_exceeded(path, monkeypatch):
    """Though every record is satisfied at the last epsilon of a row that was tried."""
    parameters = Parameters(
        path, "weight", total_epsilon=0.8, bounds=(0.0, 120.0), rows=3, search="best-response", resolve=0
    )
    plain = composition.epsilon_for_total
    monkeypatch.setattr(composition, "epsilon_for_total", lambda *of: plain(*of)._replace(composition=None))
    made = release(*prepare(parameters), parameters)
    assert made.profile.certified and made.sample is None
    assert made.reason().startswith("no epsilon per row was found")


def test_two_columns_with_one_seed_do_not_go_together(tmp_path):
    values = np.random.default_rng(1).normal(50.0, 6.0, (250, 2)).round(1)
    file = tmp_path / "two.csv"
    np.savetxt(file, values, "%.1f", ",", header="a,b", comments="")
    drawn = []
    for name in "ab":
        parameters = Parameters(
            str(file),
            name,
            epsilon=1.0,
            bounds=(0.0, 100.0),
            rows=2000,
            seed=1,
            search="best-response",
            resolve=0,
        )
        drawn.append(release(*prepare(parameters), parameters).sample)
    # beyond 4.5 standard errors, 1/sqrt(2000) each, once in 100,000
    assert abs(np.corrcoef(*drawn)[0, 1]) < 0.1


def test_without_a_seed_nobody_can_search_again(path):
    parameters = Parameters(
        path, "weight", epsilon=1.0, bounds=(0.0, 120.0), rows=3, search="best-response", resolve=0
    )
    seeds = {release(*prepare(parameters), parameters).profile.seed for _ in range(3)}
    assert len(seeds) == 3


def test_there_is_no_sample_where_somebody_is_not_satisfied(path):
    parameters = Parameters(
        path, "weight", epsilon=0.5, bounds=(0.0, 120.0), scales=(0.01,), search="best-response", resolve=0
    )
    made = release(*prepare(parameters), parameters)
    assert made.sample is None
    assert made.profile.n_satisfied < 252
    failing = made.failing()
    assert sum(row["records"] for row in failing) == 252 - made.profile.n_satisfied
    assert [row["epsilon"] for row in failing] == sorted((row["epsilon"] for row in failing), reverse=True)
    assert all(row["epsilon"] > 0.5 for row in failing)
    assert made.profile.game.scales[0] * (made.profile.game.histogram.range[1] * 2 - 120) == pytest.approx(
        0.01
    )
    assert made.document()["released"] is False


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"epsilon": None}, ValueError, "epsilon must be given, or else total_epsilon"),
        ({"total_epsilon": 1.0}, ValueError, "epsilon must be given, or else total_epsilon, and not both"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be finite"),
        ({"epsilon": "1"}, TypeError, "epsilon must"),
        ({"epsilon": None, "total_epsilon": -1.0}, ValueError, "total_epsilon must"),
        ({"search": "luck"}, ValueError, "search must"),
        ({"restarts": 0}, ValueError, "restarts must"),
        ({"rows": 0}, ValueError, "rows must"),
        ({"seed": -1}, ValueError, "seed must"),
    ],
)
def test_wrong_parameters(changes, error, words):
    with pytest.raises(error, match=words):
        Parameters(**{"path": "a.csv", "column": "a", "epsilon": 1.0} | changes)
