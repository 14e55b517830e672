"""Best-response dynamics over counts: records in turn take a best option until none wants another.

KL is convex, so the slope of the payoff at S bounds what an option can gain: while everybody is satisfied,
only an option with a positive slope is looked at any further. A type that wanted no other option is not asked
again before something has moved.
"""

import math

import numpy as np

from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._random import TURN, integer, next_word, philox
from equinoise._typing import Any, Ints, Words
from equinoise.nvo.search.kernels import response_state as row
from equinoise.nvo.search.kernels.response_state import Game, State, add_up, consider, invert, rank, row_start

_FAR = 1e150  # bounds this wide start again
_MOVES = 4096  # between two new sums
_SMALL = 1.0 / 64.0  # ln(1 + d) by its series below


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
            d = (weight[new] - weight[old]) * state.bins[row.INVERSE, k]
            bound -= state.bins[row.SHARE, k] * max(0.0, d * d * (1.0 / 2.0 - d * (1.0 / 3.0)))
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
    state.types[row.COUNT, old] -= m
    state.types[row.COUNT, new] += m
    keep(state, row.USED, old, state.types[row.COUNT, old] > 0)
    keep(state, row.USED, new, state.types[row.COUNT, new] > 0)
    now.moves += 1
    now.version += 1
    shrunk = 0
    for x in range(game.of.n_bins):
        total = state.bins[row.RELEASED, x] + state.bins[row.CHANGE, x]
        peak = state.bins[row.PEAK, x]
        peak = total if total > peak else peak
        state.bins[row.RELEASED, x] = total
        state.bins[row.PEAK, x] = peak
        shrunk += total * row.SHRUNK < peak
    if shrunk > 0 or now.moves - now.added >= _MOVES:
        add_up(game, state)
    else:
        invert(game, state)
    now.down *= now.low
    now.up *= now.high
    if not (now.down > 1.0 / _FAR and now.up < _FAR):
        now.down = now.up = 1.0
        for i in range(state.length[row.RARE]):
            refresh(game, state, state.types[row.RARE, i])
        now.worst = 0.0
    list_rare(game, state, old)
    list_rare(game, state, new)
    if now.unsatisfied > 0:
        settle(game, state)


@njit
def begin(game: Game, state: State) -> None:
    """Compute everything else from counts and share."""
    for t in range(state.types.shape[1]):
        keep(state, row.USED, t, state.types[row.COUNT, t] > 0)
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
        while left > 0 and state.types[row.SEEN, old] != now.version:
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
            state.types[row.SEEN, new] = now.version
        turns[i] = new
        now.streak = now.streak + sizes[i] if new == old and left == sizes[i] else 1
        if now.streak >= game.of.n:
            return True
    return False


@njit
def draw_types(key: Words, replicate: int, width: int, n_scales: int, counts: Ints, out: Ints) -> None:
    """Draw a uniformly random scale for every record: from counts int64[K] to out int64[K W]."""
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(0), np.uint64(0), np.uint64(replicate), TURN)
    for k in range(counts.size):
        for _ in range(counts[k]):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            out[k * width + integer(word, n_scales)] += 1


@njit
def shuffle(key: Words, replicate: int, nth: int, turns: Ints, sizes: Ints) -> None:
    """Put groups into random order, all orders alike; `nth` counts the shuffles of a replicate."""
    s0, s1, s2, s3 = philox(key[0], key[1], np.uint64(nth), np.uint64(1), np.uint64(replicate), TURN)
    for i in range(turns.size - 1, 0, -1):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        j = integer(word, i + 1)
        turns[i], turns[j] = turns[j], turns[i]
        sizes[i], sizes[j] = sizes[j], sizes[i]


# Who is satisfied: see the module of the state.

_MARGIN = 1e-9  # of S; its rounding stays far below
_EXACT = 1e-12  # a record is called satisfied only where it is so by this much
_NOTHING = 1e-305  # less than any mass


@njit
def refresh(game: Game, state: State, t: int) -> None:
    """Compute a rare type's ratio: the least of tau_hi S/M and, with a lower limit, of M/(tau_lo S)."""
    along = game.along
    n_bins, weight, base = game.of.n_bins, game.weight[t], row_start(game, t)
    most = 0.0
    for x in range(n_bins):
        part = along[base + x] * state.bins[row.INVERSE, x]
        most = part if part > most else most
    ratio = game.of.tau_high / (weight * most)
    if game.of.tau_low > 0.0:
        for x in range(n_bins):
            if state.bins[row.INVERSE, x] > 0.0:
                part = weight * along[base + x] * state.bins[row.INVERSE, x]
                ratio = min(ratio, part / game.of.tau_low)
    state.ratio[0, t] = ratio / state.now.down
    state.ratio[1, t] = ratio / state.now.up


@njit(forceinline=True)
def keep(state: State, listed: int, t: int, wanted: bool) -> bool:
    """Put type t into the list in row `listed`, or take it out; return whether it is new there."""
    types, length = state.types, state.length
    place = types[listed + 1, t]
    if wanted and place < 0:
        types[listed + 1, t] = length[listed]
        types[listed, length[listed]] = t
        length[listed] += 1
        return True
    if not wanted and place >= 0:
        length[listed] -= 1
        last = types[listed, length[listed]]
        types[listed, place] = last
        types[listed + 1, last] = place
        types[listed + 1, t] = -1
    return False


@njit
def list_rare(game: Game, state: State, t: int) -> None:
    """Bring the list of rare types up to date about type t; where it is new there it is called satisfied."""
    if keep(state, row.RARE, t, 0 < state.types[row.COUNT, t] < game.of.crowd):
        refresh(game, state, t)
        state.types[row.SATISFIED, t] = 1
        state.now.worst = min(state.now.worst, state.ratio[0, t])


@njit
def _decide(game: Game, state: State, t: int, moved: float) -> bool:
    """Return whether type t is satisfied: now (moved = 0), or after the option looked at (1).

    counts holds the records of that state.
    """
    now, ratio = state.now, state.ratio
    if state.types[row.COUNT, t] >= game.of.crowd:
        return True
    if state.types[row.PLACE_RARE, t] >= 0:
        low, high = now.down, now.up
        if moved > 0.0:
            low, high = low * now.low, high * now.high
        for attempt in range(2):
            if ratio[0, t] * low >= 1.0 + _MARGIN:
                return True
            if ratio[1, t] * high < 1.0 - _MARGIN:
                return False
            if attempt == 0:
                refresh(game, state, t)
    return _holds(game, state, t, moved)


@njit
def _holds(game: Game, state: State, t: int, moved: float) -> bool:
    """Decide by S itself, and where its rounding could matter by the mass of the others."""
    along, weight, base = game.along, game.weight[t], row_start(game, t)
    tau_high, tau_low, past, near = game.of.tau_high, game.of.tau_low, 0, 0
    for x in range(game.of.n_bins):
        mass = weight * along[base + x]
        total = state.bins[row.RELEASED, x] + moved * state.bins[row.CHANGE, x]
        slack = _MARGIN * (total + state.bins[row.RELEASED, x])
        past += mass > tau_high * (total + slack)
        near += mass > tau_high * (total - slack) or mass < tau_low * (total + slack)
    if near == 0:
        return True
    if past > 0 and tau_high < 1.0 - 4.0 * _MARGIN:
        return False
    for x in range(game.of.n_bins):
        mass = weight * along[base + x]
        total = state.bins[row.RELEASED, x] + moved * state.bins[row.CHANGE, x]
        slack = _MARGIN * (total + state.bins[row.RELEASED, x])
        if mass > tau_high * (total - slack) or mass < tau_low * (total + slack):
            others = 0.0
            for i in range(-1, state.length[row.USED]):
                u = t if i < 0 else state.types[row.USED, i]
                count = state.types[row.COUNT, u]
                count = count - 1 if i < 0 else (count if u != t else 0)
                others += count * (game.weight[u] * along[row_start(game, u) + x])
            if mass > 0.0 and not mass <= game.of.odds_high * others * (1.0 - _EXACT):
                return False
            if mass < game.of.odds_low * others * (1.0 + _EXACT):
                return False
    return True


@njit
def more_satisfied(game: Game, state: State, old: int, new: int, m: int) -> int:
    """Return how many more are satisfied after the option looked at, m records from type old to new.

    Where everybody is satisfied now, a negative number means only that somebody would not be; the limit that
    was broken is remembered.
    """
    now, ratio = state.now, state.ratio
    all_now = now.unsatisfied == 0
    before_old, before_new = state.types[row.COUNT, old], state.types[row.COUNT, new]
    state.types[row.COUNT, old] -= m
    state.types[row.COUNT, new] += m
    keep(state, row.USED, new, state.types[row.COUNT, new] > 0)
    low, high = now.down * now.low, now.up * now.high
    scan = now.worst * low < 1.0 + _MARGIN or now.best * high >= 1.0 - _MARGIN
    result, worst, best = 0, math.inf, 0.0
    for i in range(-2, state.length[row.RARE] if scan else 0):
        t = new if i == -2 else (old if i == -1 else state.types[row.RARE, i])
        if i < 0 or (t != old and t != new):
            before = before_new if t == new else (before_old if t == old else state.types[row.COUNT, t])
            if state.types[row.PLACE_RARE, t] >= 0 and state.types[row.SATISFIED, t] == 0:
                before = 0
            after = state.types[row.COUNT, t]
            if after > 0 and not _decide(game, state, t, 1.0):
                after = 0
                if all_now:
                    result = -1
                    _remember(game, state, t)
                    break
            result += after - before
        if i >= 0:
            satisfied = state.types[row.SATISFIED, t] == 1
            worst = min(worst, ratio[0, t]) if satisfied else worst
            best = best if satisfied else max(best, ratio[1, t])
    state.types[row.COUNT, old] = before_old
    state.types[row.COUNT, new] = before_new
    keep(state, row.USED, new, state.types[row.COUNT, new] > 0)
    if scan and not (all_now and result < 0):
        now.worst, now.best = worst, best
    return result


@njit
def _remember(game: Game, state: State, t: int) -> None:
    """Keep type t, and the bin where the option looked at breaks its upper limit most, in `tight`."""
    now, along = state.now, game.along
    worst, where, base = 0.0, 0, row_start(game, t)
    for x in range(game.of.n_bins):
        total = max(state.bins[row.RELEASED, x] + state.bins[row.CHANGE, x], _NOTHING)
        if along[base + x] > worst * total:
            worst, where = along[base + x] / total, x
    at = now.next_tight
    state.tight[0, at], state.tight[1, at] = t, where
    now.next_tight = (at + 1) % row.N_TIGHT


@njit
def breaks(game: Game, state: State, old: int, new: int) -> bool:
    """Return whether a record of type old that becomes type new surely breaks a limit of `tight`."""
    along, weight, plus, minus = game.along, game.weight, game.weight[new], game.weight[old]
    to, off = row_start(game, new), row_start(game, old)
    for i in range(row.N_TIGHT):
        t, x = state.tight[0, i], state.tight[1, i]
        if t >= 0 and state.types[row.COUNT, t] - int(t == old) + int(t == new) > 0:
            total = state.bins[row.RELEASED, x] + (plus * along[to + x] - minus * along[off + x])
            slack = _MARGIN * (total + state.bins[row.RELEASED, x])
            mass = weight[t] * along[row_start(game, t) + x]
            if mass > game.of.tau_high * (total + slack) and game.of.tau_high < 1.0 - 4.0 * _MARGIN:
                return True
    return False


@njit
def settle(game: Game, state: State) -> None:
    """Decide for every rare type whether it is satisfied."""
    now, ratio = state.now, state.ratio
    unsatisfied, worst, best = 0, math.inf, 0.0
    for i in range(state.length[row.RARE]):
        t = state.types[row.RARE, i]
        satisfied = _decide(game, state, t, 0.0)
        state.types[row.SATISFIED, t] = int(satisfied)
        if satisfied:
            worst = min(worst, ratio[0, t])
        else:
            best = max(best, ratio[1, t])
            unsatisfied += state.types[row.COUNT, t]
    now.worst, now.best, now.unsatisfied = worst, best, unsatisfied


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
    occupied, total, large = game.occupied, 0.0, 0
    for x in range(occupied[0], occupied[occupied.size - 1] + 1):
        d = state.bins[row.RELATIVE, x]
        total += state.bins[row.SHARE, x] * _log1p(d)
        large += abs(d) >= _SMALL
    if large > 0:
        total = 0.0
        for i in range(occupied.size):
            x = occupied[i]
            d = state.bins[row.RELATIVE, x]
            total += state.bins[row.SHARE, x] * (_log1p(d) if abs(d) < _SMALL else log(1.0 + d))
    return total
