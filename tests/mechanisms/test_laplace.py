"""The Laplace mechanism for simulations and, with OpenDP, for a person's report."""

from __future__ import annotations

import math
import sys

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from equinoise import mechanisms

module = sys.modules["equinoise.mechanisms.laplace"]  # the package's name for it is the function's
N = 1_000_000 if not numba.config.DISABLE_JIT else 20_000


# ----------------------------------------------------------------------------------------------------------
# For simulations
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1.0, 2.5, 1e9])
def test_law(scale):
    """Kolmogorov-Smirnov at p > 1e-6, moments within six standard errors, for a fixed seed."""
    draws = mechanisms.laplace(scale, N, seed=3)
    assert draws.dtype == np.float64 and draws.shape == (N,)
    assert stats.kstest(draws / scale, "laplace").pvalue > 1e-6
    assert abs(np.abs(draws / scale).mean() - 1) < 6 / math.sqrt(N)
    assert abs((draws / scale).var() - 2) < 6 * math.sqrt(20 / N)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 6 / math.sqrt(N)


def test_seeds():
    one = mechanisms.laplace(1.0, 1000, seed=1)
    assert one.tolist() == mechanisms.laplace(1.0, 1000, seed=1).tolist()
    assert (2 * one).tolist() == mechanisms.laplace(2.0, 1000, seed=1).tolist()
    assert one[:10].tolist() == mechanisms.laplace(1.0, 10, seed=1).tolist()
    assert len(set(one)) == 1000
    assert not set(one) & set(mechanisms.laplace(1.0, 1000, seed=2))
    assert not set(mechanisms.laplace(1.0, 1000)) & set(mechanisms.laplace(1.0, 1000))
    assert mechanisms.laplace(1.0, 5, seed=2**300).shape == (5,)


def test_no_draws_and_no_noise():
    assert mechanisms.laplace(1.0, 0, seed=1).shape == (0,)
    assert (mechanisms.laplace(0.0, 5, seed=1) == 0.0).all()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("scale", (-1.0, 5, 1)),
        ("scale", (math.nan, 5, 1)),
        ("scale", (math.inf, 5, 1)),
        ("scale", ("1", 5, 1)),
        ("scale", (None, 5, 1)),
        ("scale", (True, 5, 1)),
        ("scale", ([1.0], 5, 1)),
        ("scale", (1j, 5, 1)),
        ("size", (1.0, -1, 1)),
        ("size", (1.0, 2.0, 1)),
        ("size", (1.0, "3", 1)),
        ("size", (1.0, None, 1)),
        ("size", (1.0, True, 1)),
        ("size", (1.0, (2, 3), 1)),
        ("seed", (1.0, 5, -1)),
        ("seed", (1.0, 5, 0.5)),
        ("seed", (1.0, 5, "a")),
        ("seed", (1.0, 5, True)),
    ],
)
def test_bad_input(name, arguments):
    with pytest.raises((TypeError, ValueError), match=name):
        mechanisms.laplace(*arguments)


def test_no_scale_makes_an_infinity():
    """A scale so large that a draw overflows is refused, or every draw is finite."""
    try:
        draws = mechanisms.laplace(sys.float_info.max, 1000, seed=1)
    except ValueError as error:
        assert "scale" in str(error)
    else:
        assert np.isfinite(draws).all()


# ----------------------------------------------------------------------------------------------------------
# For a person's report
# ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_measurements():
    module._measurement.cache_clear()
    yield
    module._measurement.cache_clear()


@pytest.mark.parametrize("sensitivity", [2.0, 1.0, 0.1])
def test_opendp_confirms_epsilon(sensitivity):
    """OpenDP's own privacy map, at the L1 distance asked for, and no more noise than a few ulps above."""
    pytest.importorskip("opendp")
    for epsilon in [*np.geomspace(1e-6, 1e6, 61).tolist(), 0.1, 1 / 3, 1.0, math.pi, 2.0, 0.7, 1e-5]:
        measurement = module._measurement(sensitivity, epsilon)
        assert epsilon * (1 - 1e-9) <= measurement.map(sensitivity) <= epsilon


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(2.0, 1.0), (1.0, 0.01), (3.0, 30.0)])
def test_secure_law(sensitivity, epsilon):
    """20,000 fresh draws: Kolmogorov-Smirnov at p > 1e-6, scale within 5% (seven standard errors)."""
    pytest.importorskip("opendp")
    values = np.linspace(-5.0, 5.0, 20_000)
    noise = (mechanisms.secure_laplace(values, sensitivity, epsilon) - values) * epsilon / sensitivity
    assert noise.dtype == np.float64 and noise.shape == values.shape
    assert stats.kstest(noise, "laplace").pvalue > 1e-6
    assert np.abs(noise).mean() == pytest.approx(1.0, rel=0.05)
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 6 / math.sqrt(len(noise))


def test_secure_noise_never_repeats():
    pytest.importorskip("opendp")
    given = [0.25] * 100
    first, second = (mechanisms.secure_laplace(given, 1.0, 1.0) for _ in range(2))
    assert len({*first, *second}) == 200
    assert given == [0.25] * 100


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), max_size=5), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_secure_output_is_finite(values, sensitivity, epsilon):
    pytest.importorskip("opendp")
    noised = mechanisms.secure_laplace(values, sensitivity, epsilon)
    assert noised.shape == (len(values),) and np.isfinite(noised).all()


BAD = [
    ("values", ([math.nan], 1.0, 1.0)),
    ("values", ([0.0, math.inf], 1.0, 1.0)),
    ("values", ([0.0, -math.inf], 1.0, 1.0)),
    ("values", (1.0, 1.0, 1.0)),
    ("values", ([[1.0]], 1.0, 1.0)),
    ("values", (["a"], 1.0, 1.0)),
    ("values", ([None], 1.0, 1.0)),
    ("values", ([True], 1.0, 1.0)),
    ("values", ([1j], 1.0, 1.0)),
    ("values", ([[1.0], [1.0, 2.0]], 1.0, 1.0)),
    ("sensitivity", ([1.0], 0.0, 1.0)),
    ("sensitivity", ([1.0], -1.0, 1.0)),
    ("sensitivity", ([1.0], math.nan, 1.0)),
    ("sensitivity", ([1.0], math.inf, 1.0)),
    ("sensitivity", ([1.0], "1", 1.0)),
    ("sensitivity", ([1.0], True, 1.0)),
    ("epsilon", ([1.0], 1.0, 0.0)),
    ("epsilon", ([1.0], 1.0, -1.0)),
    ("epsilon", ([1.0], 1.0, math.nan)),
    ("epsilon", ([1.0], 1.0, math.inf)),
    ("epsilon", ([1.0], 1.0, "1")),
    ("epsilon", ([1.0], 1.0, None)),
    ("epsilon", ([1.0], 1.0, True)),
]


@pytest.mark.parametrize(("name", "arguments"), BAD)
def test_bad_input_never_reaches_opendp(name, arguments, monkeypatch):
    def reached(*given):
        raise AssertionError("OpenDP was reached")

    monkeypatch.setattr(module, "_measurement", reached)
    with pytest.raises((TypeError, ValueError), match=name):
        mechanisms.secure_laplace(*arguments)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1e300, 1e-300), (1.0, 5e-324), (5e-324, 1e300)])
def test_scales_that_no_float_holds(sensitivity, epsilon):
    pytest.importorskip("opendp")
    with pytest.raises(ValueError, match=r"epsilon|sensitivity"):
        mechanisms.secure_laplace([1.0], sensitivity, epsilon)


def test_without_opendp_the_error_says_what_to_install(monkeypatch, fresh_measurements):
    for name in [name for name in sys.modules if name.split(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(ImportError, match=r'pip install "equinoise\[secure\]"'):
        mechanisms.secure_laplace([1.0], 1.0, 1.0)
    assert mechanisms.laplace(1.0, 3, seed=1).shape == (3,)  # which needs none


def test_an_opendp_of_another_law_is_refused(monkeypatch, fresh_measurements):
    """Integers of OpenDP before 0.14.2 failed the tests of twins: 320 by chi square for 51 values."""
    prelude = pytest.importorskip("opendp.prelude")
    for version, taken in (("0.13.0", False), ("0.14.1", False), ("0.14.2", True), ("0.15.0a1", True)):
        monkeypatch.setattr(prelude, "__version__", version)
        module._measurement.cache_clear()
        if taken:
            assert isinstance(mechanisms.secure_laplace([0.0], 1.0, 1.0)[0], float)
        else:
            with pytest.raises(ImportError, match=f"must not be of OpenDP {version}, .*opendp>=0.14.2"):
                mechanisms.secure_laplace([0.0], 1.0, 1.0)
