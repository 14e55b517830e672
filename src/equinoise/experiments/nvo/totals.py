"""At the same epsilon of all rows: the game, and a private histogram, whose promise is for every data set."""

from concurrent.futures import Executor

import numpy as np

from equinoise._typing import Any
from equinoise.experiments.nvo.source import built_in
from equinoise.experiments.steps import Experiment, Progress, Settings, spread
from equinoise.nvo import Histogram, NoiseGame, private_histogram
from equinoise.report.exhibit import Exhibit, Picture, Table
from equinoise.report.figures import Curve, column, curves

COLUMNS = ["beauty.wage", "card.wage", "401ksubs.inc", "bwght.bwght"]


def totals(
    experiment: Experiment, size: Any, settings: Settings, executor: Executor | None, progress: Progress
) -> Exhibit:
    """Compare KL at what all rows lose by composition: the worst record, and half of the records."""
    import pandas as pd

    def row(case: tuple[str, float]) -> dict[str, Any]:
        given = built_in(*case[0].split(".")) if case[0] in COLUMNS else size[0].load()
        histogram = Histogram.from_values(given, bounds=(np.floor(given.min()), np.ceil(given.max())))
        profile = NoiseGame(histogram, case[1]).anneal(settings.seed)
        whole = profile.composed(histogram.n)
        found: dict[str, Any] = {"column": case[0], "epsilon": case[1], "kl": profile.kl}
        for name, total in (("worst", whole.epsilon), ("median", whole.median or 0.0)):
            level = min(max(total, 1e-3), 700.0)
            kl = [private_histogram(histogram, level, seed=seed).kl for seed in range(100)]
            found |= {name: total, f"histogram_kl_at_{name}": float(np.mean(kl))}
        return found

    cases = [(getattr(name, "what", name), epsilon) for name in size for epsilon in (0.1, 0.5, 1.0, 2.0)]
    frame = pd.DataFrame(spread(row, cases, executor, progress))
    won = [int((frame[f"histogram_kl_at_{name}"] < frame["kl"]).sum()) for name in ("worst", "median")]
    said = f"The histogram has less KL in {won[0]} of {len(frame)} settings at epsilon of the worst record"
    series = []
    for what, rows in frame.replace(0.0, np.nan).groupby("column", sort=False):
        series.append(Curve(f"game, {what}", rows["worst"], rows["kl"]))
        series.append(Curve("histogram", rows["worst"], rows["histogram_kl_at_worst"], kind="bound"))
    axes: Any = {"horizontal": "ε of all rows", "vertical": "KL (nats)", "logarithmic": "xy"}
    picture = column(lambda ax: curves(ax, series, **axes), 5.0)
    return experiment.exhibit(
        question="All rows together: is noise that each record chooses better than a private histogram?",
        headline=f"{said}, and in {won[1]} at that of the median one.",
        tables={
            "totals": Table("At epsilon of as many rows as records; for any data, the histogram's", frame)
        },
        figures={"kl": Picture("KL over epsilon of all rows", said, picture)},
    )
