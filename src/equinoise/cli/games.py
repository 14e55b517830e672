"""``equinoise games``: which games there are, and how to name others."""

from __future__ import annotations

from equinoise.cli._terminal import console

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


def command() -> None:
    """List the built-in games, and how to name others."""
    from rich import box
    from rich.table import Table

    from equinoise.games import load

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("game", no_wrap=True)
    for heading in ("infosets", "actions", "depth", "ln S", "best", "uniform"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in SMALL:
        tree, environment = load(name)
        best, uniform = environment.best_response()[0], environment.expected_loss(tree.uniform_policy())
        sizes = (tree.n_infosets, tree.n_actions, tree.depth)
        numbers = [f"{size:,}" for size in sizes]
        table.add_row(name, *numbers, f"{tree.log_n_strategies:.1f}", f"{best:.4f}", f"{uniform:.4f}")
    console().print(table)
    print(OTHERS, end="")
