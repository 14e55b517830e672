"""How profiles are drawn, in the units of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from equinoise._typing import Axes, Floats
from equinoise.nvo import Histogram, Profile
from equinoise.report import figures, release_figures

__all__ = ["length", "noise", "released", "values"]


def length(histogram: Histogram) -> float:
    """Return the length of the range in the units of the data, where the normalised one is 1."""
    start, stop = histogram.range
    return stop - start


def values(histogram: Histogram) -> Floats:
    """Return what the bins stand for."""
    return np.asarray(histogram.range[0] + histogram.midpoints * length(histogram))


def released(ax: Axes, profiles: Mapping[str, Profile], unit: str) -> Axes:
    """Draw the original as an area, and what profiles of it release."""
    histogram = next(iter(profiles.values())).game.histogram
    series = [(name, profile.pmf) for name, profile in profiles.items()]
    unit = figures.printable(unit)
    return release_figures.distributions(ax, histogram.pmf, series, values=values(histogram), unit=unit)


def noise(ax: Axes, profile: Profile, uniform: Mapping[str, Profile], unit: str) -> Axes:
    """Draw which scales records of each value have, and scales that all records share."""
    histogram = profile.game.histogram
    scales = {name: float(other.game.scales[0]) * length(histogram) for name, other in uniform.items()}
    lines = [(name, scale) for name, scale in scales.items() if math.isfinite(scale)]
    own, unit = profile.game.scales * length(histogram), figures.printable(unit)
    return release_figures.noise_scales(ax, values(histogram), own, profile.counts, lines, unit=unit)
