"""Server, User, messages: refusals that change nothing, saving and going on, bytes there and back."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests import naive

from equinoise.efb import Report, Server, Strategy, User, play, simulate, tune
from equinoise.games import Schedule, from_nested, load

DATA = Path(__file__).resolve().parents[1] / "data"
TREES = {
    "kuhn": load("kuhn_poker")[0],
    "wide": naive.random_tree(np.random.default_rng(61), widths=(40, 3)),
    "widest": naive.random_tree(np.random.default_rng(62), widths=(300,)),
}


def played(tree, n, *, seed=5, tuning="sharp", horizon=1000, epsilon=1.0):
    """A server after n trials against nobody in particular."""
    server = Server(tree, horizon=horizon, epsilon=epsilon, tuning=tuning, seed=seed)
    go_on(server, n)
    return server


def go_on(server, n, *, seed=5):
    environment = naive.random_environment(np.random.default_rng(6), server.tree)
    user = User(server.tree, server.tuning.epsilon, noise="float", seed=seed)
    for _ in range(n):
        strategy = server.draw()
        server.update(user.report(strategy, *play(environment, strategy, seed=seed)))


def state(server, path):
    """Everything that a server is, as bytes."""
    server.save(path)
    with np.load(path) as archive:
        saved = {name: archive[name].tobytes() for name in archive.files}
    return saved, server.trial, server.policy.tobytes(), server.draw().to_bytes()


# ----------------------------------------------------------------------------------------------------------
# The contract
# ----------------------------------------------------------------------------------------------------------


def test_signatures():
    def names(function):
        return {n: p.default for n, p in inspect.signature(function).parameters.items() if n != "self"}

    empty = inspect.Parameter.empty
    assert names(Server) == {
        "tree": empty, "horizon": empty, "epsilon": empty, "tuning": "sharp", "seed": None,
    }  # fmt: skip
    assert names(User) == {"tree": empty, "epsilon": empty, "noise": "secure", "seed": None}
    assert list(names(tune).items())[-1] == ("rule", "sharp")
    assert list(names(Server.update)) == ["report"]
    assert list(names(User.report)) == ["strategy", "last_action", "loss"]


@pytest.mark.parametrize("name", TREES)
def test_a_server_with_users_is_replicate_0_of_a_simulation(name):
    """Bit for bit, against a schedule too."""
    tree = TREES[name]
    rng = np.random.default_rng(3)
    schedule = Schedule([(naive.random_environment(rng, tree), n) for n in (30, 1, 100)])
    server = Server(tree, horizon=80, epsilon=2.0, seed=12)
    user = User(tree, 2.0, noise="float", seed=12)
    losses = []
    for _ in range(80):
        strategy = server.draw()
        last_action, loss = play(schedule, strategy, seed=12)
        server.update(user.report(strategy, last_action, loss))
        losses.append(loss)
    run = simulate(tree, schedule, horizon=80, epsilon=2.0, seed=12, n_replicates=2, n_checkpoints=80)
    assert server.policy.tobytes() == run.policy[0].tobytes() != run.policy[1].tobytes()
    np.testing.assert_allclose(np.cumsum(losses), run.loss[0], rtol=1e-13)
    assert server.trial == 80


def test_drawing_again_gives_the_same_strategy():
    server = played(TREES["kuhn"], 3)
    first = server.draw()
    policy = server.policy
    for _ in range(5):
        again = server.draw()
        assert again.to_bytes() == first.to_bytes() and again.trial == server.trial == 3
    assert server.policy.tobytes() == policy.tobytes()


def test_a_strategy_is_the_callers_own():
    server = played(TREES["kuhn"], 3)
    first = server.draw()
    kept = first.to_bytes()
    server.skip()
    server.draw()
    assert first.to_bytes() == kept
    with pytest.raises(ValueError):
        first.actions[0] = 0
    server.policy[:] = 0.0
    assert server.policy.sum() > 0


@pytest.mark.parametrize("name", TREES)
def test_strategies_are_reduced_and_breadth_first(name):
    tree, server = TREES[name], played(TREES[name], 0)
    for _ in range(100):
        strategy = server.draw()
        assert strategy.infosets.dtype == strategy.actions.dtype == np.int64
        assert strategy.infosets[0] == 0 and (np.diff(strategy.infosets) > 0).all()
        assert (tree.action_infoset[strategy.actions] == strategy.infosets).all()
        below = [s for a in strategy.actions for s in naive.infosets_below(tree, a)]
        assert strategy.infosets[1:].tolist() == below
        server.skip()


def test_skipping_learns_nothing_and_goes_on():
    server, other = played(TREES["kuhn"], 5), played(TREES["kuhn"], 5)
    policy = server.policy
    server.draw()
    server.skip()
    other.skip()  # before the strategy was drawn
    assert server.trial == other.trial == 6
    assert server.policy.tobytes() == policy.tobytes()
    assert server.draw().to_bytes() == other.draw().to_bytes()


def test_without_a_seed_servers_differ():
    drawn = []
    for _ in range(2):
        server = Server(TREES["widest"], horizon=100, epsilon=1.0)
        drawn.append([])
        for _ in range(20):
            drawn[-1].append(server.draw().to_bytes())
            server.skip()
    assert drawn[0] != drawn[1]


def test_a_server_ends_with_its_horizon():
    server = played(TREES["kuhn"], 4, horizon=4)
    policy = server.policy
    for call in (server.draw, server.skip, lambda: server.update(Report(4, np.zeros(4)))):
        with pytest.raises(ValueError, match="horizon"):
            call()
        assert server.trial == 4 and server.policy.tobytes() == policy.tobytes()


def test_a_tuning_of_ones_own():
    tree = TREES["kuhn"]
    own = tune(tree, 1000, 1.0, "paper")
    server = played(tree, 20, tuning=own)
    assert server.policy.tobytes() == played(tree, 20, tuning="paper").policy.tobytes()
    assert server.tuning.rule == "paper"


# ----------------------------------------------------------------------------------------------------------
# Refused reports
# ----------------------------------------------------------------------------------------------------------


def bad_reports(trial, n):
    values = np.linspace(-1.0, 1.0, n)
    for wrong in (math.nan, math.inf, -math.inf):
        for place in (0, n - 1):
            yield Report(trial, np.where(np.arange(n) == place, wrong, values))
    yield Report(trial + 1, values)
    yield Report(trial - 1, values)
    yield Report(trial, values[:-1])
    yield Report(trial, np.append(values, 0.0))
    yield Report(trial, [])
    yield Report(2**60, values)
    yield from (None, values, values.tolist(), Report(trial, values).to_bytes(), (trial, values), "report")


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("drawn", [True, False])
def test_a_refused_report_leaves_the_server_as_it_was(name, drawn, tmp_path):
    server, twin = played(TREES[name], 7), played(TREES[name], 7)
    n = len(twin.draw().actions)
    if drawn:
        server.draw()
    before = state(played(TREES[name], 7), tmp_path / "before")
    for report in bad_reports(7, n):
        with pytest.raises((TypeError, ValueError), match="report"):
            server.update(report)
    assert state(server, tmp_path / "after") == before
    good = Report(7, np.linspace(-1.0, 1.0, n))
    server.update(good)
    twin.update(good)
    go_on(server, 30)
    go_on(twin, 30)
    assert state(server, tmp_path / "a") == state(twin, tmp_path / "b")


def test_a_report_counts_once():
    server = played(TREES["kuhn"], 2)
    report = Report(2, np.ones(len(server.draw().actions)))
    server.update(report)
    policy = server.policy
    with pytest.raises(ValueError, match="report"):
        server.update(report)
    assert server.policy.tobytes() == policy.tobytes() and server.trial == 3


# ----------------------------------------------------------------------------------------------------------
# Save, load, go on
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_loaded_server_goes_on_to_the_same_bits(name, drawn, epsilon, tmp_path):
    whole = played(TREES[name], 60, epsilon=epsilon)
    part = played(TREES[name], 35, epsilon=epsilon)
    if drawn:
        part.draw()
    policy = part.policy.tobytes()
    part.save(tmp_path / "server")
    assert part.policy.tobytes() == policy and part.trial == 35
    loaded = Server.load(tmp_path / "server")
    assert loaded.trial == 35 and loaded.policy.tobytes() == policy
    assert loaded.draw().to_bytes() == part.draw().to_bytes()
    go_on(loaded, 25)
    assert state(loaded, tmp_path / "a") == state(whole, tmp_path / "b")
    assert loaded.tree.same_as(whole.tree) and loaded.tree.action_labels == whole.tree.action_labels
    assert loaded.tuning.bound(500) == whole.tuning.bound(500)


def test_a_server_that_an_earlier_version_saved_is_loaded():
    tree, environment = load("kuhn_poker")
    loaded, server = Server.load(DATA / "server.npz"), Server(tree, horizon=50, epsilon=2.0, seed=3)
    user = User(tree, 2.0, noise="float", seed=3)
    for _ in range(20):
        strategy = server.draw()
        server.update(user.report(strategy, *play(environment, strategy, seed=3)))
    assert loaded.trial == 20 and loaded.tree.same_as(tree)
    assert loaded.policy == pytest.approx(server.policy, rel=1e-9)
    assert loaded.draw().to_bytes() == server.draw().to_bytes()


def test_the_name_is_taken_as_it_is(tmp_path):
    server = played(TREES["kuhn"], 1)
    for name in ("server", "server.npz", "ein Server.bin"):
        server.save(tmp_path / name)
        server.save(str(tmp_path / name))  # again, over the old one
        assert Server.load(str(tmp_path / name)).trial == 1
    assert {path.name for path in tmp_path.iterdir()} == {"server", "server.npz", "ein Server.bin"}
    with pytest.raises(OSError):
        server.save(tmp_path / "nowhere" / "server")
    with pytest.raises(FileNotFoundError):
        Server.load(tmp_path / "nothing")


def test_a_damaged_file_is_refused(tmp_path):
    played(TREES["kuhn"], 9).save(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    part = tmp_path / "part"
    for cut in [0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 30, len(data) - 1]:
        part.write_bytes(data[:cut])
        with pytest.raises(ValueError, match="path"):
            Server.load(part)
    TREES["kuhn"].save(part)
    with pytest.raises(ValueError, match="path"):
        Server.load(part)
    part.write_bytes(b"a text, and no archive at all")
    with pytest.raises(ValueError, match="path"):
        Server.load(part)


def test_flipped_bits_in_a_file_are_noticed(tmp_path):
    """Every 97th byte, inverted: refused, or what is loaded is the very same server."""
    server = played(TREES["kuhn"], 9)
    server.save(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    good = state(server, tmp_path / "good")
    for place in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            loaded = Server.load(tmp_path / "damaged")
        except ValueError:
            continue
        assert state(loaded, tmp_path / "again") == good


def rewritten(path, **changes):
    """A saved server with some of its arrays replaced, checksums and all."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    memory = io.BytesIO()
    np.savez(memory, **{name: array for name, array in arrays.items() if array is not None})
    return memory.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": None},
        {"weight": np.ones(3)},
        {"weight": np.full(13, math.nan)},
        {"weight": np.full(13, -1.0)},
        {"weight": np.zeros(13)},
        {"exploration": np.ones(3)},
        {"exploration": np.full(13, math.nan)},
        {"exploration": np.full(13, -1.0)},
        {"key": np.zeros(1, dtype=np.uint64)},
        {"key": np.zeros(2)},
        {"action_ptr": np.array([0, 13])},
        {"infoset_ptr": np.ones(14, dtype=np.int64)},
        {"meta_json": np.frombuffer(b"{}", dtype=np.uint8)},
        {"meta_json": np.frombuffer(b'{"kind": "equinoise server, version 2"}', dtype=np.uint8)},
        {"meta_json": np.frombuffer(b'{"kind": "equinoise server, version 1"}', dtype=np.uint8)},
    ],
    ids=lambda changes: " ".join(f"{k} {None if v is None else v.tolist()}"[:30] for k, v in changes.items()),
)
def test_a_file_that_is_whole_but_wrong_is_refused(changes, tmp_path):
    played(TREES["kuhn"], 9).save(tmp_path / "whole")
    (tmp_path / "wrong").write_bytes(rewritten(tmp_path / "whole"))
    assert Server.load(tmp_path / "wrong").trial == 9
    (tmp_path / "wrong").write_bytes(rewritten(tmp_path / "whole", **changes))
    with pytest.raises(ValueError):
        Server.load(tmp_path / "wrong")


def test_a_file_holds_no_pickle(tmp_path):
    played(TREES["kuhn"], 1).save(tmp_path / "server")
    with zipfile.ZipFile(tmp_path / "server") as archive:
        assert all(archive.read(name).startswith(b"\x93NUMPY") for name in archive.namelist())
    with np.load(tmp_path / "server", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


# ----------------------------------------------------------------------------------------------------------
# Messages
# ----------------------------------------------------------------------------------------------------------

index = st.integers(0, 2**63 - 1)
trials = st.integers(0, 2**60)


@settings(deadline=None)
@given(trials, st.lists(st.tuples(index, index), max_size=20))
def test_strategies_travel(trial, pairs):
    given_one = Strategy(trial, [s for s, _ in pairs], [a for _, a in pairs])
    data = given_one.to_bytes()
    other = Strategy.from_bytes(data)
    assert (other.trial, other.infosets.tolist(), other.actions.tolist()) == (
        trial, [s for s, _ in pairs], [a for _, a in pairs],
    )  # fmt: skip
    assert other.infosets.dtype == other.actions.dtype == np.int64
    assert other.to_bytes() == data and Strategy.from_bytes(memoryview(bytearray(data))).to_bytes() == data


@settings(deadline=None)
@given(trials, st.lists(st.floats(allow_nan=False), max_size=20))
def test_reports_travel(trial, values):
    data = Report(trial, values).to_bytes()
    other = Report.from_bytes(data)
    assert other.trial == trial and other.values.dtype == np.float64
    assert struct.pack(f"<{len(values)}d", *other.values) == struct.pack(f"<{len(values)}d", *values)
    assert other.to_bytes() == data


def test_messages_have_a_fixed_form():
    """Little-endian whatever the machine: four letters, trial, length, numbers."""
    assert Strategy(3, [0, 2], [1, 5]).to_bytes() == struct.pack("<4sqq4q", b"EQS1", 3, 2, 0, 2, 1, 5)
    assert Report(3, [0.5, -2.0]).to_bytes() == struct.pack("<4sqq2d", b"EQR1", 3, 2, 0.5, -2.0)


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


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([Strategy, Report]), st.binary(max_size=80))
def test_any_bytes_are_refused_or_a_message(kind, data):
    for candidate in (data, GOOD[kind][:20] + data, GOOD[kind][:4] + data):
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
    with pytest.raises(AttributeError):
        report.trial = 2


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, ">f8"])
def test_reports_take_any_numbers(dtype):
    assert Report(0, np.array([1, 2], dtype=dtype)).values.tolist() == [1.0, 2.0]


def test_forged_strategies_are_refused():
    """A user, and a play, take nothing but a reduced strategy of their tree."""
    tree, environment = from_nested([[0.2, [[0.1], [0.9]], [[0.5], [0.7]]], [0.4]])
    user = User(tree, 1.0, noise="float", seed=1)
    good = Strategy(0, [0, 1, 2], [0, 2, 5])
    assert play(environment, good, seed=1)[0] in (0, 2, 5)
    assert len(user.report(good, 2, 0.5).values) == 3
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
                call(Strategy(0, infosets, actions))
