"""Best-response dynamics over counts: records in turn take a best option until none wants another.

KL is convex, so the slope of the payoff at S bounds what an option can gain: while everybody is satisfied,
only an option with a positive slope is looked at any further. A type that wanted no other option is not asked
again before something has moved.
"""

import math

import numpy as np

from equinoise._jit import njit
from equinoise._random import TURN, integer, next_word, philox
from equinoise._typing import Any, Ints, Words
from equinoise.nvo.search.kernels.response_limits import (
    breaks,
    keep,
    list_rare,
    more_satisfied,
    refresh,
    settle,
)
from equinoise.nvo.search.kernels.response_state import (
    CHANGE,
    COUNT,
    INVERSE,
    PEAK,
    RARE,
    RELEASED,
    SEEN,
    SHARE,
    SHRUNK,
    USED,
    Game,
    State,
    add_up,
    consider,
    invert,
    rank,
    utility_gain,
)

Keys = Words

_FAR = 1e150  # bounds this wide start again
_MOVES = 4096  # between two new sums


@njit
def _best(game: Game, state: State, old: int) -> int:
    """Return a best type for a record of type old: its own where none gains enough."""
    slopes, weight = state.slopes, game.weight
    n_scales, width = game.of.n_scales, game.of.width
    rank(game, state, old)
    all_now = state.now.unsatisfied == 0
    best, chosen, looked_at = game.of.least_gain, old, old
    one: Any = np.int64(1)  # a literal 1 would compile another version of what it is given to
    k, own = old // width, old % width
    for _ in range(n_scales - 1):
        v, bound = own, -math.inf
        for u in range(n_scales):
            if u != own and slopes[u] > bound:
                v, bound = u, slopes[u]
        if v == own or (all_now and bound <= best):
            break
        slopes[v] = -math.inf
        new = old - own + v
        if all_now:
            d = (weight[new] - weight[old]) * state.bins[INVERSE, k]
            bound -= state.bins[SHARE, k] * max(0.0, d * d * (1.0 / 2.0 - d * (1.0 / 3.0)))
            if bound <= best or breaks(game, state, old, new):
                continue
        consider(game, state, old, new, one)
        looked_at = new
        more = 0 if all_now else more_satisfied(game, state, old, new, one)
        if more + bound <= best:
            continue
        gain = more + utility_gain(game, state)
        if gain > best and (not all_now or more_satisfied(game, state, old, new, one) >= 0):
            best, chosen = gain, new
    if chosen != old and looked_at != chosen:
        consider(game, state, old, chosen, one)
    return chosen


@njit
def _move(game: Game, state: State, old: int, new: int, m: int) -> None:
    """Move m records from type old to new, the option that was looked at last."""
    now = state.now
    state.types[COUNT, old] -= m
    state.types[COUNT, new] += m
    keep(state, USED, old, state.types[COUNT, old] > 0)
    keep(state, USED, new, state.types[COUNT, new] > 0)
    now.moves += 1
    now.version += 1
    shrunk = 0
    for x in range(game.of.n_bins):
        total = state.bins[RELEASED, x] + state.bins[CHANGE, x]
        peak = state.bins[PEAK, x]
        peak = total if total > peak else peak
        state.bins[RELEASED, x] = total
        state.bins[PEAK, x] = peak
        shrunk += total * SHRUNK < peak
    if shrunk > 0 or now.moves - now.added >= _MOVES:
        add_up(game, state)
    else:
        invert(game, state)
    now.down *= now.low
    now.up *= now.high
    if not (now.down > 1.0 / _FAR and now.up < _FAR):
        now.down = now.up = 1.0
        for i in range(state.length[RARE]):
            refresh(game, state, state.types[RARE, i])
        now.worst = 0.0
    list_rare(game, state, old)
    list_rare(game, state, new)
    if now.unsatisfied > 0:
        settle(game, state)


@njit
def begin(game: Game, state: State) -> None:
    """Compute everything else from counts and share."""
    for t in range(state.types.shape[1]):
        keep(state, USED, t, state.types[COUNT, t] > 0)
    add_up(game, state)
    for t in range(state.types.shape[1]):
        list_rare(game, state, t)
    settle(game, state)


@njit
def take_turns(game: Game, state: State, turns: Ints, sizes: Ints, first: int, last: int) -> bool:
    """Let records in turn take a best option; return whether nobody wants another.

    turns int64[any] are the types of groups of equal records, changed when all of a group move alike, and
    sizes how many these are; first..last-1 take their turn. The first of a group moves alone. Then 2, 4, 8
    and so on move together, as long as the last of them would choose the same once the others have moved;
    where not, the next is alone again.
    """
    now = state.now
    one: Any = np.int64(1)
    for i in range(first, last):
        old, left, new = turns[i], sizes[i], turns[i]
        while left > 0 and state.types[SEEN, old] != now.version:
            m, new = 1, _best(game, state, old)
            while new != old and m > 0:
                _move(game, state, old, new, one)
                left -= m
                m = min(2 * m, left) if now.unsatisfied == 0 else 0
                if m > 1:
                    consider(game, state, old, new, m - 1)
                    if more_satisfied(game, state, old, new, m - 1) < 0:
                        break
                    _move(game, state, old, new, m - 1)
                if m > 0 and _best(game, state, old) != new:
                    if m > 1:
                        consider(game, state, new, old, m - 1)
                        _move(game, state, new, old, m - 1)
                    m = 0
            state.types[SEEN, new] = now.version
        turns[i] = new
        now.streak = now.streak + sizes[i] if new == old and left == sizes[i] else 1
        if now.streak >= game.of.n:
            return True
    return False


@njit
def draw_types(key: Keys, replicate: int, width: int, n_scales: int, counts: Ints, out: Ints) -> None:
    """Draw a uniformly random scale for every record: from counts int64[K] to out int64[K W]."""
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(0), np.uint64(0), np.uint64(replicate), TURN)
    for k in range(counts.size):
        for _ in range(counts[k]):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            out[k * width + integer(word, n_scales)] += 1


@njit
def shuffle(key: Keys, replicate: int, nth: int, turns: Ints, sizes: Ints) -> None:
    """Put groups into random order, all orders alike; `nth` counts the shuffles of a replicate."""
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(nth), np.uint64(1), np.uint64(replicate), TURN)
    for i in range(turns.size - 1, 0, -1):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        j = integer(word, i + 1)
        turns[i], turns[j] = turns[j], turns[i]
        sizes[i], sizes[j] = sizes[j], sizes[i]
