"""Audits: bounds by Clopper and Pearson that hold, exact losses by enumeration, planted faults that show."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from equinoise.inference.privacy import audit, bounded, differences, exactly, low_bits, steps, values
from equinoise.mechanisms import laplace, secure_laplace

SURE = 1e-6


@pytest.mark.parametrize(("k", "other"), [(0, 0), (7, 0), (70, 3), (100, 50), (100, 100), (3, 70)])
def test_bounds_are_those_of_clopper_and_pearson(k, other):
    low = stats.binomtest(k, 100).proportion_ci(0.95, "exact").low
    high = stats.binomtest(other, 100).proportion_ci(0.95, "exact").high
    expected = max(0.0, math.log((low - 0.01) / high)) if low > 0.01 else 0.0
    assert float(bounded(k, other, 100, 0.01, 0.05)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1.0 - 2.0**-53])
def test_bounds_at_any_level_are_numbers(alpha):
    found = bounded(np.arange(401), 0, 400, 0.0, alpha)
    assert np.isfinite(found).all() and (np.diff(found) >= 0.0).all()


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_an_exact_loss_is_that_of_the_best_event(delta):
    """By enumeration of all 63 events of random laws."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6), 2)
        events = [list(e) for n in range(1, 7) for e in itertools.combinations(range(6), n)]
        ratios = [(x[e].sum() - delta) / y[e].sum() for x, y in ((p, q), (q, p)) for e in events]
        found = exactly([(q, p)], 1.0, delta=delta)
        assert found.lower == pytest.approx(max(0.0, math.log(max(ratios))), abs=1e-12)
        assert found.exact and found.violated == (found.lower > 1.0)
    impossible = exactly([(np.array([1.0, 0.0]), np.array([0.5, 0.5]))], 1.0)
    assert impossible.lower == math.inf and impossible.violated


def response(ratio):
    """Randomised response with an epsilon of ln(ratio)."""
    share = ratio / (1.0 + ratio)
    return lambda i, size, seed: (np.random.default_rng(seed).random(size) < share) != i


def test_a_bound_is_seldom_above_the_truth():
    """At alpha 0.2 at most 75 of 250: with a chance of 0.2 each, more have a probability below 1e-4.

    Both proportions must err, so far fewer do; but more than none, and most bounds are close.
    """
    found = [audit(response(3.0), math.log(3.0), size=1000, seed=s, alpha=0.2) for s in range(250)]
    assert 1 <= sum(one.violated for one in found) <= 75
    assert np.median([one.lower for one in found]) > 0.8 * math.log(3.0)


def test_what_is_new_in_a_later_sum_is_looked_at():
    """The second and third of three entries share their noise: their difference is the datum itself."""

    def draw(i, size, seed):
        noise = np.random.default_rng(seed).laplace(scale=50.0, size=(size, 2))
        last = noise[:, 1] + i + np.random.default_rng([seed, 1]).laplace(scale=0.1, size=size)
        return np.column_stack([noise, last])

    assert audit(draw, 1.0, size=2000).violated
    assert not audit(draw, 1.0, size=2000, events=(values, differences)).violated
    assert steps(np.array([[1.0, 4.0, 9.0, math.inf]])).tolist() == [[3.0, 5.0, math.inf]]


def test_a_pair_and_an_event_are_chosen():
    """Only the last of three pairs tells anything, and only in its second entry."""

    def draw(pair, i, size, seed):
        rng = np.random.default_rng(seed)
        return np.stack([rng.random(size), rng.random(size) < (0.2 + 0.6 * i * (pair == 2))], axis=1)

    pairs = [lambda i, size, seed, pair=pair: draw(pair, i, size, seed) for pair in range(3)]
    assert audit(pairs[:2], 1.0, size=4000, alpha=SURE).lower < 0.1
    found = audit(pairs, 1.0, size=4000, alpha=SURE, name="three")
    assert 1.1 < found.lower < math.log(4.0) and found.violated
    assert (found.mechanism, found.pairs, found.exact, found.alpha) == ("three", 3, False, SURE)


def noised(kind, two=((1.0, 0.0, 1.0), (0.0, 1.0, 1.0))):
    """Three values with Laplace(2) noise each, which is 1-private; or with a mistake in it."""

    def draw(i, size, seed):
        noise = laplace(1.0 if kind == "half" else 2.0, 3 * size, seed).reshape(size, 3)
        if kind == "one coordinate":
            noise[:, 1:] = 0.0
        if kind == "reused":
            noise[:, 1:] = noise[:, :1]
        return two[i] + noise if kind != "grid" else np.round((two[i] + noise) * 2**20) / 2**20

    return draw


@pytest.mark.parametrize(
    ("kind", "least"), [("half", 1.0), ("one coordinate", 4.0), ("reused", 4.0), ("float", 2.0)]
)
def test_planted_faults_are_shown(kind, least):
    found = audit(noised(kind), 1.0, size=5000, alpha=SURE)
    assert found.violated and found.lower > least


def test_the_event_is_chosen_at_the_level_of_the_bound():
    """One of nine columns tells, and every seed shows it: chosen at a laxer level, half of them show less.

    The bounds of 20 seeds lie between 0.62 and 0.78.
    """

    def draw(i, size, seed):
        outputs = np.random.default_rng([i, seed]).laplace(size=(size, 9))
        outputs[:, 0] += i
        return outputs

    kept = {"size": 4000, "alpha": 1e-7, "events": [values]}
    assert min(audit([draw] * 6, 1.0, seed=s, **kept).lower for s in range(5)) > 0.5


def test_honest_noise_is_not_blamed():
    """Rounded to a grid its low bits say nothing; OpenDP's say nothing as they are."""
    assert 0.6 < audit(noised("grid"), 1.0, size=20_000, alpha=SURE).lower < 1.0
    assert not audit(noised("float"), 1.0, size=5000, alpha=SURE, events=[values]).violated
    pytest.importorskip("opendp")
    secure = audit(lambda i, size, _: secure_laplace(np.full(size, float(i)), 1.0, 1.0), 1.0, alpha=SURE)
    assert secure.lower < 1.0


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_hides_no_fault(strange):
    """One strange output in a hundred, of noise halved; and one that comes for one data set only."""

    def draw(i, size, seed):
        noise = np.round(laplace(0.5, 2 * size, seed) * 2**20).reshape(size, 2) / 2**20
        return np.where((np.arange(size) % 100 == 3)[:, None], strange, i + noise)

    assert audit(draw, 2.5, size=5000, alpha=SURE).lower > 2.6
    assert not audit(draw, 4.5, size=5000, alpha=SURE).violated

    def rare(i, size, seed):
        noise = np.round(laplace(4.0, size, seed) * 2**20) / 2**20
        return np.where((np.arange(size) % 20 == 3) & (i == 1), strange, noise)

    assert audit(rare, 1.0, size=5000, alpha=SURE).violated


def test_the_low_bits_of_long_integers_are_looked_at():
    """The neighbour shows in the last of 64 bits, which no float holds."""

    def draw(i, size, seed):
        words = np.random.default_rng(seed).integers(0, 4, size, dtype=np.uint64)
        return (words << np.uint64(60)) + np.uint64(2**59 + i)

    assert audit(draw, 1.0, size=2000).lower > 4.0


def test_truth_values_are_numbers():
    def draw(i, size, seed):
        return np.random.default_rng(seed).random((size, 2)) < 0.2 + 0.6 * i

    assert math.log(4) < audit(draw, 1.0, size=5000, alpha=SURE).lower < 2 * math.log(4)


def test_the_lowest_bit():
    outputs = np.array([[1.0], [-0.75], [3.0 * 2.0**-60], [1.0 + 2.0**-52], [0.0]])
    assert low_bits(outputs)[:, 0].tolist() == [0.0, -2.0, -60.0, -52.0, 2000.0]
    assert low_bits(np.array([[3]])).shape == (1, 0)


def test_delta_is_taken_off():
    """What tells the data sets apart with probability 0.1 is (0, 0.1)-private, and not (4, 0)-private."""

    def draw(i, size, seed):
        return np.where(np.random.default_rng(seed).random(size) < 0.1, 1.0 + i, 0.0)

    assert audit(draw, 1.0, delta=0.1, alpha=SURE).lower == 0.0
    assert audit(draw, 4.0, alpha=SURE).violated


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"draw": 3}, "draw"),
        ({"draw": []}, "draw"),
        ({"draw": lambda i, size, seed: np.zeros(3)}, "draw"),
        ({"draw": lambda i, size, seed: np.zeros((size, 1 + i))}, "draw"),
        ({"draw": lambda i, size, seed: np.full(size, "a")}, "draw"),
        ({"draw": lambda i, size, seed: np.zeros(size, complex)}, "draw"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"seed": 1.5}, "seed"),
        ({"delta": 2.0}, "delta"),
        ({"size": 3}, "size"),
        ({"alpha": 0.0}, "alpha"),
        ({"events": [lambda outputs: outputs[:, :0]]}, "events"),
        ({"events": [lambda outputs: outputs[:, 0]]}, "events"),
        ({"events": [lambda outputs: outputs[:5]]}, "events"),
        ({"events": [np.zeros(3)]}, "events"),
        ({"events": values}, "events"),
    ],
)
def test_wrong_use_is_refused(wrong, named):
    with pytest.raises((TypeError, ValueError), match=f"^{named} must"):
        audit(**{"draw": response(2.0), "epsilon": 1.0, **wrong})
