"""Audits of the package's own mechanisms: neighbours, laws that can be enumerated, and draws of the rest.

What is looked at is what leaves: reports, sums, choices of arms and what a policy knows of them, rows.
Private policies and counters, with their options, are read from the registries: what is added is audited too.
"""

import functools
import itertools
import time
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _files, bandits, replicates
from equinoise._random import stream_key
from equinoise._typing import Any, Array, Callable, DataFrame, Floats, Iterator
from equinoise.bandits import rewards
from equinoise.bandits.linear import LinearBandit
from equinoise.bandits.policies.registry import choose
from equinoise.efb import Strategy, User
from equinoise.experiments.commands import common
from equinoise.experiments.commands.audit_release import Row, by_draws, heard, release
from equinoise.games import from_nested
from equinoise.inference.privacy import Audit, exactly
from equinoise.mechanisms import COUNTERS
from equinoise.mechanisms.hashing import BITS, Hashing, symbol_of
from equinoise.report.exhibit import csv_bytes, frame_of

_BUCKETS = (1, 2, 3)
_HORIZONS = (1, 4, 7, 16, 40)  # of counters whose nodes are looked at
# Horizons of streams that are drawn, and the item that differs: of any in the tree there is one.
_CHANGED = ((1, 0), (4, 0), (4, 2), (6, 4))
_SHORT = 3  # rounds of a bandit, with a choice after both arms were pulled
_MOST_ROUNDS = 2**13  # in which a policy must have reacted to its rewards
_PRIME = 4_294_967_291  # of the few sequences of choices that there are, hardly two are one number modulo it
_MOST = 10**8  # draws


@dataclass(frozen=True)
class Parameters:
    """What the audits depend on, checked when made.

    All bounds of a group hold together except with probability `alpha`. OpenDP's noise is slow: of what it
    noises there is a tenth of the draws, or a twentieth.
    """

    which: str
    epsilon: float = 1.0
    draws: int = 20_000
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.choice("which", self.which, AUDITS)
        _checks.number("epsilon", self.epsilon, 0.01, 10.0)
        _checks.integer("draws", self.draws, 4000, _MOST)
        _checks.number("alpha", self.alpha, 0.0, 1.0, open_low=True, open_high=True)
        _checks.integer("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class Found:
    """What was found, mechanism by mechanism."""

    parameters: Parameters
    rows: list[Audit]
    seconds: float

    @property
    def violated(self) -> list[str]:
        """The names of the mechanisms whose claim is shown to be wrong."""
        return [row.mechanism for row in self.rows if row.violated]

    def to_frame(self) -> DataFrame:
        """Return one row per mechanism: mechanism, pairs, epsilon, lower, how, violated."""
        how = {False: "sampled", True: "exact"}
        rows = [(r.mechanism, r.pairs, r.epsilon, r.lower, how[r.exact], r.violated) for r in self.rows]
        return frame_of(rows, ["mechanism", "pairs", "epsilon", "lower", "how", "violated"])

    def document(self) -> dict[str, Any]:
        """Return what ``run.json`` holds."""
        rows = self.to_frame().to_dict("records")
        return common.document("audit", self.parameters, self.seconds, rows=rows)

    def files(self) -> dict[str, bytes]:
        """Return ``audit.csv`` and ``run.json`` as bytes."""
        return {"audit.csv": csv_bytes(self.to_frame()), "run.json": _files.json_bytes(self.document())}


def find(made: Parameters, executor: Executor | None = None, progress: bool | str = False) -> Found:
    """Audit a group of mechanisms."""
    begun, how = time.perf_counter(), (made.which, made.epsilon, made.draws, made.seed, made.alpha)
    return Found(made, run(*how, executor=executor, progress=progress), time.perf_counter() - begun)


def run(which: str, epsilon: float, size: int, seed: int, alpha: float, **running: Any) -> list[Audit]:
    """Return the audits of a group of mechanisms, a key of AUDITS; at level alpha all bounds hold."""
    rows = list(AUDITS[which](epsilon, size, seed))
    level = alpha / len(rows)

    def audited(start: int, stop: int) -> tuple[Array]:
        return (np.array([row if isinstance(row, Audit) else row(alpha=level) for row in rows[start:stop]]),)

    return replicates.run(audited, len(rows), block=1, **running)[0].tolist()  # type: ignore[no-any-return]


def user(epsilon: float, size: int, seed: int) -> Iterator[Row]:
    """Audit reports: the law of a symbol for some numbers of buckets, and draws of all mechanisms."""
    tree, _ = from_nested([[[[0.1], [0.2, 0.4]], [[0.5], [0.6]], 0.9], [0.3]])
    told = ((3, 1.0), (4, 1.0)), ((0, 1.0), (3, 1.0)), ((3, 0.0), (3, 1.0))  # last action and loss

    def draw(mechanism: str, noise: str, two: Any, i: int, n: int, word: int) -> Array:
        symbols = 4 if mechanism == "hashing" else 0  # in one trial, so that public randomness is the same
        strategy = Strategy(0, np.array([0, 1, 2]), np.array([0, 3, 4]), symbols=symbols)
        seeds = range(word, word + n) if noise == "float" else (None,)
        how: dict[str, Any] = {"mechanism": mechanism, "noise": noise}
        devices = [User(tree, epsilon, **how, seed=one) for one in heard(seeds)]
        made = [devices[j % len(devices)].report(strategy, *two[i]) for j in heard(range(n))]
        return np.array([report.symbol if symbols else report.values for report in made])

    for k in _BUCKETS:
        laws = [law(Hashing.of(epsilon, k), own, value) for own in range(2 * k) for value in (-0.5, 0.0, 0.5)]
        yield exactly(itertools.combinations(laws, 2), epsilon, name=f"User, hashing into {k}")
    for mechanism, noise in itertools.product(("hashing", "laplace"), ("secure", "float")):
        pairs = [functools.partial(draw, mechanism, noise, two) for two in told]
        yield by_draws(pairs, epsilon, size // 10, seed, f"User, {mechanism}, {noise}", noise == "secure")


def law(code: Hashing, own: int, value: float) -> Floats:
    """Return the probabilities float64[2k] of all symbols, from the words of 62 bits that draw each.

    Where one symbol's words end is found by bisection, in steps of half as many as any symbol must have.
    """

    def symbol(word: int) -> int:
        return int(symbol_of(code, word, own, value, 0.5))

    at, found, step, total = 0, [0] * (2 * code.n_buckets), max(code.low // 2, 2**BITS // 10**5), 2**BITS
    while at < total:
        here, low, end = symbol(at), at, min(at + step, total)
        while symbol(end - 1) != here:
            middle = (low + end) // 2
            low, end = (middle, end) if symbol(middle) == here else (low, middle)
        found[here] += end - at
        at = end
    return np.array(found, dtype=np.float64) / float(total)


def counter(epsilon: float, size: int, seed: int) -> Iterator[Row]:
    """Audit the sums of every counter: by a linear program over its nodes, and by draws."""
    for row in COUNTERS.values():
        make = functools.partial(_counter, row, epsilon)
        yield functools.partial(_nodes, make, epsilon, name=f"{row.name} counter, its nodes")
        entries = np.eye(2) if "dimension" in row.options else [1.0]  # each changed alone
        changes = [np.multiply.outer(np.eye(h)[at], one) for h, at in _CHANGED for one in entries]
        streams = [(change, 0.0 * change) for change in changes]
        for noise in ("secure", "float"):
            both = functools.partial(make, dimension=2)  # with noise for each entry
            pairs = [functools.partial(_streams, both, noise, two) for two in streams]
            few = size // (20 if noise == "secure" else 10)
            yield by_draws(pairs, epsilon, few, seed, f"{row.name} counter, {noise}", noise == "secure")


def _counter(row: Any, epsilon: float, horizon: int, seed: int | None, dimension: int = 1) -> Any:
    given = {"horizon": horizon, "dimension": dimension}
    return row.make(epsilon, **{name: x for name, x in given.items() if name in row.options}, seed=seed)


def _nodes(make: Any, epsilon: float, *, name: str, alpha: float) -> Audit:
    """Return the audit of a counter's nodes, exact at any level alpha."""
    lost = np.concatenate([item_losses(make, horizon) for horizon in _HORIZONS])
    return Audit(name, epsilon, 0.0, float(lost.max()), lost.size, exact=True)


def _sums(made: Any, items: Floats) -> list[float]:
    d = getattr(made, "dimension", 0)
    found: list[float] = np.ravel([made.add(np.reshape(x, d) if d else x) for x in items.tolist()]).tolist()
    return found


def _streams(make: Any, noise: str, streams: Any, i: int, n: int, word: int) -> Array:
    seeds = range(word, word + n) if noise == "float" else itertools.repeat(None, n)
    return np.array([_sums(make(len(streams[i]), one), streams[i]) for one in heard(seeds)])


def item_losses(make: Callable[[int, int], Any], horizon: int) -> Floats:
    """Return the exact privacy loss of each item float64[T], by how a counter adds up items and draws.

    Units in the place of noise tell how much of every draw is in every sum. The largest log-likelihood ratio
    of two streams is the least sum of draws, each in units of its scale, that make up for the change of an
    item: a linear program.
    """
    from scipy.optimize import linprog

    def sums(unit: int, items: Floats) -> tuple[list[float], list[float]]:
        made, scales = make(horizon, 1), list[float]()

        def noised(node: Floats, n: int) -> Floats:
            scales.append(made.node_scale(n))
            return node + (unit == len(scales) - 1)

        def drawn(n: int) -> list[int]:
            first = len(scales)
            scales.extend([made.node_scale(1)] * n)
            return [(first + i == unit) * round(1.0 / made._grid) for i in range(n)]

        made._noised, made._drawn = noised, drawn
        return _sums(made, items), scales

    zero, scales = sums(-1, np.zeros(horizon))
    draws = np.array([sums(unit, np.zeros(horizon))[0] for unit in range(len(scales))]).T
    same: dict[str, Any] = {"A_eq": np.hstack([draws, -draws]), "bounds": (0, None), "method": "highs"}
    changes = [np.array(sums(-1, item)[0]) - zero for item in np.eye(horizon)]
    found = [linprog(1.0 / np.array([*scales, *scales]), b_eq=change, **same) for change in heard(changes)]
    return np.array([one.fun if one.status == 0 else np.inf for one in found])


def bandit(epsilon: float, size: int, seed: int) -> Iterator[Row]:
    """Audit choices, and what is known of arms, of every private policy, with each choice of its options."""
    few = max(size // 100, 100)  # show what is not noised at all
    for row in (one for one in bandits.POLICIES.values() if one.private):
        others = [(n, c) for n, o in row.options.items() for c in o.choices if c != o.default]
        for options in ({}, *({n: c} for n, c in others)):
            pairs, rounds = policy_pairs(choose(row.name, epsilon, None, options))
            name = ", ".join((row.name, *options.values()))
            n = size if rounds < 100 else size // 5
            yield by_draws(pairs, epsilon, n, seed, name, bits=False, alone=False)
        if row.live:
            flags = {name: False for name, option in row.options.items() if option.kind == "flag"}
            made = functools.partial(getattr(bandits, row.live.name), epsilon=epsilon, **flags)
            pulled = [functools.partial(_pulled, made, at) for at in (0, 2)]
            yield by_draws(pulled, epsilon, size // 10, seed, f"{row.live.name}, secure", bits=True)
            chosen = [functools.partial(_chosen, made)]
            yield by_draws(chosen, epsilon, few, seed, f"{row.live.name}, choices, secure", bits=False)
    for noise in ("secure", "float"):
        draws = [functools.partial(_estimates, epsilon, noise, x) for x in ([1.0, 0.0], [0.0, 1.0])]
        yield by_draws(draws, epsilon, size // 20, seed, f"private-oful, {noise}", noise == "secure")
        draws = [functools.partial(_rounds, epsilon, noise, at) for at in (0, 1)]
        yield by_draws(draws, epsilon, few, seed, f"private-oful, rounds, {noise}", bits=False)


def policy_pairs(chosen: Any) -> tuple[list[Any], int]:
    """Return draws of a policy with two arms, for neighbours that differ in one round, and the most rounds.

    In one table an arm pays 1, and the other what makes the policy, without noise, change its choices: there
    the noise decides. Its horizon is the shortest at which rewards matter. Others: short, of 0, of 1, random.
    """

    def still(*paid: float) -> float:
        return float(played(chosen, np.tile(paid, (horizon, 1)), 1, None)[0, 0])

    horizon, low, high = _SHORT, 0.0, 1.0
    while still(0, 1) == still(1, 0) and horizon < _MOST_ROUNDS:
        horizon *= 2
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if still(1, middle) == still(1, 0) else (low, middle)
    tables = [np.tile([1.0, high], (horizon, 1)), np.zeros((_SHORT, 2)), np.ones((_SHORT, 2))]
    tables += [np.random.default_rng(i).integers(0, 2, (4 * _SHORT, 2)).astype(float) for i in range(3)]
    pairs = []
    for table, t in itertools.product(tables, range(_SHORT)):
        other = table.copy()
        other[t] = np.where(table[t] > 0.5, 0.0, 1.0)
        pairs.append(lambda i, n, word, two=(table, other): played(chosen, two[i], n, word))
    return pairs, horizon


def played(chosen: Any, table: Floats, n: int, seed: int | None) -> Floats:
    """Return all choices in one number, and what is known of each arm: float64[n, 1 + K] of n plays.

    Rewards are float64[T, K]; without a seed there is no noise.
    """
    spec, (horizon, n_arms) = chosen.spec, table.shape
    key = stream_key(0 if seed is None else seed)
    state = spec.make_state(n_arms, n, horizon, chosen.epsilon, chosen.options, key=key)
    tape = rewards.make_tape(np.zeros((n_arms, n)), 1, rewards.TABLE)
    streams = rewards.make_streams(key, 0, n)
    seen = np.zeros(n)
    for t in heard(range(horizon)):
        if seed is not None:
            rewards.fill_tape(tape, streams, 1, 0.0)
        tape.table[0] = table[t][:, np.newaxis]
        before = state.pulls.copy()
        spec.kernels.advance(state, tape, t, t + 1, chosen.random_ties)
        seen = (seen * 1_000_003 + (state.pulls - before).argmax(axis=0)) % _PRIME
    return np.vstack([seen, state.private_sum if hasattr(state, "private_sum") else state.mean]).T


def _pulled(make: Any, at: int, i: int, n: int, word: int) -> Floats:
    """Return what a live bandit knows of the sums of n arms, all alike, after each of four rewards.

    Then what it knows of as many others after one reward, and what was new in each sum: noise that two arms
    or two batches share shows, as differences to the first sum are without. All rewards are 0, or 1 where
    `at` is not 0, but those in place `at` of the first arms, which are i. Few arms cost less.
    """
    found = np.empty((5, n))
    for part in np.array_split(found, -(-n // 12), axis=1):  # which are views
        m = part.shape[1]
        made = make(2 * m)
        for arm in range(m):
            made.update(m + arm, float(at > 0))
        for t, arm in heard(np.ndindex(4, m)):
            made.update(arm, float(i if t == at else at > 0))
            if arm + 1 == m:
                state = made._player.state  # of rewards in an open batch nothing is known
                known = made.private_means * getattr(state, "private_n", state.pulls)[:, 0]
                part[t], part[4] = known[:m], known[m:]
    return np.vstack([found, np.diff(found[:4], axis=0)]).T


def _chosen(make: Any, i: int, n: int, word: int) -> Floats:
    """Return whom n live bandits choose, of two arms that were paid i and 1/2 once."""
    found = np.empty(n)
    for at in heard(range(n)):
        made = make(2)
        made.update(0, float(i))
        made.update(1, 0.5)
        found[at] = made.select()
    return found


def _estimates(epsilon: float, noise: str, context: list[float], i: int, n: int, word: int) -> Floats:
    """Return the private estimates of n linear bandits with one arm, after a reward of i."""
    how: dict[str, Any] = {"policy": "private-oful", "epsilon": epsilon, "horizon": 1, "longest": 1.0}
    found = []
    for one in heard(range(word, word + n)):
        made = LinearBandit(1, 2, **how, noise=noise, seed=one if noise == "float" else None)
        made.update(made.request(context), i)
        found.append(made.estimate[0])
    return np.array(found)


def _rounds(epsilon: float, noise: str, at: int, i: int, n: int, word: int) -> Floats:
    """Return what linear bandits with two arms know of the first one's sums after each of four rewards.

    Both entries of these sums, that in place `at` first; then what is known of the second arm's after a
    reward of 1/2, and who is chosen after one each. Contexts are a 1 in place `at`, or zeros for an arm that
    shall not be chosen: with so small a `delta` no noise outweighs a bonus. Rewards are as of `_pulled`.
    """
    how: dict[str, Any] = {"policy": "private-oful", "epsilon": epsilon, "horizon": 6, "longest": 1.0}
    unit, found = np.eye(2)[at], np.empty((n, 10))
    for row, one in zip(found, heard(range(word, word + n)), strict=True):
        made = LinearBandit(2, 2, **how, delta=1e-9, noise=noise, seed=one if noise == "float" else None)
        for t in range(4):
            made.update(made.request([unit, unit if t == 0 else 0.0 * unit]), float(i if t == at else at > 0))
            if t == 0:  # the first two rounds play each arm once
                made.update(made.request(unit), 0.5)
                row[9] = made.request(unit).arm
            sums = made.estimate / np.diagonal(made.gram_inverse, axis1=1, axis2=2)
            row[t], row[4 + t], row[8] = sums[0, at], sums[0, 1 - at], sums[1, at]
    return found


#: Groups of mechanisms by name: ``AUDITS[name](epsilon, size, seed)`` yields their audits.
AUDITS: dict[str, Callable[[float, int, int], Iterator[Row]]] = {
    "user": user,
    "counter": counter,
    "bandit": bandit,
    "release": release,
}
