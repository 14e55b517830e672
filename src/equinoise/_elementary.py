"""Exponential and logarithm that the compiler can run four or eight at a time.

A call into libm stops a loop from being vectorised, and libm's last bit differs between platforms. These
two are plain additions, multiplications and one division with bits moved around: vector code, of the same
bits on every IEEE machine. Both are within one unit in the last place on the stated domain (tested against
exact values); outside it they are not defined.
"""

import numpy as np

from equinoise._intrinsics import bits_float, float_bits
from equinoise._jit import njit
from equinoise._typing import Floats

EXP_MIN = -708.0
EXP_MAX = 708.0

_LN2_HIGH = 6.93147180369123816490e-01  # its low 21 bits are zero, so that k * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_INV_LN2 = 1.44269504088896338700e00
_ROUNDING = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
_BIAS = np.int64(1023)
_MANTISSA_BITS = np.int64(52)


@njit(forceinline=True)
def exp(x: float) -> float:
    """Return e^x for x in [EXP_MIN, EXP_MAX], by its Taylor polynomial of degree 13."""
    shifted = x * _INV_LN2 + _ROUNDING  # x = k ln 2 + r with |r| <= ln(2)/2
    k = shifted - _ROUNDING
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    # Estrin's scheme: short chains, so that neighbouring elements overlap in the pipeline
    low = (1.0 / 6.0 + r * (1.0 / 24.0)) + r2 * (1.0 / 120.0 + r * (1.0 / 720.0))
    middle = (1.0 / 5040.0 + r * (1.0 / 40320.0)) + r2 * (1.0 / 362880.0 + r * (1.0 / 3628800.0))
    high = (1.0 / 39916800.0 + r * (1.0 / 479001600.0)) + r2 * (1.0 / 6227020800.0)
    tail = low + r4 * (middle + r4 * high)
    series = 1.0 + (r + (0.5 * r2 + r2 * r * tail))
    power = bits_float((float_bits(shifted) - float_bits(_ROUNDING) + _BIAS) << _MANTISSA_BITS)
    return series * power


@njit(forceinline=True)
def log(x: float) -> float:
    """Return ln x for a positive, normal, finite x.

    x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f/(2 + f) and
    ln(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))), R the even part of the series of 2 artanh s
    with its tail economised (the classical coefficients of fdlibm).
    """
    bits = float_bits(x)
    offset = bits - np.int64(_SQRT_HALF_BITS)
    exponent = offset >> _MANTISSA_BITS
    k = bits_float(exponent + float_bits(_ROUNDING)) - _ROUNDING
    f = bits_float(bits - (exponent << _MANTISSA_BITS)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (even + odd)) + k * _LN2_LOW)) - f)


@njit
def fill_exp(x: Floats, out: Floats) -> None:
    """Fill out float64[n] with e^x, x float64[n]; NumPy's own last bit depends on the processor."""
    for i in range(x.size):
        out[i] = exp(x[i])


def geometric(first: float, last: float, number: int) -> Floats:
    """Return steps of one ratio from a positive number to another, float64[number], two or more.

    Powers are the C library's, one at a time: NumPy's of an array depend on the processor.
    """
    inner = [first * (last / first) ** (i / (number - 1)) for i in range(1, number - 1)]
    return np.array([first, *inner, last])
