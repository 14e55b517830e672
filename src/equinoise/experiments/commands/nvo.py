"""A release of one column: from a file to a certified profile and a sample of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise import _checks, replicates
from equinoise.experiments.commands.release import Release
from equinoise.nvo import Histogram, NoiseGame, Profile, registry
from equinoise.nvo.columns import Column, read_column
from equinoise.nvo.release.budget import epsilon_for_total
from equinoise.nvo.release.certificate import certificate
from equinoise.nvo.release.draw import MAX_ROWS
from equinoise.nvo.scales import positive

__all__ = ["SEARCHES", "Parameters", "baselines", "prepare", "release", "solve"]

SEARCHES = tuple(name for name, row in registry.SEARCHES.items() if row.profile)
LAPLACE = ("paper", "amplified", "smallest")


@dataclass(frozen=True)
class Parameters:
    """What a release depends on, checked when made.

    Attributes
    ----------
    path : str
        A CSV file with a header.
    column : str
        Its column that is released.
    epsilon : float or None
        Of one drawn row; or instead:
    total_epsilon : float or None
        Of all drawn rows together.
    bounds : (float, float) or None
        Smallest and largest value that anybody could have; the data's own by default, which is a leak.
    rows : int or None
        Rows of the sample; as many as there are records by default.
    bins : int
        Bins of the range, K.
    scales : str, int or tuple of float
        "default", "paper", a number of geometric steps, or scales in the units of the column.
    search : {"anneal", "best-response", "genetic"}
    restarts : int
        Searches from different seeds, of which the best is taken.
    seed : int or None
        Of the sample, which is then not private; None for the operating system's randomness. The search
        starts from 0 then, whose result is kept secret anyway.
    drop_missing : bool
        Leave out rows in which the column is empty.
    sep, decimal : str
        How the file, and the sample, is written.
    """

    path: str
    column: str
    epsilon: float | None = None
    total_epsilon: float | None = None
    bounds: tuple[float, float] | None = None
    rows: int | None = None
    bins: int = 101
    scales: str | int | tuple[float, ...] = "default"
    search: str = "anneal"
    restarts: int = 1
    seed: int | None = None
    drop_missing: bool = False
    sep: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.total_epsilon is None):
            raise ValueError("epsilon must be given, or else total_epsilon, and not both")
        if self.epsilon is not None:
            _checks.epsilon(self.epsilon, allow_infinite=False)
        if self.total_epsilon is not None:
            _checks.epsilon(self.total_epsilon, "total_epsilon", allow_infinite=False)
        _checks.choice("search", self.search, SEARCHES)
        _checks.integer("restarts", self.restarts, 1)
        if self.rows is not None:
            _checks.integer("rows", self.rows, 1, MAX_ROWS)
        if self.seed is not None:
            _checks.integer("seed", self.seed, 0)


def prepare(parameters: Parameters) -> tuple[Column, Histogram]:
    """Read the column and bin it, so that whatever is wrong with either shows before any work.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`equinoise.nvo.columns.read_column`, :class:`equinoise.nvo.Histogram` and
        :class:`equinoise.nvo.NoiseGame` raise them.
    """
    column = read_column(
        parameters.path,
        parameters.column,
        sep=parameters.sep,
        decimal=parameters.decimal,
        drop_missing=parameters.drop_missing,
    )
    histogram = Histogram.from_values(column.values, parameters.bins, bounds=parameters.bounds)
    epsilon = parameters.epsilon or parameters.total_epsilon or math.nan
    NoiseGame(histogram, epsilon, _normalised(parameters.scales, histogram))
    return column, histogram


def _normalised(scales: Any, histogram: Histogram) -> Any:
    """Return scales as :class:`NoiseGame` takes them."""
    if not isinstance(scales, tuple):
        return scales
    start, stop = histogram.range
    return positive("scales", scales) / (stop - start)


class _Task:
    """A search from several seeds, picklable."""

    def __init__(self, histogram: Histogram, epsilon: float, scales: Any, search: str, seed: int) -> None:
        self.histogram, self.epsilon, self.scales = histogram, epsilon, scales
        self.search, self.seed = search, seed

    def game(self) -> NoiseGame:
        return NoiseGame(self.histogram, self.epsilon, self.scales)

    def __call__(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        game = self.game()
        find: Callable[[int], Profile] = getattr(game, registry.SEARCHES[self.search].method)
        found = [find(self.seed + r) for r in range(start, stop)]
        return {
            "counts": np.stack([profile.counts for profile in found]),
            "converged": np.array([profile.converged for profile in found]),
            "rounds": np.array([profile.rounds for profile in found]),
        }


def solve(
    histogram: Histogram,
    epsilon: float,
    *,
    scales: Any = "default",
    search: str = "anneal",
    restarts: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool | str = False,
) -> Profile:
    """Search from several seeds and return the best profile: most records satisfied, then the least KL.

    Parameters
    ----------
    histogram : Histogram
    epsilon : float
    scales
        As :class:`equinoise.nvo.NoiseGame` takes them.
    search : {"anneal", "best-response", "genetic"}
    restarts : int
        Seeds from `seed` on.
    seed : int
    executor : concurrent.futures.Executor, optional
        Where searches run; threads of this process by default.
    progress : bool or str
        Show a bar on stderr where that is a terminal; a string names it.

    Returns
    -------
    Profile
    """
    task = _Task(histogram, epsilon, scales, _checks.choice("search", search, SEARCHES), seed)
    n = _checks.integer("restarts", restarts, 1)
    found = replicates.run(task, n, block=1, executor=executor, progress=progress)
    game, label = task.game(), registry.SEARCHES[search].label
    profiles = [
        game.profile(counts, label, seed=seed + r, converged=bool(converged), rounds=int(rounds))
        for r, (counts, converged, rounds) in enumerate(zip(*found.values(), strict=True))
    ]
    return max(profiles, key=lambda profile: (profile.n_satisfied, -profile.kl))


def baselines(histogram: Histogram, epsilon: float) -> dict[str, Profile]:
    """Return the three Laplace mechanisms that a profile is compared with, by what tables call them.

    "paper" has the scale sensitivity/epsilon and ignores that only one record in n is drawn; "amplified" is
    the least scale that is private whatever the data, and "smallest" the least that is for these data.
    """
    game = NoiseGame(histogram, epsilon)
    return {f"Laplace, {rule}": game.laplace(rule) for rule in LAPLACE}


def release(
    column: Column,
    histogram: Histogram,
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Release:
    """Solve the game, compare, certify, and draw the sample where every record is satisfied.

    Parameters
    ----------
    column : Column
    histogram : Histogram
        As :func:`prepare` returns them.
    parameters : Parameters
    executor : concurrent.futures.Executor, optional
        Where restarts run; threads of this process by default.
    progress : bool
        Show a bar for each search on stderr where that is a terminal.
    working : callable
        From what is done between searches to a context in which it is done, for a spinner.

    Returns
    -------
    Release
    """
    begun = time.perf_counter()
    rows = histogram.n if parameters.rows is None else parameters.rows

    def found(epsilon: float) -> Profile:
        return solve(
            histogram,
            epsilon,
            scales=_normalised(parameters.scales, histogram),
            search=parameters.search,
            restarts=parameters.restarts,
            seed=parameters.seed or 0,
            executor=executor,
            progress=progress and f"{parameters.search}, epsilon {epsilon:.4g}",
        )

    within = True
    if parameters.epsilon is not None:
        profile = found(parameters.epsilon)
    else:
        budget = epsilon_for_total(found, parameters.total_epsilon or math.nan, rows)
        profile, within = budget.profile, budget.composition is not None
    with working("bounding what any profile can reach"):
        lower_bound = profile.game.lower_bound()
        others = baselines(histogram, profile.game.epsilon)
    with working(f"composing {rows:,} rows"):
        facts = certificate(profile, rows, parameters.seed)
    sample = profile.sample(rows, parameters.seed) if profile.certified and within else None
    seconds = time.perf_counter() - begun
    return Release(parameters, column, profile, others, lower_bound, facts, sample, seconds)
