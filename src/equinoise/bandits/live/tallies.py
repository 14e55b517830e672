"""What the analyst sees of a live bandit: pulls and true rewards of every arm, also of those dropped."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equinoise import _checks
from equinoise._typing import Array, Floats

__all__ = ["Tallies"]

_FIELDS = ("pulls", "reward_sum", "square_sum", "last_release", "dropped")


class Tallies:
    """Sums over the rewards of K arms, all in the policy's units.

    pulls int64[K]; reward_sum float64[K]; square_sum float64[K], the sum of squared distances from the mean;
    dropped int64[K], 1 for an arm that is out of play; last_release float64[K], what a private policy knew of
    a dropped arm, NaN else.
    """

    def __init__(self, n_arms: int) -> None:
        self.pulls = np.zeros(n_arms, dtype=np.int64)
        self.reward_sum = np.zeros(n_arms)
        self.square_sum = np.zeros(n_arms)
        self.last_release = np.full(n_arms, np.nan)
        self.dropped = np.zeros(n_arms, dtype=np.int64)

    @property
    def mean(self) -> Floats:
        """Means float64[K], NaN for an arm without a reward."""
        some = np.maximum(self.pulls, 1)
        return np.where(self.pulls > 0, self.reward_sum / some, np.nan)

    @property
    def stderr(self) -> Floats:
        """Standard errors float64[K] as if the pulls had been planned, NaN for fewer than two rewards."""
        several = np.maximum(self.pulls, 2)
        return np.where(self.pulls > 1, np.sqrt(self.square_sum / (several - 1) / several), np.nan)

    def add(self, arm: int, reward: float) -> None:
        """Add a reward; the squares by Welford's recursion, which loses no digits to a large mean."""
        n, total = self.pulls[arm], self.reward_sum[arm]
        if n > 0:
            self.square_sum[arm] += (reward - total / n) * (reward - (total + reward) / (n + 1))
        self.pulls[arm] = n + 1
        self.reward_sum[arm] = total + reward

    def add_arm(self) -> None:
        """Make room for one more arm."""
        more = Tallies(1)
        for name in _FIELDS:
            setattr(self, name, np.append(getattr(self, name), getattr(more, name)))

    def drop_arm(self, arm: int, release: float) -> None:
        """Take an arm out of play, and keep what the policy knew of it."""
        self.dropped[arm] = 1
        self.last_release[arm] = release

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in _FIELDS}

    def restore(self, arrays: Mapping[str, Array], *, bounded: bool) -> None:
        """Take over saved arrays; KeyError, TypeError or ValueError where K arms cannot have such sums."""
        shape = self.pulls.shape
        self.pulls = _checks.array("pulls", arrays["pulls"], np.int64, shape, low=0).copy()
        self.dropped = _checks.array("dropped", arrays["dropped"], np.int64, shape, low=0, high=1).copy()
        self.reward_sum = _checks.array("reward_sum", arrays["reward_sum"], np.float64, shape).copy()
        self.square_sum = _checks.array("square_sum", arrays["square_sum"], np.float64, shape, low=0.0).copy()
        if bounded and ((self.reward_sum < 0.0) | (self.reward_sum > self.pulls)).any():
            raise ValueError("reward_sum must lie between 0 and the pulls")
        release = np.asarray(arrays["last_release"], dtype=np.float64)
        known = (self.dropped == 1) & np.isfinite(release)
        if release.shape != shape or not (known | np.isnan(release)).all():
            raise ValueError("last_release must be finite, and of dropped arms alone")
        self.last_release = release.copy()
