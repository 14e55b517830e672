"""What the commands share: their options, wrong use in one line, threads, tables and what is printed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 120  # a pipe has no width, and what reads it wants whole lines
_TEXT_WIDTH = 100  # of paragraphs, at most
_ASSIGNED = re.compile(r"(, )?\b(\w+)=('.*?'|\w+)")
_NAMED = re.compile(r"^\w+|(?<!['\w])[a-z]+_[a-z_]+(?!['\w])")  # a first word, or what has an underscore

Replicates = Annotated[int, typer.Option(help="Independent repetitions, for the intervals.")]
Checkpoints = Annotated[int, typer.Option(help="Points of the regret curve in regret.csv.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same bits.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; by default one per processor.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; earlier ones there are replaced.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print run.json instead of the table.")]


class WrongUse(Exception):
    """The user asked for something that cannot be; the message is one line."""


def options(context: typer.Context, **others: str) -> dict[str, str]:
    """Return what the user typed for each argument, by its name in Python here, and by `others` below."""
    own = context.command.params
    return {str(p.name): p.opts[0] if p.param_type_name == "option" else str(p.metavar) for p in own} | others


def taken(context: typer.Context, parameters: Any, **changed: Any) -> Any:
    """Make a dataclass of parameters from the options of the same names; `changed` are given otherwise."""
    names = [field.name for field in dataclasses.fields(parameters) if field.name not in changed]
    return parameters(**{name: context.params[name] for name in names}, **changed)


@contextlib.contextmanager
def refusing(options: Mapping[str, str]) -> Iterator[None]:
    """Turn refusals of checks into :class:`WrongUse`, and the arguments that they name into options.

    Only checks belong into the block: there, a ValueError is the user's mistake and not ours.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        words = " ".join(str(error).split())
        words = _ASSIGNED.sub(lambda said: _assigned(said, options), words)
        raise WrongUse(_NAMED.sub(lambda name: options.get(name[0], name[0]), words)) from error


def _assigned(said: re.Match[str], options: Mapping[str, str]) -> str:
    """Return ``--sep ';'`` for ``sep=';'``, where that is an option."""
    name, value = said[2], said[3]
    if name not in options:
        return said[0]
    plain = value.strip("'")
    shown = "" if value == "True" else f" {plain}" if plain.isalnum() else f" {value}"
    return f"{' ' if said[1] else ''}{options[name]}{shown}"


def folder_and_threads(out: Path, jobs: int | None) -> tuple[Path, int | None]:
    """Check ``--out`` and ``--jobs``, before any work."""
    from equinoise import _checks, _files

    folder = _files.writable_folder("out", out)
    return folder, None if jobs is None else _checks.integer("jobs", jobs, minimum=1)


@contextlib.contextmanager
def pool(threads: int | None) -> Iterator[Executor | None]:
    """Open a pool of so many threads; None leaves it to each function."""
    if threads is None:
        yield None
    else:
        with ThreadPoolExecutor(threads) as opened:
            yield opened


def completing(names: Callable[[typer.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Return a shell completion by names, which are looked up when it is asked; what fails has none."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(Exception):
            words = [*ctx.parent.args, "?"] if ctx.parent else []  # or what was typed before is not parsed
            typed: Any = ctx.command.make_context("", words, resilient_parsing=True)
            found.extend(name for name in names(typed) if name.startswith(incomplete))
        return found

    return complete


def one_of(*names: str, more: str = "") -> Any:
    """Return an option that takes one of some names, and completes to them."""
    said = f"{', '.join(names[:-1])} or {names[-1]}{more}."
    return typer.Option(help=said, autocompletion=completing(lambda _: names))


def say(line: str) -> None:
    """Print one line on stderr, with the command's name."""
    print(f"equinoise: {line}", file=sys.stderr)


def console() -> Console:
    """Return a console on stdout."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def print_json(document: Any) -> None:
    """Print a document as JSON: all that stdout has where ``--json`` is given."""
    json.dump(document, sys.stdout, indent=2)
    print()


def paragraph(screen: Console, text: str, mark: str = "") -> None:
    """Print a text in lines that fit the screen, indented behind a mark such as ``"1. "``."""
    width, indent = min(screen.width, _TEXT_WIDTH), " " * len(mark)
    print(textwrap.fill(mark + text, width, subsequent_indent=indent, break_on_hyphens=False))


def table(*headings: str, left: int = 1, narrow: bool = False) -> Table:
    """Return a table whose first columns stand at the left and the others at the right; none wraps."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, collapse_padding=narrow, pad_edge=not narrow)
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="left" if i < left else "right", no_wrap=True)
    return made


def plus_minus(screen: Console) -> str:
    """Return the sign before half of an interval, in the characters that the screen has."""
    return "±" if screen.encoding.lower().startswith("utf") else "+-"


def estimate(value: float, half: float | None, digits: str, sign: str) -> str:
    """Return a figure with half of its interval, where there is one (neither None nor NaN)."""
    if half is None or half != half:
        return format(value, digits)
    return f"{value:{digits}} {sign} {half:{digits}}"


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
