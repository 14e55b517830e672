"""Who is satisfied: the limits on M/S, looked at only where they could be broken.

* A type with at least 1/tau_hi records is satisfied whatever the others do, because S >= count M. Only types
  with fewer records, the *rare* ones, are ever tested.
* How far a rare type is from its limit, min over x of tau_hi S[x]/M[t, x], is known within bounds: a move
  multiplies S by factors within an interval, and so this ratio. It is computed anew only where the bounds
  leave open whether it is at least one.
* An option that breaks a limit mostly breaks one that was broken lately. The last few, each at the bin where
  it is broken most, are tried first.

A ratio too close to one is decided by the mass of the others, added up from the counts.
"""

import math

from equinoise._jit import njit
from equinoise.nvo.search.kernels.response_state import (
    CHANGE,
    COUNT,
    INVERSE,
    N_TIGHT,
    PLACE_RARE,
    RARE,
    RELEASED,
    SATISFIED,
    USED,
    Game,
    State,
    row_start,
)

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
        part = along[base + x] * state.bins[INVERSE, x]
        most = part if part > most else most
    ratio = game.of.tau_high / (weight * most)
    if game.of.tau_low > 0.0:
        for x in range(n_bins):
            if state.bins[INVERSE, x] > 0.0:
                part = weight * along[base + x] * state.bins[INVERSE, x]
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
    now = state.now
    if keep(state, RARE, t, 0 < state.types[COUNT, t] < game.of.crowd):
        refresh(game, state, t)
        state.types[SATISFIED, t] = 1
        now.worst = min(now.worst, state.ratio[0, t])


@njit
def _decide(game: Game, state: State, t: int, moved: float) -> bool:
    """Return whether type t is satisfied: now (moved = 0), or after the option looked at (1).

    counts holds the records of that state.
    """
    now, ratio = state.now, state.ratio
    if state.types[COUNT, t] >= game.of.crowd:
        return True
    if state.types[PLACE_RARE, t] >= 0:
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
    along = game.along
    weight, base = game.weight[t], row_start(game, t)
    tau_high, tau_low = game.of.tau_high, game.of.tau_low
    past, near = 0, 0
    for x in range(game.of.n_bins):
        mass = weight * along[base + x]
        total = state.bins[RELEASED, x] + moved * state.bins[CHANGE, x]
        slack = _MARGIN * (total + state.bins[RELEASED, x])
        past += mass > tau_high * (total + slack)
        near += mass > tau_high * (total - slack) or mass < tau_low * (total + slack)
    if near == 0:
        return True
    if past > 0 and tau_high < 1.0 - 4.0 * _MARGIN:
        return False
    for x in range(game.of.n_bins):
        mass = weight * along[base + x]
        total = state.bins[RELEASED, x] + moved * state.bins[CHANGE, x]
        slack = _MARGIN * (total + state.bins[RELEASED, x])
        if mass > tau_high * (total - slack) or mass < tau_low * (total + slack):
            others = 0.0
            for i in range(-1, state.length[USED]):
                u = t if i < 0 else state.types[USED, i]
                count = state.types[COUNT, t] - 1 if i < 0 else (state.types[COUNT, u] if u != t else 0)
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
    before_old, before_new = state.types[COUNT, old], state.types[COUNT, new]
    state.types[COUNT, old] -= m
    state.types[COUNT, new] += m
    keep(state, USED, new, state.types[COUNT, new] > 0)
    result = 0
    low, high = now.down * now.low, now.up * now.high
    scan = now.worst * low < 1.0 + _MARGIN or now.best * high >= 1.0 - _MARGIN
    worst, best = math.inf, 0.0
    for i in range(-2, state.length[RARE] if scan else 0):
        t = new if i == -2 else (old if i == -1 else state.types[RARE, i])
        if i < 0 or (t != old and t != new):
            before = before_new if t == new else (before_old if t == old else state.types[COUNT, t])
            if state.types[PLACE_RARE, t] >= 0 and state.types[SATISFIED, t] == 0:
                before = 0
            after = state.types[COUNT, t]
            if after > 0 and not _decide(game, state, t, 1.0):
                after = 0
                if all_now:
                    result = -1
                    _remember(game, state, t)
                    break
            result += after - before
        if i >= 0:
            satisfied = state.types[SATISFIED, t] == 1
            worst = min(worst, ratio[0, t]) if satisfied else worst
            best = best if satisfied else max(best, ratio[1, t])
    state.types[COUNT, old] = before_old
    state.types[COUNT, new] = before_new
    keep(state, USED, new, state.types[COUNT, new] > 0)
    if scan and not (all_now and result < 0):
        now.worst, now.best = worst, best
    return result


@njit
def _remember(game: Game, state: State, t: int) -> None:
    """Keep type t, and the bin where the option looked at breaks its upper limit most, in `tight`."""
    now, along = state.now, game.along
    worst, where = 0.0, 0
    base = row_start(game, t)
    for x in range(game.of.n_bins):
        total = max(state.bins[RELEASED, x] + state.bins[CHANGE, x], _NOTHING)
        if along[base + x] > worst * total:
            worst, where = along[base + x] / total, x
    at = now.next_tight
    state.tight[0, at], state.tight[1, at] = t, where
    now.next_tight = (at + 1) % N_TIGHT


@njit
def breaks(game: Game, state: State, old: int, new: int) -> bool:
    """Return whether a record of type old that becomes type new surely breaks a limit of `tight`."""
    along, weight = game.along, game.weight
    plus, minus = weight[new], weight[old]
    to, off = row_start(game, new), row_start(game, old)
    for i in range(N_TIGHT):
        t, x = state.tight[0, i], state.tight[1, i]
        if t >= 0 and state.types[COUNT, t] - int(t == old) + int(t == new) > 0:
            total = state.bins[RELEASED, x] + (plus * along[to + x] - minus * along[off + x])
            slack = _MARGIN * (total + state.bins[RELEASED, x])
            mass = weight[t] * along[row_start(game, t) + x]
            if mass > game.of.tau_high * (total + slack) and game.of.tau_high < 1.0 - 4.0 * _MARGIN:
                return True
    return False


@njit
def settle(game: Game, state: State) -> None:
    """Decide for every rare type whether it is satisfied."""
    now, ratio = state.now, state.ratio
    unsatisfied = 0
    worst, best = math.inf, 0.0
    for i in range(state.length[RARE]):
        t = state.types[RARE, i]
        satisfied = _decide(game, state, t, 0.0)
        state.types[SATISFIED, t] = int(satisfied)
        if satisfied:
            worst = min(worst, ratio[0, t])
        else:
            best = max(best, ratio[1, t])
            unsatisfied += state.types[COUNT, t]
    now.worst, now.best = worst, best
    now.unsatisfied = unsatisfied
