"""``equinoise efb``: from a game to a regret curve."""

from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common, games
from equinoise.cli.common import AsJson, Checkpoints, Jobs, Out, Replicates, Seed, one_of, option

_GAME = 'A built-in game (see `equinoise games`), "openspiel:NAME(...)", or a .efg file.'
_COMPLETE = common.completing(games.names)
_SENT = ", what a user sends: one symbol, or the paper's noised losses"
_RECALL = ": refuse games whose learner forgets, or split what it forgets"


def command(
    context: typer.Context,
    game: Annotated[str, typer.Argument(metavar="GAME", help=_GAME, autocompletion=_COMPLETE)],
    player: Annotated[str, option("Who learns: a number or a label.", names=games.players)] = "0",
    epsilon: Annotated[float, option("Local privacy of each report.")] = 4.0,
    trials: Annotated[int, option("Trials (users) per replicate.")] = 200_000,
    replicates: Replicates = 8,
    mechanism: Annotated[str, one_of("hashing", "laplace", more=_SENT)] = "hashing",
    tuning: Annotated[str, one_of("sharp", "paper", more="; paper needs laplace")] = "sharp",
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoints: Checkpoints = 50,
    recall: Annotated[str, one_of("check", "refine", more=_RECALL)] = "check",
    max_histories: Annotated[int | None, option("Give up on a larger game.")] = None,
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
    with common.refusing(context, **words) as (folder, threads):
        parameters = common.taken(context, efb.Parameters)
        with common.working(f"loading {game}"):
            tree, environment = efb.prepare(parameters)
    with common.pool(threads) as executor:
        made = efb.compare(tree, environment, parameters, executor=executor, progress=True)
    written = _files.write_all(folder, made.files())
    if as_json:
        common.print_json(made.document())
    else:
        _show(made, written)


def _show(made: Any, written: list[Path]) -> None:
    def cell(entry: dict[str, Any]) -> str:
        half = None if entry["stderr"] is None else entry["ci_high"] - entry["mean"]
        return common.estimate(entry["mean"], half, ",.0f")

    print(made.exhibit.text[0])
    names = {"private": f"epsilon {made.parameters.epsilon:g}", "no privacy": "no privacy"}
    heads = [head for name in names.values() for head in (f"regret,\n{name}", "its\nbound")]
    rows = []
    for row in made.rows():
        cells = [text for name in names for text in (cell(row[name]), f"{row[name]['bound']:,.0f}")]
        rows.append((f"{row['trials']:,}", *cells, cell(row["uniform"])))
    common.print_table(rows, "\ntrials", *heads, "regret,\nuniform play", left=0)
    if made.parameters.replicates > 1:
        half = f"{common.plus_minus()} half of its 95% interval over the replicates"
        print(f"Regret: mean {half}; bound: proven for the mean.")
    for sentence in made.exhibit.text[1:]:
        print(sentence)
    print(f"Wrote {', '.join(map(str, written))}")
