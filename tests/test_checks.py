"""Argument checks: what passes comes back in one type, what does not is named, explained and shown."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from equinoise import _checks, bandits, inference, mechanisms

TAKEN = [
    (_checks.integer, ("n", np.int8(3)), {"minimum": 3, "maximum": 3}, 3),
    (_checks.integer, ("n", 10**30), {}, 10**30),
    (_checks.number, ("x", 1), {}, 1.0),
    (_checks.number, ("x", Fraction(1, 4)), {"low": 0.25}, 0.25),
    (_checks.number, ("x", math.inf), {"finite": False}, math.inf),
    (_checks.number, ("x", np.float32(0.5)), {"low": 0.0, "high": 0.5}, 0.5),
    (_checks.epsilon, (math.inf,), {}, math.inf),
    (_checks.epsilon, (1,), {"allow_infinite": False}, 1.0),
    (_checks.choice, ("rule", "a", ("a", "b")), {}, "a"),
    (_checks.flag, ("f", np.True_), {}, True),
]


def test_a_long_text_among_numbers_takes_no_room_for_each_of_them():
    tracemalloc.start()
    with pytest.raises(TypeError, match="a must be an array of numbers, got dtype"):
        _checks.array("a", [[0.0] * 500, ["x" * 50_000] * 500], np.float64, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(("check", "arguments", "options", "expected"), TAKEN)
def test_taken(check, arguments, options, expected):
    result = check(*arguments, **options)
    assert result == expected
    assert type(result) is type(expected)


REFUSED = [
    (_checks.integer, ("n", True), {}, TypeError, "n must be an integer, got True"),
    (_checks.integer, ("n", 1.0), {}, TypeError, "n must be an integer, got 1.0"),
    (_checks.integer, ("n", "1"), {}, TypeError, "n must be an integer, got '1'"),
    (_checks.integer, ("n", 0), {"minimum": 1}, ValueError, "n must be an integer of at least 1, got 0"),
    (_checks.integer, ("n", 9), {"maximum": 8}, ValueError, "n must be an integer of at most 8, got 9"),
    (
        _checks.integer,
        ("n", 9),
        {"minimum": 1, "maximum": 8},
        ValueError,
        "n must be an integer from 1 to 8, got 9",
    ),
    (_checks.number, ("x", True), {}, TypeError, "x must be a real number, got True"),
    (_checks.number, ("x", 1j), {}, TypeError, "x must be a real number, got 1j"),
    (_checks.number, ("x", math.nan), {}, ValueError, r"x must be a number in (-inf, inf), got nan"),
    (_checks.number, ("x", math.inf), {}, ValueError, r"x must be a number in (-inf, inf), got inf"),
    (
        _checks.number,
        ("x", -(10**400)),
        {"low": 0.0},
        ValueError,
        r"x must be a number in [0, inf), got -1000",
    ),
    (_checks.number, ("x", 0), {"low": 0.0, "open_low": True}, ValueError, r"x must be a number in (0, inf)"),
    (
        _checks.number,
        ("x", 1.0),
        {"low": 0.0, "high": 1.0, "open_high": True},
        ValueError,
        r"x must be a number in [0, 1), got 1.0",
    ),
    (_checks.epsilon, (0,), {}, ValueError, "epsilon must be a positive number, got 0"),
    (_checks.epsilon, (math.nan, "e"), {}, ValueError, "e must be a positive number, got nan"),
    (_checks.epsilon, ("1",), {}, TypeError, "epsilon must be a positive number, got '1'"),
    (_checks.epsilon, (True,), {}, TypeError, "epsilon must be a positive number, got True"),
    (
        _checks.epsilon,
        (math.inf,),
        {"allow_infinite": False},
        ValueError,
        "epsilon must be finite here, got inf",
    ),
    (_checks.choice, ("rule", "c", ("a", "b")), {}, ValueError, "rule must be one of 'a', 'b', got 'c'"),
    (_checks.choice, ("rule", 1, ("a", "b")), {}, TypeError, "rule must be one of 'a', 'b', got 1"),
    (_checks.path, ("out", "a\0b"), {}, ValueError, r"out must have no null byte, got 'a\x00b'"),
    (
        _checks.path,
        ("out", "a\ud800b"),
        {},
        ValueError,
        r"out must be a path in this system's letters, got 'a\ud",
    ),
    (_checks.flag, ("f", 1), {}, TypeError, "f must be True or False, got 1"),
    (_checks.flag, ("f", "x" * 1000), {}, TypeError, "f must be True or False, got '" + "x" * 76 + "..."),
]


@pytest.mark.parametrize(("check", "arguments", "options", "error", "words"), REFUSED)
def test_refused(check, arguments, options, error, words):
    with pytest.raises(error) as caught:
        check(*arguments, **options)
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 200


ARRAYS = [
    ([1, 2], np.int64, (2,), {}),
    (np.array([1, 2], np.uint64), np.int64, (None,), {}),
    ([], np.int64, (0,), {}),
    ([[1, 0.5]], np.float64, (1, 2), {"low": 0.5, "high": 1.0}),
    (np.zeros((4, 4))[:, ::2], np.float64, (None, None), {}),
]


@pytest.mark.parametrize(("value", "dtype", "shape", "options"), ARRAYS)
def test_arrays_taken(value, dtype, shape, options):
    result = _checks.array("a", value, dtype, shape, **options)
    np.testing.assert_array_equal(result, value)
    assert result.dtype == dtype
    assert result.flags.c_contiguous


def test_an_array_that_fits_is_not_copied():
    given = np.zeros(3)
    assert _checks.array("a", given, np.float64, (3,)) is given


REFUSED_ARRAYS = [
    ([1.0], np.int64, (1,), {}, TypeError, "a must be an array of integers, got dtype float64"),
    ([True], np.int64, (1,), {}, TypeError, "a must be an array of integers, got dtype bool"),
    (["1"], np.float64, (1,), {}, TypeError, "a must be an array of numbers, got dtype <U1"),
    (None, np.float64, (1,), {}, TypeError, "a must be an array of numbers, got dtype object"),
    ([1j], np.float64, (1,), {}, TypeError, "a must be an array of numbers, got dtype complex128"),
    (
        [[1], [1, 2]],
        np.float64,
        (2, 2),
        {},
        TypeError,
        "a must be an array of numbers, got a ragged sequence",
    ),
    ([1, 2], np.int64, (None, 2), {}, ValueError, "a must have shape (any, 2), got (2,)"),
    ([1, 2], np.int64, (3,), {}, ValueError, "a must have shape (3), got (2,)"),
    (3, np.int64, (1,), {}, ValueError, "a must have shape (1), got ()"),
    ([0.0, math.nan], np.float64, (2,), {}, ValueError, "a must be finite, got nan at index 1"),
    ([[0.0, -math.inf]], np.float64, (1, 2), {}, ValueError, "a must be finite, got -inf at index (0, 1)"),
    ([0, -1], np.int64, (2,), {"low": 0}, ValueError, "a must be at least 0, got -1 at index 1"),
    ([0.0, 1.5], np.float64, (2,), {"high": 1}, ValueError, "a must be at most 1, got 1.5 at index 1"),
    (
        np.array([1, 2**63], np.uint64),
        np.int64,
        (2,),
        {},
        ValueError,
        f"a must fit into int64, got {2**63} at index 1",
    ),
    ([-1, 2], np.uint64, (2,), {}, ValueError, "a must fit into uint64, got -1 at index 0"),
    ([2**64, 2**64], np.uint64, (2,), {}, ValueError, f"a must fit into uint64, got {2**64} at index 0"),
    ([1, 2**63], np.int64, (2,), {}, ValueError, f"a must fit into int64, got {2**63} at index 1"),
    ([[0, 2**64]], np.int64, None, {}, ValueError, f"a must fit into int64, got {2**64} at index (0, 1)"),
    (2**70, np.float64, (), {}, ValueError, f"a must fit into int64, got {2**70}"),
]


@pytest.mark.parametrize(("value", "dtype", "shape", "options", "error", "words"), REFUSED_ARRAYS)
def test_arrays_refused(value, dtype, shape, options, error, words):
    with pytest.raises(error) as caught:
        _checks.array("a", value, dtype, shape, **options)
    assert str(caught.value) == words


MASKED = np.ma.masked_array([3.0, 5.0, 4.0], mask=[0, 1, 0])
WHOLE, HALF = np.array([3, 5, 4]), np.full((3, 2), 0.5)
TAKE_NUMBERS = {
    "pulls": lambda x: inference.Totals(x.astype(np.int64), WHOLE),
    "reward_sum": lambda x: inference.Totals(WHOLE, x),
    "successes": lambda x: inference.shifted_p_value(x.astype(np.int64), 10, null=0.4, epsilon=0.1),
    "estimate": lambda x: inference.z_test(x, 0.0, 1.0),
    "e_values": inference.e_bh,
    "rewards": lambda x: inference.arm_means([0, 1, 0], x, HALF),
    "arms": lambda x: inference.arm_means(x.astype(np.int64) % 2, WHOLE, HALF),
    "tableau": lambda x: bandits.interact("ucb", x[:, None]),
    "means": lambda x: bandits.simulate("ucb", x / 10.0, horizon=3),
    "values": lambda x: mechanisms.secure_laplace(x, 1.0, 1e6),
    "x": lambda x: mechanisms.VectorCounter(1.0, 9, 3, 99.0, seed=1).add(x),
}


@pytest.mark.parametrize("name", TAKE_NUMBERS)
def test_what_is_masked_is_missing_and_not_the_number_under_the_mask(name):
    with pytest.raises(ValueError, match=rf"^{name} must have none missing, got a masked one at index \(?1"):
        TAKE_NUMBERS[name](MASKED)


def test_an_array_that_could_have_a_mask_and_has_none_is_taken():
    assert _checks.array("a", np.ma.masked_array([1.0, 2.0]), np.float64, (2,)).tolist() == [1.0, 2.0]
