"""What a learner does in a trial, by either mechanism: draw a reduced strategy, walk it, report, learn.

A trial costs what it visits: infosets breadth first, of which the i-th has position i of the visit list, so
that children stand side by side. A learner of symbols has a code, one of noised losses a scale. They go into
these functions as arguments of their own, for Numba compiles no branch that asks for one that is None.
"""

import numpy as np

from equinoise._elementary import exp
from equinoise._intrinsics import float_bits, prefetch
from equinoise._jit import njit
from equinoise._random import CHANCE, HASH, NOISE, STRATEGY, laplace, next_word, philox, uniform
from equinoise._typing import Any, Floats, Words
from equinoise.efb.kernels.setup import Chance, Seat, Source, Visits
from equinoise.efb.kernels.weights import look, multiply, pick
from equinoise.mechanisms.hashing import item_of, pair_of, symbol_of

STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
STEP_MAX = 80.0
FACTOR_MAX = 2.0**115
FACTOR_MIN = 2.0**-1000
_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one
_HALF = np.uint64(0xFFFFFFFF)
_UPPER = np.uint64(32)
_TINY = 1e-300
_SPARE = np.uint64(2)  # bits of a word beyond the 62 that draw a symbol


@njit(forceinline=True)
def stream(source: Source, trial: Any, purpose: Any) -> Any:
    """Return the stream (key; 0, trial, replicate, purpose) of a source (key's two words, replicate)."""
    return philox(source[0], source[1], np.uint64(0), np.uint64(trial), source[2], purpose)


@njit(forceinline=True)
def walk(plan: Any, chance: Chance, visits: Visits, source: Source, trial: Any) -> Any:
    """Walk the drawn strategy against the environment; return (position of the last action, u for its leaf).

    The d-th move takes word d of the stream (key; 0, trial, replicate, CHANCE), the same for all learners.
    """
    s0, s1, s2, s3 = stream(source, trial, CHANCE)
    i = 0
    while True:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        if plan.infosets[_at(visits.infoset[_at(i)])]["exploration"] >= 0.0:
            return i, u
        a = visits.action[_at(i)]
        low, high = plan.actions[_at(a)]["child"], plan.actions[_at(a + 1)]["child"]
        if low == high or u >= chance.infoset_cum[_at(high - 1)]:
            return i, u
        i = visits.child[i] + first_above(chance.infoset_cum, low, high, u) - low


@njit(forceinline=True)
def leaf_loss(chance: Chance, a: int, u: float) -> float:
    """Return the loss of the leaf of action a that comes with u."""
    mean = chance.mean_loss[_at(a)]
    if float_bits(mean) >= 0:
        return mean
    low, high = chance.leaf_ptr[_at(a)], chance.leaf_ptr[_at(a + 1)]
    return chance.leaf_loss[first_above(chance.leaf_cum, low, high, u)]


@njit(forceinline=True)
def first_above(cumulative: Floats, low: int, high: int, u: float) -> int:
    """Return the first k in [low, high) with u < cumulative[k], by bisection; one is known to exist."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        below = u < cumulative[_at(middle)]
        high = middle if below else high
        low = low if below else middle + 1
    return low


@njit(forceinline=True)
def moved_by(step: float) -> float:
    """Return the factor exp(step) of an action's own estimate, within bounds."""
    return exp(min(max(step, STEP_MIN), STEP_MAX))


@njit(forceinline=True)
def push(seat: Seat, n: int) -> None:
    """Multiply the weights by W, bottom-up; ``factor`` comes with each action's own part of it."""
    visits, factor = seat.visits, seat.visits.factor
    end = n  # the children of visit i are the visits child[i] .. end - 1
    for i in range(n - 1, -1, -1):
        start = visits.child[i]
        w = factor[i]
        for c in range(start, end):
            w *= factor[c]
        end = start
        factor[i] = move(seat, i, w)


@njit(forceinline=True)
def move(seat: Seat, i: int, w: float) -> float:
    """Multiply the weight of visit i by W, kept within bounds; return Z = pi(others) + pi(a) W."""
    infosets, visits, k = seat.plan.infosets, seat.visits, _at(i)
    w = min(max(w, FACTOR_MIN), FACTOR_MAX)
    s = visits.infoset[k]
    first = infosets[_at(s)]["first"]
    multiply(seat.weights, first, infosets[_at(s + 1)]["first"] - first, s, visits.action[k], w)
    return visits.others[k] + visits.picked[k] * w


@njit(forceinline=True)
def draw(seat: Seat, code: Any, scale: Any, ahead: Any, trial: Any) -> int:
    """Draw a reduced strategy, breadth first; fill the visit list and return its length n.

    At each visited infoset s an action is drawn from pi(. | s) = w / sum of w over s. Position i takes word i
    of the stream (key; 0, trial, replicate, STRATEGY). With a code it takes word i + 1, and the first says
    whether the strategy comes from the exploration nu, with probability `explore`, or from the policy. For
    `ahead`, which is asked for with a scale, see :func:`equinoise.efb.kernels.weights.pick`.
    """
    s0, s1, s2, s3 = stream(seat.source, trial, STRATEGY)
    n = 0
    if scale is not None:
        n = _descend(seat, code, scale, None, ahead, s0, s1, s2, s3)
    if code is not None:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        if uniform(word) < seat.explore:
            n = _explore(seat, code, s0, s1, s2, s3)
        else:
            n = _descend(seat, code, scale, None, seat.plan.own, s0, s1, s2, s3)
    return n


@njit
def _explore(seat: Seat, code: Any, s0: Any, s1: Any, s2: Any, s3: Any) -> int:
    """Draw from nu: a function that is called, since few trials come here."""
    return _descend(seat, code, None, seat.plan.cumulative, None, s0, s1, s2, s3)


@njit(forceinline=True)
def _descend(
    seat: Seat, code: Any, scale: Any, shares: Any, ahead: Any, s0: Any, s1: Any, s2: Any, s3: Any
) -> int:
    """Draw from the policy, where there is something `ahead`, or from the running sums `shares`.

    With a scale ``picked`` and ``others`` are probabilities, mu(a) is their product along the path, and
    ``divisor`` is mu(a) + gamma(a). With a code they are weights: :func:`_divide` is asked for few of them.
    """
    plan, weights, visits = seat[:3]
    visits.infoset[0] = 0
    visits.reach[0] = 1.0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = plan.infosets[_at(s)]["first"]
        width = plan.infosets[_at(s + 1)]["first"] - first
        shared = plan.infosets[_at(s)]["exploration"]
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        a, w, rest, mu = first, 0.0, 0.0, 0.0
        if ahead is not None:
            a, w, rest = pick(weights, ahead, first, width, s, uniform(word))
        if shares is not None:
            a = first_above(shares, first, first + width, uniform(word))
            w, rest = look(weights, first, width, s, a)
        if scale is not None:
            whole = 1.0 / (w + rest)
            w *= whole
            rest *= whole
            mu = visits.reach[i] * w
            visits.divisor[i] = mu + (shared if shared >= 0.0 else plan.actions[_at(a)]["exploration"])
        if code is not None:
            prefetch(plan.own, a)
        visits.action[i] = a
        visits.picked[i] = w
        visits.others[i] = rest
        visits.child[i] = n
        if shared < 0.0:
            for c in range(plan.actions[_at(a)]["child"], plan.actions[_at(a + 1)]["child"]):
                visits.infoset[n] = c
                if scale is not None:
                    visits.reach[n] = mu
                if code is not None:
                    visits.parent[n] = i
                prefetch(weights.weight, plan.infosets[_at(c)]["first"])
                prefetch(weights.weight, plan.infosets[_at(c)]["first"] + 8)
                n += 1
        i += 1
    return n


@njit(forceinline=True)
def prepare(seat: Seat, code: Any, scale: Any, n: int, trial: Any) -> None:
    """Make what a report needs beside the loss: noise for n values, or public bits.

    ``half`` gets bits for every block of k visits, of which each is in a bucket of its own. Blocks 2b and
    2b + 1 take the lower and the upper half of word b of the stream (public key; 0, trial, replicate, HASH).
    """
    if scale is not None:
        add_noise(seat.visits.value, seat.visits.word, n, scale, seat.source, trial)
    if code is not None:
        s0, s1, s2, s3 = stream(seat.public, trial, HASH)
        for b in range(0, (n + code.n_buckets - 1) // code.n_buckets, 2):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            seat.visits.half[b] = np.int64(word & _HALF)
            seat.visits.half[b + 1] = np.int64(word >> _UPPER)


@njit(forceinline=True)
def add_noise(value: Floats, word: Words, n: int, scale: float, source: Source, trial: Any) -> None:
    """Set value[i] = xi_i, n independent Laplace(scale) draws; scale 0 gives zeros. word is scratch.

    Position i takes word i of the stream (key; 0, trial, replicate, NOISE); the loss is added afterwards.
    """
    if scale == 0.0:
        for i in range(n):
            value[i] = 0.0
        return
    s0, s1, s2, s3 = stream(source, trial, NOISE)
    for i in range(n):
        word[i], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    for i in range(n):
        value[i] = scale * laplace(word[i])


@njit
def public_bits(block: int, public: Source, trial: Any) -> Any:
    """Return what :func:`prepare` gives one block."""
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
def learn(seat: Seat, code: Any, scale: Any, n: int, trial: Any, last: int, loss: float) -> None:
    """Let a simulated user report a loss below the action at position `last`, and learn from that."""
    visits, symbol = seat.visits, 0
    if scale is not None:
        visits.value[last] += loss
    if code is not None:
        own = pair_of(last, visits.half[last // code.n_buckets], code.n_buckets)
        radius = seat.plan.own[visits.action[last]]["radius"]
        symbol = symbol_of(code, secret_word(seat.source, trial), own, loss - 0.5, radius)
    update(seat, code, scale, n, symbol)


@njit(forceinline=True)
def update(seat: Seat, code: Any, scale: Any, n: int, symbol: Any) -> None:
    """Update the policy by a report, exactly as exponential weights over reduced strategies would.

    With a scale the report are the n values y(a), and lhat(a) = y(a) / (mu(a) + gamma(a)). A symbol says
    y(a) = s z(a) r(a) G where h(a) = j, else 0, and lhat(a) = y(a) / ((1 - rho) mu(a) + rho nu(a)); with more
    than a few buckets most estimates are 0, and what has none below it is left alone.
    Bottom-up over the visits, a the picked action, W = exp(-eta lhat(a)) times Z of the child infosets of a,
    w(a) becomes w(a) W, and Z(s) = sum of the new weights over the old = pi(others) + pi(a) W.
    """
    visits, rate = seat.visits, seat.rate
    if scale is not None:
        for i in range(n):
            visits.factor[i] = moved_by(-rate * visits.value[i] / visits.divisor[i])
        push(seat, n)
    if code is not None:
        rate = rate * 2.0**62 / code.extra
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


@njit
def run_trials(seat: Seat, chance: Chance, start: int, stop: int) -> Any:
    """Run the trials start..stop-1; return sums of expected losses of what was drawn, and of losses seen."""
    visits = seat.visits
    expected = observed = 0.0
    for trial in range(start, stop):
        n = draw(seat, seat.code, seat.scale, chance.ahead, trial)
        last, u = walk(seat.plan, chance, visits, seat.source, trial)
        for i in range(n):
            prefetch(chance.mean_loss, visits.action[i])
        if seat.rate > 0.0:
            prepare(seat, seat.code, seat.scale, n, trial)
        loss = leaf_loss(chance, visits.action[last], u)
        observed += loss
        if seat.rate > 0.0:
            learn(seat, seat.code, seat.scale, n, trial, last, loss)
        for i in range(n):
            mean = chance.mean_loss[_at(visits.action[i])]
            expected += chance.reach[_at(visits.infoset[i])] * abs(mean)
    return expected, observed
