"""Reports of real users: a black-box audit, the bytes that travel, and what server and user refuse."""

from __future__ import annotations

import dataclasses
import math
import secrets

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from tests import naive, naive_symbols as truth

from equinoise.efb import Report, Server, Strategy, User, play, tune
from equinoise.games import bandit, load
from equinoise.mechanisms.hashing import MAX_BUCKETS, Hashing

COMPILED = not numba.config.DISABLE_JIT
TREE, KUHN = load("kuhn_poker")
ARMS = bandit(4)[0]
SENT = 4_000
LARGEST = Strategy(2**62, [0], [3], symbols=2 * MAX_BUCKETS, key=(2**64 - 1, 2**63))
MAGIC = [b"", b"EQS1", b"EQS2", b"EQR1", b"\xe5", b"\xe5\x07"]


def symbols_of(user, strategy, last_action, loss, n=SENT):
    return [user.report(strategy, last_action, loss).symbol for _ in range(n)]


def a_strategy(k, last=1, bucket=None, tree=ARMS):
    """A strategy of one arm for 2k symbols, from a trial whose address puts the arm into a bucket."""
    for trial in range(10_000):
        strategy = Strategy(trial, [0], [last], symbols=2 * k, key=(1, 2))
        if bucket is None or truth.items((1, 2), trial, 1, k)[0][0] == bucket:
            return strategy
    raise AssertionError("there is a trial for every bucket")


# ----------------------------------------------------------------------------------------------------------
# Audits. An honest user is accused once in 10^6 audits; a planted fault is far beyond what chance may hide.
# ----------------------------------------------------------------------------------------------------------

ERROR = 1e-6


def opposed(user, k, bucket=None):
    """Symbols for a loss of 0 and of 1, by one strategy."""
    strategy = a_strategy(k, bucket=bucket)
    return symbols_of(user, strategy, 1, 0.0), symbols_of(user, strategy, 1, 1.0)


@pytest.mark.parametrize(("epsilon", "k"), [(0.5, 1), (1.0, 2), (3.0, 3)])
def test_an_audit_never_finds_more_than_epsilon(epsilon, k):
    user = User(ARMS, epsilon)
    found = truth.epsilon_at_least(*opposed(user, k), 2 * k, ERROR)
    assert found <= epsilon
    assert found > 0.4 * epsilon  # and it is an audit that sees something


def test_an_audit_of_two_last_actions_never_finds_more_than_epsilon():
    infosets, actions = [0], []
    for s in infosets:  # the first action everywhere
        actions.append(int(TREE.action_ptr[s]))
        infosets += naive.infosets_below(TREE, actions[-1])
    strategy = Strategy(0, infosets, actions, symbols=4, key=(3, 4))
    lasts = [a for a in actions if len(naive.leaves_below(TREE, a))]
    user, sent = User(TREE, 1.0), {}
    for last, loss in ((lasts[0], 0.0), (lasts[-1], 1.0), (lasts[1], 0.5)):
        sent[last] = symbols_of(user, strategy, last, loss)
    first, *others = sent.values()
    assert len(sent) == 3
    assert all(truth.epsilon_at_least(first, other, 4, ERROR) <= 1.0 for other in others)


def swapped(code, word, own, value, radius):
    """p and q are swapped where the bucket is 0: the item's own symbol is the rarest."""
    ratio = (code.low + code.extra) / code.low
    if own >= 2:
        return truth.symbol(word, code.low, code.extra, code.n_buckets, own, value, radius)
    own ^= int(value < 0)
    rare = int(truth.WORDS / (1 + (2 * code.n_buckets - 1) * ratio))
    others = [s for s in range(2 * code.n_buckets) if s != own]
    return (
        own
        if word < rare
        else others[min((word - rare) * len(others) // (truth.WORDS - rare), len(others) - 1)]
    )


def leaking(code, word, own, value, radius):
    """The sign is the loss's own, and no coin decides between the two."""
    if word < 2 * code.low + code.extra:
        return own ^ int(value < 0)
    return truth.symbol(word, code.low, code.extra, code.n_buckets, own, value, radius)


def doubled(code, word, own, value, radius):
    """Twice the epsilon that was asked for."""
    code = Hashing.of(2.0 * math.log1p(code.extra / code.low), code.n_buckets)
    return truth.symbol(word, code.low, code.extra, code.n_buckets, own, value, radius)


@pytest.mark.parametrize("fault", [leaking, doubled])
def test_an_audit_finds_a_planted_fault(fault, monkeypatch):
    monkeypatch.setattr("equinoise.efb.protocol.user.symbol_of", fault)
    assert truth.epsilon_at_least(*opposed(User(ARMS, 1.0), 2, bucket=0), 4, ERROR) > 1.0


def surprise(epsilon, k, loss, bucket=None):
    """p-value of a user's symbols against counted words, chi-square."""
    strategy, code = a_strategy(k, bucket=bucket), Hashing.of(epsilon, k)
    own = truth.symbol_for(*truth.items((1, 2), strategy.trial, 1, k)[0])
    expected = np.full(2 * k, float(code.low))
    expected[own] += code.extra * loss
    expected[own ^ 1] += code.extra * (1.0 - loss)
    found = np.bincount(symbols_of(User(ARMS, epsilon), strategy, 1, loss), minlength=2 * k)
    return stats.chisquare(found, SENT * expected / truth.WORDS).pvalue


@pytest.mark.parametrize(("epsilon", "k", "loss"), [(1.0, 1, 0.1), (1.0, 2, 1.0), (2.0, 3, 0.9)])
def test_secure_symbols_have_their_frequencies(epsilon, k, loss):
    """One wrong alarm in 10^9 runs of each."""
    assert surprise(epsilon, k, loss) > 1e-9


@pytest.mark.parametrize("k", [1, 2])
def test_p_and_q_swapped_is_private_still_and_shows_in_the_frequencies(k, monkeypatch):
    monkeypatch.setattr("equinoise.efb.protocol.user.symbol_of", swapped)
    assert truth.epsilon_at_least(*opposed(User(ARMS, 1.0), k, bucket=0), 2 * k, ERROR) <= 1.0
    assert surprise(1.0, k, 1.0, bucket=0) < 1e-9


@pytest.mark.parametrize("k", [1, 2, 7, MAX_BUCKETS])
def test_a_secure_symbol_is_the_one_of_62_bits_of_the_operating_system(k, monkeypatch):
    rng, given_bits = np.random.default_rng(1), []
    ranges = np.array([[0.3, 0.6], [0.1, 0.9], [0.5, 0.5], [0.0, 0.2]])
    user, code = User(ARMS, 1.5, loss_range=ranges), Hashing.of(1.5, k)
    word = 0

    def randbits(n):
        given_bits.append(n)
        return word

    monkeypatch.setattr(secrets, "randbits", randbits)
    edges = [0, code.low, code.low + code.extra, 2 * code.low + code.extra, truth.WORDS - code.low]
    words = [w + d for w in edges for d in (-1, 0, 1) if 0 <= w + d < truth.WORDS] + [truth.WORDS - 1]
    words += rng.integers(truth.WORDS, size=30 if k < 100 else 3).tolist()
    for last, loss in ((0, 0.3), (0, 0.55), (1, 0.9), (1, 0.1), (2, 0.5), (3, 0.0)):
        strategy = a_strategy(k, last)
        own = truth.symbol_for(*truth.items((1, 2), strategy.trial, 1, k)[0])
        radius = max(abs(ranges[last] - 0.5)) or 1.0
        for word in words:
            wanted = truth.symbol(word, code.low, code.extra, k, own, loss - 0.5, radius)
            kept = code.low + code.extra * (0.5 + (loss - 0.5) / (2 * radius))
            if abs(word - kept) > 2**11:  # there the share's last bit decides, within [q, p] all the same
                assert user.report(strategy, last, loss).symbol == wanted
    assert set(given_bits) == {62}


def test_float_symbols_repeat_themselves_and_secure_ones_do_not():
    strategy = a_strategy(50)
    sent = [User(ARMS, 1.0, noise="float", seed=4).report(strategy, 1, 0.3).symbol for _ in range(5)]
    assert len(set(sent)) == 1
    assert len(set(symbols_of(User(ARMS, 1.0), strategy, 1, 0.3, 200))) > 10
    assert len({User(ARMS, 1.0, noise="float").report(strategy, 1, 0.3).symbol for _ in range(30)}) > 1


# ----------------------------------------------------------------------------------------------------------
# Messages
# ----------------------------------------------------------------------------------------------------------


def digits(number):
    return max(1, -(-number.bit_length() // 7))


@given(
    st.integers(0, 2**62),
    st.integers(0, 2 * MAX_BUCKETS - 1),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_a_symbol_there_and_back(trial, symbol, kind):
    data = Report(trial, symbol=symbol).to_bytes()
    assert 3 <= len(data) == 1 + digits(trial) + digits(symbol) <= 13
    report = Report.from_bytes(kind(data))
    assert (report.trial, report.symbol, report.values) == (trial, symbol, None)


@given(
    st.data(),
    st.integers(0, 2**62),
    st.integers(0, MAX_BUCKETS),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_a_strategy_there_and_back(data, trial, k, kind):
    n = data.draw(st.integers(1, 5))
    numbers = st.lists(st.integers(0, 2**63 - 1), min_size=n, max_size=n)
    infosets, actions = data.draw(numbers), data.draw(numbers)
    words = st.integers(0, 2**64 - 1)
    key = data.draw(st.tuples(words, words)) if k else (0, 0)
    sent = Strategy(trial, infosets, actions, 2 * k, key)
    assert len(sent.to_bytes()) == 20 + 24 * (k > 0) + 16 * n
    got = Strategy.from_bytes(kind(sent.to_bytes()))
    assert (got.trial, got.symbols, got.key.tolist()) == (trial, 2 * k, list(key))
    assert (got.infosets.tolist(), got.actions.tolist()) == (infosets, actions)


def parse(data):
    for kind in (Report, Strategy):
        try:
            message = kind.from_bytes(data)
        except ValueError:
            continue
        assert message.to_bytes() == data  # one message, one row of bytes


@given(st.sampled_from(MAGIC), st.binary(max_size=70))
def test_garbage_is_refused_with_a_value_error(magic, data):
    parse(magic + data)


@given(st.data())
def test_damaged_messages_are_refused_with_a_value_error(data):
    messages = [Report(5, [0.5, -1.0]), Report(300, symbol=200), LARGEST, Strategy(1, [0, 1], [0, 2])]
    damaged = bytearray(data.draw(st.sampled_from(messages)).to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    parse(bytes(damaged))
    parse(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    parse(bytes(damaged) + data.draw(st.binary(max_size=16)))


@pytest.mark.parametrize("data", ["e5850001", "e5058100", "e505", "e50581", "e505010000", "e5", "e5050100"])
def test_a_number_has_one_way_to_be_written(data):
    assert Report.from_bytes(bytes.fromhex("e50501")).symbol == 1
    with pytest.raises(ValueError, match="data"):
        Report.from_bytes(bytes.fromhex(data))


@pytest.mark.parametrize("data", [None, "text", 5, [1, 2], 0.5, {"symbol": 1}])
@pytest.mark.parametrize("kind", [Report, Strategy])
def test_what_is_no_bytes_is_a_type_error(kind, data):
    with pytest.raises(TypeError, match="data"):
        kind.from_bytes(data)


@pytest.mark.parametrize(
    "fields", [{}, {"values": [0.1], "symbol": 1}, {"symbol": -1}, {"symbol": 2 * MAX_BUCKETS},
               {"symbol": 0.0}, {"symbol": True}, {"symbol": "1"}],
)  # fmt: skip
def test_a_report_is_one_symbol_or_values(fields):
    with pytest.raises((TypeError, ValueError), match="symbol"):
        Report(0, **fields)


@pytest.mark.parametrize(
    "fields", [{"symbols": 3}, {"symbols": -2}, {"symbols": 2 * MAX_BUCKETS + 2}, {"symbols": 2.0},
               {"key": (1, -1)}, {"key": (1, 2**64)}, {"key": (1,)}, {"key": (1.0, 2.0)}, {"key": [[1, 2]]}],
)  # fmt: skip
def test_a_strategy_with_wrong_symbols_or_key_is_refused(fields):
    with pytest.raises((TypeError, ValueError), match=r"symbols|key"):
        Strategy(0, [0], [0], **({"symbols": 2} | fields))


# ----------------------------------------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------------------------------------


def state(server):
    return server.policy.tobytes(), server.draw().to_bytes(), server.trial


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_server_refuses_what_no_user_sends_and_stays_as_it_was(epsilon):
    server, user = (
        Server(TREE, horizon=50, epsilon=epsilon, seed=1),
        User(TREE, epsilon, noise="float", seed=1),
    )
    for _ in range(5):
        strategy = server.draw()
        server.update(user.report(strategy, *play(KUHN, strategy, seed=1)))
    before, k2 = state(server), server.tuning.symbols
    for report in (
        Report(5, symbol=k2), Report(5, symbol=k2 + 1), Report(5, symbol=2 * MAX_BUCKETS - 1),
        Report(4, symbol=0), Report(6, symbol=0), Report(5, np.zeros(len(strategy.actions))),
        Report(5, [0.0]), None, 0, b"\xe5\x05\x00",
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="report"):
            server.update(report)
        assert state(server) == before
    strategy = server.draw()
    items = truth.items(strategy.key, 5, len(strategy.actions), k2 // 2)
    server.update(Report(5, symbol=truth.symbol_for(*items[-1])))
    assert server.trial == 6 and server.policy.tobytes() != before[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
def test_values_that_noise_makes_once_in_e40_times_are_refused(epsilon):
    server = Server(ARMS, horizon=50, epsilon=epsilon, mechanism="laplace", seed=1)
    before, most = state(server), 40 * 2 / epsilon
    for value in (np.nextafter(1 + most, 9e9), np.nextafter(-most, -9e9), -1e4, 1e300):
        with pytest.raises(ValueError, match="report"):
            server.update(Report(0, [value]))
        assert state(server) == before
    with pytest.raises(ValueError, match="report"):
        server.update(Report(0, symbol=0))
    server.update(Report(0, [1 + most]))
    server.update(Report(1, [-most]))
    assert server.trial == 2


def test_a_loss_outside_the_range_of_its_action_is_refused_where_it_is_made():
    ranges = np.array([[0.3, 0.6], [0.1, 0.9], [0.5, 0.5], [0.0, 0.2]])
    for mechanism, strategies in (("hashing", 2), ("laplace", 0)):
        user = User(ARMS, 1.0, loss_range=ranges, mechanism=mechanism, noise="float", seed=1)
        for last, (low, high) in enumerate(ranges.tolist()):
            strategy = Strategy(0, [0], [last], symbols=strategies)
            for loss in (low, high, (low + high) / 2):
                user.report(strategy, last, loss)
            for loss in (np.nextafter(low, -1), np.nextafter(high, 2), -1.0, 2.0, math.nan, math.inf):
                with pytest.raises(ValueError, match="loss"):
                    user.report(strategy, last, loss)
    for wrong in ([0.2], (0.7, 0.3), (-0.1, 1.0), (0.0, 1.1), (0.0, math.nan), ranges[:3], ranges.T, "ab"):
        for made in (lambda r: User(ARMS, 1.0, loss_range=r), lambda r: tune(ARMS, 9, 1.0, loss_range=r)):
            with pytest.raises((TypeError, ValueError), match="loss_range"):
                made(wrong)


def test_a_range_is_kept_as_it_was_given():
    ranges = np.array([[0.3, 0.6], [0.1, 0.9], [0.5, 0.5], [0.0, 0.2]])
    user = User(ARMS, 1.0, loss_range=ranges)
    ranges[:] = 0.0, 1.0
    with pytest.raises(ValueError, match="loss"):
        user.report(Strategy(0, [0], [0], symbols=2), 0, 0.99)


def test_a_user_answers_any_server_privately_or_not_at_all():
    for epsilon in (1e-8, 1.0, 700.0):
        assert User(ARMS, epsilon).report(LARGEST, 3, 0.7).symbol < 2 * MAX_BUCKETS
    for user, strategy in (
        (User(ARMS, 1.0), Strategy(0, [0], [1])),  # values, which would not be noised as the user thinks
        (User(ARMS, 1.0, mechanism="laplace", noise="float"), Strategy(0, [0], [1], symbols=2)),
        (User(ARMS, math.inf), Strategy(0, [0], [1], symbols=2)),
    ):
        with pytest.raises(ValueError, match="strategy"):
            user.report(strategy, 1, 0.5)
    with pytest.raises(ValueError, match="epsilon"):
        User(ARMS, 1e-12)
    top = int(np.flatnonzero(np.diff(TREE.leaf_ptr) == 0)[0])
    strategy = Server(TREE, horizon=5, epsilon=1.0, seed=1).draw()
    with pytest.raises(ValueError, match="last_action"):
        User(TREE, 1.0).report(strategy, top, 0.5)


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 8.0])
def test_one_report_moves_no_weight_further_than_promised(epsilon):
    """exp(U), U = theta G/sqrt(V0) and theta = eta sqrt(V0 Q)/rho, whichever symbol is sent."""
    tuning = tune(TREE, 10**5, epsilon, loss_range=KUHN.loss_range)
    nu, q_root = truth.split_plan(TREE, tuning.radius)
    k, big_g = tuning.symbols // 2, truth.gain(epsilon, tuning.symbols // 2)
    most = tuning.learning_rate * big_g * math.sqrt(q_root) / tuning.explore
    for symbol in range(0, tuning.symbols, max(1, k // 8)):
        server = Server(TREE, horizon=10**5, epsilon=epsilon, tuning=tuning, seed=symbol)
        before = server.policy
        server.update(Report(0, symbol=symbol))
        assert np.abs(np.log(server.policy / before)).max() <= most * len(tuning.radius) ** 0.5 * (1 + 1e-9)
        assert max(tuning.radius / np.maximum(nu, 1e-300)) <= math.sqrt(q_root) * (1 + 1e-9)


@pytest.mark.parametrize(
    "change", [{"mechanism": "laplace"}, {"symbols": 0}, {"symbols": 3}, {"radius": None}, {"explore": 0.4},
               {"explore": 1.5}, {"radius": np.full(13, 0.6)}, {"symbols": 2 * MAX_BUCKETS + 2}],
)  # fmt: skip
def test_a_tuning_that_contradicts_itself_is_refused(change):
    made = tune(TREE, 1000, 1.0, loss_range=KUHN.loss_range)
    with pytest.raises(ValueError, match="tuning"):
        Server(TREE, horizon=1000, epsilon=1.0, tuning=dataclasses.replace(made, **change))


def test_values_are_not_sent_under_the_name_of_symbols():
    made = dataclasses.replace(tune(TREE, 1000, 1.0, "sharp", "laplace"), mechanism="hashing")
    with pytest.raises(ValueError, match="tuning"):
        Server(TREE, horizon=1000, epsilon=1.0, tuning=made)
