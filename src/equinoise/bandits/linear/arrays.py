"""The arrays that the kernels of linear bandits work on, in named tuples.

K arms, d coordinates, W replicates side by side (lanes), T rounds, and P = d(d+1)/2. For how arms and
coordinates share an axis see :mod:`equinoise.bandits.linear.kernels`.
"""

import numpy as np

from equinoise._checkpoint import kept_as
from equinoise._elementary import log
from equinoise._jit import njit
from equinoise._random import fill_words, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple, Words


@kept_as("equinoise.bandits._linear_arrays.Plan")
class Plan(NamedTuple):
    """What a run is: arrays that are read only, and numbers."""

    theta: Floats  # [K d, W], the arms' coefficients
    context: Floats  # [T, K, d], given contexts, or of no rounds where they are drawn on the sphere
    width: Floats  # [T+1], what ||x|| in V^-1 is multiplied by after n pulls, or [1]; zero for greedy play
    noise_width: Floats  # as long: what ||V^-1 x||_1 is multiplied by, or empty for what is not private
    in_turn: bool  # arms are played in turn, whatever their index
    binary: bool  # rewards are -1 or 1; else Gaussian
    sigma: float  # deviation of Gaussian rewards
    low: float  # private sums are of rewards clipped to [low, high]
    high: float
    scale: float  # of their noise
    slots: int  # totals that a counter keeps


class Learner(NamedTuple):
    """Ridge regressions of W lanes; the last three are empty for what is not private."""

    pulls: Ints  # [K, W]
    inverse: Floats  # [K P, W]
    estimate: Floats  # [K d, W], what the index is computed from
    bonus: Floats  # [K, W], width at the present pulls
    noise_bonus: Floats  # [K, W], that for the noise; -1 puts its arm first
    regret: Floats  # [W]
    moment: Floats  # [K d, W], sums of y x
    clipped: Floats  # [K d, W], sums of clipped y x
    totals: Floats  # [W K d slots], of the counters


class Round(NamedTuple):
    """Scratch of one round."""

    word: Words  # [.., W]
    context: Floats  # [K d, W]
    cuts: Floats  # [ceil(d/2) + 2, W]
    half: Floats  # [K, W], x' V^-1 x / 2
    mean: Floats  # [K, W], estimate' x
    expected: Floats  # [K, W], theta' x
    spread: Floats  # [K, W], ||V^-1 x||_1
    played: Floats  # [d, W], x of each lane's arm
    image: Floats  # [d, W], V^-1 x
    triangle: Floats  # [P, W], V^-1
    arm: Ints  # [W]
    row_of: Words  # [W], the arm's first row of coordinates
    triangle_of: Words  # [W], and of its triangle
    normal: Floats  # [2, W]
    noise: Floats  # [d, W]
    row: Floats  # [W], as are all below
    best: Floats
    top: Floats
    reward: Floats
    scale: Floats  # 1/(1 + x' V^-1 x)
    step: Floats  # that times (reward - estimate' x)


@njit
def fill_spreads(pulls: Ints, ridge: float, delta: float, dimension: int, out: Floats) -> None:
    """Write sqrt(d ln((1 + n/ridge)/delta)) of int64[N] pulls n into out: NumPy has other bits elsewhere."""
    for i in range(pulls.size):
        out[i] = np.sqrt(dimension * log((1.0 + pulls[i] / ridge) / delta))


_SWAP = np.uint64(1)
_FLIP = np.uint64(2)
_HALF_PI = np.pi / 2


@njit(forceinline=True)
def circle(word: Any) -> Any:
    """Return (cos a, sin a), a uniform on the circle.

    The angle is uniform on a quarter around 0, then mirrored in the diagonal and turned by half a circle as
    the two lowest bits say, which are none of those that make the uniform. On the quarter both are Taylor
    polynomials, to a^16 and a^15.
    """
    a = (uniform(word) - 0.5) * _HALF_PI
    s = a * a
    high = 1.0 / 479001600.0 + s * (-1.0 / 87178291200.0 + s * (1.0 / 20922789888000.0))
    middle = -1.0 / 720.0 + s * (1.0 / 40320.0 + s * (-1.0 / 3628800.0 + s * high))
    cosine = 1.0 + s * (-0.5 + s * (1.0 / 24.0 + s * middle))
    high = -1.0 / 39916800.0 + s * (1.0 / 6227020800.0 - s * (1.0 / 1307674368000.0))
    middle = -1.0 / 5040.0 + s * (1.0 / 362880.0 + s * high)
    sine = a * (1.0 + s * (-1.0 / 6.0 + s * (1.0 / 120.0 + s * middle)))
    sign = -1.0 if word & _FLIP else 1.0
    swapped = bool(word & _SWAP)
    return sign * (sine if swapped else cosine), sign * (cosine if swapped else sine)


@njit
def fill_normals(words: Words, out: Floats) -> None:
    """Fill out float64[2, W] with standard normal draws r cos(a), r sin(a) (Box and Muller, 1958).

    r^2 = -2 ln u of the first row of words uint64[2.., W], and the second row makes the angle.
    """
    for lane in range(out.shape[1]):
        radius = np.sqrt(-2.0 * log(uniform(words[0, lane])))
        cosine, sine = circle(words[1, lane])
        out[0, lane] = radius * cosine
        out[1, lane] = radius * sine


def words_of(n: int, dimension: int) -> int:
    """Return how many words a lane's n directions take: m - 1 for the radii of each and m for its angles."""
    return n * (2 * ((dimension + 1) // 2) - 1)


@njit
def fill_directions(states: Words, words: Words, cuts: Floats, dimension: int, out: Floats) -> None:
    """Fill out float64[n d, W] with n vectors that are independent and uniform on the unit sphere.

    Rows v d to v d + d - 1 are vector v. The streams uint64[4, W] move on by 2 m - 1 words a vector, m =
    ceil(d/2) pairs. Scratch: words uint64[n (2 m - 1).., W] and cuts float64[m + 2, W].
    """
    pairs = cuts.shape[0] - 2
    n = out.shape[0] // dimension
    fill_words(states, n * (2 * pairs - 1), words)
    for v in range(n):
        first = v * (2 * pairs - 1)
        _cut(words, first, cuts)
        _place(words, first + pairs - 1, cuts, v * dimension, dimension, out)


@njit
def _cut(words: Words, first: int, cuts: Floats) -> None:
    """Set cuts to 0, the sorted uniforms of the words from row `first` on, 1, and a scale of 1."""
    last = cuts.shape[0] - 2
    for lane in range(cuts.shape[1]):
        cuts[0, lane] = 0.0
        cuts[last, lane] = 1.0
        cuts[last + 1, lane] = 1.0
    for i in range(1, last):
        for lane in range(cuts.shape[1]):
            cuts[i, lane] = uniform(words[first + i - 1, lane])
        for j in range(i, 1, -1):
            for lane in range(cuts.shape[1]):
                one, two = cuts[j - 1, lane], cuts[j, lane]
                cuts[j - 1, lane] = one if one < two else two
                cuts[j, lane] = two if one < two else one


@njit
def _place(words: Words, first: int, cuts: Floats, row: int, dimension: int, out: Floats) -> None:
    """Write a vector from row `row` on: radii from the cuts, angles from the words.

    What an odd vector keeps of its last pair is the cosine, so that its squared length is the last inner cut
    plus the square of that; all its coordinates are divided by that length.
    """
    half = dimension // 2
    scale = cuts.shape[0] - 1
    if dimension % 2 == 1:
        for lane in range(cuts.shape[1]):
            rest = cuts[half, lane]
            cosine, _ = circle(words[first + half, lane])
            last = np.sqrt(1.0 - rest) * cosine
            cuts[scale, lane] = 1.0 / np.sqrt(rest + last * last)
            out[row + dimension - 1, lane] = last * cuts[scale, lane]
    for i in range(half):
        for lane in range(cuts.shape[1]):
            radius = cuts[scale, lane] * np.sqrt(cuts[i + 1, lane] - cuts[i, lane])
            cosine, sine = circle(words[first + i, lane])
            out[row + 2 * i, lane] = radius * cosine
            out[row + 2 * i + 1, lane] = radius * sine
