"""The one place that decides how kernels are compiled and where they are cached.

Numba's own cache asks only whether the file of a function has changed, so a kernel goes stale when a function
that it calls in another file does. Here the cache directory is named by a hash of all sources of the package,
Numba's version and the processor. The base is ``NUMBA_CACHE_DIR`` where that is set and the user's cache
directory otherwise; where it cannot be written, kernels are compiled in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import llvmlite.binding
import numba
import numpy as np
from numba.core import caching, compiler_lock, config as _config, event as _event, sigutils
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import AppDirs

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_PACKAGE = Path(__file__).resolve().parent
_KERNEL = 2**16  # bytes, of a small one
_UNUSED = 30 * 86_400.0  # seconds after which a build's kernels are removed
event: Any = _event
config: Any = _config  # its settings are made at run time, where no type checker sees them
_normal: Any = sigutils.normalize_signature
_lock: Any = compiler_lock.global_compiler_lock
if hasattr(os, "register_at_fork"):  # or a child waits for ever for what another thread was compiling
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@overload
def njit(function: Kernel, /, **options: Any) -> Kernel: ...
@overload
def njit(**options: Any) -> Callable[[Kernel], Kernel]: ...
def njit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile a kernel: nogil, division as numpy does it, cached under :func:`cache_directory`.

    With ``NUMBA_DISABLE_JIT=1`` it is the function itself, as silent about wrap-around and division. Options
    are :func:`numba.njit`'s. A kernel that sets ``fastmath`` says why, and calls nothing: what is inlined
    takes its flags over, and error-free sums such as those of the package's logarithm come out wrong.
    Kernels allocate nothing, since results go into arrays that the caller made. So Numba's reference counts,
    whose atomic steps cost a short kernel more than its work, are left out (``_nrt=False``).
    """
    if function is None:
        return functools.partial(njit, **options)
    compile_: Any = numba.njit  # typed without the options that numba does not document
    compiled = compile_(function, nogil=True, error_model="numpy", _nrt=False, **options)
    if not isinstance(compiled, Dispatcher):
        return _quiet(function)
    dispatcher: Any = compiled
    with contextlib.suppress(OSError, RuntimeError):  # nowhere to write: this process compiles in memory
        dispatcher._cache = cast(Any, _Cache)(function)  # whose parents have no types
    return dispatcher


@contextlib.contextmanager
def compiling(tell: Callable[[bool], object]) -> Iterator[None]:
    """Tell when this process begins (True) and ends (False) to compile; what is in the cache is not."""
    depth = 0

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, _: object) -> None:
            nonlocal depth
            depth += 1
            tell(True)

        def on_end(self, _: object) -> None:
            nonlocal depth
            depth -= 1
            tell(depth > 0)

    with event.install_listener("numba:compile", Listener()):
        yield


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a Python function so that numpy scalars wrap around without a warning, as compiled ones do."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return call


@functools.cache
def cache_directory() -> Path:
    """Return the directory of this build's kernels: base / hash of what the machine code depends on.

    OSError says that there is no base: the user has no home directory and ``NUMBA_CACHE_DIR`` is not set.
    """
    host = llvmlite.binding
    machine = config.CPU_NAME or host.get_host_cpu_name(), host.get_host_cpu_features().flatten()
    digest = hashlib.sha256(repr((numba.__version__, machine, bool(config.BOUNDSCHECK))).encode())
    for source in _sources():
        digest.update(source.relative_to(_PACKAGE).as_posix().encode())
        digest.update(source.read_bytes())
    folder = _base() / f"equinoise-{digest.hexdigest()[:20]}"
    with contextlib.suppress(OSError):
        os.utime(folder)  # in use
    for old in folder.parent.glob("equinoise-" + 20 * "[0-9a-f]"):  # of builds that no process used for long
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _UNUSED:
                shutil.rmtree(old)
    return folder


@functools.cache
def _sources() -> dict[Path, tuple[int, ...]]:
    """Return all sources in order, each with what its replacement changes, as of the first call."""
    return {path: _stamp(path) for path in sorted(_PACKAGE.rglob("*.py"))}


def _stamp(path: Path) -> tuple[int, ...]:
    of = path.stat()
    return of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns


def _upgraded() -> bool:
    """Return whether a source was replaced since they were hashed, so that this process may hold of both."""
    try:
        return any(_stamp(path) != stamp for path, stamp in _sources().items())
    except OSError:
        return True


def keeps() -> bool:
    """Return whether what is compiled now can be kept: not in a folder to read only, or on a full disk."""
    with contextlib.suppress(OSError):
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_directory()) as file:
            file.write(bytes(_KERNEL))
        return not _upgraded()
    return False


def _base() -> Path:
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR).absolute()
    base = Path(cast(Any, AppDirs)(appname="equinoise", appauthor=False).user_cache_dir)
    if not base.is_absolute():  # an unexpanded "~": nobody's home, so not a folder of that name here
        raise OSError("this user has no home directory")
    return base


class _Locator(caching._CacheLocator):
    """Tells Numba to keep a function's machine code in :func:`cache_directory`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}-{function.__code__.co_firstlineno}"
        self._py_file = function.__code__.co_filename

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return ""  # the directory's name already stands for the sources

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        if not Path(py_file).is_file():
            return None
        locator: Any = cls(py_func)
        with contextlib.suppress(OSError):
            if not Path(locator.get_cache_path()).is_dir():  # one that is there may be to read only
                locator.ensure_cache_path()
            return cast(_Locator, locator)
        return None


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes: Any = (_Locator,)


class _Cache(caching.FunctionCache):
    _impl_class = _CacheImpl

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load code for a signature; not what another process wrote for other types into the file's name."""
        if _upgraded():
            return None
        found, types = cast(Any, super())._load_overload(sig, target_context), _normal(sig)[0]
        return found if found and found.signature.args == types else None

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Keep code, unless it may be of other sources than its folder is named by."""
        if not _upgraded():
            cast(Any, super())._save_overload(sig, data)

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Let a full disk or a damaged file cost the cached code, not the result; begin the index anew."""
        try:
            yield
        except Exception:  # damaged pickles fail in any way, from IndexError to ImportError
            with contextlib.suppress(OSError):
                cast(Any, super()).flush()
