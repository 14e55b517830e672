"""Replay of linear policies on logs with contexts: against a walk by hand, and against play."""

from __future__ import annotations

import math

import numba
import numpy as np
import pandas as pd
import pytest
from tests import naive_linear

from equinoise.bandits import linear
from equinoise.bandits.linear.replay import replay
from equinoise.bandits.replay.tableau import Replay

COMPILED = not numba.config.DISABLE_JIT
POLICIES = [*linear.POLICIES]
X = ["one", "x"]


def epsilon_of(policy):
    return {"epsilon": 3.0} if policy == "private-oful" else {}


def a_log(n, seed=0, shares=None):
    """Arm 0 pays where x > 0, arm 1 where x < 0, arm 2 half of the time."""
    rng = np.random.default_rng([91, seed])
    arms, x = rng.choice(3, n, p=shares), rng.uniform(-1.0, 1.0, n)
    means = np.stack([0.5 + 0.45 * np.sign(x), 0.5 - 0.45 * np.sign(x), np.full(n, 0.5)], axis=1)
    paid = (rng.random(n) < means[np.arange(n), arms]).astype(float)
    return pd.DataFrame({"arm": arms, "reward": paid, "x": x, "one": 1.0})


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("i", range(10))
def test_the_rows_are_those_of_a_walk_by_hand(policy, i):
    rng = np.random.default_rng([92, i])
    setting = {"ridge": float(rng.choice([0.3, 1.0])), "delta": 0.1, "sigma": float(rng.choice([0.0, 0.5]))}
    log, horizon = a_log(150, seed=i), int(rng.choice([7, 64, 150]))
    shown = replay(policy, log, X, seed=i, replicate=2, horizon=horizon, **setting, **epsilon_of(policy))
    words = naive_linear.words_of(i, 0, 2, naive_linear.NOISE, 2 * horizon)
    rows = log[X].to_numpy(), log.arm.to_numpy(), log.reward.to_numpy()
    setting |= {"epsilon": epsilon_of(policy).get("epsilon", math.inf)}
    assert shown.rows.tolist() == naive_linear.walk(policy, *rows, 3, words, horizon, **setting)
    assert isinstance(shown, Replay) and shown.policy == policy and shown.propensities is None
    assert (rows[1][shown.rows] == shown.arms).all() and (rows[2][shown.rows] == shown.rewards).all()


def test_units_labels_and_propensities_are_those_of_every_replay():
    log = a_log(600, shares=[0.6, 0.3, 0.1])
    log["p"] = np.array([0.6, 0.3, 0.1])[log.arm]
    plain = replay("oful", log, X, propensity={0: 0.6, 1: 0.3, 2: 0.1})
    named = log.assign(arm=np.array(["a", "b", "c"])[log.arm], reward=-10.0 + 40.0 * log.reward)
    shown = replay("oful", named, X, propensity="p", bounds=(-10.0, 30.0))
    # the least propensity seen is the same: so is the thinning
    assert shown.rows.tolist() == plain.rows.tolist() and shown.labels == ("a", "b", "c")
    assert shown.summary()["mean"].tolist() == pytest.approx(-10.0 + 40.0 * plain.means)
    assert replay("oful", log, X, propensity="p", shuffle=True).rows.tolist() != plain.rows.tolist()
    with pytest.raises(ValueError, match="propensity must be given"):
        replay("oful", log, X)
    with pytest.warns(UserWarning, match=r"replay used \d+ of 600 rows"):
        replay("oful", a_log(600, shares=[0.8, 0.19, 0.01]), X, propensity={0: 0.8, 1: 0.19, 2: 0.01})


def test_contexts_are_worth_something():
    """The best arm of a row pays 0.95; without its context no policy is paid more than 0.5."""
    log = a_log(3000 if COMPILED else 900)
    late = {d: replay("oful", log, X[:d]).rewards[200:].mean() for d in (1, 2)}
    assert late[1] < 0.6 and late[2] > 0.75


def test_it_is_distributed_as_play():
    """Pulls and sums of greedy play: on logs, and by the rewards that rows would have paid."""
    n = 300 if COMPILED else 30
    pulls, played = [], []
    for i in range(n):
        pulls.append(replay("oful", a_log(300, seed=i), X, horizon=40).pulls)
        log = a_log(40, seed=10**6 + i)
        rng = np.random.default_rng([93, i])
        ridges = naive_linear.Ridges(
            "oful", 3, 2, 40, ridge=1.0, delta=0.05, sigma=0.5, epsilon=math.inf, clip=(0, 1), l1=1.0
        )
        arms = []
        for t, x in enumerate(log[X].to_numpy()):
            arm = ridges.choose(t, [x] * 3)
            mean = 0.5 + 0.45 * np.sign(x[1]) * [1.0, -1.0, 0.0][arm]
            ridges.learn(arm, x, float(rng.random() < mean), [0, 0])
            arms.append(arm)
        played.append(np.bincount(arms, minlength=3))
    ours, theirs = np.array(pulls), np.array(played)
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / n)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 5 * error).all()


LOG = a_log(30).assign(text="a", gap=[None, *[1.0] * 29])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"policy": "ucb"}, "policy must be one of"),
        ({"contexts": "x"}, "contexts must be names of columns, at least one, got 'x'"),
        ({"contexts": []}, "contexts must be names"),
        ({"contexts": None}, "contexts must be names"),
        ({"contexts": ["none"]}, "contexts must be one of the columns"),
        ({"contexts": [3]}, "contexts must be the name of a column"),
        ({"contexts": ["text"]}, "column 'text' must be an array of numbers"),
        ({"contexts": ["gap"]}, "column 'gap' must have no missing values"),
        ({"frame": None}, "frame must be a pandas DataFrame"),
        ({"reward": "none"}, "reward must be one of"),
        ({"bounds": (0.0, 0.5)}, "column 'reward' must be at most 0.5"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"horizon": 10**9}, "horizon must be"),
        ({"ridge": 0.0}, "ridge must be"),
        ({"ridge": 1e-12}, "ridge must be at least 1e-10 times"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": 1e-310}, "delta must be"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"seed": -1}, "seed must be"),
        ({"replicate": -1}, "replicate must be"),
        ({"shuffle": 1}, "shuffle must be"),
    ],
)
def test_refusals(wrong, words):
    good = {"policy": "private-oful", "frame": LOG, "contexts": X, "epsilon": 1.0}
    with pytest.raises((TypeError, ValueError), match=words):
        replay(**{**good, **wrong})
