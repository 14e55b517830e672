"""From a profile to what others may see: drawing, composition of rows, certificates, the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach

if TYPE_CHECKING:
    from equinoise.nvo.release.certificate import statement as statement
    from equinoise.nvo.release.composition import Budget, Composition, compose, epsilon_for_total, resolve
    from equinoise.nvo.release.rows import draw_bins, sample

__all__ = ["Budget", "Composition", "compose", "draw_bins", "epsilon_for_total", "resolve", "sample"]

_HOMES = {"rows": ("draw_bins", "sample"), "certificate": ("statement",)}
_HOMES["composition"] = ("Budget", "Composition", "compose", "epsilon_for_total", "resolve")
__getattr__, __dir__ = attach(__name__, _HOMES)
