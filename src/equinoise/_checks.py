"""Checks of arguments, and the words of their errors.

Every check returns the value in the one type that kernels take, or raises: ``TypeError`` for another kind of
thing, ``ValueError`` for a value that is not allowed, naming the argument, what it takes and what it got.
"""

import contextlib
import math
import numbers
import operator
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from equinoise._typing import Array, ArrayLike, Flags

MOST = 10**9  #: of what is counted and then gone through one by one, such as replicates
MOST_ROUNDS = 10**12  #: of trials or rounds of one replicate, which no cluster divides: a day or more
_LONGEST_SHOWN = 80  # characters of a value in a message
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}  # of what moves a terminal
_LONGEST = 4000  # digits of an integer: Python writes no more than 4300


def shown(value: object) -> str:
    """Return a value as an error message shows it: its repr, in one line of a readable length."""
    try:
        return line(repr(value), _LONGEST_SHOWN)
    except (ValueError, RecursionError):  # an integer of too many digits, or lists in lists for ever
        return f"a {type(value).__name__} that is too long to show"


def line(words: object, length: int = 300) -> str:
    """Return what another error or an input says in one line, cut to a length, without codes of terminals."""
    text = " ".join(str(words).split()).translate(_ESCAPES)
    return text if len(text) <= length else text[: length - 3] + "..."


def text(words: str) -> bool:
    """Return whether there are words, and such as every file and frame can hold: no lone surrogates."""
    return bool(words) and words == words.encode("utf-8", "replace").decode()


def integer(name: str, value: object, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return `value` as an int within the closed range; bools and floats are refused."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {shown(value)}") from None
    low, high = -math.inf if minimum is None else minimum, math.inf if maximum is None else maximum
    if result.bit_length() > _LONGEST * math.log2(10):
        raise ValueError(f"{name} must be an integer of at most {_LONGEST} digits, got more")
    if not low <= result <= high:
        ends = f"of at least {low}" if maximum is None else f"of at most {high}"
        ends = ends if minimum is None or maximum is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {ends}, got {shown(value)}")
    return result


def seed(value: object) -> int | None:
    """Return a seed: an integer that is not negative, or None for the operating system's randomness."""
    return None if value is None else integer("seed", value, 0)


def number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    finite: bool = True,
) -> float:
    """Return `value` as a float within the range; NaN is refused, infinity too unless ``finite=False``."""
    result = _real(name, value, "a real number")
    above = result > low if open_low else result >= low
    below = result < high if open_high else result <= high
    if not (above and below) or (finite and math.isinf(result)):
        left = "(" if open_low or math.isinf(low) else "["
        right = ")" if open_high or (finite and math.isinf(high)) else "]"
        raise ValueError(f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {shown(value)}")
    return result


def _real(name: str, value: object, kind: str) -> float:
    if type(value) is float:  # nearly always, and the look at other kinds takes longer than many a check
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {kind}, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:  # an integer or a fraction beyond the largest float
        return math.copysign(math.inf, operator.gt(value, 0) - 0.5)


def epsilon(value: object, name: str = "epsilon", *, allow_infinite: bool = True) -> float:
    """Return a privacy parameter: positive, and math.inf (no privacy) only where that is allowed."""
    result = _real(name, value, "a positive number")
    if not result > 0:
        raise ValueError(f"{name} must be a positive number, got {shown(value)}")
    if math.isinf(result) and not allow_infinite:
        raise ValueError(f"{name} must be finite here, got {shown(value)}")
    return result


def choice(name: str, value: object, options: Collection[str]) -> str:
    """Return `value` when it is one of the named options."""
    if isinstance(value, str) and value in options:
        return value
    words = ", ".join(repr(option) for option in options)
    wrong = ValueError if isinstance(value, str) else TypeError
    raise wrong(f"{name} must be one of {words}, got {shown(value)}")


def instance(name: str, value: object, *kinds: type) -> Any:
    """Return `value` when it is of one of these classes."""
    if not isinstance(value, kinds):
        words = (f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}" for kind in kinds)
        raise TypeError(f"{name} must be {' or '.join(words)}, got {shown(value)}")
    return value


def path(name: str, value: object) -> str:
    """Return a path as a str."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a str or a path, got {shown(value)}")
    if "\0" in str(value):
        raise ValueError(f"{name} must have no null byte, got {shown(value)}")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a path in this system's letters, got {shown(value)}") from None
    return os.fspath(value)


def flag(name: str, value: object) -> bool:
    """Return `value` as a bool; only True and False are taken."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def present(name: str, value: Any) -> Any:
    """Return `value`; ValueError for a masked entry, which NumPy would take for the number under the mask."""
    if isinstance(value, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(value)).any():
        found = _first(np.where(mask, "a masked one", ""), mask)
        raise ValueError(f"{name} must have none missing, got {found}")
    return value


def entries(name: str, value: Any, kind: str = "entries") -> Array:
    """Return `value` as an array of its own type; refused are masked entries and ragged sequences."""
    present(name, value)
    try:
        return np.asarray(value)
    except (ValueError, RecursionError):
        raise TypeError(f"{name} must be an array of {kind}, got a ragged sequence") from None


def array(
    name: str,
    value: ArrayLike,
    dtype: DTypeLike,
    shape: tuple[int | None, ...] | None,
    *,
    low: float | None = None,
    high: float | None = None,
    truth: bool = False,
) -> Array:
    """Return `value` as a C-contiguous array of `dtype` and `shape`, every entry finite and within range.

    None in `shape` leaves that length free, and None for `shape` everything. Integers are taken from integers
    only, which `dtype` can hold; with `truth` truth values are 0 and 1. The result shares memory with `value`
    where nothing had to be converted.
    """
    kind = "integers" if np.issubdtype(dtype, np.integer) else "numbers"
    present(name, value)
    given = entries(name, "text" if _long_text(value) else value, kind)
    if truth and given.dtype == np.bool_:
        given = given.astype(np.int8)
    wanted = np.integer if kind == "integers" else np.number
    if not (np.issubdtype(given.dtype, wanted) or given.size == 0) or np.iscomplexobj(given):
        if given.dtype == object or (given.dtype == np.float64 and isinstance(value, list | tuple)):
            refuse_long(name, np.array(value, dtype=object), np.dtype(dtype if kind == "integers" else "i8"))
        raise TypeError(f"{name} must be an array of {kind}, got dtype {given.dtype}")
    if shape is not None and (
        given.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, given.shape, strict=True))
    ):
        words = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise ValueError(f"{name} must have shape {words}, got {given.shape}")
    if kind == "integers" and given.size and not np.can_cast(given.dtype, dtype):
        held = np.iinfo(np.dtype(dtype))
        wrong = (given < held.min) | (given > held.max)
        if wrong.any():
            raise ValueError(f"{name} must fit into {held.dtype}, got {_first(given, wrong)}")
    with np.errstate(over="ignore"):  # a long double that becomes infinite is refused below
        result = np.asarray(given, dtype=dtype, order="C")
    if not result.size:
        return result
    least, most = result.min(), result.max()  # NaN where there is one
    if not (math.isfinite(least) and math.isfinite(most)):
        raise ValueError(f"{name} must be finite, got {_first(given, ~np.isfinite(result))}")
    if low is not None and least < low:
        raise ValueError(f"{name} must be at least {low:g}, got {_first(given, result < low)}")
    if high is not None and most > high:
        raise ValueError(f"{name} must be at most {high:g}, got {_first(given, result > high)}")
    return result


def refuse_long(name: str, given: Array, dtype: np.dtype[Any]) -> None:
    """Raise where a whole number is too long for `dtype`: of one NumPy makes an object, or a float."""
    held = np.iinfo(dtype)
    for where, entry in np.ndenumerate(given):
        if isinstance(entry, int) and not held.min <= entry <= held.max:
            index = f" at index {where[0] if len(where) == 1 else where}" if where else ""
            raise ValueError(f"{name} must fit into {dtype}, got {shown(entry)}{index}")


def _long_text(value: object) -> bool:
    """Return whether a long text is in lists: NumPy would take as much room for every other entry."""
    if isinstance(value, list | tuple):
        return any(map(_long_text, value))
    return isinstance(value, str | bytes) and len(value) > _LONGEST_SHOWN


def _first(given: Array, wrong: Flags) -> str:
    if given.ndim == 0:
        return str(given)
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{given[where]} at index {where[0] if len(where) == 1 else where}"


# What is registered by name, such as learners, games and counters, and the typed options that it takes.


@dataclass(frozen=True)
class Option:
    """One option: what it may be, what it is where nobody says, and what it is for in a few words.

    The range of an integer or a number is closed; None leaves an end free, but for integers above MOST.
    """

    kind: Literal["flag", "choice", "integer", "number"]
    default: bool | str | int | float
    summary: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def check(self, name: str, value: object) -> Any:
        """Return `value` as this option takes it, or raise TypeError or ValueError."""
        if self.kind == "flag":
            return flag(name, value)
        if self.kind == "choice":
            return choice(name, value, self.choices)
        low, high = self.low, self.high
        if self.kind == "number":
            return number(name, value, -math.inf if low is None else low, math.inf if high is None else high)
        return integer(name, value, low if low is None else int(low), MOST if high is None else int(high))

    def parse(self, name: str, text: str) -> Any:
        """Return what `text` says on a command line, checked."""
        words: Mapping[str, object] = {"true": True, "yes": True, "false": False, "no": False}
        read: Mapping[str, Any] = {"integer": int, "number": float, "flag": lambda x: words.get(x.lower(), x)}
        with contextlib.suppress(ValueError):  # the check below says what is wrong
            text = read.get(self.kind, str)(text)
        return self.check(name, text)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a registry says of each of its entries; a registry adds what it needs itself."""

    name: str
    summary: str  # a few words without a full stop
    source: str  # a reference
    proof: str | None = None  # what is private and why; None for what is not
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether there is a proof of its privacy."""
        return self.proof is not None


def checked(owner: str, options: Mapping[str, Option], given: Mapping[str, object]) -> dict[str, Any]:
    """Return every option of `owner`, given or by default, in the order of the registry, or refuse them."""
    for name in given:
        if name not in options:
            raise TypeError(f"{name!r} is no option of the {owner}")
    return {name: o.check(name, given[name]) if name in given else o.default for name, o in options.items()}
