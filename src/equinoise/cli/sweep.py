"""``equinoise sweep``: a grid of parameters from a file, one table out."""

from pathlib import Path
from typing import Annotated

import typer

from equinoise.cli import common

_FILE = "What to simulate: its keys are parameters, and [grid] has lists of values."
_REPLICATES = "In place of the file's n_replicates: a number, or a slice such as 300:400."


def command(
    context: typer.Context,
    file: Annotated[Path, common.argument(_FILE, "FILE.toml")],
    replicates: Annotated[str | None, common.option(_REPLICATES, metavar="N|A:B")] = None,
    jobs: common.Jobs = None,
    dask: common.Dask = None,
    out: common.Out = Path("equinoise-sweep"),
    as_json: common.AsJson = False,
) -> None:
    """Run a simulation at every point of a grid.

    FILE.toml says simulate = "bandits", "linear", "efb" (with game, player and opponents) or "self-play", and
    the parameters of that function of the package, those to vary in [grid]. Everything is checked before any
    work. Writes sweep.csv, summary.csv, run.json and, with pyarrow, sweep.parquet into --out. After a kill
    the same command goes on where it was stopped.
    """
    from equinoise.experiments.commands import sweep

    own = {} if replicates else {"n_replicates": "n_replicates"}  # a key of the file
    with common.refusing(context, **own) as (folder, workers):
        plan = sweep.Plan.read(file, None if replicates is None else common.span(replicates))
        if context.obj is not None:  # the points that `equinoise merge` joined
            plan.refuse_other_points(context.obj)
    with workers as pool:
        made = plan.run(pool, folder / common.KEPT, progress=True)
    written = made.write(folder)
    common.finish_slice(context, folder)
    if as_json:
        common.print_json(made.document())
    else:
        print(f"{len(plan.points)} point{'s' * (len(plan.points) > 1)}. Wrote {', '.join(map(str, written))}")
