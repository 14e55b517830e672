"""Best-response dynamics: set up the compiled functions' arrays, let them run in pieces, and start again."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Flags, Floats, Ints, Words
from equinoise.nvo.search.kernels import response, response_state as _state
from equinoise.nvo.search.table import checked_counts

__all__ = ["STARTS", "all_largest", "all_satisfied", "checked_start", "run"]

STARTS = ("largest", "random")

_GROUPS = 2**15  # turns of a round, about: up to so many records all take turns alone
_WORK = 2**21  # numbers looked at between two looks at the clock: some milliseconds


class _Task(NamedTuple):
    """What a block of restarts needs, picklable."""

    game: _state.Game
    bin_counts: Ints
    start: Ints | None  # int64[K, V], or drawn at random
    key: Words
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
) -> Iterator[tuple[Ints, int, bool]]:
    """Run the dynamics from a profile int64[K, V], or from random ones, over records int64[K].

    decay float64[V, K] and total float64[K, V] are those of :class:`equinoise.nvo.noise.LaplaceNoise`, the
    rest as for :meth:`equinoise.nvo.NoiseGame.best_response`. Yield of every restart the counts int64[K, V],
    the rounds, and whether nobody wanted another option. Restart r is the same for any number of them.
    """
    game = make_game(decay, total, bin_counts, epsilon)
    task = _Task(game, bin_counts, start, stream_key(seed), max_rounds)
    run_block = functools.partial(_run_block, task)
    found = replicates.run(run_block, restarts, executor=executor, progress=progress)
    for counts, rounds, converged in zip(*found, strict=True):
        yield counts, int(rounds), bool(converged)


def all_satisfied(decay: Floats, total: Floats, counts: Ints, epsilon: float) -> bool:
    """Return whether a profile, counts int64[K, V], satisfies everybody."""
    bin_counts = counts.sum(axis=1)
    game = make_game(decay, total, bin_counts, epsilon)
    state = make_state(game, bin_counts)
    by_bin(game, state)[:] = counts
    response.begin(game, state)
    return bool(state.now.unsatisfied == 0)


def by_bin(game: _state.Game, state: _state.State) -> Ints:
    """Return the state's counts, seen as int64[K, V]."""
    counts: Ints = state.types[_state.COUNT].reshape(game.of.n_bins, -1)
    return counts[:, : game.of.n_scales]


def _run_block(task: _Task, first: int, last: int) -> tuple[Ints, Ints, Flags]:
    found = [_run_one(task, r) for r in range(first, last)]
    counts, rounds, converged = zip(*found, strict=True)
    return np.array(counts), np.array(rounds), np.array(converged)


def _run_one(task: _Task, replicate: int) -> tuple[Ints, int, bool]:
    game, key, of = task.game, task.key, task.game.of
    state = make_state(game, task.bin_counts)
    counts = by_bin(game, state)
    if task.start is not None:
        counts[:] = task.start
    else:
        response.draw_types(key, replicate, of.width, of.n_scales, task.bin_counts, state.types[_state.COUNT])
    response.begin(game, state)
    unit = max(1, game.of.n // _GROUPS)
    turns, sizes = _groups(state.types[_state.COUNT], unit)
    response.shuffle(key, replicate, 0, turns, sizes)
    for played in range(task.max_rounds):
        if unit > 1 and played > 0:
            turns, sizes = _groups(state.types[_state.COUNT], unit)
            response.shuffle(key, replicate, played, turns, sizes)
        if _play_round(game, state, turns, sizes):
            return counts.copy(), played + 1, True
    return counts.copy(), task.max_rounds, False


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
    piece = max(1, _WORK // (len(game.occupied) * game.of.width))
    for first in range(0, len(turns), piece):
        replicates.tick()
        if response.take_turns(game, state, turns, sizes, first, min(first + piece, len(turns))):
            return True
    return False


def make_game(decay: Floats, total: Floats, bin_counts: Ints, epsilon: float) -> _state.Game:
    """Return what the compiled functions need of a game: noise, histogram and limits."""
    n_scales, n_bins = decay.shape
    n = int(bin_counts.sum())
    width, padded = _whole(n_scales, _state.LANES), _whole(n_bins, _state.PIECE)
    both = np.concatenate([decay[:, :0:-1], decay], axis=1)
    along = np.append(both, np.zeros(_state.PIECE))
    across = np.zeros((both.shape[1], width))
    across[:, :n_scales] = both.T
    weight = np.zeros((n_bins, width))
    weight[:, :n_scales] = 1.0 / total
    of = np.array([(n_bins, n_scales, width, padded, n, *_limits(n, epsilon))], dtype=_state.OF)
    occupied = np.flatnonzero(bin_counts)
    return _state.Game(along, across.reshape(-1), weight.reshape(-1), occupied, of.view(np.recarray)[0])


def _limits(n: int, epsilon: float) -> tuple[float, ...]:
    """Return tau_high, tau_low, odds_high, odds_low, crowd and least_gain of a game."""
    alone = -math.log1p(-1.0 / n)
    above = math.expm1(min(epsilon + alone, 709.0))
    below = max(0.0, math.expm1(alone - epsilon))
    tau_high, tau_low = above / (1.0 + above), below / (1.0 + below)
    crowd = math.inf if tau_low > 0.0 else float(math.ceil((1.0 + 1e-9) / tau_high))
    return tau_high, tau_low, above, below, crowd, min(1e-12, 1e-9 / n)


def make_state(game: _state.Game, bin_counts: Ints) -> _state.State:
    """Return a state without records."""
    bins, n_types = np.zeros((7, game.of.padded)), game.of.n_bins * game.of.width
    bins[_state.SHARE, : game.of.n_bins] = bin_counts / (game.of.n * math.log(game.of.n_bins))
    types = np.zeros((7, n_types), dtype=np.int64)
    types[[_state.SEEN, _state.PLACE_RARE, _state.PLACE_USED]] = -1
    now: Any = np.zeros(1, dtype=_state.NOW).view(np.recarray)[0]
    now.down = now.up = now.low = now.high = 1.0
    now.worst = math.inf
    length, tight = np.zeros(7, dtype=np.int64), np.full((2, _state.N_TIGHT), -1)
    return _state.State(bins, types, length, np.zeros((2, n_types)), tight, np.zeros(game.of.width), now)


def _whole(n: int, piece: int) -> int:
    return -(-n // piece) * piece
