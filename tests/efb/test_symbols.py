"""One symbol a user: learner, draws, tuning, protocol, against lists of strategies and words by address."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive, naive_symbols as truth

from equinoise._random import HASH
from equinoise.efb import Server, Tuning, User, play, simulate, tune
from equinoise.efb.kernels import learner as _kernels, setup
from equinoise.games import Environment, GameTree, Schedule, load

COMPILED = not numba.config.DISABLE_JIT
N_TREES = 34 if COMPILED else 3
WIDTHS = [(17,), (40,), (16, 17, 18), (3, 33), (257,)]
SEED = 31


def a_tree(*seed, **options):
    """Of every seven trees one has an infoset with more than 16 actions, so that sum trees are used."""
    rng = np.random.default_rng([32, *seed])
    wide = {"widths": WIDTHS[seed[-1] // 7 % len(WIDTHS)]} if seed[-1] % 7 == 1 else {}
    return rng, naive.random_tree(rng, **(wide | options))


def ranges(rng, tree):
    """Random ranges of losses, some that hold one loss only, some of just 1/2."""
    found = np.sort(rng.random((tree.n_actions, 2)), axis=1)
    found[rng.random(tree.n_actions) < 0.1] = 0.5
    return found


def radii(tree, loss_range):
    """r(a): largest distance of a loss straight below from 1/2; 0 without a leaf."""
    some = np.array([len(naive.leaves_below(tree, a)) > 0 for a in range(tree.n_actions)])
    return np.where(some, np.maximum(abs(loss_range[:, 0] - 0.5), abs(loss_range[:, 1] - 0.5)), 0.0)


def bold(tree, radius, k, *, epsilon=2.0, horizon=10**6, explore=0.3):
    """A tuning under which the policy moves far in few trials."""
    nu, _ = truth.split_plan(tree, radius)
    floor = min([0.05, *(explore * nu[radius > 0])])
    rate = min(0.3, 30.0 * floor) / truth.gain(epsilon, k)
    return Tuning(
        rate, explore * nu, float(horizon), "own", horizon, epsilon, 0.0, 1.0,
        mechanism="hashing", symbols=2 * k, explore=explore, radius=radius,
    )  # fmt: skip


def server_of(tree, tuning, seed=SEED):
    return Server(tree, horizon=tuning.horizon, epsilon=tuning.epsilon, tuning=tuning, seed=seed)


def learn(server, other, n, user, environment):
    """Run n trials of a server, and of the list of strategies: (worst difference of policies, symbols)."""
    k, tuning, worst, sent = server.tuning.symbols // 2, server.tuning, 0.0, []
    for _ in range(n):
        strategy = server.draw()
        report = user.report(strategy, *play(environment, strategy, seed=SEED))
        items = truth.items(strategy.key, strategy.trial, len(strategy.actions), k)
        own = tuning.radius[strategy.actions]
        y = truth.estimates(items, report.symbol, own, truth.gain(tuning.epsilon, k))
        other.update(strategy.actions, y)
        server.update(report)
        assert not server._seat.visits.marked.any()  # or the next report would go over more than it moves
        sent.append(report.symbol)
        worst = max(worst, np.abs(server.policy - other.policy()).max())
    return worst, sent


def learners(tree, tuning, loss_range, environment):
    server = server_of(tree, tuning)
    other = truth.ExponentialWeights(tree, tuning.learning_rate, tuning.exploration, tuning.explore)
    user = User(tree, tuning.epsilon, loss_range=loss_range, noise="float", seed=SEED)
    return server, other, {"user": user, "environment": environment}


def environment_in(rng, tree, loss_range):
    """A random environment whose losses lie within ranges, their ends among them."""
    made = naive.random_environment(rng, tree)
    low, high = loss_range[tree.leaf_action].T
    loss = low + (high - low) * made.leaf_loss
    return Environment(tree, made.infoset_prob, made.leaf_prob, np.clip(loss, low, high))


# ----------------------------------------------------------------------------------------------------------
# Exactness
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 11, 80])
def test_the_learner_is_exponential_weights_over_reduced_strategies(k):
    """238 trees, through Server, User and Report: policies equal to 1e-10 after every report."""
    moved = 0
    for seed in range(N_TREES):
        rng, tree = a_tree(k, seed, max_strategies=500)
        loss_range = ranges(rng, tree)
        explore, epsilon = float(rng.choice([0.05, 0.3, 0.5, 1.0])), 2.0 if k < 80 else 6.0
        tuning = bold(tree, radii(tree, loss_range), k, explore=explore, epsilon=epsilon)
        server, other, rest = learners(tree, tuning, loss_range, environment_in(rng, tree, loss_range))
        before = server.policy
        worst, sent = learn(server, other, 25, **rest)
        assert worst < 1e-10
        moved += np.abs(server.policy - before).max() > 0.02
        assert k == 1 or len(set(sent)) > 2
    assert moved > 0.6 * N_TREES


@pytest.mark.parametrize("k", [2, 5])
def test_half_the_gain_is_noticed(k):
    rng, tree = a_tree(6, 0)
    tuning = bold(tree, np.full(tree.n_actions, 0.5), k)
    server, other, rest = learners(tree, tuning, (0.0, 1.0), naive.random_environment(rng, tree))
    code = tuning.code
    server._seat = server._seat._replace(code=code._replace(extra=2 * code.extra))
    assert learn(server, other, 25, **rest)[0] > 1e-4


def test_strategies_are_drawn_word_by_word_as_the_address_says():
    for k, seed in itertools.product((1, 5), range(4 if COMPILED else 1)):
        rng, tree = a_tree(7, seed)
        loss_range = ranges(rng, tree)
        tuning = bold(tree, radii(tree, loss_range), k)
        server, other, rest = learners(tree, tuning, loss_range, environment_in(rng, tree, loss_range))
        nu, _ = truth.split_plan(tree, tuning.radius)
        for trial in range(40):
            strategy = server.draw()
            wanted = truth.drawn(tree, server.policy, nu, tuning.explore, SEED, trial)
            assert (strategy.infosets.tolist(), strategy.actions.tolist()) == wanted
            learn(server, other, 1, **rest)


def test_the_public_key_is_no_more_than_public():
    """It is a Philox block of the server's key, and the same for every trial."""
    tree, _ = load("kuhn_poker")
    server = Server(tree, horizon=9, epsilon=1.0, seed=SEED)
    key = [int(x) for x in np.random.SeedSequence(SEED).generate_state(2, np.uint64)]
    for _ in range(3):
        strategy = server.draw()
        assert strategy.key.tolist() == naive.philox_block(key, [0, 0, 0, 13])[:2] and strategy.symbols == 2
        server.skip()


def test_a_simulated_symbol_is_the_one_of_its_word():
    rng, one = a_tree(8, 1)
    blocks, everything = set(), np.array([[0.0, 1.0]])
    for k, tree in itertools.product((1, 2, 3, 7), (one, load("complete(3,3,3)")[0])):
        environment = naive.random_environment(rng, tree)
        tuning = bold(tree, radii(tree, everything), k)
        server, user = server_of(tree, tuning), User(tree, 2.0, noise="float", seed=SEED)
        for trial in range(30):
            strategy = server.draw()
            last, loss = play(environment, strategy, seed=SEED)
            position = strategy.actions.tolist().index(last)
            own = truth.symbol_for(*truth.items(strategy.key, trial, len(strategy.actions), k)[position])
            low, extra, radius = tuning.code.low, tuning.code.extra, tuning.radius[last] or 1.0
            wanted = truth.symbol(truth.secret_word(SEED, trial), low, extra, k, own, loss - 0.5, radius)
            assert user.report(strategy, last, loss).symbol == wanted
            blocks.add((k, position // k))
            server.skip()
    assert {(1, 8), (2, 2), (2, 5), (3, 1), (3, 2), (3, 3), (7, 0), (7, 1)} < blocks


@pytest.mark.parametrize("k", [1, 3, 5])
def test_strategies_are_drawn_from_policy_and_exploration_mixed(k):
    """Chi-square of 20,000 draws after learning; one wrong alarm in 10^6 runs, and the seed is fixed."""
    rng, tree = a_tree(9, 0, max_strategies=40, max_infosets=6)
    loss_range = ranges(rng, tree)
    tuning = bold(tree, radii(tree, loss_range), k)
    server, other, rest = learners(tree, tuning, loss_range, environment_in(rng, tree, loss_range))
    learn(server, other, 30, **rest)
    found, n = dict.fromkeys(other.strategies, 0), 20_000 if COMPILED else 2_000
    for _ in range(n):
        found[tuple(sorted(server.draw().actions.tolist()))] += 1
        server.skip()
    chances = other.chances()
    assert sum(chances.values()) == pytest.approx(1.0) and len(chances) > 5
    with_a = [sum(c for picked, c in chances.items() if a in picked) for a in range(tree.n_actions)]
    assert with_a == pytest.approx((1 - tuning.explore) * other.mu() + tuning.exploration, rel=1e-11)
    often = [s for s in found if n * chances[s] >= 5]
    observed = np.array([found[s] for s in often] + [n - sum(found[s] for s in often)])
    expected = n * np.array([chances[s] for s in often])
    expected = np.append(expected, max(n - expected.sum(), 1e-9))
    if expected[-1] < 5:
        assert observed[-1] < 40
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-6


@pytest.mark.parametrize("k", [2, 3])
def test_turns_and_signs_of_neighbours_are_uniform_and_independent(k):
    """Three blocks over 20,000 trials, two of them of one word; one wrong alarm in 10^6 runs."""
    public = setup.first_source(setup.derived_key(np.array([5, 6], dtype=np.uint64), HASH))
    key = [int(x) for x in public[:2]]
    n, found = 20_000 if COMPILED else 3_000, []
    for trial in range(n):
        halves = [_kernels.public_bits(i, public, np.uint64(trial)) for i in (0, 1, 2)]
        assert trial > 50 or halves == truth.halves(key, trial, 3)
        found.append([truth.symbol_for(*truth.block_event(int(half), k)) for half in halves])
    found = np.array(found)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        cells = np.bincount(found[:, i] * 2 * k + found[:, j], minlength=4 * k * k)
        assert stats.chisquare(cells).pvalue > 1e-6


# ----------------------------------------------------------------------------------------------------------
# Tuning
# ----------------------------------------------------------------------------------------------------------


def best_constant(epsilon, *sums):
    """(least C, its k): every k up to 4 (e^eps - 1)/2 or the longest strategy, a fine grid of U."""

    def at(k, u):
        theta = u * math.sqrt(truth.moment(epsilon, k, sums[-1])) / truth.gain(epsilon, k)
        return truth.constant(epsilon, k, theta, *sums), k, u

    largest = max(int(4 * max(1.0, 0.5 * math.expm1(epsilon))), sums[-1])
    least = min(at(k, u) for k in range(1, largest + 1) for u in np.geomspace(4e-3, 6.0, 50))
    return min(at(least[1], u) for u in least[2] * np.geomspace(0.86, 1.16, 60))[:2]


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 2.5, 12.0])
def test_the_tuning_is_what_the_mathematics_says(epsilon):
    for seed in range(6 if COMPILED else 2):
        rng, tree = a_tree(10, seed, max_infosets=6, max_strategies=200)
        loss_range, horizon = ranges(rng, tree), 10**9
        radius, ln_s = radii(tree, loss_range), math.log(naive.count_strategies(tree))
        tuning = tune(tree, horizon, epsilon, loss_range=loss_range)
        if ln_s == 0.0 or not radius.any():
            assert (tuning.learning_rate, tuning.regret_bound, tuning.explore) == (0.0, 0.0, 0.0)
            continue
        nu, q_root = truth.split_plan(tree, radius)
        total, most = float((radius**2).sum()), truth.most_last(tree, radius**2)
        sums = total, most, q_root, truth.longest(tree)
        k, eta, rho = tuning.symbols // 2, tuning.learning_rate, tuning.explore
        v0 = truth.moment(epsilon, k, sums[-1])
        theta = eta * math.sqrt(v0 * q_root) / rho
        c = truth.constant(epsilon, k, theta, *sums)
        assert rho < 0.5 and eta == pytest.approx(math.sqrt(ln_s / (horizon * c)), rel=1e-8)
        assert tuning.regret_bound == pytest.approx(2 * math.sqrt(horizon * c * ln_s), rel=1e-8)
        assert tuning.bound(horizon) == pytest.approx(tuning.regret_bound, rel=1e-12)
        assert tuning.slope == pytest.approx(eta * c, rel=1e-8)
        assert tuning.exploration == pytest.approx(rho * nu, rel=1e-9)
        assert tuning.radius == pytest.approx(radius, abs=0)
        if epsilon > 10.0:
            assert k == sums[-1]  # nothing collides, and 2 q is as small as it can be
        else:
            assert c <= 1.0005 * best_constant(epsilon, *sums)[0]


def test_the_plan_of_exploration_is_the_one_with_the_least_largest_variance():
    """The sum of r^2/nu^2 over the actions of any strategy is Q(root), and no other plan stays below it."""
    for seed in range(6):
        rng, tree = a_tree(11, seed, max_infosets=6, max_strategies=200)
        radius = rng.uniform(0.1, 0.5, tree.n_actions)
        tuning = tune(tree, 10**9, 1.0, loss_range=np.stack([0.5 - radius, 0.5 + radius], axis=1))
        if tuning.explore == 0.0:
            continue
        _, q_root = truth.split_plan(tree, tuning.radius)
        listed = [list(picked) for picked in naive.strategies(tree)]
        square = (tuning.radius / tuning.exploration * tuning.explore) ** 2
        assert [square[picked].sum() for picked in listed] == pytest.approx([q_root] * len(listed), rel=1e-9)
        for _ in range(5):
            other = np.ones(tree.n_actions)
            for s in range(tree.n_infosets):
                above = 1.0 if s == 0 else other[tree.infoset_action[s]]
                own = naive.actions_of(tree, s)
                other[own] = above * rng.dirichlet(np.ones(len(own)))
            square = (tuning.radius / other) ** 2
            assert max(square[picked].sum() for picked in listed) >= q_root * (1 - 1e-9)


REFERENCE = [
    ("kuhn_poker", 0.5, 23.4e3, 1), ("kuhn_poker", 1.0, 14.4e3, 1), ("kuhn_poker", 2.0, 9.8e3, 2),
    ("kuhn_poker", 4.0, 5736, 7), ("kuhn_poker", 8.0, 4722, 7), ("leduc_poker", 1.0, 445e3, 1),
    ("leduc_poker", 4.0, 162e3, 14), ("leduc_poker", 8.0, 84.4e3, 133), ("complete(3,3,3)", 0.5, 241e3, None),
    ("complete(3,3,3)", 1.0, 146e3, None), ("complete(3,3,3)", 4.0, 53.5e3, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "epsilon", "bound", "k"), REFERENCE)
def test_reference_bounds(name, epsilon, bound, k):
    tree, environment = load(name)
    loss_range = environment.loss_range if k else (0.0, 1.0)
    tuning = tune(tree, 10**6, epsilon, loss_range=loss_range)
    assert tuning.regret_bound == pytest.approx(bound, rel=0.011)
    assert k is None or abs(tuning.symbols // 2 - k) <= (0.1 * k if k < truth.longest(tree) else 0)
    if name == "kuhn_poker":
        assert (tuning.radius**2).sum() == pytest.approx(1.875, rel=1e-12)
        assert truth.most_last(tree, tuning.radius**2) == pytest.approx(0.5625, rel=1e-12)
        _, q_root = truth.split_plan(tree, tuning.radius)
        if epsilon <= 4.0:
            c, best_k = best_constant(epsilon, 1.875, 0.5625, q_root, truth.longest(tree))
            wanted = 2 * math.sqrt(10**6 * c * math.log(27))
            assert best_k == k and tuning.regret_bound == pytest.approx(wanted, rel=5e-4)


@pytest.mark.parametrize(("name", "most"), [("kuhn_poker", 3), ("leduc_poker", 17)])
def test_without_noise_the_actions_count_that_can_be_last_together(name, most):
    tree, horizon = load(name)[0], 10**6
    tuning, ln_s = tune(tree, horizon, math.inf), tree.log_n_strategies
    assert tuning.learning_rate == pytest.approx(math.sqrt(2 * ln_s / (most * horizon)), rel=1e-12)
    implicit = tuning.learning_rate / 2 * most * horizon  # what gamma = eta/2 may cost
    assert tuning.regret_bound == pytest.approx(math.sqrt(2 * most * horizon * ln_s) + implicit, rel=1e-12)
    for seed in range(6):
        _, small = a_tree(12, seed, max_infosets=6, max_strategies=200)
        count = truth.most_last(
            small, [float(len(naive.leaves_below(small, a)) > 0) for a in range(small.n_actions)]
        )
        rate = math.sqrt(2 * small.log_n_strategies / (count * horizon))
        assert tune(small, horizon, math.inf).learning_rate == pytest.approx(rate, rel=1e-12)


# ----------------------------------------------------------------------------------------------------------
# Simulation and protocol
# ----------------------------------------------------------------------------------------------------------

ONE = GameTree([0, 1, 2], [1, 2, 2], [0, 1, 2])  # one strategy of two actions
GAMES = ["kuhn_poker", "bandit(5)", "wide", "one", "chain", "even", "complete(2,2,2)"]
CHAIN = GameTree([0, 2, 4, 6], [1, 2, 3, 3, 3, 3, 3], [0, 0, 0, 1, 2, 3, 4])  # first actions without leaves


def game(name):
    if name in ("one", "chain", "even"):
        tree = ONE if name == "one" else CHAIN
        made = naive.random_environment(np.random.default_rng(3), tree)
        loss = np.full(tree.n_leaves, 0.5) if name == "even" else made.leaf_loss
        return tree, Environment(tree, made.infoset_prob, made.leaf_prob, loss)
    if name == "wide":
        rng, tree = a_tree(13, 0, widths=(40, 3))
        return tree, naive.random_environment(rng, tree)
    return load(name)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 2.0, 5.0, 50.0, 700.0])
@pytest.mark.parametrize("name", GAMES)
def test_a_simulation_is_the_public_protocol_bit_for_bit(name, epsilon):
    tree, environment = game(name)
    n = 60 if COMPILED else 10
    common = {"epsilon": epsilon, "loss_range": environment.loss_range}
    server = Server(tree, horizon=n, seed=SEED, **common)
    user = User(tree, noise="float", seed=SEED, **common)
    policies, losses = [], []
    for _ in range(n):
        strategy = server.draw()
        last, loss = play(environment, strategy, seed=SEED)
        if server.tuning.learning_rate > 0:
            strategy = type(strategy).from_bytes(strategy.to_bytes())
        report = user.report(strategy, last, loss)
        server.update(type(report).from_bytes(report.to_bytes()))
        policies.append(server.policy)
        losses.append(loss)
    run = simulate(tree, environment, horizon=n, epsilon=epsilon, seed=SEED, n_replicates=2, n_checkpoints=n)
    assert run.policy[0].tobytes() == server.policy.tobytes() and np.isfinite(policies).all()
    assert np.cumsum(losses) == pytest.approx(run.loss[0], rel=1e-13)
    assert run.regret_bound <= n and run.tuning.explore <= 0.5
    if name == "even":
        assert run.regret_bound == 0.0 and run.tuning.learning_rate == 0.0 and abs(run.regret).max() < 1e-12
    if name == "one":
        assert run.regret_bound == 0.0 and (server.policy == 1.0).all()


def test_a_schedule_is_the_public_protocol_too():
    rng, tree = a_tree(14, 1)
    schedule = Schedule([(naive.random_environment(rng, tree), n) for n in (10, 1, 40)])
    server = Server(tree, horizon=50, epsilon=3.0, loss_range=schedule.loss_range, seed=SEED)
    user = User(tree, 3.0, loss_range=schedule.loss_range, noise="float", seed=SEED)
    for _ in range(50):
        strategy = server.draw()
        server.update(user.report(strategy, *play(schedule, strategy, seed=SEED)))
    run = simulate(tree, schedule, horizon=50, epsilon=3.0, seed=SEED)
    assert run.policy[0].tobytes() == server.policy.tobytes()


@pytest.mark.parametrize(("horizon", "epsilon"), [(1, 1.0), (10, 0.01), (1000, 1e-6), (3, 50.0)])
def test_where_exploration_is_capped_the_bound_is_the_horizon(horizon, epsilon):
    tree, environment = load("kuhn_poker")
    tuning = tune(tree, horizon, epsilon, loss_range=environment.loss_range)
    assert tuning.regret_bound == horizon and tuning.bound([0, 1, horizon]).tolist() == [0, 1, horizon]
    assert tuning.explore == 0.5 or (horizon, epsilon) == (3, 50.0)
    nu, _ = truth.split_plan(tree, radii(tree, environment.loss_range))
    assert tuning.exploration == pytest.approx(tuning.explore * nu, rel=1e-12)


def test_a_tuning_for_narrower_losses_than_the_environments_is_refused():
    """Its symbols would say less than the losses, and its bound would be for another game."""
    tree, environment = load("kuhn_poker")
    narrow = tune(tree, 1000, 1.0, loss_range=(0.49, 0.51))
    with pytest.raises(ValueError, match="tuning"):
        simulate(tree, environment, horizon=1000, epsilon=1.0, tuning=narrow)
    fit = tune(tree, 1000, 1.0, loss_range=environment.loss_range)
    run = simulate(tree, environment, horizon=1000, epsilon=1.0, tuning=fit)
    assert run.regret_bound == fit.regret_bound
