"""The convex relaxation of a game, and bounds that hold whatever a solver's tolerance was.

With c records of bin k at scale v and S = sum of c M, every scale v that bin k uses in a certified profile
has ``low S[x] <= M[k, v, x] <= high S[x]`` at every x. Averaged over the records of a bin these are
linear in c:

    sum_v c[k, v] M[k, v, x] / n_k <= high S[x],    and  >= low S[x] where low > 0.

KL(q || S/n) is convex in c. The least KL over real c >= 0 with sum_v c[k, v] = n_k is a bound for all
certified profiles. A :class:`Node` asks for less: the profiles that use certain types, and do not
use certain others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equinoise._typing import Flags, Floats, Ints

__all__ = ["Multipliers", "Node", "Problem", "dual_bound", "left_sides", "make_problem"]


_UNIT = 2.0**-53
_LOOSER = 1e-12  # the limits are loosened by this, so that a check that rounds is covered too


class Problem(NamedTuple):
    """A game with R occupied bins: masses float64[R, V, K], records float64[R], occupied int64[R], limits."""

    masses: Floats
    records: Floats
    occupied: Ints
    high: float
    low: float

    @property
    def share(self) -> Floats:
        """The histogram q of the occupied bins, float64[R]."""
        return np.asarray(self.records / self.records.sum())


class Node(NamedTuple):
    """Profiles that use all types in forced bool[R, V], and no other than those in allowed bool[R, V]."""

    allowed: Flags
    forced: Flags


class Multipliers(NamedTuple):
    """Weights >= 0 of rows, and slopes > 0 of tangents.

    A row is a bin, a place x and a sign (+1 for the upper limit, -1 for the lower one): bins, places
    int64[m], signs, weights float64[m]. slopes float64[R]: 1/S at the point where -ln S[x] has its tangent.
    """

    bins: Ints
    places: Ints
    signs: Floats
    weights: Floats
    slopes: Floats


def make_problem(masses: Floats, bin_counts: Ints, low: float, high: float) -> Problem:
    """Return the problem of a game whose ratios must lie in [low, high], these loosened a little.

    masses float64[R, V, K] of the occupied bins; bin_counts int64[K].
    """
    occupied = np.flatnonzero(bin_counts)
    return Problem(
        masses,
        bin_counts[occupied].astype(np.float64),
        occupied,
        min(high * (1.0 + _LOOSER), 1.0),
        low * (1.0 - _LOOSER),
    )


def left_sides(problem: Problem, node: Node, bins: Ints, places: Ints, signs: Floats) -> Floats:
    """Return L float64[m, V] of the rows ``sign (sum_v c[k, v] L[v]/n_k - limit S[x]) <= 0``.

    Without forced types L is M[k, :, x]. All types that a bin uses lie on the right side of the limit, the
    worst of its forced ones among them. So does the worse of that one and any type that is used, and the
    average of these is what the row says.
    """
    signed = signs[:, None] * problem.masses[bins, :, places]
    worst = np.where(node.forced[bins], signed, -np.inf).max(axis=1, keepdims=True)
    return np.asarray(signs[:, None] * np.maximum(signed, worst))


def dual_bound(problem: Problem, node: Node, m: Multipliers, *, objective: bool = True) -> float:
    """Return a number that the KL of no certified profile of a node falls below, rounding included.

    Any multipliers will do; good ones make a good bound. Without the objective, which is KL, what is
    returned is a bound on 0, and a positive value proves that the node has no certified profile (Farkas).

    Let c be certified and in the node. With slopes g, ``ln S <= g S - 1 - ln g``. Every row is at most 0, so
    it may be added with its weight y, and ::

        KL >= sum_x q (ln(q n g) + 1) - sum_kv c[k, v] r[k, v],
        r[k, v] = sum_x M[k, v, x] (q g + sum of y sign limit over the rows at x)[x]
                  - sum over the rows of bin k of y sign L[v]/n_k.

    At most, a bin gives r[k, v] once for every forced type and its largest allowed r for each other record;
    that value is subtracted. In floating point a sum of j terms, in any order, is off by at most
    j 2^-53/(1 - j 2^-53) times the sum of their absolute values. r has K + m terms of a few factors each;
    twice that bound, with everything that is added up counted absolutely, is subtracted as well.
    """
    limits = np.where(m.signs > 0.0, problem.high, problem.low)
    price, size = _at_places(problem, m, m.signs * limits), _at_places(problem, m, limits)
    terms = 0.0
    gross = 0.0
    if objective:
        share = problem.share
        own = share * m.slopes
        price[problem.occupied] += own
        size[problem.occupied] += own
        logs = np.log(problem.records * m.slopes)
        terms = float(share @ (logs + 1.0))
        gross = float(share @ (np.abs(logs) + 2.0))
    left = (
        left_sides(problem, node, m.bins, m.places, m.signs) * (m.weights / problem.records[m.bins])[:, None]
    )
    worth, absolute = problem.masses @ price, problem.masses @ size
    np.add.at(worth, m.bins, -m.signs[:, None] * left)
    np.add.at(absolute, m.bins, left)
    free = problem.records - node.forced.sum(axis=1)
    most = free @ np.where(node.allowed, worth, -np.inf).max(axis=1) + worth[node.forced].sum()
    gross += float(problem.records @ absolute.max(axis=1))
    n_terms = len(price) + len(m.bins) + 2 * len(free) + 20
    return terms - float(most) - 2.0 * n_terms * _UNIT * gross


def _at_places(problem: Problem, m: Multipliers, factors: Floats) -> Floats:
    """Return the sum of weights times factors of the rows at every x, float64[K]."""
    return np.asarray(np.bincount(m.places, m.weights * factors, problem.masses.shape[2]), dtype=np.float64)
