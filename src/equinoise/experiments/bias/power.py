"""Power against regret: which way to gather and to test shows that an arm is better, and at what price."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from equinoise import _checks, _results, bandits, inference
from equinoise._typing import Any, Axes, DataFrame, Floats, Ints, Mapping, NamedTuple, Sequence, Unpack
from equinoise.bandits.policies.registry import policy
from equinoise.experiments.bias.common import Result, scaled
from equinoise.experiments.steps import Experiment, Running, gather
from equinoise.report import pictures
from equinoise.report.exhibit import Exhibit, Picture, Table, frame_of
from equinoise.report.figures import column

_LOOKS, _BATCHES = 10, 20  # parts of the rounds
_MOST_ROUNDS = 10**7  # whose history is kept


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """Ways to find the best arm, a row each: policy, epsilon, test, and what they come to.

    That is power, the share of replicates that show the best arm to be better, with its standard error;
    wrong, the share that shows what is not so; the regret, and its share of uniform play's; and rounds, after
    which power is as wanted, NaN for never.
    """

    means: tuple[float, ...]
    frame: DataFrame

    def to_frame(self) -> DataFrame:
        """Return the frame."""
        return self.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw power against regret, with 95% intervals; return the Axes."""
        points = {}
        for row in self.frame.to_dict("records"):
            made = SimpleNamespace(mean_absolute_bias=row["power"], stderr=row["stderr"], regret_stderr=0.0)
            made.regret, made.clear = row["of_uniform"], row["test"] == "e-values"
            epsilon = None if math.isnan(row["epsilon"]) else row["epsilon"]
            points[f"{row['policy']}: {row['test']}", epsilon] = made
        words = "regret, as a share of uniform play's", "power", "valid for one look alone"
        return pictures.frontier(ax, points, words)


def plan(
    scale: float = 1.0,
    *,
    means: Sequence[float] = (0.5, 0.5, 0.59, 0.5, 0.5),
    null: float | None = 0.5,
    policies: Sequence[str] = ("thompson", "ucb", "private-ucb", "dp-klucb"),
    epsilons: Sequence[float] = (0.1, 0.25, 1.0),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    horizon: int = 2000,
    replicates: int = 2000,
    alpha: float = 0.05,
    wanted: float = 0.8,
    **running: Unpack[Running],
) -> Plan:
    """Simulate ways to gather rewards of Bernoulli arms, and to test, two-sided at `alpha`, which is better.

    * Uniform play with a "plain" normal test, or "split": the arm that is best after half of the rounds, in
      turn, has the other half, which alone is tested;
    * policies that know their propensities with "aipw" of constant weights, and with "batched-ols", for which
      they change only after each twentieth part of the rounds;
    * all with "e-values", that is a confidence sequence which is looked at after each tenth part;
    * private ones with the "shift" or "max information", for the arm that was pulled most.

    Tests allow for the number of arms by Bonferroni where no arm was picked beforehand or by private choices.

    Means are compared with `null`, or with arm 0, the control, where it is None. `options` are further
    arguments of :func:`equinoise.bandits.simulate` by policy; rounds are enough at the power `wanted`.
    """
    n = scaled(replicates, scale)
    true = _checks.array("means", means, np.float64, (None,), low=0.0, high=1.0)
    if len(true) < 2 or (true == true.max()).sum() > 1 or (null is None and not true.argmax()):
        where = " and not arm 0, the control" if null is None else ""
        raise ValueError(f"means must be of two arms or more, one of them best{where}, got {list(means)}")
    size = _checks.integer("horizon", horizon, max(_BATCHES, 4 * len(true)), _MOST_ROUNDS)
    judge = _Judge(
        true,
        _checks.number("null", 0.0 if null is None else null, 0.0, 1.0),
        0 if null is None else None,
        _checks.number("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True),
        _results.checkpoints(size, _LOOKS),
        _checks.number("wanted", wanted, 0.0, 1.0),
    )
    given = tuple(_checks.epsilon(epsilon, "epsilons") for epsilon in epsilons)
    jobs: dict[Any, dict[str, Any]] = {("uniform", None, ""): {"policy": "uniform"}}
    for name in policies:
        own = {**(options or {}).get(name, {}), "policy": name}
        for epsilon in given if policy(name).needs_epsilon else (None,):
            jobs[name, epsilon, ""] = {**own, "epsilon": epsilon}
        if "batch" in policy(name).options and not policy(name).needs_epsilon:
            jobs[name, None, "batches"] = {**own, "batch": size // _BATCHES}
    same = {"means": true, "horizon": size, "history": True, "n_checkpoints": 1}
    rows = []
    for (name, epsilon, kind), run in gather(bandits.simulate, jobs, n, running, **same).items():
        for test, side in judge.tests(run, kind):
            rows.append(judge.row(name, epsilon, test, side, run.regret[:, -1]))
        if name == "uniform":
            rows.append(judge.row(name, epsilon, "split", *judge.split(run)))
    return Plan(size, n, tuple(true.tolist()), frame_of(rows).astype({"epsilon": float}))


class _Judge(NamedTuple):
    """Judges runs: float64[R, C, K] is 1 or -1 where an arm is shown, at a look, to be better or worse."""

    means: Floats
    null: float
    control: int | None
    alpha: float
    looks: Ints  # [C] rounds
    wanted: float

    def tests(self, run: Any, kind: str) -> list[tuple[str, Floats]]:
        """Return what every test of a run shows."""
        if kind:
            return [("batched-ols", self._normal(run, "batched-ols"))]
        made = []
        if run.policy == "uniform":
            made.append(("plain", self._normal(run, "ols")))
        elif run.propensities is not None:
            made.append(("aipw", self._normal(run, "aipw")))
        (r, rounds), c, k = run.arms.shape, len(self.looks), len(self.means)
        look = np.searchsorted(self.looks, np.arange(rounds), side="right")
        cell = ((np.arange(r)[:, None] * c + look) * k + run.arms).ravel()
        pulls, sums = (
            np.bincount(cell, part, r * c * k).reshape(r, c, k).cumsum(axis=1)
            for part in (None, run.rewards.ravel())
        )
        totals = inference.Totals(pulls, sums)
        low, high = inference.confidence_sequence(totals, alpha=self.alpha, control=self.control)
        better, worse = (np.maximum.accumulate(side, axis=1) for side in (low > self.null, high < self.null))
        made.append(("e-values", better * 1.0 - worse))
        if run.epsilon is not None and policy(run.policy).private and self.control is None:
            arm = pulls.argmax(axis=2)[..., None]
            n, x = (np.take_along_axis(part, arm, 2)[..., 0].astype(np.int64) for part in (pulls, sums))
            side = np.where(arm == np.arange(k), np.sign(x / n - self.null)[..., None], 0.0)
            plain = inference.binomial_test(x, n, self.null)
            for test, p in (
                ("shift", inference.shifted_p_value(x, n, self.null, run.epsilon, "two-sided")),
                ("max information", inference.adjusted_p_value(plain, run.epsilon, self.looks)),
            ):
                made.append((test, side * (p <= self.alpha)[..., None]))
        return made

    def _normal(self, run: Any, method: str) -> Floats:
        """Return what a normal test shows at every look, as if there were no other."""
        made = []
        for t in self.looks:
            known = run.propensities if run.propensities is None else run.propensities[:, :t]
            batches, k = np.arange(t) // (self.looks[-1] // _BATCHES), len(self.means)
            how: dict[str, Any] = {"method": method, "batches": batches, "n_arms": k}
            of = inference.arm_means(run.arms[:, :t], run.rewards[:, :t], known, **how)
            of = of if self.control is None else of.against(self.control)
            level = self.alpha / (k - (self.control is not None))
            made.append(np.where(of.p_value(self.null) <= level, np.sign(of.estimate - self.null), 0.0))
        return np.stack(made, axis=1)

    def split(self, run: Any) -> tuple[Floats, Floats]:
        """Return what the second half shows of the arm that looked best in the first, and the regret."""
        half, k, skip = self.looks[-1] // 2, len(self.means), int(self.control is not None)
        first = inference.arm_means(run.arms[:, :half], run.rewards[:, :half], method="ols", n_arms=k)
        arm = first.estimate[:, skip:].argmax(axis=1)[:, None] + skip
        own = np.hstack([np.zeros_like(arm)] * skip + [arm])
        how: dict[str, Any] = {"horizon": self.looks[-1] - half, "n_replicates": len(arm)}
        how["seed"] = None if run.seed is None else run.seed + 1  # not the luck of the first half
        more = bandits.simulate("uniform", self.means[own], **how)
        variance = (more.means * (1.0 - more.means) / (more.pulls - 1)).sum(axis=1)
        size = more.means[:, -1] - (more.means[:, 0] if skip else self.null)
        shown = inference.z_test(size, 0.0, np.sqrt(np.where(variance > 0.0, variance, 1e300))) <= self.alpha
        side = np.where(arm == np.arange(k), (np.sign(size) * shown)[:, None], 0.0)
        lost = self.means.max() - self.means
        return side[:, None], half * lost.mean() + (lost[own] * more.pulls).sum(axis=1)

    def row(
        self, name: str, epsilon: float | None, test: str, side: Floats, regret: Floats
    ) -> dict[str, Any]:
        """Return the row of one way."""
        away = np.sign(self.means - (self.null if self.control is None else self.means[self.control]))
        right = (side[..., self.means.argmax()] > 0.0).mean(axis=0)
        enough = self.looks[-len(right) :][right >= self.wanted]
        power, price = float(right[-1]), float(regret.mean())
        made = {"policy": name, "epsilon": epsilon, "test": test, "power": power}
        made |= {"stderr": math.sqrt(power * (1.0 - power) / len(side))}
        made |= {"wrong": ((side[:, -1] != 0.0) & (side[:, -1] != away)).any(axis=1).mean(), "regret": price}
        even = self.looks[-1] * (self.means.max() - self.means.mean())
        return made | {"of_uniform": price / even, "rounds": enough[0] if len(enough) else math.nan}


def show(experiment: Experiment, made: Plan) -> Exhibit:
    """Show power against regret."""
    said = {
        str(row.test): f"{row.policy} with {row.test} {row.power:.2f} at {row.of_uniform:.2f}"
        for row in made.frame.sort_values("power").itertuples()
    }
    first = "Power, and regret as a share of uniform play's"
    return experiment.exhibit(
        question="Which way to gather and to test shows that an arm is better, and what does it cost?",
        headline=f"{first}: {'; '.join(list(said.values())[:-3:-1])}.",
        text=(
            f"Bernoulli arms with means {', '.join(f'{mean:g}' for mean in made.means)}, {made.size}.",
            "E-values hold whenever one looks; the others for one look, after rounds that were fixed before.",
            "Why ours differs from what was published: the paper proves corrections, and compares no power.",
        ),
        tables={"power": Table("Power, wrong answers, regret, and the rounds that are enough", made.frame)},
        figures={
            "power": Picture(
                "Power against regret, with 95% intervals; lines join the epsilons of a private policy",
                f"{first}, of the best with every test: {'; '.join(said.values())}.",
                column(made.plot, 6.0),
            )
        },
    )
