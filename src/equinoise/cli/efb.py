"""``equinoise efb``: from a game to a regret curve."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common, games
from equinoise.cli.common import AsJson, Checkpoints, Dask, Jobs, Out, Replicates, Seed, one_of, option

_GAME = 'A built-in game (see `equinoise games`), "openspiel:NAME(...)", or a .efg file.'
_SENT = ", what a user sends: one symbol, or the paper's noised losses"
_EPSILON = "Local privacy of each report; may be repeated. 4 where the learner is private, else inf."
_OTHERS = "How the others play: uniform, or a JSON file {INFOSET: {ACTION: PROBABILITY}}."
_SCHEDULE = "How they play for so many trials; may be repeated, and begins again at its end."
_RECALL = ": refuse games whose learner forgets, or split what it forgets"


def command(
    context: typer.Context,
    game: Annotated[str, common.argument(_GAME, "GAME", games.names)],
    player: Annotated[str, option("Who learns: a number or a label.", names=games.players)] = "0",
    epsilon: Annotated[list[float], option(_EPSILON, metavar="<float>")] = [],  # noqa: B006 - Typer's
    trials: Annotated[int, option("Trials (users) per replicate.")] = 200_000,
    replicates: Replicates = "8",
    learner: Annotated[str, one_of("dp-efb", "ixomd", "flat-exp3", "uniform")] = "dp-efb",
    mechanism: Annotated[str, one_of("hashing", "laplace", more=_SENT)] = "hashing",
    tuning: Annotated[str, one_of("sharp", "paper", more="; paper needs laplace")] = "sharp",
    opponents: Annotated[str, option(_OTHERS)] = "uniform",
    schedule: Annotated[list[str], option(_SCHEDULE, metavar="TRIALS:OPPONENTS")] = [],  # noqa: B006
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    checkpoints: Checkpoints = 50,
    recall: Annotated[str, one_of("check", "refine", more=_RECALL)] = "check",
    max_histories: Annotated[int | None, option("Give up on a larger game.")] = None,
    out: Out = Path("equinoise-efb"),
    as_json: AsJson = False,
) -> None:
    """Learn to play GAME from locally private reports.

    Shows the regret, its proven bound, and what privacy costs. The learner at each epsilon, the same
    without privacy, and uniform play face the same draws. Writes regret.csv, regret.png, run.json into --out.
    """
    from equinoise import _files
    from equinoise.efb import LEARNERS
    from equinoise.experiments.commands import efb

    with common.refusing(context, horizon="--trials") as (folder, threads):
        asked = epsilon or [math.inf if learner in LEARNERS and not LEARNERS[learner].private else 4.0]
        given = asked[0] if len(asked) == 1 else tuple(asked)
        parts: dict[str, Any] = {"epsilon": given, "replicates": common.span(replicates)}
        parameters = common.taken(context, efb.Parameters, **parts, schedule=tuple(schedule))
        with common.working(f"loading {game}"):
            tree, environment = efb.prepare(parameters)
    with threads as pool:
        kept = common.slice_folder(context, folder)
        made = efb.compare(tree, environment, parameters, executor=pool, progress=True, resume=kept)
    written = _files.write_all(folder, made.files())
    if kept is not None:
        common.finish_slice(context, folder)
    if as_json:
        common.print_json(made.document())
        return
    print(made.exhibit.text[0])
    *learning, uniform = made.runs
    names = [name.replace("private", f"epsilon {made.parameters.epsilons[0]:g}") for name in learning]
    heads = [head for name in names for head in (f"regret,\n{name}", "bound on\nits mean")]
    rows = [
        (row["trials"], *(x for name in learning for x in (row[name], row[name]["bound"])), row[uniform])
        for row in made.rows()
    ]
    heads, digits = ["trials", *heads, "regret,\nuniform play"], (",d", *[",.0f"] * (len(heads) + 1))
    common.print_table(rows, heads, digits, made.parameters.n_replicates)
    for sentence in made.exhibit.text[1:]:
        common.paragraph(sentence)
    print(f"Wrote {', '.join(map(str, written))}")
