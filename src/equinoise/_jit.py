"""The one place that decides how kernels are compiled and where they are cached.

Numba's own cache asks only whether the file of a function has changed, so a kernel goes stale when a
function that it calls in another file does. Here the cache directory is named by a hash of every source
of the package, and a change anywhere compiles anew. The base is ``NUMBA_CACHE_DIR`` where that is set and
the user's cache directory otherwise; where neither can be written, kernels are compiled in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching, config
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import AppDirs

__all__ = ["cache_directory", "njit"]

_PACKAGE = Path(__file__).resolve().parent


def njit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile a kernel: nogil, division as numpy does it, cached under :func:`cache_directory`.

    Parameters
    ----------
    function : callable
        A function over arrays and numbers.
    **options
        Passed on to :func:`numba.njit`; a kernel that sets ``fastmath`` says why.

    Returns
    -------
    callable
        The compiled dispatcher, or with ``NUMBA_DISABLE_JIT=1`` the function itself, silent about
        wrap-around and division as machine code is.
    """
    if function is None:
        return functools.partial(njit, **options)
    compiled = numba.njit(function, nogil=True, error_model="numpy", **options)
    if not isinstance(compiled, Dispatcher):
        return _quiet(function)
    try:
        compiled._cache = _Cache(function)
    except (OSError, RuntimeError):
        pass  # no locator answered: nowhere to write, so this process compiles in memory
    return compiled


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a Python function so that numpy scalars wrap around without a warning, as compiled ones do."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return call


@functools.cache
def cache_directory() -> Path:
    """Return the directory of this build's kernels: base / hash of all sources and of bounds checking."""
    digest = hashlib.sha256(b"bounds" if config.BOUNDSCHECK else b"")
    for source in sorted(_PACKAGE.rglob("*.py")):
        digest.update(source.relative_to(_PACKAGE).as_posix().encode())
        digest.update(source.read_bytes())
    base = config.CACHE_DIR or AppDirs(appname="equinoise", appauthor=False).user_cache_dir
    return Path(base) / f"equinoise-{digest.hexdigest()[:20]}"


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba to keep a function's machine code in :func:`cache_directory`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._name = f"{function.__module__}-{code.co_firstlineno}"
        self._py_file = code.co_filename

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
        locator = cls(py_func)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class _CacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012 - Numba's own attribute


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheImpl

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with contextlib.suppress(OSError):  # a disk that fills up costs the cache, never the result
            yield
