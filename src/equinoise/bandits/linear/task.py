"""A block of replicates of a linear bandit: what it needs, and how it is run."""

import functools
import math
from itertools import pairwise

import numpy as np

from equinoise import replicates
from equinoise._checkpoint import kept_as
from equinoise._random import CONTEXT, NOISE, REWARD, start_streams
from equinoise._typing import Any, Array, Floats, Ints, NamedTuple, Words
from equinoise.bandits.linear import kernels
from equinoise.bandits.linear.arrays import Learner, Plan, Round, fill_directions, fill_spreads, words_of
from equinoise.bandits.linear.simulate import POLICIES
from equinoise.bandits.rewards import full, in_lanes, make_streams, of_lanes, zeros
from equinoise.mechanisms.kernels import fill_widths

_LANES = 128  # enough that the entry into a loop over lanes costs little
_FEWEST_LANES = 16
_MEMORY = 2**22  # bytes of a state, at which there are fewer lanes: about what a core's cache holds
PURPOSES = CONTEXT, REWARD, NOISE  # of streams
_THETA = 1  # entity of the stream from which coefficients are drawn


def lanes_of(n_arms: int, dimension: int) -> int:
    """Return how many replicates are best played side by side."""
    return min(_LANES, max(_FEWEST_LANES, _MEMORY // (8 * n_arms * dimension * (dimension + 7)) // 8 * 8))


def noise_widths(horizon: int, scale: float, delta: float, pulls: Any = None) -> Floats:
    """Return what the noise of a counter's sums stays within with probability 1 - delta, or of some."""
    of_draws = np.empty((1, horizon.bit_length() + 1))
    fill_widths(np.array([math.log(2.0 / delta)]), scale, of_draws)
    return of_draws[0, np.bitwise_count(np.arange(horizon + 1) if pulls is None else pulls)]


def make_learner(plan: Plan, n_arms: int, dimension: int, ridge: float) -> Learner:
    """Return the regressions before the first round: V = ridge I, b = 0."""
    lanes = plan.theta.shape[1]
    private = plan.noise_width.size > 0
    row, column = np.triu_indices(dimension)
    inverse = np.tile(np.where(row == column, 1.0 / ridge, 0.0)[:, np.newaxis], (n_arms, lanes))
    shape = (n_arms, lanes)
    kept = (n_arms * dimension, lanes) if private else (0, lanes)
    return Learner(
        **zeros(shape, "pulls"),
        inverse=np.ascontiguousarray(inverse),
        estimate=np.zeros((n_arms * dimension, lanes)),
        bonus=np.full(shape, plan.width[0]),
        noise_bonus=np.full(shape, -1.0 if private else 0.0),
        regret=np.zeros(lanes),
        **zeros(kept, "", "moment clipped"),
        totals=np.zeros(math.prod(kept) * plan.slots),
    )


def make_round(n_arms: int, dimension: int, lanes: int) -> Round:
    """Return scratch for one round."""
    rows = {"context": n_arms * dimension, "cuts": (dimension + 1) // 2 + 2, "normal": 2}
    rows |= {"triangle": dimension * (dimension + 1) // 2}
    rows |= dict.fromkeys(("half", "mean", "expected", "spread"), n_arms)
    rows |= dict.fromkeys(("played", "image", "noise"), dimension)
    of: dict[str, Any] = {name: np.zeros((n, lanes)) for name, n in rows.items()}
    of |= zeros((lanes,), "arm", "row best top reward scale step")
    of |= {name: np.zeros(lanes, dtype=np.uint64) for name in ("row_of", "triangle_of")}
    of["word"] = np.zeros((max(words_of(n_arms, dimension), dimension, 2), lanes), dtype=np.uint64)
    return Round(**of)


def gram_inverse(learner: Learner, n_arms: int, dimension: int) -> Floats:
    """Return V^-1 of every lane and arm, float64[W, K, d, d]."""
    lanes = learner.regret.size
    triangles = learner.inverse.reshape(n_arms, -1, lanes).transpose(2, 0, 1)
    row, column = np.triu_indices(dimension)
    out = np.empty((lanes, n_arms, dimension, dimension))
    out[..., row, column] = triangles
    out[..., column, row] = triangles
    return out


def lanes_first(values: Floats, n_arms: int) -> Floats:
    """Return float64[K d, W] as float64[W, K, d]."""
    return np.ascontiguousarray(values.T.reshape(values.shape[1], n_arms, -1))


_LARGEST_SCALE = 1e100  # of noise: its squares are still numbers
_WORK_A_PIECE = 100_000_000  # multiplications between two reports of progress: about a twentieth of a second


@kept_as("equinoise.bandits._linear_task.Task")
class Task(NamedTuple):
    """All that a block of replicates needs, picklable; the plan without coefficients."""

    plan: Plan
    theta: Floats | None  # [K, d], [R, K, d], or None to draw them
    ridge: float
    checkpoints: Ints
    key: Words
    n_arms: int
    dimension: int


def make_plan(
    policy: str,
    contexts: Floats,
    horizon: int,
    ridge: float,
    delta: float,
    sigma: float,
    *,
    epsilon: float,
    binary: bool = False,
    clip: tuple[float, float] = (0.0, 1.0),
    pulls: Any = None,
    lanes: int = 0,
) -> Plan:
    """Return the plan of a run, its coefficients left empty; contexts float64[T, K, d], or of no rounds.

    Widths are those after each number of `pulls` int64[N], by default after all that an arm may have.
    """
    row, dimension = POLICIES[policy], contexts.shape[2]
    pulls = np.arange(horizon + 1) if pulls is None else pulls
    width = np.zeros(len(pulls))
    if row.wide:
        fill_spreads(pulls, ridge, delta, dimension, width)
        width = sigma * width + math.sqrt(ridge)
    levels = horizon.bit_length()
    noise_width, scale = np.empty(0), 0.0
    if row.private:
        largest = float(np.abs(contexts).sum(axis=-1).max()) if contexts.size else math.sqrt(dimension)
        scale = levels * (clip[1] - clip[0]) * largest / epsilon
        if scale > _LARGEST_SCALE:
            raise ValueError(f"epsilon must give a noise scale of at most 1e100, got {epsilon!r}")
        noise_width = noise_widths(horizon, scale, delta / dimension, pulls)
    rewards = row.in_turn, binary, sigma, *clip, scale, levels + 1
    return read_only(Plan(np.empty((0, lanes)), contexts, width, noise_width, *rewards))


def read_only(plan: Plan) -> Plan:
    """Return a plan whose arrays are read-only, also where they come from another process."""
    for part in plan:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return plan


@kept_as("equinoise.bandits._linear_task.run_block")
def run_block(task: Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1, as many side by side as is best; this is what executors are given."""
    return in_lanes(functools.partial(_run_lanes, task), start, stop, lanes_of(task.n_arms, task.dimension))


def _run_lanes(task: Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1 side by side."""
    k, d, n = task.n_arms, task.dimension, stop - start
    lanes = full(n)
    theta = _theta(task, start, stop, lanes)
    plan = read_only(task.plan._replace(theta=np.ascontiguousarray(theta.reshape(lanes, -1).T)))
    learner, scratch = make_learner(plan, k, d, task.ridge), make_round(k, d, lanes)
    streams = make_streams(task.key, start, lanes, PURPOSES)
    play = kernels.play_private if plan.noise_width.size > 0 else kernels.play
    piece = max(1, _WORK_A_PIECE // (lanes * k * d * (d + 20)))
    regret = np.empty((lanes, len(task.checkpoints)))
    for i, (before, mark) in enumerate(pairwise([0, *task.checkpoints.tolist()])):
        for first in range(before, mark, piece):
            end = min(first + piece, mark)
            play(plan, learner, streams, scratch, first, end)
            replicates.tick(lanes * (end - first))
        regret[:, i] = learner.regret
    inverse, estimate = gram_inverse(learner, k, d), lanes_first(learner.estimate, k)
    theta_hat = estimate
    if plan.noise_width.size > 0:
        theta_hat = np.einsum("rkij,rkj->rki", inverse, lanes_first(learner.moment, k))
    made = {"theta": theta} if task.theta is None else {}
    made |= {"regret": regret, "pulls": np.ascontiguousarray(learner.pulls.T), "theta_hat": theta_hat}
    made |= {"gram_inverse": inverse, "estimate": estimate}
    return {name: array[:n] for name, array in made.items()}


def _theta(task: Task, start: int, stop: int, lanes: int) -> Floats:
    """Return the coefficients of the replicates from `start` on, float64[W, K, d]; spare lanes have some.

    Where they are drawn, the first is zero and the others are uniform on the unit sphere, from the stream
    (key; 0, 1, replicate, CONTEXT).
    """
    if task.theta is not None:
        return of_lanes(task.theta, start, stop, lanes, own=task.theta.ndim == 3)
    theta, free = np.zeros((task.n_arms, task.dimension, lanes)), task.dimension - 1
    if free:
        states = np.empty((4, lanes), dtype=np.uint64)
        start_streams(task.key, _THETA, start, CONTEXT, states)
        drawn = np.empty((task.n_arms * free, lanes))
        words = np.empty((words_of(task.n_arms, free), lanes), dtype=np.uint64)
        fill_directions(states, words, np.empty(((free + 1) // 2 + 2, lanes)), free, drawn)
        theta[:, 1:] = drawn.reshape(task.n_arms, free, lanes)
    return np.ascontiguousarray(theta.transpose(2, 0, 1))
