"""Beta draws by address: their law, their independence, and a plain twin."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive_bandits

from equinoise._random import POSTERIOR, philox, stream_key
from equinoise.bandits.policies import batches

COMPILED = not numba.config.DISABLE_JIT
SEED = 61
BETAS = [
    (1.0, 1.0), (1.0, 7.5), (33.0, 1.0), (1.0, 1e5), (1e5, 1.0), (2.0, 2.0), (1.001, 1.999), (1.5, 40.2),
    (300.25, 3.75), (600.3, 201.7), (1e5 - 20.0, 22.0), (5e4, 5e4), (1e5, 1e5),
]  # fmt: skip


def beta_draws(a, b, n, entity=0, replicate=0):
    key = [int(word) for word in stream_key(SEED)]
    address = [np.uint64(x) for x in (*key, 0, entity, replicate)]
    blocks = (
        philox(*address[:2], np.uint64(t), *address[3:], POSTERIOR) for t in range(n)
    )  # words come back as ints
    return np.array([batches.draw_beta(tuple(map(np.uint64, block)), a, b) for block in blocks])


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_posterior_draws_follow_the_beta_law(a, b):
    """Kolmogorov-Smirnov over 20,000 draws at p > 1e-6: all 13 together fail by chance once in 77,000."""
    n = 20_000 if COMPILED else 1000
    draws = beta_draws(a, b, n)
    assert ((draws > 0.0) & (draws <= 1.0)).all()
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > 1e-6
    spread = stats.beta(a, b).std()
    assert draws.mean() == pytest.approx(a / (a + b), abs=6.0 * spread / math.sqrt(n))
    own = naive_bandits.own_words(SEED, 0)
    twins = [naive_bandits.beta_of(naive_bandits.words_of(own(t + 1, 0)), a, b) for t in range(200)]
    np.testing.assert_allclose(draws[:200], twins, rtol=1e-9)


def test_posterior_draws_of_arms_and_replicates_are_independent():
    """Correlations over 5,000 rounds within 6 standard errors."""
    n = 5000 if COMPILED else 500
    columns = [beta_draws(3.0, 2.0, n, arm, replicate) for arm in range(3) for replicate in range(2)]
    off = np.corrcoef(columns)[np.triu_indices(6, 1)]
    assert np.abs(off).max() < 6.0 / math.sqrt(n)
    assert abs(np.corrcoef(columns[0][1:], columns[0][:-1])[0, 1]) < 6.0 / math.sqrt(n)
