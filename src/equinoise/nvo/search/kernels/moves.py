"""Compiled annealing: transfers of records between types, each tested in O(K), accepted by Metropolis.

Of all used types only the one with the largest mass can break the upper limit at some x first. A state
keeps the largest masses at every x, so the largest one without the two types that a transfer may empty
is known at once. At the end transfers are accepted by gain alone.
"""

from equinoise._jit import njit
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.nvo.kernels import MARGIN, Game, divergence, evaluate
from equinoise.nvo.search.kernels.draws import draw

DEPTH = 6  # so many of the largest masses at every x are known
_SOMETHING = 5e-324  # the least positive number: who is alone somewhere is revealed outright
_ROUNDING = 1e-11  # of the largest mass since the last fresh sum: more than differences may have lost
_FRESH = 1e-4  # a mass below this part of that largest one is added up anew
_DOUBT = 1e-11  # nats: more than divergences and slopes are rounded by
_ACCEPTED = 512  # transfers between two fresh sums, at most


class State(NamedTuple):
    """A profile and what follows from it; written by :func:`refresh` and :func:`accept`.

    counts int64[T]; used int64[T]: the used types, n_used of them first; place int64[T]: where in used, or
    -1; numbers int64[2]: n_used, accepted transfers since the last fresh sums; mass, peak, trial float64[K]:
    sum of masses, its largest value since the last fresh sums, its value after the transfer on trial;
    top float64[DEPTH, K], who int64[DEPTH, K]: the largest masses of used types, and whose they are (-1
    none), three at least where there are, the others at most rest float64[K];
    work float64[3, K]: scratch; slope float64[K]: of the divergence by the mass, see :func:`tilt`.
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
    rest: Floats
    work: Floats
    slope: Floats


@njit
def refresh(game: Game, state: State) -> None:
    """Compute all of a state from its counts."""
    n_used = 0
    for x in range(state.mass.size):
        state.mass[x] = 0.0
        _start(state, x)
    for t in range(state.counts.size):
        state.place[t] = -1
        count = state.counts[t]
        if count > 0:
            state.used[n_used] = t
            state.place[t] = n_used
            n_used += 1
            for x in range(state.mass.size):
                state.mass[x] += count * game.masses[t, x]
                _rank_at(game, state, t, x)
    for x in range(state.mass.size):
        state.peak[x] = state.mass[x]
    state.numbers[0], state.numbers[1] = n_used, 0


@njit(forceinline=True)
def _rank_at(game: Game, state: State, t: int, x: int) -> None:
    """Let a newly used type take its place among the largest masses at x, or be left out of these."""
    top, who, m = state.top, state.who, game.masses[t, x]
    if m > state.rest[x]:
        i = DEPTH - 1
        state.rest[x] = max(state.rest[x], min(m, top[i, x]))
        if m > top[i, x]:
            while i > 0 and m > top[i - 1, x]:
                top[i, x] = top[i - 1, x]
                who[i, x] = who[i - 1, x]
                i -= 1
            top[i, x] = m
            who[i, x] = t


@njit
def _rank_again(game: Game, state: State, gone: int) -> None:
    """Take a type that is used no more off the lists; where fewer than three are left, list anew."""
    top, who, last = state.top, state.who, DEPTH - 1
    for x in range(state.rest.size):
        if game.masses[gone, x] >= state.rest[x]:  # or it is not on the list
            i = 0
            while i <= last and who[i, x] != gone:
                i += 1
            if i <= last:
                while i < last:
                    top[i, x] = top[i + 1, x]
                    who[i, x] = who[i + 1, x]
                    i += 1
                top[last, x] = 0.0
                who[last, x] = -1
                if top[2, x] == 0.0 and state.rest[x] > 0.0:
                    _start(state, x)
                    for j in range(state.numbers[0]):
                        _rank_at(game, state, state.used[j], x)


@njit(forceinline=True)
def _start(state: State, x: int) -> None:
    """Empty the list of the largest masses at x."""
    state.rest[x] = 0.0
    for i in range(DEPTH):
        state.top[i, x] = 0.0
        state.who[i, x] = -1


# Transfers: (amount, source, target) and a second one at the same time, which may be (0, t, t)


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
    fails, unclear, one, two = 0, 0, float(a), float(b)
    for x in range(trial.size):
        trial[x] = state.mass[x] + one * (masses[t, x] - masses[f, x]) + two * (masses[u, x] - masses[g, x])
    for x in range(trial.size):  # with what is written above it would not be vectorised
        mass = trial[x]
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
    holds = game.low <= 0.0 or evaluate(game, state.counts, state.work)[0] == game.n
    for x in range(state.trial.size if game.low <= 0.0 else 0):
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
    enough = max(game.odds * need * MARGIN, _SOMETHING if need > 0.0 else 0.0)
    rest, left_out, n_used = 0.0, False, state.numbers[0]
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
    for s in (f, g, t, u):
        _list(game, state, s)


@njit
def _list(game: Game, state: State, t: int) -> None:
    """Put a type with records on the list of used ones, or take one without records off it."""
    place = state.place[t]
    if state.counts[t] == 0 and place >= 0:
        last = state.used[state.numbers[0] - 1]
        state.used[place] = last
        state.place[last] = place
        state.place[t] = -1
        state.numbers[0] -= 1
        _rank_again(game, state, t)
    if state.counts[t] > 0 and place < 0:
        state.used[state.numbers[0]] = t
        state.place[t] = state.numbers[0]
        state.numbers[0] += 1
        for x in range(state.rest.size):
            _rank_at(game, state, t, x)


@njit
def tilt(game: Game, state: State) -> None:
    """Fill slope with the derivatives of the divergence by the mass at every x."""
    for x in range(state.mass.size):
        state.slope[x] = -game.share[x] / state.mass[x] if game.share[x] > 0.0 else 0.0


@njit(fastmath={"reassoc"})  # a sum in any order: what hangs on it allows for far more than rounding
def least_change(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> float:
    """Return what two transfers change the divergence by along its slope: convex, it changes by no less."""
    masses, slope = game.masses, state.slope
    one = two = 0.0
    for x in range(slope.size):
        one += slope[x] * (masses[t, x] - masses[f, x])
    if b > 0:
        for x in range(slope.size):
            two += slope[x] * (masses[u, x] - masses[g, x])
    return float(a) * one + float(b) * two


@njit
def excess(game: Game, state: State, a: int, f: int, t: int, b: int, g: int, u: int) -> float:
    """Return the sum over x of (1 - high mass / (largest used mass))+ after two transfers; fill trial."""
    _try(game, state, a, f, t, b, g, u)
    gone_1 = f if state.counts[f] == a else -2
    gone_2 = g if state.counts[g] == b else -2
    total = 0.0
    for x in range(state.trial.size):
        need = max(_need(state, x, gone_1, gone_2), max(game.masses[t, x], game.masses[u, x]))
        if game.high * state.trial[x] < need:
            total += 1.0 - game.high * state.trial[x] / need
    return total


@njit(forceinline=True)
def copy(values: Ints, out: Ints) -> None:
    """Copy int64[T]."""
    for t in range(values.size):
        out[t] = values[t]


@njit
def anneal(
    game: Game, state: State, best: Ints, words: Words, numbers: Floats, pair: float, first: int, n_steps: int
) -> None:
    """Run Metropolis steps among profiles in which every used type is satisfied, of scales from `first` on.

    numbers float64[4]: divergence of the state, of the best profile so far (best int64[T]), temperature, and
    the factor of the temperature a step. A transfer that changes the divergence by d is accepted iff
    d <= temperature * (a standard exponential variable).
    """
    now, least, temperature, factor = numbers[0], numbers[1], numbers[2], numbers[3]
    kept = now > least
    tilt(game, state)
    for _ in range(n_steps):
        temperature *= factor
        used = state.used[: state.numbers[0]]
        a, f, t, b, g, u, patience = draw(game.n_scales, first, state.counts, used, words, pair)
        if least_change(game, state, a, f, t, b, g, u) > temperature * patience + _DOUBT:
            continue
        if not allowed(game, state, a, f, t, b, g, u):
            continue
        then = divergence(game, state.trial, state.work)
        if then > now + temperature * patience:
            continue
        if then > now and not kept:
            copy(state.counts, best)
            kept = True
        accept(game, state, a, f, t, b, g, u)
        tilt(game, state)
        now = then
        if now < least:
            least = now
            kept = False
    if not kept:
        copy(state.counts, best)
    numbers[0], numbers[1], numbers[2] = now, least, temperature


@njit
def polish(game: Game, state: State, now: float, gain: float) -> Any:
    """Go once over all transfers and carry out those that lower the divergence by more than gain.

    Of every used type and every other scale of its bin: all records, else one, and then two, four and so on
    while that pays. Return (divergence, number of transfers): zero transfers mean that no record, and no
    whole type, can gain.
    """
    n_moves = 0
    for f in range(state.counts.size):
        first = f - f % game.n_scales
        for t in range(first, first + game.n_scales):
            a = state.counts[f]
            while t != f and 0 < a <= state.counts[f]:
                paid = allowed(game, state, a, f, t, 0, t, t)
                then = divergence(game, state.trial, state.work) if paid else now
                paid = paid and then < now - gain
                if paid:
                    accept(game, state, a, f, t, 0, t, t)
                    now = then
                    n_moves += 1
                    a *= 2
                elif a == 1:
                    break
                else:
                    a = 1 if a == state.counts[f] else 0
    return now, n_moves


@njit
def repair(
    game: Game, state: State, words: Words, numbers: Floats, pair: float, first: int, n_steps: int
) -> bool:
    """Run Metropolis steps on the excess until every used type is satisfied; return whether that was reached.

    numbers float64[4]: excess of the state, unused, temperature, and its factor a step.
    """
    now, temperature, factor, found = numbers[0], numbers[2], numbers[3], False
    for _ in range(n_steps):
        temperature *= factor
        used = state.used[: state.numbers[0]]
        a, f, t, b, g, u, patience = draw(game.n_scales, first, state.counts, used, words, pair)
        then = excess(game, state, a, f, t, b, g, u)
        if then <= now + temperature * patience:
            found = then <= 0.0 and allowed(game, state, a, f, t, b, g, u)
            accept(game, state, a, f, t, b, g, u)
            now = then
            if found:
                break
    numbers[0], numbers[2] = now, temperature
    return found
