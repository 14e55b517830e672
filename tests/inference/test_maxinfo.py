"""Max information, levels and p-values, against exact tails, plain searches and big-number arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy import special, stats

from equinoise.inference import adjusted_p_value, corrected_level, max_information

METHODS = ["tight", "dwork"]
GRID = [
    (epsilon, n) for epsilon in (1e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0) for n in (1, 2, 10, 100, 2000)
]
BETAS = [0.0, 1e-200, 1e-30, 1e-9, 1e-4, 0.01, 0.05, 0.3, 0.9, 1.0]


def information(epsilon, n, beta, method):
    """MATH's formulas in bits, one number at a time."""
    if beta == 0:
        return math.log2(math.e) * epsilon * n
    if method == "dwork":
        nats = epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(2 / beta) / 2)
        return math.log2(math.e) * nats
    nats = epsilon**2 * n / 8 + epsilon * math.sqrt(n * math.log(1 / beta) / 2)
    return math.log2(math.e) * min(nats, epsilon * n)


@pytest.mark.parametrize("method", METHODS)
def test_formula(method):
    for epsilon, n in GRID:
        for beta in BETAS:
            expected = information(epsilon, n, beta, method)
            assert max_information(epsilon, n, beta, method) == pytest.approx(expected, rel=1e-12)


def test_tight_is_never_above_the_published_bound():
    for epsilon, n in GRID:
        assert (max_information(epsilon, n, BETAS) <= max_information(epsilon, n, BETAS, "dwork")).all()
        assert corrected_level(0.05, epsilon, n) >= corrected_level(0.05, epsilon, n, "dwork")
        assert adjusted_p_value(1e-4, epsilon, n) <= adjusted_p_value(1e-4, epsilon, n, "dwork")


# ----------------------------------------------------------------------------------------------------------
# Against the exact max information of randomised response
# ----------------------------------------------------------------------------------------------------------


def exact_information(epsilon, n, beta):
    """The beta-approximate max information, in bits, of n-fold randomised response on uniform bits.

    The likelihood ratio of (data, answers) against independent ones grows with the number of answers that
    agree with the data: binomial(n, e^epsilon/(1 + e^epsilon)) against binomial(n, 1/2). So the sets with
    the largest (P - beta)/Q are tails of that number (Neyman and Pearson), or nothing; all in logarithms.
    """
    m = np.arange(n + 1)
    choose = special.gammaln(n + 1) - special.gammaln(m + 1) - special.gammaln(n - m + 1)
    log_p = choose + m * -np.log1p(np.exp(-epsilon)) + (n - m) * -np.log1p(np.exp(epsilon))
    log_q = choose - n * math.log(2)
    log_p, log_q = (np.logaddexp.accumulate(tail[::-1])[::-1] for tail in (log_p, log_q))
    log_beta = math.log(beta) if beta else -math.inf
    more = log_p > log_beta
    gain = log_p[more] + np.log(-np.expm1(log_beta - log_p[more])) - log_q[more]
    return gain.max() / math.log(2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("epsilon", "n"), GRID)
def test_never_below_the_exact_value(epsilon, n, method):
    for beta in BETAS[:-1]:
        exact = exact_information(epsilon, n, beta)
        assert max_information(epsilon, n, beta, method) >= exact * (1 - 1e-9) - 1e-9


def test_tight_is_not_far_from_the_exact_value():
    """Below three times it where beta is small: a looser bound would mean a wrong constant."""
    for epsilon, n in [(0.01, 2000), (0.05, 2000), (0.1, 100), (0.1, 2000)]:
        for beta in (1e-4, 0.01):
            assert max_information(epsilon, n, beta) < 3 * exact_information(epsilon, n, beta)
    assert exact_information(0.5, 10, 0.0) == pytest.approx(
        10 * (math.log2(2) - math.log2(1 + math.exp(-0.5)))
    )


def selected_error(level, epsilon, n):
    """How often a test at `level` is wrong that randomised response has chosen, exactly: its worst case.

    The hypothesis "the data agree with these answers by chance", rejected when that many agree as only
    `level` of all data sets do, with randomisation to make that exact; the answers pick the hypothesis.
    """
    m = np.arange(n, -1, -1)
    q = stats.binom.pmf(m, n, 0.5)
    p = stats.binom.pmf(m, n, 1 / (1 + math.exp(-epsilon)))
    before = np.cumsum(q) - q
    taken = np.clip((level - before) / q, 0.0, 1.0)
    return float((taken * p).sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_a_test_at_the_corrected_level_keeps_alpha(alpha, method):
    """And at the plain level it does not."""
    for epsilon, n in [(0.05, 50), (0.1, 100), (0.3, 30), (1.0, 3), (2.0, 1)]:
        level = corrected_level(alpha, epsilon, n, method)
        assert selected_error(level, epsilon, n) <= alpha
        assert selected_error(alpha, epsilon, n) > 1.2 * alpha


# ----------------------------------------------------------------------------------------------------------
# Levels and p-values
# ----------------------------------------------------------------------------------------------------------


def searched_level(alpha, epsilon, n, method):
    """The level by a fine grid of beta, in logarithms of beta/alpha."""
    logs = -np.geomspace(1e-12, 700, 4001)
    share, kappa = (8, 1) if method == "tight" else (2, 2)
    nats = epsilon**2 * n / share + epsilon * np.sqrt(n * (math.log(kappa / alpha) - logs) / 2)
    values = math.log(alpha) + np.log(-np.expm1(logs)) - nats
    return math.exp(max(values.max(), math.log(alpha) - epsilon * n))


def test_published_levels_are_the_best():
    """Within a fine search's coarseness, and that of the grid."""
    for epsilon, n in GRID:
        for alpha in (1e-6, 0.05, 0.9):
            level = corrected_level(alpha, epsilon, n, "dwork")
            searched = searched_level(alpha, epsilon, n, "dwork")
            assert searched * (0.99 if searched > 1e-20 else 0.9) <= level <= searched * 1.001


def test_the_closed_form_is_never_below_what_max_information_gives():
    """By either bound, at the best beta; and where neither level vanishes it is the larger one by far."""
    for epsilon, n in GRID:
        for alpha in (1e-6, 0.05, 0.9):
            level = corrected_level(alpha, epsilon, n)
            assert level >= max(searched_level(alpha, epsilon, n, method) for method in METHODS) * (1 - 1e-11)
    assert corrected_level(0.05, 0.1, 500) > 2.3 * searched_level(0.05, 0.1, 500, "tight")


@pytest.mark.parametrize(("epsilon", "pure", "dwork"), [(0.01, 3.4e-4, 0.0309), (0.1, 9.6e-24, 8.7e-5)])
def test_known_published_levels(epsilon, pure, dwork):
    assert float(f"{0.05 * 2 ** -max_information(epsilon, 500):.2g}") == pure
    assert corrected_level(0.05, epsilon, 500, "dwork") == pytest.approx(dwork, rel=0.01)


@pytest.mark.parametrize(
    ("spread", "level", "max_info"),
    [(0.5, 0.0263, 0.0194), (1.0, 0.0130, 0.0079), (2.24, 0.0017, 0.00073), (4.5, 1.6e-5, 4.4e-6)],
)
def test_known_levels(spread, level, max_info):
    """By epsilon sqrt(n) alone, with what the max information of "tight" would leave."""
    for n in (400, 10_000):
        assert corrected_level(0.05, spread / math.sqrt(n), n) == pytest.approx(level, rel=0.03)
        assert searched_level(0.05, spread / math.sqrt(n), n, "tight") == pytest.approx(max_info, rel=0.03)


def exact_level(alpha, epsilon, n, method):
    """The level with 60 digits: of "dwork" by golden search in ln(alpha/beta - 1)."""
    mpmath.mp.dps = 60
    a, e = mpmath.mpf(alpha), mpmath.mpf(epsilon)

    def loss(u):
        beta = a / (1 + mpmath.exp(u))
        return -(mpmath.log(a - beta) - e**2 * n / 2 - e * mpmath.sqrt(n * mpmath.log(2 / beta) / 2))

    low, high = mpmath.mpf(-60), mpmath.mpf(800)
    golden = (mpmath.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    best = mpmath.exp(-loss(low))
    if method == "tight":
        best = mpmath.exp(-((mpmath.sqrt(-mpmath.log(a)) + e * mpmath.sqrt(mpmath.mpf(n) / 8)) ** 2))
    return max(best, a * mpmath.exp(-e * n))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("alpha", "epsilon", "n"), [(0.05, 1e-9, 1), (1e-30, 0.1, 500), (0.999, 0.02, 100), (0.05, 0.2, 3000)]
)
def test_levels_to_many_digits(alpha, epsilon, n, method):
    exact = exact_level(alpha, epsilon, n, method)
    level = corrected_level(alpha, epsilon, n, method)
    assert level == pytest.approx(float(exact), rel=1e-10 if method == "tight" else 2e-3)
    assert level <= float(exact) * (1 + 1e-12)


def test_dwork_has_the_published_bounds_alone():
    """The formula for beta > 0, not cut by the bound for beta = 0."""
    assert max_information(2.0, 1, 0.01, "dwork") > max_information(2.0, 1, 0.0, "dwork")
    assert max_information(2.0, 1, 0.01) == max_information(2.0, 1)


@given(
    st.floats(1e-12, 0.999999),
    st.floats(1e-6, 3.0),
    st.integers(1, 10_000),
    st.sampled_from(METHODS),
)
@settings(max_examples=300)
def test_levels_and_p_values_say_the_same(alpha, epsilon, n, method):
    level = corrected_level(alpha, epsilon, n, method)
    assert 0 <= level <= alpha
    if level > 1e-300:
        assert adjusted_p_value(level, epsilon, n, method) == pytest.approx(alpha, rel=1e-9)
        assert adjusted_p_value(min(level * 1.01, 1.0), epsilon, n, method) > alpha
        assert adjusted_p_value(level * 0.99, epsilon, n, method) < alpha


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-4, 1.0), st.integers(1, 2000), st.floats(1e-9, 1.0))
@example(0.0, 0.0, 1.0, 1419, 0.5)
@settings(max_examples=300)
def test_p_values_are_the_least(p, q, epsilon, n, beta):
    """Monotone, between p and 1, and not above the value at any beta, but for the coarseness of the grid."""
    low, high = sorted((p, q))
    one, two = adjusted_p_value([low, high], epsilon, n)
    assert low <= one <= two <= 1.0
    for method in METHODS:
        bits = max_information(epsilon, n, beta, method) + math.log2(max(high, 5e-324))  # 0 counts as that
        at_beta = 2.0 ** min(bits, 1000.0) + beta
        assert adjusted_p_value(high, epsilon, n, method) <= min(1.0, at_beta) * 1.01


@pytest.mark.parametrize("method", METHODS)
def test_extremes(method):
    """No overflow, no NaN, nothing below p; all under the suite's filter that makes warnings errors."""
    epsilon = np.array([1e-300, 1e-9, 1.0, 1e3, 1e200, math.inf])
    for n in (1, 10**6, 2**62):
        level = corrected_level(0.05, epsilon, n, method)
        assert np.isfinite(level).all() and (np.diff(level) <= 0).all() and level[-1] == 0.0
        p = adjusted_p_value(np.array([[0.0], [5e-324], [1e-300], [0.01], [1.0]]), epsilon, n, method)
        assert ((p > 0) & (p <= 1)).all() and (p[:, -1] == 1.0).all() and (p[-1] == 1.0).all()
        bits = max_information(epsilon, n, [[0.0], [1e-300], [1.0]], method)
        assert not np.isnan(bits).any() and (bits[:, -1] == math.inf).all()
    assert corrected_level(0.05, 1e-300, 1, method) == pytest.approx(0.05, rel=1e-12)
    assert adjusted_p_value(0.03, 1e-300, 1, method) == pytest.approx(0.03, rel=1e-12)
    assert adjusted_p_value(0.0, 1.0, 10**6, method) == 1.0  # too small for a float64 is not nothing


def test_the_published_level_vanishes_once_epsilon_root_n_passes_three():
    for epsilon, n in [(0.3, 100), (0.003, 10**6)]:
        assert corrected_level(0.05, epsilon, n, "dwork") < 4e-6 < 4e-4 < corrected_level(0.05, epsilon, n)


def test_scalars_and_arrays():
    assert isinstance(max_information(0.1, 5), float)
    assert isinstance(corrected_level(0.05, 0.1, 5), float)
    assert isinstance(adjusted_p_value(0.05, 0.1, 5), float)
    level = corrected_level([[0.01], [0.05]], [0.1, 0.2, 0.3], 50)
    assert level.shape == (2, 3) and level[1, 2] == corrected_level(0.05, 0.3, 50)
    p = adjusted_p_value([0.01, 0.02], 0.1, [50, 60])
    assert p[1] == adjusted_p_value(0.02, 0.1, 60)
    assert adjusted_p_value(np.empty(0), 0.1, 5).shape == (0,)


@pytest.mark.parametrize("function", [max_information, corrected_level, adjusted_p_value])
def test_bad_arguments(function):
    first = (
        {} if function is max_information else {"alpha": 0.05} if function is corrected_level else {"p": 0.05}
    )
    good = first | {"epsilon": 0.1, "n": 10}
    function(**good)
    bad = [("epsilon", 0.0), ("epsilon", math.nan), ("epsilon", "x"), ("n", 0), ("n", 2.5), ("n", None)]
    bad += [("method", "best"), ("method", None)]
    bad += [(name, value) for name in first for value in (-0.1, 1.5, math.nan, "x")]
    bad += [("alpha", 0.0), ("alpha", 1.0)] if "alpha" in first else []
    bad += [("beta", -0.1), ("beta", 1.1)] if not first else []
    for name, value in bad:
        with pytest.raises((TypeError, ValueError), match=f"^{name} must"):
            function(**good | {name: value})
    with pytest.raises(ValueError, match=r"^arguments must have shapes that broadcast"):
        function(**good | {"epsilon": [0.1, 0.2], "n": [1, 2, 3]})
