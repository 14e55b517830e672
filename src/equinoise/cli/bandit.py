"""``equinoise bandit``: the bias of what a bandit gathers, and its regret, beside the controls."""

from __future__ import annotations

import json
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equinoise.cli.common import console, refusing, working

if TYPE_CHECKING:
    from rich.table import Table

    from equinoise.experiments.commands.bandit import Comparison

__all__ = ["command"]

_OPTIONS = {
    "n_replicates": "--replicates",
    "n_checkpoints": "--checkpoints",
    **{
        name: f"--{name}"
        for name in (
            *("policy", "means", "horizon", "epsilon", "replicates", "width", "counter", "reward", "ties"),
            *("seed", "jobs", "checkpoints", "out"),
        )
    },
}
_MOST_ARMS = 25  # rows of the table of arms


def command(
    policy: Annotated[
        str,
        typer.Option(
            help="private-ucb, dp-klucb, dp-se, adap-ucb, lazy-dp-ts; ucb, ucb1, greedy, uniform; or "
            "a control, width-only or noise-only."
        ),
    ] = "private-ucb",
    means: Annotated[
        str, typer.Option(metavar="M,M,...", help="True means of the arms, separated by commas.")
    ] = "1,0.95,0.9,0.85",
    horizon: Annotated[int, typer.Option(help="Rounds of a replicate.")] = 500,
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy of every reward; private policies and controls need it.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Independent repetitions, for the intervals.")] = 1000,
    width: Annotated[
        str, typer.Option(help="Of private-ucb: counter (the tail of its own noise) or published.")
    ] = "counter",
    counter: Annotated[str, typer.Option(help="Of private-ucb: binary or hybrid.")] = "binary",
    reward: Annotated[str, typer.Option(help="bernoulli or gaussian.")] = "bernoulli",
    ties: Annotated[
        str | None, typer.Option(help="first (lowest arm) or random; by default as the policy has it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bits.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; by default one a processor.")] = None,
    checkpoints: Annotated[int, typer.Option(help="Numbers of rounds that go into regret.csv.")] = 50,
    out: Annotated[
        Path, typer.Option(help="Folder for frames, figures and run.json, which are replaced.")
    ] = Path("equinoise-bandit"),
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json in place of the tables.")] = False,
) -> None:
    """Show how biased the means are that a bandit gathers, and what a smaller bias costs in regret.

    The policy meets the same luck as plain UCB and uniform play and, with an epsilon, as private UCB without
    its noise (width-only) and without its width (noise-only).
    """
    from concurrent.futures import ThreadPoolExecutor

    from equinoise import _checks, _files
    from equinoise.experiments.commands import bandit

    with refusing(_OPTIONS):
        folder = _files.writable_folder("out", out)
        threads = None if jobs is None else _checks.integer("jobs", jobs, minimum=1)
        parameters = bandit.Parameters(
            policy=policy,
            means=_means(means),
            horizon=horizon,
            epsilon=epsilon,
            replicates=replicates,
            width=width,
            counter=counter,
            reward=reward,
            ties=ties,
            seed=seed,
            checkpoints=checkpoints,
        )
    with ExitStack() as stack:
        pool = None if threads is None else stack.enter_context(ThreadPoolExecutor(threads))
        made = bandit.compare(parameters, executor=pool, progress=True)
    if not as_json:
        _show(made)  # before the figures, which take longer than a small comparison
    with working("drawing"):
        files = made.files()
    written = _files.write_all(folder, files)
    if as_json:
        json.dump(made.document(), sys.stdout, indent=2)
        print()
    else:
        print(f"Wrote {', '.join(str(path) for path in written)}")


def _means(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"means must be numbers separated by commas, got {text!r}") from None


def _show(made: Comparison) -> None:
    screen = console()
    parameters = made.parameters
    budget = "" if parameters.epsilon is None else f", epsilon {parameters.epsilon:g}"
    print(
        f"{parameters.policy}{budget}: {len(parameters.means):,} arms, {parameters.horizon:,} rounds, "
        f"{parameters.replicates:,} replicates, seed {parameters.seed}"
    )
    sign = "±" if screen.encoding.lower().startswith("utf") else "+-"
    screen.print(_runs(made, sign))
    screen.print(_arms(made, sign))
    if len(parameters.means) > _MOST_ARMS:
        print(f"The first {_MOST_ARMS} arms; all of them are in bias.csv.")
    if parameters.replicates > 1:
        print(f"After {sign}: half of a 95% interval over the replicates.")
    for sentence in made.sentences():
        print(_wrapped(sentence, min(screen.width, 100)))


def _wrapped(sentence: str, width: int) -> str:
    return textwrap.fill(sentence, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _runs(made: Comparison, sign: str) -> Table:
    """Return a table with one line a run."""
    table = _table(
        "\nrun", "mean absolute\nbias", "luck\nalone", "largest\nbias", "arms with\n0 inside", "\nregret"
    )
    for name, row in made.summaries().items():
        table.add_row(
            name,
            _cell(row.mean_absolute_bias, row.stderr, sign, "z.4f"),
            _number(row.luck, "z.4f"),
            f"{row.largest_bias:z.4f}",
            "" if row.arms_at_zero is None else f"{row.arms_at_zero:,} of {len(made.means):,}",
            _cell(row.regret, row.regret_stderr, sign, ",.1f"),
        )
    return table


def _arms(made: Comparison, sign: str) -> Table:
    """Return a table with one line an arm: the policy, and the two that are always beside it."""
    shown = [name for name in made.runs if name not in ("width-only", "noise-only")]
    shown = list(dict.fromkeys([made.parameters.policy, *shown]))
    bounded = made.bound is not None
    heads = [f"bias,\n{name}" for name in shown]
    if bounded:
        heads.insert(1, "its\nbound")
    table = _table("\narm", "\nmean", *heads)
    for row in made.arms()[:_MOST_ARMS]:
        cells = [_estimate(row[name], sign) for name in shown]
        if bounded:
            cells.insert(1, f"{row['bound']:.4f}")
        table.add_row(f"{row['arm']:,}", f"{row['mean']:g}", *cells)
    return table


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _estimate(entry: dict[str, Any], sign: str) -> str:
    if entry["bias"] is None:
        return "never pulled"
    return _cell(entry["bias"], entry["stderr"], sign, "z.4f")


def _cell(value: float, stderr: float | None, sign: str, digits: str) -> str:
    """Return a figure with half of its 95% interval, where there is one."""
    from equinoise._results import Z95

    if stderr is None or stderr != stderr:
        return format(value, digits)
    return f"{value:{digits}} {sign} {Z95 * stderr:{digits}}"


def _number(value: float, digits: str) -> str:
    return "" if value != value else format(value, digits)
