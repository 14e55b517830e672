"""Gaussian noise and (epsilon, delta): delta of every record, exactly, on the bins.

With delta a record may be revealed outright with a small probability. That says something only where delta is
far below 1/n: handing out one whole record of n, without any noise, is (0, 1/n)-private.
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import Any, Floats, Ints, Iterator
from equinoise.nvo import kernels
from equinoise.nvo.game import Game, known
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import exponentials, named
from equinoise.nvo.profile import Profile, deltas, sticks
from equinoise.nvo.registry import INTERRUPTED, SEARCHES
from equinoise.nvo.search.dynamics import uniform

__all__ = ["GaussianGame", "GaussianNoise", "deltas"]

_FAR_BELOW = 0.1  # of 1/n, above which delta is warned about
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
        mass = exponentials(-0.5 * (distance[:, None, :] / self.scales[:, None]) ** 2)
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
        Records, and what each asks for: finite, and at least 1e-15.
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

    def solve(self, seed: int | None = 0, *, progress: bool = False) -> Profile:
        """Search by annealing from everybody at the largest scale, and never leave what satisfies all.

        With a bar on stderr where `progress`; Ctrl-C ends it with the best profile so far.
        """
        seed, bins = known(seed), np.flatnonzero(self.histogram.counts)
        walk = _Walk(self, bins)
        with replicates.showing(progress):
            rounds, ended = walk.anneal(seed)
        counts = np.zeros((self.histogram.n_bins, len(self.scales)), dtype=np.int64)
        counts[bins] = walk.counts
        how: dict[str, Any] = {"rounds": rounds, "converged": ended, "found_by": ("solve", {"seed": seed})}
        return self.profile(counts, SEARCHES["anneal"].label, seed=seed, **how)


class _Walk:
    """A profile int64[B, V] of the bins with records that satisfies all, and moves that keep it so.

    Here a record is satisfied by a sum over the bins, not by limits at each of them, and what makes the
    compiled searches quick says nothing about such a sum: this one looks at all records after every move, for
    a hundred bins or so. Of KL it knows all but a constant.
    """

    def __init__(self, game: GaussianGame, bins: Ints) -> None:
        self.game, self.bins = game, bins
        self.masses, self.p = game.noise.rows(bins), game.histogram.pmf[bins]
        self.begin(uniform(game.histogram.counts[bins], len(game.scales), int(game.scales.argmax())))

    def begin(self, counts: Ints) -> None:
        self.counts = counts
        self.add_up()
        self.kl = kernels.kullback_leibler(self.p, self.total[self.bins])

    def add_up(self) -> None:
        total = np.zeros((1, self.masses.shape[2]))
        kernels.add_all(self.masses.reshape(-1, total.size), self.counts.reshape(-1), total)
        self.total = total[0]

    def satisfied(self, total: Floats) -> bool:
        lost = sticks(total, self.masses[self.counts > 0], self.game.n, -1, self.game.epsilon)
        return bool((lost <= _INSIDE * self.game.delta).all())

    def move(self, b: int, v: int, w: int, size: int, below: float) -> bool:
        """Move records of a bin between two scales if KL is then below a limit and all are satisfied."""
        total = self.total + size * (self.masses[b, w] - self.masses[b, v])
        kl = kernels.kullback_leibler(self.p, total[self.bins])
        if not kl < below:
            return False
        self.counts[b, [v, w]] += -size, size
        if not self.satisfied(total):
            self.counts[b, [v, w]] += size, -size
            return False
        self.total, self.kl = total, kl
        return True

    def anneal(self, seed: int, steps: int = 20_000) -> tuple[int, bool]:
        """Move random groups, at first also where KL grows, and descend from the best profile on the way.

        In a round of the descent every bin's records are offered every other scale: all of those with one
        scale, half of them, a quarter, down to one; it ends with a round without a move. Return the rounds,
        and whether it was not interrupted.
        """
        random = np.random.Generator(np.random.Philox(key=stream_key(seed)))
        best, lowest, rounds = self.counts.copy(), self.kl, 0
        try:
            for step in range(steps if self.satisfied(self.total) else 0):
                replicates.tick(1.0 / steps)
                temperature = _HOT * (_COLD / _HOT) ** (step / steps)
                b, v, w, size = self._any_move(random)
                if v == w or not self.move(b, v, w, size, self.kl + temperature * random.exponential()):
                    continue
                if self.kl < lowest:
                    best, lowest = self.counts.copy(), self.kl
            self.begin(best.copy())
            moved = self.satisfied(self.total)
            while moved and rounds < _ROUNDS:
                rounds, moved = rounds + 1, False
                for move in self._moves():
                    moved |= self.move(*move, self.kl - _GAIN)
                self.add_up()
                best = self.counts.copy()
        except KeyboardInterrupt:
            self.counts = best
            warnings.warn(INTERRUPTED, stacklevel=3)
            return rounds, False
        return rounds, True

    def _any_move(self, random: np.random.Generator) -> tuple[int, int, int, int]:
        """Return bin, scale, other scale and size of a random move: half of the time a whole group."""
        b = int(random.integers(len(self.counts)))
        v = int(random.choice(np.flatnonzero(self.counts[b])))
        most = int(self.counts[b, v])
        size = int(random.integers(1, most + 1)) if random.random() < 0.5 else most
        return b, v, int(random.integers(self.counts.shape[1])), size

    def _moves(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield bin, scale, other scale and size of every move that the present counts allow."""
        n_bins, n_scales = self.counts.shape
        for b, v, w in np.ndindex(n_bins, n_scales, n_scales):
            size = int(self.counts[b, v]) if v != w else 0
            while size > 0:
                if size <= self.counts[b, v]:
                    yield b, v, w, size
                size //= 2
