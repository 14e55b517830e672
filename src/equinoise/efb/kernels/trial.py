"""Kernels of DP-EFB: draw a reduced strategy, walk it, add noise, update. A trial costs what it visits.

Arrays travel in named tuples: the ``Chance`` of an environment, the ``Seat`` of a learner. A trial visits
infosets breadth first and writes position i of the visit list for the i-th, so children stand side by side.
"""

import numpy as np
from numpy.typing import NDArray

from equinoise._checkpoint import kept_as
from equinoise._elementary import exp
from equinoise._intrinsics import prefetch
from equinoise._jit import njit
from equinoise._random import CHANCE, NOISE, STRATEGY, laplace, next_word, philox, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.efb.kernels.weights import Weights, multiply, pick

Source = tuple[Any, Any, Any]  # the two words of the key, and the replicate, all uint64
_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one
STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
STEP_MAX = 80.0
FACTOR_MAX = 2.0**115
FACTOR_MIN = 2.0**-1000

PLAN_INFOSET = np.dtype([("first", np.int64), ("exploration", np.float64)])
PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
CHANCE_ACTION = np.dtype([("leaf", np.int64), ("loss", np.float64)])


@kept_as("equinoise.efb._kernels.Plan")
class Plan(NamedTuple):
    """What a learner knows: infosets PLAN_INFOSET[I+1], actions PLAN_ACTION[A+1].

    Of an infoset: its first action, and gamma where all its actions share one and none leads to another
    infoset, else -1; most infosets are of that kind. Of an action: gamma(a), its first child infoset. Fields
    that are read together lie together, since on a large tree a trial waits for memory.
    """

    infosets: NDArray[np.void]
    actions: NDArray[np.void]


class Visits(NamedTuple):
    """The visit list of a trial, each array longer than the longest reduced strategy and even (m).

    infoset, action, child, parent int64[m]: the infoset, its picked action, the positions of that action's
    first child and of the visit above; picked, others float64[m]: w, then pi, of the picked action and of all
    others together; factor float64[m]: W, then Z.

    Of values for each action: reach float64[m], mu of the infoset; divisor float64[m], mu(a) + gamma(a); word
    uint64[m], value float64[m]: noise words and reported values. Of a symbol: reach, mu of the picked action;
    half int64[m], 32 public bits of each block of k visits; value, -eta lhat; marked, moved int64[m]: whether
    a report moves something below (0 between trials), and where that is so.
    """

    infoset: Ints
    action: Ints
    child: Ints
    parent: Ints
    picked: Floats
    others: Floats
    reach: Floats
    factor: Floats
    divisor: Floats
    word: Words
    value: Floats
    half: Ints
    marked: Ints
    moved: Ints


class Seat(NamedTuple):
    """A learner in a run.

    plan: a Plan or a SymbolPlan; source, public: where its own and public randomness come from; rate,
    explore: eta, rho; code: a Hashing, or None where a report is a value for each action; scale: of Laplace
    noise, or None with a code.
    """

    plan: Any
    weights: Weights
    visits: Visits
    source: Source
    public: Source
    rate: float
    explore: float
    code: Any
    scale: Any


@kept_as("equinoise.efb._kernels.Chance")
class Chance(NamedTuple):
    """An environment, with I infosets, A actions, L leaves.

    action_loss float64[A] holds g(a); actions CHANCE_ACTION[A+1] an action's first leaf and the loss of that
    leaf, which spares most plays a look-up; infoset_cum float64[I], leaf_cum float64[L] running sums of
    probabilities, of which the first above u comes; leaf_loss float64[L].
    """

    action_loss: Floats
    actions: NDArray[np.void]
    infoset_cum: Floats
    leaf_cum: Floats
    leaf_loss: Floats


@njit(forceinline=True)
def stream(source: Source, trial: Any, purpose: Any) -> Any:
    """Return the stream (key; 0, trial, replicate, purpose) of a source (key's two words, replicate)."""
    return philox(source[0], source[1], np.uint64(0), np.uint64(trial), source[2], purpose)


@njit(forceinline=True)
def draw(seat: Seat, ahead: NDArray[np.void], trial: Any) -> int:
    """Draw a reduced strategy from the policy, breadth first; fill the visit list and return its length n.

    At each visited infoset s an action is drawn from pi(. | s) = w / sum of w over s. mu(a) is the product of
    pi along the path, ``divisor`` is mu(a) + gamma(a). Position i takes word i of the stream (key; 0,
    trial, replicate, STRATEGY). For `ahead` see :func:`equinoise.efb.kernels.weights.pick`.
    """
    (infosets, actions), weights, visits = seat.plan, seat.weights, seat.visits
    weight = weights.weight
    s0, s1, s2, s3 = stream(seat.source, trial, STRATEGY)
    visits.infoset[0] = 0
    visits.reach[0] = 1.0
    n = 1
    i = 0
    while i < n:
        s = visits.infoset[i]
        first = infosets[s]["first"]
        width = infosets[s + 1]["first"] - first
        shared = infosets[s]["exploration"]
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        a, w, rest = pick(weights, ahead, first, width, s, u)
        scale = 1.0 / (w + rest)
        mu = visits.reach[i] * (w * scale)
        visits.action[i] = a
        visits.picked[i] = w * scale
        visits.others[i] = rest * scale
        visits.child[i] = n
        i += 1
        if shared >= 0.0:
            visits.divisor[i - 1] = mu + shared
            continue
        visits.divisor[i - 1] = mu + actions[a]["exploration"]
        for c in range(actions[a]["child"], actions[a + 1]["child"]):
            visits.infoset[n] = c
            visits.reach[n] = mu
            prefetch(weight, infosets[c]["first"])
            prefetch(weight, infosets[c]["first"] + 8)
            n += 1
    return n


@njit(forceinline=True)
def walk(plan: Any, chance: Chance, visits: Visits, source: Source, trial: Any) -> Any:
    """Walk the drawn strategy against the environment; return (position of the last action, u for its leaf).

    The d-th move of the environment takes word d of the stream (key; 0, trial, replicate, CHANCE): the
    address names no policy, so different learners face the same random draws.
    """
    s0, s1, s2, s3 = stream(source, trial, CHANCE)
    i = 0
    while True:
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        u = uniform(word)
        if plan.infosets[visits.infoset[i]]["exploration"] >= 0.0:
            return i, u
        a = visits.action[i]
        low, high = plan.actions[a]["child"], plan.actions[a + 1]["child"]
        if low == high or u >= chance.infoset_cum[high - 1]:
            return i, u
        i = visits.child[i] + first_above(chance.infoset_cum, low, high, u) - low


@njit(forceinline=True)
def leaf_loss(chance: Chance, a: int, u: float) -> float:
    """Return the loss of the leaf of action a that comes with u."""
    low, high = chance.actions[a]["leaf"], chance.actions[a + 1]["leaf"]
    if high - low == 1:
        return chance.actions[a]["loss"]
    return chance.leaf_loss[first_above(chance.leaf_cum, low, high, u)]


@njit(forceinline=True)
def first_above(cumulative: Floats, low: int, high: int, u: float) -> int:
    """Return the first k in [low, high) with u < cumulative[k], by bisection; one is known to exist."""
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        below = u < cumulative[middle]
        high = middle if below else high
        low = low if below else middle + 1
    return low


@njit(forceinline=True)
def add_noise(value: Floats, word: Words, n: int, scale: float, source: Source, trial: Any) -> None:
    """Set value[i] = xi_i, n independent Laplace(scale) draws; scale 0 gives zeros. word is scratch.

    Position i takes word i of the stream (key; 0, trial, replicate, NOISE). The loss is added to the
    value of the last action afterwards.
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


@njit(forceinline=True)
def update(seat: Seat, n: int) -> None:
    """Update the policy by a report, exactly as exponential weights over reduced strategies would.

    lhat(a) = y(a) / (mu(a) + gamma(a)); bottom-up over the visits, a the picked action,
    W = exp(-eta lhat(a)) times Z of the child infosets of a, w(a) becomes w(a) W, and
    Z(s) = sum of the new weights over the old = pi(others) + pi(a) W.
    """
    factor, value, divisor = seat.visits.factor, seat.visits.value, seat.visits.divisor
    for i in range(n):
        step = -seat.rate * value[i] / divisor[i]
        factor[i] = moved_by(step)
    push(seat, n)


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
    infosets, visits = seat.plan.infosets, seat.visits
    w = min(max(w, FACTOR_MIN), FACTOR_MAX)
    s = visits.infoset[i]
    first = infosets[s]["first"]
    multiply(seat.weights, first, infosets[s + 1]["first"] - first, s, visits.action[i], w)
    return visits.others[i] + visits.picked[i] * w
