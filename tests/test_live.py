"""Live objects: threads that share one, copies that are refused, and files that two objects go on from."""

import copy
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equinoise import _files
from equinoise.bandits import DPKLUCB, UCB, PrivateUCB
from equinoise.efb import Server, User, play
from equinoise.games import load
from equinoise.mechanisms import BinaryCounter, HybridCounter, KaryCounter, VectorCounter

TREE, ENVIRONMENT = load("bandit(3)")
MAKE = {
    "ucb": lambda: UCB(["a", "b"]),
    "private-ucb": lambda: PrivateUCB(2, 1.0, noise="float", seed=1),
    "dp-klucb": lambda: DPKLUCB(2, 1.0, noise="float", seed=1),
    "server": lambda: Server(TREE, horizon=10**6, epsilon=1.0, seed=1),
    "binary": lambda: BinaryCounter(1.0, 10**6, seed=1),
    "hybrid": lambda: HybridCounter(1.0, seed=1),
    "k-ary": lambda: KaryCounter(1.0, 10**6, seed=1),
    "vector": lambda: VectorCounter(1.0, 10**6, 2, seed=1),
}
SAVED = ("ucb", "private-ucb", "dp-klucb", "server")


@pytest.fixture
def switching():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, n_threads):
    with ThreadPoolExecutor(n_threads) as pool:
        return [future.result() for future in [pool.submit(work, i) for i in range(n_threads)]]


@pytest.mark.parametrize("name", ["k-ary", "binary", "hybrid", "vector"])
def test_threads_that_share_a_counter_lose_nothing(switching, name):
    counter, alone = MAKE[name](), MAKE[name]()
    item = [0.25, 0.5] if name == "vector" else 1.0
    sums = in_threads(lambda _: [counter.add(item) for _ in range(400)], 8)
    expected = [alone.add(item) for _ in range(3200)]
    assert counter.n == 3200 and counter.state() == alone.state()
    np.testing.assert_array_equal(
        np.sort(np.array(sums).reshape(3200, -1), axis=0),
        np.sort(np.array(expected).reshape(3200, -1), axis=0),
    )


@pytest.mark.parametrize("name", ["ucb", "private-ucb", "dp-klucb"])
def test_threads_that_share_a_bandit_leave_exact_tallies(switching, name):
    """16 threads, tickets whose rewards come late: every round and every reward is counted once."""
    bandit, n, labels = MAKE[name](), 2000 if name == "ucb" else 200, {}

    def work(i):
        told, waiting = {label: [] for label in bandit.arms}, []
        for t in range(n):
            waiting.append(bandit.request())
            if t % 3:
                ticket = waiting.pop(0)
                told[ticket.arm].append((i + t) % 4 / 4)
                bandit.update(ticket, told[ticket.arm][-1])
        return told, waiting

    parts = in_threads(work, 16)
    tickets = [ticket for _, waiting in parts for ticket in waiting]
    assert sorted(ticket.number for ticket in tickets) == [ticket.number for ticket in bandit.open_tickets]
    assert bandit.rounds == len(bandit.choices) == 16 * n == len(tickets) + bandit.pulls.sum()
    for label, pulls, mean in zip(bandit.arms, bandit.pulls, bandit.means, strict=True):
        labels[label] = [reward for told, _ in parts for reward in told[label]]
        assert pulls == len(labels[label]) and mean == pytest.approx(np.mean(labels[label]), rel=1e-12)


def test_threads_that_share_a_server_have_one_report_a_trial(switching):
    server, user, n = MAKE["server"](), User(TREE, 1.0, noise="float", seed=1), 300

    def work(_):
        taken = 0
        while server.trial < n:
            strategy = server.draw()
            report = user.report(strategy, *play(ENVIRONMENT, strategy, seed=1))
            try:
                server.update(report)
                taken += 1
            except ValueError as error:
                assert "report must be for trial" in str(error)
        return taken

    alone = MAKE["server"]()
    taken = sum(in_threads(work, 8))
    for _ in range(taken):
        strategy = alone.draw()
        alone.update(user.report(strategy, *play(ENVIRONMENT, strategy, seed=1)))
    assert server.trial == alone.trial == taken >= n
    np.testing.assert_array_equal(server.policy, alone.policy)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_live_object_is_not_copied(name, copied):
    words = "state and from_state" if name in ("k-ary", "binary", "hybrid", "vector") else "save and load"
    with pytest.raises(TypeError, match=f"can't be copied or pickled: use {words}"):
        copied(MAKE[name]())


def names(folder):
    return [path.name for path in folder.iterdir()]


def step(thing):
    if isinstance(thing, Server):
        thing.skip()
    else:
        thing.update(thing.select(), 0.5)


@pytest.mark.parametrize("name", SAVED)
def test_of_two_objects_on_one_file_the_second_save_is_refused(name, tmp_path):
    path, other = tmp_path / "file", tmp_path / "copy"
    first = MAKE[name]()
    first.save(path)
    first.save(other)
    first.save(path)  # its own file, and a copy, as often as it likes
    second = type(first).load(path)
    step(first)
    first.save(path)
    before = path.read_bytes()
    step(second)
    for there, generation in ((path, 4), (other, 2)):
        words = f"path {str(there)!r} holds a save (generation {generation}) from which this object does not"
        with pytest.raises(ValueError, match=re.escape(words)):
            second.save(there)
    assert path.read_bytes() == before
    second.save(path, overwrite=True)
    with pytest.raises(ValueError, match="does not go on"):
        first.save(path)
    third = type(first).load(path)
    third.save(path)
    with pytest.raises(ValueError, match="does not go on"):
        second.save(path)
    MAKE["server" if name == "ucb" else "ucb"]().save(path)  # another one's file is replaced, as ever
    with pytest.raises(TypeError, match="overwrite must be True or False"):
        first.save(path, overwrite=1)


def test_of_many_that_save_at_one_moment_one_does(switching, tmp_path):
    """All were loaded from one file: whoever is second would go on from what is there no more."""
    path = tmp_path / "bandit"
    UCB(2).save(path)
    for _ in range(10):
        loaded = [UCB.load(path) for _ in range(6)]
        ready = threading.Barrier(6)

        def save(one, loaded=loaded, ready=ready):
            ready.wait()
            try:
                loaded[one].save(path)
            except ValueError:
                return 0
            return 1

        assert sum(in_threads(save, 6)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_no_file_to_load(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="it is a directory or a pipe"):
        UCB.load(tmp_path / "pipe")


def test_a_long_name_of_wide_characters_can_be_saved(tmp_path):
    path = tmp_path / ("ü" * 120)
    UCB(2).save(path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_file_that_may_not_be_read_is_not_taken_for_none(tmp_path, monkeypatch):
    bandit = MAKE["ucb"]()
    bandit.save(tmp_path / "file")
    before = (tmp_path / "file").read_bytes()

    def refuse(*_, **__):
        raise PermissionError("not yours")

    monkeypatch.setattr(_files, "loaded", refuse)
    with pytest.raises(PermissionError, match="not yours"):
        bandit.save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before


KILLED = """
import os, random, signal, sys, time
from equinoise.bandits import UCB
path, draw = sys.argv[1], random.Random(3)
UCB(2).save(path)
for _ in range(25):
    before = UCB.load(path)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        while True:
            before.update(before.select(), 0.5)
            before.save(path)
            os.write(writer, b".")
    os.close(writer)
    os.read(reader, 1)
    time.sleep(draw.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = 1
    while more := os.read(reader, 4096):
        told += len(more)
    os.close(reader)
    print(before.rounds + told, UCB.load(path).rounds)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
def test_a_kill_in_the_middle_of_a_save_loses_nothing_and_the_next_save_clears_up(tmp_path):
    path = tmp_path / "bandit"
    made = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, check=True
    )
    rounds = [list(map(int, line.split())) for line in made.stdout.splitlines()]
    assert len(rounds) == 25 and all(told <= kept <= told + 1 for told, kept in rounds)
    (tmp_path / f".bandit.{'0' * 12}.tmp").write_bytes(b"half")
    (tmp_path / ".bandit.not_ours.tmp").write_bytes(b"theirs")
    UCB.load(path).save(path)
    assert sorted(names(tmp_path)) == [".bandit.not_ours.tmp", "bandit"]


FORKED = """
import os, sys, threading
from equinoise.bandits import UCB
bandit, held, done = UCB(2), threading.Event(), threading.Event()
def hold():
    with bandit._lock:
        held.set()
        done.wait()
bandit.save(sys.argv[1])
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    bandit.update(bandit.select(), 0.5)
    bandit.save(sys.argv[1])
    os._exit(0)
done.set()
assert os.waitpid(child, 0)[1] == 0
bandit.update(bandit.select(), 0.5)
try:
    bandit.save(sys.argv[1])
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_child_of_a_fork_has_a_lock_of_its_own_and_is_another_object(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "bandit")]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "holds a save (generation 2) from which this object does not go on" in made.stdout


DRAWN_AFTER_A_FORK = """
import os, sys
from equinoise.bandits import DPKLUCB, PrivateUCB
from equinoise.bandits.linear import LinearBandit
from equinoise.efb import Strategy, User
from equinoise.games import load
from equinoise.mechanisms import BinaryCounter, HybridCounter, KaryCounter, VectorCounter
tree, _ = load("bandit(3)")

def summed(counter, item=0.5):
    for _ in range(7):  # of which the last takes draws off that the next sums put back
        counter.add(item)
    return lambda: [counter.add(item) for _ in range(3)]

def played(bandit):
    for _ in range(3):
        bandit.update(bandit.select(), 0.5)
    ticket = bandit.request()
    def go_on():
        bandit.update(ticket, 0.5)
        for _ in range(40):
            bandit.update(bandit.select(), 0.5)
        return bandit.private_means.tolist()
    return go_on

def linear(bandit):
    bandit.update(bandit.request([1.0]), 0.5)
    return lambda: bandit.update(bandit.request([1.0]), 0.5) or bandit.estimate.tolist()

def loaded(bandit):
    bandit.save(sys.argv[1], overwrite=True)
    return type(bandit).load(sys.argv[1])

def reported(user, symbols=0):
    asked = [Strategy(trial, [0], [1], symbols) for trial in range(64)]
    return lambda: [user.report(one, last_action=1, loss=0.25).to_bytes().hex() for one in asked]

def private_oful(**how):
    return LinearBandit(2, 1, policy="private-oful", epsilon=1.0, horizon=100, longest=1.0, **how)

def made(seed):
    how = {"noise": "float", "seed": seed}
    return {
        "counter": summed(KaryCounter(1.0, 1000, seed=seed)),
        "binary counter": summed(BinaryCounter(1.0, 1000, seed=seed)),
        "hybrid counter": summed(HybridCounter(1.0, seed=seed)),
        "vector counter": summed(VectorCounter(1.0, 1000, 1, seed=seed), [0.5]),
        "bandit": played(PrivateUCB(2, 1.0, 100, **how)),
        "bandit of batches": played(DPKLUCB(2, 1.0, **how)),
        "loaded bandit": played(loaded(PrivateUCB(2, 1.0, 100, **how))),
        "linear bandit": linear(private_oful(**how)),
        "loaded linear bandit": linear(loaded(private_oful(**how))),
        "user": reported(User(tree, 1.0, **how), 2),
        "user of losses": reported(User(tree, 1.0, mechanism="laplace", **how)),
    }

def lines(things):
    for name, go_on in things.items():
        try:
            yield f"{name}: {go_on()}"
        except RuntimeError as error:
            yield f"{name}: {error}"

secure = {"secure bandit": PrivateUCB(2, 1.0, 100), "secure bandit of batches": DPKLUCB(2, 1.0)}
for things in {name: played(one) for name, one in secure.items()} | made(None), made(1):
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, "|".join(lines(things)).encode())
        os._exit(0)
    os.close(writer)
    theirs = b""
    while more := os.read(reader, 4096):
        theirs += more
    for own, other in zip(lines(things), theirs.decode().split("|"), strict=True):
        name, said = other.split(": ", 1)
        word = "refused" if "can't go on in a forked child" in said else "other"
        print(name, "same" if own == other else word, sep=": ")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_no_noise_is_drawn_twice_after_a_fork_unless_by_a_seed(tmp_path):
    """Two sums or reports with the same noise differ by what they hide."""
    command = [sys.executable, "-W", "ignore", "-c", DRAWN_AFTER_A_FORK, str(tmp_path / "file")]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found = [line.split(": ") for line in made.stdout.splitlines()]
    unseeded, seeded = dict(found[:13]), dict(found[13:])
    assert [name for name, word in unseeded.items() if word == "refused"] == [
        "bandit",
        "bandit of batches",
        "loaded bandit",
        "linear bandit",
        "loaded linear bandit",
    ]
    assert "same" not in unseeded.values() and seeded.keys() == unseeded.keys() - {
        "secure bandit",
        "secure bandit of batches",
    }
    assert set(seeded.values()) == {"same"}


def test_what_another_writer_is_writing_is_left_alone(tmp_path):
    with _files.replacing(tmp_path / "file") as slow:
        slow.write(b"slow")
        slow.flush()
        with _files.replacing(tmp_path / "file") as quick:
            quick.write(b"quick")
        assert len(names(tmp_path)) == 2
    assert (tmp_path / "file").read_bytes() == b"slow" and names(tmp_path) == ["file"]
