"""Bandits: a round of every policy, how cost grows with arms and replicates, and what a call costs."""

import time

from equinoise.bandits import POLICIES

from .bandit_rounds import Rounds

N_ROUNDS = {"lazy-dp-ts": 40_000}  # the others are an order of magnitude quicker
EPSILON = {name: 1.0 if policy.needs_epsilon else None for name, policy in POLICIES.items()}


class EveryPolicy:
    """Is a round of each policy as fast as it was? One call plays 640,000 rounds."""

    params = [[*POLICIES], [5, 20]]
    param_names = ["policy", "arms"]
    timer = time.thread_time
    timeout = 300

    def setup(self, policy, arms):
        horizon = N_ROUNDS.get(policy, 640_000) // 64
        self.rounds = Rounds(policy, arms, horizon, 64, epsilon=EPSILON[policy])

    def time_rounds(self, policy, arms):
        self.rounds.run()

    def peakmem_rounds(self, policy, arms):
        self.rounds.run()


class Published:
    """The experiments that LIMITS times: ns a round of private-ucb with each width and counter."""

    params = [["counter", "published"], ["k-ary", "binary", "hybrid"]]
    param_names = ["width", "counter"]
    timer = time.thread_time
    timeout = 300

    def setup(self, width, counter):
        self.rounds = Rounds("private-ucb", 20, 500, 1024, epsilon=0.05, width=width, counter=counter)

    def time_rounds(self, width, counter):
        self.rounds.run()

    def track_nanoseconds_a_round(self, width, counter):
        times = []
        for _ in range(5):
            start = time.thread_time()
            self.rounds.run()
            times.append(time.thread_time() - start)
        return min(times) * 1e9 / self.rounds.n_rounds


class Arms:
    """Does a round grow linearly with the number of arms?"""

    params = [["ucb", "private-ucb"], [2, 10, 100, 1000]]
    param_names = ["policy", "arms"]
    timer = time.thread_time
    timeout = 300

    def setup(self, policy, arms):
        self.rounds = Rounds(policy, arms, 2000, 64, epsilon=EPSILON[policy])

    def time_rounds(self, policy, arms):
        self.rounds.run()


class Replicates:
    """From one replicate, round after round, to full vectors."""

    params = [["ucb", "private-ucb"], [1, 4, 16, 64, 256]]
    param_names = ["policy", "replicates"]
    timer = time.thread_time
    timeout = 300

    def setup(self, policy, replicates):
        horizon = 256_000 // replicates
        self.rounds = Rounds(policy, 20, horizon, replicates, epsilon=EPSILON[policy])

    def time_rounds(self, policy, replicates):
        self.rounds.run()


class Call:
    """What does a call cost that plays next to nothing, tables and results included?"""

    params = [*POLICIES]
    param_names = ["policy"]
    timer = time.thread_time
    timeout = 300

    def setup(self, policy):
        self.rounds = Rounds(policy, 3, 10, 1, epsilon=EPSILON[policy])

    def time_call(self, policy):
        self.rounds.run()
