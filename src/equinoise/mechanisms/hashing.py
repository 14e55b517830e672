"""One symbol a user: local hashing with random signs, in whole numbers.

A value v of one item out of many, |v| <= r, becomes one symbol out of 2k: a bucket and a sign. Public
randomness puts every item into a bucket and gives it a sign; the symbol says, with noise, into which bucket
the item fell and the sign of its value. Every symbol has a probability between q and e^epsilon q, whatever
item and value are, so the symbol is epsilon-locally private, whoever knows the public randomness.
"""

import math
from fractions import Fraction

from equinoise import _checks
from equinoise._jit import njit
from equinoise._typing import Any, NamedTuple

BITS = 62  # of a word that draws a symbol
MAX_BUCKETS = 2**16
_LEAST_EPSILON = 1e-8  # less is lost in the rounding of that many buckets
_LARGEST_EPSILON = 40.0  # more is not used: a symbol tells nearly everything by then
_BELOW = Fraction(2**50 - 1, 2**50)  # e^epsilon in floating point, rounded down for certain


class Hashing(NamedTuple):
    """A code of 2k symbols, its probabilities in units of 2^-62.

    Every symbol has `low` ways to be drawn, and the pair of the item's own bucket shares `extra` more,
    divided by the value: ``2 n_buckets low + extra = 2^62``. The symbol of bucket j is 2j for sign +1, 2j + 1
    for -1.

    Attributes
    ----------
    n_buckets, low, extra : int
        k; low 2^-62 is q, and extra 2^-62 is p - q.

    References
    ----------
    .. [1] Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation,
       USENIX Security, Section 4.4: local hashing; the random signs and the value are ours.

    Examples
    --------
    >>> code = Hashing.of(1.0, n_buckets=2)
    >>> code.low * 2 * code.n_buckets + code.extra == 2**62, (code.low + code.extra) / code.low <= math.e
    (True, True)
    """

    n_buckets: int
    low: int
    extra: int

    @classmethod
    def of(cls, epsilon: float, n_buckets: int) -> "Hashing":
        """Return the code of a positive, finite epsilon: (low + extra) / low is never above e^epsilon.

        ValueError for an epsilon below 1e-8, and for more than 65,536 buckets.
        """
        budget = _checks.number("epsilon", epsilon, _LEAST_EPSILON)
        k = _checks.integer("n_buckets", n_buckets, 1, MAX_BUCKETS)
        ratio = max(Fraction(math.exp(min(budget, _LARGEST_EPSILON))) * _BELOW, Fraction(1))
        low = math.ceil(2**BITS / (ratio + 2 * k - 1))
        return cls(k, low, 2**BITS - 2 * k * low)

    @property
    def gain(self) -> float:
        """What a symbol counts for the item of its bucket, G = 1/(p - q)."""
        return float(2**BITS) / self.extra

    @property
    def pair(self) -> float:
        """The probability p + q that the symbol is of the item's own bucket."""
        return (2 * self.low + self.extra) / float(2**BITS)

    def second_moment(self, n_items: int) -> float:
        """Return V0, the largest second moment of the estimate of another item, for values up to 1.

        Of more than k items two can share a bucket, so it is G^2/k; else none do, and it is 2 q G^2.
        """
        chance = 1.0 / self.n_buckets if n_items > self.n_buckets else 2 * self.low / float(2**BITS)
        return self.gain * self.gain * chance


@njit(forceinline=True)
def turn_of(half: Any, n_buckets: Any) -> Any:
    """Return how far a block of items is turned, an int64 in 0..k-1: the upper 31 of 32 public bits."""
    return ((half >> 1) * n_buckets) >> 31


@njit(forceinline=True)
def pair_of(position: Any, half: Any, n_buckets: Any) -> Any:
    """Return the symbol of an item's own bucket and sign, an int64, from the 32 public bits of its block.

    Items come in blocks of k, one in every bucket: item i of a block is in bucket i + turn (mod k). All of a
    block share the sign in the lowest bit; no two of them are ever in one bucket.
    """
    return 2 * ((position + turn_of(half, n_buckets)) % n_buckets) + (half & 1)


@njit(forceinline=True)
def item_of(block: Any, half: Any, bucket: Any, n_buckets: Any) -> Any:
    """Return which item of a block is in a bucket, counted over all blocks."""
    place = bucket - turn_of(half, n_buckets)
    return block * n_buckets + (place + n_buckets if place < 0 else place)


@njit(forceinline=True)
def symbol_of(code: Any, word: Any, own: Any, value: float, radius: float) -> Any:
    """Return the symbol that a word draws, all integers int64.

    The word is uniform over 0..2^62 - 1 and secret, `own` the item's :func:`pair_of`. Of the `extra` of the
    code, a :class:`Hashing`, the item's sign has 1/2 + v/(2 r), v in [-r, r], and the other sign the rest.
    """
    share = min(max(0.5 + value / (2.0 * radius), 0.0), 1.0) if radius > 0.0 else 0.5
    kept = code.low + min(int(code.extra * share), code.extra)
    pair = 2 * code.low + code.extra
    if word < kept:
        return own
    if word < pair:
        return own ^ 1
    other = (word - pair) // code.low
    return other if other < own - (own & 1) else other + 2
