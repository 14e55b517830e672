"""A release's folder: the old one whole or the new, whatever stops the write; private for its owner alone."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from equinoise.nvo.release import folder

SOURCE = Path(__file__).resolve().parents[2] / "src"
NAMES = (*folder.PUBLIC, *(f"private/{name}" for name in folder.PRIVATE))
OLD, NEW = (dict.fromkeys(NAMES, word * 5000) for word in (b"old ", b"new "))
posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and signals")


def names(path):
    return sorted(found.name for found in path.iterdir())


def contents(path):
    return {name: (path / name).read_bytes() for name in NAMES if (path / name).is_file()}


def test_a_second_release_takes_the_place_of_the_first(tmp_path):
    target = tmp_path / "deep" / "release"
    for files in (OLD, NEW, {"sample.csv": b"alone"}):
        folder.put(target, files)
        assert contents(target) == files
        assert names(target.parent) == ["release"]


@posix
def test_private_is_for_its_owner_whatever_was_there(tmp_path):
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "release"
    for place in (elsewhere, target):
        place.mkdir()
    elsewhere.chmod(0o777)
    (target / "private").symlink_to(elsewhere)
    (target / "sample.csv").symlink_to(elsewhere / "sample.csv")
    mask = os.umask(0)
    try:
        folder.put(target, OLD)
    finally:
        os.umask(mask)
    assert not (target / "private").is_symlink()
    assert names(elsewhere) == []
    assert stat.S_IMODE((target / "private").stat().st_mode) == 0o700
    assert {stat.S_IMODE((target / "private" / name).stat().st_mode) for name in folder.PRIVATE} == {0o600}
    assert stat.S_IMODE((target / "sample.csv").stat().st_mode) == 0o666


def test_files_are_as_old_as_the_day(tmp_path):
    folder.put(tmp_path / "release", OLD)
    times = {path.stat().st_mtime for path in (tmp_path / "release", *(tmp_path / "release").rglob("*"))}
    assert len(times) == 1
    assert times.pop() % 86_400 == 0


@pytest.mark.parametrize("name", ["notes.txt", "private/notes.txt"])
def test_a_folder_of_something_else_is_refused(tmp_path, name):
    folder.put(tmp_path / "release", OLD)
    assert folder.own("out", tmp_path / "release") == (tmp_path / "release").resolve()
    (tmp_path / "release" / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^out must be a folder of its own, got .* with '{name}' in it$"):
        folder.own("out", tmp_path / "release")


def test_the_folder_that_one_works_in_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (".", ".."):
        with pytest.raises(ValueError, match=r"^out must be a folder of its own"):
            folder.own("out", Path(path))


def test_what_a_kill_left_is_removed_and_what_is_in_use_is_not(tmp_path):
    left, aside = tmp_path / ".release.0123456789ab.tmp", tmp_path / ".release.old"
    for path in (left, aside, tmp_path / ".release.mine.tmp"):
        path.mkdir()
    folder.put(tmp_path / "release", OLD)
    assert names(tmp_path) == [".release.mine.tmp", "release"]
    left.mkdir()
    with folder._held(left):
        folder.put(tmp_path / "release", NEW)
        assert left.exists()


@pytest.mark.parametrize("exchange", [True, False])
def test_a_disk_that_is_full_at_any_moment_leaves_the_old_one(tmp_path, monkeypatch, exchange):
    target = tmp_path / "release"
    folder.put(target, OLD)
    if not exchange:
        monkeypatch.setattr(folder, "_exchanged", lambda one, two: False)
    moments, done = 0, False
    while not done:
        left = moments

        def until_full(call):
            def wrapped(*arguments, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return call(*arguments, **options)

            return wrapped

        with monkeypatch.context() as patch:
            for owner, name in ((os, "fdopen"), (os, "fsync"), (os, "utime"), (Path, "mkdir"), (os, "chmod")):
                patch.setattr(owner, name, until_full(getattr(owner, name)))
            try:
                folder.put(target, NEW)
                done = True
            except OSError as error:
                assert error.errno == errno.ENOSPC
                assert error.filename == str(target) or moments == 0  # where its parent is made
        assert contents(target) == (NEW if done else OLD)
        assert names(tmp_path) == ["release"]
        moments += not done
    assert moments >= 25


def test_without_an_exchange_an_interruption_between_two_names_is_undone(tmp_path, monkeypatch):
    folder.put(tmp_path / "release", OLD)
    monkeypatch.setattr(folder, "_exchanged", lambda one, two: False)
    rename = Path.rename

    def interrupted(path, target):
        rename(path, target)
        if Path(target).name == ".release.old":
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.put(tmp_path / "release", NEW)
    assert contents(tmp_path / "release") == OLD
    assert names(tmp_path) == ["release"]


def test_without_an_exchange_a_kill_between_two_names_is_undone(tmp_path):
    folder.put(tmp_path / "release", OLD)
    (tmp_path / "release").rename(tmp_path / ".release.old")
    with pytest.raises(TypeError):
        folder.put(tmp_path / "release", {"sample.csv": None})
    assert contents(tmp_path / "release") == OLD


# A child for each signal and moment: what it does to files are events, before one of which the signal comes.
_KILLED = """
import os, signal, sys
from pathlib import Path
from equinoise.nvo.release import folder
target, names, moments = Path(sys.argv[1]), sys.argv[2].split(), 25
old, new = ({name: word * 5000 for name in names} for word in (b"old ", b"new "))
seen, stop = 0, (None, None)
def watch(event, _):
    global seen
    if stop[0] is not None and event.startswith(("open", "os.", "ctypes.dl")) and event != "os.kill":
        if seen == stop[1]:
            os.kill(os.getpid(), stop[0])
        seen += 1
sys.addaudithook(watch)
folder.put(target, old)
stop = (0, -1)
folder.put(target, old)
events = seen
stop = (None, None)
assert events >= moments, events
ends = {"old": 0, "new": 0}
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    for moment in range(moments):
        folder.put(target, old)
        child = os.fork()
        if child == 0:
            seen, stop = 0, (number, moment * events // moments)
            try:
                folder.put(target, new)
            except KeyboardInterrupt:
                os._exit(7)
            os._exit(8)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in ((7, 8) if number == signal.SIGINT else (-number,)), (number, moment, code)
        whole = {name: (target / name).read_bytes() for name in names}
        assert whole in (old, new), (number, moment)
        ends["old" if whole == old else "new"] += 1
folder.put(target, new)
assert os.listdir(target.parent) == [target.name]
print(ends["old"], ends["new"])
"""


@posix
def test_signals_at_25_moments_leave_the_old_release_whole_or_the_new(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path / "release"), " ".join(NAMES)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    old, new = map(int, done.stdout.split())
    assert old >= 30 and new >= 6
    assert old + new == 75


def test_a_folder_of_others_is_refused_before_all_of_it_is_walked(tmp_path, monkeypatch):
    (tmp_path / "home" / "much").mkdir(parents=True)
    monkeypatch.setattr(Path, "rglob", lambda *_: pytest.fail("walked"))
    with pytest.raises(ValueError, match=r"got .* with 'much' in it"):
        folder.own("out", tmp_path / "home")
