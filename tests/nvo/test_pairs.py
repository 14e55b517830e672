"""Two columns on a grid: cells, product noise, and privacy from the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise.nvo import Histogram
from equinoise.nvo.pairs import PairGame, PairHistogram

STEPS = 200_000  # of a search: more find little more, for seconds


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(8)
    x = np.rint(rng.normal(180, 8, 300)).astype(np.int64)
    return x, 1.1 * (x - 100) + rng.normal(0, 5, 300)


@pytest.fixture(scope="module")
def histogram(columns):
    return PairHistogram.from_values(*columns, 15, percentile=0.6)


def test_cells_are_pairs_of_bins(columns, histogram):
    x, y = (Histogram.from_values(column, 15, percentile=0.6) for column in columns)
    table = np.zeros((15, 15), dtype=np.int64)
    for i, j in zip(x.bin_of, y.bin_of, strict=True):
        table[i, j] += 1
    np.testing.assert_array_equal(histogram.counts.reshape(15, 15), table)
    first, second = histogram.to_units([0, 16, 224])
    np.testing.assert_array_equal(first, x.to_units([0, 1, 14]))
    np.testing.assert_array_equal(second, y.to_units([0, 1, 14]))
    assert first.dtype == np.int64
    assert second.dtype == np.float64
    assert histogram.pmf.sum() == pytest.approx(1.0)


def test_grids_may_have_sides_and_bounds_of_their_own(columns):
    made = PairHistogram.from_values(*columns, (5, 9), bounds=((100, 250), None))
    assert (made.first.n_bins, made.second.n_bins, len(made.counts)) == (5, 9, 45)
    assert made.first.bounds == (100, 250)
    assert made.counts.sum() == 300


def plain_mass(n_bins, scale, k):
    weights = [math.exp(-abs(k - x) / n_bins / scale) for x in range(n_bins)]
    return [weight / sum(weights) for weight in weights]


def plain_epsilons(game, counts):
    """Return epsilon of every type that is there, from the definition in plain Python."""
    parts = game.histogram.first, game.histogram.second
    scales = [[m * p.sensitivity / game.epsilon for m in game.multiples] for p in parts]
    cells = [(i, j) for i in range(parts[0].n_bins) for j in range(parts[1].n_bins)]
    mass = {}
    for cell, v in np.argwhere(counts):
        a = plain_mass(parts[0].n_bins, scales[0][v], cells[cell][0])
        b = plain_mass(parts[1].n_bins, scales[1][v], cells[cell][1])
        mass[int(cell), int(v)] = [a[i] * b[j] for i, j in cells]
    n = int(counts.sum())
    result = {}
    for kind in mass:
        p = [sum(int(counts[t]) * mass[t][x] for t in mass) / n for x in range(len(cells))]
        q = [
            sum((int(counts[t]) - (t == kind)) * mass[t][x] for t in mass) / (n - 1)
            for x in range(len(cells))
        ]
        result[kind] = max(
            abs(math.log(a / b)) if b > 0 else math.inf for a, b in zip(p, q, strict=True) if a > 0
        )
    return result


@given(
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=10).filter(
        lambda p: len({a for a, _ in p}) > 1 and len({b for _, b in p}) > 1
    ),
    epsilon=st.sampled_from([0.2, 1.0, 3.0]),
    data=st.data(),
)
@settings(max_examples=40)
def test_epsilon_is_the_definition(pairs, epsilon, data):
    made = PairHistogram.from_values(*zip(*pairs, strict=True), (3, 4), percentile=0.51)
    game = PairGame(made, epsilon, [2.0, 0.3])
    counts = np.zeros((12, 2), dtype=np.int64)
    for cell in np.repeat(np.arange(12), made.counts):
        counts[cell, data.draw(st.integers(0, 1))] += 1
    profile = game.profile(counts)
    truth = plain_epsilons(game, counts)
    for kind, value in truth.items():
        assert profile.evaluation.epsilon[kind] == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert profile.realised_epsilon == pytest.approx(max(truth.values()), rel=1e-9)
    assert profile.n_satisfied == sum(int(counts[kind]) for kind, value in truth.items() if value <= epsilon)
    assert profile.certified == all(value <= epsilon for value in truth.values())


def test_noise_is_a_product_that_adds_up_to_one(histogram):
    noise = PairGame(histogram, 1.0).noise
    rows = noise.rows(np.array([37, 38]))
    np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(
        rows[0, 1].reshape(15, 15), np.multiply.outer(noise.first[2, 1], noise.second[7, 1])
    )
    np.testing.assert_allclose(noise.column(40), noise.rows(np.arange(225))[:, :, 40], rtol=1e-15)


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_search_certifies_and_beats_the_laplace_mechanism(histogram, epsilon):
    found = PairGame(histogram, epsilon).solve(steps=STEPS)
    assert found.certified
    assert found.realised_epsilon <= epsilon
    assert found.kl < PairGame(histogram, epsilon, [1.0]).uniform().kl / 5
    assert max(plain_epsilons(found.game, found.counts).values()) <= epsilon
    np.testing.assert_array_equal(found.counts, PairGame(histogram, epsilon).solve(steps=STEPS).counts)


@pytest.mark.compiled
def test_what_the_columns_have_to_do_with_each_other_comes_through(columns, histogram):
    x, y = PairGame(histogram, 2.0).solve(steps=STEPS).sample(20_000, seed=1)
    assert np.corrcoef(x, y)[0, 1] == pytest.approx(np.corrcoef(*columns)[0, 1], abs=0.1)
    assert x.dtype == np.int64
    assert set(x) <= set(histogram.first.to_units(np.arange(15)))


def test_uncertified_profiles_are_drawn_only_when_asked(histogram):
    profile = PairGame(histogram, 1.0, [1e-4]).uniform()
    assert not profile.certified
    with pytest.raises(ValueError, match="profile must be certified"):
        profile.sample(3)
    assert len(profile.sample(3, allow_uncertified=True)[0]) == 3


def test_a_record_that_shows_nearly_for_sure_has_its_large_epsilon(histogram):
    found = PairGame(histogram, 700.0, [1.2]).uniform()
    assert 40 < found.realised_epsilon < 700
    truth = plain_epsilons(found.game, found.counts)
    assert found.realised_epsilon == pytest.approx(max(truth.values()), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (([1, 2, 3], [1, 2]), {}, ValueError, "second must have a value for each of the 3 in first, got 2"),
        (([1, 2, 3], [1, 2, math.nan]), {}, ValueError, "values must"),
        (([1, 2, 3], [1, 2, 3]), {"n_bins": 1}, ValueError, "n_bins must"),
        (([1, 2, 3], [1, 2, 3]), {"n_bins": (5,)}, TypeError, r"n_bins must be a pair, .*, got \(5,\)"),
        (
            ([1, 2, 3], [1, 2, 3]),
            {"n_bins": (10**6, 10**6)},
            ValueError,
            "n_bins must be one whose results fit",
        ),
        (([1, 2, 3], [1, 2, 3]), {"bounds": None}, TypeError, "bounds must be a pair, .*, got None"),
        (
            ([1, 2, 3], [1, 2, 3]),
            {"bounds": ((0, 4),)},
            TypeError,
            "bounds must be a pair, one for each column",
        ),
    ],
)
def test_wrong_columns(arguments, options, error, words):
    with pytest.raises(error, match=words):
        PairHistogram.from_values(*arguments, **options)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"histogram": 3}, TypeError, "histogram must"),
        ({"epsilon": -1.0}, ValueError, "epsilon must"),
        ({"multiples": "best"}, ValueError, "multiples must"),
        ({"multiples": [1.0, -1.0]}, ValueError, "multiples must"),
    ],
)
def test_wrong_games(histogram, changes, error, words):
    with pytest.raises(error, match=words):
        PairGame(**{"histogram": histogram, "epsilon": 1.0} | changes)


def test_a_grid_that_is_too_fine_is_refused():
    rng = np.random.default_rng(0)
    made = PairHistogram.from_values(rng.normal(size=3000), rng.normal(size=3000), 201)
    with pytest.raises(ValueError, match="coarser grid"):
        PairGame(made, 1.0)


def test_wrong_profiles(histogram):
    game = PairGame(histogram, 1.0)
    with pytest.raises(ValueError, match="counts must add up"):
        game.profile(np.zeros((225, 6), dtype=np.int64))
    with pytest.raises(ValueError, match="v must"):
        game.uniform(6)
    with pytest.raises(ValueError, match="cells must"):
        histogram.split([225])
