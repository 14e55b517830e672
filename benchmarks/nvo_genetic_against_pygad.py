"""Time a generation of the genetic search beside PyGAD with the same parameters, one thread each.

    python -m benchmarks.nvo_genetic_against_pygad [--rounds 3] [--generations 50]

The game has the paper's size: n = 1,307, K = 101, five or six scales, epsilon 1. Population 500, 10 parents,
two-point crossover, 5% mutation, the 5 best kept; PyGAD takes the 5 only with keep_elitism=0. Two payoffs in
NumPy are given to it: one over types, as ours, and one over players, as in the paper.
"""

import argparse
import statistics
import time

import numpy as np

from equinoise.nvo.search import genetic

N, K, EPSILON = 1307, 101, 1.0
SCALES = (0.711, 0.474, 0.237, 0.078, 0.047, 0.0002)
POPULATION, PARENTS, MUTATION, KEPT = 500, 10, 0.05, 5


class Game:
    """Bell-shaped data in the middle third of the range, and two payoffs in NumPy."""

    def __init__(self, n_scales):
        rng = np.random.default_rng(1)
        self.bin_of = np.sort(np.clip(np.rint(K / 2 + 4 * rng.normal(size=N)).astype(int), 0, K - 1))
        self.counts = np.bincount(self.bin_of, minlength=K)
        x = (np.arange(K) + 0.5) / K
        masses = np.exp(-np.abs(x[:, None, None] - x) / np.array(SCALES[:n_scales])[:, None])
        self.kernel = masses / masses.sum(axis=2, keepdims=True)
        self.rows = self.kernel.reshape(-1, K)
        self.n_scales = n_scales
        self.high = 1.0 - (1.0 - 1.0 / N) * np.exp(-EPSILON)
        self.seen = self.counts > 0

    def payoff_of_types(self, options):
        number = np.bincount(self.bin_of * self.n_scales + options, minlength=len(self.rows))
        used = np.flatnonzero(number)
        rows = self.rows[used]
        mass = number[used] @ rows
        fine = (rows <= self.high * mass).all(axis=1)
        return number[used][fine].sum() + self.utility(mass)

    def payoff_of_players(self, options):
        rows = self.kernel[self.bin_of, options]
        mass = rows.sum(axis=0)
        return (rows <= self.high * mass).all(axis=1).sum() + self.utility(mass)

    def utility(self, mass):
        q = self.counts[self.seen] / N
        return 1.0 - (q * np.log(q * N / mass[self.seen])).sum() / np.log(K)


def ours(game, generations):
    """Return seconds a generation: what is compiled, the first generation and the set-up are taken off."""
    times = []
    for n in (1, 0, generations):
        begun = time.thread_time()
        genetic(game.kernel, game.counts, EPSILON, generations=n)
        times.append(time.thread_time() - begun)
    return (times[2] - times[1]) / generations


def theirs(game, payoff, generations):
    """Return seconds a generation of PyGAD, the first one taken off."""
    begun = time.thread_time()
    pygad_search(game, payoff, 1).run()
    once = time.thread_time() - begun
    begun = time.thread_time()
    pygad_search(game, payoff, 1 + generations).run()
    return (time.thread_time() - begun - once) / generations


def pygad_search(game, payoff, generations):
    import pygad

    return pygad.GA(
        num_generations=generations,
        sol_per_pop=POPULATION,
        num_parents_mating=PARENTS,
        num_genes=N,
        gene_space=list(range(game.n_scales)),
        gene_type=int,
        parent_selection_type="sss",
        crossover_type="two_points",
        mutation_type="random",
        mutation_percent_genes=100 * MUTATION,
        keep_elitism=0,
        keep_parents=KEPT,
        fitness_func=lambda _, options, index: payoff(np.asarray(options, dtype=np.int64)),
        random_seed=1,
        suppress_warnings=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--generations", type=int, default=50)
    arguments = parser.parse_args()
    print("milliseconds a generation of 500: median of pairs")
    for n_scales in (5, 6):
        game = Game(n_scales)
        check = np.random.default_rng(2).integers(0, n_scales, N)
        assert abs(game.payoff_of_types(check) - game.payoff_of_players(check)) < 1e-9
        for name, payoff in (("types", game.payoff_of_types), ("players", game.payoff_of_players)):
            pairs = []
            for _ in range(arguments.rounds):
                pairs.append((ours(game, arguments.generations), theirs(game, payoff, 3)))
            mine, other = (1e3 * statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            print(
                f"V = {n_scales}: {mine:.2f}, PyGAD with a payoff over {name} {other:.0f}: {ratio:.0f} times"
            )


if __name__ == "__main__":
    main()
