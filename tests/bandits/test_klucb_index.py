"""The index of dp-klucb against bisection, a grid and Brent's method."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize, special, stats
from tests import naive_bandits

from equinoise.bandits.policies import batches

COMPILED = not numba.config.DISABLE_JIT
TIGHT = settings(deadline=None, max_examples=300 if COMPILED else 50)

probabilities = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 1e-300, 1e-9, 1.0 - 1e-9, 0.5])
budgets = st.floats(1e-6, 20.0)
epsilons = st.floats(1e-3, 100.0) | st.just(math.inf)


@given(probabilities, st.floats(-12.0, 12.0), st.floats(1e-3, 50.0))
@TIGHT
def test_the_twin_knows_the_divergence(x, w, epsilon):
    """Its closed form is the least of eps (z - x) + kl(z, y) over a fine grid of z in [x, y]."""
    y, y_left = naive_bandits.both(w)
    if not x < y:
        return
    z = np.linspace(x, y, 20_001)
    kl = special.rel_entr(z, y) + special.rel_entr(1.0 - z, y_left)
    least = naive_bandits.private_divergence(x, w, epsilon)
    grid = (epsilon * (z - x) + kl).min()
    assert grid - 1e-3 * (1.0 + grid) <= least <= grid + 1e-9


@given(probabilities, budgets, epsilons)
@TIGHT
def test_the_index_is_that_of_the_twin(x, budget, epsilon):
    ours = batches.log_odds_bound(x, budget, epsilon)
    theirs = naive_bandits.private_kl_index(x, budget, epsilon)
    if abs(theirs) < 600.0 or math.isinf(theirs):  # the bisection of the twin ends at 700
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@given(probabilities, budgets, epsilons, st.floats(1.0, 2.0), st.floats(0.0, 0.2))
@TIGHT
def test_the_index_grows_with_the_mean_the_budget_and_the_noise(x, budget, epsilon, more, step):
    index = batches.log_odds_bound(x, budget, epsilon)
    slack = 1e-9 * max(1.0, abs(index)) if math.isfinite(index) else 0.0
    assert batches.log_odds_bound(x, budget * more, epsilon) >= index - slack
    assert batches.log_odds_bound(min(x + step, 1.0), budget, epsilon) >= index - slack
    assert batches.log_odds_bound(x, budget, epsilon / more) >= index - slack
    assert index >= naive_bandits.logit(x)


@pytest.mark.parametrize("x", [0.0, 1e-6, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("budget", [1e-4, 0.05, 0.7, 3.0])
def test_without_noise_it_is_kl_ucb(x, budget):
    """eps = inf, against the root w of kl(x, sigma(w)) = budget by Brent's method; so does a huge eps."""

    def excess(w):
        entropy = stats.entropy([x, 1.0 - x])
        return math.log1p(math.exp(-abs(w))) + max(w, 0.0) - x * w - entropy - budget

    root = optimize.brentq(excess, max(naive_bandits.logit(x), -60.0), 500.0, xtol=1e-13)
    for epsilon in (math.inf, 1e6):
        assert batches.log_odds_bound(x, budget, epsilon) == pytest.approx(root, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("x", [0.0, 0.05, 0.5, 0.95])
def test_the_index_at_its_edges(x, epsilon):
    """It is continuous where the formula changes, and infinite from a budget of eps (1 - x) on."""
    edge = epsilon * (1.0 - x)
    assert batches.log_odds_bound(x, edge, epsilon) == math.inf
    assert 10.0 < batches.log_odds_bound(x, edge * (1.0 - 1e-9), epsilon) < math.inf
    if x > 0.0:
        kink = naive_bandits.private_divergence(x, naive_bandits.logit(x) + epsilon, epsilon)
        sides = [batches.log_odds_bound(x, kink * (1.0 + s), epsilon) for s in (-1e-9, 0.0, 1e-9)]
        np.testing.assert_allclose(sides, naive_bandits.logit(x) + epsilon, rtol=1e-6)


def test_an_infinite_index_ties():
    """Early on every index allows q = 1: then the arms are drawn alike, by chi-square at p > 1e-6."""
    state = batches.make_state(4, 1, 100, 0.1, rule=0, clip_sums=True)
    for t in range(4):
        batches.update(state, 0, t, t, 1.0, 0.0)
    words = np.random.default_rng(5).integers(0, 2**64, 2000, dtype=np.uint64)

    def chosen(word, random_ties):
        state.current[0] = -1  # a batch that was chosen stays so
        return int(batches.choose(state, 0, 4, word, random_ties))

    assert stats.chisquare(np.bincount([chosen(word, True) for word in words])).pvalue > 1e-6
    assert {chosen(word, False) for word in words[:20]} == {0}
