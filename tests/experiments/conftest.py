"""Data that several tests of experiments use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equinoise.experiments.commands import nvo
from equinoise.nvo import NoiseGame


@pytest.fixture(scope="session")
def values(tmp_path_factory):
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("data") / "people.csv"
    height = np.round(rng.normal(175, 9, 150), 1)
    weight = np.round(0.9 * height - 80 + rng.normal(0, 5, 150), 1)
    pd.DataFrame({"height": height, "weight": weight, "name": "x"}).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def _little_time_for_bounds(monkeypatch):
    """For the bound of a release, which else takes longer than all that is tested."""
    monkeypatch.setitem(nvo._SECONDS, "fast", 0.2)


@pytest.fixture(scope="module", autouse=True)
def _little_work_in_games():
    """A fortieth of the proposals, which are seconds each time, and of the bound what takes no branching."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(NoiseGame.anneal.__kwdefaults__, "steps", 10**5)
        patch.setitem(NoiseGame.lower_bound.__kwdefaults__, "nodes", 1)
        yield
