"""Learning rate, exploration and regret bound of DP-EFB, from the tree, the horizon and epsilon alone."""

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from equinoise import _checks, _elementary
from equinoise._checkpoint import kept_as
from equinoise._checks import Row
from equinoise._typing import Any, ArrayLike, Callable, Floats, Mapping
from equinoise.efb.kernels import setup
from equinoise.games import GameTree
from equinoise.games.tree import POINTERS, parts, seal
from equinoise.mechanisms.hashing import MAX_BUCKETS, Hashing

MAX_HORIZON = 2**53
_PAPER = "Pasteris, Savani and Turocy (2026)"
_RULES = (
    Row(
        name="sharp",
        summary="by the noise's moment generating function: the smaller bound",
        source=f"{_PAPER}, Theorem 1, with E exp(-t xi) = 1/(1 - b^2 t^2) in place of a bound on the noise's "
        "size",
    ),
    Row(name="paper", summary="as published; for mechanism 'laplace'", source=f"{_PAPER}, Theorem 1"),
)
_MECHANISMS = (
    Row(
        name="hashing",
        summary="one symbol: a bucket of actions and a sign",
        source="Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency "
        "estimation; with random signs",
        proof="every symbol has a probability in [q, e^epsilon q], whatever the last action and its loss",
    ),
    Row(
        name="laplace",
        summary="as published: a noised loss for each action of the strategy",
        source=f"{_PAPER}, Section 4",
        proof="Laplace noise of scale 2/epsilon on a report of L1 sensitivity 2",
    ),
)
#: The rules by name: how learning rate and exploration follow from tree, horizon and epsilon.
RULES: Mapping[str, Row] = {row.name: row for row in _RULES}
#: What a user sends, by name.
MECHANISMS: Mapping[str, Row] = {row.name: row for row in _MECHANISMS}
_ARRAYS = ("exploration", "radius")  # of a tuning
_LARGEST_SCALE = 1e150  # of the noise: its square is still a number


@kept_as("equinoise.efb.tuning.Tuning")
@dataclass(frozen=True, eq=False)
class Tuning:
    """Parameters of a learner, and the regret that is proven for them; :func:`tune` makes it.

    Attributes
    ----------
    learning_rate, regret_bound : float
        eta, and the bound on the expected regret after `horizon` trials.
    exploration : float64[A]
        gamma(a), added to the probability of an action before a report is divided by it.
    rule, mechanism : str
        Names of RULES and MECHANISMS; learners that are compared against carry their own rules.
    horizon, epsilon
        As of :func:`tune`.
    start_cost, slope, offset : float
        The bound is start_cost/eta + slope * trials + offset: ln S, how far the best strategy may be from the
        first policy, in nats; what one trial adds; what noise out of its range adds ("paper": 1).
    symbols, explore : int, float
        2k, how many symbols a report may be, 0 where it is a value for each action; rho, how often a strategy
        is then drawn from the exploration, which is rho nu(a).
    radius : float64[A] or None
        r(a), the largest distance from 1/2 of a loss straight below an action; None without symbols.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tuning = tune(load("kuhn_poker")[0], 10**6, 4.0)
    >>> tuning.mechanism, tuning.symbols, tuning.bound([0, 10]).tolist()
    ('hashing', 14, [0.0, 10.0])
    """

    learning_rate: float
    exploration: Floats
    regret_bound: float
    rule: str
    horizon: int
    epsilon: float
    start_cost: float
    slope: float
    offset: float = 0.0
    mechanism: str = field(default="laplace", metadata={"later": True})
    symbols: int = field(default=0, metadata={"later": True})
    explore: float = field(default=0.0, metadata={"later": True})
    radius: Floats | None = field(default=None, metadata={"later": True})

    @cached_property
    def code(self) -> Hashing | None:
        """The symbols and their probabilities; None where a report is a value for each action."""
        return Hashing.of(self.epsilon, self.symbols // 2) if self.symbols else None

    def bound(self, trials: ArrayLike) -> Floats:
        """Return the bound after any numbers of trials up to the horizon, never more than 1 per trial."""
        counts: Floats = _checks.array("trials", trials, np.float64, None, low=0.0)
        start = self.start_cost / self.learning_rate if self.learning_rate > 0.0 else 0.0
        return np.minimum(start + self.slope * counts + self.offset, counts)


def packed(tree: GameTree, tuning: Tuning) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a tree and a tuning as arrays and as what JSON holds, for a file."""
    arrays, labels = parts(tree)
    given = {field.name: getattr(tuning, field.name) for field in fields(Tuning)}
    arrays |= {name: given.pop(name) for name in _ARRAYS if given[name] is not None}
    return arrays, {"tuning": given, "labels": labels}


def unpacked(arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[GameTree, Tuning]:
    """Return what :func:`packed` was given."""
    own: dict[str, Any] = {
        name: _checks.array(f"tuning.{name}", arrays[name], np.float64, (None,), low=0.0)
        for name in _ARRAYS
        if name in arrays
    }
    tree = GameTree(*(arrays[name] for name in POINTERS), **meta["labels"])
    tuning = _whole(Tuning(**own, **meta["tuning"]))
    for name in ("learning_rate", "regret_bound", "start_cost", "slope", "offset"):
        _checks.number(f"tuning.{name}", getattr(tuning, name), 0.0)
    for name, low in (("horizon", 1), ("symbols", 0)):
        _checks.integer(f"tuning.{name}", getattr(tuning, name), low)
    _checks.instance("tuning.rule", tuning.rule, str)
    return tree, tuning


def _whole(tuning: Tuning) -> Tuning:
    """Return a tuning that has what its mechanism asks for, or raise."""
    if not (tuning.mechanism == "hashing") == bool(tuning.symbols) == (tuning.radius is not None):
        raise ValueError("tuning must have symbols and a radius with mechanism 'hashing', or neither without")
    return tuning


def noise_scale(epsilon: float, sensitivity: float = 2.0) -> float:
    """Return b = sensitivity / epsilon: a report's L1 sensitivity is 2, and math.inf means no noise."""
    scale = sensitivity / epsilon
    if scale > _LARGEST_SCALE:
        raise ValueError(f"epsilon must leave the noise a finite variance, got {epsilon!r}")
    return scale


def loss_radius(tree: GameTree, loss_range: ArrayLike = (0.0, 1.0)) -> Floats:
    """Return r(a) float64[A] for losses in (low, high), or in float64[A, 2], one range an action."""
    ranges = _checks.array("loss_range", loss_range, np.float64, None, low=0.0, high=1.0)
    if ranges.shape not in ((2,), (tree.n_actions, 2)):
        wanted = f"(low, high) or of shape ({tree.n_actions}, 2)"
        raise ValueError(f"loss_range must be {wanted}, got shape {ranges.shape}")
    if (ranges[..., 0] > ranges[..., 1]).any():
        raise ValueError(f"loss_range must have no low above its high, got {_checks.shown(loss_range)}")
    return np.asarray(np.where(np.diff(tree.leaf_ptr) > 0, np.abs(ranges - 0.5).max(axis=-1), 0.0))


def tune(
    tree: GameTree,
    horizon: int,
    epsilon: float,
    rule: str = "sharp",
    mechanism: str = "hashing",
    *,
    loss_range: ArrayLike = (0.0, 1.0),
) -> Tuning:
    """Choose learning rate and exploration of DP-EFB for a horizon.

    Without noise "sharp" has eta = sqrt(2 ln S/(N T)) with either mechanism, N the most actions that one
    deterministic environment can make last. It needs no exploration, but keeps gamma(a) = eta/2 [2]_ for its
    smaller spread; what that may cost is in the bound.

    Parameters
    ----------
    tree : GameTree
        With A actions and S reduced strategies.
    horizon, epsilon, mechanism
        As of :func:`simulate`; T trials.
    rule : {"sharp", "paper"}
        "paper", for "laplace" alone: C = 8/eps^2 + 1 + beta with beta = 1 + (2/eps) ln(A T^2),
        gamma_0 = eta beta A, split by the number of actions below; regret at most 2 sqrt(A T ln S C) + 1.
        "sharp" with "laplace": with b = 2/eps and Q the L2 split of the tree,
        C = 1/2 + (b/theta) sqrt(Q)/A + b^2/(1 - theta^2) with the best theta, gamma_0 = eta b sqrt(Q)/theta;
        regret at most 2 sqrt(A T ln S C). In both eta = sqrt(ln S/(A T C)).
        "sharp" with "hashing": the number of buckets k and theta that make the bound 2 sqrt(T C ln S) least,
        eta = sqrt(ln S/(T C)), and exploration rho = eta sqrt(V0 Q)/theta with costs r(a)^2 in Q.
    loss_range : (low, high) or float64[A, 2]
        Where the losses straight below an action lie, within [0, 1]; public. The narrower around 1/2, the
        less noise. Of use with "hashing" only.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Theorem 1; "sharp" as :data:`equinoise.efb.tuning.RULES` says.
    .. [2] Neu (2015), Explore no more: improved high-probability regret bounds for non-stochastic bandits,
       NeurIPS.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> [round(tune(tree, 10**6, 1.0, rule, "laplace").regret_bound) for rule in ("paper", "sharp")]
    [109837, 35714]
    >>> round(tune(tree, 10**6, 1.0, loss_range=environment.loss_range).regret_bound, -1)
    14450.0
    """
    _checks.instance("tree", tree, GameTree)
    trials = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
    budget = _checks.epsilon(epsilon)
    rule = _checks.choice("rule", rule, RULES)
    return checked_for(tree, rule, (trials, budget, mechanism), loss_range)


def checked_mechanism(mechanism: object, rule: object) -> str:
    """Return the name of a mechanism that a rule is for, or raise."""
    name = _checks.choice("mechanism", mechanism, MECHANISMS)
    if rule == "paper" and name != "laplace":
        raise ValueError(f"mechanism must be 'laplace' with tuning 'paper', got {name!r}")
    return name


def checked_for(
    tree: GameTree, tuning: object, how: tuple[int, float, str], losses: ArrayLike, sensitivity: float = 2.0
) -> Tuning:
    """Return what a rule gives for a horizon, epsilon and mechanism, or a tuning that fits them, or raise."""
    horizon, epsilon, mechanism = how
    scale = noise_scale(epsilon, sensitivity)
    if not isinstance(tuning, Tuning):
        rule = _checks.choice("tuning", tuning, RULES)
        symbols = checked_mechanism(mechanism, rule) == "hashing" and math.isfinite(epsilon)
        return _ruled(tree, horizon, epsilon, scale, rule, loss_radius(tree, losses) if symbols else None)
    if (tuning.horizon, tuning.epsilon) != (horizon, epsilon):
        asked, got = f"horizon {horizon} and epsilon {epsilon:g}", f"{tuning.horizon} and {tuning.epsilon:g}"
        raise ValueError(f"tuning must be made for {asked}, got one for {got}")
    if math.isfinite(epsilon) and tuning.mechanism != mechanism:
        raise ValueError(f"tuning must be made for mechanism {mechanism!r}, got one for {tuning.mechanism!r}")
    own = _own(tree, _whole(tuning))
    if own.radius is not None and (loss_radius(tree, losses) > own.radius).any():
        raise ValueError("tuning must be made for losses as far from 1/2 as the game's")
    if not own.symbols and tuning.rule not in RULES:
        return own
    made = _ruled(tree, horizon, epsilon, scale, tuning.rule, own.radius)
    names = "learning_rate", "symbols", "explore", "exploration"
    return made if all(np.array_equal(getattr(made, x), getattr(own, x)) for x in names) else own


def _own(tree: GameTree, given: Tuning) -> Tuning:
    """Return a tuning of which nothing is proven, checked: with symbols its exploration must be a plan."""
    rate, shape = _checks.number("tuning.learning_rate", given.learning_rate, 0.0), (tree.n_actions,)
    exploration = _checks.array("tuning.exploration", given.exploration, np.float64, shape, low=0.0)
    own = Tuning(rate, exploration, float(given.horizon), "own", given.horizon, given.epsilon, 0.0, 1.0)
    if given.radius is None:
        return own
    radius = _checks.array("tuning.radius", given.radius, np.float64, shape, low=0.0, high=0.5)
    explore = _checks.number("tuning.explore", given.explore, 0.0, 1.0)
    symbols = _checks.integer("tuning.symbols", given.symbols, 2, 2 * MAX_BUCKETS)
    arriving = np.append(explore, exploration)[1 + tree.infoset_action]
    played = np.add.reduceat(exploration, tree.action_ptr[:-1])
    if symbols % 2 or not np.allclose(played, arriving, rtol=1e-9, atol=1e-300):
        raise ValueError("tuning must have an even number of symbols, and exploration a plan of the tree")
    return replace(own, mechanism="hashing", symbols=symbols, explore=explore, radius=radius)


def _ruled(
    tree: GameTree, horizon: int, epsilon: float, scale: float, rule: str, radius: Floats | None
) -> Tuning:
    """Tune for one symbol a user and losses within r(a) float64[A] of 1/2; without a radius for values."""
    if radius is None:
        return _tuned(tree, horizon, epsilon, scale, rule)
    squares, start_cost = radius**2, tree.log_n_strategies
    root_q, of_infoset, nu = setup.fold(tree, squares, setup.Q)
    most, total = setup.fold(tree, squares, setup.LAST)[0], float(squares.sum())
    constant, buckets, exploring = _best_code(epsilon, setup.longest(tree), total, most, root_q)
    rate = math.sqrt(start_cost / (horizon * constant)) if constant > 0.0 else 0.0
    explore = min(rate * exploring, 0.5)
    setup.split(tree.action_ptr, tree.infoset_ptr, of_infoset, nu, explore)
    slope, bound = rate * constant if rate * exploring <= 0.5 else 1.0, float(horizon)
    if slope < 1.0:
        bound = min(2.0 * math.sqrt(horizon * constant * start_cost), bound)
    made = rate, seal(nu), bound, "sharp", horizon, epsilon, start_cost, slope, 0.0
    return Tuning(*made, "hashing", 2 * buckets, explore, seal(radius))


def _best_code(
    epsilon: float, longest: int, total: float, most: float, root_q: float
) -> tuple[float, int, float]:
    """Return C, the number of buckets k and rho/eta that make the bound of hashing least.

    `longest` is the most actions of a strategy, `total` the sum of r^2, `most` the largest such sum that can
    be last together, `root_q` the root of Q. Of 900 values of U the best is taken, and theta from it, since
    theta is tiny where 2 q is; C is flat where it is least. NumPy finds the best, and the C library computes
    it, so that no bit depends on NumPy's vector code.
    """
    tries = _elementary.geometric(1e-3, 8.0, 900)
    top = min(4.0 * max(1.0, 0.5 * math.expm1(min(epsilon, 40.0))), MAX_BUCKETS)
    best = (math.inf, 1, 0.0)
    tried = {*_elementary.geometric(1.0, top, 100).astype(np.int64).tolist(), min(longest, MAX_BUCKETS)}

    def cost(code: Hashing, u: Any, of: Any) -> Any:  # C and rho/eta, `of` what has the functions
        moment = code.second_moment(longest)
        deviation = math.sqrt(moment)
        ch, sc = 2.0 * (of.cosh(u) - 1.0) / u**2, of.sinh(u) / u
        theta = u * deviation / code.gain
        w = ch * theta**2 / 2.0
        constant = (
            total * moment / 2.0 * ch * of.expm1(w) / w * (1.0 + theta * sc / deviation)
            + most * (code.gain**2 * code.pair / 2.0 * ch * of.exp(w) + code.gain * (sc - 1.0) / u)
            + deviation * root_q / theta
        )
        return constant, deviation * root_q / theta

    for k in sorted(tried):
        code = Hashing.of(epsilon, k)
        with np.errstate(over="ignore", invalid="ignore"):
            i = int(np.nanargmin(cost(code, tries, np)[0]))  # what overflows is not the least
        constant, exploring = cost(code, float(tries[i]), math)
        best = min(best, (constant, k, exploring))
    return best


def _tuned(tree: GameTree, horizon: int, epsilon: float, scale: float, rule: str) -> Tuning:
    """Tune for Laplace noise of any scale b on each reported value (the checked part of :func:`tune`)."""
    start_cost, n = tree.log_n_strategies, float(tree.n_actions)
    if rule == "sharp" and scale == 0.0:
        most = setup.fold(tree, np.sign(np.diff(tree.leaf_ptr), dtype=np.float64), setup.LAST)[0]
        rate = math.sqrt(2.0 * start_cost / (most * horizon))
        bound = min(start_cost / rate + rate * most * horizon, float(horizon)) if rate > 0.0 else 0.0
        exploration = seal(np.full(tree.n_actions, rate / 2.0))
        return Tuning(rate, exploration, bound, rule, horizon, epsilon, start_cost, rate * most)
    root, of_infoset, exploration = setup.fold(tree, setup.ONE, setup.Q if rule == "sharp" else setup.KAPPA)
    if rule == "paper":
        beta = 1.0 + scale * math.log(n * float(horizon) ** 2)
        constant, per_rate, offset = 2.0 * scale**2 + 1.0 + beta, beta * n, 1.0
    else:
        (constant, per_rate), offset = _sharp(scale, root, n), 0.0
    rate = math.sqrt(start_cost / (n * horizon * constant))
    slope = rate * n * constant
    setup.split(tree.action_ptr, tree.infoset_ptr, of_infoset, exploration, rate * per_rate)
    bound = min(math.sqrt(n * horizon * start_cost * constant) + slope * horizon + offset, float(horizon))
    return Tuning(rate, seal(exploration), bound, rule, horizon, epsilon, start_cost, slope, offset)


def _sharp(scale: float, root_q: float, n: float) -> tuple[float, float]:
    """Return C of the sharp rule and gamma_0 / eta, at the theta in (0, 1) that makes C least."""
    share = root_q / n  # dC/dtheta = 0 where (sqrt(Q)/A)(1 - theta^2)^2 = 2 b theta^3
    if scale > 1.0:
        theta = _root(lambda x: share * (y := (1.0 - x) * (1.0 + x)) * y - 2.0 * scale * x * x * x)
        rest = (1.0 - theta) * (1.0 + theta)
    else:  # theta close to one: solve for what is missing, which keeps its digits
        missing = _root(lambda x: 2.0 * scale * (y := 1.0 - x) * y * y - share * (z := x * (2.0 - x)) * z)
        theta, rest = 1.0 - missing, missing * (2.0 - missing)
    return 0.5 + scale / theta * share + scale**2 / rest, scale * root_q / theta


def _root(function: Callable[[float], float]) -> float:
    """Return the zero in (0, 1) of a falling function, to 14 digits, and import no scipy for it."""
    low, high = 0.0, 1.0
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > 0.0 else (low, middle)
    return high
