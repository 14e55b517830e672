"""Self-play's exhibit: what the runs give, in its frame, its words and its figure."""

from __future__ import annotations

import math

import pytest

from equinoise import efb
from equinoise.experiments.efb.exhibits import EXPERIMENTS, Match, self_play
from equinoise.experiments.steps import Job, Settings


@pytest.mark.compiled
def test_the_exhibit_is_what_self_play_gives():
    shares = []
    made = self_play(
        Job(EXPERIMENTS[3], Match(2000, 3, (4.0, math.inf)), Settings(seed=5), None, shares.append)
    )
    assert shares == [0.5, 1.0]
    frame = made.tables["exploitability"].frame
    alone = efb.self_play("kuhn_poker", horizon=2000, epsilon=4.0, n_replicates=3, seed=5)
    measured = alone.exploitability[:, -1].mean()
    assert frame["epsilon"].tolist() == [4.0, math.inf]
    assert frame["exploitability"][0] == pytest.approx(measured, rel=1e-12)
    assert frame["of_uniform"][0] == pytest.approx(measured / (11 / 24))
    assert f"{measured:.4f} at epsilon 4 and" in made.headline and "uniform play by 0.4583" in made.headline
    lines = made.figures["curve"].figure.axes[0].get_lines()
    assert [line.get_label() for line in lines][:2] == ["kuhn_poker, ε = 4", "kuhn_poker, no privacy"]
    assert lines[2].get_ydata()[0] == pytest.approx(11 / 24)
