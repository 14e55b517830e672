"""``equinoise games``: which games there are, and how to name others; what completes in a shell."""

from collections.abc import Iterator

import typer

from equinoise.cli.common import AsJson, print_json, print_table

SMALL = ("kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "bandit(10)", "complete(3,3,3)")
OTHERS = """\
best, uniform: loss of the best strategy and of uniform play, per trial.

bandit(n) and complete(actions,observations,depth) take any size.
"openspiel:NAME(...)" is a game of OpenSpiel, such as "openspiel:liars_dice(dice_sides=4)":
    pip install "equinoise[games]"
path/to/game.efg is a Gambit file.
--player N or --player LABEL chooses who learns. The counts above are those of player 0
(ln S: logarithm of the number of reduced strategies). Where another player moves first they
include a root with a single action.
"""


def command(as_json: AsJson = False) -> None:
    """List the built-in games, and how to name others."""
    from equinoise.experiments.commands.common import sizes
    from equinoise.games import load

    rows = [{"game": name, **sizes(*load(name))} for name in SMALL]
    if as_json:
        print_json(rows)
        return
    headings = ("game", "infosets", "actions", "depth", "ln S", "best", "uniform")
    print_table([list(row.values()) for row in rows], headings, ("", ",d", ",d", ",d", ".1f", ".4f", ".4f"))
    print(OTHERS, end="")


def names(_: typer.Context) -> Iterator[str]:
    """Yield what GAME may be: the built-in games, and those of OpenSpiel where it is installed."""
    from equinoise.games.catalog import BUILT_IN
    from equinoise.games.openspiel import pyspiel_module

    yield from BUILT_IN
    for name in pyspiel_module().registered_names():
        yield f"openspiel:{name}"


def players(context: typer.Context) -> Iterator[str]:
    """Yield who may learn in the game that was typed: numbers and labels."""
    from equinoise.games.catalog import source_of

    source = source_of(context.params["game"])
    labels = ("0",) if isinstance(source, tuple) else source.player_labels
    yield from dict.fromkeys((*map(str, range(len(labels))), *labels))
