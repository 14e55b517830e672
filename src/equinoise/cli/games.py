"""``equinoise games``: which games there are, and how to name others."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli.common import console

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["command"]

SMALL = ("kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "bandit(10)", "complete(3,3,3)")
OTHERS = """\
best, uniform: loss of the best strategy and of uniform play, per trial.

bandit(n) and complete(actions,observations,depth) take any size.
"openspiel:NAME(...)" is a game of OpenSpiel, such as "openspiel:liars_dice(dice_sides=4)":
    pip install "equinoise[games]"
path/to/game.efg is a Gambit file.
--player N or --player LABEL chooses who learns. The counts above are those of player 0
(ln S: logarithm of the number of reduced strategies). Where somebody else moves first they
include a root with a single action.
"""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """List the built-in games, and how to name others."""
    rows = [_row(name) for name in SMALL]
    if as_json:
        json.dump(rows, sys.stdout, indent=2)
        print()
        return
    console().print(_table(rows))
    print(OTHERS, end="")


def _row(name: str) -> dict[str, Any]:
    from equinoise.games import load

    tree, environment = load(name)
    return {
        "game": name,
        "infosets": tree.n_infosets,
        "actions": tree.n_actions,
        "depth": tree.depth,
        "log_n_strategies": tree.log_n_strategies,
        "loss_of_best_strategy": environment.best_response()[0],
        "loss_of_uniform_play": environment.expected_loss(tree.uniform_policy()),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("game", no_wrap=True)
    for heading in ("infosets", "actions", "depth", "ln S", "best", "uniform"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        name, *sizes, strategies, best, uniform = row.values()
        counts = [f"{size:,}" for size in sizes]
        table.add_row(name, *counts, f"{strategies:.1f}", f"{best:.4f}", f"{uniform:.4f}")
    return table
