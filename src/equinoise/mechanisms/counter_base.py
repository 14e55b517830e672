"""What the private counters share: exact sums on a grid, kept noised totals, and a state to save."""

import functools
import math
from fractions import Fraction

import numpy as np

from equinoise import _checks
from equinoise._live import Live, locked
from equinoise._typing import Any, Floats, Mapping, Self, Words
from equinoise.mechanisms.laplace import LARGEST_SCALE, secure_laplace

MAX_HORIZON = 2**40
SMALL, LARGE = 1e-100, 1e100  # sensitivities whose grid is within float64's range
_LEAST_DELTA = 1e-300
_MOST_BITS = 44  # of an item on its grid
_EXACT_BITS = 53  # of a float64
_MOST_STEPS = 2**70  # of the grid, in a kept sum: none is above 2^53, and no draw is 2^10 times its scale


def slot_of(n: int) -> int:
    """Return where total(n) is kept: 1 + trailing zeros of n, and 0 for n = 0."""
    return (n & -n).bit_length()


@functools.lru_cache(maxsize=64)
def part_of(epsilon: float, parts: int) -> float:
    """Return the largest float64 of which `parts` together are not above epsilon."""
    part = epsilon / parts
    while Fraction(part) * parts > Fraction(epsilon):
        part = math.nextafter(part, 0.0)
    return part


class Counter(Live):
    """A stream's running sum through noised nodes, here those of the binary counter.

    Items are rounded to a grid that is fine enough not to matter and coarse enough for a float64 to hold
    every node's sum exactly. So a node's value depends on its own items and on no rounding of others, and
    what one item can change is known to the last bit.

    A subclass names the arguments it was made from (``_options``, for the state), and has what differs.
    """

    kept_by = "state and from_state"
    _options: tuple[str, ...] = ("epsilon", "horizon", "sensitivity", "low")
    epsilon: float
    sensitivity: float
    _capacity: int

    def _start(
        self, seed: int | None, dimension: int = 1, slots: int = 0, slack: int = 0, largest: float = 0.0
    ) -> None:
        """Set up `dimension` sums of `slots` kept totals each; `slack` is for rounding, in grid steps.

        The largest number to keep, in sensitivities, is that of the 2^(slots - 2) items of the largest node.
        """
        self._slots, self._n = slots or self._capacity.bit_length() + 1, 0
        room = math.frexp(largest)[1] if largest else self._slots - 2
        bits = max(1, min(_MOST_BITS, _EXACT_BITS - room))
        self._grid = math.ldexp(1.0, math.frexp(self.sensitivity)[1] - bits)
        steps = self.sensitivity / self._grid
        self._change = (max(steps, round(steps)) + slack) * self._grid  # of a node, by one item
        self._totals = np.zeros(dimension * self._slots)  # noised: what has left
        self._sums = [[0] * self._slots for _ in range(dimension)]  # exact, in steps of the grid: never leave
        self._key: Words | None = None
        if not self.node_scale(self._capacity) <= LARGEST_SCALE:
            raise ValueError(f"epsilon must give a finite noise scale, got {self.epsilon!r}")
        if seed is not None:
            from equinoise._random import stream_key

            self._key = stream_key(seed)
        else:  # what is missing is missed now, not at the first item
            secure_laplace([0.0] * dimension, self._change, part_of(self.epsilon, self._parts(1)))

    def _parts(self, n: int) -> int:
        """Return into how many parts epsilon is divided for node n."""
        return self._capacity.bit_length()

    def _parent(self, n: int) -> int:
        return n & (n - 1)

    def _draws(self, n: int) -> list[tuple[int, float]]:
        """Return the draws in the n-th sum, as (how many, of which scale)."""
        return [(n.bit_count(), self.node_scale(max(n, 1)))]

    def __repr__(self) -> str:
        form = "secure" if self.secure else "simulation"
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, n={self._n}, {form})"

    @property
    def n(self) -> int:
        """Number of items so far."""
        return self._n

    @property
    def secure(self) -> bool:
        """Whether noise comes from OpenDP and the operating system (seed=None)."""
        return self._key is None

    @property
    @locked
    def noise_sd(self) -> float:
        """Standard deviation of the noise in the present sum (in each entry): sqrt(sum of 2 scale^2)."""
        return math.sqrt(sum(2.0 * count * scale**2 for count, scale in self._draws(self._n)))

    def node_scale(self, n: int) -> float:
        """Return the scale of the one Laplace draw that the n-th item brings, n from 1."""
        return self._change * self._parts(_checks.integer("n", n, 1, self._capacity)) / self.epsilon

    @locked
    def width(self, delta: float) -> float:
        """Return what the noise in the present sum exceeds with probability `delta` at most, either way.

        The best of Chernoff's bounds for the draws that the sum carries; 0 before the first item. Of a sum
        with d entries it is for any of them, and each gets delta/d.
        """
        return self._width(_checks.number("delta", delta, _LEAST_DELTA, 1.0) / len(self._sums))

    def _width(self, delta: float) -> float:
        from equinoise.mechanisms.kernels import tail_width

        draws, scale = self._draws(self._n)[0]
        return float(tail_width(float(draws), scale, delta))

    def _add(self, steps: list[int]) -> Floats:
        """Add an item, in steps of the grid; return the noised sums float64[d]."""
        n = self._n + 1
        before, parent, at = slot_of(n - 1), slot_of(self._parent(n)), slot_of(n)
        sums = [kept[before] + step for kept, step in zip(self._sums, steps, strict=True)]
        node = [(total - kept[parent]) * self._grid for total, kept in zip(sums, self._sums, strict=True)]
        out: Floats = self._totals[parent :: self._slots] + self._noised(np.array(node), n)
        for kept, total in zip(self._sums, sums, strict=True):
            kept[at] = total  # which n - 1 items do not use: until n counts, Ctrl-C changes nothing
        self._totals[at :: self._slots], self._n = out, n
        return out

    def _noised(self, node: Floats, n: int) -> Floats:
        """Return node n's sums float64[d] with the one draw each that they ever get."""
        if self._key is None:
            return secure_laplace(node, self._change, part_of(self.epsilon, self._parts(n)))
        from equinoise._random import NOISE, fill_laplace

        noise = np.empty_like(node)  # a node has an address of its own: no generator's state to keep
        fill_laplace(self._key, n, NOISE, self.node_scale(n), noise)
        return node + noise

    def _check_room(self) -> None:
        if self._n >= self._capacity:
            raise ValueError(f"horizon of {self._capacity} items is over; a new counter may have more")

    def _latest(self) -> Floats:
        return self._totals[slot_of(self._n) :: self._slots].copy()

    @locked
    def state(self) -> dict[str, Any]:
        """Return all there is to go on from, in the types of JSON.

        It holds exact sums, so it is as secret as the items. Only one counter may go on from a state in
        earnest: two that do noise the same items, or (k-ary) different ones with the same draws.
        """
        return {
            "kind": type(self).__name__,
            "options": {name: getattr(self, name) for name in self._options},
            "key": None if self._key is None else [int(word) for word in self._key],
            "n": self._n,
            "totals": self._totals.tolist(),
            "sums": [list(kept) for kept in self._sums],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the counter that :meth:`state` described; drawn noise is kept, never drawn again."""
        try:
            if state["kind"] != cls.__name__:
                raise ValueError(f"its kind is {_checks.shown(state['kind'])}")
            if state["options"].get("dimension", 1) != len(state["sums"]):  # before there is room for more
                raise ValueError("sums must be one list for each entry of an item")
            make: Any = cls
            counter: Self = make(**state["options"], seed=None if state["key"] is None else 0)
            counter._restore(state)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"state must be one of a {cls.__name__}: {_checks.line(error)}") from error
        return counter

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._n = _checks.integer("n", state["n"], 0, self._capacity)
        self._totals = _checks.array("totals", state["totals"], np.float64, self._totals.shape).copy()
        if self._key is not None:
            words = [_checks.integer("key", word, 0, 2**64 - 1) for word in state["key"]]
            self._key = _checks.array("key", np.array(words, dtype=np.uint64), np.uint64, (2,))
        of = "sums", -_MOST_STEPS, _MOST_STEPS
        sums = [[_checks.integer(of[0], entry, *of[1:]) for entry in kept] for kept in state["sums"]]
        if [len(kept) for kept in sums] != [self._slots] * len(self._sums):
            raise ValueError(f"sums must be {len(self._sums)} lists of {self._slots} integers")
        self._sums = sums


class ScalarCounter(Counter):
    """Items are numbers in [low, low + sensitivity]."""

    low: float

    def _bounds(self, epsilon: float, sensitivity: float, low: float) -> None:
        self.epsilon = _checks.epsilon(epsilon, allow_infinite=False)
        self.sensitivity = _checks.number("sensitivity", sensitivity, SMALL, LARGE)
        self.low = _checks.number("low", low, -LARGE, LARGE)

    @locked
    def add(self, x: float) -> float:
        """Add an item in [low, low + sensitivity] and return the private sum of all items so far.

        The sum may be negative, and smaller than the one before. A refusal of `x`, or at the end of the
        horizon, changes nothing.
        """
        above = _checks.number("x", x) - self.low
        if not 0.0 <= above <= self.sensitivity:
            high = self.low + self.sensitivity
            raise ValueError(f"x must be a number in [{self.low:g}, {high:g}], got {_checks.shown(x)}")
        self._check_room()
        return float(self._add([round(above / self._grid)])[0]) + self.low * self._n

    @property
    @locked
    def value(self) -> float:
        """The private sum that the last item brought, 0 before the first."""
        return float(self._latest()[0]) + self.low * self._n


class HorizonCounter(ScalarCounter):
    """At most `horizon` items."""

    def __init__(
        self,
        epsilon: float,
        horizon: int,
        sensitivity: float = 1.0,
        seed: int | None = None,
        *,
        low: float = 0.0,
    ) -> None:
        self._bounds(epsilon, sensitivity, low)
        self.horizon = self._capacity = _checks.integer("horizon", horizon, 1, MAX_HORIZON)
        self._start(seed)
