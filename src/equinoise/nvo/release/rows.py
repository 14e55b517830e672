"""Rows drawn with exact probabilities."""

import hashlib
import math
import os
from fractions import Fraction
from itertools import accumulate

import numpy as np

from equinoise import _checks, _results
from equinoise._random import RELEASE, stream_key
from equinoise._typing import Any, Callable, Floats, Ints, Words

MAX_ROWS = 10**9
_WORD = 64  # bits
_CHUNK = 2**18  # rows whose words are drawn at a time

WordSource = Callable[[int], Words]


def sample(profile: Any, size: int, seed: int | None = None, *, allow_uncertified: bool = False) -> Any:
    """Draw rows from a profile or a twin, independently of each other.

    Every one of `size` rows adds to what a profile's release tells, see :func:`compose`. Without a seed the
    randomness is the operating system's. With one the same rows come out again, and whoever knows or guesses
    it can undo the noise: that is not private. A profile in which some record is not satisfied raises
    ValueError, unless it is allowed.

    Rows are midpoints of bins in the data's units, bin x with probability S[x]/n, float64[size], or
    int64[size] where the values were integers; of pairs, one array for each column. No noise is added to a
    midpoint: with several scales, continuous noise would give the record with the largest scale away.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), definition 3.3, random sampling query.
    """
    rows = _checks.integer("size", size, 1, MAX_ROWS)
    _results.check_memory(rows, 3 * len(profile.histogram.columns) - 1, "size")  # bins, and midpoints
    if not _checks.flag("allow_uncertified", allow_uncertified) and not profile.certified:
        satisfied = f"{profile.n_satisfied} of {profile.game.n} records"
        raise ValueError(f"profile must be certified, got one that satisfies {satisfied}")
    return profile.histogram.to_units(draw_bins(profile.pmf, rows, seed))


def draw_bins(pmf: Floats, size: int, seed: int | None = None) -> Ints:
    """Draw numbers of bins, int64[size], with probabilities pmf / sum(pmf), exactly.

    pmf float64[X] is finite and not negative, not all zero; with a seed a smaller size gives the first rows.
    A uniform float64 knows nothing below 2^-53, where the noise of a record far away may lie, and would make
    outcomes impossible that two records should share. Here a row is a binary fraction of as many random bits
    as are needed to tell on which side of the boundaries it falls: the first 64 nearly always do.
    """
    words = _system_words if seed is None else _seeded_words(seed)
    shares = [Fraction(p) for p in _checks.array("pmf", pmf, np.float64, (None,), low=0.0).tolist()]
    if not (total := sum(shares)):
        raise ValueError("pmf must not be all zero")
    bounds = [part / total for part in accumulate(shares)][:-1]  # bin x is [bounds[x - 1], bounds[x])
    bins = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = bins[start : start + _CHUNK]
        part[:] = _invert(bounds, words(len(part)), words)
    return bins


def seed_of(column: str, seed: int | None) -> int | None:
    """Return a column's seed from one for all: with the same, two columns would rise and fall together."""
    if seed is None:
        return None
    name = f"{_checks.integer('seed', seed, 0)} {column}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big")


def _system_words(size: int) -> Words:
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def _seeded_words(seed: int) -> WordSource:
    """Return a source of words: the block at (draw, 0, 0, RELEASE) of the seed's key."""
    generator = np.random.Philox(counter=[0, 0, 0, int(RELEASE)], key=stream_key(seed))
    return lambda size: np.asarray(generator.random_raw(size), dtype=np.uint64)


def _invert(bounds: list[Fraction], drawn: Words, more: WordSource) -> Ints:
    """Return how many boundaries are at or below each place in [0, 1), int64[n]; a word is its first bits."""
    last = (1 << _WORD) - 1  # a boundary at 1 is never reached
    cut = np.array([min(math.floor(bound * (last + 1)), last) for bound in bounds], dtype=np.uint64)
    bins = np.searchsorted(cut, drawn, side="left").astype(np.int64)
    for i in np.flatnonzero(np.searchsorted(cut, drawn, side="right") != bins):
        bins[i] = _settle(bounds, int(drawn[i]), more)
    return bins


def _settle(bounds: list[Fraction], word: int, more: WordSource) -> int:
    """Return the bin of a place whose first bits `word` are also a boundary's: draw more of them."""
    bits = _WORD
    while True:
        word = (word << _WORD) | int(more(1)[0])
        bits += _WORD
        low = sum(bound <= Fraction(word, 2**bits) for bound in bounds)
        high = sum(bound < Fraction(word + 1, 2**bits) for bound in bounds)
        if low == high:
            return low
