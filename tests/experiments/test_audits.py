"""Every mechanism is audited and found to keep its word; faults that are planted in it are found."""

from __future__ import annotations

import _thread
import functools
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from equinoise.bandits import POLICIES
from equinoise.bandits.linear import LinearBandit, live
from equinoise.bandits.live import player
from equinoise.bandits.policies import registry
from equinoise.efb.protocol import user
from equinoise.experiments.commands import audit as audits, audit_bandit, audit_release
from equinoise.experiments.commands.audit import AUDITS, item_losses, law
from equinoise.inference.privacy import Audit, audit
from equinoise.mechanisms import COUNTERS, BinaryCounter, VectorCounter, counter_base, laplace
from equinoise.mechanisms.hashing import BITS, Hashing
from equinoise.nvo import game, gaussian, twins
from equinoise.nvo.release.rows import sample
from equinoise.nvo.twins import simulated_geometric

pytestmark = pytest.mark.compiled
SURE = 1e-6  # of all bounds of a group together


@functools.cache
def found(which):
    pytest.importorskip("opendp")
    size = 2000 if which == "counter" else 4000  # a tenth of which are drawn of a counter
    return {row.mechanism: row for row in audits.run(which, 1.0, size, 0, SURE)}


def names_of_violations(which, size=4000, *only, epsilon=1.0):
    """Which mechanisms are shown to be wrong, of those whose name has one of some parts."""
    pytest.importorskip("opendp")
    rows = []
    for row in AUDITS[which](epsilon, size, 0):
        name = row.mechanism if isinstance(row, Audit) else row.keywords["name"]
        if not only or any(part in name for part in only):
            rows.append(row if isinstance(row, Audit) else row(alpha=SURE))
    return [row.mechanism for row in rows if row.violated]


@pytest.mark.parametrize("which", AUDITS)
def test_no_mechanism_is_blamed(which):
    """But with probability 1e-6; and exact bounds are close to the claim, so that more would show."""
    assert not any(row.violated for row in found(which).values())
    assert min(row.lower for row in found(which).values() if row.exact) > 0.9 if which != "bandit" else True


def test_all_that_is_private_is_audited():
    bandit, counter = found("bandit"), found("counter")
    for name, row in POLICIES.items():
        assert (name in bandit) == row.private
        for what in ("", ", choices"):
            assert row.live is None or (f"{row.live.name}{what}, secure" in bandit) == row.private
    assert {"private-ucb, binary", "private-ucb, hybrid", "private-ucb, published"} <= bandit.keys()
    assert min(bandit[name].lower for name in POLICIES if POLICIES[name].private) > 0.25
    for noise in ("secure", "float"):
        assert {f"private-oful, {noise}", f"private-oful, rounds, {noise}"} <= bandit.keys()
    assert {name.partition(" counter")[0] for name in counter} == COUNTERS.keys()
    assert sum(name.endswith("secure") for name in counter) == len(COUNTERS)


def test_all_bounds_of_a_group_hold_together(monkeypatch):
    """Each of three errs with a third of alpha; one that is exact does not, and counts all the same."""
    draw = functools.partial(audit, lambda i, size, seed: np.arange(size), 1.0, size=100)
    exact = Audit("exact", 1.0, 0.0, 0.5, 1, exact=True)
    monkeypatch.setitem(AUDITS, "some", lambda epsilon, size, seed: iter([draw, exact, draw]))
    assert [row.alpha for row in audits.run("some", 1.0, 100, 0, 0.06)] == [0.02, 0.0, 0.02]


@pytest.mark.parametrize("which", AUDITS)
def test_whatever_is_drawn_one_by_one_hears_that_it_should_stop(which, monkeypatch):
    """Or Ctrl-C waits for all draws of an audit on a thread, of which there may be millions."""
    pytest.importorskip("opendp")
    rows = [row for row in AUDITS[which](1.0, 4000, 0) if not isinstance(row, Audit)]
    heard = mock.Mock(side_effect=InterruptedError)
    monkeypatch.setattr(audits.replicates, "tick", heard)
    for row in rows:
        if row.keywords["name"] not in ("Profile.sample", "one_draw_private, its rows"):  # all rows at once
            draw = functools.partial(row.args[0][-1], 1, 100, 1) if row.func is audit else row
            with pytest.raises(InterruptedError):
                draw(alpha=SURE) if draw is row else draw()


def test_an_audit_hears_that_it_should_stop_between_two_looks_at_its_draws(monkeypatch):
    monkeypatch.setattr(audits.replicates, "tick", mock.Mock(side_effect=InterruptedError))
    with pytest.raises(InterruptedError):
        audit(lambda i, size, seed: np.arange(size), 1.0, size=100)


def test_ctrl_c_ends_an_audit_on_threads(monkeypatch):
    begun, ended = time.monotonic(), []

    def draw(i, size, seed):
        _thread.interrupt_main()
        for _ in audits.heard(itertools.count()):
            if time.monotonic() > begun + 60.0:
                ended.append(i)
                break
        return np.arange(size)

    row = functools.partial(audit, draw, 1.0, size=100)
    monkeypatch.setitem(AUDITS, "some", lambda *_: iter([row, row]))
    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
        audits.run("some", 1.0, 100, 0, 0.06, executor=pool)
    assert not ended


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_law_of_a_symbol(k):
    code = Hashing.of(0.7, k)
    for own, value in ((0, 0.5), (2 * k - 1, -0.2)):
        expected = np.full(2 * k, code.low / 2**BITS)
        expected[own] += (0.5 + value) * code.extra / 2**BITS
        expected[own ^ 1] += (0.5 - value) * code.extra / 2**BITS
        np.testing.assert_allclose(law(code, own, value), expected, rtol=1e-12)


def test_a_symbol_that_tells_too_much(monkeypatch):
    plain = Hashing.of.__func__
    monkeypatch.setattr(Hashing, "of", classmethod(lambda cls, e, k: plain(cls, 2.0 * e, k)))
    wrong = names_of_violations("user", 40_000, "hashing")  # the bounds lie 6 standard deviations above 1
    assert wrong == [
        f"User, hashing{how}" for how in (*(f" into {k}" for k in audits._BUCKETS), ", secure", ", float")
    ]


def test_half_the_noise_of_a_report(monkeypatch):
    monkeypatch.setattr(user, "_SENSITIVITY", 1.0)
    assert names_of_violations("user", 40_000, "laplace, float") == ["User, laplace, float"]


def faulty(kind):
    """What stands in for OpenDP's noise: float noise, noise on one value only, or one draw for all."""

    def secure_laplace(values, sensitivity, epsilon):
        noise = laplace(sensitivity / epsilon, len(values))
        noise[1:] = noise[1:] if kind == "float" else 0.0 if kind == "one" else noise[0]
        return np.asarray(values) + noise

    return secure_laplace


@pytest.mark.parametrize("kind", ["float", "one", "reused"])
def test_noise_of_a_report_that_is_not_what_it_should_be(monkeypatch, kind):
    monkeypatch.setattr(user, "secure_laplace", faulty(kind))
    assert names_of_violations("user", 20_000, "laplace, secure") == ["User, laplace, secure"]


@pytest.fixture
def live_ones_only(monkeypatch):
    """Tables of rewards for policies, whose choice takes a second, are not made."""
    monkeypatch.setattr(audit_bandit, "policy_pairs", lambda chosen: ([], 1))


@pytest.mark.usefixtures("live_ones_only")
def test_noise_that_large_sums_of_a_live_bandit_do_without(monkeypatch):
    plain = player.BatchPlayer._noised
    whole = 1.5 * player._STEPS
    monkeypatch.setattr(
        player.BatchPlayer,
        "_noised",
        lambda self, steps: steps / player._STEPS if steps > whole else plain(self, steps),
    )
    assert names_of_violations("bandit", 4000, "DPKLUCB") == ["DPKLUCB, secure"]


@pytest.mark.usefixtures("live_ones_only")
def test_noise_that_all_arms_of_a_live_bandit_share(monkeypatch):
    fresh = player.CounterPlayer._fresh

    def shared(self):
        counter, drawn = fresh(self), vars(self).setdefault("drawn", {})
        noised = counter._noised

        def same(node, n):
            drawn[n] = drawn[n] if n in drawn else noised(0.0 * node, n)
            return node + drawn[n]

        monkeypatch.setattr(counter, "_noised", same)
        return counter

    monkeypatch.setattr(player.CounterPlayer, "_fresh", shared)
    names = ["PrivateUCB, secure", "PrivateUCB, choices, secure"]
    assert names_of_violations("bandit", 4000, "PrivateUCB") == names


@pytest.mark.usefixtures("live_ones_only")
def test_noise_that_all_batches_of_a_live_bandit_have_from_the_first(monkeypatch):
    noised = player.BatchPlayer._noised

    def again(self, steps):
        self.drawn = vars(self).get("drawn") or noised(self, 0)
        return steps / player._STEPS + self.drawn

    monkeypatch.setattr(player.BatchPlayer, "_noised", again)
    names = ["DPKLUCB, secure", "LazyDPTS, secure"]
    assert names_of_violations("bandit", 8000, *names) == names


@pytest.mark.usefixtures("live_ones_only")
def test_choices_of_live_bandits_by_rewards_as_they_are(monkeypatch):
    def give(self, t, row, reward, noise, *, plain):
        self.raw = {**vars(self).get("raw", {}), row: reward}
        plain(self, t, row, reward, noise)

    for kind in (player.CounterPlayer, player.BatchPlayer):
        monkeypatch.setattr(kind, "give", functools.partialmethod(give, plain=kind.give))
    monkeypatch.setattr(player.Player, "choose", lambda self, t, word: max(self.raw, key=self.raw.get))
    names = [f"{name}, choices, secure" for name in ("PrivateUCB", "DPKLUCB", "LazyDPTS")]
    assert names_of_violations("bandit", 4000, "choices") == names


def shared_by_arms(counter, made):
    """Noise of a node that all arms share."""
    drawn = vars(made).setdefault("drawn", {})

    def noised(node, n):
        drawn.setdefault(n, VectorCounter._noised(counter, 0.0 * node, n))
        return node + drawn[n]

    return noised


def of_the_first_node(counter, made):
    """Noise that all later nodes have too."""
    noise = VectorCounter._noised(counter, np.zeros(2), 1)
    return lambda node, n: node + noise


def in_the_first_round_alone(counter, made):
    return lambda node, n: VectorCounter._noised(counter, node, n) if n == 1 else node


@pytest.mark.usefixtures("live_ones_only")
@pytest.mark.parametrize("fault", [shared_by_arms, of_the_first_node, in_the_first_round_alone])
def test_noise_of_a_linear_bandit_that_is_not_drawn_where_it_should_be(monkeypatch, fault):
    start = LinearBandit.__init__

    def faulted(self, *given, **named):
        start(self, *given, **named)
        for counter in self._counters:
            counter._noised = fault(counter, self)

    monkeypatch.setattr(LinearBandit, "__init__", faulted)
    name = "private-oful, rounds, secure"
    assert names_of_violations("bandit", 4000, name) == [name]


@pytest.mark.usefixtures("live_ones_only")
def test_choices_of_a_linear_bandit_by_rewards_as_they_are(monkeypatch):
    choose = LinearBandit._choose

    def raw(self, shown):
        kept = self._learner.estimate.copy()
        self._learner.estimate[:] = self.theta_hat.reshape(kept.shape)
        place = choose(self, shown)
        self._learner.estimate[:] = kept
        return place

    monkeypatch.setattr(LinearBandit, "_choose", raw)
    name = "private-oful, rounds, secure"
    assert names_of_violations("bandit", 4000, name) == [name]


@pytest.mark.usefixtures("live_ones_only")
def test_float_noise_in_place_of_secure_noise_in_counters_and_bandits(monkeypatch):
    monkeypatch.setattr(counter_base, "secure_laplace", faulty("float"))
    assert "binary counter, secure" in names_of_violations("counter", 20_000, "binary counter, secure")
    assert names_of_violations("bandit", 24_000, "PrivateUCB, secure") == ["PrivateUCB, secure"]


def test_half_the_noise_of_counters(monkeypatch):
    monkeypatch.setattr(audits, "_HORIZONS", (7, 16))
    plain = counter_base.Counter.node_scale
    monkeypatch.setattr(counter_base.Counter, "node_scale", lambda self, n: plain(self, n) / 2.0)
    nodes, drawn = (names_of_violations("counter", 20_000, part) for part in ("nodes", "float"))
    assert nodes == [f"{name} counter, its nodes" for name in COUNTERS]
    assert {"binary counter, float", "k-ary counter, float", "vector counter, float"} <= {*drawn}


def test_noise_that_is_drawn_once_for_all_nodes():
    class Reused(BinaryCounter):
        def _noised(self, node, n):
            return node + laplace(self.node_scale(n), len(node), int(self._key[0]) >> 2)

    make = functools.partial(audits._counter, replace(COUNTERS["binary"], make=Reused), 1.0)
    draw = functools.partial(audits._streams, make, "float", 1, np.eye(4)[1])
    assert audit(draw, 1.0, size=1000, alpha=SURE, events=audit_release.SIMULATED).lower > 3.0


class Entry(VectorCounter):
    """Without noise but for the first entry."""

    def _noised(self, node, n):
        return np.append(super()._noised(node, n)[:1], node[1:])


class Late(BinaryCounter):
    """Without noise from node 5 on."""

    def _noised(self, node, n):
        return super()._noised(node, n) if n < 5 else node


class Same(VectorCounter):
    """With one draw for both entries."""

    def _noised(self, node, n):
        return super()._noised(node, n)[:1] + (node - node[0])


@pytest.mark.parametrize(("name", "fault"), [("vector", Entry), ("vector", Same), ("binary", Late)])
def test_noise_of_some_entries_or_nodes_only_or_of_both_entries(monkeypatch, name, fault):
    monkeypatch.setitem(audits.COUNTERS, name, replace(COUNTERS[name], make=fault))
    assert names_of_violations("counter", 4000, f"{name} counter, float") == [f"{name} counter, float"]


def test_a_histogram_whose_last_bin_has_no_noise(monkeypatch):
    monkeypatch.setattr(twins, "simulated_geometric", lambda e, n, s: [*simulated_geometric(e, n, s)[:-1], 0])
    wrong = [f"private_histogram, {neighbours}, simulated" for neighbours in ("add-remove", "replace")]
    assert names_of_violations("release", 4000, "simulated") == wrong


@pytest.mark.usefixtures("live_ones_only")
def test_live_bandits_for_four_times_their_epsilon(monkeypatch):
    make, vector = COUNTERS["hybrid"].make, live.VectorCounter
    hybrid = replace(COUNTERS["hybrid"], make=lambda epsilon: make(4.0 * epsilon))
    monkeypatch.setattr(player, "COUNTERS", COUNTERS | {"hybrid": hybrid})
    monkeypatch.setattr(live, "VectorCounter", lambda epsilon, *given: vector(4.0 * epsilon, *given))
    names = ["PrivateUCB, secure", "private-oful, secure"]
    assert names_of_violations("bandit", 10_000, *names) == names


def test_a_level_that_was_forgotten():
    class Forgotten(BinaryCounter):
        def _parts(self, n):
            return max((self.horizon - 1).bit_length(), 1)

    losses = item_losses(lambda horizon, seed: Forgotten(1.0, horizon, seed=seed), 16)
    assert losses.max() == pytest.approx(1.25)


@pytest.mark.parametrize("name", [name for name, row in POLICIES.items() if row.private])
def test_half_the_noise_of_a_policy(name):
    """As a policy for 2 epsilon has it: what is known of an arm, of whose rewards that of round 1 differs.

    Over seeds the bounds lie 6 to 20 standard deviations above 1, and those of a policy for 1 below it.
    """
    pairs, rounds = audit_bandit.policy_pairs(registry.choose(name, 2.0, None, {}))
    pair, size = (pairs[1], 4000) if rounds > 100 else (pairs[7], 20_000)
    assert audit(pair, 1.0, size=size, alpha=SURE, events=[lambda seen: seen[:, 2:]]).violated


def test_half_the_noise_of_released_rows(monkeypatch):
    monkeypatch.setattr(twins, "NEIGHBOURS", {"add-remove": 1, "replace": 1})
    # at 2 fewer draws than at 1 show what 4 is: the bounds lie 6 standard deviations above 2
    wrong = names_of_violations("release", 20_000, "replace", epsilon=2.0)
    assert wrong == ["private_histogram, replace, secure", "private_histogram, replace, simulated"]
    monkeypatch.setattr(twins, "_SURE", 1.1)
    assert names_of_violations("release", 4000, "one_draw") == ["one_draw_private, its law"]


@pytest.mark.parametrize("kind", ["one_draw", "private_histogram"])
def test_rows_that_are_drawn_from_the_counts_as_they_are(monkeypatch, kind):
    def raw(self, size, seed=None, **how):
        return sample(replace(self, pmf=self.histogram.pmf), size, seed, **how)

    monkeypatch.setattr(twins.Twin, "sample", raw)
    wrong = [
        f"private_histogram, {who}, {how}" for who in twins.NEIGHBOURS for how in ("secure", "simulated")
    ]
    expected = ["one_draw_private, its rows"] if kind == "one_draw" else wrong
    assert names_of_violations("release", 4000, kind) == expected


def test_searches_for_twice_the_epsilon(monkeypatch):
    searched, sticks = game.LimitedGame._searched.func, gaussian.sticks
    twice = property(lambda self: (*searched(self)[:2], 2.0 * self.epsilon))
    monkeypatch.setattr(game.LimitedGame, "_searched", twice)
    monkeypatch.setattr(gaussian, "sticks", lambda *given: sticks(*given[:-1], 2.0 * given[-1]))
    wrong = ["GaussianGame, its law", "PairGame, its law"]
    assert names_of_violations("release", 4000, "Game") == wrong
