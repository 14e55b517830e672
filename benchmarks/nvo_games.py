"""Games to time: the C program's own records, scales and first options, and columns of any size."""

import math

import numpy as np

from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.search import dynamics
from equinoise.nvo.search.kernels import response, response_state as _state

SCALES = [0.711, 0.474, 0.237, 0.078, 0.047, 0.0002]
_MASK = 2**64 - 1


def words(seed):
    """Yield words of xoshiro256++, started by splitmix64 as the C program does it."""
    z, s = (seed * 0xD1342543DE82EF95 + 77) & _MASK, []
    for _ in range(4):
        z = (z + 0x9E3779B97F4A7C15) & _MASK
        w = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        w = ((w ^ (w >> 27)) * 0x94D049BB133111EB) & _MASK
        s.append(w ^ (w >> 31))
    while True:
        total = (s[0] + s[3]) & _MASK
        yield (((total << 23) | (total >> 41)) + s[0]) & _MASK
        t = (s[1] << 17) & _MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = ((s[3] << 45) | (s[3] >> 19)) & _MASK


def records(n, n_bins, n_scales, seed=12345):
    """Return bins and first options int64[n]: a normal of four bins' width around the middle."""
    word = words(seed)
    bins, options = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        u, v, w = (next(word) for _ in range(3))
        radius = math.sqrt(-2.0 * math.log(1.0 - (u >> 11) * 2.0**-53))
        z = radius * math.cos(2.0 * math.pi * (v >> 11) * 2.0**-53)
        bins[i] = min(max(math.floor(n_bins // 2 + 4.0 * z + 0.5), 0), n_bins - 1)
        options[i] = w % n_scales
    return bins, options


class Dynamics:
    """Best response from given first options, in the order of the records, as the C program does it."""

    def __init__(self, n, n_bins, n_scales, epsilon=1.0):
        bins, options = records(n, n_bins, n_scales)
        histogram = Histogram.from_values(
            (bins + 0.5) / n_bins, n_bins, bounds=(0.0, 1.0), range_epsilon=1e15
        )
        self.game = NoiseGame(histogram, epsilon, SCALES[:n_scales])
        noise = self.game.noise
        self.setup = dynamics.make_game(noise.decay, noise.total, histogram.counts, epsilon)
        self.turns = bins * int(self.setup.of.width) + options
        self.sizes = np.ones(n, dtype=np.int64)

    def run(self):
        """Play from the start to the equilibrium."""
        state, turns = dynamics.make_state(self.setup, self.game.histogram.counts), self.turns.copy()
        np.add.at(state.types[_state.COUNT], turns, 1)
        response.begin(self.setup, state)
        while not response.take_turns(self.setup, state, turns, self.sizes, 0, len(turns)):
            pass
        self.state = state

    def profile(self):
        """Return the profile where the last run ended."""
        return self.game.profile(dynamics.by_bin(self.setup, self.state))


def column(n):
    """Return n incomes."""
    return np.random.default_rng(1).lognormal(10.0, 0.6, n)
