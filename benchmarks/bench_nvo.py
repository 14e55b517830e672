"""NVO: binning, best response, evaluation; 10^3 to 10^7 records, 101 and 1,001 bins, 6 and 32 scales."""

import time

from equinoise.nvo import Histogram, NoiseGame

from .nvo_games import Dynamics, column


class Binning:
    """How long for a column to become counts, and how much memory?"""

    params = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    param_names = ["records"]
    timer = time.thread_time

    def setup(self, n):
        self.values = column(n)

    def time_from_values(self, n):
        Histogram.from_values(self.values)

    def peakmem_from_values(self, n):
        Histogram.from_values(self.values)


class BestResponse:
    """How long from all-largest to an equilibrium? It should not grow with the number of records for ever."""

    params = [[1_000, 10_000, 100_000, 1_000_000, 10_000_000], [101, 1_001], [6, 32]]
    param_names = ["records", "bins", "scales"]
    timer = time.process_time
    timeout = 600
    number = 1
    repeat = (1, 3, 20.0)

    def setup(self, n, n_bins, n_scales):
        histogram = Histogram.from_values(column(n), n_bins)
        self.game = NoiseGame(histogram, 1.0, "default" if n_scales == 6 else n_scales)
        NoiseGame(Histogram.from_values([0.0, 1.0, 3.0]), 1.0).best_response()

    def time_best_response(self, n, n_bins, n_scales):
        self.game.best_response()

    def peakmem_best_response(self, n, n_bins, n_scales):
        self.game.best_response()


class FromRandomStart:
    """The case that a C program is timed on: 1,307 and 10,000 records, 101 bins, six scales."""

    params = [1_307, 10_000]
    param_names = ["records"]
    timer = time.thread_time

    def setup(self, n):
        self.dynamics = Dynamics(n, 101, 6)
        self.dynamics.run()

    def time_run(self, n):
        self.dynamics.run()


class Evaluation:
    """What does a check from the definition cost?"""

    params = [[101, 1_001, 10_001], [6, 32]]
    param_names = ["bins", "scales"]
    timer = time.process_time
    timeout = 300

    def setup(self, n_bins, n_scales):
        scales = "default" if n_scales == 6 else n_scales
        self.game = NoiseGame(Histogram.from_values(column(10_000), n_bins), 1.0, scales)
        self.counts = self.game.best_response(max_rounds=1).counts

    def time_evaluate(self, n_bins, n_scales):
        self.game.evaluate(self.counts)
