"""Time a round of ucb and private-ucb beside other ways to play it, in one process, one thread, in turns.

    python -m benchmarks.bandits_against_peers [--rounds 9] [--milliseconds 60]

MABWiser is left out where it is not installed: ``pip install mabwiser``. Its ucb1 is timed for ucb, an index
of the same cost. The loop is plain Python, an index an arm, as the published experiments were programmed, but
with the sum of each arm at hand; for private-ucb with the nodes of a tree in lists. NumPy plays a thousand
replicates in every operation, with everything that depends on the round alone in tables. Ratios are medians
over the rounds, theirs by ours in the same round. Every program plays 20 arms for 500 rounds, and the regret
that it reaches is printed beside, so that nobody is fast by doing something else.
"""

import argparse
import math
import random
import statistics
import time

import numpy as np

from .bandit_rounds import Rounds, ladder

N_ARMS, HORIZON, EPSILON = 20, 500, 0.05
MEANS = ladder(N_ARMS)
T = np.arange(1, HORIZON + 1)
INVERSE_DELTA = 1.0 + T * np.log(T) ** 2
LEVELS = HORIZON.bit_length()


def published_width(t):
    log_horizon = math.log(HORIZON)
    inside = N_ARMS * HORIZON * log_horizon * (1.0 + t * math.log(t) ** 2)
    return N_ARMS * log_horizon**2 * math.log(inside) / EPSILON


# ----------------------------------------------------------------------------------------------------------
# Plain Python
# ----------------------------------------------------------------------------------------------------------


class Loop:
    """One replicate at a time: lists, a loop over the arms, ``math``."""

    def __init__(self, private):
        self.private = private
        self.rng = random.Random(0)

    def run(self, n):
        return statistics.fmean(self.play() for _ in range(max(1, n // HORIZON)))

    def play(self):
        pulls, sums, nodes = [0] * N_ARMS, [0.0] * N_ARMS, [[0.0] * LEVELS for _ in MEANS]
        noise = [0.0] * N_ARMS
        for t in range(1, HORIZON + 1):
            arm = t - 1 if t <= N_ARMS else self.best(t, pulls, sums, noise)
            pulls[arm] += 1
            sums[arm] += self.rng.random() < MEANS[arm]
            if self.private:
                noise[arm] = self.noised(nodes[arm], pulls[arm])
        return sum((MEANS[0] - mean) * n for mean, n in zip(MEANS, pulls, strict=True))

    def best(self, t, pulls, sums, noise):
        best, arm = -math.inf, 0
        for k in range(N_ARMS):
            n = pulls[k]
            index = (sums[k] + noise[k]) / n
            index += math.sqrt(math.log(2.0 * (1.0 + t * math.log(t) ** 2)) / (2.0 * n))
            if self.private:
                index += published_width(t) / n
            if index > best:
                best, arm = index, k
        return arm

    def noised(self, nodes, n):
        level = (n & -n).bit_length() - 1
        scale = LEVELS / EPSILON
        nodes[level] = self.rng.choice((-scale, scale)) * self.rng.expovariate(1.0)
        for below in range(level):
            nodes[below] = 0.0
        return sum(node for i, node in enumerate(nodes) if n >> i & 1)


# ----------------------------------------------------------------------------------------------------------
# NumPy, all replicates in every operation
# ----------------------------------------------------------------------------------------------------------


class NumpyReplicates:
    """R replicates: sums, means and 1/sqrt(2 n) as rows of arms, flat indices, buffers that stay."""

    def __init__(self, private, n_replicates=1000):
        self.private, self.n = private, n_replicates
        self.rng = np.random.default_rng(0)
        self.confidence = np.sqrt(np.log(2.0 * INVERSE_DELTA))
        n = np.arange(1, HORIZON + 2)
        self.root, self.inverse = np.append(0.0, 1.0 / np.sqrt(2.0 * n)), np.append(0.0, 1.0 / n)
        numbers = np.arange(HORIZON + 2)
        lowest = numbers & -numbers
        self.slot = np.where(numbers == 0, 0, np.log2(np.maximum(lowest, 1)).astype(int) + 1)
        self.width = np.array([2.0 * published_width(t) for t in range(1, HORIZON + 1)])

    def run(self, n):
        calls = max(1, n // (HORIZON * self.n))
        return statistics.fmean(self.play() for _ in range(calls))

    def play(self):
        shape = (self.n, N_ARMS)
        self.pulls, self.sums = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        self.mean, self.radius = np.zeros(shape), np.zeros(shape)
        self.totals = np.zeros((self.n * N_ARMS, LEVELS + 1))
        index, first = np.empty(shape), np.arange(self.n) * N_ARMS
        for t in range(HORIZON):
            if t < N_ARMS:
                arm = np.full(self.n, t)
            else:
                if self.private:
                    np.multiply(self.radius, self.width[t], out=index)
                    index += self.confidence[t]
                    index *= self.radius
                else:
                    np.multiply(self.radius, self.confidence[t], out=index)
                index += self.mean
                arm = index.argmax(axis=1)
            self.update(first + arm, self.rng.random(self.n) < MEANS[arm])
        return float((self.pulls @ (MEANS[0] - MEANS)).mean())

    def update(self, at, reward):
        pulls, sums = self.pulls.reshape(-1), self.sums.reshape(-1)
        n = pulls[at] + 1
        total = sums[at] + reward
        pulls[at] = n
        sums[at] = total
        if self.private:
            noise = self.totals[at, self.slot[n & (n - 1)]]
            noise += self.rng.laplace(0.0, LEVELS / EPSILON, self.n)
            self.totals[at, self.slot[n]] = noise
            total = total + noise
        self.mean.reshape(-1)[at] = total * self.inverse[n]
        self.radius.reshape(-1)[at] = self.root[n]


# ----------------------------------------------------------------------------------------------------------
# Packages
# ----------------------------------------------------------------------------------------------------------


class MabWiser:
    """MABWiser's UCB1, asked and told one round at a time; arms are pulled once before."""

    def __init__(self):
        from mabwiser.mab import MAB, LearningPolicy

        self.make = lambda: MAB(arms=[*range(N_ARMS)], learning_policy=LearningPolicy.UCB1(alpha=1.0))
        self.rng = random.Random(0)

    def run(self, n):
        return statistics.fmean(self.play() for _ in range(max(1, n // HORIZON)))

    def play(self):
        bandit, regret = self.make(), float((MEANS[0] - MEANS).sum())
        bandit.fit([*range(N_ARMS)], [int(self.rng.random() < mean) for mean in MEANS])
        for _ in range(HORIZON - N_ARMS):
            arm = bandit.predict()
            bandit.partial_fit([arm], [int(self.rng.random() < MEANS[arm])])
            regret += MEANS[0] - MEANS[arm]
        return regret


class Ours:
    """A call of ``simulate``, tables and results included."""

    def __init__(self, policy, **options):
        self.rounds = Rounds(policy, N_ARMS, HORIZON, 1024, **options)

    def run(self, n):
        calls = max(1, n // self.rounds.n_rounds)
        return statistics.fmean(self.rounds.run().regret[:, -1].mean() for _ in range(calls))


PROGRAMS = {
    "ucb": {
        "equinoise": lambda: Ours("ucb"),
        "NumPy, 1,000 replicates side by side": lambda: NumpyReplicates(False),
        "Python loop": lambda: Loop(False),
        "MABWiser": MabWiser,
    },
    "private-ucb": {
        "equinoise": lambda: Ours("private-ucb", epsilon=EPSILON, width="published"),
        "NumPy, 1,000 replicates side by side": lambda: NumpyReplicates(True),
        "Python loop": lambda: Loop(True),
    },
}


# ----------------------------------------------------------------------------------------------------------
# Timing
# ----------------------------------------------------------------------------------------------------------


def made(programs):
    """Return the programs that can be made, and say which cannot."""
    result = {}
    for name, make in programs.items():
        try:
            result[name] = make()
        except ImportError as error:
            print(f"{name} left out: {error}")
    return result


def timed(program, n):
    """Play about n rounds; return (nanoseconds a round, mean regret of a replicate)."""
    start = time.thread_time()
    regret = program.run(n)
    return (time.thread_time() - start) * 1e9 / n, regret


def whole(program, milliseconds):
    """Return a number of rounds that takes about so long and is whole replicates of each program."""
    step = HORIZON * (1024 if isinstance(program, Ours) else getattr(program, "n", 1))
    nanoseconds, _ = timed(program, step)
    return step * max(1, math.ceil(milliseconds * 1e6 / nanoseconds / step))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--milliseconds", type=float, default=60, help="of a program in a round, at least")
    arguments = parser.parse_args()
    for policy, programs in PROGRAMS.items():
        made_ones = made(programs)
        counts = {name: whole(program, arguments.milliseconds) for name, program in made_ones.items()}
        results = {name: [] for name in made_ones}
        for _ in range(arguments.rounds):
            for name, program in made_ones.items():
                results[name].append(timed(program, counts[name]))
        ours = [nanoseconds for nanoseconds, _ in results["equinoise"]]
        print(f"\n{policy}: nanoseconds a round, median (least); ratio to ours; regret")
        for name, values in results.items():
            times, regrets = zip(*values, strict=True)
            ratio = statistics.median(theirs / mine for theirs, mine in zip(times, ours, strict=True))
            print(
                f"{name:38}{statistics.median(times):12.1f} ({min(times):.1f}){ratio:10.1f}"
                f"{statistics.fmean(regrets):10.1f}"
            )


if __name__ == "__main__":
    main()
