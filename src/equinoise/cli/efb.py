"""``equinoise efb``: from a game to a regret curve."""

from pathlib import Path
from typing import Annotated

import typer

from equinoise.cli import common, games
from equinoise.cli.common import AsJson, Checkpoints, Jobs, Out, Replicates, Seed, argument, one_of, option

_GAME = 'A built-in game (see `equinoise games`), "openspiel:NAME(...)", or a .efg file.'
_SENT = ", what a user sends: one symbol, or the paper's noised losses"
_RECALL = ": refuse games whose learner forgets, or split what it forgets"


def command(
    context: typer.Context,
    game: Annotated[str, argument(_GAME, "GAME", games.names)],
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

    with common.refusing(context, horizon="--trials") as (folder, threads):
        learner = int(player) if player.isdecimal() else player
        parameters = common.taken(context, efb.Parameters, player=learner)
        with common.working(f"loading {game}"):
            tree, environment = efb.prepare(parameters)
    with threads as pool:
        made = efb.compare(tree, environment, parameters, executor=pool, progress=True)
    written = _files.write_all(folder, made.files())
    if as_json:
        common.print_json(made.document())
        return
    rows = [(n, a, a["bound"], b, b["bound"], c) for n, a, b, c in map(dict.values, made.rows())]
    private, bound = f"regret,\nepsilon {made.parameters.epsilon:g}", "bound on\nits mean"
    headings = ("trials", private, bound, "regret,\nno privacy", bound, "regret,\nuniform play")
    print(made.exhibit.text[0])
    common.print_table(rows, headings, (",d", *[",.0f"] * 5), made.parameters.replicates)
    for sentence in made.exhibit.text[1:]:
        common.paragraph(sentence)
    print(f"Wrote {', '.join(map(str, written))}")
