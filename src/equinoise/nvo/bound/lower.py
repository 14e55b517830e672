"""How far from the best: a number that the divergence of no certified profile falls below."""

import heapq
import itertools
import math

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Floats
from equinoise.nvo.bound.relaxation import Cuts, Node, Problem, Solution, make_problem
from equinoise.nvo.search.dynamics import checked_game, ratio_limits

_FIRST_GAP = 1e-4  # to which the first program is solved, relative
_GAP = 2e-3  # and the others
_USED = 1e-7  # a larger part of a bin's records counts as use
_NOT_SATISFIED = 1e-6  # relative excess over a limit


def lower_bound(
    kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float, *, nodes: int = 32, enough: float = math.inf
) -> float:
    """Return a KL that no certified profile goes below; infinite when it is proven that there is none.

    Parameters
    ----------
    kernel : float64[K, V, K] or float64[R, V, K]
        The noise matrix M[k, v, x]; of all bins, or of the R bins that hold records.
    bin_counts, epsilon : int64[K], float
        The histogram, and what every record asks for.
    nodes : int
        Convex programs to solve at most, in branch and bound; 1 is the plain relaxation. A tenth of a second
        each for a hundred bins.
    enough : float
        Stop as soon as the bound, in nats and never negative, reaches this.

    Notes
    -----
    The relaxation lets a bin of few records mix what they cannot mix: a scale too small to be allowed and
    another one, of which the average is allowed. Where that happens, the program is solved twice more:
    without that type, and with a record at least that uses it and is satisfied. The lesser value is a bound,
    and so it goes on at the node with the least one.

    No value of a solver enters the result. Its multipliers are put into the Lagrange dual, which is a bound
    for any multipliers, and the most that rounding can have added is subtracted
    (:func:`equinoise.nvo.bound.relaxation.dual_bound`); so is it proven that a node has no certified profile.
    Limits are loosened by 1e-12, so profiles whose check was rounded in their favour are covered.

    Examples
    --------
    >>> masses = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.1, 0.9], [0.5, 0.5]]])
    >>> round(lower_bound(masses, [2, 1], epsilon=1.0), 4)
    0.0024
    >>> lower_bound(masses[:, :1], [1, 1], epsilon=0.1)
    inf
    """
    nodes = _checks.integer("nodes", nodes, 1)
    enough = _checks.number("enough", enough, 0.0, finite=False)
    masses, counts, epsilon = checked_game(kernel, bin_counts, epsilon)
    low, high, _ = ratio_limits(int(counts.sum()), epsilon)
    problem = make_problem(masses, counts, low, high)
    return max(_least_leaf(problem, nodes, enough), 0.0)


def _least_leaf(problem: Problem, nodes: int, enough: float) -> float:
    """Return the least bound among the leaves of the tree when the search stops."""
    shape = problem.masses.shape[:2]
    root = Node(np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_))
    cuts, order = Cuts(problem), itertools.count()
    solution = cuts.relax(root, _FIRST_GAP)
    leaves = [(solution.bound, next(order), root, solution)]
    solved = 1
    while leaves[0][0] < enough and solved + 1 < nodes:
        bound, _, node, solution = leaves[0]
        branch = _branch(problem, node, solution)
        if branch is None:
            break
        heapq.heappop(leaves)
        for child in _children(node, *branch):
            solution = cuts.relax(child, _GAP)
            solved += 1
            heapq.heappush(leaves, (max(bound, solution.bound), next(order), child, solution))
    return leaves[0][0]


def _branch(problem: Problem, node: Node, solution: Solution) -> tuple[int, int] | None:
    """Return the type (bin, scale) to decide on, None when nothing is left to decide.

    That is a type in use that breaks a limit, else one that less than one record uses.
    """
    if solution.parts is None or solution.mass is None:
        return None
    parts = np.where((solution.parts > _USED) & ~node.forced, solution.parts, 0.0)
    excess = _excess(problem, solution.mass)
    score = np.where(excess > _NOT_SATISFIED, parts * (1.0 - solution.parts) * np.minimum(excess, 1.0), 0.0)
    if not score.any():
        records = parts * problem.records[:, None]
        score = np.where(records < 1.0 - 1e-6, records * (1.0 - records), 0.0)
    if not score.any():
        return None
    i, v = np.unravel_index(int(score.argmax()), score.shape)
    return int(i), int(v)


def _excess(problem: Problem, mass: Floats) -> Floats:
    """Return by which part every type breaks its worse limit at a given mass, float64[R, V]."""
    ratio = np.divide(problem.masses, mass, out=np.zeros_like(problem.masses), where=mass > 0.0)
    excess = ratio.max(axis=2) / problem.high - 1.0
    if problem.low > 0.0:
        excess = np.maximum(excess, 1.0 - ratio[:, :, mass > 0.0].min(axis=2) / problem.low)
    return np.asarray(excess)


def _children(node: Node, i: int, v: int) -> list[Node]:
    """Return the node without type (i, v), unless it is the last one of its bin, and the node with it."""
    without, forced = node.allowed.copy(), node.forced.copy()
    without[i, v] = False
    forced[i, v] = True
    children = [Node(without, node.forced)] if without[i].any() else []
    return [*children, Node(node.allowed, forced)]
