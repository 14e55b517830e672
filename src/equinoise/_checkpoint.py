"""Finished blocks of replicates in a folder, so that a run that was killed goes on from them.

A folder belongs to one run: a fingerprint of the task (its function, its arrays, its seed) and of this
version stands in ``run.json``. Each block is a file of its own, whole or not there, named by its replicates.
What the package's tasks are made of has a name for fingerprints that stays when the code moves.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
import types
from pathlib import Path

import numpy as np

from equinoise import _checks, _files
from equinoise._typing import Any, Array, Callable, Iterator, TypeVar
from equinoise._version import __version__

_KIND = "equinoise replicates, version 1"
_NAME = re.compile(r"replicates-(\d+)-(\d+)\.npz")

Arrays = tuple[Array, ...] | dict[str, Array]
Part = TypeVar("Part", bound=Callable[..., Any])


def kept_as(name: str) -> Callable[[Part], Part]:
    """Give a function or a class the name that it has in fingerprints, wherever it moves."""

    def mark(part: Part) -> Part:
        part._kept_as = name  # type: ignore[attr-defined]
        return part

    return mark


class Blocks:
    """The blocks of one run of a task in a folder, which is made where it is missing, or refused."""

    def __init__(self, folder: str | os.PathLike[str], task: Callable[[int, int], Any]) -> None:
        self.folder = _files.writable_folder("resume", _checks.path("resume", folder))
        mark = fingerprint(task)
        marker = self.folder / "run.json"
        try:
            known = json.loads(marker.read_bytes())
        except FileNotFoundError:
            names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
            if not all(name.startswith(".") and name.endswith(".tmp") for name in names):  # left by a kill
                why = f"resume must be an empty folder or one of this run, got {str(self.folder)!r}"
                raise ValueError(why) from None
            _files.write_all(self.folder, {"run.json": _files.json_bytes({"kind": _KIND, "run": mark})})
            return
        except (OSError, ValueError):
            known = None
        if known != {"kind": _KIND, "run": mark}:
            raise ValueError(
                f"resume must be a folder of this very run, got {str(self.folder)!r} of another: its "
                "arguments, seed (None is a new one every time) or version differ"
            )

    def put(self, start: int, stop: int, block: Arrays) -> None:
        """Keep what the task returned for the replicates start to stop - 1."""
        named = block if isinstance(block, dict) else {str(i): array for i, array in enumerate(block)}
        arrays = {f"a{i}": np.asarray(array) for i, array in enumerate(named.values())}
        names = list(named) if isinstance(block, dict) else None
        path = self.folder / f"replicates-{start:09d}-{stop:09d}.npz"
        _files.save_arrays(path, _KIND, arrays, {"start": start, "stop": stop, "names": names})

    def missing(self, n_replicates: int, keep: Callable[[int, int, Arrays], None]) -> list[tuple[int, int]]:
        """Give every kept block below `n_replicates` to `keep`, and return the gaps between them.

        A damaged file counts as missing.
        """
        gaps, reached = [], 0
        for first, stop, path in self._found():
            begin, end = max(first, reached), min(stop, n_replicates)
            block = _read(path, first, stop) if begin < end else None
            if block is None:
                continue
            if begin > reached:
                gaps.append((reached, begin))
            keep(begin, end, _cut(block, begin - first, end - first))
            reached = end
        return gaps if reached == n_replicates else [*gaps, (reached, n_replicates)]

    def _found(self) -> Iterator[tuple[int, int, Path]]:
        for path in sorted(self.folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match:
                yield int(match[1]), int(match[2]), path


def _read(path: Path, start: int, stop: int) -> Arrays | None:
    with contextlib.suppress(ValueError, OSError), _files.loaded(path, _KIND) as (arrays, meta):
        if (meta["start"], meta["stop"]) == (start, stop):
            values = [arrays[f"a{i}"] for i in range(len(arrays))]
            names = meta["names"]
            return tuple(values) if names is None else dict(zip(names, values, strict=True))
    return None


def _cut(block: Arrays, begin: int, end: int) -> Arrays:
    """Return the entries begin..end-1 of every array, as arrays of their own."""
    if isinstance(block, dict):
        return {name: np.array(array[begin:end]) for name, array in block.items()}
    return tuple(np.array(array[begin:end]) for array in block)


def fingerprint(value: object) -> str:
    """Return a hash of a task: the same in every process for the same function, arrays and numbers.

    Takes functions, partials, dataclasses and tuples of arrays, numbers, text and None, nested; TypeError for
    anything else. A class of whose parts only some count has a method ``_identity`` that returns these.
    """
    digest = hashlib.sha256(__version__.encode())
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: object) -> Iterator[bytes]:
    """Yield what tells a value from others: the name of its type, then its content."""
    if hasattr(type(value), "_identity"):
        value = value._identity()  # type: ignore[attr-defined]
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        yield _name(value)
        return
    yield _name(type(value))
    parts: list[object]
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield repr((value.dtype.descr, value.shape)).encode()
        yield np.ascontiguousarray(value).tobytes()
        return
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield repr(value).encode("utf-8", "surrogatepass")
        return
    if isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
    elif isinstance(value, types.MethodType):
        parts = [value.__func__, value.__self__]
    elif isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, tuple | list):
        parts = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(getattr(value, field.name), field) for field in dataclasses.fields(value)]
        # A field that came later counts only where it is used, so that older folders still fit.
        parts = [part for part, field in fields if "later" not in field.metadata or part is not field.default]
    else:
        raise TypeError(f"resume needs a task of arrays and numbers, got {_checks.shown(value)} in it")
    yield str(len(parts)).encode()
    for part in parts:
        yield from _pieces(part)


def _name(part: Any) -> bytes:
    """Return the name of a function or a type in fingerprints."""
    name: str = getattr(part, "_kept_as", f"{part.__module__}.{part.__qualname__}")
    return name.encode()
