"""A regression on released data: its errors, the published ones, and what it lacks."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equinoise.experiments.nvo.exhibits import steps
from equinoise.experiments.nvo.regression import PUBLISHED, _claims, _quietly, regression
from equinoise.experiments.steps import Settings


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
    claims = {claim.quantity: claim.published for claim in _claims(made)}
    assert claims["RMSE, NVO, epsilon 8"] == PUBLISHED["NVO"][8.0]
    assert np.isnan(claims["RMSE, NVO, epsilon 0.5"])


def test_a_missing_package_is_named(monkeypatch):
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


def test_the_regression_says_what_it_lacks(monkeypatch, values):
    step = steps(Settings(csv=str(values), column="height"))[-1]
    assert step.make(Settings(), None, print).headline == "Left out: it needs a second column, --target."
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else real(name))
    step = steps(Settings(csv=str(values), column="height", target="weight"))[-1]
    assert "pip install" in step.make(Settings(), None, print).headline


@pytest.mark.compiled
def test_a_regression_of_the_users_columns(values, recwarn):
    pytest.importorskip("sklearn")
    settings = Settings(csv=str(values), column="height", target="weight")
    step = steps(settings)[-1]
    with ThreadPoolExecutor(2) as pool:
        made = step.make(settings, pool, lambda share: None)
    assert not [w for w in recwarn if "Convergence" in w.category.__name__]
    frame = made.tables["errors"].frame
    assert frame["mechanism"].tolist() == ["original"] * 2 + ["NVO"] * 2 + ["Laplace"] * 2
    claims = made.tables["published"].frame.set_index("quantity")
    assert claims.loc["RMSE, Laplace, epsilon 1", "published"] == 0.0444
    relative = claims.loc["RMSE relative to the original's, NVO, epsilon 8"]
    assert relative["published"] == pytest.approx(1.0)
    assert relative["ours"] == pytest.approx(frame["rmse"][3] / frame["rmse"][1])
    assert "weight from height, 150 records" in made.text[0]


def test_networks_that_stop_early_say_nothing():
    exceptions = pytest.importorskip("sklearn.exceptions")
    with _quietly():
        warnings.warn("not converged", exceptions.ConvergenceWarning, stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("something else", UserWarning, stacklevel=1)


def test_columns_of_different_lengths_are_refused(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b\n1,2\n3,\n5,6\n")
    with pytest.raises(ValueError, match="target must have no missing value"):
        steps(Settings(csv=str(path), column="a", target="b"))
