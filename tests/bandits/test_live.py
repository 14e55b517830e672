"""Live bandits: the kernels' choices, late rewards, arms that come and go, refusals, secure noise."""

from __future__ import annotations

import inspect
import math
import re
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests import naive_bandits

from equinoise import bandits
from equinoise.bandits import POLICIES, live as classes, rewards as tapes, simulate
from equinoise.bandits.live import DPKLUCB, UCB, UCB1, LazyDPTS, PrivateUCB, Ticket
from equinoise.bandits.live.player import Setting
from equinoise.bandits.live.state import Tallies
from equinoise.bandits.policies.registry import Live, policy
from equinoise.mechanisms import KaryCounter

# name: class, policy, arguments of the class alone, options of the policy
CASES = {
    "ucb": (UCB, "ucb", {}, {}),
    "ucb random": (UCB, "ucb", {"ties": "random"}, {}),
    "ucb1": (UCB1, "ucb1", {}, {}),
    "k-ary": (PrivateUCB, "private-ucb", {"horizon": 200}, {"counter": "k-ary"}),
    "binary": (PrivateUCB, "private-ucb", {"horizon": 200, "counter": "binary"}, {"counter": "binary"}),
    "binary random": (
        PrivateUCB,
        "private-ucb",
        {"horizon": 200, "ties": "random", "counter": "binary"},
        {"counter": "binary"},
    ),
    "published": (
        PrivateUCB,
        "private-ucb",
        {"horizon": 200, "width": "published", "counter": "binary"},
        {"counter": "binary", "width": "published"},
    ),
    "hybrid": (PrivateUCB, "private-ucb", {}, {"counter": "hybrid"}),
    "hybrid published": (
        PrivateUCB,
        "private-ucb",
        {"horizon": 200, "width": "published", "counter": "hybrid"},
        {"counter": "hybrid", "width": "published"},
    ),
    "dp-klucb": (DPKLUCB, "dp-klucb", {}, {}),
    "dp-klucb first": (DPKLUCB, "dp-klucb", {"ties": "first"}, {}),
    "lazy-dp-ts": (LazyDPTS, "lazy-dp-ts", {}, {}),
    "lazy floor": (
        LazyDPTS,
        "lazy-dp-ts",
        {"floor": 0.2, "draws": 9, "batch": 3},
        {"floor": 0.2, "draws": 9, "batch": 3},
    ),
}
for _row in POLICIES.values():  # those that have no case of their own
    if _row.live is not None and all(_row.name != name for _, name, _, _ in CASES.values()):
        CASES[_row.name] = (getattr(bandits, _row.live.name), _row.name, {}, {})
OPEN = [case for case, (_, name, _, _) in CASES.items() if not POLICIES[name].private]
PRIVATE = [case for case in CASES if case not in OPEN]
ONE_EACH = [case for case in CASES if case in {*POLICIES, "k-ary", "binary", "hybrid"}]
# where arms are drawn it is any arm at any time: there is none that comes first
FIRST = [case for case, (_, name, _, options) in CASES.items() if not naive_bandits.draws(name, **options)]
PRIVATE_EACH = [case for case in ONE_EACH if case in PRIVATE]
NODES = [case for case in PRIVATE_EACH if case != "k-ary"]  # whose true sums are noised one by one


def make(case, arms, *, epsilon=1.0, seed=0, noise="float", **more):
    """The live bandit of a case."""
    cls, _, arguments, _ = CASES[case]
    private = {} if case in OPEN else {"epsilon": epsilon, "noise": noise}
    return cls(arms, **{"seed": seed, **private, **arguments, **more})


def go_on(bandit, n, rewards):
    """The next n choices when arm a pays rewards[t, a] in round t, each told at once."""
    choices = []
    for _ in range(n):
        t = bandit.rounds
        arm = bandit.select()
        bandit.update(arm, float(rewards[t, bandit.arms.index(arm)]))
        choices.append(arm)
    return choices


def saved(bandit, path):
    """Everything that a bandit is but whose tickets it takes and which object wrote it, as bytes by name."""
    bandit.save(path, overwrite=True)
    with np.load(path) as archive:
        found = {name: archive[name].tobytes() for name in archive.files}
    tickets = rb'"owner": \d+|"line": \d+, "saved": .\d+, \d+.'
    return found | {"meta_json": re.sub(tickets, b"", found["meta_json"])}


def table(seed, n_rounds=200, n_arms=4):
    return np.random.default_rng(seed).random((n_rounds, n_arms))


# ----------------------------------------------------------------------------------------------------------
# The contract
# ----------------------------------------------------------------------------------------------------------


def test_signatures():
    def names(function):
        return [name for name in inspect.signature(function).parameters if name != "self"]

    assert names(UCB)[0] == "n_arms" and names(PrivateUCB)[:3] == ["n_arms", "epsilon", "horizon"]
    assert inspect.signature(PrivateUCB).parameters["horizon"].default is None
    assert inspect.signature(PrivateUCB).parameters["noise"].default == "secure"
    assert names(UCB.update) == ["arm", "reward"]
    assert inspect.signature(UCB.select).parameters["n"].default is None


def test_a_first_look():
    bandit = UCB(2)
    assert bandit.select() == 0 and isinstance(bandit.select(), int)
    bandit.update(0, 0.25)
    bandit.update(1, 1)
    assert bandit.pulls.tolist() == [1, 1] and bandit.means.tolist() == [0.25, 1.0]
    assert bandit.select() == 1 and bandit.rounds == 3 and bandit.choices.tolist() == [0, 1, 1]
    assert bandit.bounds == (0.0, 1.0) and repr(bandit) == "UCB(2 arms, round 3)"


def test_what_is_shown_is_a_copy():
    bandit = make("binary", 2)
    go_on(bandit, 10, table(1))
    for look in ("pulls", "means", "choices", "private_means"):
        getattr(bandit, look)[:] = -1
        assert (getattr(bandit, look) >= -0.5).any()


def test_a_row_of_the_registry_is_enough_for_a_live_class(monkeypatch, tmp_path):
    """The class is made when asked for, chooses what the simulation chooses, and takes the row's options."""
    row = replace(POLICIES["adap-ucb"], live=Live(name="AdapUCB", feed="batch"))
    monkeypatch.setitem(POLICIES, "adap-ucb", row)
    bandit = classes.AdapUCB(3, 1.0, noise="float", seed=4)
    assert (
        isinstance(bandit, bandits.PrivateBandit)
        and row.source in bandit.__doc__
        and row.proof in bandit.__doc__
    )
    paid, _, _ = naive_bandits.tape(4, 0, 150, [0.2, 0.5, 0.7])
    go_on(bandit, 150, np.array(paid))
    run = simulate("adap-ucb", [0.2, 0.5, 0.7], horizon=150, epsilon=1.0, seed=4)
    assert bandit.pulls.tolist() == run.pulls[0].tolist()
    bandit.save(tmp_path / "bandit")
    assert classes.AdapUCB.load(tmp_path / "bandit").select() == bandit.select()
    with pytest.raises(TypeError, match="'width' is no option of the class AdapUCB"):
        classes.AdapUCB(3, 1.0, noise="float", width="counter")
    plain = replace(POLICIES["greedy"], live=Live(name="Greedy"))
    monkeypatch.setitem(POLICIES, "greedy", plain)
    assert go_on(classes.Greedy(2), 3, np.array([[1.0, 0.0]] * 3)) == [0, 1, 0]
    del classes.AdapUCB, classes.Greedy
    with pytest.raises(AttributeError, match="has no attribute 'Annealing'"):
        _ = classes.Annealing


# ----------------------------------------------------------------------------------------------------------
# The kernels' choices
# ----------------------------------------------------------------------------------------------------------


def kernel_choices(case, kind, means, n_rounds, *, epsilon, seed, rewards=None):
    """(choices, final state) of replicate 0 played by the kernels round by round, and the tape's rewards."""
    _, name, arguments, options = CASES[case]
    spec, key = policy(name), key_of(seed)
    lanes = means[:, None]
    tape = tapes.make_tape(lanes, n_rounds, kind)
    if rewards is not None:
        tape.table[:, :, 0] = rewards
    tapes.fill_tape(tape, tapes.make_streams(key, 0, 1), n_rounds, 0.5)
    state = spec.make_state(len(means), 1, arguments.get("horizon"), epsilon, options, key=key, first=0)
    random_ties = arguments.get("ties", spec.ties) == "random"
    choices, paid = [], np.empty((n_rounds, len(means)))
    for t in range(n_rounds):
        before = state.pulls.copy()
        row = tape._replace(
            reward=tape.reward[t:], noise=tape.noise[t:], tie=tape.tie[t:], table=tape.table[t:]
        )
        spec.kernels.advance(state, row, t, t + 1, random_ties)
        choices.append(int((state.pulls - before)[:, 0].argmax()))
        paid[t] = [tapes.reward_of(tape, t, arm, 0) for arm in range(len(means))]
    return choices, state, paid


def key_of(seed):
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)


@pytest.mark.parametrize("case", CASES)
def test_fed_with_a_replicate_it_chooses_what_the_kernels_choose(case):
    """20 random instances of 2 to 8 arms each: Bernoulli rewards, and given ones; to the last bit."""
    rng = np.random.default_rng(len(case))
    for instance in range(20):
        n_arms, epsilon = int(rng.integers(2, 9)), float(rng.choice([0.05, 0.5, 1.0, 8.0]))
        means, seed = rng.random(n_arms).round(1), int(rng.integers(1000))
        kind, rewards = tapes.BERNOULLI, None
        if instance % 2:
            kind, rewards = tapes.TABLE, rng.random((200, n_arms))
        choices, state, paid = kernel_choices(
            case, kind, means, 200, epsilon=epsilon, seed=seed, rewards=rewards
        )
        bandit = make(case, n_arms, epsilon=epsilon, seed=seed)
        assert go_on(bandit, 200, paid) == choices
        assert bandit.pulls.tolist() == state.pulls[:, 0].tolist()
        assert bandit.means.tobytes() == (state.reward_sum / state.pulls)[:, 0].tobytes()


@pytest.mark.parametrize("case", CASES)
def test_fed_with_a_replicate_it_is_that_replicate_of_a_simulation(case):
    _, name, arguments, options = CASES[case]
    means = np.array([0.2, 0.5, 0.4, 0.9])
    _, _, paid = kernel_choices(case, tapes.BERNOULLI, means, 200, epsilon=0.7, seed=5)
    bandit = make(case, 4, epsilon=0.7, seed=5)
    go_on(bandit, 200, paid)
    run = simulate(
        name, means, horizon=200, epsilon=0.7, n_replicates=3, seed=5, ties=arguments.get("ties"), **options
    )
    assert run.pulls[0].tolist() == bandit.pulls.tolist()
    assert run.reward_sum[0].tolist() != run.reward_sum[1].tolist()
    assert (run.reward_sum / run.pulls)[0].tobytes() == bandit.means.tobytes()


@pytest.mark.parametrize("case", OPEN)
def test_gaussian_rewards_need_no_bounds(case):
    choices, _, paid = kernel_choices(case, tapes.GAUSSIAN, np.linspace(0, 1, 5), 200, epsilon=1.0, seed=3)
    assert paid.min() < -0.5 and paid.max() > 1.5
    assert go_on(make(case, 5, seed=3, bounds=None), 200, paid) == choices


@pytest.mark.parametrize("case", CASES)
def test_it_chooses_what_the_plain_policies_choose(case):
    """A policy in plain Python with random numbers of its own making; three arms far from ties."""
    _, name, arguments, options = CASES[case]
    paid, noise, ties = naive_bandits.tape(7, 0, 200, [0.31, 0.52, 0.78])
    twin = naive_bandits.make(
        name,
        3,
        arguments.get("horizon"),
        2.0,
        ties=arguments.get("ties", policy(name).ties),
        own=naive_bandits.own_words(7, 0),
        **options,
    )
    expected = naive_bandits.play(twin, paid, noise, ties)
    assert go_on(make(case, 3, epsilon=2.0, seed=7), 200, np.array(paid)) == expected


@pytest.mark.parametrize("case", ["ucb", "binary", "dp-klucb", "lazy-dp-ts"])
def test_rewards_in_other_units_make_the_same_choices(case):
    """Bounds that are powers of two apart: the map to [0, 1] is exact."""
    rewards = np.random.default_rng(5).integers(0, 65, (200, 3)) / 64.0
    unit, other = make(case, 3), make(case, 3, bounds=(-3.0, 13.0))
    assert go_on(unit, 200, rewards) == go_on(other, 200, -3.0 + 16.0 * rewards)
    np.testing.assert_allclose(other.means, -3.0 + 16.0 * unit.means, rtol=1e-14)
    assert other.bounds == (-3.0, 13.0)
    if case != "ucb":
        np.testing.assert_allclose(other.private_means, -3.0 + 16.0 * unit.private_means, rtol=1e-14)
        assert other.bias_bound == 16.0 * unit.bias_bound


@pytest.mark.parametrize("case", CASES)
def test_arms_added_before_the_first_round_are_arms_from_the_start(case):
    whole, grown = make(case, 4, seed=9), make(case, 2, seed=9)
    assert [grown.add_arm(), grown.add_arm()] == [2, 3]
    assert go_on(whole, 150, table(2)) == go_on(grown, 150, table(2))
    assert whole.means.tobytes() == grown.means.tobytes()


@pytest.mark.parametrize("case", CASES)
def test_an_arm_dropped_before_the_first_round_never_was(case):
    """Four arms less the second make the choices of three, but for the arms' numbers."""
    three, four = make(case, 3, seed=9), make(case, 4, seed=9)
    four.drop_arm(1)
    rewards = table(2, n_arms=3)
    wide = np.insert(rewards, 1, np.nan, axis=1)
    assert [[0, 2, 3][arm] for arm in go_on(three, 150, rewards)] == go_on(four, 150, wide)


# ----------------------------------------------------------------------------------------------------------
# Late rewards, arms that come and go
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FIRST)
def test_arms_never_selected_come_first(case):
    bandit = make(case, 3)
    assert bandit.select(2) == [0, 1]
    assert bandit.select() == 2
    assert bandit.select(4) == [0, 1, 2, 0]  # no reward yet: in turns
    for ticket in bandit.open_tickets[::-1]:
        bandit.update(ticket, 0.5)
    new = bandit.add_arm()
    assert bandit.select() == new == 3
    assert 3 not in bandit.select(5)  # waits for its first reward
    bandit.update(3, 1.0)
    assert bandit.pulls.tolist() == [3, 2, 2, 1]


def test_arms_whose_first_reward_is_late_are_left_out():
    """With rewards of arm 1 alone, arm 1 it is; arm 0 has a row before it."""
    for case in FIRST:
        bandit = make(case, 3)
        first = bandit.request(3)
        bandit.update(first[1], 0.5)
        assert bandit.select(3) == [1, 1, 1]
        bandit.update(first[0], 0.5)
        assert set(bandit.select(20)) <= {0, 1}


@pytest.mark.parametrize("case", ONE_EACH)
def test_tickets_in_order_are_updates_by_arm(case):
    by_arm, by_ticket = make(case, 3, seed=4), make(case, 3, seed=4)
    rewards = table(3)
    expected = go_on(by_arm, 150, rewards)
    for t, arm in enumerate(expected):
        ticket = by_ticket.request()
        assert (ticket.number, ticket.arm) == (t, arm)
        assert ticket == by_ticket.ticket(t) and by_ticket.open_tickets == (ticket,)
        by_ticket.update(ticket, rewards[t, arm])
    assert by_ticket.means.tobytes() == by_arm.means.tobytes() and not by_ticket.open_tickets


@pytest.mark.parametrize("case", ["ucb", "ucb1"])
def test_the_order_of_late_rewards_does_not_matter_to_an_open_policy(case):
    """Halves and wholes, so that sums are exact in any order."""
    orders = [make(case, 3), make(case, 3)]
    for turn in range(10):
        for bandit, step in zip(orders, (1, -1), strict=True):
            for ticket in bandit.request(7)[::step]:
                bandit.update(ticket, (ticket.number * 7 % 5) / 4)
        assert orders[0].choices.tolist() == orders[1].choices.tolist(), turn
    assert orders[0].means.tolist() == orders[1].means.tolist()


def test_a_late_reward_of_another_arm_does_not_end_a_batch():
    """Arm 0 is best by far and has a batch of two open; a reward of arm 1 comes in between."""
    bandit = make("dp-klucb", 2, epsilon=50.0)
    tickets = bandit.request(4)
    assert [ticket.arm for ticket in tickets] == [0, 1, 0, 1]
    bandit.update(tickets[0], 1.0)
    bandit.update(tickets[1], 0.0)
    ticket = bandit.request()
    assert ticket.arm == 0
    bandit.update(ticket, 1.0)
    bandit.update(tickets[3], 0.0)
    assert bandit.select() == 0
    bandit.update(tickets[2], 1.0)  # the batch is full
    assert bandit._player.state.current[0] == -1


def test_a_new_arm_is_not_starved_by_a_long_batch_whose_rewards_are_late():
    """A batch of 512 rewards, which come 1,000 rounds late: once 512 were selected others have their turn."""
    bandit = make("dp-klucb", 2, epsilon=2.0)
    for _ in range(900):
        bandit.update(bandit.select(), [0.9, 0.1][bandit.choices[-1]])
    batch = bandit._player.state.left[0, 0]
    assert batch > 100
    new = bandit.add_arm()
    tickets = bandit.request(2000)
    assert tickets[0].arm == new
    bandit.update(tickets[0], 1.0)
    assert new in {ticket.arm for ticket in bandit.request(batch + 1000)}


def test_clip_sums_is_an_option_of_the_live_class():
    def released(**options):
        bandit = DPKLUCB(1, 0.01, noise="float", seed=3, **options)
        go_on(bandit, 100, np.ones((100, 1)))
        return bandit.private_means[0]

    assert released() == released(clip_sums=True) and 0.0 <= released() <= 1.0
    assert not 0.0 <= released(clip_sums=False) <= 1.0
    assert "clip_sums : flag" in DPKLUCB.__doc__
    with pytest.raises(TypeError, match="clip_sums must be True or False"):
        released(clip_sums=1)


def test_what_waits_stays_with_its_arm_when_another_goes():
    for case in FIRST:
        bandit = make(case, 3)
        bandit.select(2)
        bandit.drop_arm(0)
        assert bandit.select() == 2


def test_a_width_counts_all_arms_in_play():
    bandit = make("published", 4)
    go_on(bandit, 40, table(1))
    state = bandit._player.state
    bandit.add_arm()
    assert bandit._player.state.privacy.published == pytest.approx(1.25 * state.privacy.published)
    bandit.drop_arm(1)
    assert bandit._player.state.privacy == state.privacy


def test_an_arm_closes_its_oldest_ticket():
    bandit = UCB(2)
    tickets = bandit.request(6)
    assert [t.arm for t in tickets] == [0, 1, 0, 1, 0, 1]
    bandit.update(1, 0.5)
    assert bandit.open_tickets == (tickets[0], *tickets[2:])
    bandit.update(tickets[5], 0.5)
    bandit.update(1, 0.5)
    assert bandit.open_tickets == (tickets[0], tickets[2], tickets[4])


def test_a_reward_nobody_asked_for_makes_a_round():
    """As if the arm had been selected: the same noise, and the same choices from there on."""
    for case in {*ONE_EACH} & {*FIRST}:
        asked, unasked = make(case, 2, seed=3), make(case, 2, seed=3)
        assert asked.select(2) == [0, 1]
        for arm in (0, 1):
            asked.update(arm, 0.25)
            unasked.update(arm, 0.25)
        assert unasked.rounds == 2 and not unasked.open_tickets
        assert go_on(asked, 60, table(1)) == go_on(unasked, 60, table(1))


def test_a_cancelled_ticket_is_a_round_without_a_reward():
    bandit = UCB(2)
    a, b, c = bandit.request(3)
    bandit.cancel(a)
    bandit.update(b, 1.0)
    assert bandit.rounds == 3 and bandit.pulls.tolist() == [0, 1] and bandit.open_tickets == (c,)
    bandit.cancel(c)
    assert bandit.select() == 0  # of no reward and none to come: first again
    bandit.cancel(bandit.ticket(3))
    with pytest.raises(ValueError, match="ticket"):
        bandit.cancel(a)
    late = bandit.request()
    bandit.drop_arm(0)
    bandit.cancel(late)
    assert not bandit.open_tickets and bandit.select() == 1


@pytest.mark.parametrize("case", FIRST)
def test_a_dropped_arm_keeps_its_numbers_and_takes_late_rewards(case):
    bandit = make(case, ["A", "B", "C"], seed=2)
    for ticket in bandit.request(6)[:4]:
        bandit.update(ticket, 0.5)
    go_on(bandit, 100, table(4))
    ticket = next(t for t in bandit.open_tickets if t.arm == "B")
    before = bandit.means
    known = None if case in OPEN else bandit.private_means
    bandit.drop_arm("B")
    assert bandit.in_play == ("A", "C") and bandit.arms == ("A", "B", "C")
    assert bandit.means.tobytes() == before.tobytes()
    n = bandit.pulls[1]
    bandit.update(ticket, 1.0)
    assert bandit.pulls[1] == n + 1
    assert bandit.means[1] == pytest.approx((before[1] * n + 1.0) / (n + 1), rel=1e-14)
    if known is not None:
        assert bandit.private_means.tobytes() == known.tobytes()
    frame = bandit.to_frame()
    assert frame.dropped.tolist() == [False, True, False] and frame.pulls.tolist() == bandit.pulls.tolist()
    for _ in range(50):
        arm = bandit.select()
        assert arm != "B"
        bandit.update(arm, 0.5)
    with pytest.raises(ValueError, match="dropped"):
        while True:  # late ones are taken, and then no more
            bandit.update("B", 0.5)


def ucb_index(bandit, arm, t):
    n, mean = bandit.pulls[arm], bandit.means[arm]
    return mean + math.sqrt(math.log(2.0 * (1.0 + t * math.log(t) ** 2)) / (2.0 * n))


OPERATIONS = st.sampled_from(["select", "three", "late", "arm", "unasked", "cancel", "add", "drop", "load"])


@settings(max_examples=60)
@given(st.sampled_from(ONE_EACH), st.lists(OPERATIONS, max_size=60), st.integers(0, 2**32))
def test_any_story_is_told_right(case, story, seed):
    """Against lists of rewards and of open tickets, ucb against its formula; a load changes nothing."""
    rng = np.random.default_rng(seed)
    bandit = make(case, 2, seed=seed)
    told, in_play, waiting, rounds = [[], []], [0, 1], [], 0
    for step in story:
        if step in ("select", "three"):
            for ticket in bandit.request(3 if step == "three" else 1):
                assert ticket.number == rounds
                check_choice(case, bandit, ticket, told, in_play, waiting)
                waiting.append(ticket)
                rounds += 1
        elif step == "late" and waiting:
            ticket = waiting.pop(rng.integers(len(waiting)))
            told[ticket.arm].append(rng.random())
            bandit.update(ticket, told[ticket.arm][-1])
        elif step == "arm" and waiting:
            ticket = next(t for t in waiting if t.arm == waiting[-1].arm)
            waiting.remove(ticket)
            told[ticket.arm].append(rng.random())
            bandit.update(ticket.arm, told[ticket.arm][-1])
        elif step == "unasked" and (free := set(in_play) - {t.arm for t in waiting}):
            arm = min(free)
            told[arm].append(rng.random())
            bandit.update(arm, told[arm][-1])
            rounds += 1
        elif step == "cancel" and waiting:
            bandit.cancel(waiting.pop())
        elif step == "add":
            in_play.append(bandit.add_arm())
            told.append([])
        elif step == "drop" and len(in_play) > 1:
            bandit.drop_arm(in_play.pop(rng.integers(len(in_play))))
        elif step == "load":
            bandit = loaded(bandit)
    assert bandit.rounds == rounds == len(bandit.choices)
    assert bandit.pulls.tolist() == [len(rewards) for rewards in told]
    assert bandit.in_play == tuple(in_play) and bandit.open_tickets == tuple(waiting)
    frame = bandit.to_frame()
    for rewards, mean, stderr in zip(told, frame["mean"], frame["stderr"], strict=True):
        assert math.isnan(mean) if not rewards else mean == pytest.approx(np.mean(rewards), rel=1e-12)
        if len(rewards) > 1:
            expected = np.std(rewards, ddof=1) / math.sqrt(len(rewards))
            assert stderr == pytest.approx(expected, rel=1e-7, abs=1e-12)
        else:
            assert math.isnan(stderr)


def loaded(bandit):
    """The bandit once more, by way of a file."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "bandit")
        return type(bandit).load(Path(folder) / "bandit")


def check_choice(case, bandit, ticket, told, in_play, waiting):
    """Never selected first; then one with rewards; then the one with the fewest open tickets."""
    assert ticket.arm in in_play
    if case not in FIRST:
        return
    pending = {arm: sum(t.arm == arm and t.number < ticket.number for t in waiting) for arm in in_play}
    untouched = [arm for arm in in_play if not told[arm] and not pending[arm]]
    known = [arm for arm in in_play if told[arm]]
    if untouched:
        assert ticket.arm == untouched[0]
    elif not known:
        assert ticket.arm == min(in_play, key=lambda arm: pending[arm])
    else:
        assert ticket.arm in known
        if case == "ucb":
            index = {arm: ucb_index(bandit, arm, ticket.number + 1) for arm in known}
            assert index[ticket.arm] >= max(index.values()) - 1e-12


# ----------------------------------------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------------------------------------


REFUSED = [
    (lambda b, t: b.update("A", math.nan), ValueError, "reward"),
    (lambda b, t: b.update("A", math.inf), ValueError, "reward"),
    (lambda b, t: b.update("A", -math.inf), ValueError, "reward"),
    (
        lambda b, t: b.update("A", 1.0000001),
        ValueError,
        r"reward must be a number in \[0, 1\], got 1.0000001",
    ),
    (lambda b, t: b.update("A", -1e-300), ValueError, "reward"),
    (lambda b, t: b.update("A", "1"), TypeError, "reward"),
    (lambda b, t: b.update("A", "1"), TypeError, "reward"),
    (lambda b, t: b.update("A", None), TypeError, "reward"),
    (lambda b, t: b.update("D", 0.5), ValueError, "arm must be one of .*'D'"),
    (lambda b, t: b.update(0, 0.5), TypeError, "arm"),
    (lambda b, t: b.update(None, 0.5), TypeError, "arm"),
    (lambda b, t: b.update("D", math.nan), ValueError, "arm"),
    (lambda b, t: b.update(t, math.nan), ValueError, "reward"),
    (lambda b, t: b.update(Ticket(0, "A"), 0.5), ValueError, "ticket"),  # closed
    (lambda b, t: b.update(Ticket(10**6, "A"), 0.5), ValueError, "ticket"),
    (lambda b, t: b.update(Ticket(-1, "A"), 0.5), ValueError, "ticket"),
    (lambda b, t: b.update(Ticket(t.number, "other"), 0.5), ValueError, "ticket"),
    (lambda b, t: b.update(Ticket("x", "A"), 0.5), TypeError, "ticket"),
    (lambda b, t: b.ticket(0), ValueError, "ticket"),
    (lambda b, t: b.ticket(1.0), TypeError, "ticket"),
    (lambda b, t: b.cancel("A"), TypeError, "ticket"),
    (lambda b, t: b.cancel(Ticket(0, "A")), ValueError, "ticket"),
    (lambda b, t: b.select(0), ValueError, "n must be an integer from 1"),
    (lambda b, t: b.select(-1), ValueError, "n"),
    (lambda b, t: b.select(1.0), TypeError, "n"),
    (lambda b, t: b.request("2"), TypeError, "n"),
    (lambda b, t: b.add_arm(), TypeError, "name"),
    (lambda b, t: b.add_arm(""), ValueError, "name"),
    (lambda b, t: b.add_arm(3), TypeError, "name"),
    (lambda b, t: b.add_arm("B"), ValueError, "name must be a new one"),
    (lambda b, t: b.drop_arm("D"), ValueError, "arm"),
    (lambda b, t: b.drop_arm(1), TypeError, "arm"),
]


@pytest.mark.parametrize("case", ONE_EACH)
def test_what_is_wrong_is_refused_and_changes_nothing(case, tmp_path):
    bandit = make(case, ["A", "B", "C"], seed=1)
    go_on(bandit, 20, table(1))
    ticket = bandit.request(3)[1]
    before = saved(bandit, tmp_path / "before")
    for call, error, words in REFUSED:
        with pytest.raises(error, match=words):
            call(bandit, ticket)
        assert saved(bandit, tmp_path / "after") == before
    other = loaded(bandit)
    for ticket in other.open_tickets:
        bandit.update(ticket, 0.5)
        other.update(ticket, 0.5)
    assert go_on(bandit, 50, table(1)) == go_on(other, 50, table(1))


def test_a_long_word_in_place_of_arms_is_cut_in_the_message():
    with pytest.raises(TypeError, match="n_arms must be a number of arms or a sequence") as raised:
        UCB("x" * 10_000)
    assert len(str(raised.value)) < 200
    for arms in ({"a", "b"}, frozenset("ab")):  # whose order is another in every process
        with pytest.raises(TypeError, match="n_arms must be a number of arms or a sequence"):
            UCB(arms)


def test_numbered_arms_are_refused_by_range():
    bandit = UCB(3)
    for arm in (3, -1):
        with pytest.raises(ValueError, match="arm must be an integer from 0 to 2"):
            bandit.update(arm, 0.5)
    for arm in ("0", 1.0, True, None):
        with pytest.raises(TypeError, match="arm"):
            bandit.update(arm, 0.5)
    with pytest.raises(ValueError, match="name"):
        bandit.add_arm("D")
    bandit.update(np.int64(2), np.float32(0.5))
    assert bandit.pulls.tolist() == [0, 0, 1]


def test_the_last_arm_stays_and_none_is_dropped_twice():
    bandit = UCB(2)
    bandit.drop_arm(0)
    with pytest.raises(ValueError, match="dropped"):
        bandit.drop_arm(0)
    with pytest.raises(ValueError, match="dropped"):
        bandit.update(0, 0.5)
    with pytest.raises(ValueError, match="last"):
        bandit.drop_arm(1)
    assert bandit.select(3) == [1, 1, 1] and bandit.add_arm() == 2


def test_names_are_used_once():
    bandit = UCB(["A", "B"])
    bandit.drop_arm("A")
    with pytest.raises(ValueError, match="used before"):
        bandit.add_arm("A")
    assert bandit.add_arm(np.str_("C")) == "C" and type(bandit.arms[-1]) is str


def test_the_horizon_is_kept():
    bandit = make("binary", 3)
    rewards = table(1)
    go_on(bandit, 195, rewards)
    late = bandit.request(3)
    with pytest.raises(ValueError, match="horizon of 200 rounds"):
        bandit.select(3)
    assert bandit.rounds == 198
    bandit.select(2)
    for call in (bandit.select, lambda: bandit.select(1)):
        with pytest.raises(ValueError, match="horizon"):
            call()
    for ticket in late:
        bandit.update(ticket, 1.0)
    for ticket in bandit.open_tickets:
        bandit.update(ticket, 1.0)
    with pytest.raises(ValueError, match="horizon"):
        bandit.update(0, 0.5)
    assert bandit.pulls.sum() == 200


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: UCB(0), ValueError, "n_arms"),
        (lambda: UCB(2.0), TypeError, "n_arms"),
        (lambda: UCB("AB"), TypeError, "n_arms"),
        (lambda: UCB([]), ValueError, "n_arms"),
        (lambda: UCB(["A", "A"]), ValueError, "n_arms"),
        (lambda: UCB(["A", ""]), ValueError, "n_arms"),
        (lambda: UCB([1, 2]), TypeError, "n_arms"),
        (lambda: UCB(None), TypeError, "n_arms"),
        (lambda: UCB(2, bounds=(1, 0)), ValueError, "bounds"),
        (lambda: UCB(2, bounds=(0, 0)), ValueError, "bounds"),
        (lambda: UCB(2, bounds=(0, 5e-324)), ValueError, "bounds"),
        (lambda: UCB(2, bounds=(0, math.inf)), ValueError, "bounds"),
        (lambda: UCB(2, bounds=(math.nan, 1)), ValueError, "bounds"),
        (lambda: UCB(2, bounds=1), TypeError, "bounds"),
        (lambda: UCB(2, bounds=(0, 1, 2)), TypeError, "bounds"),
        (lambda: UCB(2, bounds=("0", 1)), TypeError, "bounds"),
        (lambda: UCB(2, ties="last"), ValueError, "ties"),
        (lambda: UCB(2, seed=-1), ValueError, "seed"),
        (lambda: UCB(2, seed=1.5), TypeError, "seed"),
        (lambda: PrivateUCB(2, 0.0, noise="float"), ValueError, "epsilon"),
        (lambda: PrivateUCB(2, -1.0, noise="float"), ValueError, "epsilon"),
        (lambda: PrivateUCB(2, math.nan, noise="float"), ValueError, "epsilon"),
        (lambda: PrivateUCB(2, math.inf, noise="float"), ValueError, "epsilon"),
        (lambda: PrivateUCB(2, 1e-300, noise="float"), ValueError, "epsilon"),
        (lambda: DPKLUCB(2, 1e200, noise="float"), ValueError, "epsilon must be from 1e-09 to 1e.100, got"),
        (lambda: PrivateUCB(2, "1", noise="float"), TypeError, "epsilon"),
        (lambda: PrivateUCB(2, 1.0, 0, noise="float"), ValueError, "horizon"),
        (lambda: PrivateUCB(2, 1.0, 10.0, noise="float"), TypeError, "horizon"),
        (lambda: PrivateUCB(2, 1.0, noise="float", counter="binary"), ValueError, "horizon"),
        (lambda: PrivateUCB(2, 1.0, noise="float", width="published"), ValueError, "horizon"),
        (lambda: PrivateUCB(2, 1.0, 10, noise="float", width="none"), ValueError, "width"),
        (lambda: PrivateUCB(2, 1.0, 10, noise="float", counter="tree"), ValueError, "counter"),
        (lambda: PrivateUCB(2, 1.0, noise="none"), ValueError, "noise"),
        (lambda: PrivateUCB(2, 1.0, noise=None), TypeError, "noise"),
        (lambda: PrivateUCB(2, 1.0, seed=1), ValueError, "seed must be None with noise='secure'"),
        (lambda: PrivateUCB(2, 1.0, noise="float", bounds=None), TypeError, "bounds"),
        (lambda: DPKLUCB(2, 1.0, seed=1), ValueError, "seed"),
        (lambda: DPKLUCB(2, math.inf, noise="float"), ValueError, "epsilon"),
        (lambda: LazyDPTS(2, 0, noise="float"), ValueError, "epsilon"),
    ],
)
def test_wrong_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_unbounded_rewards_are_finite():
    bandit = UCB(1, bounds=None)
    for reward in (math.nan, math.inf, 1e101):
        with pytest.raises(ValueError, match="reward"):
            bandit.update(0, reward)
    bandit.update(0, -1e100)
    bandit.update(0, 1e100)
    assert bandit.bounds is None and bandit.means.tolist() == [0.0]
    assert np.isfinite(bandit.to_frame()["stderr"]).all()


# ----------------------------------------------------------------------------------------------------------
# What a private bandit says of itself
# ----------------------------------------------------------------------------------------------------------


def test_the_bound_on_the_bias_is_that_of_the_worst_mean():
    for epsilon in (0.01, 0.5, 1.0, 4.0):
        bandit = PrivateUCB(2, epsilon, noise="float", bounds=(-1.0, 1.0))
        mu = np.linspace(0.0, 1.0, 100_001)
        shifted = mu * np.exp(epsilon) / (1.0 - mu + mu * np.exp(epsilon))
        assert bandit.bias_bound == pytest.approx(2.0 * (shifted - mu).max(), rel=1e-4)
        assert bandit.epsilon == epsilon and bandit.noise == "float"


def test_private_means_are_what_was_noised():
    """By the twins' counters: sums and noise over all pulls; released batches alone for dp-klucb."""
    paid, noise, _ = naive_bandits.tape(3, 0, 200, [0.4, 0.7])
    for case in PRIVATE_EACH:
        _, name, arguments, options = CASES[case]
        bandit = make(case, 2, epsilon=2.0, seed=3)
        assert np.isnan(bandit.private_means).all()
        choices = go_on(bandit, 200, np.array(paid))
        own = naive_bandits.own_words(3, 0)
        twin = naive_bandits.make(name, 2, arguments.get("horizon"), 2.0, own=own, **options)
        for t, arm in enumerate(choices):
            twin.update(t + 1, arm, paid[t][arm], noise[t])
        np.testing.assert_allclose(bandit.private_means, twin.private_means, rtol=1e-12)


def test_the_frame_of_a_private_bandit():
    bandit = make("binary", ["A", "B"], bounds=(0, 10))
    frame = bandit.to_frame()
    assert list(frame) == [
        "arm", "pulls", "pending", "mean", "stderr", "dropped", "private_mean", "bias_bound",
    ]  # fmt: skip
    go_on(bandit, 50, 10 * table(1))
    bandit.select(3)
    frame = bandit.to_frame()
    assert frame.pending.sum() == 3 and frame.arm.tolist() == ["A", "B"]
    assert bandit.to_frame(raw=True).private_mean.tolist() == bandit.private_means.tolist()
    assert repr(bandit) == "PrivateUCB(2 arms, round 53 of 200, epsilon=1)"


def test_the_frame_puts_private_means_back_into_the_bounds():
    bandit = make("dp-klucb", 6, epsilon=0.05, bounds=(-1, 1), clip_sums=False)
    go_on(bandit, 5, -np.ones((5, 6)))
    raw, shown = bandit.private_means, bandit.to_frame().private_mean.to_numpy()
    assert (raw[:5] < -1.0).any() and (raw[:5] > 1.0).any() and np.isnan([raw[5], shown[5]]).all()
    assert shown[:5].tolist() == [min(max(mean, -1.0), 1.0) for mean in raw[:5]]
    np.testing.assert_array_equal(bandit.to_frame(raw=True).private_mean, raw)
    with pytest.raises(TypeError, match="raw must be True or False"):
        bandit.to_frame(raw=1)


# ----------------------------------------------------------------------------------------------------------
# Secure noise
# ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def releases(monkeypatch):
    """Secure noise replaced: keeps (values, sensitivity, epsilon) of every call, noises by `rule`."""

    class Releases(list):
        rule = staticmethod(lambda values, scale, i: values)

        def __call__(self, values, sensitivity, epsilon):
            values = np.asarray(values, dtype=float)
            self.append((values, sensitivity, epsilon))
            return np.asarray(self.rule(values, sensitivity / epsilon, len(self)), dtype=float)

    made = Releases()
    monkeypatch.setattr("equinoise.mechanisms.counter_base.secure_laplace", made)
    monkeypatch.setattr("equinoise.bandits.live.player.secure_laplace", made)
    monkeypatch.setattr("equinoise.mechanisms.kary.secure_geometric", lambda counts, *_: np.array(counts))
    monkeypatch.setattr("equinoise.bandits.live.bandit.stream_key", lambda seed: key_of(0))  # posterior draws
    return made


def test_a_truth_value_is_a_reward():
    bandit = UCB(2)
    for arm, reward in ((0, True), (1, np.False_), (0, 0)):
        bandit.update(arm, reward)
    assert bandit.means.tolist() == [0.5, 0.0]


@pytest.mark.parametrize("case", PRIVATE)
def test_nothing_but_the_noised_sums_reaches_the_policy(case, releases, tmp_path, monkeypatch):
    """Where noise hides the sums altogether, wholly different rewards make the very same choices."""
    stories = []
    add = KaryCounter.add  # whose noise is added to true sums: what it returns is hidden
    monkeypatch.setattr(KaryCounter, "add", lambda self, x: 0.0 * add(self, x) + 20.0 * np.sin(self.n))
    for rewards in (table(1), 1.0 - table(2) ** 3):
        releases.clear()
        releases.rule = lambda values, scale, i: np.sin(i) * 20.0 * np.ones(len(values))
        bandit = make(case, 3, seed=None, noise="secure", ties="first")
        choices = go_on(bandit, 60, rewards)
        for ticket in bandit.request(9)[::-1]:
            bandit.update(ticket, rewards[ticket.number, 0])
        bandit.add_arm()
        choices += go_on(bandit, 30, rewards)
        stories.append((choices, bandit.private_means.tolist(), bandit.pulls.tolist()))
        state = bandit._player.state
        assert not state.reward_sum.any() and not getattr(state, "batch_sum", np.zeros(1)).any()
    assert stories[0] == stories[1]


@pytest.mark.parametrize("case", NODES)
@pytest.mark.parametrize("late", [False, True])
def test_every_reward_pays_epsilon_at_most(case, late, releases, tmp_path):
    """A reward of 1 among zeros: the sums that it is in, each at its own epsilon, cost no more than epsilon.

    With rewards told late and backwards, an arm added, one dropped, and a load in between.
    """
    releases.rule = lambda values, scale, i: np.zeros(len(values))
    seen = 0
    for one in [*range(10), *range(10, 60, 3)]:
        releases.clear()
        bandit = make(case, 3, epsilon=0.75, seed=None, noise="secure", ties="first")
        while bandit.rounds < 60:
            for ticket in bandit.request(4 if late else 1)[::-1]:
                bandit.update(ticket, float(ticket.number == one))
            if bandit.rounds == 20:
                bandit.add_arm()
            if bandit.rounds == 36:
                bandit.save(tmp_path / "bandit")
                bandit = type(bandit).load(tmp_path / "bandit")
            if bandit.rounds == 48:
                bandit.drop_arm(0)
        costs = [epsilon * values[0] / sensitivity for values, sensitivity, epsilon in releases]
        assert sum(costs) <= 0.75 * (1.0 + 1e-12)
        seen += any(costs)
    assert seen >= 12  # the rest lies in batches that were never full


@pytest.mark.parametrize("case", [*NODES, "published"])
def test_secure_and_float_noise_play_one_policy(case, releases):
    """The same noise by both ways: exact in eighths, with rewards 0 and 1 and epsilon 2 or the levels."""
    rng = np.random.default_rng(8)
    epsilon = 8.0 if CASES[case][1] == "private-ucb" and case != "hybrid" else 2.0
    draws, clock = rng.integers(-40, 41, 300) / 8.0, [0]
    releases.rule = lambda values, scale, i: values + scale * draws[clock[0]]
    secure = make(case, 3, epsilon=epsilon, seed=None, noise="secure", ties="first")
    plain = make(case, 3, epsilon=epsilon, ties="first")
    for t in range(150):
        if t == 70:
            secure.drop_arm(0), plain.drop_arm(0)
            secure.add_arm(), plain.add_arm()
        clock[0] = t
        arm = secure.select()
        assert plain.select() == arm, t
        reward = float(rng.integers(2))
        secure.update(arm, reward)
        plain._tickets[t] = plain._tickets[t][0], draws[t]
        plain.update(arm, reward)
        np.testing.assert_allclose(secure.private_means, plain.private_means, rtol=1e-12)


@pytest.mark.parametrize("case", PRIVATE_EACH)
def test_real_secure_noise(case, tmp_path):
    """New in every object and after every load; what was noised before stays as it was."""
    pytest.importorskip("opendp")
    bandit = make(case, 2, seed=None, noise="secure")
    assert bandit.noise == "secure"
    rewards = table(1)
    go_on(bandit, 50, rewards)
    bandit.save(tmp_path / "bandit")
    known = bandit.private_means
    futures = []
    for _ in range(2):
        again = type(bandit).load(tmp_path / "bandit")
        assert again.private_means.tobytes() == known.tobytes() and again.noise == "secure"
        for arm in (0, 1):
            for _ in range(40):
                again.update(arm, 0.5)
        futures.append(again.private_means)
    assert (futures[0] != futures[1]).all()
    assert (np.abs(futures[0] - again.means) < 10.0).all()


def test_without_opendp_secure_noise_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    sys.modules["equinoise.mechanisms.laplace"]._measurement.cache_clear()
    for make_one in (lambda: PrivateUCB(2, 1.0, 100), lambda: PrivateUCB(2, 1.0), lambda: DPKLUCB(2, 1.0)):
        with pytest.raises(ImportError, match=r"equinoise\[secure\]"):
            make_one()
    assert PrivateUCB(2, 1.0, 100, noise="float").select() == 0


# ----------------------------------------------------------------------------------------------------------
# Ctrl-C
# ----------------------------------------------------------------------------------------------------------


LIVE = {
    "ucb": lambda: UCB(["A", "B"]),
    "private-ucb": lambda: PrivateUCB(["A", "B"], 1.0, horizon=100, noise="float", seed=1),
    "dp-klucb": lambda: DPKLUCB(["A", "B"], 1.0, noise="float", seed=1),
}


@pytest.mark.parametrize("made", LIVE.values(), ids=LIVE)
def test_ctrl_c_is_heard_when_a_change_is_whole(made, monkeypatch, tmp_path):
    interrupted, plain = made(), made()
    tickets = interrupted.request(2), plain.request(2)
    add = Tallies.add

    def hear(*arguments):
        signal.raise_signal(signal.SIGINT)
        add(*arguments)

    monkeypatch.setattr(Tallies, "add", hear)
    with pytest.raises(KeyboardInterrupt):
        interrupted.update(tickets[0][0], 1.0)
    monkeypatch.undo()
    plain.update(tickets[1][0], 1.0)
    with pytest.raises(ValueError, match="ticket"):  # it was taken, and is not taken twice
        interrupted.update(tickets[0][0], 1.0)
    assert interrupted.pulls.tolist() == plain.pulls.tolist() == [1, 0]
    interrupted.save(tmp_path / "bandit")
    again = type(plain).load(tmp_path / "bandit")
    assert [again.select() for _ in range(5)] == [plain.select() for _ in range(5)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("made", LIVE.values(), ids=LIVE)
def test_a_bandit_whose_change_broke_off_is_not_saved(made, monkeypatch, tmp_path):
    bandit = made()
    first, second = bandit.request(2)
    bandit.update(first, 1.0)
    bandit.save(tmp_path / "bandit")
    before = (tmp_path / "bandit").read_bytes()
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(Tallies, "add", lambda *arguments: (_ for _ in ()).throw(MemoryError))
        bandit.update(second, 1.0)
    with pytest.raises(RuntimeError, match="a change of this bandit broke off"):
        bandit.save(tmp_path / "bandit")
    assert (tmp_path / "bandit").read_bytes() == before


def test_a_full_batch_is_never_released_twice(monkeypatch):
    pytest.importorskip("opendp")
    bandit = DPKLUCB(2, 1.0)
    kernels = bandit._player._kernels
    monkeypatch.setattr(kernels, "update", lambda *arguments: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        bandit.update(0, 1.0)
    assert bandit._player.secure() == [0, 0]


def test_tickets_of_another_bandit_and_endless_requests_are_refused(tmp_path):
    one, other = PrivateUCB(["A", "B"], 1.0, horizon=9, noise="float", seed=1), UCB(["A", "B"])
    mine, foreign = one.request(), other.request()
    assert (mine.number, mine.arm) == (foreign.number, foreign.arm)
    for act in (lambda: one.update(foreign, 1.0), lambda: one.cancel(foreign)):
        with pytest.raises(ValueError, match="ticket must be one of this bandit"):
            act()
    one.save(tmp_path / "bandit")
    again = PrivateUCB.load(tmp_path / "bandit")
    again.update(mine, 1.0)
    assert again.pulls.tolist() == [1, 0] and one.pulls.tolist() == [0, 0]
    with pytest.raises(ValueError, match="n must be an integer from 1 to 1048576"):
        other.select(10**12)


def test_rewards_are_scaled_by_their_bounds():
    setting = Setting("ucb", "first", 0.25, 0.75)
    assert [setting.inside(reward) for reward in (0.25, 0.5, 0.75)] == [0.0, 0.5, 1.0]
    assert setting.outside(0.5) == 0.5
