"""Enumeration of profiles: exact in tiny games, and the genetic search that the paper calls approximate."""

import math

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Floats, Ints, Words
from equinoise.nvo.search.dynamics import Found, Table
from equinoise.nvo.search.kernels import enumeration as compiled

_PIECE = 20_000  # profiles between two looks at whether the user wants to stop
_LARGEST_ENUMERATION = 20_000_000


def exhaustive(kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> Found:
    """Look at every profile of a tiny game.

    Parameters
    ----------
    kernel, bin_counts, epsilon
        As for :func:`equinoise.nvo.search.anneal`.

    Returns
    -------
    Found
        The certified profile with the least divergence. If none is certified, the one that satisfies the most
        records, and of these the one with the least divergence.

    Notes
    -----
    Refused are games of more than 20 million profiles: the product over bins of (n_k + V - 1) choose (V - 1).

    References
    ----------
    .. [1] Nijenhuis, Wilf (1978), *Combinatorial Algorithms*, chapter 5, for the order of a bin's profiles.

    Examples
    --------
    >>> masses = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.1, 0.9], [0.5, 0.5]]])
    >>> exhaustive(masses, [2, 1], epsilon=1.0).counts.tolist()
    [[1, 1], [0, 1]]
    """
    table = Table(kernel, bin_counts, epsilon)
    n_scales = table.shape[1]
    n_profiles = math.prod(math.comb(k + n_scales - 1, n_scales - 1) for k in table.records.tolist())
    if n_profiles > _LARGEST_ENUMERATION:
        raise ValueError(
            f"bin_counts must leave at most {_LARGEST_ENUMERATION} profiles, got {n_profiles} "
            f"with {n_scales} scales"
        )
    counts = table.uniform(0)
    best, numbers = counts.copy(), np.array([-1.0, math.inf])
    while compiled.exhaust(table.game, counts, best, numbers, table.work, _PIECE):
        replicates.tick()
    return table.found(best)


def genetic(
    kernel: ArrayLike,
    bin_counts: ArrayLike,
    epsilon: float,
    *,
    seed: int | None = 0,
    generations: int = 200,
    population: int = 500,
    parents: int = 10,
    mutation: float = 0.05,
    kept: int = 5,
) -> Found:
    """Search by a genetic algorithm over the records' options, the paper's approximate enumeration.

    Parameters
    ----------
    kernel, bin_counts, epsilon, seed
        As for :func:`equinoise.nvo.search.anneal`.
    generations : int
        After the first, which is random.
    population : int
        Profiles of a generation.
    parents : int
        The best of a generation, of which the next one's children are made; at least 2.
    mutation : float
        Probability of a record to change to another option, in every child.
    kept : int
        The best of a generation that live on; at most `parents`.

    Returns
    -------
    Found
        The best of the last generation; certified only if it happens to be.

    Notes
    -----
    The payoff is the number of satisfied records + 1 - KL/ln K. Two cuts are drawn for every child, over
    records in order of their bins.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), appendix B.

    Examples
    --------
    >>> masses = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.1, 0.9], [0.5, 0.5]]])
    >>> genetic(masses, [2, 1], epsilon=1.0, generations=3).counts.tolist()
    [[1, 1], [0, 1]]
    """
    size = _checks.integer("population", population, 2)
    n_parents = _checks.integer("parents", parents, 2, size)
    n_kept = _checks.integer("kept", kept, 0, n_parents)
    generations = _checks.integer("generations", generations, 0)
    rate = _checks.number("mutation", mutation, 0.0, 1.0)
    table = Table(kernel, bin_counts, epsilon)
    herd = _Herd(table, stream_key(seed), n_parents, n_kept, -math.inf if rate == 1.0 else math.log1p(-rate))
    payoffs = np.empty(size)
    for generation in range(generations + 1):
        replicates.tick()
        herd.step(generation, payoffs)
    return table.found(herd.best())


class _Herd:
    """The parents of a genetic search: options int16[P, n], best first."""

    def __init__(self, table: Table, key: Words, n_parents: int, n_kept: int, stay: float) -> None:
        self.table, self.key, self.n_kept, self.stay = table, key, n_kept, stay
        self.starts = np.concatenate([[0], np.cumsum(table.records)])
        self.options = np.zeros((n_parents, table.game.n), dtype=np.int16)
        self.counts = table.uniform(0)

    def step(self, generation: int, payoffs: Floats) -> None:
        """Fill the payoffs of a generation, best first, and make its best the parents."""
        first = self.n_kept if generation else 0
        game, n_scales = self.table.game, self.table.shape[1]
        own = np.empty((len(self.options), len(self.counts)), dtype=np.int64)
        for options, counts in zip(self.options, own, strict=True):
            compiled.count_options(self.starts, options, n_scales, counts)
        compiled.breed(
            game, self.starts, self.key, generation, self.options, own, self.stay,
            first, payoffs, np.empty(game.n, dtype=np.int16), self.counts, self.table.work,
        )  # fmt: skip
        order = np.argsort(-payoffs, kind="stable")
        self.options = np.stack([self._child(int(c), generation, first) for c in order[: len(self.options)]])
        payoffs[:] = payoffs[order]

    def _child(self, child: int, generation: int, first: int) -> NDArray[np.int16]:
        """Return the options of a member of this generation, made again from its address."""
        if child < first:
            return np.array(self.options[child])
        options: NDArray[np.int16] = np.empty(self.table.game.n, dtype=np.int16)
        n_scales = self.table.shape[1]
        if generation == 0:
            compiled.random_options(self.key, child, n_scales, options)
        else:
            compiled.cross_options(self.key, child, generation, self.options, n_scales, self.stay, options)
        return options

    def best(self) -> Ints:
        """Return the best parent's counts int64[T]."""
        compiled.count_options(self.starts, self.options[0], self.table.shape[1], self.counts)
        return self.counts
