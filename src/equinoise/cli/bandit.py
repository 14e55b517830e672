"""``equinoise bandit``: the bias of what a bandit gathers, and its regret, with the controls."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import equinoise
from equinoise.cli import common
from equinoise.cli.common import AsJson, Checkpoints, Dask, Jobs, Out, Replicates, Seed, one_of, option

_MOST_ARMS = 25  # rows of the table of arms
_MEANS = option("True means of the arms, separated by commas.", metavar="M,M,...")
_POLICY = "What chooses the arms ({policies})."
_OPTION = "Another option of the policy; may be repeated.{others}"
_PLAN = "Plan a test: the power of ways to find the best arm, not the first of --means, and their regret."
_NULL = "What a plan compares means with; by default that of the first arm."
_TIES = " arm among equals; by default as the policy has it"


def _settings(context: typer.Context) -> Iterator[str]:
    """Yield what ``--option`` may begin with for the policy that was typed."""
    for name, row in equinoise.bandits.POLICIES[context.params["policy"]].options.items():
        yield from (f"{name}={value}" for value in _values(row) or ("",))


def _values(option: Any) -> tuple[str, ...]:
    return ("yes", "no") if option.kind == "flag" else option.choices


def late_help() -> dict[str, str]:
    """Return what the help says from the registry, by the words in braces that stand for it."""
    from equinoise.bandits.policies.registry import POLICIES, groups

    lists = [f"{title}: {', '.join(row.name for row in rows)}" for title, rows in groups().items()]
    words = {"policies": "; ".join(lists), "others": ""}
    for name, one in {n: o for row in POLICIES.values() for n, o in row.options.items()}.items():
        owners = ", ".join(row.name for row in POLICIES.values() if name in row.options)
        values = " or ".join(_values(one)) or one.kind
        words[name] = f"{values}, {one.summary} ({owners})"
        words["others"] += "" if name in ("width", "counter") else f" {name}={words[name]}."
    return words


def _registered(name: str) -> Any:
    return option(
        f"{{{name}}}.", names=lambda _: equinoise.bandits.POLICIES["private-ucb"].options[name].choices
    )


def command(
    context: typer.Context,
    policy: Annotated[str, option(_POLICY, names=lambda _: equinoise.bandits.POLICIES)] = "private-ucb",
    means: Annotated[str, _MEANS] = "1,0.95,0.9,0.85",
    horizon: Annotated[int, option("Rounds per replicate.")] = 500,
    epsilon: Annotated[float | None, option("Privacy of a reward; 0.1 where the policy needs one.")] = None,
    replicates: Replicates = "1000",
    width: Annotated[str, _registered("width")] = "counter",
    counter: Annotated[str, _registered("counter")] = "k-ary",
    option: Annotated[list[str] | None, option(_OPTION, names=_settings, metavar="NAME=VALUE")] = None,
    reward: Annotated[str, one_of("bernoulli", "gaussian")] = "bernoulli",
    ties: Annotated[str | None, one_of("first", "random", more=_TIES)] = None,
    plan: Annotated[bool, option(_PLAN, "--plan")] = False,
    null: Annotated[float | None, option(_NULL)] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    checkpoints: Checkpoints = 50,
    out: Out = Path("equinoise-bandit"),
    as_json: AsJson = False,
) -> None:
    """Measure the bias of a bandit's data, and its regret.

    The policy faces the same random draws as plain UCB and uniform play and, with an epsilon, as private UCB
    without its noise (width-only) and without its width (noise-only). Writes bias.csv, regret.csv, three
    figures and run.json into --out; with --plan power.csv, power.png and run.json.
    """
    from equinoise import _checks, _files
    from equinoise.experiments.commands import bandit, common as shared

    with common.refusing(context) as (folder, threads):
        try:
            numbers = tuple(map(float, means.split(",")))
        except ValueError:
            got = _checks.shown(means)
            raise ValueError(f"means must be numbers separated by commas, got {got}") from None
        options = bandit.parsed(policy, option or ())
        given: dict[str, Any] = {"means": numbers, "options": options, "replicates": common.span(replicates)}
        parameters = common.taken(context, bandit.Parameters, **given)
        if null is not None and not plan:
            raise ValueError(f"null must be left out without --plan, got {null}")
        if plan:  # what is wrong with it shows before any work
            few = range(2) if ":" in replicates else min(2, parameters.n_replicates)
            bandit.planned(dataclasses.replace(parameters, replicates=few), null)
    with threads as pool:
        how: dict[str, Any] = {"executor": pool, "progress": True}
        kept = common.slice_folder(context, folder)
        if plan:
            made: Any = bandit.planned(parameters, null, **how)
        else:
            made = bandit.compare(parameters, **how, resume=kept)
    document = made.document()
    try:  # before the figures, which take longer than a small comparison
        if plan and not as_json:
            forms = ("", "g", "", ".3f", ".3f", ".3f", ",.1f", ".2f", ",.0f")
            common.print_table(made.plan.frame.to_numpy().tolist(), list(made.plan.frame), forms)
        elif not as_json:
            _show(made)
    finally:  # also where nobody reads on
        with common.working("drawing"):
            written = _files.write_all(folder, shared.files(made.exhibit(), document))
        if kept is not None:
            common.finish_slice(context, folder)
    if as_json:
        common.print_json(document)
    else:
        print(f"Wrote {', '.join(map(str, written))}")


def _show(made: Any) -> None:
    from equinoise.experiments.commands.bandit import sentences

    print(made.title)
    n_arms, runs = len(made.parameters.means), []
    for name, row in made.summaries.items():
        size, regret = ({"mean": x, "stderr": e} for x, e in ((row[0], row.stderr), row[-2:]))
        inside = None if row.arms_at_zero is None else f"{row.arms_at_zero:,} of {n_arms:,}"
        runs.append((name, size, row.luck, row.largest_bias, inside, regret))
    heads = ["run", "mean absolute\nbias", "chance\nalone", "largest\nbias", "arms with\n0 inside", "regret"]
    common.print_table(runs, heads, ("", "z.4f", "z.4f", "z.4f", "s", ",.1f"))
    names = list(dict.fromkeys((made.parameters.policy, "ucb", "uniform")))
    arms = [(*list(row.values())[:3], *map(row.get, names)) for row in made.arms()[:_MOST_ARMS]]
    heads = ["arm", "mean", "proven\nbound", *(f"bias,\n{name}" for name in names)]
    common.print_table(arms, heads, (",d", "g", ".4f", *["z.4f"] * len(names)), made.parameters.n_replicates)
    if n_arms > _MOST_ARMS:
        print(f"The first {_MOST_ARMS} arms; all of them are in bias.csv.")
    for sentence in sentences(made.parameters):
        common.paragraph(sentence, "- ")
