"""Gaussian noise and (epsilon, delta): delta of every record, exactly, on the bins.

With delta a record may be revealed outright with a small probability. That says something only where delta is
far below 1/n: handing out one whole record of n, without any noise, is (0, 1/n)-private.
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks, _elementary
from equinoise._random import stream_key
from equinoise._typing import Any, Callable, Floats, Ints, Iterator
from equinoise.nvo import kernels
from equinoise.nvo.game import Game, known
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import named
from equinoise.nvo.profile import Profile, deltas, sticks
from equinoise.nvo.registry import SEARCHES
from equinoise.nvo.search.dynamics import all_largest

__all__ = ["GaussianGame", "GaussianNoise", "deltas"]

_FAR_BELOW = 0.1  # of 1/n, above which delta is warned about
_SMALLEST = -690.0  # ln of the smallest mass, as for Laplace noise
_INSIDE = 1.0 - 1e-9  # of delta: what rounds cannot make up for
_GAIN = 1e-12  # of KL, in nats: less is rounding
_ROUNDS = 200
_HOT, _COLD = 0.3, 1e-5  # temperatures at which annealing starts and ends, in nats of KL


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Gaussian noise on equal bins; noise that would leave the range is not added.

    The mass M[k, v, x] is proportional to exp(-(x_k - x)^2/(2 s_v^2)) and adds up to one over x. The scales
    s float64[V] are standard deviations before noise that would leave the range is left out, normalised.

    Examples
    --------
    >>> GaussianNoise(3, np.array([0.5])).rows(np.array([0])).round(3)
    array([[[0.452, 0.362, 0.186]]])
    """

    n_bins: int
    scales: Floats

    @property
    def n_scales(self) -> int:
        """Number of scales, V."""
        return len(self.scales)

    def rows(self, bins: Ints) -> Floats:
        """Return M of the given bins int64[B], float64[B, V, K]."""
        distance = np.abs(bins[:, None] - np.arange(self.n_bins)) / self.n_bins
        exponent = -0.5 * (distance[:, None, :] / self.scales[:, None]) ** 2
        mass = np.empty(exponent.shape)
        _elementary.fill_exp(np.maximum(exponent, _SMALLEST).ravel(), mass.ravel())
        mass[exponent <= _SMALLEST] = 0.0
        return np.asarray(mass / mass.sum(axis=2, keepdims=True))

    def column(self, x: int) -> Floats:
        """Return M[:, :, x], float64[K, V]."""
        return np.concatenate([self.rows(np.array([k]))[:, :, x] for k in range(self.n_bins)])


@dataclass(frozen=True, eq=False)
class GaussianGame(Game):
    """The game with Gaussian noise, in which a record is satisfied by (epsilon, delta).

    Parameters
    ----------
    histogram, epsilon : Histogram, float
        Records, and what each asks for: positive and finite.
    delta : float
        Positive and below 1/n, where it would mean nothing: ValueError. Above a tenth of that it warns.
    scales : "default" or float64[V]
        Standard deviations, normalised; by default those of the Laplace game's default scales.

    References
    ----------
    .. [1] Balle, Wang (2018), *Improving the Gaussian Mechanism for Differential Privacy: Analytical
       Calibration and Optimal Denoising*, ICML, theorem 5: delta from the privacy loss, exactly.

    Examples
    --------
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], 21, bounds=(140, 220))
    >>> profile = GaussianGame(histogram, epsilon=1.0, delta=1e-6).solve()
    >>> profile.certified, profile.realised_delta <= 1e-6
    (True, True)
    """

    histogram: Histogram
    epsilon: float
    delta: float
    scales: Any = "default"

    def __post_init__(self) -> None:
        epsilon = self._begin(Histogram)
        delta = _checks.number("delta", self.delta, 0.0, 1.0, open_low=True)
        if delta >= 1.0 / self.n:
            why = "to hand out one whole record is (0, 1/n)-private"
            raise ValueError(f"delta must be far below 1/n = {1 / self.n:.3g}, got {delta:g}: {why}")
        if delta > _FAR_BELOW / self.n:
            why = "a record may be revealed outright nearly as often as if one were handed out whole"
            warnings.warn(f"delta {delta:g} is not far below 1/n = {1 / self.n:.3g}: {why}", stacklevel=3)
        unit = math.sqrt(2.0) * self.histogram.sensitivity / epsilon
        self._keep("scales", named("scales", self.scales, unit, ("default",)))

    @cached_property
    def noise(self) -> GaussianNoise:
        """Where masses come from."""
        return GaussianNoise(self.histogram.n_bins, self.scales)

    def solve(self, seed: int | None = 0) -> Profile:
        """Search by annealing from everybody at the largest scale, and never leave what satisfies all."""
        bins, seed = np.flatnonzero(self.histogram.counts), known(seed)
        masses = self.noise.rows(bins)
        start = all_largest(self.histogram.counts[bins], self.scales)

        def satisfied(counts: Ints, total: Floats) -> bool:
            lost = sticks(total, masses[counts > 0], self.n, -1, self.epsilon)
            return bool((lost <= _INSIDE * self.delta).all())

        found, rounds = anneal(masses, start, self.histogram.pmf, satisfied, seed=seed)
        counts = np.zeros((self.histogram.n_bins, len(self.scales)), dtype=np.int64)
        counts[bins] = found
        by = ("solve", {"seed": seed})
        return self.profile(counts, SEARCHES["anneal"].label, seed=seed, rounds=rounds, found_by=by)


# Search by whole groups under any promise: from a profile that keeps it, never leaving it. Here a record is
# satisfied by a sum over the bins, not by limits at each of them, and what makes the compiled searches quick
# says nothing about such a sum: this one looks at all records after every move, for a hundred bins or so.

Judge = Callable[[Ints, Floats], bool]


class _Walk:
    """A profile, what it releases and its KL up to a constant, and moves that every record agrees to."""

    def __init__(self, masses: Floats, start: Ints, target: Floats, satisfied: Judge) -> None:
        self.masses, self.satisfied = masses, satisfied
        self.counts = start.copy()
        self.seen = target > 0.0
        self.p = target[self.seen]
        self.add_up()
        self.kl = self._score(self.total[self.seen])

    def add_up(self) -> None:
        total = np.zeros((1, self.masses.shape[2]))
        kernels.add_all(self.masses.reshape(-1, total.size), self.counts.reshape(-1), total)
        self.total = total[0]

    def _score(self, total: Floats) -> float:
        """Return KL up to a constant, infinite where something of the histogram is no longer released."""
        return kernels.kullback_leibler(self.p, total)

    def move(self, b: int, v: int, w: int, size: int, below: float) -> bool:
        """Move records of a bin between two scales if KL is then below a limit and all are satisfied."""
        change = size * (self.masses[b, w] - self.masses[b, v])
        score = self._score((self.total + change)[self.seen])
        if not score < below:
            return False
        self.counts[b, [v, w]] += -size, size
        if not self.satisfied(self.counts, self.total + change):
            self.counts[b, [v, w]] += size, -size
            return False
        self.total, self.kl = self.total + change, score
        return True


def anneal(
    masses: Floats,
    start: Ints,
    target: Floats,
    satisfied: Judge,
    *,
    seed: int | None = 0,
    steps: int = 20_000,
) -> tuple[Ints, int]:
    """Move random groups, at first also where KL grows, and descend from the best profile on the way.

    In a round of the descent every bin's records are offered every other scale: all of those with one scale,
    half of them, a quarter, down to one; it ends with a round without a move. Noise float64[B, V, X] of the B
    bins with records, the profile int64[B, V] to start from, the histogram float64[X]. Return the profile
    (the start where that does not satisfy everybody) and the rounds.
    """
    walk = _Walk(masses, start, target, satisfied)
    random = np.random.Generator(np.random.Philox(key=stream_key(seed)))
    best, lowest = walk.counts.copy(), walk.kl
    for step in range(steps if satisfied(walk.counts, walk.total) else 0):
        temperature = _HOT * (_COLD / _HOT) ** (step / steps)
        b, v, w, size = _any_move(walk.counts, random)
        if v == w or not walk.move(b, v, w, size, walk.kl + temperature * random.exponential()):
            continue
        if walk.kl < lowest:
            best, lowest = walk.counts.copy(), walk.kl
    walk = _Walk(masses, best, target, satisfied)
    rounds, moved = 0, satisfied(walk.counts, walk.total)
    while moved and rounds < _ROUNDS:
        rounds, moved = rounds + 1, False
        for move in _moves(walk.counts):
            moved |= walk.move(*move, walk.kl - _GAIN)
        walk.add_up()
    return walk.counts, rounds


def _any_move(counts: Ints, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Return bin, scale, other scale and size of a random move: half of the time a whole group."""
    b = int(random.integers(len(counts)))
    v = int(random.choice(np.flatnonzero(counts[b])))
    size = int(counts[b, v])
    if random.random() < 0.5:
        size = int(random.integers(1, size + 1))
    return b, v, int(random.integers(counts.shape[1])), size


def _moves(counts: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Yield bin, scale, other scale and size of every move that the present counts allow."""
    n_bins, n_scales = counts.shape
    for b in range(n_bins):
        for v in range(n_scales):
            for w in range(n_scales):
                size = int(counts[b, v]) if v != w else 0
                while size > 0:
                    if size <= counts[b, v]:
                        yield b, v, w, size
                    size //= 2
