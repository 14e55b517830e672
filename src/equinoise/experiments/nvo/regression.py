"""What a release of two columns is good for: a regression that is trained on it and judged on the data."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import warnings
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._typing import Any, ArrayLike, Callable, DataFrame, Flags, Floats, Iterator, NamedTuple
from equinoise.experiments.nvo.source import built_in, given
from equinoise.experiments.steps import Job, Settings
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.release.rows import draw_bins
from equinoise.report.exhibit import Claim, Exhibit, Picture, Table, comparison, frame_of, joined
from equinoise.report.figures import Curve, column, curves

# Root mean square errors that the paper prints for heights and weights (its table 2), by epsilon.
PUBLISHED = {
    "original": {1.0: 0.0218, 2.0: 0.0218, 4.0: 0.0218, 8.0: 0.0218},
    "NVO": {1.0: 0.0227, 2.0: 0.0221, 4.0: 0.0219, 8.0: 0.0218},
    "Laplace": {1.0: 0.0444, 2.0: 0.0380, 4.0: 0.0335, 8.0: 0.0272},
}
_HIDDEN = (10, 10, 10)  # three layers of ten rectified linear units
_WHY = "Other data, and errors in units of its own range."
_CHANCE = "Other data; and a network of ten units a layer depends on its first weights."


@dataclass(frozen=True)
class Pair:
    """Two columns, the second to be predicted from the first: in words, and what returns both, float64[n]."""

    what: str
    load: Callable[[], tuple[Floats, Floats]]

    @classmethod
    def given(cls, settings: Settings) -> Pair | None:
        """Return the two columns of the user's file, None where only one is named."""
        if settings.target is None:
            return None
        first = given(settings, settings.column).load()
        try:
            second = given(settings, settings.target).load()
        except (ValueError, TypeError) as error:
            raise type(error)(str(error).replace("column must", "target must", 1)) from None
        if len(first) != len(second):
            raise ValueError(f"target must have as many values as column, got {len(second)} and {len(first)}")
        what = f"{settings.target} from {settings.column}, {len(first):,} records"
        return cls(what, lambda: (first, second))


SCORES = Pair(
    "mathematics scores of 7,430 pupils from their reading scores",
    lambda: (built_in("catholic", "read12"), built_in("catholic", "math12")),
)


class Size(NamedTuple):
    """How large the experiment is: take every k-th record, bins of a column, epsilons, replicates."""

    every: int
    bins: int
    epsilons: tuple[float, ...]
    replicates: int


@dataclass(frozen=True, eq=False)
class Regression:
    """Errors of predicting the second column from the first: E epsilons, R replicates.

    `rmse` has "original", "NVO" and "Laplace", float64[R, E]: the root mean square error over all records of
    the data, in the normalised units of the second column. `kl`, float64[E], are divergences of the releases
    from the data, and `certified`, bool[E], says whether the NVO profile satisfies every record.
    """

    epsilon: Floats
    rmse: dict[str, Floats]
    kl: dict[str, Floats]
    certified: Flags

    def to_frame(self) -> DataFrame:
        """Return mechanism, epsilon, mean and standard error of the error, and kl."""
        parts = []
        for name, errors in self.rmse.items():
            found = _results.summarise(errors)
            part = {"mechanism": name, "epsilon": self.epsilon, "rmse": found.mean, "stderr": found.stderr}
            parts.append(frame_of(part | {"kl": self.kl.get(name, 0.0)}))
        return joined(parts)


def regression(
    first: ArrayLike,
    second: ArrayLike,
    *,
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0),
    n_bins: int = 41,
    n_replicates: int = 5,
    seed: int = 0,
    executor: Executor | None = None,
    resume: Path | None = None,
) -> Regression:
    """Train a small network on the data, on an NVO release and on a Laplace release, and compare.

    Both columns, array_like of shape (n,), are released together, on a grid. The Laplace release has noise of
    scale sensitivity/epsilon on each column, as in the NVO paper's Table 2: it is the uniform scale that
    ignores that one record in n is drawn. Replicates have their own samples, of as many rows as the data,
    which are not private, and first weights of the network. Four million proposals give the same errors.
    """
    _network()
    histogram = PairHistogram.from_values(first, second, n_bins)
    chosen = tuple(_checks.epsilon(epsilon, "epsilons", allow_infinite=False) for epsilon in epsilons)
    n = _checks.integer("n_replicates", n_replicates, 1, _checks.MOST)
    profiles = [PairGame(histogram, epsilon).solve(seed, steps=250_000) for epsilon in chosen]
    plain = [PairGame(histogram, epsilon, np.array([1.0])).uniform() for epsilon in chosen]
    x, y = (
        (np.asarray(values, dtype=np.float64) - part.range[0]) / (part.range[1] - part.range[0])
        for values, part in ((first, histogram.first), (second, histogram.second))
    )
    task = _Task(histogram, (x, y), [p.pmf for p in profiles + plain], seed)
    with _quietly():
        errors = replicates.run(task, n, block=1, executor=executor, resume=resume)
    rmse = {"original": np.repeat(errors["original"][:, None], len(chosen), axis=1)}
    rmse["NVO"], rmse["Laplace"] = np.split(errors["released"], 2, axis=1)
    kl = {"NVO": np.array([p.kl for p in profiles]), "Laplace": np.array([p.kl for p in plain])}
    return Regression(np.array(chosen), rmse, kl, np.array([p.certified for p in profiles]))


@dataclass(frozen=True, eq=False)
class _Task:
    """One replicate: train on the data and on a sample of every release, picklable."""

    histogram: PairHistogram
    data: tuple[Floats, Floats]
    released: list[Floats]
    seed: int

    def __call__(self, start: int, stop: int) -> dict[str, Floats]:
        original, released = [], []
        for r in range(start, stop):
            original.append(self._error(*self.data, r))
            released.append([self._error(*self._sample(pmf, e, r), r) for e, pmf in enumerate(self.released)])
            replicates.tick(1.0)
        return {"original": np.array(original), "released": np.array(released)}

    def _sample(self, pmf: Floats, which: int, replicate: int) -> tuple[Floats, Floats]:
        address = int(np.random.SeedSequence([self.seed, which, replicate]).generate_state(1)[0])
        x, y = self.histogram.split(draw_bins(pmf, self.histogram.n, address))
        return self.histogram.first.midpoints[x], self.histogram.second.midpoints[y]

    def _error(self, x: Floats, y: Floats, replicate: int) -> float:
        """Return the error over the data of a network that was trained on x and y.

        Both are scaled to mean 0 and deviation 1 for the training, by what it is trained on.
        """
        centre, width = x.mean(), x.std() or 1.0
        middle, height = y.mean(), y.std() or 1.0
        how = {"activation": "relu", "solver": "lbfgs", "alpha": 1e-3, "max_iter": 500}
        network = _network()(hidden_layer_sizes=_HIDDEN, random_state=replicate, **how)
        network.fit(((x - centre) / width)[:, None], (y - middle) / height)
        inputs, truth = self.data
        predicted = middle + height * network.predict(((inputs - centre) / width)[:, None])
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def _network() -> Any:
    try:
        from sklearn.neural_network import MLPRegressor
    except ImportError:
        raise ImportError('the regression needs scikit-learn: pip install "equinoise[data]"') from None
    return MLPRegressor


def pair(job: Job) -> Exhibit:
    """Run the regression and show its errors with the published ones; left out where it lacks something."""
    chosen, (every, bins, epsilons, n) = job.size
    lacking = "" if chosen is not None else "it needs a second column, --target."
    if importlib.util.find_spec("sklearn") is None:
        lacking = 'it needs scikit-learn: pip install "equinoise[data]".'
    if chosen is None or lacking:
        return job.row.exhibit(question="Left out.", headline=f"Left out: {lacking}")
    x, y = (values[::every] for values in chosen.load())
    sizes: Any = {"epsilons": epsilons, "n_bins": bins, "n_replicates": n}
    folder = job.settings.kept(job.row.name, what=chosen.what, **sizes)
    made = regression(x, y, **sizes, seed=job.settings.seed, executor=job.executor, resume=folder)
    mean = {name: errors.mean(axis=0) for name, errors in made.rmse.items()}
    nvo, laplace = (mean[name][0] / mean["original"][0] for name in ("NVO", "Laplace"))
    kept = "" if every == 1 else f" This scale takes every {every}th record."
    return job.row.exhibit(
        question="Does what one learns from a release hold for the data?",
        headline=f"At epsilon {made.epsilon[0]:g} a network trained on the NVO release has {nvo:.2f} times "
        f"the error of one trained on the data; on a Laplace release {laplace:.2f} times.",
        text=(
            f"Predicted: {chosen.what}. A network of three layers of ten rectified linear units is trained "
            "on the data, on an NVO release and on a Laplace release, each of as many rows, and judged by "
            f"its root mean square error over the data; {n} replicates.{kept}",
            "Why ours differs from what was published: other data; only relative errors compare.",
        ),
        tables={
            "errors": Table(
                "Root mean square error over the data, in units of the second column's range", made.to_frame()
            ),
            "published": Table(
                "Published errors (heights and weights, table 2) and ours", comparison(_claims(made))
            ),
        },
        figures={"errors": _picture(made)},
    )


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Let every network have one thread, and say nothing of those that stop early: 500 steps are enough."""
    from sklearn.exceptions import ConvergenceWarning

    limited: Any = importlib.import_module("threadpoolctl").threadpool_limits(1)
    with limited, warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        yield


def _published(name: str, epsilon: float, *, relative: bool = False) -> float:
    """Return a published error, or its ratio to that of the original; NaN where there is none."""
    figure = PUBLISHED[name].get(epsilon, math.nan)
    return figure / PUBLISHED["original"].get(epsilon, math.nan) if relative else figure


def _claims(made: Regression) -> Iterator[Claim]:
    mean = {name: errors.mean(axis=0) for name, errors in made.rmse.items()}
    for name, errors in mean.items():
        for epsilon, error in zip(made.epsilon.tolist(), errors.tolist(), strict=True):
            yield Claim(f"RMSE, {name}, epsilon {epsilon:g}", _published(name, epsilon), error, _WHY, 4)
    for name in ("NVO", "Laplace"):
        ratios = (mean[name] / mean["original"]).tolist()
        for epsilon, ratio in zip(made.epsilon.tolist(), ratios, strict=True):
            quantity = f"RMSE relative to the original's, {name}, epsilon {epsilon:g}"
            yield Claim(quantity, _published(name, epsilon, relative=True), ratio, _CHANCE)


def _picture(made: Regression) -> Picture:
    original, epsilons, names = made.rmse["original"].mean(), made.epsilon.tolist(), ("NVO", "Laplace")
    series = [Curve("trained on the data", made.epsilon, [1.0], kind="level")]
    for name in names:
        found = _results.summarise(made.rmse[name] / original)
        series.append(Curve(f"trained on {name}", made.epsilon, found.mean, found.ci_low, found.ci_high))
    for name in names:
        values = [_published(name, epsilon, relative=True) for epsilon in epsilons]
        series.append(Curve(f"published, {name}", made.epsilon, values, kind="published"))
    nvo, laplace = (made.rmse[name][:, 0].mean() / original for name in names)
    axes: Any = {"horizontal": "ε of one row", "logarithmic": "x", "ticks": epsilons}
    ratio = "RMSE over that of the network\ntrained on the data"
    return Picture(
        "Error of a regression on released data, relative to one on the data, with 95% intervals",
        f"At epsilon {made.epsilon[0]:g} it is {nvo:.2f} times as large on the NVO release, "
        f"{laplace:.2f} times on the Laplace release. Hollow points are published.",
        column(lambda ax: curves(ax, series, vertical=ratio, **axes), 4.2),
    )
