"""``equinoise efb``: from a game to a regret curve."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli.common import console, refusing, working

if TYPE_CHECKING:
    from rich.table import Table

    from equinoise.experiments.commands.efb import Comparison

__all__ = ["command"]

_OPTIONS = {
    "game": "GAME",
    "horizon": "--trials",
    "n_replicates": "--replicates",
    "n_checkpoints": "--checkpoints",
    "max_histories": "--max-histories",
    **{
        name: f"--{name}"
        for name in (
            *("player", "epsilon", "trials", "replicates", "tuning", "seed"),
            *("jobs", "checkpoints", "recall", "out"),
        )
    },
}


def command(
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME",
            help='A built-in game (see `equinoise games`), "openspiel:NAME(...)", or a .efg file.',
        ),
    ],
    player: Annotated[str, typer.Option(help="Who learns: a number from 0, or a label.")] = "0",
    epsilon: Annotated[float, typer.Option(help="Local privacy of each report.")] = 4.0,
    trials: Annotated[int, typer.Option(help="Trials (users) of a replicate.")] = 200_000,
    replicates: Annotated[int, typer.Option(help="Independent repetitions, for the intervals.")] = 8,
    tuning: Annotated[str, typer.Option(help="sharp or paper.")] = "sharp",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bits.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one a processor.")] = None,
    checkpoints: Annotated[int, typer.Option(help="Trial counts that go into regret.csv.")] = 50,
    recall: Annotated[
        str, typer.Option(help="check refuses games whose learner forgets; refine splits what it forgets.")
    ] = "check",
    max_histories: Annotated[int | None, typer.Option(help="Give up on a larger game.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for regret.csv, regret.png and run.json, which are replaced.")
    ] = Path("equinoise-efb"),
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json in place of the table.")] = False,
) -> None:
    """Learn to play GAME from locally private reports.

    Shows the regret, the bound that is proven for it, and what privacy costs. Three learners meet the same
    luck: DP-EFB at epsilon, the same without privacy, and uniform play.
    """
    from concurrent.futures import ThreadPoolExecutor

    from equinoise import _checks, _files
    from equinoise.experiments.commands import efb

    with refusing(_OPTIONS):
        folder = _files.writable_folder("out", out)
        threads = None if jobs is None else _checks.integer("jobs", jobs, minimum=1)
        learner = int(player) if player.isdecimal() else player
        parameters = efb.Parameters(
            game, learner, epsilon, trials, replicates, tuning, seed, checkpoints, recall, max_histories
        )
        with working(f"loading {game}"):
            tree, environment = efb.prepare(parameters)
    with ExitStack() as stack:
        pool = None if threads is None else stack.enter_context(ThreadPoolExecutor(threads))
        made = efb.compare(tree, environment, parameters, executor=pool, progress=True)
    written = _files.write_all(folder, made.files())
    if as_json:
        json.dump(made.document(), sys.stdout, indent=2)
        print()
    else:
        _show(made, written)


def _show(made: Comparison, written: list[Path]) -> None:
    screen = console()
    parameters, tree = made.parameters, made.tree
    print(
        f"{parameters.game}, player {parameters.player}: {tree.n_infosets:,} infosets, {tree.n_actions:,} "
        f"actions, ln S = {tree.log_n_strategies:.1f}; {parameters.replicates} replicates, "
        f"tuning {parameters.tuning}, seed {parameters.seed}",
    )
    sign = "±" if screen.encoding.lower().startswith("utf") else "+-"
    screen.print(_table(made, sign))
    if parameters.replicates > 1:
        print(
            f"Regret: mean {sign} half of its 95% interval over the replicates; bound: proven for the mean."
        )
    if made.private.regret_bound >= parameters.trials:
        print(
            f"The bound that is proven for {parameters.trials:,} trials, {made.private.regret_bound:,.0f}, "
            "is above one a trial: it says nothing yet."
        )
    print(f"Wrote {', '.join(str(path) for path in written)}")


def _table(made: Comparison, sign: str) -> Table:
    from rich import box
    from rich.table import Table

    def cell(entry: dict[str, Any]) -> str:
        if entry["stderr"] is None:
            return f"{entry['mean']:,.0f}"
        return f"{entry['mean']:,.0f} {sign} {entry['ci_high'] - entry['mean']:,.0f}"

    table = Table(box=box.SIMPLE_HEAD)
    epsilon = f"epsilon {made.parameters.epsilon:g}"
    headings = ("\ntrials", f"regret,\n{epsilon}", "its\nbound", "regret,\nno privacy", "its\nbound")
    for heading in (*headings, "regret,\nuniform play"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in made.rows():
        private, free = row["private"], row["no privacy"]
        bounds = [f"{entry['bound']:,.0f}" for entry in (private, free)]
        table.add_row(
            f"{row['trials']:,}", cell(private), bounds[0], cell(free), bounds[1], cell(row["uniform"])
        )
    return table
