"""Saved live bandits go on as if never stopped; a file is whole or refused, whenever the power fails."""

from __future__ import annotations

import io
import os
import pathlib
import stat
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from tests.bandits.test_live import CASES, PRIVATE_EACH, go_on, loaded, make, releases, saved, table

from equinoise.bandits.live import DPKLUCB, UCB, UCB1, LazyDPTS, PrivateUCB

__all__ = ["releases"]  # a fixture

POSIX = pytest.mark.skipif(os.name != "posix", reason="owners and signals")


@pytest.mark.parametrize("case", CASES)
def test_after_a_load_the_choices_are_those_of_an_unbroken_run(case, tmp_path):
    """Saved at round 100; the next 100 choices, and then every number."""
    rewards = table(6)
    whole, part = make(case, 4, seed=12), make(case, 4, seed=12)
    go_on(whole, 100, rewards)
    go_on(part, 100, rewards)
    part.save(tmp_path / "bandit")
    again = type(part).load(tmp_path / "bandit")
    assert repr(again) == repr(part) and again.choices.tolist() == part.choices.tolist()
    assert go_on(again, 100, rewards) == go_on(whole, 100, rewards)
    assert saved(again, tmp_path / "a") == saved(whole, tmp_path / "b")


@pytest.mark.parametrize("case", CASES)
def test_open_tickets_and_arms_that_came_and_went_are_saved(case, tmp_path):
    """Names, bounds, a dropped arm with a late reward, noise that waits for its reward."""
    bandits = [make(case, ["a", "b", "c"], seed=3, bounds=(-1, 2)) for _ in range(2)]
    for i, bandit in enumerate(bandits):
        tickets = bandit.request(8)
        for ticket in tickets[:5]:
            bandit.update(ticket, 0.5)
        bandit.drop_arm("b")
        bandit.add_arm("ü")
        bandit.request(3)
        if i:
            bandit = bandits[1] = loaded(bandit)
        assert bandit.arms == ("a", "b", "c", "ü") and bandit.in_play == ("a", "c", "ü")
        assert bandit.bounds == (-1.0, 2.0)
        for ticket in bandit.open_tickets[::-1]:
            bandit.update(ticket, ticket.number % 3)
        for _ in range(60):
            bandit.update(bandit.select(), 1.25)
    assert saved(bandits[0], tmp_path / "a") == saved(bandits[1], tmp_path / "b")


@pytest.mark.parametrize("case", PRIVATE_EACH)
def test_secure_sums_go_on_too(case, releases, tmp_path):
    """With no noise in the place of secure noise: an unbroken run, and one of three loads."""
    rewards = table(1, n_arms=5)
    releases.rule = lambda values, scale, i: values
    whole, part = (make(case, ["A", "B", "C"], seed=None, noise="secure", ties="first") for _ in range(2))
    for n, drop in ((37, "B"), (40, "A"), (50, None)):
        assert go_on(whole, n, rewards) == go_on(part, n, rewards)
        for bandit in (whole, part):
            bandit.request(3)
            if drop:
                bandit.drop_arm(drop)
                bandit.add_arm(drop * 2)
        part = loaded(part)
        assert saved(whole, tmp_path / "a") == saved(part, tmp_path / "b")
    if case in ("k-ary", "binary", "hybrid"):
        np.testing.assert_allclose(part.private_means[2:], part.means[2:], rtol=1e-7)


@pytest.mark.parametrize("epsilon", [np.int64(1), np.float32(1.0), np.longdouble(1.0), Fraction(1)])
@pytest.mark.parametrize("kind", [PrivateUCB, DPKLUCB, LazyDPTS])
def test_an_epsilon_of_any_kind_of_number_is_the_float(kind, epsilon, tmp_path):
    horizon = {"horizon": 100} if kind is PrivateUCB else {}
    bandits = [kind(2, given, **horizon, noise="float", seed=1) for given in (epsilon, 1.0)]
    for bandit in bandits:
        go_on(bandit, 50, table(3))
    assert saved(bandits[0], tmp_path / "a") == saved(bandits[1], tmp_path / "b")
    assert type(kind.load(tmp_path / "a").epsilon) is float


def test_tickets_are_of_their_rounds_arms(tmp_path):
    bandit = UCB(2)
    bandit.request(2)
    bandit.save(tmp_path / "bandit")
    rewritten(tmp_path / "bandit", {"ticket_arm": lambda a: a[::-1]}, {})
    with pytest.raises(ValueError, match="ticket_number"):
        UCB.load(tmp_path / "bandit")


def test_unseeded_ties_go_on_too():
    bandit = UCB(5, ties="random")
    rewards = np.zeros((300, 5))
    go_on(bandit, 100, rewards)
    again = loaded(bandit)
    assert go_on(bandit, 100, rewards) == go_on(again, 100, rewards)


def test_the_name_is_taken_as_it_is_and_the_class_is_asked_for(tmp_path):
    bandit = UCB(2)
    for name in ("bandit", "bandit.npz", "ein Bandit.bin"):
        bandit.save(tmp_path / name)
        bandit.save(str(tmp_path / name))
        assert UCB.load(str(tmp_path / name)).rounds == 0
    assert {path.name for path in tmp_path.iterdir()} == {"bandit", "bandit.npz", "ein Bandit.bin"}
    for cls in (UCB1, PrivateUCB, DPKLUCB):
        with pytest.raises(ValueError, match=f"does not hold a whole {cls.__name__}: it holds a UCB"):
            cls.load(tmp_path / "bandit")
    with pytest.raises(OSError):
        bandit.save(tmp_path / "nowhere" / "bandit")
    with pytest.raises(FileNotFoundError):
        UCB.load(tmp_path / "nothing")


@POSIX
def test_the_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "bandit"
    make("binary", 2).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ----------------------------------------------------------------------------------------------------------
# The power fails
# ----------------------------------------------------------------------------------------------------------


class Failing(io.FileIO):
    """A file that takes `room` bytes in all, and fails in the middle of the write that would pass them."""

    room = 0
    error: type[BaseException] = OSError

    def write(self, data):
        data = memoryview(data).cast("B")
        if len(data) > Failing.room:
            super().write(data[: Failing.room])
            raise Failing.error("no more")
        Failing.room -= len(data)
        return super().write(data)


def test_a_write_that_fails_at_any_byte_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "bandit"
    bandit = make("binary", 2, seed=1)
    go_on(bandit, 30, table(1))
    bandit.save(path)
    old = path.read_bytes()
    go_on(bandit, 1, table(1))
    before = saved(bandit, tmp_path / "other")
    size = (tmp_path / "other").stat().st_size
    monkeypatch.setattr(pathlib.Path, "open", lambda self, mode: Failing(self, mode.replace("b", "")))
    places = sorted({*range(0, size, 7), *range(400), *range(size - 400, size)})
    for i, place in enumerate(places):
        Failing.room, Failing.error = place, (OSError, KeyboardInterrupt)[i % 2]
        with pytest.raises(Failing.error):
            bandit.save(path)
        assert path.read_bytes() == old
        assert len(list(tmp_path.iterdir())) == 2
    Failing.room = 10**9
    bandit.save(path)
    monkeypatch.undo()
    assert saved(PrivateUCB.load(path), tmp_path / "other") == before


KILLED = """
import io, os, pathlib, signal, sys
from equinoise.bandits.live import UCB

class Deadly(io.FileIO):
    def write(self, data):
        data = memoryview(data).cast("B")
        if len(data) >= Deadly.room:
            super().write(data[:Deadly.room])
            os.kill(os.getpid(), signal.SIGKILL)
        Deadly.room -= len(data)
        return super().write(data)

path = pathlib.Path(sys.argv[1])
bandit = UCB(["A", "B"])
for _ in range(10):
    bandit.update(bandit.select(), 0.5)
bandit.save(path)
old, killed = path.read_bytes(), 0
opened = pathlib.Path.open
for room in [*range(0, len(old), 61), len(old) - 1, 10**9]:
    child = os.fork()
    if child == 0:
        Deadly.room = room
        pathlib.Path.open = lambda self, mode: Deadly(self, mode.replace("b", ""))
        bandit.update(bandit.select(), 0.5)
        bandit.save(path)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    killed += os.WIFSIGNALED(status)
    assert (path.read_bytes() == old) == os.WIFSIGNALED(status), room
    assert UCB.load(path).rounds == 10 + (not os.WIFSIGNALED(status))
print(killed)
"""


@POSIX
def test_a_process_killed_while_it_saves_leaves_the_old_file_whole(tmp_path):
    """Really killed, after every 61st byte and before the last; only the save that was left alone counts."""
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "bandit")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 50


# ----------------------------------------------------------------------------------------------------------
# What is no bandit is refused
# ----------------------------------------------------------------------------------------------------------


def example(case):
    """A bandit with a bit of everything."""
    bandit = make(case, ["A", "B", "C"], seed=1)
    go_on(bandit, 40, table(1))
    bandit.request(3)
    bandit.drop_arm("B")
    bandit.add_arm("D")
    return bandit


@pytest.mark.parametrize("case", ["ucb", "binary", "dp-klucb"])
def test_a_damaged_file_is_refused(case, tmp_path):
    """Cut anywhere; every 97th byte inverted: refused, or what is loaded is the very same bandit."""
    bandit = example(case)
    good = saved(bandit, tmp_path / "whole")
    data, path = (tmp_path / "whole").read_bytes(), tmp_path / "damaged"
    for cut in [0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 30, len(data) - 1]:
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"path .* does not hold a whole"):
            type(bandit).load(path)
    refused = 0
    for place in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            again = type(bandit).load(path)
        except ValueError:
            refused += 1
            continue
        assert saved(again, tmp_path / "again") == good
    assert refused > 20
    for other in (b"a text, and no archive at all", b""):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="path"):
            type(bandit).load(path)


def rewritten(path, changes, meta):
    """A saved bandit with arrays and words replaced, checksums and all; None leaves an array out."""
    import json

    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    words = json.loads(arrays["meta_json"].tobytes())
    for name, value in meta.items():
        *inside, last = name.split(".")
        place = words
        for key in inside:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place[last] = value
    arrays["meta_json"] = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    for name, change in changes.items():
        arrays[name] = change(arrays[name]) if callable(change) else change
    with pathlib.Path(path).open("wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


def put(place, value):
    """A change of one entry."""

    def change(array):
        changed = array.copy()
        changed.flat[place] = value
        return changed

    return change


CHANGES = [
    ({"pulls": put(0, -1)}, {}),
    ({"pulls": put(0, 5000)}, {}),
    ({"pulls": None}, {}),
    ({"pulls": lambda a: a[:2]}, {}),
    ({"pulls": lambda a: a.astype(float)}, {}),
    ({"reward_sum": put(0, np.nan)}, {}),
    ({"reward_sum": put(0, -1.0)}, {}),
    ({"reward_sum": put(0, 1e9)}, {}),
    ({"square_sum": put(0, -1.0)}, {}),
    ({"square_sum": put(0, np.inf)}, {}),
    ({"dropped": put(0, 2)}, {}),
    ({"dropped": lambda a: a * 0 + 1}, {}),
    ({"dropped": lambda a: a * 0}, {}),
    ({"last_release": put(0, 0.5)}, {}),
    ({"last_release": put(1, np.inf)}, {}),
    ({"choices": put(0, 7)}, {}),
    ({"choices": lambda a: a[:-1]}, {}),
    ({"choices": lambda a: a * 0}, {}),
    ({"ticket_number": put(0, -1)}, {}),
    ({"ticket_number": put(0, 10**6)}, {}),
    ({"ticket_number": lambda a: a[::-1]}, {}),
    ({"ticket_arm": lambda a: (a + 1) % 3}, {}),
    ({"ticket_noise": put(0, np.nan)}, {}),
    ({"key": lambda a: a[:1]}, {}),
    ({"key": lambda a: a.astype(float)}, {}),
    ({"state_pulls": put(0, 3)}, {}),
    ({"state_pulls": put(0, -3)}, {}),
    ({"state_reward_sum": put(0, np.nan)}, {}),
    ({"state_reward_sum": None}, {}),
    ({"state_reward_sum": lambda a: a[:1]}, {}),
    ({}, {"class": "UCB2"}),
    ({}, {"names": ["A", "B", "C"]}),
    ({}, {"names": ["A", "B", "C", "C"]}),
    ({}, {"names": [1, 2, 3, 4]}),
    ({}, {"names": "ABCD"}),
    ({}, {"secure": []}),
    ({}, {"setting": None}),
    ({}, {"setting.policy": "ucb1"}),
    ({}, {"setting.policy": "dp-se"}),
    ({}, {"setting.ties": "last"}),
    ({}, {"setting.low": 2.0}),
    ({}, {"setting.low": None}),
    ({}, {"setting.horizon": -1}),
    ({}, {"setting.horizon": 20}),
    ({}, {"setting.options": {"rule": 3}}),
    ({}, {"setting.options": None}),
    ({}, {"setting.more": 1}),
]
PRIVATE_CHANGES = [
    ({}, {"setting.low": None, "setting.high": None}),
    ({}, {"setting.epsilon": None}),
    ({}, {"setting.epsilon": -1.0}),
    ({}, {"setting.noise": None}),
    ({}, {"setting.noise": "secure"}),
]
OWN_CHANGES = {
    "ucb": [({"state_mean": put(0, np.nan)}, {}), ({"state_root": put(0, np.nan)}, {})],
    "binary": [
        *PRIVATE_CHANGES,
        ({"state_totals": put(3, np.nan)}, {}),
        ({"state_totals": lambda a: a[:-1]}, {}),
        ({"state_mean": put(0, np.inf)}, {}),
        ({}, {"setting.options": {"width": "counter", "counter": "binary", "noisy": False}}),
        ({}, {"setting.options.width": "none"}),
        ({}, {"setting.horizon": None}),
    ],
    "dp-klucb": [
        *PRIVATE_CHANGES,
        ({"state_left": put(0, 0)}, {}),
        ({"state_private_n": put(0, 0)}, {}),
        ({"state_private_sum": put(0, np.inf)}, {}),
        ({"state_current": put(0, 3)}, {}),
        ({"state_current": put(0, -2)}, {}),
        ({"state_current": None}, {}),
    ],
}


@pytest.mark.parametrize("case", OWN_CHANGES)
def test_numbers_that_no_bandit_has_are_refused(case, tmp_path):
    bandit = example(case)
    for changes, meta in CHANGES + OWN_CHANGES[case]:
        bandit.save(tmp_path / "bandit")
        rewritten(tmp_path / "bandit", changes, meta)
        with pytest.raises(ValueError, match=r"path .* does not hold a whole"):
            print(changes, meta, type(bandit).load(tmp_path / "bandit"))
    bandit.save(tmp_path / "bandit")
    rewritten(tmp_path / "bandit", {}, {})
    assert saved(type(bandit).load(tmp_path / "bandit"), tmp_path / "a") == saved(bandit, tmp_path / "b")


SECURE_CHANGES = {
    "binary": {
        "secure": None,
        "secure.0.n": 3,
        "secure.0.kind": "HybridCounter",
        "secure.0.key": [1, 2],
        "secure.0.totals": [0.0],
        "secure.0.options.epsilon": 2.0,
        "secure.0.options.horizon": 1000,
    },
    "hybrid": {"secure.0.kind": "BinaryCounter", "secure.0.options.epsilon": 2.0},
    "dp-klucb": {
        "secure": {"0": 1},
        "secure.0": -1,
        "secure.0 ": 10**12,
        "secure.1": 0.5,
    },
}


@pytest.mark.parametrize("case", SECURE_CHANGES)
def test_secure_sums_are_checked(case, tmp_path):
    pytest.importorskip("opendp")
    bandit = make(case, 3, seed=None, noise="secure")
    go_on(bandit, 40, table(1))
    for name, value in SECURE_CHANGES[case].items():
        bandit.save(tmp_path / "bandit")
        rewritten_secure(tmp_path / "bandit", name.strip(), value)
        with pytest.raises(ValueError, match=r"path .* does not hold a whole"):
            print(name, type(bandit).load(tmp_path / "bandit"))
    for cut in (lambda a: a[:-1], lambda a: [*a, a[0]]):
        bandit.save(tmp_path / "bandit")
        secure = bandit._player.secure()
        rewritten(tmp_path / "bandit", {}, {"secure": cut(secure)})
        with pytest.raises(ValueError, match="secure"):
            type(bandit).load(tmp_path / "bandit")


def rewritten_secure(path, name, value):
    """As :func:`rewritten`, where the last word may be a place in a list."""
    import json

    with np.load(path) as archive:
        words = json.loads(archive["meta_json"].tobytes())
    *inside, last = name.split(".")
    place = words
    for key in inside:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[int(last) if isinstance(place, list) else last] = value
    rewritten(path, {}, {"secure": words["secure"]})


def test_a_kind_of_noise_that_there_is_not_is_refused(tmp_path):
    bandit = PrivateUCB(2, epsilon=1.0, noise="float", seed=1)
    for _ in range(9):
        bandit.update(bandit.select(), 0.5)
    kinds = bandit._player.state.widths.shape[1]
    for kind, taken in ((kinds - 1, True), (kinds, False), (2**59, False)):
        bandit._player.state.kind[0] = kind
        if taken:
            bandit.save(tmp_path / "bandit")
            PrivateUCB.load(tmp_path / "bandit")
        else:
            with pytest.raises(RuntimeError, match="kind must be a column of the widths"):
                bandit.save(tmp_path / "bandit")
