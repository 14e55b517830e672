"""The linear programs of the relaxation: tangents and rows are added where they fail, until little does."""

import math
import time

import numpy as np

from equinoise import replicates
from equinoise._typing import Any, Flags, Floats, NamedTuple
from equinoise.nvo.bound import relaxation
from equinoise.nvo.bound.relaxation import (
    NO_BIN,
    Multipliers,
    Node,
    Problem,
    dual_bound,
    left_sides,
    lifts,
    rounded,
)
from equinoise.nvo.bound.solver import Basis, Solver

_SPREAD = 8  # tangents of an occupied bin at the start
_PATIENCE = 3  # linear programs that a tangent lives on for without being used
_ROWS_A_BIN, _ROWS_A_SET = 6, 3  # added at once
_BROKEN = 1e-7  # part of its right side by which a row must fail to be added
_CLOSE = 2e-7  # nearer than this a linear program's tolerance does not come
_ROUNDS = 60
_NEVER = 2.0**60  # a unit that nothing reaches
_UNITS, _DIVISORS = 10, 3  # the roundings that are tried: of what most is left of, and of its parts
_LEAST_PART, _MOST_UNITS, _SMALLEST_NEED = 0.05, 20, 1e-100
_GAINED = 1e-3  # by which part a row with a rounding must fail to be added
_USED = 1e-9  # a smaller part of a bin's records is rounding
_SMALLEST = 1e-6  # where a row fails, a tangent is no nearer to 0 than this part of the mass
_MASS = 1e-13  # of what is there: a smaller one is none
_LEAST_SCALE = 1e-6  # of the largest mass: with smaller units HiGHS loses its way
_STALLED = 4
_GRID = np.linspace(-1.0, 1.0, 9)
_WIDTHS = 4.0 * 0.25 ** np.arange(8)

Rounding = tuple[float, float]


class Solution(NamedTuple):
    """Of a node: a bound, by how much a record of a type raises it, rises float64[R, V], the solution.

    That is parts float64[R, V] of a bin's records and mass float64[K], None where unknown.
    """

    bound: float
    rises: Floats | None = None
    parts: Floats | None = None
    mass: Floats | None = None


class Cuts:
    """Rows and tangents that some node needed; they serve all nodes.

    The keys of `rows` are (bin or NO_BIN, place, sign, rounding), and what they lead to are numbers of
    `views`, (place, rounding), the occupied bins' first: counted float64[R, V] there are what a bin's records
    leave, rounded. Tangents: bins int64[j], at which mass, points float64[j], of which kind, whole bool[j],
    and for how many programs unused, idle int64[j]. parts float64[R, V] are the last program's, last the
    basis that it ended in, by kinds of columns and rows, and `programs` their number.
    """

    def __init__(self, problem: Problem, seconds: float) -> None:
        self.problem, self.deadline = problem, time.monotonic() + seconds
        n_bins, n_scales, _ = problem.masses.shape
        mass = np.einsum("kvx,k->x", problem.masses, problem.records) / n_scales
        own, shared = problem.records, mass[problem.occupied]
        self.rows: dict[tuple[int, int, float, Rounding], int] = {}
        self.views: dict[tuple[int, Rounding], int] = {}
        self.counted: list[Floats] = []
        for i, x in enumerate(problem.occupied.tolist()):
            self._row(i, x, 1.0)
        self.bins = np.repeat(np.arange(n_bins), _SPREAD)
        low, high = np.minimum(own, shared) / 2.0, np.maximum(own, shared) * 2.0
        self.points = np.geomspace(low, high, _SPREAD, axis=1).ravel()
        self.idle = np.zeros(len(self.bins), dtype=np.int64)
        self.whole = np.zeros(len(self.bins), dtype=np.bool_)
        self.parts = np.full((n_bins, n_scales), 1.0 / n_scales)
        self.solver = Solver()
        self.last: list[list[Any]] = []
        self.programs = 0

    def relax(self, node: Node, gap: float, enough: float = math.inf, part: float = 0.0) -> Solution:
        """Bound a node: solve, add what fails, until near: by `gap`, or a part of what enough lacks."""
        best, stalled = Solution(-math.inf), 0
        for _ in range(_ROUNDS):
            replicates.tick()
            solved = self._solve(node)
            if solved is None:  # and where it is proven, no profile of the node is certified
                proof = None if self.left() == 0.0 else self._solve(node, elastic=True)
                if proof and dual_bound(self.problem, node, proof[0], objective=False)[0] > 0.0:
                    return Solution(math.inf)
                break
            multipliers, parts = solved
            mass = np.einsum("kv,kvx->x", parts * self.problem.records[:, None], self.problem.masses)
            points, kinds, logs = _tangents(self.problem, node, parts, mass[self.problem.occupied])
            value = float(self.problem.share @ (np.log(self.problem.records) + logs))
            slopes = np.where(multipliers.slopes > 0.0, multipliers.slopes, 1.0 / points)
            bound, rises = dual_bound(self.problem, node, multipliers._replace(slopes=slopes))
            close = max(gap * value, _CLOSE)
            stalled = 0 if bound > best.bound + 0.1 * close else stalled + 1
            if bound > best.bound:
                best = Solution(bound, rises)
            if part > 0.0 and math.isfinite(enough):
                close = max(close, part * (enough - best.bound))
            worst = self._add(node, parts, mass, points, kinds)
            best = best._replace(parts=parts, mass=mass)
            found = worst <= 10.0 * _BROKEN and value - best.bound <= close
            if found or stalled == _STALLED or best.bound >= enough:
                break
        return best

    def _row(self, i: int, x: int, sign: float, rounding: Rounding = relaxation.PLAIN) -> None:
        """Add a row, and what it looks at, where they are new."""
        view = self.views.setdefault((x, rounding), len(self.views))
        if view == len(self.counted):
            some = rounded(self.problem.masses[:, :, x, None], np.array([rounding]))[:, :, 0]
            self.counted.append(some * self.problem.records[:, None])
        self.rows[i, x, sign, rounding] = view

    def left(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self.deadline - time.monotonic())

    def _add(self, node: Node, parts: Floats, mass: Floats, points: Floats, kinds: Flags) -> float:
        """Add tangents at points and the rows that fail most; return by which part the worst one fails."""
        occupied = self.problem.occupied
        lives = np.flatnonzero(self.idle < _PATIENCE)
        self.bins = np.concatenate([self.bins[lives], np.arange(len(occupied))])
        self.points = np.concatenate([self.points[lives], points])
        self.whole = np.concatenate([self.whole[lives], kinds])
        self.idle = np.concatenate([self.idle[lives], np.zeros(len(occupied), dtype=np.int64)])
        if self.last:
            self.last[1][2] = self.last[1][2][lives]
        self.parts = parts
        worst = max(self._round(parts), self._share(node, parts))
        for sign, limit in ((1.0, self.problem.high), (-1.0, self.problem.low)):
            if limit > 0.0:
                fails = self._fails(node, parts, mass, sign, limit)
                worst = max(worst, float(fails.max()))
                places = np.argsort(-fails, axis=1, kind="stable")[:, :_ROWS_A_BIN]
                most = np.take_along_axis(fails, places, axis=1)
                for i, x in zip(*np.nonzero(most > _BROKEN), strict=True):
                    self._row(int(i), int(places[i, x]), sign)
        return worst

    def _round(self, parts: Floats) -> float:
        """Add rows with roundings where a bin's only record needs the others; return as `_add`.

        The unit is what a record leaves that gives much, or a part of it, and the part of a unit what is then
        missing; or there is no unit, and nobody gives more than what is needed.
        """
        problem, worst, times = self.problem, 0.0, relaxation.odds(self.problem)
        bins, scales = np.nonzero(parts > _USED)
        given = parts[bins, scales] * problem.records[bins]
        for i in np.flatnonzero(problem.records == 1.0):
            x = int(problem.occupied[i])
            own, left = problem.masses[i, :, x], np.where(bins != i, problem.masses[bins, scales, x], 0.0)
            most = left[np.argsort(-left * given, kind="stable")[:_UNITS]]
            most = (most / np.arange(1, _DIVISORS + 1)[:, None]).ravel()
            needs = times * own[scales[bins == i]]
            for need in needs[needs > _SMALLEST_NEED].tolist():
                units = most[most * _MOST_UNITS > need]
                roundings = np.column_stack([units, need / units % 1.0])
                roundings = roundings[roundings[:, 1] > _LEAST_PART]
                roundings = np.vstack([roundings, (_NEVER, need / _NEVER)])
                needed = parts[i] @ rounded(times * own[:, None], roundings)
                found = given @ rounded(left[:, None], roundings)
                fails = np.divide(needed, found, out=np.full(len(found), np.inf), where=found > 0.0) - 1.0
                at = int(fails.argmax())
                if fails[at] > _GAINED:
                    worst = max(worst, float(fails[at]))
                    self._row(int(i), x, 1.0, (float(roundings[at, 0]), float(roundings[at, 1])))
        return worst

    def _share(self, node: Node, parts: Floats) -> float:
        """Add rows of what a node's certain records need where they reach; return as `_add`.

        What others leave counts as it is, or no more of it than is needed.
        """
        problem, worst = self.problem, 0.0
        bins, scales = np.nonzero(parts > _USED)
        given, left = parts[bins, scales] * problem.records[bins], problem.masses[bins, scales]
        for types in relaxation.certain(problem, node):
            need = relaxation.odds(problem) * problem.masses[types].min(axis=0)
            places = np.flatnonzero(need > _SMALLEST_NEED)
            plain = np.tile(relaxation.PLAIN, (len(places), 1))
            no_more = np.column_stack([np.full(len(places), _NEVER), need[places] / _NEVER])
            for roundings in (plain, no_more):
                least = relaxation.needed(problem, types, places, roundings)
                found = given @ rounded(left[:, places], roundings)
                fails = np.divide(least, found, out=np.full(len(found), np.inf), where=found > 0.0) - 1.0
                for at in np.argsort(-fails, kind="stable")[:_ROWS_A_SET]:
                    if fails[at] > _GAINED:
                        worst = max(worst, float(fails[at]))
                        self._row(NO_BIN, int(places[at]), 1.0, tuple(roundings[at].tolist()))
        return worst

    def _fails(self, node: Node, parts: Floats, mass: Floats, sign: float, limit: float) -> Floats:
        """Return by which part of its right side every row of one sign fails, float64[R, K]."""
        left = np.einsum("kv,kvx->kx", parts, self.problem.masses)
        places = np.arange(len(mass))
        for i in np.flatnonzero(node.asked.any(axis=1)):
            bins, signs = np.full(len(mass), i), np.full(len(mass), sign)
            left[i] = left_sides(self.problem, node, bins, places, signs) @ parts[i]
        right = limit * mass
        return np.asarray(np.divide(sign * (left - right), right, out=np.zeros_like(left), where=right > 0.0))

    def _solve(self, node: Node, *, elastic: bool = False) -> tuple[Multipliers, Floats] | None:
        """Solve one linear program; return its multipliers and parts float64[R, V], None without a solution.

        Variables are the parts, the masses (in units near their values) that rows or tangents look at, and
        for every occupied bin t >= -ln(mass); sum q t is minimised. An elastic program has no tangents and
        minimises by how much all rows are allowed to fail: its multipliers say why they fail.
        """
        from scipy.sparse import vstack

        self.programs += 1
        problem = self.problem
        n_bins, n_scales, _ = problem.masses.shape
        bins, places, signs, roundings = (np.array(part) for part in zip(*self.rows, strict=True))
        seen, left_there = np.array(list(self.rows.values())), np.stack(self.counted, axis=2)
        scale = np.einsum("kv,kvx->x", self.parts, left_there)
        scale = np.maximum(scale, _LEAST_SCALE * scale.max())
        first_mass, first_rest = n_bins * n_scales, n_bins * n_scales + len(scale)
        n_columns = first_rest + (1 if elastic else n_bins)
        # rows, each divided by its size
        left = left_sides(problem, node, bins, places, signs, roundings)
        right = np.where(signs > 0.0, problem.high, problem.low) * scale[seen]
        size = np.maximum(left.max(axis=1), right)
        row = np.arange(len(bins))
        types = np.maximum(bins, 0)[:, None] * n_scales + np.arange(n_scales)
        entries = [
            (np.repeat(row, n_scales), types.ravel(), (left * (signs / size)[:, None]).ravel()),
            (row, first_mass + seen, -signs * right / size),
        ]
        sides = -problem.high * relaxation.constants(problem, node, bins, places, roundings) / size
        cost = np.zeros(n_columns)
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
        if not elastic:  # tangents, h - t - mass/point <= ln(point) - 1
            row = len(sides) + np.arange(len(self.bins))
            entries.append((row, first_rest + self.bins, np.full(len(row), -1.0)))
            entries.append((row, first_mass + self.bins, -scale[self.bins] / self.points))
            lifted = lifts(problem, node, self.bins, 1.0 / self.points, self.whole)
            at, v = np.nonzero(lifted)
            entries.append((row[at], self.bins[at] * n_scales + v, lifted[at, v]))
            sides = np.concatenate([sides, np.log(self.points) - 1.0])
            cost[first_rest:] = problem.share
        upper = _sparse(entries, len(sides), n_columns)
        # forbidden types have no records
        low, high = np.zeros(n_columns), np.full(n_columns, np.inf)
        low[first_rest:] = 0.0 if elastic else -np.inf
        high[: node.allowed.size] = node.allowed.ravel()
        equal = self._equalities(node, left_there / scale, n_columns)
        ones = np.repeat([1.0, 0.0], [n_bins, len(scale)])
        limits = np.column_stack([np.append(np.full(len(sides), -np.inf), ones), np.append(sides, ones)])
        columns, matrix = np.column_stack([low, high]), vstack([upper, equal], format="csr")
        others = len(sides) - len(bins) - len(self.bins)
        kinds = (len(bins), others, len(self.bins), n_bins, len(scale))
        sizes = ((first_mass, len(scale), n_bins), kinds)
        basis = None
        if self.last and not elastic:
            basis = Basis(*(self._fitted(*each) for each in zip(self.last, sizes, strict=True)))
        found = self.solver.minimum(cost, columns, matrix, limits, self.left(), basis)
        if found is None:
            return None
        x, dual = found.x, np.maximum(-found.multipliers[: len(sides)], 0.0)
        slopes = np.ones(n_bins)
        if not elastic:  # of every bin's tangents, averaged by their multipliers
            pairs = zip(found.basis, sizes, strict=True)
            self.last = [np.split(part, np.cumsum(size)[:-1]) for part, size in pairs]
            used, share = dual[-len(self.bins) :], problem.share
            self.idle = np.where(used > 0.0, 0, self.idle + 1)
            slopes = np.bincount(self.bins, used / self.points, len(share)) / share
        parts = np.maximum(x[: n_bins * n_scales].reshape(n_bins, n_scales), 0.0)
        parts /= parts.sum(axis=1, keepdims=True)
        totals = np.zeros(n_scales)
        np.add.at(totals, ends, -way * dual[len(bins) :][: len(ends)])
        return Multipliers(bins, places, signs, roundings, dual[: len(bins)] / size, slopes, totals), parts

    def _fitted(self, parts: list[Any], sizes: tuple[int, ...]) -> Any:
        """Return statuses of so many columns or rows of each kind: those known, the others are basic."""
        pairs = zip(parts, sizes, strict=True)
        more = (np.append(part, np.full(size, self.solver.basic))[:size] for part, size in pairs)
        return np.concatenate(list(more))

    def _equalities(self, node: Node, mass: Floats, n_columns: int) -> Any:
        """Return the matrix of: parts of a bin add up to one, and masses are what the parts make them."""
        n_bins, n_scales, _ = self.problem.masses.shape
        n_types, of_needed = n_bins * n_scales, np.arange(mass.shape[2])
        mass = mass.reshape(n_types, -1)
        types, at = np.nonzero((mass > _MASS) & node.allowed.reshape(-1, 1))
        entries = [
            (np.repeat(np.arange(n_bins), n_scales), np.arange(n_types), np.ones(n_types)),
            (n_bins + at, types, mass[types, at]),
            (n_bins + of_needed, n_types + of_needed, np.full(len(of_needed), -1.0)),
        ]
        return _sparse(entries, n_bins + len(of_needed), n_columns)


def _tangents(problem: Problem, node: Node, parts: Floats, mass: Floats) -> tuple[Floats, Flags, Floats]:
    """Return where -ln S has its best tangents, float64[R], their kinds bool[R] and values float64[R].

    By a search among nine slopes, and then between the best one's neighbours, for both kinds of lifts.
    """
    every = np.repeat(np.arange(len(mass)), len(_GRID))
    points, kinds, values = mass, np.zeros(len(mass), dtype=np.bool_), np.full(len(mass), -np.inf)
    for width in _WIDTHS:
        tried = np.maximum(points[:, None] * np.exp(width * _GRID), _SMALLEST * mass[:, None])
        for whole in (False, True):
            slopes = 1.0 / tried.ravel()
            lifted = lifts(problem, node, every, slopes, np.full(len(every), whole))
            found = 1.0 + np.log(slopes) - slopes * mass[every] + (parts[every] * lifted).sum(axis=1)
            found = found.reshape(tried.shape)
            at = found.argmax(axis=1)[:, None]
            value = np.take_along_axis(found, at, axis=1)[:, 0]
            better = value > values
            values, kinds = np.where(better, value, values), np.where(better, whole, kinds)
            points = np.where(better, np.take_along_axis(tried, at, axis=1)[:, 0], points)
    return points, kinds, values


def _sparse(entries: list[Any], n_rows: int, n_columns: int) -> Any:
    """Return a sparse matrix from triples (rows, columns, values)."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    return csr_array((values, (rows, columns)), shape=(n_rows, n_columns))
