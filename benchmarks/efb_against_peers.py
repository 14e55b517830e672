"""Time a trial of DP-EFB beside other learners from bandit feedback, in one process, one thread, in turns.

    python -m benchmarks.efb_against_peers [--rounds 9] [--milliseconds 60]

Peers that are not installed are left out, and named: ``pip install open_spiel LiteEFG``. An iteration is what
each program calls one. Ours is a trial: one learner plays one trajectory against a uniform opponent and
reports a noisy value for every action of its strategy. The others learn from the actions of a trajectory
alone, few on a large game: MCCFR plays two trajectories, one for each player, LiteEFG one for both, and the
NumPy learner one of the same game as ours, alone or with a thousand replicates side by side. Ratios are
medians over the rounds, theirs by ours in the same round.
"""

import argparse
import contextlib
import io
import math
import os
import statistics
import tempfile
import time
from unittest import mock

import numpy as np

from equinoise.efb import baselines, tune
from equinoise.games import load

from .efb_trials import Trials

GAMES = ("kuhn_poker", "leduc_poker")
HORIZON = 1_000_000


# ----------------------------------------------------------------------------------------------------------
# IXOMD in NumPy
# ----------------------------------------------------------------------------------------------------------


class NumpyLearner:
    """IXOMD (Kozuno et al., 2021), one learner: slices of a flat policy, one trajectory an iteration."""

    def __init__(self, game):
        self.tree, environment = load(game)
        learner = baselines.LEARNERS["ixomd"].start(self.tree, tune(self.tree, HORIZON, math.inf))
        self.rate, self.gamma = learner.tuning.learning_rate, float(learner.tuning.exploration[0])
        self.policy = learner.first_policy.copy()
        self.child_cum, self.child, self.leaf_loss = children(self.tree, environment)
        self.rng = np.random.default_rng(0)

    def run(self, n):
        for _ in range(n):
            self.iterate()

    def iterate(self):
        action_ptr, path = self.tree.action_ptr, []
        s, reach = 0, 1.0
        while s >= 0:
            first, end = action_ptr[s], action_ptr[s + 1]
            running = self.policy[first:end].cumsum()
            a = first + min(int(running.searchsorted(self.rng.random(), side="right")), end - first - 1)
            reach *= self.policy[a]
            path.append((first, end, a))
            s = self.child[a, self.child_cum[a].searchsorted(self.rng.random(), side="right")]
        factor = math.exp(-self.rate * self.leaf_loss[-1 - s] / (reach + self.gamma))
        for first, end, a in reversed(path):
            p = self.policy[a]
            total = 1.0 - p + p * factor
            self.policy[a] = p * factor
            self.policy[first:end] /= total
            factor = total


class NumpyReplicates:
    """The same with R replicates in every operation, infosets padded to the widest: how NumPy is fast."""

    def __init__(self, game, n_replicates=1000):
        one = NumpyLearner(game)
        widths, widest = np.diff(one.tree.action_ptr)[:, None], one.tree.max_actions
        place = np.arange(widest)
        self.slots = np.where(place < widths, one.tree.action_ptr[:-1, None] + place, one.tree.n_actions)
        self.policy = np.tile(np.append(one.policy, 0.0), (n_replicates, 1))  # a padded slot has no weight
        self.rate, self.gamma, self.rng = one.rate, one.gamma, one.rng
        self.child_cum, self.child, self.leaf_loss = one.child_cum, one.child, one.leaf_loss

    def run(self, n):
        for _ in range(max(1, n // len(self.policy))):
            self.iterate()

    def iterate(self):
        rows, s = np.arange(len(self.policy)), np.zeros(len(self.policy), dtype=np.int64)
        reach, factor, path = np.ones(len(rows)), np.empty(len(rows)), []
        while len(rows):
            every, slots = np.arange(len(rows)), self.slots[s]
            policy = self.policy[rows[:, None], slots]
            running = policy.cumsum(axis=1)
            u = self.rng.random(len(rows)) * running[:, -1]
            k = (running <= u[:, None]).sum(axis=1)
            a, p = slots[every, k], policy[every, k]
            path.append((rows, slots, policy, every, k, p))
            reach = reach * p
            u = self.rng.random(len(rows))
            s = self.child[a, (self.child_cum[a] <= u[:, None]).sum(axis=1)]
            over, on = s < 0, s >= 0
            lhat = self.leaf_loss[-1 - s[over]] / (reach[over] + self.gamma)
            factor[rows[over]] = np.exp(-self.rate * lhat)
            rows, s, reach = rows[on], s[on], reach[on]
        for rows, slots, policy, every, k, p in reversed(path):
            w = factor[rows]
            total = 1.0 - p + p * w
            policy[every, k] = p * w
            self.policy[rows[:, None], slots] = policy / total[:, None]
            factor[rows] = total


def children(tree, environment):
    """Return running probabilities and numbers of an action's children, padded: infoset c, or -1 - leaf."""
    infoset_cum, leaf_cum = environment.cumulative
    below, leaves = np.diff(tree.infoset_ptr), np.diff(tree.leaf_ptr)
    cum = np.full((tree.n_actions, (below + leaves).max()), np.inf)
    child = np.zeros(cum.shape, dtype=np.int64)
    parent, c = tree.infoset_action[1:], np.arange(1, tree.n_infosets)
    cum[parent, c - tree.infoset_ptr[parent]] = infoset_cum[1:]
    child[parent, c - tree.infoset_ptr[parent]] = c
    parent, leaf = tree.leaf_action, np.arange(tree.n_leaves)
    cum[parent, below[parent] + leaf - tree.leaf_ptr[parent]] = leaf_cum
    child[parent, below[parent] + leaf - tree.leaf_ptr[parent]] = -1 - leaf
    return cum, child, environment.leaf_loss


# ----------------------------------------------------------------------------------------------------------
# The programs: a function of the game that returns a function of the number of iterations
# ----------------------------------------------------------------------------------------------------------


def mccfr_compiled(game):
    import pyspiel

    solver = pyspiel.OutcomeSamplingMCCFRSolver(pyspiel.load_game(game), seed=0)
    return repeated(solver.run_iteration)


def mccfr_python(game):
    import pyspiel
    from open_spiel.python.algorithms.outcome_sampling_mccfr import OutcomeSamplingSolver

    return repeated(OutcomeSamplingSolver(pyspiel.load_game(game)).iteration)


def lite_efg(algorithm):
    """One of LiteEFG's learners; its averaging of strategies is left out, which is in its favour."""

    def make(game):
        import LiteEFG
        import pyspiel

        with tempfile.TemporaryDirectory() as home, contextlib.redirect_stdout(io.StringIO()):
            with mock.patch.dict(os.environ, HOME=home, USERPROFILE=home):  # it writes the game there
                environment = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), traverse_type="Outcome")
            graph = getattr(LiteEFG.baselines, algorithm).graph()
            environment.set_graph(graph)
        return repeated(lambda: graph.update_graph(environment))

    return make


def repeated(iterate):
    def run(n):
        for _ in range(n):
            iterate()

    return run


PEERS = {
    "OpenSpiel C++ outcome-sampling MCCFR": mccfr_compiled,
    "OpenSpiel Python outcome-sampling MCCFR": mccfr_python,
    "LiteEFG IXOMD": lite_efg("IXOMD"),
    "LiteEFG Balanced OMD": lite_efg("Balanced_OMD"),
    "LiteEFG Balanced FTRL": lite_efg("Balanced_FTRL"),
    "NumPy IXOMD, one learner": lambda game: NumpyLearner(game).run,
    "NumPy IXOMD, 1,000 replicates side by side": lambda game: NumpyReplicates(game).run,
}


# ----------------------------------------------------------------------------------------------------------
# Timing
# ----------------------------------------------------------------------------------------------------------


def made(game):
    """Return the peers that can be made for a game, and say which cannot."""
    programs = {}
    for name, make in PEERS.items():
        try:
            programs[name] = make(game)
        except ImportError as error:
            print(f"{game}: {name} left out: {error}")
    return programs


def microseconds(run, n):
    start = time.thread_time()
    run(n)
    return (time.thread_time() - start) * 1e6 / n


def warm(run, milliseconds):
    """Run for a while and return how many iterations take about so many milliseconds, a multiple of 1,000."""
    run(1000)
    n = math.ceil(milliseconds / microseconds(run, 1000))
    return 1000 * max(1, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--milliseconds", type=float, default=60, help="of a program in a round, at least")
    arguments = parser.parse_args()
    for game in GAMES:
        trials = Trials(game)
        programs = {"equinoise DP-EFB, epsilon 1": trials.run, **made(game)}
        counts = {name: warm(run, arguments.milliseconds) for name, run in programs.items()}
        times = {name: [] for name in programs}
        for _ in range(arguments.rounds):
            for name, run in programs.items():
                times[name].append(microseconds(run, counts[name]))
        ours = next(iter(times.values()))
        print(f"\n{game}: microseconds an iteration, median (least); ratio to ours")
        for name, values in times.items():
            ratio = statistics.median(theirs / mine for theirs, mine in zip(values, ours, strict=True))
            print(f"{name:44}{statistics.median(values):9.3f} ({min(values):.3f}){ratio:9.1f}")
        reported = trials.visited()
        each = statistics.median(ours) / reported
        print(f"ours, for each of {reported:.1f} reported actions{'':13}{each:9.3f}\n")


if __name__ == "__main__":
    main()
