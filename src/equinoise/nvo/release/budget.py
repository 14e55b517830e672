"""From a total for all rows to the epsilon of one: the largest whose composition stays within the total."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equinoise import _checks
from equinoise.nvo.release.composition import DELTA, Composition, compose

if TYPE_CHECKING:
    from equinoise.nvo.profile import Profile

__all__ = ["Budget", "epsilon_for_total"]

_CLOSE = 1.01  # a ratio of what is too much to what is not at which the search ends


@dataclass(frozen=True, eq=False)
class Budget:
    """What :func:`epsilon_for_total` found.

    Attributes
    ----------
    total : float
        What was asked for.
    profile : Profile
        The certified profile with the largest epsilon of a row that stays within it; where there is none, the
        last one tried.
    composition : Composition or None
        Of this profile's rows; None where none was found.
    tried : tuple of (float, bool, float)
        Each epsilon of a row that was tried, whether its profile was certified, and its composed epsilon.

    Examples
    --------
    See :func:`epsilon_for_total`.
    """

    total: float
    profile: Profile
    composition: Composition | None
    tried: tuple[tuple[float, bool, float], ...]


def epsilon_for_total(
    solve: Callable[[float], Profile], total: float, rows: int, *, delta: float = DELTA
) -> Budget:
    """Find the epsilon of a row for which all rows together stay within a total.

    Parameters
    ----------
    solve : callable
        From the epsilon of a row to a profile of that game.
    total : float
        Epsilon that all rows together may reach at `delta`, positive and finite.
    rows : int
        Rows that are drawn, m.
    delta : float
        In (0, 1).

    Returns
    -------
    Budget

    Notes
    -----
    By bisection of ln(epsilon) from total/m, which always stays within the total, to the total. What
    counts is the composition of the profile that was found, so the result is within the total even where the
    composed epsilon does not grow steadily. A profile that is not certified means an epsilon that is too
    small.

    Examples
    --------
    >>> from equinoise.nvo import Histogram, NoiseGame
    >>> histogram = Histogram.from_values([160, 171, 172, 172, 175, 176, 180, 183], bounds=(140, 220))
    >>> found = epsilon_for_total(lambda epsilon: NoiseGame(histogram, epsilon).best_response(), 2.0, rows=4)
    >>> found.composition.epsilon <= 2.0, 0.5 <= found.profile.game.epsilon <= 2.0
    (True, True)
    """
    wanted = _checks.epsilon(total, "total", allow_infinite=False)
    m = _checks.integer("rows", rows, 1)
    low, high, attempt = wanted / m, wanted, wanted if m == 1 else math.sqrt(wanted * (wanted / m))
    best: tuple[Profile, Composition] | None = None
    tried = []
    while True:
        profile = solve(attempt)
        found = compose(profile.game.noise, profile.counts, profile.evaluation, m, delta)
        tried.append((attempt, profile.certified, found.epsilon))
        if profile.certified and found.epsilon <= wanted:
            best = profile, found
        if profile.certified and found.epsilon > wanted:
            high = attempt
        else:
            low = attempt
        if high <= low * _CLOSE:
            break
        attempt = math.sqrt(low * high)
    if best is None:
        return Budget(wanted, profile, None, tuple(tried))
    return Budget(wanted, *best, tuple(tried))
