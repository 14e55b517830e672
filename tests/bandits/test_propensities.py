"""Policies that draw arms with probabilities that they know: exact, told everywhere, and right on average.

Statistics use fixed seeds; the bounds are stated where they are used.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from tests import naive_bandits

from equinoise import bandits
from equinoise.bandits import POLICIES, interact, replay, simulate
from equinoise.bandits.replay.tableau import tableau

COMPILED = not numba.config.DISABLE_JIT
MEANS = [0.8, 0.5, 0.2]
HORIZON = 60 if COMPILED else 30
# policy, options, the least probability of an arm of three
CASES = {
    "thompson": ("thompson", {}, 0.1 / 3),
    "often": ("thompson", {"batch": 1, "draws": 7, "floor": 0.3}, 0.1),
    "open": ("thompson", {"batch": 4, "floor": 0.0}, 0.0),
    "greedy": ("epsilon-greedy", {}, 0.1 / 3),
    "explorer": ("epsilon-greedy", {"explore": 0.6}, 0.2),
    "lazy": ("lazy-dp-ts", {"floor": 0.2, "draws": 20, "batch": 3, "epsilon": 2.0}, 0.2 / 3),
    "uniform": ("uniform", {"drawn": True}, 1 / 3),
}
for _name, _row in POLICIES.items():  # those that have no case of their own
    if _row.live and naive_bandits.draws(_name) and all(_name != name for name, _, _ in CASES.values()):
        CASES[_name] = (_name, {"epsilon": 2.0} if _row.needs_epsilon else {}, 0.0)
cases = pytest.mark.parametrize("case", CASES)


def run_of(case, *, n=4, means=MEANS, horizon=HORIZON, seed=3, **more):
    name, options, _ = CASES[case]
    return simulate(name, means, horizon=horizon, n_replicates=n, seed=seed, history=True, **options, **more)


def twin_of(case, seed, replicate, n_arms=3):
    name, options, _ = CASES[case]
    return naive_bandits.make(
        name, n_arms, HORIZON, ties="first", own=naive_bandits.own_words(seed, replicate), **options
    )


def live_of(case, arms=3, seed=3, **more):
    name, options, _ = CASES[case]
    private = {"noise": "float"} if POLICIES[name].private else {}
    return getattr(bandits, POLICIES[name].live.name)(arms, seed=seed, **options, **private, **more)


# ----------------------------------------------------------------------------------------------------------
# Exact, and the same everywhere
# ----------------------------------------------------------------------------------------------------------


@cases
@pytest.mark.parametrize("reward", ["bernoulli", "gaussian"])
def test_every_round_is_the_twins(case, reward):
    """Arms, rewards and probabilities, which the twin makes anew of the same words."""
    run = run_of(case, reward=reward, sigma=0.5)
    for r in range(4):
        sigma = 0.5 if reward == "gaussian" else None
        table, noise, ties = naive_bandits.tape(3, r, HORIZON, MEANS, sigma=sigma)
        twin = twin_of(case, 3, r)
        for t in range(HORIZON):
            arm = twin.choose(t + 1, ties[t])
            assert run.arms[r, t] == arm
            np.testing.assert_allclose(run.propensities[r, t], twin.shares, rtol=1e-12)
            np.testing.assert_allclose(run.rewards[r, t], table[t][arm], rtol=1e-12, atol=1e-12)
            twin.update(t + 1, arm, table[t][arm], noise[t])


@cases
def test_simulation_tableau_log_and_live_class_have_one_history(case, tmp_path):
    """To the bit, with a load from a file on the way, in the middle of a batch."""
    name, options, _ = CASES[case]
    run, table = run_of(case), tableau(MEANS, HORIZON, seed=3)
    bandit = live_of(case)
    for t in range(HORIZON):
        ticket = bandit.request()
        assert ticket.propensity == run.propensities[0, t, ticket.arm]
        assert bandit.ticket(t).propensity == ticket.propensity
        bandit.update(ticket, table[t, ticket.arm])
        if t == HORIZON // 2 + 1:
            bandit.save(tmp_path / "bandit")
            bandit = type(bandit).load(tmp_path / "bandit")
    assert bandit.choices.tolist() == run.arms[0].tolist()
    assert bandit.propensities.tobytes() == run.propensities[0].tobytes()
    log = pd.DataFrame({"arm": run.arms[0], "reward": run.rewards[0]})
    shares = dict.fromkeys(range(3), 1 / 3)
    for shown in (
        interact(name, table, seed=3, **options),
        interact(name, table, seed=3, form="online", **options),
        replay(name, log, seed=3, propensity=shares, **options),
    ):
        assert shown.arms.tolist() == run.arms[0].tolist()
        assert shown.rewards.tolist() == run.rewards[0].tolist()
        assert shown.propensities.tobytes() == run.propensities[0].tobytes()
        assert shown.to_frame().propensity.tolist() == [
            p[arm] for p, arm in zip(run.propensities[0], run.arms[0], strict=True)
        ]


@pytest.mark.compiled
@cases
def test_probabilities_are_probabilities(case):
    _, options, least = CASES[case]
    run = run_of(case, n=40)
    np.testing.assert_allclose(run.propensities.sum(axis=2), 1.0, rtol=1e-12)
    assert run.propensities.min() >= least * (1.0 - 1e-12)
    assert np.take_along_axis(run.propensities, run.arms[:, :, None], 2).min() > 0.0
    batch = options.get("batch", 10 if case == "thompson" else 1)
    changes = np.flatnonzero((np.diff(run.propensities, axis=1) != 0.0).any(axis=(0, 2))) + 1
    assert (changes % batch == 0).all() and (case == "uniform" or len(changes) > HORIZON // batch // 2)


@pytest.mark.parametrize("name", POLICIES)
def test_a_history_changes_nothing_and_is_what_was_counted(name):
    given = {"horizon": HORIZON, "epsilon": 2.0, "n_replicates": 70 if COMPILED else 5, "n_checkpoints": 7}
    plain, told = (simulate(name, MEANS, **given, history=history) for history in (False, True))
    for field in ("pulls", "reward_sum", "regret"):
        assert getattr(plain, field).tobytes() == getattr(told, field).tobytes()
    assert plain.arms is plain.rewards is plain.propensities is None
    assert (told.propensities is None) != naive_bandits.draws(name)
    assert told.arms.shape == told.rewards.shape == (given["n_replicates"], HORIZON)
    for arm in range(3):
        assert (told.arms == arm).sum(axis=1).tolist() == told.pulls[:, arm].tolist()
        assert (
            np.where(told.arms == arm, told.rewards, 0.0).sum(axis=1).tolist()
            == told.reward_sum[:, arm].tolist()
        )
    shown = interact(name, tableau(MEANS, HORIZON), epsilon=2.0)
    assert shown.arms.tolist() == told.arms[0].tolist()
    assert (shown.propensities is None) == (told.propensities is None)


def test_histories_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="n_replicates must be one whose results fit into this machine's"):
        simulate("thompson", MEANS, horizon=10**6, n_replicates=10**6, history=True)
    with pytest.raises(TypeError, match="history must be True or False"):
        simulate("thompson", MEANS, horizon=10, history=1)


def test_a_run_with_its_history_is_kept_and_goes_on(tmp_path):
    given = {"horizon": 20, "resume": tmp_path / "run", "history": True}
    simulate("thompson", MEANS, n_replicates=5, **given)
    more = simulate("thompson", MEANS, n_replicates=9, **given)
    assert (
        more.propensities.tobytes()
        == simulate("thompson", MEANS, horizon=20, n_replicates=9, history=True).propensities.tobytes()
    )
    with pytest.raises(ValueError, match="resume must be a folder of this very run"):
        simulate("thompson", MEANS, n_replicates=9, **given | {"history": False})


# ----------------------------------------------------------------------------------------------------------
# Right on average
# ----------------------------------------------------------------------------------------------------------


def test_joint_draws_are_thompson_sampling():
    """Mean shares over 4,000 seeds after given rewards, by quadrature, within 5 standard errors."""
    rewards = [(1, 1, 0), (0,), (1, 0, 1, 1, 0, 0.5)]
    n = 4000 if COMPILED else 100
    state = POLICIES["thompson"].make_state(
        3, n, None, math.inf, {"floor": 0.0, "draws": 5, "batch": 1}, key=np.arange(2, dtype=np.uint64)
    )
    kernels = POLICIES["thompson"].kernels
    for lane in range(n):
        for arm, values in enumerate(rewards):
            for value in values:
                kernels.update(state, lane, 0, arm, float(value), 0.0)
        kernels.choose(state, lane, 10, np.uint64(0), False)
    laws = [stats.beta(1 + sum(x), 1 + len(x) - sum(x)) for x in rewards]
    for arm, law in enumerate(laws):
        below = [other.cdf for other in laws if other is not law]
        exact, _ = integrate.quad(lambda x, pdf=law.pdf, f=below: pdf(x) * f[0](x) * f[1](x), 0, 1)
        shares = state.chances.share[arm]
        assert abs(shares.mean() - exact) < 5.0 * math.sqrt(exact * (1 - exact) / (5 * n))


@pytest.mark.compiled
@cases
def test_weighting_by_propensities_is_unbiased(case):
    """1{A = a} Y/p has the arm's mean in every round, whatever the policy did before: martingale differences.

    Over 2,000 runs the average of each arm within 5 standard errors: all together fail once in 80,000.
    """
    run = run_of(case, n=2000 if COMPILED else 50, seed=11)
    if case == "open":  # an arm of probability 0 has no weight: floors are there for this
        assert (run.propensities == 0.0).any()
        return
    for arm, mean in enumerate(MEANS):
        scores = np.where(run.arms == arm, run.rewards / run.propensities[:, :, arm], 0.0)
        drawn = np.where(run.arms == arm, 1.0, 0.0) - run.propensities[:, :, arm]
        for values, expected in ((scores.mean(axis=1), mean), (drawn.mean(axis=1), 0.0)):
            error = values.std() / math.sqrt(len(values))
            assert abs(values.mean() - expected) < 5.0 * error + 1e-12, arm


@pytest.mark.compiled
def test_arms_are_drawn_as_their_probabilities_say():
    """Where p lies in a tenth of [0, 1] arms are drawn in that share of rounds, within 5 standard errors."""
    run = run_of("often", n=3000 if COMPILED else 60, seed=5)
    p, hit = run.propensities, run.arms[:, :, None] == np.arange(3)
    for tenth in range(1, 10):
        inside = (p * 10).astype(int) == tenth
        if inside.any():
            error = math.sqrt((p * (1 - p))[inside].sum()) / inside.sum()
            assert abs(hit[inside].mean() - p[inside].mean()) < 5.0 * error


@pytest.mark.compiled
def test_thompson_learns():
    """Regret below half of uniform's at gap 0.09, and floors cost their part of it."""
    means = [0.5, 0.41, 0.41, 0.41, 0.41]
    regret = {
        floor: simulate("thompson", means, horizon=2000, n_replicates=100, floor=floor).regret[:, -1].mean()
        for floor in (0.0, 0.1, 1.0)
    }
    assert regret[0.0] < regret[0.1] < 0.5 * regret[1.0]
    assert regret[1.0] == pytest.approx(144.0, rel=0.02)


# ----------------------------------------------------------------------------------------------------------
# Live
# ----------------------------------------------------------------------------------------------------------


@cases
def test_arms_that_come_and_go_have_probabilities_too(case, tmp_path):
    least = CASES[case][2]
    bandit = live_of(case, ["A", "B", "C"])
    for ticket in bandit.request(40)[:30]:
        bandit.update(ticket, 0.5)
    bandit.add_arm("D")
    bandit.drop_arm("A")
    tickets = bandit.request(30)
    assert {ticket.arm for ticket in tickets} <= {"B", "C", "D"}
    assert case == "greedy" or len({ticket.arm for ticket in tickets}) == 3 or not least
    free = next(
        arm for arm in "BCD" if all(ticket.arm != arm for ticket in bandit.open_tickets) or arm == "D"
    )
    while any(ticket.arm == free for ticket in bandit.open_tickets):
        bandit.update(free, 0.5)
    bandit.update(free, 0.5)  # nobody asked for it
    shares = bandit.propensities
    assert shares.shape == (71, 4) and (shares[:40, 3] == 0.0).all() and (shares[40:70, 0] == 0.0).all()
    assert shares[:40, :3].min() >= least - 1e-12 and shares[40:70, 1:].min() >= least - 1e-12
    np.testing.assert_allclose(shares[:70].sum(axis=1), 1.0, rtol=1e-12)
    assert np.isnan(shares[70, 1:]).all()
    bandit.save(tmp_path / "bandit")
    again = type(bandit).load(tmp_path / "bandit")
    assert again.propensities.tobytes() == shares.tobytes()
    assert again.open_tickets[-1].propensity == bandit.open_tickets[-1].propensity is not None
    assert again.select(20) == bandit.select(20)
    assert again.propensities.tobytes() == bandit.propensities.tobytes()


def test_a_new_arm_waits_for_its_first_reward_without_all_the_traffic():
    bandit = live_of("greedy", 2)
    for t in range(20):
        bandit.update(bandit.select(), float(t % 2))
    bandit.add_arm()
    while bandit.request().arm != 2:
        assert bandit.propensities[-1, 2] == pytest.approx(0.9 + 0.1 / 3)
    bandit.select(10)
    assert bandit.propensities[-10:, 2] == pytest.approx([0.1 / 3] * 10)


@pytest.mark.parametrize("name", ["UCB", "Uniform", "LazyDPTS"])
def test_policies_without_known_probabilities_say_none(name):
    more = {"epsilon": 1.0, "noise": "float"} if name == "LazyDPTS" else {}
    bandit = getattr(bandits, name)(2, **more)
    assert bandit.request().propensity is None and bandit.propensities is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("propensities", lambda a: a[:-1]),
        ("propensities", lambda a: a + 1.0),
        ("propensities", lambda a: a - 1.0),
        ("propensities", None),
        ("state_share", lambda a: a[:-1]),
        ("state_share", lambda a: a * 2.0),
        ("state_share", lambda a: a - 1.0),
        ("state_until", lambda a: a - 100),
        ("state_until", None),
    ],
)
def test_probabilities_of_a_file_are_checked(name, change, tmp_path):
    from tests.bandits.test_live_files import rewritten

    bandit = live_of("thompson")
    bandit.select(7)
    bandit.save(tmp_path / "bandit")
    rewritten(tmp_path / "bandit", {name: change}, {})
    with pytest.raises(ValueError, match=r"path .* does not hold a whole Thompson"):
        type(bandit).load(tmp_path / "bandit")


@pytest.mark.parametrize("name", [row.live.name for row in POLICIES.values() if row.live])
def test_the_example_of_a_class_that_is_made_of_a_row(name):
    import doctest

    cls = getattr(bandits, name)
    for test in doctest.DocTestFinder().find(cls, name, globs={name: cls}):
        assert doctest.DocTestRunner().run(test).failed == 0
