"""The counters' recursion and the tail of their noise, against textbook forms and exact tails."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from equinoise._random import NOISE, fill_laplace, stream_key
from equinoise.mechanisms import kernels

COMPILED = not numba.config.DISABLE_JIT
LEVELS = [math.log(2.0), 0.8, 1.0, 3.0, 10.0, 28.0, 600.0]  # ln(2/delta)


def textbook_binary(n_items):
    """Chan, Shi and Song's algorithm 2: the sets of nodes (by the item that made them) in every output."""
    alpha, outputs = {}, []
    for t in range(1, n_items + 1):
        i = next(j for j in range(64) if t >> j & 1)
        alpha[i] = t
        for j in range(i):
            alpha.pop(j, None)
        outputs.append({alpha[j] for j in range(64) if t >> j & 1})
    return outputs


def textbook_hybrid(n_items):
    """Their algorithm 4: the logarithmic counter's draws add up, a new binary counter after every power."""
    so_far, outputs, start = set(), [], 0
    for t in range(1, n_items + 1):
        if t & (t - 1) == 0:
            so_far, start = so_far | {t}, t
            outputs.append(so_far)
        else:
            outputs.append(so_far | {start + node for node in textbook_binary(t - start)[-1]})
    return outputs


def draws_in_outputs(total, n_items, slots):
    """Which draws enter which output of a kernel, by a unit in one node's place at a time: bool[n, draw]."""
    entered = np.zeros((n_items, n_items))
    for draw in range(n_items):
        totals = np.zeros(slots + 3)
        for n in range(1, n_items + 1):
            entered[n - 1, draw] = total(totals, 3, n, float(n == draw + 1))
        assert (totals[:4] == 0.0).all()  # other counters' slots, and this one's for n = 0
    return entered


def as_matrix(outputs):
    return np.array([[float(draw + 1 in used) for draw in range(len(outputs))] for used in outputs])


@pytest.mark.parametrize("n_items", [1, 2, 4, 64, 100])
def test_nodes_in_outputs(n_items):
    slots = n_items.bit_length() + 1
    ours = draws_in_outputs(kernels.prefix_total, n_items, slots)
    assert (ours == as_matrix(textbook_binary(n_items))).all()
    ours = draws_in_outputs(kernels.hybrid_total, n_items, slots)
    assert (ours == as_matrix(textbook_hybrid(n_items))).all()


def test_every_output_to_1100_has_as_many_draws_as_set_bits():
    """Each total carries its draws as the bits of an integer that a float64 cannot lose: one word a level."""
    kept_binary, kept_hybrid = {0: frozenset()}, {0: frozenset()}
    for n in range(1, 1101):
        kept_binary[n] = kept_binary[n & (n - 1)] | {n}
        kept_hybrid[n] = kept_hybrid[int(kernels.hybrid_parent(n))] | {n}
        assert len(kept_binary[n]) == n.bit_count()
        assert len(kept_hybrid[n]) == n.bit_length() + n.bit_count() - 1
    assert [set(kept_binary[n]) for n in range(1, 1101)] == textbook_binary(1100)
    assert [set(kept_hybrid[n]) for n in range(1, 1101)] == textbook_hybrid(1100)


@given(st.integers(0, 2**52))
@settings(max_examples=500)
def test_bits(n):
    n = np.int64(n)
    lowest = int(n & -n)
    assert kernels.slot(n) == lowest.bit_length()
    assert kernels.popcount(n) == int(n).bit_count()
    if n:
        assert kernels.floor_log2(n) == int(n).bit_length() - 1
        power = lowest == n
        assert kernels.hybrid_scale(n) == (2.0 if power else 2.0 * (int(n).bit_length() - 1))


def chernoff(draws, level):
    """The least width over s, by scipy, for draws given as (how many, of which scale)."""
    largest = max(scale for count, scale in draws if count)

    def width(s):
        logs = sum(count * math.log1p(-((scale * s) ** 2)) for count, scale in draws if count)
        return (level - logs) / s

    at = minimize_scalar(width, bounds=(1e-9 / largest, (1 - 1e-12) / largest), options={"xatol": 1e-13})
    return at.fun


@pytest.mark.parametrize("level", LEVELS)
def test_widths_are_the_least(level):
    for m in [1, 2, 3, 7, 21, 64]:
        slope, offset = kernels.tail_line(float(m), level)
        assert slope * level + offset == pytest.approx(chernoff([(m, 1.0)], level), rel=1e-9)
    for n in [1, 2, 3, 6, 7, 8, 15, 31, 100, 511, 1000, 65535, 10**6, 2**40 - 1]:
        k, q = n.bit_length() - 1, n.bit_count() - 1
        slope, offset = kernels.hybrid_line(n, level)
        exact = chernoff([(k + 1, 2.0), (q, 2.0 * max(k, 1))], level)
        assert slope * level + offset == pytest.approx(exact, rel=1e-9)


def exact_tail(m, w):
    """P(|sum of m standard Laplace draws| > w), by the closed forms for m = 1, 2, 3."""
    polynomial = {1: [1.0], 2: [1.0, 1 / 2], 3: [1.0, 5 / 8, 1 / 8]}[m]
    return math.exp(-w) * sum(c * w**i for i, c in enumerate(polynomial))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("delta", [1.0, 0.1, 1e-3, 1e-12])
def test_widths_hold_and_are_not_loose(m, delta):
    w = kernels.tail_width(float(m), 1.0, delta)
    assert exact_tail(m, w) <= delta
    assert exact_tail(m, 0.4 * w) > delta or delta == 1.0
    assert kernels.tail_width(float(m), 3.5, delta) == pytest.approx(3.5 * w, rel=1e-15)


def test_hybrid_width_holds_for_draws():
    """At n = 7, three draws of scale 2 and two of 4: no more than delta beyond the width, at 6 errors."""
    n, trials, delta = 7, 200_000, 0.05
    rng = np.random.default_rng(5)
    noise = rng.laplace(0, 2.0, (trials, 3)).sum(axis=1) + rng.laplace(0, 4.0, (trials, 2)).sum(axis=1)
    beyond = (np.abs(noise) > kernels.hybrid_width(n, 1.0, delta)).mean()
    assert 0.002 < beyond < delta + 6 * math.sqrt(delta / trials)
    assert kernels.hybrid_width(n, 2.0, delta) == pytest.approx(2 * kernels.hybrid_width(n, 1.0, delta))


@given(st.integers(1, 64), st.floats(0.7, 60.0), st.floats(0.7, 60.0), st.integers(1, 10**6))
@settings(max_examples=200)
def test_a_line_is_a_width_at_every_level(m, made, used, n):
    slope, offset = kernels.tail_line(float(m), made)
    best, least = kernels.tail_line(float(m), used)
    assert slope * used + offset >= (best * used + least) * (1 - 1e-13)
    slope, offset = kernels.hybrid_line(n, made)
    best, least = kernels.hybrid_line(n, used)
    assert slope * used + offset >= (best * used + least) * (1 - 1e-13)


def test_below_the_closed_form():
    """Chan, Shi and Song's own width is 1.2 to 4 times as wide."""
    for m in [1, 2, 5, 10]:
        for t in [2, 10, 1000, 10**6]:
            level = math.log(2.0 * t * t)
            nu = max(math.sqrt(m), math.sqrt(2 * level))
            ratio = nu * math.sqrt(8 * level) / kernels.tail_width(float(m), 1.0, 1.0 / t**2)
            assert 1.2 < ratio < 4


def test_table():
    levels = np.array(LEVELS)
    out = np.full((len(levels), 12), np.nan)
    kernels.fill_widths(levels, 2.5, out)
    for i, level in enumerate(levels):
        for m in range(12):
            expected = 2.5 * chernoff([(m, 1.0)], level) if m else 0.0
            assert out[i, m] == pytest.approx(expected, rel=1e-9)


def test_node_noise_law_and_addresses():
    """Kolmogorov-Smirnov at p > 1e-6, for a fixed seed; a node's draws depend on the node alone."""
    key, n_nodes = stream_key(11), 20_000 if COMPILED else 1000
    out = np.empty((n_nodes, 3))
    for n in range(n_nodes):
        fill_laplace(key, n + 1, NOISE, 2.0, out[n])
    assert stats.kstest(out.reshape(-1) / 2.0, "laplace").pvalue > 1e-6
    assert len(np.unique(out)) == out.size
    for one, other in [(out[1:, 0], out[:-1, 0]), (out[:, 0], out[:, 1]), (out[:, 1], out[:, 2])]:
        assert abs(np.corrcoef(one, other)[0, 1]) < 6 / math.sqrt(n_nodes)
    again = np.empty(2)
    fill_laplace(key, 7, NOISE, 1.0, again)
    assert again.tolist() == (out[6, :2] / 2.0).tolist()
