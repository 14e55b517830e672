"""Commands write pictures of one point here, since to draw them takes longer than all that is tested."""

from __future__ import annotations

import io

import pytest
from matplotlib.figure import Figure

from equinoise.report import figures

BLANK = io.BytesIO()
Figure(figsize=(0.01, 0.01)).savefig(BLANK, format="png")


@pytest.fixture
def drawn():
    """For tests of the pictures themselves."""


@pytest.fixture(autouse=True)
def _blank_pictures(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "png", lambda drawn, dots_per_inch=150: BLANK.getvalue())
