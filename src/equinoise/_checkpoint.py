"""Finished blocks of replicates in a folder, so that a run that was killed goes on from them.

A folder belongs to one run: a fingerprint of the task (its function, its arrays, its seed) and of this
version stands in ``run.json``, with the parts of the task by name, so that a refusal can say which differ.
Each block is a file of its own, whole or not there, named by its replicates; zip's checksums find a byte that
was changed. What the package's tasks are made of has a name for fingerprints that stays when the code moves.
"""

import contextlib
import dataclasses
import dis
import functools
import hashlib
import inspect
import itertools
import math
import os
import re
import shutil
import types
from pathlib import Path

import numpy as np

from equinoise import _checks, _files
from equinoise._typing import Any, Array, Callable, Iterable, Iterator, Sequence, TypeVar
from equinoise._version import __version__

_KIND = "equinoise replicates, version 1"
_NAME = re.compile(r"replicates-(\d+)-(\d+)\.npz")
# What the user calls the parts of tasks that have other names.
_SAID = {"key": "seed", "segments": "horizon", "checkpoints": "n_checkpoints", "chances": "environment"}
_SAID |= {"true_means": "means", "kind": "reward", "random_ties": "ties"}
_FIRST = {"version", "function", "policy", "epsilon", *_SAID.values()}  # named before the rest
_MOST_NAMED = 6  # of what differs
_HASHED = "sha256:"

Arrays = tuple[Array, ...] | dict[str, Array]
Part = TypeVar("Part", bound=Callable[..., Any])


def kept_as(name: str) -> Callable[[Part], Part]:
    """Give a function or a class the name that it has in fingerprints, wherever it moves."""

    def mark(part: Part) -> Part:
        part._kept_as = name  # type: ignore[attr-defined]
        return part

    return mark


class OtherRun(ValueError):
    """A folder is of another run, or can be of none."""


class Blocks:
    """The blocks of one run of a task in a folder, which is made where it is missing, or refused."""

    def __init__(self, folder: str | os.PathLike[str], task: Callable[[int, int], Any]) -> None:
        try:
            self.folder = _files.writable_folder("resume", _checks.path("resume", folder))
        except ValueError as error:
            raise OtherRun(str(error)) from None
        self.run = fingerprint(task)
        run = {"kind": _KIND, "run": self.run, "parts": {"version": __version__} | _parts(task)}
        self.folder.mkdir(parents=True, exist_ok=True)
        with _files.alone(self.folder):  # or two runs that begin together both call it theirs
            _files.clear(self.folder)
            if (self.folder / "run.json").exists():
                said = f"resume must be a folder of this very run, got {str(self.folder)!r}"
                _refuse_other(run, _run_of(self.folder), said)
                return
            names = [path.name for path in self.folder.iterdir()]
            if not all(name.startswith(".") and name.endswith(".tmp") for name in names):  # left by a kill
                raise OtherRun(f"resume must be an empty folder or one of this run, got {str(self.folder)!r}")
            _files.write_all(self.folder, {"run.json": _files.json_bytes(run)}, held=True)

    def put(self, start: int, stop: int, block: Arrays) -> None:
        """Keep what the task returned for the replicates start to stop - 1."""
        names, values = (list(block), block.values()) if isinstance(block, dict) else (None, block)
        arrays = {f"a{i}": np.asarray(array) for i, array in enumerate(values)}
        if any(array.dtype.hasobject for array in arrays.values()):
            raise TypeError("task must return arrays that are not of objects, where they are kept")
        of = {"run": self.run, "start": start, "stop": stop, "names": names}
        _files.save_arrays(self.folder / f"replicates-{start:09d}-{stop:09d}.npz", _KIND, arrays, of)

    def missing(self, span: range, keep: Callable[[int, int, Arrays], None]) -> list[tuple[int, int]]:
        """Give what is there and whole of a span's replicates to `keep`, and return the gaps between."""
        gaps, reached = [], span.start
        for first, stop, path in _found(self.folder):
            begin, end = max(first, reached), min(stop, span.stop)
            part = slice(begin - first, end - first)
            if begin >= end or (block := _read(path, first, stop, self.run, part)) is None:
                continue
            if begin > reached:
                gaps.append((reached, begin))
            keep(begin, end, block)
            reached = end
        return gaps if reached == span.stop else [*gaps, (reached, span.stop)]


def merge(folders: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str]) -> range:
    """Join what slices of one run kept, so that the run goes on from all of it.

    Parameters
    ----------
    folders : sequence of paths
        What was given as `resume` to slices of one run that lie side by side, in any order.
    folder : path
        A new one, or empty. Given as `resume` to the whole run, nothing is left to do.

    Returns
    -------
    range
        The replicates that are there; fewer than were run where blocks at either end are lost or damaged.

    Raises
    ------
    TypeError, ValueError
        For folders of different runs, naming what differs, for replicates that are in two of them or that
        none between has, and where a damaged block leaves a gap.

    Examples
    --------
    >>> import tempfile
    >>> from equinoise import replicates
    >>> def squares(start, stop):
    ...     return {"square": np.arange(start, stop) ** 2}
    >>> with tempfile.TemporaryDirectory() as there:
    ...     for n in (range(2, 4), range(2)):
    ...         part = replicates.run(squares, n, resume=f"{there}/{n.start}")
    ...     merged = merge([f"{there}/0", f"{there}/2"], f"{there}/whole")
    ...     merged, replicates.run(squares, 4, resume=f"{there}/whole")
    (range(0, 4), {'square': array([0, 1, 4, 9])})
    """
    if isinstance(folders, str | os.PathLike) or not isinstance(folders, Iterable):
        raise TypeError(f"folders must be a list of paths, got {_checks.shown(folders)}")
    given = [Path(_checks.path("folders", one)) for one in folders]
    target = _files.writable_folder("folder", _checks.path("folder", folder))
    if not given or (target.is_dir() and any(target.iterdir())):
        what = f"folder must be an empty one, got {str(folder)!r}"
        raise ValueError(what if given else "folders must be at least one, got none")
    held: list[tuple[int, int, Path]] = []
    blocks: list[Path] = []
    for one in given:
        said = f"folders must be of the run of {str(given[0])!r}, got {str(one)!r}"
        _refuse_other(_run_of(given[0]) or {}, run := _run_of(one), said)
        found = [block for block in _found(one) if _read(block[2], *block[:2], run["run"]) is not None]
        blocks += [path for *_, path in found]
        if not found:
            raise ValueError(f"folders must have finished replicates, got none in {str(one)!r}")
        for first, stop, _ in found:
            if held and held[-1][2] is one and first <= held[-1][1]:  # blocks of one folder may overlap
                first, stop = held[-1][0], max(stop, held.pop()[1])
            held.append((first, stop, one))
    held.sort()
    for (_, end, before), (begin, _, after) in itertools.pairwise(held):
        if begin != end:
            low, high = sorted((begin, end))
            what = f"replicates {low} to {high - 1} are in {'none' if begin > end else 'both'}"
            said = f"{str(before)!r}" + f" and {str(after)!r}" * (before is not after)
            raise ValueError(f"folders must be slices side by side, got {said}: {what}")
    target.mkdir(parents=True, exist_ok=True)
    for path in (*blocks, given[0] / "run.json"):
        shutil.copyfile(path, target / path.name)
    return range(held[0][0], held[-1][1])


def _refuse_other(run: Any, other: Any, said: str) -> None:
    """Raise ValueError where the other is not the same run, naming what differs."""
    if other is not None and (other["kind"], other["run"]) == (run["kind"], run["run"]):
        return
    here, there = run.get("parts", {}), {} if other is None else other.get("parts", {})
    names = [key for key in (*here, *(there.keys() - here)) if here.get(key) != there.get(key)]
    names = ["version"] if "version" in names else sorted(names, key=lambda key: key not in _FIRST)
    words = [_differing(key, there.get(key), here.get(key)) for key in names[:_MOST_NAMED]]
    why = "its run.json is damaged" if other is None else "its arguments, seed or version differ"
    why = ("; ".join(words) if here and there else "") or why
    seed = " (None is a new seed every time)" if "seed differs" in words else ""
    raise OtherRun(f"{said} of another: {why}{seed}")


def _differing(name: str, there: Any, here: Any) -> str:
    hashed = any(value is None or str(value).startswith(_HASHED) for value in (there, here))
    name, there, here = _checks.line(name, 80), _checks.shown(there), _checks.shown(here)
    return f"{name} differs" if hashed else f"{name} is {there} there and {here} here"


def _run_of(folder: Path) -> Any:
    """Return what ``run.json`` says; None where it is damaged, OSError where there is none."""
    with contextlib.suppress(ValueError):
        run = _files.json_of(_files.content(folder / "run.json"))
        if isinstance(run, dict) and {"kind", "run"} <= run.keys() and isinstance(run.get("parts", {}), dict):
            return run
    return None


def _found(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield first replicate, end and path of each block, in order."""
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    yield from sorted((int(match[1]), int(match[2]), path) for match, path in named if match)


def _read(path: Path, start: int, stop: int, run: str, part: slice = slice(None)) -> Arrays | None:
    """Return a part of every array of a block, as arrays of their own; None: damaged, or of another run."""
    with contextlib.suppress(ValueError, OSError), _files.loaded(path, _KIND) as (arrays, meta):
        if (meta["start"], meta["stop"], meta.get("run", run)) == (start, stop, run):  # early ones say no run
            values = [np.array(arrays[f"a{i}"][part]) for i in range(len(arrays))]
            names = meta["names"]
            return tuple(values) if names is None else dict(zip(names, values, strict=True))
    return None


def fingerprint(value: object, version: str | None = None) -> str:
    """Return a hash of a task: the same in every process for the same function, arrays, numbers and version.

    TypeError for what :func:`_pieces` does not know. A class of whose parts only some count has a method
    ``_identity`` that returns these.
    """
    digest = hashlib.sha256((__version__ if version is None else version).encode())
    try:
        for piece in _pieces(value):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    except RecursionError:  # functions that hold one another
        raise TypeError("resume needs a task that does not hold itself, in whatever it is made of") from None
    return digest.hexdigest()


def _parts(value: Any, name: str = "function") -> dict[str, Any]:
    """Return what a task is made of, by the names of its fields: numbers and words, else hashes."""
    inner: dict[str, Any] = {}
    if isinstance(value, functools.partial):
        try:
            named = zip(inspect.signature(value.func).parameters, value.args, strict=False)
        except ValueError:
            what = f"got a partial of {_checks.shown(value.func)}"
            raise TypeError(f"resume needs a task whose arguments have names, {what}") from None
        inner = {"function": value.func, **dict(named), **value.keywords}
    elif hasattr(type(value), "_fields"):
        kept = value._identity() if hasattr(type(value), "_identity") else value
        inner = dict(zip(value._fields, kept, strict=False))
    elif isinstance(value, dict):
        inner = value
    elif dataclasses.is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        inner = own if any(isinstance(one, int | float | tuple) for one in own.values()) else {}
    elif isinstance(value, tuple) and all(hasattr(type(one), "_fields") for one in value):
        inner = {f"{name} {i}": one for i, one in enumerate(value)}
    if inner:
        return {key: part for own, one in inner.items() for key, part in _parts(one, own).items()}
    if isinstance(value, types.FunctionType):
        body = {f"what {name} does": _HASHED + fingerprint(_body(value))[:16]} if _body(value) else {}
        return {name: _name(value).decode()} | body
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    elif not (value is None or isinstance(value, bool | int | float | str)):
        value = _HASHED + fingerprint(value)[:16]
    return {_SAID.get(name, name): value}


def _pieces(value: object) -> Iterator[bytes]:
    """Yield what tells a value from others: the name of its type, then its content."""
    if hasattr(type(value), "_identity"):
        value = value._identity()  # type: ignore[attr-defined]
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
        yield _name(value)
        if body := _body(value):
            yield from _pieces(body)
        own = getattr(value, "__self__", None)  # of a method of what is built in
        if own is not None and not isinstance(own, types.ModuleType):
            yield from _pieces(own)
        return
    yield _name(type(value))
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield repr((value.dtype.descr, value.shape)).encode()
        yield np.ascontiguousarray(value).tobytes()
        return
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield repr(value).encode("utf-8", "surrogatepass")
        return
    if isinstance(value, functools.partial):
        parts: list[object] = [value.func, value.args, value.keywords]
    elif isinstance(value, types.MethodType):
        parts = [value.__func__, value.__self__]
    elif isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, tuple | list):
        parts = list(value)
    elif isinstance(value, range):
        parts = [value.start, value.stop, value.step]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(getattr(value, field.name), field) for field in dataclasses.fields(value)]
        # A field that came later counts only where it is used, so that older folders still fit.
        parts = [part for part, field in fields if "later" not in field.metadata or part is not field.default]
    else:
        raise TypeError(f"resume needs a task of arrays and numbers, got {_checks.shown(value)} in it")
    parts += [call] if _body(call := type(value).__call__) else []
    yield str(len(parts)).encode()
    for part in parts:
        yield from _pieces(part)


def _body(function: Any) -> tuple[Any, ...]:
    """Return what tells a user's function from others of its name; nothing of the package's own."""
    if not hasattr(function, "__code__") or hasattr(function, "_kept_as"):
        return ()
    if function.__module__.startswith("equinoise."):
        return ()
    try:
        cells = [one.cell_contents for one in function.__closure__ or () if one.cell_contents is not function]
    except ValueError:
        said = f"resume needs a task whose variables have values, which not all of {function.__qualname__} do"
        raise TypeError(said) from None
    held = [one.__name__ if isinstance(one, types.ModuleType) else one for one in cells]
    body = _code(function.__code__), held, function.__defaults__, function.__kwdefaults__
    known = {name: function.__globals__.get(name, ...) for name in sorted(_read_by(function.__code__))}
    plain = {name: value for name, value in known.items() if _plain(value)}
    return (*body, plain) if plain else body


def _read_by(code: types.CodeType) -> set[str]:
    """Return the names of the globals that a function reads, and does not set itself."""
    by: dict[str, set[str]] = {"LOAD_GLOBAL": set(), "STORE_GLOBAL": set()}
    for one in dis.get_instructions(code):
        by.get(one.opname, set()).add(one.argval)
    inner = (_read_by(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return by["LOAD_GLOBAL"].union(*inner) - by["STORE_GLOBAL"]


def _plain(value: object) -> bool:
    """Return whether there are numbers, words and arrays alone: of other globals nothing is known."""
    if isinstance(value, tuple | list | dict):
        return all(map(_plain, [*value, *value.values()] if isinstance(value, dict) else value))
    number = isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject
    return number or value is None or isinstance(value, int | float | str | bytes)


def _code(code: types.CodeType) -> tuple[Any, ...]:
    """Return what a function does, wherever it stands: instructions, names, and constants in turn."""
    consts = [_code(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    sets = [sorted(map(repr, one)) if isinstance(one, frozenset) else repr(one) for one in consts]
    return code.co_code, code.co_names, sets


def _name(part: Any) -> bytes:
    """Return the name of a function or a type in fingerprints."""
    return str(getattr(part, "_kept_as", f"{part.__module__}.{part.__qualname__}")).encode()
