"""Two plain mechanisms: privacy by enumeration of small data sets, real columns, the noise's own law."""

from __future__ import annotations

import itertools
import math
import sys
import time

import mpmath
import numpy as np
import pytest
from tests import real_columns

from equinoise.mechanisms.laplace import secure_geometric
from equinoise.nvo import Histogram, NoiseGame, one_draw_private, private_histogram, twins
from equinoise.nvo.gaussian import GaussianGame
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.release.composition import compose_pure

WIDE = 1e9  # no range beyond the bounds


def histogram_of(counts):
    values = np.repeat(np.arange(len(counts)), counts)
    return Histogram.from_values(values + 0.5, len(counts), range_epsilon=WIDE, bounds=(0, len(counts)))


def flattened_counts(counts, epsilon):
    """The flattened counts, in plain Python."""
    least = math.ceil(1 / math.expm1(epsilon))
    return np.array(
        [c if c >= least else max(c, least * math.exp(-epsilon * (least - c))) for c in counts], dtype=float
    )


def flattened(counts, epsilon):
    f = flattened_counts(counts, epsilon)
    return f / f.sum()


@pytest.mark.parametrize("epsilon", [0.1, math.log(2), 1.0, 3.0])
@pytest.mark.parametrize("n_bins", [3, 4])
def test_one_draw_is_private_for_every_small_data_set(n_bins, epsilon):
    n = 30
    f = flattened_counts(range(n + 1), epsilon)
    counts = np.indices((n + 1,) * n_bins)
    weights = f[counts]
    logs = np.log(weights / weights.sum(axis=0))
    small = counts.sum(axis=0) <= n
    for i in range(n_bins):
        more, less = (np.take(logs, range(k, n + k), 1 + i) for k in (1, 0))
        both = np.take(small, range(1, n + 1), i)
        assert np.abs(more - less)[:, both].max() <= epsilon * (1 + 1e-9)  # added or removed
        for j in range(i):
            one = np.take(np.take(logs, range(1, n + 1), 1 + i), range(n), 1 + j)
            two = np.take(np.take(logs, range(n), 1 + i), range(1, n + 1), 1 + j)
            both = np.take(np.take(small, range(1, n + 1), i), range(n), j)
            assert np.abs(one - two)[:, both].max() <= 2 * epsilon * (1 + 1e-9)  # replaced


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_draw_is_what_was_enumerated(epsilon):
    rng = np.random.default_rng(1)
    for _ in range(30):
        counts = rng.integers(0, 9, int(rng.integers(3, 5)))
        counts[0] += 2
        np.testing.assert_allclose(
            one_draw_private(histogram_of(counts), epsilon).pmf,
            flattened(counts.tolist(), epsilon),
            rtol=1e-9,
        )


def composed_by_hand(epsilon, m, delta):
    """The least total at which m randomised responses have this delta, by bisection of the definition."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    sums = [(math.comb(m, k) * p**k * (1 - p) ** (m - k), (2 * k - m) * epsilon) for k in range(m + 1)]

    def excess(total):
        return sum(mass * max(0.0, -math.expm1(total - loss)) for mass, loss in sums if loss > total)

    low, high = 0.0, m * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    return 0.0 if excess(0.0) <= delta else high


FIGURES = {"heights": 0.00086, "beauty.wage": 0.00321, "card.wage": 0.00012, "401ksubs.inc": 0.0}


@pytest.mark.parametrize("name", [*real_columns.COLUMNS, "401ksubs.inc"])
def test_kl_of_one_draw_on_real_columns(name):
    values = real_columns.column(name)
    bounds = (math.floor(values.min()), math.ceil(values.max()))
    histogram = Histogram.from_values(values, bounds=bounds, margin="paper")
    assert histogram.inside.stop - histogram.inside.start == 25
    assert one_draw_private(histogram, 1.0).kl == pytest.approx(FIGURES[name], rel=0.02, abs=5e-6)


@pytest.mark.parametrize(("neighbours", "scale"), [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_noise_has_its_law_and_hides_a_change(neighbours, scale, epsilon):
    # chi square of 30,000 draws over 2 m + 1 values: above its mean by 4.5 deviations once in 10,000
    n, m = 30_000, max(2, round(5 * scale / epsilon))
    law = np.exp(-epsilon / scale * np.abs(np.arange(-m, m + 1)))
    law *= math.tanh(epsilon / scale / 2)
    assert np.abs(np.diff(np.log(law))).max() * scale <= epsilon + 1e-12  # so many counts change by one
    simulated = twins.simulated_geometric(epsilon / scale, n, 3)
    drawn = secure_geometric(np.zeros(n, dtype=np.int64), scale, epsilon)
    for noise in (simulated, drawn):
        seen = np.bincount(noise[np.abs(noise) <= m] + m, minlength=2 * m + 1)
        seen = np.append(seen, n - seen.sum())
        expected = n * np.append(law, 1 - law.sum())
        chi = ((seen - expected) ** 2 / expected).sum()
        assert chi < 2 * m + 1 + 4.5 * math.sqrt(2 * (2 * m + 1)) + 6
    histogram = histogram_of([5, 0, 3, 9])
    counts = histogram.counts + twins.simulated_geometric(epsilon / scale, 4, 7)
    expected = np.maximum(counts, 1 / (1 + math.exp(epsilon / scale)))
    found = private_histogram(histogram, epsilon, neighbours=neighbours, seed=7)
    np.testing.assert_allclose(found.pmf, expected / expected.sum(), rtol=1e-12)


def test_a_release_has_the_noise_that_its_neighbours_ask_for(monkeypatch):
    """How far counts may move, and epsilon, as OpenDP is told: its law is tested above."""
    told = []

    def noted(counts, sensitivity, epsilon):
        told.append((counts.tolist(), sensitivity, epsilon))
        return np.asarray(counts)

    monkeypatch.setattr(twins, "secure_geometric", noted)
    for neighbours in twins.NEIGHBOURS:
        private_histogram(histogram_of([50, 20, 30]), 0.1, neighbours=neighbours)
    assert told == [([50, 20, 30], 1, 0.1), ([50, 20, 30], 2, 0.1)]


def test_a_release_asks_opendp_and_a_seed_is_simulation(monkeypatch):
    histogram = histogram_of([50, 20, 30])
    assert private_histogram(histogram, 0.1, seed=1).kl == private_histogram(histogram, 0.1, seed=1).kl
    assert len({private_histogram(histogram, 0.1).kl for _ in range(5)}) > 1
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    private_histogram(histogram, 0.1000001, seed=1)
    with pytest.raises(ImportError, match="OpenDP"):
        private_histogram(histogram, 0.1000001)


def test_they_have_the_face_of_a_profile():
    histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], 41, bounds=(140, 220))
    for made in (one_draw_private(histogram, 1.0), private_histogram(histogram, 1.0, seed=2)):
        profile = NoiseGame(histogram, 1.0).best_response()
        assert made.pmf.shape == profile.pmf.shape
        assert made.certificate().keys() == profile.certificate().keys()
        assert made.certificate()["certified"]
        assert "any data set" in made.certificate()["promise"]
        np.testing.assert_array_equal(made.sample(9, 1), made.sample(9, 1))
        assert set(made.sample(500, 1).tolist()) <= set(
            histogram.to_units(np.arange(41)[histogram.inside]).tolist()
        )
        assert 0 <= made.kl < math.inf and 0 < made.cosine <= 1 and made.sd_l1 >= 0 and 0 <= made.jaccard <= 1
    words = private_histogram(histogram, 1.0, neighbours="replace", seed=2).certificate()["promise"]
    assert words.startswith("Replacing any one record")


def test_rows_of_one_draw_add_up_and_those_of_a_histogram_do_not():
    histogram = histogram_of([50, 20, 30])
    assert private_histogram(histogram, 0.7, seed=1).composed(10**6).epsilon == 0.7
    one = one_draw_private(histogram, 0.1)
    assert one.composed(1).epsilon == pytest.approx(0.1, rel=1e-3)
    assert 0.1 < one.composed(100).epsilon < 100 * 0.1
    # randomised response by enumeration: two draws at epsilon 1, of which both say the same
    p = math.e / (1 + math.e)
    truth = math.log((p**2 - 1e-5) / (1 - p) ** 2)
    for m, level, delta in itertools.product((1, 2, 9, 60), (1e-6, 0.05, 0.7, 4.0), (1e-5, 0.3)):
        found = compose_pure(level, m, delta)
        assert found == pytest.approx(composed_by_hand(level, m, delta), rel=1e-6, abs=1e-9)
    assert truth <= compose_pure(1.0, 2) + 1e-9 <= truth * 1.005 + 1e-9
    assert 3 * 40.0 <= compose_pure(40.0, 3) <= 3 * 40.0 * (1 + 1e-12)
    begun = time.process_time()
    for total, rows in ((2.0, 1), (2.0, 50), (2.0, 3000), (5.0, 10**5), (50.0, 10**7), (700.0, 10**5)):
        row = twins.row_epsilon(total, rows)
        assert compose_pure(row, rows) <= total < compose_pure(1.02 * row, rows)
    assert time.process_time() - begun < 20.0  # every release waits for it


def test_what_rows_add_up_to_is_never_rounded_below_the_truth():
    """Which is the largest ln((P(X >= k) - delta)/Q(X >= k)) over k, in 60 digits."""
    with mpmath.workdps(60):
        for m, level, delta in itertools.product((1, 2, 3, 5, 9), (0.01, 0.3, 1.0, 2.5), (1e-9, 1e-5)):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(level)))
            above = below = truth = mpmath.mpf(0)
            for k in range(m, -1, -1):
                above += mpmath.binomial(m, k) * p**k * (1 - p) ** (m - k)
                below += mpmath.binomial(m, k) * p ** (m - k) * (1 - p) ** k
                if above > delta:
                    truth = max(truth, mpmath.log((above - delta) / below))
            assert truth <= compose_pure(level, m, delta) <= truth * (1 + mpmath.mpf(2e-9))


@pytest.mark.parametrize(("epsilon", "draws"), [(1.0, 1400), (0.2, 30_000), (5.0, 130)])
def test_epsilon_of_many_rows_is_bounded_beyond_floats_too(epsilon, draws):
    """Where tails are smaller than any float: the definition in logarithms."""
    k = np.arange(draws + 1.0)
    factorial = np.cumsum(np.log(np.maximum(k, 1.0)))
    chance = factorial[-1] - factorial - factorial[::-1] - (draws - k) * epsilon
    chance -= draws * math.log1p(math.exp(-epsilon))  # of so many true ones
    low, high = 0.0, draws * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        beyond = (2 * k - draws) * epsilon - middle
        delta = (np.exp(chance) * -np.expm1(-np.maximum(beyond, 0.0))).sum()
        low, high = (low, middle) if delta <= 1e-5 else (middle, high)
    assert high > 500.0
    assert high * (1 - 1e-9) <= compose_pure(epsilon, draws) <= 1.05 * high


def test_all_three_stand_beside_each_other():
    profile = NoiseGame(histogram_of([50, 20, 30, 1]), 1.0).best_response()
    total = profile.composed(10).epsilon
    table = twins.beside(profile, 10, total)
    assert [row["mechanism"] for row in table] == [
        *("NVO", "one draw, same row", "histogram, same row", "one draw, same total", "histogram, same total")
    ]
    assert [row["one"] for row in table[:3]] == [1.0] * 3
    assert table[0]["all"] == table[4]["all"] == total
    assert 0.95 * total <= table[3]["all"] <= total
    own = NoiseGame(Histogram.from_values([1, 2, 2, 3, 3], 21), 1.0).best_response()
    assert [row["mechanism"] for row in twins.beside(own, 10, 3.0)] == ["NVO"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: one_draw_private(Histogram.from_values([1, 2, 3]), 1.0),
            ValueError,
            "histogram must have public",
        ),
        (
            lambda: private_histogram(Histogram.from_values([1, 2, 3]), 1.0),
            ValueError,
            "histogram must have public",
        ),
        (lambda: one_draw_private(histogram_of([3, 4]), 1.0), ValueError, "histogram must have n_bins of"),
        (lambda: one_draw_private([1, 2], 1.0), TypeError, "histogram must be a Histogram"),
        (lambda: one_draw_private(histogram_of([3, 4, 1]), 0.0), ValueError, "epsilon must"),
        (
            lambda: private_histogram(histogram_of([3, 4, 1]), 1, neighbours="both"),
            ValueError,
            "neighbours must",
        ),
        (lambda: private_histogram(histogram_of([3, 4, 1]), 1, seed=-1), ValueError, "seed must"),
    ],
)
def test_wrong_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("epsilon", [700.0, 746.0, 1e6])
def test_one_draw_hides_a_record_at_an_epsilon_beyond_floats(epsilon):
    """A value that nobody has keeps a probability above 0: else its first record would be revealed."""
    pmf = one_draw_private(histogram_of([3, 0, 2]), epsilon).pmf
    more = one_draw_private(histogram_of([3, 1, 2]), epsilon).pmf
    assert (pmf > 0.0).all()
    assert np.abs(np.log(more / pmf)).max() <= epsilon


@pytest.mark.parametrize("epsilon", [9e-16, 1e-300, 5e-324])
def test_an_epsilon_that_rounding_hides_is_refused(epsilon):
    records = Histogram.from_values([1.0, 2.0, 2.0, 3.0], 5, bounds=(0.0, 4.0))
    pairs = PairHistogram.from_values([1.0, 2.0], [1.0, 2.0], 5, bounds=((0.0, 4.0), (0.0, 4.0)))
    for make in (
        lambda: NoiseGame(records, epsilon),
        lambda: GaussianGame(records, epsilon, delta=1e-6),
        lambda: PairGame(pairs, epsilon),
        lambda: one_draw_private(records, epsilon),
        lambda: private_histogram(records, epsilon, seed=1),
    ):
        with pytest.raises(ValueError, match=r"epsilon must be at least 1e-15 for a row \(less"):
            make()


def test_a_release_that_tells_next_to_nothing_stands_alone():
    """With the widest noise all rows lose less than a twin takes."""
    game = NoiseGame(Histogram.from_values([1.0, 2.0, 2.0, 3.0], 5, bounds=(0.0, 4.0)), 1.0, [1e20])
    for total in (0.0, 1e-17):
        table = twins.beside(game.uniform(), 4, total)
        assert [row["mechanism"] for row in table] == ["NVO", "one draw, same row", "histogram, same row"]


def test_too_few_bins_are_named():
    with pytest.raises(ValueError, match="histogram must have n_bins of at least 3 within its bounds, got 2"):
        one_draw_private(Histogram.from_values([1, 2], 2, bounds=(0, 4)), 1.0)
