"""Both players of Kuhn poker learn from private reports, and come close to an equilibrium."""

import math
from concurrent.futures import Executor
from dataclasses import dataclass

from equinoise import _results, efb, games
from equinoise._typing import Any, Axes
from equinoise.experiments.steps import Experiment, Progress, Settings
from equinoise.report import figures
from equinoise.report.exhibit import Exhibit, Picture, Table


@dataclass(frozen=True)
class Match:
    """How large the experiment is, and its epsilons."""

    hands: int
    replicates: int
    epsilons: tuple[float, ...] = (0.5, 1.0, 4.0, math.inf)


def self_play(
    experiment: Experiment, match: Match, settings: Settings, executor: Executor | None, progress: Progress
) -> Exhibit:
    """Run self-play at each epsilon, on the same deals; show how far average play is from an equilibrium."""
    import pandas as pd

    runs: list[efb.SelfPlayRun] = []
    same: Any = {"horizon": match.hands, "n_replicates": match.replicates, "seed": settings.seed}
    for epsilon in match.epsilons:
        kept = settings.kept(experiment.name, epsilon=epsilon, hands=match.hands)
        runs.append(efb.self_play("kuhn_poker", epsilon=epsilon, executor=executor, resume=kept, **same))
        progress(len(runs) / len(match.epsilons))
    uniform, rows = games.exploitability("kuhn_poker", ["uniform"] * 2), []
    for run in runs:
        mean, _, low, high = (float(part[-1]) for part in _results.summarise(run.exploitability))
        rows.append((run.epsilon, mean, low, high, mean / uniform))
    names = ["epsilon", "exploitability", "ci_low", "ci_high", "of_uniform"]
    said = [f"{row[1]:.4f} " + (f"at epsilon {row[0]:g}" if row[0] < math.inf else "without") for row in rows]

    def draw(ax: Axes) -> None:
        for run in runs:
            run.plot(ax)
        ax.axhline(uniform, color="0.5", linewidth=1.0, label="uniform play")

    return experiment.exhibit(
        question="When both players learn from private reports, do they come to play an equilibrium?",
        headline=f"After {match.hands:,} hands average play can be exploited by {', '.join(said[:-1])} and "
        f"{said[-1]} privacy; uniform play by {uniform:.4f}.",
        text=(
            "Both seats run the learner, each with a new user a hand, who sends one symbol. Judged is play "
            "on average over all hands: exploitability is half of what both could gain a hand by a best "
            "response, in antes. It is half the sum of both regrets a hand, so it falls like the root of the "
            "hands. The paper proves its bound for opponents who do not react, and has no such experiment.",
        ),
        tables={
            "exploitability": Table(
                f"Exploitability of average play, of {match.replicates} replicates, and the share of uniform",
                pd.DataFrame(rows, columns=names),
            )
        },
        figures={
            "curve": Picture(
                f"Kuhn poker: exploitability of average play over {match.hands:,} hands, with 95% intervals",
                f"Both axes are logarithmic. The curves fall to {', '.join(said)} privacy.",
                figures.column(draw, 4.4),
            )
        },
    )
