"""A convex program whose value the divergence of no certified profile falls below.

With c records of bin k at scale v and S = sum of c M, every scale v that bin k uses in a certified profile
has ``low S[x] <= M[k, v, x] <= high S[x]`` at every x. Averaged over the records of a bin these are
linear in c: ``sum_v c[k, v] M[k, v, x] / n_k <= high S[x]``, and ``>= low S[x]`` where low > 0. KL(q || S/n)
is convex in c, so the least KL over real c >= 0 with sum_v c[k, v] = n_k is a bound for all certified
profiles, and a bound that holds whatever a solver's tolerance was. A node asks for less.

More is known of a bin's own mass S, so the tangent of -ln S with slope g need not hold for all S. Where S is
at least L::

    -ln S + g S >= 1 + ln g + h(g L),   h(z) = z - 1 - ln z for z > 1, else 0,

and a sum over a bin's records that stays below h(g L), linear in c, may be added to a tangent. First, where
scale v is in use S >= L[v] = M[k, v, k]/high: so the average of h(g L[v]) over the records may be added. A
mix of a scale too narrow for the mass at hand with a wide one, which averages allow, then has its price.
Second, records are whole. If the n records of a bin would leave b each at the narrowest scale and lose
d[v] = b - M[k, v, k], then S >= n b - d, d the sum of what they lose. With f(d) = h(g (n b - d)), which is
convex, f(d) >= f(0) + the sum of f(d[v]) - f(0): no record that loses nothing has a part in that.

And what a bin's only record needs whole records must give: rows that count them (:func:`rounded`) are added.
So must they what a record needs that a node says there is, wherever it reaches: two flat ones, say, not a
tenth of one from every bin. Of the types that it may have the one that leaves and needs least counts.
"""

import math

import numpy as np

from equinoise._typing import Flags, Floats, Ints, NamedTuple

_UNIT = 2.0**-53
_FEW = 1000.0  # records of a bin: of more, one is lost in rounding
PLAIN = math.inf, 1.0  # the rounding of a row that has none
NO_BIN = -1  # of rows of what a node's certain records and those that they need leave
_LOOSER = 1e-12  # the limits are loosened by this, of high and of 1/n, so that a check that rounds is covered


class Problem(NamedTuple):
    """A game with R occupied bins: masses float64[R, V, K], records float64[R], occupied int64[R], limits.

    Scales int64[V] by what they leave in a record's own bin, float64[V] on average, the widest first.
    """

    masses: Floats
    records: Floats
    occupied: Ints
    high: float
    low: float
    widest: Ints
    own: Floats

    @property
    def share(self) -> Floats:
        """The histogram q of the occupied bins, float64[R]."""
        return np.asarray(self.records / self.records.sum())


class Node(NamedTuple):
    """Profiles that use no types but those in allowed bool[R, V], and of every bin one in asked bool[R, V].

    Where a bin asks for none, any will do. Asked types are allowed. And the v + 1 widest scales have from
    least[v] to most[v] records, int64[V].
    """

    allowed: Flags
    asked: Flags
    least: Ints
    most: Ints


class Multipliers(NamedTuple):
    """Weights >= 0 of rows, and slopes > 0 of tangents, float64[R]: 1/S where -ln S[x] has its tangent.

    A row is a bin or NO_BIN, a place x, a sign (+1 for the upper limit, -1 for the lower one) and a rounding,
    the last float64[m, 2], the others arrays [m]. Totals float64[V] are weights of a node's least (where
    positive) and most numbers (where negative).
    """

    bins: Ints
    places: Ints
    signs: Floats
    roundings: Floats
    weights: Floats
    slopes: Floats
    totals: Floats


def make_problem(masses: Floats, bin_counts: Ints, low: float, high: float) -> Problem:
    """Return the problem of masses float64[R, V, K] and bin_counts int64[K]; its limits a little looser."""
    occupied, looser = np.flatnonzero(bin_counts), min(high * (1.0 + _LOOSER), 1.0)
    own = masses[np.arange(len(occupied)), :, occupied].mean(axis=0)
    widest, records = np.argsort(own, kind="stable"), bin_counts[occupied].astype(np.float64)
    lower = max(low - _LOOSER / float(records.sum()), 0.0)  # which is at most 1/n, and cancels below it
    return Problem(masses, records, occupied, looser, lower, widest, own[widest])


def root(problem: Problem) -> Node:
    """Return the node of all profiles."""
    shape = problem.masses.shape[:2]
    most = np.full(shape[1], int(problem.records.sum()))
    return Node(np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_), 0 * most, most)


def rounded(mass: Floats, roundings: Floats) -> Floats:
    """Return F(mass) of masses float64[..., m]; roundings float64[m, 2] are units and parts of a unit.

    F counts whole units, and of what is left min(left/part, 1). It grows, and F(a + b) <= F(a) + F(b): so
    where whole records leave at least b at a place, the sum of F over them is F(b) or more. That says more
    than the sum does: a half of a record that leaves 2 b is no help to anybody (mixed integer rounding;
    Nemhauser and Wolsey, 1990). An infinite unit stands for the mass itself.
    """
    unit, part = roundings.T
    times = np.floor(mass / unit)
    left = np.where(unit < np.inf, (mass / unit - times) / part, mass)
    return np.asarray(np.where(unit < np.inf, times + np.minimum(left, 1.0), left))


def odds(problem: Problem) -> float:
    """Return how much all others leave at least, as a multiple of what one record leaves; never too much."""
    return max(1.0 / problem.high - 1.0 - 2.0**-50, 0.0)


def certain(problem: Problem, node: Node) -> list[Flags]:
    """Return sets of types, bool[R, V], each of which has a record at least in every profile of a node."""
    bins, rank = np.arange(len(problem.records))[:, None], np.argsort(problem.widest)
    wide = [node.allowed & (rank <= v) for v in np.flatnonzero(node.least)]
    asked = [node.asked & (bins == i) for i in np.flatnonzero(node.asked.any(axis=1))]
    return [types for types in wide + asked if types.any()]


def needed(problem: Problem, types: Flags, places: Ints, roundings: Floats) -> Floats:
    """Return what all leave at places, rounded, where a record of some types is, at least, float64[m]."""
    left = problem.masses[types][:, places]
    others = rounded(odds(problem) * left, roundings)
    return np.asarray((rounded(left, roundings) + (1.0 - _LOOSER) * others).min(axis=0))


def constants(problem: Problem, node: Node, bins: Ints, places: Ints, roundings: Floats) -> Floats:
    """Return what all leave at least by rows without a bin, rounded, float64[m]; 0 of others."""
    found = np.zeros(len(bins))
    some = np.flatnonzero(bins == NO_BIN)
    for types in certain(problem, node) if len(some) else []:
        found[some] = np.maximum(found[some], needed(problem, types, places[some], roundings[some]))
    return found


def left_sides(
    problem: Problem, node: Node, bins: Ints, places: Ints, signs: Floats, roundings: Floats | None = None
) -> Floats:
    """Return L float64[m, V] of the rows ``sign (sum_v c[k, v] L[v]/n_k - limit S[x]) <= 0``.

    Without asked types L is M[k, :, x]. All types that a bin uses lie on the right side of the limit, one of
    the asked ones among them, and so does the best of these at x. So does the worse of that one and any type
    that is used, and the average of these is what the row says. With a rounding F, S[x] is the sum of F(M)
    over all records, and L high times what that is at least where a type is in use: F of what it leaves there
    and F of what the others do. Without a bin L is 0: ``S[x] >=`` :func:`constants` is what the row says.
    """
    mass = problem.masses[bins, :, places]
    if roundings is not None:
        some = np.flatnonzero(roundings[:, 0] < np.inf)
        own, others = (rounded(times * mass[some].T, roundings[some]).T for times in (1.0, odds(problem)))
        mass[some] = problem.high * (own + (1.0 - _LOOSER) * others)
    signed = signs[:, None] * mass
    asked = np.where(node.asked[bins], signed, np.inf).min(axis=1, keepdims=True)
    left = signs[:, None] * np.maximum(signed, np.where(asked < np.inf, asked, -np.inf))
    return np.where(bins[:, None] == NO_BIN, 0.0, left)


def dual_bound(
    problem: Problem, node: Node, m: Multipliers, *, objective: bool = True
) -> tuple[float, Floats]:
    """Return a number that the KL of no certified profile of a node falls below, rounding included.

    And by how much it rises, float64[R, V], for profiles in which a record of bin k uses scale v. Any
    multipliers will do; good ones make a good bound. Without the objective, which is KL, what is returned is
    a bound on 0, and a positive value proves that the node has no certified profile (Farkas).

    Let c be certified and in the node. With slopes g, ``ln S <= g S - 1 - ln g`` less what is added to a
    tangent, the sum over a bin's records of h[k, v]. Every row is at most 0, so it may be added with its
    weight y, and ::

        KL >= sum_x q (ln(q n g) + 1) - sum_kv c[k, v] r[k, v],
        r[k, v] = sum_x M[k, v, x] (q g + sum of y sign limit over the rows at x)[x] - h[k, v]/n
                  - sum over the rows of bin k of y sign L[v]/n_k.

    A row without a bin adds its constant. With weights w of a node's least and most numbers of records, w
    times these is added, and to r[k, v] the w of all numbers that count scale v. At most, a bin gives its
    largest asked r once and its largest allowed r for each other record; that value is subtracted. In
    floating point a sum of j terms is off by at most j 2^-53/(1 - j 2^-53) times the sum of their absolute
    values. r has K + m + V terms of a few factors each; twice that is subtracted too.
    """
    limits = np.where(m.signs > 0.0, problem.high, problem.low)
    plain = m.roundings[:, 0] == np.inf
    price, size = _at_places(problem, m, m.signs * limits * plain), _at_places(problem, m, limits * plain)
    terms = gross = float((limits * m.weights) @ constants(problem, node, m.bins, m.places, m.roundings))
    if objective:
        share = problem.share
        for each in (price, size):
            each[problem.occupied] += share * m.slopes
        logs = np.log(problem.records * m.slopes)
        terms += float(share @ (logs + 1.0))
        gross += float(share @ (np.abs(logs) + 2.0))
    left = left_sides(problem, node, m.bins, m.places, m.signs, m.roundings)
    left *= (m.weights / problem.records[m.bins])[:, None]
    some = np.flatnonzero(~plain & (m.weights > 0.0))
    counted = rounded(problem.masses[:, :, m.places[some]], m.roundings[some]) @ (limits * m.weights)[some]
    worth, absolute = problem.masses @ price + counted, problem.masses @ size + counted
    ends = np.where(m.totals > 0.0, node.least, node.most)
    terms += float(m.totals @ ends)
    gross += float(np.abs(m.totals) @ ends)
    for each, totals in ((worth, m.totals), (absolute, np.abs(m.totals))):
        each[:, problem.widest] += np.cumsum(totals[::-1])[::-1]
    np.add.at(worth, m.bins, -m.signs[:, None] * left)
    np.add.at(absolute, m.bins, left)
    if objective:  # of either kind, for every bin the one that proves more
        every, n = np.arange(len(worth)), problem.records.sum()
        kinds = np.zeros(len(every), dtype=np.bool_), np.ones(len(every), dtype=np.bool_)
        first, second = (lifts(problem, node, every, m.slopes, kind) / n for kind in kinds)
        gained = _most(problem, node, worth - first)[0] - _most(problem, node, worth - second)[0]
        lifted = np.where(gained[:, None] > 0.0, second, first)
        largest = m.slopes * problem.records * problem.masses.max(axis=(1, 2)) / problem.high
        size = np.where(gained > 0.0, problem.records, 1.0) * (1.0 + largest)
        worth, absolute = worth - lifted, absolute + np.abs(lifted) + 4.0 * size[:, None] / n
    most, rises = _most(problem, node, worth)
    gross += float(problem.records @ absolute.max(axis=1))
    n_terms = len(price) + len(m.bins) + 2 * len(problem.records) + 2 * len(ends) + 20
    return terms - float(most.sum()) - 2.0 * n_terms * _UNIT * gross, rises


def _most(problem: Problem, node: Node, worth: Floats) -> tuple[Floats, Floats]:
    """Return what bins give at most, float64[R], and how much less with one record more of a type, [R, V]."""
    asks = np.asarray(node.asked.any(axis=1))
    top = np.where(node.allowed, worth, -np.inf).max(axis=1)
    asked = np.where(node.asked, worth, -np.inf).max(axis=1)
    most = (problem.records - asks) * top + np.where(asks, asked, 0.0)
    return most, np.where(asks[:, None], 0.0, top[:, None] - worth)  # of bins that ask it is not looked at


def lifts(problem: Problem, node: Node, bins: Ints, slopes: Floats, whole: Flags) -> Floats:
    """Return what tangents of bins int64[m] gain by the part of a bin's records at a scale, float64[m, V].

    With slopes float64[m]; by the least mass, or where `whole`, bool[m], by that records are whole. A bin of
    one record takes the first, which says more.
    """
    n, g = problem.records[bins, None], slopes[:, None]
    own = problem.masses[bins, :, problem.occupied[bins]]
    average = _gain(g * least_masses(problem, node)[bins])
    best = np.where(node.allowed[bins], own, 0.0).max(axis=1, keepdims=True)
    none = _gain(g * n * best)
    some = none + n * (_gain(g * (n * best - np.maximum(best - own, 0.0))) - none)
    return np.asarray(np.where(whole[:, None] & (n > 1.0) & (n <= _FEW), some, average))


def _gain(z: Floats) -> Floats:
    """Return by how much -ln S + g S is above its least value where S >= z/g."""
    above = np.maximum(z, 1.0)
    return np.asarray(above - 1.0 - np.log(above))


def least_masses(problem: Problem, node: Node) -> Floats:
    """Return what a bin's own mass is at least where a scale is in use, float64[R, V]."""
    bins = np.arange(len(problem.records))
    return left_sides(problem, node, bins, problem.occupied, np.ones(len(bins))) / problem.high


def _at_places(problem: Problem, m: Multipliers, factors: Floats) -> Floats:
    """Return the sum of weights times factors of the rows at every x, float64[K]."""
    return np.asarray(np.bincount(m.places, m.weights * factors, problem.masses.shape[2]), dtype=np.float64)
