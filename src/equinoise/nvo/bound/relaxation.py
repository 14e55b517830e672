"""A convex program whose value the divergence of no certified profile falls below.

With c records of bin k at scale v and S = sum of c M, every scale v that bin k uses in a certified profile
has ``low S[x] <= M[k, v, x] <= high S[x]`` at every x. Averaged over the records of a bin these are
linear in c: ``sum_v c[k, v] M[k, v, x] / n_k <= high S[x]``, and ``>= low S[x]`` where low > 0. KL(q || S/n)
is convex in c, so the least KL over real c >= 0 with sum_v c[k, v] = n_k is a bound for all certified
profiles, and a bound that holds whatever a solver's tolerance was. A node asks for less.
"""

import math
import time

import numpy as np

from equinoise import replicates
from equinoise._typing import Any, Flags, Floats, Ints, NamedTuple

_UNIT = 2.0**-53
_LOOSER = 1e-12  # the limits are loosened by this, so that a check that rounds is covered too


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

    A row is a bin, a place x and a sign (+1 for the upper limit, -1 for the lower one), all arrays [m].
    Totals float64[V] are weights of a node's least (where positive) and most numbers (where negative).
    """

    bins: Ints
    places: Ints
    signs: Floats
    weights: Floats
    slopes: Floats
    totals: Floats


def make_problem(masses: Floats, bin_counts: Ints, low: float, high: float) -> Problem:
    """Return the problem of masses float64[R, V, K] and bin_counts int64[K]; its limits a little looser."""
    occupied, looser = np.flatnonzero(bin_counts), min(high * (1.0 + _LOOSER), 1.0)
    own = masses[np.arange(len(occupied)), :, occupied].mean(axis=0)
    widest, records = np.argsort(own, kind="stable"), bin_counts[occupied].astype(np.float64)
    return Problem(masses, records, occupied, looser, low * (1.0 - _LOOSER), widest, own[widest])


def root(problem: Problem) -> Node:
    """Return the node of all profiles."""
    shape = problem.masses.shape[:2]
    most = np.full(shape[1], int(problem.records.sum()))
    return Node(np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_), 0 * most, most)


def left_sides(problem: Problem, node: Node, bins: Ints, places: Ints, signs: Floats) -> Floats:
    """Return L float64[m, V] of the rows ``sign (sum_v c[k, v] L[v]/n_k - limit S[x]) <= 0``.

    Without asked types L is M[k, :, x]. All types that a bin uses lie on the right side of the limit, one of
    the asked ones among them, and so does the best of these at x. So does the worse of that one and any type
    that is used, and the average of these is what the row says.
    """
    signed = signs[:, None] * problem.masses[bins, :, places]
    asked = np.where(node.asked[bins], signed, np.inf).min(axis=1, keepdims=True)
    return np.asarray(signs[:, None] * np.maximum(signed, np.where(asked < np.inf, asked, -np.inf)))


def dual_bound(problem: Problem, node: Node, m: Multipliers, *, objective: bool = True) -> float:
    """Return a number that the KL of no certified profile of a node falls below, rounding included.

    Any multipliers will do; good ones make a good bound. Without the objective, which is KL, what is
    returned is a bound on 0, and a positive value proves that the node has no certified profile (Farkas).

    Let c be certified and in the node. With slopes g, ``ln S <= g S - 1 - ln g``. Every row is at most 0, so
    it may be added with its weight y, and ::

        KL >= sum_x q (ln(q n g) + 1) - sum_kv c[k, v] r[k, v],
        r[k, v] = sum_x M[k, v, x] (q g + sum of y sign limit over the rows at x)[x]
                  - sum over the rows of bin k of y sign L[v]/n_k.

    With weights w of a node's least and most numbers of records, w times these is added, and to r[k, v] the
    w of all numbers that count scale v. At most, a bin gives its largest asked r once and its
    largest allowed r for each other record; that value is subtracted. In floating point a sum of j terms
    is off by at most j 2^-53/(1 - j 2^-53) times the sum of their absolute values. r has K + m + V terms of
    a few factors each; twice that is subtracted too.
    """
    limits = np.where(m.signs > 0.0, problem.high, problem.low)
    price, size = _at_places(problem, m, m.signs * limits), _at_places(problem, m, limits)
    terms = gross = 0.0
    if objective:
        share = problem.share
        own = share * m.slopes
        price[problem.occupied] += own
        size[problem.occupied] += own
        logs = np.log(problem.records * m.slopes)
        terms = float(share @ (logs + 1.0))
        gross = float(share @ (np.abs(logs) + 2.0))
    left = left_sides(problem, node, m.bins, m.places, m.signs)
    left *= (m.weights / problem.records[m.bins])[:, None]
    worth, absolute = problem.masses @ price, problem.masses @ size
    ends = np.where(m.totals > 0.0, node.least, node.most)
    terms += float(m.totals @ ends)
    gross += float(np.abs(m.totals) @ ends)
    for each, totals in ((worth, m.totals), (absolute, np.abs(m.totals))):
        each[:, problem.widest] += np.cumsum(totals[::-1])[::-1]
    np.add.at(worth, m.bins, -m.signs[:, None] * left)
    np.add.at(absolute, m.bins, left)
    asks = node.asked.any(axis=1)
    most = (problem.records - asks) @ np.where(node.allowed, worth, -np.inf).max(axis=1)
    most += np.where(node.asked, worth, -np.inf).max(axis=1)[asks].sum()
    gross += float(problem.records @ absolute.max(axis=1))
    n_terms = len(price) + len(m.bins) + 2 * len(problem.records) + 2 * len(ends) + 20
    return terms - float(most) - 2.0 * n_terms * _UNIT * gross


def _at_places(problem: Problem, m: Multipliers, factors: Floats) -> Floats:
    """Return the sum of weights times factors of the rows at every x, float64[K]."""
    return np.asarray(np.bincount(m.places, m.weights * factors, problem.masses.shape[2]), dtype=np.float64)


_SPREAD = 8  # tangents of an occupied bin at the start
_PATIENCE = 3  # linear programs that a tangent lives on for without being used
_ROWS_A_BIN = 6  # added at once
_BROKEN = 1e-7  # part of its right side by which a row must fail to be added
_CLOSE = 2e-7  # nearer than this a linear program's tolerance does not come
_ROUNDS = 60
_STALLED = 4


class Solution(NamedTuple):
    """Of a node: a bound; parts float64[R, V] of a bin's records and mass float64[K], None where unknown."""

    bound: float
    parts: Floats | None = None
    mass: Floats | None = None


class Cuts:
    """Rows and tangents that some node needed; they serve all nodes.

    The keys of `rows` are (bin, place, sign). Tangents: bins int64[j], at which mass, points float64[j], and
    for how many programs unused, idle int64[j]. scale float64[K] are units of the mass, near its values.
    """

    def __init__(self, problem: Problem, seconds: float) -> None:
        self.problem, self.deadline = problem, time.monotonic() + seconds
        n_bins, n_scales, _ = problem.masses.shape
        mass = np.einsum("kvx,k->x", problem.masses, problem.records) / n_scales
        own, shared = problem.records, mass[problem.occupied]
        self.rows = {(i, int(x), 1.0): None for i, x in enumerate(problem.occupied)}
        self.bins = np.repeat(np.arange(n_bins), _SPREAD)
        low, high = np.minimum(own, shared) / 2.0, np.maximum(own, shared) * 2.0
        self.points = np.geomspace(low, high, _SPREAD, axis=1).ravel()
        self.idle = np.zeros(len(self.bins), dtype=np.int64)
        self.scale = np.maximum(mass, 1e-12 * mass.max())

    def relax(self, node: Node, gap: float, enough: float = math.inf) -> Solution:
        """Bound a node: solve, add what fails, and again, until the bound is within `gap` of the value.

        Or until it is enough.
        """
        best, parts, mass, stalled = -math.inf, None, None, 0
        for _ in range(_ROUNDS):
            replicates.tick()
            solved = self._solve(node)
            if solved is None and self.left() == 0.0:
                break
            if solved is None:  # and where it is proven, no profile of the node is certified
                proof = self._solve(node, elastic=True)
                if proof and dual_bound(self.problem, node, proof[0], objective=False) > 0.0:
                    return Solution(math.inf)
                break
            multipliers, parts = solved
            mass = np.einsum("kv,kvx->x", parts * self.problem.records[:, None], self.problem.masses)
            slopes = 1.0 / mass[self.problem.occupied]
            value = float(self.problem.share @ np.log(self.problem.records * slopes))
            slopes = np.where(multipliers.slopes > 0.0, multipliers.slopes, slopes)
            bound = dual_bound(self.problem, node, multipliers._replace(slopes=slopes))
            close = max(gap * value, _CLOSE)
            stalled = 0 if bound > best + 0.1 * close else stalled + 1
            best = max(best, bound)
            worst = self._add(node, parts, mass)
            found = worst <= 10.0 * _BROKEN and value - best <= close
            if found or stalled == _STALLED or best >= enough:
                break
        return Solution(best, parts, mass)

    def left(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self.deadline - time.monotonic())

    def _add(self, node: Node, parts: Floats, mass: Floats) -> float:
        """Add tangents at a mass and the rows that fail most; return by which part the worst one fails."""
        occupied = self.problem.occupied
        lives = np.flatnonzero(self.idle < _PATIENCE)
        self.bins = np.concatenate([self.bins[lives], np.arange(len(occupied))])
        self.points = np.concatenate([self.points[lives], mass[occupied]])
        self.idle = np.concatenate([self.idle[lives], np.zeros(len(occupied), dtype=np.int64)])
        self.scale = np.maximum(mass, 1e-12 * mass.max())
        worst = 0.0
        for sign, limit in ((1.0, self.problem.high), (-1.0, self.problem.low)):
            if limit > 0.0:
                fails = self._fails(node, parts, mass, sign, limit)
                worst = max(worst, float(fails.max()))
                places = np.argsort(-fails, axis=1, kind="stable")[:, :_ROWS_A_BIN]
                most = np.take_along_axis(fails, places, axis=1)
                for i, x in zip(*np.nonzero(most > _BROKEN), strict=True):
                    self.rows[int(i), int(places[i, x]), sign] = None
        return worst

    def _fails(self, node: Node, parts: Floats, mass: Floats, sign: float, limit: float) -> Floats:
        """Return by which part of its right side every row of one sign fails, float64[R, K]."""
        left = np.einsum("kv,kvx->kx", parts, self.problem.masses)
        places = np.arange(len(mass))
        for i in np.flatnonzero(node.asked.any(axis=1)):
            bins, signs = np.full(len(mass), i), np.full(len(mass), sign)
            left[i] = left_sides(self.problem, node, bins, places, signs) @ parts[i]
        right = limit * mass
        fails: Floats = np.divide(sign * (left - right), right, out=np.zeros_like(left), where=right > 0.0)
        return fails

    def _solve(self, node: Node, *, elastic: bool = False) -> tuple[Multipliers, Floats] | None:
        """Solve one linear program; return its multipliers and parts float64[R, V], None without a solution.

        Variables are the parts, the masses (in units of `scale`) that rows or tangents name, and for every
        occupied bin t >= -ln(mass); sum q t is minimised. An elastic program has no tangents and minimises
        by how much all rows are allowed to fail: its multipliers say why they fail.
        """
        problem = self.problem
        n_bins, n_scales, n_places = problem.masses.shape
        bins, places, signs = (np.array(part) for part in zip(*self.rows, strict=True))
        needed = np.union1d(problem.occupied, places)
        first_rest = n_bins * n_scales + len(needed)
        n_columns = first_rest + (1 if elastic else n_bins)
        of_place = np.full(n_places, -1)
        of_place[needed] = np.arange(n_bins * n_scales, first_rest)
        # rows, each divided by its size
        left = left_sides(problem, node, bins, places, signs)
        right = np.where(signs > 0.0, problem.high, problem.low) * self.scale[places]
        size = np.maximum(left.max(axis=1), right)
        row, types = np.arange(len(bins)), bins[:, None] * n_scales + np.arange(n_scales)
        entries = [
            (np.repeat(row, n_scales), types.ravel(), (left * (signs / size)[:, None]).ravel()),
            (row, of_place[places], -signs * right / size),
        ]
        sides, cost = np.zeros(len(bins)), np.zeros(n_columns)
        # of the widest scales a node's least and most records
        most, least = np.flatnonzero(node.most < problem.records.sum()), np.flatnonzero(node.least)
        ends, way = np.concatenate([most, least]), np.repeat([1.0, -1.0], [len(most), len(least)])
        for i, v in enumerate(ends, len(bins)):
            types = (n_scales * np.arange(n_bins)[:, None] + problem.widest[: v + 1]).ravel()
            counted = way[i - len(bins)] * np.repeat(problem.records, v + 1)
            entries.append((np.full(len(types), i), types, counted))
        sides = np.concatenate([sides, node.most[most], -node.least[least]])
        row = np.arange(len(sides))
        if elastic:
            entries.append((row, np.full(len(row), n_columns - 1), np.full(len(row), -1.0)))
            cost[-1] = 1.0
        # of the asked types a record at least
        asks = np.flatnonzero(node.asked.any(axis=1))
        entries += [
            (np.full(n_scales, len(row) + i), k * n_scales + np.arange(n_scales), -1.0 * node.asked[k])
            for i, k in enumerate(asks)
        ]
        sides = np.concatenate([sides, -1.0 / problem.records[asks]])
        if not elastic:  # tangents, -t - mass/point <= ln(point) - 1
            row, own = len(sides) + np.arange(len(self.bins)), problem.occupied[self.bins]
            entries.append((row, first_rest + self.bins, np.full(len(row), -1.0)))
            entries.append((row, of_place[own], -self.scale[own] / self.points))
            sides = np.concatenate([sides, np.log(self.points) - 1.0])
            cost[first_rest:] = problem.share
        upper = _sparse(entries, len(sides), n_columns)
        # forbidden types have no records
        low, high = np.zeros(n_columns), np.full(n_columns, np.inf)
        low[first_rest:] = 0.0 if elastic else -np.inf
        high[: node.allowed.size] = node.allowed.ravel()
        bounds = np.column_stack([low, high])
        equal = self._equalities(needed, n_columns)
        found = _minimum(cost, upper, sides, equal, n_bins, bounds, self.left())
        if found is None:
            return None
        x, dual = found
        slopes = np.ones(n_bins)
        if not elastic:  # of every bin's tangents, averaged by their multipliers
            used, share = dual[-len(self.bins) :], problem.share
            self.idle = np.where(used > 0.0, 0, self.idle + 1)
            slopes = np.bincount(self.bins, used / self.points, len(share)) / share
        parts = np.maximum(x[: n_bins * n_scales].reshape(n_bins, n_scales), 0.0)
        parts /= parts.sum(axis=1, keepdims=True)
        totals = np.zeros(n_scales)
        np.add.at(totals, ends, -way * dual[len(bins) :][: len(ends)])
        return Multipliers(bins, places, signs, dual[: len(bins)] / size, slopes, totals), parts

    def _equalities(self, needed: Ints, n_columns: int) -> Any:
        """Return the matrix of: parts of a bin add up to one, and masses are what the parts make them."""
        n_bins, n_scales, _ = self.problem.masses.shape
        n_types, of_needed = n_bins * n_scales, np.arange(len(needed))
        mass = self.problem.masses[:, :, needed] * self.problem.records[:, None, None] / self.scale[needed]
        mass = mass.reshape(n_types, -1)
        types, at = np.nonzero(mass > 1e-13)
        entries = [
            (np.repeat(np.arange(n_bins), n_scales), np.arange(n_types), np.ones(n_types)),
            (n_bins + at, types, mass[types, at]),
            (n_bins + of_needed, n_types + of_needed, np.full(len(needed), -1.0)),
        ]
        return _sparse(entries, n_bins + len(needed), n_columns)


def _sparse(entries: list[Any], n_rows: int, n_columns: int) -> Any:
    """Return a sparse matrix from triples (rows, columns, values)."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_array((values, (rows, columns)), shape=(n_rows, n_columns))


def _minimum(
    cost: Floats, upper: Any, right: Floats, equal: Any, n_ones: int, bounds: Floats, seconds: float
) -> tuple[Floats, Floats] | None:
    """Return where a linear program has its least value, and minus the multipliers of its inequalities.

    The right sides of the equalities are ones, n_ones of them, and then zeros.
    """
    from scipy import optimize

    linprog: Any = optimize.linprog  # its types know no sparse matrices
    how: Any = {"options": {"time_limit": seconds}} if math.isfinite(seconds) else {}
    sides = np.concatenate([np.ones(n_ones), np.zeros(equal.shape[0] - n_ones)])
    found = linprog(
        cost, A_ub=upper, b_ub=right, A_eq=equal, b_eq=sides, bounds=bounds, method="highs", **how
    )
    if found.status != 0:
        return None
    return found.x, np.maximum(-found.ineqlin.marginals, 0.0)
