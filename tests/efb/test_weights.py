"""Weights at their extremes: 1e-400 of each other and back, huge reports, deep trees, any epsilon."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import pytest
from tests import naive
from tests.efb.learner import Learner, a_tree

from equinoise.efb import Report, Server, Tuning, User, simulate, tune
from equinoise.efb.kernels import learner as _kernels
from equinoise.games import GameTree, bandit, from_nested

COMPILED = not numba.config.DISABLE_JIT


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
    tuning = Tuning(1.0, np.ones(width), math.inf, "paper", 10**6, 0.1, 1.0, 1.0)  # noise as large as steps
    server = Server(tree, horizon=10**6, epsilon=0.1, tuning=tuning, mechanism="laplace", seed=1)
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


def force(server, values, *, refused):
    """Learn from a report, if need be without the server's check, which must refuse what it should."""
    report, policy = Report(server.trial, values), server.policy.tobytes()
    if not refused:
        server.update(report)
        return
    with pytest.raises(ValueError, match="report must lie within the noise"):
        server.update(report)
    assert server.trial == report.trial and server.policy.tobytes() == policy
    n = len(server.draw().actions)
    server._seat.visits.value[:n] = values
    _kernels.update(server._seat, None, server._seat.scale, n, 0)
    server.skip()


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, -1e-300, 1.7e308, -1.7e308, 0.0, -0.0])
@pytest.mark.parametrize("seed", [0, 9, 29])
def test_no_report_makes_a_nan(seed, value):
    """Whatever finite numbers come, again and again, the policy stays one and draws go on.

    The kernel takes them all; the server refuses those that no user sends.
    """
    _, tree = a_tree(seed)
    for epsilon in (1e-6, 1.0, math.inf):
        server = Server(tree, horizon=10**6, epsilon=epsilon, mechanism="laplace", seed=seed)
        for trial in range(60):
            n = len(server.draw().actions)
            values = np.full(n, value if trial % 3 else -value)
            force(server, values, refused=not -80 / epsilon <= values[0] <= 1 + 80 / epsilon)
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
    server = Server(tree, horizon=1000, epsilon=1.0, mechanism="laplace", seed=seed)
    for _ in range(60):
        n = len(server.draw().actions)
        values = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-3, 308, n)
        force(server, values, refused=values.min() < -80 or values.max() > 81)
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
        server = Server(tree, horizon=50, epsilon=8.0, tuning=tuning, mechanism="laplace", seed=4)
        user = User(tree, 8.0, mechanism="laplace", noise="float", seed=4)
        eta = server.tuning.learning_rate
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
@pytest.mark.parametrize(
    ("tuning", "mechanism"), [("paper", "laplace"), ("sharp", "laplace"), ("sharp", "hashing")]
)
def test_extreme_epsilons(epsilon, tuning, mechanism):
    for seed in (0, 9, 29):
        rng, tree = a_tree(seed)
        environment = naive.random_environment(rng, tree)
        for horizon in (1, 300 if COMPILED else 30):
            run = simulate(
                tree, environment, horizon=horizon, epsilon=epsilon, tuning=tuning, mechanism=mechanism,
                n_replicates=3,
            )  # fmt: skip
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
    tuning = tune(tree, 1000, 4.0, mechanism="laplace")
    server = Server(tree, horizon=1000, epsilon=4.0, mechanism="laplace", seed=2)
    user = User(tree, 4.0, mechanism="laplace", noise="float", seed=2)
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
