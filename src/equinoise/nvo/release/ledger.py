"""A ledger of releases of the same people, and whether a release's folder is whole and unchanged.

A line of the ledger follows from what was asked for and from the sample alone. It has no digest of the data:
whoever knows all records but one could try every value of the last one.
"""

import csv
import hashlib
import io
import json
import os
from pathlib import Path

import numpy as np

import equinoise
from equinoise import _checks, _files
from equinoise._typing import Any, Mapping
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import LaplaceNoise
from equinoise.nvo.profile import evaluate
from equinoise.nvo.release import folder as folders
from equinoise.nvo.release.certificate import MADE, above, exact, statement
from equinoise.nvo.release.composition import DELTA, compose_pure

_ASKED = ("date", "column", "method", "epsilon", "total_epsilon", "bounds", "sampling", "sample")
_TIGHT = 1e-9  # of epsilon: what a scale read from a file may change


def entry(statement: Mapping[str, Any], path: str, folder: str) -> dict[str, Any]:
    """Return the line of a release, of its certificate for others.

    ``adds`` is what all its rows tell about a person at most, except with probability ``delta``. With an
    epsilon of each row it is that of the worst data there are: what these data have is not for others.
    """
    epsilon, total, rows = statement["epsilon"], statement["total_epsilon"], statement["sample"]["rows"]
    whole = statement["method"] == "histogram"
    adds = epsilon or total if whole or total else compose_pure(epsilon, rows)
    facts = {name: statement[name] for name in _ASKED}
    return {"file": path, "folder": folder, **facts, "adds": adds, "delta": 0.0 if whole else DELTA}


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the lines of a ledger, none where there is no file; ValueError where one is no release."""
    file, found = Path(path), []
    _files.writable_folder("ledger", file.parent)
    if (there := file.exists()) and not file.is_file():  # a pipe never ends
        raise ValueError(f"ledger must be a file, got {str(file)!r}")
    for number, line in enumerate(file.read_bytes().splitlines() if there else (), 1):
        try:
            found.append(one := _files.json_of(line))
            for name in ("adds", "delta"):
                _checks.number(name, one[name], 0.0)
        except (ValueError, TypeError, KeyError):
            what = "a ledger, a release in each line"
            raise ValueError(f"ledger must be {what}, got {str(file)!r} with another line {number}") from None
    return found


def add(path: str | os.PathLike[str], release: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Put a line at the end of a ledger, which is made where it is missing, and return all that it has."""
    line = json.dumps(release, allow_nan=False).encode() + b"\n"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("ab+", buffering=0) as file:
        _files.claimed(handle := file.fileno(), wait=True)
        file.seek(max((size := os.fstat(handle).st_size) - 1, 0))
        left = b"\n" * (file.read(1) not in b"\n") + line  # after a line that has no end, as of editors
        try:
            while left := left[file.write(left) :]:
                pass  # a raw file may take a part, and then says why not the rest
            os.fsync(handle)
        except BaseException as error:  # a full disk: no half of a line, now or when the file is closed
            os.ftruncate(handle, size)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise
    folders.dated(Path(path))
    return read(path)


class _Changed(ValueError):
    """What is not as it was released, in words that show no value."""


def verify(folder: Path, beside: frozenset[str] = frozenset()) -> str:
    """Say in a line what a release's folder holds, or in a ValueError why it is not what was released.

    The sample must be that of the certificate, whose promise must be that of what was asked for, and of
    several columns `beside` names the folders: all that were released, each by its column. With ``private/``
    records are put into bins again, and all must be within epsilon.
    """
    said, table = _document(folder, "certificate.json"), _content(folder, "sample.csv")
    picture = _content(folder, "distribution.png")
    try:
        together = set(said.get("columns", ()))
        if together and beside and (said["column"] != folder.name or together != beside):
            raise _Changed("it must be that of its own column, beside all that were released with it")
        files = ("sample", "sample.csv", table), ("picture", "distribution.png", picture)
        for kind, name, content in files:
            if hashlib.sha256(content).hexdigest() != said[kind]["sha256"]:
                raise _Changed(f"{name} has another SHA-256 than the certificate says")
        rows = sum(1 for _ in csv.reader(io.StringIO(table.decode(), newline=""))) - 1
        if rows != said["sample"]["rows"]:
            raise _Changed(f"sample.csv has {rows:,} rows, and the certificate says otherwise")
        asked = {name: value for name, value in said.items() if name not in MADE}
        wanted = statement(asked, table, rows, picture) | {"date": said["date"], "versions": said["versions"]}
        same = said["versions"]["equinoise"] == equinoise.__version__  # others may say it otherwise
        if same and said != wanted:
            raise _Changed("certificate.json has another promise than what was asked for has")
        whole = f"whole and unchanged: {rows:,} rows of {said['column']}"
        if not (folder / "private").is_dir():
            return f"{whole}; without private/, which only its steward has, no record was checked"
        return f"{whole}; {_records(folder / 'private', said)}"
    except _Changed:
        raise
    except KeyError as error:
        raise _Changed(f"a document in it has no proper {error}") from None
    except Exception:  # what is damaged fails in many ways, whose words may show values
        raise _Changed("a document in it is damaged") from None


def _records(private: Path, said: Mapping[str, Any]) -> str:
    """Check what only the steward has, and say what was found."""
    import pandas as pd

    made = _document(private, "run.json")
    facts, asked = made["certificate"], made["parameters"]
    if not set(said) <= {*asked, *MADE}:
        raise _Changed("certificate.json must have no more than was asked for")
    for name in set(asked) & set(said):
        if asked[name] != said[name]:
            raise _Changed(f"private/run.json has another {name} than certificate.json")
    frame = pd.read_csv(io.BytesIO(_content(private, "scales.csv")))
    how = {name: asked[name] for name in ("bounds", "margin", "spike")} | {"whole": asked["whole"] or None}
    try:
        histogram = Histogram.from_values(frame["value"].to_numpy(), asked["bins"], **how)
        same = np.array_equal(histogram.bin_of, frame["bin"]) and list(histogram.range) == facts["range"]
    except (ValueError, TypeError):  # whose messages show values
        same = False
    if not same:
        raise _Changed("private/scales.csv has values in other bins than theirs")
    if asked["method"] != "nvo":
        return f"all {histogram.n:,} records are in their bins, and the method is private for any"
    start, stop = histogram.range
    scales, chosen = np.unique(frame["scale"] / (stop - start), return_inverse=True)
    counts = np.zeros((histogram.n_bins, len(scales)), dtype=np.int64)
    np.add.at(counts, (histogram.bin_of, chosen), 1)
    noise = LaplaceNoise.of(histogram.n_bins, scales)
    found = evaluate(noise, histogram.counts, counts, facts["epsilon"] * (1.0 + _TIGHT))
    told = facts["realised_epsilon"]["removal"]
    if found.n_satisfied < histogram.n or abs(found.realised_epsilon - told) > 1e-6 * told:
        wrong = f"{histogram.n - found.n_satisfied:,} of {histogram.n:,} records beyond it"
        has = f"epsilon {found.realised_epsilon:.6g} where {told:.6g} is said"
        raise _Changed(f"private/scales.csv has {has}, {wrong}")
    within = f"epsilon {exact(facts['epsilon'])}, at most {above(told, 4)}"
    return f"all {histogram.n:,} records are within {within}"


def _content(folder: Path, name: str) -> bytes:
    try:
        return _files.content(folder / name)
    except OSError as error:
        where = f"{folder.name}/" * (folder.name == "private")
        raise _Changed(f"{where}{name} cannot be read: {error.strerror}") from None


def _document(folder: Path, name: str) -> Any:
    content = _content(folder, name)
    try:
        return _files.json_of(content)
    except ValueError as error:
        raise _Changed(f"{name} is no JSON: {_checks.line(error)}") from None
