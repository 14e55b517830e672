"""Where adaptivity breaks a right test: the mean of the arm that a bandit pulled least."""

from typing import NamedTuple, Unpack

import numpy as np

from equinoise import bandits, inference
from equinoise._typing import Floats, Ints
from equinoise.experiments.bias.common import PValues, Running, drawn, gather, scaled
from equinoise.experiments.steps import Experiment
from equinoise.report.exhibit import Exhibit, Picture


class Case(NamedTuple):
    """One policy on equal N(0, 1) arms, and the mean that is tested to be 0.

    Attributes
    ----------
    policy : str
    n_arms : int
    why : str
    arm : {"least pulled", "fixed"}
        The arm with the fewest pulls, the first of equals; or arm 0.
    alternative : {"two-sided", "less"}
    """

    policy: str
    n_arms: int
    why: str
    arm: str = "least pulled"
    alternative: str = "two-sided"

    @property
    def label(self) -> str:
        """What tables call it."""
        tail = ", lower tail" if self.alternative == "less" else ""
        return f"{self.policy}, {self.n_arms} arms, {self.arm} arm{tail}"


_CONTROL = "Control: without adaptivity the test is right."
_WIDER = "A wider index explores more, and selects less."
CASES = (
    Case("uniform", 20, _CONTROL),
    Case("ucb", 2, "An arm is pulled less where its first rewards were low, and so its mean stays low."),
    Case("ucb", 5, "More arms to fall behind."),
    Case("ucb", 20, "More arms to fall behind."),
    Case("ucb1", 2, _WIDER),
    Case("ucb1", 5, _WIDER),
    Case("ucb1", 2, "Even an arm that was named beforehand has a mean that is too low.", "fixed", "less"),
    Case("uniform", 2, _CONTROL, "fixed", "less"),
)


def least_pulled(pulls: Ints) -> Ints:
    """Return the arm with the fewest pulls of each replicate, the first of equals: int64[R] of int64[R, K].

    It is a function of the actions alone, as the correction of p-values asks.

    Examples
    --------
    >>> least_pulled(np.array([[3, 2, 2], [1, 1, 1]]))
    array([1, 0])
    """
    first: Ints = np.argmin(pulls, axis=1)
    return first


def selection(
    scale: float = 1.0, *, horizon: int = 500, replicates: int = 4000, **running: Unpack[Running]
) -> PValues:
    """Test a true null on data that bandits gathered from equal N(0, 1) arms.

    Parameters
    ----------
    scale, horizon, replicates, **running
        As of :func:`~equinoise.experiments.bias.arms.experiment_1`.

    Returns
    -------
    PValues
        By case.

    Examples
    --------
    >>> made = selection(0.01, horizon=50)
    >>> made.p_values[CASES[0]].shape, made.labels[CASES[0]]
    ((40,), 'uniform, 20 arms, least pulled arm')
    """
    n = scaled(replicates, scale)
    jobs = {case: {"policy": case.policy, "means": np.zeros(case.n_arms)} for case in CASES}
    runs = gather(bandits.simulate, jobs, n, running, horizon=horizon, reward="gaussian")
    p_values = {case: _tested(run, case) for case, run in runs.items()}
    labels = {case: case.label for case in CASES}
    histogram = tuple(case for case in CASES if case.arm != "fixed" and case.policy != "ucb1")
    return PValues(horizon, n, Case._fields, p_values, labels, histogram)


def _tested(run: bandits.BanditRun, case: Case) -> Floats:
    """Return the p-value of each replicate."""
    rows = np.arange(len(run.pulls))
    arm = least_pulled(run.pulls) if case.arm == "least pulled" else np.zeros(len(rows), dtype=np.int64)
    pulls = run.pulls[rows, arm]
    made = inference.z_test(run.reward_sum[rows, arm] / pulls, 0.0, 1.0 / np.sqrt(pulls), case.alternative)
    return np.asarray(made, dtype=np.float64)


def show(experiment: Experiment, made: PValues) -> Exhibit:
    """Show how often a right test rejects true nulls on the arm that a bandit pulled least."""
    shares = {case.label: made.rejected(case)[0] for case in CASES}
    worst = max(shares, key=lambda label: shares[label])
    control = shares["uniform, 20 arms, least pulled arm"]
    return experiment.exhibit(
        question="A test is right on data that was gathered evenly: what if a bandit gathered it?",
        headline=f"At 5% it rejects up to {shares[worst]:.0%} of true nulls ({worst}); {control:.1%} under "
        "uniform play.",
        text=(
            f"Equal N(0, 1) arms, {made.size}. The arm is chosen by the actions alone, as the paper's "
            "Corollary 2 allows.",
            "Why ours differs from what was published: the paper has no such setting. It is here because "
            "its own, above, does not show what it is said to show.",
        ),
        tables={"rejected": made.table("Rejected at 5%", lambda case: str(case.why), {})},
        figures={
            "p-values": Picture(
                "P-values of a true null on the least pulled arm; an honest test has a flat histogram",
                "; ".join(f"{label}: {share:.1%} at or below 0.05" for label, share in shares.items()) + ".",
                drawn(made.plot),
            )
        },
    )
