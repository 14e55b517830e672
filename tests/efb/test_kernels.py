"""Draw, play, noise and update, against plain Python that lists strategies and reads words by address."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive

from equinoise.efb import Report, Server, Tuning, User, play, simulate, tune
from equinoise.efb.baselines import first_policy
from equinoise.efb.kernels import setup, trial as _kernels, weights as _weights
from equinoise.games import GameTree, bandit, from_nested

COMPILED = not numba.config.DISABLE_JIT
N_TREES = 200 if COMPILED else 8
WIDTHS = [(17,), (40,), (16, 17, 18), (300,), (3, 33), (257,), (2, 20, 2), (64, 1), (256, 3), (5, 31, 16)]
SEED = 20


class Learner:
    """The kernels' arrays for one tree, and the kernels by name."""

    def __init__(self, tree, exploration, policy=None, *, replicate=0):
        self.tree, self.replicate = tree, replicate
        self.key = [np.uint64(x) for x in np.random.SeedSequence(SEED).generate_state(2, np.uint64)]
        self.plan = setup.make_plan(tree, np.asarray(exploration, dtype=float))
        self.weights = setup.make_weights(tree, first_policy(tree) if policy is None else np.asarray(policy))
        self.visits = setup.make_visits(tree)

    def draw(self, trial):
        source = (*self.key, np.uint64(self.replicate))
        return _kernels.draw(self.plan, self.weights, self.visits, self.plan.actions, source, trial)

    def update(self, n, values, learning_rate):
        self.visits.value[:n] = values
        _kernels.update(self.plan, self.weights, self.visits, n, float(learning_rate))

    def visit(self, infosets, actions):
        """Write a visit list by hand, as if this strategy had been drawn with mu + gamma = 1."""
        policy, position = self.policy(), 1
        for i, (s, a) in enumerate(zip(infosets, actions, strict=True)):
            own = range(self.tree.action_ptr[s], self.tree.action_ptr[s + 1])
            self.visits.infoset[i], self.visits.action[i] = s, a
            self.visits.child[i] = position
            self.visits.picked[i] = policy[a]
            self.visits.others[i] = math.fsum(policy[b] for b in own if b != a)
            self.visits.divisor[i] = 1.0
            position += len(naive.infosets_below(self.tree, a))
        return len(actions)

    def policy(self):
        out = np.empty(self.tree.n_actions)
        _weights.policy(self.tree.action_ptr, self.weights.weight, out)
        return out


def a_tree(seed):
    """Of every ten trees one has an infoset with more than 16 actions, so that sum trees are used."""
    rng = np.random.default_rng([21, seed])
    widths = WIDTHS[seed // 10 % len(WIDTHS)] if seed % 10 == 9 else ()
    return rng, naive.random_tree(rng, widths=widths)


def bold(tree, horizon):
    """A tuning under which the policy moves far in few trials."""
    exploration = np.linspace(0.2, 0.6, tree.n_actions)
    return Tuning(0.15, exploration, math.inf, "paper", horizon, 4.0, 1.0, 1.0)


# ----------------------------------------------------------------------------------------------------------
# Exactness: DP-EFB is exponential weights over the reduced strategies
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuning", ["paper", "sharp", "bold"])
@pytest.mark.parametrize("part", range(10))
def test_the_policy_is_exponential_weights_over_strategies(tuning, part):
    """On 200 random trees, through the public protocol, 100 reports; and the simulation has the same bits."""
    for seed in range(part, N_TREES, 40 if tuning == "bold" else 10):
        rng, tree = a_tree(seed)
        environment = naive.random_environment(rng, tree)
        epsilon = [1.0, 4.0, 20.0, math.inf][seed // 10 % 4] if tuning != "bold" else 4.0
        chosen = bold(tree, 100) if tuning == "bold" else tuning
        server = Server(tree, horizon=100, epsilon=epsilon, tuning=chosen, seed=seed)
        user = User(tree, epsilon, noise="float", seed=seed)
        truth = naive.ExponentialWeights(tree, server.tuning.learning_rate, server.tuning.exploration)
        np.testing.assert_allclose(server.policy, truth.policy(), rtol=0, atol=1e-12)
        total = 0.0
        for _ in range(100):
            strategy = server.draw()
            last_action, loss = play(environment, strategy, seed=seed)
            report = user.report(strategy, last_action, loss)
            server.update(report)
            truth.update(strategy.actions, report.values)
            total += loss
        np.testing.assert_allclose(server.policy, truth.policy(), rtol=0, atol=1e-10)
        if tuning != "bold":
            run = simulate(
                tree, environment, horizon=100, epsilon=epsilon, tuning=chosen, seed=seed, n_checkpoints=1
            )
            assert run.policy[0].tolist() == server.policy.tolist()
            assert run.loss[0, -1] == pytest.approx(total, rel=1e-13)


def test_the_trees_of_that_test_are_what_they_should_be():
    trees = [a_tree(seed)[1] for seed in range(200)]
    assert sum(tree.max_actions > 16 for tree in trees) == 20
    assert sum(tree.max_actions > 256 for tree in trees) >= 4
    assert sum(naive.count_strategies(tree) > 10 for tree in trees) > 100
    assert sum(tree.depth > 2 for tree in trees) > 60
    assert any((np.diff(tree.action_ptr) == 1).any() for tree in trees)


@pytest.mark.parametrize("replicate", [0, 3])
@pytest.mark.parametrize("seed", [4, 9, 12, 25])
def test_words_come_from_their_addresses(seed, replicate):
    """A run in plain Python (listed strategies, words by address) draws, plays and learns the same."""
    rng, tree = a_tree(seed)
    environment = naive.random_environment(rng, tree)
    run = simulate(
        tree, environment, horizon=60, epsilon=4.0, seed=99, n_replicates=4, n_checkpoints=60, tuning="sharp"
    )
    truth = naive.ExponentialWeights(tree, run.tuning.learning_rate, run.tuning.exploration)
    drawn, losses = naive.run_learner(truth, lambda trial: environment, 60, 0.5, 99, replicate)
    np.testing.assert_allclose(run.policy[replicate], truth.policy(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.loss[replicate], np.cumsum(losses), rtol=1e-12, atol=1e-12)
    expected = [naive.strategy_loss(environment, set(actions)) for actions in drawn]
    best = min(naive.strategy_loss(environment, set(x)) for x in naive.strategies(tree))
    np.testing.assert_allclose(run.regret[replicate], np.cumsum(expected) - best * run.trials, atol=1e-10)


# ----------------------------------------------------------------------------------------------------------
# Draw
# ----------------------------------------------------------------------------------------------------------


def skewed_policy(rng, tree):
    """Probabilities down to 1e-40; at every other infoset one action leaves little to the rest."""
    weight = np.exp(rng.uniform(-90, 0, tree.n_actions))
    even = (tree.action_infoset % 2 == 1) & (rng.random(tree.n_actions) < 0.5)
    weight[even] = 1.0
    total = np.add.reduceat(weight, tree.action_ptr[:-1])
    return weight / total[tree.action_infoset]


@pytest.mark.parametrize("seed", [*range(20), 29, 39, 49, 59, 69, 79, 89, 99])
def test_the_visit_list(seed):
    rng, tree = a_tree(seed)
    policy, gamma = skewed_policy(rng, tree), rng.random(tree.n_actions)
    learner = Learner(tree, gamma, policy, replicate=7)
    visits = learner.visits
    for trial in range(40):
        n = learner.draw(trial)
        infosets, actions = naive.draw_strategy(tree, policy, SEED, trial, replicate=7)
        assert visits.infoset[:n].tolist() == infosets
        assert visits.action[:n].tolist() == actions
        below = [len(naive.infosets_below(tree, a)) for a in actions]
        assert visits.child[:n].tolist() == [1 + sum(below[:i]) for i in range(n)]
        reach = {0: 1.0}
        for i, (s, a) in enumerate(zip(infosets, actions, strict=True)):
            mu = reach[s] * policy[a]
            reach |= dict.fromkeys(naive.infosets_below(tree, a), mu)
            rest = math.fsum(policy[b] for b in naive.actions_of(tree, s) if b != a)
            assert visits.reach[i] == pytest.approx(reach[s], rel=1e-12, abs=0)
            assert visits.picked[i] == pytest.approx(policy[a], rel=1e-12, abs=0)
            assert visits.others[i] == pytest.approx(rest, rel=1e-12, abs=0)  # also where it is 1e-40
            assert visits.divisor[i] == pytest.approx(mu + gamma[a], rel=1e-12, abs=0)


def test_a_shared_exploration_is_used_too():
    """Infosets whose actions share one gamma, inner ones and last ones, take it like any other."""
    _, tree = a_tree(3)
    for gamma in (np.full(tree.n_actions, 0.25), np.zeros(tree.n_actions)):
        learner = Learner(tree, gamma)
        policy = learner.policy()
        for trial in range(20):
            n = learner.draw(trial)
            for i in range(n):
                mu = learner.visits.reach[i] * policy[learner.visits.action[i]]
                assert learner.visits.divisor[i] == pytest.approx(mu + gamma[0], rel=1e-12, abs=0)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 15, 16, 17, 32, 33, 255, 256, 257, 300, 4097])
def test_draws_of_one_infoset_follow_the_policy(width):
    """Chi-square over 20,000 trials at p > 1e-6; actions of small probability are put together."""
    rng = np.random.default_rng(width)
    tree, _ = bandit(width)
    policy = rng.random(width) ** 4 + 1e-9
    policy /= policy.sum()
    server = Server(tree, horizon=10**6, epsilon=1.0, seed=width)
    server._weights = setup.make_weights(tree, policy)
    n = 20_000 if COMPILED else 2000
    counts = np.zeros(width)
    for _ in range(n):
        counts[server.draw().actions[0]] += 1
        server.skip()
    order = np.argsort(policy)
    common = np.cumsum(policy[order]) * n > 10
    expected = np.append(policy[order][common], policy[order][~common].sum()) * n
    observed = np.append(counts[order][common], counts[order][~common].sum())
    if width > 1:
        kept = expected > 0
        assert stats.chisquare(observed[kept], expected[kept] * n / expected.sum()).pvalue > 1e-6
    else:
        assert counts.tolist() == [n]


@pytest.mark.parametrize("width", [4097, 70_000] if COMPILED else [4097])
def test_infosets_so_wide_that_sums_have_three_and_four_levels(width):
    """Draws word by word and policies by a plain softmax, while a few actions come to dominate."""
    tree, _ = bandit(width)
    tuning = Tuning(2.0, np.full(width, 0.5), math.inf, "paper", 10**6, 1.0, 1.0, 1.0)
    server = Server(tree, horizon=10**6, epsilon=1.0, tuning=tuning, seed=width)
    rng, logs, drawn = np.random.default_rng(width), np.zeros(width), []
    for trial in range(60 if COMPILED else 20):
        policy = np.exp(logs - logs.max())
        policy /= policy.sum()
        (a,) = server.draw().actions
        assert [a] == naive.draw_strategy(tree, policy, width, trial)[1]
        value = float(rng.normal()) - (4.0 if trial > 30 else 0.0)
        server.update(Report(trial, np.array([value])))
        logs[a] -= 2.0 * value / (policy[a] + 0.5)
        drawn.append(a)
    policy = np.exp(logs - logs.max())
    np.testing.assert_allclose(server.policy, policy / policy.sum(), rtol=1e-9, atol=1e-300)
    if COMPILED:
        assert 10 < len(set(drawn)) < 50  # it began to come back to a few


def test_strategies_follow_the_policy_after_learning():
    """Chi-square over whole reduced strategies, of probabilities by enumeration."""
    tree, environment = from_nested([[0.2, [[0.1], [0.9]], [[0.5], [0.7], [0.3]]], [0.4], [[[0.6], [0.0]]]])
    server = Server(tree, horizon=10**6, epsilon=4.0, tuning=bold(tree, 10**6), seed=31)
    user = User(tree, 4.0, noise="float", seed=31)
    truth = naive.ExponentialWeights(tree, 0.15, server.tuning.exploration)
    for _ in range(50):
        strategy = server.draw()
        report = user.report(strategy, *play(environment, strategy, seed=31))
        server.update(report)
        truth.update(strategy.actions, report.values)
    weight = np.exp(truth.log_weight - truth.log_weight.max())
    index = {x: i for i, x in enumerate(truth.strategies)}
    n = 20_000 if COMPILED else 2000
    counts = np.zeros(len(index))
    for _ in range(n):
        counts[index[tuple(sorted(server.draw().actions.tolist()))]] += 1
        server.skip()
    assert len(index) == 9
    assert stats.chisquare(counts, weight / weight.sum() * n).pvalue > 1e-6
    assert stats.chisquare(counts).pvalue < 1e-6  # and it did learn


# ----------------------------------------------------------------------------------------------------------
# Play and noise
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_play_is_the_environment(seed):
    rng, tree = a_tree(seed)
    environment = naive.random_environment(rng, tree)
    server = Server(tree, horizon=1000, epsilon=1.0, seed=seed)
    for trial in range(40):
        strategy = server.draw()
        answer = play(environment, strategy, seed=5)
        assert answer == naive.play_strategy(environment, strategy.actions.tolist(), 5, trial)
        server.skip()


def test_play_follows_its_law():
    """Frequencies of (last action, loss) over 10,000 trials, chi-square at p > 1e-6; and the mean loss."""
    rng = np.random.default_rng(8)
    tree, _ = from_nested([[0.1, 0.2, [[0.3, 0.4, 0.4], [0.9]], [[0.5, [[0.6]]]]]])
    environment = naive.random_environment(rng, tree)
    strategy = Server(tree, horizon=10, epsilon=1.0, seed=3).draw()
    picked = set(strategy.actions.tolist())
    law = {}

    def walk(s, probability):
        (a,) = picked & set(naive.actions_of(tree, s))
        for leaf in naive.leaves_below(tree, a):
            place = a, environment.leaf_loss[leaf]
            law[place] = law.get(place, 0.0) + probability * environment.leaf_prob[leaf]
        for child in naive.infosets_below(tree, a):
            walk(child, probability * environment.infoset_prob[child])

    walk(0, 1.0)
    n, counts = (10_000 if COMPILED else 1000), dict.fromkeys(law, 0)
    for trial in range(n):
        counts[play(environment, type(strategy)(trial, strategy.infosets, strategy.actions), seed=1)] += 1
    kept = [place for place in law if law[place] > 0]
    assert sum(counts[place] for place in law if place not in kept) == 0
    observed, expected = [counts[k] for k in kept], np.array([law[k] for k in kept])
    assert stats.chisquare(observed, expected / expected.sum() * n).pvalue > 1e-6
    mean = sum(loss * p for (_, loss), p in law.items())
    assert mean == pytest.approx(naive.strategy_loss(environment, picked), abs=1e-12)
    assert mean == pytest.approx(sum(environment.action_loss[a] for a in picked), abs=1e-12)


def test_noise_comes_from_its_address():
    value, word = np.empty(9), np.empty(9, dtype=np.uint64)
    key = [np.uint64(x) for x in np.random.SeedSequence(SEED).generate_state(2, np.uint64)]
    _kernels.add_noise(value, word, 9, 2.5, (*key, np.uint64(3)), 12)
    np.testing.assert_allclose(value, naive.noise(9, 2.5, SEED, 12, 3), rtol=1e-14)
    _kernels.add_noise(value, word, 9, 0.0, (*key, np.uint64(3)), 12)
    assert value.tolist() == [0.0] * 9


# ----------------------------------------------------------------------------------------------------------
# Weights: extremes
# ----------------------------------------------------------------------------------------------------------


def softmax(logs):
    """Exact to the last digits, whatever the size of the logarithms."""
    with mpmath.workdps(50):
        weights = [mpmath.exp(mpmath.mpf(x)) for x in logs]
        total = mpmath.fsum(weights)
        return [w / total for w in weights]


def assert_policy(policy, logs):
    exact = softmax(logs)
    assert np.isfinite(policy).all() and (policy >= 0).all()
    np.testing.assert_allclose(policy, [float(p) for p in exact], rtol=1e-9, atol=1e-305)


@pytest.mark.parametrize("width", [2, 3, 4, 5, 16, 17, 300])
@pytest.mark.parametrize("step", [7.0, 37.0, 79.0])
@pytest.mark.parametrize("which", [0, -1])
def test_an_action_sinks_to_1e_400_and_comes_back(width, step, which):
    """One action's weight goes to e^-1000 of the others' in steps, and returns to exactly where it was."""
    learner = Learner(bandit(width)[0], np.zeros(width), np.full(width, 1.0 / width))
    a, logs = range(width)[which], [0.0] * width
    steps = math.ceil(1000 / step)
    for sign in (1, -1):
        for _ in range(steps):
            learner.update(learner.visit([0], [a]), [sign * step], 1.0)
            logs[a] -= sign * step
            if width < 50 or logs[a] in (-step, -steps * step):
                assert_policy(learner.policy(), logs)
        assert logs[a] <= -1000 if sign == 1 else logs[a] == 0
    np.testing.assert_allclose(learner.policy(), np.full(width, 1 / width), rtol=1e-9)
    for _ in range(steps):  # and beyond: it is all that is left
        learner.update(learner.visit([0], [a]), [-step], 1.0)
        logs[a] += step
    assert_policy(learner.policy(), logs)


@pytest.mark.parametrize("width", [2, 5, 17, 300])
def test_an_action_rises_by_1e400_and_comes_back_through_the_server(width):
    """The same by reports alone: what is drawn is all that a server can move."""
    tree, _ = bandit(width)
    tuning = Tuning(1.0, np.ones(width), math.inf, "paper", 10**6, 1.0, 1.0, 1.0)
    server = Server(tree, horizon=10**6, epsilon=1.0, tuning=tuning, seed=1)
    truth = naive.ExponentialWeights(tree, 1.0, np.ones(width))

    def answer(step):
        (a,) = server.draw().actions
        value = -step * (server.policy[a] + 1.0)
        truth.update([a], [value])
        server.update(Report(server.trial, np.array([value])))
        assert_policy(server.policy, truth.log_weight)
        return a

    first = answer(60.0)
    while truth.log_weight[first] < 1000:
        assert answer(50.0) == first
    assert server.policy.max() == 1.0 and 0 <= server.policy.min() < 1e-300
    while truth.log_weight[first] > 60:
        assert answer(-50.0) == first
    for _ in range(60):
        answer(-3.0)
    assert len(set(np.argsort(server.policy)[-2:])) == 2 and server.policy.max() < 1.0


@pytest.mark.parametrize("width", [2, 3, 16, 17, 40, 300])
def test_weights_that_wander(width):
    """3,000 random reports, some of them huge, on random actions: exact all the way, and never a NaN."""
    rng = np.random.default_rng(width)
    learner = Learner(bandit(width)[0], np.zeros(width), np.full(width, 1.0 / width))
    logs = np.zeros(width)
    for t in range(3000):
        a = int(rng.integers(width)) if t % 3 else int(rng.integers(min(width, 4)))
        step = float(rng.normal() * rng.choice([0.1, 3.0, 30.0]))
        step = min(max(step, -78.0), 78.0)
        if np.ptp(np.where(np.arange(width) == a, logs - step, logs)) > 1100:
            step = -step  # stay where nothing is lost: within 1e-517 of the largest
        learner.update(learner.visit([0], [a]), [step], 1.0)
        logs[a] -= step
        if t % 50 == 0 or t > 2980:
            assert_policy(learner.policy(), logs)


@pytest.mark.parametrize("width", [2, 3, 17])
def test_large_steps_between_weights_of_any_size(width):
    """Two steps of e^-460 are e^-920 (1e-400), wherever the weights stood before."""
    learner = Learner(bandit(width)[0], np.zeros(width), np.full(width, 1.0 / width))
    logs = [0.0] * width
    for a, step in [(0, 460.0), (1, 300.0), (0, 460.0), (1, 300.0), (0, 230.0), *[(0, -70.0)] * 16]:
        learner.update(learner.visit([0], [a]), [step], 1.0)
        logs[a] -= step
        assert_policy(learner.policy(), logs)


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, -1e-300, 1.7e308, -1.7e308, 0.0, -0.0])
@pytest.mark.parametrize("seed", [0, 9, 29])
def test_no_report_makes_a_nan(seed, value):
    """Whatever finite numbers people send, again and again, the policy stays one and draws go on."""
    _, tree = a_tree(seed)
    for epsilon in (1e-6, 1.0, math.inf):
        server = Server(tree, horizon=10**6, epsilon=epsilon, seed=seed)
        for trial in range(60):
            n = len(server.draw().actions)
            values = np.full(n, value if trial % 3 else -value)
            server.update(Report(trial, values))
        total = np.add.reduceat(server.policy, tree.action_ptr[:-1])
        assert np.isfinite(server.policy).all() and (server.policy >= 0).all()
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_reports_of_huge_numbers_of_both_signs(seed):
    """Factors that overflow beside factors that underflow, below one action and along a path."""
    rng = np.random.default_rng(seed)
    single, pair = [[0.5]], [[0.25], [0.75]]  # infosets with one action and with two
    below = [single, [[single, 0.5]], pair, [[pair], [single]]]
    tree, _ = from_nested([[below[i % 4] for i in range(16)], [0.5, pair]])
    server = Server(tree, horizon=1000, epsilon=1.0, seed=seed)
    for trial in range(60):
        n = len(server.draw().actions)
        server.update(Report(trial, rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-3, 308, n)))
        total = np.add.reduceat(server.policy, tree.action_ptr[:-1])
        assert np.isfinite(server.policy).all() and (server.policy >= 0).all()
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def test_strategies_beyond_the_range_of_a_float():
    """One action against another with 2^1500 strategies below it: it is not drawn, the rest is exact.

    Below the other action 1,500 infosets come about by chance, so weights over strategies are products and
    every infoset has its own softmax.
    """
    n = 1500 if COMPILED else 1100
    tree = GameTree(
        np.concatenate([[0], np.arange(2, 2 * n + 3, 2)]),
        np.concatenate([[1, 1], np.full(2 * n + 1, n + 1)]),
        np.concatenate([[0, 1, 1], np.arange(2, 2 * n + 2)]),
    )
    assert tree.log_n_strategies == pytest.approx(n * math.log(2))
    for tuning in ("paper", "sharp"):
        server = Server(tree, horizon=50, epsilon=8.0, tuning=tuning, seed=4)
        user, eta = User(tree, 8.0, noise="float", seed=4), server.tuning.learning_rate
        assert server.policy[:2].tolist() == [0.0, 1.0]
        logs = np.zeros(tree.n_actions)
        for _ in range(50 if COMPILED else 5):
            strategy = server.draw()
            assert strategy.actions[0] == 1
            below = strategy.actions[1:]
            report = user.report(strategy, int(below[7]), 1.0)
            pair = 2 + (below - 2) // 2 * 2
            mu = 1 / (1 + np.exp(logs[pair + 1 - (below - pair)] - logs[below]))
            logs[below] -= eta * report.values[1:] / (mu + server.tuning.exploration[below])
            server.update(report)
            assert np.isfinite(server.policy).all() and server.policy[0] <= 1e-300
        exact = 1 / (1 + np.exp(logs[3::2] - logs[2::2]))
        np.testing.assert_allclose(server.policy[2::2], exact, rtol=0, atol=1e-12)
        assert np.ptp(exact) > 1e-4


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 700.0, 1e6, math.inf])
@pytest.mark.parametrize("tuning", ["paper", "sharp"])
def test_extreme_epsilons(epsilon, tuning):
    for seed in (0, 9, 29):
        rng, tree = a_tree(seed)
        environment = naive.random_environment(rng, tree)
        for horizon in (1, 300):
            run = simulate(tree, environment, horizon=horizon, epsilon=epsilon, tuning=tuning, n_replicates=3)
            total = np.add.reduceat(run.policy, tree.action_ptr[:-1], axis=1)
            np.testing.assert_allclose(total, 1.0, rtol=1e-12)
            for values in (run.regret, run.loss, run.policy):
                assert np.isfinite(values).all()


def test_deep_trees_update_exactly():
    """A chain of 3,000 infosets with two actions each, of which the first ends it: ln-weights by hand."""
    depth = 3000 if COMPILED else 200
    steps = np.arange(depth)
    infoset_ptr = np.concatenate([[1], np.stack([steps + 1, np.minimum(steps + 2, depth)], 1).ravel()])
    leaves = np.tile([1, 0], depth)
    leaves[-1] = 1
    tree = GameTree(2 * np.arange(depth + 1), infoset_ptr, np.concatenate([[0], leaves.cumsum()]))
    tuning = tune(tree, 1000, 4.0)
    server = Server(tree, horizon=1000, epsilon=4.0, seed=2)
    user = User(tree, 4.0, noise="float", seed=2)
    # strategy k stops at infoset k; the last action of the chain goes on to the end: depth + 1 strategies
    log_weight = np.zeros(depth + 1)
    for _ in range(100):
        strategy = server.draw()
        actions = strategy.actions
        report = user.report(strategy, int(actions[-1]), 0.5)
        probability = np.exp(log_weight - log_weight.max())
        probability /= probability.sum()
        tail = np.cumsum(probability[::-1])[::-1]  # mu of going on at infoset k - 1
        mu = np.where(actions % 2 == 0, probability[actions // 2], tail[np.minimum(actions // 2 + 1, depth)])
        step = tuning.learning_rate * report.values / (mu + tuning.exploration[actions])
        for action, moved in zip(actions.tolist(), step.tolist(), strict=True):
            if action % 2 == 0:
                log_weight[action // 2] -= moved
            else:
                log_weight[action // 2 + 1 :] -= moved
        server.update(report)
    probability = np.exp(log_weight - log_weight.max())
    tail = np.cumsum(probability[::-1])[::-1]
    np.testing.assert_allclose(server.policy[::2], probability[:-1] / tail[:-1], rtol=0, atol=1e-9)
