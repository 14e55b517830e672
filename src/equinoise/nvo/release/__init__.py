"""From a profile to what others may see: drawing, composition of rows, certificates, the folder."""

from equinoise.nvo.release.certificate import statement as statement
from equinoise.nvo.release.composition import Budget, Composition, compose, epsilon_for_total, resolve
from equinoise.nvo.release.rows import draw_bins, sample

__all__ = ["Budget", "Composition", "compose", "draw_bins", "epsilon_for_total", "resolve", "sample"]
