"""Gaussian noise: masses and delta against plain sums, and a delta that means nothing is refused."""

from __future__ import annotations

import decimal
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.gaussian import GaussianGame, GaussianNoise, deltas
from equinoise.nvo.profile import evaluate


def plain_mass(n_bins, scale, k):
    weights = [math.exp(-(((k - x) / n_bins) ** 2) / (2 * scale**2)) for x in range(n_bins)]
    return [weight / sum(weights) for weight in weights]


def plain_delta(p, q, epsilon):
    return max(
        sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True)),
        sum(max(0.0, b - math.exp(epsilon) * a) for a, b in zip(p, q, strict=True)),
    )


def plain_deltas(counts, scales, epsilon):
    n_bins, n = len(counts), sum(map(sum, counts))
    mass = [[plain_mass(n_bins, s, k) for s in scales] for k in range(n_bins)]
    types = [(k, v) for k in range(n_bins) for v in range(len(scales))]
    released = [sum(counts[k][v] * mass[k][v][x] for k, v in types) for x in range(n_bins)]
    removal, addition = np.zeros((n_bins, len(scales))), np.zeros((n_bins, len(scales)))
    p = [s / n for s in released]
    for k, v in types:
        fewer = [(s - m) / (n - 1) for s, m in zip(released, mass[k][v], strict=True)]
        more = [(s + m) / (n + 1) for s, m in zip(released, mass[k][v], strict=True)]
        addition[k, v] = plain_delta(p, more, epsilon)
        if counts[k][v]:
            removal[k, v] = plain_delta(p, fewer, epsilon)
    return removal, addition


def test_masses_are_the_definition():
    noise = GaussianNoise(7, np.array([0.05, 0.6]))
    rows = noise.rows(np.arange(2, 5))
    for i, k in enumerate(range(2, 5)):
        for v, scale in enumerate((0.05, 0.6)):
            np.testing.assert_allclose(rows[i, v], plain_mass(7, scale, k), rtol=1e-12)
    np.testing.assert_array_equal(noise.column(3), noise.rows(np.arange(7))[:, :, 3])
    assert (GaussianNoise(9, np.array([1e-9])).rows(np.array([4]))[0, 0] == np.eye(9)[4]).all()


@given(
    counts=st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=2, max_size=6).filter(
        lambda c: sum(map(sum, c)) >= 2
    ),
    scales=st.tuples(st.floats(0.05, 2.0), st.floats(0.05, 2.0)),
    epsilon=st.floats(0.0, 5.0),
)
def test_delta_is_the_definition(counts, scales, epsilon):
    found = deltas(GaussianNoise(len(counts), np.array(scales)), counts, epsilon)
    for got, truth in zip(found, plain_deltas(counts, scales, epsilon), strict=True):
        np.testing.assert_allclose(got, truth, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("counts", [[[7], [1], [3]], [[1], [2], [1]], [[30], [11], [5]]])
def test_a_delta_at_its_limit_is_decided_exactly(counts, steps):
    """Exact delta of the worst record, the nearest float to it, and floats beside that."""
    noise, epsilon = GaussianNoise(3, np.array([0.4])), 0.25
    given, n = np.array(counts), sum(map(sum, counts))
    with decimal.localcontext(prec=80):
        factor = Fraction(decimal.Decimal(epsilon).exp())
    mass = [[Fraction(float(noise.column(x)[k, 0])) for x in range(3)] for k in range(3)]
    whole = [sum(c[0] * row[x] for c, row in zip(counts, mass, strict=True)) for x in range(3)]
    exact = []
    for k in range(3):
        p, q = [s / n for s in whole], [(s - m) / (n - 1) for s, m in zip(whole, mass[k], strict=True)]
        ways = ([a - factor * b for a, b in zip(*pair, strict=True)] for pair in ((p, q), (q, p)))
        exact.append(max(sum(max(d, Fraction(0)) for d in way) for way in ways))
    delta = float(max(exact)) * (1.0 + steps * 2.0**-52)
    found = evaluate(noise, given.sum(axis=1), given, epsilon, delta)
    assert found.satisfied[:, 0].tolist() == [one <= Fraction(delta) for one in exact]


def test_at_the_realised_epsilon_of_any_noise_delta_is_zero():
    histogram = Histogram.from_values([1, 2, 2, 3, 3, 3, 9], 15)
    profile = NoiseGame(histogram, 1.0, np.array([0.5])).profile(histogram.counts[:, None])
    assert deltas(profile.game.noise, profile.counts, profile.realised_epsilon * 1.000001)[0].max() == 0.0
    assert deltas(profile.game.noise, profile.counts, profile.realised_epsilon * 0.99)[0].max() > 0.0


def test_a_record_that_is_handed_out_whole_has_delta_one_in_n():
    counts = [[3], [0], [1], [0]]
    removal, _ = deltas(GaussianNoise(4, np.array([1e-9])), counts, 2.0)
    assert removal[2, 0] == pytest.approx(0.25)


@pytest.fixture(scope="module")
def histogram():
    rng = np.random.default_rng(4)
    return Histogram.from_values(np.append(rng.normal(170, 8, 500), [120.0, 215.0]), 61)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_search_keeps_everybody_satisfied_and_loses_less_than_the_start(histogram, epsilon):
    game = GaussianGame(histogram, epsilon, 1e-6)
    start = np.zeros((61, len(game.scales)), dtype=np.int64)
    start[:, int(np.argmax(game.scales))] = histogram.counts
    before, found = game.profile(start), game.solve()
    assert before.certified
    assert found.certified
    assert found.realised_delta <= 1e-6
    assert found.kl < before.kl / 4
    removal, _ = plain_deltas(found.counts.tolist(), game.scales.tolist(), epsilon)
    assert removal.max() <= 1e-6 + 1e-15
    np.testing.assert_array_equal(found.counts, game.solve().counts)


def test_where_the_largest_scale_is_too_small_nobody_moves(histogram):
    found = GaussianGame(histogram, 1.0, 1e-9, [1e-4, 1e-5]).solve()
    assert not found.certified
    assert found.n_satisfied < histogram.n
    np.testing.assert_array_equal(found.counts[:, 0], histogram.counts)


def test_a_delta_near_one_in_n_is_refused_or_warned_about(histogram):
    with pytest.raises(ValueError, match=r"delta must be far below 1/n = 0\.00199, got 0\.002"):
        GaussianGame(histogram, 1.0, 0.002)
    with pytest.warns(UserWarning, match="not far below 1/n"):
        GaussianGame(histogram, 1.0, 0.0005)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianGame(histogram, 1.0, 1e-5)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"histogram": 3}, TypeError, "histogram must"),
        ({"epsilon": 0.0}, ValueError, "epsilon must"),
        ({"epsilon": math.inf}, ValueError, "epsilon must"),
        ({"delta": 0.0}, ValueError, "delta must"),
        ({"delta": "small"}, TypeError, "delta must"),
        ({"scales": "paper"}, ValueError, "scales must"),
        ({"scales": [0.1, 0.0]}, ValueError, "scales must"),
        ({"scales": []}, ValueError, "scales must"),
    ],
)
def test_wrong_arguments(histogram, changes, error, words):
    with pytest.raises(error, match=words):
        GaussianGame(**{"histogram": histogram, "epsilon": 1.0, "delta": 1e-6} | changes)


def test_wrong_profiles(histogram):
    game = GaussianGame(histogram, 1.0, 1e-6)
    with pytest.raises(ValueError, match="counts must add up"):
        game.profile(np.zeros((61, 6), dtype=np.int64))
    with pytest.raises(ValueError, match="counts must have shape"):
        game.profile(np.zeros((3, 6), dtype=np.int64))
    with pytest.raises(ValueError, match="counts must be of at least 2 records"):
        deltas(game.noise, np.zeros((61, 6), dtype=np.int64), 1.0)
    with pytest.raises(ValueError, match="epsilon must"):
        deltas(game.noise, game.solve().counts, -1.0)
