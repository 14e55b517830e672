"""What results of commands share: ``run.json``, files of an exhibit's tables and figures, sizes of games."""

import math
from dataclasses import asdict

from equinoise import _files, _results
from equinoise._typing import Any, Axes, Callable, Figure, Mapping
from equinoise.games import Environment, GameTree, Schedule, kernels, realization_plan
from equinoise.report import exhibit as exhibits, figures


def document(
    experiment: str, parameters: Any, seconds: float, *, seed: int | None = None, **parts: Any
) -> dict[str, Any]:
    """Return what ``run.json`` holds: how it was made (by default with its parameters' seed), and parts."""
    used = parameters.seed if seed is None else seed
    made = _results.provenance(asdict(parameters), seed=used, seconds=seconds)
    plain: dict[str, Any] = _results.plain({"experiment": experiment, **made, **parts})
    return plain


def files(exhibit: exhibits.Exhibit, document: Any) -> dict[str, bytes]:
    """Return an exhibit's tables as ``STEM.csv``, its figures as ``STEM.png``, and ``run.json``, as bytes."""
    return {
        **{f"{stem}.csv": exhibits.csv_bytes(table.frame) for stem, table in exhibit.tables.items()},
        **{f"{stem}.png": picture.png() for stem, picture in exhibit.figures.items()},
        "run.json": _files.json_bytes(document),
    }


def finite(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return values with None in place of numbers that are not finite."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}


def titled(plot: Callable[[Axes], object], title: str) -> Figure:
    """Return a figure on whose axes `plot` has drawn, under a title."""

    def draw(ax: Axes) -> None:
        plot(ax)
        ax.set_title(figures.printable(title), fontsize="medium")

    return figures.drawn(draw)


def sizes(tree: GameTree, environment: Environment | Schedule) -> dict[str, Any]:
    """Return a game's sizes, and the losses per trial of the best strategy and of uniform play."""
    if isinstance(environment, Environment):
        mean = environment.action_loss
    else:
        mean = environment.action_loss(environment.total) / environment.total
    return {
        "infosets": tree.n_infosets,
        "actions": tree.n_actions,
        "depth": tree.depth,
        "log_n_strategies": tree.log_n_strategies,
        "loss_of_best_strategy": kernels.best_response_value(tree.action_ptr, tree.infoset_ptr, mean)[0],
        "loss_of_uniform_play": float(realization_plan(tree, tree.uniform_policy()) @ mean),
    }
