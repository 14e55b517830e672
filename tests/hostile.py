"""Valid input damaged in ways that random bytes are not, and a judge of what a parser makes of it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import re
import signal
import threading
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLOW = 5.0  # seconds of a processor, in which a few kilobytes must be read
ROOM, FACTOR = 32 * 2**20, 64  # bytes: no parser takes more than ROOM + FACTOR times its input
NAMED = 2**18  # actions of a game by name, which is an argument and takes what is asked for: here no more
NUMBERS = ["0", "-1", "1.5", "1e308", "-1e999", "NaN", str(2**31), str(2**63), "1" + "0" * 400, "9" * 5000]
WORDS = [*NUMBERS, *"x\"'{}[](),:=\n\0\ufeff\ud800", "null", "true", "[" * 5000, "{" * 500, "a" * 20_000]
WORDS += ["../x", "%s%n", "\x1b[2J", "<f8", "|O", "uniform", ""]
VALUES: list[Any] = [None, True, False, 0, -1, 1.5, 1e308, math.inf, math.nan, 2**31, 2**63, 10**400, ""]
VALUES += ["x", "3", "\ud800", "a" * 20_000, [], {}, [[]], [1, 2], {"x": 1}, [None] * 3]
ENDS = [bytes(n) for n in (1, 4, 8)] + [b"\xff" * n for n in (1, 4, 8)]
ENDS += [(2**k).to_bytes(8, "little") for k in (16, 31, 32, 62, 63)]


@dataclass(frozen=True)
class Parser:
    """What reads: ``read(path)`` of a file, of whole ones such as `wholes`; `form` says how to damage them.

    A refusal is one of `refusals`, in one line with one of the words `named` in it.
    """

    name: str
    wholes: list[bytes]
    read: Callable[[Path], object]
    named: tuple[str, ...]
    form: str = "bytes"
    refusals: tuple[type[Exception], ...] = (ValueError, OSError)
    cases: int = 40  # that a quick look takes


def damaged(parser: Parser, number: int) -> bytes:
    """Return the input of a number: the same in every process."""
    draw = random.Random(f"{parser.name} {number}")
    data = draw.choice(parser.wholes)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        data = draw.choice(WAYS[parser.form])(draw, data, parser.wholes)
    return data


def judged(parser: Parser, path: Path, data: bytes) -> str:
    """Return what is wrong with how a parser takes such a file; nothing where it is loaded or refused."""
    path.write_bytes(data)
    tracemalloc.reset_peak()
    before, begun = tracemalloc.get_traced_memory()[0], time.process_time()
    found = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with limited():
                parser.read(path)
        except parser.refusals as error:
            words = str(error)
            unnamed = words.replace(str(path), "")
            if "pickle" in unnamed or "\n" in words or len(words) > 3000:
                found = f"says {words[:300]!r}"
            elif not any(name in words for name in (*parser.named, str(path))):
                found = f"does not say what it read: {words[:300]!r}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            found = f"raises {type(error).__name__}: {str(error)[:300]}"
    seconds, peak = time.process_time() - begun, tracemalloc.get_traced_memory()[1] - before
    if seconds > SLOW:
        found += f" takes {seconds:.1f} s"
    if peak > ROOM + FACTOR * len(data):
        found += f" takes {peak:,} bytes for {len(data):,}"
    return found


class Hangs(Exception):
    """A parser took too long."""


@contextlib.contextmanager
def limited():
    """Stop Python that runs for too long, where signals can."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 12 * SLOW)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Ways to damage bytes: (draw, data, wholes) -> data.


def _span(draw, data):
    i, j = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
    return i, min(j, i + draw.choice((1, 4, 8, 64, 10**9)))


def flip(draw, data, _):
    if not data:
        return b"\0"
    i = draw.randrange(len(data))
    return data[:i] + bytes([data[i] ^ 1 << draw.randrange(8)]) + data[i + 1 :]


def cut(draw, data, _):
    return data[: draw.randrange(len(data) + 1)]


def drop(draw, data, _):
    i, j = _span(draw, data)
    return data[:i] + data[j:]


def again(draw, data, _):
    i, j = _span(draw, data)
    return data[:j] + data[i:j] * draw.choice((1, 2, 50)) + data[j:] if len(data) < 2**18 else data


def splice(draw, data, wholes):
    other = draw.choice(wholes)
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def swap(draw, data, _):
    a, b, c = sorted(draw.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def huge(draw, data, _):
    i, end = draw.randrange(len(data) + 1), draw.choice(ENDS)
    return data[:i] + end + data[i + len(end) :]


def word(draw, data, _):
    i, j = _span(draw, data)
    return data[:i] + draw.choice(WORDS).encode("utf-8", "surrogatepass") + data[draw.choice((i, j)) :]


def digits(draw, data, _):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return data
    one = draw.choice(found)
    return data[: one.start()] + draw.choice(NUMBERS).encode() + data[one.end() :]


# Ways to damage JSON, and archives of arrays whose checksums are right.


def _places(value, above=()):
    yield above
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*above, key))


def _at(value, place):
    for key in place:
        value = value[key]
    return value


def node(draw, data, _):
    """Put another value in the place of one, or take it out, or give it another name."""
    try:
        whole = json.loads(data)
        *above, key = draw.choice(list(_places(whole))[1:] or [(None,)])
    except (ValueError, RecursionError):
        return data
    if key is None:
        return json.dumps(draw.choice([None, 0, "x", [], {}, [1]])).encode()
    held, kind = _at(whole, above), draw.randrange(6)
    if kind == 0:
        del held[key]
    elif kind == 1 and isinstance(held, dict):
        held[draw.choice(["x", "", "seed", "kind"])] = held.pop(key)
    elif kind == 2:
        held[key] = _at(whole, draw.choice(list(_places(whole))[1:]))
        held[key] = (
            json.loads(json.dumps(held[key])) if not isinstance(held[key], dict | list) else [held[key]]
        )
    elif kind == 3 and isinstance(held[key], list):
        held[key] = held[key] * draw.choice((2, 100)) if draw.random() < 0.5 else held[key][:-1]
    else:
        held[key] = draw.choice(VALUES)
    try:
        return json.dumps(whole).encode()
    except (ValueError, RecursionError):  # a number of 5000 digits, or what holds itself
        return data


def member(draw, data, wholes):
    """Damage one array of an archive, or its head, and write the archive anew."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        name = draw.choice(list(held))
    except Exception:  # it is damaged already
        return data
    kind, content = draw.randrange(7), held[name]
    body = content.find(b"\n") + 1
    if kind == 0:
        del held[name]
    elif kind == 1:
        held[name] = held[draw.choice(list(held))]
    elif kind == 2:
        held[name] = _headed(draw, content[:body], wholes) + content[body:]
    elif kind == 3 or name.startswith("meta_json"):
        text = draw.choice(WAYS["json"])(draw, content[body:], wholes)
        held["meta_json.npy"] = headed(
            f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(text)},), }}", text
        )
    else:
        way = draw.choice((flip, huge, swap))
        held[name] = content[:body] + way(draw, content[body:], wholes)
    return archived(held, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _headed(draw, head, wholes):
    text = draw.choice((digits, word, flip))(draw, head[10:].rstrip(), wholes)
    return headed(text.decode("latin1"), b"")


def headed(text: str, body: bytes) -> bytes:
    """Return a ``.npy`` file with such a head."""
    head = text.encode("latin1", "replace")[:65_000]
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + len(head).to_bytes(2, "little") + head + body


def archived(held: dict[str, bytes], packed: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return out.getvalue()


BYTES = (flip, cut, drop, again, splice, swap, huge)
WAYS = {
    "bytes": BYTES,
    "text": (*BYTES, word, word, digits, digits, digits),
    "json": (*BYTES[:4], word, digits, *[node] * 8),
    "npz": (*BYTES, *[member] * 10),
}
