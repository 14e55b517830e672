"""The log-odds shift against every private collector of few rewards, and an adversary that sees choices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize, stats

from equinoise.inference import (
    adjusted_p_value,
    bias_bound,
    binomial_test,
    shifted_interval,
    shifted_p_value,
)

EPSILONS = [0.05, 0.6931471805599453, 2.0]
MEANS = [0.02, 0.3, 0.5, 0.9]


def moved(mean, epsilon):
    """sigma(logit mean + epsilon), with 0 and 1 where they are."""
    return mean if mean in (0, 1) else 1 / (1 + (1 - mean) / mean * math.exp(-epsilon))


def upper_tail(n, mean, s):
    return sum(math.comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(s, n + 1))


# Every collector


def bits(n):
    return np.array(list(itertools.product((0, 1), repeat=n)))


def law(n, mean):
    """The probability of every outcome of n rewards of 0 and 1, in the order of `bits`."""
    return (np.where(bits(n), mean, 1 - mean)).prod(axis=1)


def worst_tail(n, others, mean, epsilon, s):
    """The largest P(S >= s | a) that any probability of a, private in each of n + others rewards, can make.

    S sums the first n. Of a probability q(a | x) only ratios count, so it is a linear program over q times
    the law of the rewards, scaled to sum to 1.
    """
    x, prior = bits(n + others), law(n + others, mean)
    limits = []
    for i, j in itertools.permutations(range(len(x)), 2):
        if np.abs(x[i] - x[j]).sum() == 1:
            row = np.zeros(len(x))
            row[i], row[j] = 1, -math.exp(epsilon)
            limits.append(row)
    hit = x[:, :n].sum(axis=1) >= s
    ratio = {"A_ub": np.array(limits), "b_ub": np.zeros(len(limits))}
    found = optimize.linprog(-prior * hit, **ratio, A_eq=[prior], b_eq=[1], method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("n", "others"), [(1, 0), (1, 4), (3, 2), (4, 0), (5, 0)])
def test_no_collector_exceeds_the_shifted_tails(n, others, epsilon):
    """Over all collectors at once, whatever they draw and in whatever order; some collector attains them."""
    for mean, s in itertools.product(MEANS[1:], range(1, n + 1)):
        p = shifted_p_value(s, n, mean, epsilon)
        assert worst_tail(n, others, mean, epsilon, s) == pytest.approx(p, abs=1e-7)


def tails_of(tree, horizon, mean, epsilon):
    """Yield (pulls, P(S >= s | choices) for every s) of both arms for all that a collector may choose.

    The arm of a round is `tree` of the reports so far: a reward's report is randomised response to it. One
    more choice follows the last round.
    """
    reports, stay = bits(horizon), 1 / (1 + math.exp(-epsilon))
    agree = reports[:, None] == reports[None]
    joint = law(horizon, mean) * np.where(agree, stay, 1 - stay).prod(axis=2)  # [reports, rewards]
    choices = np.array([[tree[tuple(row[:t])] for t in range(horizon + 1)] for row in reports])
    for seen in np.unique(choices, axis=0):
        weight = joint[(choices == seen).all(axis=1)].sum(axis=0)
        for arm in (0, 1):
            pulled = seen[:horizon] == arm
            total = reports[:, pulled].sum(axis=1)
            tails = [weight[total >= s].sum() / weight.sum() for s in range(pulled.sum() + 1)]
            yield int(pulled.sum()), np.array(tails)


def collectors(horizon):
    """All trees of up to two rounds, and some of more, among them the one that plays what was reported."""
    nodes = [tuple(row) for t in range(horizon + 1) for row in bits(t)]
    if horizon <= 2:
        plans = itertools.product((0, 1), repeat=len(nodes))
        yield from (dict(zip(nodes, plan, strict=True)) for plan in plans)
    else:
        rng = np.random.default_rng(horizon)
        yield from (dict(zip(nodes, rng.integers(0, 2, len(nodes)), strict=True)) for _ in range(40))
        yield {node: node[-1] if node else 1 for node in nodes}


@pytest.mark.parametrize("horizon", [1, 2, 3, 5])
def test_randomised_response_stays_within_the_shift(horizon):
    for tree in collectors(horizon):
        for n, tails in tails_of(tree, horizon, 0.3, 1.0):
            s = np.arange(n + 1)
            assert (tails <= shifted_p_value(s, n, 0.3, 1.0) + 1e-12).all()
            assert (1 - np.append(tails, 0)[1:] <= shifted_p_value(s, n, 0.3, 1.0, "less") + 1e-12).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mean", MEANS)
def test_randomised_response_attains_the_shift(mean, epsilon):
    """Arm 1 is played for as long as it is reported to win: given that it was, its sum is the binomial."""
    *_, follow = collectors(5)
    n, tails = list(tails_of(follow, 5, mean, epsilon))[-1]
    assert n == 5
    np.testing.assert_allclose(shifted_p_value(np.arange(6), 5, mean, epsilon), tails, rtol=1e-12)


def test_an_adversary_that_sees_the_choices_errs_no_more_often_than_it_says():
    """100 settings, 1,000 runs each, at 5% and three standard errors.

    Choices are reports of all rewards. The adversary picks what they make look most false: the arm, how many
    of its rewards to take, and the direction, each null hypothesis being true.
    """
    rng, n_runs = np.random.default_rng(11), 1000
    worst, broken = 0.0, 0
    for _ in range(100):
        n_arms, n = rng.integers(1, 9), rng.integers(2, 60)
        epsilon, means = rng.uniform(0.02, 2.0), rng.uniform(0.02, 0.98, n_arms)
        x = rng.random((n_runs, n_arms, n)) < means[:, None]
        said = (rng.random(x.shape) < 1 / (1 + math.exp(-epsilon))) == x
        s, reported, pulls = x.cumsum(axis=2), said.cumsum(axis=2), np.arange(1, n + 1)
        stay = 1 / (1 + math.exp(-epsilon))
        expected = (1 - stay + means * (2 * stay - 1))[:, None]
        excess = (reported - pulls * expected) / np.sqrt(pulls * expected * (1 - expected))
        best = np.abs(excess).reshape(n_runs, -1).argmax(axis=1)
        run, arm, last = np.arange(n_runs), best // n, best % n
        up = excess[run, arm, last] > 0
        taken = s[run, arm, last], pulls[last], means[arm]
        p = np.where(up, shifted_p_value(*taken, epsilon), shifted_p_value(*taken, epsilon, "less"))
        plain = np.where(up, binomial_test(*taken, "greater"), binomial_test(*taken, "less"))
        worst = max(worst, (p <= 0.05).mean())
        broken += (plain <= 0.05).mean() > 0.1
    assert worst <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_runs)
    assert broken > 50  # without the shift most of them are wrong more than twice too often


# P-values and intervals


@given(st.integers(0, 80), st.integers(0, 80), st.floats(0, 1), st.floats(0, 4), st.floats(0, 4))
@settings(max_examples=150)
def test_p_values_in_plain_python(good, bad, null, epsilon, more):
    """The twin; larger with epsilon; the unshifted at 0; the same from both sides."""
    n, (low, high) = good + bad, sorted((epsilon, more))
    assert shifted_p_value(good, n, null, low) == pytest.approx(
        min(upper_tail(n, moved(null, low), good), 1), rel=1e-8, abs=1e-100
    )
    assert shifted_p_value(good, n, null, low) <= shifted_p_value(good, n, null, high) * (1 + 1e-12)
    assert shifted_p_value(good, n, null, 0) == binomial_test(good, n, null, "greater")
    assert shifted_p_value(good, n, null, 0, "less") == binomial_test(good, n, null, "less")
    mirrored = shifted_p_value(bad, n, 1 - null, epsilon, "less")
    assert shifted_p_value(good, n, null, epsilon) == pytest.approx(mirrored, rel=1e-5, abs=1e-12)


def test_p_values_agree_with_scipy_and_keep_shapes():
    s = np.arange(301)
    for epsilon, null in itertools.product((0.1, 1.0), (0.01, 0.5)):
        up, down = stats.binom(300, moved(null, epsilon)), stats.binom(300, moved(null, -epsilon))
        greater, less = shifted_p_value(s, 300, null, epsilon), shifted_p_value(s, 300, null, epsilon, "less")
        np.testing.assert_allclose(greater, up.sf(s - 1), rtol=1e-9)
        np.testing.assert_allclose(less, down.cdf(s), rtol=1e-9)
        both = shifted_p_value(s, 300, null, epsilon, "two-sided")
        np.testing.assert_array_equal(both, np.minimum(2 * np.minimum(greater, less), 1))
    assert shifted_p_value(np.ones((2, 1), int), 3, [0.1, 0.2, 0.3], 0.5).shape == (2, 3)
    assert isinstance(shifted_p_value(1, 2, 0.5, 0.5), float)
    assert shifted_p_value(0, 0, 0.5, 0.5) == 1.0
    assert shifted_p_value([0, 9], 9, [1.0, 0.0], math.inf).tolist() == [1.0, 0.0]  # these means are certain
    assert shifted_p_value(9, 9, 1e-9, math.inf) == 1.0


def test_thresholds_are_never_worse_than_those_of_corrected_levels():
    """On a grid of 240: whatever a corrected p-value rejects at 5%, the shifted one does."""
    shares, nulls = (0.05, 0.5, 1.0), (0.1, 0.3, 0.5, 0.9)
    grid = list(itertools.product((0.01, 0.05, 0.1, 0.25, 1.0), (20, 100, 500, 2000), shares, nulls))
    better = 0
    for epsilon, n, share, null in grid:
        trials = int(share * n)
        s = np.arange(0, trials + 1, max(trials // 200, 1))
        shifted = shifted_p_value(s, trials, null, epsilon) <= 0.05
        plain = binomial_test(s, trials, null, "greater")
        for method in ("tight", "dwork"):
            corrected = adjusted_p_value(plain, epsilon, n, method) <= 0.05
            assert not (corrected & ~shifted).any()
        better += shifted.sum() > corrected.sum()
    assert len(grid) == 240 and better > 120


def test_where_max_information_never_rejects():
    """Epsilon 1, 500 rounds, 100 pulls, one half: the shift rejects from a share of 0.81."""
    s = np.arange(101)
    corrected = adjusted_p_value(binomial_test(s, 100, 0.5, "greater"), 1.0, 500)
    assert (corrected > 0.05).all()
    assert s[shifted_p_value(s, 100, 0.5, 1.0) <= 0.05].min() == 81


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 5))
@settings(max_examples=150)
def test_intervals_in_plain_python(one, two, epsilon):
    low, high = sorted((one, two))
    made = shifted_interval(low, high, epsilon)
    assert made == pytest.approx((moved(low, -epsilon), moved(high, epsilon)), rel=1e-12)
    assert made[0] <= low <= high <= made[1]
    mirrored = shifted_interval(1 - high, 1 - low, epsilon)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx(made, rel=1e-6, abs=1e-12)
    assert shifted_interval(low, high, 0) == (low, high)


def test_a_shifted_interval_of_clopper_and_pearson_holds_where_the_sum_is_shifted_most():
    """Exactly, on binomials with the mean moved by epsilon either way; and it would not without."""
    n, s, epsilon = 60, np.arange(61), 0.5
    low = np.where(s == 0, 0, stats.beta.ppf(0.025, s, n - s + 1))
    high = np.where(s == n, 1, stats.beta.ppf(0.975, s + 1, n - s))
    wide = shifted_interval(low, high, epsilon)
    for mean, sign in itertools.product(np.linspace(0.01, 0.99, 21), (-1, 1)):
        weight = stats.binom.pmf(s, n, moved(mean, sign * epsilon))
        assert weight[(mean < wide[0]) | (mean > wide[1])].sum() <= 0.05
    weight = stats.binom.pmf(s, n, moved(0.5, epsilon))
    assert weight[low > 0.5].sum() > 0.3


def test_intervals_keep_what_is_not_known():
    low, high = shifted_interval([math.nan, 0.0, 0.2], [math.nan, 1.0, 0.2], [[0.1], [math.inf]])
    assert low.shape == high.shape == (2, 3)
    assert np.isnan(low[:, 0]).all() and np.isnan(high[:, 0]).all()
    assert low[:, 1].tolist() == [0.0, 0.0] and high[:, 1].tolist() == [1.0, 1.0]
    assert low[1, 2] == 0.0 and high[1, 2] == 1.0


# The bias


@pytest.mark.parametrize("epsilon", [1e-12, 0.05, 0.6931471805599453, 3.0, 800.0])
@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.3, 0.5, 0.9, 1.0])
def test_the_bound_is_the_farther_end(epsilon, mean):
    ends = moved(mean, epsilon) - mean, mean - (mean if mean in (0, 1) else 1 - moved(1 - mean, epsilon))
    assert bias_bound(epsilon, mean) == pytest.approx(max(ends), rel=1e-9, abs=2e-16)
    assert bias_bound(epsilon, mean) == bias_bound(epsilon, 1 - mean) or mean == 1e-9


def test_known_bounds():
    """At ln 2 and one half 1/6, where Theorem 1 gives 1/2."""
    assert bias_bound(math.log(2), 0.5) == pytest.approx(1 / 6)
    assert bias_bound(math.log(2)) == pytest.approx(math.tanh(math.log(2) / 4))
    assert bias_bound([0.0, math.inf]).tolist() == [0.0, 1.0]
    assert bias_bound(math.inf, [0.0, 0.25, 1.0]).tolist() == [0.0, 0.75, 0.0]
    assert bias_bound([[0.1], [0.2]], [0.0, 0.5, 1.0]).shape == (2, 3) and isinstance(bias_bound(0.2), float)


def test_it_is_never_above_the_published_bound():
    mu = np.linspace(0.0, 1.0, 1001)
    for epsilon in (1e-3, 0.1, 1.0, 5.0):
        bound = bias_bound(epsilon, mu)
        assert (bound <= np.expm1(epsilon) * mu + 1e-15).all()
        assert bound.max() == pytest.approx(bias_bound(epsilon), rel=1e-4)
        assert bound.max() <= bias_bound(epsilon)


def stopped_mean(horizon, epsilon, mean, until):
    """E[mean] of an arm that is pulled until its reward is reported as `until`, at most `horizon` times."""
    stay, total, reach = 1 / (1 + math.exp(-epsilon)), 0.0, [(1.0, 0)]
    for n in range(1, horizon + 1):
        further = []
        for weight, s in reach:
            for x in (0, 1):
                seen = weight * (mean if x else 1 - mean)
                stop = seen if n == horizon else seen * (stay if x == until else 1 - stay)
                total += stop * (s + x) / n
                further.append((seen - stop, s + x))
        reach = [(sum(w for w, k in further if k == s), s) for s in range(n + 1)]
    return total


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_the_bound_holds_where_a_report_ends_the_pulls(mean, epsilon):
    """Exactly; the bias is there, and either way."""
    low = stopped_mean(40, epsilon, mean, 0) - mean
    high = stopped_mean(40, epsilon, mean, 1) - mean
    assert -bias_bound(epsilon, mean) <= low < 0 < high <= bias_bound(epsilon, mean)


def test_above_one_half_it_is_the_lower_end_that_counts():
    """An arm of mean 0.9 comes out lower than sigma(logit mu + epsilon) - mu would have it."""
    assert 0.9 - stopped_mean(40, 6.0, 0.9, 0) > 1.5 * (moved(0.9, 6.0) - 0.9)


# Bad input


@pytest.mark.parametrize(
    ("function", "argument", "arguments"),
    [
        (bias_bound, "epsilon", (-0.1,)),
        (bias_bound, "epsilon", (math.nan,)),
        (bias_bound, "epsilon", ("1",)),
        (bias_bound, "epsilon", ([0.1, -math.inf],)),
        (bias_bound, "epsilon", ([[0.1], [0.1, 0.2]],)),
        (bias_bound, "mean", (0.1, 1.5)),
        (bias_bound, "mean", (0.1, math.nan)),
        (bias_bound, "arguments", ([0.1, 0.2], [0.1, 0.2, 0.3])),
        (shifted_p_value, "successes", (5, 4, 0.5, 0.1)),
        (shifted_p_value, "successes", (0.5, 4, 0.5, 0.1)),
        (shifted_p_value, "trials", (5, -4, 0.5, 0.1)),
        (shifted_p_value, "null", (1, 4, 1.5, 0.1)),
        (shifted_p_value, "epsilon", (1, 4, 0.5, -0.1)),
        (shifted_p_value, "alternative", (1, 4, 0.5, 0.1, "more")),
        (shifted_p_value, "arguments", ([1, 2], 4, [0.5, 0.5, 0.5], 0.1)),
        (shifted_interval, "low", (-0.1, 0.5, 0.1)),
        (shifted_interval, "low", (0.6, 0.5, 0.1)),
        (shifted_interval, "low", ([[0.1], [0.1, 0.2]], 0.5, 0.1)),
        (shifted_interval, "high", (0.1, 1.5, 0.1)),
        (shifted_interval, "high", (0.1, "1", 0.1)),
        (shifted_interval, "epsilon", (0.1, 0.5, math.nan)),
    ],
)
def test_bad_arguments(function, argument, arguments):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must") as refused:
        function(*arguments)
    assert "\n" not in str(refused.value)
