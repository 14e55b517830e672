"""The paper's tables on a column: every mechanism at every epsilon, and the published figures."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equinoise.experiments.nvo.column import (
    DATASETS,
    MECHANISMS,
    PUBLISHED,
    QUICK,
    _positive,
    column,
    compute,
    published,
)
from equinoise.experiments.nvo.source import given
from equinoise.experiments.steps import Experiment, Job, Settings
from equinoise.nvo import Histogram

SHARED = Path(os.environ.get("EQUINOISE_SHARED") or Path(__file__).resolve().parents[4] / "shared")


@pytest.fixture(scope="module")
def histogram():
    rng = np.random.default_rng(0)
    return Histogram.from_values(rng.gamma(4.0, 10.0, 400), 41)


def test_every_mechanism_at_every_epsilon(histogram):
    tables = compute(histogram, (1.0, 4.0), mechanisms=("best response, extended scales", "Laplace, paper"))
    frame = tables.to_frame()
    assert len(frame) == 4
    mine = frame[frame["mechanism"] == "best response, extended scales"]
    assert (mine["satisfied"] == 400).all()
    assert (mine["realised_epsilon"] <= mine["epsilon"]).all()
    assert (mine["kl"] >= mine["lower_bound"] - 1e-9).all()
    laplace = frame[frame["mechanism"] == "Laplace, paper"]
    assert laplace["lower_bound"].isna().all()
    assert (laplace["kl"].to_numpy() > mine["kl"].to_numpy()).all()
    assert (frame["seconds"] >= 0).all()


def test_published_figures_are_found_by_algorithm_and_epsilon(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(
        "dataset,algorithm,epsilon,minutes,kl,sd_l1,jaccard,cosine\n"
        "here,brd,1,4,0.0066,0.0049,0.9523,0.9992\n"
        "here,laplace,1,,1.3991,0.0261,0.1980,0.5656\n"
        "there,brd,1,9,0.5,0.5,0.5,0.5\n"
    )
    found = published("here", path)
    assert set(found) == {("brd", 1.0), ("laplace", 1.0)}
    assert (found["brd", 1.0]["kl"], found["brd", 1.0]["minutes"]) == (0.0066, 4)
    assert found["laplace", 1.0]["cosine"] == 0.5656
    assert math.isnan(found["laplace", 1.0]["minutes"])
    with pytest.raises(ValueError, match="dataset must be one of 'here', 'there'"):
        published("elsewhere", path)


def test_wrong_tables(histogram):
    with pytest.raises(ValueError, match="mechanisms must"):
        compute(histogram, (1.0,), mechanisms=("luck",))
    with pytest.raises(ValueError, match="epsilons must"):
        compute(histogram, (0.0,))
    assert set(QUICK) < set(MECHANISMS)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_the_laplace_rows_of_the_published_tables_come_out():
    heights = pd.read_csv(SHARED / "data" / "nba_height_weight.csv")["height_cm"]
    tables = compute(
        Histogram.from_values(heights), (0.1, 1.0, 2.0, 4.0, 8.0), mechanisms=("Laplace, paper",)
    )
    found = [profile.kl for profile in tables.profiles.values()]
    np.testing.assert_allclose(found, [1.9997, 1.3557, 0.9122, 0.4779, 0.1870], atol=0.002)
    printed = published("nba_height", SHARED / "data" / "published_tables.csv")
    # theirs has 1,307 rows, ours 1,290: at 1 and 2 the figures are as near as that allows
    assert printed["laplace", 1.0]["kl"] == pytest.approx(found[1], abs=0.05)


@pytest.fixture(scope="module")
def shown(values):
    settings = Settings(csv=str(values), column="height", seed=2)
    source = given(settings, "height")
    row = Experiment("nvo-column", "nvo", "The column height", column, None, None, (1.0, 1.0))
    with ThreadPoolExecutor(2) as pool:
        return source, column(Job(row, (source, (1.0, 8.0)), settings, pool, lambda share: None))


def test_the_embedded_figures_are_those_of_the_paper():
    frame = pd.read_csv(PUBLISHED)
    assert len(frame) == 38
    assert set(DATASETS) == set(frame["dataset"])
    row = frame[(frame["dataset"] == "nba_height") & (frame["algorithm"] == "brd") & (frame["epsilon"] == 1)]
    assert row[["table", "minutes", "kl", "sd_l1", "jaccard", "cosine"]].to_numpy().tolist() == [
        [1, 4, 0.0066, 0.0049, 0.9523, 0.9992]
    ]
    if SHARED.is_dir():
        shared = pd.read_csv(SHARED / "data" / "published_tables.csv").drop(columns="paper")
        pd.testing.assert_frame_equal(frame, shared)


@pytest.mark.compiled
def test_a_column_shows_what_compute_gives_one_mechanism_after_the_other(shown, values):
    source, made = shown
    histogram = Histogram.from_values(pd.read_csv(values)["height"])
    frame = made.tables["measures"].frame.drop(columns="seconds")
    assert frame["mechanism"].tolist() == [name for name in QUICK for _ in range(2)]
    assert frame["epsilon"].tolist() == [1.0, 8.0] * len(QUICK)
    wanted = compute(histogram, (8.0,), seed=2, steps=10**6).to_frame().drop(columns="seconds")
    pd.testing.assert_frame_equal(frame[1::2].reset_index(drop=True), wanted)
    assert (frame["kl"] >= frame["lower_bound"].fillna(0.0) - 1e-9).all()
    assert set(made.figures) == {"kl", "distribution", "noise"}
    assert source.what == "150 values of height"


@pytest.mark.compiled
def test_every_published_figure_of_the_column_stands_beside_ours(shown):
    _, made = shown
    frame = made.tables["published"].frame.set_index("quantity")
    printed = pd.read_csv(PUBLISHED).query("dataset == 'nba_height' and epsilon in (1, 8)")
    ours = made.tables["measures"].frame.set_index(["mechanism", "epsilon"])
    names = {"kl": "KL", "sd_l1": "L1 loss of SD", "jaccard": "Jaccard index", "cosine": "cosine similarity"}
    seen = 0
    for _, row in printed.iterrows():
        for name, how in MECHANISMS.items():
            if how.printed != row["algorithm"] or name not in QUICK:
                continue
            for measure, label in names.items():
                claim = frame.loc[f"{label}, {name}, epsilon {row['epsilon']:g}"]
                assert claim["published"] == row[measure]
                assert claim["ours"] == ours.loc[(name, row["epsilon"]), measure]
                assert claim["why"]
                seen += 1
            if not math.isnan(row["minutes"]):
                claim = frame.loc[f"seconds, {name}, epsilon {row['epsilon']:g}"]
                assert claim["published"] == 60 * row["minutes"]
                seen += 1
    # 3 mechanisms of best response with times, and Laplace, at two epsilons each
    assert seen == len(frame) == 2 * (3 * 5 + 4)


@pytest.mark.compiled
def test_the_reason_of_the_papers_scales_is_a_bound_that_holds(shown):
    _, made = shown
    frame = made.tables["measures"].frame
    row = frame[(frame["mechanism"] == "best response, paper's scales") & (frame["epsilon"] == 1.0)].iloc[0]
    claims = made.tables["published"].frame.set_index("quantity")
    assert row["lower_bound"] > 0.0066
    assert (
        f"below {row['lower_bound']:.4g}."
        in claims.loc["KL, best response, paper's scales, epsilon 1", "why"]
    )
    # no bound excuses what is better than published
    better = claims[claims["ratio"].gt(1.0) == claims.index.str.contains("Jaccard|cosine")]
    assert not better["why"].str.contains("no certified profile").any()


@pytest.mark.compiled
def test_a_column_of_the_users_is_told_to_be_kept(shown):
    _, made = shown
    assert any("keep this report to yourself" in paragraph for paragraph in made.text)


def test_published_zeros_are_left_out_of_a_logarithmic_figure():
    drawn = _positive([0.0, 0.1, math.nan])
    assert np.isnan(drawn).tolist() == [True, False, True]
