"""Compiled local search: a profile that transfers of records between types change, tested in O(K) each.

Of all used types only the one with the largest mass can break the upper limit at some x first. A state
keeps the three largest masses at every x, so the largest one without the two types that a transfer may empty
is known at once.
"""

from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.nvo.kernels.evaluation import MARGIN, Game, evaluate

_SOMETHING = 5e-324  # the least positive number: who is alone somewhere is revealed outright
_ROUNDING = 1e-11  # of the largest mass since the last fresh sum: more than differences may have lost
_FRESH = 1e-4  # a mass below this part of that largest one is added up anew
_ACCEPTED = 512  # transfers between two fresh sums, at most


class State(NamedTuple):
    """A profile and what follows from it; written by :func:`refresh` and :func:`accept`.

    counts int64[T]; used int64[T]: the used types, n_used of them first; place int64[T]: where in used, or
    -1; numbers int64[2]: n_used, accepted transfers since the last fresh sums; mass, peak, trial float64[K]:
    sum of masses, its largest value since the last fresh sums, its value after the transfer on trial;
    top float64[3, K], who int64[3, K]: the three largest masses of used types, and whose they are (-1 none);
    work float64[3, K]: scratch.
    """

    counts: Ints
    used: Ints
    place: Ints
    numbers: Ints
    mass: Floats
    peak: Floats
    trial: Floats
    top: Floats
    who: Ints
    work: Floats


@njit
def refresh(game: Game, state: State) -> None:
    """Compute all of a state from its counts."""
    n_used = 0
    for x in range(state.mass.size):
        state.mass[x] = 0.0
        for i in range(3):
            state.top[i, x] = 0.0
            state.who[i, x] = -1
    for t in range(state.counts.size):
        state.place[t] = -1
        count = state.counts[t]
        if count > 0:
            state.used[n_used] = t
            state.place[t] = n_used
            n_used += 1
            for x in range(state.mass.size):
                state.mass[x] += count * game.masses[t, x]
            _rank(game, state, t)
    for x in range(state.mass.size):
        state.peak[x] = state.mass[x]
    state.numbers[0] = n_used
    state.numbers[1] = 0


@njit
def _rank(game: Game, state: State, t: int) -> None:
    """Let a newly used type take its place among the three largest masses of every x."""
    top, who = state.top, state.who
    for x in range(state.mass.size):
        m = game.masses[t, x]
        one, two, three = m > top[0, x], m > top[1, x], m > top[2, x]
        top[2, x] = top[1, x] if two else (m if three else top[2, x])
        who[2, x] = who[1, x] if two else (t if three else who[2, x])
        top[1, x] = top[0, x] if one else (m if two else top[1, x])
        who[1, x] = who[0, x] if one else (t if two else who[1, x])
        top[0, x] = m if one else top[0, x]
        who[0, x] = t if one else who[0, x]


@njit
def _rank_again(game: Game, state: State, gone: int) -> None:
    """Find the three largest anew wherever a type that is used no more was one of them."""
    top, who = state.top, state.who
    for x in range(state.mass.size):
        if who[0, x] == gone or who[1, x] == gone or who[2, x] == gone:
            for i in range(3):
                top[i, x] = 0.0
                who[i, x] = -1
            for j in range(state.numbers[0]):
                t = state.used[j]
                m = game.masses[t, x]
                if m > top[2, x]:
                    i = 2
                    while i > 0 and m > top[i - 1, x]:
                        top[i, x] = top[i - 1, x]
                        who[i, x] = who[i - 1, x]
                        i -= 1
                    top[i, x] = m
                    who[i, x] = t


# --------------------------------------------------------------------------------------------------------
# Transfers: (amount, source, target) and a second one at the same time, which may be (0, t, t)
# --------------------------------------------------------------------------------------------------------


@njit(forceinline=True)
def _need(state: State, x: int, gone_1: int, gone_2: int) -> float:
    """Return the largest mass at x of used types but two."""
    who_0, who_1 = state.who[0, x], state.who[1, x]
    without_0 = (who_0 == gone_1) | (who_0 == gone_2)
    without_1 = (who_1 == gone_1) | (who_1 == gone_2)
    second = state.top[2, x] if without_1 else state.top[1, x]
    return second if without_0 else state.top[0, x]


@njit
def _try(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> Any:
    """Put the mass after two transfers into trial; return at how many x it surely and perhaps fails."""
    masses, trial = game.masses, state.trial
    gone_1 = f if state.counts[f] == a else -2
    gone_2 = g if state.counts[g] == b else -2
    first, second = float(a), float(b)
    fails, unclear = 0, 0
    for x in range(trial.size):
        mass = state.mass[x] + first * (masses[t, x] - masses[f, x]) + second * (masses[u, x] - masses[g, x])
        trial[x] = mass
        need = max(_need(state, x, gone_1, gone_2), max(masses[t, x], masses[u, x]))
        gap = game.high * mass - need
        slack = _ROUNDING * max(state.peak[x], mass)
        fails += int(gap < -slack)
        unclear += int(gap < slack)
    return fails, unclear


@njit
def _exactly(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> bool:
    """Return whether all used types are satisfied after two transfers that :func:`_try` finds unclear."""
    gone_1 = f if state.counts[f] == a else -2
    gone_2 = g if state.counts[g] == b else -2
    _shift(state.counts, a, f, t, b, g, u)
    holds = True
    if game.low > 0.0:
        holds = evaluate(game, state.counts, state.work)[0] == game.n
    else:
        for x in range(state.trial.size):
            need = max(_need(state, x, gone_1, gone_2), max(game.masses[t, x], game.masses[u, x]))
            if game.high * state.trial[x] - need < _ROUNDING * max(state.peak[x], state.trial[x]):
                holds = holds and _holds(game, state, x, need, t, u)
    _shift(state.counts, -a, f, t, -b, g, u)
    return holds


@njit(forceinline=True)
def _shift(counts: Ints, a: int, f: int, t: int, b: int, g: int, u: int) -> None:
    """Move a records from type f to t and b from g to u."""
    counts[f] -= a
    counts[t] += a
    counts[g] -= b
    counts[u] += b


@njit
def _holds(game: Game, state: State, x: int, need: float, t: int, u: int) -> bool:
    """Return whether the largest mass at x is satisfied: add up the rest of the mass until it is enough."""
    enough = game.odds * need * MARGIN
    if need > 0.0:
        enough = max(enough, _SOMETHING)
    rest = 0.0
    left_out = False
    n_used = state.numbers[0]
    for j in range(n_used + 2):
        if rest >= enough:
            return True
        s = state.used[j] if j < n_used else (t if j == n_used else u)
        if j < n_used or (state.place[s] < 0 and (j == n_used or t != u)):
            count = float(state.counts[s])
            m = game.masses[s, x]
            if count > 0.0 and m == need and not left_out:
                left_out = True
                count -= 1.0
            rest += count * m
    return rest >= enough


@njit
def allowed(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> bool:
    """Return whether every used type is satisfied after two transfers; put the mass then into trial."""
    fails, unclear = _try(game, state, a, f, t, b, g, u)
    if fails == 0 and (unclear > 0 or game.low > 0.0):
        return _exactly(game, state, a, f, t, b, g, u)
    return fails == 0


@njit
def accept(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> None:
    """Carry out the two transfers whose mass is in state.trial."""
    _shift(state.counts, a, f, t, b, g, u)
    state.numbers[1] += 1
    stale = int(state.numbers[1] >= _ACCEPTED)
    for x in range(state.mass.size):
        state.mass[x] = state.trial[x]
        state.peak[x] = max(state.peak[x], state.trial[x])
        stale += int(state.trial[x] < _FRESH * state.peak[x])
    if stale > 0:
        refresh(game, state)
        return
    _leave(game, state, f)
    _leave(game, state, g)
    _join(game, state, t)
    _join(game, state, u)


@njit
def _leave(game: Game, state: State, t: int) -> None:
    """Take a type without records off the list of used ones."""
    if state.counts[t] == 0 and state.place[t] >= 0:
        last = state.used[state.numbers[0] - 1]
        state.used[state.place[t]] = last
        state.place[last] = state.place[t]
        state.place[t] = -1
        state.numbers[0] -= 1
        _rank_again(game, state, t)


@njit
def _join(game: Game, state: State, t: int) -> None:
    """Put a type with records on the list of used ones."""
    if state.counts[t] > 0 and state.place[t] < 0:
        state.used[state.numbers[0]] = t
        state.place[t] = state.numbers[0]
        state.numbers[0] += 1
        _rank(game, state, t)


@njit
def excess(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> float:
    """Return by how much the upper limit is broken after two transfers, and put the mass then into trial.

    At every x 1 - high mass / (largest used mass) where that is positive; the sum of these.
    """
    _try(game, state, a, f, t, b, g, u)
    gone_1 = f if state.counts[f] == a else -2
    gone_2 = g if state.counts[g] == b else -2
    total = 0.0
    for x in range(state.trial.size):
        need = max(_need(state, x, gone_1, gone_2), max(game.masses[t, x], game.masses[u, x]))
        if game.high * state.trial[x] < need:
            total += 1.0 - game.high * state.trial[x] / need
    return total
