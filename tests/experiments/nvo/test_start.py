"""Where best response ends, by where it starts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from equinoise.experiments.nvo.exhibits import steps
from equinoise.experiments.steps import Settings


@pytest.mark.compiled
def test_starts_are_counted(values):
    step = steps(Settings(csv=str(values), column="height"))[1]
    with ThreadPoolExecutor(2) as pool:
        made = step.make(Settings(seed=1), pool, lambda share: None)
    frame = made.tables["starts"].frame
    assert frame["runs"].tolist() == [20, 20, 20]
    good = frame["runs_with_everybody_satisfied"].tolist()
    assert good[0] == 20 and good[2] == 0  # the theorem as published would have 20 in all
    assert (frame["fewest_satisfied"] <= frame["records"]).all()
    assert frame["fewest_satisfied"][0] == 150 > frame["fewest_satisfied"][2]
    published = made.tables["published"].frame
    assert published["published"].tolist() == [1.0] * 3
    assert published["ours"].tolist() == [n / 20 for n in good]
