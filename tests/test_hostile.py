"""Hostile input: whatever is read is loaded whole, or refused in one line that names it, within set bounds.

Every parser and every ``load`` of the package gets damaged files, each made from a number. For as long as
one likes, in processes that may crash or hang: ``python -m tests.test_hostile MINUTES [PARSER ...]``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import mmap
import os
import pickle
import shutil
import signal
import struct
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.hostile import FACTOR, NAMED, ROOM, Parser, archived, damaged, headed, judged

from equinoise import bandits, efb, games, replicates
from equinoise.bandits.linear import LinearBandit
from equinoise.bandits.policies.registry import POLICIES
from equinoise.cli import common, main as command
from equinoise.efb import Report, Server, Strategy, User
from equinoise.experiments import plan
from equinoise.experiments.commands import efb as efb_command, sweep
from equinoise.experiments.steps import Settings
from equinoise.mechanisms import COUNTERS
from equinoise.nvo.columns import read_column
from equinoise.nvo.release import ledger
from equinoise.report import figures

resource = pytest.importorskip("resource")
TREE, ENVIRONMENT = games.load("kuhn_poker")
MAKERS: list[Callable[[Path], Parser]] = []
SMALL = mock.patch.object(games.catalog, "_MOST", NAMED)


def parser(maker):
    """Note a function that makes a parser with its whole files, in a folder of its own."""
    MAKERS.append(maker)
    return maker


def saved(folder, *things):
    """Return the files of objects that can be saved."""
    found = []
    for i, thing in enumerate(things):
        thing.save(folder / f"saved{i}")
        found.append((folder / f"saved{i}").read_bytes())
    return found


# What server and user send each other.


def _servers():
    return [
        Server(TREE, horizon=100, epsilon=1.0, mechanism=mechanism, seed=1)
        for mechanism in ("hashing", "laplace")
    ]


@parser
def strategies(folder):
    users = [User(TREE, 1.0, mechanism=m, noise="float", seed=1) for m in ("hashing", "laplace")]

    def read(path):
        strategy = Strategy.from_bytes(path.read_bytes())
        last, loss = efb.play(ENVIRONMENT, strategy, seed=1)
        users[strategy.symbols == 0].report(strategy, last, loss)

    wholes = [server.draw().to_bytes() for server in _servers()]
    return Parser("strategies", wholes, read, ("data", "strategy", "infosets", "actions", "symbols", "trial"))


@parser
def reports(folder):
    def read(path):
        report = Report.from_bytes(path.read_bytes())
        server = _servers()[report.symbol is None]
        server.update(report)
        sums = np.add.reduceat(server.policy, TREE.action_ptr[:-1])
        assert np.allclose(sums, 1.0)

    wholes = []
    for server, mechanism in zip(_servers(), ("hashing", "laplace"), strict=True):
        user, strategy = User(TREE, 1.0, mechanism=mechanism, noise="float", seed=1), server.draw()
        wholes.append(user.report(strategy, *efb.play(ENVIRONMENT, strategy, seed=1)).to_bytes())
    return Parser("reports", wholes, read, ("data", "report", "values", "symbol", "trial"))


# Files of arrays.


@parser
def servers(folder):
    made = _servers()
    for server in made:
        user = User(TREE, 1.0, mechanism=server.tuning.mechanism, noise="float", seed=1)
        for _ in range(20):
            strategy = server.draw()
            server.update(user.report(strategy, *efb.play(ENVIRONMENT, strategy, seed=1)))

    def read(path):
        server = Server.load(path)
        if server.tree.n_leaves < 10**6:  # a tree has no array of them, and an environment would
            efb.play(games.Environment(server.tree, *_even(server.tree)), server.draw(), seed=1)
        server.skip()
        server.save(path)

    return Parser("servers", saved(folder, *made), read, ("horizon",), "npz")


def _even(tree):
    """Return chances and losses of an environment in which all children are alike."""
    width = np.diff(tree.infoset_ptr) + np.diff(tree.leaf_ptr)
    infoset = np.append(1.0, 1.0 / np.repeat(width, np.diff(tree.infoset_ptr)))
    return infoset, 1.0 / np.repeat(width, np.diff(tree.leaf_ptr)), np.zeros(tree.n_leaves)


@parser
def runs(folder):
    made = [efb.simulate(TREE, ENVIRONMENT, horizon=20, epsilon=e, n_replicates=2) for e in (1.0, np.inf)]

    def read(path):
        run = efb.EfbRun.load(path)
        run.to_frame(), run.summary(), repr(run), run.bytes_a_report, run.label
        run.final_policy()
        run.save(path)

    return Parser("runs", saved(folder, *made), read, ("replicate must", "values must"), "npz")


@parser
def trees(folder):
    def read(path):
        tree = games.GameTree.load(path)
        tree.log_n_strategies, tree.depth, tree.to_text(50), tree.infoset_action
        if tree.n_leaves < 10**6:  # pointers may say any number of leaves, and only a list of them takes room
            assert len(tree.leaf_action) == tree.n_leaves
        tree.save(path)

    return Parser("trees", saved(folder, TREE, games.load("complete(2,2,3)")[0]), read, (), "npz")


LIVE = sorted(row.live.name for row in POLICIES.values() if row.live)


def live(name, secure=False):
    """Return two bandits of a class in the middle of an experiment."""
    made = []
    for i, arms in enumerate((["a", "b", "c"], 3)):
        given = (
            {"epsilon": 1.0, "noise": "secure" if secure else "float"}
            if issubclass(getattr(bandits, name), bandits.PrivateBandit)
            else {}
        )
        given |= {} if secure else {"seed": 1}
        given |= {"horizon": 200} if name == "PrivateUCB" and i else {}
        bandit = getattr(bandits, name)(arms, bounds=(-1, 2), **given)
        for t in range(30):
            bandit.update(bandit.select(), t % 3 / 2)
        bandit.request(2)
        bandit.add_arm("d") if isinstance(arms, list) else None
        bandit.drop_arm(bandit.arms[0])
        made.append(bandit)
    return made


def _read_bandit(name, path):
    bandit = getattr(bandits, name).load(path)
    for _ in range(3):
        bandit.update(bandit.select(), 0.5)
    for ticket in bandit.open_tickets:
        bandit.update(ticket, 1.0)
    bandit.to_frame(), repr(bandit), bandit.choices, bandit.propensities
    bandit.add_arm("new") if isinstance(bandit.arms[0], str) else None
    bandit.save(path)


def _bandit_parser(name, secure, folder):
    if secure:
        pytest.importorskip("opendp")
    named = "horizon", "bounds", "reward", "arm"
    kind = f"{name}{', secure' * secure}"
    return Parser(
        kind, saved(folder, *live(name, secure)), functools.partial(_read_bandit, name), named, "npz"
    )


for _name in LIVE:
    MAKERS.append(functools.partial(_bandit_parser, _name, False))
MAKERS += [functools.partial(_bandit_parser, name, True) for name in ("PrivateUCB", "DPKLUCB")]


def _linear(secure, folder):
    given = {"policy": "private-oful", "epsilon": 1.0, "horizon": 300, "longest": 2.0} if secure else {}
    if secure:
        pytest.importorskip("opendp")
    made = LinearBandit(["a", "b"], 2, **given)
    for t in range(30):
        made.update(made.request([1.0, t % 2]), t % 2)
    made.request([1.0, 0.5])

    def read(path):
        bandit = LinearBandit.load(path)
        shown = [0.5] + [0.0] * (bandit.dimension - 1)
        bandit.update(bandit.request(shown), bandit._low)
        bandit.to_frame(), bandit.coefficients(), repr(bandit)
        bandit.save(path)

    words = "contexts", "horizon", "reward", "longest", "ridge"
    return Parser(f"LinearBandit{', secure' * secure}", saved(folder, made), read, words, "npz")


MAKERS += [functools.partial(_linear, secure) for secure in (False, True)]


def _squares(start, stop):
    return {"square": np.arange(start, stop) ** 2, "half": np.arange(start, stop) / 2}


TRUE = _squares(0, 6)


@parser
def blocks(folder):
    replicates.run(_squares, 6, block=3, resume=folder / "kept")
    names = [path for path in (folder / "kept").iterdir() if path.suffix == ".npz"]

    def read(path):
        """A damaged block counts as missing; one that only looks whole has the checksums of another run."""
        shutil.copyfile(path, names[0])
        found = replicates.run(_squares, 6, resume=folder / "kept")
        assert {name: array.shape for name, array in found.items()} == {"square": (6,), "half": (6,)}
        assert (found["square"][3:] == TRUE["square"][3:]).all() or names[0].name.startswith(
            "replicates-000000003"
        )

    return Parser("blocks", [names[0].read_bytes()], read, ("resume", "task"), "npz")


@parser
def run_of_blocks(folder):
    replicates.run(_squares, 6, block=3, resume=folder / "kept")
    replicates.run(_squares, range(6, 8), resume=folder / "more")
    whole = (folder / "kept" / "run.json").read_bytes()

    def read(path):
        shutil.copyfile(path, folder / "kept" / "run.json")
        for _ in range(1):
            with contextlib.suppress(ValueError):
                replicates.merge([folder / "kept", folder / "more"], folder / "merged")
            shutil.rmtree(folder / "merged", ignore_errors=True)
        found = replicates.run(_squares, 6, resume=folder / "kept")
        assert all((found[name] == TRUE[name]).all() for name in TRUE)

    return Parser("run.json of blocks", [whole], read, ("resume",), "json")


# Games.

COIN = """EFG 2 R "coin" { "Ann" "Bob" } "a comment"
c "" 1 "toss" { "heads" 1/4 "tails" 0.75 } 0
p "" 1 1 "sees" { "stop" "go" } 0
t "" 1 "end" { 1, -1.5 }
p "" 2 1 "guess" { "H" "T" } 2 "fee" { -1/2, 1e-2 }
t "" 1
t "" 3 { 4 2 }
p "" 2 1 0
t "" 0
t "" 3
"""


@parser
def gambit(folder):
    def read(path):
        (game := path.with_suffix(".efg")).write_bytes(path.read_bytes())
        games.load(game, player="0")
        games.load_joint(game)

    wholes = [
        COIN.encode(),
        COIN.replace('"', '"é', 1).encode(),
        b'EFG 2 R "" { "A" } p "" 1 1 { "x" } 0 t 1 { 2 }',
    ]
    return Parser("efg", wholes, read, (".efg", "player", "game"), "text")


def _structure(path):
    """Return what a file of JSON holds; whatever Python refuses is not ours to judge."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ValueError("data is no JSON") from None


@parser
def dicts(folder):
    end = [{"payoffs": [1, "-1/3"]}, {"payoffs": [0.5, 2]}]
    guess = {"player": "Bob", "infoset": "?", "actions": {"H": end[0], "T": end[1]}}
    coin = {"chance": {"h": "1/4", "t": 0.75}, "actions": {"h": guess, "t": guess}}
    whole = json.dumps({"players": ["Ann", "Bob"], "root": coin}).encode()

    def read(path):
        games.load(games.from_dict(_structure(path)), player=1)

    return Parser("from_dict", [whole], read, ("game", "player", "data"), "json", (ValueError, TypeError))


@parser
def lists(folder):
    wholes = [b"[[0.5], [0.0, [[0.75], [1.0]]]]", b"[[[[0.1], [0.2, 0.4]], [[0.5], [0.6]], 0.9], [0.3]]"]

    def read(path):
        games.from_nested(_structure(path))

    return Parser("from_nested", wholes, read, ("nested", "data"), "json", (ValueError, TypeError))


@parser
def words(folder):
    wholes = [form.encode() for row in games.catalog.BUILT_IN.values() for form in row.examples]

    def read(path):
        text = path.read_bytes().decode("utf-8", "replace")
        if "\n" not in text:
            with SMALL:
                games.load(text, max_bytes=1e7)

    return Parser("words", wholes, read, ("game", "player"), "text", (ValueError, OSError, ImportError))


@parser
def opponents(folder):
    policy = games.Policy(games.load("kuhn_poker", 1)[0], games.load("kuhn_poker", 1)[0].uniform_policy())
    whole = json.dumps(policy.to_dict()).encode()

    def read(path):
        games.load("kuhn_poker", opponents=efb_command._others("opponents", str(path)))

    return Parser("opponents", [whole], read, ("opponents",), "json", (ValueError, TypeError))


# Counters.


def _counter(name, seed, folder):
    row = COUNTERS[name]
    if seed is None:
        pytest.importorskip("opendp")
    given = {"horizon": 100, "dimension": 2}
    made = row.make(1.0, **{key: x for key, x in given.items() if key in row.options}, seed=seed)
    item = [0.5, -0.25] if "dimension" in row.options else 0.5
    for _ in range(21):
        made.add(item)

    def read(path):
        counter = row.make.from_state(_structure(path))
        with contextlib.suppress(ValueError):  # another interval or dimension
            counter.add(item)
        counter.value, counter.width(0.1), counter.noise_sd, repr(counter)
        json.dumps(counter.state())

    kind = f"{name} counter{', secure' * (seed is None)}"
    return Parser(kind, [json.dumps(made.state()).encode()], read, ("state", "data"), "json")


MAKERS += [functools.partial(_counter, name, seed) for name in COUNTERS for seed in (1, None)]


# Tables, releases, ledgers, sweeps, reports and slices.


def _tables(folder):
    wholes = [b'n,a\nAda,171\n"Bo, jr",183.5\nC,1e2\n', b"a\n1\n2\n3\n", "größe;a\n1;2\n".encode()]

    def read(path):
        read_column(path, "a", sep=";" if b";" in path.read_bytes()[:16] else ",", verbose=False)

    return Parser("tables", wholes, read, ("column", "path"), "text", (ValueError, TypeError, OSError))


@functools.cache
def _release():
    """Return the files of a release, by name."""
    with tempfile.TemporaryDirectory() as place:
        table = Path(place, "people.csv")
        table.write_text(
            "height\n" + "\n".join(map(str, [160, 168, 171, 171, 172, 172, 175, 176, 180, 183] * 3))
        )
        words = f"nvo {table} --column height --epsilon 2 --bounds 150 200 --bins 11 --search best-response"
        words += f" --bound none --resolve 0 --out {place}/release"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert command(words.split()) == 0
        release = Path(place, "release")
        return {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*.*")}


def _verified(name, folder):
    """Return the parser of one file of a release."""
    files = _release()
    for each in files:
        (folder / each).parent.mkdir(exist_ok=True)
        (folder / each).write_bytes(files[each])

    def read(path):
        shutil.copyfile(path, folder / name)
        ledger.verify(folder)

    words = "certificate.json", "sample.csv", "distribution.png", "scales.csv", "run.json", "document"
    return Parser(
        f"release's {name}", [files[name]], read, words, "json" if name.endswith("json") else "text"
    )


_FILES = ("certificate.json", "sample.csv", "private/run.json", "private/scales.csv")
MAKERS += [_tables, *(functools.partial(_verified, name) for name in _FILES)]


@parser
def ledgers(folder):
    for adds in (1.0, 0.5):
        ledger.add(folder / "ledger", {"file": "people.csv", "column": "a", "adds": adds, "delta": 1e-6})
    return Parser("ledgers", [(folder / "ledger").read_bytes()], ledger.read, ("ledger",), "json")


GRID = """simulate = "bandits"
policy = "ucb"
n_replicates = 4
seed = 1

[grid]
means = [[0.5, 0.6], [0.5, 0.9]]
horizon = [10, 20]
"""


@parser
def sweeps(folder):
    play = GRID.replace('"bandits"\npolicy = "ucb"', '"efb"\ngame = "kuhn_poker"').replace("means", "epsilon")
    wholes = [GRID.encode(), play.replace("[0.5, 0.6], [0.5, 0.9]", "1, 2.5").encode()]

    def read(path):
        with SMALL:
            sweep.Plan.read(path)

    named = (
        "file",
        "grid",
        "simulate",
        "n_replicates",
        "policy",
        "means",
        "horizon",
        "seed",
        "game",
        "parameter",
    )
    return Parser("sweeps", wholes, read, named, "text", (ValueError, TypeError))


@parser
def reports_of_experiments(folder):
    settings = Settings()
    exhibit = plan.Exhibit("squares", "Numbers", "Squares", "How large?", "Four.")
    done = plan.Finished("efb", exhibit, exhibit.files(), 1.0, 1.0, settings.mark("efb"))
    whole = json.dumps({"steps": [done.row()]}).encode()

    def read(path):
        """What is no report, or another's, is done again."""
        shutil.copyfile(path, folder / "run.json")
        for row in plan._rows(folder):
            plan.Finished.restored(row, folder, settings)

    return Parser("reports of experiments", [whole], read, (), "json")


@parser
def slices(folder):
    table = ["bandit", "--means", "0.5,0.6", "--horizon", "20", "--policy", "ucb", "--epsilon", "1"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert command([*table, "--replicates", "0:2", "--out", str(folder / "slice")]) == 0
    path = folder / "slice" / common.KEPT / common.COMMAND
    whole = path.read_bytes()

    def read(given):
        shutil.copyfile(given, path)
        shutil.rmtree(folder / "out", ignore_errors=True)
        err = io.StringIO()
        blank = mock.patch.object(figures, "png", lambda *_, **__: b"")  # drawing takes longest
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err), blank:
            code = command(["merge", str(folder / "slice"), "--out", str(folder / "out")])
        assert code in (0, 2), code
        if code:
            raise ValueError(err.getvalue().removesuffix("\n"))

    return Parser("slices", [whole], read, ("FOLDERS", "slice", "--", "resume"), "json", cases=8)


def name_of(maker):
    parts = [str(part) for part in getattr(maker, "args", ())]
    return " ".join([getattr(maker, "func", maker).__name__.strip("_"), *parts])


@pytest.fixture(params=MAKERS, ids=name_of)
def made(request, tmp_path):
    (tmp_path / "own").mkdir()
    return request.param(tmp_path / "own")


pytestmark = [pytest.mark.compiled, pytest.mark.skipif(os.name != "posix", reason="signals and limits")]


def test_what_is_damaged_is_refused_in_a_line_that_names_it(made, tmp_path):
    for data in made.wholes:
        (tmp_path / "whole").write_bytes(data)
        made.read(tmp_path / "whole")
    tracemalloc.start()
    try:
        for i in range(made.cases):
            found = judged(made, tmp_path / "damaged", damaged(made, i))
            assert not found, f"{made.name}, number {i}: {found}"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("row", [b"", b"1," * 8191 + b"2\n"])
def test_a_wide_table_takes_no_more_than_its_columns_do(tmp_path, row):
    data = b"," * 8191 + b"a\n" + row
    (tmp_path / "wide.csv").write_bytes(data)
    tracemalloc.start()
    try:
        with contextlib.nullcontext() if row else pytest.raises(ValueError, match="got none in 'a'"):
            assert read_column(tmp_path / "wide.csv", "a").values.tolist() == [2]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < ROOM + FACTOR * len(data) + 2**13 * 8192  # pandas keeps an object for a column and more


class Planted:
    """An object whose pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@functools.cache
def _bomb():
    return headed("{'descr': '|u1', 'fortran_order': False, 'shape': (67108864,), }", bytes(2**26))


FILES = [servers, trees, blocks, functools.partial(_bandit_parser, "UCB", False)]


def test_all_archives_are_read_in_one_place():
    source = Path(__file__).resolve().parents[1] / "src"
    text = {path.name: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    readers = ("np.load(", "numpy.load(", "zipfile.", "fromfile(", "pickle.load", "read_array(")
    found = {name for name, code in text.items() if any(reader in code for reader in readers)}
    assert found == {"_files.py", "columns.py"}  # which counts what it reads of a table, and refuses more


@pytest.mark.parametrize("maker", FILES, ids=name_of)
def test_nothing_is_unpickled_and_no_bomb_goes_off(maker, tmp_path):
    """Planted pickles; a packed bomb; heads and entries that say they have a terabyte."""
    (tmp_path / "own").mkdir()
    made = maker(tmp_path / "own")
    with zipfile.ZipFile(io.BytesIO(made.wholes[0])) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    body = pickle.dumps(np.array([Planted(tmp_path / "planted")], dtype=object))
    objects = headed("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", body)
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }"
    hostile = {"a pickle in place of the archive": body, "an array alone": objects}
    last = list(held)[-1]
    for name in {next(iter(held)), last}:
        hostile[f"a pickle in {name}"] = archived(held | {name: objects})
        hostile[f"a bare pickle in {name}"] = archived(held | {name: body})
        hostile[f"a head of a terabyte in {name}"] = archived(held | {name: headed(head % 2**40, b"x" * 9)})
        hostile[f"a head that is no head in {name}"] = archived(held | {name: headed("(" * 9000, b"")})
        hostile[f"a long head in {name}"] = archived(held | {name: headed("{" + " " * 60_000 + "}", b"")})
    hostile["a bomb"] = archived(held | {last: _bomb()}, zipfile.ZIP_DEFLATED)
    hostile["an entry of a terabyte"] = _declared(archived(held), last, 2**40)
    tracemalloc.start()
    try:
        for what, data in hostile.items():
            found = judged(made, tmp_path / "file", data)
            assert not found, f"{what}: {found}"
            if "blocks" not in made.name:
                with pytest.raises(ValueError):
                    made.read(tmp_path / "file") if (tmp_path / "file").write_bytes(data) else None
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "planted").exists()
    with pytest.raises(OSError):
        pickle.loads(pickle.dumps(Planted(tmp_path / "no" / "such")))  # it would have been


def _declared(data, name, size):
    """Return an archive whose directory says that an entry is of another size."""
    at = data.rfind(b"PK\x01\x02", 0, data.rfind(name.encode()))
    size = struct.pack("<I", min(size, 2**32 - 2))
    return data[: at + 20] + size * 2 + data[at + 28 :]


# The long run.


def main() -> int:
    """Damage and read for some minutes, parser after parser, and print what was found."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("minutes", type=float, help="of a processor, in which inputs are read")
    given.add_argument("parsers", nargs="*", help="parts of their names; by default all")
    given.add_argument("--first", type=int, default=1000, help="number of the first input")
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as place:
        made = []
        for i, maker in enumerate(MAKERS):
            own = Path(place, str(i), "own")
            own.mkdir(parents=True)
            one = maker(own)
            if not asked.parsers or any(part in one.name for part in asked.parsers):
                made.append((one, own))
        for one, own in made:  # compiled before the first limit
            (own.parent / "file").write_bytes(one.wholes[0])
            one.read(own.parent / "file")
        done, n_found = {one.name: asked.first for one, _ in made}, 0
        while made and _spent() < 60 * asked.minutes:
            for one, own in made:
                done[one.name], found = _piece(one, own.parent / "file", done[one.name])
                n_found += len(found)
                for line in found:
                    print(line, flush=True)
    total = sum(done.values()) - asked.first * len(done)
    print(f"{total:,} inputs of {len(made)} parsers in {_spent():.0f} s of a processor, {n_found} findings")
    return min(n_found, 1)


def _spent() -> float:
    """Return the seconds that processes which have ended took of a processor."""
    times = os.times()
    return times.children_user + times.children_system


def _piece(one: Parser, path: Path, first: int, seconds: float = 2.0) -> tuple[int, list[str]]:
    """Read in a process of its own for a while; return the next number and what was found."""
    at = mmap.mmap(-1, 8)
    at[:] = struct.pack("<q", first)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with contextlib.suppress(ValueError):
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + 2**31, size + 2**31))
        tracemalloc.start()
        begun, number = time.process_time(), first
        with os.fdopen(writer, "w") as out:
            while time.process_time() < begun + seconds:
                at[:] = struct.pack("<q", number)
                if found := judged(one, path, damaged(one, number)):
                    out.write(f"{one.name}, number {number}: {found}\n".replace("\r", " "))
                    out.flush()
                number += 1
            at[:] = struct.pack("<q", number)
        os._exit(0)
    os.close(writer)
    ends = time.monotonic() + 120
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < ends:
        time.sleep(0.05)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        found = told.read().splitlines()
    number = struct.unpack("<q", at[:])[0]
    if ended[1]:
        found.append(f"{one.name}, number {number}: ends the process, {os.waitstatus_to_exitcode(ended[1])}")
        number += 1
    return number, found


if __name__ == "__main__":
    sys.exit(main())
