"""What objects share that are asked and told for days: one thread at a time, no copies, one file."""

import contextlib
import functools
import inspect
import os
import secrets
import signal
import threading
import weakref
from pathlib import Path

from equinoise import _checks, _files
from equinoise._typing import Any, Callable, Iterator, Mapping, Self, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
_living: weakref.WeakSet[Any] = weakref.WeakSet()


class Live:
    """The parent of live objects: each holds a lock, and is the only one that goes on from where it is."""

    kept_by = "save and load"  # not by copies, each of which would noise the same sums
    __signature__: Any
    _lock: Any
    _line: int  # shared by all that were loaded from files of one object; _writer names this one there
    _writer: int
    _read: Any = None  # [writer, generation] of the last file that it wrote or was loaded from
    _forked = _repeats = False  # there is one more, which would draw the same noise, and nobody gave a seed

    def __init_subclass__(cls) -> None:
        """Show the signature of ``__init__``: before Python 3.11.4 ``inspect`` takes that of ``__new__``."""
        cls.__signature__ = inspect.Signature([*inspect.signature(cls.__init__).parameters.values()][1:])

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return an object with its lock, however it is filled."""
        made = super().__new__(cls)
        made._lock = threading.RLock()
        made._line = made._writer = secrets.randbits(62)
        _living.add(made)
        return made

    def __reduce_ex__(self, protocol: object) -> Any:
        """Refuse to be copied or pickled."""
        raise TypeError(f"a {type(self).__name__} can't be copied or pickled: use {self.kept_by}")

    def _go_apart(self) -> None:
        """Part from the object of the process that was forked, before anything else is done."""
        if self._repeats:  # two sums with the same noise differ by what it hides
            raise RuntimeError(f"a {type(self).__name__} can't go on in a forked child without a seed")
        self._forked = False

    def _save(
        self,
        path: Any,
        overwrite: object,
        kind: str,
        meta: Mapping[str, Any],
        restored: Callable[[], object] = lambda: None,
        **how: Any,
    ) -> None:
        """Write a file; ValueError in place of one of its line that this object neither wrote nor read.

        RuntimeError where `restored`, which reads what is written, says that it could not be read back.
        """
        try:
            restored()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = "a change of this bandit broke off, so it cannot be saved; the file is as it was"
            raise RuntimeError(f"{why}: {error}") from error
        line, last = None, [0, 0]
        with _files.alone(Path(_checks.path("path", path))):
            with contextlib.suppress(FileNotFoundError, ValueError), _files.loaded(path, kind) as (_, found):
                line, last = _saved(found)
            known = line != self._line or last == self._read or last[0] == self._writer
            if not _checks.flag("overwrite", overwrite) and not known:
                held = f"path {os.fspath(path)!r} holds a save (generation {last[1]}) from which this object"
                raise ValueError(f"{held} does not go on: load it, or give overwrite=True")
            saved = [self._writer, self._read[1] + 1 if self._read else 1]
            _files.save_arrays(path, kind, meta={**meta, "line": self._line, "saved": saved}, **how)
        self._read = saved

    def _came_from(self, meta: Mapping[str, Any]) -> Self:
        """Note which file this object was loaded from, and return the object."""
        if "saved" in meta:
            self._line, self._read = _saved(meta)
        return self


def _saved(meta: Mapping[str, Any]) -> tuple[Any, list[int]]:
    """Return a file's line, and its writer and generation; ValueError where they are nothing of ours."""
    if "saved" not in meta:
        return None, [0, 0]
    line, (writer, generation) = meta["line"], meta["saved"]
    saved = [_checks.integer("saved", one, 0, 2**63) for one in (writer, generation)]
    return _checks.integer("line", line, 0, 2**63), saved


def locked(method: Method) -> Method:
    """Let one thread at a time into an object."""

    @functools.wraps(method)
    def call(self: Live, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self._forked:
                self._go_apart()
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


def whole(method: Method) -> Method:
    """Let one thread at a time in, and let it finish before Ctrl-C is heard: nothing is half changed."""
    return locked(_later()(method))


@contextlib.contextmanager
def _later() -> Iterator[None]:
    """Hold SIGINT back; only the main thread hears it, and only a handler in Python can be called later."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    heard: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            handler(*heard[0])


def _forked() -> None:
    """Let a child's objects be others than its parent's, and no lock be held by a thread that is gone."""
    for one in _living:
        one._lock, one._writer, one._forked = threading.RLock(), secrets.randbits(62), True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
