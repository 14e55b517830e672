"""Kernels of linear bandits: a ridge regression for every arm, W replicates side by side.

Arrays are flat over arms and coordinates and have the lanes innermost: row k d + i is coordinate i of arm
k, and the rows k P to k P + P - 1, P = d(d+1)/2, are the upper triangle of V_k^-1, row by row. All work is
done in loops over the lanes, which become vector code; between them what belongs to the arm that a lane
plays is copied out and back. Nothing is reassociated: a replicate has the same bits in any lane.

Streams of a replicate (xoshiro256++ from the block (key; 0, 0, replicate, purpose)): CONTEXT,
K (2 ceil(d/2) - 1) words a round; REWARD, 2; NOISE, d: whatever is played.
"""

import numpy as np

from equinoise._jit import njit
from equinoise._random import fill_words, laplace, uniform
from equinoise._typing import Any, Floats, Ints, Words
from equinoise.bandits.linear.arrays import Learner, Plan, Round, fill_directions, fill_normals
from equinoise.mechanisms.kernels import prefix_total

_TIE = 1e-9  # arms never pulled have equal indices but for rounding; the lowest number is to win
_TOP: Any = np.int64(0)  # the first row; a plain 0 would have callees compiled for it alone
CONTEXTS, REWARDS, NOISES = 0, 1, 2  # of streams uint64[3, 4, W]
_at = np.uint64  # an unsigned index: Numba then leaves out the test for a negative one


@njit(inline="always")
def _play(
    score: Any, fit: Any, plan: Plan, learner: Learner, streams: Words, scratch: Round, first: int, end: int
) -> None:
    """Play the rounds first..end-1 in all lanes, with the two steps that depend on the policy."""
    for t in range(first, end):
        _show(plan, streams, scratch, t)
        score(learner, scratch)
        _choose(plan, learner, scratch, t)
        _draw_rewards(plan, learner, streams, scratch)
        _take_out(learner, scratch)
        _regress(scratch)
        _put_back(plan, learner, scratch)
        fit(plan, learner, streams, scratch)


@njit
def play(plan: Plan, learner: Learner, streams: Words, scratch: Round, first: int, end: int) -> None:
    """Play the rounds first..end-1 in all lanes.

    Each round: contexts x_k; the index of an arm, estimate_k' x_k + ||x_k||_{V_k^-1} width(n_k); the arm
    with the largest one, the lowest number among equals; its reward y, of mean theta_k' x_k;
    V_k += x x', b_k += y x, and the estimate stays V_k^-1 b_k.
    """
    _play(_score, _estimate, plan, learner, streams, scratch, first, end)


@njit
def play_private(plan: Plan, learner: Learner, streams: Words, scratch: Round, first: int, end: int) -> None:
    """Play the rounds first..end-1 in all lanes as :func:`play` does, on noised sums.

    The estimate is V_k^-1 (b_k + noise), b_k of clipped rewards; the index has + ||V_k^-1 x_k||_1
    noise_width(n_k); and arms never played come first, lowest number first, since before there is any noise
    an index without its width would never be reached by the others.
    """
    _play(_score_private, _estimate_privately, plan, learner, streams, scratch, first, end)


@njit
def walk(plan: Plan, learner: Learner, streams: Words, scratch: Round, log: Any, used: Ints) -> int:
    """Walk the rows of a log in one lane; learn from those whose arm is chosen, and return their number.

    A row's context is that of all arms, plan.context float64[M, 1, d]; log is (arms int64[M], rewards
    float64[M]). The rows that are used are written to used int64[N]: no more than N are.
    """
    dimension, t = scratch.played.shape[0], 0
    for row in range(log[0].size):
        if t == used.size:
            break
        for i in range(scratch.context.shape[0]):
            scratch.context[i, 0] = plan.context[row, 0, i % dimension]
        choose(plan, learner, scratch, t)
        if scratch.arm[0] != log[0][row]:
            continue
        scratch.reward[0], used[t] = log[1][row], row
        t += 1
        learn(plan, learner, streams, scratch)
    return t


@njit
def choose(plan: Plan, learner: Learner, scratch: Round, t: int) -> None:
    """Find each lane's arm of round t for the contexts in scratch."""
    if plan.noise_width.size > 0:
        _score_private(learner, scratch)
    else:
        _score(learner, scratch)
    _choose(plan, learner, scratch, t)


@njit
def learn(plan: Plan, learner: Learner, streams: Words, scratch: Round) -> None:
    """Learn each lane's reward in scratch, with what :func:`choose` has left there."""
    _take_out(learner, scratch)
    _regress(scratch)
    _put_back(plan, learner, scratch)
    if plan.noise_width.size > 0:
        _estimate_privately(plan, learner, streams, scratch)
    else:
        _estimate(plan, learner, streams, scratch)


@njit
def _show(plan: Plan, streams: Words, scratch: Round, t: int) -> None:
    """Set the contexts of round t, and the arms' means there."""
    dimension = scratch.played.shape[0]
    if plan.context.shape[0] > 0:
        for k in range(plan.context.shape[1]):  # the same for all lanes
            for i in range(dimension):
                for lane in range(scratch.row.size):
                    scratch.context[k * dimension + i, lane] = plan.context[t, k, i]
    else:
        fill_directions(streams[CONTEXTS], scratch.word, scratch.cuts, dimension, scratch.context)
    _products(plan.theta, scratch.context, dimension, scratch.expected)


@njit(fastmath={"contract"})  # fused multiply-adds save a third here; it calls nothing that would inherit
def _score(learner: Learner, scratch: Round) -> None:
    """Set half[k] = x' V^-1 x / 2 = sum over i of x_i (A_ii x_i / 2 + sum over j > i of A_ij x_j)."""
    inverse, context, half, row = learner.inverse, scratch.context, scratch.half, scratch.row
    dimension = scratch.played.shape[0]
    p = 0
    for k in range(half.shape[0]):
        end = (k + 1) * dimension
        for lane in range(row.size):
            half[k, lane] = 0.0
        for i in range(k * dimension, end):
            for lane in range(row.size):
                row[lane] = 0.5 * inverse[p, lane] * context[i, lane]
            p += 1
            for j in range(i + 1, end):
                for lane in range(row.size):
                    row[lane] += inverse[p, lane] * context[j, lane]
                p += 1
            for lane in range(row.size):
                half[k, lane] += row[lane] * context[i, lane]


@njit
def _score_private(learner: Learner, scratch: Round) -> None:
    """Set half as :func:`_score` does, and spread[k] = ||u||_1, from u = V^-1 x."""
    image, half, spread = scratch.image, scratch.half, scratch.spread
    dimension = image.shape[0]
    size = scratch.triangle.shape[0]
    for k in range(half.shape[0]):
        _multiply(learner.inverse, k * size, scratch.context, k * dimension, image)
        for lane in range(half.shape[1]):
            half[k, lane] = 0.0
            spread[k, lane] = 0.0
        for i in range(dimension):
            for lane in range(half.shape[1]):
                half[k, lane] += 0.5 * image[i, lane] * scratch.context[k * dimension + i, lane]
                spread[k, lane] += abs(image[i, lane])


@njit
def _multiply(triangles: Floats, p: int, vectors: Floats, start: int, out: Floats) -> None:
    """Set out float64[d, W] to matrices, whose triangles begin at row p, times the vectors from row start."""
    for j in range(out.shape[0]):
        for lane in range(out.shape[1]):
            out[j, lane] = triangles[p + j, lane] * vectors[start, lane]
    for j in range(1, out.shape[0]):
        for lane in range(out.shape[1]):
            out[_TOP, lane] += triangles[p + j, lane] * vectors[start + j, lane]
    p += out.shape[0]
    for i in range(1, out.shape[0]):
        for lane in range(out.shape[1]):
            out[i, lane] += triangles[p, lane] * vectors[start + i, lane]
        p += 1
        for j in range(i + 1, out.shape[0]):
            for lane in range(out.shape[1]):
                entry = triangles[p, lane]
                out[i, lane] += entry * vectors[start + j, lane]
                out[j, lane] += entry * vectors[start + i, lane]
            p += 1


@njit
def _products(vectors: Floats, context: Floats, dimension: int, out: Floats) -> None:
    """Set out[k] to the inner product of an arm's vector with its context; vectors float64[K d, W]."""
    for k in range(out.shape[0]):
        first = k * dimension
        for lane in range(out.shape[1]):
            out[k, lane] = vectors[first, lane] * context[first, lane]
        for i in range(first + 1, first + dimension):
            for lane in range(out.shape[1]):
                out[k, lane] += vectors[i, lane] * context[i, lane]


@njit
def _choose(plan: Plan, learner: Learner, scratch: Round, t: int) -> None:
    """Find each lane's arm, and the largest mean of the round (top)."""
    best, arm, top = scratch.best, scratch.arm, scratch.top
    _products(learner.estimate, scratch.context, scratch.played.shape[0], scratch.mean)
    for lane in range(arm.size):
        best[lane] = -np.inf
        top[lane] = -np.inf
    for k in range(learner.pulls.shape[0]):
        for lane in range(arm.size):
            half, expected = scratch.half[k, lane], scratch.expected[k, lane]
            noise_bonus = learner.noise_bonus[k, lane]
            length = np.sqrt(2.0 * (half if half > 0.0 else 0.0))
            index = scratch.mean[k, lane] + length * learner.bonus[k, lane]
            index += scratch.spread[k, lane] * noise_bonus
            index = index if noise_bonus >= 0.0 else np.inf
            better = index > best[lane] + _TIE
            best[lane] = index if better else best[lane]
            arm[lane] = k if better else arm[lane]
            top[lane] = expected if expected > top[lane] else top[lane]
    if plan.in_turn:
        for lane in range(arm.size):
            arm[lane] = t % learner.pulls.shape[0]


@njit
def _draw_rewards(plan: Plan, learner: Learner, streams: Words, scratch: Round) -> None:
    """Draw the reward of each lane's arm, by the first normal draw or uniform, and add to the regret."""
    words, normals, reward = scratch.word, scratch.normal, scratch.reward
    fill_words(streams[REWARDS], normals.shape[0], words)
    fill_normals(words, normals)
    for lane in range(reward.size):
        mean = scratch.expected[_at(scratch.arm[lane]), lane]
        learner.regret[lane] += scratch.top[lane] - mean
        if plan.binary:
            reward[lane] = 1.0 if uniform(words[0, lane]) < 0.5 * (1.0 + mean) else -1.0
        else:
            reward[lane] = mean + plan.sigma * normals[0, lane]


@njit
def _take_out(learner: Learner, scratch: Round) -> None:
    """Copy out what the update needs of each lane's arm: its context, its V^-1, the scale and the step."""
    played, triangle = scratch.played, scratch.triangle
    row_of, triangle_of = scratch.row_of, scratch.triangle_of
    for lane in range(row_of.size):
        arm = _at(scratch.arm[lane])
        row_of[lane] = arm * _at(played.shape[0])
        triangle_of[lane] = arm * _at(triangle.shape[0])
        scratch.scale[lane] = 1.0 / (1.0 + 2.0 * scratch.half[arm, lane])
        scratch.step[lane] = scratch.scale[lane] * (scratch.reward[lane] - scratch.mean[arm, lane])
    for i in range(played.shape[0]):
        for lane in range(row_of.size):
            played[i, lane] = scratch.context[row_of[lane] + _at(i), lane]
    for p in range(triangle.shape[0]):
        for lane in range(row_of.size):
            triangle[p, lane] = learner.inverse[triangle_of[lane] + _at(p), lane]


@njit
def _regress(scratch: Round) -> None:
    """Set image to u = V^-1 x, then V^-1 -= u u'/(1 + x'u) (Sherman and Morrison, 1950), in triangle."""
    triangle, image, row = scratch.triangle, scratch.image, scratch.row
    _multiply(triangle, _TOP, scratch.played, _TOP, image)
    p = 0
    for i in range(image.shape[0]):
        for lane in range(row.size):
            row[lane] = scratch.scale[lane] * image[i, lane]
        for j in range(i, image.shape[0]):
            for lane in range(row.size):
                triangle[p, lane] -= row[lane] * image[j, lane]
            p += 1


@njit
def _put_back(plan: Plan, learner: Learner, scratch: Round) -> None:
    """Copy the triangles back, count the pulls, and look up the widths at their new number."""
    triangle, triangle_of = scratch.triangle, scratch.triangle_of
    for p in range(triangle.shape[0]):
        for lane in range(triangle_of.size):
            learner.inverse[triangle_of[lane] + _at(p), lane] = triangle[p, lane]
    for lane in range(triangle_of.size):
        arm = _at(scratch.arm[lane])
        n = learner.pulls[arm, lane] + 1
        learner.pulls[arm, lane] = n
        learner.bonus[arm, lane] = plan.width[_at(min(n, plan.width.size - 1))]


@njit
def _estimate(plan: Plan, learner: Learner, streams: Words, scratch: Round) -> None:
    """Move the estimate of each lane's arm by u (y - estimate' x)/(1 + x'u): it stays V^-1 b."""
    for i in range(scratch.image.shape[0]):
        for lane in range(scratch.step.size):
            row = scratch.row_of[lane] + _at(i)
            learner.estimate[row, lane] += scratch.step[lane] * scratch.image[i, lane]


@njit
def _estimate_privately(plan: Plan, learner: Learner, streams: Words, scratch: Round) -> None:
    """Set the estimate of each lane's arm to V^-1 (sum of clipped y x + noise).

    The noise is the n-th sum of a vector of d binary counters: a fresh Laplace draw a coordinate for the
    node that pull n completes, and the kept draws of the nodes before it.
    """
    dimension = scratch.played.shape[0]
    fill_words(streams[NOISES], dimension, scratch.word)
    for i in range(dimension):
        for lane in range(scratch.reward.size):
            scratch.noise[i, lane] = plan.scale * laplace(scratch.word[i, lane])
    for lane in range(scratch.reward.size):
        arm = scratch.arm[lane]
        n = learner.pulls[arm, lane]
        learner.noise_bonus[arm, lane] = plan.noise_width[min(n, plan.noise_width.size - 1)]
        reward = scratch.reward[lane]
        clipped = min(max(reward, plan.low), plan.high)
        for i in range(dimension):
            row = arm * dimension + i
            x = scratch.played[i, lane]
            learner.moment[row, lane] += reward * x
            learner.clipped[row, lane] += clipped * x
            base = (lane * learner.moment.shape[0] + row) * plan.slots
            total = prefix_total(learner.totals, base, n, scratch.noise[i, lane])
            scratch.played[i, lane] = learner.clipped[row, lane] + total
    _multiply(scratch.triangle, _TOP, scratch.played, _TOP, scratch.image)
    for i in range(dimension):
        for lane in range(scratch.reward.size):
            learner.estimate[scratch.row_of[lane] + _at(i), lane] = scratch.image[i, lane]
