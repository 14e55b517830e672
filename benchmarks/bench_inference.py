"""Inference: what a look at a confidence sequence costs, over replicates, for means and for differences."""

import time

import numpy as np

from equinoise.inference import Totals, confidence_sequence, e_value


class Looks:
    """How long do 100,000 looks take, of replicates at many times?"""

    params = [["betting", "beta-binomial"]]
    param_names = ["method"]
    timer = time.thread_time
    timeout = 300

    def setup(self, method):
        rng = np.random.default_rng(0)
        pulls = rng.integers(1, 10_000, (20_000, 5))
        sums = rng.random(pulls.shape) * pulls
        self.totals = Totals(pulls, sums, sums * rng.uniform(sums / pulls, 1.0))
        self.some = Totals(pulls[:400], sums[:400])
        confidence_sequence(Totals([1], [1.0]), method=method)  # compiles

    def time_means(self, method):
        confidence_sequence(self.totals, method=method)

    def time_e_values(self, method):
        e_value(self.totals, 0.5, method=method)

    def time_2_000_differences(self, method):
        confidence_sequence(self.some, method=method, control=0)
