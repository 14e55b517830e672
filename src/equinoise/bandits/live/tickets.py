"""Selections whose reward has not come yet."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["OpenTickets", "Ticket"]


@dataclass(frozen=True)
class Ticket:
    """One selection, to hand its reward in by, whenever it comes.

    Attributes
    ----------
    number : int
        The round in which it was selected, from 0; no two tickets of a bandit share one.
    arm : int or str
        What was selected.
    owner : int
        Tells the tickets of one bandit from those of another.

    Examples
    --------
    >>> from equinoise.bandits import UCB
    >>> UCB(["red", "green"]).request()
    Ticket(number=0, arm='red')
    """

    number: int
    arm: int | str
    owner: int = field(default=0, repr=False)


class OpenTickets:
    """The open selections by number: arm (its place among all arms) and the noise that waits for the reward.

    Numbers only grow, so the first open one of an arm is the oldest. `owner` is drawn once for a bandit.
    """

    def __init__(self, owner: int | None = None) -> None:
        self.owner = 1 + secrets.randbits(62) if owner is None else owner
        self._open: dict[int, tuple[int, float]] = {}
        self._numbers: dict[int, dict[int, None]] = {}

    def __contains__(self, number: object) -> bool:
        return number in self._open

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Go through (number, arm), oldest first."""
        return ((number, arm) for number, (arm, _) in self._open.items())

    def open(self, number: int, arm: int, noise: float) -> None:
        """Keep a new selection."""
        self._open[number] = arm, noise
        self._numbers.setdefault(arm, {})[number] = None

    def oldest(self, arm: int) -> int | None:
        """Return the number of the arm's oldest open selection, None where there is none."""
        return next(iter(self._numbers.get(arm, ())), None)

    def arm(self, number: int) -> int:
        """Return the arm of an open selection."""
        return self._open[number][0]

    def noise(self, number: int) -> float:
        """Return the standard Laplace draw of an open selection's round."""
        return self._open[number][1]

    def count(self, arm: int) -> int:
        """Return how many selections of an arm are open."""
        return len(self._numbers.get(arm, ()))

    def close(self, number: int) -> None:
        """Forget a selection: its reward has come, or never will."""
        arm, _ = self._open.pop(number)
        del self._numbers[arm][number]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return ticket_number, ticket_arm int64[m] and ticket_noise float64[m], oldest first."""
        arms, noise = zip(*self._open.values(), strict=True) if self._open else ((), ())
        return {
            "ticket_number": np.array(list(self._open), dtype=np.int64),
            "ticket_arm": np.array(arms, dtype=np.int64),
            "ticket_noise": np.array(noise, dtype=np.float64),
        }
