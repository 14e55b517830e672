"""One column of a CSV file as numbers, or a refusal that says where it is none and what would help."""

import contextlib
import csv
import io
import itertools
import os
import re
import sys
import tarfile
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, Array, Flags, Ints, Iterator

_CHUNK, _FIELDS = 2**12, 2**23  # rows, fields that are parsed at a time: of other columns nothing is kept
_MOST, _HELD, _MOST_ROWS = 2**34, 2**30, 2**27  # bytes of a file, unpacked, and of what is piped, and rows
_HEADER, _ROWS = (2**21, "in its header"), (2**26, f"in {_CHUNK:,} rows")
_MOST_COLUMNS = 2**16  # of which two hundred rows take a quarter of a minute
_NAMED = 10  # columns that an error lists
_PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst", ".tar", ".tgz")
_TAR = re.compile(r".*\.(tar(\.gz|\.bz2|\.xz)?|tgz)", re.IGNORECASE | re.DOTALL)
_MAGIC = {b"\x1f\x8b\x08": "gzip", b"BZh": "bz2", b"\xfd7z": "xz"}  # how such a file begins
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*([eE][\W\d_]+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of numbers.

    Its name is as in the header. The values, finite, are int64[n] or uint64[n] where every entry was written
    as an integer, else float64[n]. row_of int64[n] says in which row of the file each is, counted from 1
    below the header; n_rows counts them all. `sep` is between fields; `clamped` values were put on bounds.
    `joined` int64[] are the rows with a line break in a field: where a quote is missing these were several.
    """

    name: str
    values: Array
    row_of: Ints
    n_rows: int
    sep: str
    joined: Ints
    clamped: int = 0

    def within(self, low: float, high: float, *, clamp: bool = False, verbose: bool = False) -> "Column":
        """Return the column with values outside the bounds put on them, or refuse these by their rows."""
        slack = 1e-15 * (high - low)
        below, above = self.values < low - slack, self.values > high + slack
        where = np.flatnonzero(below | above)
        if not (low < high and len(where)):
            return self
        if not clamp:
            found = f"{len(where):,} beyond {low:g} to {high:g}, the first in row {self.row_of[where[0]]:,}"
            found += f": {self.values[where[0]]}" * verbose + "; clamp=True puts them on the bounds"
            raise ValueError(f"bounds must not leave a value out, got {found}")
        values = self.values.astype(np.float64)  # whatever kind of numbers the other records are
        values[below], values[above] = low, high
        return replace(self, values=values, clamped=len(where))


def read_column(
    path: str | os.PathLike[str],
    column: str | int,
    *,
    sep: str = ",",
    decimal: str = ".",
    drop_missing: bool = False,
    na: str | None = None,
    verbose: bool = True,
) -> Column:
    """Read one column of a CSV file in UTF-8 with a header, in which 2020 is what is called "2020".

    The path may be "-", the standard input, or a pipe. `sep` is the character between fields, or "tab", and
    `decimal` "." or ",". A row in which the column is empty or says NA, NaN or the like, or `na`, is refused,
    or left out by `drop_missing`. No message has an entry of the file in it unless it is verbose. More than
    16 GiB, unpacked, 1 GiB through a pipe, 134,217,728 rows or 65,536 columns is refused, and 64 MiB in 4,096
    rows or 2 MiB before the header ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("name,height Ada,171 Bo,183".replace(" ", chr(10)))
    ...     read_column(path, "height").values
    array([171, 183])
    """
    file, mark = _existing(path), _separator(sep, decimal)
    drop, names = _checks.flag("drop_missing", drop_missing), _header(file, mark)
    at = _place(file, names, column, mark, verbose)
    options: dict[str, Any] = {"decimal": decimal, "na_values": [] if na is None else [na]}
    numbers, missing, joined = _numbers(file, names, at, mark, options, verbose)
    if missing.all():
        raise ValueError(f"column must hold numbers, got none in {names[at]!r}")
    if missing.any() and not drop:
        found = f"{int(missing.sum()):,} in the {missing.size:,} rows of {names[at]!r}"
        found += f", the first in row {int(missing.argmax()) + 1}; drop_missing=True leaves them out"
        raise ValueError(f"column must have no missing value, got {found}")
    return Column(names[at], numbers, np.flatnonzero(~missing) + 1, missing.size, mark, joined)


def _existing(path: str | os.PathLike[str]) -> Path | bytes:
    """Return a file's path, or what a pipe or the standard input holds: it can be read once only."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a CSV file, got {_checks.shown(path)}")
    file = Path(path)
    if str(file) == "-" and sys.stdin is not None:  # which it is where it is closed
        return sys.stdin.buffer.read(_HELD + 1)  # and one, which is refused
    if not (file.is_file() or file.is_fifo()):  # a device may have no end
        found = "a folder" if file.is_dir() else "a device" if file.exists() else "none there"
        raise FileNotFoundError(f"path must be an existing CSV file, got {str(file)!r}: {found}")
    if file.is_file():
        return file
    with file.open("rb") as piped:
        return piped.read(_HELD + 1)


class _Counted(io.BufferedIOBase):
    """A file, refused where too many bytes are read: in all, or before `recent` is 0 again."""

    def __init__(self, source: Any, name: str, *limits: tuple[int, str]) -> None:
        self.source, self.name, self.limits = source, name, limits
        self.whole = self.recent = self.breaks = 0

    def readable(self) -> bool:
        return True

    def read1(self, size: int | None = -1) -> bytes:
        some: bytes = self.source.read(size)
        self.whole, self.recent = self.whole + len(some), self.recent + len(some)
        self.breaks += some.count(b"\n")
        for found, (most, where) in zip((self.whole, self.recent), self.limits, strict=True):
            if found > most:
                wanted = f"path must be a CSV file of at most {most / 2**20:,g} MiB {where}"
                raise ValueError(f"{wanted}, got more in {self.name}")
        return some

    read = read1


@contextlib.contextmanager
def _anew(file: Path | bytes, most: tuple[int, str]) -> Iterator[tuple[_Counted, Any]]:
    """Open a file, as what is counted and what is read; pandas would hold a .zip, and walk all of a .tar."""
    from pandas.io.common import get_handle  # type: ignore[import-not-found]

    with contextlib.ExitStack() as opened:
        source: Any = io.BytesIO(file) if isinstance(file, bytes) else file
        packing: Any = "infer"
        if tar := isinstance(file, Path) and _TAR.fullmatch(file.name):
            with file.open("rb") as begun:
                packing = _MAGIC.get(begun.read(3))
        elif isinstance(file, Path) and file.suffix.lower() == ".zip":
            (one,) = (packed := opened.enter_context(zipfile.ZipFile(file))).namelist()
            source = opened.enter_context(packed.open(one))
        handle = opened.enter_context(get_handle(source, "rb", compression=packing, is_text=False)).handle
        whole = (_HELD if isinstance(file, bytes) else _MOST, "unpacked")
        counted = lines = _Counted(handle, _named(file), whole, most)
        if tar:
            archive: Any = opened.enter_context(tarfile.open(fileobj=counted, mode="r|"))
            if (first := archive.next()).issparse():  # whose holes nobody would count
                raise ValueError("a file with holes")
            lines = _Counted(archive.extractfile(first), _named(file), whole, whole)
        yield counted, lines
        if tar and most != _HEADER and archive.next():  # all before it has been read
            raise ValueError("more than one file")
        while tar and most != _HEADER and counted.read(2**16):  # to the end, where check sums stand
            pass


def _separator(sep: object, decimal: object) -> str:
    if not isinstance(sep, str):
        raise TypeError(f"sep must be one character, got {_checks.shown(sep)}")
    mark = "\t" if sep in ("tab", "\\t") else sep
    if len(mark) != 1 or mark in '"\r\n' or mark.isalnum() or not mark.isascii():
        raise ValueError(f"sep must be one ASCII character that is not in numbers, got {_checks.shown(sep)}")
    if _checks.choice("decimal", decimal, (".", ",")) == mark:
        raise ValueError(f"decimal must not be the separator of fields, got {decimal!r} for both")
    return mark


def _header(file: Path | bytes, mark: str) -> list[str]:
    from pandas.errors import EmptyDataError

    with _explained(file, mark), _anew(file, _HEADER) as (_, lines):  # pandas takes a minute for a million
        text = io.TextIOWrapper(lines, "utf-8-sig", newline="")
        names = next(csv.reader(itertools.chain(text, "\0"), delimiter=mark))  # a line that tells the end
        if names in ([], ["\0"]):
            raise EmptyDataError
        if names[-1].endswith("\0"):
            raise csv.Error("a quote in its header has no end")
    if len(names) > _MOST_COLUMNS:
        wanted = f"path must be a CSV file of at most {_MOST_COLUMNS:,} columns"
        raise ValueError(f"{wanted}, got {len(names):,} in {_named(file)}")
    return names


def _named(file: Path | bytes) -> str:
    return "what was piped" if isinstance(file, bytes) else repr(str(file))


@contextlib.contextmanager
def _explained(file: Path | bytes, mark: str) -> Iterator[None]:
    """Turn what pandas says about a file that is no table into one line about `path`."""
    from pandas.errors import EmptyDataError, ParserError, ParserWarning

    wanted = f"path must be a CSV file in UTF-8 with a header, got {_named(file)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            yield
    except EmptyDataError:
        raise ValueError(f"{wanted}, which is empty or begins with an empty line") from None
    except UnicodeError:
        raise ValueError(f"{wanted}, which is compressed or in another encoding: save it as UTF-8") from None
    except (ParserError, ParserWarning, csv.Error) as error:
        raise ValueError(f"{wanted}, {_uneven(str(error), mark)}") from None
    except Exception as error:  # archives fail in many ways, of zip, of zlib, of lzma
        known = isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno)
        known = known or str(error).startswith(("column must", "path must"))
        if known or isinstance(file, bytes) or file.suffix.lower() not in _PACKED:
            raise
        raise ValueError(f"{wanted}, which is damaged or not one {file.suffix} file") from None


def _uneven(words: str, mark: str) -> str:
    text = "whose rows have more fields than its header"
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", words):
        text = f"whose line {found[2]} has {found[3]} fields and not {found[1]}"
    elif "Length of header" not in words:
        return f"which does not parse: {' '.join(words.split())}"
    comma = "; where a comma is the decimal mark, fields need another separator: sep=';', decimal=','"
    return text + comma * (mark == ",")


def _place(file: Path | bytes, names: list[str], column: object, mark: str, verbose: bool) -> int:
    """Return where the column is in the header, or refuse its name."""
    if isinstance(column, bool) or not isinstance(column, str | int):
        raise TypeError(f"column must be a name in the header, got {_checks.shown(column)}")
    places = [at for at, name in enumerate(names) if name == str(column)]
    if len(places) == 1:
        return places[0]
    if places:
        raise ValueError(f"column must be named once in the header, got {column!r} {len(places)} times")
    if not verbose and any(map(_NUMBER.fullmatch, names)):
        got = f"{column!r} and a header that looks like a record"
        raise ValueError(f"column must be in the header, got {got}")
    listed = ", ".join(_checks.shown(name) for name in names[:_NAMED]) + ", ..." * (len(names) > _NAMED)
    got = f"{_checks.shown(column)}{_other_separator(file, names, mark)}"
    raise ValueError(f"column must be one of {listed}, got {got}")


def _other_separator(file: Path | bytes, names: list[str], mark: str) -> str:
    """Return advice for a header that holds another separator, such as "name;height"."""
    other = next((sign for sign in ";\t,|" if sign != mark and len(names) == 1 and sign in names[0]), None)
    if other is None:
        return ""
    with io.BytesIO(file) if isinstance(file, bytes) else file.open("rb") as lines:
        lines.readline()
        row = lines.readline(10_000).decode("utf-8", "replace")
    advice = f"; fields seem to be separated otherwise: sep={'tab' if other == chr(9) else other!r}"
    return advice + (", decimal=','" if other != "," and re.search(r"\d,\d", row) else "")


def _numbers(
    file: Path | bytes, names: list[str], at: int, mark: str, options: dict[str, Any], verbose: bool
) -> tuple[Array, Flags, Ints]:
    """Return the numbers that are there, which rows have none, bool[rows], and those with line breaks."""
    import pandas as pd

    others = {i: str for i in range(len(names)) if i != at}
    options |= {"skiprows": 1, "names": range(len(names))}
    options |= {"dtype": others, "dtype_backend": "numpy_nullable", "index_col": False, "low_memory": False}
    options |= {"sep": mark, "encoding": "utf-8-sig", "header": None}
    options["chunksize"] = min(_CHUNK, _FIELDS // len(names) + 1)
    options["skip_blank_lines"] = len(names) > 1  # in a single column an empty line is a missing value
    parts, gaps, n_rows = [], [np.empty(0, dtype=np.bool_)], 0
    nothing_below = contextlib.suppress(pd.errors.EmptyDataError)
    with _explained(file, mark), _anew(file, _ROWS) as (counted, lines), nothing_below:
        for chunk in pd.read_csv(lines, **options):
            counted.recent = 0
            numbers, missing = _chunk(chunk[at], names[at], options["decimal"], verbose)
            parts += [numbers] if numbers.size else []
            gaps.append(missing)
            if (n_rows := n_rows + len(missing)) > _MOST_ROWS:
                wanted = f"path must be a CSV file of at most {_MOST_ROWS:,} rows"
                raise ValueError(f"{wanted}, got more in {_named(file)}")
    gap, joined = np.concatenate(gaps), np.empty(0, dtype=np.int64)
    ends, several = len(names) == 1 and gap[-1:].any(), len(names) > 1 and counted.breaks > n_rows + 1
    if ends or several:  # as text: empty lines at the end of a single column are no rows
        options |= {"dtype": str, "na_filter": False}
        with _anew(file, (_MOST, "unpacked")) as (_, lines), pd.read_csv(lines, **options) as chunks:
            told = _broken if several else (lambda chunk: chunk[at].to_numpy() != "")
            said = np.concatenate([told(chunk) for chunk in chunks])
        if several:
            joined = np.flatnonzero(said) + 1
        else:
            gap = gap[: gap.size - int(said[::-1].argmax())]
    return (np.concatenate(parts) if parts else np.empty(0)), gap, joined


def _broken(chunk: Any) -> Flags:
    """Return which rows of text have a line break in a field, bool[rows]."""
    return np.array(["\n" in "".join(map(str, row)) for row in chunk.to_numpy(dtype=object)], dtype=np.bool_)


def _chunk(column: Any, name: str, decimal: str, verbose: bool) -> tuple[Array, Flags]:
    """Return the numbers of some rows, and which of these have none; the index counts rows from 0."""
    import pandas as pd

    missing = column.isna().to_numpy(dtype=np.bool_)
    there = column[~missing]
    if there.empty:
        return np.empty(0, dtype=np.int64), missing
    if pd.api.types.is_bool_dtype(column.dtype):
        raise TypeError(f"column must hold numbers, got True and False in {name!r}")
    if not pd.api.types.is_numeric_dtype(column.dtype):
        thousands = there.astype(str).str.contains(".", regex=False) & (decimal == ",")  # as many write them
        read = pd.to_numeric(there.mask(thousands), errors="coerce")
        if len(wrong := there[read.isna()]):
            text, where = str(wrong.iloc[0]), f"row {wrong.index[0] + 1} of {name!r}"
            said = _checks.shown(text) if verbose else "text"
            raise TypeError(f"column must hold numbers, got {said} in {where}{_advice(text, decimal)}")
        there = read.astype("float64")
    numbers = there.to_numpy(dtype={"i": np.int64, "u": np.uint64}.get(there.dtype.kind, np.float64))
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        first = int((~np.isfinite(numbers)).argmax())
        where = f"row {there.index[first] + 1} of {name!r}"
        said = numbers[first] if verbose else "an infinite one"
        raise ValueError(f"column must hold finite numbers, got {said} in {where}")
    return numbers, missing


def _advice(text: str, decimal: str) -> str:
    if decimal == "," and "." in text:
        return "; write thousands without a point, and leave decimal=',' out where that is the decimal mark"
    if _THOUSANDS.fullmatch(text.strip()):
        return "; write thousands without a comma, or give decimal=',' where it is the decimal mark"
    if _DECIMAL_COMMA.fullmatch(text):
        return "; give decimal=',' where the comma is the decimal mark"
    return ""
