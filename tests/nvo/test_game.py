"""The game: its noise and its evaluation against the definition, its scales, the Laplace baselines."""

from __future__ import annotations

import dataclasses
import decimal
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.figure import Figure
from tests import naive_nvo as naive, real_columns

from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.noise import sufficient_scale


def histogram_of(bins, n_bins):
    """Return a histogram whose values fall into these bins."""
    values = (np.asarray(bins) + 0.5) / n_bins
    return Histogram.from_values(values, n_bins, bounds=(0.0, 1.0), range_epsilon=1e15)


def small_game(seed, *, largest_n=9):
    """Return a random game, small enough for the definition, and counts of a random profile."""
    rng = np.random.default_rng([31, seed])
    n_bins, n_scales, n = rng.integers(2, 8), rng.integers(1, 4), rng.integers(2, largest_n + 1)
    histogram = histogram_of(rng.integers(0, n_bins, n), n_bins)
    scales = np.exp(rng.uniform(math.log(0.01), math.log(3.0), n_scales))
    epsilon = float(rng.choice([0.02, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0]) * rng.uniform(0.8, 1.2))
    game = NoiseGame(histogram, epsilon, scales)
    counts = np.array([rng.multinomial(c, np.ones(n_scales) / n_scales) for c in histogram.counts])
    return game, counts


def test_the_tests_bins_are_those_asked_for():
    assert histogram_of([0, 3, 3, 10], 11).bin_of.tolist() == [0, 3, 3, 10]


@pytest.mark.parametrize(
    ("n_bins", "scales"), [(2, [0.3]), (11, [0.02, 1.0]), (101, [3.0, 0.2, 1e-4, 1e-320])]
)
def test_noise_is_laplace_normalised_over_the_bins(n_bins, scales):
    game = NoiseGame(histogram_of([0, 1], n_bins), 1.0, scales)
    truth = np.array(naive.kernel(n_bins, scales))
    truth[truth < 1e-299] = 0.0  # so far away there is no noise
    np.testing.assert_allclose(game.kernel, truth, rtol=1e-11, atol=0)
    np.testing.assert_allclose(game.kernel.sum(axis=2), 1.0, rtol=1e-13)
    for x in range(n_bins):
        assert (game.noise.column(x) == game.kernel[:, :, x]).all()
    assert not game.kernel.flags.writeable


@pytest.mark.parametrize("seed", range(500))
def test_evaluation_is_that_of_the_definition(seed):
    game, counts = small_game(seed)
    found = game.evaluate(counts)
    mass, records = naive.kernel(len(counts), game.scales), naive.records(counts)
    own = {t: naive.epsilon_of(mass, records, records.index(t)) for t in set(records)}
    more = {t: naive.epsilon_of_addition(mass, records, t) for t in set(records)}
    for k, v in np.ndindex(counts.shape):
        assert found.epsilon[k, v] == pytest.approx(own.get((k, v), 0.0), rel=1e-10, abs=1e-12)
        assert found.epsilon_addition[k, v] == pytest.approx(more.get((k, v), 0.0), rel=1e-10, abs=1e-12)
        assert found.satisfied[k, v] == (own.get((k, v), math.inf) <= game.epsilon)
    assert found.n_satisfied == naive.satisfied(mass, records, game.epsilon)
    assert found.realised_epsilon == pytest.approx(max(own.values()), rel=1e-10, abs=1e-12)
    assert found.realised_epsilon_addition == pytest.approx(max(more.values()), rel=1e-10, abs=1e-12)
    assert found.kl == pytest.approx(naive.divergence(mass, records), rel=1e-9, abs=1e-14)
    assert found.payoff == pytest.approx(naive.payoff(mass, records, game.epsilon), rel=1e-12)
    np.testing.assert_allclose(found.pmf, naive.release(mass, records), rtol=1e-12)


def test_a_record_that_others_hardly_hide_has_its_true_epsilon():
    """For a record alone with nearly all of S, the difference S - M has no digits left."""
    for scale in (0.05, 0.02, 0.011):
        game = NoiseGame(histogram_of([0] * 5 + [8], 9), 1.0, [scale])
        counts = game.histogram.counts[:, None]
        truth = naive.epsilon_of(naive.kernel(9, [scale]), naive.records(counts), 5)
        assert truth > 15
        assert game.evaluate(counts).realised_epsilon == pytest.approx(truth, rel=1e-9)
    alone = NoiseGame(histogram_of([0] * 5 + [8], 9), 1.0, [1e-4])
    found = alone.evaluate(alone.histogram.counts[:, None])
    assert math.isinf(found.realised_epsilon) and found.n_satisfied == 5


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 50.0, 700.0, 1e308])
def test_extreme_epsilons(epsilon):
    rng = np.random.default_rng(5)
    for scales in ("default", "paper", 7):
        game = NoiseGame(Histogram.from_values(rng.normal(size=300)), epsilon, scales)
        for profile in (game.best_response(), game.best_response(start="random"), game.laplace("amplified")):
            mine = profile.evaluation
            assert np.isfinite([mine.kl, mine.payoff, profile.sd_l1, profile.jaccard, profile.cosine]).all()
            assert profile.certified == (mine.realised_epsilon <= epsilon)
    assert game.laplace("amplified").certified or epsilon > 700


@pytest.mark.parametrize("seed", range(40))
def test_the_sufficient_scale_suffices_for_every_profile(seed):
    game, counts = small_game(1000 + seed)
    enough = sufficient_scale(game.n, len(counts), game.epsilon)
    rng = np.random.default_rng(seed)
    scales = enough * (1 + rng.exponential(size=counts.shape[1]))
    assert NoiseGame(game.histogram, game.epsilon, scales).evaluate(counts).n_satisfied == game.n


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("n", [2, 10, 3000])
def test_the_sufficient_scale_is_exact(n, epsilon):
    """One record as far as can be from all the others."""
    histogram = histogram_of([0] * (n - 1) + [12], 13)
    enough = sufficient_scale(n, 13, epsilon)
    for factor, satisfied in ((1 + 1e-9, n), (1 - 1e-9, n - 1 if n > 2 else 0)):
        game = NoiseGame(histogram, epsilon, [enough * factor])
        assert game.evaluate(histogram.counts[:, None]).n_satisfied == satisfied
    assert sufficient_scale(n, 13, 1e-9) == pytest.approx(
        (12 / 13) / math.log1p(n * math.expm1(1e-9)), rel=1e-9
    )
    assert sufficient_scale(n, 13, 1000.0) == pytest.approx((12 / 13) / (1000.0 + math.log(n)))


@settings(max_examples=300, deadline=None)
@given(
    epsilon=st.floats(1e-15, 300.0),
    logarithm=st.floats(-14.0, 2.0),
    n=st.integers(2, 2000),
    k=st.integers(2, 40),
)
def test_the_amplified_scale_never_loses_more_than_epsilon_by_rounding(epsilon, logarithm, n, k):
    """In exact arithmetic for any data, and as it is computed for the worst: one record far from others."""
    for level in (epsilon, 10.0**logarithm):
        profile = NoiseGame(histogram_of([0] * (n - 1) + [k - 1], k), level).laplace("amplified")
        with decimal.localcontext(prec=80, Emax=decimal.MAX_EMAX):
            most = (1 - 1 / decimal.Decimal(k)) / decimal.Decimal(float(profile.game.scales[0]))
            assert (1 + (most.exp() - 1) / n).ln() <= decimal.Decimal(level)
        assert profile.certified and profile.realised_epsilon <= level


def test_named_scales():
    histogram = histogram_of([0, 3, 9], 10)
    unit = histogram.sensitivity / 0.5
    np.testing.assert_allclose(NoiseGame(histogram, 0.5, "paper").scales / unit, [3, 2, 1, 0.33, 0.2])
    extended = NoiseGame(histogram, 0.5, "extended").scales
    np.testing.assert_allclose(extended / unit, [3, 2, 1, 0.33, 0.2, 0.001])
    steps = NoiseGame(histogram, 0.5, 8).scales
    assert len(steps) == 8 and steps[-1] / unit == pytest.approx(0.001)
    np.testing.assert_allclose(steps[1:] / steps[:-1], steps[1] / steps[0])
    assert steps[0] >= sufficient_scale(3, 10, 0.5) and steps[0] >= 3 * unit * (1 - 1e-12)
    wider = Histogram.from_values([0.0, 3.0, 9.0], 10)
    assert NoiseGame(wider, 8.0, np.int64(5)).scales[0] == pytest.approx(sufficient_scale(3, 10, 8.0))
    given = np.array([0.5, 0.1])
    game = NoiseGame(histogram, 0.5, given)
    given[0] = 9.0
    assert game.scales.tolist() == [0.5, 0.1]


@pytest.mark.parametrize(
    ("epsilon", "n_bins", "wide", "widest"),
    [
        (1.0, 101, [1000.0, 4.0, 0.4, 0.16, 0.06327907], 0.02531163),
        (0.1, 101, [1000.0, 4.0, 0.42033326], 0.16813330),  # 0.4 and 0.16 are near others
        (4.0, 4, [1000.0, 4.0, 0.4, 0.04074629], 0.25),  # and 0.16 is near a step
        (1e-4, 101, [1000.0, 4.0, 0.4, 0.16], 1.6),
    ],
)
def test_default_scales_are_what_documents_say(epsilon, n_bins, wide, widest):
    """The distance over which others hide a record is 0.04/(1 - e^-epsilon) of the range, at most four."""
    game = NoiseGame(histogram_of([0, 0, 1, 1, 1, 3], n_bins), epsilon)
    steps = np.geomspace(widest, 0.25 / n_bins, 8)
    wanted = [*wide, *steps, game.laplace("smallest").game.scales[0], 0.001 / n_bins]
    np.testing.assert_allclose(game.scales, np.unique(wanted)[::-1], rtol=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_default_scales_never_lose_to_one_for_all(epsilon):
    rng = np.random.default_rng(5)
    for bins in (
        [0, 0, 1, 5, 9],
        rng.integers(0, 9, 300),
        np.minimum(rng.geometric(0.4, 90) - 1, 9),
        [0] * 40,
    ):
        game = NoiseGame(histogram_of(bins, 10), epsilon)
        smallest = game.laplace("smallest")
        assert np.isclose(game.scales, smallest.game.scales[0], rtol=1e-12).any()
        assert game.noise.rows(np.arange(10))[range(10), -1, range(10)].min() == 1.0  # no noise at all
        assert (np.diff(game.scales) < 0.0).all()
        best = min(one.kl for one in map(game.uniform, range(len(game.scales))) if one.certified)
        found = game.anneal(steps=2_000)
        assert found.certified and found.kl <= min(best, smallest.kl) + 1e-12
        again = dataclasses.replace(game, histogram=histogram_of([*bins, 9], 10), scales=game.asked)
        assert again.asked == game.asked == "default"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("histogram", h) for h in (None, [1, 2], np.arange(3))),
        *(("epsilon", e) for e in (0, -1.0, math.inf, math.nan, "1", None, True, 1e-310)),
        *(("scales", s) for s in ("Paper", [], [0.0], [-1.0], [0.1, math.inf], [[0.1]], 1, 1025, True, None)),
        *(("scales", s) for s in (["a"], [math.nan], np.ones(1025), 2.0)),
    ],
)
def test_wrong_games_are_refused(name, wrong):
    good = {"histogram": histogram_of([0, 1], 3), "epsilon": 1.0, "scales": "default"}
    with pytest.raises((TypeError, ValueError), match=f"{name} must"):
        NoiseGame(**{**good, name: wrong})


@pytest.mark.parametrize(
    "wrong",
    [[[1, 1]], [[3, -1], [1, 0], [0, 0]], [[1, 0], [1, 0], [0, 0]], [[1.0, 1], [1, 0], [0, 0]], None, "x"],
)
def test_counts_that_are_no_profile_are_refused(wrong):
    game = NoiseGame(histogram_of([0, 0, 1], 3), 1.0, [0.5, 0.1])
    for call in (game.evaluate, game.profile):
        with pytest.raises((TypeError, ValueError), match="counts must"):
            call(wrong)
    with pytest.raises((TypeError, ValueError), match="start must"):
        game.best_response(start=wrong)


@pytest.mark.compiled
def test_many_bins():
    rng = np.random.default_rng(3)
    histogram = Histogram.from_values(rng.normal(size=400), 10_001)
    game = NoiseGame(histogram, 1.0)
    with pytest.raises(
        ValueError, match=r"n_bins must be small enough .* 10001 bins, 10001 of them needed, and \d+"
    ):
        _ = game.kernel
    profile = game.best_response()
    assert profile.certified and profile.converged and math.isfinite(profile.kl)
    assert profile.kl < game.laplace("smallest").kl
    # the same from the definition, for the record with the largest epsilon
    k, v = np.unravel_index(np.argmax(profile.evaluation.epsilon), profile.counts.shape)
    mass = {
        t: np.array(naive.masses(10_001, game.scales[t[1]], t[0]))
        for t in zip(*np.nonzero(profile.counts), strict=True)
    }
    total = sum(profile.counts[t] * m for t, m in mass.items())
    others = (total - mass[k, v]) / (game.n - 1)
    truth = np.abs(np.log(total / game.n) - np.log(others)).max()
    assert profile.realised_epsilon == pytest.approx(truth, rel=1e-8)


@pytest.mark.compiled
def test_many_bins_of_which_few_have_records():
    game = NoiseGame(Histogram.from_values([0, 1, 1, 1, 2, 2, 2, 7] * 5, 10_001), 1.0)
    found = game.anneal(steps=2_000)
    assert found.certified
    assert game.lower_bound(nodes=1) <= found.kl < game.best_response().kl * 1.01


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_scale_is_the_smallest(seed):
    game, _ = small_game(2000 + seed, largest_n=40)
    counts = game.histogram.counts[:, None]
    profile = game.laplace("smallest")
    assert profile.certified
    scale = float(profile.game.scales[0])
    less = NoiseGame(game.histogram, game.epsilon, [scale * (1 - 1e-6)])
    if scale > 1e-3:  # else nobody needs noise
        assert less.evaluate(counts).n_satisfied < game.n
        assert profile.realised_epsilon == pytest.approx(game.epsilon, rel=1e-5)
    assert game.laplace("amplified").certified
    assert game.laplace("amplified").game.scales[0] >= scale * (1 - 1e-6)
    assert game.laplace("paper").game.scales[0] == game.histogram.sensitivity / game.epsilon


@pytest.mark.parametrize("records", [[0.0, 2.0], [0.0, *[2.0] * 999]])
@pytest.mark.parametrize("epsilon", [1.0, 1e-3, 1e-4, 1e-6, 1e-8])
def test_the_smallest_scale_is_enough_where_the_sufficient_one_is_but_for_rounding(records, epsilon):
    """Two records as far apart as can be have all of epsilon: the last digit of a mass decides."""
    game = NoiseGame(Histogram.from_values(records, 3, bounds=(0, 2)), epsilon)
    smallest, sufficient = game.laplace("smallest"), game.laplace("amplified").game.scales[0]
    assert smallest.certified
    assert smallest.game.scales[0] <= 1.01 * sufficient
    assert game.anneal(steps=2_000).certified


def test_where_every_bin_is_crowded_no_noise_is_needed():
    game = NoiseGame(histogram_of([0, 0, 5, 5, 5], 6), 1.0)
    profile = game.laplace("smallest")
    assert profile.certified and profile.kl == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(ValueError, match="rule must be one of"):
        game.laplace("Paper")


@pytest.mark.parametrize("seed", range(20))
def test_measures_of_a_profile(seed):
    game, counts = small_game(3000 + seed)
    profile = game.profile(counts)
    p, x = game.histogram.pmf, game.histogram.midpoints
    q = np.array(naive.release(naive.kernel(len(counts), game.scales), naive.records(counts)))
    before, after = (math.sqrt(max(0.0, (w * x**2).sum() - (w * x).sum() ** 2)) for w in (p, q))
    assert profile.sd_l1 == pytest.approx(abs(before - after), abs=1e-8)
    assert profile.cosine == pytest.approx((p * q).sum() / math.sqrt((p**2).sum() * (q**2).sum()))
    seen = [{i for i, w in enumerate(d) if w > 0.001} for d in (p, q)]
    assert profile.jaccard == len(seen[0] & seen[1]) / len(seen[0] | seen[1])
    assert len(profile.scale_of) == game.n
    for k, v in np.ndindex(counts.shape):
        assert (profile.scale_of[game.histogram.bin_of == k] == game.scales[v]).sum() == counts[k, v]
    frame = profile.to_frame()
    assert frame["released"].sum() == pytest.approx(1.0) and len(frame) == len(counts)
    row = profile.summary().iloc[0]
    assert row["kl"] == profile.kl and row["n_satisfied"] == profile.n_satisfied
    assert profile.certified == (profile.n_satisfied == game.n) == (profile.realised_epsilon <= game.epsilon)


@pytest.mark.compiled
def test_searches_and_the_bound_are_those_of_this_game():
    game = NoiseGame(histogram_of([0, 0, 0, 1, 1, 2, 4], 6), 1.0, [1.0, 0.1, 0.01])
    bound = game.lower_bound()
    for profile in (game.anneal(seed=1, steps=500), game.genetic(seed=1, generations=5, population=20)):
        assert profile.seed == 1 and (profile.counts.sum(axis=1) == game.histogram.counts).all()
        assert not profile.certified or profile.kl >= bound
    assert game.anneal(seed=1).certified
    assert 0.0 < game.lower_bound(nodes=1) <= bound <= game.best_response(restarts=5).kl


def test_a_profile_is_drawn_where_it_is_asked_to():
    game, counts = small_game(2)
    ax = Figure().add_subplot()
    assert game.profile(counts, "by hand").plot(ax) is ax
    assert "by hand" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_profiles_cannot_be_changed():
    game, counts = small_game(1)
    profile = game.profile(counts)
    counts += 1
    assert (profile.counts.sum(axis=1) == game.histogram.counts).all()
    with pytest.raises(ValueError, match="read-only"):
        profile.counts[0, 0] = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.counts = counts


PUBLISHED = {0.1: 1.9997, 1: 1.3557, 2: 0.9122, 4: 0.4779, 8: 0.1870}  # of the heights


@pytest.mark.parametrize("column", real_columns.COLUMNS)
def test_the_laplace_baseline_of_the_paper(column):
    histogram = Histogram.from_values(real_columns.column(column))
    for epsilon, kl in PUBLISHED.items():
        profile = NoiseGame(histogram, epsilon).laplace("paper")
        masses, _ = real_columns.real_game(column, epsilon, (1,))
        released = masses[:, 0].T @ histogram.pmf
        truth = sum(p * math.log(p / q) for p, q in zip(histogram.pmf, released, strict=True) if p > 0)
        assert profile.kl == pytest.approx(truth, rel=1e-9)
        if column == "heights":
            assert profile.kl == pytest.approx(kl, abs=0.002)
        assert profile.certified
    assert 1e-4 < NoiseGame(histogram, 1).laplace("paper").realised_epsilon < 1.3e-3


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
def test_a_record_at_its_limit_is_decided_exactly(steps):
    # two and two records without noise: bin 0 comes at 1/2, and at 1/3 where one of its two is missing
    histogram = Histogram.from_values([0, 0, 1, 1], n_bins=2, range_epsilon=1e9)
    epsilon = math.log(1.5) + steps * math.ulp(math.log(1.5))
    with decimal.localcontext(prec=50):
        enough = decimal.Decimal(epsilon) >= decimal.Decimal("1.5").ln()
    found = NoiseGame(histogram, epsilon, [1e-4]).profile(histogram.counts[:, None])
    assert found.n_satisfied == (4 if enough else 0)


def test_what_is_released_cannot_be_written_into():
    game = NoiseGame(Histogram.from_values([1, 2, 3, 4] * 9, n_bins=5, bounds=(0, 5)), epsilon=1.0)
    profile = game.uniform()
    with pytest.raises(ValueError, match="read-only"):
        profile.pmf[0] = 1.0
