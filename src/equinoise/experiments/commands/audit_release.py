"""Audits of rows that are released, and how audits of all groups are drawn."""

import functools
import itertools
import threading
from dataclasses import replace

import numpy as np

from equinoise import nvo, replicates
from equinoise._typing import Any, Array, Callable, Ints, Iterable, Iterator, TypeVar
from equinoise.inference.privacy import Audit, Draw, audit, differences, exactly, steps, values
from equinoise.nvo.gaussian import GaussianGame
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.profile import Profile

# What seeded noise is audited by: its low bits tell everything, which is why it is for simulations.
SIMULATED = (values, differences, steps)
_RECORDS, _BINS = np.array([2, 3, 1, 3, 9, 4]), (0, 2, 5)  # in each bin, and the bins where one changes
_ROWS = 100  # of one private histogram, which are private together
_DELTA = 1e-4  # far below 1/n of the records here
_turn = threading.Lock()

#: An audit, or one that is still to be made, at a level ``alpha=``.
Row = Audit | functools.partial[Audit]
Item = TypeVar("Item")


def heard(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, and end where Ctrl-C was pressed: a million draws take minutes."""
    for one in items:
        replicates.tick()
        yield one


def by_draws(
    pairs: Any, epsilon: float, size: int, seed: int, name: str, bits: bool, alone: bool = True
) -> Row:
    """Return an audit that is still to be drawn; with `bits` it looks at low bits, too.

    Those that draw one by one, in Python and OpenDP, do so `alone`: they would only wait for one another,
    at each call of OpenDP, and together take longer than in turn.
    """
    if alone:
        pairs = [functools.partial(_in_turn, draw) for draw in pairs]
    how: dict[str, Any] = {"size": size, "seed": seed, "name": name, "events": None if bits else SIMULATED}
    return functools.partial(audit, pairs, epsilon, **how)


def _in_turn(draw: Draw, i: int, n: int, word: int) -> Any:
    with _turn:
        return draw(i, n, word)


def release(epsilon: float, size: int, seed: int) -> Iterator[Row]:
    """Audit rows that are released: laws of one row, and draws of rows and of noised histograms."""
    data = np.repeat([2.5, 3.5, 5.5, 6.5, 9.5], [9, 30, 1, 12, 2])
    histogram = nvo.Histogram.from_values(data, 10, bounds=(0, 10))
    profile = nvo.NoiseGame(histogram, epsilon).best_response(seed)
    others = _others(profile)
    yield exactly([(profile.pmf, other.pmf) for other in others], epsilon, name="Profile, its law")
    rows = [functools.partial(_rows, (profile, other)) for other in others]
    yield by_draws(rows, epsilon, size, seed, "Profile.sample", bits=False, alone=False)
    second = np.random.default_rng(0).permutation(data)
    pairs = PairHistogram.from_values(data, second, 4, bounds=((0, 10), (0, 10)))
    searched: list[tuple[str, float, Callable[[], Any]]] = [
        ("GaussianGame", _DELTA, lambda: GaussianGame(histogram, epsilon, _DELTA).solve(seed)),
        ("PairGame", 0.0, lambda: PairGame(pairs, epsilon).solve(seed, steps=20_000)),
    ]
    for name, delta, solve in searched:
        yield functools.partial(_solved, solve, epsilon, delta, name=f"{name}, its law")
    one = np.eye(6, dtype=np.int64)
    some = (1, 1, 0, 0, 0, 0), (2, 1, 1, 0, 0, 1), (5, 0, 2, 1, 0, 0), (40, 3, 1, 0, 2, 0)
    given = [(np.array(c), c + one[at]) for c, at in itertools.product(some, _BINS)]
    twins = [[nvo.one_draw_private(_counted(c), epsilon) for c in two] for two in given]
    yield exactly(((p.pmf, q.pmf) for p, q in twins), epsilon, name="one_draw_private, its law")
    rows = [functools.partial(_rows, two) for two in twins]
    yield by_draws(rows, epsilon, size, seed, "one_draw_private, its rows", bits=False, alone=False)
    changed = {"add-remove": one, "replace": one - np.roll(one, 1, axis=1)}
    for (said, less), noise in itertools.product(changed.items(), ("secure", "simulated")):
        both = [[_counted(_RECORDS - change) for change in (0, less[at])] for at in _BINS]
        draws = [functools.partial(_noised, epsilon, said, noise, two) for two in both]
        yield by_draws(draws, epsilon, size // 10, seed, f"private_histogram, {said}, {noise}", bits=False)


def _rows(two: Any, i: int, n: int, word: int) -> Array:
    return np.asarray(two[i].sample(n, allow_uncertified=True))


def _noised(epsilon: float, neighbours: str, noise: str, two: Any, i: int, n: int, word: int) -> Array:
    """Return what is released of n private histograms: probabilities, and the fewest rows in a bin."""
    seeds = range(word, word + n) if noise == "simulated" else itertools.repeat(None, n)
    found = []
    for seed in heard(seeds):
        made = nvo.private_histogram(two[i], epsilon, neighbours=neighbours, seed=seed)
        rows = made.sample(_ROWS, seed)
        fewest = np.bincount(rows.astype(np.int64), minlength=made.histogram.n_bins).min()
        found.append([*made.pmf, fewest])  # one number: among more, luck chooses the event
    return np.array(found)


def _solved(solve: Callable[[], Any], epsilon: float, delta: float, *, name: str, alpha: float) -> Audit:
    """Return the audit of what a search finds, exact at any level alpha."""
    profile = solve()
    laws = [(profile.pmf, other.pmf) for other in _others(profile)]
    return exactly(laws, epsilon, delta=delta, name=name)


def _others(profile: Any) -> list[Profile]:
    """Return the profiles of all records but one, of each bin and scale that there is, at the same scales."""
    found = []
    for k, v in np.argwhere(profile.counts):
        counts = profile.counts.copy()
        counts[k, v] -= 1
        found.append(Profile(replace(profile.game, histogram=profile.histogram.without(k)), counts))
    return found


def _counted(counts: Ints) -> Any:
    """Return a histogram with such counts."""
    n = len(counts)
    return nvo.Histogram.from_values(np.repeat(np.arange(n) + 0.5, counts), n, bounds=(0, n))
