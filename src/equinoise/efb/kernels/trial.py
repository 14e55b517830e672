"""What the kernels of DP-EFB share: arrays in named tuples, the walk of a strategy, the push of an update.

A trial costs what it visits: infosets breadth first, of which the i-th has position i of the visit list, so
that children stand side by side.
"""

import numpy as np
from numpy.typing import NDArray

from equinoise._checkpoint import kept_as
from equinoise._elementary import exp
from equinoise._jit import njit
from equinoise._random import CHANCE, next_word, philox, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words
from equinoise.efb.kernels.weights import Weights, multiply

Source = tuple[Any, Any, Any]  # the two words of the key, and the replicate, all uint64
STEP_MIN = -690.0  # one report moves a weight by a factor in [e^-690, e^80]
STEP_MAX = 80.0
FACTOR_MAX = 2.0**115
FACTOR_MIN = 2.0**-1000

PLAN_INFOSET = np.dtype([("first", np.int64), ("exploration", np.float64)])
PLAN_ACTION = np.dtype([("exploration", np.float64), ("child", np.int64)])
PLAN_OWN = np.dtype([("exploration", np.float64), ("radius", np.float64)])
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


@kept_as("equinoise.efb.kernels.symbol.SymbolPlan")
class SymbolPlan(NamedTuple):
    """What a learner of symbols knows: infosets PLAN_INFOSET[I+1], actions (child int64)[A+1], PLAN_OWN[A].

    Of an infoset: its first action, and 0 in place of gamma where no action leads to another infoset, else
    -1. Of an action: its first child infoset; rho nu(a) and r(a). cumulative float64[A] are running sums of
    nu over the actions of an infoset, of which the first above u comes.
    """

    infosets: NDArray[np.void]
    actions: NDArray[np.void]
    own: NDArray[np.void]
    cumulative: Floats


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
