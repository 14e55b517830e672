"""The k-ary counter: digits and draws against the definition, privacy exactly, integers from OpenDP."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats
from tests import naive_bandits
from tests.mechanisms import private_sums

from equinoise.mechanisms import BinaryCounter, KaryCounter, kary
from equinoise.mechanisms.kary import best_tree
from equinoise.mechanisms.kernels import kary_digit, kary_draws, kary_total
from equinoise.mechanisms.laplace import secure_geometric

EPSILON = 0.7
SENSITIVITY = 2.0


def digits(n, k, levels):
    """Balanced base k from the definition: the only digits of at most (k - 1)/2 that make n."""
    found = []
    for _ in range(levels):
        found.append((n + k // 2) % k - k // 2)
        n = (n - found[-1]) // k
    assert n == 0
    return found


def nodes(n, k, levels):
    """The nodes (level, index) of the n-th sum with their signs, from the top level down."""
    at, signed = 0, {}
    for level in reversed(range(levels)):
        digit = digits(n, k, levels)[level]
        first = at // k**level
        for i in range(abs(digit)):
            signed[level, first + i if digit > 0 else first - 1 - i] = 1 if digit > 0 else -1
        at += digit * k**level
    assert at == n
    return signed


class Described(KaryCounter):
    """A counter whose draws are noted, and are 0 but for one."""

    unit = -1

    def _drawn(self, n):
        self.seen = getattr(self, "seen", 0) + n
        return [int(self.seen - n + i == self.unit) for i in range(n)]


def described(make, horizon):
    """Draws float64[outputs, draws] in the sums, scale, items: what the counter does, found out by units."""

    def sums(unit, items):
        counter = make(horizon)
        counter.unit = unit
        out = [counter.add(x) for x in items]
        return np.array(out), counter

    base, counter = sums(-1, np.zeros(horizon))
    assert (base == 0).all()
    columns = [sums(unit, np.zeros(horizon))[0] / counter._grid for unit in range(counter.seen)]
    items = [sums(-1, row)[0] / SENSITIVITY for row in SENSITIVITY * np.eye(horizon)]
    return np.array(columns).T, np.full(len(columns), counter.node_scale(1)), np.array(items).T


def a_counter(kind=Described):
    return lambda horizon: kind(EPSILON, horizon, SENSITIVITY, seed=1)


class Forked(Described):
    """One that finds itself in a forked child before item `at`."""

    secure, at = True, 0

    def add(self, x):
        if self.n == self.at:
            self._forked, self.before = True, getattr(self, "seen", 0)
        return super().add(x)


@pytest.mark.parametrize("at", [1, 2, 3, 6, 7, 8, 12, 20, 21, 33, 59])
def test_after_a_fork_no_sum_has_a_draw_from_before(at):
    """Sums to come have the nodes of the definition, all of them drawn anew: the parent has the old ones."""
    horizon, kind = 60, type("At", (Forked,), {"at": at})
    draws, _, items = described(a_counter(kind), horizon)
    counter = kind(EPSILON, horizon, SENSITIVITY, seed=1)
    for _ in range(at + 1):
        counter.add(0.0)
    wanted = [nodes(n, *best_tree(horizon)) for n in range(at + 1, horizon + 1)]
    names = sorted({node for signed in wanted for node in signed})
    matrix = [[signed.get(node, 0) for signed in wanted] for node in names]
    later = draws[at:]
    assert not later[:, : counter.before].any()
    assert sorted(later[:, np.abs(later).any(axis=0)].T.tolist()) == sorted(matrix)
    assert (items == np.tril(np.ones((horizon, horizon)))).all()


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 13, 33, 40, 60])
def test_draws_are_those_of_the_nodes_of_the_definition(horizon):
    draws, scale, items = described(a_counter(), horizon)
    k, levels = best_tree(horizon)
    wanted = [nodes(n, k, levels) for n in range(1, horizon + 1)]
    names = sorted({node for signed in wanted for node in signed})
    matrix = np.array([[signed.get(node, 0) for node in names] for signed in wanted])
    used = draws[:, np.abs(draws).any(axis=0)]
    assert sorted(used.T.tolist()) == sorted(matrix.T.tolist())
    assert (items == np.tril(np.ones((horizon, horizon)))).all()
    assert scale[0] == pytest.approx(levels * SENSITIVITY / EPSILON, rel=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 13, 33, 45])
def test_it_is_private_and_no_more(horizon):
    """By the linear program: h draws, one a level, must move by the item."""
    losses = private_sums.worst_item_losses(*described(a_counter(), horizon), SENSITIVITY)
    assert (losses <= EPSILON * (1 + 1e-9)).all()
    assert losses.max() == pytest.approx(EPSILON, rel=1e-9)


class ForgottenLevel(Described):
    """The mistake of h - 1 parts of epsilon."""

    def _parts(self, n):
        return self.levels - 1


class Halved(Described):
    def node_scale(self, n):
        return super().node_scale(n) / 2.0


@pytest.mark.parametrize("kind", [Halved, ForgottenLevel])
def test_mistakes_are_found(kind):
    losses = private_sums.worst_item_losses(*described(a_counter(kind), 45), SENSITIVITY)
    assert losses.max() == pytest.approx(2 * EPSILON)


def test_the_best_tree_is_the_best_of_all():
    for horizon in [*range(1, 200), 10**5, 10**6]:
        cost = {}
        for h in range(3 if horizon > 999 else 1, 21):
            k = 3
            while (k**h - 1) // 2 < horizon:
                k += 2
            cost[h**3 * (k * k - 1) / (2 * k)] = (k, h)
        assert best_tree(horizon) == cost[min(cost)]
    assert best_tree(100_000) == (23, 4)


def test_noise_is_of_the_size_that_it_says_and_below_the_binary_trees():
    """400 counters, 100 items: chi-square limits of Laplace sums at 6 standard errors."""
    made = [KaryCounter(1.0, 100, seed=seed) for seed in range(400)]
    binary = BinaryCounter(1.0, 100, seed=1)
    ratios = []
    for n in range(1, 101):
        noise = np.array([counter.add(1.0) - n for counter in made])
        binary.add(1.0)
        draws = sum(map(abs, digits(n, made[0].arity, made[0].levels)))
        sd = made[0].noise_sd
        assert sd == pytest.approx(math.sqrt(2 * draws) * made[0].levels, rel=1e-9)
        assert abs(noise.mean()) < 6 * sd / 20
        assert abs(noise.var() / sd**2 - 1) < 6 * math.sqrt(5 / 400)
        assert np.mean(np.abs(noise) > made[0].width(0.2)) <= 0.2
        ratios.append((sd / binary.noise_sd) ** 2)
    assert np.mean(ratios) < 0.5


@pytest.mark.parametrize("horizon", [1, 5, 40, 300])
def test_the_kernel_is_the_definition(horizon):
    """Nodes by name, each with one draw for good: the same noise and the same number of draws."""
    k, levels = best_tree(horizon)
    half, rng = k // 2, np.random.default_rng(2)
    blocks = rng.integers(2**64, size=(horizon + 1, 4), dtype=np.uint64)
    twin = naive_bandits.KaryNoise(horizon, float(levels), lambda t, arm: [int(x) for x in blocks[t]])
    kept = np.zeros(levels * (half + 1))
    for n in range(1, horizon + 1):
        noise = float(rng.laplace())
        twin.add(noise, n, 0)
        found = kary_total(kept, 0, n, half, kary_digit(n - 1, half), noise, tuple(blocks[n]))
        assert found == pytest.approx(twin.total, abs=1e-9)
        assert kary_draws(n, half) == len(twin.scales) == sum(map(abs, digits(n, k, levels)))


@pytest.mark.parametrize("half", [1, 2, 11, 59, 10**6])
def test_digits_are_exact_as_far_as_a_run_can_be(half):
    k, rng = 2 * half + 1, np.random.default_rng(half)
    turns = [int(q) * k + half for q in rng.integers(2**49 // k, 2**50 // k, 100)]  # where a digit carries
    for n in [*range(200), *(turn + step for turn in turns for step in (-1, 0, 1))]:
        assert kary_digit(n, half) == (n + half) % k - half


def test_a_state_goes_on_to_the_same_bits_and_a_wrong_one_is_refused():
    counter = KaryCounter(2.0, 60, 2.0, seed=3, low=-1.0)
    for _ in range(23):
        counter.add(0.5)
    state = json.loads(json.dumps(counter.state()))
    other = KaryCounter.from_state(state)
    assert other.value == counter.value
    assert [other.add(0.25) for _ in range(37)] == [counter.add(0.25) for _ in range(37)]
    with pytest.raises(ValueError, match="horizon of 60 items is over"):
        other.add(0.0)
    state["sums"][0][1] += 1
    with pytest.raises(ValueError, match="digits of n"):
        KaryCounter.from_state(state)


def test_what_is_drawn_securely(monkeypatch):
    """Whole steps of a grid, epsilon/h a node, on exact sums: no float is noised."""
    given = []

    def secure(counts, sensitivity, epsilon):
        given.append((len(counts), sensitivity, epsilon))
        return np.array(counts)

    monkeypatch.setattr(kary, "secure_geometric", secure)
    monkeypatch.setattr("equinoise.mechanisms.counter_base.secure_laplace", lambda *given: None)
    counter = KaryCounter(1.5, 100)
    assert [counter.add(0.5) for _ in range(100)] == [0.5 * n for n in range(1, 101)]
    assert {(s, e) for _, s, e in given} == {(round(1.0 / counter._grid), 0.75)}
    assert counter.levels == 2 and sum(n for n, *_ in given) < 300


def test_integers_from_opendp_have_laplaces_law():
    """Chi-square at p > 1e-6: P(x) in proportion to e^(-|x| epsilon / sensitivity)."""
    pytest.importorskip("opendp")
    draws = secure_geometric(np.zeros(20_000, dtype=np.int64), 3, 1.5)
    rate = math.exp(-0.5)
    inside = np.arange(-9, 10)
    p = (1 - rate) / (1 + rate) * rate ** np.abs(inside)
    observed = [*(np.sum(draws == x) for x in inside), np.sum(np.abs(draws) > 9)]
    assert stats.chisquare(observed, 20_000 * np.append(p, 1 - p.sum())).pvalue > 1e-6
    with pytest.raises(ValueError, match="epsilon must leave the noise within 64 bits"):
        secure_geometric([0], 2**44, 1e-5)


@pytest.mark.parametrize("seed", [None, 1])
def test_the_draws_of_a_long_turn_all_differ(seed):
    """Of 300 draws, each of a scale above 2^40 steps, two are the same once in 10^7 times."""
    if seed is None:
        pytest.importorskip("opendp")
    counter = KaryCounter(0.1, 10**6, seed=seed)
    assert counter.node_scale(1) / counter._grid > 2.0**40
    assert len(set(counter._drawn(300))) == 300


def test_a_secure_counter_is_near_the_truth_and_never_twice_the_same():
    pytest.importorskip("opendp")
    one, two = KaryCounter(50.0, 30), KaryCounter(50.0, 30)
    sums = np.array([[counter.add(1) for _ in range(30)] for counter in (one, two)])
    assert np.abs(sums - np.arange(1, 31)).max() < one.width(1e-9)
    assert (sums[0] != sums[1]).all()
    assert ((sums / one._grid) % 1 == 0).all()
