"""Counters as objects: what they add up, refuse, keep, and give to OpenDP."""

from __future__ import annotations

import copy
import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise._random import NOISE, fill_laplace, stream_key
from equinoise.mechanisms import (
    BinaryCounter,
    HybridCounter,
    KaryCounter,
    VectorCounter,
    counter_base,
    kernels,
)
from equinoise.mechanisms.counter_base import part_of, slot_of

MAKERS = {
    "binary": lambda seed=4: BinaryCounter(1.5, 40, 2.0, seed, low=-1.0),
    "hybrid": lambda seed=4: HybridCounter(1.5, 2.0, seed, low=-1.0),
    "vector": lambda seed=4: VectorCounter(1.5, 40, 2, 2.0, seed),
}


def item(name, rng):
    return rng.uniform(-1, 1, 2) if name == "vector" else float(rng.uniform(-1, 1))


def run(name, counter, n, seed=0):
    rng = np.random.default_rng(seed)
    return [np.array(counter.add(item(name, rng))).tolist() for _ in range(n)]


@pytest.fixture
def spied(monkeypatch):
    """OpenDP's place taken by a note of what it was given; nothing is added."""
    given = []

    def secure(values, sensitivity, epsilon):
        given.append((np.array(values), sensitivity, epsilon))
        return np.array(values, dtype=np.float64)

    monkeypatch.setattr(counter_base, "secure_laplace", secure)
    return given


# ----------------------------------------------------------------------------------------------------------
# Sums
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_true_sums_come_through(name):
    """With an epsilon so large that the noise is nothing, the sums are those of the items."""
    makers = {
        "binary": BinaryCounter(1e12, 100, 2.0, 1, low=-1.0),
        "hybrid": HybridCounter(1e12, 2.0, 1, low=-1.0),
        "vector": VectorCounter(1e12, 100, 2, 2.0, 1),
    }
    rng = np.random.default_rng(2)
    items = np.array([item(name, rng) for _ in range(100)])
    sums = np.array([makers[name].add(x) for x in items])
    assert np.abs(sums - np.cumsum(items, axis=0)).max() < 1e-5
    assert makers[name].n == 100
    assert np.array_equal(makers[name].value, sums[-1])


@pytest.mark.parametrize("name", MAKERS)
def test_kernels_and_objects_agree(name):
    """The kernel form keeps noise alone and the true sum apart; same draws, same outputs."""
    counter, key = MAKERS[name](), stream_key(4)
    d = 2 if name == "vector" else 1
    total = kernels.hybrid_total if name == "hybrid" else kernels.prefix_total
    slots, noise, true = 50, np.empty(d), np.zeros(d)
    totals, rng = np.zeros(d * slots), np.random.default_rng(0)
    for n, out in enumerate(run(name, MAKERS[name](), 40), 1):
        scale = 2.0 / 1.5 * (kernels.hybrid_scale(n) if name == "hybrid" else 6)
        assert counter.node_scale(n) == pytest.approx(scale, rel=1e-10)
        true += item(name, rng)
        fill_laplace(key, n, NOISE, scale, noise)
        expected = [true[i] + total(totals, i * slots, n, noise[i]) for i in range(d)]
        assert np.reshape(out, -1) == pytest.approx(expected, rel=1e-6 if name == "hybrid" else 1e-10)


def test_parents_and_parts_are_the_kernels():
    one, two = BinaryCounter(1.0, 1100, seed=1), HybridCounter(1.0, seed=1)
    for n in range(1, 1100):
        assert one._parent(n) == n & (n - 1)
        assert two._parent(n) == kernels.hybrid_parent(n)
        assert two._parts(n) == kernels.hybrid_scale(n)
        assert slot_of(n) == kernels.slot(n)
    assert slot_of(0) == kernels.slot(0) == 0


def test_seeds():
    for name, make in MAKERS.items():
        assert run(name, make(), 20) == run(name, make(), 20)
        assert run(name, make(5), 20) != run(name, make(), 20)


def test_noise_sd_and_width():
    counter = HybridCounter(2.0, seed=1)
    assert counter.noise_sd == counter.width(0.1) == counter.value == 0.0
    for n in range(1, 70):
        counter.add(0)
        k, others = n.bit_length() - 1, n.bit_count() - 1
        variance = (k + 1) * 2 * 1.0**2 + others * 2 * (2 * k / 2.0) ** 2
        assert counter.noise_sd == pytest.approx(math.sqrt(variance))
        assert counter.width(0.01) == kernels.hybrid_width(n, 0.5, 0.01)
        assert counter.width(1e-9) > counter.width(0.01) > counter.noise_sd
    vector, binary = VectorCounter(2.0, 7, 4, seed=1), BinaryCounter(2.0, 7, seed=1)
    assert binary.width(0.1) == 0.0
    for _ in range(7):
        vector.add([0.0] * 4)
        binary.add(0)
    assert vector.width(0.4) == pytest.approx(binary.width(0.1), rel=1e-10)  # a quarter of it each
    assert vector.noise_sd == pytest.approx(math.sqrt(3 * 2 * 1.5**2), rel=1e-10)
    assert binary.width(0.1) == pytest.approx(kernels.tail_width(3.0, 1.5, 0.1))


# ----------------------------------------------------------------------------------------------------------
# Secure form
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_given_to_opendp(name, spied):
    """Each node's sum once, and epsilons of which the nodes of an item together have no more than all."""
    counter = MAKERS[name](None)
    spied.clear()
    rng = np.random.default_rng(0)
    items = np.array([item(name, rng) for _ in range(40)])
    sums = [counter.add(x) for x in items]
    shifted = items if name == "vector" else items + 1.0  # from low
    assert len(spied) == 40
    assert np.abs(np.array(sums) - np.cumsum(items, axis=0)).max() < 1e-5
    spent = np.zeros(40)
    for n, (node, sensitivity, epsilon) in enumerate(spied, 1):
        first = n & (n - 1) or (n >> 1 if name == "hybrid" else 0)
        assert node == pytest.approx(shifted[first:n].sum(axis=0), abs=1e-6)
        assert sensitivity == pytest.approx(2.0, rel=1e-10) and sensitivity >= 2.0
        spent[first:n] += epsilon
    assert spent.max() <= 1.5 * (1 + 1e-15)
    assert spent.max() == pytest.approx(1.5)


def test_secure_noise():
    """OpenDP's own: no two runs alike, and of the right size (within 6 standard errors, 200 counters)."""
    pytest.importorskip("opendp")
    for name, make in MAKERS.items():
        counter = make(None)
        assert counter.secure and "secure" in repr(counter) and "simulation" in repr(make())
        assert run(name, make(None), 3) != run(name, make(None), 3)
    noise = np.array([BinaryCounter(1.0, 1).add(1) - 1.0 for _ in range(200)])
    assert abs(np.abs(noise).mean() - 1.0) < 6 / math.sqrt(200)


def test_without_opendp(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    sys.modules["equinoise.mechanisms.laplace"]._measurement.cache_clear()
    for make in MAKERS.values():
        with pytest.raises(ImportError, match=r'pip install "equinoise\[secure\]"'):
            make(None)
        make()  # simulations need nothing


HORIZONS = [70, 2**40]  # a fine grid, and the coarsest: 2^13 steps an item


def nodes_of(counter, items):
    """What the counter is about to noise, node by node, float64[n, d]."""
    seen = []
    counter._noised = lambda node, n: seen.append(node.tolist()) or node
    for x in items:
        counter.add(x)
    return seen


@given(
    st.floats(1e-3, 1e3),
    st.lists(st.floats(0, 1), min_size=1, max_size=70),
    st.integers(0, 69),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(HORIZONS),
)
@settings(max_examples=100)
def test_one_item_changes_its_nodes_only_and_by_the_sensitivity(sensitivity, shares, where, other, horizon):
    """To the last bit: rounding of one item never shows in a node that it is not in."""
    where %= len(shares)
    nodes = []
    for share in (1.0 - other, other):
        counter = BinaryCounter(1.0, horizon, sensitivity, seed=1)
        items = [(share if i == where else value) * sensitivity for i, value in enumerate(shares)]
        nodes.append(nodes_of(counter, items))
    for n, ((one,), (two,)) in enumerate(zip(*nodes, strict=True), 1):
        if n & (n - 1) <= where < n:
            assert abs(Fraction(one) - Fraction(two)) <= Fraction(counter._change)
        else:
            assert one == two
    assert sensitivity <= counter._change <= sensitivity * (1 + (1e-12 if horizon == 70 else 2.0**-12))


@given(
    st.floats(1e-3, 1e3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(any),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(any),
    st.sampled_from(HORIZONS),
)
@settings(max_examples=100)
def test_a_vector_changes_its_nodes_by_the_sensitivity(sensitivity, one, two, horizon):
    """In L1 norm and to the last bit, wherever the entries fall between the steps of the grid."""
    items = [np.array(x) / np.abs(x).sum() * sensitivity for x in (one, two)]
    for pair in ((items[0], np.zeros(3)), (items[0] / 2, items[1] / 2)):
        counters = [VectorCounter(1.0, horizon, 3, sensitivity, seed=1) for _ in range(2)]
        (a,), (b,) = (nodes_of(counter, [x]) for counter, x in zip(counters, pair, strict=True))
        moved = sum(abs(Fraction(i) - Fraction(j)) for i, j in zip(a, b, strict=True))
        assert moved <= Fraction(counters[0]._change)


def test_vectors_on_the_edge_of_the_grid():
    """Two vectors a sensitivity apart that rounding would carry to either side of three steps."""
    counter = VectorCounter(1.0, 2**40, 3, 1.0, seed=1)
    grid = counter._grid
    low = np.array([0.99, 0.99, 0.99]) * grid
    high = low + np.array([1.0, 0.0, 0.0]) - [grid, -0.02 * grid, -0.02 * grid]
    apart = np.abs(high - low).sum()
    assert apart <= 1.0
    (one,), (two,) = (nodes_of(VectorCounter(1.0, 2**40, 3, 1.0, seed=1), [x]) for x in (low, high))
    moved = np.abs(np.array(one) - two).sum()
    assert apart < moved <= counter._change


@given(st.floats(1e-300, 1e300), st.integers(1, 60))
def test_parts_of_epsilon(epsilon, parts):
    part = part_of(epsilon, parts)
    assert Fraction(part) * parts <= Fraction(epsilon)
    assert part == pytest.approx(epsilon / parts, rel=1e-15)


# ----------------------------------------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------------------------------------

BAD_NUMBERS = [math.nan, math.inf, -1.1, 1.1, "1", None, True, [0.5], 1j]
BAD_VECTORS = [[math.nan, 0], [math.inf, 0], [1.5, 0.6], [-2.1, 0], [1.0], 1.0, [[0, 0]], ["a", "b"], None]


@pytest.mark.parametrize("name", MAKERS)
def test_bad_items_change_nothing(name):
    counter = MAKERS[name]()
    run(name, counter, 5)
    before = counter.state()
    for bad in BAD_VECTORS if name == "vector" else BAD_NUMBERS:
        with pytest.raises((TypeError, ValueError), match=r"^x must"):
            counter.add(bad)
        assert counter.state() == before


@pytest.mark.parametrize("x", [0, 1, np.int64(1), np.float32(0.5), 0.25, Fraction(1, 3)])
def test_numbers_of_every_kind(x):
    assert abs(BinaryCounter(1e9, 1, seed=1).add(x) - float(x)) < 1e-6


def test_rounding_of_a_norm_is_no_reason_to_refuse():
    x = np.full(10, 0.1 + 1e-17)
    assert VectorCounter(1.0, 5, 10, float(np.abs(x).sum()) - 1e-15, seed=1).add(x).shape == (10,)


@pytest.mark.parametrize("name", ["binary", "vector"])
def test_beyond_the_horizon(name):
    counter = MAKERS[name]()
    run(name, counter, 40)
    before = counter.state()
    with pytest.raises(ValueError, match="horizon of 40 items is over"):
        run(name, counter, 1)
    assert counter.state() == before


def test_a_failure_of_the_noise_changes_nothing():
    counter = BinaryCounter(1.0, 5, seed=1)
    counter.add(1)
    before = counter.state()
    counter._noised = lambda node, n: 1 / 0
    with pytest.raises(ZeroDivisionError):
        counter.add(1)
    assert counter.state() == before


def interrupted(counter, at, x):
    """Add an item, with Ctrl-C before line number `at` of what adds it up; whether there was one."""
    left, tracer = [at], sys.gettrace()

    def before_a_line(frame, event, _):
        left[0] -= event == "line"
        if event == "line" and left[0] == -1:
            raise KeyboardInterrupt
        return before_a_line

    sys.settrace(lambda frame, *_: before_a_line if frame.f_code.co_name == "_add" else None)
    try:
        counter.add(x)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(tracer)
    return False


@pytest.mark.parametrize("name", [*MAKERS, "k-ary"])
def test_ctrl_c_loses_no_item_and_counts_none_twice(name):
    """Whatever the moment, the counter has the item or has it not, and goes on to the same bits."""
    make = {**MAKERS, "k-ary": lambda: KaryCounter(1.5, 40, 2.0, 4, low=-1.0)}[name]
    whole, at = run(name, make(), 9), 0
    while True:
        counter, rng = make(), np.random.default_rng(0)
        items = [item(name, rng) for _ in range(9)]
        for one in items[:3]:
            counter.add(one)
        if not interrupted(counter, at, items[3]):
            break
        assert counter.n in (3, 4) and np.array_equal(counter.value, whole[counter.n - 1])
        found = [np.array(counter.add(one)).tolist() for one in items[counter.n :]]
        assert found == whole[9 - len(found) :], at
        at += 1
    assert at > 5


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("epsilon", lambda: BinaryCounter(0.0, 5, seed=1)),
        ("epsilon", lambda: BinaryCounter(math.inf, 5, seed=1)),
        ("epsilon", lambda: HybridCounter(math.nan, seed=1)),
        ("epsilon", lambda: VectorCounter("1", 5, 2, seed=1)),
        ("epsilon", lambda: BinaryCounter(1e-305, 5, seed=1)),
        ("horizon", lambda: BinaryCounter(1.0, 0, seed=1)),
        ("horizon", lambda: BinaryCounter(1.0, 2.5, seed=1)),
        ("horizon", lambda: BinaryCounter(1.0, 2**41, seed=1)),
        ("sensitivity", lambda: BinaryCounter(1.0, 5, 0.0, seed=1)),
        ("sensitivity", lambda: HybridCounter(1.0, math.inf, seed=1)),
        ("dimension", lambda: VectorCounter(1.0, 5, 0, seed=1)),
        ("low", lambda: BinaryCounter(1.0, 5, seed=1, low=math.nan)),
        ("seed", lambda: BinaryCounter(1.0, 5, seed=-1)),
        ("seed", lambda: BinaryCounter(1.0, 5, seed=1.5)),
        ("n", lambda: BinaryCounter(1.0, 5, seed=1).node_scale(6)),
        ("n", lambda: BinaryCounter(1.0, 5, seed=1).node_scale(0)),
        ("delta", lambda: BinaryCounter(1.0, 5, seed=1).width(0.0)),
        ("delta", lambda: VectorCounter(1.0, 5, 1, seed=1).width(1.5)),
    ],
)
def test_bad_arguments(argument, make):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        make()


# ----------------------------------------------------------------------------------------------------------
# State
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("broken_at", [0, 1, 7, 8, 31, 40])
def test_going_on_from_a_state(name, broken_at):
    """Through JSON, at every kind of place: the run goes on to the same bits."""
    whole = run(name, MAKERS[name](), 40)
    counter, rng = MAKERS[name](), np.random.default_rng(0)
    first = [np.array(counter.add(item(name, rng))).tolist() for _ in range(broken_at)]
    state = json.loads(json.dumps(counter.state(), allow_nan=False))
    loaded = type(counter).from_state(state)
    assert loaded.n == broken_at and np.array_equal(loaded.value, counter.value)
    rest = [np.array(loaded.add(item(name, rng))).tolist() for _ in range(broken_at, 40)]
    assert first + rest == whole


def test_after_a_load_no_node_is_noised_again(spied):
    counter = BinaryCounter(1.0, 64)
    for _ in range(37):
        counter.add(1)
    loaded = BinaryCounter.from_state(counter.state())
    spied.clear()
    assert loaded.value == counter.value
    for _ in range(27):
        loaded.add(1)
    assert [float(node[0]) for node, _, _ in spied] == [n - (n & (n - 1)) for n in range(38, 65)]


def test_a_state_is_a_copy():
    counter = BinaryCounter(1.0, 9, seed=1)
    counter.add(1)
    state = counter.state()
    kept = copy.deepcopy(state)
    loaded = BinaryCounter.from_state(state)
    for _ in range(5):
        loaded.add(1)
        counter.add(1)
    assert state == kept


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "HybridCounter"},
        {"n": -1},
        {"n": 6},
        {"n": 1.0},
        {"totals": [0.0]},
        {"totals": [math.nan] * 4},
        {"sums": []},
        {"sums": [[0, 0, 0]]},
        {"sums": [[0, 0, 0, 0.5]]},
        {"sums": None},
        {"key": [1]},
        {"key": [1, -1]},
        {"key": 5},
        {"options": {"epsilon": 1.0}},
        {"options": {"epsilon": 1.0, "horizon": 5, "sensitivity": 1.0, "low": 0.0, "seed": 3}},
        {"options": None},
    ],
)
def test_damaged_states(change):
    counter = BinaryCounter(1.0, 5, seed=1)
    counter.add(1)
    with pytest.raises(ValueError, match=r"^state must be one of a BinaryCounter"):
        BinaryCounter.from_state(counter.state() | change)
    missing = counter.state()
    del missing[next(iter(change))]
    with pytest.raises(ValueError, match=r"^state must be"):
        BinaryCounter.from_state(missing)
    with pytest.raises(ValueError, match=r"^state must be"):
        BinaryCounter.from_state(None)
    with pytest.raises(ValueError, match=r"^state must be"):
        BinaryCounter.from_state(np.array([1.0]))
