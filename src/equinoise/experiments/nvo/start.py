"""Where best response ends, by where it starts."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from equinoise.experiments.nvo.source import Source
from equinoise.experiments.registry import Experiment
from equinoise.experiments.steps import Progress, Settings, spread
from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.scales import sufficient_scale
from equinoise.report.exhibit import Claim, Exhibit, Table, comparison

__all__ = ["start"]

_EPSILON = 1.0
_STARTS = 20
_WHY = "The dynamics can end where the last unsatisfied records cannot help themselves alone."


def start(
    experiment: Experiment, source: Source, settings: Settings, executor: Executor | None, progress: Progress
) -> Exhibit:
    """Run best response from three kinds of starts, and count those that end with every record satisfied.

    References
    ----------
    .. [1] Differentially Private Per-Instance Additive Noise Mechanism: A Game Theoretic Approach (anonymous,
       under review), Theorem 4.1 and Algorithm 1.
    """
    import pandas as pd

    game = NoiseGame(Histogram.from_values(source.load()), _EPSILON, "default")
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
    ended = {row["start"]: (row["runs_with_everybody_satisfied"], row["runs"]) for row in rows}
    enough = sufficient_scale(game.n, game.histogram.n_bins, game.epsilon)
    return experiment.exhibit(
        question="The paper says that every equilibrium is private once the largest scale is large enough.",
        headline="Every record is satisfied in "
        + ", ".join(f"{good} of {runs} runs with {name}" for name, (good, runs) in ended.items())
        + ".",
        text=(
            f"Best response on {source.what} at epsilon {_EPSILON:g} with the default scales, {_STARTS} "
            f"orders of turns from each start. The theorem asks for a largest scale of {enough:.3f} of the "
            f"range; here it is {float(game.scales.max()):.3f}.",
            "What does hold: the payoff is a potential, so from a start in which every record is satisfied "
            "the dynamics never leave such profiles. That is why the default start here is the largest "
            "scale, and why a profile is called certified only after every record was checked.",
        ),
        tables={
            "starts": Table("Where best response ends, by where it starts", pd.DataFrame(rows)),
            "published": Table(
                "What the paper's theorem says and what came out",
                comparison(
                    Claim(f"share of runs that end private, {name}", 1.0, good / runs, _WHY)
                    for name, (good, runs) in ended.items()
                ),
            ),
        },
    )
