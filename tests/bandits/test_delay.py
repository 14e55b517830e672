"""Simulations whose rewards come late: those of live bandits told late, and of a loop in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.bandits.test_live import CASES, make

from equinoise.bandits import POLICIES, simulate
from equinoise.bandits.replay.tableau import tableau

MEANS = [0.3, 0.7, 0.5, 0.6]
HORIZON = 150
LATE = [name for name in POLICIES if name != "dp-se"]


def run(name, *, n=1, seed=5, horizon=HORIZON, **more):
    return simulate(name, MEANS, horizon=horizon, n_replicates=n, epsilon=1.0, seed=seed, **more)


@pytest.mark.parametrize("delay", [1, 7, 60])
@pytest.mark.parametrize("case", CASES)
def test_a_live_bandit_told_each_ticket_late_plays_the_same(case, delay):
    _, name, arguments, options = CASES[case]
    options = {"ties": arguments["ties"], **options} if "ties" in arguments else options
    options = {"ties": "first", **options} if case == "dp-klucb first" else options
    horizon = arguments.get("horizon", HORIZON)
    shown = run(name, horizon=horizon, delay=delay, history=True, **options)
    rewards = tableau(MEANS, horizon, seed=5)
    bandit, tickets = make(case, 4, seed=5), []
    for t in range(horizon):
        tickets.append(bandit.request())
        if t >= delay:
            told = tickets[t - delay]
            bandit.update(told, float(rewards[t - delay, told.arm]))
    assert bandit.choices.tolist() == shown.arms[0].tolist()
    if bandit.propensities is not None:
        assert bandit.propensities.tobytes() == shown.propensities[0].tobytes()
    pending = np.bincount([ticket.arm for ticket in bandit.open_tickets], minlength=4)
    assert pending.sum() == delay and (bandit.pulls + pending).tolist() == shown.pulls[0].tolist()
    assert shown.rewards[0].tolist() == rewards[np.arange(horizon), shown.arms[0]].tolist()
    assert shown.reward_sum[0].tolist() == np.bincount(shown.arms[0], shown.rewards[0], 4).tolist()


def test_ucb_in_plain_python():
    for delay in (0, 1, 3, 40):
        shown = run("ucb", n=3, delay=delay, history=True)
        for arms, rewards in zip(shown.arms.tolist(), shown.rewards.tolist(), strict=True):
            for t, arm in enumerate(arms):
                told = range(max(t - delay, 0))
                n = [sum(arms[s] == a for s in told) for a in range(4)]
                total = [sum(rewards[s] for s in told if arms[s] == a) for a in range(4)]
                c = math.sqrt(math.log(2.0 * (1.0 + (t + 1) * math.log(t + 1) ** 2)))
                index = [total[a] / n[a] + c / math.sqrt(2 * n[a]) if n[a] else -math.inf for a in range(4)]
                if len(set(arms[:t])) < 4:
                    assert arm == t
                elif not any(n):
                    assert arm == min(range(4), key=arms[:t].count)
                else:
                    assert index[arm] >= max(index) - 1e-12


@pytest.mark.parametrize("name", LATE)
def test_replicates_blocks_and_histories_change_nothing(name):
    many = run(name, n=70, delay=9)
    parts = run(name, n=70, delay=9, block=11, history=True)
    for part in ("reward_sum", "pulls", "regret"):
        assert getattr(many, part).tobytes() == getattr(parts, part).tobytes()
    assert (many.pulls.sum(axis=1) == HORIZON).all() and many.delay == 9
    gaps = max(MEANS) - np.array(MEANS)
    np.testing.assert_allclose(many.regret[:, -1], many.pulls @ gaps, rtol=1e-12)
    np.testing.assert_allclose(gaps[parts.arms[:, : many.trials[3]]].sum(1), many.regret[:, 3], atol=1e-9)


@pytest.mark.parametrize("name", LATE)
def test_what_is_never_told_is_never_known(name):
    """With a delay of the horizon or more no reward changes a choice: those of other means are the same."""
    shown = run(name, delay=HORIZON, history=True)
    other = simulate(
        name, [0.9, 0.1, 0.2, 0.1], horizon=HORIZON, epsilon=1.0, seed=5, history=True, delay=10**9
    )
    assert shown.arms.tolist() == other.arms.tolist() and shown.rewards.tolist() != other.rewards.tolist()
    assert shown.pulls.sum() == HORIZON


def test_gaussian_rewards_and_drawn_ties():
    shown = run("ucb", n=20, delay=5, reward="gaussian", ties="random", history=True)
    for r in range(20):
        sums = np.bincount(shown.arms[r], shown.rewards[r], 4)
        np.testing.assert_allclose(shown.reward_sum[r], sums, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "published"),
    [("ucb", (92, 99, 162)), ("thompson", (272, 274, 293)), ("dp-klucb", (88, 100, 167))],
)
def test_what_a_delay_costs(name, published):
    """The table of the documentation, by other replicates."""
    means = [0.75, 0.625, 0.5, 0.375, 0.25]
    for delay, mean in zip((0, 10, 100), published, strict=True):
        shown = simulate(name, means, horizon=10_000, n_replicates=100, epsilon=1.0, seed=2, delay=delay)
        stderr = shown.regret[:, -1].std() / 10.0
        assert shown.regret[:, -1].mean() == pytest.approx(mean, abs=5.0 * stderr + 0.5)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"delay": -1}, ValueError, "delay must be an integer from 0"),
        ({"delay": 1.0}, TypeError, "delay"),
        ({"delay": True}, TypeError, "delay"),
        ({"name": "dp-se", "delay": 1}, ValueError, "delay must be 0 for the policy 'dp-se', got 1"),
    ],
)
def test_refusals(wrong, error, message):
    with pytest.raises(error, match=message):
        run(**{"name": "ucb", **wrong})


def test_a_folder_of_another_delay_is_refused(tmp_path):
    run("ucb", delay=3, resume=tmp_path)
    with pytest.raises(ValueError, match="resume must be a folder of this very run"):
        run("ucb", delay=4, resume=tmp_path)
    with pytest.raises(ValueError, match="resume must be a folder of this very run"):
        run("ucb", resume=tmp_path)
