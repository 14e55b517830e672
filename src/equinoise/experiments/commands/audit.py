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

from equinoise import _checks, _files, replicates
from equinoise._typing import Any, Array, Callable, DataFrame, Floats, Iterator
from equinoise.efb import Strategy, User
from equinoise.experiments.commands import common
from equinoise.experiments.commands.audit_bandit import bandit
from equinoise.experiments.commands.audit_release import Row, by_draws, heard, release
from equinoise.games import from_nested
from equinoise.inference.privacy import Audit, exactly
from equinoise.mechanisms import COUNTERS
from equinoise.mechanisms.hashing import BITS, Hashing, symbol_of
from equinoise.report.exhibit import csv_bytes, frame_of

_BUCKETS = (1, 2, 3, 4, 16)
_HORIZONS = (1, 4, 7, 16, 40)  # of counters whose nodes are looked at
_LONG = 64  # items, after each of which there must be noise that was not there before
_ENTRIES = 5  # of vectors
# Horizons of streams that are drawn, and the item that differs: of any in the tree there is one.
_CHANGED = ((1, 0), (4, 0), (4, 2), (6, 4))
_MOST = 10**8  # draws


@dataclass(frozen=True)
class Parameters:
    """What the audits depend on, checked when made.

    All bounds of a group hold together except with probability `alpha`. OpenDP's noise is slow: of what it
    noises there is a tenth of the draws, or fewer.
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
    tree, _ = from_nested([[[[0.1], [0.2, 0.4]], *[[[0.5], [0.6]]] * 7, 0.9], [0.3]])
    told = ((3, 1.0), (4, 1.0)), ((0, 1.0), (16, 1.0)), ((16, 0.0), (16, 1.0))  # last action and loss
    played = np.array([0, 3, *range(4, 18, 2)])

    def draw(mechanism: str, noise: str, two: Any, i: int, n: int, word: int) -> Array:
        symbols = 4 if mechanism == "hashing" else 0  # in one trial, so that public randomness is the same
        strategy = Strategy(0, np.arange(len(played)), played, symbols=symbols)
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
        d = 1 + ("dimension" in row.options)
        streams = [(d, np.eye(d * h)[d * at]) for h, at in _CHANGED]  # the first entry changes, or the last
        streams += [(_ENTRIES, np.eye(2 * _ENTRIES)[-1])] * (d - 1)
        for noise in ("secure", "float"):
            pairs = [functools.partial(_streams, make, noise, *one) for one in streams]
            few = size // (20 if noise == "secure" else 10)
            yield by_draws(pairs, epsilon, few, seed, f"{row.name} counter, {noise}", noise == "secure")


def _counter(
    row: Any, epsilon: float, horizon: int, seed: int | None, dimension: int = 1, sensitivity: float = 1.0
) -> Any:
    given = {"horizon": horizon, "dimension": dimension, "sensitivity": sensitivity}
    return row.make(epsilon, **{name: x for name, x in given.items() if name in row.options}, seed=seed)


def _nodes(make: Any, epsilon: float, *, name: str, alpha: float) -> Audit:
    """Return the audit of a counter's nodes, exact at any level alpha.

    Sums of zeros must all differ, in every entry: two alike show that a draw is missing or is used again.
    Of honest noise two are alike with a probability below 1e-9.
    """
    makes = [functools.partial(make, sensitivity=most) for most in (1.0, 3.0)]
    lost = np.concatenate([item_losses(*given) for given in itertools.product(makes, _HORIZONS)])
    for seed in (None, 0):
        made = make(_LONG, seed, dimension=_ENTRIES)
        sums = _sums(made, np.zeros(_LONG * getattr(made, "dimension", 1)))
        if len({0.0, *sums}) <= len(sums):
            lost[0] = np.inf
    return Audit(name, epsilon, 0.0, float(lost.max()), lost.size, exact=True)


def _sums(made: Any, items: Floats) -> list[float]:
    d = getattr(made, "dimension", 0)
    found: list[float] = np.ravel(
        [made.add(x) for x in (items.reshape(-1, d) if d else items).tolist()]
    ).tolist()
    return found


def _streams(make: Any, noise: str, d: int, change: Floats, i: int, n: int, word: int) -> Array:
    """Return the sums of n streams float64[n, T d], of zeros or (i = 0) with a change."""
    seeds = range(word, word + n) if noise == "float" else itertools.repeat(None, n)
    return np.array([_sums(make(len(change) // d, one, d), (1 - i) * change) for one in heard(seeds)])


def item_losses(make: Callable[[int, int], Any], horizon: int) -> Floats:
    """Return the exact privacy loss of each item float64[T], by how a counter adds up items and draws.

    Units in the place of noise tell how much of every draw is in every sum. The largest log-likelihood ratio
    of two streams is the least sum of draws, each in units of its scale, that make up for the change of an
    item by as much as it may: a linear program.
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

    largest = getattr(make(horizon, 1), "sensitivity", 1.0)
    zero, scales = sums(-1, np.zeros(horizon))
    draws = np.array([sums(unit, np.zeros(horizon))[0] for unit in range(len(scales))]).T
    same: dict[str, Any] = {"A_eq": np.hstack([draws, -draws]), "bounds": (0, None), "method": "highs"}
    changes = [np.array(sums(-1, item)[0]) - zero for item in largest * np.eye(horizon)]
    found = [linprog(1.0 / np.array([*scales, *scales]), b_eq=change, **same) for change in heard(changes)]
    return np.array([one.fun if one.status == 0 else np.inf for one in found])


#: Groups of mechanisms by name: ``AUDITS[name](epsilon, size, seed)`` yields their audits.
AUDITS: dict[str, Callable[[float, int, int], Iterator[Row]]] = {
    "user": user,
    "counter": counter,
    "bandit": bandit,
    "release": release,
}
