"""What a release of two columns is good for: a regression that is trained on it and judged on the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equinoise import _checks, replicates
from equinoise.nvo.pairs import PairGame, PairHistogram

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PUBLISHED", "Regression", "regression"]

# Root mean square errors that the paper prints for heights and weights (its table 2), by epsilon.
PUBLISHED = {
    "original": {1.0: 0.0218, 2.0: 0.0218, 4.0: 0.0218, 8.0: 0.0218},
    "NVO": {1.0: 0.0227, 2.0: 0.0221, 4.0: 0.0219, 8.0: 0.0218},
    "Laplace": {1.0: 0.0444, 2.0: 0.0380, 4.0: 0.0335, 8.0: 0.0272},
}
_HIDDEN = (10, 10, 10)  # three layers of ten rectified linear units

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regression:
    """Errors of predicting the second column from the first: E epsilons, R replicates.

    Attributes
    ----------
    epsilon : float64[E]
    rmse : dict of str to float64[R, E]
        "original", "NVO" and "Laplace": root mean square error over all records of the data, in the
        normalised units of the second column.
    kl : dict of str to float64[E]
        "NVO" and "Laplace": divergence of what is released from the data.
    certified : bool[E]
        Whether the NVO profile satisfies every record.
    """

    epsilon: Floats
    rmse: dict[str, Floats]
    kl: dict[str, Floats]
    certified: NDArray[np.bool_]

    def to_frame(self) -> pd.DataFrame:
        """Return mechanism, epsilon, mean and standard error of the error, kl, and the published error."""
        import pandas as pd

        rows = []
        for name, errors in self.rmse.items():
            for e, epsilon in enumerate(self.epsilon):
                spread = errors[:, e].std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
                rows.append(
                    {
                        "mechanism": name,
                        "epsilon": float(epsilon),
                        "rmse": float(errors[:, e].mean()),
                        "stderr": float(spread),
                        "kl": float(self.kl[name][e]) if name in self.kl else 0.0,
                        "published": PUBLISHED[name].get(float(epsilon), np.nan),
                    }
                )
        return pd.DataFrame(rows)


def regression(
    first: ArrayLike,
    second: ArrayLike,
    *,
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0),
    n_bins: int = 41,
    n_replicates: int = 5,
    seed: int = 0,
    executor: Any = None,
    progress: bool | str = False,
) -> Regression:
    """Train a small network on the data, on an NVO release and on a Laplace release, and compare.

    Parameters
    ----------
    first, second : array_like, shape (n,)
        Predict the second column from the first.
    epsilons : tuple of float
        Of one row.
    n_bins : int
        Bins of each column.
    n_replicates : int
        R: samples, and first weights of the network. Each sample has as many rows as the data.
    seed : int
        The same seed gives the same result. Such samples are not private.
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool or str
        Show a bar on stderr where that is a terminal.

    Returns
    -------
    Regression

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.
    ImportError
        If scikit-learn is not installed.

    Notes
    -----
    Both columns are released together, on a grid. The Laplace release has noise of scale
    sensitivity/epsilon on each column, as the paper's: it is the uniform scale that ignores that one record
    in n is drawn. The network has three layers of ten rectified linear units.
    """
    _network()
    histogram = PairHistogram.from_values(first, second, n_bins)
    chosen = tuple(_checks.epsilon(epsilon, "epsilons", allow_infinite=False) for epsilon in epsilons)
    n = _checks.integer("n_replicates", n_replicates, 1)
    profiles = [PairGame(histogram, epsilon).solve(seed) for epsilon in chosen]
    plain = [PairGame(histogram, epsilon, np.array([1.0])).uniform() for epsilon in chosen]
    task = _Task(histogram, _normalised(histogram, first, second), [p.pmf for p in profiles + plain], seed)
    errors = replicates.run(task, n, block=1, executor=executor, progress=progress)
    e = len(chosen)
    return Regression(
        np.array(chosen),
        {
            "original": np.repeat(errors["original"][:, None], e, axis=1),
            "NVO": errors["released"][:, :e],
            "Laplace": errors["released"][:, e:],
        },
        {"NVO": np.array([p.kl for p in profiles]), "Laplace": np.array([p.kl for p in plain])},
        np.array([p.certified for p in profiles]),
    )


def _normalised(histogram: PairHistogram, first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    parts = histogram.first, histogram.second
    x, y = (
        (np.asarray(values, dtype=np.float64) - part.range[0]) / (part.range[1] - part.range[0])
        for values, part in zip((first, second), parts, strict=True)
    )
    return x, y


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
        from equinoise.nvo.release.draw import draw_bins

        address = int(np.random.SeedSequence([self.seed, which, replicate]).generate_state(1)[0])
        x, y = self.histogram.split(draw_bins(pmf, self.histogram.n, address))
        return self.histogram.first.midpoints[x], self.histogram.second.midpoints[y]

    def _error(self, x: Floats, y: Floats, replicate: int) -> float:
        """Return the error over the data of a network that was trained on x and y.

        Both are scaled to mean 0 and deviation 1 for the training, by what it is trained on.
        """
        import warnings

        centre, width = x.mean(), x.std() or 1.0
        middle, height = y.mean(), y.std() or 1.0
        network = _network()(
            hidden_layer_sizes=_HIDDEN,
            activation="relu",
            solver="lbfgs",
            alpha=1e-3,
            max_iter=500,
            random_state=replicate,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 500 steps are enough where it has not quite converged
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
