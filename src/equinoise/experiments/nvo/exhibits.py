"""The experiments of the NVO paper, a row each, on built-in columns or on those of the user's file."""

from equinoise.experiments.nvo import many, source
from equinoise.experiments.nvo.column import EPSILONS, column
from equinoise.experiments.nvo.regression import SCORES, Pair, Size, pair
from equinoise.experiments.steps import Experiment, Settings, Step

_START = "Does best response always end where every record is satisfied?"
_MANY = "Real columns that nobody chose"
_PAIR = "A regression on released data"


def _column(name: str, title: str, given: source.Source, quick: tuple[float, ...] = EPSILONS) -> Experiment:
    return Experiment(name, "nvo", title, column, (given, quick), (given, EPSILONS), (6.0, 20.0))


def steps(settings: Settings) -> list[Step]:
    """Return the experiments of this pillar at the settings' scale; refuse a file or column of no use."""
    if settings.csv is None:
        source.require_data()
        pairs: Pair | None = SCORES
        first, every = source.WAGES, 5
        columns = [
            _column("nvo-wages", "Wages of 1,260 people", first),
            _column("nvo-incomes", "Incomes of 9,275 families", source.INCOMES, (1.0, 2.0)),
        ]
    else:
        pairs = Pair.given(settings)
        first, every = source.given(settings, settings.column), 1
        columns = [_column("nvo-column", f"The column {first.unit}", first)]
    every_one = list(source.COLUMNS) if settings.csv is None else [first]
    small, large = Size(every, 31, (1.0, 8.0), 2), Size(1, 41, (1.0, 2.0, 4.0, 8.0), 10)
    rows: tuple[Experiment, ...] = (
        *columns,
        Experiment("nvo-start", "nvo", _START, source.start, first, first, (1.0, 1.0)),
        Experiment("nvo-totals", "nvo", "All rows", source.totals, every_one[:2], every_one, (7.0, 40.0)),
        Experiment("nvo-regression", "nvo", _PAIR, pair, (pairs, small), (pairs, large), (5.0, 60.0)),
    )
    if settings.full and settings.csv is None:
        rows += (Experiment("nvo-columns", "nvo", _MANY, many.columns, (3, 1), (40, 16), (20.0, 300.0)),)
    return [row.step(settings) for row in rows]
