"""From a profile to what others may see: drawing, composition of rows, certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach

if TYPE_CHECKING:
    from equinoise.nvo.release.composition import Budget, Composition, compose, epsilon_for_total
    from equinoise.nvo.release.draw import draw_bins, sample

__all__ = ["Budget", "Composition", "compose", "draw_bins", "epsilon_for_total", "sample"]

_HOMES = {
    "composition": ("Budget", "Composition", "compose", "epsilon_for_total"),
    "draw": ("draw_bins", "sample"),
}
__getattr__, __dir__ = attach(__name__, _HOMES)
