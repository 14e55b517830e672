"""``equinoise audit``: what draws of the private mechanisms show about their epsilon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common

_DRAWS = "Outputs that a bound is made of; a tenth or fewer for slow ones."
_SEED = "The same seed gives the same bits, but for rows of secure noise: it has no seed."
_ALPHA = "Probability that any bound in the table is wrong, at most."


def names(_: Any) -> Iterator[str]:
    """Yield what WHICH may be."""
    from equinoise.experiments.commands.audit import AUDITS

    yield from AUDITS


def command(
    context: typer.Context,
    which: Annotated[str, common.argument("user, counter, bandit or release.", "WHICH", names)],
    epsilon: Annotated[float, common.option("What the mechanisms are made for, and must keep.")] = 1.0,
    draws: Annotated[int, common.option(_DRAWS)] = 20_000,
    alpha: Annotated[float, common.option(_ALPHA)] = 0.05,
    seed: Annotated[int, common.option(_SEED)] = 0,
    jobs: common.Jobs = None,
    out: common.Out = Path("equinoise-audit"),
    as_json: common.AsJson = False,
) -> None:
    """Look for violations of privacy in the mechanisms here.

    Shows a lower bound on the epsilon of each, exact or from draws. One above what is claimed shows a fault,
    one below proves nothing. Exits with 1 where one shows a fault. Writes audit.csv and run.json into --out.
    """
    from equinoise import _files
    from equinoise.experiments.commands import audit

    with common.refusing(context) as (folder, threads):
        parameters = common.taken(context, audit.Parameters)
    with threads as pool:
        found = audit.find(parameters, pool, f"auditing {which}")
    written = _files.write_all(folder, found.files())
    if as_json:
        common.print_json(found.document())
    else:
        headings = ("mechanism", "pairs", "epsilon", "lower bound", "how", "violation")
        table = found.to_frame().replace({"violated": {True: "shown", False: "none shown"}})
        common.print_table(table.to_numpy().tolist(), headings, ("", ",d", "g", ".3f", "", ""))
        print(f"Wrote {', '.join(map(str, written))}")
    if found.violated:
        common.say(f"violation shown: {'; '.join(found.violated)}")
        raise typer.Exit(1)
