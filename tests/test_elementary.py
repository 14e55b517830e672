"""exp and log: the last bit against exact values, order of neighbours, and vector code."""

from __future__ import annotations

import math
import platform

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise import _elementary

LARGEST = np.finfo(np.float64).max
SMALLEST = np.finfo(np.float64).smallest_normal
RNG = np.random.default_rng(2024)


def ulps(value, exact):
    """Distance from an exact mpmath number, in units in the last place of the float64 nearest to it."""
    return float(abs(mpmath.mpf(value) - exact) / mpmath.mpf(math.ulp(float(exact))))


def worst(function, exact, points):
    with mpmath.workprec(200):
        return max(ulps(function(float(x)), exact(mpmath.mpf(float(x)))) for x in points)


def around(*centres):
    """Each number with its eight neighbours on both sides."""
    points = []
    for centre in centres:
        low = high = centre
        points.append(centre)
        for _ in range(8):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
            points += [low, high]
    return points


def test_the_domain_is_what_the_learner_needs():
    assert _elementary.EXP_MIN <= -700 and _elementary.EXP_MAX >= 700


@pytest.mark.parametrize(
    "points",
    [
        RNG.uniform(_elementary.EXP_MIN, _elementary.EXP_MAX, 3000),
        RNG.uniform(-1.0, 1.0, 2000),
        RNG.choice([-1.0, 1.0], 500) * 10.0 ** RNG.uniform(-300, 0, 500),
        [_elementary.EXP_MIN, _elementary.EXP_MAX, 0.0, -0.0, 5e-324, -5e-324],
        # where the multiple of ln 2 changes: the reduced argument is largest
        around(*[(k + 0.5) * math.log(2) for k in (-1000, -500, -3, -2, -1, 0, 1, 2, 500, 1000)]),
    ],
    ids=["domain", "unit", "tiny", "ends", "borders"],
)
def test_exp_is_within_one_ulp(points):
    assert worst(_elementary.exp, mpmath.exp, points) <= 1.0


@pytest.mark.parametrize(
    "points",
    [
        2.0 ** RNG.uniform(-1021, 1023, 3000),
        RNG.uniform(0.0, 1.0, 2000) + 2.0**-53,
        1.0 + RNG.choice([-1.0, 1.0], 1000) * 10.0 ** RNG.uniform(-16, -1, 1000),
        [SMALLEST, LARGEST, 2.0**-53, 1.0 - 2.0**-53, 0.5, 2.0],
        around(1.0, 0.5, 2.0, math.sqrt(0.5), math.sqrt(2.0), 2.0**-52, 2.0**52),
    ],
    ids=["domain", "unit", "near one", "ends", "borders"],
)
def test_log_is_within_one_ulp(points):
    assert worst(_elementary.log, mpmath.log, points) <= 1.0


def test_exact_points():
    assert _elementary.exp(0.0) == _elementary.exp(-0.0) == 1.0
    assert _elementary.log(1.0) == 0.0
    for k in (-1022, -1, 1, 10, 1023):
        assert _elementary.log(2.0**k) == pytest.approx(k * math.log(2), rel=2e-16)


@settings(max_examples=1000)
@given(st.floats(_elementary.EXP_MIN, _elementary.EXP_MAX, exclude_max=True))
def test_exp_never_falls(x):
    assert _elementary.exp(math.nextafter(x, math.inf)) >= _elementary.exp(x)


@settings(max_examples=1000)
@given(st.floats(SMALLEST, LARGEST, exclude_max=True))
def test_log_never_falls(x):
    assert _elementary.log(math.nextafter(x, math.inf)) >= _elementary.log(x)


@settings(max_examples=300)
@given(st.floats(-600.0, 600.0))
def test_log_undoes_exp(x):
    assert _elementary.log(_elementary.exp(x)) == pytest.approx(x, rel=4e-16, abs=4e-16)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="no machine code without the compiler")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for x86 instructions")
@pytest.mark.parametrize("name", ["exp", "log"])
def test_a_loop_becomes_vector_code(name):
    function = getattr(_elementary, name)

    @numba.njit
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    x = RNG.uniform(0.1, 9.0, 37)
    out = np.empty_like(x)
    loop(x, out)
    assembly = loop.inspect_asm(loop.signatures[0])
    assert "mulpd" in assembly and "addpd" in assembly and f"call\t{name}" not in assembly
    # vector code and the scalar loop of the remainder give one and the same bits
    assert out.tolist() == [function(value) for value in x]


def test_geometric_steps_have_one_ratio_and_both_ends():
    made = _elementary.geometric(4.0, 0.002, 8)
    assert (made[0], made[-1], len(made)) == (4.0, 0.002, 8)
    np.testing.assert_allclose(made, np.geomspace(4.0, 0.002, 8), rtol=1e-14)
    assert _elementary.geometric(3.0, 1e-3, 2).tolist() == [3.0, 1e-3]


def test_filling_is_exp_of_each():
    x = np.linspace(-700.0, 700.0, 999)
    _elementary.fill_exp(x, out := np.empty(999))
    assert out.tolist() == [_elementary.exp(value) for value in x]
