"""The game and a private histogram at the same epsilon of all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from equinoise.experiments.nvo import source
from equinoise.experiments.nvo.exhibits import steps
from equinoise.experiments.steps import Settings
from equinoise.nvo import Histogram, NoiseGame, private_histogram


@pytest.mark.compiled
def test_both_are_compared_at_the_game_s_epsilon_of_all_rows(values, monkeypatch):
    step = next(
        step for step in steps(Settings(csv=str(values), column="height")) if step.name == "nvo-totals"
    )
    monkeypatch.setattr(source, "_PROPOSALS", 10**5)  # as many as all others make here
    with ThreadPoolExecutor(2) as pool:
        made = step.make(Settings(seed=1), pool, lambda share: None)
    frame = made.tables["totals"].frame
    assert frame["epsilon"].tolist() == [0.1, 0.5, 1.0, 2.0]
    given = np.loadtxt(values, skiprows=1, delimiter=",", usecols=0)
    histogram = Histogram.from_values(given, bounds=(np.floor(given.min()), np.ceil(given.max())))
    profile = NoiseGame(histogram, 1.0).anneal(1)
    assert frame["kl"][2] == pytest.approx(profile.kl, rel=1e-9)
    assert frame["worst"][2] == pytest.approx(profile.composed(histogram.n).epsilon, rel=1e-9)
    kl = [private_histogram(histogram, frame["worst"][2], seed=seed).kl for seed in range(100)]
    assert frame["histogram_kl_at_worst"][2] == pytest.approx(np.mean(kl), rel=1e-9)
    better = (frame["histogram_kl_at_worst"] < frame["kl"]).sum()
    assert f"less KL in {better} of 4 settings" in made.headline


@pytest.mark.parametrize(("scale", "asked"), [("quick", {"steps": 10**6}), ("full", {})])
def test_the_quick_scale_makes_fewer_proposals(values, monkeypatch, scale, asked):
    class Seen(Exception):
        pass

    def anneal(game, seed, **how):
        assert how == asked
        raise Seen

    monkeypatch.setattr(NoiseGame, "anneal", anneal)
    step = next(
        step for step in steps(Settings(csv=str(values), column="height")) if step.name == "nvo-totals"
    )
    with ThreadPoolExecutor(2) as pool, pytest.raises(Seen):
        step.make(Settings(seed=1, scale=scale), pool, lambda share: None)
