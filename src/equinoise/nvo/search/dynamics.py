"""Best-response dynamics: set up the compiled functions' arrays, let them run in pieces, and start again."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, replicates
from equinoise._checkpoint import kept_as
from equinoise._random import stream_key
from equinoise._typing import Any, ArrayLike, Callable, Flags, Floats, Ints, Iterator, Words
from equinoise.nvo.histogram import sealed
from equinoise.nvo.kernels import Game, evaluate
from equinoise.nvo.search.kernels import response, response_state as _state

_GROUPS = 2**15  # turns of a round, about: up to so many records all take turns alone
_BLOCK = 8  # restarts, of which Ctrl-C loses those that it interrupts
_WORK = 2**21  # numbers looked at between two looks at the clock: some milliseconds


def ratio_limits(n: int, epsilon: float) -> tuple[float, float, float]:
    """Return low, high and odds, (1 - high)/high: a record of n is private iff everywhere low <= M/S <= high.

    Without the record x has probability ``(S - M)/(n - 1)`` instead of ``S/n``. That changes by a factor of
    at most e^eps either way iff ``1 - (1 - 1/n) e^eps <= M/S <= 1 - (1 - 1/n) e^-eps``; written here so that
    neither a tiny nor a huge epsilon loses digits. S is with the record's own M.
    """
    high = -math.expm1(-epsilon) + math.exp(-epsilon) / n
    low = 0.0
    if epsilon < -math.log1p(-1.0 / n):
        low = max(math.exp(epsilon) / n - math.expm1(epsilon), 0.0)
    return low, high, (1.0 - 1.0 / n) * math.exp(-epsilon) / high


def checked_game(kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float) -> tuple[Floats, Ints, float]:
    """Return masses float64[R, V, K] of the R bins with records, bin_counts int64[K] and epsilon.

    The noise matrix may be given whole, float64[K, V, K], or of these bins only.
    """
    counts: Ints = _checks.array("bin_counts", bin_counts, np.int64, (None,), low=0)
    n_bins = len(counts)
    if n_bins < 2:
        raise ValueError(f"bin_counts must have at least 2 bins, got {n_bins}")
    occupied = np.flatnonzero(counts)
    masses: Floats = _checks.array("kernel", kernel, np.float64, (None, None, n_bins), low=0.0)
    if len(masses) not in (n_bins, len(occupied)):
        some = f"({len(occupied)}, any, {n_bins}) of the bins with records"
        raise ValueError(f"kernel must have shape ({n_bins}, any, {n_bins}), or {some}, got {masses.shape}")
    if masses.shape[1] < 1:
        raise ValueError(f"kernel must have at least one scale, got shape {masses.shape}")
    n = sum(counts.tolist())
    if not 2 <= n < 2**53:
        raise ValueError(f"bin_counts must add up to 2 records or more, below 2^53, got {n}")
    rows = occupied if len(masses) == n_bins else np.arange(len(occupied))
    missed = np.argwhere(masses[rows, :, occupied] <= 0.0)
    if len(missed):
        i, v = int(missed[0][0]), int(missed[0][1])
        where = (int(rows[i]), v, int(occupied[i]))
        raise ValueError(f"kernel must be positive at a record's own bin, got 0 at index {where}")
    return masses[rows], counts, _checks.epsilon(epsilon, allow_infinite=False)


def checked_counts(
    name: str, counts: ArrayLike, bin_counts: Ints, n_scales: int, whole: str = "the histogram's"
) -> Ints:
    """Return a profile int64[K, V], or raise where it is none or does not add up to bin_counts int64[K]."""
    shape = (len(bin_counts), n_scales)
    given: Ints = _checks.array(name, counts, np.int64, shape, low=0)
    wrong = np.flatnonzero(given.sum(axis=1) != bin_counts)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(f"{name} must add up to {whole} {bin_counts[k]} at bin {k}, got {given[k].sum()}")
    return given


def uniform(bin_counts: Ints, n_scales: int, v: int) -> Ints:
    """Return the profile int64[K, V] in which all of int64[K] records use scale v."""
    counts = np.zeros((len(bin_counts), n_scales), dtype=np.int64)
    counts[:, v] = bin_counts
    return counts


@dataclass(frozen=True, eq=False)
class Found:
    """A profile that a search ended with.

    counts int64[K, V] are the records of bin k that use scale v; n_satisfied those whose own epsilon is at
    most the game's, all if certified; kl is KL(q || S/n) in nats. An interrupted search has not ended.
    """

    counts: Ints
    n_satisfied: int
    certified: bool
    kl: float
    ended: bool = True


class Table:
    """A game's occupied bins as kernels take them, scales as given or the widest first, and scratch."""

    def __init__(
        self, kernel: ArrayLike, bin_counts: ArrayLike, epsilon: float, *, widest_first: bool = False
    ) -> None:
        masses, counts, epsilon = checked_game(kernel, bin_counts, epsilon)
        self.bin_counts, self.shape = counts, (len(counts), masses.shape[1])
        self.occupied = np.flatnonzero(counts)
        own = masses[np.arange(len(masses)), :, self.occupied].max(axis=0)
        self.order = np.argsort(own, kind="stable") if widest_first else np.arange(len(own))
        if (np.diff(self.order) < 0).any():
            masses = masses[:, self.order]
        self.records = counts[self.occupied]
        n = int(counts.sum())
        low, high, odds = ratio_limits(n, epsilon)
        share = counts / n
        inverse = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
        rows, share, inverse = map(sealed, (masses.reshape(-1, masses.shape[2]), share, inverse))
        ends = int(self.occupied[0]), int(self.occupied[-1]) + 1
        self.game = Game(rows, share, inverse, *ends, self.shape[1], n, high, low, odds)
        self.work = np.zeros((3, masses.shape[2]))

    def evaluate(self, counts: Ints) -> tuple[int, float]:
        """Return satisfied records and divergence of counts int64[T]."""
        satisfied, kl = evaluate(self.game, counts, self.work)
        return int(satisfied), max(float(kl), 0.0)

    def uniform(self, v: int) -> Ints:
        """Return the profile int64[T] in which all use one scale."""
        return uniform(self.records, self.shape[1], v).ravel()

    def found(self, counts: Ints) -> Found:
        """Return what a search gives back, from counts int64[T], with the scales as they were given."""
        satisfied, kl = self.evaluate(counts)
        whole = np.zeros(self.shape, dtype=np.int64)
        whole[np.ix_(self.occupied, self.order)] = counts.reshape(-1, self.shape[1])
        return Found(sealed(whole), satisfied, satisfied == self.game.n, kl)

    def state(self, counts: Ints) -> Any:
        """Return a search's state at a profile."""
        from equinoise.nvo.search.kernels import moves

        n_types, n_bins = self.game.masses.shape
        used, place, numbers = (np.zeros(size, dtype=np.int64) for size in (n_types, n_types, 2))
        mass, peak, trial, rest, slope = np.zeros((5, n_bins))
        top, who = np.zeros((moves.DEPTH, n_bins)), np.zeros((moves.DEPTH, n_bins), dtype=np.int64)
        lists = used, place, numbers, mass, peak, trial, top, who, rest
        state = moves.State(counts.copy(), *lists, np.zeros((3, n_bins)), slope)
        moves.refresh(self.game, state)
        return state


def checked_start(start: str | ArrayLike, bin_counts: Ints, scales: Floats) -> Ints | None:
    """Return the profile int64[K, V] that a start stands for; None: a run draws it."""
    if not isinstance(start, str):
        return checked_counts("start", start, bin_counts, len(scales))
    drawn = _checks.choice("start", start, ("largest", "random")) == "random"
    return None if drawn else uniform(bin_counts, len(scales), int(scales.argmax()))


def run(
    noise: Any, bin_counts: Ints, epsilon: float, start: Ints | None, seed: int, max_rounds: int, **how: Any
) -> Iterator[tuple[Ints, int, bool]]:
    """Run the dynamics from a profile int64[K, V], or from random ones, over records int64[K].

    The noise is a :class:`equinoise.nvo.noise.LaplaceNoise`; `how` is for :func:`equinoise.replicates.run`.
    Yield of every restart the counts int64[K, V], the rounds, and whether nobody wanted another option.
    Restart r is the same for any number of them. After Ctrl-C there are fewer.
    """
    game = make_game(noise.decay, noise.total, bin_counts, epsilon)
    run_one = functools.partial(_run_one, game, bin_counts, start, stream_key(seed), max_rounds)
    workers = replicates.workers(how.get("executor"))
    how |= {"block": min(_BLOCK, -(-how["n_replicates"] // (4 * workers))), "partly": True}
    found = replicates.run(functools.partial(_run_block, run_one), **how)
    for counts, rounds, converged in zip(*found, strict=True):
        yield counts, int(rounds), bool(converged)


def all_satisfied(noise: Any, bin_counts: Ints, epsilon: float) -> bool:
    """Return whether the only scale of a :class:`equinoise.nvo.noise.LaplaceNoise` satisfies all records."""
    game = make_game(noise.decay, noise.total, bin_counts, epsilon)
    state = make_state(game, bin_counts)
    by_bin(game, state)[:] = bin_counts[:, None]
    response.begin(game, state)
    return bool(state.now.unsatisfied == 0)


def by_bin(game: _state.Game, state: _state.State) -> Ints:
    """Return the state's counts, seen as int64[K, V]."""
    counts: Ints = state.types[_state.COUNT].reshape(game.of.n_bins, -1)
    return counts[:, : game.of.n_scales]


@kept_as("equinoise.nvo.search.dynamics._run_block")
def _run_block(run_one: Callable[[int], Any], first: int, last: int) -> tuple[Ints, Ints, Flags]:
    counts, rounds, converged = zip(*map(run_one, range(first, last)), strict=True)
    return np.array(counts), np.array(rounds), np.array(converged)


@kept_as("equinoise.nvo.search.dynamics._run_one")
def _run_one(
    game: _state.Game, bin_counts: Ints, start: Ints | None, key: Words, max_rounds: int, replicate: int
) -> tuple[Ints, int, bool]:
    of, state = game.of, make_state(game, bin_counts)
    counts = by_bin(game, state)
    if start is not None:
        counts[:] = start
    else:
        response.draw_types(key, replicate, of.width, of.n_scales, bin_counts, state.types[_state.COUNT])
    response.begin(game, state)
    unit = max(1, game.of.n // _GROUPS)
    for played in range(max_rounds):
        if unit > 1 or played == 0:
            turns, sizes = _groups(state.types[_state.COUNT], unit)
            response.shuffle(key, replicate, played, turns, sizes)
        if _play_round(game, state, turns, sizes):
            return counts.copy(), played + 1, True
    return counts.copy(), max_rounds, False


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
    width, padded = -(-n_scales // _state.LANES) * _state.LANES, -(-n_bins // _state.PIECE) * _state.PIECE
    both = np.concatenate([decay[:, :0:-1], decay], axis=1)
    along = np.append(both, np.zeros(_state.PIECE))
    across, weight = np.zeros((both.shape[1], width)), np.zeros((n_bins, width))
    across[:, :n_scales], weight[:, :n_scales] = both.T, 1.0 / total
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
    at_first = (*[0] * 7, 1.0, 1.0, math.inf, 0.0, 1.0, 1.0)  # in the end down, up, worst, best, low, high
    now = np.array([at_first], dtype=_state.NOW).view(np.recarray)[0]
    length, tight = np.zeros(7, dtype=np.int64), np.full((2, _state.N_TIGHT), -1)
    return _state.State(bins, types, length, np.zeros((2, n_types)), tight, np.zeros(game.of.width), now)
