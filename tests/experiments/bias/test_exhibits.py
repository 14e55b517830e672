"""What the experiments on bias show: what came out, in words, tables and figures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from equinoise import inference
from equinoise.experiments.bias import arms, exhibits, pvalues
from equinoise.experiments.bias.arms import experiment_1, experiment_2, frontier
from equinoise.experiments.bias.common import shown
from equinoise.experiments.bias.pvalues import experiment_3, selection
from equinoise.experiments.steps import Settings


def row(name):
    return next(row for row in exhibits.EXPERIMENTS if row.name == name)


@pytest.mark.compiled
def test_experiment_1_shows_bias_regret_and_the_bound():
    computed = experiment_1(0.01, seed=3)
    made = arms.show(row("bias-1"), computed)
    rows = computed.claims()
    frame = made.tables["published"].frame
    assert len(frame) == len(rows)
    np.testing.assert_array_equal(frame["ours"], [row.ours for row in rows])
    np.testing.assert_array_equal(frame["published"], [row.published for row in rows])
    assert rows[0].published == 0.0698 and frame["stderr"][0] == rows[0].stderr
    plain, private = computed.summary("ucb"), computed.summary("private-ucb, published width, ε = 0.05")
    assert f"from {plain.mean_absolute_bias:.3f} to {private.mean_absolute_bias:.4f}" in made.headline
    assert f"from {plain.regret:.0f} to {private.regret:.0f}" in made.headline
    (ax,) = made.figures["bias"].figure.axes
    labels = [text.get_text() for text in made.figures["bias"].figure.legends[0].get_texts()]
    assert "proven bound" in labels and "uniform" in labels
    high = ax.get_ylim()[1]
    assert high > float(inference.bias_bound(0.05)) > 0.012
    assert len(ax.get_xticklabels()) == 10  # of 20 arms, so that labels do not run into each other


@pytest.mark.compiled
def test_experiment_2_shows_the_arms_of_the_figures_without_a_bound():
    computed = experiment_2(0.002, horizon=400, seed=3)
    made = arms.show(row("bias-2"), computed)
    labels = [text.get_text() for text in made.figures["bias"].figure.legends[0].get_texts()]
    assert labels == [spec.label for spec in computed.specs if spec.shown]
    ratio = (
        computed.summary("private-ucb, published width, ε = 400, gap 0.1").regret
        / computed.summary("ucb, gap 0.1").regret
    )
    assert f"{ratio:.1f} times the regret" in made.headline


@pytest.mark.compiled
def test_the_frontier_names_the_cheapest_policy_without_clear_bias():
    computed = frontier(
        0.05, policies=("ucb", "private-ucb", "uniform", "noise-only"), epsilons=(0.1, 10.0), horizon=300
    )
    made = arms.show_frontier(row("bias-frontier"), computed)
    quiet = {key: one.regret for key, one in computed.summaries.items() if not one.clear}
    assert f"is {min(quiet.values()):,.0f} (" in made.headline
    pd.testing.assert_frame_equal(made.tables["points"].frame, computed.to_frame())


@pytest.mark.compiled
def test_exhibits_of_tests_say_the_shares_that_were_found():
    computed = experiment_3(0.1, seed=1)
    made = pvalues.show_regression(row("bias-3"), computed)
    right = np.mean(computed.p_values["oful", "standard error"] <= 0.05)
    wrong = np.mean(computed.p_values["oful", "variance"] <= 0.05)
    assert f"rejected in {right:.1%}" in made.headline and f"in {wrong:.0%}" in made.headline
    frame = made.tables["published"].frame
    assert frame["ours"][frame["published"] == 0.76].tolist() == [wrong]

    chosen = selection(0.02, seed=1)
    made = pvalues.show_selection(row("bias-selection"), chosen)
    worst = max(np.mean(values <= 0.05) for values in chosen.p_values.values())
    assert f"up to {worst:.0%}" in made.headline


def test_the_quick_scale_lowers_replicates_and_the_full_one_does_not():
    seen = []

    def compute(scale, *, seed, executor, watch, kept):
        seen.append((scale, seed))
        watch(0.5)
        return scale

    function = partial(shown, compute, lambda experiment, made: (made, experiment.name, experiment.title))
    made = replace(row("bias-2"), function=function)
    shares = []
    run = lambda settings: made.step(settings).make(settings, None, shares.append)  # noqa: E731
    assert run(Settings("quick", 4)) == (0.4, "bias-2", "Bias after 100,000 rounds")
    assert run(Settings("full", 5)) == (1.0, "bias-2", "Bias after 100,000 rounds")
    assert seen == [(0.4, 4), (1.0, 5)]
    assert shares == [0.45, 0.45]
