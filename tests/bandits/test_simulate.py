"""Simulation: against twins, the same bits whatever the blocks and executors, published and known figures.

Statistics use fixed seeds and bounds of five or six standard errors, so a right program passes all of them
but for a few seeds in a million.
"""

from __future__ import annotations

import inspect
import math
import multiprocessing
import os
import pickle
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numba
import numpy as np
import pytest
from tests import naive_bandits

from equinoise import bandits, inference, replicates
from equinoise.bandits import POLICIES, BanditRun, result as runs, simulate
from equinoise.bandits.policies.registry import groups

COMPILED = not numba.config.DISABLE_JIT
compiled = pytest.mark.compiled
MEANS = [0.9, 0.7, 0.5, 0.1]
HORIZON = 60 if COMPILED else 30
REFERENCE = [0.75, 0.625, 0.5, 0.375, 0.25]  # means of the published comparisons
LADDER = 1.0 - 0.05 * np.arange(20)  # of the first published experiment
every_policy = pytest.mark.parametrize("name", POLICIES)


def epsilon_of(name, epsilon=2.0):
    return epsilon if POLICIES[name].needs_epsilon else None


def run_of(name, *, means=MEANS, horizon=HORIZON, n=9, seed=3, **options):
    options.setdefault("epsilon", epsilon_of(name))
    return simulate(name, means, horizon=horizon, n_replicates=n, seed=seed, **options)


def assert_same(one, two, rows=slice(None)):
    assert one.trials.tolist() == two.trials.tolist()
    for field in ("reward_sum", "pulls", "regret"):
        assert getattr(one, field)[rows].tobytes() == getattr(two, field).tobytes(), field


# ----------------------------------------------------------------------------------------------------------
# Against the twins
# ----------------------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize("reward", ["bernoulli", "gaussian"])
def test_a_run_is_the_twins_rounds(name, reward):
    """Pulls, sums and regret at every checkpoint, from the twin's arms on the same tape."""
    options = {"sigma": 0.3, "reward": reward, "width": "published", "epsilon": epsilon_of(name, 5.0)}
    run = run_of(name, n=3, n_checkpoints=7, **options)
    gap = max(MEANS) - np.array(MEANS)
    extra = {"width": "published"} if "width" in POLICIES[name].options else {}
    for r in range(3):
        sigma = 0.3 if reward == "gaussian" else None
        table, noise, ties = naive_bandits.tape(3, r, HORIZON, MEANS, sigma=sigma)
        own = naive_bandits.own_words(3, r)
        twin = naive_bandits.make(name, 4, HORIZON, epsilon_of(name, 5.0), ties=run.ties, own=own, **extra)
        arms = np.array(naive_bandits.play(twin, table, noise, ties))
        assert run.pulls[r].tolist() == np.bincount(arms, minlength=4).tolist()
        sums = np.bincount(arms, np.array(table)[np.arange(HORIZON), arms], minlength=4)
        np.testing.assert_allclose(run.reward_sum[r], sums, rtol=1e-12)
        np.testing.assert_allclose(run.regret[r], gap[arms].cumsum()[run.trials - 1], atol=1e-12)
    assert run.trials.tolist() == [HORIZON * i // 7 for i in range(1, 8)]
    assert run.epsilon == epsilon_of(name, 5.0) and run.reward == reward


@every_policy
def test_every_round_is_played(name):
    run = run_of(name, n=5)
    assert (run.pulls.sum(axis=1) == HORIZON).all()
    assert (run.reward_sum <= run.pulls).all() and (run.reward_sum >= 0).all()
    assert (np.diff(run.regret, axis=1) >= 0).all()
    gap = max(MEANS) - np.array(MEANS)
    np.testing.assert_allclose(run.regret[:, -1], run.pulls @ gap, rtol=1e-13)


def test_policies_meet_the_same_tape():
    """With one arm nothing is left to choose: every policy, at every epsilon, has the same rewards."""
    runs = [run_of(name, means=[0.4], horizon=25, epsilon=e) for name in POLICIES for e in (0.1, 10.0)]
    assert len({run.reward_sum.tobytes() for run in runs}) == 1
    assert 0 < runs[0].reward_sum.mean() < 25


# ----------------------------------------------------------------------------------------------------------
# The same bits
# ----------------------------------------------------------------------------------------------------------


@every_policy
def test_a_replicate_depends_on_its_number_alone(name):
    """Not on how many there are, nor on blocks, lanes (full vectors, spare ones, one), or executors."""
    n = 70 if COMPILED else 12
    whole = run_of(name, n=n)
    for block in (1, 5, 8, 33) if COMPILED else (1, 5):
        assert_same(whole, run_of(name, n=n, block=block))
    for fewer in (1, 3, 9, 21) if COMPILED else (1, 3):
        assert_same(whole, run_of(name, n=fewer), slice(fewer))
    with ThreadPoolExecutor(3) as pool:
        assert_same(whole, run_of(name, n=n, block=7, executor=pool))
    assert len(np.unique(whole.reward_sum.sum(axis=1))) > 1  # replicates differ


class _Backwards(Executor):
    """Runs every task at once; a process pool's manners without its cost."""

    def submit(self, fn, /, *args, **kwargs):
        future, task = Future(), pickle.dumps(fn)
        assert len(task) < 4096  # a scheduler may hold one for every block
        future.set_result(pickle.loads(task)(*args, **kwargs))
        return future


@pytest.mark.parametrize("block", [5, 9])  # of few replicates and of enough for tables
@pytest.mark.parametrize("name", ["ucb", "ucb1", "private-ucb", "uniform", "lazy-dp-ts"])
def test_tasks_travel(name, block):
    """And make anew, in the other process, what only saves time."""
    of = {"n": 19, "horizon": 2000 if COMPILED else 30}
    assert_same(run_of(name, **of), run_of(name, **of, block=block, executor=_Backwards()))


@compiled
@pytest.mark.slow
def test_processes_give_the_same_bits():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        other = run_of("private-ucb", n=20, block=6, executor=pool)
    assert_same(run_of("private-ucb", n=20), other)


@every_policy
@pytest.mark.parametrize("reward", ["bernoulli", "gaussian"])
def test_means_of_each_replicate(name, reward):
    """Rows of means are those replicates' own: row r of the run is replicate r of a run with row r alone."""
    rows = np.array([[0.9, 0.2, 0.5], [0.1, 0.8, 0.5], [0.3, 0.3, 0.6], [0.9, 0.2, 0.5], [0.0, 1.0, 0.5]])
    run = run_of(name, means=rows, n=5, reward=reward)
    for r, row in enumerate(rows):
        alone = run_of(name, means=row, n=5, reward=reward)
        for field in ("reward_sum", "pulls", "regret"):
            assert getattr(run, field)[r].tobytes() == getattr(alone, field)[r].tobytes(), field
    assert run.bias()["mean"].tolist() == pytest.approx(rows.mean(axis=0).tolist())


@pytest.mark.parametrize("name", ["ucb", "private-ucb", "dp-klucb"])
def test_pieces_of_a_run(name, monkeypatch):
    """Returns to Python on the way, between which progress is told, change nothing."""
    whole, told = run_of(name, horizon=200, n=10, block=10), []
    monkeypatch.setattr(sys.modules["equinoise.bandits.simulate"], "_WORK_A_PIECE", 1)
    monkeypatch.setattr(replicates, "tick", lambda work=0.0: told.append(work))
    assert_same(whole, run_of(name, horizon=200, n=10, block=10))
    assert sum(told) == 2000 and len(told) > 3


def test_seeds_and_none():
    one, two = run_of("ucb", seed=5), run_of("ucb", seed=5)
    assert_same(one, two)
    assert (run_of("ucb", seed=6).reward_sum != one.reward_sum).any()
    fresh = run_of("ucb", seed=None)
    assert fresh.seed is None and (run_of("ucb", seed=None).reward_sum != fresh.reward_sum).any()


def test_a_shorter_run_is_the_start_of_a_longer_one():
    """ucb knows no horizon: its pulls after 40 rounds make its regret there."""
    long, short = run_of("ucb", horizon=60, n_checkpoints=60), run_of("ucb", horizon=40, n_checkpoints=1)
    np.testing.assert_allclose(long.regret[:, 39], short.regret[:, 0], rtol=1e-13)


def test_random_ties_by_default_only_where_the_index_is_clipped():
    assert run_of("dp-klucb").ties == "random" and run_of("ucb").ties == "first"
    first, other = run_of("ucb", ties="first", n=40), run_of("ucb", ties="random", n=40)
    assert (first.pulls != other.pulls).any() and other.ties == "random"
    turns = [run_of("uniform", ties=ties).pulls.tolist() for ties in ("first", "random")]
    assert turns[0] == turns[1]


# ----------------------------------------------------------------------------------------------------------
# Published and known figures
# ----------------------------------------------------------------------------------------------------------


def ladder(name, epsilon=None, *, n=10_000, **options):
    return simulate(name, LADDER, horizon=500, epsilon=epsilon, n_replicates=n, seed=1, **options)


@compiled
def test_the_first_experiment():
    """Twenty arms, 500 rounds, 10,000 runs: ucb is biased, private-ucb is not, at the price of its regret."""
    biased, private = ladder("ucb"), ladder("private-ucb", 0.05, width="published")
    assert abs(biased.mean_absolute_bias - 0.0408) < 0.002
    assert abs(biased.regret[:, -1].mean() / 102.0 - 1.0) < 0.02
    assert private.mean_absolute_bias < 0.0015
    frame = private.bias()
    assert ((frame["ci_low"] <= 0) & (frame["ci_high"] >= 0)).sum() >= 18
    assert (private.regret[:, -1] == 237.5).mean() > 0.9  # nearly always in turn
    assert ladder("private-ucb", 0.05).mean_absolute_bias < 0.0015


@compiled
def test_the_controls_show_that_the_width_is_the_cause():
    """At epsilon 400: (bias, regret). Means over 100,000 runs, of which the published ones are a sample."""
    known = {
        ("private-ucb", 400.0): (0.0032, 216.0),
        ("width-only", 400.0): (0.0032, 216.0),
        ("noise-only", 400.0): (0.0412, 102.0),
    }
    for (name, epsilon), (bias, regret) in known.items():
        run = ladder(name, epsilon, width="published", n=40_000)
        assert run.mean_absolute_bias == pytest.approx(bias, rel=0.1), name
        assert run.regret[:, -1].mean() == pytest.approx(regret, rel=0.01), name
    uniform = ladder("uniform")
    assert uniform.mean_absolute_bias < 0.0015 and uniform.regret[:, -1] == pytest.approx(237.5)


@compiled
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 0, 4, 2, 1]])
def test_reference_regret(order):
    """Regret after 100,000 rounds, wherever the best arm stands; 40 replicates are known to 6 for ucb1."""
    means = np.array(REFERENCE)[order]
    options = {"horizon": 100_000, "n_replicates": 40, "n_checkpoints": 1}
    many = {**options, "n_replicates": 1000}
    assert simulate("ucb1", means, **many).regret.mean() == pytest.approx(319.0, rel=0.05)
    assert simulate("uniform", means, **options).regret.tolist() == [[25000.0]] * 40
    closed_form = {1.0: 6555.0, 0.25: 15966.0, 0.1: 20842.0}  # of the counter's tail, which is wider
    binary = {**options, "counter": "binary"}
    own = {e: simulate("private-ucb", means, epsilon=e, **binary).regret.mean() for e in closed_form}
    assert all(own[e] < closed_form[e] for e in own)
    for epsilon, most in {1.0: 1000.0, 0.25: 3200.0, 0.1: 6900.0}.items():  # k-ary
        assert simulate("private-ucb", means, epsilon=epsilon, **options).regret.mean() < most
    wide = simulate("private-ucb", means, epsilon=1.0, width="published", **options)
    assert own[1.0] < 0.15 * wide.regret.mean() and wide.regret.mean() < 25000


@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if policy.private])
def test_bias_of_private_policies_is_within_their_bound(name):
    """|E mean - mu| <= tanh(epsilon/4) at most, here 0.025; five standard errors beside it."""
    n, horizon = (4000, 200) if COMPILED else (30, 30)
    run = simulate(name, MEANS, horizon=horizon, epsilon=0.1, n_replicates=n, seed=2)
    frame, bound = run.bias(), run.bias_bound
    assert bound.shape == (len(MEANS),) and bound.max() <= np.tanh(0.025)
    pulled = run.pulls.all(axis=0)  # an arm that some replicates never pull has no mean there
    excess = frame["bias"].abs() - bound - 5 * frame["stderr"]
    assert (excess[pulled] < 0).all() and pulled.any()


# ----------------------------------------------------------------------------------------------------------
# The result
# ----------------------------------------------------------------------------------------------------------


def a_result(reward_sum, pulls, means, **options):
    defaults = {
        "trials": np.array([4]),
        "regret": np.zeros((len(pulls), 1)),
        "policy": "ucb",
        "epsilon": None,
        "reward": "bernoulli",
        "sigma": None,
        "ties": "first",
        "options": {},
        "seed": 0,
    }
    return BanditRun(
        reward_sum=np.array(reward_sum, dtype=float),
        pulls=np.array(pulls),
        true_means=np.array(means, dtype=float),
        **{**defaults, **options},
    )


def test_bias_by_hand():
    run = a_result([[1.0, 3.0], [0.0, 2.0], [2.0, 1.0]], [[2, 4], [4, 4], [4, 2]], [0.5, 0.25])
    assert run.means.tolist() == [[0.5, 0.75], [0.0, 0.5], [0.5, 0.5]]
    frame = run.bias()
    assert frame.columns.tolist() == ["arm", "mean", "bias", "stderr", "ci_low", "ci_high"]
    assert frame["arm"].tolist() == [0, 1] and frame["mean"].tolist() == [0.5, 0.25]
    bias = [-1.0 / 6.0, 1.0 / 3.0]
    stderr = [
        np.std([0.0, -0.5, 0.0], ddof=1) / math.sqrt(3),
        np.std([0.5, 0.25, 0.25], ddof=1) / math.sqrt(3),
    ]
    np.testing.assert_allclose(frame["bias"], bias)
    np.testing.assert_allclose(frame["stderr"], stderr)
    np.testing.assert_allclose(frame["ci_high"] - frame["bias"], 1.96 * np.array(stderr))
    np.testing.assert_allclose(frame["ci_low"] + frame["ci_high"], 2 * np.array(bias))
    assert run.mean_absolute_bias == pytest.approx(0.25)
    wide = run.bias("hoeffding")
    np.testing.assert_allclose(wide["ci_high"] - wide["bias"], math.sqrt(math.log(40.0) / 6.0))
    np.testing.assert_allclose(wide["bias"], bias)


def test_one_replicate_and_arms_never_pulled():
    run = a_result([[1.0, 0.0, 3.0]], [[2, 0, 3]], [0.5, 0.5, 0.5])
    assert math.isnan(run.means[0, 1]) and run.means[0, 2] == 1.0
    frame = run.bias()
    assert frame["bias"].tolist()[0] == 0.0 and math.isnan(frame["bias"][1]) and frame["bias"][2] == 0.5
    assert frame["stderr"].isna().all() and frame["ci_low"].isna().all()
    assert run.bias("hoeffding")["ci_high"][2] == pytest.approx(0.5 + math.sqrt(math.log(40.0) / 2.0))
    some = a_result([[1.0, 0.0], [2.0, 1.0]], [[2, 0], [2, 2]], [0.5, 0.5])
    assert some.bias()["bias"].tolist() == [0.25, 0.0] and math.isnan(some.bias()["stderr"][1])
    two = a_result([[1.0], [0.0], [2.0]], [[2], [0], [2]], [0.5])  # means 0.5, none, 1
    assert two.bias()["bias"].tolist() == [0.25] and two.bias()["stderr"].tolist() == [pytest.approx(0.25)]


def test_bounds_on_the_bias():
    private = {"policy": "private-ucb", "means": [1.0, 0.5, 0.0]}
    bound = a_result(np.ones((2, 3)), np.ones((2, 3), int), epsilon=0.5, **private).bias_bound
    assert bound.tolist() == pytest.approx([0.0, math.tanh(0.25) / 2, 0.0])
    for epsilon in (5000.0, math.inf):
        most = a_result(np.ones((2, 3)), np.ones((2, 3), int), epsilon=epsilon, **private).bias_bound
        assert most.tolist() == [0.0, 0.5, 0.0]
    for name, policy in POLICIES.items():
        run = run_of(name, n=2, horizon=20)
        assert (run.bias_bound is not None) == policy.private
        assert run_of(name, n=2, horizon=20, reward="gaussian").bias_bound is None
    means = np.array([[0.2, 0.4], [0.4, 0.8]])
    rows = run_of("private-ucb", means=means, n=2)
    assert rows.bias_bound.tolist() == inference.bias_bound(rows.epsilon, means).mean(axis=0).tolist()


def test_frames_and_summary():
    run = run_of("ucb", n=3, n_checkpoints=2)
    frame = run.to_frame()
    assert frame.columns.tolist() == ["replicate", "arm", "pulls", "reward_sum", "mean"]
    assert len(frame) == 12 and frame["pulls"].sum() == 3 * HORIZON
    assert frame[frame["arm"] == 1]["mean"].tolist() == run.means[:, 1].tolist()
    regret = run.regret_frame()
    assert regret.columns.tolist() == ["replicate", "trials", "regret"] and len(regret) == 6
    summary = run.summary()
    assert summary["trials"].tolist() == run.trials.tolist()
    np.testing.assert_allclose(summary["mean"], run.regret.mean(axis=0))
    assert run.label == "ucb" and repr(run) == f"BanditRun(ucb, 3 replicates, {HORIZON} rounds)"
    assert run_of("dp-se", n=1).label == "dp-se, ε = 2"
    assert run_of("dp-se", n=1, epsilon=math.inf).label == "dp-se, no privacy"


def test_plot():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    ax = run_of("private-ucb", n=3).plot(Figure().subplots())
    assert ax.get_xlabel() and ax.get_ylabel()


def test_gaussian_rewards():
    """In turn: means are exactly normal, of standard deviation sigma / sqrt(n)."""
    n = 4000 if COMPILED else 200
    run = simulate("uniform", [0.5, -3.0], horizon=8, n_replicates=n, reward="gaussian", sigma=2.0, seed=1)
    error = (run.means - [0.5, -3.0]) / 1.0
    assert (np.abs(error.mean(axis=0)) < 5 / math.sqrt(n)).all()
    assert (np.abs(error.std(axis=0) - 1.0) < 5 / math.sqrt(2 * n)).all()
    exact = simulate("uniform", [0.5, -3.0], horizon=8, reward="gaussian", sigma=0.0)
    assert exact.means.tolist() == [[0.5, -3.0]] and exact.sigma == 0.0
    assert run_of("ucb").sigma is None
    with pytest.raises(ValueError, match="interval must be 'normal' for rewards that are not bounded"):
        run.bias("hoeffding")


@compiled
def test_options_of_policies():
    base = run_of("private-ucb", epsilon=1.0, n=40, horizon=200)
    assert base.options == {"width": "counter", "counter": "k-ary"}
    for options in ({"width": "published"}, {"counter": "binary"}, {"counter": "hybrid"}):
        other = run_of("private-ucb", epsilon=1.0, n=40, horizon=200, **options)
        assert other.options == {**base.options, **options} and (other.pulls != base.pulls).any()
    assert run_of("ucb", width="published", counter="hybrid").options == {}  # nothing to them
    assert_same(run_of("ucb"), run_of("ucb", epsilon=0.3, width="published"))
    raw = run_of("dp-klucb", clip_sums=False, n=40)
    assert raw.options == {"clip_sums": False}
    assert (raw.pulls != run_of("dp-klucb", n=40).pulls).any()


@pytest.mark.parametrize("epsilon", [1e-100, 1e-6, 1e6, math.inf])
@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if policy.needs_epsilon])
def test_extreme_epsilons(name, epsilon):
    for options in ({}, {"width": "published"}, {"counter": "binary"}, {"counter": "hybrid"}):
        run = run_of(name, epsilon=epsilon, n=2, horizon=40, **options)
        assert (run.pulls.sum(axis=1) == 40).all() and np.isfinite(run.reward_sum).all()


@pytest.mark.parametrize("n_arms", [1, 2, 3, 33])
def test_numbers_of_arms(n_arms):
    for name in POLICIES:
        run = run_of(name, means=np.linspace(0.0, 1.0, n_arms), horizon=n_arms + 3, n=2)
        assert (run.pulls.sum(axis=1) == n_arms + 3).all()
        # dp-se pulls an arm many times before the next; others draw their arms
        if name != "dp-se" and not naive_bandits.draws(name):
            assert (run.pulls > 0).all()


# ----------------------------------------------------------------------------------------------------------
# Bad input
# ----------------------------------------------------------------------------------------------------------

GOOD = {"policy": "private-ucb", "means": MEANS, "horizon": 10, "epsilon": 1.0}
BAD = [
    ({"policy": "annealing"}, ValueError, "policy must be one of 'ucb'"),
    ({"policy": 3}, TypeError, "policy must be one of 'ucb'"),
    ({"means": [0.5, 1.1]}, ValueError, "means must be at most 1, got 1.1 at index 1"),
    ({"means": [-0.1]}, ValueError, "means must be at least 0"),
    ({"means": [0.5, math.nan]}, ValueError, "means must be finite"),
    ({"means": []}, ValueError, r"means must have shape \(K,\) or \(n_replicates, K\)"),
    ({"means": 0.5}, ValueError, r"means must have shape \(K,\) or \(n_replicates, K\)"),
    ({"means": [[[0.5]]]}, ValueError, r"means must have shape \(K,\) or \(n_replicates, K\)"),
    ({"means": [[0.5, 0.2]] * 3, "n_replicates": 2}, ValueError, "means must have one row for each of the 2"),
    ({"means": ["a"]}, TypeError, "means must be an array of numbers"),
    ({"means": [[0.5], [0.2, 0.1]]}, TypeError, "means must be an array of numbers"),
    ({"means": [0.5, math.inf], "reward": "gaussian"}, ValueError, "means must be finite"),
    ({"horizon": 3}, ValueError, "horizon must be an integer from 4 to"),
    ({"horizon": 2**60}, ValueError, "horizon must be an integer from 4 to"),
    ({"horizon": 10.0}, TypeError, "horizon must be an integer"),
    ({"epsilon": None}, ValueError, "epsilon must be given for the policy 'private-ucb', got None"),
    ({"epsilon": 0.0}, ValueError, "epsilon must be a positive number"),
    ({"epsilon": math.nan}, ValueError, "epsilon must be a positive number"),
    ({"epsilon": 1e-101}, ValueError, r"epsilon must be a number in \[1e-100"),
    ({"epsilon": "1"}, TypeError, "epsilon must be a positive number"),
    ({"policy": "ucb", "epsilon": -1.0}, ValueError, "epsilon must be a positive number"),
    ({"n_replicates": 0}, ValueError, "n_replicates must be an integer from 1 to 1000000000"),
    ({"n_replicates": 10**13}, ValueError, "n_replicates must be an integer from 1 to"),
    ({"n_replicates": 10**9}, ValueError, "n_replicates must be one whose results fit into this machine's"),
    ({"seed": -1}, ValueError, "seed must be an integer of at least 0"),
    ({"seed": 1.5}, TypeError, "seed must be an integer"),
    ({"reward": "poisson"}, ValueError, "reward must be one of 'bernoulli', 'gaussian'"),
    ({"sigma": -1.0}, ValueError, "sigma must be a number in"),
    ({"sigma": math.inf}, ValueError, "sigma must be a number in"),
    ({"width": "wide"}, ValueError, "width must be one of 'counter', 'published'"),
    ({"counter": "tree"}, ValueError, "counter must be one of 'k-ary', 'binary', 'hybrid'"),
    ({"ties": "last"}, ValueError, "ties must be one of 'first', 'random'"),
    ({"n_checkpoints": 0}, ValueError, "n_checkpoints must be an integer from 1 to 10000000"),
    ({"block": 0}, ValueError, "block must be an integer of at least 1"),
    ({"executor": 3}, TypeError, "executor must be a concurrent.futures.Executor"),
    ({"progress": 1}, TypeError, "progress must be True or False"),
    ({"clip_sums": True}, TypeError, "'clip_sums' is no option of the policy 'private-ucb'"),
    ({"policy": "dp-klucb", "clip_sums": 1}, TypeError, "clip_sums must be True or False"),
    ({"epsilo": 1.0}, TypeError, "'epsilo' is no option of the policy"),
]


@pytest.mark.parametrize(("wrong", "error", "words"), BAD, ids=[str(sorted(case[0])) for case in BAD])
def test_bad_input_is_refused_before_any_work(wrong, error, words, monkeypatch):
    monkeypatch.setattr(replicates, "_run_blocks", lambda *a: pytest.fail("work began"))
    with pytest.raises(error, match=words):
        simulate(**{**GOOD, **wrong})


def test_bad_intervals():
    run = run_of("ucb", n=2)
    with pytest.raises(ValueError, match="interval must be one of 'normal', 'hoeffding'"):
        run.bias("bootstrap")


def test_memory_is_not_asked_where_no_system_tells(monkeypatch):
    def nothing(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", nothing)
    assert run_of("ucb", n=2).pulls.shape == (2, 4)
    with pytest.raises(ValueError, match="n_replicates must be one whose results fit"):
        simulate(**{**GOOD, "horizon": 1000, "n_checkpoints": 1000, "n_replicates": 10**9})


def test_inputs_stay_as_they_are():
    means = np.array(MEANS)
    run = simulate("ucb", means, horizon=10)
    means[0] = 0.0
    assert run.true_means[0] == MEANS[0] and not run.true_means.flags.writeable


def test_everything_public_is_there_and_nothing_else():
    assert (
        {row.live.name for row in POLICIES.values() if row.live} < set(bandits.__all__) <= set(dir(bandits))
    )
    for name in bandits.__all__:
        assert getattr(bandits, name) is not None
    assert callable(bandits.simulate) and callable(bandits.linear.simulate)
    with pytest.raises(AttributeError, match="has no attribute 'Simulate'"):
        _ = bandits.Simulate


def test_the_registry():
    for name, policy in POLICIES.items():
        assert policy.name == name and policy.summary and policy.source
        assert policy.needs_epsilon or not (policy.private or policy.needs_noise)
        for function in ("make_state", "choose", "update", "advance", "play"):
            assert callable(getattr(policy.kernels, function))
        assert policy.needs_noise or not policy.private
    names = ["ucb", "ucb1", "private-ucb", "dp-klucb", "dp-se", "adap-ucb", "lazy-dp-ts", "uniform", "greedy"]
    assert {*names, "width-only", "noise-only"} <= POLICIES.keys() == naive_bandits.TWINS.keys()
    assert runs.BanditRun is BanditRun
    named = [row.name for rows in groups().values() for row in rows]
    assert sorted(named) == sorted(POLICIES)


def test_resume_takes_more_replicates_whether_or_not_widths_are_tabulated(tmp_path):
    arguments = {"means": [0.5, 0.4], "horizon": 40, "epsilon": 1.0, "seed": 5}
    for policy in ("ucb", "private-ucb", "dp-klucb"):
        simulate(policy, **arguments, n_replicates=7, resume=tmp_path / policy)
        more = simulate(policy, **arguments, n_replicates=20, resume=tmp_path / policy)
        assert (more.regret == simulate(policy, **arguments, n_replicates=20).regret).all()
        with pytest.raises(ValueError, match=r"^resume must be a folder of this very run"):
            simulate(policy, **arguments | {"horizon": 41}, n_replicates=7, resume=tmp_path / policy)


def test_the_two_options_of_private_ucb_are_seen_in_the_signature():
    parameters = inspect.signature(simulate).parameters
    assert (parameters["width"].default, parameters["counter"].default) == ("counter", "k-ary")


@pytest.mark.compiled
def test_with_many_arms_ctrl_c_is_heard_as_soon_as_with_few(monkeypatch):
    """A piece of a run looks at so many arms at most, whether few or many; where it ends does not matter."""
    ticks = []
    monkeypatch.setattr(replicates, "tick", lambda work=0.0: ticks.append(work))
    means = np.linspace(0.0, 1.0, 6400)
    whole = simulate("ucb", means, horizon=10_000, n_replicates=2)
    assert sum(ticks) == 20_000 and max(ticks) * len(means) <= 32 * 10**6
    monkeypatch.setitem(simulate.__globals__, "_WORK_A_PIECE", 10**7)
    assert simulate("ucb", means, horizon=10_000, n_replicates=2).pulls.tolist() == whole.pulls.tolist()
    with pytest.raises(ValueError, match="n_replicates must be at most 50 of 20,000,000,000,000 trials"):
        simulate("ucb", means, horizon=10**11, n_replicates=51)
