"""What is released, and every search and choice, has the same bits whatever BLAS and NumPy run on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, json, math, sys, warnings
import numpy as np
from equinoise import bandits, efb, games, nvo
from equinoise.nvo import gaussian

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

warnings.simplefilter("ignore")
bits, rounded = {}, {}
tree, environment = games.load("kuhn_poker")
for learner, epsilon in (("dp-efb", 1.0), ("ixomd", math.inf), ("flat-exp3", math.inf)):
    run = efb.simulate(tree, environment, horizon=300, epsilon=epsilon, learner=learner)
    bits[learner] = digest(run.loss, run.policy)
for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
    tunings = [efb.tune(games.load(game)[0], 10_000, epsilon) for game in ("leduc_poker", "complete(3,3,3)")]
    bits[f"tuning, {epsilon}"] = digest(*[x for t in tunings for x in (t.learning_rate, t.exploration)])
run = bandits.simulate("private-ucb", np.linspace(0.2, 0.6, 7), horizon=300, epsilon=1.0)
bits["private-ucb"] = digest(run.pulls, run.reward_sum)
values = np.random.default_rng(0).gamma(2.0, 10.0, 2_000).clip(0.0, 100.0)
histogram = nvo.Histogram.from_values(values, 41, bounds=(0, 100))
game = nvo.NoiseGame(histogram, 1.0)
bits["scales"] = digest(histogram.counts, game.scales, nvo.NoiseGame(histogram, 0.1, 9).scales)
profiles = {"best": game.best_response(0), "genetic": game.genetic(0, generations=5)}
profiles |= {"anneal": game.anneal(0, steps=20_000), "one-draw": nvo.one_draw_private(histogram, 1.0)}
profiles["one-draw, 0.1"] = nvo.one_draw_private(histogram, 0.1)
few = nvo.Histogram.from_values(values[:300], 15, bounds=(0, 100))
profiles["gaussian"] = gaussian.GaussianGame(few, 1.0, 1e-4).solve(0)
for name, profile in profiles.items():
    bits[name] = digest(profile.pmf, profile.kl, profile.sd_l1, profile.cosine)
    if name == "anneal":
        bits["sample"] = digest(profile.sample(50, seed=0))
        rounded["composed"] = [profile.realised_epsilon, profile.composed(100).epsilon]
rounded["bound"] = [nvo.NoiseGame(few, 1.0).lower_bound()]
learned = {"n_arms": 2, "dimension": 2, "horizon": 20_000, "n_checkpoints": 1, "resume": sys.argv[1]}
bandits.linear.simulate("oful", **learned)  # the folder is one run's on all processors
run = bandits.linear.simulate("oful", n_arms=3, dimension=3, horizon=100)
rounded["oful"] = run.theta_hat.ravel().tolist()
print(json.dumps([bits, rounded]))
"""


def _results(folder: Path, **environment: str) -> tuple[dict[str, str], dict[str, list[float]]]:
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    bits, rounded = json.loads(done.stdout)
    return bits, rounded


def _without_simd() -> str:
    """Return what NumPy adds to its baseline on this processor, as its own environment variable takes it."""
    from numpy._core import _multiarray_umath as core

    return " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__[name])


@pytest.mark.compiled
def test_other_kernels_of_blas_and_numpy_change_no_bit_of_searches_and_choices(tmp_path):
    """Both at once: what either changes shows."""
    bits, rounded = _results(tmp_path)
    other = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": _without_simd()}
    found, near = _results(tmp_path, **other)
    assert found == bits
    assert near.keys() == rounded.keys()
    for name, numbers in rounded.items():
        # a bound's branching may take another way
        assert near[name] == pytest.approx(numbers, rel=1e-6 if name != "bound" else 0.01, abs=1e-9), name
