"""Random streams: nanoseconds a number, in blocks of a million."""

import time

import numpy as np

from equinoise._random import SAMPLE, fill_laplace, stream_key

N = 1_000_000


class Laplace:
    """How fast is simulated Laplace noise, beside numpy's?"""

    timer = time.thread_time

    def setup(self):
        self.key, self.out = stream_key(0), np.empty(N)
        self.generator = np.random.default_rng(0)
        fill_laplace(self.key, 0, SAMPLE, 1.0, self.out)

    def time_fill(self):
        fill_laplace(self.key, 0, SAMPLE, 1.0, self.out)

    def time_numpy(self):
        self.generator.laplace(size=N)
