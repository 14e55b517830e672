"""Tableau, the two forms of playing on it, and the replay of logs.

Statistics use fixed seeds and bounds of five standard errors or more.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests import naive_bandits

import equinoise
from equinoise.bandits import POLICIES, report, simulate
from equinoise.bandits.replay.tableau import History, Replay, interact, replay, tableau

COMPILED = not numba.config.DISABLE_JIT
MEANS = [0.9, 0.6, 0.5, 0.2]
HORIZON = 400 if COMPILED else 60
policies = pytest.mark.parametrize("policy", POLICIES)


def epsilon_of(policy, epsilon=1.0):
    return epsilon if POLICIES[policy].needs_epsilon else None


def variants(policy):
    """Options that change what is played."""
    yield {}
    yield {"ties": "random"}
    if "counter" in POLICIES[policy].options:
        yield {"counter": "hybrid", "ties": "random"}
        yield {"counter": "binary"}
    if "width" in POLICIES[policy].options:
        yield {"width": "published"}
    if "clip_sums" in POLICIES[policy].options:
        yield {"clip_sums": False}
    if "draws" in POLICIES[policy].options:
        yield {"floor": 0.3, "draws": 9, "batch": 7}
    if "drawn" in POLICIES[policy].options:
        yield {"drawn": True}


# ----------------------------------------------------------------------------------------------------------
# The tableau
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicate", [0, 3, 10**6])
def test_a_tableau_is_the_tape_of_its_replicate(replicate):
    expected, _, _ = naive_bandits.tape(5, replicate, 50, MEANS)
    assert tableau(MEANS, 50, seed=5, replicate=replicate).tolist() == expected
    expected, _, _ = naive_bandits.tape(5, replicate, 50, MEANS, sigma=0.7)
    drawn = tableau(MEANS, 50, seed=5, replicate=replicate, reward="gaussian", sigma=0.7)
    np.testing.assert_allclose(drawn, expected, rtol=1e-9, atol=1e-12)


def test_longer_tableaus_begin_alike():
    assert (tableau(MEANS, 100)[:37] == tableau(MEANS, 37)).all()
    assert (tableau(MEANS, 100) != tableau(MEANS, 100, seed=1)).any()
    assert (tableau(MEANS, 200, seed=None) != tableau(MEANS, 200, seed=None)).any()


def test_means_of_a_tableau():
    n = 40_000 if COMPILED else 2000
    binary = tableau([0.0, 0.3, 0.7, 1.0], n)
    assert set(np.unique(binary)) == {0.0, 1.0}
    assert binary[:, 0].max() == 0 and binary[:, 3].min() == 1
    assert np.abs(binary.mean(axis=0) - [0.0, 0.3, 0.7, 1.0]).max() < 5 * 0.5 / math.sqrt(n)
    normal = tableau([-2.0, 5.0], n, reward="gaussian", sigma=3.0)
    assert stats.kstest((normal[:, 0] + 2) / 3, "norm").pvalue > 1e-5
    np.testing.assert_allclose(normal[:, 1] - normal[:, 0], 7.0, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------
# Claim 1: online and query form have one history
# ----------------------------------------------------------------------------------------------------------


@policies
@pytest.mark.parametrize("epsilon", [0.1, 3.0, math.inf])
def test_online_and_query_form_have_the_same_history(policy, epsilon):
    """On the tableau of each replicate, under every policy and option; and simulate has it too."""
    for options in variants(policy):
        common = {"epsilon": epsilon_of(policy, epsilon), "seed": 9, **options}
        run = simulate(policy, MEANS, horizon=HORIZON, n_replicates=3, **common)
        for r in range(3):
            table = tableau(MEANS, HORIZON, seed=9, replicate=r)
            asked = interact(policy, table, replicate=r, **common)
            online = interact(policy, table, replicate=r, form="online", **common)
            assert asked.arms.tolist() == online.arms.tolist(), options
            assert asked.rewards.tobytes() == online.rewards.tobytes()
            assert run.pulls[r].tolist() == asked.pulls.tolist(), options
            sums = np.bincount(asked.arms, weights=asked.rewards, minlength=4)
            np.testing.assert_allclose(run.reward_sum[r], sums, rtol=1e-12)


@policies
def test_the_same_with_gaussian_rewards(policy):
    common = {"epsilon": epsilon_of(policy), "seed": 4}
    run = simulate(policy, MEANS, horizon=HORIZON, reward="gaussian", sigma=0.5, **common)
    table = tableau(MEANS, HORIZON, seed=4, reward="gaussian", sigma=0.5)
    for form in ("query", "online"):
        shown = interact(policy, table, form=form, **common)
        assert run.pulls[0].tolist() == shown.pulls.tolist()
        np.testing.assert_allclose(run.reward_sum[0], shown.pulls * shown.means, rtol=1e-9)


@policies
@settings(max_examples=25 if COMPILED else 3)
@given(data=st.data())
def test_any_tableau_has_one_history(policy, data):
    n_arms = data.draw(st.integers(1, 6))
    rows = data.draw(st.integers(n_arms, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = rng.choice([0.0, 0.25, 1.0], (rows, n_arms)) if rng.random() < 0.5 else rng.random((rows, n_arms))
    common = {"epsilon": epsilon_of(policy, float(rng.choice([0.1, 1.0, 10.0]))), "seed": 3}
    ties = str(rng.choice(["first", "random"]))
    asked = interact(policy, table, ties=ties, **common)
    online = interact(policy, table, ties=ties, form="online", **common)
    assert asked.arms.tolist() == online.arms.tolist()
    assert (asked.rewards == table[np.arange(rows), asked.arms]).all()


@policies
def test_entries_that_are_not_asked_for_do_not_matter(policy):
    """The query form sees nothing but its answers: other entries may be anything."""
    table = tableau(MEANS, HORIZON, seed=2)
    common = {"epsilon": epsilon_of(policy), "seed": 2}
    asked = interact(policy, table, **common)
    other = np.full(table.shape, -7.0)
    rounds = np.arange(HORIZON)
    other[rounds, asked.arms] = table[rounds, asked.arms]
    for form in ("query", "online"):
        assert interact(policy, other, form=form, **common).arms.tolist() == asked.arms.tolist()


@policies
def test_interact_plays_the_plain_policy(policy):
    table, noise, ties = naive_bandits.tape(6, 2, 150, MEANS)
    own = naive_bandits.own_words(6, 2)
    plain = naive_bandits.make(policy, 4, 150, 2.0, ties=POLICIES[policy].ties, own=own)
    expected = naive_bandits.play(plain, table, noise, ties)
    shown = interact(policy, table, epsilon=epsilon_of(policy, 2.0), seed=6, replicate=2)
    assert shown.arms.tolist() == expected


def test_frames_say_what_made_them():
    log = pd.DataFrame({"arm": list("abba"), "reward": [1, 0, 1, 0]})
    for policy in ("private-ucb", "uniform", "epsilon-greedy"):
        shown = replay(policy, log, epsilon=2)
        frames = interact(policy, np.eye(3), epsilon=2).to_frame(), shown.to_frame(), shown.summary()
        epsilon = 2.0 if policy == "private-ucb" else None
        for frame in frames:
            made = {"policy": policy, "epsilon": epsilon, "seed": 0, "version": equinoise.__version__}
            assert frame.attrs == made


@pytest.mark.parametrize("seed", [7, None])
def test_frames_of_histories_say_their_seed(seed):
    log = pd.DataFrame({"arm": [0, 1] * 20, "reward": [0.0, 1.0] * 20})
    shown = replay("ucb", log, seed=seed)
    for frame in (
        interact("ucb", tableau(MEANS, 9), seed=seed).to_frame(),
        shown.to_frame(),
        shown.summary(),
    ):
        assert frame.attrs["seed"] == seed


def test_long_tableaus_draw_noise_again():
    """Past the chunk of rounds whose noise is drawn at once."""
    table = tableau(MEANS, 700, seed=1)
    run = simulate("private-ucb", MEANS, horizon=700, epsilon=2.0, seed=1, ties="random")
    for form in ("query", "online"):
        shown = interact("private-ucb", table, epsilon=2.0, seed=1, ties="random", form=form)
        assert shown.pulls.tolist() == run.pulls[0].tolist()


def test_histories():
    table = tableau(MEANS, 30)
    shown = interact("ucb", table)
    assert isinstance(shown, History) and shown.policy == "ucb" and shown.epsilon is None
    assert shown.pulls.sum() == 30 and shown.arms.dtype == np.int64
    for k in range(4):
        assert shown.means[k] == pytest.approx(shown.rewards[shown.arms == k].mean())
    frame = shown.to_frame()
    assert list(frame) == ["round", "arm", "reward"] and frame.arm.tolist() == shown.arms.tolist()
    assert interact("dp-klucb", table, epsilon=2).epsilon == 2.0


# ----------------------------------------------------------------------------------------------------------
# Replay
# ----------------------------------------------------------------------------------------------------------


def a_log(n, n_arms=3, seed=0, shares=None, means=(0.8, 0.5, 0.3)):
    rng = np.random.default_rng([71, seed])
    arms = rng.choice(n_arms, n, p=shares)
    return pd.DataFrame({"arm": arms, "reward": (rng.random(n) < np.array(means)[arms]).astype(float)})


def walk_by_hand(log, policy, epsilon, seed, replicate=0):
    """Row by row, a twin of the policy that is asked anew at each: rows used."""
    own = naive_bandits.own_words(seed, replicate)
    plain = naive_bandits.make(policy, 3, len(log), epsilon, ties=POLICIES[policy].ties, own=own)
    _, noise, ties = naive_bandits.tape(seed, replicate, len(log), [0.5])
    used = []
    for row, (arm, reward) in enumerate(zip(log.arm, log.reward, strict=True)):
        t = len(used)
        if plain.choose(t + 1, ties[t]) == arm:
            plain.update(t + 1, arm, reward, noise[t])
            used.append(row)
    return used


@pytest.mark.parametrize("policy", ["ucb", "greedy", "uniform", "private-ucb", "adap-ucb"])
def test_replay_uses_the_rows_that_the_policy_would_have_chosen(policy):
    log = a_log(200)
    shown = replay(policy, log, epsilon=epsilon_of(policy), seed=8, replicate=1)
    assert isinstance(shown, Replay)
    assert shown.rows.tolist() == walk_by_hand(log, policy, 1.0, 8, 1)
    assert (log.arm.to_numpy()[shown.rows] == shown.arms).all()
    assert (log.reward.to_numpy()[shown.rows] == shown.rewards).all()
    assert shown.n_rows == 200 and shown.n_used == len(shown.rows) == shown.pulls.sum()


@policies
def test_replay_of_a_tableau(policy):
    """A log with all arms in each round, one of which is the policy's: the replay is the history."""
    table = tableau(MEANS, HORIZON, seed=3)
    history = interact(policy, table, epsilon=epsilon_of(policy), seed=3)
    log = pd.DataFrame({"arm": history.arms, "reward": history.rewards})
    shown = replay(
        policy, log, epsilon=epsilon_of(policy), seed=3, propensity=pd.Series(1 / 4, range(4)).to_dict()
    )
    assert shown.rows.tolist() == list(range(HORIZON))
    assert shown.means.tolist() == history.means.tolist() and shown.policy == policy


def test_replay_is_distributed_as_play():
    """Mean reward of rounds and pulls of UCB: on uniformly drawn logs as in the simulation."""
    n = 400 if COMPILED else 40
    run = simulate("ucb", [0.8, 0.5, 0.3], horizon=50, n_replicates=4000 if COMPILED else 400)
    pulls, sums = [], []
    for i in range(n):
        shown = replay("ucb", a_log(400, seed=i), horizon=50)
        assert shown.n_used == 50
        pulls.append(shown.pulls)
        sums.append(np.bincount(shown.arms, weights=shown.rewards, minlength=3))
    for ours, theirs in ((np.array(pulls), run.pulls), (np.array(sums), run.reward_sum)):
        error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
        assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 5 * error).all()


SHARES = [0.6, 0.3, 0.1]


@pytest.mark.parametrize("kind", ["mapping", "column"])
def test_unequal_propensities_are_thinned_away(kind):
    """Whatever is asked for, a row serves with probability c; kept rows are as those of a uniform log."""
    log = a_log(60_000 if COMPILED else 6000, shares=SHARES, means=(0.5, 0.5, 0.5))
    given = dict(enumerate(SHARES))
    if kind == "column":
        log["p"] = np.array(SHARES)[log.arm]
        given = "p"
    shown = replay("uniform", log, propensity=given, seed=1, horizon=10**6)
    gaps = np.diff(shown.rows)  # geometric of parameter c = 0.1, whatever arm was waited for
    assert abs(gaps.mean() - 10.0) < 5 * math.sqrt(90 / len(gaps))
    for arm in range(3):
        waits = gaps[shown.arms[1:] == arm]
        assert abs(waits.mean() - 10.0) < 5 * math.sqrt(90 / len(waits))
    rows = replay("uniform", log, propensity=given, seed=1, replicate=1, horizon=10**6).rows
    assert rows.tolist() != shown.rows.tolist()


def test_thinning_and_order_are_independent():
    """Were they drawn from the same words, the kept rows of a frequent arm would all come first."""
    n = 6000
    log = a_log(n, shares=SHARES)
    shown = replay("uniform", log, propensity=dict(enumerate(SHARES)), shuffle=True)
    assert abs(shown.n_used - 0.1 * n) < 5 * math.sqrt(0.09 * n)


def test_unequal_logs_are_refused_without_propensities():
    with pytest.raises(ValueError, match="propensity must be given for a log whose arms were not drawn with"):
        replay("ucb", a_log(600, shares=SHARES))
    refused = sum(refuses(a_log(90, seed=i)) for i in range(300))
    assert refused == 0  # the level is one in a million


def test_a_log_is_unequal_at_one_in_a_million():
    """Chi square of one degree of freedom is above 23.93 so often: 2 d^2/500 of arms 500 + d and 500 - d."""
    logs = [pd.DataFrame({"arm": np.arange(1000) < 500 + d, "reward": 1.0}) for d in (77, 78)]
    assert [refuses(log) for log in logs] == [False, True]


@pytest.mark.parametrize("total", [0.9, 1.1, 1.0 - 2e-6])
def test_propensities_must_sum_to_one(total):
    given = {0: 0.5, 1: 0.25, 2: total - 0.75}
    with pytest.raises(ValueError, match="propensity must sum to 1 over the arms"):
        replay("uniform", a_log(90), propensity=given)


def refuses(log):
    try:
        replay("uniform", log, horizon=1)
    except ValueError:
        return True
    return False


def test_scales_and_labels():
    """Rewards in other units and named arms are the same replay."""
    log = a_log(300)
    plain = replay("ucb", log)
    named = pd.DataFrame({"drug": log.arm.map({0: "a", 1: "b", 2: "c"}), "gain": 40.0 * log.reward - 10.0})
    shown = replay("ucb", named, arm="drug", reward="gain", bounds=(-10, 30))
    assert shown.rows.tolist() == plain.rows.tolist() and shown.labels == ("a", "b", "c")
    np.testing.assert_allclose(shown.means, 40.0 * plain.means - 10.0)
    assert shown.summary()["mean"].tolist() == shown.means.tolist()
    assert repr(shown) == f"Replay(ucb, {shown.n_used} rounds, 3 arms)"
    frame = shown.to_frame()
    assert list(frame) == ["round", "row", "arm", "reward"]
    assert frame.arm.tolist() == named.drug.iloc[shown.rows].tolist()
    counts = named.groupby("drug").gain.agg(["size", "mean"])
    assert shown.logged.tolist() == counts["size"].tolist()
    np.testing.assert_allclose(shown.logged_means, counts["mean"])


KINDS = ["int8", "uint8", "int64", "float16", "float32", "bool", "Int64", "boolean", "Float64"]


@pytest.mark.parametrize("dtype", [*KINDS, "category", "object"])
def test_kinds_of_numbers(dtype):
    """Rewards and propensities of logs, entries of tables, in frames and lists."""
    log, ones = a_log(100), np.ones(100)
    other = log.assign(reward=log.reward.astype(int).astype(dtype), p=pd.Series(ones).astype(dtype))
    expected = replay("ucb", log)
    for column in (None, "p"):
        shown = replay("ucb", other, propensity=column)
        assert shown.rows.tolist() == expected.rows.tolist()
        assert shown.rewards.tolist() == expected.rewards.tolist()
    assert report(other).verdict == report(log).verdict
    table = pd.DataFrame(tableau(MEANS, 60))
    assert interact("ucb", table).arms.tolist() == interact("ucb", table.to_numpy()).arms.tolist()
    as_lists = table.astype(bool).to_numpy().tolist()
    for kind in (table.astype(int).astype(dtype), as_lists, table.astype(bool).astype(object)):
        assert interact("ucb", kind).arms.tolist() == interact("ucb", table).arms.tolist()


def test_a_log_with_the_probability_of_what_was_drawn_alone():
    """Thompson's own log, whose probabilities change: thinned to equal ones, replay has the arms' means."""
    n, means = (4000 if COMPILED else 300), [0.7, 0.5, 0.4]
    run = simulate("thompson", means, horizon=n, floor=0.6, seed=2, history=True)
    p = np.take_along_axis(run.propensities[0], run.arms[0][:, None], 1)[:, 0]
    log = pd.DataFrame({"arm": run.arms[0], "reward": run.rewards[0], "p": p})
    shown = replay("uniform", log, propensity="p")
    expected = (p.min() / p).sum() / 3
    assert abs(shown.n_used - expected) < 5 * math.sqrt(expected) + 3
    assert np.abs(shown.means - means).max() < 5 * 0.5 / math.sqrt(shown.pulls.min())


def test_few_rows_are_warned_of():
    log = a_log(600, shares=[0.96, 0.02, 0.02], seed=1)
    shares = {0: 0.96, 1: 0.02, 2: 0.02}
    words = r"replay used \d+ of 600 rows: about 1\d were expected, one in 3 of those kept"
    with pytest.warns(UserWarning, match=words) as caught:
        replay("ucb", log, propensity=shares)
    assert caught[0].filename == __file__
    replay("ucb", log, propensity=shares, horizon=1)  # all that was asked for


def test_kinds_of_labels():
    log = a_log(120)
    rows = replay("ucb", log).rows.tolist()
    kinds = [pd.array([3, 5, 9], dtype=kind) for kind in ("int8", "Int64", "string", "object", "category")]
    for labels in ([1.5, 2.5, 3.5], ["x", "y", "z"], pd.Categorical(["x", "y", "z"], list("wxyz")), *kinds):
        assert replay("ucb", log.assign(arm=pd.Series(labels)[log.arm].to_numpy())).rows.tolist() == rows
    two = a_log(120, n_arms=2, means=(0.8, 0.3))
    flags = replay("ucb", two.assign(arm=two.arm == 1), propensity={False: 0.5, True: 0.5})
    assert flags.labels == (False, True) and flags.rows.tolist() == replay("ucb", two).rows.tolist()
    for odd in ([True, "1", 2], [1, 1.5, "True"]):
        given = replay("ucb", log.assign(arm=pd.Series(odd, dtype=object)[log.arm].to_numpy()))
        assert len(given.labels) == 3
    mixed = replay("ucb", log.assign(arm=pd.Series(["one", 2, ("t", 3)], dtype=object)[log.arm].to_numpy()))
    assert set(mixed.labels) == {"one", 2, ("t", 3)}
    reindexed = log.set_index(pd.Index(range(500, 620)))
    assert replay("ucb", reindexed).rows.tolist() == rows


def test_shuffled_replays():
    log = a_log(300)
    shown = [replay("ucb", log, shuffle=True, replicate=r) for r in range(3)]
    again = replay("ucb", log, shuffle=True, replicate=1)
    assert again.rows.tolist() == shown[1].rows.tolist()
    assert len({tuple(one.rows.tolist()) for one in shown}) == 3
    for one in shown:
        assert len(set(one.rows.tolist())) == one.n_used
        assert (log.reward.to_numpy()[one.rows] == one.rewards).all()
        assert one.rows.tolist() != sorted(one.rows.tolist())


def test_a_log_may_end_early_or_have_one_arm():
    log = pd.DataFrame({"arm": [1, 1, 0, 0], "reward": [1.0, 0.0, 1.0, 0.0]})
    shown = replay("uniform", log)
    assert shown.rows.tolist() == [2] and shown.pulls.tolist() == [1, 0] and math.isnan(shown.means[1])
    alone = replay("ucb", log.assign(arm="only"))
    assert alone.rows.tolist() == [0, 1, 2, 3]
    assert replay("ucb", log.assign(arm="only"), horizon=2).rows.tolist() == [0, 1]


def test_a_real_trial():
    """ACTG175: four arms, 2,139 people; did the CD4 count rise in twenty weeks?"""
    lifelines = pytest.importorskip("lifelines", exc_type=ImportError)
    trial = pd.read_csv(Path(lifelines.__file__).parent / "datasets" / "ACTG175.csv")
    trial["rose"] = trial["cd420"] > trial["cd40"]
    for policy in ("ucb", "private-ucb", "dp-klucb", "uniform"):
        shown = replay(policy, trial, arm="arms", reward="rose", epsilon=epsilon_of(policy))
        assert shown.labels == (0, 1, 2, 3) and shown.n_rows == 2139
        assert shown.logged.tolist() == [532, 522, 524, 561]
        np.testing.assert_allclose(shown.logged_means, trial.groupby("arms").rose.mean())
        assert abs(shown.n_used - 2139 / 4) < 5 * math.sqrt(2139 * 3 / 16)
        assert (shown.logged_means[1:] > shown.logged_means[0] + 0.1).all()  # one drug alone did worst
    assert np.abs(shown.means - shown.logged_means).max() < 5 * 0.5 / math.sqrt(shown.pulls.min())


# ----------------------------------------------------------------------------------------------------------
# Bad input
# ----------------------------------------------------------------------------------------------------------

TABLE = tableau([0.5, 0.5], 5)
LOG = pd.DataFrame(
    {
        "arm": [0, 1, 0, 1],
        "reward": [0.0, 1.0, 0.5, 1.0],
        "p": [0.5] * 4,
        "text": list("abcd"),
        "gap": [0.0, 1.0, math.nan, 0.5],
        "far": [0.0, 1.0, 2.0, 0.5],
        "zero": [0.5, 0.0, 0.5, 0.5],
        "endless": [0.0, math.inf, 1.0, 1.0],
        "late": pd.to_datetime(["2020-01-01"] * 4),
        "complex": [1j] * 4,
        "lists": [[1], [2], [1], [2]],
        "flags": np.array([1, True, 2, 1], dtype=object),
    }
)
CASES = [
    (tableau, {"means": [0.5], "horizon": 3}, {
        "means": ([], [1.5], [-0.1], [math.nan], "a", None, [[0.5]], 0.5),
        "horizon": (0, -1, 1.5, None, "3", True, 2**40),
        "seed": (-1, 0.5, "0"),
        "replicate": (-1, 0.5, None),
        "reward": ("normal", None),
        "sigma": (-1.0, math.nan, math.inf, None),
    }),
    (interact, {"policy": "private-ucb", "tableau": TABLE, "epsilon": 1.0}, {
        "policy": ("UCB", None, 3),
        "tableau": (
            TABLE[0], TABLE[:1], np.empty((5, 0)), TABLE * math.nan, TABLE + math.inf, "a", None,
            TABLE.astype(complex), [[1, 2], [3]], TABLE.astype(str), TABLE.astype(str).astype(object),
            pd.DataFrame(TABLE.astype(str)), pd.DataFrame(TABLE).replace(1.0, None), 10**400, [[10**400, 1]],
        ),
        "epsilon": (None, 0, -1, math.nan, "1", True),
        "seed": (-1, 0.5, "0"),
        "replicate": (-1, 0.5, None),
        "form": ("offline", None),
        "width": ("wide", None),
        "counter": ("tree", None),
        "ties": ("last", 3),
        "clip_sums": (True,),
    }),
    (replay, {"policy": "private-ucb", "frame": LOG, "epsilon": 1.0}, {
        "policy": ("UCB", None, 3),
        "frame": (None, LOG.to_numpy(), {"arm": [0], "reward": [1.0]}, LOG.iloc[:0]),
        "arm": ("none", 3, None, ["arm"]),
        "reward": ("none", 3, None, "text", "late"),
        "propensity": ("none", 3, {0: 0.5}, {0: 0.5, 1: 0.6}, {0: 1.0, 1: 0.0}, {0: 0.5, 1: None},
                       {0: 0.5, 1: 0.3, 2: 0.2}),
        "bounds": (None, 3, (1, 0), (0, 0), (0, math.inf), (0, math.nan), "ab", (0, 1, 2)),
        "epsilon": (None, 0, -1, math.nan, "1", True),
        "horizon": (0, -1, 1.5, "3", True),
        "seed": (-1, 0.5, "0"),
        "replicate": (-1, 0.5, None),
        "shuffle": (1, None),
        "width": ("wide", None),
        "counter": ("tree", None),
        "ties": ("last", 3),
        "clip_sums": (True,),
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "options", "name"),
    [
        (function, good | {name: value}, name)
        for function, good, bad in CASES
        for name, values in bad.items()
        for value in values
    ],
)
def test_bad_input(function, options, name):
    function(**next(good for other, good, _ in CASES if other is function))
    words = {"arm": "arm|column", "reward": "reward|column"}.get(name, name)
    with pytest.raises((TypeError, ValueError), match=words):
        function(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reward": "gap"}, "column 'gap' must have no missing values, got one in row 2"),
        ({"arm": "gap"}, "column 'gap' must have no missing values, got one in row 2"),
        ({"propensity": "gap"}, "column 'gap' must have no missing values, got one in row 2"),
        ({"reward": "far"}, "column 'far' must be at most 1, got 2.0 at index 2"),
        ({"reward": "far", "bounds": (0.25, 2)}, "column 'far' must be at least 0.25, got 0.0 at index 0"),
        ({"reward": "endless"}, "column 'endless' must be finite, got inf at index 1"),
        ({"reward": "text"}, "column 'text' must be an array of numbers"),
        ({"reward": "complex"}, "column 'complex' must be an array of numbers"),
        ({"arm": "lists"}, "column 'lists' must hold labels that are hashable"),
        ({"arm": "flags"}, "column 'flags' must not hold truth values beside 0 or 1"),
        ({"propensity": "zero"}, "column 'zero' must be positive, got 0 in row 1"),
        ({"propensity": "far"}, "column 'far' must be at most 1, got 2.0 at index 2"),
    ],
)
def test_columns_that_are_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        replay("ucb", LOG, **options)


def test_two_columns_of_one_name_are_refused():
    doubled = pd.concat([LOG, LOG[["reward"]]], axis=1)
    with pytest.raises(ValueError, match="'reward', which several have"):
        replay("ucb", doubled)


def test_pandas_missing_values_are_refused():
    with pytest.raises(ValueError, match="column 'reward' must have no missing values, got one in row 1"):
        replay("ucb", LOG.assign(reward=pd.array([1, None, 0, 1], dtype="Int64")))


def test_the_module_does_not_load_pandas():
    code = "import sys, equinoise.bandits.replay.tableau; print(*({'pandas', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.strip() == b""
