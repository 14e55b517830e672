"""The tables of the NVO paper on one column: every mechanism at every epsilon, published figures and ours."""

import math
import os
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equinoise import _checks
from equinoise._typing import Any, DataFrame, Floats, Iterator, Mapping, NamedTuple
from equinoise.experiments.nvo import source as drawing
from equinoise.experiments.steps import Job, Progress, spread
from equinoise.nvo import Histogram, NoiseGame, Profile
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison, frame_of
from equinoise.report.figures import Curve, column as column_figure, curves


class Mechanism(NamedTuple):
    """How a mechanism is solved here, and what the paper calls the same thing."""

    printed: str | None
    scales: str
    method: str
    rule: str = ""  # of a Laplace mechanism; others are searches


MECHANISMS = {
    "best response, paper's scales": Mechanism("brd", "paper", "best_response"),
    "best response, extended scales": Mechanism("brd", "extended", "best_response"),
    "annealing, extended scales": Mechanism("brd", "extended", "anneal"),
    "genetic, paper's scales": Mechanism("approx_enum", "paper", "genetic"),
    "Laplace, paper": Mechanism("laplace", "paper", "laplace", "paper"),
    "Laplace, amplified": Mechanism(None, "paper", "laplace", "amplified"),
    "Laplace, smallest": Mechanism(None, "paper", "laplace", "smallest"),
}
QUICK = tuple(name for name in MECHANISMS if "genetic" not in name)
EPSILONS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
PUBLISHED = Path(__file__).with_name("published.csv")
DATASETS = {  # what they are, and where the paper prints its figures
    "nba_height": "heights of 1,307 basketball players, tables 1 and 3",
    "income_899": "incomes of 899 people, table 4",
    "income_10000": "incomes of 10,000 people, table 5",
}
_MEASURES = {"kl": "KL", "sd_l1": "L1 loss of SD", "jaccard": "Jaccard index", "cosine": "cosine similarity"}
_LARGER_IS_BETTER = ("jaccard", "cosine")
_DECIMALS = 4  # that the paper prints
_SHOWN = 1.0  # the epsilon of the drawn distributions
_TINY = Histogram.from_values([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0], 11)
_BEST, _PAPER = "annealing, extended scales", "best response, paper's scales"
_LAPLACE, _SMALLEST = "Laplace, paper", "Laplace, smallest"
_FASTER = "Here equal records share one compiled evaluation; there every record has its own."
_REASONS = {
    "best response, extended scales": "Other data, and one nearly-zero scale besides the paper's five.",
    _BEST: "Other data, one nearly-zero scale more, and a search that moves whole groups of records.",
    "genetic, paper's scales": "Other data; and a genetic search is a matter of chance and patience.",
}
_KEEP = (
    "These figures show the data and the noise scales. For data that must stay private, keep this report to "
    "yourself and use `equinoise nvo`, which separates what may be shared."
)

Printed = Mapping[tuple[str, float], Mapping[str, float]]  # measures by algorithm and epsilon


@dataclass(frozen=True, eq=False)
class Tables:
    """Profiles and seconds by mechanism and epsilon; by scales and epsilon what no certified KL is below."""

    profiles: dict[tuple[str, float], Profile]
    seconds: dict[tuple[str, float], float]
    lower_bound: dict[tuple[str, float], float]

    def to_frame(self) -> DataFrame:
        """Return one row per mechanism and epsilon."""
        rows = []
        for (name, epsilon), profile in self.profiles.items():
            how, own = MECHANISMS[name], [getattr(profile, measure) for measure in _MEASURES]
            least = math.nan if how.rule else self.lower_bound[how.scales, epsilon]
            took = self.seconds[name, epsilon]
            rows.append((name, epsilon, profile.n_satisfied, profile.realised_epsilon, took, least, *own))
        names = "mechanism", "epsilon", "satisfied", "realised_epsilon", "seconds", "lower_bound"
        return frame_of(rows, [*names, *_MEASURES])


def published(dataset: str, path: str | os.PathLike[str] = PUBLISHED) -> Printed:
    """Return the paper's figures for one of its data sets, a name of :data:`DATASETS`."""
    import pandas as pd

    frame: Any = pd.read_csv(path)
    _checks.choice("dataset", dataset, sorted(frame["dataset"].unique()))
    return dict(frame[frame["dataset"] == dataset].set_index(["algorithm", "epsilon"]).to_dict("index"))


def _printed(printed: Printed, name: str, epsilon: float, measure: str) -> float:
    """Return the paper's figure for a mechanism; NaN where it has none."""
    return printed.get((MECHANISMS[name].printed or "", epsilon), {}).get(measure, math.nan)


def compute(
    histogram: Histogram,
    epsilons: tuple[float, ...] = EPSILONS,
    *,
    mechanisms: tuple[str, ...] = QUICK,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = lambda share: None,
    **annealing: Any,
) -> Tables:
    """Solve every game of the paper's tables 1, 3, 4 and 5; threads work on one epsilon each."""
    for name in mechanisms:
        _checks.choice("mechanisms", name, MECHANISMS)
    searched = {MECHANISMS[name].scales for name in mechanisms if not MECHANISMS[name].rule}
    made = Tables({}, {}, {})

    def solve(epsilon: float) -> None:
        games = {scales: NoiseGame(histogram, epsilon, scales) for scales in ("paper", "extended")}
        for name in mechanisms:
            how, begun = MECHANISMS[name], time.perf_counter()
            search = getattr(games[how.scales], how.method)
            options = annealing if how.method == "anneal" else {}
            made.profiles[name, epsilon] = search(rule=how.rule) if how.rule else search(seed=seed, **options)
            made.seconds[name, epsilon] = time.perf_counter() - begun
        made.lower_bound.update({(scales, epsilon): games[scales].lower_bound() for scales in searched})

    chosen = [_checks.epsilon(epsilon, "epsilons", allow_infinite=False) for epsilon in epsilons]
    spread(solve, chosen, executor, progress)
    order = [(name, epsilon) for name in mechanisms for epsilon in chosen]
    ordered = {key: made.profiles[key] for key in order}, {key: made.seconds[key] for key in order}
    return Tables(*ordered, made.lower_bound)


def column(job: Job) -> Exhibit:
    """Solve every game of the paper's tables on one column, and show what the paper prints and ours."""
    (source, epsilons), settings = job.size, job.settings
    histogram = Histogram.from_values(source.load())
    mechanisms = tuple(MECHANISMS) if settings.full else QUICK
    # the first compiles: the times of the tables are those of the work
    compute(_TINY, (_SHOWN,), mechanisms=mechanisms)
    how: Any = {"executor": job.executor, "progress": job.progress, **drawing.annealing(settings)}
    tables = compute(histogram, epsilons, mechanisms=mechanisms, seed=settings.seed, **how)
    printed, what = published(source.published), source.what
    return job.row.exhibit(
        question="How accurate is a release where each record gets the least noise it needs?",
        headline=_headline(tables, printed),
        text=_text(histogram, what, tables, printed, given=settings.csv is not None),
        tables={
            "measures": Table(
                "Every mechanism and epsilon; no certified profile of its scales is below the lower bound",
                tables.to_frame(),
            ),
            "published": Table(
                f"Published figures ({DATASETS[source.published]}) and ours ({what})",
                comparison(_claims(tables, printed, what)),
            ),
        },
        figures={"kl": _kl_picture(tables, printed, what), **_pictures(tables, source.unit)},
    )


def _headline(tables: Tables, printed: Printed) -> str:
    """Return the result at the smallest published epsilon of at least 1, in one line."""
    epsilon = min(e for _, e in tables.profiles if e >= 1.0)
    best, laplace = tables.profiles[_BEST, epsilon], tables.profiles[_LAPLACE, epsilon]
    return (
        f"At epsilon {epsilon:g} {'every' if best.certified else 'not every'} record is satisfied, with a KL "
        f"divergence of {best.kl:.4f} nats (best possible with these scales at least "
        f"{tables.lower_bound['extended', epsilon]:.4f}); paper, other data: "
        f"{_printed(printed, _BEST, epsilon, 'kl'):.4f}; uniform Laplace here: {laplace.kl:.2f}."
    )


def _text(
    histogram: Histogram, what: str, tables: Tables, printed: Printed, *, given: bool
) -> tuple[str, ...]:
    """Return the paragraphs of a column's exhibit; `given` for a column of the user's file."""
    searches = [profile for (name, _), profile in tables.profiles.items() if not MECHANISMS[name].rule]
    certified = sum(profile.certified for profile in searches)
    shares = [made.realised_epsilon / e for (name, e), made in tables.profiles.items() if name == _LAPLACE]
    paragraphs = (
        f"{what[0].upper()}{what[1:]} in {histogram.n_bins} bins; bounds from the data, as in the paper. In "
        f"{certified} of {len(searches)} searches every record is satisfied, checked from the definition.",
        f"The paper's Laplace mechanism ignores that one record in {histogram.n:,} is drawn: its actual "
        f"epsilon is at most {100.0 * max(shares):.2g}% of the nominal one. So there are two more: the least "
        "uniform scale that is enough for any data (amplified), and for these (smallest).",
        "Why ours differs from what was published: these are other data. And with the paper's five scales "
        f"best response ends far from its figures, near the lower bound. {_level(tables, printed)}",
    )
    return (*paragraphs, _KEEP) if given else paragraphs


def _level(tables: Tables, printed: Printed) -> str:
    """Say at how many epsilons annealing reaches the published KL, and whether the rest could be reached."""
    figures = {e: _printed(printed, _BEST, e, "kl") for name, e in tables.profiles if name == _BEST}
    known = {e: figure for e, figure in figures.items() if not math.isnan(figure)}
    missed = [e for e, figure in known.items() if round(tables.profiles[_BEST, e].kl, _DECIMALS) > figure]
    said = (
        "With one nearly-zero scale more, annealing is at or below the published KL at "
        f"{len(known) - len(missed)} of {len(known)} epsilons."
    )
    if missed and all(tables.lower_bound["extended", e] > known[e] for e in missed):
        return said + " Where it is not, the lower bound says that on these data nothing certified is."
    return said


def _claims(tables: Tables, printed: Printed, what: str) -> Iterator[Claim]:
    """Yield every published figure and ours: four measures and the time of each mechanism and epsilon."""
    for (name, epsilon), profile in tables.profiles.items():
        for measure, label in _MEASURES.items():
            figure = _printed(printed, name, epsilon, measure)
            if not math.isnan(figure):
                ours = float(getattr(profile, measure))
                worse = ours < figure if measure in _LARGER_IS_BETTER else ours > figure
                why = _why(tables, name, epsilon, printed, what, worse=worse)
                yield Claim(f"{label}, {name}, epsilon {epsilon:g}", figure, ours, why, _DECIMALS)
        minutes = _printed(printed, name, epsilon, "minutes")
        if not math.isnan(minutes):
            quantity, took = f"seconds, {name}, epsilon {epsilon:g}", tables.seconds[name, epsilon]
            yield Claim(quantity, 60.0 * minutes, took, _FASTER)


def _why(tables: Tables, name: str, epsilon: float, printed: Printed, what: str, *, worse: bool) -> str:
    """Return why a measure of ours differs; `worse` says in which direction."""
    if name == _LAPLACE:
        return f"The same mechanism on other data: {what}."
    bound = tables.lower_bound.get(("paper", epsilon), 0.0)
    if name == _PAPER and worse and bound > _printed(printed, name, epsilon, "kl"):
        return f"With these five scales no certified profile of these data has a KL below {bound:.4g}."
    return _REASONS.get(name, f"Other data: {what}.")


def _kl_picture(tables: Tables, printed: Printed, what: str) -> Picture:
    """Draw KL over epsilon: ours, the lower bound, and what was published."""
    epsilons = sorted({epsilon for _, epsilon in tables.profiles})
    names = (_BEST, _PAPER, _LAPLACE, _SMALLEST)
    series = []
    for name in names:
        found = [tables.profiles[name, epsilon].kl for epsilon in epsilons]
        series.append(Curve(name, epsilons, _positive(found)))
        scales = MECHANISMS[name].scales
        if not MECHANISMS[name].rule:
            least = _positive([tables.lower_bound[scales, epsilon] for epsilon in epsilons])
            series.append(Curve(f"lower bound, {scales} scales", epsilons, least, kind="bound"))
    for name, label in ((_BEST, "published, best response"), (_LAPLACE, "published, Laplace")):
        values = _positive([_printed(printed, name, epsilon, "kl") for epsilon in epsilons])
        series.append(Curve(label, epsilons, values, kind="published"))
    axes: Any = {"horizontal": "ε of one row", "vertical": "KL from the original (nats)"}
    axes |= {"logarithmic": "xy", "ticks": epsilons}
    shown = epsilons[len(epsilons) // 2]
    return Picture(
        f"Divergence of the release from the original over epsilon, {what}, and the published figures",
        f"Both axes are logarithmic. At epsilon {shown:g}: {_said(tables, names, shown)}; lower bound of the "
        f"extended scales {tables.lower_bound['extended', shown]:.3g}. Hollow points alone are published.",
        column_figure(lambda ax: curves(ax, series, **axes), 5.0),
    )


def _said(tables: Tables, names: tuple[str, ...], epsilon: float) -> str:
    return ", ".join(f"{name} {tables.profiles[name, epsilon].kl:.3g}" for name in names)


def _positive(values: list[float]) -> Floats:
    """Return values for a logarithmic axis, on which zero has no place: NaN leaves it out."""
    given = np.array(values)
    return np.where(given > 0.0, given, np.nan)


def _pictures(tables: Tables, unit: str) -> dict[str, Picture]:
    """Draw the original with what NVO and Laplace release, and which scales records of each value use."""
    names = (_BEST, _PAPER, _LAPLACE)
    profiles = {name: tables.profiles[name, _SHOWN] for name in (*names, _SMALLEST)}
    shown, uniform = ({name: profiles[name] for name in some} for some in (names, (_LAPLACE, _SMALLEST)))
    profile = profiles[_BEST]
    quiet = profile.counts[:, int(profile.game.scales.argmin())].sum() / profile.game.n
    distribution = Picture(
        f"What is released at ε = {_SHOWN:g}, and the original",
        f"Grey is the original. Divergences of the releases from it: {_said(tables, names, _SHOWN)}.",
        column_figure(lambda ax: drawing.released(ax, shown, unit)),
    )
    noise = Picture(
        f"How much noise records have by their value, ε = {_SHOWN:g}; larger points are more records",
        f"{quiet:.0%} of the records use the smallest scale, nearly no noise. Lines are uniform scales.",
        column_figure(lambda ax: drawing.noise(ax, profile, uniform, unit)),
    )
    return {"distribution": distribution, "noise": noise}
