"""DP-EFB: a trial on poker and on complete trees, on one infoset of 10 to 10^7 actions, and set-up."""

import time

from equinoise import efb
from equinoise.games import load, load_joint

from .efb_trials import Trials

N_TRIALS = 2_000


class Games:
    """Is a trial as fast as it was? One call plays 2,000 trials."""

    params = ["kuhn_poker", "leduc_poker", "complete(2,2,6)", "complete(3,3,4)", "complete(10,2,4)"]
    param_names = ["game"]
    timer = time.thread_time

    def setup(self, game):
        self.trials = Trials(game, learning_rate=1e-6)

    def time_trials(self, game):
        self.trials.run(N_TRIALS)

    def peakmem_trials(self, game):
        self.trials.run(N_TRIALS)


class OneInfoset:
    """Does the cost of a trial grow with the logarithm of the number of actions, and memory linearly?"""

    params = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    param_names = ["actions"]
    timer = time.thread_time
    timeout = 300

    def setup(self, actions):
        self.trials = Trials(f"bandit({actions})", learning_rate=1e-9)

    def time_trials(self, actions):
        self.trials.run(N_TRIALS)

    def peakmem_trials(self, actions):
        self.trials.run(N_TRIALS)


class Preparation:
    """How long until the first trial, and how much memory, with everything compiled?"""

    params = ["leduc_poker", "complete(10,2,4)", "bandit(1000000)"]
    param_names = ["game"]
    timer = time.thread_time

    def setup(self, game):
        self.tree, self.environment = load(game)
        efb.simulate(self.tree, self.environment, horizon=10, epsilon=1.0)

    def time_load(self, game):
        load(game)

    def time_tune(self, game):
        efb.tune(self.tree, 10**6, 1.0)

    def time_simulate_ten_trials(self, game):
        efb.simulate(self.tree, self.environment, horizon=10, epsilon=1.0)

    def peakmem_simulate_ten_trials(self, game):
        efb.simulate(self.tree, self.environment, horizon=10, epsilon=1.0)


class Protocol:
    """What does one trial cost message by message, checks and all?"""

    timer = time.thread_time

    def setup(self):
        tree, environment = load("leduc_poker")
        self.environment = environment
        self.server = efb.Server(tree, horizon=10**9, epsilon=4.0, seed=0)
        self.user = efb.User(tree, 4.0, noise="float", seed=0)
        self.time_trial()

    def time_trial(self):
        strategy = self.server.draw()
        last_action, loss = efb.play(self.environment, strategy, seed=0)
        self.server.update(self.user.report(strategy, last_action, loss))


class SelfPlay:
    """What does a hand cost, two learners and their averages included? One call plays 10,000."""

    params = [["kuhn_poker", "leduc_poker"], [1.0, 4.0]]
    param_names = ["game", "epsilon"]
    timer = time.process_time  # a replicate is played in a thread of its own

    def setup(self, game, epsilon):
        self.game = load_joint(game)
        efb.self_play(self.game, horizon=10, epsilon=epsilon)

    def time_hands(self, game, epsilon):
        efb.self_play(self.game, horizon=10_000, epsilon=epsilon, n_checkpoints=1)
