"""One bandit policy with plain UCB, uniform play and the controls: bias of every arm, and regret."""

import math
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from equinoise import _checks, _results, bandits, inference, replicates
from equinoise._typing import Any, DataFrame, Floats, Iterable, Mapping, Unpack
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias import power
from equinoise.experiments.bias.common import Summary, bias_frame, summarise
from equinoise.experiments.bias.exhibits import POWER
from equinoise.experiments.commands import common
from equinoise.experiments.steps import SECTIONS, Running, gather
from equinoise.nvo.release.certificate import above, exact
from equinoise.report import figures, pictures
from equinoise.report.exhibit import Exhibit, Picture, Table, joined

CONTROLS = ("width-only", "noise-only")
EPSILON = 0.1  # where a policy needs one and none is given
_LARGEST_MEAN = 1e100  # of Gaussian rewards


@dataclass(frozen=True)
class Parameters:
    """What one comparison depends on, checked when made, as :func:`equinoise.bandits.simulate` takes it.

    A policy that needs an epsilon has 0.1 by default; for another, None means that there are no controls.
    `options` are further options of the policy.
    """

    policy: str = "private-ucb"
    means: tuple[float, ...] = (1.0, 0.95, 0.9, 0.85)
    horizon: int = 500
    epsilon: float | None = None
    replicates: int | range = 1000  # a range is a slice of a run
    width: str = "counter"
    counter: str = "k-ary"
    reward: str = "bernoulli"
    ties: str | None = None
    seed: int = 0
    checkpoints: int = 50
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spec = policy(self.policy)
        spec.checked_options({"width": self.width, "counter": self.counter, **self.options})
        bernoulli = _checks.choice("reward", self.reward, ("bernoulli", "gaussian")) == "bernoulli"
        low, high = (0.0, 1.0) if bernoulli else (-_LARGEST_MEAN, _LARGEST_MEAN)
        n_arms = _checks.array("means", self.means, np.float64, (None,), low=low, high=high).size
        if not n_arms:
            raise ValueError("means must be at least one number, got none")
        rounds = _checks.integer("horizon", self.horizon, n_arms, _checks.MOST_ROUNDS)
        _results.check_work(self.n_replicates, rounds)
        if self.epsilon is None and spec.needs_epsilon:
            object.__setattr__(self, "epsilon", EPSILON)
        if self.epsilon is not None:
            policy(CONTROLS[0]).checked_epsilon(self.epsilon)
        _checks.integer("checkpoints", self.checkpoints, 1, _results.MOST_CHECKPOINTS)
        _checks.integer("seed", self.seed, 0)
        if self.ties is not None:
            _checks.choice("ties", self.ties, ("first", "random"))
        kept = 2 * n_arms + min(self.checkpoints, self.horizon)
        _results.check_memory(self.n_replicates, len(self.policies) * kept)

    @property
    def n_replicates(self) -> int:
        """How many replicates are run."""
        return len(replicates.checked_span(self.replicates))

    @property
    def bounded(self) -> bool:
        """Whether a bound on the bias is proven for this policy and these rewards."""
        return policy(self.policy).private and self.reward == "bernoulli"

    @property
    def policies(self) -> tuple[str, ...]:
        """What is run: the policy, plain UCB, uniform play and, where there is an epsilon, the controls."""
        others = ("ucb", "uniform", *(CONTROLS if self.epsilon is not None else ()))
        return tuple(dict.fromkeys((self.policy, *others)))


def sentences(parameters: Parameters) -> tuple[str, ...]:
    """Return what is protected, what is proven of the bias, what is not, and how to read the table."""
    name, epsilon = parameters.policy, math.inf if parameters.epsilon is None else parameters.epsilon
    if not policy(name).private:
        words = [f"Nothing is protected: {name} is not private, and no bound on its bias is proven."]
    elif math.isinf(epsilon):
        words = ["Nothing is protected: at an infinite epsilon there is no noise, and no bound is proven."]
    elif not parameters.bounded:
        words = [
            "Nothing is protected: Gaussian rewards have no bounds. No bound on the bias is proven either."
        ]
    else:
        words = [
            f"Protected: every single reward, from whoever sees which arms were chosen and nothing else. "
            f"Another one changes the probability of any choices by at most e^{exact(epsilon)}, "
            f"or {above(math.exp(min(epsilon, 700.0)), 4)} times.",
            "Proven: the bias of an arm is at most tanh(epsilon/4), whatever its mean, here "
            f"{above(inference.bias_bound(epsilon), 4)}, and at most what the table shows for the given "
            "means (the log-odds shift; it improves on Theorem 1 of Neel and Roth, 2018).",
            "Not protected: what the analyst sees. Sums and means are the true ones. For someone with "
            "rewards in m rounds epsilon is m times as large. A simulation protects nobody, since its noise "
            "comes from a seed: for people there is equinoise.bandits.PrivateUCB.",
        ]
    words.append(
        "Low bias is never free: uniform play has none, but pays the regret of learning nothing. A bias no "
        "larger than the one by chance alone is what these replicates would show if no arm had any."
    )
    if parameters.epsilon is not None:
        words.append(
            "Controls: width-only is private-ucb without its noise (not private), noise-only is private-ucb "
            "without the width that allows for its noise. Where width-only has the bias and the regret of "
            "private-ucb, it is the width that lowers the bias, not the privacy."
        )
    return tuple(words)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs that faced the same random draws, by policy, the one that was asked for first."""

    parameters: Parameters
    runs: dict[str, bandits.BanditRun]
    seconds: float

    @property
    def title(self) -> str:
        """How it was made, in one line."""
        made = self.parameters
        budget = "" if made.epsilon is None else f", epsilon {made.epsilon:g}"
        return (
            f"{made.policy}{budget}: {len(made.means):,} arms, {made.horizon:,} rounds, "
            f"{made.n_replicates:,} replicates, seed {made.seed}"
        )

    @property
    def bound(self) -> Floats | None:
        """What the absolute bias of each arm is proven to stay within, float64[K]; None for no bound."""
        epsilon = self.parameters.epsilon
        if epsilon is None or not self.parameters.bounded or math.isinf(epsilon):
            return None
        return np.asarray(inference.bias_bound(epsilon, self.parameters.means), dtype=np.float64)

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Bias and regret of every run."""
        return {name: summarise(run) for name, run in self.runs.items()}

    def to_frame(self) -> DataFrame:
        """Return one row per run and arm: run, arm, mean, bias, stderr, ci_low, ci_high, bound."""
        import pandas as pd

        return bias_frame(self.runs).assign(bound=pd.Series(self.bound, dtype=float))

    def arms(self) -> list[dict[str, Any]]:
        """Return a dict per arm: ``arm``, ``mean``, ``bound``, and for each run a dict of its bias.

        None stands for no bound, for intervals of one replicate, and for the bias of an arm never pulled.
        """
        table: dict[int, dict[str, Any]] = {}
        for row in map(common.finite, self.to_frame().to_dict("records")):
            arm = {name: row[name] for name in ("arm", "mean", "bound")}
            bias = {name: row[name] for name in ("bias", "stderr", "ci_low", "ci_high")}
            table.setdefault(row["arm"], arm)[row["run"]] = bias
        return list(table.values())

    def regret_frame(self) -> DataFrame:
        """Return one row per run and checkpoint: run, trials, mean, stderr, ci_low, ci_high."""
        frame = joined(run.summary().assign(quantity=name) for name, run in self.runs.items())
        return frame.rename(columns={"quantity": "run"})

    def exhibit(self) -> Exhibit:
        """Return what it shows: how it was made, tables, figures, and how to read them."""
        asked, plain = self.summaries[self.parameters.policy], self.summaries["ucb"]
        both = (f"{one.mean_absolute_bias:.4f} at a regret of {one.regret:,.1f}" for one in (asked, plain))
        headline = "Mean absolute bias {}; plain UCB: {}.".format(*both)
        series = [(run.label, run) for run in self.runs.values()]
        found: dict[tuple[str, float | None], Summary] = {(n, None): s for n, s in self.summaries.items()}
        plots = {
            "bias": lambda ax: figures.bandit_bias(ax, series, bound=self.bound),
            "frontier": lambda ax: pictures.frontier(ax, found),
            "regret": lambda ax: figures.regret_means(ax, series),
        }
        tables = {"bias": self.to_frame(), "regret": self.regret_frame()}
        captions = {
            "bias": "Bias of each arm's mean reward, with 95% intervals",
            "frontier": "Mean absolute bias against regret, with 95% intervals",
            "regret": "Cumulative regret, with 95% intervals",
        }
        question = "How biased are the means that a bandit gathers, and what does less bias cost in regret?"
        shown = {stem: Table(captions[stem], frame) for stem, frame in tables.items()}
        drawn = {stem: Picture(captions[stem], headline, figures.drawn(plot)) for stem, plot in plots.items()}
        words = "bandit", SECTIONS["bias"], self.title, question, headline, sentences(self.parameters)
        return Exhibit(*words, shown, drawn)

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds: how it was made, the tables, and the sentences."""
        runs = {name: common.finite(summary._asdict()) for name, summary in self.summaries.items()}
        parts: dict[str, Any] = {"runs": runs, "arms": self.arms(), "notes": sentences(self.parameters)}
        made = common.document("bandit", self.parameters, self.seconds, **parts)
        made["parameters"] |= made["parameters"].pop("options")
        return made


def compare(
    parameters: Parameters,
    *,
    executor: Executor | None = None,
    progress: bool = False,
    resume: Path | None = None,
) -> Comparison:
    """Run what :attr:`Parameters.policies` names on the same random draws; `resume` has a folder for each."""
    begun = time.perf_counter()
    names = ("means", "horizon", "epsilon", "reward", "width", "counter", "ties")
    same = {name: getattr(parameters, name) for name in names} | {"n_checkpoints": parameters.checkpoints}
    jobs = {name: {"policy": name} for name in parameters.policies}
    jobs[parameters.policy] |= parameters.options
    running = Running(seed=parameters.seed, executor=executor, progress=progress)
    if resume is not None:
        running["kept"] = lambda case: resume / case
    runs = gather(bandits.simulate, jobs, parameters.replicates, running, **same)
    return Comparison(parameters, runs, time.perf_counter() - begun)


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan of a test with a policy, and how long it took."""

    parameters: Parameters
    plan: power.Plan
    seconds: float

    def exhibit(self) -> Exhibit:
        """Return what it shows."""
        return power.show(POWER, self.plan)

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds."""
        rows = list(map(common.finite, self.plan.frame.to_dict("records")))
        return common.document("plan", self.parameters, self.seconds, rows=rows)


def planned(made: Parameters, null: float | None, **running: Unpack[Running]) -> Planned:
    """Plan a test with a policy, beside Thompson sampling, plain UCB and uniform play."""
    begun = time.perf_counter()
    if not isinstance(made.replicates, int):
        raise ValueError("replicates must be a number for a plan, got a slice")
    if made.reward != "bernoulli":
        raise ValueError(f"reward must be 'bernoulli' for a plan, got {made.reward!r}")
    own = {"width": made.width, "counter": made.counter, **made.options}
    names = tuple(dict.fromkeys((made.policy, "thompson", "ucb")))
    epsilons = (EPSILON if made.epsilon is None else made.epsilon,)
    same: dict[str, Any] = {"horizon": made.horizon, "replicates": made.replicates, "seed": made.seed}
    same |= {"means": made.means, "null": null, "policies": names, "epsilons": epsilons}
    found = power.plan(options={made.policy: own}, **same, **running)
    return Planned(made, found, time.perf_counter() - begun)


def parsed(name: str, settings: Iterable[str]) -> dict[str, Any]:
    """Return options of a policy that are given as ``NAME=VALUE``."""
    options, made = policy(name).options, {}
    for setting in settings:
        key, is_given, text = setting.partition("=")
        if not is_given:
            raise ValueError(f"option must be NAME=VALUE, got {setting!r}")
        if key in made:
            raise ValueError(f"option must be given once for {key!r}, got {setting!r} too")
        made[key] = options[key].parse(key, text) if key in options else text
    return made
