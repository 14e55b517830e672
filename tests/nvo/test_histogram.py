"""Binning: against the formula, at the edges of bins, and everything that is no column of numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests import naive_nvo

from equinoise.nvo import Histogram

numbers = st.floats(-1e9, 1e9, allow_nan=False) | st.integers(-(10**6), 10**6)


@settings(max_examples=300)
@given(
    st.lists(numbers, min_size=2, max_size=30),
    st.integers(2, 200),
    st.floats(0.51, 0.999),
    st.floats(0.05, 50.0),
)
def test_bins_and_sensitivity_follow_the_formula(values, n_bins, percentile, range_epsilon):
    low, high = float(min(values)), float(max(values))
    if high - low < 1e-6 * max(abs(low), abs(high), 1e-300):
        return  # the formula itself loses its digits there
    histogram = Histogram.from_values(values, n_bins, percentile=percentile, range_epsilon=range_epsilon)
    for value, k in zip(values, histogram.bin_of, strict=True):
        where = naive_nvo.place(value, n_bins, low, high, percentile, range_epsilon)
        assert k - 1e-6 <= where <= k + 1 + 1e-6
    start, stop = histogram.range
    margin = (high - low) / range_epsilon * abs(math.log(2 - 2 * percentile))
    assert (start, stop) == pytest.approx((low - margin, high + margin), rel=1e-9, abs=1e-9 * (high - low))
    assert histogram.sensitivity == pytest.approx((high - low) / (stop - start))
    assert (histogram.counts == np.bincount(histogram.bin_of, minlength=n_bins)).all()
    assert histogram.n == len(values) == histogram.counts.sum()
    assert histogram.bounds == (low, high) and not histogram.bounds_given
    np.testing.assert_allclose(histogram.midpoints, [(k + 0.5) / n_bins for k in range(n_bins)])


@given(st.lists(numbers, min_size=2, max_size=20).filter(lambda v: max(v) - min(v) > 1e-3))
def test_midpoints_in_units_lie_half_a_bin_from_the_values_at_most(values):
    histogram = Histogram.from_values(values, 50)
    units = histogram.to_units(histogram.bin_of)
    width = (histogram.range[1] - histogram.range[0]) / 50
    rounding = 0.5 if histogram.integers else 1e-9 * max(1.0, *map(abs, histogram.range))
    assert (np.abs(units - np.array(values)) <= width / 2 * (1 + 1e-6) + rounding).all()


def test_the_heights_of_the_paper_leave_this_much_room():
    histogram = Histogram.from_values([160.0, 231.0])
    assert histogram.sensitivity == pytest.approx(1 / (1 + 2 * math.log(5)))
    assert histogram.n_bins == 101


def test_ten_tenths_are_one():
    tenths = 0.9999999999999999  # what adding one after the other gives
    histogram = Histogram.from_values([0.0, tenths, 1.0, 2.0], 4, bounds=(0.0, 2.0), range_epsilon=1e15)
    assert histogram.bin_of.tolist() == [0, 2, 2, 3]
    thirds = Histogram.from_values([0.1 * 3, 0.0], bounds=(0.0, 0.3))  # 0.30000000000000004 is not outside
    assert thirds.n == 2


def test_values_on_every_edge_fall_into_the_bin_that_begins_there():
    n_bins = 97
    values = [float(Fraction(k, n_bins)) for k in range(n_bins + 1)]
    histogram = Histogram.from_values(values, n_bins, range_epsilon=1e15)
    assert histogram.bin_of.tolist() == [*range(n_bins), n_bins - 1]


def test_integers_come_back_as_integers():
    values = np.array([150, 171, 171, 193], dtype=np.int16)
    for given_values in (values, values.tolist(), pd.Series(values), pd.Series(values.astype(np.uint64))):
        histogram = Histogram.from_values(given_values)
        units = histogram.to_units(np.arange(101))
        assert histogram.integers and units.dtype == np.int64
        start, stop = histogram.range
        np.testing.assert_allclose(units, start + (np.arange(101) + 0.5) / 101 * (stop - start), atol=0.5)
    assert Histogram.from_values([150.5, 171.0]).to_units(3).dtype == np.float64


def test_pandas_columns_are_taken():
    plain = Histogram.from_values([1.0, 2.0, 4.0])
    for column in (
        pd.Series([1, 2, 4]),
        pd.Series([1, 2, 4], dtype="Int64"),
        pd.Series([1.0, 2, 4], index=[7, 7, 3]),
    ):
        assert Histogram.from_values(column).bin_of.tolist() == plain.bin_of.tolist()
    assert Histogram.from_values(pd.Series([1, 2, 4], dtype="Int64")).integers


def test_bounds_take_the_place_of_the_values_own():
    histogram = Histogram.from_values([3.0, 5.0], 11, bounds=(0.0, 10.0), margin="paper")
    same = Histogram.from_values([0.0, 3.0, 5.0, 10.0], 11)
    assert histogram.bin_of.tolist() == same.bin_of[1:3].tolist()
    assert histogram.range == same.range and histogram.bounds == (0.0, 10.0) and histogram.bounds_given
    constant = Histogram.from_values([7, 7, 7], 11, bounds=[0, 10])
    assert constant.counts.max() == 3


def test_public_bounds_are_the_range_and_no_row_is_outside():
    histogram = Histogram.from_values([0.0, 3.0, 10.0], 5, bounds=(0.0, 10.0))
    assert (histogram.range, histogram.sensitivity) == ((0.0, 10.0), 1.0)
    assert histogram.bin_of.tolist() == [0, 1, 4]
    assert histogram.inside == slice(0, 5)
    rows = Histogram.from_values([0.1, 0.3], 7, bounds=(-0.3, 0.6)).to_units(range(7))
    assert rows.min() >= -0.3 and rows.max() <= 0.6
    wider = Histogram.from_values([0.0, 3.0, 10.0], 5, bounds=(0.0, 10.0), margin=0.25)
    assert (wider.range, wider.sensitivity) == ((-2.5, 12.5), 1 / 1.5)


def test_whether_rows_are_whole_follows_from_bounds_and_bins_and_not_from_values():
    for values in ([1.0, 2.0, 9.0], [1.5, 2.25, 9.1]):
        rows = Histogram.from_values(values, 10, bounds=(0, 10)).to_units(range(10))
        assert rows.dtype == np.int64 and rows.tolist() == list(range(10))  # the whole number in each bin
        assert not Histogram.from_values(values, 11, bounds=(0, 10)).integers
        assert not Histogram.from_values(values, 5, bounds=(0, 9.5)).integers
        assert not Histogram.from_values(values, 5, bounds=(0, 10), whole=False).integers
    rows = Histogram.from_values([1.0, 2.0], 4, bounds=(0.7, 3.4), whole=True).to_units(range(4))
    assert rows.tolist() == [1, 2, 2, 3]
    with pytest.raises(ValueError, match="whole must be False where no whole number is in the range"):
        Histogram.from_values([0.3, 0.4], bounds=(0.2, 0.9), whole=True)


@pytest.mark.parametrize(("spike", "at", "bins"), [(0.0, 0, [0, 0, 1, 1, 4]), (1.0, 0, [1, 1, 0, 1, 4])])
def test_a_spike_has_a_bin_of_its_own(spike, at, bins):
    histogram = Histogram.from_values([0.0, 0.0, 1.0, 1.9, 9.9], 5, bounds=(0.0, 10.0), spike=spike)
    assert histogram.bin_of.tolist() == bins
    assert histogram.counts.tolist() == np.bincount(bins, minlength=5).tolist()
    assert histogram.to_units([at, at + 1]).tolist() == [spike, 3.0]
    with pytest.raises(ValueError, match=r"spike must be within the bounds, got 11\.0"):
        Histogram.from_values([0.0, 5.0], 5, bounds=(0.0, 10.0), spike=11.0)


@pytest.mark.parametrize("bins", [2, 3, 4])
@pytest.mark.parametrize("spike", [0.0, 1.0, 5.0, 9.5, 10.0])
def test_few_bins_and_a_spike(bins, spike):
    """Only the spike comes out as it, and all others within a bin and a half of where they were."""
    values = np.array([0.0, 0.5, 1.0, 4.9, 5.0, 5.1, 9.5, 9.9, 10.0])
    if bins == 2 and 0.0 < spike < 10.0:
        with pytest.raises(ValueError, match=r"^n_bins must be at least 3 for a spike between the bounds"):
            Histogram.from_values(values, bins, bounds=(0.0, 10.0), spike=spike)
        return
    found = Histogram.from_values(values, bins, bounds=(0.0, 10.0), spike=spike)
    at, value = found.spike
    assert ((found.bin_of == at) == (values == spike)).all() and value == spike
    units = found.to_units(np.arange(bins))
    assert (units == spike).sum() == 1 and len(set(units.tolist())) == bins
    assert (np.abs(found.to_units(found.bin_of) - values) <= 15.0 / bins + 0.5).all()  # and of rounding


def test_a_spike_that_is_no_whole_number_is_not_rounded():
    with pytest.raises(ValueError, match=r"spike must be a whole number for whole=True, got 0\.5"):
        Histogram.from_values([0, 5], 5, bounds=(0, 10), spike=0.5, whole=True)
    for values in (np.array([0, 5, 9]), np.array([0.0, 5.0, 9.0])):
        for bounds in (None, (0, 9)):
            histogram = Histogram.from_values(values, 5, bounds=bounds, spike=0.5)
            assert histogram.to_units([histogram.spike[0]]).tolist() == [0.5]


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([1.0, math.nan], ValueError, "values must be finite, got nan at index 1"),
        ([1.0, -math.inf], ValueError, "values must be finite, got -inf at index 1"),
        ([1, None], ValueError, "values must have none missing, got None at index 1"),
        (pd.Series([1, None], dtype="Int64"), ValueError, "values must .* at index 1"),
        (pd.Series([1.5, None], dtype="Float64"), ValueError, "values must .* at index 1"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), ValueError, "values must have none missing.* at index 2"),
        (["1", "2"], TypeError, "values must be an array of numbers, got text such as '1'"),
        (
            pd.Series(["1,234", "5"]),
            TypeError,
            "values must be an array of numbers, got objects such as '1,234'",
        ),
        ([True, False], TypeError, "values must be an array of numbers, got dtype bool"),
        (pd.Series([True, False], dtype="boolean"), TypeError, "values must be .* got dtype bool"),
        ([1, 2 + 1j], TypeError, "values must be .* got dtype complex128"),
        (np.array([1, 2], dtype="m8[s]"), TypeError, "values must be .* got dtype timedelta64"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])), TypeError, "values must be .* datetime"),
        ([Decimal(1), Decimal(2)], TypeError, "values must be .* got objects such as Decimal"),
        ([1, 10**30], ValueError, "values must fit into int64, got 10+ at index 1"),
        ([[1, 2], [3]], TypeError, "values must be .* ragged"),
        ([[1.0, 2.0]], ValueError, r"values must have shape \(any\), got \(1, 2\)"),
        (5.0, ValueError, r"values must have shape \(any\), got \(\)"),
        (None, ValueError, "values must have shape"),
        ([], ValueError, "values must be at least 2 numbers, got none"),
        ([4.0], ValueError, "values must be at least 2 numbers, got 1"),
        ([4.0, 4.0], ValueError, "values must differ where bounds are not given, got one value only"),
        ([-1e308, 1e308], ValueError, "values must span a finite range"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(values, error, words):
    with pytest.raises(error, match=words):
        Histogram.from_values(values)


@pytest.mark.parametrize(
    "bounds",
    [(1, 1), (5, 1), (0, math.inf), (math.nan, 9), (0, 2), (2, 9), "09", 5, (0, "9"), (True, 9), (0, 1, 2)],
)
def test_wrong_bounds_are_refused(bounds):
    with pytest.raises((TypeError, ValueError), match="bounds must"):
        Histogram.from_values([1.0, 3.0], bounds=bounds)


def test_one_value_is_refused_even_with_bounds():
    with pytest.raises(ValueError, match="values must be at least 2"):
        Histogram.from_values([1.0], bounds=(0.0, 2.0))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("n_bins", n) for n in (1, 0, -5, 2.0, "9", True, 10**6 + 1, None)),
        *(("percentile", p) for p in (0.5, 1.0, 0.2, math.nan, "0.9", True)),
        *(("range_epsilon", e) for e in (0, -1.0, math.nan, math.inf, "1", True, 1e-320)),
    ],
)
def test_wrong_options_are_refused(name, wrong):
    with pytest.raises((TypeError, ValueError), match=f"{name} must"):
        Histogram.from_values([1.0, 3.0], **{name: wrong})


@pytest.mark.parametrize("wrong", [-1, 101, 1.0, [0, 101], "0", [[True]]])
def test_bins_outside_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="bins must"):
        Histogram.from_values([1.0, 3.0]).to_units(wrong)


def test_arrays_are_read_only():
    histogram = Histogram.from_values([1.0, 3.0])
    for array in (histogram.counts, histogram.bin_of, histogram.midpoints, histogram.pmf):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e5, 1e300])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_bins_do_not_depend_on_units(scale, shift):
    values = np.random.default_rng(1).normal(size=50)
    plain = Histogram.from_values(values)
    moved = Histogram.from_values((values + shift) * scale)
    assert (moved.bin_of == plain.bin_of).all()


def test_ten_million_values():
    values = np.random.default_rng(2).normal(size=10**7)
    histogram = Histogram.from_values(values)
    assert histogram.counts.sum() == 10**7
    some = slice(0, 10**7, 99991)
    low, high = values.min(), values.max()
    places = [naive_nvo.place(v, 101, low, high) for v in values[some]]
    assert (np.floor(places) == histogram.bin_of[some]).all()


def test_whether_rows_are_whole_is_decided_by_public_bounds_and_not_by_the_values():
    """One value can make whole numbers fractions; what it does to a release with public bounds is bounded."""
    values = np.array([0, 5, 5, 9])
    for bounds, bins, whole in (((0, 10), 11, False), ((0, 10), 10, True), ((0.5, 10), 10, False)):
        kept = values[values >= bounds[0]]
        for found in (kept, kept.astype(float), np.append(kept, 3.5)):
            assert Histogram.from_values(found, bins, bounds=bounds).integers is whole
    for found, whole in ((values, True), (values * 1.0, True), (np.append(values, 3.5), False)):
        assert Histogram.from_values(found, 10).integers is whole  # however they are stored


def test_a_spike_at_minus_zero_is_zero():
    made = Histogram.from_values([-1.0, -0.0, 0.0, 0.4], n_bins=5, bounds=(-1.0, 0.5), spike=-0.0)
    at_zero = made.to_units(made.bin_of[1:3])
    assert not np.signbit(at_zero).any() and (at_zero == 0.0).all()
