"""What the commands share: their options, wrong use in one line, threads, tables and what is printed."""

import contextlib
import dataclasses
import functools
import importlib.util
import json
import logging
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import compress
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
    return typer.Option(*flags, help=text, metavar=metavar, autocompletion=names and completing(names))


def argument(text: str, metavar: str, names: Names | None = None) -> Any:
    """Return an argument with its help, which completes to `names`."""
    return typer.Argument(metavar=metavar, help=text, autocompletion=names and completing(names))


def one_of(*names: str, more: str = "") -> Any:
    """Return an option that takes one of some names, and completes to them."""
    return option(f"{', '.join(names[:-1])} or {names[-1]}{more}.", names=lambda _: names)


_REPLICATES = "Independent repetitions, for the intervals; 300:400 is a slice, see `equinoise merge`."
_DASK = "Scheduler of a Dask cluster that does the work, such as tcp://host:8786."

Replicates = Annotated[str, option(_REPLICATES, metavar="N|A:B")]
Checkpoints = Annotated[int, option("Points of the regret curve in regret.csv.")]
Seed = Annotated[int, option("The same seed gives the same bits.")]
Jobs = Annotated[int | None, option("Threads; by default one per processor.")]
Dask = Annotated[str | None, option(_DASK, metavar="ADDRESS")]
Out = Annotated[Path, option("Folder for the results; earlier ones there are replaced.")]
AsJson = Annotated[bool, option("Print run.json instead of the table.", "--json")]

KEPT = "replicates"  # sub-folder with the blocks of a slice
COMMAND = "command.json"  # in it: how the slice was made
_ELSEWHERE = ("replicates", "jobs", "dask", "out", "as_json")  # options that no result depends on


class WrongUse(Exception):
    """The user asked for something that cannot be; the message is one line."""


def taken(context: typer.Context, parameters: Any, **changed: Any) -> Any:
    """Make a dataclass of parameters from the options of the same names; `changed` are given otherwise."""
    names = [field.name for field in dataclasses.fields(parameters) if field.name not in changed]
    return parameters(**{name: context.params[name] for name in names}, **changed)


def span(text: str) -> int | range:
    """Return what --replicates says: a number, or a slice A:B of the replicates A to B - 1."""
    found = re.fullmatch(r"(?:([0-9]{1,30}):)?([0-9]{1,30})", text)
    if not found or (found[1] and int(found[1]) >= int(found[2])):
        raise ValueError(f"replicates must be a number or a slice A:B with A below B, got {text!r}")
    first, end = int(found[1] or 0), int(found[2])
    return range(first, end) if first else end


def slice_folder(context: typer.Context, folder: Path) -> Path | None:
    """Return where blocks are kept: a sub-folder for a slice, None for a whole run."""
    return folder / KEPT if ":" in context.params["replicates"] else None


def finish_slice(context: typer.Context, folder: Path) -> None:
    """Write how a slice was made beside its blocks, so that it can be merged; nothing for a whole run."""
    from equinoise import _files

    what: dict[str, Any] = {"command": context.info_name, "slice": context.params["replicates"]}
    with contextlib.suppress(ValueError):  # another drive of Windows
        what["home"] = os.path.relpath(".", (folder / KEPT).resolve())
    for one in context.command.params:
        value = context.params.get(str(one.name))
        if value is not None and value is not False and one.name not in _ELSEWHERE:
            each = [value] if isinstance(value, str | bool | int | float | Path) else value
            name = one.opts[0] if one.param_type_name == "option" else str(one.metavar)
            what[name] = [str(v.absolute() if isinstance(v, Path) else v) for v in each]
    _files.write_all(folder / KEPT, {COMMAND: _files.json_bytes(what)})


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler, and yield the executor of its workers."""
    import distributed

    make: Any = distributed.Client
    try:
        client = make(address or "-")  # which is none: without an address Dask makes a cluster of its own
    except (OSError, ValueError) as error:
        raise OSError(f"--dask {address}: {error}") from error
    with contextlib.ExitStack() as loud, client:
        loud.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.ERROR)  # what Dask loses is told below in a line, and here with tracebacks
        try:
            yield client.get_executor()
        except (CancelledError, distributed.KilledWorker) as error:
            raise OSError(f"--dask {address}: the cluster was lost ({type(error).__name__})") from error


@contextlib.contextmanager
def refusing(context: typer.Context, **others: str) -> Iterator[tuple[Path, Any]]:
    """Turn refusals of checks into :class:`WrongUse`, and the arguments that they name into options.

    Only checks belong into the block: a ValueError there is the user's mistake, not ours. It gets the folder
    of ``--out`` and a context of ``--jobs`` threads, or of None. `others` are options by their names below.
    """
    from equinoise import _checks, _files, _jit

    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal and context.info_name == "reproduce"):  # which has a bar for it
        context.with_resource(_jit.compiling(functools.cache(_say_compiling)))
    own, jobs = context.command.params, context.params["jobs"]
    options = {str(p.name): p.opts[0] if p.param_type_name == "option" else str(p.metavar) for p in own}
    options |= {f"n_{name}": said for name, said in options.items()} | others

    def assigned(said: re.Match[str]) -> str:  # sep=';' is --sep ';'
        comma, name, value = said.groups()
        plain = value.strip("'").replace("True", "")
        shown = f"{' ' if comma else ''}{options.get(name)} {plain if plain.isalnum() else value}"
        return shown.removesuffix(" True") if name in options else said[0]

    try:
        folder = _files.writable_folder("out", Path(context.params["out"]))
        if (folder / COMMAND).exists():
            raise ValueError(f"out must not be the blocks of a slice, got {str(folder)!r}")
        if (folder / KEPT).exists():
            _files.writable_folder("out", folder / KEPT)
        n = None if jobs is None else _checks.integer("jobs", jobs, minimum=1)
        pool: Any = ThreadPoolExecutor(n) if n else contextlib.nullcontext()
        if (dask := context.params.get("dask")) is not None:
            if n is not None:
                raise ValueError("jobs must be left out where --dask is given")
            if importlib.util.find_spec("distributed") is None:
                raise ValueError("dask needs Dask: pip install 'equinoise[distributed]'")
            pool = _cluster(dask)
        yield folder, pool
    except (ValueError, TypeError, OSError, ImportError) as error:
        words = _ASSIGNED.sub(assigned, " ".join(str(error).replace("math.inf", "inf").split()))
        raise WrongUse(_NAMED.sub(lambda name: options.get(name[0], name[0]), words)) from error


def _say_compiling(begun: bool) -> None:
    from equinoise import _jit

    if begun:
        once, always = "on first use: a minute or two, then kept", "at every use: kernels can be kept nowhere"
        say(f"compiling, {once if _jit.keeps() else f'{always} (NUMBA_CACHE_DIR)'}")


def say(line: str) -> None:
    """Print one line on stderr, with the command's name; what nobody hears is no failure."""
    with contextlib.suppress(OSError):
        if sys.stderr is not None:  # print would take stdout
            print(f"equinoise: {line}", file=sys.stderr, flush=True)


def _console() -> Any:
    """Return a console on stdout."""
    from rich.console import Console

    made = Console(highlight=False, markup=False)
    return made if made.is_terminal else Console(highlight=False, markup=False, width=_PIPE_WIDTH)


def print_json(document: Any) -> None:
    """Print a document as JSON: all that stdout has where ``--json`` is given."""
    print(json.dumps(document, indent=2))


def paragraph(text: str, mark: str = "") -> None:
    """Print a text in lines that fit the screen, indented behind a mark such as ``"1. "``."""
    width, indent = min(_console().width, _TEXT_WIDTH), " " * len(mark)
    print(textwrap.fill(mark + text, width, subsequent_indent=indent, break_on_hyphens=False))


def print_table(
    rows: Iterable[Sequence[Any]], headings: Sequence[str], digits: Sequence[str], replicates: int = 1
) -> None:
    """Print rows of what :func:`cell` takes, under headings, each column with its format.

    Columns without a format stand at the left, and the last of them wraps. One that is empty is left out.
    """
    from rich import box, table

    made = table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[cell(*pair) for pair in zip(row, digits, strict=True)] for row in rows]
    shown = [any(column) for column in zip(*cells, strict=True)]
    for heading, form in compress(zip(headings, digits, strict=True), shown):
        made.add_column(heading, justify="right" if form else "left", no_wrap=True)
    made.columns[-1].no_wrap = bool(digits[-1])
    for row in cells:
        made.add_row(*compress(row, shown))
    _console().print(made)
    if replicates > 1:
        print(f"After {_plus_minus()}: 1.96 standard errors over replicates, 95% where these are many.")


def cell(value: Any, digits: str) -> str:
    """Return words, a number, or a dict of a mean, its ``stderr`` and more: 1.96 of it are shown."""
    from equinoise._results import Z95

    mean, stderr, *_ = value.values() if isinstance(value, dict) else (value, None)
    if mean is None or mean != mean:
        return "none" if isinstance(value, dict) else ""
    half = "" if stderr is None or stderr != stderr else f" {_plus_minus()} {Z95 * stderr:{digits}}"
    return f"{mean:{digits}}{half}"


def _plus_minus() -> str:
    """Return the sign before half of an interval, in the characters that the screen has."""
    return "±" if _console().encoding.lower().startswith("utf") else "+-"


def working(text: str) -> contextlib.AbstractContextManager[Any]:
    """Return a spinner on stderr for while something is prepared, which shows if that is a terminal."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from rich import console, text as texts

    return console.Console(stderr=True, force_terminal=True).status(texts.Text(text))
