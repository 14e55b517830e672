"""The arrays that the kernels of linear bandits work on, in named tuples.

K arms, d coordinates, W replicates side by side (lanes), T rounds, and P = d(d+1)/2. For how arms and
coordinates share an axis see :mod:`equinoise.bandits.linear.kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

from equinoise._checkpoint import kept_as
from equinoise._typing import Floats, Ints, Words

__all__ = ["Floats", "Learner", "Plan", "Round", "Streams", "Words"]


@kept_as("equinoise.bandits._linear_arrays.Plan")
class Plan(NamedTuple):
    """What a run is: arrays that are read only, and numbers.

    theta float64[K d, W]: the arms' coefficients. context float64[T, K, d]: given contexts, or of no rounds
    where they are drawn on the sphere. width float64[T+1]: what ||x|| in V^-1 is multiplied by after n pulls,
    all zero for greedy play. noise_width float64[T+1]: what ||V^-1 x||_1 is multiplied by after n pulls, or
    empty for policies that are not private. in_turn: arms are played in turn, whatever their index. binary:
    rewards are -1 or 1; else Gaussian with deviation sigma. Private sums are of rewards clipped to
    [low, high], with noise of scale `scale`, and a counter keeps `slots` totals.
    """

    theta: Floats
    context: Floats
    width: Floats
    noise_width: Floats
    in_turn: bool
    binary: bool
    sigma: float
    low: float
    high: float
    scale: float
    slots: int


class Learner(NamedTuple):
    """Ridge regressions of W lanes.

    pulls int64[K, W]; inverse float64[K P, W]; estimate float64[K d, W]: what the index is computed from;
    bonus, noise_bonus float64[K, W]: widths at the present pulls, a noise_bonus of -1 puts its arm first;
    regret float64[W]. For private policies also moment, clipped float64[K d, W]: the sums of y x, and of
    clipped y x; totals float64[W K d slots] of the counters. These are empty for the others, whose estimate
    is V^-1 moment.
    """

    pulls: Ints
    inverse: Floats
    estimate: Floats
    bonus: Floats
    noise_bonus: Floats
    regret: Floats
    moment: Floats
    clipped: Floats
    totals: Floats


class Streams(NamedTuple):
    """States uint64[4, W] of the streams of contexts, rewards and noise."""

    context: Words
    reward: Words
    noise: Words


class Round(NamedTuple):
    """Scratch of one round.

    word uint64[.., W], cuts float64[ceil(d/2) + 2, W], context float64[K d, W]; half, mean, expected,
    spread float64[K, W]: x' V^-1 x / 2, estimate' x, theta' x, ||V^-1 x||_1. Of each lane's arm: arm
    int64[W], row_of, triangle_of uint64[W]: its number and its first rows; played, image float64[d, W]: x and
    V^-1 x; triangle float64[P, W]: V^-1; reward float64[W]; scale, step float64[W]: 1/(1 + x' V^-1 x), and
    that times (reward - estimate' x). normal float64[2, W], noise float64[d, W], row, best, top float64[W].
    """

    word: Words
    context: Floats
    cuts: Floats
    half: Floats
    mean: Floats
    expected: Floats
    spread: Floats
    played: Floats
    image: Floats
    triangle: Floats
    arm: Ints
    row_of: Words
    triangle_of: Words
    normal: Floats
    noise: Floats
    row: Floats
    best: Floats
    top: Floats
    reward: Floats
    scale: Floats
    step: Floats
