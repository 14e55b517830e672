"""Tests on data that a bandit gathered: what breaks them, what does not, and what a correction costs."""

from __future__ import annotations

from equinoise.experiments.bias.correction import CorrectionExperiment
from equinoise.experiments.bias.exhibits_common import drawn, exhibit, published
from equinoise.experiments.bias.regression import RegressionExperiment
from equinoise.experiments.bias.selection import SelectionExperiment, rejected
from equinoise.report.exhibit import Exhibit, Picture, Table

__all__ = ["power_exhibit", "selection_exhibit", "z_tests"]


def z_tests(made: RegressionExperiment, name: str, title: str) -> Exhibit:
    """Show experiment 3: the right statistic keeps its level under every policy, the published none."""
    right, wrong = (
        rejected(made.p_values["oful", statistic])[0] for statistic in ("standard error", "variance")
    )
    level = rejected(made.p_values["uniform", "variance"])[0]
    return exhibit(
        name,
        title,
        question="The paper finds 76% of true nulls rejected at 5%: is that adaptivity?",
        headline=f"No: divided by its standard error the estimate is rejected in {right:.1%}; divided by "
        f"its variance, as in the published program, in {wrong:.0%}, and under uniform play in {level:.0%}.",
        text=(
            f"{made.n_arms} arms in {made.dimension} dimensions, {made.horizon:,} rounds, "
            f"{made.replicates:,} replicates; tested is whether the first coefficient of the most pulled "
            "arm is 0, which is true.",
            "Why ours differs from what was published: the statistic of the published program misses a "
            "square root. With it this setting is well calibrated under every policy.",
        ),
        tables={"published": published(made)},
        figures={
            "p-values": Picture(
                "P-values of a true null; an honest test has a flat histogram",
                f"Divided by the standard error the histograms are flat, {right:.1%} at or below 0.05 under "
                f"OFUL. Divided by the variance they pile up near 0, {wrong:.0%} under OFUL and {level:.0%} "
                "under uniform play.",
                drawn(made.plot),
            )
        },
    )


def selection_exhibit(made: SelectionExperiment, name: str, title: str) -> Exhibit:
    """Show how often a right test rejects true nulls on the arm that a bandit pulled least."""
    shares = {label: rejected(values)[0] for label, values in made.p_values.items()}
    worst = max(shares, key=lambda label: shares[label])
    control = shares["uniform, 20 arms, least pulled arm"]
    return exhibit(
        name,
        title,
        question="A test is right on data that was gathered evenly: what if a bandit gathered it?",
        headline=f"At 5% it rejects up to {shares[worst]:.0%} of true nulls ({worst}); {control:.1%} under "
        "uniform play.",
        text=(
            f"Equal N(0, 1) arms, {made.horizon:,} rounds, {made.replicates:,} replicates. The arm is "
            "chosen by the actions alone, as the paper's Corollary 2 allows.",
            "Why ours differs from what was published: the paper has no such setting. It is here because "
            "its own, above, does not show what it is said to show.",
        ),
        tables={"rejected": published(made)},
        figures={
            "p-values": Picture(
                "P-values of a true null on the least pulled arm; an honest test has a flat histogram",
                "; ".join(f"{label}: {share:.1%} at or below 0.05" for label, share in shares.items()) + ".",
                drawn(made.plot),
            )
        },
    )


def power_exhibit(made: CorrectionExperiment, name: str, title: str) -> Exhibit:
    """Show that corrected p-values hold, and what power is left."""
    frame = made.to_frame()
    null = frame[(frame["mean"] == 0.5) & (frame["method"] == "tight")]
    lost = frame[(frame["method"] == "tight") & (frame["mean"] == frame["mean"].max())]
    first, last = lost.iloc[0], lost[lost["policy"] == lost.iloc[0]["policy"]].iloc[-1]
    plain = frame[(frame["policy"] == "ucb") & (frame["mean"] == 0.5)]["rejected"].iloc[0]
    return exhibit(
        name,
        title,
        question="Do corrected p-values hold on private bandits, and do they still find anything?",
        headline=f"Corrected tests reject at most {null['rejected'].max():.1%} of true nulls; of false ones "
        f"{first['rejected']:.0%} at epsilon {first['epsilon']:g} and {last['rejected']:.0%} at "
        f"{last['epsilon']:g}.",
        text=(
            f"{made.n_arms} equal Bernoulli arms, {made.horizon:,} rounds, {made.replicates:,} replicates; "
            "tested is whether the mean of the least pulled arm is 0.5. Plain UCB, for which no correction "
            f"is known, rejects {plain:.1%} of true nulls.",
            "Corrections: tight, our bound on the max information of the actions, and dwork, the published "
            "one. Both are empty once epsilon times the root of the rounds passes about 3.",
            "Why ours differs from what was published: the paper proves the correction and tries it on "
            "nothing.",
        ),
        tables={"rejected": Table("Share of tests that reject at 5%, with its standard error", frame)},
        figures={
            "power": Picture(
                "Share of tests that reject at 5% against epsilon, with 95% intervals",
                "Where the null is true, corrected tests stay below 5%. Where it is false, they reject "
                f"{first['rejected']:.0%} at epsilon {first['epsilon']:g} and {last['rejected']:.0%} at "
                f"epsilon {last['epsilon']:g}.",
                drawn(made.plot),
            )
        },
    )
