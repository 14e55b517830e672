"""Annealing: the search for the certified profile nearest to the histogram, as a function over arrays.

It knows nothing of where masses come from: M[k, v, x] is what a record of bin k with scale v gives to bin x.
"""

import sys

import numpy as np

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Ints, Iterator, Words
from equinoise.nvo.search.dynamics import Found, Table, checked_counts
from equinoise.nvo.search.kernels import anneal as compiled
from equinoise.nvo.search.kernels.transfers import excess

_PIECE = 20_000  # steps between two looks at whether the user wants to stop
_PAIR = 0.4  # of the proposals are two transfers at once
_HOT = 0.01  # first temperature, in units of the start's divergence; _HOT_RECORDS / n where that is more
_HOT_RECORDS = 3.0
_COOLED = 1e-5  # the last temperature by the first
_GAIN = 5e-13  # a smaller one is none: divergences are sums of rounded logarithms
_SWEEPS = 1000
_LOOKED_AT = 10**10  # masses, by proposals that are each judged from scratch


def anneal(
    kernel: ArrayLike,
    bin_counts: ArrayLike,
    epsilon: float,
    *,
    seed: int | None = 0,
    replicate: int = 0,
    start: ArrayLike | None = None,
    steps: int = 200_000,
) -> Found:
    """Search by simulated annealing among certified profiles, then polish.

    Parameters
    ----------
    kernel : float64[K, V, K] or float64[R, V, K]
        The noise matrix M[k, v, x], each row adding up to one; of all bins, or of the R bins that hold
        records.
    bin_counts : int64[K]
        The histogram.
    epsilon : float
    seed : int or None
        The same seed and replicate give the same bits. None takes randomness from the operating system.
    replicate : int
        Which of the seed's streams to use.
    start : int64[K, V], optional
        A profile to start from. By default all use the scale with the widest noise that certifies everybody.
    steps : int
        Proposals: a microsecond each for a hundred bins. With epsilon below about 1/n each looks at all
        masses, and there are fewer, and less polish, where there are so many that it would take minutes.

    Returns
    -------
    Found
        Certified if any profile on the way was, and then no single record, and no whole group of one type,
        can lower the divergence any more. Never worse than a certified start. If nothing certified was found
        it is the profile that satisfied the most records.

    Notes
    -----
    A proposal moves all, one or some of a type's records to another scale of their bin, and two proposals in
    five do that with two types at once. Steps never leave the certified profiles, and what they pay is the
    divergence. If no uniform profile is certified, a first run lowers the excess over the limits until one
    is found.

    References
    ----------
    .. [1] Kirkpatrick, Gelatt, Vecchi (1983), *Optimization by Simulated Annealing*, Science 220.

    Examples
    --------
    >>> x = (np.arange(11) + 0.5) / 11
    >>> masses = np.exp(-np.abs(x[:, None, None] - x) / np.array([0.5, 0.001])[:, None])
    >>> masses /= masses.sum(axis=2, keepdims=True)
    >>> found = anneal(masses, [0, 0, 5, 9, 12, 9, 4, 0, 0, 1, 0], epsilon=1.0)
    >>> found.certified, found.counts[9].tolist(), round(found.kl, 3)
    (True, [1, 0], 0.044)
    """
    steps = _checks.integer("steps", steps, 0)
    replicate = _checks.integer("replicate", replicate, 0, 2**63 - 1)
    table = Table(kernel, bin_counts, epsilon)
    first = None
    if start is not None:
        given = checked_counts("start", start, table.bin_counts, table.shape[1], "bin_counts'")
        first = given[table.occupied].ravel()
    steps = min(steps, _affordable(table))
    words = np.zeros(4, dtype=np.uint64)
    compiled.first_words(stream_key(seed), replicate, words)
    chosen = _certified_start(table, first, words, steps)
    if table.evaluate(chosen)[0] < table.game.n or table.shape[1] < 2:
        return table.found(chosen)
    return table.found(_polished(table, _annealed(table, chosen, words, steps)))


def _affordable(table: Table) -> int:
    """Return how many proposals can be judged: with a lower limit on M/S that is from scratch."""
    return _LOOKED_AT // table.game.masses.size if table.game.low > 0.0 else sys.maxsize


def _pieces(steps: int) -> Iterator[int]:
    """Yield how many steps come next, looking in between whether the user wants to stop."""
    for done in range(0, steps, _PIECE):
        replicates.tick()
        yield min(_PIECE, steps - done)


def _certified_start(table: Table, first: Ints | None, words: Words, steps: int) -> Ints:
    """Return a certified profile to start from, or the one with most satisfied records that was seen."""
    masses = table.game.masses.reshape(len(table.records), table.shape[1], -1)
    own = masses[np.arange(len(masses)), :, table.occupied].max(axis=0)
    candidates = [] if first is None else [first]
    candidates += [table.uniform(int(v)) for v in np.argsort(own, kind="stable")]
    best, most = candidates[0], -1
    for counts in candidates:
        satisfied, _ = table.evaluate(counts)
        if satisfied > most:
            best, most = counts, satisfied
        if most == table.game.n:
            return best
    repaired = _repaired(table, candidates[0], words, steps) if table.shape[1] > 1 else best
    return repaired if table.evaluate(repaired)[0] > most else best


def _repaired(table: Table, counts: Ints, words: Words, steps: int) -> Ints:
    """Return what lowering the excess over the limits leads to, certified or not."""
    state = table.state(counts)
    now = excess(table.game, state, 0, 0, 0, 0, 0, 0)
    numbers = np.array([now, now, 0.1 * now, _COOLED ** (1.0 / max(steps, 1))])
    for piece in _pieces(steps):
        if compiled.repair(table.game, state, words, numbers, _PAIR, piece):
            break
    return np.asarray(state.counts)


def _annealed(table: Table, counts: Ints, words: Words, steps: int) -> Ints:
    """Return the best profile of a run that starts from a certified one."""
    state, best = table.state(counts), counts.copy()
    _, now = table.evaluate(counts)
    hot = max(_HOT, _HOT_RECORDS / table.game.n) * max(table.evaluate(table.uniform(0))[1], now)
    numbers = np.array([now, now, hot, _COOLED ** (1.0 / max(steps, 1))])
    for piece in _pieces(steps):
        compiled.anneal(table.game, state, best, words, numbers, _PAIR, piece)
    return best


def _polished(table: Table, counts: Ints) -> Ints:
    """Return a local optimum: transfers of one record or a whole type are made while they pay."""
    state = table.state(counts)
    for _ in range(min(_SWEEPS, _affordable(table) // (len(counts) * table.shape[1]))):
        replicates.tick()
        _, now = table.evaluate(state.counts)
        if compiled.polish(table.game, state, now, _GAIN)[1] == 0:
            break
        state = table.state(state.counts)
    return np.asarray(state.counts)
