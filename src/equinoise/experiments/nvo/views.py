"""The tables of the NVO paper on one column, in words, figures, and beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equinoise.experiments.nvo.tables import MECHANISMS, Tables
from equinoise.nvo import Histogram, Profile
from equinoise.report import figures, release_figures
from equinoise.report.curves import Curve, curves, legend_below, ticks_at
from equinoise.report.exhibit import Claim, Picture

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["claims", "distribution_picture", "headline", "kl_picture", "noise_picture", "text"]

_BEST = "annealing, default scales"
_LAPLACE = "Laplace, paper"
_PAPER = "best response, paper's scales"
_MEASURES = {
    "kl": "KL",
    "sd_l1": "L1 loss of SD",
    "jaccard": "Jaccard index",
    "cosine": "cosine similarity",
}
_LARGER_IS_BETTER = ("jaccard", "cosine")
_DECIMALS = 4  # that the paper prints
_FASTER = "Here equal records share one compiled evaluation; there every record has its own."
_REASONS = {
    "best response, default scales": "Other data, and one nearly-zero scale besides the paper's five.",
    _BEST: "Other data, one nearly-zero scale more, and a search that moves whole groups of records.",
    "genetic, paper's scales": "Other data; and a genetic search is a matter of chance and patience.",
}


def headline(tables: Tables, printed: pd.DataFrame) -> str:
    """Return the result at the smallest published epsilon of at least 1, in one line."""
    epsilon = min(e for _, e in tables.profiles if e >= 1.0)
    best, laplace = tables.profiles[_BEST, epsilon], tables.profiles[_LAPLACE, epsilon]
    published = _printed(printed, "brd", epsilon, "kl")
    return (
        f"At epsilon {epsilon:g} "
        f"{'every record is private' if best.certified else 'not every record is private'} at KL "
        f"{best.kl:.5f} (proven: not below {tables.lower_bound['default', epsilon]:.5f}); {published:.4f} "
        f"published on other data, {laplace.kl:.2f} for Laplace."
    )


def text(
    histogram: Histogram, what: str, tables: Tables, printed: pd.DataFrame, *, given: bool
) -> tuple[str, ...]:
    """Return the paragraphs of a column's exhibit; `given` for a column of the user's file."""
    searches = {key: profile for key, profile in tables.profiles.items() if "Laplace" not in key[0]}
    certified = sum(profile.certified for profile in searches.values())
    laplace = max(
        profile.realised_epsilon / epsilon
        for (name, epsilon), profile in tables.profiles.items()
        if name == _LAPLACE
    )
    paragraphs = (
        f"{what[0].upper()}{what[1:]} in {histogram.n_bins} bins; bounds from the data, as in the paper. In "
        f"{certified} of {len(searches)} searches every record is satisfied, checked from the definition.",
        f"The paper's Laplace mechanism ignores that one record in {histogram.n:,} is drawn: its true "
        f"epsilon is at most {laplace:.2g} of what it is charged with. So two more uniform scales stand "
        "beside it, the least that is private for any data (amplified) and the least that is for these "
        "(smallest).",
        "Why ours differs from what was published: these are other data. And with the paper's five scales "
        "best response ends far from its figures, while the lower bound says how little could be better "
        f"with these scales. {_level(tables, printed)}",
    )
    if not given:
        return paragraphs
    return (
        *paragraphs,
        "These figures show the data and the noise scales. For data that must stay private, keep this "
        "report to yourself and use `equinoise nvo`, which keeps apart what may be given away.",
    )


def _level(tables: Tables, printed: pd.DataFrame) -> str:
    """Say at how many epsilons annealing reaches the published KL, and whether the rest could be reached."""
    figures = {e: _printed(printed, "brd", e, "kl") for _, e in tables.profiles}
    known = {e: figure for e, figure in figures.items() if not np.isnan(figure)}
    missed = [e for e, figure in known.items() if round(tables.profiles[_BEST, e].kl, _DECIMALS) > figure]
    said = (
        "With one nearly-zero scale more, annealing is at or below the published KL at "
        f"{len(known) - len(missed)} of {len(known)} epsilons."
    )
    proven = [e for e in missed if tables.lower_bound["default", e] > known[e]]
    if missed and len(proven) == len(missed):
        return said + " Where it is not, the lower bound says that on these data nothing certified is."
    return said


def _printed(printed: pd.DataFrame, algorithm: str | None, epsilon: float, measure: str) -> float:
    row = printed[(printed["algorithm"] == algorithm) & (printed["epsilon"] == epsilon)]
    return float(row[measure].iloc[0]) if len(row) else float("nan")


def claims(tables: Tables, printed: pd.DataFrame, what: str) -> Iterator[Claim]:
    """Yield every published figure beside ours: four measures and the time of each mechanism and epsilon.

    Parameters
    ----------
    tables : Tables
    printed : pandas.DataFrame
        As :func:`equinoise.experiments.nvo.tables.published` returns it.
    what : str
        The column in words.
    """
    for (name, epsilon), profile in tables.profiles.items():
        algorithm = MECHANISMS[name]
        for measure, label in _MEASURES.items():
            figure = _printed(printed, algorithm, epsilon, measure)
            if not np.isnan(figure):
                ours = float(getattr(profile, measure))
                worse = ours < figure if measure in _LARGER_IS_BETTER else ours > figure
                why = _why(tables, name, epsilon, printed, what, worse=worse)
                yield Claim(f"{label}, {name}, epsilon {epsilon:g}", figure, ours, why, _DECIMALS)
        minutes = _printed(printed, algorithm, epsilon, "minutes")
        if not np.isnan(minutes):
            quantity, took = f"seconds, {name}, epsilon {epsilon:g}", tables.seconds[name, epsilon]
            yield Claim(quantity, 60.0 * minutes, took, _FASTER)


def _why(tables: Tables, name: str, epsilon: float, printed: pd.DataFrame, what: str, *, worse: bool) -> str:
    """Return why a measure of ours differs; `worse` says in which direction."""
    if name == _LAPLACE:
        return f"The same mechanism on other data: {what}."
    bound = tables.lower_bound.get(("paper", epsilon), 0.0)
    if name == _PAPER and worse and bound > _printed(printed, "brd", epsilon, "kl"):
        return f"With these five scales no certified profile of these data has a KL below {bound:.4g}."
    return _REASONS.get(name, f"Other data: {what}.")


def kl_picture(tables: Tables, printed: pd.DataFrame, what: str) -> Picture:
    """Draw KL over epsilon: ours, the lower bound, and what was published."""
    epsilons = np.array(sorted({epsilon for _, epsilon in tables.profiles}))
    series = []
    for name, bound in ((_BEST, "default"), (_PAPER, "paper"), (_LAPLACE, ""), ("Laplace, smallest", "")):
        found = [tables.profiles[name, epsilon] for epsilon in epsilons]
        series.append(Curve(name, epsilons, _drawn([profile.kl for profile in found])))
        if bound:
            least = _drawn([tables.lower_bound[bound, epsilon] for epsilon in epsilons])
            series.append(Curve(f"lower bound, {bound} scales", epsilons, least, kind="bound"))
    for algorithm, label in (("brd", "published, best response"), ("laplace", "published, Laplace")):
        values = _drawn([_printed(printed, algorithm, epsilon, "kl") for epsilon in epsilons])
        series.append(Curve(label, epsilons, values, kind="published"))
    drawn = figures.figure(5.6, 5.0)
    axes = curves(
        drawn.subplots(),
        series,
        horizontal="ε of one row",
        vertical="KL from the original (nats)",
        logarithmic="xy",
    )
    ticks_at(axes, epsilons.tolist())
    shown = epsilons[len(epsilons) // 2]
    said = ", ".join(
        f"{name} {tables.profiles[name, shown].kl:.3g}"
        for name in (_BEST, _PAPER, _LAPLACE, "Laplace, smallest")
    )
    return Picture(
        f"Divergence of the release from the original over epsilon, {what}, and the published figures",
        f"Both axes are logarithmic. At epsilon {shown:g} the divergences are: {said}; the lower bound of "
        f"the default scales is {tables.lower_bound['default', shown]:.3g}. Hollow points alone are "
        "published figures; those printed as zero have no place on such an axis.",
        drawn,
    )


def _drawn(values: list[float]) -> NDArray[np.float64]:
    """Return values for a logarithmic axis, on which zero has no place: NaN leaves it out."""
    given = np.array(values)
    return np.where(given > 0.0, given, np.nan)


def distribution_picture(tables: Tables, epsilon: float, unit: str) -> Picture:
    """Draw the original beside what NVO and Laplace release."""
    names = (_BEST, _PAPER, _LAPLACE)
    series = [(name, tables.profiles[name, epsilon].pmf) for name in names]
    game = tables.profiles[_BEST, epsilon].game
    drawn = figures.figure(5.6, 4.0)
    axes = release_figures.distributions(
        drawn.subplots(),
        game.histogram.pmf,
        series,
        values=_values(game.histogram),
        unit=figures.printable(unit),
    )
    legend_below(axes)
    return Picture(
        f"What is released at ε = {epsilon:g}, beside the original",
        "The grey area is the original. The lines are releases, whose divergences from it are: "
        + ", ".join(f"{name} {tables.profiles[name, epsilon].kl:.3g}" for name in names)
        + ".",
        drawn,
    )


def noise_picture(tables: Tables, epsilon: float, unit: str) -> Picture:
    """Draw which scales records of each value use."""
    profile: Profile = tables.profiles[_BEST, epsilon]
    histogram = profile.game.histogram
    length = histogram.range[1] - histogram.range[0]
    lines = [
        (name, float(tables.profiles[name, epsilon].game.scales[0]) * length)
        for name in (_LAPLACE, "Laplace, smallest")
    ]
    drawn = figures.figure(5.6, 4.0)
    axes = release_figures.noise_scales(
        drawn.subplots(),
        _values(histogram),
        profile.game.scales * length,
        profile.counts,
        lines,
        unit=figures.printable(unit),
    )
    legend_below(axes)
    quiet = profile.counts[:, int(profile.game.scales.argmin())].sum() / histogram.n
    return Picture(
        f"How much noise records have by their value, ε = {epsilon:g}; larger points are more records",
        f"{quiet:.0%} of the records use the smallest scale, which is nearly no noise. Horizontal lines are "
        "uniform scales: the paper's, and the least that is private for these data.",
        drawn,
    )


def _values(histogram: Histogram) -> NDArray[np.float64]:
    """Return what the bins stand for, in the units of the data."""
    start, stop = histogram.range
    return np.asarray(start + histogram.midpoints * (stop - start))
