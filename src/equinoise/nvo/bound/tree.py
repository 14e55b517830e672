"""Branch and bound: what a node falls into, and trees of nodes."""

import heapq

import numpy as np

from equinoise._typing import Callable, Flags, Floats
from equinoise.nvo.bound.program import Cuts, Solution
from equinoise.nvo.bound.relaxation import Node, Problem

_GAP = 2e-3  # to which the programs of nodes are solved, relative
_PART = 0.05  # of what a node lacks to be enough, to which its program is solved
_USED = 1e-7  # a larger part of a bin's records counts as use
_NOT_SATISFIED = 1e-6  # relative excess over a limit
_WHOLE = 1e-6  # nearer to a whole number is one
_FEW = 4  # records with wide noise, of which it is asked which bins they are of
_WIDE = 0.25  # wide noise leaves less of a record in its own bin

Branching = Callable[[Problem, Node, Floats, float], list[Node]]


class Tree:
    """Nodes whose least bound is one for all profiles: leaves (bound, number, node, solution), a heap.

    It knows a way to branch that is tried before that by types, how many nodes it has `solved`, and how many
    linear programs that took.
    """

    def __init__(self, cuts: Cuts, node: Node, solution: Solution, enough: float, first: Branching) -> None:
        self.cuts, self.enough, self.first = cuts, enough, first
        self.leaves = [(solution.bound, 0, _without(node, solution, enough), solution)]
        self.solved, self.programs, self.ended = 1, 0, False

    @property
    def bound(self) -> float:
        """Return the least bound of all leaves."""
        return self.leaves[0][0]

    def grow(self, nodes: int) -> bool:
        """Put what the node with the least bound falls into in its place; return whether it could be done."""
        bound, _, node, solution = self.leaves[0]
        children = _children(self.cuts.problem, node, solution, self.first)
        if self.ended or self.solved + max(len(children), 1) > nodes or self.cuts.left() == 0.0:
            return False
        heapq.heappop(self.leaves)
        before = self.cuts.programs
        for child in children or [node]:  # again where nothing is left to decide, but to solve it better
            solution = self.cuts.relax(child, _GAP, self.enough, _PART if children else 0.0)
            child = _without(child, solution, self.enough)
            heapq.heappush(self.leaves, (max(bound, solution.bound), self.solved, child, solution))
            self.solved += 1
        self.programs += self.cuts.programs - before
        self.ended = not children and solution.bound <= bound
        return True


def _without(node: Node, solution: Solution, enough: float) -> Node:
    """Return a node without types of which a record makes the divergence more than enough."""
    if solution.rises is None:
        return node
    allowed = node.allowed & ~(solution.bound + solution.rises > enough)
    return node._replace(allowed=allowed) if allowed.any(axis=1).all() else node


def _children(problem: Problem, node: Node, solution: Solution, first: Branching) -> list[Node]:
    """Return the nodes that a node falls into, none where nothing is left to decide."""
    if solution.parts is None or solution.mass is None:
        return []
    left = np.where(node.allowed, solution.parts, 0.0)  # some may have been left out since
    score = _unlike(problem, node, left, solution.mass)
    if found := first(problem, node, left, float(score.max())):
        return found
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


def by_types(*_: object) -> list[Node]:
    """Return nothing: there is no other way to branch."""
    return []


def by_numbers(
    problem: Problem, node: Node, parts: Floats, score: float, most: float = np.inf, own: float = 1.0
) -> list[Node]:
    """Return the nodes with fewer and with more records of the widest scales where there are parts of one.

    That is none where what can be gained by types, with such a score, seems to be more. Numbers are below
    `most`, of scales that leave at most `own` in a record's own bin.
    """
    numbers = np.cumsum((problem.records @ parts)[problem.widest])
    whole = np.floor(numbers + _WHOLE)
    some = (numbers - whole > _WHOLE) & (whole < most) & (problem.own <= own)
    over = np.where(some, numbers - whole, 0.0)
    over *= (1.0 - over) * (1.0 - problem.own) / np.maximum(numbers, 1.0)
    v = int(over.argmax())
    if over[v] <= score:
        return []
    fewer, more = node.most.copy(), node.least.copy()
    fewer[v], more[v] = whole[v], whole[v] + 1
    return [node._replace(most=fewer), node._replace(least=more)]


def by_bins(problem: Problem, node: Node, parts: Floats, _: float) -> list[Node]:
    """Return nodes for the bins that one of few records with wide noise can be of, where none has it whole.

    Each has a record of its bin, and none of those before it; the last one has none of all of these.
    """
    rank = np.argsort(problem.widest)
    for v in np.flatnonzero((node.least > 0) & (node.least <= _FEW)):
        types = node.allowed & (rank <= v)
        given = (parts * types).sum(axis=1) * problem.records * ~node.asked.any(axis=1)
        given -= np.floor(given + _WHOLE)
        order = np.argsort(given * (given - 1.0), kind="stable")
        nodes: list[Node] = []
        for i in order[given[order] > _WHOLE].tolist():
            nodes.append(node._replace(asked=_with(node.asked, i, types[i])))
            rest = node.allowed[i] & ~types[i]
            if not rest.any():
                return nodes
            node = node._replace(allowed=_with(node.allowed, i, rest))
        if nodes:
            return [*nodes, node]
    return by_numbers(problem, node, parts, 0.0, _FEW, _WIDE)


FIRST: tuple[Branching, ...] = by_numbers, by_types, by_bins


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
