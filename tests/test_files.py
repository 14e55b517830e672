"""Files appear whole or not at all, and a folder is tried before there is anything to write."""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from equinoise import _files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_the_place_of_the_old_one_at_the_end(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with _files.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_everything_is_as_it_was(tmp_path, error):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), _files.replacing(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.skipif(os.name != "posix", reason="links and modes")
def test_links_are_followed_and_modes_are_the_usual_ones(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "a.bin")
    with _files.replacing(link) as file:
        file.write(b"x")
    assert link.is_symlink()
    usual = tmp_path / "usual"
    usual.touch()
    made = (tmp_path / "real" / "a.bin").stat().st_mode
    assert stat.S_IMODE(made) == stat.S_IMODE(usual.stat().st_mode)


class Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(tmp_path):
    good, bad, made = tmp_path / "good", tmp_path / "bad", tmp_path / "made"
    _files.save_arrays(good, "kind", {"a": np.zeros(2)}, {})
    with np.load(good) as archive, bad.open("wb") as file:
        np.savez(file, **archive, b=np.array([Touches(made)], dtype=object))
    with _files.loaded(good, "kind") as (arrays, _):
        assert arrays["a"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="does not hold a whole kind"), _files.loaded(bad, "kind"):
        pass
    assert not made.exists()
    pickle.loads(pickle.dumps(Touches(made)))
    assert made.exists()


@pytest.mark.skipif(os.name == "nt", reason="open files stay")
def test_other_writers_leave_what_is_being_written(tmp_path, monkeypatch):
    """Neither what was made but is not claimed yet, nor what is about to take its place."""
    path, claimed, replace = tmp_path / "a.bin", _files.claimed, Path.replace

    def slow(file, wait=False):  # another writer has just found it, and is about to remove it
        monkeypatch.setattr(_files, "claimed", claimed)
        left, handle = Path(file.name), os.open(file.name, os.O_RDWR)
        assert claimed(handle)
        threading.Timer(0.05, lambda: (left.unlink(), os.close(handle))).start()
        return claimed(file, wait)

    def late(self, target):
        monkeypatch.setattr(Path, "replace", replace)
        with _files.replacing(path) as file:
            file.write(b"other")
        return self.replace(target)

    monkeypatch.setattr(_files, "claimed", slow)
    with _files.replacing(path) as file:
        file.write(b"one")
        time.sleep(0.1)
    assert path.read_bytes() == b"one"
    monkeypatch.setattr(Path, "replace", late)
    with _files.replacing(path) as file:
        file.write(b"two")
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["a.bin"]


def test_all_files_or_none(tmp_path):
    folder = tmp_path / "new" / "deep"
    assert _files.write_all(folder, {"a": b"1", "b": b"2"}) == [folder / "a", folder / "b"]
    (folder / "c").mkdir()
    with pytest.raises(OSError):
        _files.write_all(folder, {"c/x/y": b"", "a": b"3"})
    with pytest.raises(OSError):
        _files.write_all(folder, {"a": b"3", "missing/x": b""})
    assert names(folder) == ["a", "b", "c"]
    assert (folder / "a").read_bytes() == b"1"


def test_json_is_read_back_and_refuses_what_is_not_json():
    assert json.loads(_files.json_bytes({"ε": [1, None, 0.1]}).decode("utf-8")) == {"ε": [1, None, 0.1]}
    with pytest.raises(ValueError, match="JSON"):
        _files.json_bytes(float("nan"))


def test_a_folder_that_can_be_made_is_not_made_yet(tmp_path):
    assert _files.writable_folder("out", tmp_path / "x" / "y") == tmp_path / "x" / "y"
    assert _files.writable_folder("out", tmp_path) == tmp_path
    assert names(tmp_path) == []


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"^out must be a folder"):
            _files.writable_folder("out", path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match=r"^out must be a folder to write into"):
        _files.writable_folder("out", tmp_path / "x")


def test_a_folder_that_refuses_files_is_refused(monkeypatch, tmp_path):
    def refuse(**where):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_files.tempfile, "TemporaryFile", refuse)
    with pytest.raises(ValueError, match=r"^out must be a folder to write into.*Permission denied"):
        _files.writable_folder("out", tmp_path)


def test_a_new_file_that_another_took_for_a_left_one_is_closed(tmp_path, monkeypatch):
    """And made again: without a ResourceWarning."""
    claimed, taken = _files.claimed, []

    def late(file, wait=False):
        if wait and not taken:
            taken.append(file)
            Path(file.name).unlink()
        return claimed(file, wait)

    monkeypatch.setattr(_files, "claimed", late)
    with _files.replacing(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert taken[0].closed and names(tmp_path) == ["a.bin"]
    taken.clear()

    def interrupted(file, wait=False):
        taken.append(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(_files, "claimed", interrupted)
    with pytest.raises(KeyboardInterrupt), _files.replacing(tmp_path / "a.bin"):
        pass
    assert taken[0].closed


@pytest.mark.skipif(os.name != "posix", reason="folders are locked")
def test_sets_of_files_of_two_writers_do_not_mix(tmp_path, monkeypatch):
    def free():
        handle = os.open(tmp_path, os.O_RDONLY)
        try:
            return _files.claimed(handle)
        finally:
            os.close(handle)

    def replace(path, target):
        seen.append(free())
        return real(path, target)

    seen, said, real = [], [], Path.replace
    monkeypatch.setattr(Path, "replace", replace)
    _files.write_all(tmp_path, {"a": b"1", "b": b"1"})
    assert (seen, free()) == ([False, False], True)
    with _files.alone(tmp_path):
        _files.write_all(tmp_path, {"a": b"2", "b": b"2"}, held=True)

    def warn(words, **_):
        said.append((words, (tmp_path / "a").read_bytes()))
        os.close(other)

    other = os.open(tmp_path, os.O_RDONLY)
    assert _files.claimed(other)
    monkeypatch.setattr("warnings.warn", warn)
    _files.write_all(tmp_path, {"a": b"3", "b": b"3"})
    assert said == [(f"waiting for another process, which writes into {tmp_path}", b"2")]
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"3", b"3"]


@pytest.mark.skipif(os.name != "posix", reason="locks of its kind")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_nobody_says_to_wait(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    said = []
    with _files.alone(tmp_path, lambda: said.append("waits")):
        _files.write_all(tmp_path, {"a": b"1"})
    assert (said, names(tmp_path)) == ([], ["a"])
