"""Linear contextual bandits: a ridge regression for every arm, played optimistically, privately or not."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._typing import Any, ArrayLike, Axes, DataFrame, Executor, Floats, Ints, Mapping, PathLike
from equinoise.bandits.policies.registry import Entry
from equinoise.bandits.result import Regretted


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Entry):
    """An entry, and whether its index is widened by the confidence in the estimate, or arms are in turn."""

    wide: bool = False
    in_turn: bool = False


_ALL = (
    LinearPolicy(
        name="oful",
        summary="optimism with the confidence ellipsoid of a ridge regression for each arm",
        source="Abbasi-Yadkori, Pal, Szepesvari (2011), Improved algorithms for linear stochastic bandits",
        wide=True,
    ),
    LinearPolicy(
        name="private-oful",
        summary="oful on sums from private counters, widened for their noise",
        source="Neel, Roth (2018); Chan, Shi, Song (2011), Private and continual release of statistics",
        proof="Contexts are public. A reward enters one arm's counter, clipped; its sums are epsilon-private "
        "all together, and all that is played after is made of them (post-processing).",
        noise="Laplace(L s/epsilon) a coordinate and node of the counter, s the L1 sensitivity of an item",
        needs_epsilon=True,
        wide=True,
    ),
    LinearPolicy(name="greedy", summary="the largest estimated mean", source="a control"),
    LinearPolicy(name="uniform", summary="one arm after the other", source="a control", in_turn=True),
)

POLICIES: Mapping[str, LinearPolicy] = {row.name: row for row in _ALL}

LEAST_DELTA = 1e-100  # much below, widths overflow
LARGEST = 1e6  # entry of contexts and coefficients, and sigma
MAX_HORIZON = 10**8  # widths are tabulated
_MOST = 2**27  # numbers of all regressions of a replicate: 1 GiB
_CONDITION = 1e10  # largest |x|^2/ridge: beyond it, updates of V^-1 would lose too many digits


def _longest(vectors: Floats | None) -> float:
    """Return the largest length along the last axis; 1 where the vectors are still to be drawn."""
    if vectors is None or vectors.size == 0:
        return 1.0
    return math.sqrt(np.square(vectors).sum(axis=-1).max())


def regular_ridge(ridge: float, contexts: Floats) -> float:
    """Return the ridge, refused where the contexts are too long for it."""
    regular = _checks.number("ridge", ridge, 0.0, open_low=True)
    needed = _longest(contexts) ** 2 / _CONDITION
    if regular < needed:
        least = f"1e-10 times the largest squared length of a context, here {needed:g}"
        raise ValueError(f"ridge must be at least {least}, got {ridge!r}")
    return regular


def checked_sizes(n_arms: object, dimension: object) -> tuple[int, int]:
    """Return the number of arms and that of coordinates."""
    k, d = (_checks.integer(n, x, 1, _MOST) for n, x in (("n_arms", n_arms), ("dimension", dimension)))
    if k * d * d > _MOST:
        raise ValueError(f"n_arms times dimension squared must be at most {_MOST}, got {k * d * d}")
    return k, d


@dataclass(frozen=True, eq=False, repr=False)
class LinearRun(Regretted):
    """Replicates of a linear bandit: R replicates, C checkpoints, K arms, d coordinates.

    Attributes
    ----------
    trials, regret : int64[C], float64[R, C]
        Rounds played at each checkpoint, and the pseudo-regret so far: the round's best mean less the arm's.
    pulls : int64[R, K]
    theta : float64[K, d] or float64[R, K, d]
        The arms' true coefficients.
    theta_hat : float64[R, K, d]
        Ridge estimates V^-1 b from all rewards of an arm as they were: what an analyst computes.
    gram_inverse : float64[R, K, d, d]
        V^-1, V = ridge I + sum of x x' over an arm's contexts. Given the contexts, an estimate has at most
        the variance ``sigma**2 * gram_inverse[r, k, i, i]``, whose root is its standard error.
    estimate : float64[R, K, d]
        What the index was computed from: for "private-oful" V^-1 times the noised sums, else `theta_hat`.
    policy, epsilon, sigma, ridge, seed, first_replicate
        As given, but None for an epsilon of no use, and 1 for the sigma of binary rewards, whose deviation
        is at most that. A slice's first replicate is not 0.

    Examples
    --------
    >>> run = simulate("uniform", n_arms=2, dimension=2, horizon=10)
    >>> run.pulls.tolist(), list(run.coefficients())[:4]
    ([[5, 5]], ['replicate', 'arm', 'coordinate', 'pulls'])
    """

    pulls: Ints
    theta: Floats
    theta_hat: Floats
    gram_inverse: Floats
    estimate: Floats
    sigma: float
    ridge: float

    def to_frame(self) -> DataFrame:
        """Return a long frame: replicate, trials, regret."""
        return self._frame({"trials": self.trials}, {"regret": self.regret})

    def coefficients(self) -> DataFrame:
        """Return a long frame: replicate, arm, coordinate, pulls, theta, theta_hat, stderr."""
        n_arms, dimension = self.theta_hat.shape[1:]
        arm, coordinate = np.divmod(np.arange(n_arms * dimension), dimension)
        pulls = np.repeat(self.pulls, dimension, axis=1)
        theta = np.broadcast_to(self.theta, self.theta_hat.shape)
        columns = {"pulls": pulls, "theta": theta.reshape(pulls.shape)}
        for name in ("theta_hat", "stderr"):  # nothing is known without pulls
            columns[name] = np.where(pulls > 0, getattr(self, name).reshape(pulls.shape), np.nan)
        return self._frame({"arm": arm, "coordinate": coordinate}, columns)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw mean regret with its 95% interval; return the Axes."""
        from equinoise.report import figures

        return figures.regret_means(ax, [(self.label, self)])

    @property
    def stderr(self) -> Floats:
        """Standard errors sigma sqrt(V^-1[i, i]) of `theta_hat`, float64[R, K, d]."""
        return self.sigma * np.sqrt(np.diagonal(self.gram_inverse, axis1=2, axis2=3))


def simulate(
    policy: str = "oful",
    *,
    n_arms: int,
    dimension: int,
    horizon: int,
    theta: ArrayLike | None = None,
    contexts: str | ArrayLike = "sphere",
    epsilon: float | None = None,
    n_replicates: int | range = 1,
    seed: int | None = 0,
    ridge: float = 1.0,
    delta: float = 0.05,
    sigma: float = 1.0,
    reward: str = "gaussian",
    clip: tuple[float, float] | None = None,
    n_checkpoints: int = 50,
    block: int | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
    resume: str | PathLike[str] | None = None,
) -> LinearRun:
    """Let a policy play a linear bandit, many times over.

    Each round every arm k shows a context x_k; the reward of the arm that is played has the mean
    theta_k' x_k. An arm keeps V = ridge I + sum of x x' and b = sum of y x over the n rounds that played it.

    Parameters
    ----------
    policy : str
        A name in ``linear.POLICIES``. "oful" plays the arm with the largest x'V^-1 b + ||x||_{V^-1} (sigma
        sqrt(d ln((1 + n/ridge)/delta)) + sqrt(ridge)) [1]_, the lowest number among equals; "greedy" does so
        without the width, "uniform" plays arms in turn, and "private-oful" has b from a private counter.
    n_arms, dimension, horizon : int
        K, d, and T rounds of a replicate, at most 10^8.
    theta : float64[K, d] or float64[R, K, d], optional
        The arms' coefficients, for all replicates or for each. By default every replicate draws its own:
        the first coefficient of an arm is 0, the others, if any, are uniform on the unit sphere.
    contexts : "sphere" or float64[T, K, d]
        Drawn anew each round, independent and uniform on the unit sphere, or given, the same for all
        replicates. The widths are proven for contexts and coefficients of length at most 1.
    epsilon : float, optional
        Privacy of the rewards; math.inf for no noise. Needed by "private-oful", ignored by the others.
    n_replicates, seed, n_checkpoints, block, executor, progress, resume
        As in :func:`equinoise.bandits.simulate`; contexts and noise of rewards are the same for all policies.
    ridge, delta, sigma : float
        Ridge is positive, at least the largest squared length of a context times 1e-10; delta in [1e-100, 1)
        is how often a width may fail; sigma the deviation of Gaussian rewards, 1 in the width of binary ones.
    reward : {"gaussian", "binary"}
        Binary rewards are 1 with probability (1 + theta'x)/2, else -1, so theta'x must stay within [-1, 1].
    clip : (float, float), optional
        Of "private-oful": the range to which rewards are clipped before they enter the private sums. By
        default (-1, 1) for binary rewards, and (-1 - 3 sigma, 1 + 3 sigma) for Gaussian ones.

    Returns
    -------
    LinearRun
        Raises TypeError or ValueError for arguments of the wrong kind or out of range.

    Notes
    -----
    Privacy of "private-oful": contexts are public, rewards are not. Two histories that differ in the reward
    of one round differ in one item of one arm's counter, y x, by at most s1 = (high - low) max ||x||_1 in
    L1 (max ||x||_1 is sqrt(d) for unit contexts). An item is in at most L = floor(log2 T) + 1 nodes, and
    every node has Laplace noise of scale L s1/epsilon on each coordinate: all that is played after is
    epsilon-private [2]_. The index adds ||V^-1 x||_1 w, where w bounds the noise of a coordinate at
    probability delta/d. Arms never played come first: before the first pull there is no noise to allow for.
    What is promised of the private estimates is for clipped rewards, whose means are not quite linear in x.

    References
    ----------
    .. [1] Abbasi-Yadkori, Pal, Szepesvari (2011), Improved algorithms for linear stochastic bandits.
    .. [2] Chan, Shi, Song (2011), Private and continual release of statistics.

    Examples
    --------
    The first coefficient of every arm is zero, and so are estimates, within their standard errors:

    >>> run = simulate("oful", n_arms=3, dimension=2, horizon=100, n_replicates=40)
    >>> rows, arm = np.arange(40), run.pulls.argmax(axis=1)
    >>> z = run.theta_hat[rows, arm, 0] / run.stderr[rows, arm, 0]
    >>> int((abs(z) > 1.96).sum()) <= 6
    True
    """
    row = POLICIES[_checks.choice("policy", policy, POLICIES)]
    k, d = checked_sizes(n_arms, dimension)
    rounds = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
    span = replicates.checked_span(n_replicates)
    n = len(span)
    checkpoints = _results.checkpoints(rounds, n_checkpoints)
    coefficients, given = None, np.empty((0, k, d))
    if theta is not None:
        coefficients = _checks.array("theta", theta, np.float64, None, low=-LARGEST, high=LARGEST).copy()
        rows: tuple[int, ...] = ()
        if coefficients.ndim == 3:  # a slice takes those of the whole run
            rows = (max(span.stop, len(coefficients)) if isinstance(n_replicates, range) else n,)
        _checks.array("theta", coefficients, np.float64, (*rows, k, d))
    if isinstance(contexts, str):
        _checks.choice("contexts", contexts, ("sphere",))
    else:
        given = _checks.array("contexts", contexts, np.float64, (rounds, k, d), low=-LARGEST, high=LARGEST)
        given = given.copy()
    regular = regular_ridge(ridge, given)
    failure = _checks.number("delta", delta, LEAST_DELTA, 1.0, open_high=True)
    deviation = _checks.number("sigma", sigma, 0.0, LARGEST)
    binary = _checks.choice("reward", reward, ("gaussian", "binary")) == "binary"
    if binary:
        deviation = 1.0
        if (largest := _longest(coefficients) * _longest(given)) > 1.0 + 1e-9:
            where = "|theta| |x| is at most 1 for all arms and contexts"
            raise ValueError(f"reward can be 'binary' only where {where}, got {largest:g}")
    budget = row.checked_epsilon(epsilon, 0.0)
    high = 1.0 if binary else 1.0 + 3.0 * deviation
    low = -high
    if clip is not None:
        low, high = _checks.array("clip", clip, np.float64, (2,), low=-LARGEST, high=LARGEST).tolist()
        if not low < high:
            raise ValueError(f"clip must be a pair (low, high) with low < high, got {_checks.shown(clip)}")
    _results.check_memory(n, k * d * (d + 3) + k + len(checkpoints) + 4 * rounds // n)
    from equinoise._random import stream_key
    from equinoise.bandits.linear import task as of_blocks

    plan = of_blocks.make_plan(
        row.name, given, rounds, regular, failure, deviation, binary=binary, clip=(low, high), epsilon=budget
    )
    task = of_blocks.Task(plan, coefficients, regular, checkpoints, stream_key(seed), k, d)
    how: dict[str, Any] = {"block": block, "executor": executor, "progress": progress, "resume": resume}
    result = replicates.run(functools.partial(of_blocks.run_block, task), span, work=rounds, **how)
    if coefficients is not None:
        result["theta"] = coefficients[span.start : span.stop] if coefficients.ndim == 3 else coefficients
    return LinearRun(
        trials=checkpoints,
        policy=row.name,
        epsilon=budget if row.needs_epsilon else None,
        sigma=deviation,
        ridge=regular,
        seed=_checks.seed(seed),
        first_replicate=span.start,
        **result,
    )
