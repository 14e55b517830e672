"""The state of best-response dynamics, and what an option would change.

A record's type is t = k W + v: its bin k and its scale v, W the number of scales rounded up to a multiple of
eight. Records of a type are alike. The state is how many there are of each type and what they release,
S[x] = sum of counts M; a move changes S by a few records' mass. S is added up anew before its rounding could
matter.
"""

import math

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple

LANES = 8  # scales side by side in a row of `across`
PIECE = 16  # bins are padded to a multiple
N_TIGHT = 8  # limits that are remembered
SHRUNK = 64.0  # S is added up anew where it has fallen to this part of what it was

_SMALL = 1.0 / 64.0  # ln(1 + d) by its series below

# rows of State.bins
RELEASED, INVERSE, PEAK, SHARE, SLOPE, CHANGE, RELATIVE = range(7)
# rows of State.types; a list has its places in the row below
COUNT, SATISFIED, SEEN, RARE, PLACE_RARE, USED, PLACE_USED = range(7)

# single numbers that do not change, and those that do: records, which a call takes as one pointer
OF = np.dtype(
    [(name, np.int64) for name in ("n_bins", "n_scales", "width", "padded", "n")]
    + [(name, np.float64) for name in ("tau_high", "tau_low", "odds_high", "odds_low", "crowd", "least_gain")]
)
NOW = np.dtype(
    [
        (name, np.int64)
        for name in ("version", "unsatisfied", "moves", "streak", "empty", "added", "next_tight")
    ]
    + [(name, np.float64) for name in ("down", "up", "worst", "best", "low", "high")]
)


class Game(NamedTuple):
    """What does not change: K bins, V scales, W lanes.

    Attributes
    ----------
    along : float64[V (2K - 1) + PIECE]
        exp(-|d|/(K b_v)) for the distances d = 1-K..K-1, scale by scale.
    across : float64[(2K - 1) W]
        The same, distance by distance.
    weight : float64[K W]
        What they are multiplied with to be masses, M[t, x] = weight[t] exp(-|x_k - x|/b_v).
    occupied : int64[any]
        Bins with records, ascending.
    of : record of OF
        K, V, W, K rounded up to whole pieces, n; limits of M/S (tau_low is 0 where there is none); the same
        of M/(S - M); records that make a type not rare; what a move must gain.
    """

    along: Floats
    across: Floats
    weight: Floats
    occupied: Ints
    of: Any


class State(NamedTuple):
    """What moves.

    Attributes
    ----------
    bins : float64[7, padded K]
        S; 1/S, or 0; the largest S since it was added up; the histogram over n ln K; this over S; how the
        option looked at changes S; and this over S.
    types : int64[7, K W]
        Records; whether satisfied (of rare types); version of the state in which a record of the type wanted
        no other option; the rare types in any order, and where a type is in that list or -1; the same for
        the types that have records.
    length : int64[7]
        Of the lists, by their rows.
    ratio : float64[2, K W]
        The ratio of a rare type is at least ratio[0] now.down and at most ratio[1] now.up.
    tight : int64[2, N_TIGHT]
        Types (or -1) and bins of limits that were broken lately.
    slopes : float64[W]
        Of the options of the record whose turn it is.
    now : record of NOW
        Version, unsatisfied records, moves, records in a row that wanted no other option, bins with S = 0,
        moves when S was added up, next entry of `tight`; down and up; least ratio[0] of a satisfied rare
        type, largest ratio[1] of an unsatisfied one; the least and the largest factor by which the option
        looked at multiplies a ratio.
    """

    bins: Floats
    types: Ints
    length: Ints
    ratio: Floats
    tight: Ints
    slopes: Floats
    now: Any


@njit(forceinline=True)
def row_start(game: Game, t: int) -> int:
    """Return where in `along` the noise of type t has its entry for bin 0."""
    return (t % game.of.width) * (2 * game.of.n_bins - 1) + game.of.n_bins - 1 - t // game.of.width


@njit
def add_up(game: Game, state: State) -> None:
    """Compute S and what hangs on it from the counts."""
    n_bins = game.of.n_bins
    for x in range(game.of.padded):
        state.bins[RELEASED, x] = 0.0
    for i in range(state.length[USED]):
        t = state.types[USED, i]
        weight, base = state.types[COUNT, t] * game.weight[t], row_start(game, t)
        for x in range(n_bins):
            state.bins[RELEASED, x] += weight * game.along[base + x]
    for x in range(n_bins):
        state.bins[PEAK, x] = state.bins[RELEASED, x]
    state.now.added = state.now.moves
    invert(game, state)


@njit(forceinline=True)
def invert(game: Game, state: State) -> None:
    """Compute 1/S and the slopes; count the bins that nothing is released to."""
    empty = 0
    for x in range(game.of.n_bins):
        total = state.bins[RELEASED, x]
        inverse = 1.0 / total if total > 0.0 else 0.0
        state.bins[INVERSE, x] = inverse
        state.bins[SLOPE, x] = state.bins[SHARE, x] * inverse
        empty += total <= 0.0
    state.now.empty = empty


@njit
def rank(game: Game, state: State, old: int) -> None:
    """Fill `slopes` with how fast the payoff rises towards every option of a record of type `old`.

    The sum over x of share (M[new] - M[old])/S, for eight scales at a time.
    """
    n_bins, width = game.of.n_bins, game.of.width
    occupied, across, slopes = game.occupied, game.across, state.slopes
    one, two = np.uint64(1), np.uint64(2)
    k = old // width
    for first in range(0, width, LANES):
        a = b = c = d = e = f = g = h = 0.0
        for i in range(occupied.size):
            x = occupied[i]
            slope = state.bins[SLOPE, x]
            at: Any = np.uint64((n_bins - 1 + x - k) * width + first)
            a += slope * across[at]
            b += slope * across[at + one]
            at += two
            c += slope * across[at]
            d += slope * across[at + one]
            at += two
            e += slope * across[at]
            f += slope * across[at + one]
            at += two
            g += slope * across[at]
            h += slope * across[at + one]
        slopes[first], slopes[first + 1], slopes[first + 2], slopes[first + 3] = a, b, c, d
        slopes[first + 4], slopes[first + 5], slopes[first + 6], slopes[first + 7] = e, f, g, h
    for v in range(width):
        slopes[v] *= game.weight[k * width + v]
    own = slopes[old % width]
    for v in range(width):
        slopes[v] -= own


@njit
def consider(game: Game, state: State, old: int, new: int, m: int) -> None:
    """Look at m records of type old becoming type new, two types of one bin.

    Fills change and relative, and low and high: factors between which every ratio would be multiplied.
    """
    along, weight = game.along, game.weight
    plus, minus = m * weight[new], m * weight[old]
    to, off = np.uint64(row_start(game, new)), np.uint64(row_start(game, old))
    least, most = 0.0, 0.0
    for i in range(game.of.padded):
        x: Any = np.uint64(i)
        change = plus * along[to + x] - minus * along[off + x]
        relative = change * state.bins[INVERSE, x]
        state.bins[CHANGE, x] = change
        state.bins[RELATIVE, x] = relative
        least = relative if relative < least else least
        most = relative if relative > most else most
    if state.now.empty > 0:
        for i in range(game.of.n_bins):
            if state.bins[INVERSE, i] == 0.0 and state.bins[CHANGE, i] > 0.0:
                most = math.inf
    low, high = 1.0 + least, 1.0 + most
    low = low if low * SHRUNK > 1.0 else 0.0  # what is left has lost its digits: no bound
    if game.of.tau_low > 0.0:  # ratios of the lower limit go the other way
        low, high = min(low, 1.0 / high), max(high, 1.0 / low if low > 0.0 else math.inf)
    state.now.low, state.now.high = low, high


@njit(forceinline=True)
def _log1p(d: float) -> float:
    """Return ln(1 + d) for |d| < 1/64: its series up to d^8."""
    d2 = d * d
    low = (1.0 - d * (1.0 / 2.0)) + d2 * (1.0 / 3.0 - d * (1.0 / 4.0))
    high = (1.0 / 5.0 - d * (1.0 / 6.0)) + d2 * (1.0 / 7.0 - d * (1.0 / 8.0))
    return d * (low + d2 * d2 * high)


@njit
def utility_gain(game: Game, state: State) -> float:
    """Return the fall of KL/ln K for the option looked at: sum of share ln(1 + relative)."""
    occupied = game.occupied
    total = 0.0
    large = 0
    for x in range(occupied[0], occupied[occupied.size - 1] + 1):
        d = state.bins[RELATIVE, x]
        total += state.bins[SHARE, x] * _log1p(d)
        large += abs(d) >= _SMALL
    if large > 0:
        total = 0.0
        for i in range(occupied.size):
            x = occupied[i]
            d = state.bins[RELATIVE, x]
            total += state.bins[SHARE, x] * (_log1p(d) if abs(d) < _SMALL else log(1.0 + d))
    return total
