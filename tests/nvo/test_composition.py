"""Composition of many draws: against enumeration of all that can be drawn, and never below it."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.release import composition
from equinoise.nvo.release.composition import compose, epsilon_for_total


def profile_of(values, bins, epsilon, scales, choice):
    histogram = Histogram.from_values(values, bins, percentile=0.501)
    game = NoiseGame(histogram, epsilon, np.asarray(scales))
    counts = np.zeros((bins, len(scales)), dtype=np.int64)
    for k, v in zip(histogram.bin_of, choice, strict=True):
        counts[k, v] += 1
    return game.profile(counts)


def pairs(profile):
    """Return for each type that is there (P, Q for its removal) and (P, Q for the addition of one more)."""
    game = profile.game
    kernel, n = np.asarray(game.kernel), game.n
    total = sum(profile.counts[k, v] * kernel[k, v] for k, v in np.ndindex(profile.counts.shape))
    for k, v in np.argwhere(profile.counts):
        mass = kernel[k, v]
        yield (total / n, (total - mass) / (n - 1)), (total / n, (total + mass) / (n + 1))


def exact_epsilon(p, q, draws, delta):
    """Return the least epsilon at delta by enumerating every sequence of draws, both directions."""
    results = []
    for one, two in ((p, q), (q, p)):
        a = np.array([math.prod(x) for x in itertools.product(one, repeat=draws)])
        b = np.array([math.prod(x) for x in itertools.product(two, repeat=draws)])
        low, high = 0.0, 200.0
        if np.maximum(a - b, 0.0).sum() <= delta:
            results.append(0.0)
            continue
        for _ in range(200):
            middle = (low + high) / 2
            if np.maximum(a - math.exp(middle) * b, 0.0).sum() <= delta:
                high = middle
            else:
                low = middle
        results.append(high)
    return max(results)


CASES = [
    ([0, 1, 1, 2, 2, 2], 3, 1.0, [0.5], [0] * 6),
    ([0, 1, 1, 1, 1, 3], 4, 2.0, [0.05, 0.4], [1, 0, 0, 0, 0, 1]),
    ([0, 0, 5], 5, 0.5, [0.2, 3.0], [0, 0, 1]),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("delta", [1e-5, 0.01])
def test_it_is_what_enumeration_gives(case, draws, delta):
    profile = profile_of(*case)
    found = compose(profile.game.noise, profile.counts, profile.evaluation, draws, delta)
    assert found.method == "privacy loss distribution"
    removal = max(exact_epsilon(*pair, draws, delta) for pair, _ in pairs(profile))
    addition = max(exact_epsilon(*pair, draws, delta) for _, pair in pairs(profile))
    for got, truth in ((found.removal, removal), (found.addition, addition)):
        assert truth - 1e-9 <= got <= truth * 1.005 + 1e-4
    assert found.epsilon == max(found.removal, found.addition)


@pytest.mark.parametrize("draws", [10**6, 10**7, 10**8, 10**9])
def test_very_many_draws_are_bounded_at_once(monkeypatch, draws):
    def never(*_):
        raise AssertionError("a loss distribution of so many draws takes minutes")

    monkeypatch.setattr(composition, "_by_distribution", never)
    profile = profile_of(*CASES[1])
    found = compose(profile.game.noise, profile.counts, profile.evaluation, draws)
    assert found.method == "Rényi divergence"
    # the loss grows by its mean for each draw, and cannot grow by more than its largest
    for (p, q), _ in pairs(profile):
        assert found.removal > draws * sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert found.removal < draws * profile.realised_epsilon


@given(
    values=st.lists(st.integers(0, 3), min_size=2, max_size=7).filter(lambda x: len(set(x)) > 1),
    scales=st.lists(st.floats(0.1, 3.0), min_size=1, max_size=2),
    draws=st.integers(1, 5),
    delta=st.sampled_from([1e-6, 1e-3, 0.1]),
    data=st.data(),
)
@settings(max_examples=40)
def test_both_methods_are_upper_bounds(values, scales, draws, delta, data):
    choice = data.draw(st.lists(st.integers(0, len(scales) - 1), min_size=len(values), max_size=len(values)))
    profile = profile_of(values, 4, 1.0, scales, choice)
    truth = max(exact_epsilon(*pair, draws, delta) for both in pairs(profile) for pair in both)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
        loose = compose(profile.game.noise, profile.counts, profile.evaluation, draws, delta)
    assert loose.method == "Rényi divergence"
    assert loose.epsilon >= truth - 1e-7
    found = compose(profile.game.noise, profile.counts, profile.evaluation, draws, delta)
    assert truth - 1e-7 <= found.epsilon <= loose.epsilon + 1e-9


def test_the_worst_of_many_types_is_found_among_all():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 20, 60)
    profile = profile_of(values, 20, 1.0, [0.01, 0.3], rng.integers(0, 2, 60))
    each = []
    for k, v in np.argwhere(profile.counts):
        # the worst of a single type: nobody else counts, but the release is the same
        alone = np.zeros_like(profile.evaluation.epsilon)
        alone[k, v] = profile.evaluation.epsilon[k, v]
        loss, p = composition._losses(
            profile.game.noise.rows(np.array([k]))[0, v], profile.pmf, 60, -1, float(alone[k, v])
        )
        each.append(composition._by_distribution(loss, p, 30, 1e-5, composition._accountant(30, 1e-5)))
    found = compose(profile.game.noise, profile.counts, profile.evaluation, 30)
    assert found.removal == pytest.approx(max(each), rel=1e-9)


def test_half_of_the_records_have_at_most_the_median(monkeypatch):
    values, choice = [0] * 6 + [1] * 3 + [3], [0] * 9 + [1]
    profile = profile_of(values, 4, 2.0, [0.05, 0.4], choice)
    both = [exact_epsilon(*pair, 3, 1e-3) for pair, _ in pairs(profile)]
    found = compose(profile.game.noise, profile.counts, profile.evaluation, 3, 1e-3)
    assert min(both) <= found.median < found.removal
    assert sum(n for n, e in zip((6, 3, 1), both, strict=True) if e <= found.median + 1e-9) >= 5
    monkeypatch.setattr(composition, "_MOST_MASSES", 1)
    assert compose(profile.game.noise, profile.counts, profile.evaluation, 3).median is None


def test_many_draws_of_a_harmless_row_add_up_like_the_square_root():
    values = np.repeat(np.arange(10), 50)
    profile = profile_of(values, 10, 1.0, [0.2], np.zeros(500, dtype=int))
    few, many = (
        compose(profile.game.noise, profile.counts, profile.evaluation, m).epsilon for m in (10_000, 40_000)
    )
    assert 1.8 < many / few < 2.3
    assert many < 40_000 * profile.realised_epsilon / 20


def test_a_record_that_shows_for_sure_has_no_epsilon():
    profile = profile_of([0, 0, 0, 9], 50, 1.0, [1e-6], [0] * 4)
    assert math.isinf(profile.realised_epsilon)
    found = compose(profile.game.noise, profile.counts, profile.evaluation, 3)
    assert math.isinf(found.removal)


def test_a_record_that_shows_nearly_for_sure_has_a_finite_epsilon():
    profile = profile_of([0] * 5 + [9], 50, 100.0, [1 / 60], [0] * 6)
    assert 50 < profile.realised_epsilon < 65
    found = compose(profile.game.noise, profile.counts, profile.evaluation, 3)
    assert profile.realised_epsilon < found.removal <= 3 * profile.realised_epsilon * (1 + 1e-9)


@pytest.mark.compiled
def test_a_share_that_rounds_to_nearly_one_loses_nothing():
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(300):
        bins, values = int(rng.integers(20, 80)), np.append(rng.integers(0, 3, int(rng.integers(2, 40))), 9)
        histogram = Histogram.from_values(values, bins, percentile=0.501)
        game = NoiseGame(histogram, 100.0, np.array([1 / rng.uniform(40, 75)]))
        profile = game.profile(histogram.counts[:, None])
        if 37.0 < profile.realised_epsilon < math.inf:
            found = compose(game.noise, profile.counts, profile.evaluation, 1)
            # delta 1e-5 of a record that alone has 1/n of the rows takes less than 0.01 from it
            assert found.removal == pytest.approx(profile.realised_epsilon, abs=0.01)
            above += 1
    assert above > 100


@pytest.mark.parametrize("epsilon", [1e-6, 700.0])
def test_extreme_epsilons_are_finite(epsilon):
    rng = np.random.default_rng(1)
    histogram = Histogram.from_values(rng.normal(size=300), 31)
    profile = NoiseGame(histogram, epsilon).best_response()
    found = compose(profile.game.noise, profile.counts, profile.evaluation, 300)
    assert math.isfinite(found.epsilon)
    assert found.epsilon <= 300 * max(profile.realised_epsilon, profile.realised_epsilon_addition) * 1.001


@pytest.mark.parametrize(
    ("draws", "delta", "error", "words"),
    [
        (0, 1e-5, ValueError, "draws must"),
        (2.0, 1e-5, TypeError, "draws must"),
        (3, 0.0, ValueError, "delta must"),
        (3, 1.0, ValueError, "delta must"),
        (3, "small", TypeError, "delta must"),
    ],
)
def test_wrong_arguments(draws, delta, error, words):
    profile = profile_of(*CASES[0])
    with pytest.raises(error, match=words):
        compose(profile.game.noise, profile.counts, profile.evaluation, draws, delta)


# The epsilon of a row for a total.


@pytest.fixture(scope="module")
def histogram():
    rng = np.random.default_rng(2)
    return Histogram.from_values(rng.normal(170, 10, 400), 41)


def uniform(histogram):
    """Return a solver: everybody at the least scale of a narrow grid that is private enough."""
    profiles = [
        NoiseGame(histogram, 1.0, np.array([scale])).profile(histogram.counts[:, None])
        for scale in np.geomspace(1e-3, 100.0, 600)
    ]

    def solve(epsilon):
        enough = (found for found in profiles if found.realised_epsilon <= epsilon)
        scales = next(enough, profiles[-1]).game.scales
        return NoiseGame(histogram, epsilon, scales).profile(histogram.counts[:, None])

    return solve


def test_it_is_the_largest_that_stays_within(histogram):
    total, solve = 0.5, uniform(histogram)
    found = epsilon_for_total(solve, total, 400)
    assert found.composition.epsilon <= total
    assert found.composition.draws == 400
    larger = solve(found.profile.game.epsilon * 1.1)
    assert compose(larger.game.noise, larger.counts, larger.evaluation, 400).epsilon > total


def test_a_total_is_told_from_few_distributions_of_losses_and_by_each_at_once(histogram, monkeypatch):
    counted, plain = [], composition._by_distribution
    monkeypatch.setattr(composition, "_by_distribution", lambda *of: counted.append(of) or plain(*of))
    third = histogram.counts // 3
    profile = NoiseGame(histogram, 0.05, np.array([0.3, 0.5, 1.0])).profile(
        np.stack([third, third, histogram.counts - 2 * third], axis=1)
    )
    of = profile.game.noise, profile.counts, profile.evaluation, 400
    whole = compose(*of)
    needed, told = len(counted), []
    for wanted in (0.5 * whole.epsilon, 0.999 * whole.epsilon, 1.001 * whole.epsilon, 3.0 * whole.epsilon):
        counted.clear()
        found = compose(*of, wanted=wanted).epsilon
        assert (found > wanted) == (whole.epsilon > wanted)
        told.append(len(counted))
    assert told[0] <= 2 < needed
    assert told[3] == 0


def test_what_tells_the_side_of_a_total_bounds_all_kinds_of_records(monkeypatch):
    """Of two kinds the one with the larger loose bound has the smaller tight one, which bounds it alone."""
    monkeypatch.setattr(composition, "_accountant", lambda *_: object())
    for name, bounds in (
        ("_by_largest", (20.0, 20.0)),
        ("_by_renyi", (10.0, 9.0)),
        ("_by_distribution", (5.0, 8.0)),
    ):
        monkeypatch.setattr(composition, name, lambda i, *_, bounds=bounds: bounds[int(i)])
    found = [composition._least([0, 1], lambda i: (i,), 3, 1e-5, wanted) for wanted in (4.0, 7.0, 8.5, 11.0)]
    assert [bound > wanted for bound, wanted in zip(found, (4.0, 7.0, 8.5, 11.0), strict=True)] == [
        1,
        1,
        0,
        0,
    ]
    assert min(found) >= composition._least([0, 1], lambda i: (i,), 3, 1e-5) == 8.0


def test_a_million_rows_have_a_grid_that_ends(monkeypatch):
    points, accountant = [], composition._accountant(10**6, 1e-5)
    if accountant is None:
        pytest.skip("needs dp-accounting")
    plain = composition._on_grid
    monkeypatch.setattr(composition, "_on_grid", lambda *of: points.append(of[2]) or plain(*of))
    p, loss = np.full(101, 1 / 101), np.linspace(-1e-3, 1e-3, 101)
    loss += math.log((p * np.exp(-loss)).sum())
    found = composition._by_distribution(loss, p, 10**6, 1e-5, accountant)
    assert 2.368 <= found <= 2.42 < composition._by_renyi(loss, p, 10**6, 1e-5)  # with 2e-5: 2.36795
    assert min(points) >= 2e-4


def test_one_row_may_take_all(histogram):
    found = epsilon_for_total(uniform(histogram), 0.7, 1)
    assert found.profile.game.epsilon == 0.7
    assert len(found.tried) == 1


def test_none_is_found_where_nothing_is_certified(histogram):
    def solve(epsilon):
        game = NoiseGame(histogram, epsilon, np.array([1e-4]))
        return game.profile(histogram.counts[:, None])

    found = epsilon_for_total(solve, 1.0, 10)
    assert found.composition is None
    assert not any(certified for _, certified, _ in found.tried)


def test_small_epsilons_that_fail_do_not_end_the_search(histogram):
    everybody = uniform(histogram)

    def solve(epsilon):
        if epsilon < 0.026:
            return NoiseGame(histogram, epsilon, np.array([1e-4])).profile(histogram.counts[:, None])
        return everybody(epsilon)

    found = epsilon_for_total(solve, 0.5, 400)
    assert found.profile.certified
    assert found.composition.epsilon <= 0.5
    assert not found.tried[0][1]


@pytest.mark.parametrize(
    ("total", "rows", "error", "words"),
    [
        (0.0, 10, ValueError, "total must"),
        (math.inf, 10, ValueError, "total must"),
        (1.0, 0, ValueError, "rows must"),
    ],
)
def test_wrong_totals(histogram, total, rows, error, words):
    with pytest.raises(error, match=words):
        epsilon_for_total(uniform(histogram), total, rows)


def test_next_to_nothing_is_not_nothing():
    """A loss of 1e-13 in each of five draws."""
    told = composition._by_distribution(np.array([1e-13, -1e-13]), np.array([0.5, 0.5]), 5, 0.0, None)
    assert told == pytest.approx(5e-13, abs=0.0)
