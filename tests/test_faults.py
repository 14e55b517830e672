"""Kills, full disks, devices and links: what was there stays whole, and what a kill left is cleared."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from equinoise import _files, games, replicates
from equinoise.bandits import UCB
from equinoise.cli import main
from equinoise.nvo.release import ledger

resource = pytest.importorskip("resource")
SOURCE = Path(__file__).resolve().parents[1] / "src"
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs processes to kill, and limits of files"
)


def squares(start, stop):
    return {"square": np.arange(start, stop) ** 2}


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from equinoise import _files, games, replicates
from tests.test_faults import squares
folder, draw = Path(sys.argv[1]), random.Random(5)
trees = [games.load(f"bandit({n})")[0] for n in (3, 3000)]
(folder / "own").mkdir()
for i in range(25):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b".")
        for n in range(10**6):
            content = b"%d " % n * 20_000
            _files.write_all(folder / "report", {name: content for name in ("a.csv", "b.json", "c.png")})
            trees[n % 2].save(folder / "own" / "tree")
            replicates.run(squares, 400, block=1 + (i + n) % 7, resume=folder / f"blocks{n % 3}")
            if n % 3 == 2:
                for path in (folder / "blocks1").glob("*.npz"):
                    path.unlink()
    os.close(writer)
    os.read(reader, 1)
    time.sleep(draw.random() * 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for name in ("a.csv", "b.json", "c.png"):
        path = folder / "report" / name
        assert not path.exists() or len(set(path.read_bytes().split())) == 1, path
    assert not (folder / "own" / "tree").exists() or games.GameTree.load(folder / "own" / "tree")
print(sum(".tmp" in path.name for path in folder.rglob("*")))
"""


def test_25_kills_leave_whole_files_and_what_the_next_writer_clears(tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(SOURCE.parent)])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stderr
    assert int(made.stdout) <= 6  # of each name the last one, at most
    (tmp_path / "blocks0" / f".replicates-000000001-000000002.npz.{'0' * 12}.tmp").write_bytes(b"half")
    (tmp_path / "blocks0" / ".notes.tmp").write_bytes(b"mine")
    for n in range(3):
        found = replicates.run(squares, 400, resume=tmp_path / f"blocks{n}")
        assert (found["square"] == np.arange(400) ** 2).all()
    _files.write_all(tmp_path / "report", dict.fromkeys(("a.csv", "b.json", "c.png"), b""))
    games.load("bandit(3)")[0].save(tmp_path / "own" / "tree")
    assert [path.name for path in tmp_path.rglob("*.tmp")] == [".notes.tmp"]


def limited(size, work):
    """Do work in a child that may write files of so many bytes; return what its OSError says."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            work()
            said = "nothing"
        except OSError as error:
            said = f"{errno.errorcode[error.errno]} {error.filename}"
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        return told.read()


WRITERS = {
    "tree": lambda path: games.load("bandit(3)")[0].save(path),
    "bandit": lambda path: UCB(2).save(path, overwrite=True),
    "files": lambda path: _files.write_all(path.parent, {"other": b"x", path.name: b"y" * 5000}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_is_named(name, tmp_path):
    path = tmp_path / "file"
    WRITERS[name](path)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    for size in (0, 100, 700):
        told = limited(size, lambda: WRITERS[name](path))
        assert told in (f"EFBIG {path}", f"EFBIG {tmp_path / 'other'}"), told
        assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_full_disk_leaves_the_lines_of_a_ledger_and_is_named(tmp_path):
    path, line = tmp_path / "book", {"adds": 1.0, "delta": 0.0, "folder": "o" * 700}
    ledger.add(path, line)
    path.write_bytes(before := path.read_bytes().removesuffix(b"\n"))  # as some editors leave it
    for size in (0, len(before), len(before) + 100):
        assert limited(size, lambda: ledger.add(path, line)) == f"EFBIG {path}"
        assert path.read_bytes() == before
    assert ledger.add(path, line) == [line, line]


def test_a_release_whose_disk_is_full_takes_no_line_of_another_away(tmp_path, monkeypatch):
    path, begun, done, fsync = tmp_path / "ledger", threading.Event(), threading.Event(), os.fsync
    line = {"adds": 1.0, "delta": 0.0}

    def full(handle):
        if begun.is_set():
            return fsync(handle)
        begun.set()
        done.wait(1.0)  # longer than the other takes, which waits for its turn
        raise OSError(28, "full")

    monkeypatch.setattr(os, "fsync", full)
    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(ledger.add, path, line | {"who": 1})
        assert begun.wait(10)
        ledger.add(path, line | {"who": 2})
        done.set()
        with pytest.raises(OSError, match="full"):
            failing.result()
    assert ledger.read(path) == [line | {"who": 2}]


def test_a_run_whose_disk_is_full_goes_on_later(tmp_path):
    kept = tmp_path / "kept"
    told = limited(350, lambda: replicates.run(squares, 40, block=2, resume=kept))
    assert told.startswith("EFBIG ")
    assert not list(tmp_path.rglob("*.tmp"))
    assert (replicates.run(squares, 40, resume=kept)["square"] == np.arange(40) ** 2).all()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["games"], ["--version"], ["games", "--json"]])
def test_output_that_nothing_takes_is_a_failure_in_one_line(words, unbuffered):
    command = [sys.executable, "-m", "equinoise", *words]
    with Path("/dev/full").open("w") as full:
        made = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": unbuffered},
        )
    assert made.returncode == 1
    assert made.stderr == f"equinoise: failed: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is full")
@pytest.mark.parametrize(
    ("full", "code", "unbuffered"),  # only of stdout, whole lines of stderr are written at once in any case
    [("stdout", 1, ""), ("stdout", 1, "1"), ("neither", 1, ""), ("neither", 1, "1"), ("stderr", 0, "")],
)
def test_results_are_written_where_nothing_takes_what_is_shown(tmp_path, full, code, unbuffered):
    words = ["bandit", "--policy", "ucb", "--epsilon", "1", "--means", "1,0", "--horizon", "9"]
    command = [sys.executable, "-m", "equinoise", *words, "--replicates", "0:2", "--out", f"{tmp_path}/out"]
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as device, os.fdopen(writer, "w") as closed:
        where = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        where |= {"stdout": closed} if full == "neither" else {full: device}
        where["env"] = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": unbuffered}
        codes = [subprocess.run([*command, *more], **where).returncode for more in ([], ["--horizon", "x"])]
    assert codes == [code, 2]
    assert {"bias.csv", "run.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert (tmp_path / "out/replicates/command.json").exists()


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_no_file_is_not_replaced(name, tmp_path):
    """Root could put a file in the place of a device such as /dev/full."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a file to replace"):
        WRITERS[name](tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo() and not list(tmp_path.glob("*.tmp"))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device without an end")
def test_a_device_that_never_ends_is_read_by_nobody(tmp_path, capsys):
    """In a process that may have 4 GB."""
    (tmp_path / "x.toml").symlink_to("/dev/zero")
    (tmp_path / "run.json").symlink_to("/dev/zero")
    for name in ("certificate.json", "sample.csv", "distribution.png"):
        (tmp_path / name).symlink_to("/dev/zero")
    (tmp_path / "replicates").mkdir()
    (tmp_path / "replicates" / "command.json").symlink_to("/dev/zero")

    def work():
        resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
        where = str(tmp_path)
        assert main(["sweep", f"{where}/x.toml", "--out", f"{where}/out"]) == 2
        assert main(["efb", "kuhn_poker", "--opponents", f"{where}/x.toml", "--out", f"{where}/out"]) == 2
        assert main(["merge", where, "--out", f"{where}/out"]) == 2
        assert main(["nvo", "verify", where]) == 1
        for read in (games.read_efg, lambda path: replicates.run(squares, 4, resume=Path(path).parent)):
            with pytest.raises(OSError, match="Not a file"):
                read(f"{where}/x.toml")

    assert limited(2**20, work) == "nothing"


def test_files_are_read_in_one_place():
    readers = (".read_bytes(", ".read_text(")
    code = {path.relative_to(SOURCE / "equinoise").as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {name for name, path in code.items() if any(reader in path.read_text() for reader in readers)}
    own = {"_jit.py", "report/html.py"}  # the package's own files
    looked_at = {"nvo/release/ledger.py", "experiments/steps.py"}  # a file, or a pipe
    assert found == {"_files.py"} | own | looked_at


def test_a_folder_that_is_a_link_is_written_into_and_stays_one(tmp_path, capsys):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    _files.write_all(tmp_path / "link", {"a": b"1"})
    replicates.run(squares, 4, resume=tmp_path / "link" / "kept")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "a").read_bytes() == b"1"
    assert (tmp_path / "real" / "kept" / "run.json").exists()
    with pytest.raises(ValueError, match=r"^resume must be a folder, got .* is none$"):
        replicates.run(squares, 4, resume=tmp_path / "nowhere")
    assert main(["bandit", "--out", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.startswith("equinoise: --out must be a folder, got ")
    assert not (tmp_path / "missing").exists()
