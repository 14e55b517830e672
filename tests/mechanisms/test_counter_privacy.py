"""Counters are epsilon-private, item by item and exactly; and what would break that is found."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import stats
from tests.mechanisms import private_sums

from equinoise.mechanisms import BinaryCounter, HybridCounter, VectorCounter
from equinoise.mechanisms.counter_base import slot_of

EPSILON = 0.7
SENSITIVITY = 2.0
HORIZONS = [1, 2, 3, 4, 7, 8, 15, 16, 33]


def described(make, horizon, entry=0, dimension=1):
    """What a counter does with items and draws, found out by giving it units: draws, scale, items.

    Of a vector counter, what it does with one entry of them; the others must stay 0.
    """
    scales, unit, place = [], -1, np.eye(dimension)[entry]

    def noised(counter, node, n):
        scales.append(counter.node_scale(n))
        return node + place * (unit == len(scales) - 1)

    def sums(items):
        scales.clear()
        counter = make(horizon)
        counter._noised = functools.partial(noised, counter)
        out = np.array([counter.add(place * x if dimension > 1 else x) for x in items])
        assert (np.delete(out, entry, axis=1) == 0.0).all() if dimension > 1 else True
        return out[:, entry] if dimension > 1 else out

    zeros = np.zeros(horizon)
    sums(zeros)
    scale, draws = np.array(scales), []
    for unit in range(len(scale)):  # noqa: B007  # noised() reads it
        draws.append(sums(zeros))
    unit = -1
    items = [sums(row) / SENSITIVITY for row in SENSITIVITY * np.eye(horizon)]
    return np.array(draws).T, scale, np.array(items).T


def binary(horizon):
    return BinaryCounter(EPSILON, horizon, SENSITIVITY, seed=1)


def hybrid(horizon):
    return HybridCounter(EPSILON, SENSITIVITY, seed=1)


def halved(counter_class):
    """The mistake of a scale half as large."""

    class Halved(counter_class):
        def node_scale(self, n):
            return super().node_scale(n) / 2.0

    return Halved


class TopRedrawn(BinaryCounter):
    """The mistake of noising a node anew for every output that it is in: here the largest one."""

    def _add(self, steps):
        out, n = super()._add(steps), self._n
        top = 1 << (n.bit_length() - 1)
        if n == top:
            return out
        exact = np.array([self._sums[0][slot_of(top)] * self._grid])
        return out - self._totals[slot_of(top)] + self._noised(exact, top)


class OnlyFreshNoise(BinaryCounter):
    """The mistake of reading bits from the wrong end: the true sum with one fresh draw, every time."""

    def _parent(self, n):
        return 0


class ForgottenLevel(BinaryCounter):
    """The mistake of log2(T) levels for a horizon T that is a power of two."""

    def _parts(self, n):
        return max((self.horizon - 1).bit_length(), 1)


@pytest.mark.parametrize("horizon", HORIZONS)
def test_binary_is_private_and_no_more(horizon):
    draws, scale, items = described(binary, horizon)
    assert (items == np.tril(np.ones((horizon, horizon)))).all()
    losses = private_sums.worst_item_losses(draws, scale, items, SENSITIVITY)
    assert (losses <= EPSILON * (1 + 1e-12)).all()
    assert losses[0] == pytest.approx(EPSILON, rel=1e-12)  # the first item is in a node of every level


@pytest.mark.parametrize("horizon", HORIZONS)
def test_hybrid_is_private_and_no_more(horizon):
    draws, scale, items = described(hybrid, horizon)
    assert (items == np.tril(np.ones((horizon, horizon)))).all()
    losses = private_sums.worst_item_losses(draws, scale, items, SENSITIVITY)
    assert (losses <= EPSILON * (1 + 1e-12)).all()
    if horizon >= 4:  # the first item after 2 is in one node of both counters
        assert losses[2] == pytest.approx(EPSILON, rel=1e-12)


def test_an_early_end_gives_no_more_away():
    """The outputs so far, of a longer horizon."""
    draws, scale, items = described(binary, 21)
    for n in range(1, 21):
        part = draws[:n, :n], scale[:n], items[:n, :n]
        assert (private_sums.worst_item_losses(*part, SENSITIVITY) <= EPSILON * (1 + 1e-12)).all()


def test_a_halved_scale_is_found():
    made = halved(BinaryCounter), halved(HybridCounter)
    for make in (
        lambda horizon: made[0](EPSILON, horizon, SENSITIVITY, seed=1),
        lambda horizon: made[1](EPSILON, SENSITIVITY, seed=1),
    ):
        losses = private_sums.worst_item_losses(*described(make, 16), SENSITIVITY)
        assert losses.max() == pytest.approx(2 * EPSILON)


@pytest.mark.parametrize(
    ("mistaken", "least"), [(TopRedrawn, 2.0), (OnlyFreshNoise, 3.0), (ForgottenLevel, 1.2)]
)
def test_mistakes_are_found(mistaken, least):
    """By a margin: the loss is at least so many epsilons."""
    draws, scale, items = described(lambda horizon: mistaken(EPSILON, horizon, SENSITIVITY, seed=1), 16)
    losses = private_sums.worst_item_losses(draws, scale, items, SENSITIVITY)
    assert losses.max() > least * EPSILON


def test_the_general_and_the_triangular_answer_agree():
    """The linear program against the one solution, by a draw that enters nothing."""
    draws, scale, items = described(binary, 7)
    wide = np.hstack([draws, np.zeros((7, 1))])
    for column in items.T:
        expected = private_sums.worst_loss(draws, scale, column)
        assert private_sums.worst_loss(wide, np.append(scale, 1.0), column) == pytest.approx(expected)


@pytest.mark.parametrize("make", [binary, hybrid])
def test_densities_of_released_sums(make):
    """Joint density of what a counter did release, under its own stream and under every neighbour's."""
    horizon = 16
    draws, scale, items = described(make, horizon)
    rng, largest = np.random.default_rng(3), 0.0
    for _ in range(20):
        x = rng.uniform(0, SENSITIVITY, horizon)
        counter = make(horizon)
        released = np.array([counter.add(item) for item in x])
        density = private_sums.log_density(draws, scale, items @ x, released)
        for position in range(horizon):
            for changed in (0.0, SENSITIVITY):
                y = np.where(np.arange(horizon) == position, changed, x)
                loss = density - private_sums.log_density(draws, scale, items @ y, released)
                assert abs(loss) <= EPSILON * (1 + 1e-9)
                largest = max(largest, abs(loss))
    assert largest > 0.2 * EPSILON


@pytest.mark.parametrize("make", [binary, hybrid])
def test_the_ratio_is_attained(make):
    """Outputs whose draws are all high: the density ratio of two neighbours is e^epsilon."""
    draws, scale, items = described(make, 16)
    position = 0 if make is binary else 2
    x = np.where(np.arange(16) == position, SENSITIVITY, 0.0)
    z = np.linalg.solve(draws, items @ x)
    released = draws @ (10.0 * z)  # beyond the change, in the direction of it
    ours = private_sums.log_density(draws, scale, items @ x, released)
    theirs = private_sums.log_density(draws, scale, np.zeros(16), released)
    assert ours - theirs == pytest.approx(EPSILON, rel=1e-9)


@pytest.mark.parametrize("horizon", [1, 4, 11])
def test_vector_is_private_for_any_change_of_that_norm(horizon):
    """Entries have draws of their own and one scale, so a change costs in proportion to its L1 norm."""

    def make(horizon):
        return VectorCounter(EPSILON, horizon, 3, SENSITIVITY, seed=1)

    entries = [described(make, horizon, entry, 3) for entry in range(3)]
    for change in ([2.0, 0.0, 0.0], [0.5, -1.0, 0.5], [0.0, -1.9, 0.1]):
        losses = sum(
            private_sums.worst_item_losses(*parts, abs(part))
            for part, parts in zip(change, entries, strict=True)
        )
        assert (losses <= EPSILON).all()
        assert losses[0] == pytest.approx(EPSILON, rel=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 64, 256, 1024, 1100])
def test_variance_of_every_sum(horizon):
    """The n-th sum has popcount(n) draws of scale L/epsilon: exactly, for every n."""
    levels = math.floor(math.log2(horizon)) + 1
    counter = BinaryCounter(EPSILON, horizon, seed=1)
    counter._noised = lambda node, n: node + 2.0 ** (slot_of(n) - 1)  # a draw of a size that names its node
    for n in range(1, horizon + 1):
        assert counter.add(0) == n  # nodes of sizes that are the bits of n, each once
        assert counter.node_scale(n) == levels / EPSILON
        variance = n.bit_count() * 2 * (levels / EPSILON) ** 2
        assert counter.noise_sd == pytest.approx(math.sqrt(variance), rel=1e-14)


@pytest.mark.parametrize("make", [binary, hybrid])
def test_variance_of_noise(make):
    """300 seeds, n = 31: chi-square limits of a Laplace sum at 6 standard errors, and mean 0."""
    counters = [type(make(31)).from_state(make(31).state() | {"key": [seed, 7]}) for seed in range(300)]
    noise = np.array([[counter.add(1.0) - n - 1.0 for n in range(31)] for counter in counters])
    sd = np.array([counter.noise_sd for counter in counters[:1]])[0]
    assert abs(noise[:, -1].mean()) < 6 * sd / math.sqrt(300)
    assert abs(noise[:, -1].var() / sd**2 - 1) < 6 * math.sqrt(5 / 300)
    assert stats.kstest(noise[:, 0] / counters[0].node_scale(1), "laplace").pvalue > 1e-6
