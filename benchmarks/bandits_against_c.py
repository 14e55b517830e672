"""Time a round of ucb and private-ucb beside a C program, in turns, one thread each.

    python -m benchmarks.bandits_against_c PROGRAM [--rounds 15]

PROGRAM is called as ``PROGRAM ucb ARMS HORIZON REPLICATES VARIANT`` and ``PROGRAM privucb ARMS HORIZON
REPLICATES EPSILON VARIANT`` and prints ``... ns/round``; its private-ucb is the one with the published width.
VARIANT is "scalar", careful plain C, and "simd", vectors by hand. Ours is a whole call of ``simulate``, with
tables and results. What counts is the median ratio of the pairs, ours by theirs; "at most" and "aim" are the
goals as ratios to the same two programs.
"""

import argparse
import os
import re
import statistics
import subprocess
import time

from .bandit_rounds import Rounds

# arms, horizon, epsilon, options; what LIMITS asks of ns a round: scalar C, vectors, at most, aim
CASES = [
    ("ucb", 20, 500, None, {}, (32.5, 7.1, 29, 14)),
    ("ucb", 5, 2000, None, {}, (18, 4.5, 18, 11)),
    ("private-ucb", 20, 500, 0.05, {"width": "published"}, (75, 16, 73, 35)),
    ("private-ucb", 20, 500, 0.05, {}, (75, 16, 73, 35)),
    ("private-ucb", 5, 2000, 400.0, {"width": "published"}, (79, 12, 79, 40)),
    ("private-ucb", 5, 2000, 400.0, {}, (79, 12, 79, 40)),
]
N_REPLICATES = 2048


def theirs(program, policy, n_arms, horizon, epsilon, variant):
    name = {"ucb": "ucb", "private-ucb": "privucb"}[policy]
    numbers = [n_arms, horizon, 2000, *([] if epsilon is None else [epsilon])]
    done = subprocess.run(
        [program, name, *map(str, numbers), variant],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "REPS": "3"},
    )
    return float(re.search(r"([0-9.]+) ns/round", done.stdout)[1])


def ours(rounds):
    start = time.thread_time()
    rounds.run()
    return (time.thread_time() - start) * 1e9 / rounds.n_rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print("ns a round: median (least); ratios to C: median, and what was asked for")
    for policy, n_arms, horizon, epsilon, options, (scalar, vectors, at_most, aim) in CASES:
        rounds = Rounds(policy, n_arms, horizon, N_REPLICATES, epsilon=epsilon, **options)
        ours(rounds)
        mine, plain, simd = [], [], []
        for _ in range(arguments.rounds):
            mine.append(ours(rounds))
            for times, variant in ((plain, "scalar"), (simd, "simd")):
                times.append(theirs(arguments.program, policy, n_arms, horizon, epsilon, variant))
        words = f"{policy} K={n_arms} T={horizon}"
        if epsilon is not None:
            words += f" epsilon={epsilon:g} width={options.get('width', 'counter')}"
        print(f"{words}: {statistics.median(mine):.1f} ({min(mine):.1f})")
        for name, times, asked in (("scalar C", plain, scalar), ("C with vectors", simd, vectors)):
            ratio = statistics.median(a / b for a, b in zip(mine, times, strict=True))
            print(
                f"    {name} {statistics.median(times):.1f} ({min(times):.1f}): ratio {ratio:.2f}; "
                f"at most {at_most / asked:.2f}, aim {aim / asked:.2f}"
            )


if __name__ == "__main__":
    main()
