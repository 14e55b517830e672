"""``equinoise bandit``: the bias of what a bandit gathers, and its regret, with the controls."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from equinoise.cli import common
from equinoise.cli.common import AsJson, Checkpoints, Jobs, Out, Replicates, Seed, one_of

_MOST_ARMS = 25  # rows of the table of arms
_MEANS = common.option("True means of the arms, separated by commas.", metavar="M,M,...")
_EPSILON = "Privacy of every reward; 0.1 by default where the policy needs one."
_OPTION = "Another option of the policy; may be repeated.{others}"
_TIES = " arm among equals; by default as the policy has it"


def _registry(_: object = None) -> Mapping[str, Any]:
    from equinoise.bandits.policies.registry import POLICIES

    return POLICIES


def _settings(context: typer.Context) -> Iterator[str]:
    """Yield what ``--option`` may begin with for the policy that was typed."""
    for name, option in _registry()[context.params["policy"]].options.items():
        yield from (f"{name}={value}" for value in _values(option) or ("",))


def _values(option: Any) -> tuple[str, ...]:
    return ("yes", "no") if option.kind == "flag" else option.choices


def late_help() -> dict[str, str]:
    """Return what the help says from the registry, by the words in braces that stand for it."""
    from equinoise.bandits.policies.registry import groups

    lists = [f"{title}: {', '.join(row.name for row in rows)}" for title, rows in groups().items()]
    words = {"policies": "; ".join(lists), "others": ""}
    for name, option in {n: o for row in _registry().values() for n, o in row.options.items()}.items():
        owners = ", ".join(row.name for row in _registry().values() if name in row.options)
        values = " or ".join(_values(option)) or f"a {option.kind}"
        words[name] = f"{values}, {option.summary} ({owners})"
        words["others"] += "" if name in ("width", "counter") else f" {name}={words[name]}."
    return words


def _registered(name: str) -> Any:
    return common.option(f"{{{name}}}.", names=lambda _: _registry()["private-ucb"].options[name].choices)


def command(
    context: typer.Context,
    policy: Annotated[
        str, common.option("What chooses the arms ({policies}).", names=_registry)
    ] = "private-ucb",
    means: Annotated[str, _MEANS] = "1,0.95,0.9,0.85",
    horizon: Annotated[int, common.option("Rounds per replicate.")] = 500,
    epsilon: Annotated[float | None, common.option(_EPSILON)] = None,
    replicates: Replicates = 1000,
    width: Annotated[str, _registered("width")] = "counter",
    counter: Annotated[str, _registered("counter")] = "binary",
    option: Annotated[list[str] | None, common.option(_OPTION, names=_settings, metavar="NAME=VALUE")] = None,
    reward: Annotated[str, one_of("bernoulli", "gaussian")] = "bernoulli",
    ties: Annotated[str | None, one_of("first", "random", more=_TIES)] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoints: Checkpoints = 50,
    out: Out = Path("equinoise-bandit"),
    as_json: AsJson = False,
) -> None:
    """Measure the bias of a bandit's data, and its regret.

    The policy faces the same random draws as plain UCB and uniform play and, with an epsilon, as private UCB
    without its noise (width-only) and without its width (noise-only). Writes bias.csv, regret.csv, three
    figures and run.json into --out.
    """
    from equinoise import _files
    from equinoise.experiments.commands import bandit
    from equinoise.experiments.commands.common import files

    words = {"n_replicates": "--replicates", "n_checkpoints": "--checkpoints"}
    with common.refusing(context, **words) as (folder, threads):
        changed = {"means": _means(means), "options": bandit.parsed(policy, option or ())}
        parameters = common.taken(context, bandit.Parameters, **changed)
    with common.pool(threads) as executor:
        made = bandit.compare(parameters, executor=executor, progress=True)
    if not as_json:
        _show(made)  # before the figures, which take longer than a small comparison
    document = made.document()
    with common.working("drawing"):
        content = files(made.exhibit(), document)
    written = _files.write_all(folder, content)
    if as_json:
        common.print_json(document)
    else:
        print(f"Wrote {', '.join(map(str, written))}")


def _means(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"means must be numbers separated by commas, got {text!r}") from None


def _show(made: Any) -> None:
    print(made.title)
    _print_runs(made)
    _print_arms(made)
    if len(made.parameters.means) > _MOST_ARMS:
        print(f"The first {_MOST_ARMS} arms; all of them are in bias.csv.")
    if made.parameters.replicates > 1:
        print(f"After {common.plus_minus()}: half of a 95% interval over the replicates.")
    for sentence in made.sentences:
        common.paragraph(sentence, "- ")


def _print_runs(made: Any) -> None:
    heads = ("mean absolute\nbias", "chance\nalone", "largest\nbias", "arms with\n0 inside", "\nregret")
    rows = [
        (
            name,
            _cell(row.mean_absolute_bias, row.stderr),
            "" if row.luck != row.luck else f"{row.luck:z.4f}",
            f"{row.largest_bias:z.4f}",
            "" if row.arms_at_zero is None else f"{row.arms_at_zero:,} of {len(made.parameters.means):,}",
            _cell(row.regret, row.regret_stderr, ",.1f"),
        )
        for name, row in made.summaries.items()
    ]
    common.print_table(rows, "\nrun", *heads)


def _print_arms(made: Any) -> None:
    """Print a line per arm: the policy, plain UCB and uniform play."""
    shown = list(dict.fromkeys((made.parameters.policy, "ucb", "uniform")))
    heads = [f"bias,\n{name}" for name in shown]
    bound = [] if made.bound is None else ["its\nbound"]
    rows = []
    for row in made.arms()[:_MOST_ARMS]:
        first, *others = (_cell(row[name]["bias"], row[name]["stderr"]) for name in shown)
        own = [f"{row['bound']:.4f}"] if bound else []
        rows.append((f"{row['arm']:,}", f"{row['mean']:g}", first, *own, *others))
    common.print_table(rows, "\narm", "\nmean", heads[0], *bound, *heads[1:])


def _cell(value: float | None, stderr: float | None, digits: str = "z.4f") -> str:
    """Return a figure with half of its 95% interval, where there is one."""
    from equinoise._results import Z95

    if value is None:
        return "never pulled"
    return common.estimate(value, None if stderr is None else Z95 * stderr, digits)
