"""A block of replicates of a linear bandit: what it needs, and how it is run."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equinoise import replicates
from equinoise._checkpoint import kept_as
from equinoise._typing import Array, Floats, Ints, Words
from equinoise.bandits.linear import kernels, state
from equinoise.bandits.linear.arrays import Learner, Plan
from equinoise.bandits.linear.registry import POLICIES

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
    binary: bool,
    clip: tuple[float, float],
    epsilon: float,
) -> Plan:
    """Return the plan of a run, its coefficients left empty; contexts float64[T, K, d], or of no rounds."""
    row, dimension = POLICIES[policy], contexts.shape[2]
    width = np.zeros(horizon + 1)
    if row.wide:
        width = state.confidence_widths(horizon, dimension, ridge, delta, sigma)
    levels = horizon.bit_length()
    noise_width, scale = np.empty(0), 0.0
    if row.private:
        largest = float(np.abs(contexts).sum(axis=-1).max()) if contexts.size else math.sqrt(dimension)
        scale = levels * (clip[1] - clip[0]) * largest / epsilon
        if scale > _LARGEST_SCALE:
            raise ValueError(f"epsilon must give a noise scale of at most 1e100, got {epsilon!r}")
        noise_width = state.noise_widths(horizon, scale, delta / dimension)
    return Plan(
        theta=np.empty((0, 0)),
        context=contexts,
        width=width,
        noise_width=noise_width,
        in_turn=row.in_turn,
        binary=binary,
        sigma=sigma,
        low=clip[0],
        high=clip[1],
        scale=scale,
        slots=levels + 1,
    )


@kept_as("equinoise.bandits._linear_task.run_block")
def run_block(task: Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1, as many side by side as is best; this is what executors are given."""
    lanes = state.lanes_of(task.n_arms, task.dimension)
    parts = [_run_lanes(task, low, min(low + lanes, stop)) for low in range(start, stop, lanes)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _run_lanes(task: Task, start: int, stop: int) -> dict[str, Array]:
    """Run the replicates start..stop-1 side by side."""
    k, d, n = task.n_arms, task.dimension, stop - start
    lanes = n
    if n > state.VECTOR // 2:  # a vector that is not full costs as much: its rest is thrown away
        lanes = -(-n // state.VECTOR) * state.VECTOR
    theta = _theta(task, start, stop, lanes)
    plan = state.sealed(task.plan._replace(theta=state.lanes_last(theta)))
    learner = state.make_learner(plan, k, d, task.ridge)
    regret = _play(task, plan, learner, start)
    inverse = state.gram_inverse(learner, k, d)
    estimate = state.lanes_first(learner.estimate, k)
    private = plan.noise_width.size > 0
    moment = state.lanes_first(learner.moment, k) if private else None
    return {
        **({"theta": theta[:n]} if task.theta is None else {}),
        "regret": regret[:n],
        "pulls": np.ascontiguousarray(learner.pulls.T[:n]),
        "theta_hat": (estimate if moment is None else np.einsum("rkij,rkj->rki", inverse, moment))[:n],
        "gram_inverse": inverse[:n],
        "estimate": estimate[:n],
    }


def _theta(task: Task, start: int, stop: int, lanes: int) -> Floats:
    """Return the coefficients of the replicates from `start` on, float64[W, K, d]; spare lanes have some."""
    if task.theta is None:
        return state.draw_theta(task.key, start, lanes, task.n_arms, task.dimension)
    if task.theta.ndim == 3:
        return task.theta[np.minimum(np.arange(start, start + lanes), stop - 1)]
    return np.broadcast_to(task.theta, (lanes, *task.theta.shape))


def _play(task: Task, plan: Plan, learner: Learner, start: int) -> Floats:
    """Play all rounds and return the regret at the checkpoints, float64[W, C]; tell progress in between."""
    lanes = learner.regret.size
    streams = state.make_streams(task.key, start, lanes)
    scratch = state.make_round(task.n_arms, task.dimension, lanes)
    piece = max(1, _WORK_A_PIECE // (lanes * task.n_arms * task.dimension * (task.dimension + 20)))
    kernel = kernels.play_private if plan.noise_width.size else kernels.play
    regret = np.empty((lanes, len(task.checkpoints)))
    first = 0
    for i, checkpoint in enumerate(task.checkpoints.tolist()):
        while first < checkpoint:
            end = min(first + piece, checkpoint)
            kernel(plan, learner, streams, scratch, first, end)
            replicates.tick(lanes * (end - first))
            first = end
        regret[:, i] = learner.regret
    return regret
