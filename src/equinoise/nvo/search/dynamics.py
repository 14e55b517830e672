"""Best-response dynamics: set up the kernels' arrays, let them run in pieces, and start again where asked."""

from __future__ import annotations

import functools
import math
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise.nvo.ratios import checked_counts
from equinoise.nvo.search.kernels import response
from equinoise.nvo.search.kernels import response_state as _state

__all__ = ["STARTS", "Found", "all_largest", "all_satisfied", "checked_start", "run"]

STARTS = ("largest", "random")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GROUPS = 2**15  # turns of a round, about: up to so many records all take turns alone
_WORK = 2**21  # numbers looked at between two looks at the clock: some milliseconds


class Found(NamedTuple):
    """Where the dynamics ended: counts int64[K, V], rounds, and whether nobody wanted another option."""

    counts: Ints
    rounds: int
    converged: bool


class _Task(NamedTuple):
    """What a block of restarts needs, picklable."""

    game: _state.Game
    bin_counts: Ints
    start: Ints  # int64[K, V], or empty: drawn at random
    key: NDArray[np.uint64]
    max_rounds: int


def checked_start(start: str | ArrayLike, bin_counts: Ints, scales: Floats) -> Ints | None:
    """Return the profile int64[K, V] that a start stands for; None: a run draws it."""
    if not isinstance(start, str):
        return checked_counts("start", start, bin_counts, len(scales))
    return None if _checks.choice("start", start, STARTS) == "random" else all_largest(bin_counts, scales)


def all_largest(bin_counts: Ints, scales: Floats) -> Ints:
    """Return the profile int64[K, V] in which all of int64[K] records use the largest scale."""
    counts = np.zeros((len(bin_counts), len(scales)), dtype=np.int64)
    counts[:, int(np.argmax(scales))] = bin_counts
    return counts


def run(
    decay: Floats,
    total: Floats,
    bin_counts: Ints,
    epsilon: float,
    *,
    start: Ints | None,
    seed: int | None,
    restarts: int = 1,
    max_rounds: int = 10_000,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Found]:
    """Run the dynamics from a profile, or from random ones.

    Parameters
    ----------
    decay : float64[V, K]
        exp(-d/(K b_v)) at a distance of d bins.
    total : float64[K, V]
        What makes it a mass: M[k, v, x] = decay[v, |k - x|]/total[k, v].
    bin_counts : int64[K]
        The histogram, n records.
    epsilon : float
    start : int64[K, V], optional
        Where to start; by default every record draws a scale.
    seed : int or None
        For the order of turns, and for a random start. Restart r is the same for any number of them.
    restarts : int
        How often to run.
    max_rounds : int
        Rounds after which to give up.
    executor, progress
        As of :func:`equinoise.replicates.run`.

    Returns
    -------
    list of Found
        One for each restart.
    """
    game = _make_game(decay, total, bin_counts, epsilon)
    first = np.empty((0, 0), dtype=np.int64) if start is None else start
    task = _Task(game, bin_counts, first, stream_key(seed), max_rounds)
    counts, rounds, converged = replicates.run(
        functools.partial(_run_block, task), restarts, executor=executor, progress=progress
    )
    return [Found(counts[r], int(rounds[r]), bool(converged[r])) for r in range(restarts)]


def all_satisfied(decay: Floats, total: Floats, counts: Ints, epsilon: float) -> bool:
    """Return whether a profile, counts int64[K, V], satisfies everybody."""
    bin_counts = counts.sum(axis=1)
    game = _make_game(decay, total, bin_counts, epsilon)
    state = _make_state(game, bin_counts)
    _place(game, state, counts)
    response.begin(game, state)
    return bool(state.number[_state.UNSATISFIED] == 0)


def _place(game: _state.Game, state: _state.State, counts: Ints) -> None:
    """Put counts int64[K, V] into the state."""
    n_bins, n_scales, width = (int(size) for size in game.sizes[:3])
    state.types[_state.COUNT].reshape(n_bins, width)[:, :n_scales] = counts


def _run_block(task: _Task, first: int, last: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    found = [_run_one(task, r) for r in range(first, last)]
    counts, rounds, converged = zip(*found, strict=True)
    return np.array(counts), np.array(rounds), np.array(converged)


def _run_one(task: _Task, replicate: int) -> Found:
    n_bins, n_scales, width = (int(size) for size in task.game.sizes[:3])
    state = _make_state(task.game, task.bin_counts)
    counts = state.types[_state.COUNT].reshape(n_bins, width)
    if task.start.size:
        _place(task.game, state, task.start)
    else:
        response.draw_types(task.key, replicate, width, n_scales, task.bin_counts, state.types[_state.COUNT])
    response.begin(task.game, state)
    unit = max(1, int(task.bin_counts.sum()) // _GROUPS)
    turns, sizes = _groups(state.types[_state.COUNT], unit)
    response.shuffle(task.key, replicate, 0, turns, sizes)
    for played in range(task.max_rounds):
        if unit > 1 and played > 0:
            turns, sizes = _groups(state.types[_state.COUNT], unit)
            response.shuffle(task.key, replicate, played, turns, sizes)
        if _play_round(task.game, state, turns, sizes):
            return Found(counts[:, :n_scales].copy(), played + 1, True)
    return Found(counts[:, :n_scales].copy(), task.max_rounds, False)


def _groups(count: Ints, unit: int) -> tuple[Ints, Ints]:
    """Return types and sizes of groups of at most `unit` records that make up the counts."""
    n_groups = -(-count // unit)
    turns = np.repeat(np.arange(len(count)), n_groups)
    sizes = np.full(len(turns), unit)
    last = np.cumsum(n_groups)[count > 0] - 1
    sizes[last] = (count - (n_groups - 1) * unit)[count > 0]
    return turns, sizes


def _play_round(game: _state.Game, state: _state.State, turns: Ints, sizes: Ints) -> bool:
    """Give every group its turn, in pieces between which a run can be stopped."""
    piece = max(1, _WORK // (len(game.occupied) * int(game.sizes[_state.WIDTH])))
    for first in range(0, len(turns), piece):
        replicates.tick()
        if response.take_turns(game, state, turns, sizes, first, min(first + piece, len(turns))):
            return True
    return False


def _make_game(decay: Floats, total: Floats, bin_counts: Ints, epsilon: float) -> _state.Game:
    n_scales, n_bins = decay.shape
    n = int(bin_counts.sum())
    width, padded = _whole(n_scales, _state.LANES), _whole(n_bins, _state.PIECE)
    both = np.concatenate([decay[:, :0:-1], decay], axis=1)
    along = np.zeros(both.size + _state.PIECE)
    along[: both.size] = both.reshape(-1)
    across = np.zeros((both.shape[1], width))
    across[:, :n_scales] = both.T
    weight = np.zeros((n_bins, width))
    weight[:, :n_scales] = 1.0 / total
    sizes = np.array([n_bins, n_scales, width, padded, n])
    game = (
        along,
        across.reshape(-1),
        weight.reshape(-1),
        np.flatnonzero(bin_counts),
        _limits(n, epsilon),
        sizes,
    )
    return _state.Game(*game)


def _limits(n: int, epsilon: float) -> Floats:
    """Return Game.limits."""
    alone = -math.log1p(-1.0 / n)
    above = math.expm1(min(epsilon + alone, 709.0))
    below = max(0.0, math.expm1(alone - epsilon))
    tau_high, tau_low = above / (1.0 + above), below / (1.0 + below)
    crowd = math.inf if tau_low > 0.0 else math.ceil((1.0 + 1e-9) / tau_high)
    return np.array([tau_high, tau_low, above, below, crowd, min(1e-12, 1e-9 / n)])


def _make_state(game: _state.Game, bin_counts: Ints) -> _state.State:
    n_bins, _, width, padded, n = (int(size) for size in game.sizes)
    bins = np.zeros((7, padded))
    bins[_state.SHARE, :n_bins] = bin_counts / (n * math.log(n_bins))
    types = np.zeros((7, n_bins * width), dtype=np.int64)
    types[[_state.SEEN, _state.PLACE_RARE, _state.PLACE_USED]] = -1
    tight = np.full((2, _state.N_TIGHT), -1)
    factor = np.array([1.0, 1.0, math.inf, 0.0, 1.0, 1.0])
    return _state.State(
        bins,
        types,
        np.zeros((2, n_bins * width)),
        tight,
        np.zeros(width),
        np.zeros(9, dtype=np.int64),
        factor,
    )


def _whole(n: int, piece: int) -> int:
    return -(-n // piece) * piece
