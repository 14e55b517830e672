"""Commands write pictures of one point, anneal and bound in little time here, or these would take longest.

Nor do they say that they compile: whether they do depends on the tests before.
"""

from __future__ import annotations

import contextlib
import io

import pytest
from matplotlib.figure import Figure

from equinoise import _jit
from equinoise.experiments.commands import nvo
from equinoise.nvo import NoiseGame
from equinoise.report import figures

DEFAULTS = NoiseGame.anneal.__kwdefaults__
PROPOSALS = DEFAULTS["steps"]
BLANK = io.BytesIO()
Figure(figsize=(0.01, 0.01)).savefig(BLANK, format="png")


@pytest.fixture
def drawn():
    """For tests of the pictures themselves."""


@pytest.fixture(autouse=True)
def _blank_pictures(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "png", lambda drawn, dots_per_inch=150: BLANK.getvalue())


@pytest.fixture(autouse=True)
def _little_time_for_bounds(monkeypatch):
    monkeypatch.setitem(nvo._SECONDS, "fast", 0.2)


@pytest.fixture
def all_proposals():
    """For tests of what is found by default."""


@pytest.fixture(autouse=True)
def _few_proposals(request, monkeypatch):
    monkeypatch.setitem(DEFAULTS, "steps", PROPOSALS if "all_proposals" in request.fixturenames else 10**5)


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(_jit, "compiling", lambda tell: contextlib.nullcontext())
