"""The noise variance optimisation game: every record chooses the scale of the noise that is added to it."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equinoise import _checks, replicates
from equinoise._random import stream_key
from equinoise._typing import Any, ArrayLike, Executor, Floats, Ints, PathLike
from equinoise.nvo.histogram import Histogram, sealed
from equinoise.nvo.noise import LaplaceNoise, chosen_scales, masses, uniform_scale
from equinoise.nvo.profile import Evaluation, Profile, evaluate
from equinoise.nvo.registry import INTERRUPTED, SEARCHES
from equinoise.nvo.search import dynamics

_LARGEST = 2**31  # bytes
LEAST = 1e-15  # epsilon: what a record loses below it, the rounding of masses hides


def known(seed: int | None) -> int:
    """Return a seed, one of the operating system's for None: who has it can search again."""
    return int(stream_key(None)[0]) if seed is None else _checks.integer("seed", seed, 0)


def checked_epsilon(value: object) -> float:
    """Return epsilon of a row, or of counts: finite, and not so small that rounding hides it."""
    level = _checks.epsilon(value, allow_infinite=False)
    if level < LEAST:
        raise ValueError(f"epsilon must be at least 1e-15 for a row (less is lost in rounding), got {level}")
    return level


def checked_restarts(restarts: object, size: int) -> int:
    """Return the number of runs, whose counts, so many numbers each, are kept until the last has ended."""
    number: int = SEARCHES["best-response"].options["restarts"].check("restarts", restarts)
    if 8 * number * size > _LARGEST:
        raise ValueError(f"restarts must be few enough for 2 GiB, got {number:,} of {8 * size:,} bytes each")
    return number


class Game:
    """What games of all families of noise share: records, scales, noise, and profiles with their evaluation.

    A family's class sets `histogram`, `epsilon` and `scales`, and has the noise matrix, `noise`. A record is
    satisfied by epsilon where `delta` is 0, else by (epsilon, delta).
    """

    histogram: Any
    epsilon: float
    scales: Any
    noise: Any  # a Noise
    delta: float = 0.0
    asked: Any = None  # scales by what follows from the records, where these were asked for

    def _begin(self, kind: type) -> float:
        """Check the histogram and epsilon, which is kept and returned."""
        _checks.instance("histogram", self.histogram, kind)
        self._keep("epsilon", checked_epsilon(self.epsilon))
        return self.epsilon

    def _keep(self, name: str, value: Any) -> None:
        """Set a field of a frozen class, once; arrays are sealed."""
        object.__setattr__(self, name, sealed(value) if isinstance(value, np.ndarray) else value)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.histogram.n)

    def evaluate(self, counts: ArrayLike) -> Evaluation:
        """Evaluate counts int64[K, V], which add up to the histogram over V, from the definition."""
        counts = self._counts(counts)
        return evaluate(self.noise, self.histogram.counts, counts, self.epsilon, self.delta)

    def _counts(self, counts: ArrayLike) -> Ints:
        return dynamics.checked_counts("counts", counts, self.histogram.counts, len(self.scales))

    def profile(self, counts: ArrayLike, method: str = "given", **found: Any) -> Profile:
        """Return a profile of this game from its counts, int64[K, V]."""
        game: Any = self
        return Profile(game, sealed(np.array(self._counts(counts))), method, **found)

    def uniform(self, v: int = 0, method: str = "uniform") -> Profile:
        """Return the profile in which all records use scale v."""
        v = _checks.integer("v", v, 0, len(self.scales) - 1)
        return self.profile(dynamics.uniform(self.histogram.counts, len(self.scales), v), method)


class LimitedGame(Game):
    """A game in which limits at every bin satisfy a record, which is what the compiled searches look at.

    They take the rows of the noise matrix of bins with records, and refuse where these take more than 2 GiB.
    """

    @cached_property
    def _searched(self) -> tuple[Floats, Ints, float]:
        """What searches take: the noise matrix of the bins with records, the histogram, epsilon."""
        counts = self.histogram.counts
        return masses(self.noise, np.flatnonzero(counts)), counts, self.epsilon

    def _run(self, search: str, progress: bool = False, **options: Any) -> Profile:
        """Return the profile that a search of :mod:`equinoise.nvo.search` ends with."""
        from equinoise.nvo.search import arrays

        options |= {"seed": known(options["seed"])} if "seed" in options else {}
        with replicates.showing(progress):
            found = getattr(arrays, search)(*self._searched, **options)
        by = (SEARCHES[search].method, options)
        how = {"seed": options.get("seed"), "converged": found.ended, "found_by": by}
        return self.profile(found.counts, SEARCHES[search].label, **how)

    def anneal(
        self,
        seed: int | None = 0,
        *,
        start: ArrayLike | None = None,
        steps: int = 9_000_000,
        replicate: int = 0,
        progress: bool = False,
    ) -> Profile:
        """Search by simulated annealing (Kirkpatrick et al., 1983) among certified profiles, then polish.

        Parameters
        ----------
        seed, replicate : int or None, int
            The same give the same bits; None takes randomness from the operating system.
        start : int64[K, V], optional
            A profile to start from. By default all use the scale with the widest noise that certifies all.
        steps, progress : int, bool
            Proposals, a microsecond each for a hundred bins (the most, 10^10, take hours); a bar on stderr.

        Notes
        -----
        Ctrl-C ends it with the best profile so far and a warning; its profile says ``converged=False``.
        What is found is certified if any profile on the way was, never worse than a certified start, and then
        no record alone, nor all of a type, can lower the divergence; else it satisfied most records. A
        proposal moves all, one or some of a type's records to another scale of their bin, half of the time
        the next one, and two in five do that with two types, half of which exchange their scales. Steps never
        leave the certified profiles, and what they pay is the divergence. If no uniform profile is certified,
        a first run lowers the excess over the limits. Two steps in five are of short runs that leave out some
        of the widest scales, two go on with the best of these, and the last with all scales.
        """
        return self._run("anneal", progress, seed=seed, start=start, steps=steps, replicate=replicate)

    def genetic(
        self,
        seed: int | None = 0,
        *,
        generations: int = 200,
        population: int = 500,
        parents: int = 10,
        mutation: float = 0.05,
        kept: int = 5,
        progress: bool = False,
    ) -> Profile:
        """Search by a genetic algorithm over the records' options, the paper's appendix B.

        Parameters
        ----------
        generations, population : int
            Generations after the first, which is random, and the profiles of each.
        parents, kept : int
            The best of a generation, at least 2, of which children are made; and how many of these live on.
        mutation, progress : float, bool
            Probability of a record to change to another option, in every child; and whether to show a bar on
            stderr. Ctrl-C ends it as it does :meth:`anneal`.

        Notes
        -----
        What is found is the best of the last generation, certified only if it happens to be.
        """
        sizes = {"generations": generations, "population": population, "parents": parents, "kept": kept}
        return self._run("genetic", progress, seed=seed, mutation=mutation, **sizes)

    def exhaustive(self) -> Profile:
        """Look at every profile of a tiny game, see :func:`equinoise.nvo.search.exhaustive`."""
        return self._run("exhaustive")

    def lower_bound(
        self,
        *,
        nodes: int = 32,
        enough: float = np.inf,
        seconds: float = np.inf,
        progress: bool = False,
    ) -> float:
        """Return a KL that no certified profile goes below, see :func:`equinoise.nvo.bound.lower_bound`."""
        from equinoise.nvo.bound import lower_bound

        with replicates.showing(progress):
            return lower_bound(*self._searched, nodes=nodes, enough=enough, seconds=seconds)


@dataclass(frozen=True, eq=False)
class NoiseGame(LimitedGame):
    """Every record of a histogram chooses a noise scale; all share one payoff.

    Parameters
    ----------
    histogram, epsilon : Histogram, float
        n records in K bins, and what each asks for: finite, and at least 1e-15.
    scales : {"default", "paper", "extended"}, int or float64[V]
        What there is to choose from. "default" has the smallest uniform scale that is enough for these data,
        none (all mass in a record's own bin), and steps from where all bins are alike, most of them where
        epsilon lets records choose. "paper" are 3, 2, 1, 0.33 and 0.2 times sensitivity/epsilon, "extended"
        has 0.001 times it as well, an int asks for so many geometric steps, and an array gives the scales, in
        normalised units.

    Notes
    -----
    A record of bin k with scale v gives bin x the mass M[k, v, x], proportional to exp(-|x_k - x|/b_v) and
    adding up to one over the K bins. A draw is bin x with probability S[x]/n, S the sum over all records.
    The payoff is the number of records whose removal changes every probability by a factor of at most
    e^epsilon, plus 1 - KL/ln K, KL the divergence of the release from the histogram.

    Raises ValueError for an epsilon or scales out of range, TypeError for what is no histogram or number.

    References
    ----------
    .. [1] *Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach*
       (anonymous, under review), section 4, equations 7, 8; for :meth:`laplace` definition 3.2, theorem 4.1.

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
        epsilon = self._begin(Histogram)
        self._keep("asked", self.scales if isinstance(self.scales, str | int) else None)
        self._keep("scales", chosen_scales(self.scales, self.histogram, epsilon))

    def __repr__(self) -> str:
        return f"NoiseGame({self.histogram!r}, epsilon={self.epsilon:g}, {len(self.scales)} scales)"

    @cached_property
    def noise(self) -> LaplaceNoise:
        """The noise matrix in O(K V) memory."""
        return LaplaceNoise.of(self.histogram.n_bins, self.scales)

    @cached_property
    def kernel(self) -> Floats:
        """The noise matrix M[k, v, x], float64[K, V, K], built on first use; refused above 2 GiB."""
        return masses(self.noise, np.arange(self.histogram.n_bins))

    def best_response(
        self,
        seed: int | None = 0,
        start: str | ArrayLike = "largest",
        restarts: int = 1,
        *,
        max_rounds: int = 10_000,
        executor: Executor | None = None,
        progress: bool = False,
        resume: str | PathLike[str] | None = None,
    ) -> Profile:
        """Let the records in turn take a best option until none wants another, the paper's Algorithm 1.

        Parameters
        ----------
        seed : int or None
            For the order of turns and a random start; None takes the operating system's randomness.
        start : {"largest", "random"} or int64[K, V]
            "largest" gives every record the largest scale: where that satisfies everybody, so does every
            profile after it. "random" draws each scale, as in the paper, and may end where some are not
            satisfied. Or a profile to start from.
        restarts, max_rounds : int
            Runs with different orders and starts, of which the best payoff is kept, and rounds after which
            one gives up; its profile says ``converged=False``. Ctrl-C ends it with the best of the runs that
            are done, if there are any, as it does :meth:`anneal`.
        executor, progress : concurrent.futures.Executor, bool
            Where restarts run, threads of this process by default, and whether to show a bar on stderr.
        resume : path, optional
            A folder for restarts that are done, as of :func:`equinoise.replicates.run`. It is not private.

        Notes
        -----
        From the profile no record alone gains more than 1e-12 by another scale. The payoff is a potential,
        so the dynamics end. The order of turns is drawn once. Of more than 65,535 records those of one bin
        and scale take turns in groups, whose order is drawn for every round, and so many move together that
        the first and the last would choose the same.

        Examples
        --------
        >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
        >>> NoiseGame(histogram, epsilon=1).best_response().converged
        True
        """
        counts, seed = self.histogram.counts, known(seed)
        by = ("best_response", {"seed": seed, "start": start, "restarts": restarts, "max_rounds": max_rounds})
        first = dynamics.checked_start(start, counts, self.scales)
        n = checked_restarts(restarts, len(counts) * len(self.scales))
        most = _checks.integer("max_rounds", max_rounds, 1)
        where: dict[str, Any] = {"executor": executor, "progress": progress, "resume": resume}
        found = [*dynamics.run(self.noise, counts, self.epsilon, first, seed, most, n_replicates=n, **where)]
        if fewer := len(found) < n:
            warnings.warn(INTERRUPTED, stacklevel=2)
        label, how = SEARCHES["best-response"].label, {"seed": seed, "found_by": by}
        runs = ((c, r, ended and not fewer) for c, r, ended in found)
        profiles = (self.profile(c, label, rounds=r, converged=ended, **how) for c, r, ended in runs)
        return max(profiles, key=lambda profile: profile.payoff)

    def laplace(self, rule: str = "paper") -> Profile:
        """Return a profile, of a game with this scale only, in which all use one: the Laplace mechanism.

        Parameters
        ----------
        rule : {"paper", "amplified", "smallest"}
            "paper" is sensitivity/epsilon, which takes no account of that one of n records is drawn;
            "amplified" (1 - 1/K)/ln(1 + n (e^epsilon - 1)), the smallest that is private for any n values in
            K bins; "smallest" the smallest that is private for these data, found by bisection.

        Examples
        --------
        >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
        >>> [NoiseGame(histogram, 1).laplace(rule).certified for rule in ("paper", "amplified", "smallest")]
        [True, True, True]
        """
        scale = uniform_scale(self.histogram, self.epsilon, rule)
        return NoiseGame(self.histogram, self.epsilon, np.array([scale])).uniform(0, f"Laplace, {rule}")
