"""The noise variance optimisation game from its definition, record by record, in plain Python.

A profile is a list of (bin, scale index), one entry a record. Sums are exactly rounded (math.fsum).
"""

from __future__ import annotations

import math


def place(value, n_bins, low, high, percentile=0.9, range_epsilon=1.0):
    """Where a value falls on [0, n_bins]: its bin is the whole part."""
    margin = (high - low) / range_epsilon * abs(math.log(2 - 2 * percentile))
    start, stop = low - margin, high + margin
    return (value - start) / (stop - start) * n_bins


def masses(n_bins, scale, k):
    """What a record of bin k with this noise scale gives every bin."""
    points = [(x + 0.5) / n_bins for x in range(n_bins)]
    raw = [math.exp(-abs(points[k] - x) / scale) for x in points]
    total = math.fsum(raw)
    return [r / total for r in raw]


def kernel(n_bins, scales):
    """M[k][v][x]."""
    return [[masses(n_bins, scale, k) for scale in scales] for k in range(n_bins)]


def records(counts):
    """The records of a profile, from counts[k][v]."""
    return [(k, v) for k, row in enumerate(counts) for v, c in enumerate(row) for _ in range(int(c))]


def release(mass, records):
    """Probability of every bin: draw a record, add its noise."""
    n_bins = len(mass[0][0])
    return [math.fsum(mass[k][v][x] for k, v in records) / len(records) for x in range(n_bins)]


def loss(p, q):
    """Largest |ln(p/q)| over outcomes that either makes possible."""
    worst = 0.0
    for a, b in zip(p, q, strict=True):
        if a > 0 or b > 0:
            worst = max(worst, abs(math.log(a / b)) if a > 0 and b > 0 else math.inf)
    return worst


def epsilon_of(mass, records, i):
    """Epsilon of record i for its removal."""
    return loss(release(mass, records), release(mass, records[:i] + records[i + 1 :]))


def epsilon_of_addition(mass, records, new):
    """Epsilon of one more record."""
    return loss(release(mass, records), release(mass, [*records, new]))


def divergence(mass, records):
    """KL of what is released from the histogram."""
    n, p = len(records), release(mass, records)
    terms = []
    for x in range(len(p)):
        share = sum(k == x for k, _ in records) / n
        if share > 0:
            terms.append(share * math.log(share / p[x]))
    return math.fsum(terms)


def satisfied(mass, records, epsilon):
    """Number of records whose epsilon is at most this."""
    known = {t: epsilon_of(mass, records, records.index(t)) for t in set(records)}
    return sum(known[t] <= epsilon for t in records)


def payoff(mass, records, epsilon):
    """What all records share."""
    return satisfied(mass, records, epsilon) + 1 - divergence(mass, records) / math.log(len(mass))


def best_move(mass, records, i, epsilon, least=1e-12):
    """The scale that record i would choose (its own unless another gains more than `least`), and the gain."""
    k, old = records[i]
    base, chosen, best = payoff(mass, records, epsilon), old, least
    for v in range(len(mass[0])):
        if v != old:
            gain = payoff(mass, [*records[:i], (k, v), *records[i + 1 :]], epsilon) - base
            if gain > best:
                chosen, best = v, gain
    return chosen, (best if chosen != old else 0.0)


def best_response(mass, records, epsilon):
    """Records in turn take a best option; end after a whole round without a change."""
    records, moves, changed = list(records), 0, True
    while changed:
        changed = False
        for i, (k, old) in enumerate(records):
            new, _ = best_move(mass, records, i, epsilon)
            if new != old:
                records[i], changed, moves = (k, new), True, moves + 1
    return records, moves
