"""Linear bandits: a round of each policy, with few and many arms and coordinates."""

import time

from .linear_rounds import Rounds

N_REPLICATES = 128
HORIZON = 200


class Policies:
    """Is a round as fast as it was? One call plays 128 replicates of 200 rounds."""

    params = (["oful", "private-oful", "greedy", "uniform"], [(5, 5), (20, 5), (20, 20)])
    param_names = ("policy", "arms and coordinates")
    timer = time.thread_time

    def setup(self, policy, size):
        self.rounds = Rounds(policy, *size, HORIZON)

    def time_rounds(self, policy, size):
        self.rounds.run(N_REPLICATES)

    def peakmem_rounds(self, policy, size):
        self.rounds.run(N_REPLICATES)


class Lanes:
    """What does a round of a replicate cost when there are few replicates to put side by side?"""

    params = [1, 4, 16, 64, 128]
    param_names = ("replicates",)
    timer = time.thread_time

    def setup(self, n):
        self.rounds = Rounds("oful", 5, 5, HORIZON)

    def track_ns_a_round(self, n):
        times = []
        for _ in range(9):
            start = time.thread_time()
            self.rounds.run(n)
            times.append(time.thread_time() - start)
        return min(times) * 1e9 / n / HORIZON

    track_ns_a_round.unit = "ns"
