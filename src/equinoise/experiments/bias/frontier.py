"""The frontier of bias against regret: every policy at every epsilon."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import _checks, bandits
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias.published import Beside, Reproduction, scaled
from equinoise.experiments.bias.summary import Summary, summarise
from equinoise.report import bandit_figures, figures
from equinoise.report.bandit_figures import FrontierPoint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EPSILONS", "MEANS", "Frontier", "frontier", "points"]

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
EPSILONS = (0.1, 0.5, 2.0, 10.0)


@dataclass(frozen=True, eq=False)
class Frontier(Reproduction):
    """Bias and regret of every policy at every epsilon.

    Attributes
    ----------
    horizon, replicates, seed, seconds
        See :class:`~equinoise.experiments.bias.published.Reproduction`.
    means : tuple of float
    summaries : dict of (str, float or None) to Summary
        By policy and epsilon; None where the policy takes none.
    """

    means: tuple[float, ...]
    summaries: dict[tuple[str, float | None], Summary]

    @property
    def name(self) -> str:
        """What its files are called."""
        return "bias-frontier"

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, but for the seed."""
        return super().parameters() | {"means": self.means}

    def beside(self) -> list[Beside]:
        """Return bias and regret of every point; none of them was published."""
        rows = []
        for (name, epsilon), made in self.summaries.items():
            of = name if epsilon is None else f"{name}, ε = {epsilon:g}"
            clear = "told from none" if made.clear else f"no bias beyond luck, which shows {made.luck:.2g}"
            bias = (made.mean_absolute_bias, made.stderr, clear)
            rows.append(Beside(f"mean absolute bias: {of}", None, *bias))
            price = "the price of that bias"
            rows.append(Beside(f"regret: {of}", None, made.regret, made.regret_stderr, price))
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return one row a point: policy, epsilon, private, bias and regret with their standard errors."""
        import pandas as pd

        rows = [
            {"policy": name, "epsilon": epsilon, "private": policy(name).private} | made._asdict()
            for (name, epsilon), made in self.summaries.items()
        ]
        return pd.DataFrame(rows).astype({"epsilon": float})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bias against regret, every point labelled, with 95% intervals; return the Axes."""
        ax = bandit_figures.frontier(ax, points(self.summaries))
        ax.set_title(f"{len(self.means)} arms, {self.horizon:,} rounds; labels: epsilon", fontsize="medium")
        return ax

    def drawings(self) -> Mapping[str, Figure]:
        """Return the figure."""
        return {"figure": figures.drawn(self.plot, height=5.5)}


def points(summaries: Mapping[tuple[str, float | None], Summary]) -> list[FrontierPoint]:
    """Return what the figure draws; a point is labelled with its epsilon, or its policy where it has none."""
    return [
        FrontierPoint(
            name,
            name if epsilon is None else f"{epsilon:g}",
            made.regret,
            made.regret_stderr,
            made.mean_absolute_bias,
            made.stderr,
            made.clear,
        )
        for (name, epsilon), made in summaries.items()
    ]


def frontier(
    scale: float = 1.0,
    *,
    policies: Sequence[str] = tuple(bandits.POLICIES),
    epsilons: Sequence[float] = EPSILONS,
    means: Sequence[float] = MEANS,
    horizon: int = 10_000,
    replicates: int = 1000,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = False,
) -> Frontier:
    """Run every policy at every epsilon on the same arms and the same luck.

    Parameters
    ----------
    scale : float
        Times the replicates.
    policies : sequence of str
        Of :func:`equinoise.bandits.simulate`; all by default.
    epsilons : sequence of float
        For the policies that take one.
    means : sequence of float
        True means of Bernoulli arms.
    horizon, replicates : int
    seed : int
    executor : concurrent.futures.Executor, optional
        Where replicates run; threads of this process by default.
    progress : bool
        Show a bar for each run on stderr where that is a terminal.

    Returns
    -------
    Frontier

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.

    Examples
    --------
    >>> made = frontier(0.02, policies=("ucb", "private-ucb"), epsilons=(1.0, 10.0), horizon=200)
    >>> list(made.summaries)
    [('ucb', None), ('private-ucb', 1.0), ('private-ucb', 10.0)]
    """
    n = scaled(replicates, scale)
    needs = {name: policy(name).needs_epsilon for name in policies}
    given = tuple(_checks.epsilon(epsilon, "epsilons") for epsilon in epsilons)
    wanted = [(name, epsilon) for name in policies for epsilon in (given if needs[name] else (None,))]
    begun = time.perf_counter()
    true = np.array(means, dtype=np.float64)
    summaries = {}
    for name, epsilon in wanted:
        run = bandits.simulate(
            name,
            true,
            horizon=horizon,
            epsilon=epsilon,
            n_replicates=n,
            seed=seed,
            n_checkpoints=1,
            executor=executor,
            progress=progress and (name if epsilon is None else f"{name}, epsilon {epsilon:g}"),
        )
        summaries[name, epsilon] = summarise(run)
    return Frontier(horizon, n, seed, time.perf_counter() - begun, tuple(true.tolist()), summaries)
