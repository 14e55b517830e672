"""A grid of parameters: the bits of separate runs, all checked before any work, kept point by point."""

from __future__ import annotations

import functools
import itertools
import math
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import equinoise
from equinoise import _sweep, bandits, efb, games, inference, replicates
from equinoise.nvo import Histogram, NoiseGame

DOCS = Path(__file__).parents[1] / "docs"
MEANS = [0.75, 0.5]
SIMULATE = functools.partial(bandits.simulate, means=MEANS, horizon=30, n_replicates=5, n_checkpoints=3)
GRID = {"policy": ["private-ucb", "uniform"], "epsilon": [0.5, math.inf]}


def test_points_are_separate_runs_in_one_tidy_frame():
    made = replicates.sweep(SIMULATE, GRID)
    assert made.points == tuple({"policy": p, "epsilon": e} for p in GRID["policy"] for e in GRID["epsilon"])
    frame, summary = made.to_frame(), made.summary()
    assert list(frame) == [
        *("policy", "epsilon", "seed", "version", "replicate", "arm", "pulls", "reward_sum", "mean")
    ]
    for point in made.points:
        alone = SIMULATE(**point)
        for whole, one in ((frame, alone.to_frame()), (summary, alone.summary())):
            rows = whole[(whole["policy"] == point["policy"]) & (whole["epsilon"] == point["epsilon"])]
            pd.testing.assert_frame_equal(rows[list(one)].reset_index(drop=True), one, check_exact=True)
    assert set(frame["version"]) == {equinoise.__version__}
    assert frame["epsilon"].dtype == float


def test_points_may_be_listed_and_have_other_names_each():
    points = [{"policy": "ucb"}, {"policy": "epsilon-greedy", "explore": 0.5}, {"policy": "ucb", "delay": 2}]
    made = replicates.sweep(SIMULATE, points)
    frame = made.to_frame()
    assert made.points == tuple(points)
    assert frame["explore"].isna().sum() == 20
    np.testing.assert_array_equal(frame["delay"].dropna(), np.full(10, 2.0))


def test_a_parameter_that_a_point_leaves_out_is_as_its_run_says_with_all_digits():
    made = replicates.sweep(
        SIMULATE, [{"policy": "ucb", "delay": 2}, {"policy": "uniform", "seed": 2**62 + 1}]
    )
    for frame in (made.to_frame(), made.summary()):
        assert frame["seed"].drop_duplicates().tolist() == [0, 2**62 + 1]
        assert not frame.attrs
    new = replicates.sweep(functools.partial(SIMULATE, policy="ucb"), {"seed": [2**62 + 1, None]}).to_frame()
    assert new["seed"].dropna().unique().tolist() == [2**62 + 1]
    assert new["seed"].isna().sum() == 10
    assert not new.attrs


def test_results_called_like_a_parameter_are_kept():
    def measured(mean):
        frame = pd.DataFrame({"replicate": [0, 1], "mean": [mean + 0.1, mean + 0.2], "regret": [5.0, 6.0]})
        return SimpleNamespace(to_frame=lambda: frame)

    frame = replicates.sweep(measured, {"mean": [1.0, 2.0]}).to_frame()
    assert list(frame) == ["mean", "replicate", "run_mean", "regret"]
    assert frame["mean"].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert frame["run_mean"].tolist() == [1.1, 1.2, 2.1, 2.2]


def test_a_word_is_what_the_run_used():
    """Nothing was sent without privacy, whatever the mechanism that was asked for."""
    task = functools.partial(efb.simulate, *games.load("kuhn_poker"), horizon=20, n_checkpoints=1)
    points = [{"epsilon": e, "mechanism": m} for e in (1, math.inf) for m in ("hashing", "laplace")]
    made = replicates.sweep(
        task, [*points, {"epsilon": math.inf, "mechanism": "hashing", "learner": "ixomd"}]
    )
    for frame in (made.to_frame(), made.summary()):
        assert frame["mechanism"].tolist() == ["hashing", "laplace", "none", "none", "none"]
    joint = replicates.sweep(functools.partial(efb.self_play, "kuhn_poker", horizon=9), points).to_frame()
    assert joint["mechanism"].drop_duplicates().tolist() == ["hashing", "laplace", "none"]


def test_what_is_no_number_and_no_word_is_text():
    task = functools.partial(bandits.simulate, "uniform", horizon=4)
    frame = replicates.sweep(
        task, {"means": [[0.5, 0.25], np.array([1.0, 0.0])], "seed": [np.int64(3)]}
    ).to_frame()
    assert frame["means"].tolist() == ["[0.5, 0.25]"] * 2 + ["[1.0, 0.0]"] * 2
    assert frame["seed"].tolist() == [3] * 4
    frame = replicates.sweep(
        lambda seed, scale: task([0.5]), {"seed": [0], "scale": [2**60 + 1, 0.5]}
    ).to_frame()
    assert frame["scale"].tolist() == [str(2**60 + 1), "0.5"]  # a float would lose digits


def test_games_and_self_play_have_their_columns():
    task = functools.partial(efb.simulate, *games.load("kuhn_poker"), horizon=20, n_checkpoints=1)
    frame = replicates.sweep(task, {"epsilon": [1.0, math.inf], "learner": ["dp-efb", "uniform"]}).to_frame()
    assert frame[["epsilon", "learner"]].to_numpy().tolist() == [
        *([1.0, "dp-efb"], [1.0, "uniform"], [math.inf, "dp-efb"], [math.inf, "uniform"])
    ]
    assert {"mechanism", "tuning", "seed", "version", "regret"} <= set(frame)
    task = functools.partial(efb.self_play, "kuhn_poker", horizon=20, n_checkpoints=1)
    assert len(replicates.sweep(task, {"epsilon": [1.0, 2.0]}).to_frame()) == 2


@pytest.mark.parametrize(
    ("grid", "error", "words"),
    [
        ({"policy": "ucb"}, TypeError, "grid must be lists of values"),
        ({"policy": 3}, TypeError, "grid must be lists of values"),
        (3, TypeError, "grid must be lists of values"),
        ({"policy": {"ucb", "uniform"}}, TypeError, "grid must be lists of values"),
        ({"policy": ["ucb"], "seed": range(10**12)}, ValueError, "grid must have at most 1,000,000 points"),
        (
            {"policy": ["ucb"], "seed": itertools.count()},
            ValueError,
            "at most 1,000,000 points, got 1,000,001",
        ),
        (({"seed": i} for i in itertools.count()), ValueError, "grid must have at most 1,000,000 points"),
        ("ucb", TypeError, "grid must be lists of values"),
        ([3], TypeError, "grid's points must be"),
        ({}, ValueError, "grid must have at least one point"),
        ({"policy": []}, ValueError, "grid must have at least one point"),
        ([{}], ValueError, "grid must have at least one point"),
        (
            [{"executor": None}],
            TypeError,
            "grid must have names of the function's parameters, got 'executor'",
        ),
        (
            {"policy": ["ucb"], "height": [1]},
            TypeError,
            r"'height' is no option .*\(at the point policy='ucb', h",
        ),
        ({"policy": ["ucb", "ucb9"]}, ValueError, r"policy must be one of .*at the point policy='ucb9'\)"),
        (
            {"policy": ["ucb"], "seed": [0, -1]},
            ValueError,
            r"seed must be .*at the point policy='ucb', seed=-1\)",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(monkeypatch, tmp_path, grid, error, words):
    monkeypatch.setattr(replicates, "_run_blocks", lambda task, pool, *_: pool.submit(None))
    with pytest.raises(error, match=words):
        replicates.sweep(SIMULATE, grid, resume=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
    with pytest.raises(TypeError, match=r"^function must be callable, got 'ucb'"):
        replicates.sweep("ucb", {"seed": [0]})
    with pytest.raises(TypeError, match=r"^resume must be a str or a path, got 0"):
        replicates.sweep(SIMULATE, {"policy": ["ucb"]}, resume=0)


def test_points_that_fit_alone_and_not_together_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 1000}.get)  # a megabyte
    monkeypatch.setattr(replicates, "_run_blocks", lambda task, pool, *_: pool.submit(None))
    task = functools.partial(bandits.simulate, "ucb", MEANS, horizon=100, n_replicates=1000)  # 0.4 MB a run
    words = r"^the number of points in grid must be one whose results fit into .* got 3, which take 0\.0"
    with pytest.raises(ValueError, match=words):
        replicates.sweep(task, {"seed": range(3)})
    assert len(_sweep.checked(task, {"seed": range(2)}, kept=False)) == 2


class Plain:
    def to_frame(self):
        return pd.DataFrame({"x": [1.0]})


def test_functions_without_an_executor_are_called_plainly(tmp_path):
    calls = []

    def function(a, b=0):
        calls.append((a, b))
        return Plain()

    made = replicates.sweep(function, {"a": [1, "two"], "b": [None]})
    assert calls == [(1, None), ("two", None)]
    assert made.to_frame()["a"].tolist() == ["1", "two"]
    with pytest.raises(TypeError, match="resume must be left out"):
        replicates.sweep(function, {"a": [1]}, resume=tmp_path)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'c' \(at the point a=1, c=1\)"):
        replicates.sweep(function, {"a": [1], "c": [1]})
    assert len(calls) == 2


def test_points_are_kept_and_a_grid_may_grow(tmp_path, monkeypatch):
    whole = replicates.sweep(SIMULATE, GRID, resume=tmp_path)
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert len(folders) == 4
    shutil.rmtree(tmp_path / folders[1])
    for path in (tmp_path / folders[0]).glob("*.npz"):
        path.unlink()
    ran = []
    task = bandits.simulate.__globals__["_run_lanes"]
    monkeypatch.setitem(
        bandits.simulate.__globals__,
        "_run_lanes",
        lambda t, *span: ran.append((t.policy, t.epsilon)) or task(t, *span),
    )
    again = replicates.sweep(SIMULATE, GRID | {"policy": ["uniform", "private-ucb"]}, resume=tmp_path)
    assert len(set(ran)) == 2
    for i, point in enumerate(whole.points):
        np.testing.assert_array_equal(whole.runs[i].regret, again.runs[again.points.index(point)].regret)
    assert sorted(path.name for path in tmp_path.iterdir()) == folders
    with pytest.raises(ValueError, match="horizon is 30 there and 31 here"):
        replicates.sweep(functools.partial(SIMULATE, horizon=31), GRID, resume=tmp_path)
    with pytest.raises(ValueError, match="points that differ"):
        replicates.sweep(SIMULATE, [{"policy": "ucb"}] * 2, resume=tmp_path)


def test_names_of_folders_say_the_parameters_and_stay_when_the_version_changes(monkeypatch):
    name = _sweep.folder_of({"policy": "private ucb", "epsilon": 0.5, "x": "a/../b" * 20})
    assert name.startswith("epsilon=0.5-policy=private-ucb-x=a-..-b")
    assert len(name) < 80
    assert "/" not in name
    other = _sweep.folder_of({"policy": "private ucb", "epsilon": 0.5, "x": "a/../b" * 20 + "c"})
    assert other != name  # which begin alike
    monkeypatch.setattr("equinoise._checkpoint.__version__", "9")
    assert name == _sweep.folder_of({"x": "a/../b" * 20, "epsilon": 0.5, "policy": "private ucb"})


def test_numbers_of_numpy_name_the_folders_of_the_same_numbers(tmp_path):
    for seeds in (np.arange(2), range(2)):
        replicates.sweep(functools.partial(SIMULATE, policy="ucb"), {"seed": seeds}, resume=tmp_path)
    assert sorted(path.name[:7] for path in tmp_path.iterdir()) == ["seed=0-", "seed=1-"]
    assert _sweep.folder_of({"x": np.float64(0.5)}) == _sweep.folder_of({"x": 0.5})
    assert _sweep.folder_of({"x": np.float64(1)}) != _sweep.folder_of({"x": np.int64(1)})


def test_parquet_holds_the_frame(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    made = replicates.sweep(SIMULATE, {"policy": ["ucb"], "epsilon": [None, 1.0]})
    made.to_parquet(tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x.parquet"), made.to_frame())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'equinoise\[parquet\]'"):
        made.to_parquet(tmp_path / "y.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_what_parquet_has_no_number_for_is_text(tmp_path):
    pytest.importorskip("pyarrow")
    for wide in (10**30, 2**63):
        task = functools.partial(bandits.simulate, "ucb", [0.9, 0.8], horizon=20)
        replicates.sweep(task, {"seed": [1, wide]}).to_parquet(tmp_path / "x.parquet")
        assert pd.read_parquet(tmp_path / "x.parquet")["seed"].unique().tolist() == ["1", str(wide)]


def test_every_frame_says_what_made_it():
    bandit = bandits.simulate("private-ucb", MEANS, horizon=9, epsilon=0.5, seed=4)
    said = {"policy": "private-ucb", "epsilon": 0.5, "seed": 4, "version": equinoise.__version__}
    for frame in (bandit.to_frame(), bandit.regret_frame(), bandit.summary(), bandit.bias()):
        assert frame.attrs == said
    linear = bandits.linear.simulate("oful", n_arms=2, dimension=2, horizon=9, seed=5)
    for frame in (linear.to_frame(), linear.summary(), linear.coefficients()):
        assert frame.attrs == {**said, "policy": "oful", "epsilon": None, "seed": 5}
    live = bandits.PrivateUCB(2, 0.5, horizon=9, noise="float", seed=4)
    assert live.to_frame().attrs == said
    assert bandits.UCB(2).to_frame().attrs == {**said, "policy": "ucb", "epsilon": None, "seed": None}
    shown = bandits.linear.LinearBandit(2, 1, seed=5)
    for frame in (shown.to_frame(), shown.coefficients()):
        assert frame.attrs == {**said, "policy": "oful", "epsilon": None, "seed": 5}
    profile = NoiseGame(Histogram.from_values([1, 2, 2, 3], 5, bounds=(0, 4)), 0.5).best_response(seed=4)
    for frame in (profile.to_frame(), profile.summary()):
        told = {name: value for name, value in said.items() if name != "policy"}
        assert frame.attrs == {"method": "best response", **told}
    assert all(name in profile.to_frame.__doc__ for name in profile.to_frame())
    game = efb.simulate(*games.load("kuhn_poker"), horizon=9, epsilon=math.inf, learner="ixomd", seed=None)
    for frame in (game.to_frame(), game.summary()):
        told = {name: frame.attrs[name] for name in ("learner", "epsilon", "seed", "version")}
        assert told == {
            "learner": "ixomd",
            "epsilon": math.inf,
            "seed": None,
            "version": equinoise.__version__,
        }
    runs = [efb.simulate(*games.load("bandit(3)"), horizon=9, epsilon=e, seed=4) for e in (1, 2)]
    both = efb.compare(runs).attrs
    assert (both["learner"], both["seed"], both["version"]) == ("dp-efb", 4, equinoise.__version__)
    assert "epsilon" not in both  # which they have not in common
    means = inference.arm_means([0, 1, 0, 1], [0.0, 1.0, 1.0, 1.0], method="ols").to_frame(0.1)
    assert means.attrs == {"alpha": 0.1, "version": equinoise.__version__}
    answer = inference.report(inference.Totals([9, 9], [1.0, 8.0]), alpha=0.1).to_frame().attrs
    assert answer == {"control": 0, "alpha": 0.1, "method": "betting", "version": equinoise.__version__}


@pytest.mark.parametrize("kind", ["live", "linear"])
def test_a_loaded_bandit_still_says_its_seed(kind, tmp_path):
    made = bandits.UCB(2, seed=3) if kind == "live" else bandits.linear.LinearBandit(2, 1, seed=3)
    made.save(tmp_path / "file")
    assert type(made).load(tmp_path / "file").to_frame().attrs["seed"] == 3


def test_what_made_frames_becomes_columns_in_the_way_that_the_documents_say():
    runs = [SIMULATE(policy, epsilon=0.5) for policy in ("private-ucb", "dp-klucb")]
    frames = [run.to_frame() for run in runs]
    assert not pd.concat(frames).attrs
    frame = pd.concat([frame.assign(**frame.attrs) for frame in frames])
    assert frame.groupby("policy").size().to_dict() == {"private-ucb": 10, "dp-klucb": 10}
    assert "frame.assign(**frame.attrs)" in (DOCS / "results.md").read_text(encoding="utf-8")
