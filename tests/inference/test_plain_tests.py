"""Normal and exact binomial tests, against scipy's one at a time."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from equinoise.inference import binomial_test, z_test

ALTERNATIVES = ["two-sided", "less", "greater"]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_z_against_scipy(alternative):
    z = np.concatenate([np.linspace(-37, 37, 149), [0.0, 1e-9]])
    expected = {
        "two-sided": 2 * stats.norm.sf(np.abs(z)),
        "less": stats.norm.cdf(z),
        "greater": stats.norm.sf(z),
    }[alternative]
    assert z_test(0.3 + 0.01 * z, 0.3, 0.01, alternative) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_z_far_out():
    """To many digits where scipy's own would cancel, and 0 beyond float64's range without a warning."""
    mpmath.mp.dps = 30
    for z in (0.5, 5.0, 20.0, 37.0):
        assert z_test(z, 0.0, 1.0) == pytest.approx(float(mpmath.erfc(z / mpmath.sqrt(2))), rel=1e-12)
    assert z_test(1e300, -1e308, 1e-300) == 0.0
    assert z_test(0.0, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("null", [0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9, 1.0])
def test_binomial_against_scipy(null, alternative):
    """Every outcome of up to 16 trials, and some of more."""
    cases = [(k, n) for n in range(1, 17) for k in range(n + 1)]
    cases += [(k, n) for n in (97, 1000) for k in range(0, n + 1, 31)]
    successes, trials = np.array(cases).T
    ours = binomial_test(successes, trials, null, alternative)
    theirs = [stats.binomtest(int(k), int(n), null, alternative).pvalue for k, n in cases]
    assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-300)


def test_binomial_by_enumeration():
    """Two-sided: the probability of all outcomes that are no more likely, in whole numbers of 4^-n."""
    for n in range(9):
        for quarters in (1, 2, 3):
            weight = [math.comb(n, k) * quarters**k * (4 - quarters) ** (n - k) for k in range(n + 1)]
            for k in range(n + 1):
                extreme = sum(w for w in weight if w <= weight[k])
                assert binomial_test(k, n, quarters / 4) == pytest.approx(extreme / 4**n, rel=1e-12)


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0, 1))
@settings(max_examples=150)
def test_binomial_is_a_p_value(one, two, null):
    successes, trials = min(one, two), max(one, two)
    p = binomial_test(successes, trials, null)
    assert 0 <= p <= 1
    if trials and (null == 0.0 or null > 1e-100):  # scipy's overflows at less
        theirs = stats.binomtest(successes, trials, null).pvalue
        assert p == pytest.approx(theirs, rel=1e-6, abs=1e-100)  # at the far end scipy's own digits go
    mirrored = binomial_test(trials - successes, trials, 0.5)
    assert mirrored == pytest.approx(binomial_test(successes, trials, 0.5))


def test_the_far_end_is_exact():
    """Sum of all outcomes that are no more likely, in 30 digits; scipy is off by 1e-5 here."""
    assert binomial_test(955, 955, 0.5390625) == pytest.approx(1.01553236101e-256, rel=1e-10)


def test_no_trials():
    for alternative in ALTERNATIVES:
        assert binomial_test(0, 0, 0.3, alternative) == 1.0


def test_shapes():
    assert isinstance(z_test(0.1, 0.2, 0.3), float) and isinstance(binomial_test(1, 2, 0.5), float)
    assert z_test([[0.1], [0.2]], [0.1, 0.2, 0.3], 1.0).shape == (2, 3)
    p = binomial_test([[1], [2]], [5, 6, 7], [0.1, 0.2, 0.3])
    assert p.shape == (2, 3) and p[1, 2] == binomial_test(2, 7, 0.3)
    assert binomial_test(np.empty((0, 2), dtype=np.int64), 3, 0.5).shape == (0, 2)


def test_uniform_under_the_null():
    """P(p <= level) is never above level, exactly, for every trial count to 40."""
    for n in range(1, 41):
        for null in (0.1, 0.37, 0.5):
            weight = stats.binom.pmf(np.arange(n + 1), n, null)
            for alternative in ALTERNATIVES:
                p = binomial_test(np.arange(n + 1), n, null, alternative)
                for level in (0.01, 0.05, 0.2):
                    assert weight[p <= level].sum() <= level * (1 + 1e-9)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("estimate", lambda: z_test(math.nan, 0, 1)),
        ("null", lambda: z_test(0, math.inf, 1)),
        ("stderr", lambda: z_test(0, 0, 0.0)),
        ("stderr", lambda: z_test(0, 0, math.inf)),
        ("stderr", lambda: z_test(0, 0, [1.0, -1.0])),
        ("alternative", lambda: z_test(0, 0, 1, "both")),
        ("arguments", lambda: z_test([0, 1], [0, 1, 2], 1)),
        ("successes", lambda: binomial_test(-1, 5, 0.5)),
        ("successes", lambda: binomial_test([1, 6], 5, 0.5)),
        ("successes", lambda: binomial_test(1.0, 5, 0.5)),
        ("trials", lambda: binomial_test(0, -1, 0.5)),
        ("trials", lambda: binomial_test(0, 1.5, 0.5)),
        ("trials", lambda: binomial_test(3, 2**62, 0.5)),  # by floats no end would be found
        ("null", lambda: binomial_test(1, 5, 1.5)),
        ("null", lambda: binomial_test(1, 5, math.nan)),
        ("alternative", lambda: binomial_test(1, 5, 0.5, None)),
    ],
)
def test_bad_arguments(argument, call):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        call()
