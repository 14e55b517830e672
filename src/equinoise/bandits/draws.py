"""The luck of one replicate for policies that are played one round at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equinoise.bandits import rewards

__all__ = ["Draws"]

_CHUNK = 256  # rounds that are drawn at a time


class Draws:
    """Noise and tie words by round, at the addresses that a replicate of a simulation has.

    Parameters
    ----------
    key : uint64[2]
    replicate : int
    n_arms : int
        Of ``luck.table``, where the rewards of a row of rounds may be put.
    noise, ties : bool
        What is drawn; the rest is 0.

    Attributes
    ----------
    luck : Luck
        Of one lane; :meth:`row` says which row is whose round.
    """

    def __init__(
        self, key: NDArray[np.uint64], replicate: int = 0, n_arms: int = 0, *, noise: bool, ties: bool
    ) -> None:
        self._streams = rewards.make_streams(key, replicate, 1)
        self.luck = rewards.make_luck(np.empty((n_arms, 1)), _CHUNK, rewards.TABLE, noise=noise, ties=ties)
        self._noise, self._ties, self._filled = noise, ties, 0  # rounds drawn so far

    def row(self, t: int) -> int:
        """Return the row of round t, which is not before the chunk of any round before."""
        while t >= self._filled:
            rewards.fill_luck(self.luck, self._streams, _CHUNK, 0.0)
            self._filled += _CHUNK
        return t % _CHUNK

    def at(self, t: int) -> tuple[float, Any]:
        """Return (standard Laplace draw, tie word) of round t."""
        i = self.row(t)
        noise = float(self.luck.noise[i, 0]) if self._noise else 0.0
        return noise, self.luck.tie[i, 0] if self._ties else np.uint64(0)
