"""What server and user send each other: a reduced strategy one way, a symbol or noisy values the other."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._typing import ArrayLike, Floats, Ints, Words
from equinoise.games import GameTree
from equinoise.games.tree import seal
from equinoise.mechanisms.hashing import MAX_BUCKETS

_HEADER = struct.Struct("<4sqq")  # magic, trial, length; all numbers little-endian
_STRATEGY = b"EQS1"
_HASHED = b"EQS2"  # with the number of symbols and the public key
_CODE = struct.Struct("<qQQ")
_REPORT = b"EQR1"
_SYMBOL = 0xE5  # the first byte of a symbol's report
_MAX_TRIAL = 2**62
_MAX_SYMBOLS = 2 * MAX_BUCKETS


@dataclass(frozen=True, eq=False)
class Strategy:
    """A reduced strategy for one trial: where it picks, and what.

    Trials count from 0. `infosets` and `actions`, int64[n], are the infosets that the strategy can come to,
    breadth first, and the action it picks at each. `symbols` is how many symbols a report may be, 0 where it
    is a value for each action, and `key` uint64[2] the public key of buckets and signs, which needs no
    secrecy. TypeError or ValueError for anything else.

    Examples
    --------
    >>> strategy = Strategy(7, [0, 1, 2], [0, 1, 4], symbols=2)
    >>> Strategy.from_bytes(strategy.to_bytes()).actions
    array([0, 1, 4])
    """

    trial: int
    infosets: Ints
    actions: Ints
    symbols: int = 0
    key: Words | tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        infosets = _checks.array("infosets", self.infosets, np.int64, (None,), low=0)
        actions = _checks.array("actions", self.actions, np.int64, (len(infosets),), low=0)
        symbols = _checks.integer("symbols", self.symbols, 0, _MAX_SYMBOLS)
        if symbols % 2:
            raise ValueError(f"symbols must be an even number, got {symbols}")
        key = self.key
        if isinstance(key, tuple | list):  # NumPy takes one word above 2^63 and one below for floats
            key = np.array([_checks.integer("key", word, 0, 2**64 - 1) for word in key], dtype=np.uint64)
        key = _checks.array("key", key, np.uint64, (2,))
        vars(self).update(trial=_checks.integer("trial", self.trial, 0, _MAX_TRIAL), symbols=symbols)
        arrays = {"infosets": infosets, "actions": actions, "key": key}
        vars(self).update({name: seal(array.copy()) for name, array in arrays.items()})

    def to_bytes(self) -> bytes:
        """Return the message as bytes: 20 of header, 24 more with symbols, 16 an infoset."""
        numbers = np.concatenate([self.infosets, self.actions]).astype("<i8").tobytes()
        code = _CODE.pack(self.symbols, *map(int, self.key)) if self.symbols else b""
        header = _HEADER.pack(_HASHED if self.symbols else _STRATEGY, self.trial, len(self.infosets))
        return header + code + numbers

    @classmethod
    def from_bytes(cls, data: bytes) -> Strategy:
        """Read what :meth:`to_bytes` wrote; ValueError for anything else."""
        data = bytes(_checks.instance("data", data, bytes, bytearray, memoryview))
        hashed = data[:4] == _HASHED
        trial, n, body = _unpack(data, _HASHED if hashed else _STRATEGY, 16, _CODE.size if hashed else 0)
        symbols, *key = _CODE.unpack_from(body) if hashed else (0, 0, 0)
        if hashed and not symbols:
            raise ValueError(f"data must name at least 2 symbols, got {_checks.shown(data[:44])}")
        numbers = np.frombuffer(body[_CODE.size * hashed :], dtype="<i8").astype(np.int64)
        return cls(trial, numbers[:n], numbers[n:], symbols, np.array(key, dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class Report:
    """What a user sends back: one symbol, or one noisy value for each action of the strategy.

    `trial` is the strategy's; `values` float64[n] or `symbol`, one of the two, are taken as they come: it is
    the server that refuses what no user sends. TypeError or ValueError for anything else.

    Examples
    --------
    >>> Report.from_bytes(Report(7, [0.25, -1.5]).to_bytes()).values
    array([ 0.25, -1.5 ])
    >>> len(Report(999_999, symbol=1).to_bytes())
    5
    """

    trial: int
    values: Floats | None = None
    symbol: int | None = None

    def __post_init__(self) -> None:
        vars(self).update(trial=_checks.integer("trial", self.trial, 0, _MAX_TRIAL))
        if (self.values is None) == (self.symbol is None):
            raise TypeError("values or symbol must be given, and not both")
        if self.symbol is not None:
            vars(self).update(symbol=_checks.integer("symbol", self.symbol, 0, _MAX_SYMBOLS - 1))
        else:
            vars(self).update(values=_vector(self.values))

    def to_bytes(self) -> bytes:
        """Return the message as bytes: 20 of header and 8 a value; 3 to 13 with a symbol."""
        if self.symbol is not None:
            return bytes([_SYMBOL, *_digits(self.trial), *_digits(self.symbol)])
        values = np.asarray(self.values)
        return _HEADER.pack(_REPORT, self.trial, len(values)) + values.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """Read what :meth:`to_bytes` wrote; ValueError for anything else."""
        data = bytes(_checks.instance("data", data, bytes, bytearray, memoryview))
        if data[:1] == bytes([_SYMBOL]):
            numbers = _numbers(data[1:])
            if len(numbers) == 2 and data == (report := cls(numbers[0], symbol=numbers[1])).to_bytes():
                return report
            raise ValueError(f"data must be a whole report of a symbol, got {_checks.shown(data)}")
        trial, _, body = _unpack(data, _REPORT, 8)
        return cls(trial, np.frombuffer(body, dtype="<f8").astype(np.float64))


def _vector(given: ArrayLike | None) -> Floats:
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0, dtype=object)  # ragged
    if values.dtype.kind not in "fiu" or values.ndim != 1:
        raise TypeError(f"values must be a vector of numbers, got {_checks.shown(given)}")
    return seal(values.astype(np.float64))


def _digits(number: int) -> list[int]:
    """Return a number in base 128, least digit first, the top bit set on all digits but the last."""
    return [number] if number < 128 else [number & 127 | 128, *_digits(number >> 7)]


def _numbers(data: bytes) -> list[int]:
    """Return the numbers that stand in base 128 one after the other; none where the last one is cut."""
    numbers, shift = [0], 0
    for byte in data[:32]:
        numbers[-1] |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers, shift = [*numbers, 0], 0
    return numbers[:-1] if not shift else []


def check_strategy(tree: GameTree, strategy: Strategy) -> None:
    """Raise where a strategy is none of the tree."""
    _checks.instance("strategy", strategy, Strategy)
    infosets, actions = strategy.infosets, strategy.actions
    n = len(infosets)
    fits = n > 0 and infosets[0] == 0 and infosets.max() < tree.n_infosets and actions.max() < tree.n_actions
    if fits:
        low, high = tree.infoset_ptr[actions], tree.infoset_ptr[actions + 1]
        width = high - low
        children = np.repeat(low - np.cumsum(width) + width, width) + np.arange(width.sum())
        inside = (actions >= tree.action_ptr[infosets]) & (actions < tree.action_ptr[infosets + 1])
        fits = bool(inside.all()) and np.array_equal(children, infosets[1:])
    if not fits:
        raise ValueError("strategy must be a reduced strategy of the tree, breadth first, and is not")


def _unpack(data: bytes, magic: bytes, item: int, more: int = 0) -> tuple[int, int, bytes]:
    """Return (trial, length, body) of a message of `item` bytes an entry and `more` for all, or raise."""
    if len(data) < _HEADER.size or data[:4] != magic:
        raise ValueError(f"data must be a message that begins with {magic!r}, got {_checks.shown(data[:20])}")
    _, trial, n = _HEADER.unpack_from(data)
    if n < 0 or trial < 0 or len(data) != _HEADER.size + more + item * n:
        raise ValueError(f"data must be a whole message of {n} entries, got {len(data)} bytes")
    return trial, n, data[_HEADER.size :]
