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

from __future__ import annotations

import math

from equinoise._jit import njit
from equinoise.nvo.search.kernels.response_state import (
    BEST,
    CHANGE,
    COUNT,
    CROWD,
    DOWN,
    HIGH,
    INVERSE,
    LOW,
    N_BINS,
    N_RARE,
    N_TIGHT,
    N_USED,
    NEXT_TIGHT,
    ODDS_HIGH,
    ODDS_LOW,
    PLACE_RARE,
    RARE,
    RELEASED,
    SATISFIED,
    TAU_HIGH,
    TAU_LOW,
    UNSATISFIED,
    UP,
    USED,
    WORST,
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
    bins, factor, along, limits = state.bins, state.factor, game.along, game.limits
    n_bins, weight, base = game.sizes[N_BINS], game.weight[t], row_start(game, t)
    most = 0.0
    for x in range(n_bins):
        part = along[base + x] * bins[INVERSE, x]
        most = part if part > most else most
    ratio = limits[TAU_HIGH] / (weight * most)
    if limits[TAU_LOW] > 0.0:
        for x in range(n_bins):
            if bins[INVERSE, x] > 0.0:
                part = weight * along[base + x] * bins[INVERSE, x]
                ratio = min(ratio, part / limits[TAU_LOW])
    state.ratio[0, t] = ratio / factor[DOWN]
    state.ratio[1, t] = ratio / factor[UP]


@njit(forceinline=True)
def keep(state: State, t: int, listed: int, length: int, wanted: bool) -> bool:
    """Put type t into the list in row `listed`, or take it out; return whether it is new there."""
    types, number = state.types, state.number
    place = types[listed + 1, t]
    if wanted and place < 0:
        types[listed + 1, t] = number[length]
        types[listed, number[length]] = t
        number[length] += 1
        return True
    if not wanted and place >= 0:
        number[length] -= 1
        last = types[listed, number[length]]
        types[listed, place] = last
        types[listed + 1, last] = place
        types[listed + 1, t] = -1
    return False


@njit
def list_rare(game: Game, state: State, t: int) -> None:
    """Bring the list of rare types up to date about type t; where it is new there it is called satisfied."""
    types, factor = state.types, state.factor
    if keep(state, t, RARE, N_RARE, 0 < types[COUNT, t] < game.limits[CROWD]):
        refresh(game, state, t)
        types[SATISFIED, t] = 1
        factor[WORST] = min(factor[WORST], state.ratio[0, t])


@njit
def _decide(game: Game, state: State, t: int, moved: float) -> bool:
    """Return whether type t is satisfied: now (moved = 0), or after the option looked at (1).

    COUNT holds the records of that state.
    """
    types, factor, ratio = state.types, state.factor, state.ratio
    if types[COUNT, t] >= game.limits[CROWD]:
        return True
    if types[PLACE_RARE, t] >= 0:
        low, high = factor[DOWN], factor[UP]
        if moved > 0.0:
            low, high = low * factor[LOW], high * factor[HIGH]
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
    bins, types, along, limits = state.bins, state.types, game.along, game.limits
    weight, base = game.weight[t], row_start(game, t)
    tau_high, tau_low = limits[TAU_HIGH], limits[TAU_LOW]
    past, near = 0, 0
    for x in range(game.sizes[N_BINS]):
        mass = weight * along[base + x]
        total = bins[RELEASED, x] + moved * bins[CHANGE, x]
        slack = _MARGIN * (total + bins[RELEASED, x])
        past += mass > tau_high * (total + slack)
        near += mass > tau_high * (total - slack) or mass < tau_low * (total + slack)
    if near == 0:
        return True
    if past > 0 and tau_high < 1.0 - 4.0 * _MARGIN:
        return False
    for x in range(game.sizes[N_BINS]):
        mass = weight * along[base + x]
        total = bins[RELEASED, x] + moved * bins[CHANGE, x]
        slack = _MARGIN * (total + bins[RELEASED, x])
        if mass > tau_high * (total - slack) or mass < tau_low * (total + slack):
            others = 0.0
            for i in range(-1, state.number[N_USED]):
                u = t if i < 0 else types[USED, i]
                count = types[COUNT, t] - 1 if i < 0 else (types[COUNT, u] if u != t else 0)
                others += count * (game.weight[u] * along[row_start(game, u) + x])
            if mass > 0.0 and not mass <= limits[ODDS_HIGH] * others * (1.0 - _EXACT):
                return False
            if mass < limits[ODDS_LOW] * others * (1.0 + _EXACT):
                return False
    return True


@njit
def more_satisfied(game: Game, state: State, old: int, new: int, m: int) -> int:
    """Return how many more are satisfied after the option looked at, m records from type old to new.

    Where everybody is satisfied now, a negative number means only that somebody would not be; the limit that
    was broken is remembered.
    """
    types, number, factor, ratio = state.types, state.number, state.factor, state.ratio
    all_now = number[UNSATISFIED] == 0
    before_old, before_new = types[COUNT, old], types[COUNT, new]
    types[COUNT, old] -= m
    types[COUNT, new] += m
    keep(state, new, USED, N_USED, types[COUNT, new] > 0)
    result = 0
    low, high = factor[DOWN] * factor[LOW], factor[UP] * factor[HIGH]
    scan = factor[WORST] * low < 1.0 + _MARGIN or factor[BEST] * high >= 1.0 - _MARGIN
    worst, best = math.inf, 0.0
    for i in range(-2, number[N_RARE] if scan else 0):
        t = new if i == -2 else (old if i == -1 else types[RARE, i])
        if i < 0 or (t != old and t != new):
            before = before_new if t == new else (before_old if t == old else types[COUNT, t])
            if types[PLACE_RARE, t] >= 0 and types[SATISFIED, t] == 0:
                before = 0
            after = types[COUNT, t]
            if after > 0 and not _decide(game, state, t, 1.0):
                after = 0
                if all_now:
                    result = -1
                    _remember(game, state, t)
                    break
            result += after - before
        if i >= 0:
            satisfied = types[SATISFIED, t] == 1
            worst = min(worst, ratio[0, t]) if satisfied else worst
            best = best if satisfied else max(best, ratio[1, t])
    types[COUNT, old] = before_old
    types[COUNT, new] = before_new
    keep(state, new, USED, N_USED, types[COUNT, new] > 0)
    if scan and not (all_now and result < 0):
        factor[WORST], factor[BEST] = worst, best
    return result


@njit
def _remember(game: Game, state: State, t: int) -> None:
    """Keep type t, and the bin where the option looked at breaks its upper limit most, in `tight`."""
    bins, number, along = state.bins, state.number, game.along
    worst, where = 0.0, 0
    base = row_start(game, t)
    for x in range(game.sizes[N_BINS]):
        total = max(bins[RELEASED, x] + bins[CHANGE, x], _NOTHING)
        if along[base + x] > worst * total:
            worst, where = along[base + x] / total, x
    at = number[NEXT_TIGHT]
    state.tight[0, at], state.tight[1, at] = t, where
    number[NEXT_TIGHT] = (at + 1) % N_TIGHT


@njit
def breaks(game: Game, state: State, old: int, new: int) -> bool:
    """Return whether a record of type old that becomes type new surely breaks a limit of `tight`."""
    bins, along, weight, limits = state.bins, game.along, game.weight, game.limits
    plus, minus = weight[new], weight[old]
    to, off = row_start(game, new), row_start(game, old)
    for i in range(N_TIGHT):
        t, x = state.tight[0, i], state.tight[1, i]
        if t >= 0 and state.types[COUNT, t] - int(t == old) + int(t == new) > 0:
            total = bins[RELEASED, x] + (plus * along[to + x] - minus * along[off + x])
            slack = _MARGIN * (total + bins[RELEASED, x])
            mass = weight[t] * along[row_start(game, t) + x]
            if mass > limits[TAU_HIGH] * (total + slack) and limits[TAU_HIGH] < 1.0 - 4.0 * _MARGIN:
                return True
    return False


@njit
def settle(game: Game, state: State) -> None:
    """Decide for every rare type whether it is satisfied."""
    types, number, factor, ratio = state.types, state.number, state.factor, state.ratio
    unsatisfied = 0
    worst, best = math.inf, 0.0
    for i in range(number[N_RARE]):
        t = types[RARE, i]
        satisfied = _decide(game, state, t, 0.0)
        types[SATISFIED, t] = int(satisfied)
        if satisfied:
            worst = min(worst, ratio[0, t])
        else:
            best = max(best, ratio[1, t])
            unsatisfied += types[COUNT, t]
    factor[WORST], factor[BEST] = worst, best
    number[UNSATISFIED] = unsatisfied
