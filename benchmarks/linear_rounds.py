"""Rounds of a linear bandit with the block that ``linear.simulate`` runs, ready to be timed."""

import math

import numpy as np

from equinoise._random import stream_key
from equinoise.bandits.linear import task


class Rounds:
    """A policy with standard parameters, compiled and warm; ``run(n)`` plays n replicates from the start."""

    def __init__(self, policy, n_arms, dimension, horizon):
        epsilon = 1.0 if policy == "private-oful" else math.inf
        contexts = np.empty((0, n_arms, dimension))
        plan = task.make_plan(
            policy, contexts, horizon, 1.0, 0.05, 1.0, binary=False, clip=(-4.0, 4.0), epsilon=epsilon
        )
        checkpoints = np.array([horizon])
        self.task = task.Task(plan, None, 1.0, checkpoints, stream_key(0), n_arms, dimension)
        self.run(2)

    def run(self, n):
        return task.run_block(self.task, 0, n)
