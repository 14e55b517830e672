"""Running sums of a stream, every one of them published, under one privacy parameter."""

from dataclasses import dataclass

import numpy as np

from equinoise import _checks
from equinoise._checks import Option, Row
from equinoise._live import locked
from equinoise._typing import ArrayLike, Floats, Mapping
from equinoise.mechanisms import counter_base as base
from equinoise.mechanisms.counter_base import Counter, HorizonCounter, ScalarCounter
from equinoise.mechanisms.kary import KaryCounter

_MAX_DIMENSION = 2**20


class BinaryCounter(HorizonCounter):
    """Private running sum of at most `horizon` items: the binary tree counter.

    All sums together are epsilon-differentially private: two streams that differ in one item give the same
    outputs with probabilities within a factor e^epsilon.

    Parameters
    ----------
    epsilon : float
        Finite.
    horizon : int
        Most items, T, from 1 to 2^40.
    low, sensitivity : float
        Lower end and length of the interval that items lie in; so the latter is the most that one can change.
    seed : int, optional
        None, for people's data: noise comes from OpenDP and the operating system, is added to the nodes'
        exact sums, and only noised sums leave. An int, for simulations: float64 noise, reproducible,
        and **not private**, since the low bits of a float64 show what was added to it.

    Raises
    ------
    ImportError
        When `seed` is None and OpenDP is not installed.

    Notes
    -----
    Node n is the sum of the items after ``n & (n - 1)`` up to item n, with one Laplace draw; the n-th sum is
    that of the nodes n, ``n & (n - 1)``, and so on down to 0. An item lies in at most
    L = floor(log2 T) + 1 nodes: a scale of L sensitivity / epsilon is private, and the noise of the n-th sum
    has variance popcount(n) 2 (L sensitivity / epsilon)^2. A horizon that is a power of two needs the extra
    level. What is made of the sums afterwards, such as rounding, is as private as they are.

    Items are rounded to a grid: 2^-44 of the sensitivity at best, 2^-(54 - L) where the horizon is long.

    References
    ----------
    .. [1] Chan, Shi and Song (2011), Private and continual release of statistics, ACM TISSEC 14(3),
       Section 3: the binary mechanism.

    Examples
    --------
    >>> counter = BinaryCounter(epsilon=10.0, horizon=1000, seed=1)
    >>> sums = [counter.add(1) for _ in range(1000)]
    >>> counter.n, bool(abs(sums[-1] - 1000) < counter.width(1e-9))
    (1000, True)
    >>> counter.node_scale(1)  # ten levels
    1.0
    """


class HybridCounter(ScalarCounter):
    """Private running sum of a stream whose length nobody knows: the hybrid counter.

    Parameters, errors and guarantee are those of :class:`BinaryCounter`; no horizon, but 2^28 - 1 items.

    Notes
    -----
    Half of epsilon goes to a logarithmic counter, which adds a draw of scale 2 sensitivity / epsilon when n
    is a power of two: its draws accumulate. The other half goes to the binary counters, a new one after each
    2^k for the at most 2^k - 1 items before 2^(k + 1): k levels, scale 2 k sensitivity / epsilon. So with
    k = floor(log2 n) the n-th sum carries k + 1 draws of the first scale and popcount(n) - 1 of the second.

    Items are rounded to a grid of 2^-26 of the sensitivity or finer.

    References
    ----------
    .. [1] Chan, Shi and Song (2011), Private and continual release of statistics, ACM TISSEC 14(3),
       Section 4: the hybrid mechanism.

    Examples
    --------
    >>> counter = HybridCounter(epsilon=10.0, seed=1)
    >>> sums = [counter.add(1) for _ in range(1000)]
    >>> counter.n, bool(abs(sums[-1] - 1000) < counter.width(1e-9))
    (1000, True)
    >>> counter.node_scale(512), counter.node_scale(1000)
    (0.2, 1.8)
    """

    _options = ("epsilon", "sensitivity", "low")
    _capacity = 2**28 - 1

    def __init__(
        self, epsilon: float, sensitivity: float = 1.0, seed: int | None = None, *, low: float = 0.0
    ) -> None:
        self._bounds(epsilon, sensitivity, low)
        self._start(seed)

    def _parent(self, n: int) -> int:
        return n & (n - 1) or n >> 1

    def _parts(self, n: int) -> int:
        return 2 * (n.bit_length() - 1) if n & (n - 1) else 2

    def _draws(self, n: int) -> list[tuple[int, float]]:
        lone, block = self.node_scale(1), self.node_scale(n | 1)  # no power of two but for n = 1
        return [(n.bit_length(), lone), (max(n.bit_count() - 1, 0), block)]

    def _width(self, delta: float) -> float:
        from equinoise.mechanisms.kernels import hybrid_width

        return float(hybrid_width(self._n, self.node_scale(1) / 2.0, delta)) if self._n else 0.0


class VectorCounter(Counter):
    """Private running sum of at most `horizon` vectors: binary counters side by side, one epsilon.

    Parameters
    ----------
    epsilon : float
        Positive and finite; it covers all entries together.
    horizon, dimension : int
        Most items, T, from 1 to 2^40; and entries of an item, d.
    sensitivity : float
        L1 distance by which one item may change. Items of a larger L1 norm are refused, which is enough
        where a neighbouring stream has a vector of zeros in an item's place. Where it has another item,
        any two possible items must be within `sensitivity` of each other: so are y x and y' x for a public
        x when `sensitivity` is at least |y - y'| times the L1 norm of x, and so are vectors of half the norm.
    seed : int, optional
        None for people's data, an int for simulations, not private: see :class:`BinaryCounter`, also errors.

    Notes
    -----
    A node is a vector sum with one draw of scale L sensitivity / epsilon an entry, L = floor(log2 T) + 1: the
    Laplace mechanism for the L1 norm. Entries are rounded towards zero to a grid, and 2 d + 1 steps of it are
    allowed for in the scale: 2^-44 of the sensitivity a step, 2^-(54 - L) where the horizon is long.

    References
    ----------
    .. [1] Chan, Shi and Song (2011), Private and continual release of statistics, ACM TISSEC 14(3),
       Section 3, with the Laplace mechanism for vectors of Dwork, McSherry, Nissim and Smith (2006).

    Examples
    --------
    >>> counter = VectorCounter(epsilon=10.0, horizon=1000, dimension=2, sensitivity=1.0, seed=1)
    >>> for _ in range(1000):
    ...     sums = counter.add([0.25, -0.75])
    >>> bool(np.abs(sums - [250.0, -750.0]).max() < counter.width(1e-9))
    True
    """

    _options = ("epsilon", "horizon", "dimension", "sensitivity")

    def __init__(
        self, epsilon: float, horizon: int, dimension: int, sensitivity: float = 1.0, seed: int | None = None
    ) -> None:
        self.epsilon = _checks.epsilon(epsilon, allow_infinite=False)
        self.horizon = self._capacity = _checks.integer("horizon", horizon, 1, base.MAX_HORIZON)
        self.dimension = _checks.integer("dimension", dimension, 1, _MAX_DIMENSION)
        self.sensitivity = _checks.number("sensitivity", sensitivity, base.SMALL, base.LARGE)
        # a norm that was computed may be off in its last bits: d steps; entries rounded to the grid: d more
        self._start(seed, self.dimension, slack=2 * self.dimension + 1)

    @locked
    def add(self, x: ArrayLike) -> Floats:
        """Add an item, float64[d] of L1 norm at most `sensitivity`; return the private sum float64[d].

        Nothing has changed when `x` is refused, or because the horizon is over.
        """
        item = _checks.array("x", x, np.float64, (self.dimension,))
        norm = float(np.abs(item).sum())
        if norm > self.sensitivity + self.dimension * self._grid:
            raise ValueError(f"x must have an L1 norm of at most {self.sensitivity:g}, got {norm:g}")
        self._check_room()
        return self._add([int(entry) for entry in np.trunc(item / self._grid)])

    @property
    @locked
    def value(self) -> Floats:
        """The private sum that the last item brought, float64[d]; zeros before the first."""
        return self._latest()


@dataclass(frozen=True, kw_only=True)
class CounterRow(Row):
    """A counter, and the class that it is."""

    make: type[Counter]


_SENSITIVITY = Option("number", 1.0, "the most that one item can change", low=base.SMALL, high=base.LARGE)
_LOW = Option("number", 0.0, "lower end of the interval that items lie in", low=-base.LARGE, high=base.LARGE)
_SCALAR = {"sensitivity": _SENSITIVITY, "low": _LOW}
_HORIZON = {"horizon": Option("integer", 1, "most items", low=1, high=base.MAX_HORIZON)}
_DIMENSION = {"dimension": Option("integer", 1, "entries of an item", low=1, high=_MAX_DIMENSION)}
_CHAN = "Chan, Shi and Song (2011), Private and continual release of statistics, Section"
_ROWS = (
    CounterRow(
        name="binary",
        summary="sums of at most `horizon` items, each of a few noised nodes of a binary tree",
        source=f"{_CHAN} 3",
        proof="an item lies in L = floor(log2 T) + 1 nodes of noise L sensitivity/epsilon",
        options=_HORIZON | _SCALAR,
        make=BinaryCounter,
    ),
    CounterRow(
        name="k-ary",
        summary="sums of at most `horizon` items, of the least noise: a k-ary tree with subtraction",
        source="Andersson, Pagh, Steiner and Torkamani (2025), Count on your elders",
        proof="an item is in one node of each of h levels, of noise h sensitivity/epsilon",
        options=_HORIZON | _SCALAR,
        make=KaryCounter,
    ),
    CounterRow(
        name="hybrid",
        summary="sums of a stream whose length nobody knows, by binary trees that double",
        source=f"{_CHAN} 4",
        proof="half of epsilon for the sums at powers of two, half for the tree in between",
        options=_SCALAR,
        make=HybridCounter,
    ),
    CounterRow(
        name="vector",
        summary="sums of at most `horizon` vectors, binary counters side by side under one epsilon",
        source=f"{_CHAN} 3",
        proof="the Laplace mechanism for the L1 norm on every node",
        options=_HORIZON | _DIMENSION | {"sensitivity": _SENSITIVITY},
        make=VectorCounter,
    ),
)
#: The counters by name.
COUNTERS: Mapping[str, CounterRow] = {row.name: row for row in _ROWS}
