"""Rounds of a bandit policy, as the benchmarks time them: one call, one thread, everything compiled."""

from concurrent.futures import Executor, Future

import numpy as np

from equinoise.bandits import simulate


def ladder(n_arms):
    """True means 1, 0.95, 0.9, ..., not below 0."""
    return np.maximum(1.0 - 0.05 * np.arange(n_arms), 0.0)


class Here(Executor):
    """Runs a task at once, in the thread that the benchmark's clock looks at."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Rounds:
    """A policy on the ladder of K arms, with T rounds and R replicates."""

    def __init__(self, policy, n_arms, horizon, n_replicates, **options):
        self.arguments = {
            "policy": policy,
            "means": ladder(n_arms),
            "horizon": horizon,
            "n_replicates": n_replicates,
            "executor": Here(),
            "block": min(n_replicates, 1024),
            **options,
        }
        self.n_rounds = horizon * n_replicates
        simulate(**{**self.arguments, "horizon": n_arms, "n_replicates": 8})  # compiles

    def run(self):
        return simulate(**self.arguments)
