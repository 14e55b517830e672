"""Time a trial of DP-EFB beside a C program, in turns, one thread each.

    python -m benchmarks.efb_against_c PROGRAM [--rounds 15]

PROGRAM is called as ``PROGRAM efb ACTIONS OBSERVATIONS DEPTH TRIALS RATE`` and prints ``... ns/visited``.
What counts is the median ratio of the pairs, ours by theirs; goals are ratios too ("at most" and "aim").
"""

import argparse
import os
import re
import statistics
import subprocess
import time

from .efb_trials import Trials

# actions, observations, depth, trials, learning rate; goals as ratios to the C program
CASES = [
    (2, 2, 6, 20_000, 1e-4, 60 / 24, 36 / 24),
    (3, 3, 4, 20_000, 1e-4, 60 / 25, 38 / 25),
    (10, 2, 4, 20_000, 1e-6, 110 / 47, 70 / 47),
    (1000, 1, 2, 50_000, 1e-9, 340 / 169, 250 / 169),
]


def theirs(program, actions, observations, depth, n, rate):
    command = [program, "efb", *map(str, (actions, observations, depth, n, rate))]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "REPS": "3"}
    )
    return float(re.search(r"([0-9.]+) ns/visited", done.stdout)[1])


def ours(trials, n, visited):
    trials.restart()
    trials.run(n // 10)
    start = time.thread_time()
    trials.run(n)
    return (time.thread_time() - start) * 1e9 / n / visited


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print("ns a visited infoset: median (least)")
    for actions, observations, depth, n, rate, at_most, aim in CASES:
        trials = Trials(f"complete({actions},{observations},{depth})", learning_rate=rate)
        visited = trials.visited()
        pairs = [
            (ours(trials, n, visited), theirs(arguments.program, actions, observations, depth, n, rate))
            for _ in range(arguments.rounds)
        ]
        mine, other = zip(*pairs, strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"complete({actions},{observations},{depth}): {statistics.median(mine):.1f} ({min(mine):.1f}), "
            f"C {statistics.median(other):.1f} ({min(other):.1f}), ratio {ratio:.2f} "
            f"({min(mine) / min(other):.2f}); at most {at_most:.2f}, aim {aim:.2f}"
        )


if __name__ == "__main__":
    main()
