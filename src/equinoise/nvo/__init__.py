"""NVO, the noise variance optimisation game: from a column of numbers to a release with per-record privacy.

``Histogram`` bins the values, ``NoiseGame`` lets every record choose how much noise it wants, and a
``Profile`` is what they chose, with its privacy checked from the definition. ``one_draw_private`` and
``private_histogram`` are what it should be compared with.
"""

from equinoise.nvo.game import NoiseGame
from equinoise.nvo.histogram import Histogram
from equinoise.nvo.profile import Evaluation, Profile
from equinoise.nvo.twins import one_draw_private, private_histogram

__all__ = ["Evaluation", "Histogram", "NoiseGame", "Profile", "one_draw_private", "private_histogram"]
