"""All profiles of a tiny game and what they are worth, from the definition, in plain Python and fractions.

A profile is counts[k][v]: how many records of bin k use scale v.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath


def kernel(n_bins, scales):
    """M[k][v][x]: noise of scale v around bin k, normalised over the bins."""
    rows = [
        [[math.exp(-abs(k - x) / n_bins / b) for x in range(n_bins)] for b in scales] for k in range(n_bins)
    ]
    return [[[m / math.fsum(row) for m in row] for row in rows_of_bin] for rows_of_bin in rows]


def compositions(n, parts):
    """All ways to write n as an ordered sum of `parts` numbers >= 0."""
    if parts == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in compositions(n - first, parts - 1)]


def profiles(bin_counts, n_scales):
    """All profiles of a histogram."""
    return itertools.product(*(compositions(int(n), n_scales) for n in bin_counts))


def types(counts):
    """(bin, scale, number) of the types that have records."""
    return [(k, v, int(c)) for k, row in enumerate(counts) for v, c in enumerate(row) if c > 0]


def total(mass, counts):
    """S[x], exactly."""
    n_bins = len(mass)
    exact = [Fraction(0)] * n_bins
    for k, v, c in types(counts):
        for x in range(n_bins):
            exact[x] += c * Fraction(float(mass[k][v][x]))
    return exact


def growth(epsilon):
    """e^epsilon, as a fraction good to 60 digits."""
    with mpmath.workdps(60):
        number = mpmath.exp(mpmath.mpf(epsilon))
        part, exponent = mpmath.frexp(number)
        return Fraction(int(mpmath.ldexp(part, 200)), 2**200) * Fraction(2) ** int(exponent)


def n_satisfied(mass, counts, epsilon):
    """Records whose removal changes no probability by more than a factor e^epsilon, exactly."""
    records = sum(c for _, _, c in types(counts))
    mass_of_all, factor = total(mass, counts), growth(epsilon)
    satisfied = 0
    for k, v, c in types(counts):
        fine = True
        for x, whole in enumerate(mass_of_all):
            p = whole / records
            q = (whole - Fraction(float(mass[k][v][x]))) / (records - 1)
            fine = fine and p <= factor * q and q <= factor * p
        satisfied += c * fine
    return satisfied


def divergence(mass, counts):
    """KL of S/n from the histogram."""
    n_of = [sum(int(c) for c in row) for row in counts]
    n = sum(n_of)
    whole = total(mass, counts)
    return math.fsum(
        n_of[x] / n * math.log(Fraction(n_of[x]) / whole[x]) for x in range(len(mass)) if n_of[x] > 0
    )


def best(mass, bin_counts, epsilon):
    """Return (most satisfied, least divergence among these, that profile)."""
    found = (-1, math.inf, None)
    for counts in profiles(bin_counts, len(mass[0])):
        satisfied = n_satisfied(mass, counts, epsilon)
        if satisfied >= found[0]:
            kl = divergence(mass, counts)
            if satisfied > found[0] or kl < found[1]:
                found = (satisfied, kl, counts)
    return found


def neighbours(counts):
    """Profiles that differ in the scale of one record, or of all records of one type."""
    for k, v, c in types(counts):
        for w in range(len(counts[k])):
            for a in {1, c} if w != v else ():
                changed = [list(row) for row in counts]
                changed[k][v] -= a
                changed[k][w] += a
                yield changed
