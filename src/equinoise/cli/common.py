"""What the commands share: one line on stderr, a console, and wrong use in the words of the options."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["WrongUse", "console", "refusing", "say", "working"]

_PIPE_WIDTH = 120  # a pipe has no width, and what reads it wants whole lines


class WrongUse(Exception):
    """The user asked for something that cannot be; the message is one line."""


@contextlib.contextmanager
def refusing(options: Mapping[str, str]) -> Iterator[None]:
    """Turn refusals of checks into :class:`WrongUse`, and the arguments that they name into options.

    Only checks belong into the block: there, a ValueError is the user's mistake and not ours.

    Parameters
    ----------
    options : mapping of str to str
        Name of an argument in Python, and what the user typed: ``{"horizon": "--trials"}``.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        words = " ".join(str(error).split())
        words = re.sub(r"^\w+", lambda name: options.get(name[0], name[0]), words)
        words = re.sub(r"\b(\w+)='(\w+)'", lambda said: f"{options.get(said[1], said[1])} {said[2]}", words)
        raise WrongUse(words) from error


def say(line: str) -> None:
    """Print one line on stderr, with the command's name."""
    print(f"equinoise: {line}", file=sys.stderr)


def console() -> Console:
    """Return a console on stdout."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner on stderr while something is prepared, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)):
        yield
