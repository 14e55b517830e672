"""How far from the best: a number that the divergence of no certified profile falls below."""

import math
import warnings

from equinoise import _checks, replicates
from equinoise._typing import ArrayLike
from equinoise.nvo.bound.program import Cuts
from equinoise.nvo.bound.relaxation import make_problem, root
from equinoise.nvo.bound.tree import FIRST, Tree
from equinoise.nvo.search.dynamics import checked_game, ratio_limits

__all__ = ["lower_bound"]

_FIRST_GAP = 1e-4  # to which the first program is solved, relative


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

    Arrays as for :func:`equinoise.nvo.search.anneal`; at most so many nodes, convex programs, in each of
    three trees of branch and bound, each a tenth of a second for a hundred bins; it stops soon after so many
    seconds, or with a warning after Ctrl-C, with what it has, and where the bound reaches `enough`, in nats:
    the divergence of a profile at hand, say. With that more is proved in less time, for what leads to more is
    left out: a scale of a bin where a record of it adds that much to the bound of a node. That no profile is
    certified is then said only where the first program proves it, else `enough` is returned.

    The relaxation lets a bin of few records mix what they cannot mix: a scale too narrow to be allowed and
    another one, of which the average is allowed, at a price (:mod:`equinoise.nvo.bound.relaxation`). Where
    that happens, the program is solved twice more: without the scales that are too narrow there, and with a
    record at least that uses one of them and is satisfied. And all bins together may have a part of a record
    with wide noise: then with at most the next lower whole number, and with at least the next higher one.
    What a record needs that is there for certain, whole ones must give: that is asked for wherever it
    reaches. And it is of some bin: which one is asked. The lesser value is a bound, and so it goes on at the
    node with the least one. Such numbers and bins help, or only cost time: so three trees grow in turns, one
    without them, one with numbers, and, where `enough` says which bins cost too much, one with few numbers
    and bins; the best bound counts. No value of a solver enters the result: its multipliers are put into the
    Lagrange dual, a bound for any of them, less what rounding can have added (``dual_bound``). Limits are
    loosened by 1e-12, the lower one by that part of 1/n: profiles whose check was rounded in their favour
    count.
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
    kinds = FIRST if enough < math.inf else FIRST[:-1]
    trees = [Tree(cuts, node, solution, enough, first) for first in kinds]
    bound, growing, told = solution.bound, trees, 0.0
    try:
        while bound < enough and growing:
            tree = min(growing, key=lambda tree: tree.programs)
            if not tree.grow(nodes):
                growing = [other for other in growing if other is not tree]
            bound = max(tree.bound for tree in trees)
            done = sum(tree.solved for tree in trees) / (nodes * len(trees))
            done = max(done, 1.0 - cuts.left() / seconds) if 0.0 < seconds < math.inf else done
            replicates.tick(done - told)
            told = done
    except KeyboardInterrupt:  # in the midst of a tree, whose leaves are no longer all
        warnings.warn("the bound was interrupted: this is the best so far", stacklevel=2)
    return max(min(bound, enough), 0.0)
