"""A profile: how many records of every bin use each noise scale, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise._typing import Axes, DataFrame, Floats, Ints

if TYPE_CHECKING:
    from equinoise.nvo.evaluation import Evaluation
    from equinoise.nvo.game import NoiseGame

_SEEN = 0.001  # the Jaccard index looks at bins of a larger probability


@dataclass(frozen=True, eq=False)
class Profile:
    """What every record chose, its privacy and what is left of the data: K bins, V scales, n records.

    The same for every family of noise. With two columns a bin is a cell of their grid.

    Attributes
    ----------
    game : Game
        With the histogram, epsilon and the scales.
    counts : int64[K, V]
        Records of bin k that use scale v. Records of one bin are alike, so this is all there is to know.
    method, seed : str, int or None
        How it was found.
    converged, rounds : bool, int
        Whether the method ended by its own rule and not by a limit on its rounds; and these.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), section 4.2 (payoff) and appendix C.3 (measures of utility).

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([1, 2, 2, 3, 3, 3], n_bins=7, bounds=(0, 5))
    >>> profile = NoiseGame(histogram, 2.0).best_response()
    >>> profile.counts.sum(), profile.scale_of.shape, float(profile.pmf.sum().round(12))
    (np.int64(6), (6,), 1.0)
    """

    game: NoiseGame  # or another family's, which has the same face but for its searches
    counts: Ints
    method: str = "given"
    seed: int | None = None
    converged: bool = True
    rounds: int = 0

    def __repr__(self) -> str:
        found = f"{self.n_satisfied} of {self.game.n} satisfied"
        return f"Profile({self.method}, epsilon={self.game.epsilon:g}, {found}, kl={self.kl:.4g})"

    @cached_property
    def evaluation(self) -> Evaluation:
        """The profile's evaluation, from the definition."""
        return self.game.evaluate(self.counts)

    @property
    def pmf(self) -> Floats:
        """Probability that a bin is released, float64[K]."""
        return self.evaluation.pmf

    @property
    def n_satisfied(self) -> int:
        """Number of records that have what the game asks for."""
        return self.evaluation.n_satisfied

    @property
    def certified(self) -> bool:
        """Whether every record is satisfied."""
        return self.n_satisfied == self.game.n

    @property
    def realised_epsilon(self) -> float:
        """The largest epsilon of any record, for its removal; infinite when one could be revealed."""
        return self.evaluation.realised_epsilon

    @property
    def realised_epsilon_addition(self) -> float:
        """The same for the addition of one more record of a type that is there already."""
        return self.evaluation.realised_epsilon_addition

    @cached_property
    def delta_of(self) -> tuple[Floats, Floats]:
        """Delta of every type at the game's epsilon, for removal and for addition, float64[K, V] each."""
        from equinoise.nvo.evaluation import deltas

        return deltas(self.game.noise, self.counts, self.game.epsilon)

    @property
    def realised_delta(self) -> float:
        """The largest delta of any record at the game's epsilon, for its removal."""
        return float(self.delta_of[0].max())

    @property
    def payoff(self) -> float:
        """n_satisfied + 1 - kl/ln K, which all records share."""
        return self.evaluation.payoff

    @property
    def kl(self) -> float:
        """Kullback-Leibler divergence of what is released from the histogram, in nats."""
        return self.evaluation.kl

    @cached_property
    def sd_l1(self) -> float:
        """Difference of the standard deviations before and after, normalised; the sum over columns."""
        p, q = self.game.histogram.pmf, self.pmf
        return sum(float(abs(_sd(x, p) - _sd(x, q))) for x in np.atleast_2d(self.game.histogram.midpoints))

    @cached_property
    def jaccard(self) -> float:
        """Bins of probability above 0.001 in both histogram and release, as a share of those in either."""
        before, after = self.game.histogram.pmf > _SEEN, self.pmf > _SEEN
        either = int((before | after).sum())
        return int((before & after).sum()) / either if either else 1.0

    @cached_property
    def cosine(self) -> float:
        """Cosine of the angle between histogram and release."""
        p, q = self.game.histogram.pmf, self.pmf
        return float(p @ q / np.sqrt((p @ p) * (q @ q)))

    @cached_property
    def scale_of(self) -> Floats:
        """Noise scale of each record, float64[n] in input order; the first of a bin take its first scale."""
        bin_of = self.game.histogram.bin_of
        result, each = np.empty(len(bin_of)), np.tile(self.game.scales, len(self.counts))
        result[np.argsort(bin_of, kind="stable")] = np.repeat(each, self.counts.reshape(-1))
        result.flags.writeable = False
        return result

    def to_frame(self) -> DataFrame:
        """Return one row per bin: midpoint (of pairs first, second), histogram, released and mean_scale."""
        import pandas as pd

        bins = np.arange(len(self.counts))
        units: Any = self.game.histogram.to_units(bins)
        places = {"first": units[0], "second": units[1]} if isinstance(units, tuple) else {"midpoint": units}
        mean = self.counts @ self.game.scales / np.maximum(self.counts.sum(axis=1), 1)
        what = {"histogram": self.game.histogram.pmf, "released": self.pmf, "mean_scale": mean}
        return pd.DataFrame({"bin": bins, **places, **what})

    def summary(self) -> DataFrame:
        """Return one row: method, epsilon, satisfied, realised epsilon, and the measures of utility."""
        import pandas as pd

        names = ("n_satisfied", "certified", "realised_epsilon", "realised_epsilon_addition", "payoff")
        measures = ("kl", "sd_l1", "jaccard", "cosine", "converged", "rounds")
        row = {"method": self.method, "epsilon": self.game.epsilon}
        return pd.DataFrame([row | {name: getattr(self, name) for name in names + measures}])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the histogram and what is released, in the data's units (of two columns by cells)."""
        from equinoise.report import pictures

        bins: Any = np.arange(len(self.counts))
        units: Any = self.game.histogram.to_units(bins)
        values, unit = (bins, "cell") if isinstance(units, tuple) else (units, "value")
        parts = self.game.histogram.pmf, [(self.method, self.pmf)]
        return pictures.distributions(ax, *parts, values=values, unit=unit)

    def certificate(self) -> dict[str, Any]:
        """Return what is and is not protected, for JSON; see :mod:`equinoise.nvo.release.certificate`."""
        from equinoise.nvo.release.certificate import certificate

        return certificate(self)

    def sample(self, size: int, seed: int | None = None, *, allow_uncertified: bool = False) -> Any:
        """Draw rows, in the data's units, per column; see :func:`equinoise.nvo.release.sample`."""
        from equinoise.nvo.release.draw import sample

        return sample(self, size, seed, allow_uncertified=allow_uncertified)


def _sd(x: Floats, p: Floats) -> Any:
    return np.sqrt(max(0.0, float(p @ (x - p @ x) ** 2)))
