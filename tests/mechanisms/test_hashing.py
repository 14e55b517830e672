"""Symbols in whole numbers: every word counted, against fractions and e^epsilon to 80 digits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from tests import naive_symbols as truth

from equinoise.mechanisms.hashing import MAX_BUCKETS, Hashing, bucket_of, symbol_of

EPSILONS = np.geomspace(1e-3, 20.0, 20).tolist()
BUCKETS = [1, 2, 3, 4, 5, 8, 13, 33, 64, 100]
VALUES = [(0.5, 0.5), (-0.5, 0.5), (0.0, 0.5), (0.3, 0.5), (-1e-17, 0.5), (-0.2, 0.25), (2.0**-54, 2.0**-54)]
plain = getattr(symbol_of, "py_func", None) or symbol_of.__wrapped__


def counts(code, half, value, radius):
    return truth.symbol_counts(lambda word: plain(code, word, half, value, radius), 2 * code.n_buckets)


def share(value, radius):
    """1/2 + v/(2r), the exact value of the floats."""
    return Fraction(1, 2) + Fraction(value) / (2 * Fraction(radius))


# ----------------------------------------------------------------------------------------------------------
# Privacy, by counting
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_symbol_is_more_than_e_epsilon_times_as_likely_as_another(epsilon):
    """200 pairs (epsilon, k): all symbols of all values, together, as exact whole numbers of words."""
    least_e, most_e = truth.exponential(epsilon)
    for k in BUCKETS:
        code, seen = Hashing.of(epsilon, k), []
        for i, (value, radius) in enumerate(VALUES):
            bucket, sign = (i * 7) % k, (-1) ** (i // 2)
            found, _ = counts(code, truth.half_of(bucket, sign, k), value, radius)
            assert sum(found) == truth.WORDS
            seen += found
            own = 2 * bucket + (sign < 0)
            assert found[own] + found[own ^ 1] == 2 * code.low + code.extra
            assert abs(found[own] - code.low - code.extra * share(value, radius)) <= 1 + code.extra / 2**51
            assert {n for s, n in enumerate(found) if s >> 1 != bucket} <= {code.low}
        assert Fraction(max(seen), min(seen)) <= least_e
        assert Fraction(min(seen), truth.WORDS) >= 1 / (least_e + 2 * k - 1)  # q
        assert Fraction(max(seen), truth.WORDS) <= most_e / (most_e + 2 * k - 1)  # p
        q = truth.WORDS / (most_e + 2 * k - 1)
        assert code.low - q <= 1 + q / 2**48  # and no more is given away than rounding asks for


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.0])
def test_every_bucket_sign_and_value(k, epsilon):
    code, least_e = Hashing.of(epsilon, k), truth.exponential(epsilon)[0]
    seen = []
    for bucket, sign, value in itertools.product(range(k), (-1, 1), np.linspace(-0.4, 0.4, 9).tolist()):
        found, _ = counts(code, truth.half_of(bucket, sign, k), value, 0.4)
        own = 2 * bucket + (sign < 0)
        mirrored, _ = counts(code, truth.half_of(bucket, -sign, k), value, 0.4)
        assert mirrored == [found[s ^ 1] if s >> 1 == bucket else found[s] for s in range(2 * k)]
        assert abs(found[own] - code.low - code.extra * share(value, 0.4)) <= 1 + code.extra / 2**51
        seen += found
    assert Fraction(max(seen), min(seen)) <= least_e


@pytest.mark.parametrize("epsilon", [1e-8, 1e-6, 1.0, 20.0, 39.9, 40.0, 50.0, 700.0, 1e300])
@pytest.mark.parametrize("k", [1, 2, 3, 1000, MAX_BUCKETS - 1, MAX_BUCKETS])
def test_the_extremes_of_a_code(epsilon, k):
    code = Hashing.of(epsilon, k)
    assert code.low > 0 and code.extra > 0 and 2 * k * code.low + code.extra == truth.WORDS
    assert Fraction(code.low + code.extra, code.low) <= truth.exponential(min(epsilon, 800.0))[0]
    assert code.gain == pytest.approx(truth.WORDS / code.extra, rel=1e-15)  # as drawn
    rounding = 2 * k / code.extra + 2**-48 * code.gain
    assert code.gain == pytest.approx(truth.gain(min(epsilon, 40.0), k), rel=1.1 * rounding + 1e-12)
    for value in (0.5, -0.5):
        ends = plain(code, 0, 0, value, 0.5), plain(code, truth.WORDS - 1, 0, value, 0.5)
        assert ends == (0, 2 * k - 1)


@pytest.mark.parametrize("k", [1, 2, 3, 100, 40_000, MAX_BUCKETS])
def test_no_number_of_buckets_breaks_the_smallest_epsilon(k):
    """A hostile server chooses k: the user's epsilon holds, or the code is refused."""
    for epsilon in (1e-9, 1.0001e-9, 2e-9, 3.3e-9, 1e-8, 3e-8):
        if epsilon < 1e-8:
            with pytest.raises(ValueError, match="epsilon"):
                Hashing.of(epsilon, k)
            continue
        code = Hashing.of(epsilon, k)
        assert code.extra > 0
        assert Fraction(code.low + code.extra, code.low) <= truth.exponential(epsilon)[0]


def test_all_words_of_the_largest_code_are_counted():
    code = Hashing.of(20.0, MAX_BUCKETS)
    found, starts = counts(code, truth.half_of(77, -1, MAX_BUCKETS), 0.1, 0.5)
    assert sum(found) == truth.WORDS and len(starts) == 2 * MAX_BUCKETS
    assert Fraction(max(found), min(found)) <= truth.exponential(20.0)[0] and min(found) == code.low


@given(
    st.floats(1e-6, 40.0), st.integers(1, 300), st.integers(0, 2**32 - 1), st.floats(-1.0, 1.0),
    st.sampled_from([0.0, 2.0**-54, 0.1, 0.25, 0.5]),
)  # fmt: skip
def test_any_code_item_and_value(epsilon, k, half, part, radius):
    code, value = Hashing.of(epsilon, k), part * radius
    found, _ = counts(code, half, value, radius)
    assert sum(found) == truth.WORDS
    assert Fraction(max(found), min(found)) <= truth.exponential(epsilon)[0]


@pytest.mark.parametrize("value", [0.2, 0.5, 1e3, 1e9, 1e300])
@pytest.mark.parametrize("radius", [1e-300, 1e-9, 0.1])
def test_a_value_beyond_its_radius_counts_as_the_radius(value, radius):
    for epsilon, k in ((0.1, 1), (4.0, 9)):
        code = Hashing.of(epsilon, k)
        for v, wanted in ((value, radius), (-value, -radius)):
            assert counts(code, 1, v, radius) == counts(code, 1, wanted, radius)
            for word in (0, code.low - 1, code.low, code.low + code.extra - 1, code.low + code.extra):
                assert symbol_of(code, word, 1, v, radius) == symbol_of(code, word, 1, wanted, radius)


def test_compiled_and_plain_draws_agree_at_and_around_every_boundary():
    rng = np.random.default_rng(1)
    for epsilon, k in ((1e-3, 1), (1.0, 2), (4.0, 8), (20.0, 40), (40.0, 3)):
        code = Hashing.of(epsilon, k)
        for value, radius in VALUES:
            half = int(rng.integers(2**32))
            _, starts = counts(code, half, value, radius)
            near = {w + d for w in [*starts, truth.WORDS] for d in (-1, 0, 1)}
            words = [w for w in near if 0 <= w < truth.WORDS] + rng.integers(truth.WORDS, size=50).tolist()
            for word in words:
                assert symbol_of(code, word, half, value, radius) == plain(code, word, half, value, radius)


# ----------------------------------------------------------------------------------------------------------
# What the symbols say
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 7, 1000, MAX_BUCKETS])
def test_buckets_are_of_one_size_and_signs_are_even(k):
    """The first half of every bucket, exactly: sizes differ by one of about 2^31/k."""
    tried = range(k) if k < 2000 else np.random.default_rng(2).integers(k, size=2000).tolist()
    for b in tried:
        first = -(-b * 2**31 // k)
        assert bucket_of(2 * first, k) == b == bucket_of(2 * first + 1, k)
        assert first == 0 or bucket_of(2 * first - 1, k) == b - 1
    assert bucket_of(2**32 - 1, k) == k - 1


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("k", [1, 2, 9])
def test_gain_pair_and_second_moment(epsilon, k):
    code, e = Hashing.of(epsilon, k), math.exp(epsilon)
    q = 1 / (e + 2 * k - 1)
    assert code.gain == pytest.approx(truth.gain(epsilon, k), rel=1e-11)
    assert code.pair == pytest.approx((e + 1) * q, rel=1e-11)
    assert code.second_moment == pytest.approx(truth.gain(epsilon, k) ** 2 / k, rel=1e-11)
    if k == 1:
        assert code.second_moment / 4 == pytest.approx(1 / (4 * math.tanh(epsilon / 2) ** 2), rel=1e-11)


def distribution(code, bucket, sign, value, radius):
    found, _ = counts(code, truth.half_of(bucket, sign, code.n_buckets), value, radius)
    return np.array([float(Fraction(n, truth.WORDS)) for n in found])


@pytest.mark.parametrize(("n", "k"), [(8, 1), (8, 2), (5, 3), (4, 5)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_estimates_are_unbiased_over_all_buckets_signs_and_symbols(n, k, epsilon):
    """n items, one of them last: E y(a) = v [a = a*], and the second moment of the others r^2 V0."""
    rng = np.random.default_rng([3, n, k])
    code, radii = Hashing.of(epsilon, k), rng.uniform(0.05, 0.5, n)
    events = list(itertools.product(range(k), (1, -1)))
    which = np.array(list(itertools.product(range(2 * k), repeat=n)))  # the event of every item
    bucket, sign = np.array(events).T[:, which]
    last = int(rng.integers(n))
    for value in (radii[last], -radii[last], 0.3 * radii[last], 0.0):
        table = np.array([distribution(code, h, z, value, radii[last]) for h, z in events])
        mean, square = np.zeros(n), np.zeros(n)
        for symbol in range(2 * k):
            chance = table[which[:, last], symbol] / len(which)
            y = (1 - 2 * (symbol % 2)) * sign * radii * code.gain * (bucket == symbol // 2)
            mean += chance @ y
            square += chance @ y**2
        wanted = np.where(np.arange(n) == last, value, 0.0)
        assert np.abs(mean - wanted).max() <= 1e-12 * max(1.0, code.gain)
        others = np.arange(n) != last
        assert square[others] == pytest.approx((radii**2 * code.second_moment)[others], rel=1e-12)
        assert square[last] == pytest.approx(radii[last] ** 2 * code.gain**2 * code.pair, rel=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_closed_form_of_the_expected_weight(k, epsilon, shared):
    """E exp(-sum over D of t y) by adding up every event, a* in D and not in it."""
    rng = np.random.default_rng([4, k])
    code, n = Hashing.of(epsilon, k), 4
    events = list(itertools.product(range(k), (1, -1)))
    for _ in range(3):
        t, radii = rng.uniform(0.0, 0.8, n) / code.gain, rng.uniform(0.1, 0.5, n)
        value = float(rng.uniform(-radii[-1], radii[-1]))
        used = t if shared else np.append(t[:-1], 0.0)
        table = {event: distribution(code, *event, value, float(radii[-1])) for event in events}
        total = 0.0
        for items in itertools.product(events, repeat=n):
            for symbol in range(2 * k):
                y = truth.estimates(items, symbol, radii, code.gain)
                total += table[items[-1]][symbol] * math.exp(-float(used @ y))
        others = list(zip(t[:-1], radii[:-1], strict=True))
        wanted = truth.expected_factor(others, (t[-1], radii[-1], value) if shared else None, epsilon, k)
        assert total / len(events) ** n == pytest.approx(wanted, rel=1e-12)


def test_drawn_symbols_have_their_frequencies():
    """Chi-square over 100,000 words of the generator; one wrong alarm in 10^6 runs, and the seed is fixed."""
    code, rng = Hashing.of(1.5, 4), np.random.default_rng(5)
    words = rng.integers(truth.WORDS, size=100_000).tolist()
    drawn = [symbol_of(code, word, 2**31, 0.1, 0.5) for word in words]
    found, _ = counts(code, 2**31, 0.1, 0.5)
    expected = [len(words) * n / truth.WORDS for n in found]
    assert stats.chisquare(np.bincount(drawn, minlength=8), expected).pvalue > 1e-6


# ----------------------------------------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-12, math.inf, math.nan])
def test_an_epsilon_that_makes_no_code_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        Hashing.of(epsilon, 1)


@pytest.mark.parametrize(
    ("k", "error"),
    [(0, ValueError), (-1, ValueError), (MAX_BUCKETS + 1, ValueError), (1.0, TypeError), (True, TypeError)],
)
def test_a_wrong_number_of_buckets_is_refused(k, error):
    with pytest.raises(error, match="n_buckets"):
        Hashing.of(1.0, k)
