"""Time best response beside a C program, in turns, one thread each.

    python -m benchmarks.nvo_against_c PROGRAM [--rounds 15]

PROGRAM is called as ``PROGRAM nvo N K V`` and prints ``... eps=1: TIME ms ... satisfied=S KL=D``. Both play
the same records from the same first options, so they must end alike. What counts is the median ratio of the
pairs, ours by theirs; goals are ratios too ("at most" and "aim").
"""

import argparse
import os
import re
import statistics
import subprocess
import time

from .nvo_games import Dynamics

# records, bins, scales; goals as ratios to the C program
CASES = [(1_307, 101, 6, 15 / 2.2, 5 / 2.2), (10_000, 101, 6, 80 / 12.6, 30 / 12.6)]


def theirs(program, n, n_bins, n_scales):
    done = subprocess.run(
        [program, "nvo", *map(str, (n, n_bins, n_scales))],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "REPS": "3"},
    )
    found = re.search(r"eps=1: ([0-9.]+) ms.*satisfied=(\d+) KL=([0-9.]+)", done.stdout)
    return float(found[1]), int(found[2]), float(found[3])


def ours(dynamics):
    dynamics.run()
    start = time.thread_time()
    dynamics.run()
    return (time.thread_time() - start) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print("ms from a random start to the equilibrium: median (least)")
    for n, n_bins, n_scales, at_most, aim in CASES:
        dynamics = Dynamics(n, n_bins, n_scales)
        pairs = []
        for _ in range(arguments.rounds):
            other, satisfied, kl = theirs(arguments.program, n, n_bins, n_scales)
            pairs.append((ours(dynamics), other))
        profile = dynamics.profile()
        alike = profile.n_satisfied == satisfied and abs(profile.kl - kl) < 1e-9
        mine, other = zip(*pairs, strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"n = {n}: {statistics.median(mine):.2f} ({min(mine):.2f}), C {statistics.median(other):.2f} "
            f"({min(other):.2f}), ratio {ratio:.2f} ({min(mine) / min(other):.2f}); at most {at_most:.2f}, "
            f"aim {aim:.2f}; {'the same end' if alike else 'ANOTHER END'}, KL {profile.kl:.9f}"
        )


if __name__ == "__main__":
    main()
