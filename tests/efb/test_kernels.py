"""Draw, play, noise and update, against plain Python that lists strategies and reads words by address."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive
from tests.efb.learner import SEED, Learner, a_tree

from equinoise.efb import Report, Server, Tuning, User, play, simulate
from equinoise.efb.kernels import learner as _kernels, setup
from equinoise.games import bandit, from_nested, load

COMPILED = not numba.config.DISABLE_JIT
N_TREES = 200 if COMPILED else 8


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
    """On 200 random trees, half of them for each rule, 100 reports; and the simulation has the same bits."""
    for seed in range(part + 10 * (COMPILED and tuning == "paper"), N_TREES, 40 if tuning == "bold" else 20):
        rng, tree = a_tree(seed)
        environment = naive.random_environment(rng, tree)
        epsilon = [1.0, 4.0, 20.0, math.inf][seed // 10 % 4] if tuning != "bold" else 4.0
        chosen = bold(tree, 100) if tuning == "bold" else tuning
        server = Server(tree, horizon=100, epsilon=epsilon, tuning=chosen, mechanism="laplace", seed=seed)
        user = User(tree, epsilon, mechanism="laplace", noise="float", seed=seed)
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
                tree, environment, horizon=100, epsilon=epsilon, tuning=chosen, mechanism="laplace",
                seed=seed, n_checkpoints=1,
            )  # fmt: skip
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
        tree, environment, horizon=60, epsilon=4.0, seed=99, n_replicates=4, n_checkpoints=60, tuning="sharp",
        mechanism="laplace",
    )  # fmt: skip
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


@pytest.mark.compiled
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 15, 16, 17, 32, 33, 255, 256, 257, 300, 4097])
@pytest.mark.parametrize("mechanism", ["hashing", "laplace"])
def test_draws_of_one_infoset_follow_the_policy(width, mechanism):
    """Chi-square over 3,000 trials at p > 1e-6; actions of small probability are put together.

    With symbols strategies come from the exploration rho nu too, which is uniform here.
    """
    rng = np.random.default_rng(width)
    tree, _ = bandit(width)
    policy = rng.random(width) ** 4 + 1e-9
    policy /= policy.sum()
    server = Server(tree, horizon=10**6, epsilon=1.0, mechanism=mechanism, seed=width)
    server._seat = server._seat._replace(weights=setup.make_weights(tree, policy))
    policy = (1 - server.tuning.explore) * policy + server.tuning.explore / width
    n = 3_000
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
    server = Server(tree, horizon=10**6, epsilon=1.0, tuning=tuning, mechanism="laplace", seed=width)
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
    server = Server(tree, horizon=10**6, epsilon=4.0, tuning=bold(tree, 10**6), mechanism="laplace", seed=31)
    user = User(tree, 4.0, mechanism="laplace", noise="float", seed=31)
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
@pytest.mark.parametrize("mechanism", ["hashing", "laplace"])
def test_play_is_the_environment(seed, mechanism):
    rng, tree = a_tree(seed)
    environment = naive.random_environment(rng, tree)
    server = Server(tree, horizon=1000, epsilon=1.0, mechanism=mechanism, seed=seed)
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


@pytest.mark.parametrize("seed", range(20))
def test_chance_knows_the_losses_of_every_leaf(seed):
    """What is kept of an action is the mean of its leaves, and the loss itself where one leaf is sure."""
    rng, tree = a_tree(seed)
    environment = naive.random_environment(rng, tree)
    if seed == 0:
        tree, environment = load("complete(3,2,3)")  # where all leaves are sure
    chance = setup.make_chance(environment)
    prob, loss, (infoset_cum, leaf_cum) = environment.leaf_prob, environment.leaf_loss, environment.cumulative
    alone = np.zeros(tree.n_actions, dtype=bool)
    for a in range(tree.n_actions):
        leaves = range(tree.leaf_ptr[a], tree.leaf_ptr[a + 1])
        total = 0.0
        for leaf in leaves:
            total += prob[leaf] * loss[leaf]
        alone[a] = [prob[leaf] for leaf in leaves] == [1.0]
        assert abs(chance.mean_loss[a]) == total
        children = range(tree.infoset_ptr[a], tree.infoset_ptr[a + 1])
        below = infoset_cum[children[-1]] if children else 0.0
        for u in below + (1.0 - below) * rng.random(5):
            if leaves and u < leaf_cum[leaves[-1]]:
                drawn = next(leaf for leaf in leaves if u < leaf_cum[leaf])
                assert _kernels.leaf_loss(chance, a, u) == loss[drawn]
    assert (np.signbit(chance.mean_loss) != alone).all()
    ahead = chance.mean_loss if (alone == (np.diff(tree.leaf_ptr) > 0)).all() else chance.leaf_ptr
    assert np.shares_memory(chance.ahead, ahead)
