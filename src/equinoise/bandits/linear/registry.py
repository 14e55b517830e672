"""The policies of linear bandits by name: what each is, and what makes it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equinoise.bandits.entry import Entry

__all__ = ["POLICIES", "LinearPolicy"]


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Entry):
    """A policy of linear bandits: an :class:`~equinoise.bandits.entry.Entry`, and what follows.

    Attributes
    ----------
    wide : bool
        Whether its index is widened by the confidence in the estimate.
    in_turn : bool
        Whether arms are played in turn, whatever their index.
    """

    wide: bool = False
    in_turn: bool = False


_ALL = (
    LinearPolicy(
        name="oful",
        summary="optimism with the confidence ellipsoid of a ridge regression for each arm",
        source="Abbasi-Yadkori, Pal, Szepesvari (2011), Improved algorithms for linear stochastic bandits",
        wide=True,
    ),
    LinearPolicy(
        name="private-oful",
        summary="oful on sums from private counters, widened for their noise",
        source="Neel, Roth (2018); Chan, Shi, Song (2011), Private and continual release of statistics",
        proof="Contexts are public. A reward enters one arm's counter, clipped; its sums are epsilon-private "
        "all together, and all that is played after is made of them (post-processing).",
        noise="Laplace(L s/epsilon) a coordinate and node of the counter, s the L1 sensitivity of an item",
        needs_epsilon=True,
        wide=True,
    ),
    LinearPolicy(name="greedy", summary="the largest estimated mean", source="a control"),
    LinearPolicy(name="uniform", summary="one arm after the other", source="a control", in_turn=True),
)

POLICIES: Mapping[str, LinearPolicy] = {row.name: row for row in _ALL}
