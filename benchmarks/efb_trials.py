"""One trial of DP-EFB by the kernels that ``simulate`` runs, ready to be timed.

    python -m benchmarks.efb_trials [--rounds 200]

times one symbol a user against noised losses, in turns: medians and least of the ratios.
"""

import argparse
import time

import numpy as np

from equinoise._random import stream_key
from equinoise.efb import baselines, tune
from equinoise.efb.kernels import learner, setup
from equinoise.games import load


class Trials:
    """A learner and an environment, compiled and warm; ``run(n)`` plays n more trials.

    A large learning rate collapses the policy on one path and flatters the time, so it may be set.
    """

    def __init__(self, game, *, epsilon=1.0, horizon=1_000_000, learning_rate=None, mechanism="laplace"):
        tree, environment = load(game)
        ranges = environment.loss_range
        self.tuning = tuning = tune(tree, horizon, epsilon, mechanism=mechanism, loss_range=ranges)
        self.learner = baselines.LEARNERS["dp-efb"].start(tree, tuning)
        rate = tuning.learning_rate if learning_rate is None else learning_rate
        self.tree = tree
        self.chance = setup.make_chance(environment)
        plan = setup.make_plan(tree, tuning.exploration, tuning.radius)
        seat = setup.make_seat(tree, plan, setup.make_visits(tree), self.learner, stream_key(0))
        self.seat = seat._replace(rate=rate)
        self.start = 0
        self.run(10)

    def restart(self):
        """Go back to the first policy; the trials go on, so that chance does not repeat itself."""
        weights = setup.make_weights(self.tree, self.learner.first_policy)
        self.seat = self.seat._replace(weights=weights)

    def run(self, n):
        learner.run_trials(self.seat, self.chance, self.start, self.start + n)
        self.start += n

    def visited(self, n=2000):
        """Return the mean number of infosets that a trial visits under the present policy."""
        return np.mean(
            [learner.draw(self.seat, None, self.seat.scale, self.seat.plan.actions, t) for t in range(n)]
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    for game in ("leduc_poker", "complete(2,2,6)"):
        ways = [Trials(game)] + [Trials(game, epsilon=e, mechanism="hashing") for e in (1.0, 2.0, 4.0, 8.0)]
        for way in ways:
            way.run(20_000)
        spent = np.empty((rounds, len(ways)))
        for i in range(rounds):
            for j, way in enumerate(ways):
                begun = time.thread_time()
                way.run(500)
                spent[i, j] = time.thread_time() - begun
        print(f"{game}: noised losses {spent[:, 0].min() / 500 * 1e9:,.0f} ns a trial")
        for j, way in enumerate(ways[1:], 1):
            median = np.median(spent[:, j] / spent[:, 0])
            least = spent[:, j].min() / spent[:, 0].min()
            print(f"  one symbol, k = {way.tuning.symbols // 2}: {median:.2f} of it ({least:.2f})")


if __name__ == "__main__":
    main()
