"""How far from the best: a number that the divergence of no certified profile falls below."""

import heapq
import math

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Flags, Floats
from equinoise.nvo.bound.program import Cuts, Solution
from equinoise.nvo.bound.relaxation import Node, Problem, make_problem, root
from equinoise.nvo.search.dynamics import checked_game, ratio_limits

__all__ = ["lower_bound"]

_FIRST_GAP = 1e-4  # to which the first program is solved, relative
_GAP = 2e-3  # and the others
_USED = 1e-7  # a larger part of a bin's records counts as use
_NOT_SATISFIED = 1e-6  # relative excess over a limit
_PART = 0.05  # of what a node lacks to be enough, to which its program is solved
_WHOLE = 1e-6  # nearer to a whole number is one


def lower_bound(
    kernel: ArrayLike,
    bin_counts: ArrayLike,
    epsilon: float,
    *,
    nodes: int = 32,
    enough: float = math.inf,
    seconds: float = math.inf,
) -> float:
    """Return a KL that no certified profile goes below; infinite when it is proven that there is none.

    Arrays as for :func:`equinoise.nvo.search.anneal`; at most so many nodes, convex programs, in each of two
    trees of branch and bound, each a tenth of a second for a hundred bins; it stops soon after so many
    seconds, with what it has, and where the bound reaches `enough`, in nats: the divergence of a profile at
    hand, say. With that more is proved in less time, for what leads to more is left out: a scale of a bin
    where a record of it adds that much to the bound of a node. That no profile is certified is then said only
    where the first program proves it, else `enough` is returned.

    The relaxation lets a bin of few records mix what they cannot mix: a scale too narrow to be allowed and
    another one, of which the average is allowed, at a price (:mod:`equinoise.nvo.bound.relaxation`). Where
    that happens, the program is solved twice more: without the scales that are too narrow there, and with a
    record at least that uses one of them and is satisfied. And all bins together may have a part of a record
    with wide noise: then with at most the next lower whole number, and with at least the next higher one.
    What a record needs that is there for certain, whole ones must give: that is asked for wherever it
    reaches. The lesser value is a bound, and so it goes on at the node with the least one. Such numbers help,
    or only cost time: so two trees grow in turns, one without them, and the better bound counts. No value of
    a solver enters the result: its multipliers are put into the Lagrange dual, a bound for any of them, less
    what rounding can have added (``dual_bound``). Limits are loosened by 1e-12, the lower one by that part of
    1/n: profiles whose check was rounded in their favour count.
    """
    nodes = _checks.integer("nodes", nodes, 1, 10**6)
    enough = _checks.number("enough", enough, 0.0, finite=False)
    masses, counts, epsilon = checked_game(kernel, bin_counts, epsilon)
    low, high, _ = ratio_limits(int(counts.sum()), epsilon)
    problem = make_problem(masses, counts, low, high)
    cuts, node = Cuts(problem, seconds), root(problem)
    solution = cuts.relax(node, _FIRST_GAP, enough)
    if solution.bound >= enough:
        return solution.bound
    trees = [_Tree(cuts, node, solution, enough, by_number=by_number) for by_number in (True, False)]
    bound, grown = solution.bound, True
    while bound < enough and grown:
        grown = sum(tree.grow(nodes) for tree in trees) > 0
        bound = max(tree.bound for tree in trees)
    return max(min(bound, enough), 0.0)


class _Tree:
    """Nodes whose least bound is one for all profiles: leaves (bound, number, node, solution), a heap."""

    def __init__(self, cuts: Cuts, node: Node, solution: Solution, enough: float, *, by_number: bool) -> None:
        self.cuts, self.enough, self.by_number = cuts, enough, by_number
        self.leaves = [(solution.bound, 0, _without(node, solution, enough), solution)]
        self.solved, self.ended = 1, False

    @property
    def bound(self) -> float:
        """Return the least bound of all leaves."""
        return self.leaves[0][0]

    def grow(self, nodes: int) -> bool:
        """Put what the node with the least bound falls into in its place; return whether there was time."""
        if self.ended or self.solved + 1 >= nodes or self.cuts.left() == 0.0:
            return False
        bound, _, node, solution = heapq.heappop(self.leaves)
        children = _children(self.cuts.problem, node, solution, by_number=self.by_number)
        for child in children or [node]:  # again where nothing is left to decide, but to solve it better
            solution = self.cuts.relax(child, _GAP, self.enough, _PART if children else 0.0)
            child = _without(child, solution, self.enough)
            heapq.heappush(self.leaves, (max(bound, solution.bound), self.solved, child, solution))
            self.solved += 1
        self.ended = not children and solution.bound <= bound
        return True


def _without(node: Node, solution: Solution, enough: float) -> Node:
    """Return a node without types of which a record makes the divergence more than enough."""
    if solution.rises is None:
        return node
    allowed = node.allowed & ~(solution.bound + solution.rises > enough)
    return node._replace(allowed=allowed) if allowed.any(axis=1).all() else node


def _children(problem: Problem, node: Node, solution: Solution, *, by_number: bool) -> list[Node]:
    """Return the nodes that a node falls into, none where nothing is left to decide."""
    if solution.parts is None or solution.mass is None:
        return []
    left = np.where(node.allowed, solution.parts, 0.0)  # some may have been left out since
    score = _unlike(problem, node, left, solution.mass)
    numbers = np.cumsum((problem.records @ left)[problem.widest])
    whole = np.floor(numbers + _WHOLE)
    over = np.where(numbers - whole > _WHOLE, numbers - whole, 0.0)
    over *= (1.0 - over) * (1.0 - problem.own) / np.maximum(numbers, 1.0)
    v = int(over.argmax())
    if by_number and over[v] > score.max():
        fewer, more = node.most.copy(), node.least.copy()
        fewer[v], more[v] = whole[v], whole[v] + 1
        return [node._replace(most=fewer), node._replace(least=more)]
    if not score.any():
        records = np.where(left > _USED, left, 0.0) * problem.records[:, None]
        score = np.where(records < 1.0 - _WHOLE, records * (1.0 - records), 0.0)
    i, v = map(int, np.unravel_index(int(score.argmax()), score.shape))
    if score[i, v] <= 0.0:
        return []
    least = problem.masses[i, :, problem.occupied[i]] / problem.high  # mass that a scale needs
    narrow = node.allowed[i] & (least > (1.0 + _WHOLE) * solution.mass[problem.occupied[i]])
    if not (left[i] > _USED)[narrow].any() or (narrow == node.allowed[i]).all():
        narrow = np.arange(len(least)) == v
    using = node._replace(asked=_with(node.asked, i, narrow))
    rest = node.allowed[i] & ~narrow
    if not (node.asked[i] & rest if node.asked[i].any() else rest).any():
        return [using]
    others = _with(node.allowed, i, rest)
    return [node._replace(allowed=others, asked=node.asked & others), using]


def _with(flags: Flags, i: int, row: Flags) -> Flags:
    """Return flags with another row i."""
    return np.where(np.arange(len(flags))[:, None] == i, row, flags)


def _unlike(problem: Problem, node: Node, parts: Floats, mass: Floats) -> Floats:
    """Return by how much what is in use, parts float64[R, V], breaks a limit, by what it can cost."""
    alone = node.asked & (node.asked.sum(axis=1, keepdims=True) == 1)
    parts = np.where((parts > _USED) & ~alone, parts, 0.0)
    ratio = np.divide(problem.masses, mass, out=np.zeros_like(problem.masses), where=mass > 0.0)
    excess = ratio.max(axis=2) / problem.high - 1.0  # by which part every type breaks its worse limit
    if problem.low > 0.0:
        excess = np.maximum(excess, 1.0 - ratio[:, :, mass > 0.0].min(axis=2) / problem.low)
    cost = (problem.records / mass[problem.occupied])[:, None]
    return np.where(excess > _NOT_SATISFIED, parts * (1.0 - parts) * np.minimum(excess, 1.0) * cost, 0.0)
