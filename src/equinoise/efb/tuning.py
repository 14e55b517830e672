"""Learning rate, exploration and regret bound of DP-EFB, from the tree, the horizon and epsilon alone."""

import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._checkpoint import kept_as
from equinoise._checks import Row
from equinoise._typing import ArrayLike, Callable, Floats, Mapping
from equinoise.efb.kernels import setup
from equinoise.games import GameTree

MAX_HORIZON = 2**53
#: The rules by name: how learning rate and exploration follow from tree, horizon and epsilon.
RULES: Mapping[str, Row] = {
    row.name: row
    for row in (
        Row(
            name="sharp",
            summary="by the noise's moment generating function: the smaller bound",
            source="Pasteris, Savani and Turocy (2026), Theorem 1, with E exp(-t xi) = 1/(1 - b^2 t^2) in "
            "place of a bound on the noise's size",
        ),
        Row(
            name="paper",
            summary="as published",
            source="Pasteris, Savani and Turocy (2026), Theorem 1",
        ),
    )
}
_LARGEST_SCALE = 1e150  # of the noise: its square is still a number


@kept_as("equinoise.efb.tuning.Tuning")
@dataclass(frozen=True, eq=False)
class Tuning:
    """Parameters of a learner, and the regret that is proven for them; :func:`tune` makes it.

    Attributes
    ----------
    learning_rate : float
        eta.
    exploration : float64[A]
        gamma(a), added to the probability of an action before a report is divided by it.
    regret_bound : float
        Bound on the expected regret after `horizon` trials.
    rule : str
        A name of RULES; learners that are compared against carry their own names.
    horizon : int
    epsilon : float
    start_cost : float
        ln S: how far the best strategy may be from the first policy, in nats.
    slope : float
        Bound on what one trial adds to the regret.
    offset : float
        Bound on what the rare event adds that the noise leaves its range ("paper": 1).

    Examples
    --------
    >>> from equinoise.games import load
    >>> tuning = tune(load("kuhn_poker")[0], 1000, 4.0)
    >>> bool(tuning.bound(1000) == tuning.regret_bound), tuning.bound([0, 10]).tolist()
    (True, [0.0, 10.0])
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

    def bound(self, trials: ArrayLike) -> Floats:
        """Return the proven bound on the expected regret after any numbers of trials up to the horizon.

        That is ln S / eta + slope * trials + offset, and never more than 1 per trial.
        """
        counts: Floats = _checks.array("trials", trials, np.float64, None, low=0.0)
        start = self.start_cost / self.learning_rate if self.learning_rate > 0.0 else 0.0
        return np.minimum(start + self.slope * counts + self.offset, counts)


def noise_scale(epsilon: float, sensitivity: float = 2.0) -> float:
    """Return b = sensitivity / epsilon: a report's L1 sensitivity is 2, and math.inf means no noise."""
    scale = sensitivity / epsilon
    if scale > _LARGEST_SCALE:
        raise ValueError(f"epsilon must leave the noise a finite variance, got {epsilon!r}")
    return scale


def tune(tree: GameTree, horizon: int, epsilon: float, rule: str = "sharp") -> Tuning:
    """Choose learning rate and exploration of DP-EFB for a horizon.

    Parameters
    ----------
    tree : GameTree
        With A actions and S reduced strategies.
    horizon : int
        Number of trials T.
    epsilon : float
        Privacy of one report; math.inf for no noise.
    rule : {"sharp", "paper"}
        "paper": C = 8/eps^2 + 1 + beta with beta = 1 + (2/eps) ln(A T^2), gamma_0 = eta beta A, split by the
        number of actions below; regret at most 2 sqrt(A T ln S C) + 1. "sharp": with b = 2/eps and Q the
        L2 split of the tree, C = 1/2 + (b/theta) sqrt(Q)/A + b^2/(1 - theta^2) with the best theta,
        gamma_0 = eta b sqrt(Q)/theta; regret at most 2 sqrt(A T ln S C). In both eta = sqrt(ln S/(A T C)).

    Notes
    -----
    Without noise "sharp" needs no exploration. It keeps implicit exploration, gamma(a) = eta/2 [2]_,
    for its smaller spread; that may cost another eta/2 an action and trial, which the bound counts. So the
    bound without noise can lie above that of a large epsilon; the regret does not.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Theorem 1: the rule "paper". For "sharp" the moment generating function of the
       noise, E exp(-t xi) = 1/(1 - b^2 t^2), takes the place of a bound on its size.
    .. [2] Neu (2015), Explore no more: improved high-probability regret bounds for non-stochastic bandits,
       NeurIPS.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, _ = load("kuhn_poker")
    >>> round(tune(tree, 10**6, 1.0, "paper").regret_bound), round(tune(tree, 10**6, 1.0).regret_bound)
    (109837, 35714)
    """
    if not isinstance(tree, GameTree):
        raise TypeError(f"tree must be a GameTree, got {_checks.shown(tree)}")
    trials = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
    budget = _checks.epsilon(epsilon)
    rule = _checks.choice("rule", rule, RULES)
    return tuned(tree, trials, budget, noise_scale(budget), rule)


def checked_tuning(tree: GameTree, tuning: object, horizon: int, epsilon: float) -> str | Tuning:
    """Return a rule's name, or a tuning that fits tree, horizon and epsilon, or raise.

    For parameters that neither rule gives nothing is proven: their bound is 1 per trial.
    """
    if not isinstance(tuning, Tuning):
        return _checks.choice("tuning", tuning, RULES)
    if (tuning.horizon, tuning.epsilon) != (horizon, epsilon):
        raise ValueError(
            f"tuning must be made for horizon {horizon} and epsilon {epsilon:g}, "
            f"got one for {tuning.horizon} and {tuning.epsilon:g}"
        )
    rate = _checks.number("tuning.learning_rate", tuning.learning_rate, 0.0)
    exploration = _checks.array(
        "tuning.exploration", tuning.exploration, np.float64, (tree.n_actions,), low=0.0
    )
    if tuning.rule in RULES:
        made = tuned(tree, horizon, epsilon, noise_scale(epsilon), tuning.rule)
        if made.learning_rate == rate and np.array_equal(made.exploration, exploration):
            return made
    return Tuning(rate, exploration, float(horizon), "own", horizon, epsilon, 0.0, 1.0)


def tuned(tree: GameTree, horizon: int, epsilon: float, scale: float, rule: str) -> Tuning:
    """Tune for Laplace noise of any scale b on each reported value (the checked part of :func:`tune`)."""
    of_infoset, exploration = np.empty(tree.n_infosets), np.empty(tree.n_actions)
    setup.action_shares(tree.action_ptr, tree.infoset_ptr, of_infoset, exploration, rule == "sharp")
    start_cost, n = tree.log_n_strategies, float(tree.n_actions)
    if rule == "paper":
        beta = 1.0 + scale * math.log(n * float(horizon) ** 2)
        constant, per_rate = 2.0 * scale**2 + 1.0 + beta, beta * n
    else:
        constant, per_rate = _sharp(scale, float(of_infoset[0]), n)
    rate = math.sqrt(start_cost / (n * horizon * constant))
    slope = rate * n * constant
    if rule == "sharp" and scale == 0.0:
        exploration.fill(rate / 2.0)
        slope += rate / 2.0 * n
    else:
        setup.split_exploration(tree.action_ptr, tree.infoset_ptr, of_infoset, exploration, rate * per_rate)
    exploration.flags.writeable = False
    offset = 1.0 if rule == "paper" else 0.0
    bound = math.sqrt(n * horizon * start_cost * constant) + slope * horizon + offset
    return Tuning(rate, exploration, bound, rule, horizon, epsilon, start_cost, slope, offset)


def _sharp(scale: float, root_q: float, n: float) -> tuple[float, float]:
    """Return C of the sharp rule and gamma_0 / eta, at the theta in (0, 1) that makes C least.

    dC/dtheta = 0 where (sqrt(Q)/A)(1 - theta^2)^2 = 2 b theta^3.
    """
    if scale == 0.0:
        return 0.5, 0.0
    share = root_q / n
    if scale > 1.0:
        theta = _root(lambda x: share * ((1.0 - x) * (1.0 + x)) ** 2 - 2.0 * scale * x**3)
        rest = (1.0 - theta) * (1.0 + theta)
    else:  # theta close to one: solve for what is missing, which keeps its digits
        missing = _root(lambda x: 2.0 * scale * (1.0 - x) ** 3 - share * (x * (2.0 - x)) ** 2)
        theta, rest = 1.0 - missing, missing * (2.0 - missing)
    return 0.5 + scale / theta * share + scale**2 / rest, scale * root_q / theta


def _root(function: Callable[[float], float]) -> float:
    """Return the zero in (0, 1) of a function that falls from positive to negative, to 14 digits.

    Plain bisection: importing scipy's root finders would take longer than the whole start of a command.
    """
    low, high = 0.0, 1.0
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        if function(middle) > 0.0:
            low = middle
        else:
            high = middle
    return high
