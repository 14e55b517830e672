"""What chance does to a replicate of a bandit, by address: rewards, noise and ties, chunks of rounds at once.

Replicates lie side by side in *lanes*, W of them, innermost in memory. Word t of a stream belongs to round t
(from 0). A stream is a xoshiro256++ generator whose state is the Philox block of (key; 0, 0, replicate,
purpose), and a purpose names neither policy nor epsilon, so every policy meets the same rewards and the same
standard Laplace draws. One reward word a round serves all arms, since only one of them is seen: together the
words make a tableau of rewards [T, K] that exists before the first choice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equinoise._elementary import log
from equinoise._intrinsics import bits_float, float_bits
from equinoise._jit import njit
from equinoise._random import NOISE, REWARD, TIE, next_word, normal, philox

__all__ = ["BERNOULLI", "GAUSSIAN", "TABLE", "Luck", "fill_luck", "make_luck", "make_streams", "reward_of"]

BERNOULLI = 0
GAUSSIAN = 1
TABLE = 2

_PURPOSES = (REWARD, NOISE, TIE)
_ZERO = np.uint64(0)
_ONE_BITS = np.uint64(0x3FF0000000000000)  # of the float 1.0
_TWELVE = np.uint64(12)
_SIGN_SHIFT = np.uint64(63)
_BELOW_ONE = 1.0 - 2.0**-53


class Luck(NamedTuple):
    """Chance of the rounds first..first + B - 1 for W lanes; row i belongs to round first + i.

    mean float64[K, W]; reward float64[B, W] uniforms, or for Gaussian rewards sigma times standard normals;
    noise float64[B, W] standard Laplace draws; tie uint64[B, W] words; table float64[B, K, W] the rewards
    of all arms where they are given, or empty. kind: BERNOULLI, GAUSSIAN or TABLE. What a policy does not
    need has no rows.
    """

    mean: NDArray[np.float64]
    reward: NDArray[np.float64]
    noise: NDArray[np.float64]
    tie: NDArray[np.uint64]
    table: NDArray[np.float64]
    kind: int


def make_luck(
    mean: NDArray[np.float64], n_rounds: int, kind: int, *, noise: bool = True, ties: bool = True
) -> Luck:
    """Return empty arrays for chunks of at most `n_rounds`; `mean` float64[K, W] is kept as it is."""
    n_arms, lanes = mean.shape
    return Luck(
        np.ascontiguousarray(mean, dtype=np.float64),
        np.zeros((n_rounds, lanes)),
        np.zeros((n_rounds if noise else 0, lanes)),
        np.zeros((n_rounds if ties else 0, lanes), dtype=np.uint64),
        np.zeros((n_rounds if kind == TABLE else 0, n_arms, lanes)),
        kind,
    )


def make_streams(key: NDArray[np.uint64], first: int, lanes: int) -> NDArray[np.uint64]:
    """Return the streams uint64[3, 4, W] of the replicates first..first + W - 1: rewards, noise, ties."""
    streams = np.empty((3, 4, lanes), dtype=np.uint64)
    for i in range(len(_PURPOSES)):
        _start(key, first, _PURPOSES[i], streams[i])
    return streams


@njit
def _start(key: NDArray[np.uint64], first: int, purpose: Any, states: NDArray[np.uint64]) -> None:
    """Set states uint64[4, W] to the Philox blocks (key; 0, 0, first + lane, purpose)."""
    for lane in range(states.shape[1]):
        words = philox(key[0], key[1], _ZERO, _ZERO, np.uint64(first + lane), purpose)
        states[0, lane], states[1, lane], states[2, lane], states[3, lane] = words


@njit(forceinline=True)
def reward_of(luck: Luck, i: int, arm: int, lane: int) -> float:
    """Return the reward of an arm in row i of a lane: what it would have been had the arm been played."""
    if luck.kind == BERNOULLI:
        return 1.0 if luck.reward[i, lane] < luck.mean[arm, lane] else 0.0
    if luck.kind == GAUSSIAN:
        return luck.mean[arm, lane] + luck.reward[i, lane]
    return luck.table[i, arm, lane]


@njit
def fill_luck(luck: Luck, streams: NDArray[np.uint64], n_rounds: int, sigma: float) -> None:
    """Fill the next `n_rounds` rows of rewards, noise and ties, and move the streams uint64[3, 4, W] on.

    Given rewards (TABLE) are the caller's to fill. Arrays without rows are left out.
    """
    if luck.kind != TABLE:
        _fill_words(streams[0], luck.reward.view(np.uint64), n_rounds)
        if luck.kind == BERNOULLI:
            _to_uniform(luck.reward, n_rounds)
        else:
            _to_normal(luck.reward, n_rounds, sigma)
    if luck.noise.shape[0] > 0:
        _fill_words(streams[1], luck.noise.view(np.uint64), n_rounds)
        _to_laplace(luck.noise, n_rounds)
    if luck.tie.shape[0] > 0:
        _fill_words(streams[2], luck.tie, n_rounds)


@njit
def _fill_words(states: NDArray[np.uint64], words: NDArray[np.uint64], n_rounds: int) -> None:
    """Write the next n words of each lane's stream, states uint64[4, W], into words uint64[B, W]."""
    for i in range(n_rounds):
        for lane in range(states.shape[1]):
            word, s0, s1, s2, s3 = next_word(
                states[0, lane], states[1, lane], states[2, lane], states[3, lane]
            )
            states[0, lane], states[1, lane], states[2, lane], states[3, lane] = s0, s1, s2, s3
            words[i, lane] = word


# The next three change words to draws where they lie: with a second array for the words, the code would test
# whether the two overlap, find that they do, and leave its vector form aside.


@njit(forceinline=True)
def _fast_uniform(word: Any) -> float:
    """Return ``_random.uniform``, to the bit, without converting an integer.

    The upper 52 bits become the fraction of a float in [1, 2); less 1 - 2^-53 that is (k + 1/2) 2^-52.
    """
    bits: Any = np.int64((word >> _TWELVE) | _ONE_BITS)
    return bits_float(bits) - _BELOW_ONE


@njit
def _to_uniform(values: NDArray[np.float64], n_rounds: int) -> None:
    """Turn the bits of values float64[B, W] into uniforms."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            values[i, lane] = _fast_uniform(np.uint64(float_bits(values[i, lane])))


@njit
def _to_normal(values: NDArray[np.float64], n_rounds: int, sigma: float) -> None:
    """Turn the bits of values float64[B, W] into sigma times standard normal draws."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            values[i, lane] = sigma * normal(np.uint64(float_bits(values[i, lane])))


@njit
def _to_laplace(values: NDArray[np.float64], n_rounds: int) -> None:
    """Turn the bits of values float64[B, W] into draws of ``_random.laplace``: the lowest bit is the sign."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            word = np.uint64(float_bits(values[i, lane]))
            magnitude = -log(_fast_uniform(word))
            values[i, lane] = bits_float(float_bits(magnitude) ^ np.int64(word << _SIGN_SHIFT))
