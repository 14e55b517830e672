"""The bound on bias: its formula, its limits, and that it holds where bias is known exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from equinoise.inference import bias_bound


@pytest.mark.parametrize("epsilon", [1e-12, 0.05, 0.6931471805599453, 3.0])
@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0])
def test_formula(epsilon, mean):
    assert bias_bound(epsilon, mean) == pytest.approx(math.expm1(epsilon) * mean, rel=1e-15)
    expected = (math.expm1(epsilon) + 1e-6 * 5000) * mean
    assert bias_bound(epsilon, mean, 1e-6, 5000) == pytest.approx(expected, rel=1e-14)


def test_arrays_and_limits():
    bound = bias_bound([[0.1], [0.2]], mean=[0.0, 0.5, 1.0])
    assert bound.shape == (2, 3) and bound.dtype == np.float64
    assert bound[1, 2] == bias_bound(0.2) and isinstance(bias_bound(0.2), float)
    assert bias_bound(math.inf) == math.inf == bias_bound(1e6)
    assert bias_bound(math.inf, 0.0) == 0.0
    assert bias_bound([0.1], delta=[0.0], horizon=None).shape == (1,)
    assert bias_bound(math.log(2)) == pytest.approx(1.0)


def biased_mean(epsilon, mu):
    """E[mean of an arm] that is pulled once, and again when randomised response of that reward says so."""
    stay = math.exp(epsilon) / (1 + math.exp(epsilon))
    total = 0.0
    for first, second in itertools.product((0, 1), repeat=2):
        weight = (mu if first else 1 - mu) * (mu if second else 1 - mu)
        again = stay if first else 1 - stay
        total += weight * (again * (first + second) / 2 + (1 - again) * first)
    return total


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("mu", [0.1, 0.5, 0.9])
def test_it_holds_for_randomised_response(epsilon, mu):
    """By enumeration; the bias is there, and negative as one expects."""
    bias = biased_mean(epsilon, mu) - mu
    assert -bias_bound(epsilon, mu) <= bias < -0.01 * epsilon * mu * (1 - mu)


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("epsilon", (0.0,)),
        ("epsilon", (math.nan,)),
        ("epsilon", ("1",)),
        ("epsilon", ([0.1, -math.inf],)),
        ("mean", (0.1, 1.5)),
        ("mean", (0.1, math.nan)),
        ("delta", (0.1, 1.0, -0.1, 5)),
        ("delta", (0.1, 1.0, 1.1, 5)),
        ("horizon", (0.1, 1.0, 0.1)),
        ("horizon", (0.1, 1.0, 0.1, 0)),
        ("horizon", (0.1, 1.0, 0.1, 2.5)),
        ("arguments", ([0.1, 0.2], [0.1, 0.2, 0.3])),
    ],
)
def test_bad_arguments(argument, arguments):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        bias_bound(*arguments)
