"""The state of best-response dynamics, and what an option would change.

A record's type is t = k W + v: its bin k and its scale v, W the number of scales rounded up to a multiple of
eight. Records of a type are alike. The state is how many there are of each type and what they release,
S[x] = sum of counts M; a move changes S by a few records' mass. S is added up anew before its rounding could
matter.

Who is satisfied: the limits on M/S are looked at only where they could be broken. A type with at least
1/tau_high records is satisfied whatever the others do, because S >= count M; only types with fewer, the
*rare* ones, are ever tested. How far a rare type is from its limit, min over x of tau_high S[x]/M[t, x], is
known within bounds: a move multiplies S by factors within an interval, and so this ratio, which is computed
anew only where the bounds leave open whether it is at least one. An option that breaks a limit mostly breaks
one that was broken lately: the last few, each at the bin where it is broken most, are tried first. A ratio
too close to one is decided by the mass of the others, added up from the counts.
"""

import math

import numpy as np

from equinoise._checkpoint import kept_as
from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple

LANES = 8  # scales side by side in a row of `across`
PIECE = 16  # bins are padded to a multiple
N_TIGHT = 8  # limits that are remembered
SHRUNK = 64.0  # S is added up anew where it has fallen to this part of what it was

# rows of State.bins
RELEASED, INVERSE, PEAK, SHARE, SLOPE, CHANGE, RELATIVE = range(7)
# rows of State.types; a list has its places in the row below
COUNT, SATISFIED, SEEN, RARE, PLACE_RARE, USED, PLACE_USED = range(7)

# single numbers that do not change, and those that do: records, which a call takes as one pointer
OF = np.dtype(
    [(name, np.int64) for name in ("n_bins", "n_scales", "width", "padded", "n")]
    + [(name, np.float64) for name in ("tau_high", "tau_low", "odds_high", "odds_low", "crowd", "least_gain")]
)
_COUNTED = ("version", "unsatisfied", "moves", "streak", "empty", "added", "next_tight")
NOW = np.dtype(
    [(name, np.int64) for name in _COUNTED]
    + [(name, np.float64) for name in ("down", "up", "worst", "best", "low", "high")]
)


@kept_as("equinoise.nvo.search.kernels.response_state.Game")
class Game(NamedTuple):
    """What does not change: K bins, V scales, W lanes.

    along float64[V (2K - 1) + PIECE]: exp(-|d|/(K b_v)) for the distances 1-K..K-1, scale by scale; across
    float64[(2K - 1) W]: the same, distance by distance; weight float64[K W]: what they are multiplied with to
    be masses, M[t, x] = weight[t] exp(-|x_k - x|/b_v); occupied int64[any]: bins with records, ascending;
    of, a record of OF: K, V, W, K rounded up to whole pieces, n; limits of M/S (tau_low is 0 where there is
    none); the same of M/(S - M); records that make a type not rare; what a move must gain.
    """

    along: Floats
    across: Floats
    weight: Floats
    occupied: Ints
    of: Any


class State(NamedTuple):
    """What moves.

    bins float64[7, padded K]: S; 1/S, or 0; the largest S since it was added up; the histogram over n ln K;
    this over S; how the option looked at changes S; and this over S. types int64[7, K W]: records; whether
    satisfied (of rare types); version of the state in which a record of the type wanted no other option; the
    rare types in any order, and where a type is in that list or -1; the same for the types that have records.
    length int64[7]: of the lists, by their rows. ratio float64[2, K W]: the ratio of a rare type is at least
    ratio[0] now.down and at most ratio[1] now.up. tight int64[2, N_TIGHT]: types (or -1) and bins of limits
    that were broken lately. slopes float64[W]: of the options of the record whose turn it is. now, a record
    of NOW: version, unsatisfied records, moves, records in a row that wanted no other option, bins with
    S = 0, moves when S was added up, next entry of `tight`; down and up; least ratio[0] of a satisfied rare
    type, largest ratio[1] of an unsatisfied one; the least and the largest factor by which the option looked
    at multiplies a ratio.
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
    state.bins[RELEASED, :] = 0.0
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
    one, two, k = np.uint64(1), np.uint64(2), old // width
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
