"""The tables of the NVO paper on a column: every mechanism at every epsilon, published beside ours."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equinoise import _checks
from equinoise.nvo import Histogram, NoiseGame, Profile

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EPSILONS", "MECHANISMS", "QUICK", "Tables", "compute", "published"]

EPSILONS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
# Ours, and what the paper calls the same thing.
MECHANISMS = {
    "best response, paper's scales": "brd",
    "best response, default scales": "brd",
    "annealing, default scales": "brd",
    "genetic, paper's scales": "approx_enum",
    "Laplace, paper": "laplace",
    "Laplace, amplified": None,
    "Laplace, smallest": None,
}
QUICK = tuple(name for name in MECHANISMS if "genetic" not in name)
_MEASURES = ("kl", "sd_l1", "jaccard", "cosine")


@dataclass(frozen=True, eq=False)
class Tables:
    """Profiles of every mechanism at every epsilon.

    Attributes
    ----------
    profiles : dict of (str, float) to Profile
    seconds : dict of (str, float) to float
        How long each took.
    lower_bound : dict of (str, float) to float
        No certified profile of the same scales has a smaller KL; by "paper" or "default", and epsilon.
    """

    profiles: dict[tuple[str, float], Profile]
    seconds: dict[tuple[str, float], float]
    lower_bound: dict[tuple[str, float], float]

    def to_frame(self, printed: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return one row a mechanism and epsilon, the published figures beside ours where they are given.

        Parameters
        ----------
        printed : pandas.DataFrame, optional
            As :func:`published` returns it.

        Returns
        -------
        pandas.DataFrame
            ``mechanism``, ``epsilon``, ``satisfied``, ``realised_epsilon``, ``seconds``, ``kl``,
            ``lower_bound``, ``sd_l1``, ``jaccard``, ``cosine``, and ``published_kl`` and so on.
        """
        import pandas as pd

        rows = []
        for (name, epsilon), profile in self.profiles.items():
            rule = "default" if "default" in name else "paper"
            row: dict[str, Any] = {
                "mechanism": name,
                "epsilon": epsilon,
                "satisfied": profile.n_satisfied,
                "realised_epsilon": profile.realised_epsilon,
                "seconds": self.seconds[name, epsilon],
                "lower_bound": float("nan") if "Laplace" in name else self.lower_bound[rule, epsilon],
            }
            row |= {measure: getattr(profile, measure) for measure in _MEASURES}
            if printed is not None:
                row |= _beside(printed, MECHANISMS[name], epsilon)
            rows.append(row)
        return pd.DataFrame(rows)


def published(path: str | os.PathLike[str], dataset: str) -> pd.DataFrame:
    """Return the paper's figures for one of its data sets.

    Parameters
    ----------
    path : path
        A CSV file with the columns dataset, algorithm, epsilon, minutes, kl, sd_l1, jaccard and cosine.
    dataset : str
        "nba_height", "income_899" or "income_10000".

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ValueError
        When the file knows no such data set.
    """
    import pandas as pd

    frame = pd.read_csv(path)
    _checks.choice("dataset", dataset, sorted(frame["dataset"].unique()))
    return frame[frame["dataset"] == dataset]


def _beside(printed: pd.DataFrame, algorithm: str | None, epsilon: float) -> dict[str, float]:
    row = printed[(printed["algorithm"] == algorithm) & (printed["epsilon"] == epsilon)]
    names = ("minutes", *_MEASURES)
    return {f"published_{name}": float(row[name].iloc[0]) if len(row) else float("nan") for name in names}


def compute(
    histogram: Histogram,
    epsilons: tuple[float, ...] = EPSILONS,
    *,
    mechanisms: tuple[str, ...] = QUICK,
    seed: int = 0,
) -> Tables:
    """Solve every game of the tables.

    Parameters
    ----------
    histogram : Histogram
    epsilons : tuple of float
        Of one draw.
    mechanisms : tuple of str
        Of :data:`MECHANISMS`; by default all but the slow genetic search.
    seed : int

    Returns
    -------
    Tables

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.
    """
    for name in mechanisms:
        _checks.choice("mechanisms", name, MECHANISMS)
    profiles, seconds, bounds = {}, {}, {}
    for given in epsilons:
        epsilon = _checks.epsilon(given, "epsilons", allow_infinite=False)
        games = {rule: NoiseGame(histogram, epsilon, rule) for rule in ("paper", "default")}
        for name in mechanisms:
            begun = time.perf_counter()
            profiles[name, epsilon] = _solved(games, name, seed)
            seconds[name, epsilon] = time.perf_counter() - begun
        for rule, game in games.items():
            if any(rule in name and "Laplace" not in name for name in mechanisms):
                bounds[rule, epsilon] = game.lower_bound()
    return Tables(profiles, seconds, bounds)


def _solved(games: dict[str, NoiseGame], name: str, seed: int) -> Profile:
    how, what = name.split(", ")
    if how == "Laplace":
        return games["paper"].laplace(what)
    game = games["default" if "default" in what else "paper"]
    if how == "annealing":
        return game.anneal(seed=seed)
    if how == "genetic":
        return game.genetic(seed=seed)
    return game.best_response(seed=seed)
