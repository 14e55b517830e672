"""What server and user send each other: a reduced strategy one way, noisy values the other."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._typing import Floats, Ints
from equinoise.games import GameTree
from equinoise.games.tree import seal

_HEADER = struct.Struct("<4sqq")  # magic, trial, length; all numbers little-endian
_STRATEGY = b"EQS1"
_REPORT = b"EQR1"
_MAX_TRIAL = 2**62


@dataclass(frozen=True, eq=False)
class Strategy:
    """A reduced strategy for one trial: where it picks, and what.

    Trials count from 0. `infosets` and `actions`, int64[n], are the infosets that the strategy can come to,
    breadth first, and the action it picks at each.

    Examples
    --------
    >>> strategy = Strategy(7, [0, 1, 2], [0, 1, 4])
    >>> Strategy.from_bytes(strategy.to_bytes()).actions
    array([0, 1, 4])
    """

    trial: int
    infosets: Ints
    actions: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "trial", _checks.integer("trial", self.trial, 0, _MAX_TRIAL))
        infosets = _checks.array("infosets", self.infosets, np.int64, (None,), low=0)
        actions = _checks.array("actions", self.actions, np.int64, (len(infosets),), low=0)
        object.__setattr__(self, "infosets", seal(infosets.copy()))
        object.__setattr__(self, "actions", seal(actions.copy()))

    def to_bytes(self) -> bytes:
        """Return the message as bytes: 20 of header, 16 an infoset."""
        numbers = np.concatenate([self.infosets, self.actions]).astype("<i8")
        return _HEADER.pack(_STRATEGY, self.trial, len(self.infosets)) + numbers.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Strategy:
        """Read what :meth:`to_bytes` wrote; ValueError for anything else."""
        trial, n, body = _unpack(data, _STRATEGY, 16)
        numbers = np.frombuffer(body, dtype="<i8").astype(np.int64)
        return cls(trial, numbers[:n], numbers[n:])


@dataclass(frozen=True, eq=False)
class Report:
    """What a user sends back: one noisy value for each action of the strategy, and nothing else.

    `trial` is the strategy's, and `values` float64[n] are taken as they come: it is the server that refuses a
    report that is not finite.

    Examples
    --------
    >>> report = Report(7, [0.25, -1.5])
    >>> Report.from_bytes(report.to_bytes()).values
    array([ 0.25, -1.5 ])
    """

    trial: int
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "trial", _checks.integer("trial", self.trial, 0, _MAX_TRIAL))
        try:
            values = np.asarray(self.values)
        except ValueError:
            values = np.empty(0, dtype=object)  # ragged
        if values.dtype.kind not in "fiu" or values.ndim != 1:
            raise TypeError(f"values must be a vector of numbers, got {_checks.shown(self.values)}")
        object.__setattr__(self, "values", seal(values.astype(np.float64)))

    def to_bytes(self) -> bytes:
        """Return the message as bytes: 20 of header, 8 a value."""
        return _HEADER.pack(_REPORT, self.trial, len(self.values)) + self.values.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """Read what :meth:`to_bytes` wrote; ValueError for anything else."""
        trial, _, body = _unpack(data, _REPORT, 8)
        return cls(trial, np.frombuffer(body, dtype="<f8").astype(np.float64))


def check_strategy(tree: GameTree, strategy: object) -> Strategy:
    """Return a strategy that is a reduced strategy of the tree, or raise."""
    if not isinstance(strategy, Strategy):
        raise TypeError(f"strategy must be a Strategy, got {_checks.shown(strategy)}")
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
        raise ValueError(
            "strategy must be a reduced strategy of the tree, breadth first, and this one is not"
        )
    return strategy


def _unpack(data: object, magic: bytes, item: int) -> tuple[int, int, bytes]:
    """Return (trial, length, body) of a message of `item` bytes an entry, or raise."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data must be bytes, got {_checks.shown(data)}")
    data = bytes(data)
    if len(data) < _HEADER.size or data[:4] != magic:
        raise ValueError(f"data must be a message that begins with {magic!r}, got {_checks.shown(data[:20])}")
    _, trial, n = _HEADER.unpack_from(data)
    if n < 0 or trial < 0 or len(data) != _HEADER.size + item * n:
        raise ValueError(f"data must be a whole message of {n} entries, got {len(data)} bytes")
    return trial, n, data[_HEADER.size :]
