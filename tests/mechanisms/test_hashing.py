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

from equinoise.mechanisms.hashing import MAX_BUCKETS, Hashing, item_of, pair_of, symbol_of, turn_of

EPSILONS = np.geomspace(1e-3, 20.0, 20).tolist()
BUCKETS = [1, 2, 3, 4, 5, 8, 13, 33, 64, 100]
VALUES = [(0.5, 0.5), (-0.5, 0.5), (0.0, 0.5), (0.3, 0.5), (-1e-17, 0.5), (-0.2, 0.25), (2.0**-54, 2.0**-54)]
plain = getattr(symbol_of, "py_func", None) or symbol_of.__wrapped__


def counts(code, own, value, radius):
    return truth.symbol_counts(lambda word: plain(code, word, own, value, radius), 2 * code.n_buckets)


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
            own = truth.symbol_for(bucket, sign)
            found, _ = counts(code, own, value, radius)
            assert sum(found) == truth.WORDS
            seen += found
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
        own = truth.symbol_for(bucket, sign)
        found, _ = counts(code, own, value, 0.4)
        mirrored, _ = counts(code, truth.symbol_for(bucket, -sign), value, 0.4)
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
    found, starts = counts(code, truth.symbol_for(77, -1), 0.1, 0.5)
    assert sum(found) == truth.WORDS and len(starts) == 2 * MAX_BUCKETS
    assert Fraction(max(found), min(found)) <= truth.exponential(20.0)[0] and min(found) == code.low


@given(
    st.floats(1e-6, 40.0), st.integers(1, 300), st.integers(0, 2**32 - 1), st.integers(0, 2000),
    st.floats(-1.0, 1.0), st.sampled_from([0.0, 2.0**-54, 0.1, 0.25, 0.5]),
)  # fmt: skip
def test_any_code_item_and_value(epsilon, k, half, position, part, radius):
    code, value = Hashing.of(epsilon, k), part * radius
    own = pair_of(position, half, k)
    turn, sign = truth.block_event(half, k)
    assert own == truth.symbol_for((position + turn) % k, sign)
    found, _ = counts(code, own, value, radius)
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
            own = int(rng.integers(2 * k))
            _, starts = counts(code, own, value, radius)
            near = {w + d for w in [*starts, truth.WORDS] for d in (-1, 0, 1)}
            words = [w for w in near if 0 <= w < truth.WORDS] + rng.integers(truth.WORDS, size=50).tolist()
            for word in words:
                assert symbol_of(code, word, own, value, radius) == plain(code, word, own, value, radius)


# ----------------------------------------------------------------------------------------------------------
# What the symbols say
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 7, 1000, MAX_BUCKETS])
def test_turns_are_equally_likely_and_signs_are_even(k):
    """The first half of every turn, exactly: their numbers differ by one of about 2^31/k."""
    tried = range(k) if k < 2000 else np.random.default_rng(2).integers(k, size=2000).tolist()
    for b in tried:
        first = -(-b * 2**31 // k)
        assert turn_of(2 * first, k) == b == turn_of(2 * first + 1, k)
        assert first == 0 or turn_of(2 * first - 1, k) == b - 1
        assert (pair_of(0, 2 * first, k), pair_of(0, 2 * first + 1, k)) == (2 * b, 2 * b + 1)
    assert turn_of(2**32 - 1, k) == k - 1


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40, 1000])
def test_every_bucket_has_one_item_of_every_block(k):
    """Also the other way round, from the bucket to its item; all of a block have one sign."""
    rng = np.random.default_rng([6, k])
    for block in (0, 1, 2, 9):
        for half in [0, 1, 2**32 - 1, *rng.integers(2**32, size=4).tolist()]:
            positions, event = range(block * k, block * k + k), truth.block_event(half, k)
            wanted = truth.placed([event] * (block + 1), block * k + k, k)[block * k :]
            found = [pair_of(i, half, k) for i in positions]
            assert found == [truth.symbol_for(*one) for one in wanted]
            assert {s // 2 for s in found} == set(range(k)) and len({s % 2 for s in found}) == 1
            assert [item_of(block, half, s // 2, k) for s in found] == list(positions)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("k", [1, 2, 9])
def test_gain_pair_and_second_moment(epsilon, k):
    code, e = Hashing.of(epsilon, k), math.exp(epsilon)
    q = 1 / (e + 2 * k - 1)
    assert code.gain == pytest.approx(truth.gain(epsilon, k), rel=1e-11)
    assert code.pair == pytest.approx((e + 1) * q, rel=1e-11)
    for n in (1, 2, 3, 9, 10, 500):
        wanted = truth.gain(epsilon, k) ** 2 * (1 / k if n > k else 2 * q)
        assert code.second_moment(n) == pytest.approx(wanted, rel=1e-11)
        assert code.second_moment(n) == pytest.approx(float(truth.moment(epsilon, k, n)), rel=1e-11)
    if k == 1:
        assert code.second_moment(2) / 4 == pytest.approx(1 / (4 * math.tanh(epsilon / 2) ** 2), rel=1e-11)


def distribution(code, own, value, radius):
    found, _ = counts(code, own, value, radius)
    return np.array([float(Fraction(n, truth.WORDS)) for n in found])


def positions_and_values(n, radii):
    for last in range(n):
        for part in (1.0, -1.0, 0.3, 0.0):
            yield last, part * float(radii[last])


@pytest.mark.parametrize(("n", "k"), [(8, 1), (8, 2), (7, 3), (5, 4), (4, 5), (5, 5), (11, 5), (1, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_estimates_are_unbiased_over_all_turns_signs_and_symbols(n, k, epsilon):
    """n items, one of them last: E y(a) = v [a = a*], and second moments by blocks, the largest r^2 V0."""
    rng = np.random.default_rng([3, n, k])
    code, radii, block = Hashing.of(epsilon, k), rng.uniform(0.05, 0.5, n), np.arange(n) // k
    placed = np.array([truth.placed(event, n, k) for event in truth.every_event(n, k)])
    bucket, sign, largest = placed[..., 0], placed[..., 1], 0.0
    for last, value in positions_and_values(n, radii):
        table = np.array([distribution(code, own, value, radii[last]) for own in range(2 * k)])
        mean, square = np.zeros(n), np.zeros(n)
        for symbol in range(2 * k):
            chance = table[2 * bucket[:, last] + (sign[:, last] < 0), symbol] / len(placed)
            y = (1 - 2 * (symbol % 2)) * sign * radii * code.gain * (bucket == symbol // 2)
            mean += chance @ y
            square += chance @ y**2
        others = np.arange(n) != last
        assert np.abs(mean - np.where(others, 0.0, value)).max() <= 1e-12 * max(1.0, code.gain)
        chance = np.where(block == block[last], 2 * code.low / truth.WORDS, 1 / k)
        chance[last] = code.pair
        assert square == pytest.approx(radii**2 * code.gain**2 * chance, rel=1e-12)
        largest = max([largest, *(square / radii**2)[others]])
    assert n == 1 or largest == pytest.approx(code.second_moment(n), rel=1e-12)


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 2), (5, 3), (4, 4), (6, 5), (3, 7)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_closed_form_of_the_expected_weight(n, k, epsilon):
    """E exp(-sum over D of t y) by adding up every event, a* in D (t > 0) and not in it."""
    rng, code = np.random.default_rng([4, n, k]), Hashing.of(epsilon, k)
    places = [truth.placed(event, n, k) for event in truth.every_event(n, k)]
    for last, shared in itertools.product(range(n), (True, False)):
        t, radii = rng.uniform(0.0, 0.8, n) / code.gain, rng.uniform(0.1, 0.5, n)
        t[rng.random(n) < 0.2] = 0.0
        t[last] = 0.7 / code.gain if shared else 0.0
        value = float(rng.uniform(-radii[last], radii[last]))
        table = [distribution(code, own, value, float(radii[last])) for own in range(2 * k)]
        total = 0.0
        for items in places:
            for symbol, chance in enumerate(table[truth.symbol_for(*items[last])]):
                y = truth.estimates(items, symbol, radii, code.gain)
                total += chance * math.exp(-float(t @ y))
        given_to = list(zip(t.tolist(), radii.tolist(), strict=True)), (last, value), epsilon, k
        wanted = truth.expected_by_blocks(*given_to)
        assert total / len(places) == pytest.approx(wanted, rel=1e-12)
        independent = truth.bound_on_expected(*given_to)
        if k == 1:
            assert wanted == pytest.approx(independent, rel=1e-12)  # every item is a block of its own
        assert wanted <= independent * (1 + 1e-12)


@given(st.data(), st.floats(1e-3, 12.0), st.integers(1, 12), st.sampled_from([-1.0, 1.0, None]))
def test_balanced_buckets_never_exceed_the_bound_for_independent_ones(data, epsilon, k, part):
    """For any D, also where the estimate of a* makes its own factor least."""
    n = data.draw(st.integers(1, 14))
    pairs = st.tuples(st.floats(0.0, 6.0), st.floats(0.05, 0.5))
    weights = data.draw(st.lists(pairs, min_size=n, max_size=n))
    gain = truth.gain(epsilon, k)
    weights = [(u / r / gain, r) for u, r in weights]
    last = data.draw(st.integers(0, n - 1))
    share = data.draw(st.floats(-1.0, 1.0)) if part is None else part
    given_to = weights, (last, share * weights[last][1]), epsilon, k
    assert truth.expected_by_blocks(*given_to) <= truth.bound_on_expected(*given_to) * (1 + 1e-9)


def test_drawn_symbols_have_their_frequencies():
    """Chi-square over 100,000 words of the generator; one wrong alarm in 10^6 runs, and the seed is fixed."""
    code, rng = Hashing.of(1.5, 4), np.random.default_rng(5)
    words = rng.integers(truth.WORDS, size=100_000).tolist()
    drawn = [symbol_of(code, word, 4, 0.1, 0.5) for word in words]
    found, _ = counts(code, 4, 0.1, 0.5)
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
