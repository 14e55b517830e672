"""Means and intervals against the statistics module, frames against loops, and what JSON takes."""

from __future__ import annotations

import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st

from equinoise import _results, replicates

values = st.integers(2, 6).flatmap(
    lambda r: st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=r, max_size=r)
)


@given(values)
def test_estimate_is_mean_and_standard_error(rows):
    estimate = _results.summarise(rows)
    for c in range(3):
        column = [row[c] for row in rows]
        stderr = statistics.stdev(column) / math.sqrt(len(column))
        mean = statistics.fmean(column)
        wanted = (mean, stderr, mean - 1.96 * stderr, mean + 1.96 * stderr)
        for got, want in zip(estimate, wanted, strict=True):
            assert got[c] == pytest.approx(want, rel=1e-9, abs=1e-6)


def test_checkpoints_are_evenly_spaced_and_end_at_the_horizon():
    assert _results.checkpoints(10, 4).tolist() == [2, 5, 7, 10]
    assert _results.checkpoints(2, 4).tolist() == [1, 2]


def test_one_replicate_has_a_mean_and_nothing_else():
    estimate = _results.summarise(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(estimate.mean, [1.0, 2.0])
    assert all(np.isnan(part).all() and part.shape == (2,) for part in estimate[1:])


def test_intervals_cover_as_often_as_they_say():
    """5,000 intervals of 400 normal values: coverage 95% within 5 standard errors (error rate 1e-6)."""
    draws = np.random.default_rng(7).normal(3.0, 2.0, (400, 5000))
    estimate = _results.summarise(draws)
    covered = np.mean((estimate.ci_low <= 3.0) & (estimate.ci_high >= 3.0))
    assert abs(covered - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 5000)


def test_long_frame_has_a_row_for_each_replicate_and_index_entry():
    trials, regret = np.array([10, 20, 30]), np.arange(6.0).reshape(2, 3)
    frame = _results.long_frame({"trials": trials}, {"regret": regret, "loss": -regret})
    rows = [(r, trials[c], regret[r, c], -regret[r, c]) for r in range(2) for c in range(3)]
    assert list(frame.columns) == ["replicate", "trials", "regret", "loss"]
    assert [tuple(row) for row in frame.itertuples(index=False)] == rows


def test_summary_frame_names_the_quantity():
    regret = np.array([[1.0, 5.0], [3.0, 5.0]])
    frame = _results.summary_frame({"trials": np.array([10, 20])}, {"regret": regret, "loss": regret + 1})
    assert list(frame.columns) == ["quantity", "trials", "mean", "stderr", "ci_low", "ci_high"]
    assert list(frame["quantity"]) == ["regret"] * 2 + ["loss"] * 2
    assert list(frame["mean"]) == [2.0, 5.0, 3.0, 6.0]
    assert list(frame["stderr"]) == [1.0, 0.0, 1.0, 0.0]


def test_provenance_is_json_and_says_how_it_was_made():
    parameters = {"epsilon": math.inf, "means": np.array([0.5, math.nan]), "rule": None, "deep": {1: (True,)}}
    made = json.loads(json.dumps(_results.provenance(parameters, seed=7, seconds=1.23456), allow_nan=False))
    assert made["parameters"] == {
        "epsilon": "inf",
        "means": [0.5, "nan"],
        "rule": None,
        "deep": {"1": [True]},
    }
    assert (made["seed"], made["seconds"]) == (7, 1.235)
    assert made["versions"]["numpy"] == np.__version__
    assert set(made["versions"]) == {"equinoise", "numpy", "numba", "python"}


def test_results_of_a_run_fit_the_frames():
    arrays = replicates.run(lambda start, stop: {"x": np.ones((stop - start, 2))}, 3, block=1)
    assert len(_results.long_frame({"c": np.arange(2)}, arrays)) == 6
