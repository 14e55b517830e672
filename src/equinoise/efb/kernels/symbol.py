"""Kernels of one symbol a user: explicit exploration, hashing, and an update of the bucket that was reported.

A trial goes as in :mod:`equinoise.efb.kernels.trial`, and walks with the same function. The draw leaves
divisions to :func:`learn`, which needs them only above what a report moves.
"""

import numpy as np
from numpy.typing import NDArray

from equinoise._intrinsics import prefetch
from equinoise._jit import njit
from equinoise._random import HASH, NOISE, STRATEGY, next_word, uniform
from equinoise._typing import Any, Floats, NamedTuple
from equinoise.efb.kernels.trial import Seat, Source, Visits, first_above, move, moved_by, push, stream
from equinoise.efb.kernels.weights import look, pick
from equinoise.mechanisms.hashing import item_of, pair_of, symbol_of

OWN = np.dtype([("exploration", np.float64), ("radius", np.float64)])
_HALF = np.uint64(0xFFFFFFFF)
_UPPER = np.uint64(32)
_TINY = 1e-300
_SPARE = np.uint64(2)  # bits of a word beyond the 62 that draw a symbol


class SymbolPlan(NamedTuple):
    """What a learner of symbols knows: infosets PLAN_INFOSET[I+1], actions (child int64)[A+1], own OWN[A].

    Of an infoset: its first action, and 0 in place of gamma where no action leads to another infoset, else
    -1. Of an action: its first child infoset; rho nu(a) and r(a). cumulative float64[A] are running sums of
    nu over the actions of an infoset, of which the first above u comes.
    """

    infosets: NDArray[np.void]
    actions: NDArray[np.void]
    own: NDArray[np.void]
    cumulative: Floats


@njit(forceinline=True)
def draw(seat: Seat, trial: Any) -> int:
    """Draw a reduced strategy, breadth first; fill the visit list and return its length n.

    The first word of the stream (key; 0, trial, replicate, STRATEGY) says whether the strategy comes from the
    exploration nu, with probability `explore`, or from the policy; position i takes word i + 1.
    """
    s0, s1, s2, s3 = stream(seat.source, trial, STRATEGY)
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    if uniform(word) < seat.explore:
        return _explore(seat, s0, s1, s2, s3)
    plan, weights, visits = seat[:3]
    visits.infoset[0] = 0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = plan.infosets[s]["first"]
        width = plan.infosets[s + 1]["first"] - first
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        a, w, rest = pick(weights, plan.own, first, width, s, uniform(word))
        visits.action[i] = a
        visits.picked[i] = w
        visits.others[i] = rest
        visits.child[i] = n
        prefetch(plan.own, a)
        if plan.infosets[s]["exploration"] < 0.0:
            n = _enter(seat, i, a, n)
        i += 1
    return n


@njit(forceinline=True)
def _enter(seat: Seat, i: int, a: int, n: int) -> int:
    """Put the child infosets of action a, picked at position i, at the end of the visit list."""
    plan, weights, visits = seat[:3]
    for c in range(plan.actions[a]["child"], plan.actions[a + 1]["child"]):
        visits.infoset[n] = c
        visits.parent[n] = i
        prefetch(weights.weight, plan.infosets[c]["first"])
        prefetch(weights.weight, plan.infosets[c]["first"] + 8)
        n += 1
    return n


@njit
def _explore(seat: Seat, s0: Any, s1: Any, s2: Any, s3: Any) -> int:
    """Draw a reduced strategy from nu, and look up what the policy says of it.

    Apart from :func:`draw`, whose loop then asks nothing more at a visit; few trials come here.
    """
    plan, weights, visits = seat[:3]
    visits.infoset[0] = 0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = plan.infosets[s]["first"]
        width = plan.infosets[s + 1]["first"] - first
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        a = first_above(plan.cumulative, first, first + width, uniform(word))
        visits.action[i] = a
        visits.picked[i], visits.others[i] = look(weights, first, width, s, a)
        visits.child[i] = n
        n = _enter(seat, i, a, n)
        i += 1
    return n


@njit(forceinline=True)
def hash_visits(seat: Seat, n: int, n_buckets: int, trial: Any) -> None:
    """Fill ``half`` with public bits for every block of k visits, of which each is in a bucket of its own.

    Blocks 2b and 2b + 1 take the lower and the upper half of word b of the stream (public key; 0, trial,
    replicate, HASH), its key known to everybody.
    """
    s0, s1, s2, s3 = stream(seat.public, trial, HASH)
    for b in range(0, (n + n_buckets - 1) // n_buckets, 2):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        seat.visits.half[b] = np.int64(word & _HALF)
        seat.visits.half[b + 1] = np.int64(word >> _UPPER)


@njit
def public_bits(block: int, public: Source, trial: Any) -> Any:
    """Return what :func:`hash_visits` gives one block."""
    s0, s1, s2, s3 = stream(public, trial, HASH)
    word = s0
    for _ in range((block >> 1) + 1):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    return np.int64(word >> _UPPER) if block & 1 else np.int64(word & _HALF)


@njit(forceinline=True)
def secret_word(source: Source, trial: Any) -> Any:
    """Return the word below 2^62 of a simulated user, from (key; 0, trial, replicate, NOISE)."""
    word, _, _, _ = stream(source, trial, NOISE)
    return np.int64(word >> _SPARE)


@njit(forceinline=True)
def sent(seat: Seat, code: Any, trial: Any, last: int, loss: float) -> Any:
    """Return the symbol that a simulated user sends, whose play ended below the action at position `last`."""
    own = pair_of(last, seat.visits.half[last // code.n_buckets], code.n_buckets)
    radius = seat.plan.own[seat.visits.action[last]]["radius"]
    return symbol_of(code, secret_word(seat.source, trial), own, loss - 0.5, radius)


@njit(forceinline=True)
def learn(seat: Seat, n: int, code: Any, symbol: int) -> None:
    """Update the policy by a symbol, exactly as exponential weights over reduced strategies would.

    y(a) = s z(a) r(a) G where h(a) = j, else 0; lhat(a) = y(a) / ((1 - rho) mu(a) + rho nu(a)); from there as
    :func:`equinoise.efb.kernels.trial.update`. With more than a few buckets most estimates are 0, and what
    has none below it is left alone.
    """
    rate, visits = seat.rate * 2.0**62 / code.extra, seat.visits
    if code.n_buckets > 1:
        _learn_some(seat, n, code.n_buckets, symbol, rate)
        return
    for i in range(n):
        _divide(visits, i)
        visits.value[i] = _step(seat, i, visits.half[i], symbol, rate)
    for i in range(n):
        visits.factor[i] = moved_by(visits.value[i])
    push(seat, n)


@njit(forceinline=True)
def _divide(visits: Visits, i: int) -> None:
    """Turn the weights of a visit into probabilities, and find mu of its action from the visit above."""
    scale = 1.0 / (visits.picked[i] + visits.others[i])
    mu = visits.picked[i] * scale
    visits.picked[i] = mu
    visits.others[i] *= scale
    visits.reach[i] = mu * visits.reach[visits.parent[i]] if i > 0 else mu


@njit(forceinline=True)
def _step(seat: Seat, i: int, half: int, symbol: int, rate: float) -> float:
    """Return -eta lhat of a visit's action, whose bucket was reported; `rate` is eta G."""
    own = seat.plan.own[seat.visits.action[i]]
    divisor = (1.0 - seat.explore) * seat.visits.reach[i] + own["exploration"]
    size = rate * own["radius"] / max(divisor, _TINY)
    return size if (half ^ symbol) & 1 else -size


@njit(forceinline=True)
def _learn_some(seat: Seat, n: int, n_buckets: int, symbol: int, rate: float) -> None:
    """Update by a symbol of one bucket out of several: only the marked visits, and what lies above them."""
    visits, factor, marked, moved = seat.visits, seat.visits.factor, seat.visits.marked, seat.visits.moved
    n_blocks = (n + n_buckets - 1) // n_buckets
    for b in range(n_blocks):
        marked[min(item_of(b, visits.half[b], symbol >> 1, n_buckets), n)] = 1
    count = 0
    for i in range(n - 1, -1, -1):  # without branches, which would be hard to foresee
        moves = marked[i]
        marked[i] = 0
        marked[visits.parent[i]] |= moves
        moved[count] = i
        count += moves
    marked[0] = marked[n] = 0
    for j in range(count - 1, -1, -1):
        _divide(visits, moved[j])
        factor[moved[j]] = 1.0
    for b in range(n_blocks):
        i = item_of(b, visits.half[b], symbol >> 1, n_buckets)
        if i < n:
            factor[i] = moved_by(_step(seat, i, visits.half[b], symbol, rate))
    for j in range(count):
        i = moved[j]
        z = move(seat, i, factor[i])
        if i > 0:
            factor[visits.parent[i]] *= z
