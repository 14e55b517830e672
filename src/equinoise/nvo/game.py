"""The noise variance optimisation game: every record chooses the scale of the noise that is added to it."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks
from equinoise.nvo import evaluation
from equinoise.nvo.evaluation import Evaluation
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.noise import LaplaceNoise, masses
from equinoise.nvo.profile import Profile
from equinoise.nvo.ratios import checked_counts
from equinoise.nvo.scales import chosen_scales, sufficient_scale, uniform_scale
from equinoise.nvo.search import dynamics

__all__ = ["NoiseGame"]


@dataclass(frozen=True, eq=False)
class NoiseGame:
    """Every record of a histogram chooses a noise scale; all share one payoff.

    Parameters
    ----------
    histogram : Histogram
        n records in K bins.
    epsilon : float
        What every record asks for: positive and finite.
    scales : {"default", "paper"}, int or float64[V]
        What there is to choose from. "paper" are 3, 2, 1, 0.33 and 0.2 times sensitivity/epsilon, "default"
        has 0.001 times it as well, an int asks for so many geometric steps, and an array gives the scales
        themselves, in normalised units.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Notes
    -----
    A record of bin k with scale v gives bin x the mass M[k, v, x], proportional to exp(-|x_k - x|/b_v) and
    adding up to one over the K bins. A draw from the release is bin x with probability S[x]/n, S the sum
    over all records. The payoff is the number of records whose removal changes every probability by a factor
    of at most e^epsilon, plus 1 - KL/ln K, KL the divergence of the release from the histogram.

    References
    ----------
    Section 4 of the paper, in counts: S, and so everything else, depends only on how many records of a bin
    use a scale.

    Examples
    --------
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
    >>> game = NoiseGame(histogram, epsilon=1, scales="paper")
    >>> profile, uniform = game.best_response(), game.laplace("amplified")
    >>> profile.certified, uniform.certified, profile.kl < uniform.kl
    (True, True, True)
    """

    histogram: Histogram
    epsilon: float
    scales: Any = "default"

    def __post_init__(self) -> None:
        if not isinstance(self.histogram, Histogram):
            raise TypeError(f"histogram must be a Histogram, got {_checks.shown(self.histogram)}")
        epsilon = _checks.epsilon(self.epsilon, allow_infinite=False)
        enough = sufficient_scale(self.n, self.histogram.n_bins, epsilon)
        scales = chosen_scales(self.scales, self.histogram.sensitivity, epsilon, enough)
        scales.flags.writeable = False
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "scales", scales)

    def __repr__(self) -> str:
        return f"NoiseGame({self.histogram!r}, epsilon={self.epsilon:g}, {len(self.scales)} scales)"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.histogram.n

    @cached_property
    def noise(self) -> LaplaceNoise:
        """The kernel's masses in O(K V) memory."""
        return LaplaceNoise.of(self.histogram.n_bins, self.scales)

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """Mass M[k, v, x] of noise of scale v added to bin k, at bin x: float64[K, V, K], built on first use.

        Raises
        ------
        ValueError
            When it would take more than 2 GiB.
        """
        return masses(self.noise, np.arange(self.histogram.n_bins))

    @cached_property
    def _searched(self) -> NDArray[np.float64]:
        """The kernel's rows of the bins with records, which is all that a search looks at."""
        return masses(self.noise, np.flatnonzero(self.histogram.counts))

    def evaluate(self, counts: ArrayLike) -> Evaluation:
        """Evaluate any profile from the definition.

        Parameters
        ----------
        counts : int64[K, V]
            Records of bin k that use scale v; over v they add up to the histogram.

        Returns
        -------
        Evaluation

        Raises
        ------
        TypeError, ValueError
            When `counts` do not fit the histogram.
        """
        bin_counts = self.histogram.counts
        given = checked_counts("counts", counts, bin_counts, len(self.scales))
        return evaluation.evaluate(self.noise, bin_counts, given, self.epsilon)

    def profile(self, counts: ArrayLike, method: str = "given", **found: Any) -> Profile:
        """Return a profile of this game from its counts, int64[K, V]."""
        kept = np.array(checked_counts("counts", counts, self.histogram.counts, len(self.scales)))
        kept.flags.writeable = False
        return Profile(self, kept, method, **found)

    def best_response(
        self,
        seed: int | None = 0,
        start: str | ArrayLike = "largest",
        restarts: int = 1,
        *,
        max_rounds: int = 10_000,
        executor: Executor | None = None,
        progress: bool = False,
    ) -> Profile:
        """Let the records in turn take a best option until none wants another.

        Parameters
        ----------
        seed : int or None
            For the order of turns, and for a random start. None takes randomness from the operating system.
        start : {"largest", "random"} or int64[K, V]
            "largest" gives every record the largest scale: where that satisfies everybody, so does every
            profile after it. "random" draws a scale for every record, as in the paper: it may end where some
            are not satisfied. Or a profile to start from.
        restarts : int
            Runs with different orders and starts, of which the best payoff is kept.
        max_rounds : int
            Rounds after which a run gives up; its profile says ``converged=False``.
        executor : concurrent.futures.Executor, optional
            Where restarts run; threads of this process by default.
        progress : bool
            Show a bar on stderr where that is a terminal.

        Returns
        -------
        Profile
            From which no record alone gains more than 1e-12 by another scale.

        Raises
        ------
        TypeError, ValueError
            When an argument is of the wrong kind or out of range.

        Notes
        -----
        The payoff is a potential, so the dynamics end. The order of turns is drawn once. Up to 65,535 records
        each take their own turn. Of more, records of one bin and scale take turns in groups, whose order is
        drawn for every round; of a group so many move together that the first and the last of them would
        choose the same. Either way the end is where no single record wants to move.

        Examples
        --------
        >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
        >>> profile = NoiseGame(histogram, epsilon=1).best_response()
        >>> profile.certified, profile.converged
        (True, True)
        """
        bin_counts = self.histogram.counts
        found = dynamics.run(
            self.noise.decay,
            self.noise.total,
            bin_counts,
            self.epsilon,
            start=dynamics.checked_start(start, bin_counts, self.scales),
            seed=seed,
            restarts=_checks.integer("restarts", restarts, 1),
            max_rounds=_checks.integer("max_rounds", max_rounds, 1),
            executor=executor,
            progress=progress,
        )
        profiles = (
            self.profile(run.counts, "best response", seed=seed, rounds=run.rounds, converged=run.converged)
            for run in found
        )
        return max(profiles, key=lambda profile: profile.payoff)

    def anneal(self, seed: int | None = 0, **options: Any) -> Profile:
        """Search by simulated annealing among certified profiles.

        Parameters
        ----------
        seed : int or None
            None takes randomness from the operating system.
        **options
            ``start``, ``steps`` and ``replicate`` of :func:`equinoise.nvo.search.anneal`.

        Returns
        -------
        Profile
            Certified if any profile on the way was.

        Raises
        ------
        TypeError, ValueError
            When an argument is of the wrong kind or out of range, or the kernel would take more than 2 GiB.
        """
        from equinoise.nvo.search.local import anneal

        found = anneal(self._searched, self.histogram.counts, self.epsilon, seed=seed, **options)
        return self.profile(found.counts, "annealing", seed=seed)

    def genetic(self, seed: int | None = 0, **options: Any) -> Profile:
        """Search by a genetic algorithm, the paper's approximate enumeration.

        Parameters
        ----------
        seed : int or None
            None takes randomness from the operating system.
        **options
            ``generations``, ``population``, ``parents``, ``mutation`` and ``kept`` of
            :func:`equinoise.nvo.search.genetic`.

        Returns
        -------
        Profile
            The best of the last generation; certified only if it happens to be.

        Raises
        ------
        TypeError, ValueError
            When an argument is of the wrong kind or out of range, or the kernel would take more than 2 GiB.
        """
        from equinoise.nvo.search.local import genetic

        found = genetic(self._searched, self.histogram.counts, self.epsilon, seed=seed, **options)
        return self.profile(found.counts, "genetic search", seed=seed)

    def lower_bound(self, **options: Any) -> float:
        """Return a KL that no certified profile goes below; infinite when it is proven that there is none.

        Parameters
        ----------
        **options
            ``nodes`` and ``enough`` of :func:`equinoise.nvo.bound.lower_bound`.

        Returns
        -------
        float
            In nats, never negative.

        Raises
        ------
        TypeError, ValueError
            When an argument is of the wrong kind or out of range, or the kernel would take more than 2 GiB.
        """
        from equinoise.nvo.bound.lower import lower_bound

        return lower_bound(self._searched, self.histogram.counts, self.epsilon, **options)

    def laplace(self, rule: str = "paper") -> Profile:
        """Return a profile in which all records use one scale: the Laplace mechanism.

        Parameters
        ----------
        rule : {"paper", "amplified", "smallest"}
            "paper" is sensitivity/epsilon, which takes no account of that one of n records is drawn.
            "amplified" is the smallest scale that is private for any data of n values in K bins,
            (1 - 1/K)/ln(1 + n (e^epsilon - 1)). "smallest" is the smallest that is private for these data,
            found by bisection.

        Returns
        -------
        Profile
            Of a game that has this scale only.

        Raises
        ------
        TypeError, ValueError
            When `rule` is none of the three.
        """
        scale = uniform_scale(self.histogram, self.epsilon, rule)
        game = NoiseGame(self.histogram, self.epsilon, np.array([scale]))
        return game.profile(self.histogram.counts[:, None], f"Laplace, {rule}")
