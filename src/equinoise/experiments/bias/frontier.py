"""The frontier of bias against regret: every policy at every epsilon."""

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from equinoise import _checks, bandits
from equinoise._typing import Axes, DataFrame, Sequence
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias.common import (
    Result,
    Running,
    Summary,
    drawn,
    gather,
    named,
    scaled,
    summarise,
)
from equinoise.experiments.steps import Experiment
from equinoise.report import pictures
from equinoise.report.exhibit import Exhibit, Picture, Table


@dataclass(frozen=True, eq=False)
class Frontier(Result):
    """Bias and regret of every policy at every epsilon.

    Attributes
    ----------
    horizon, replicates : int
    means : tuple of float
    summaries : dict of (str, float or None) to Summary
        By policy and epsilon; None where the policy takes none.
    """

    means: tuple[float, ...]
    summaries: dict[tuple[str, float | None], Summary]

    def to_frame(self) -> DataFrame:
        """Return one row per point: policy, epsilon, private, bias and regret with their standard errors."""
        import pandas as pd

        rows = [
            {"policy": name, "epsilon": epsilon, "private": policy(name).private} | made._asdict()
            for (name, epsilon), made in self.summaries.items()
        ]
        return pd.DataFrame(rows).astype({"epsilon": float})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bias against regret, every point labelled, with 95% intervals; return the Axes."""
        return pictures.frontier(ax, self.summaries)


def frontier(
    scale: float = 1.0,
    *,
    policies: Sequence[str] = tuple(bandits.POLICIES),
    epsilons: Sequence[float] = (0.1, 0.5, 2.0, 10.0),
    means: Sequence[float] = (0.75, 0.625, 0.5, 0.375, 0.25),
    horizon: int = 10_000,
    replicates: int = 1000,
    **running: Unpack[Running],
) -> Frontier:
    """Run every policy at every epsilon on the same Bernoulli arms and the same random draws.

    Parameters
    ----------
    scale, horizon, replicates, **running
        As of :func:`~equinoise.experiments.bias.arms.experiment_1`.
    policies : sequence of str
        Of :func:`equinoise.bandits.simulate`; all by default.
    epsilons : sequence of float
        For the policies that take one.
    means : sequence of float
        True means of the arms.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> made = frontier(0.02, policies=("ucb", "private-ucb"), epsilons=(1.0, 10.0), horizon=200)
    >>> list(made.summaries)
    [('ucb', None), ('private-ucb', 1.0), ('private-ucb', 10.0)]
    """
    n = scaled(replicates, scale)
    needs = {name: policy(name).needs_epsilon for name in policies}
    given = tuple(_checks.epsilon(epsilon, "epsilons") for epsilon in epsilons)
    true = np.array(means, dtype=np.float64)
    jobs = {
        (name, epsilon): {"policy": name, "epsilon": epsilon}
        for name in policies
        for epsilon in (given if needs[name] else (None,))
    }
    same = {"means": true, "horizon": horizon, "n_checkpoints": 1}
    runs = gather(bandits.simulate, jobs, n, running, **same)
    return Frontier(horizon, n, tuple(true.tolist()), {case: summarise(run) for case, run in runs.items()})


def show(experiment: Experiment, made: Frontier) -> Exhibit:
    """Show bias against regret, every policy at every epsilon."""
    plain, even = made.summaries["ucb", None], made.summaries["uniform", None]
    quiet = {case: one.regret for case, one in made.summaries.items() if not one.clear}
    least = min(quiet, key=lambda case: quiet[case])
    frame = made.to_frame()
    return experiment.exhibit(
        question="Which policy gathers data with how much bias, and at what regret?",
        headline=f"The least regret at which the bias is consistent with zero is {quiet[least]:,.0f} "
        f"({named(*least)}); plain UCB has a bias of {plain.mean_absolute_bias:.3f} at {plain.regret:,.0f}.",
        text=(
            f"Arms with means {', '.join(f'{mean:g}' for mean in made.means)}, {made.size}. In "
            f"{len(frame) - len(quiet)} of {len(frame)} cases the bias of all arms together is inconsistent "
            "with zero at 5%. The column luck is the bias that chance alone would show.",
            "Why ours differs from what was published: the paper has no such figure. It shows bias alone, "
            "which a policy that learns nothing has least of.",
        ),
        tables={"points": Table("Bias and regret of every policy and epsilon", frame)},
        figures={
            "frontier": Picture(
                "Mean absolute bias against regret, labelled with epsilon, with 95% intervals; hollow "
                "where the bias is consistent with zero",
                f"Both axes are logarithmic. From plain UCB, bias {plain.mean_absolute_bias:.2g} at a "
                f"regret of {plain.regret:,.0f}, the bias falls as the regret rises towards that of uniform "
                f"play, {even.regret:,.0f}.",
                drawn(made.plot, 6.0),
            )
        },
    )
