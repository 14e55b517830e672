"""Simulation: regret against enumeration and bounds, and the same bits whatever the blocks and executors.

Statistics use fixed seeds and bounds of six standard errors (of the replicates), so a right program passes
all of them but for one seed in a million.
"""

from __future__ import annotations

import math
import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numba
import numpy as np
import pytest
from tests import naive

from equinoise.efb import EfbRun, Tuning, simulate, tune
from equinoise.games import Schedule, bandit, complete, from_nested, load

COMPILED = not numba.config.DISABLE_JIT
LEARNERS = ("hashing", "laplace", "ixomd", "flat-exp3", "uniform")  # "dp-efb" by its mechanisms
MECHANISMS = LEARNERS[:2]


def a_game(seed, **options):
    rng = np.random.default_rng([51, seed])
    tree = naive.random_tree(rng, **options)
    return tree, naive.random_environment(rng, tree)


def a_schedule(seed, *trials):
    rng = np.random.default_rng([52, seed])
    tree = naive.random_tree(rng)
    return tree, Schedule([(naive.random_environment(rng, tree), n) for n in trials])


def options_of(learner):
    """Of the kinds in LEARNERS, as `simulate` takes them."""
    if learner in MECHANISMS:
        return {"learner": "dp-efb", "mechanism": learner, "epsilon": 4.0}
    return {"learner": learner, "epsilon": math.inf if learner == "ixomd" else 4.0}


def assert_same(one, two):
    assert one.trials.tolist() == two.trials.tolist()
    for name in ("regret", "loss", "policy"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


def best_by_enumeration(tree, environment_of, horizon):
    """Cumulative loss of the best fixed strategy after every trial, float64[T]."""
    tables = {}
    losses = np.zeros((horizon, len(naive.strategies(tree))))
    for trial in range(horizon):
        environment = environment_of(trial)
        if id(environment) not in tables:
            tables[id(environment)] = [
                naive.strategy_loss(environment, set(x)) for x in naive.strategies(tree)
            ]
        losses[trial] = tables[id(environment)]
    return losses.cumsum(axis=0).min(axis=1)


# ----------------------------------------------------------------------------------------------------------
# Regret is what it should be
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_regret_against_an_adversary_by_enumeration(seed):
    """Two environments, one after the other: every trial of the run in plain Python, the best by listing."""
    tree, schedule = a_schedule(seed, 25, 40)
    first, second = schedule.environments

    def environment_of(trial):
        return first if trial < 25 else second

    options = {"horizon": 50, "epsilon": 4.0, "mechanism": "laplace", "seed": 7, "n_replicates": 2}
    run = simulate(tree, schedule, n_checkpoints=50, **options)
    few = simulate(tree, schedule, n_checkpoints=3, **options)
    assert few.trials.tolist() == [16, 33, 50] and few.policy.tobytes() == run.policy.tobytes()
    np.testing.assert_allclose(few.regret, run.regret[:, few.trials - 1], atol=1e-11)
    np.testing.assert_allclose(few.loss, run.loss[:, few.trials - 1], atol=1e-11)
    for replicate in range(2):
        learner = naive.ExponentialWeights(tree, run.tuning.learning_rate, run.tuning.exploration)
        drawn, losses = naive.run_learner(learner, environment_of, 50, 0.5, 7, replicate)
        expected = [naive.strategy_loss(environment_of(t), set(x)) for t, x in enumerate(drawn)]
        best = best_by_enumeration(tree, environment_of, 50)
        np.testing.assert_allclose(run.regret[replicate], np.cumsum(expected) - best, atol=1e-11)
        np.testing.assert_allclose(run.loss[replicate], np.cumsum(losses), atol=1e-11)
        np.testing.assert_allclose(run.policy[replicate], learner.policy(), atol=1e-11)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_schedule_of_equal_parts_is_their_environment(mechanism):
    tree, environment = a_game(1)
    options = {"horizon": 60, "epsilon": 4.0, "mechanism": mechanism, "n_checkpoints": 7}
    whole = simulate(tree, environment, **options)
    parts = Schedule([(environment, 13), (environment, 1), (environment, 100)])
    split = simulate(tree, parts, **options)
    assert whole.tuning.mechanism == split.tuning.mechanism == mechanism
    assert whole.policy.tobytes() == split.policy.tobytes()
    np.testing.assert_allclose(whole.regret, split.regret, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_ixomd_is_the_same_learner_from_another_start(seed):
    """Exponential weights from uniform play at every infoset, without noise, one gamma for all actions."""
    tree, environment = a_game(seed)
    run = simulate(tree, environment, horizon=50, epsilon=math.inf, learner="ixomd", seed=5, n_checkpoints=50)
    assert len(set(run.tuning.exploration.tolist())) == 1
    widths = np.diff(tree.action_ptr)
    learner = naive.ExponentialWeights(
        tree, run.tuning.learning_rate, run.tuning.exploration, np.repeat(1.0 / widths, widths)
    )
    _, losses = naive.run_learner(learner, lambda trial: environment, 50, 0.0, 5)
    np.testing.assert_allclose(run.policy[0], learner.policy(), atol=1e-11)
    np.testing.assert_allclose(run.loss[0], np.cumsum(losses), atol=1e-11)


def test_flat_exp3_noises_one_loss():
    """On one infoset a strategy is an action: the same learner, with noise of scale 1/epsilon, not 2."""
    tree, environment = bandit(5)
    run = simulate(tree, environment, horizon=80, epsilon=2.0, learner="flat-exp3", seed=5, n_checkpoints=80)
    learner = naive.ExponentialWeights(tree, run.tuning.learning_rate, run.tuning.exploration)
    _, losses = naive.run_learner(learner, lambda trial: environment, 80, 0.5, 5)
    np.testing.assert_allclose(run.policy[0], learner.policy(), atol=1e-11)
    np.testing.assert_allclose(run.loss[0], np.cumsum(losses), atol=1e-11)


def test_flat_exp3_plays_the_game():
    """Expected loss of a trial is the mixture's: its observed losses agree, and so does the start."""
    tree, environment = load("kuhn_poker")
    run = simulate(tree, environment, horizon=1, epsilon=4.0, learner="flat-exp3", n_replicates=4000, seed=1)
    gap = run.regret[:, 0] + environment.best_response()[0]
    mixture = np.mean([naive.strategy_loss(environment, set(x)) for x in naive.strategies(tree)])
    assert abs(gap.mean() - mixture) < 6 * gap.std() / math.sqrt(4000)
    assert abs(run.loss.mean() - mixture) < 6 * run.loss.std() / math.sqrt(4000)
    losses = {round(x, 9) for x in environment.leaf_loss.tolist()}
    assert {round(x, 9) for x in run.loss[:, 0].tolist()} <= losses


def test_the_regret_of_uniform_play_is_its_gap():
    """Kuhn poker: 0.46875 a trial against 0.375 for the best, and exactly so in expectation."""
    tree, environment = load("kuhn_poker")
    assert environment.expected_loss(tree.uniform_policy()) == pytest.approx(0.46875, abs=1e-12)
    assert environment.best_response()[0] == pytest.approx(0.375, abs=1e-12)
    trials, n = (4000, 16) if COMPILED else (200, 4)
    run = simulate(tree, environment, horizon=trials, epsilon=1.0, learner="uniform", n_replicates=n, seed=2)
    for values, mean in ((run.regret, 0.09375), (run.loss, 0.46875)):
        slope = values[:, -1] / trials
        assert abs(slope.mean() - mean) < 6 * slope.std(ddof=1) / math.sqrt(n)
    assert (run.policy == tree.uniform_policy()).all()


def test_uniform_play_on_one_infoset_with_one_action_has_no_regret():
    tree, environment = from_nested([[0.25, 0.75]])
    for learner in LEARNERS:
        run = simulate(tree, environment, horizon=100, n_replicates=3, **options_of(learner))
        np.testing.assert_allclose(run.regret, 0.0, atol=1e-12)
        assert run.policy.tolist() == [[1.0]] * 3


@pytest.mark.parametrize("game", ["kuhn_poker", "complete(3,3,2)", "bandit(20)"])
@pytest.mark.parametrize(
    ("tuning", "mechanism"), [("paper", "laplace"), ("sharp", "laplace"), ("sharp", "hashing")]
)
def test_regret_stays_below_its_bound(game, tuning, mechanism):
    tree, environment = load(game)
    for epsilon in (0.5, 4.0, math.inf):
        for horizon in (1, 10, 2000) if COMPILED else (1, 20):
            run = simulate(
                tree, environment, horizon=horizon, epsilon=epsilon, tuning=tuning, mechanism=mechanism,
                n_replicates=8, seed=3,
            )  # fmt: skip
            mean, spread = run.regret.mean(axis=0), run.regret.std(axis=0, ddof=1) / math.sqrt(8)
            assert (mean <= run.tuning.bound(run.trials) + 6 * spread + 1e-9).all()
            losses = environment.loss_range
            assert run.regret_bound <= horizon
            assert run.summary()["bound"].iloc[-1] == pytest.approx(run.regret_bound, rel=1e-12)
            made = tune(tree, horizon, epsilon, tuning, mechanism, loss_range=losses)
            assert run.regret_bound == made.regret_bound


@pytest.mark.skipif(not COMPILED, reason="needs a few million trials")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_it_learns(mechanism):
    """Without privacy regret is far below uniform play's, and privacy costs something.

    Not at epsilon 4 with symbols: centred losses of a known range then beat the learner without privacy.
    """
    tree, environment = load("kuhn_poker")
    at = {}
    some = 2.0 if mechanism == "hashing" else 16.0
    for epsilon in (math.inf, some, 1.0):
        run = simulate(
            tree, environment, horizon=40_000, epsilon=epsilon, mechanism=mechanism, n_replicates=8, seed=4
        )
        at[epsilon] = run.regret[:, -1].mean()
        if epsilon > 1:
            assert environment.expected_loss(run.policy.mean(axis=0)) < 0.44
    assert at[math.inf] < at[some] < at[1.0] < 1.2 * 0.09375 * 40_000
    assert at[math.inf] < 0.3 * 0.09375 * 40_000
    other = simulate(tree, environment, horizon=40_000, epsilon=math.inf, learner="ixomd", n_replicates=8)
    assert other.regret[:, -1].mean() < 0.3 * 0.09375 * 40_000


def test_estimates_are_unbiased():
    """A user's noise has mean zero: over many replicates the mean policy after one trial moves as it should.

    With learning rate h small, E log-weight change is -eta g mu/(mu + gamma) to first order.
    """
    tree, environment = from_nested([[0.0], [0.5], [1.0]])
    gamma = np.array([0.1, 0.2, 0.3])
    tuning = Tuning(1e-3, gamma, 1.0, "paper", 1, 4.0, 1.0, 1.0)
    n = 20_000 if COMPILED else 4000
    run = simulate(
        tree, environment, horizon=1, epsilon=4.0, tuning=tuning, mechanism="laplace", n_replicates=n, seed=6
    )
    shift = 1e-3 * np.array([0.0, 0.5, 1.0]) * (1 / 3) / (1 / 3 + gamma)
    moved = (run.policy - 1 / 3) * 3
    expected = shift.mean() - shift
    assert (np.abs(moved.mean(axis=0) - expected) < 6 * moved.std(axis=0) / math.sqrt(n) + 5e-6).all()
    assert np.ptp(expected) > 20 * moved.std() / math.sqrt(n)


# ----------------------------------------------------------------------------------------------------------
# The same bits
# ----------------------------------------------------------------------------------------------------------


class Backwards(Executor):
    """Runs each task when the last one was given, the last one first."""

    def __init__(self, n):
        self.n, self.given = n, []

    def submit(self, fn, /, *args, **kwargs):
        self.given.append((future := Future(), fn, args, kwargs))
        if len(self.given) == self.n:
            for waiting, function, arguments, options in reversed(self.given):
                waiting.set_result(function(*arguments, **options))
        return future


@pytest.mark.parametrize("learner", LEARNERS)
def test_blocks_threads_and_order_do_not_matter(learner):
    tree, environment = a_game(3)
    options = {"horizon": 40, "n_checkpoints": 9, "seed": 11, **options_of(learner)}
    whole = simulate(tree, environment, n_replicates=10, **options)
    for block in (1, 3, 10, 1000):
        assert_same(whole, simulate(tree, environment, n_replicates=10, block=block, **options))
    with ThreadPoolExecutor(3) as pool:
        assert_same(whole, simulate(tree, environment, n_replicates=10, block=1, executor=pool, **options))
    assert_same(
        whole, simulate(tree, environment, n_replicates=10, block=3, executor=Backwards(4), **options)
    )
    for n in (1, 4):
        few = simulate(tree, environment, n_replicates=n, **options)
        assert few.policy.tobytes() == whole.policy[:n].tobytes()
        assert few.regret.tobytes() == whole.regret[:n].tobytes()
    rows = [tuple(row) for row in whole.loss]
    assert len(set(rows)) == 10  # and replicates differ


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_processes_give_the_same_bits(mechanism):
    tree, schedule = a_schedule(5, 30, 30)
    options = {"horizon": 45, "epsilon": 2.0, "mechanism": mechanism, "n_replicates": 5, "seed": 2}
    whole = simulate(tree, schedule, **options)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_same(whole, simulate(tree, schedule, block=2, executor=pool, **options))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_seeds(mechanism):
    tree, environment = a_game(2)
    options = {"horizon": 30, "epsilon": 1.0, "mechanism": mechanism, "n_replicates": 3}
    one = simulate(tree, environment, seed=1, **options)
    assert_same(one, simulate(tree, environment, seed=1, **options))
    assert_same(simulate(tree, environment, seed=0, **options), simulate(tree, environment, **options))
    assert one.policy.tobytes() != simulate(tree, environment, seed=2, **options).policy.tobytes()
    fresh = [simulate(tree, environment, seed=None, **options).policy.tobytes() for _ in range(2)]
    assert fresh[0] != fresh[1]
    simulate(tree, environment, seed=2**200, **options)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_checkpoints_do_not_change_the_run(mechanism):
    tree, environment = a_game(2)
    options = {"horizon": 100, "epsilon": 4.0, "mechanism": mechanism, "n_replicates": 2, "seed": 1}
    fine = simulate(tree, environment, n_checkpoints=1000, **options)
    assert fine.trials.tolist() == list(range(1, 101))
    for n in (1, 3, 7, 100):
        run = simulate(tree, environment, n_checkpoints=n, **options)
        assert len(run.trials) == n and run.trials[-1] == 100
        assert run.policy.tobytes() == fine.policy.tobytes()
        np.testing.assert_allclose(run.regret, fine.regret[:, run.trials - 1], atol=1e-11)
        np.testing.assert_allclose(run.loss, fine.loss[:, run.trials - 1], atol=1e-11)


def test_learners_meet_the_same_luck():
    """Chance does not ask who plays: where there is one strategy, learners see the same losses.

    Not "flat-exp3", for which the whole game is one draw.
    """
    tree, environment = from_nested([[0.0, 1.0, 0.25, 0.5, 0.125]])
    losses = [
        simulate(
            tree, environment, horizon=50, n_replicates=3, seed=8, n_checkpoints=50, **options_of(learner)
        ).loss
        for learner in LEARNERS
        if learner != "flat-exp3"
    ]
    for other in losses[1:]:
        np.testing.assert_array_equal(other, losses[0])
    assert len(np.unique(np.diff(losses[0], axis=1))) == 5


# ----------------------------------------------------------------------------------------------------------
# What a run holds
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_shapes_and_types(learner):
    tree, environment = load("kuhn_poker")
    run = simulate(tree, environment, horizon=64, n_replicates=4, n_checkpoints=8, **options_of(learner))
    assert isinstance(run, EfbRun)
    assert run.trials.dtype == np.int64 and run.trials.tolist() == list(range(8, 65, 8))
    for name, shape in (("regret", (4, 8)), ("loss", (4, 8)), ("policy", (4, tree.n_actions))):
        values = getattr(run, name)
        assert values.dtype == np.float64 and values.shape == shape and values.flags.c_contiguous
        assert np.isfinite(values).all()
    total = np.add.reduceat(run.policy, tree.action_ptr[:-1], axis=1)
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    assert (np.diff(run.loss, axis=1) >= 0).all() and (run.loss <= run.trials).all()
    assert run.learner == options_of(learner)["learner"] and run.regret_bound > 0
    assert run.tuning.mechanism == ("hashing" if learner == "hashing" else "laplace")
    assert run.final_policy(2).values.tolist() == run.policy[2].tolist()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_frames(mechanism):
    tree, environment = a_game(2)
    run = simulate(
        tree, environment, horizon=20, epsilon=4.0, mechanism=mechanism, n_replicates=5, n_checkpoints=4
    )
    frame = run.to_frame()
    what = {"learner": "dp-efb", "mechanism": mechanism, "tuning": "sharp", "epsilon": 4.0, "seed": 0}
    assert frame.columns.tolist() == ["replicate", "trials", "regret", "loss", *what]
    assert [frame[name].unique().tolist() for name in what] == [[value] for value in what.values()]
    assert frame["regret"].to_numpy().reshape(5, 4).tolist() == run.regret.tolist()
    assert frame["trials"].tolist() == run.trials.tolist() * 5
    summary = run.summary()
    assert summary["trials"].tolist() == run.trials.tolist()
    assert summary.iloc[-1][list(what)].to_dict() == what
    mean, stderr = run.regret.mean(axis=0), run.regret.std(axis=0, ddof=1) / math.sqrt(5)
    np.testing.assert_allclose(summary["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(summary["stderr"], stderr, rtol=1e-12)
    np.testing.assert_allclose(summary["ci_low"], mean - 1.96 * stderr, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(summary["bound"], run.tuning.bound(run.trials))


@pytest.mark.compiled
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_trees_of_many_shapes(mechanism):
    """One infoset of 1,000 actions, a complete tree, one of depth 200: runs, and probabilities stay so."""
    deep = [[0.5]]
    for _ in range(200):
        deep = [[0.25], [deep, 0.75]]
    games = [bandit(1000), complete(3, 3, 3), from_nested(deep)]
    for tree, environment in games:
        run = simulate(tree, environment, horizon=200, epsilon=1.0, mechanism=mechanism, n_replicates=2)
        total = np.add.reduceat(run.policy, tree.action_ptr[:-1], axis=1)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
        assert np.isfinite(run.regret).all()


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("seed", [None, 2**70])
def test_a_run_in_a_file_is_the_same_run(kind, seed, tmp_path):
    tree, environment = load("kuhn_poker")
    run = simulate(tree, environment, horizon=50, n_replicates=3, seed=seed, **options_of(kind))
    run.save(tmp_path / "run")
    again = EfbRun.load(tmp_path / "run")
    assert again.to_frame().equals(run.to_frame())
    assert again.summary().equals(run.summary())
    assert (repr(again), again.bytes_a_report) == (repr(run), run.bytes_a_report)
    assert again.final_policy(2).to_dict() == run.final_policy(2).to_dict()


def test_a_file_that_is_no_run_is_refused(tmp_path):
    tree, environment = load("kuhn_poker")
    run = simulate(tree, environment, horizon=50, epsilon=2.0)
    run.save(tmp_path / "run")
    whole = (tmp_path / "run").read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"path .*cut.* does not hold a whole run"):
            EfbRun.load(tmp_path / "cut")
    tree.save(tmp_path / "tree")
    with pytest.raises(ValueError, match="does not hold a whole run: it is of another kind"):
        EfbRun.load(tmp_path / "tree")
    with pytest.raises(FileNotFoundError):
        EfbRun.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"^path .* does not hold a whole run: .*directory"):
        EfbRun.load(tmp_path)


def test_a_file_whose_numbers_are_none_of_a_run_is_refused(tmp_path):
    run = simulate(*load("kuhn_poker"), horizon=50, epsilon=2.0, n_replicates=2)
    wrong = {
        "trials": (run.trials.astype(np.float64), run.trials - 1),
        "regret": (run.regret * math.nan, run.regret[:, :-1], run.regret[0]),
        "loss": (run.loss + math.inf, run.loss[:-1]),
        "policy": (run.policy * math.nan, -run.policy, run.policy[:, :-1]),
        "regret_bound": (math.nan, "1"),
        "learner": ("nobody",),
        "epsilon": (0.0, "2"),
        "tuning": tuple(
            replace(run.tuning, **change)
            for change in (
                {"radius": None},
                {"exploration": run.tuning.exploration * math.nan},
                {"learning_rate": math.nan},
            )
        ),
    }
    for name, values in wrong.items():
        for value in values:
            replace(run, **{name: value}).save(tmp_path / "run")
            with pytest.raises(ValueError, match=f"does not hold a whole run: {name}"):
                EfbRun.load(tmp_path / "run")


def test_paths_and_axes_that_are_none_are_named(tmp_path):
    run = simulate(*load("bandit(2)"), horizon=5, epsilon=2.0)
    for refused in (run.save, EfbRun.load):
        with pytest.raises(TypeError, match="path must be a str or a path, got 5"):
            refused(5)
    with pytest.raises(TypeError, match="ax must be Axes of Matplotlib or None, got 5"):
        run.plot(5)
    for path in (tmp_path, tmp_path / "nowhere" / "run"):
        with pytest.raises(OSError) as told:
            run.save(path)
        assert str(told.value).endswith(f": {str(path)!r}")
