"""Time a round of OFUL beside a C program and vectorised NumPy, in turns, one thread each.

    python -m benchmarks.linear_against_c PROGRAM [--rounds 15]

PROGRAM is called as ``PROGRAM oful K d T R VARIANT``, the variants "scalar" and "simd", and prints
``... ns/round``. What counts is the median ratio of the pairs, ours by theirs; goals are ratios to the scalar
variant ("at most" and "aim"). The C program divides uniform draws from a cube by their lengths; ours are
uniform on the sphere, and that costs roots, sines and cosines. NumPy is given its contexts for nothing.
"""

import argparse
import os
import re
import statistics
import subprocess
import time

import numpy as np

from .linear_rounds import Rounds

# arms, dimension; goals as ratios to scalar C
CASES = [(5, 5, 402 / 402, 200 / 402), (20, 5, None, None), (20, 8, None, None)]
HORIZON = 500
REPLICATES = 256


def theirs(program, variant, n_arms, dimension):
    command = [program, "oful", *map(str, (n_arms, dimension, HORIZON, REPLICATES)), variant]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "REPS": "3"}
    )
    return float(re.search(r"([0-9.]+) ns/round", done.stdout)[1])


def ours(rounds):
    start = time.thread_time()
    rounds.run(REPLICATES)
    return (time.thread_time() - start) * 1e9 / HORIZON / REPLICATES


def numpy(n_arms, dimension, horizon=50):
    """Return ns a round of OFUL over all replicates at once, rank-one updates by einsum."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(REPLICATES, n_arms, dimension))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    inverse = np.tile(np.eye(dimension), (REPLICATES, n_arms, 1, 1))
    theta, estimate = x.copy(), np.zeros_like(x)
    pulls = np.zeros((REPLICATES, n_arms), dtype=np.int64)
    width = np.sqrt(dimension * np.log((1.0 + np.arange(horizon + 1)) / 0.05)) + 1.0
    rows = np.arange(REPLICATES)
    start = time.thread_time()
    for _ in range(horizon):
        image = np.matmul(inverse, x[..., None])[..., 0]
        square = np.einsum("rki,rki->rk", image, x)
        guess = np.einsum("rki,rki->rk", estimate, x)
        arm = (guess + np.sqrt(square) * width[pulls]).argmax(axis=1)
        u, scale = image[rows, arm], 1.0 / (1.0 + square[rows, arm])
        reward = np.einsum("ri,ri->r", theta[rows, arm], x[rows, arm]) + rng.normal(size=REPLICATES)
        inverse[rows, arm] -= scale[:, None, None] * u[:, :, None] * u[:, None, :]
        estimate[rows, arm] += (scale * (reward - guess[rows, arm]))[:, None] * u
        pulls[rows, arm] += 1
    return (time.thread_time() - start) * 1e9 / horizon / REPLICATES


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print(f"OFUL, T = {HORIZON}, ns a round: median (least)")
    for n_arms, dimension, at_most, aim in CASES:
        rounds = Rounds("oful", n_arms, dimension, HORIZON)
        times = [
            (
                ours(rounds),
                theirs(arguments.program, "scalar", n_arms, dimension),
                theirs(arguments.program, "simd", n_arms, dimension),
                numpy(n_arms, dimension),
            )
            for _ in range(arguments.rounds)
        ]
        words = [f"K={n_arms} d={dimension}"]
        for name, column in zip(
            ("ours", "scalar C", "SIMD C", "NumPy"), zip(*times, strict=True), strict=True
        ):
            ratio = statistics.median(row[0] / other for row, other in zip(times, column, strict=True))
            words.append(f"{name} {statistics.median(column):.0f} ({min(column):.0f}), ratio {ratio:.2f}")
        print("; ".join(words))
        if at_most is not None:
            print(f"  goals, to scalar C: at most {at_most:.2f}, aim {aim:.2f}")


if __name__ == "__main__":
    main()
