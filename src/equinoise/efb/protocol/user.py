"""The user's side: a device that reports privately, a world to play in, and what goes to and fro."""

from __future__ import annotations

import math
import secrets
import struct
from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Floats, Ints, Words
from equinoise.efb.kernels import learner as _learner, setup
from equinoise.efb.tuning import MECHANISMS, loss_radius, noise_scale
from equinoise.games import Environment, GameTree, Schedule
from equinoise.games.tree import seal
from equinoise.mechanisms.hashing import BITS, MAX_BUCKETS, Hashing, pair_of, symbol_of
from equinoise.mechanisms.laplace import secure_laplace

_SENSITIVITY = 2.0  # L1: two environments change a report in two places, by at most 1 each
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
            return
        try:
            values = np.asarray(self.values)
        except ValueError:
            values = np.empty(0, dtype=object)  # ragged
        if values.dtype.kind not in "fiu" or values.ndim != 1:
            raise TypeError(f"values must be a vector of numbers, got {_checks.shown(self.values)}")
        vars(self).update(values=seal(values.astype(np.float64)))

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
    if len(data) < (size := _HEADER.size + more):
        raise ValueError(f"data must be a whole message, of {size} bytes or more, got {len(data)} bytes")
    if data[:4] != magic:
        raise ValueError(f"data must be a message that begins with {magic!r}, got {_checks.shown(data[:20])}")
    _, trial, n = _HEADER.unpack_from(data)
    if n < 0 or trial < 0 or len(data) != size + item * n:
        raise ValueError(f"data must be a whole message of {n} entries, got {len(data)} bytes")
    return trial, n, data[_HEADER.size :]


class User:
    """A person's device: makes a private report of how a strategy fared.

    A user who answers k strategies spends k epsilon. That a user took part at all, and which strategy it was
    sent, are known to the server. Buckets and signs behind a symbol are public: privacy depends neither on
    them nor on how many a server asks for.

    Parameters
    ----------
    tree, mechanism, loss_range
        As the server's.
    epsilon : float
        Privacy of a report, positive: whatever the user's last action and loss, the probability of any report
        changes by a factor of at most e^epsilon. math.inf sends the values as they are.
    noise : {"secure", "float"}
        "secure" takes the operating system's randomness: for a symbol in whole numbers, exactly; for noised
        losses with OpenDP, else ImportError. "float" is for simulations: fast and reproducible, and the low
        bits of its noised losses give the values away.
    seed : int, optional
        Of "float" noise, which then repeats itself for the same trial; None takes new randomness from the
        operating system for each report. "secure" takes none.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Section 4; Theorem 1 has the privacy of noised losses.
    .. [2] Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation,
       USENIX Security, Section 4.4: local hashing, of which the symbol is a form.

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> tree, _ = load("bandit(3)")
    >>> report = User(tree, epsilon=1.0).report(Strategy(0, [0], [1], symbols=2), last_action=1, loss=0.25)
    >>> report.symbol in (0, 1), report.values
    (True, None)
    >>> User(tree, epsilon=math.inf).report(Strategy(0, [0], [1]), last_action=1, loss=0.25).values
    array([0.25])
    """

    def __init__(
        self,
        tree: GameTree,
        epsilon: float,
        *,
        mechanism: str = "hashing",
        loss_range: ArrayLike = (0.0, 1.0),
        noise: str = "secure",
        seed: int | None = None,
    ) -> None:
        self.tree: GameTree = _checks.instance("tree", tree, GameTree)
        self.epsilon = _checks.epsilon(epsilon)
        self.mechanism = _checks.choice("mechanism", mechanism, MECHANISMS)
        self.noise = _checks.choice("noise", noise, ("secure", "float"))
        if self.noise == "secure" and seed is not None:
            raise ValueError(f"seed must be None with noise='secure', which repeats nothing, got {seed!r}")
        self._radius = loss_radius(tree, loss_range)
        self._range = np.broadcast_to(np.array(loss_range, dtype=np.float64), (tree.n_actions, 2))
        self._scale = noise_scale(self.epsilon, _SENSITIVITY)
        if self.mechanism == "hashing":
            Hashing.of(min(self.epsilon, 1.0), 1)  # says what is wrong before anyone plays
        elif self.noise == "secure" and math.isfinite(self.epsilon):
            secure_laplace([0.0], _SENSITIVITY, self.epsilon)
        self._seed = _checks.seed(seed)

    def __repr__(self) -> str:
        return f"User({self.tree!r}, epsilon={self.epsilon:g}, {self.mechanism!r}, noise={self.noise!r})"

    def report(self, strategy: Strategy, last_action: int, loss: float) -> Report:
        """Return the report of a play: a symbol, or y(a) = [a = last action] loss + Laplace(2/epsilon).

        `last_action` is the last one that the user took, and `loss` what it brought. ValueError where that is
        out of the action's range, and for a strategy that asks for the other mechanism.
        """
        check_strategy(self.tree, strategy)
        last = _checks.integer("last_action", last_action, 0, self.tree.n_actions - 1)
        value = _checks.number("loss", loss, *self._range[last].tolist())
        mine = np.flatnonzero(strategy.actions == last)
        if len(mine) == 0:
            raise ValueError(f"last_action must be one of the strategy's actions, got {last}")
        if self.tree.leaf_ptr[last] == self.tree.leaf_ptr[last + 1]:
            raise ValueError(f"last_action must have a leaf straight below it, got {last}")
        if bool(strategy.symbols) != (self.mechanism == "hashing" and math.isfinite(self.epsilon)):
            got = f"got one for {strategy.symbols} symbols"
            raise ValueError(f"strategy must ask for a report of mechanism {self.mechanism!r}, {got}")
        if strategy.symbols:
            return Report(strategy.trial, symbol=self._symbol(strategy, int(mine[0]), value))
        values = np.zeros(len(strategy.actions))
        if self.noise == "secure" and math.isfinite(self.epsilon):
            values[mine] = value
            return Report(strategy.trial, secure_laplace(values, _SENSITIVITY, self.epsilon))
        word = np.empty(len(values), dtype=np.uint64)
        source = setup.first_source(stream_key(self._seed))
        _learner.add_noise(values, word, len(values), self._scale, source, strategy.trial)
        values[mine] += value
        return Report(strategy.trial, values)

    def _symbol(self, strategy: Strategy, position: int, loss: float) -> int:
        """Draw the symbol of a play that ended at a position of the strategy, in exact whole numbers."""
        code = Hashing.of(self.epsilon, strategy.symbols // 2)
        public = setup.first_source(np.asarray(strategy.key))
        half = _learner.public_bits(position // code.n_buckets, public, np.uint64(strategy.trial))
        own = pair_of(position, half, code.n_buckets)
        radius = float(self._radius[strategy.actions[position]])
        if self.noise == "secure":
            word = secrets.randbits(BITS)
        else:
            word = _learner.secret_word(setup.first_source(stream_key(self._seed)), np.uint64(strategy.trial))
        return int(symbol_of(code, word, own, loss - 0.5, radius))


def play(
    environment: Environment | Schedule, strategy: Strategy, *, seed: int | None = None
) -> tuple[int, float]:
    """Play a strategy against an environment, as :func:`equinoise.efb.simulate` does in replicate 0.

    Return (last action, loss). A schedule plays the environment of the strategy's trial. The same seed and
    trial make chance do the same, whatever is played; None takes randomness from the operating system.
    TypeError or ValueError for a strategy that is none of the environment's tree, or beyond the schedule.

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> play(load("bandit(3)")[1], Strategy(0, [0], [1]), seed=1)
    (1, 0.25)
    """
    _checks.instance("environment", environment, Environment, Schedule)
    check_strategy(environment.tree, strategy)
    if isinstance(environment, Schedule):
        ends, now = np.cumsum(environment.trials), strategy.trial
        if now >= ends[-1]:
            raise ValueError(f"strategy must be for one of the schedule's {ends[-1]} trials, got trial {now}")
        environment = environment.environments[int(np.searchsorted(ends, now, side="right"))]
    tree, chance = environment.tree, setup.make_chance(environment)
    plan = setup.make_plan(tree, np.zeros(tree.n_actions))
    visits = setup.make_visits(tree)
    n = len(strategy.actions)
    widths = np.diff(tree.infoset_ptr)[strategy.actions]
    visits.infoset[:n], visits.action[:n] = strategy.infosets, strategy.actions
    visits.child[:n] = 1 + np.cumsum(widths) - widths
    source = setup.first_source(stream_key(seed))
    last, u = _learner.walk(plan, chance, visits, source, strategy.trial)
    last_action = int(visits.action[last])
    return last_action, float(_learner.leaf_loss(chance, last_action, u))
