"""Random streams: words against NumPy, Random123 and plain Python; each distribution against its law.

Statistics use fixed seeds. A test on a p-value asks for p > 1e-6, so a right generator fails it for one seed
in a million; bounds on means and variances are six standard errors wide. With a million draws moments
see a scale that is wrong by one percent.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special, stats
from tests import naive

from equinoise import _random

COMPILED = not numba.config.DISABLE_JIT
N = 1_000_000 if COMPILED else 10_000
ONES = 2**64 - 1
EXTREMES = (
    0,
    1,
    2,
    2**11,
    2**12 - 1,
    2**12,
    2**63 - 1,
    2**63,
    2**64 - 2**12 - 1,
    2**64 - 2**12,
    ONES - 1,
    ONES,
)
SOURCE = Path(__file__).resolve().parents[1] / "src"

word64 = st.integers(0, ONES)
words = st.tuples(word64, word64, word64, word64)


def block(key, counter):
    return [int(word) for word in _random.philox(*(np.uint64(x) for x in (*key, *counter)))]


def numpy_block(key, counter):
    """The block of a counter as numpy makes it; numpy raises the counter by one before it makes a block."""
    before = (sum(word << (64 * i) for i, word in enumerate(counter)) - 1) % 2**256
    parts = [(before >> (64 * i)) & ONES for i in range(4)]
    generator = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(parts, np.uint64))
    return [int(word) for word in generator.random_raw(4)]


def xoshiro(state, n):
    found = []
    for _ in range(n):
        word, *state = _random.next_word(*(np.uint64(x) for x in state))
        found.append(int(word))
    return found


def word_stream(seed, n, entity=0):
    """n words, four a block, as numpy's Philox of this seed and counter (0, entity, 0, 0) makes them."""
    before = np.array([ONES, entity - 1, 0, 0] if entity else [ONES] * 4, np.uint64)
    return np.random.Philox(key=_random.stream_key(seed), counter=before).random_raw(n)


def apply(function, *fixed):
    """Return a function that maps words uint64[n] through a sampler, compiled where the compiler is on."""
    if not COMPILED:
        return lambda given: np.array([function(word, *fixed) for word in given])

    @numba.njit
    def loop(given, out):
        for i in range(given.size):
            out[i] = function(given[i], *fixed)

    def call(given):
        out = np.empty(given.size)
        loop(given, out)
        return out

    return call


# ----------------------------------------------------------------------------------------------------------
# Words
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "counter", "answer"),
    [
        (
            (0, 0),
            (0, 0, 0, 0),
            (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
        ),
        (
            (ONES, ONES),
            (ONES, ONES, ONES, ONES),
            (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
        ),
        (
            (0x452821E638D01377, 0xBE5466CF34E90C6C),
            (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
            (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_known_answers_of_random123(key, counter, answer):
    assert tuple(block(key, counter)) == answer
    assert tuple(naive.philox_block(key, counter)) == answer
    assert tuple(numpy_block(key, counter)) == answer


@settings(max_examples=300)
@given(st.tuples(word64, word64), words)
def test_a_block_is_numpys(key, counter):
    assert block(key, counter) == numpy_block(key, counter) == naive.philox_block(key, counter)


@given(st.tuples(word64, word64), words, st.integers(0, 3), st.integers(0, 63))
def test_every_bit_of_an_address_counts(key, counter, place, bit):
    other = list(counter)
    other[place] ^= 1 << bit
    changed = [a ^ b for a, b in zip(block(key, counter), block(key, other), strict=True)]
    assert 80 <= sum(x.bit_count() for x in changed) <= 176  # 128 expected, sd 8


@given(words.filter(any))
def test_xoshiro_is_its_plain_twin(state):
    assert xoshiro(state, 50) == naive.xoshiro_words(state, 50)


def test_xoshiro_known_answers():
    """The first words of xoshiro256++ from the state 1, 2, 3, 4, as other implementations publish them."""
    answer = [
        41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
        9973669472204895162, 14011001112246962877, 12406186145184390807, 15849039046786891736,
        10450023813501588000,
    ]  # fmt: skip
    assert xoshiro((1, 2, 3, 4), 10) == naive.xoshiro_words((1, 2, 3, 4), 10) == answer


@given(st.one_of(st.integers(0, 10), st.integers(0, 2**64), st.integers(2**64, 2**400)))
def test_the_key_of_a_seed_is_numpys(seed):
    key = _random.stream_key(seed)
    assert key.dtype == np.uint64 and key.shape == (2,)
    assert key.tolist() == np.random.Philox(seed).state["state"]["key"].tolist()
    assert key.tolist() == _random.stream_key(seed).tolist()


def test_seeds_of_other_integer_types():
    assert _random.stream_key(np.int64(5)).tolist() == _random.stream_key(5).tolist()
    assert _random.stream_key(np.uint64(ONES)).tolist() == _random.stream_key(ONES).tolist()


def test_without_a_seed_every_key_is_new():
    keys = {tuple(_random.stream_key(None).tolist()) for _ in range(20)}
    assert len(keys) == 20


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", np.bool_(False), [1], np.float64(3)])
def test_wrong_seeds(seed):
    with pytest.raises((TypeError, ValueError), match="seed"):
        _random.stream_key(seed)


def test_purposes_differ():
    purposes = [_random.STRATEGY, _random.NOISE, _random.CHANCE, _random.SAMPLE]
    assert [int(p) for p in purposes] == [1, 2, 3, 4]  # an old number keeps its use: results would change
    assert all(isinstance(p, np.uint64) for p in purposes)


# ----------------------------------------------------------------------------------------------------------
# Laws
# ----------------------------------------------------------------------------------------------------------


def test_uniform_stays_inside():
    values = [_random.uniform(np.uint64(word)) for word in EXTREMES]
    assert min(values) == 2.0**-53 and max(values) == 1.0 - 2.0**-53
    assert values == [((word >> 12) + 0.5) * 2.0**-52 for word in EXTREMES]


@given(word64)
def test_uniform_is_its_formula_and_symmetric(word):
    u = _random.uniform(np.uint64(word))
    assert u == ((word >> 12) + 0.5) * 2.0**-52
    assert _random.uniform(np.uint64(ONES - word)) == 1.0 - u


def test_uniform_law():
    u = apply(_random.uniform)(word_stream(1, N))
    assert stats.kstest(u, "uniform").pvalue > 1e-6
    assert abs(u.mean() - 0.5) < 6 * np.sqrt(1 / 12 / N)


def test_successive_words_of_a_block_are_independent():
    u = apply(_random.uniform)(word_stream(2, N)).reshape(-1, 4)
    off = np.corrcoef(u.T)[np.triu_indices(4, 1)]
    assert np.abs(off).max() < 6 / np.sqrt(N / 4)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1000])
def test_integer_law(n):
    counts = np.bincount(apply(_random.integer, np.uint64(n))(word_stream(4, N)).astype(int), minlength=n)
    assert counts.size == n and stats.chisquare(counts).pvalue > 1e-6 if n > 1 else counts.tolist() == [N]


@given(word64, st.integers(1, 2**62))
def test_integer_is_the_upper_half_of_the_product(word, n):
    value = _random.integer(np.uint64(word), np.uint64(n))
    assert int(value) == (word * n) >> 64
    assert 0 <= value < n


def test_exponential_law():
    x = apply(_random.exponential)(word_stream(5, N))
    assert stats.kstest(x, "expon").pvalue > 1e-6
    assert abs(x.mean() - 1) < 6 / np.sqrt(N)
    assert abs(x.var() - 1) < 6 * np.sqrt(8 / N)
    top = [_random.exponential(np.uint64(word)) for word in EXTREMES]
    assert min(top) > 0 and max(top) == pytest.approx(53 * np.log(2), rel=1e-15)


def laplace_problems(x):
    """What is wrong with draws that should be standard Laplace: an empty list when nothing is."""
    size, found = np.abs(x), []
    if abs(x.mean()) > 6 * np.sqrt(2 / x.size):
        found.append("mean")
    if abs((x**2).mean() - 2) > 6 * np.sqrt(20 / x.size):  # E x^2 = 2, E x^4 = 24
        found.append("variance")
    for t in (1.0, 3.0, 5.0, 8.0):
        p = np.exp(-t)
        if abs((size > t).mean() - p) > 6 * np.sqrt(p * (1 - p) / x.size) + 3 / x.size:
            found.append(f"tail at {t}")
    if abs(np.corrcoef(np.sign(x), size)[0, 1]) > 6 / np.sqrt(x.size):
        found.append("the sign knows the size")
    return found


def test_laplace_law():
    x = apply(_random.laplace)(word_stream(6, N))
    assert stats.kstest(x, "laplace").pvalue > 1e-6
    assert laplace_problems(x) == []


@pytest.mark.skipif(not COMPILED, reason="needs a million draws")
def test_the_laplace_test_sees_a_wrong_scale():
    x = apply(_random.laplace)(word_stream(6, N))
    for wrong in (0.5, 0.99, 1.01, 2.0):
        assert "variance" in laplace_problems(wrong * x)


@given(word64)
def test_the_sign_of_laplace_is_a_bit_that_its_size_does_not_use(word):
    x, mirrored = (_random.laplace(np.uint64(w)) for w in (word, word ^ 1))
    assert x == -mirrored != 0.0
    assert abs(x) == _random.exponential(np.uint64(word))
    assert abs(x) == pytest.approx(-np.log(_random.uniform(np.uint64(word))), rel=1e-15, abs=1e-16)
    for bit in range(1, 12):  # nor does any bit between the two
        assert _random.laplace(np.uint64(word ^ (1 << bit))) == x


def test_laplace_is_finite_at_the_extremes():
    values = np.array([_random.laplace(np.uint64(word)) for word in EXTREMES])
    assert np.isfinite(values).all() and (values != 0).all()
    assert np.abs(values).max() == pytest.approx(53 * np.log(2), rel=1e-15)


def test_normal_is_the_inverse_distribution_function():
    grid = np.linspace(0, ONES, 5001).astype(object)
    near = [2**k + d for k in range(12, 64) for d in (-4096, 0, 4096)]
    middle = [2**63 + d * 4096 for d in range(-50, 50)]
    chosen = [int(w) for w in (*EXTREMES, *grid, *near, *middle) if 0 <= int(w) <= ONES]
    chosen += [ONES - w for w in chosen]
    given_words = np.array(chosen, np.uint64)
    ours = np.array([_random.normal(word) for word in given_words])
    exact = special.ndtri(np.array([_random.uniform(word) for word in given_words]))
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, exact, rtol=1e-14, atol=0)


def test_normal_law():
    x = apply(_random.normal)(word_stream(7, N))
    assert stats.kstest(x, "norm").pvalue > 1e-6
    assert abs(x.mean()) < 6 / np.sqrt(N)
    assert abs(x.var() - 1) < 6 * np.sqrt(2 / N)
    assert abs((x**4).mean() - 3) < 6 * np.sqrt(96 / N)


@given(word64)
def test_normal_is_odd(word):
    assert _random.normal(np.uint64(ONES - word)) == -_random.normal(np.uint64(word))


def test_fill_laplace_follows_its_address():
    out = np.empty(9)
    key = _random.stream_key(17)
    _random.fill_laplace(key, 3, _random.NOISE, 2.5, out)
    state = naive.philox_block([int(k) for k in key], [3, 0, 0, 2])
    expected = [2.5 * _random.laplace(np.uint64(word)) for word in naive.xoshiro_words(state, 9)]
    assert out.tolist() == expected


# ----------------------------------------------------------------------------------------------------------
# Purposes: all in one place, all distinct
# ----------------------------------------------------------------------------------------------------------

PURPOSES = {
    name: int(value)
    for name, value in vars(_random).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, np.uint64)
}
STARTS = {"philox": 5, "start_streams": 3, "fill_laplace": 2}  # which argument is the purpose


def purposes_in(path):
    """Every address of a stream in a source: (line, what stands in the place of the purpose)."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Assign):  # nothing else is called like a purpose, unless it is negative
            names = {getattr(target, "id", "") for target in node.targets}
            assert path.name == "_random.py" or "uint64" not in ast.unparse(node) or not names & set(PURPOSES)
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in STARTS:
                yield node.lineno, ast.unparse(node.args[STARTS[name]])
            for keyword in node.keywords if name == "Philox" else ():
                if keyword.arg == "counter":
                    yield node.lineno, ast.unparse(keyword.value.elts[3])


def test_purposes_are_distinct_and_keep_their_numbers():
    """Results would change with a number; which names there are says this list, and no other is public."""
    names = (
        "STRATEGY", "NOISE", "CHANCE", "SAMPLE", "REWARD", "TIE", "POSTERIOR", "CONTEXT", "TURN", "SEARCH",
        "EVOLUTION", "RELEASE", "HASH", "SEAT",
    )  # fmt: skip
    assert {name: number for number, name in enumerate(names, 1)} == PURPOSES


def test_every_stream_of_the_package_has_a_purpose_of_the_list():
    """A purpose is named where a stream starts, or comes as a parameter of that name: never a number."""
    allowed = {"purpose", *PURPOSES, *(f"int({name})" for name in PURPOSES)}
    found = {
        (path.relative_to(SOURCE).as_posix(), line): words
        for path in sorted(SOURCE.rglob("*.py"))
        for line, words in purposes_in(path)
    }
    assert len(found) >= 10
    assert {
        place: words for place, words in found.items() if words.removeprefix("_random.") not in allowed
    } == {}


# ----------------------------------------------------------------------------------------------------------
# The same bits without the compiler
# ----------------------------------------------------------------------------------------------------------

SAMPLE_OF_BITS = """
import json
import numpy as np
from equinoise import _elementary, _random
words = [np.uint64(w) for w in np.random.default_rng(5).integers(0, 2**64, 200, dtype=np.uint64)]
words += [np.uint64(w) for w in (0, 1, 2**63, 2**64 - 1)]
found = {}
found["philox"] = [int(x) for i in range(50) for x in _random.philox(*words[i : i + 6])]
found["next_word"] = [int(x) for i in range(50) for x in _random.next_word(*words[i : i + 4])]
found["uniform"] = [_random.uniform(w).hex() for w in words]
found["integer"] = [int(_random.integer(w, np.uint64(n))) for w in words for n in (1, 6, 2**40)]
found["laplace"] = [float(_random.laplace(w)).hex() for w in words]
found["exponential"] = [float(_random.exponential(w)).hex() for w in words]
found["normal"] = [float(_random.normal(w)).hex() for w in words]
points = np.random.default_rng(6).uniform(-700, 700, 300)
found["exp"] = [float(_elementary.exp(float(x))).hex() for x in (*points, -708.0, 0.0, 708.0)]
found["log"] = [float(_elementary.log(float(x))).hex() for x in (*np.exp(points), 5e-300, 1.0, 1e300)]
print(json.dumps(found))
"""


def test_the_same_bits_without_the_compiler():
    found = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(SOURCE)}
        output = subprocess.run(
            [sys.executable, "-W", "error", "-c", SAMPLE_OF_BITS],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        found.append(json.loads(output))
    compiled, plain = found
    assert len(compiled) == 9
    for name, values in compiled.items():
        assert values == plain[name], name
