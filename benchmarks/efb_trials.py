"""One trial of DP-EFB, with noised losses, by the kernels that ``simulate`` runs, ready to be timed."""

import numpy as np

from equinoise._random import stream_key
from equinoise.efb import baselines, tune
from equinoise.efb.kernels import setup, trial
from equinoise.games import load


class Trials:
    """A learner and an environment, compiled and warm; ``run(n)`` plays n more trials.

    A large learning rate collapses the policy on one path and flatters the time, so it may be set.
    """

    def __init__(self, game, *, epsilon=1.0, horizon=1_000_000, learning_rate=None):
        tree, environment = load(game)
        tuning = tune(tree, horizon, epsilon, mechanism="laplace")
        self.learner = baselines.LEARNERS["dp-efb"].start(tree, tuning)
        self.rate = self.learner.tuning.learning_rate if learning_rate is None else learning_rate
        self.tree = tree
        self.plan = setup.make_plan(tree, self.learner.tuning.exploration)
        self.chance = setup.make_chance(environment)
        self.visits = setup.make_visits(tree, trial.Visits)
        self.key = stream_key(0)
        self.start = 0
        self.restart()
        self.run(10)

    def restart(self):
        """Go back to the first policy; the trials go on, so that chance does not repeat itself."""
        self.weights = setup.make_weights(self.tree, self.learner.first_policy)

    def run(self, n):
        trial.run_trials(
            self.plan, self.weights, self.visits, self.chance, self.key, 0,
            self.start, self.start + n, self.rate, self.learner.scale,
        )  # fmt: skip
        self.start += n

    def visited(self, n=2000):
        """Return the mean number of infosets that a trial visits under the present policy."""
        source = setup.first_source(self.key)
        return np.mean(
            [trial.draw(self.plan, self.weights, self.visits, self.plan.actions, source, t) for t in range(n)]
        )
