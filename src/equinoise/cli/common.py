"""What the commands share: their options, wrong use in one line, threads, tables and what is printed."""

import contextlib
import dataclasses
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

_PIPE_WIDTH = 120  # a pipe has no width, and what reads it wants whole lines
_TEXT_WIDTH = 100  # of paragraphs, at most
_ASSIGNED = re.compile(r"(, )?\b(\w+)=('.*?'|\w+)")
_NAMED = re.compile(r"^\w+|(?<!['\w])[a-z]+_[a-z_]+(?!['\w])")  # a first word, or what has an underscore

Names = Callable[[typer.Context], Iterable[str]]


def completing(names: Names) -> Callable[..., list[str]]:
    """Return a shell completion by names, which are looked up when it is asked; what fails has none."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(Exception):
            words = [*ctx.parent.args, "?"] if ctx.parent else []  # or what was typed before is not parsed
            typed: Any = ctx.command.make_context("", words, resilient_parsing=True)
            found.extend(name for name in names(typed) if name.startswith(incomplete))
        return found

    return complete


def option(text: str, *flags: str, names: Names | None = None, metavar: str | None = None) -> Any:
    """Return an option with its help, which completes to `names`."""
    complete = None if names is None else completing(names)
    return typer.Option(*flags, help=text, metavar=metavar, autocompletion=complete)


def one_of(*names: str, more: str = "") -> Any:
    """Return an option that takes one of some names, and completes to them."""
    return option(f"{', '.join(names[:-1])} or {names[-1]}{more}.", names=lambda _: names)


Replicates = Annotated[int, option("Independent repetitions, for the intervals.")]
Checkpoints = Annotated[int, option("Points of the regret curve in regret.csv.")]
Seed = Annotated[int, option("The same seed gives the same bits.")]
Jobs = Annotated[int | None, option("Threads; by default one per processor.")]
Out = Annotated[Path, option("Folder for the results; earlier ones there are replaced.")]
AsJson = Annotated[bool, option("Print run.json instead of the table.", "--json")]


class WrongUse(Exception):
    """The user asked for something that cannot be; the message is one line."""


def taken(context: typer.Context, parameters: Any, **changed: Any) -> Any:
    """Make a dataclass of parameters from the options of the same names; `changed` are given otherwise."""
    names = [field.name for field in dataclasses.fields(parameters) if field.name not in changed]
    return parameters(**{name: context.params[name] for name in names}, **changed)


@contextlib.contextmanager
def refusing(context: typer.Context, **others: str) -> Iterator[tuple[Path, int | None]]:
    """Turn refusals of checks into :class:`WrongUse`, and the arguments that they name into options.

    Only checks belong into the block: there, a ValueError is the user's mistake and not ours. ``--out`` and
    ``--jobs`` are checked first, and handed to it. `others` are options by what they are called below.
    """
    from equinoise import _checks, _files

    own, jobs = context.command.params, context.params["jobs"]
    options = {str(p.name): p.opts[0] if p.param_type_name == "option" else str(p.metavar) for p in own}
    options |= others
    try:
        folder = _files.writable_folder("out", Path(context.params["out"]))
        yield folder, None if jobs is None else _checks.integer("jobs", jobs, minimum=1)
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


def pool(threads: int | None) -> contextlib.AbstractContextManager[Executor | None]:
    """Return a pool of so many threads; None leaves it to each function."""
    return contextlib.nullcontext() if threads is None else ThreadPoolExecutor(threads)


def say(line: str) -> None:
    """Print one line on stderr, with the command's name."""
    print(f"equinoise: {line}", file=sys.stderr)


def _console() -> Any:
    """Return a console on stdout."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def print_json(document: Any) -> None:
    """Print a document as JSON: all that stdout has where ``--json`` is given."""
    json.dump(document, sys.stdout, indent=2)
    print()


def paragraph(text: str, mark: str = "") -> None:
    """Print a text in lines that fit the screen, indented behind a mark such as ``"1. "``."""
    width, indent = min(_console().width, _TEXT_WIDTH), " " * len(mark)
    print(textwrap.fill(mark + text, width, subsequent_indent=indent, break_on_hyphens=False))


def print_table(
    rows: Iterable[Sequence[str]], *headings: str, left: int = 1, narrow: bool = False, last: str = ""
) -> None:
    """Print a table whose first columns stand at the left, the others at the right; only the last wraps."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, collapse_padding=narrow, pad_edge=not narrow)
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="left" if i < left else "right", no_wrap=True)
    if last:
        made.add_column(last)
    for row in rows:
        made.add_row(*row)
    _console().print(made)


def plus_minus() -> str:
    """Return the sign before half of an interval, in the characters that the screen has."""
    return "±" if _console().encoding.lower().startswith("utf") else "+-"


def estimate(value: float, half: float | None, digits: str) -> str:
    """Return a figure with half of its interval, where there is one (neither None nor NaN)."""
    if half is None or half != half:
        return format(value, digits)
    return f"{value:{digits}} {plus_minus()} {half:{digits}}"


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
