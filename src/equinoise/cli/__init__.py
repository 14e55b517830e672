"""The command ``equinoise``: one module per command, heavy imports inside functions.

Exit codes: 0 done; 2 wrong use, in one line on stderr; 1 the work failed; 130 interrupted.
"""

import _thread
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
import typer.core

import equinoise
from equinoise.cli import audit, bandit, efb, games, merge, nvo, reproduce, sweep
from equinoise.cli.common import WrongUse, say


class _Command(typer.core.TyperCommand):
    """A command whose help may say what registries hold, and whose usage names arguments without braces."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; a module's ``late_help()`` says what stands for words in braces."""
        module = sys.modules[getattr(self.callback, "__module__", __name__)]
        for word, text in getattr(module, "late_help", dict)().items():
            for parameter in (one for one in self.params if isinstance(one, typer.core.TyperOption)):
                parameter.help = (parameter.help or "").replace(f"{{{word}}}", text)
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class _Group(typer.core.TyperGroup):
    """A group in which the name of a command may be two words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        two = " ".join(args[:2])
        return super().resolve_command(ctx, [two, *args[2:]] if two in self.commands else args)


app = typer.Typer(
    cls=_Group,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (games, efb, nvo, bandit, audit, sweep, merge, reproduce):
    app.command(_module.__name__.rpartition(".")[2], cls=_Command)(_module.command)
app.command("nvo verify", cls=_Command)(nvo.verify)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Learning, releasing and experimenting under differential privacy."""
    if version:
        typer.echo(f"equinoise {equinoise.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _mend_streams() -> None:
    """Let no output be lost work: a closed stream takes and drops it, a narrow encoding shows escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for the rest of the process
            continue
        lossless = getattr(stream, "errors", None) in ("strict", "surrogateescape")
        if lossless and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if not issubclass(category, DeprecationWarning):  # other packages', for those who write programs
        say(f"warning: {message}")


@contextlib.contextmanager
def _hearing() -> Iterator[None]:
    """Hear every Ctrl-C: imports in C make other errors of it, and what a callback drops comes again."""
    heard: list[int] = []

    def hear(number: int, _: Any) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    def dropped(what: Any) -> None:  # as by llvmlite's callbacks, in the midst of compiling
        again = threading.Timer(0.1, _thread.interrupt_main)
        again.daemon = True
        again.start() if what.exc_type is KeyboardInterrupt else hook(what)

    here, hook = threading.current_thread() is threading.main_thread(), sys.unraisablehook
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # it is ignored, or another's
        return
    sys.unraisablehook = dropped
    signal.signal(signal.SIGINT, hear)
    try:
        yield
    except Exception:
        if heard:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = hook


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on arguments, by default those of this process, and return the exit code."""
    _mend_streams()
    if arguments is None:  # figures are files: a back end that is not there must not end the work
        os.environ["MPLBACKEND"] = "agg"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".* was interrupted: ")  # a search's, which else has a best so far
        warnings.showwarning = _warn
        try:
            os.getcwd()  # noqa: PTH109 - where the folder was removed, all else fails in worse words
            date = os.environ.get("SOURCE_DATE_EPOCH", "0")  # which NumPy and Matplotlib read, in worse words
            if not date.isdecimal():
                raise WrongUse(f"SOURCE_DATE_EPOCH must be a whole number, got {date[:80]!r}.")
            with _hearing():
                code = app(args=arguments, prog_name="equinoise", standalone_mode=False)
            sys.stdout.flush()
            if code == 130:
                say("interrupted")
            return code if isinstance(code, int) else 0
        except WrongUse as error:
            say(str(error))
            return 2
        except (KeyboardInterrupt, typer.Abort, UserWarning) as error:
            if isinstance(error, UserWarning) and "interrupted" not in str(error):
                raise
            say("interrupted")
            return 130
        except BrokenPipeError:  # the reader of our output has gone, as in `equinoise games | head -1`
            return 1
        except (MemoryError, OSError) as error:
            gone = isinstance(error, FileNotFoundError) and error.filename is None
            what = "the current folder is no longer there" if gone else str(error)
            say(f"failed: {what or type(error).__name__}")
            return 1
        except Exception as error:
            where = "NUMBA_NUM_THREADS: " * str(error).startswith("Number of threads specified")  # Numba's
            if where or (isinstance(error, RuntimeError) and "start new thread" in str(error)):  # ulimit -u
                say(f"failed: {where}{error}")
                return 1
            if type(error).__name__ == "OtherRun":  # a folder that only the work looks into
                say(str(error).replace("resume must", "--out must", 1))
                return 2
            if not hasattr(error, "format_message"):  # what typer raises for a wrong option or argument
                raise
            say(f"{error.format_message()} See `equinoise --help`.")
            return 2
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:  # what is left in it would fail again at exit, in Python's words
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
