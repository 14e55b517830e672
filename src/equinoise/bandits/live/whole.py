"""Changes that are made as a whole: Ctrl-C is heard when they are done."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

__all__ = ["whole"]

P = ParamSpec("P")
T = TypeVar("T")


def whole(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method finish before Ctrl-C is heard, so that it leaves no object half changed."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with _later():
            return method(*args, **kwargs)

    return call


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
