"""The paper's tables and its regression: ours, and the published figures beside them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from equinoise.experiments.nvo.regression import PUBLISHED, regression
from equinoise.experiments.nvo.tables import MECHANISMS, QUICK, compute, published
from equinoise.nvo import Histogram

SHARED = Path(os.environ.get("EQUINOISE_SHARED") or Path(__file__).resolve().parents[3] / "shared")


@pytest.fixture(scope="module")
def histogram():
    rng = np.random.default_rng(0)
    return Histogram.from_values(rng.gamma(4.0, 10.0, 400), 41)


def test_every_mechanism_at_every_epsilon(histogram):
    tables = compute(histogram, (1.0, 4.0), mechanisms=("best response, default scales", "Laplace, paper"))
    frame = tables.to_frame()
    assert len(frame) == 4
    mine = frame[frame["mechanism"] == "best response, default scales"]
    assert (mine["satisfied"] == 400).all()
    assert (mine["realised_epsilon"] <= mine["epsilon"]).all()
    assert (mine["kl"] >= mine["lower_bound"] - 1e-9).all()
    laplace = frame[frame["mechanism"] == "Laplace, paper"]
    assert laplace["lower_bound"].isna().all()
    assert (laplace["kl"].to_numpy() > mine["kl"].to_numpy()).all()
    assert (frame["seconds"] >= 0).all()


def test_published_figures_stand_beside_ours(histogram, tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(
        "dataset,algorithm,epsilon,minutes,kl,sd_l1,jaccard,cosine\n"
        "here,brd,1,4,0.0066,0.0049,0.9523,0.9992\n"
        "here,laplace,1,,1.3991,0.0261,0.1980,0.5656\n"
        "there,brd,1,9,0.5,0.5,0.5,0.5\n"
    )
    names = ("best response, paper's scales", "Laplace, paper", "Laplace, smallest")
    frame = compute(histogram, (1.0, 2.0), mechanisms=names).to_frame(published(path, "here"))
    frame = frame.set_index(["mechanism", "epsilon"])
    assert frame.loc[("best response, paper's scales", 1.0), "published_kl"] == 0.0066
    assert frame.loc[("best response, paper's scales", 1.0), "published_minutes"] == 4
    assert frame.loc[("Laplace, paper", 1.0), "published_cosine"] == 0.5656
    assert np.isnan(frame.loc[("Laplace, paper", 2.0), "published_kl"])
    assert np.isnan(frame.loc[("Laplace, smallest", 1.0), "published_kl"])
    with pytest.raises(ValueError, match="dataset must be one of 'here', 'there'"):
        published(path, "elsewhere")


def test_wrong_tables(histogram):
    with pytest.raises(ValueError, match="mechanisms must"):
        compute(histogram, (1.0,), mechanisms=("luck",))
    with pytest.raises(ValueError, match="epsilons must"):
        compute(histogram, (0.0,))
    assert set(QUICK) < set(MECHANISMS)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_the_laplace_rows_of_the_published_tables_come_out():
    import pandas as pd

    heights = pd.read_csv(SHARED / "data" / "nba_height_weight.csv")["height_cm"]
    tables = compute(
        Histogram.from_values(heights), (0.1, 1.0, 2.0, 4.0, 8.0), mechanisms=("Laplace, paper",)
    )
    found = [profile.kl for profile in tables.profiles.values()]
    np.testing.assert_allclose(found, [1.9997, 1.3557, 0.9122, 0.4779, 0.1870], atol=0.002)
    frame = tables.to_frame(published(SHARED / "data" / "published_tables.csv", "nba_height"))
    # theirs has 1,307 rows, ours 1,290: at 1 and 2 the figures are as near as that allows
    assert frame["published_kl"].iloc[1] == pytest.approx(found[1], abs=0.05)


@pytest.mark.compiled
def test_a_regression_on_a_release_is_nearly_the_one_on_the_data():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(5)
    x = rng.normal(180.0, 8.0, 250)
    y = 0.9 * x - 80.0 + rng.normal(0.0, 4.0, 250)
    made = regression(x, y, epsilons=(8.0, 0.5), n_bins=15, n_replicates=1, seed=3)
    assert made.certified.all()
    original, nvo, laplace = (made.rmse[name] for name in ("original", "NVO", "Laplace"))
    assert original.shape == nvo.shape == laplace.shape == (1, 2)
    assert original[0, 0] == original[0, 1]
    length = 4.218875824868201 * (y.max() - y.min())  # of the normalised range, in the units of y
    assert original[0, 0] * length == pytest.approx(4.0, rel=0.15)
    assert original[0, 0] * 0.98 <= nvo[0, 0] < 1.25 * original[0, 0]
    assert (made.kl["NVO"] < made.kl["Laplace"]).all()
    frame = made.to_frame()
    assert frame["mechanism"].tolist() == ["original"] * 2 + ["NVO"] * 2 + ["Laplace"] * 2
    assert frame["published"].tolist()[2] == PUBLISHED["NVO"][8.0]
    assert np.isnan(frame["published"].tolist()[3])


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    with pytest.raises(ImportError, match=r'pip install "equinoise\[data\]"'):
        regression([1, 2, 3], [1, 2, 4])


@pytest.mark.parametrize(
    ("options", "words"),
    [({"epsilons": (0.0,)}, "epsilons must"), ({"n_replicates": 0}, "n_replicates must")],
)
def test_wrong_regressions(options, words):
    pytest.importorskip("sklearn")
    with pytest.raises(ValueError, match=words):
        regression([1, 2, 3], [1, 2, 4], **options)
