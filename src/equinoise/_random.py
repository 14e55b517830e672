"""Random numbers by address: a pure function from (seed, address) to words.

A block of four 64-bit words is Philox4x64-10 (Salmon et al., 2011) of a key and a 256-bit counter:

* key: ``SeedSequence(seed).generate_state(2)``, the key of ``numpy.random.Philox(seed)``;
* counter: (draw index, entity, replicate, purpose).

There is no state to pass on, to split or to lock: a draw depends on what it is for and on nothing that
happened before, so results do not change with blocks of replicates, threads or machines. The address of
what chance does names neither the policy nor epsilon, so two learners face the same random draws.

Where thousands of words are wanted in a row, a block is the state of a xoshiro256++ generator
(Blackman and Vigna, 2021), which is still keyed by address.
"""

import secrets

import numpy as np

from equinoise import _checks
from equinoise._elementary import log
from equinoise._intrinsics import bits_float, high_product
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Words

# Purposes: the fourth word of the counter. A new use takes a new number, an old number keeps its use.
STRATEGY = np.uint64(1)
NOISE = np.uint64(2)
CHANCE = np.uint64(3)
SAMPLE = np.uint64(4)
REWARD = np.uint64(5)
TIE = np.uint64(6)
POSTERIOR = np.uint64(7)  # and whatever else a bandit policy draws for itself
CONTEXT = np.uint64(8)
TURN = np.uint64(9)
SEARCH = np.uint64(10)
EVOLUTION = np.uint64(11)
RELEASE = np.uint64(12)
HASH = np.uint64(13)
SEAT = np.uint64(14)  # in self-play: a key for each player, from which all that it draws comes

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_ONE = np.uint64(1)
_FRACTION = np.uint64(12)
_ONE_BITS = np.uint64(0x3FF0000000000000)  # of the float 1.0
_BELOW_ONE = 1.0 - 2.0**-53

# Of Wichura (1988), AS 241, from the constant upwards: |u - 1/2| <= 0.425, sqrt(-ln u) up to 5, and beyond
_CENTRE_ABOVE = (
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
)  # fmt: skip
_CENTRE_BELOW = (
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
)  # fmt: skip
_FLANK_ABOVE = (
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
)  # fmt: skip
_FLANK_BELOW = (
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.475938084995344946e-4, 1.05075007164441684324e-9,
)  # fmt: skip
_TAIL_ABOVE = (
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813e-7,
)  # fmt: skip
_TAIL_BELOW = (
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.4215117583164458887e-7, 2.0442631033899397856e-15,
)  # fmt: skip


def stream_key(seed: int | None) -> Words:
    """Return the key uint64[2] of a seed; None takes 128 bits from the operating system."""
    entropy = secrets.randbits(128) if (known := _checks.seed(seed)) is None else known
    return np.asarray(np.random.SeedSequence(entropy).generate_state(2, np.uint64), dtype=np.uint64)


@njit(forceinline=True)
def philox(key_0: Any, key_1: Any, draw: Any, entity: Any, replicate: Any, purpose: Any) -> Any:
    """Return the four words (uint64) of a block: Philox4x64 with ten rounds.

    A round maps (x0, x1, x2, x3) to (hi(M1 x2) ^ x1 ^ k0, lo(M1 x2), hi(M0 x0) ^ x3 ^ k1, lo(M0 x0)),
    then the key takes a Weyl step. Bit-equal to ``numpy.random.Philox``, which raises the counter by one
    before it makes a block. The key is that of :func:`stream_key`, the counter's least word comes first.
    """
    x0, x1, x2, x3 = draw, entity, replicate, purpose
    for _ in range(10):
        high_0, low_0 = high_product(_MULTIPLIER_0, x0), _MULTIPLIER_0 * x0
        high_1, low_1 = high_product(_MULTIPLIER_1, x2), _MULTIPLIER_1 * x2
        x0, x1, x2, x3 = high_1 ^ x1 ^ key_0, low_1, high_0 ^ x3 ^ key_1, low_0
        key_0 += _WEYL_0
        key_1 += _WEYL_1
    return x0, x1, x2, x3


@njit(forceinline=True)
def next_word(s0: Any, s1: Any, s2: Any, s3: Any) -> Any:
    """Return a word of xoshiro256++ and its next state, (word, s0, s1, s2, s3), all uint64."""
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word, s0, s1, s2, s3


@njit
def start_streams(key: Words, entity: int, first: int, purpose: Any, states: Words) -> None:
    """Set states uint64[4, W] to the Philox blocks (key; 0, entity, first + lane, purpose)."""
    for lane in range(states.shape[1]):
        words = philox(key[0], key[1], np.uint64(0), np.uint64(entity), np.uint64(first + lane), purpose)
        states[0, lane], states[1, lane], states[2, lane], states[3, lane] = words


@njit
def fill_words(states: Words, n: int, words: Words) -> None:
    """Write the next n words of each lane's stream, states uint64[4, W], into words uint64[n.., W]."""
    for i in range(0, n - 3, 4):  # by fours, since states are read and written once for all of them
        for lane in range(states.shape[1]):
            s0, s1, s2, s3 = states[0, lane], states[1, lane], states[2, lane], states[3, lane]
            words[i, lane], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            words[i + 1, lane], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            words[i + 2, lane], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            words[i + 3, lane], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            states[0, lane], states[1, lane], states[2, lane], states[3, lane] = s0, s1, s2, s3
    for i in range(n - n % 4, n):
        for lane in range(states.shape[1]):
            s0, s1, s2, s3 = states[0, lane], states[1, lane], states[2, lane], states[3, lane]
            words[i, lane], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            states[0, lane], states[1, lane], states[2, lane], states[3, lane] = s0, s1, s2, s3


@njit(forceinline=True)
def uniform(word: Any) -> float:
    """Return a float64 in (0, 1), never an end: ((word >> 12) + 1/2) 2^-52.

    The upper 52 bits are made the fraction of a float in [1, 2), less 1 - 2^-53: that becomes vector code.
    """
    bits: Any = np.int64((word >> _FRACTION) | _ONE_BITS)
    return bits_float(bits) - _BELOW_ONE


@njit(forceinline=True)
def integer(word: Any, n: Any) -> Any:
    """Return an int64 in 0..n-1: the upper half of word times n; no value is off by more than n 2^-64."""
    return np.int64(high_product(word, np.uint64(n)))


@njit(forceinline=True)
def exponential(word: Any) -> float:
    """Return a standard exponential draw, -ln u; at most 36.7."""
    return -log(uniform(word))


@njit(forceinline=True)
def laplace(word: Any) -> float:
    """Return a standard Laplace draw (density exp(-|x|)/2): an exponential, signed by the word's lowest bit.

    The lowest bit is none of the 52 that make the uniform. For simulation only: a float64 shows through its
    low bits what was added to it, so noise on a real person's report comes from :mod:`equinoise.mechanisms`.
    """
    sign = 1.0 - 2.0 * np.int64(word & _ONE)
    return sign * exponential(word)


@njit
def normal(word: Any) -> float:
    """Return a standard normal draw: the inverse distribution function at u, within 1e-16 (AS 241)."""
    u = uniform(word)
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _CENTRE_ABOVE, _CENTRE_BELOW)
    r = np.sqrt(-log(min(u, 1.0 - u)))
    if r <= 5.0:
        magnitude = _ratio(r - 1.6, _FLANK_ABOVE, _FLANK_BELOW)
    else:
        magnitude = _ratio(r - 5.0, _TAIL_ABOVE, _TAIL_BELOW)
    return magnitude if q > 0.0 else -magnitude


@njit(forceinline=True)
def _ratio(r: float, a: Any, b: Any) -> float:
    """Return the quotient of two polynomials of degree 7 in r, coefficients from the constant upwards."""
    above = a[0] + r * (a[1] + r * (a[2] + r * (a[3] + r * (a[4] + r * (a[5] + r * (a[6] + r * a[7]))))))
    below = b[0] + r * (b[1] + r * (b[2] + r * (b[3] + r * (b[4] + r * (b[5] + r * (b[6] + r * b[7]))))))
    return above / below


@njit
def fill_laplace(key: Words, draw: int, purpose: Any, scale: float, out: Floats) -> None:
    """Fill out float64[n] with Laplace(scale) draws of the stream (key uint64[2]; draw, 0, 0, purpose)."""
    zero = np.uint64(0)
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(draw), zero, zero, purpose)
    for i in range(out.size):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        out[i] = scale * laplace(word)
