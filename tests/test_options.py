"""Typed options: each kind takes what it says and nothing else, from Python and from a command line."""

from __future__ import annotations

import pytest

from equinoise._checks import MOST, Option, checked

OPTIONS = {
    "clip": Option("flag", True, "put sums back"),
    "width": Option("choice", "counter", "what widens the index", choices=("counter", "published")),
    "depth": Option("integer", 3, "levels", low=1, high=9),
    "explore": Option("number", 0.1, "share of rounds", low=0.0, high=1.0),
}


def test_what_is_not_given_has_its_default_in_the_order_of_the_registry():
    assert list(checked("policy 'p'", OPTIONS, {"explore": 0.5}).items()) == [
        ("clip", True),
        ("width", "counter"),
        ("depth", 3),
        ("explore", 0.5),
    ]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("clip", 1, TypeError),
        ("width", "wide", ValueError),
        ("depth", 0, ValueError),
        ("depth", 10, ValueError),
        ("depth", 2.0, TypeError),
        ("explore", -0.1, ValueError),
        ("explore", 1.5, ValueError),
        ("explore", float("nan"), ValueError),
        ("explore", "much", TypeError),
    ],
)
def test_wrong_values_are_refused_by_name(name, value, error):
    with pytest.raises(error, match=name):
        checked("policy 'p'", OPTIONS, {name: value})


def test_an_option_of_nobody_is_refused():
    with pytest.raises(TypeError, match="'height' is no option of the policy 'p'"):
        checked("policy 'p'", OPTIONS, {"height": 1})


def test_an_end_that_is_left_out_is_free():
    assert Option("number", 0.0, "any").check("x", -1e300) == -1e300
    assert Option("integer", 0, "any", low=0).check("n", MOST) == MOST
    with pytest.raises(ValueError, match="n must be an integer from 0 to 1000000000, got 1000000001"):
        Option("integer", 0, "any", low=0).check("n", MOST + 1)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("clip", "no", False),
        ("clip", "TRUE", True),
        ("width", "published", "published"),
        ("depth", "4", 4),
        ("explore", "1e-1", 0.1),
    ],
)
def test_a_command_line_says_the_same(name, text, value):
    assert OPTIONS[name].parse(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("clip", "maybe"), ("width", ""), ("depth", "4.0"), ("explore", "x")]
)
def test_a_command_line_that_says_nothing_of_use_is_refused(name, text):
    with pytest.raises((TypeError, ValueError), match=name):
        OPTIONS[name].parse(name, text)
