"""Server and User: refusals that change nothing, saving and going on, the same bits as a simulation."""

from __future__ import annotations

import dataclasses
import inspect
import io
import math
import re
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests import naive

from equinoise.efb import Report, Server, Tuning, User, play, simulate, tune
from equinoise.efb.kernels import learner
from equinoise.games import Schedule, load

DATA = Path(__file__).resolve().parents[1] / "data"
TREES = {
    "kuhn": load("kuhn_poker")[0],
    "wide": naive.random_tree(np.random.default_rng(61), widths=(40, 3)),
    "widest": naive.random_tree(np.random.default_rng(62), widths=(300,)),
}


MECHANISMS = ("hashing", "laplace")


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return request.param


def played(tree, n, mechanism, *, seed=5, tuning="sharp", horizon=1000, epsilon=1.0):
    """A server after n trials against nobody in particular."""
    server = Server(tree, horizon=horizon, epsilon=epsilon, tuning=tuning, mechanism=mechanism, seed=seed)
    go_on(server, n)
    return server


def go_on(server, n, *, seed=5):
    environment = naive.random_environment(np.random.default_rng(6), server.tree)
    user = User(
        server.tree, server.tuning.epsilon, mechanism=server.tuning.mechanism, noise="float", seed=seed
    )
    for _ in range(n):
        strategy = server.draw()
        server.update(user.report(strategy, *play(environment, strategy, seed=seed)))


def state(server, path):
    """Everything that a server is but which object wrote it, as bytes."""
    server.save(path, overwrite=True)
    with np.load(path) as archive:
        saved = {name: archive[name].tobytes() for name in archive.files}
    saved["meta_json"] = re.sub(rb'"line": \d+, "saved": .\d+, \d+.', b"", saved["meta_json"])
    return saved, server.trial, server.policy.tobytes(), server.draw().to_bytes()


# ----------------------------------------------------------------------------------------------------------
# The contract
# ----------------------------------------------------------------------------------------------------------


def test_signatures():
    def names(function):
        return {n: p.default for n, p in inspect.signature(function).parameters.items() if n != "self"}

    empty = inspect.Parameter.empty
    assert names(Server) == {
        "tree": empty, "horizon": empty, "epsilon": empty, "tuning": "sharp", "mechanism": "hashing",
        "loss_range": (0.0, 1.0), "seed": None,
    }  # fmt: skip
    assert names(User) == {
        "tree": empty, "epsilon": empty, "mechanism": "hashing", "loss_range": (0.0, 1.0), "noise": "secure",
        "seed": None,
    }  # fmt: skip
    assert list(names(tune).items())[3:] == [
        ("rule", "sharp"), ("mechanism", "hashing"), ("loss_range", (0.0, 1.0)),
    ]  # fmt: skip
    assert names(simulate)["mechanism"] == "hashing" and names(simulate)["tuning"] == "sharp"
    assert list(names(Server.update)) == ["report"]
    assert list(names(User.report)) == ["strategy", "last_action", "loss"]


@pytest.mark.parametrize("name", TREES)
def test_a_server_with_users_is_replicate_0_of_a_simulation(name, mechanism):
    """Bit for bit, against a schedule too."""
    tree = TREES[name]
    rng = np.random.default_rng(3)
    schedule = Schedule([(naive.random_environment(rng, tree), n) for n in (30, 1, 100)])
    ranges = schedule.loss_range
    server = Server(tree, horizon=80, epsilon=2.0, mechanism=mechanism, loss_range=ranges, seed=12)
    user = User(tree, 2.0, mechanism=mechanism, loss_range=ranges, noise="float", seed=12)
    losses = []
    for _ in range(80):
        strategy = server.draw()
        last_action, loss = play(schedule, strategy, seed=12)
        server.update(user.report(strategy, last_action, loss))
        losses.append(loss)
    run = simulate(
        tree, schedule, horizon=80, epsilon=2.0, mechanism=mechanism, seed=12, n_replicates=2,
        n_checkpoints=80,
    )  # fmt: skip
    assert server.policy.tobytes() == run.policy[0].tobytes() != run.policy[1].tobytes()
    np.testing.assert_allclose(np.cumsum(losses), run.loss[0], rtol=1e-13)
    assert server.trial == 80


def test_drawing_again_gives_the_same_strategy(mechanism):
    server = played(TREES["kuhn"], 3, mechanism)
    first = server.draw()
    policy = server.policy
    for _ in range(5):
        again = server.draw()
        assert again.to_bytes() == first.to_bytes() and again.trial == server.trial == 3
    assert server.policy.tobytes() == policy.tobytes()


def test_a_strategy_is_the_callers_own(mechanism):
    server = played(TREES["kuhn"], 3, mechanism)
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
def test_strategies_are_reduced_and_breadth_first(name, mechanism):
    tree, server = TREES[name], played(TREES[name], 0, mechanism)
    for _ in range(100):
        strategy = server.draw()
        assert strategy.infosets.dtype == strategy.actions.dtype == np.int64
        assert strategy.infosets[0] == 0 and (np.diff(strategy.infosets) > 0).all()
        assert (tree.action_infoset[strategy.actions] == strategy.infosets).all()
        below = [s for a in strategy.actions for s in naive.infosets_below(tree, a)]
        assert strategy.infosets[1:].tolist() == below
        server.skip()


def test_skipping_learns_nothing_and_goes_on(mechanism):
    server, other = played(TREES["kuhn"], 5, mechanism), played(TREES["kuhn"], 5, mechanism)
    policy = server.policy
    server.draw()
    server.skip()
    other.skip()  # before the strategy was drawn
    assert server.trial == other.trial == 6
    assert server.policy.tobytes() == policy.tobytes()
    assert server.draw().to_bytes() == other.draw().to_bytes()


def test_without_a_seed_servers_differ(mechanism):
    drawn = []
    for _ in range(2):
        server = Server(TREES["widest"], horizon=100, epsilon=1.0, mechanism=mechanism)
        drawn.append([])
        for _ in range(20):
            drawn[-1].append(server.draw().to_bytes())
            server.skip()
    assert drawn[0] != drawn[1]


def test_a_server_ends_with_its_horizon(mechanism):
    server = played(TREES["kuhn"], 4, mechanism, horizon=4)
    policy = server.policy
    report = Report(4, symbol=0) if mechanism == "hashing" else Report(4, np.zeros(4))
    for call in (server.draw, server.skip, lambda: server.update(report)):
        with pytest.raises(ValueError, match="horizon"):
            call()
        assert server.trial == 4 and server.policy.tobytes() == policy.tobytes()


@pytest.mark.parametrize(
    ("rule", "mechanism"), [("paper", "laplace"), ("sharp", "laplace"), ("sharp", "hashing")]
)
def test_a_tuning_of_ones_own(rule, mechanism):
    tree = TREES["kuhn"]
    own = tune(tree, 1000, 1.0, rule, mechanism)
    server = played(tree, 20, mechanism, tuning=own)
    assert server.policy.tobytes() == played(tree, 20, mechanism, tuning=rule).policy.tobytes()
    assert (server.tuning.rule, server.tuning.mechanism) == (rule, mechanism)
    assert server.tuning.regret_bound == own.regret_bound


# ----------------------------------------------------------------------------------------------------------
# Refused reports
# ----------------------------------------------------------------------------------------------------------


def good_report(server):
    """One that the server takes, whatever the user did."""
    n = len(server.draw().actions)
    if server.tuning.symbols:
        return Report(server.trial, symbol=server.tuning.symbols - 1)
    return Report(server.trial, np.linspace(-1.0, 1.0, n))


def bad_symbols(trial, n, symbols):
    """Of another trial, kind or number than a server takes that asks for one of so many symbols."""
    yield from (Report(trial, symbol=s) for s in (symbols, symbols + 1, 2**17 - 1))
    yield from (Report(t, symbol=0) for t in (trial + 1, trial - 1, 2**60))
    yield from (Report(trial, values) for values in (np.zeros(n), [0.0], [], np.ones(n + 1)))
    yield from (None, 0, 1.0, Report(trial, symbol=0).to_bytes(), (trial, 0), "report")


def bad_values(trial, n):
    """The same for a server that asks for n values with noise of scale 2."""
    values = np.linspace(-1.0, 1.0, n)
    for wrong in (math.nan, math.inf, -math.inf, 81.5, -80.5, 1e300, -1000.0):  # 40 scales are 80
        for place in (0, n - 1):
            yield Report(trial, np.where(np.arange(n) == place, wrong, values))
    yield Report(trial + 1, values)
    yield Report(trial - 1, values)
    yield Report(trial, values[:-1])
    yield Report(trial, np.append(values, 0.0))
    yield Report(trial, [])
    yield Report(2**60, values)
    yield Report(trial, symbol=0)
    yield from (None, values, values.tolist(), Report(trial, values).to_bytes(), (trial, values), "report")


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("drawn", [True, False])
def test_a_refused_report_leaves_the_server_as_it_was(name, drawn, mechanism, tmp_path):
    server, twin = (played(TREES[name], 7, mechanism) for _ in range(2))
    n = len(twin.draw().actions)
    if drawn:
        server.draw()
    before = state(played(TREES[name], 7, mechanism), tmp_path / "before")
    bad = bad_symbols(7, n, server.tuning.symbols) if mechanism == "hashing" else bad_values(7, n)
    for report in bad:
        with pytest.raises((TypeError, ValueError), match="report"):
            server.update(report)
    assert state(server, tmp_path / "after") == before
    good = good_report(twin)
    server.update(good)
    twin.update(good)
    assert server.policy.tobytes() != before[2]
    go_on(server, 30)
    go_on(twin, 30)
    assert state(server, tmp_path / "a") == state(twin, tmp_path / "b")


def test_no_report_within_the_noise_is_refused():
    """Up to 40 scales of noise below 0 and above 1, at both ends of the report."""
    tree = TREES["kuhn"]
    for value in (-79.9, 80.9):
        server = played(tree, 3, "laplace")
        server.update(Report(3, np.full(len(server.draw().actions), value)))
        assert server.trial == 4


def test_a_report_counts_once(mechanism):
    server = played(TREES["kuhn"], 2, mechanism)
    report = good_report(server)
    server.update(report)
    policy = server.policy
    with pytest.raises(ValueError, match="report"):
        server.update(report)
    assert server.policy.tobytes() == policy.tobytes() and server.trial == 3


def test_a_report_counts_once_whenever_ctrl_c_is_pressed(mechanism, monkeypatch):
    server, other = (played(TREES["kuhn"], 2, mechanism) for _ in range(2))
    report, learn = good_report(server), learner.update

    def hear(*arguments):
        learn(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(learner, "update", hear)
    with pytest.raises(KeyboardInterrupt):
        server.update(report)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="report"):
        server.update(report)
    other.update(report)
    assert server.policy.tobytes() == other.policy.tobytes() and server.trial == 3


def test_a_save_while_a_server_learns_has_no_report_without_its_trial(mechanism, monkeypatch, tmp_path):
    """As by a handler of SIGTERM: the trial would be played again, and learnt twice."""
    server, learn = played(TREES["kuhn"], 2, mechanism), learner.update

    def hear(*arguments):
        learn(*arguments)
        server.save(tmp_path / "server")

    monkeypatch.setattr(learner, "update", hear)
    server.update(good_report(server))
    loaded = Server.load(tmp_path / "server")
    assert loaded.trial == 3 and loaded.policy.tobytes() == server.policy.tobytes()


# ----------------------------------------------------------------------------------------------------------
# Save, load, go on
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_loaded_server_goes_on_to_the_same_bits(name, drawn, epsilon, mechanism, tmp_path):
    whole = played(TREES[name], 60, mechanism, epsilon=epsilon)
    part = played(TREES[name], 35, mechanism, epsilon=epsilon)
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
    for field in dataclasses.fields(Tuning):
        np.testing.assert_array_equal(getattr(loaded.tuning, field.name), getattr(whole.tuning, field.name))


def test_a_server_that_an_earlier_version_saved_is_loaded():
    tree, environment = load("kuhn_poker")
    loaded = Server.load(DATA / "server.npz")
    server = played(tree, 0, "laplace", horizon=50, epsilon=2.0, seed=3)
    user = User(tree, 2.0, mechanism="laplace", noise="float", seed=3)
    for _ in range(20):
        strategy = server.draw()
        server.update(user.report(strategy, *play(environment, strategy, seed=3)))
    assert loaded.trial == 20 and loaded.tree.same_as(tree)
    assert loaded.policy == pytest.approx(server.policy, rel=1e-9)
    assert loaded.draw().to_bytes() == server.draw().to_bytes()


def test_the_name_is_taken_as_it_is(mechanism, tmp_path):
    server = played(TREES["kuhn"], 1, mechanism)
    for name in ("server", "server.npz", "ein Server.bin"):
        server.save(tmp_path / name)
        server.save(str(tmp_path / name))  # again, over the old one
        assert Server.load(str(tmp_path / name)).trial == 1
    assert {path.name for path in tmp_path.iterdir()} == {"server", "server.npz", "ein Server.bin"}
    with pytest.raises(OSError):
        server.save(tmp_path / "nowhere" / "server")
    with pytest.raises(FileNotFoundError):
        Server.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"^path .* does not hold a whole server: .*directory"):
        Server.load(tmp_path)


def test_a_damaged_file_is_refused(mechanism, tmp_path):
    played(TREES["kuhn"], 9, mechanism).save(tmp_path / "whole")
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


def test_flipped_bits_in_a_file_are_noticed(mechanism, tmp_path):
    """Every 97th byte, inverted: refused, or what is loaded is the very same server."""
    server = played(TREES["kuhn"], 9, mechanism)
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
def test_a_file_that_is_whole_but_wrong_is_refused(changes, mechanism, tmp_path):
    played(TREES["kuhn"], 9, mechanism).save(tmp_path / "whole")
    (tmp_path / "wrong").write_bytes(rewritten(tmp_path / "whole"))
    assert Server.load(tmp_path / "wrong").trial == 9
    (tmp_path / "wrong").write_bytes(rewritten(tmp_path / "whole", **changes))
    with pytest.raises(ValueError):
        Server.load(tmp_path / "wrong")


def test_a_file_holds_no_pickle(mechanism, tmp_path):
    played(TREES["kuhn"], 1, mechanism).save(tmp_path / "server")
    with zipfile.ZipFile(tmp_path / "server") as archive:
        assert all(archive.read(name).startswith(b"\x93NUMPY") for name in archive.namelist())
    with np.load(tmp_path / "server", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
