"""A policy played round by round, with the noise and the tie words that a replicate of a simulation has."""

import numpy as np

from equinoise._typing import Any, Floats, Ints, Mapping, Words
from equinoise.bandits.policies.registry import Policy
from equinoise.bandits.rewards import Draws


class Stepper:
    """One replicate of a policy: its noise, its ties and its own draws; epsilon is infinite for none."""

    def __init__(
        self,
        spec: Policy,
        n_arms: int,
        horizon: int,
        epsilon: float,
        options: Mapping[str, Any],
        random_ties: bool,
        key: Words,
        replicate: int,
    ) -> None:
        self._kernels, self._random_ties = spec.kernels, random_ties
        self._state = spec.make_state(n_arms, 1, horizon, epsilon, options, key=key, first=replicate)
        self._draws = Draws(key, replicate, n_arms, noise=spec.needs_noise, ties=random_ties)
        self.t = 0  # rounds played

    def choose(self) -> int:
        """Return the arm of the next round; asked again before :meth:`update`, it is the same."""
        tie = self._draws.at(self.t)[1]
        return int(self._kernels.choose(self._state, 0, self.t, tie, self._random_ties))

    def update(self, arm: int, reward: float) -> None:
        """Give the arm of this round its reward."""
        self._kernels.update(self._state, 0, self.t, arm, reward, self._draws.at(self.t)[0])
        self.t += 1

    def advance(self, rewards: Floats) -> int:
        """Play a round as simulations do, on the rewards float64[K] of all arms; return the arm."""
        i, tape = self._draws.row(self.t), self._draws.tape
        tape.table[i, :, 0] = rewards
        one = slice(i, i + 1)
        tape = tape._replace(noise=tape.noise[one], tie=tape.tie[one], table=tape.table[one])
        before = self._state.pulls[:, 0].copy()
        self._kernels.advance(self._state, tape, self.t, self.t + 1, self._random_ties)
        self.t += 1
        return int((self._state.pulls[:, 0] - before).argmax())


def arm_means(arms: Ints, rewards: Floats, n_arms: int) -> tuple[Ints, Floats]:
    """Return (pulls int64[K], mean rewards float64[K]) of a history; NaN for an arm never pulled."""
    pulls = np.bincount(arms, minlength=n_arms)
    means: Floats = np.full(n_arms, np.nan)
    np.divide(np.bincount(arms, weights=rewards, minlength=n_arms), pulls, out=means, where=pulls > 0)
    return pulls, means
