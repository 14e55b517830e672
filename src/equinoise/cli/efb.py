"""``equinoise efb``: from a game to a regret curve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli import common, games
from equinoise.cli.common import AsJson, Checkpoints, Jobs, Out, Replicates, Seed, completing, one_of

if TYPE_CHECKING:
    from rich.table import Table

    from equinoise.experiments.commands.efb import Comparison

_RECALL = ": refuse games whose learner forgets, or split what it forgets"


def command(
    context: typer.Context,
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME",
            help='A built-in game (see `equinoise games`), "openspiel:NAME(...)", or a .efg file.',
            autocompletion=completing(games.names),
        ),
    ],
    player: Annotated[
        str, typer.Option(help="Who learns: a number or a label.", autocompletion=completing(games.players))
    ] = "0",
    epsilon: Annotated[float, typer.Option(help="Local privacy of each report.")] = 4.0,
    trials: Annotated[int, typer.Option(help="Trials (users) per replicate.")] = 200_000,
    replicates: Replicates = 8,
    tuning: Annotated[str, one_of("sharp", "paper")] = "sharp",
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoints: Checkpoints = 50,
    recall: Annotated[str, one_of("check", "refine", more=_RECALL)] = "check",
    max_histories: Annotated[int | None, typer.Option(help="Give up on a larger game.")] = None,
    out: Out = Path("equinoise-efb"),
    as_json: AsJson = False,
) -> None:
    """Learn to play GAME from locally private reports.

    Shows the regret, the bound that is proven for it, and what privacy costs. Three learners face the same
    random draws: DP-EFB at epsilon, the same without privacy, and uniform play. Writes regret.csv,
    regret.png and run.json into --out.
    """
    from equinoise import _files
    from equinoise.experiments.commands import efb

    words = {"horizon": "--trials", "n_replicates": "--replicates", "n_checkpoints": "--checkpoints"}
    with common.refusing(common.options(context, **words)):
        folder, threads = common.folder_and_threads(out, jobs)
        learner = int(player) if player.isdecimal() else player
        parameters = common.taken(context, efb.Parameters, player=learner)
        with common.working(f"loading {game}"):
            tree, environment = efb.prepare(parameters)
    with common.pool(threads) as executor:
        made = efb.compare(tree, environment, parameters, executor=executor, progress=True)
    written = _files.write_all(folder, made.files())
    if as_json:
        common.print_json(made.document())
    else:
        _show(made, written)


def _show(made: Comparison, written: list[Path]) -> None:
    screen, shown = common.console(), made.exhibit
    sign = common.plus_minus(screen)
    print(shown.text[0])
    screen.print(_table(made, sign))
    if made.parameters.replicates > 1:
        print(
            f"Regret: mean {sign} half of its 95% interval over the replicates; bound: proven for the mean."
        )
    for sentence in shown.text[1:]:
        print(sentence)
    print(f"Wrote {', '.join(str(path) for path in written)}")


def _table(made: Comparison, sign: str) -> Table:
    def cell(entry: dict[str, Any]) -> str:
        half = None if entry["stderr"] is None else entry["ci_high"] - entry["mean"]
        return common.estimate(entry["mean"], half, ",.0f", sign)

    names = {"private": f"epsilon {made.parameters.epsilon:g}", "no privacy": "no privacy"}
    heads = [head for name in names.values() for head in (f"regret,\n{name}", "its\nbound")]
    table = common.table("\ntrials", *heads, "regret,\nuniform play", left=0)
    for row in made.rows():
        cells = [text for name in names for text in (cell(row[name]), f"{row[name]['bound']:,.0f}")]
        table.add_row(f"{row['trials']:,}", *cells, cell(row["uniform"]))
    return table
