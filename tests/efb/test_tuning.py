"""Learning rate, exploration and bound, against their definitions by recursion and enumeration."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests import naive

from equinoise.efb import Server, Tuning, simulate, tune
from equinoise.games import GameTree, bandit, complete, from_nested, load

RULES = ("paper", "sharp")
WAYS = [("paper", "laplace"), ("sharp", "laplace"), ("sharp", "hashing")]
SEEDS = range(30)


def make_tree(seed):
    rng = np.random.default_rng([11, seed])
    widths = [(), (), (17,), (2, 40), (300,)][seed % 5]
    return naive.random_tree(rng, widths=widths, max_infosets=12)


def tuned(tree, horizon, epsilon, rule):
    """(eta, gamma, bound) of Laplace noise by the definitions, without noise too."""
    if rule == "paper":
        return naive.tuning_paper(tree, horizon, epsilon)
    if math.isfinite(epsilon):
        return naive.tuning_sharp(tree, horizon, epsilon)
    n, ln_s = tree.n_actions, math.log(naive.count_strategies(tree))
    if ln_s == 0:
        return 0.0, np.zeros(n), 0.0
    most = naive.most_last(tree, [1.0] * n)
    eta = math.sqrt(2 * ln_s / (most * horizon))
    exploration = eta / 2  # implicit, of every action; the bound counts it once a trial and last action
    return eta, np.full(n, exploration), ln_s / eta + horizon * most * (eta / 2 + exploration)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_definitions(seed):
    tree = make_tree(seed)
    rng = np.random.default_rng([12, seed])
    horizon = int(rng.choice([1, 7, 1000, 10**6, 10**9]))
    for epsilon in (1e-6, 1e-3, 0.5, 1.0, 1.9, 2.1, 4.0, 700.0, 1e6, math.inf):
        for rule in RULES:
            ours = tune(tree, horizon, epsilon, rule, "laplace")
            eta, gamma, bound = tuned(tree, horizon, epsilon, rule)
            assert ours.learning_rate == pytest.approx(eta, rel=1e-9, abs=0)
            np.testing.assert_allclose(ours.exploration, gamma, rtol=1e-7, atol=0)
            assert ours.regret_bound == pytest.approx(min(bound, horizon), rel=1e-9, abs=0)
            assert unbounded(ours) == pytest.approx(bound, rel=1e-9, abs=0)
            assert (ours.rule, ours.horizon, ours.epsilon) == (rule, horizon, epsilon)
            assert (ours.mechanism, ours.symbols, ours.code, ours.radius) == ("laplace", 0, None, None)


def unbounded(ours):
    """The proven bound at the horizon as if regret could exceed 1 per trial."""
    start = ours.start_cost / ours.learning_rate if ours.learning_rate else 0.0
    return start + ours.slope * ours.horizon + ours.offset


@pytest.mark.parametrize("seed", SEEDS)
def test_without_noise_the_mechanism_does_not_matter(seed):
    tree = make_tree(seed)
    one, two = (tune(tree, 1000, math.inf, "sharp", mechanism) for mechanism in ("hashing", "laplace"))
    for name in ("learning_rate", "regret_bound", "slope", "mechanism", "symbols", "rule"):
        assert getattr(one, name) == getattr(two, name)
    assert np.array_equal(one.exploration, two.exploration)


@pytest.mark.parametrize("seed", range(12))
def test_the_most_actions_that_are_last_together_by_listing_environments(seed):
    """What the definition counts: the best of all deterministic environments, on small trees."""
    rng = np.random.default_rng([13, seed])
    tree = naive.random_tree(rng, max_infosets=4, max_actions=3)
    for cost in (np.ones(tree.n_actions), rng.random(tree.n_actions)):
        most = max(sum(cost[a] for a in last) for last in naive.last_together(tree))
        assert naive.most_last(tree, cost) == pytest.approx(most, rel=1e-12)


def test_the_most_actions_that_are_last_together_in_poker():
    for game, most in (("kuhn_poker", 3), ("leduc_poker", 17), ("bandit(20)", 20)):
        tree, _ = load(game)
        ours = tune(tree, 10**6, math.inf)
        assert ours.slope / ours.learning_rate == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_policy_counts_strategies(seed):
    tree = make_tree(seed)
    below = [
        math.prod(naive.count_strategies(tree, s) for s in naive.infosets_below(tree, a))
        for a in range(tree.n_actions)
    ]
    exact = [
        Fraction(below[a], naive.count_strategies(tree, int(tree.action_infoset[a])))
        for a in range(len(below))
    ]
    policy = Server(tree, horizon=10, epsilon=1.0, seed=0).policy
    np.testing.assert_allclose(policy, [float(x) for x in exact], rtol=1e-13, atol=0)


@pytest.mark.parametrize("seed", SEEDS[::3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 50.0])
def test_what_the_sharp_proof_needs(seed, epsilon):
    """Over the actions of every strategy, (eta b / gamma)^2 adds up to at most theta^2 < 1, met by one."""
    tree = make_tree(seed)
    if naive.count_strategies(tree) == 1:
        return
    ours = tune(tree, 1000, epsilon, "sharp", "laplace")
    v = ours.learning_rate * 2 / epsilon / ours.exploration
    theta_squared = max(sum(v[list(x)] ** 2) for x in naive.strategies(tree))
    assert 0 < theta_squared < 1
    constant = ours.slope / ours.learning_rate / tree.n_actions
    theta, root_q = math.sqrt(theta_squared), naive.root_of_q(tree)
    assert constant == pytest.approx(naive.sharp_constant(root_q, tree.n_actions, epsilon, theta), rel=1e-9)
    others = naive.sharp_constant(root_q, tree.n_actions, epsilon, np.linspace(0.001, 0.999, 500))
    assert constant <= others.min() * (1 + 1e-12)  # theta is the best one


@pytest.mark.parametrize("seed", SEEDS[::3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, math.inf])
def test_what_the_papers_proof_needs(seed, epsilon):
    """With every |y| at most beta, eta |lhat| adds up to at most one over the actions of any strategy."""
    tree = make_tree(seed)
    ours = tune(tree, 1000, epsilon, "paper", "laplace")
    if naive.count_strategies(tree) == 1:
        return
    beta = 1 + 2 / epsilon * math.log(tree.n_actions * 1000.0**2)
    steps = ours.learning_rate * beta / ours.exploration
    assert max(sum(steps[list(x)]) for x in naive.strategies(tree)) <= 1 + 1e-12


@pytest.mark.parametrize(("rule", "mechanism"), WAYS)
def test_exploration_splits(rule, mechanism):
    """The exploration of an infoset is that of the action above, or gamma_0 at the root, with symbols rho."""
    tree = make_tree(1)
    ours = tune(tree, 10**4, 1.0, rule, mechanism)
    total = np.add.reduceat(ours.exploration, tree.action_ptr[:-1])
    np.testing.assert_allclose(total[1:], ours.exploration[tree.infoset_action[1:]], rtol=1e-12)
    if mechanism == "hashing":
        assert total[0] == pytest.approx(ours.explore, rel=1e-12) and 0 < ours.explore <= 0.5
    else:
        assert ours.explore == 0.0
    assert (ours.exploration > 0).all()


@pytest.mark.parametrize(
    ("epsilon", "rule", "bound"),
    [(1.0, "paper", 109.8e3), (4.0, "paper", 54.9e3), (1.0, "sharp", 35.7e3)],
)
def test_reference_figures_on_kuhn(epsilon, rule, bound):
    tree, _ = load("kuhn_poker")
    assert (tree.n_actions, round(math.exp(tree.log_n_strategies))) == (13, 27)
    ours = tune(tree, 10**6, epsilon, rule, "laplace")
    assert ours.regret_bound == pytest.approx(bound, rel=1e-3)


def test_the_sharp_constant_on_kuhn():
    tree, _ = load("kuhn_poker")
    ours = tune(tree, 10**6, 1.0, "sharp", "laplace"), tune(tree, 10**6, 1.0, "paper", "laplace")
    constants = [t.slope / t.learning_rate / 13 for t in ours]
    assert constants == [pytest.approx(7.5, abs=0.1), pytest.approx(70, abs=1)]


@settings(max_examples=60)
@given(st.integers(0, 30), st.integers(1, 10**9), st.floats(1e-6, 1e6), st.sampled_from(WAYS))
def test_the_bound_over_time(seed, horizon, epsilon, way):
    ours = tune(make_tree(seed), horizon, epsilon, *way)
    times = np.unique(np.linspace(0, horizon, 20).astype(np.int64))
    bounds = ours.bound(times)
    assert bounds[0] == 0.0
    assert (np.diff(bounds) >= 0).all() and (bounds <= times).all()
    assert ours.regret_bound <= horizon  # nobody loses more than 1 per trial
    assert ours.bound(horizon) == pytest.approx(ours.regret_bound, rel=1e-9)
    assert np.isfinite([ours.learning_rate, ours.regret_bound]).all()
    assert np.isfinite(ours.exploration).all() and (ours.exploration >= 0).all()


@settings(max_examples=40)
@given(st.integers(0, 30), st.floats(1e-5, 1e5), st.sampled_from(WAYS))
def test_more_privacy_costs_more(seed, epsilon, way):
    """By the bounds, which are long enough that none is cut at 1 per trial; symbols stop at epsilon 40."""
    tree = make_tree(seed)
    if naive.count_strategies(tree) > 1:
        horizon = 10**15
        loose, tight = tune(tree, horizon, epsilon * 2, *way), tune(tree, horizon, epsilon, *way)
        assert loose.learning_rate > tight.learning_rate or (way[1] == "hashing" and epsilon > 10)
        assert loose.learning_rate >= tight.learning_rate
        if tight.regret_bound < horizon:
            assert loose.regret_bound < tight.regret_bound or (way[1] == "hashing" and epsilon > 10)
            assert loose.regret_bound <= tight.regret_bound
            if way[0] == "paper":  # "sharp" keeps exploring without noise, which it need not
                assert tune(tree, horizon, math.inf, *way).regret_bound < loose.regret_bound
        assert loose.regret_bound < horizon


@pytest.mark.parametrize(("rule", "mechanism"), WAYS)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_one_strategy_has_nothing_to_learn(rule, mechanism, epsilon):
    tree, _ = from_nested([[0.3, [[0.5, [[1.0]]]]]])
    ours = tune(tree, 100, epsilon, rule, mechanism)
    assert ours.learning_rate == 0.0
    assert ours.regret_bound == (1.0 if rule == "paper" else 0.0)
    assert np.isfinite(ours.bound([0, 1, 100])).all()


@pytest.mark.compiled
@pytest.mark.parametrize(("rule", "mechanism"), WAYS)
def test_deep_and_wide_trees(rule, mechanism):
    """A chain of 100,000 infosets, and one infoset of a million actions: no recursion, nothing overflows."""
    depth = 100_000
    steps = np.arange(depth)
    infoset_ptr = np.concatenate([[1], np.stack([np.ones(depth), np.minimum(steps + 2, depth)], 1).ravel()])
    infoset_ptr[1::2], infoset_ptr[2::2] = steps + 1, np.minimum(steps + 2, depth)
    leaves = np.tile([1, 0], depth)
    leaves[-1] = 1
    chain = GameTree(
        2 * np.arange(depth + 1), infoset_ptr.astype(np.int64), np.concatenate([[0], leaves.cumsum()])
    )
    assert chain.depth == depth
    for tree in (chain, bandit(1_000_000)[0], complete(2, 2, 8)[0]):
        ours = tune(tree, 10**6, 1.0, rule, mechanism)
        assert 0 < ours.learning_rate < 1 and 0 < ours.regret_bound < math.inf
        assert (ours.exploration > 0).all() and np.isfinite(ours.exploration).all()


def test_a_tuning_cannot_be_changed():
    ours = tune(make_tree(0), 10, 1.0)
    assert isinstance(ours, Tuning) and (ours.rule, ours.mechanism) == ("sharp", "hashing")
    with pytest.raises(dataclasses.FrozenInstanceError):
        ours.learning_rate = 2.0
    for array in (ours.exploration, ours.radius):
        with pytest.raises(ValueError):
            array[0] = 1.0


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_the_published_rule_is_for_the_published_mechanism(epsilon):
    tree, environment = load("kuhn_poker")
    for call in (
        lambda: tune(tree, 10, epsilon, "paper"),
        lambda: Server(tree, horizon=10, epsilon=epsilon, tuning="paper"),
        lambda: simulate(tree, environment, horizon=10, epsilon=epsilon, tuning="paper"),
    ):
        with pytest.raises(ValueError, match=r"mechanism must be 'laplace' with tuning 'paper'"):
            call()


@pytest.mark.compiled
@pytest.mark.parametrize("mechanism", ["hashing", "laplace"])
def test_nothing_is_proven_of_changed_parameters(mechanism):
    """A tuning that no rule gave keeps no bound of a rule: neither with another rate nor exploration."""
    tree, environment = load("kuhn_poker")
    made = tune(tree, 1000, 4.0, "sharp", mechanism)
    game = {"horizon": 1000, "epsilon": 4.0, "mechanism": mechanism}
    same = simulate(tree, environment, **game, tuning=dataclasses.replace(made))
    assert same.regret_bound == made.regret_bound < 1000 and same.tuning.rule == "sharp"
    changed = [
        {"learning_rate": 1000 * made.learning_rate},
        {"exploration": made.exploration / 1000, "explore": made.explore / 1000},
        {"regret_bound": 0.0, "slope": 0.0, "learning_rate": made.learning_rate / 2},
    ]
    if mechanism == "hashing":
        changed += [{"symbols": made.symbols * 2}]
        with pytest.raises(ValueError, match="losses as far from 1/2"):
            simulate(tree, environment, **game, tuning=dataclasses.replace(made, radius=made.radius / 2))
    for changes in changed:
        run = simulate(tree, environment, **game, tuning=dataclasses.replace(made, **changes))
        assert run.regret_bound == 1000 and run.tuning.rule == "own"
        assert np.array_equal(run.tuning.bound(run.trials), run.trials)
    lied = dataclasses.replace(made, regret_bound=0.0, slope=0.0)  # of the numbers of a rule its bound holds
    run = simulate(tree, environment, **game, tuning=lied)
    assert run.regret_bound == made.regret_bound and run.tuning.slope == made.slope
