"""Drawing from a profile: exact probabilities, the data's units, and where the randomness comes from."""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from equinoise.nvo import Histogram, NoiseGame, one_draw_private
from equinoise.nvo.release import rows
from equinoise.nvo.release.rows import draw_bins, sample


@pytest.fixture(scope="module")
def profile():
    histogram = Histogram.from_values([150, 160, 160, 170, 171, 172, 180, 190], 21, bounds=(140, 200))
    game = NoiseGame(histogram, 1.0, np.array([1.0, 0.1]))
    counts = np.zeros((21, 2), dtype=np.int64)
    counts[:, 0] = histogram.counts
    return game.profile(counts)


def bins_of(pmf, words, more=()):
    """Return the bins of given words; `more` are what is drawn where 64 bits are not enough."""
    supply = iter([np.array(words, dtype=np.uint64), *(np.array([w], dtype=np.uint64) for w in more)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_system_words", lambda size: next(supply))
        return draw_bins(np.asarray(pmf, dtype=np.float64), len(words)).tolist()


TOP = 2**64 - 1


def test_words_fall_on_the_right_side_of_boundaries():
    half = 2**63
    assert bins_of([0.5, 0.5], [0, half - 1, half, TOP], [0]) == [0, 0, 1, 1]
    assert bins_of([0.5, 0.0, 0.5], [0, half - 1, half, TOP], [0]) == [0, 0, 2, 2]
    assert bins_of([0.0, 1.0, 0.0], [0, half, TOP], [0, TOP]) == [1, 1, 1]
    assert bins_of([3.0], [0, TOP]) == [0, 0]


def test_a_boundary_within_a_word_is_settled_by_more_bits():
    third = int(Fraction(2**64, 3))  # 1/3 is 0.010101... in binary: its words are all the same
    pmf = [1.0, 2.0]
    assert bins_of(pmf, [third - 1, third + 1]) == [0, 1]
    assert bins_of(pmf, [third], [third - 1]) == [0]
    assert bins_of(pmf, [third], [third + 1]) == [1]
    assert bins_of(pmf, [third], [third, third, third + 1]) == [1]


def test_a_boundary_just_above_a_word_is_settled_too():
    pmf = [0.5, 2.0**-70, 0.5]  # in sum 1 + 2^-70: boundaries at 1/2 less and more 2^-71, about
    assert bins_of(pmf, [2**63], [0]) == [1]
    assert bins_of(pmf, [2**63], [2**63]) == [2]


def test_a_bin_that_is_rarer_than_any_double_can_be_drawn():
    # the boundary is at 2^-200: three words of zeros, then bits below it
    pmf = [2.0**-200, 1.0]
    assert bins_of(pmf, [0], [0, 0, 2**55]) == [0]
    assert bins_of(pmf, [0], [0, 0, 2**57]) == [1]
    assert bins_of(pmf, [0], [1]) == [1]


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=9).filter(lambda p: sum(p) > 0), st.data())
def test_it_is_inversion_in_rational_numbers(pmf, data):
    words = data.draw(st.lists(st.integers(0, TOP), min_size=1, max_size=5))
    shares = [Fraction(p) for p in pmf]
    expected = []
    for word in words:
        place, k = (Fraction(word, 2**64) + Fraction(1, 2**65)) * sum(shares), 0
        while place >= sum(shares[: k + 1]):
            k += 1
        expected.append(k)
    assert bins_of(pmf, words, [2**63] * 20) == expected


def test_frequencies_are_the_pmf():
    # chi square with 4 degrees of freedom: above 23.5 once in 10,000
    pmf = np.array([0.1, 0.0, 0.3, 0.05, 0.25, 0.3])
    n = 200_000
    for seed in (None, 7):
        seen = np.bincount(draw_bins(pmf, n, seed), minlength=6)
        assert seen[1] == 0
        there = pmf > 0
        assert ((seen[there] - n * pmf[there]) ** 2 / (n * pmf[there])).sum() < 23.5


def test_rows_are_independent_of_each_other():
    # 99,999 pairs of neighbours, 8 degrees of freedom: above 31.8 once in 10,000
    drawn = draw_bins(np.array([0.2, 0.3, 0.5]), 100_000, 3)
    pairs = np.bincount(3 * drawn[:-1] + drawn[1:], minlength=9)
    expected = 99_999 * np.outer([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]).reshape(-1)
    assert ((pairs - expected) ** 2 / expected).sum() < 31.8


def test_without_a_seed_the_operating_system_is_asked(monkeypatch, profile):
    asked = []
    true = os.urandom

    def urandom(size):
        asked.append(size)
        return true(size)

    monkeypatch.setattr(os, "urandom", urandom)
    first = sample(profile, 50)
    assert sum(asked) >= 400
    assert not np.array_equal(first, sample(profile, 50))
    asked.clear()
    np.testing.assert_array_equal(sample(profile, 50, 1), sample(profile, 50, 1))
    assert not asked


def test_seeds_give_the_same_rows_and_fewer_rows_are_the_first(profile, monkeypatch):
    whole = sample(profile, 1000, 5)
    np.testing.assert_array_equal(whole[:300], sample(profile, 300, 5))
    assert not np.array_equal(whole, sample(profile, 1000, 6))
    monkeypatch.setattr(rows, "_CHUNK", 7)
    np.testing.assert_array_equal(whole, sample(profile, 1000, 5))


def test_only_midpoints_come_out_and_integers_stay_integers(profile):
    drawn = sample(profile, 2000, 1)
    assert drawn.dtype == np.int64
    histogram = profile.game.histogram
    assert set(drawn.tolist()) <= set(histogram.to_units(np.arange(21)).tolist())
    floats = Histogram.from_values([1.5, 2.5, 2.5, 9.0], 7)
    other = NoiseGame(floats, 1.0, np.array([5.0])).profile(floats.counts[:, None])
    drawn = sample(other, 100, 1)
    assert drawn.dtype == np.float64
    assert np.isin(drawn, floats.to_units(np.arange(7))).all()


def test_an_uncertified_profile_is_drawn_only_when_asked():
    histogram = Histogram.from_values([0.0, 0.0, 9.0], 31)
    wrong = NoiseGame(histogram, 1.0, np.array([1e-5])).profile(histogram.counts[:, None])
    with pytest.raises(
        ValueError, match=r"profile must be certified, got one that satisfies \d of 3 records"
    ):
        sample(wrong, 3)
    assert len(sample(wrong, 3, allow_uncertified=True)) == 3
    assert len(wrong.sample(3, 1, allow_uncertified=True)) == 3


@pytest.mark.parametrize(
    ("size", "options", "error", "words"),
    [
        (0, {}, ValueError, "size must"),
        (1.5, {}, TypeError, "size must"),
        (10**12, {}, ValueError, "size must"),
        (3, {"seed": -1}, ValueError, "seed must"),
        (3, {"seed": "one"}, TypeError, "seed must"),
        (3, {"allow_uncertified": 1}, TypeError, "allow_uncertified must"),
    ],
)
def test_wrong_arguments(profile, size, options, error, words):
    with pytest.raises(error, match=words):
        sample(profile, size, **options)


@pytest.mark.parametrize(
    ("pmf", "error", "words"),
    [
        ([0.0, 0.0], ValueError, "pmf must not be all zero"),
        ([], ValueError, "pmf must not be all zero"),
        ([-1.0, 2.0], ValueError, "pmf must be at least 0, got -1.0 at index 0"),
        ([math.nan, 1.0], ValueError, "pmf must be finite"),
        ([[0.5, 0.5]], ValueError, "pmf must have shape"),
        ("ab", TypeError, "pmf must be an array of numbers"),
    ],
)
def test_what_are_no_probabilities_is_refused(pmf, error, words):
    with pytest.raises(error, match=words):
        draw_bins(pmf, 3, seed=1)


def test_rows_to_compose_are_counted_within_floats(profile):
    twin = one_draw_private(Histogram.from_values([1, 2, 3], 5, bounds=(0, 4)), 1.0)
    for made, many in itertools.product((profile, twin), (0, 10**400)):
        with pytest.raises(ValueError, match=r"(draws|rows) must be an integer from 1 to 9007199254740992"):
            made.composed(many)
    with pytest.raises(ValueError, match="delta must be a number in"):
        twin.composed(3, delta=0.0)
