"""Searches over arrays: annealing, enumeration of tiny games, and the genetic search.

They know nothing of where masses come from: M[k, v, x] is what a record of bin k with scale v gives to bin x.
"""

import math
import sys
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Floats, Ints, Iterator, Words
from equinoise.nvo.registry import INTERRUPTED, SEARCHES
from equinoise.nvo.search.dynamics import Found, Table, checked_counts
from equinoise.nvo.search.kernels import draws, enumeration, moves

_PIECE = 20_000  # steps, or profiles, between two looks at whether the user wants to stop
_LARGEST_ENUMERATION = 20_000_000
_PAIR = 0.4  # of the proposals are two transfers at once
_COOLED = 3e-4  # the last temperature, by what a record is worth, 1/n
_HOT, _WARM = 3.0, 0.05  # and the first ones: of a run, and of the last one
_SHORT, _LAST = 0.4, 0.2  # parts of the steps: of all short runs, and of the last one
_RUNS, _KEPT = 13, 3  # short runs at most, and how many are gone on with
_REPAIRED = 1e-5  # and of repairs
_GAIN = 5e-13  # a smaller one is none: divergences are sums of rounded logarithms
_SWEEPS = 1000
_LARGEST_HERD = 2**30  # options of all parents
_AN_HOUR, _MOST_HOURS, _A_CHILD = 3.6e12, 24.0, 100  # masses and options that are looked at
_LOOKED_AT = 10**10  # masses, by proposals that are each judged from scratch


def anneal(
    kernel: ArrayLike,
    bin_counts: ArrayLike,
    epsilon: float,
    *,
    seed: int | None = 0,
    replicate: int = 0,
    start: ArrayLike | None = None,
    steps: int = 9_000_000,
) -> Found:
    """Search by simulated annealing, as :meth:`equinoise.nvo.NoiseGame.anneal`.

    The noise matrix is float64[K, V, K], or float64[R, V, K] of the R bins with records; bin_counts int64[K]
    the histogram. With epsilon below about 1/n each proposal looks at all masses, and there are fewer, and
    less polish, where it would take minutes.
    """
    steps = SEARCHES["anneal"].options["steps"].check("steps", steps)
    replicate = _checks.integer("replicate", replicate, 0, 2**63 - 1)
    table = Table(kernel, bin_counts, epsilon, widest_first=True)
    given = []
    if start is not None:
        counts = checked_counts("start", start, table.bin_counts, table.shape[1], "bin_counts'")
        given.append(counts[np.ix_(table.occupied, table.order)].ravel())
    steps = min(steps, _affordable(table))
    words = np.zeros(4, dtype=np.uint64)
    draws.first_words(stream_key(seed), replicate, words)
    chosen = _certified_start(table, given, words, steps)
    if table.evaluate(chosen)[0] < table.game.n or table.shape[1] < 2:
        return table.found(chosen)

    def worth(counts: Ints) -> tuple[int, float]:
        satisfied, kl = table.evaluate(counts)
        return satisfied, -kl

    uniform = max(map(table.uniform, range(table.shape[1])), key=worth)
    if worth(uniform) >= (table.game.n, -_GAIN):
        return table.found(uniform)
    best = chosen.copy()
    try:
        _anneal(table, best, words, steps)
        best = _polished(table, max(best, uniform, key=worth))
    except KeyboardInterrupt:  # a second one ends it all
        warnings.warn(INTERRUPTED, stacklevel=3)
        return replace(table.found(max(best, uniform, key=worth)), ended=False)
    return table.found(best)


def _affordable(table: Table) -> int:
    """Return how many proposals can be judged: with a lower limit on M/S that is from scratch."""
    return _LOOKED_AT // table.game.masses.size if table.game.low > 0.0 else sys.maxsize


def _pieces(steps: int) -> Iterator[int]:
    """Yield how many steps come next, looking in between whether the user wants to stop."""
    for done in range(0, steps, _PIECE):
        replicates.tick()
        yield min(_PIECE, steps - done)


def _certified_start(table: Table, given: list[Ints], words: Words, steps: int, first: int = 0) -> Ints:
    """Return a certified profile of the scales from the first one on, or one with most satisfied records."""
    candidates = given + [table.uniform(v) for v in range(first, table.shape[1])]
    best, most = candidates[0], -1
    for counts in candidates:
        satisfied, _ = table.evaluate(counts)
        if satisfied > most:
            best, most = counts, satisfied
        if most == table.game.n:
            return best
    repaired = _repaired(table, candidates[0], words, steps, first) if len(candidates) > 1 else best
    return repaired if table.evaluate(repaired)[0] > most else best


def _repaired(table: Table, counts: Ints, words: Words, steps: int, first: int) -> Ints:
    """Return what lowering the excess over the limits leads to, certified or not."""
    state = table.state(counts)
    now = moves.excess(table.game, state, 0, 0, 0, 0, 0, 0)
    numbers = np.array([now, now, 0.1 * now, _REPAIRED ** (1.0 / max(steps, 1))])
    for piece in _pieces(steps):
        if moves.repair(table.game, state, words, numbers, _PAIR, first, piece):
            break
    return np.asarray(state.counts)


def _anneal(table: Table, best: Ints, words: Words, steps: int) -> None:
    """Put the best profile of all runs in the place of the certified one that they start from.

    A run rarely gives up the wide scales it starts with: none of their records can leave alone. So short
    runs leave out none, one, two .. of the widest; the best are gone on with, and the best one with all.
    """

    def run(start: Ints, first: int, heat: float, n_steps: int) -> tuple[float, Ints]:
        state, found = table.state(start), start.copy()
        _, now = table.evaluate(start)
        numbers = np.array([now, now, heat / table.game.n, (_COOLED / heat) ** (1.0 / max(n_steps, 1))])
        try:
            for piece in _pieces(n_steps):
                moves.anneal(table.game, state, found, words, numbers, _PAIR, first, piece)
                replicates.tick(piece / steps)
        finally:
            if numbers[1] < table.evaluate(best)[1]:
                best[:] = found
        return float(numbers[1]), found

    n_runs = min(table.shape[1] - 1, _RUNS)
    short, last = int(_SHORT * steps) // n_runs, int(_LAST * steps)
    found = []
    for first in np.linspace(0, table.shape[1] - 2, n_runs).astype(int).tolist():
        start = _certified_start(table, [], words, short, first) if first else best
        if table.evaluate(start)[0] == table.game.n:
            found.append((*run(start, first, _HOT, short), first))
        else:
            replicates.tick(short / max(steps, 1))
    kept = sorted(found, key=lambda each: each[0])[:_KEPT]
    long = (steps - n_runs * short - last) // len(kept)
    for _, start, first in kept:
        run(start, first, _HOT, long)
    run(best, 0, _WARM, steps - n_runs * short - len(kept) * long)


def _polished(table: Table, counts: Ints) -> Ints:
    """Return a local optimum: transfers of one record or a whole type are made while they pay."""
    state = table.state(counts)
    for _ in range(min(_SWEEPS, _affordable(table) // (len(counts) * table.shape[1]))):
        replicates.tick()
        if moves.polish(table.game, state, table.evaluate(state.counts)[1], _GAIN)[1] == 0:
            break
        state = table.state(state.counts)
    return np.asarray(state.counts)


def exhaustive(kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> Found:
    """Look at every profile of a tiny game: the most satisfied records, and of these the least divergence.

    A game of more than 20 million profiles, the product over bins of (n_k + V - 1) choose (V - 1), raises
    ValueError. The order of a bin's profiles: Nijenhuis, Wilf (1978), *Combinatorial Algorithms*, chapter 5.
    """
    table = Table(kernel, bin_counts, epsilon)
    n_scales = table.shape[1]
    n_profiles = math.prod(math.comb(k + n_scales - 1, n_scales - 1) for k in table.records.tolist())
    if n_profiles > _LARGEST_ENUMERATION:
        most = f"at most {_LARGEST_ENUMERATION} profiles"
        raise ValueError(f"bin_counts must leave {most}, got {n_profiles} with {n_scales} scales")
    counts = table.uniform(0)
    best, numbers = counts.copy(), np.array([-1.0, math.inf])
    while enumeration.exhaust(table.game, counts, best, numbers, table.work, _PIECE):
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
    """Search by a genetic algorithm, as :meth:`equinoise.nvo.NoiseGame.genetic`, over arrays."""
    options = SEARCHES["genetic"].options
    size = options["population"].check("population", population)
    n_parents = _checks.integer("parents", parents, 2, size)
    n_kept = _checks.integer("kept", kept, 0, n_parents)
    generations = options["generations"].check("generations", generations)
    rate = _checks.number("mutation", mutation, 0.0, 1.0)
    table = Table(kernel, bin_counts, epsilon)
    n, n_types = table.game.n, min(table.game.n, len(table.game.masses))
    if n_parents * n > _LARGEST_HERD:
        raise ValueError(f"parents must be few enough for 2 GiB, got {n_parents:,} of {n:,} records each")
    hours = (generations + 1) * size * (_A_CHILD + n + n_types * len(table.bin_counts)) / _AN_HOUR
    if hours > _MOST_HOURS:
        found = f"{generations:,} with a population of {size:,}: about {hours:,.0f} hours"
        raise ValueError(f"generations must be few enough for a day, got {found}")
    herd = _Herd(table, stream_key(seed), n_parents, n_kept, -math.inf if rate == 1.0 else math.log1p(-rate))
    payoffs, ended = np.empty(size), True
    try:
        for generation in range(generations + 1):
            replicates.tick(1.0 / (generations + 1))
            herd.step(generation, payoffs)
    except KeyboardInterrupt:
        warnings.warn(INTERRUPTED, stacklevel=3)
        ended = False
    return replace(table.found(herd.counts_of(herd.options[0])), ended=ended)


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
        game = self.table.game
        own = np.stack([self.counts_of(options) for options in self.options])
        enumeration.breed(
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
            enumeration.random_options(self.key, child, n_scales, options)
        else:
            enumeration.cross_options(self.key, child, generation, self.options, n_scales, self.stay, options)
        return options

    def counts_of(self, options: NDArray[np.int16]) -> Ints:
        """Return the counts int64[T] of a parent."""
        counts = np.empty_like(self.counts)
        enumeration.count_options(self.starts, options, self.table.shape[1], counts)
        return counts
