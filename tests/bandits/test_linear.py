"""Linear bandits: against a plain-Python twin, the distributions of what is drawn, calibration of tests.

Statistics use fixed seeds and bounds of five standard errors or more, so that a right program passes all of
them but for one seed in a hundred thousand.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive_linear

from equinoise._random import fill_words, start_streams, uniform
from equinoise.bandits import linear
from equinoise.bandits.linear.arrays import fill_directions, fill_normals, words_of
from equinoise.bandits.linear.simulate import LinearRun, simulate
from equinoise.bandits.linear.task import lanes_of, noise_widths

COMPILED = not numba.config.DISABLE_JIT
PRIVATE = "private-oful"
ARRAYS = ("regret", "pulls", "theta", "theta_hat", "gram_inverse", "estimate")


def run_of(policy="oful", **options):
    given = {"n_arms": 3, "dimension": 2, "horizon": 20, "n_replicates": 4, "seed": 3, "n_checkpoints": 5}
    given |= {"epsilon": 2.0} if policy == PRIVATE else {}
    return simulate(policy, **(given | options))


def assert_same(one, two):
    assert one.trials.tolist() == two.trials.tolist()
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


# ----------------------------------------------------------------------------------------------------------
# Step by step against the plain-Python twin
# ----------------------------------------------------------------------------------------------------------


def random_instance(i):
    """Return (policy, options of simulate, whether contexts are given) of instance i."""
    rng = np.random.default_rng([81, i])
    policy = [*linear.POLICIES][i % 4]
    k, d, horizon = int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(1, 41))
    options = {
        "n_arms": k,
        "dimension": d,
        "horizon": horizon,
        "n_replicates": 2,
        "seed": int(rng.integers(10**6)),
        "ridge": float(rng.choice([0.1, 1.0, 5.0])),
        "delta": float(rng.choice([0.01, 0.05, 0.5])),
        "sigma": float(rng.choice([0.0, 0.3, 1.0])),
        "reward": str(rng.choice(["gaussian", "binary"])),
        "n_checkpoints": horizon,
    }
    if policy == PRIVATE:
        options["epsilon"] = float(rng.choice([0.5, 20.0, math.inf]))
        if rng.random() < 0.5:
            options["clip"] = (-0.5, 1.5)
    if rng.random() < 0.5:
        options["theta"] = rng.uniform(-0.4, 0.4, (k, d) if rng.random() < 0.5 else (2, k, d))
    if rng.random() < 0.5:
        options["contexts"] = rng.uniform(-0.4, 0.4, (horizon, k, d))
    return policy, options


def twin(policy, options, replicate):
    k, d, horizon, seed = (options[name] for name in ("n_arms", "dimension", "horizon", "seed"))
    binary = options["reward"] == "binary"
    sigma = 1.0 if binary else options["sigma"]
    theta = options.get("theta")
    if theta is None:
        theta = naive_linear.theta(seed, replicate, k, d)
    elif theta.ndim == 3:
        theta = theta[replicate]
    shown = options.get("contexts")
    l1 = math.sqrt(d) if shown is None else np.abs(shown).sum(axis=2).max()
    if shown is None:
        shown = naive_linear.contexts(seed, replicate, horizon, k, d)
    reach = 1.0 if binary else 1.0 + 3.0 * sigma
    return naive_linear.play(
        policy,
        theta,
        shown,
        naive_linear.words_of(seed, 0, replicate, naive_linear.REWARD, 2 * horizon),
        naive_linear.words_of(seed, 0, replicate, naive_linear.NOISE, d * horizon),
        ridge=options["ridge"],
        delta=options["delta"],
        sigma=sigma,
        binary=binary,
        epsilon=options.get("epsilon", math.inf),
        clip=options.get("clip", (-reach, reach)),
        l1=l1,
    )


@pytest.mark.parametrize("tenth", range(10))
def test_every_policy_is_its_plain_twin(tenth):
    """200 random instances of all policies: regret of every round, and all that is left at the end."""
    for i in range(tenth, 200 if COMPILED else 40, 10):
        policy, options = random_instance(i)
        run = simulate(policy, **options)
        for r in range(2):
            _, regret, pulls, theta_hat, inverse, estimate = twin(policy, options, r)
            where = f"instance {i}: {policy}, {options}"
            np.testing.assert_allclose(run.regret[r], regret, atol=1e-9, err_msg=where)
            assert run.pulls[r].tolist() == pulls.tolist(), where
            np.testing.assert_allclose(run.gram_inverse[r], inverse, atol=1e-9, err_msg=where)
            np.testing.assert_allclose(run.theta_hat[r], theta_hat, atol=1e-9, err_msg=where)
            np.testing.assert_allclose(run.estimate[r], estimate, rtol=1e-9, atol=1e-9, err_msg=where)


def test_twin_over_many_rounds():
    """Rank-one updates do not drift: 600 rounds against an inverse each round."""
    options = {
        "n_arms": 2, "dimension": 4, "horizon": 600 if COMPILED else 60, "n_replicates": 1, "seed": 11,
        "ridge": 1e-3, "delta": 0.05, "sigma": 0.5, "reward": "gaussian", "n_checkpoints": 600,
    }  # fmt: skip
    for policy in ("oful", PRIVATE):
        given = options | ({"epsilon": 30.0} if policy == PRIVATE else {})
        run = simulate(policy, **given)
        _, regret, pulls, theta_hat, inverse, _ = twin(policy, given, 0)
        np.testing.assert_allclose(run.regret[0], regret, atol=1e-8)
        assert run.pulls[0].tolist() == pulls.tolist()
        np.testing.assert_allclose(run.theta_hat[0], theta_hat, atol=1e-8)
        np.testing.assert_allclose(run.gram_inverse[0], inverse, rtol=1e-7, atol=1e-9)


def test_estimates_are_those_of_the_rewards():
    """Without noise the ridge estimate is (I - ridge V^-1) theta, whatever was played."""
    for policy in linear.POLICIES:
        run = run_of(policy, sigma=0.0, ridge=0.7, dimension=3)
        shrunk = run.theta - 0.7 * np.einsum("rkij,rkj->rki", run.gram_inverse, run.theta)
        np.testing.assert_allclose(run.theta_hat, shrunk, atol=1e-10)


# ----------------------------------------------------------------------------------------------------------
# What is drawn
# ----------------------------------------------------------------------------------------------------------


def drawn_directions(dimension, n, lanes):
    states = np.empty((4, lanes), dtype=np.uint64)
    start_streams(np.array([5, 6], dtype=np.uint64), 0, 0, np.uint64(8), states)
    out = np.empty((n * dimension, lanes))
    words = np.empty((words_of(n, dimension), lanes), dtype=np.uint64)
    fill_directions(states, words, np.empty(((dimension + 1) // 2 + 2, lanes)), dimension, out)
    return out.reshape(n, dimension, lanes).transpose(0, 2, 1).reshape(-1, dimension)


def test_directions_are_uniform_on_the_sphere():
    n = 400 if COMPILED else 40
    for dimension in (1, 2, 3, 4, 7):
        x = drawn_directions(dimension, n, 101)
        np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1.0, atol=1e-14)
        low = 1e-5
        for i in range(dimension):  # (1 + x_i)/2 is Beta((d-1)/2, (d-1)/2): uniform for d = 3
            if dimension > 1:
                half = (dimension - 1) / 2
                assert stats.kstest((1 + x[:, i]) / 2, stats.beta(half, half).cdf).pvalue > low
            else:
                assert stats.binomtest(int((x[:, 0] > 0).sum()), len(x)).pvalue > low
        spread = np.cov(x.T).reshape(dimension, dimension) - np.eye(dimension) / dimension
        assert np.abs(spread).max() < 6 / math.sqrt(len(x))
    angle = np.arctan2(*drawn_directions(2, n, 101).T)
    assert stats.kstest(angle / (2 * math.pi) + 0.5, "uniform").pvalue > low


def test_normals():
    rng = np.random.default_rng(9)
    n = 20_000 if COMPILED else 1000
    words = rng.integers(0, 2**64, (2, n), dtype=np.uint64)
    out = np.empty((2, n))
    fill_normals(words, out)
    for z in out:
        assert stats.kstest(z, "norm").pvalue > 1e-5
    assert abs(np.mean(out[0] * out[1])) < 6 / math.sqrt(n)
    assert abs(np.mean(out[0] ** 2 * out[1] ** 2) - 1) < 6 * 3 / math.sqrt(n)
    first = [naive_linear.normal_pair(int(words[0, i]), int(words[1, i])) for i in range(50)]
    np.testing.assert_allclose(out[:, :50].T, first, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("n", range(1, 10))
def test_words_are_those_of_the_stream(n):
    """By fours or one by one, in two calls: each lane's words in order."""
    key = np.random.SeedSequence(77).generate_state(2, np.uint64)
    states = np.empty((4, 3), dtype=np.uint64)
    start_streams(key, 1, 5, np.uint64(8), states)
    words = np.zeros((10, 3), dtype=np.uint64)
    fill_words(states, n, words)
    assert (words[n:] == 0).all()
    drawn = words[:n].tolist()
    fill_words(states, 10 - n, words)
    drawn += words[: 10 - n].tolist()
    for lane in range(3):
        assert [row[lane] for row in drawn] == naive_linear.words_of(77, 1, 5 + lane, 8, 10)


def test_the_ends_of_the_uniform():
    words = np.array([[0, 2**64 - 1], [0, 2**64 - 1]], dtype=np.uint64)
    assert uniform(np.uint64(0)) == 2.0**-53 and uniform(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53
    out = np.empty((2, 2))
    fill_normals(words, out)
    assert np.isfinite(out).all() and np.abs(out).max() < 8.6


def test_binary_rewards_have_the_mean():
    """One arm, one coordinate: b is the sum of y x, of mean theta x^2."""
    n = 4000 if COMPILED else 200
    run = simulate(
        "uniform", n_arms=1, dimension=1, horizon=10, theta=[[0.6]], reward="binary", n_replicates=n, seed=2,
        contexts=np.full((10, 1, 1), 0.5),
    )  # fmt: skip
    moment = run.theta_hat[:, 0, 0] / run.gram_inverse[:, 0, 0, 0]
    counts = np.rint(moment / 0.5).astype(int)
    np.testing.assert_allclose(counts * 0.5, moment, atol=1e-9)
    ups = int(((counts + 10) // 2).sum())
    assert stats.binomtest(ups, 10 * n, 0.65).pvalue > 1e-5


def test_policies_meet_the_same_contexts():
    """One arm leaves no choice: all policies see the same, and so their estimates agree."""
    runs = [run_of(policy, n_arms=1, horizon=30) for policy in linear.POLICIES]
    for run in runs[1:]:
        np.testing.assert_allclose(run.theta_hat, runs[0].theta_hat, atol=1e-12)
        assert run.theta.tobytes() == runs[0].theta.tobytes()


def test_drawn_coefficients():
    n = 2000 if COMPILED else 200
    theta = run_of("uniform", horizon=1, dimension=4, n_replicates=n).theta
    assert theta.shape == (n, 3, 4) and (theta[..., 0] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(theta, axis=2), 1.0, atol=1e-14)
    assert stats.kstest((theta[..., 1].ravel() + 1) / 2, "uniform").pvalue > 1e-5
    assert (run_of(dimension=1).theta == 0).all()
    few = run_of("greedy", horizon=9, dimension=4, n_replicates=2).theta
    assert few.tobytes() == theta[:2].tobytes()  # the same whatever is played


# ----------------------------------------------------------------------------------------------------------
# Calibration: experiment 3
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not COMPILED, reason="needs a few million rounds")
@pytest.mark.parametrize("policy", ["oful", "greedy", "uniform"])
def test_adaptivity_does_not_break_the_right_test(policy):
    """K = d = 5, T = 500, the arm pulled most: 5% of true nulls rejected, and 64 to 70% without the root."""
    n = 4000
    run = simulate(policy, n_arms=5, dimension=5, horizon=500, n_replicates=n, seed=1)
    arm = run.pulls.argmax(axis=1)
    estimate = run.theta_hat[np.arange(n), arm, 0] - run.theta[np.arange(n), arm, 0]
    variance = run.gram_inverse[np.arange(n), arm, 0, 0]
    z = estimate / np.sqrt(variance)
    assert 0.04 <= (2 * stats.norm.sf(np.abs(z)) < 0.05).mean() <= 0.06
    assert abs(z.mean()) < 5 / math.sqrt(n) and 0.93 < z.std() < 1.02  # the ridge shrinks a little
    assert 0.64 <= (2 * stats.norm.sf(np.abs(estimate / variance)) < 0.05).mean() <= 0.70
    assert (run.stderr[np.arange(n), arm, 0] == np.sqrt(variance)).all()


@pytest.mark.skipif(not COMPILED, reason="needs a few million rounds")
def test_it_learns():
    options = {"n_arms": 5, "dimension": 5, "horizon": 1000, "n_replicates": 300, "seed": 5}
    regret = {policy: run_of(policy, **options).regret[:, -1].mean() for policy in ("oful", "uniform")}
    assert regret["oful"] < 0.25 * regret["uniform"]
    epsilons = (math.inf, 200.0, 20.0, 0.2)
    at = [run_of(PRIVATE, epsilon=epsilon, **options).regret[:, -1].mean() for epsilon in epsilons]
    assert regret["oful"] * 0.8 < at[0] < at[1] < at[2] < at[3] < 1.1 * regret["uniform"]


# ----------------------------------------------------------------------------------------------------------
# Privacy
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [7, 8])
def test_noise_of_the_private_sums(horizon):
    """Rewards zero, one arm: V estimate is the counter's noise, popcount(T) draws of scale L s1/epsilon."""
    n = 4000 if COMPILED else 400
    run = simulate(
        PRIVATE, n_arms=1, dimension=3, horizon=horizon, theta=np.zeros((1, 3)), sigma=0.0, epsilon=0.5,
        clip=(-1.0, 3.0), n_replicates=n, seed=8,
    )  # fmt: skip
    noise = np.einsum("rij,rj->ri", np.linalg.inv(run.gram_inverse[:, 0]), run.estimate[:, 0])
    scale = (math.floor(math.log2(horizon)) + 1) * 4.0 * math.sqrt(3) / 0.5
    variance = 2 * horizon.bit_count() * scale**2
    for i in range(3):  # the kurtosis of such sums is at most 6
        assert abs(noise[:, i].var() / variance - 1) < 6 * math.sqrt(5 / n)
        assert abs(noise[:, i].mean()) < 6 * math.sqrt(variance / n)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 6 / math.sqrt(n)
    if horizon == 8:  # a single draw
        assert stats.kstest(noise[:, 0] / scale, "laplace").pvalue > 1e-5
    assert (run.theta_hat == 0).all()  # what the analyst computes has no noise


def test_noise_shrinks_with_epsilon_and_grows_with_contexts():
    common = {"n_arms": 1, "dimension": 2, "horizon": 1, "sigma": 0.0, "theta": [[0.0, 0.0]], "seed": 4}
    shown = np.array([[[0.6, 0.2]]])

    def noise(**options):
        run = simulate(
            PRIVATE, **(common | {"contexts": shown, "epsilon": 1.0, "clip": (0.0, 1.0)} | options)
        )
        return np.linalg.solve(run.gram_inverse[0, 0], run.estimate[0, 0])

    base = noise()
    np.testing.assert_allclose(noise(epsilon=4.0), base / 4, rtol=1e-9)
    np.testing.assert_allclose(noise(clip=(-1.0, 2.0)), base * 3, rtol=1e-9)
    np.testing.assert_allclose(noise(contexts=2 * shown), base * 2, rtol=1e-9)  # L1 norm 1.6, not 0.8
    np.testing.assert_allclose(noise(contexts=[[[-0.8, 0.0]]]), base, rtol=1e-9)
    assert (noise(epsilon=math.inf) == 0).all()


def test_rewards_are_clipped_for_the_private_sums_alone():
    """One context of length one, theta far outside: the private sum sees at most `high`."""
    options = {"theta": [[50.0]], "sigma": 0.0, "contexts": np.ones((6, 1, 1)), "clip": (-2.0, 3.0)}
    run = run_of(PRIVATE, n_arms=1, dimension=1, horizon=6, epsilon=math.inf, **options)
    np.testing.assert_allclose(run.estimate, 6 * 3.0 / 7)
    np.testing.assert_allclose(run.theta_hat, 6 * 50.0 / 7)


def test_what_is_played_depends_on_rewards_through_noise_only_in_law():
    """Noise so large that rewards drown: two worlds with opposite coefficients play alike."""
    options = {"horizon": 12, "epsilon": 1e-9, "n_replicates": 50, "contexts": np.ones((12, 3, 2)) * 0.5}
    one = run_of(PRIVATE, theta=np.full((3, 2), 0.5), **options)
    two = run_of(PRIVATE, theta=np.full((3, 2), -0.5), **options)
    assert one.pulls.tolist() == two.pulls.tolist()
    assert one.theta_hat.tolist() != two.theta_hat.tolist()


def test_arms_never_played_come_first():
    run = run_of(PRIVATE, n_arms=6, horizon=6, n_replicates=20, epsilon=0.1)
    assert (run.pulls == 1).all()


@pytest.mark.parametrize(("horizon", "draws"), [(1, 1), (8, 4), (13, 4), (1000, 10)])
def test_noise_widths_hold(horizon, draws):
    widths = noise_widths(horizon, 2.5, 0.01)
    assert widths[0] == 0 and widths.shape == (horizon + 1,)
    most = max(n.bit_count() for n in range(horizon + 1))
    assert most <= draws
    for n in range(1, horizon + 1):
        expected = naive_linear.tail(n.bit_count(), 2.5, 0.01)
        assert widths[n] == pytest.approx(expected, rel=1e-6)
    noise = np.random.default_rng(1).laplace(scale=2.5, size=(20_000, most)).sum(axis=1)
    assert (np.abs(noise) > widths.max()).mean() < 0.01


# ----------------------------------------------------------------------------------------------------------
# The same bits whatever the blocks and executors
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", linear.POLICIES)
def test_bits_do_not_depend_on_blocks(policy):
    n = 300 if COMPILED else 20  # more than one set of lanes
    options = {"n_replicates": n, "n_arms": 4, "dimension": 3, "horizon": 33}
    whole = run_of(policy, **options)
    for block in (7, 2 * n // 3, n):
        assert_same(whole, run_of(policy, **options, block=block))
    few = run_of(policy, **(options | {"n_replicates": 3}))
    for name in ARRAYS:
        assert getattr(few, name).tobytes() == getattr(whole, name)[:3].tobytes(), name
    more = run_of(policy, **(options | {"n_checkpoints": 33}))
    assert more.regret[:, whole.trials - 1].tobytes() == whole.regret.tobytes()


def test_bits_do_not_depend_on_the_executor():
    options = {
        "n_replicates": 9,
        "block": 2,
        "contexts": np.random.default_rng(0).normal(size=(20, 3, 2)) / 3,
    }
    for policy in ("oful", PRIVATE):
        here = run_of(policy, **options)
        with ThreadPoolExecutor(2) as pool:
            assert_same(here, run_of(policy, executor=pool, **options))
    with ProcessPoolExecutor(1) as pool:
        assert_same(here, run_of(policy, executor=pool, **options))
    with OneByOne() as pool:
        assert_same(here, run_of(policy, executor=pool, **options))


class OneByOne(Executor):
    """Runs what it is given at once, with arrays that cannot be written to, as some clusters do."""

    def submit(self, function, /, *args, **kwargs):
        from concurrent.futures import Future

        for part in function.args[0].plan:
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        done = Future()
        done.set_result(function(*args, **kwargs))
        return done


def test_a_run_goes_on_from_kept_blocks(tmp_path):
    for i, options in enumerate(({}, {"theta": np.eye(3, 2)})):
        folder = tmp_path / str(i)
        few = run_of("oful", resume=folder, block=2, n_replicates=4, **options)
        more = run_of("oful", resume=folder, block=2, n_replicates=6, **options)
        assert_same(more, run_of("oful", n_replicates=6, **options))
        assert few.regret.tobytes() == more.regret[:4].tobytes()
        with pytest.raises(ValueError, match="resume must be a folder of this very run"):
            run_of("oful", resume=folder, ridge=2.0, **options)


def test_seeds():
    assert run_of(seed=1).regret.tolist() != run_of(seed=2).regret.tolist()
    assert run_of(seed=None).regret.tolist() != run_of(seed=None).regret.tolist()


def test_lanes():
    assert lanes_of(5, 5) == 128 and 16 < lanes_of(20, 20) < 128 and lanes_of(100, 100) == 16


def test_what_is_given_is_kept_and_left_alone():
    shown = np.random.default_rng(0).normal(size=(20, 3, 2))
    shown.flags.writeable = False
    theta = np.full((3, 2), 0.25)
    run = run_of("oful", contexts=shown, theta=theta)
    theta[:] = 9.0
    assert (run.theta == 0.25).all() and run.theta.shape == (3, 2)
    each = np.random.default_rng(1).normal(size=(4, 3, 2))
    assert (run_of("oful", theta=each).theta == each).all()
    one = run_of("oful", contexts=shown, theta=each[2], n_replicates=3)
    two = run_of("oful", contexts=shown, theta=each)
    assert one.pulls[2].tolist() == two.pulls[2].tolist()


# ----------------------------------------------------------------------------------------------------------
# Results
# ----------------------------------------------------------------------------------------------------------


def test_frames():
    run = run_of("oful")
    assert isinstance(run, LinearRun)
    assert repr(run) == f"LinearRun(oful, {len(run.regret)} replicates, {run.trials[-1]} rounds)"
    frame = run.to_frame()
    assert list(frame) == ["replicate", "trials", "regret"] and len(frame) == 20
    assert frame.regret.tolist() == run.regret.ravel().tolist()
    table = run.coefficients()
    assert list(table) == [
        "replicate", "arm", "coordinate", "pulls", "theta", "theta_hat", "stderr"
    ]  # fmt: skip
    row = table[(table.replicate == 2) & (table.arm == 1) & (table.coordinate == 1)].iloc[0]
    assert row.pulls == run.pulls[2, 1] and row.theta == run.theta[2, 1, 1]
    assert row.theta_hat == run.theta_hat[2, 1, 1]
    assert row.stderr == math.sqrt(run.gram_inverse[2, 1, 1, 1])
    given = run_of("oful", theta=np.eye(3, 2))
    assert given.coefficients().theta.tolist() == [1, 0, 0, 1, 0, 0] * 4
    summary = run.summary()
    assert summary["mean"].iloc[-1] == pytest.approx(run.regret[:, -1].mean())
    assert (run.pulls.sum(axis=1) == 20).all() and run.trials.tolist() == [4, 8, 12, 16, 20]
    assert (np.diff(run.regret) >= 0).all()


def test_standard_errors_know_sigma():
    run = run_of("uniform", sigma=0.5)
    assert run.stderr[0, 0, 0] == 0.5 * math.sqrt(run.gram_inverse[0, 0, 0, 0]) and run.sigma == 0.5
    assert run_of("uniform", reward="binary", sigma=0.5).sigma == 1.0


def test_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert run_of(PRIVATE).plot(ax) is ax
    assert "ε = 2" in ax.get_legend_handles_labels()[1][0]
    assert run_of("oful").label == "oful"
    assert run_of(PRIVATE, epsilon=math.inf).label == f"{PRIVATE}, no privacy"


# ----------------------------------------------------------------------------------------------------------
# Bad input
# ----------------------------------------------------------------------------------------------------------

GOOD = {"policy": PRIVATE, "n_arms": 3, "dimension": 2, "horizon": 4, "epsilon": 1.0}
NO_COUNT = (0, -1, 2.0, "3", None, True, math.nan, [3])
BAD = {
    "policy": ("OFUL", "ucb", None, 3, ["oful"]),
    "n_arms": NO_COUNT,
    "dimension": NO_COUNT,
    "horizon": (*NO_COUNT, 10**8 + 1),
    "theta": (
        [[1.0, 2.0]], np.zeros(3), np.zeros((2, 3, 2)), np.full((3, 2), math.nan), np.full((3, 2), math.inf),
        "null", np.full((3, 2), 1e7), np.zeros((3, 2), complex), [[1, 2], [3]],
    ),
    "contexts": (
        "cube", None, 3, np.zeros((4, 2, 3)), np.zeros((3, 3, 2)), np.full((4, 3, 2), math.nan),
        np.full((4, 3, 2), 1e9),
    ),
    "epsilon": (0, -1.0, math.nan, "1", None, True, 1e-200),
    "n_replicates": NO_COUNT,
    "seed": (-1, 0.5, "0"),
    "ridge": (0.0, -1.0, math.nan, math.inf, "1", None, 1e-11),
    "delta": (0.0, 1e-310, 1.0, -1, 2, math.nan, None),
    "sigma": (-1.0, math.nan, math.inf, "1", None, 1e7),
    "reward": ("normal", None, 1),
    "clip": ((1.0, 0.0), (0.0, 0.0), (0.0,), 3.0, (0.0, math.inf), (math.nan, 1.0), "ab", (0, 1, 2)),
    "n_checkpoints": NO_COUNT,
    "block": (0, 1.5),
    "executor": (3,),
    "progress": (None, 2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_input(name, value):
    options = {**GOOD, name: value}
    with pytest.raises((TypeError, ValueError), match=name):
        simulate(options.pop("policy"), **options)


@pytest.mark.parametrize("policy", ["oful", "greedy", "uniform"])
def test_what_belongs_to_the_private_policy_is_ignored_by_others(policy):
    plain, given = run_of(policy), run_of(policy, epsilon=0.5, clip=(0.0, 1.0))
    assert_same(plain, given)
    assert given.epsilon is None and given.label == policy
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        run_of(policy, epsilon=-1.0)


def test_results_that_cannot_be_held_are_refused():
    with pytest.raises(ValueError, match="n_replicates must be one whose results fit"):
        run_of("oful", n_replicates=10**9)
    with pytest.raises(ValueError, match="n_arms times dimension squared must be at most 134217728"):
        run_of("oful", n_arms=10**5, dimension=10**5)


def test_ridge_that_would_lose_digits_is_refused():
    with pytest.raises(ValueError, match="ridge must be at least"):
        run_of("oful", contexts=np.full((20, 3, 2), 1e4), ridge=1e-3)


def test_binary_means_outside_are_refused():
    for options in ({"theta": np.full((3, 2), 0.8)}, {"contexts": np.full((20, 3, 2), 0.9)}):
        with pytest.raises(ValueError, match="reward can be 'binary' only where"):
            run_of("oful", reward="binary", **options)
