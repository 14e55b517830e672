"""Messages between server and user: bytes there and back, and what is no message."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise.efb import Report, Strategy, User, play
from equinoise.games import from_nested

index = st.integers(0, 2**63 - 1)
trials = st.integers(0, 2**60)


words = st.integers(0, 2**64 - 1)


@given(trials, st.lists(st.tuples(index, index), max_size=20), st.integers(0, 2**16), st.tuples(words, words))
def test_strategies_travel(trial, pairs, buckets, key):
    """One that asks for noised losses sends no key."""
    key = key if buckets else (0, 0)
    numbers = [s for s, _ in pairs], [a for _, a in pairs]
    given_one = Strategy(trial, *numbers, 2 * buckets, np.array(key, dtype=np.uint64))
    data = given_one.to_bytes()
    other = Strategy.from_bytes(data)
    assert (other.trial, other.infosets.tolist(), other.actions.tolist()) == (
        trial, [s for s, _ in pairs], [a for _, a in pairs],
    )  # fmt: skip
    assert other.infosets.dtype == other.actions.dtype == np.int64
    assert (other.symbols, other.key.tolist()) == (2 * buckets, list(key)) and other.key.dtype == np.uint64
    assert other.to_bytes() == data and Strategy.from_bytes(memoryview(bytearray(data))).to_bytes() == data


@given(trials, st.lists(st.floats(allow_nan=False), max_size=20))
def test_reports_travel(trial, values):
    data = Report(trial, values).to_bytes()
    other = Report.from_bytes(data)
    assert other.trial == trial and other.values.dtype == np.float64
    assert struct.pack(f"<{len(values)}d", *other.values) == struct.pack(f"<{len(values)}d", *values)
    assert other.to_bytes() == data


@given(trials, st.integers(0, 2**17 - 1))
def test_symbols_travel(trial, symbol):
    data = Report(trial, symbol=symbol).to_bytes()
    other = Report.from_bytes(memoryview(bytearray(data)))
    assert (other.trial, other.symbol, other.values) == (trial, symbol, None)
    assert other.to_bytes() == data and 3 <= len(data) <= 13


def test_messages_have_a_fixed_form():
    """Little-endian whatever the machine: four letters, trial, length, numbers; symbols in base 128."""
    hashed = Strategy(3, [0, 2], [1, 5], symbols=4, key=(7, 2**64 - 1)).to_bytes()
    assert hashed == struct.pack("<4sqqqQQ4q", b"EQS2", 3, 2, 4, 7, 2**64 - 1, 0, 2, 1, 5)
    assert Report(3, symbol=1).to_bytes() == bytes([0xE5, 3, 1])
    assert Report(300, symbol=127).to_bytes() == bytes([0xE5, 0x80 | 44, 2, 127])
    assert Report(0, symbol=128).to_bytes() == bytes([0xE5, 0, 0x80, 1])
    assert Strategy(3, [0, 2], [1, 5]).to_bytes() == struct.pack("<4sqq4q", b"EQS1", 3, 2, 0, 2, 1, 5)
    assert Report(3, [0.5, -2.0]).to_bytes() == struct.pack("<4sqq2d", b"EQR1", 3, 2, 0.5, -2.0)


def test_malformed_symbols():
    good = Report(300, symbol=130).to_bytes()
    assert len(good) == 5 and Report.from_bytes(good).symbol == 130
    wrong = [good[:cut] for cut in range(len(good))] + [good + b"\0", good + good[1:], good[::-1], good * 9]
    wrong += [bytes([0xE5, 3]), bytes([0xE5, 3, 1, 1]), bytes([0xE5, 3, 0x81, 0]), bytes([0xE5, 0x83, 0, 1])]
    wrong += [b"\xe5" + b"\xff" * n for n in (1, 5, 40, 10**6)]
    wrong += [b"\xe5" + b"\xff" * 9 + b"\x01\x01", bytes([0xE5, 3, 0x80, 0x80, 8])]  # too late, too many
    for data in wrong:
        with pytest.raises(ValueError):
            Report.from_bytes(data)


def test_malformed_strategies_that_ask_for_a_symbol():
    good = Strategy(3, [0, 2], [1, 5], symbols=4, key=(7, 8)).to_bytes()
    form = struct.Struct("<4sqqqQQ")
    wrong = [good[:cut] for cut in range(len(good))] + [good + b"\0", good + good, b"EQS1" + good[4:]]
    wrong += [form.pack(b"EQS2", 3, n, 4, 7, 8) + good[form.size :] for n in (0, 1, 3, -1, 2**62, -(2**63))]
    wrong += [form.pack(b"EQS2", t, 2, 4, 7, 8) + good[form.size :] for t in (-1, -(2**63), 2**63 - 1)]
    wrong += [form.pack(b"EQS2", 3, 2, k, 7, 8) + good[form.size :] for k in (3, -2, 2**17 + 2, 2**62)]
    for data in wrong:
        with pytest.raises(ValueError):
            Strategy.from_bytes(data)


GOOD = {Strategy: Strategy(3, [0, 2], [1, 5]).to_bytes(), Report: Report(3, [0.5, -2.0]).to_bytes()}


@pytest.mark.parametrize("kind", [Strategy, Report])
def test_malformed_bytes(kind):
    good = GOOD[kind]
    other = next(data for k, data in GOOD.items() if k is not kind)
    header = struct.Struct("<4sqq")
    magic = good[:4]
    wrong = [good[:cut] for cut in range(len(good))]
    wrong += [good + b"\0", good + good, other, b"x" * len(good), good[::-1], magic.lower() + good[4:]]
    wrong += [header.pack(magic, 3, n) + good[20:] for n in (0, 1, 3, -1, -2, 2**62, -(2**63), 2**63 - 1)]
    wrong += [header.pack(magic, trial, 2) + good[20:] for trial in (-1, -(2**63), 2**63 - 1)]
    for data in wrong:
        with pytest.raises(ValueError):
            kind.from_bytes(data)
    for data in (None, "text", 5, [1, 2], np.zeros(5)):
        with pytest.raises(TypeError, match="data"):
            kind.from_bytes(data)


def test_negative_numbers_in_bytes():
    for wrong in (struct.pack("<4sqq2q", b"EQS1", 3, 1, -1, 0), struct.pack("<4sqq2q", b"EQS1", 3, 1, 0, -1)):
        with pytest.raises(ValueError, match=r"infosets|actions"):
            Strategy.from_bytes(wrong)


@settings(max_examples=200)
@given(st.sampled_from([Strategy, Report]), st.binary(max_size=80))
def test_any_bytes_are_refused_or_a_message(kind, data):
    for candidate in (data, GOOD[kind][:20] + data, GOOD[kind][:4] + data, b"\xe5" + data, b"EQS2" + data):
        with contextlib.suppress(ValueError):
            assert kind.from_bytes(candidate).to_bytes() == candidate


def test_messages_cannot_be_changed():
    values = np.ones(2)
    report = Report(1, values)
    values[0] = 5.0
    assert report.values.tolist() == [1.0, 1.0]
    for array in (report.values, Report.from_bytes(GOOD[Report]).values, Strategy(1, [0], [1]).actions):
        with pytest.raises(ValueError):
            array[0] = 3
    with pytest.raises(ValueError):
        Strategy(1, [0], [1], symbols=2, key=(1, 2)).key[0] = 3
    for message, name in ((report, "trial"), (Report(1, symbol=1), "symbol"), (Strategy(1, [0], [1]), "key")):
        with pytest.raises(AttributeError):
            setattr(message, name, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, ">f8"])
def test_reports_take_any_numbers(dtype):
    assert Report(0, np.array([1, 2], dtype=dtype)).values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("mechanism", ["hashing", "laplace"])
def test_forged_strategies_are_refused(mechanism):
    """A user, and a play, take nothing but a reduced strategy of their tree."""
    tree, environment = from_nested([[0.2, [[0.1], [0.9]], [[0.5], [0.7]]], [0.4]])
    user = User(tree, 1.0, mechanism=mechanism, noise="float", seed=1)
    symbols = 2 if mechanism == "hashing" else 0
    good = Strategy(0, [0, 1, 2], [0, 2, 5], symbols)
    assert play(environment, good, seed=1)[0] in (0, 2, 5)
    report = user.report(good, 2, 0.5)
    assert report.symbol in (0, 1) if symbols else len(report.values) == 3
    wrong = [
        ([], []),
        ([0], [0]),  # children missing
        ([0, 1], [0, 2]),
        ([0, 1, 2, 2], [0, 2, 4, 4]),
        ([0, 2, 1], [0, 4, 2]),  # not breadth first
        ([0, 1, 2], [0, 4, 2]),  # actions of other infosets
        ([0, 1, 1], [0, 2, 2]),
        ([1, 2], [2, 4]),  # no root
        ([0, 1, 2], [1, 2, 4]),  # below an action that was not picked
        ([0, 1, 2], [0, 2, 6]),  # no such action
        ([0, 1, 3], [0, 2, 4]),  # no such infoset
        ([0, 1, 2**62], [0, 2, 4]),
        ([0, 1, 2], [0, 2, 2**62]),
    ]
    for infosets, actions in wrong:
        for call in (lambda s: user.report(s, 2, 0.5), lambda s: play(environment, s, seed=1)):
            with pytest.raises(ValueError, match="strategy"):
                call(Strategy(0, infosets, actions, symbols))


@pytest.mark.parametrize("kind", [Strategy, Report])
@pytest.mark.parametrize("size", [0, 4, 19])
def test_a_message_that_is_too_short_is_called_so(kind, size):
    """It may begin as it should, and then it is not its beginning that is wrong."""
    whole = kind(7, [0], [1]) if kind is Strategy else kind(7, [0.5])
    with pytest.raises(ValueError, match=rf"a whole message, of 20 bytes or more, got {size} bytes"):
        kind.from_bytes(whole.to_bytes()[:size])
