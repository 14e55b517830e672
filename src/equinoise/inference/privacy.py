"""What draws of a mechanism show about its privacy: lower bounds on epsilon, never a proof of it.

An event of probability p on one data set and q on a neighbouring one shows that epsilon is at least
``ln((p - delta)/q)``. Which event tells most is learned from some draws and chosen by others, and bounded on
draws that nobody looked at before, so the bound holds however many there were to choose from.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from equinoise import _checks, _results, replicates
from equinoise._typing import Any, Array, Floats, Ints

Draw = Callable[[int, int, int], Any]

_CELLS = 50  # of outputs that are numbers, each with a probability that few draws estimate
_ROUNDING = 1e-6  # relative, of an exact loss
_NO_BIT = 2000.0  # the lowest bit of a zero


@dataclass(frozen=True)
class Audit:
    """What an audit has found.

    Attributes
    ----------
    mechanism : str
        Its name.
    epsilon, delta : float
        What it claims.
    lower : float
        What epsilon is at least: for certain where it is exact, else except with probability `alpha`.
    pairs : int
        Neighbouring data sets that were looked at.
    exact : bool
        Whether probabilities were computed, not estimated from draws.

    Examples
    --------
    >>> Audit("a mechanism", epsilon=1.0, delta=0.0, lower=1.3, pairs=10, exact=True).violated
    True
    """

    mechanism: str
    epsilon: float
    delta: float
    lower: float
    pairs: int
    exact: bool = False
    alpha: float = 0.0

    @property
    def violated(self) -> bool:
        """Whether the claim is shown to be wrong."""
        return self.lower > self.epsilon * (1.0 + _ROUNDING)


def audit(
    draw: Draw | Sequence[Draw],
    epsilon: float,
    *,
    delta: float = 0.0,
    size: int = 20_000,
    seed: int = 0,
    alpha: float = 0.05,
    events: Sequence[Callable[[Array], Array]] | None = None,
    name: str = "mechanism",
) -> Audit:
    """Bound the epsilon of a mechanism from below by what it returns for neighbouring data.

    Parameters
    ----------
    draw : callable, or several
        One per pair of neighbours. ``draw(neighbour, size, seed)`` returns that many independent outputs, the
        data set being the first (0) or the second (1) of the pair: an array [size] or [size, d] of numbers.
        One that takes its randomness from the operating system ignores the seed.
    epsilon, delta : float
        What the mechanism claims.
    size : int
        Outputs per neighbour that the bound is made of; half as many of each pair choose pair and event.
    seed : int
        The seeds that `draw` gets are made from it.
    alpha : float
        Probability that the bound is above the true epsilon, at most.
    events : sequence of callables, optional
        What to look at: each makes of outputs [n, d] an array [n, c], and events are sets of its rows, or of
        cells of its values. By default :func:`values`, :func:`differences`, :func:`steps`, :func:`low_bits`.
    name : str
        The mechanism's, for the result.

    Returns
    -------
    Audit
        The bound is that of Clopper and Pearson for either probability, at alpha/2 each.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong kind or out of range, and outputs that are not of that size.

    References
    ----------
    .. [1] Jagielski, Ullman and Oprea (2020), Auditing differentially private machine learning: how private
       is private SGD?, NeurIPS, Section 4: bounds by Clopper and Pearson (1934).

    Examples
    --------
    >>> from equinoise.mechanisms import laplace
    >>> honest = audit(lambda i, size, seed: i + laplace(1.0, size, seed), 1.0, events=[values])
    >>> halved = audit(lambda i, size, seed: i + laplace(0.5, size, seed), 1.0, events=[values])
    >>> honest.violated, halved.violated, 0.8 < honest.lower < 1.0 < 1.6 < halved.lower < 2.0
    (False, True, True)
    """
    pairs = list(draw) if isinstance(draw, Sequence) else [draw]
    if not pairs or not all(map(callable, pairs)):
        raise TypeError(f"draw must be a callable or several, got {_checks.shown(draw)}")
    claim, rest = _checks.epsilon(epsilon), _checks.number("delta", delta, 0.0, 1.0)
    n = _checks.integer("size", size, 100, _checks.MOST)
    _results.check_memory(n, 2, "size")
    level = _checks.number("alpha", alpha, 0.0, 1.0, open_low=True, open_high=True)
    views = (values, differences, steps, low_bits) if events is None else events
    if not all(map(callable, _checks.instance("events", views, Sequence))):
        raise TypeError(f"events must be callables, got {_checks.shown(views)}")
    of = np.random.SeedSequence(_checks.integer("seed", seed, 0))
    words = iter(of.generate_state(2 * len(pairs) + 2, np.uint32).tolist())
    best: tuple[float, Any] = (-np.inf, None)
    for one in pairs:
        first, second = _outputs(one, n // 2, next(words), next(words))
        for view in views:
            seen = _seen(view, first), _seen(view, second)
            d = seen[0].shape[1]
            alone, pairs_of = range(d if d > 1 else 0), range(d - 1 if d > 2 else 0)
            for columns in (list(range(d)), *([c] for c in alone), *([c, c + 1] for c in pairs_of)):
                replicates.tick()  # of ten million draws each takes seconds
                found = _choice(seen[0][:, columns], seen[1][:, columns], rest, level)
                if found[0] > best[0]:
                    best = found[0], (one, view, columns, *found[1:])
    if best[1] is None:
        raise ValueError("events must make at least one column of outputs, got none")
    one, view, columns, member, swapped = best[1]
    outputs = _outputs(one, n, next(words), next(words))
    shown = [member(_seen(view, one)[:, columns]).sum() for one in outputs]
    often, seldom = shown[::-1] if swapped else shown
    return Audit(name, claim, rest, float(bounded(often, seldom, n, rest, level)), len(pairs), alpha=level)


def exactly(
    laws: Iterable[tuple[Floats, Floats]], epsilon: float, *, delta: float = 0.0, name: str = "mechanism"
) -> Audit:
    """Return the epsilon of a mechanism whose laws are known: float64[outcomes] of both, for every pair."""
    found, n = 0.0, 0
    for n, (p, q) in enumerate(laws, 1):  # noqa: B007
        for one, other in ((p, q), (q, p)):
            found = max(found, float(_losses(one, other, delta).max(initial=0.0)))
    return Audit(name, _checks.epsilon(epsilon), delta, found, n, exact=True)


def bounded(k: Any, other: Any, n: int, delta: float, alpha: float) -> Floats:
    """Return what epsilon is at least, from how often of n an event came with either neighbour."""
    from scipy.special import betaincinv

    low = np.where(k > 0, np.nan_to_num(betaincinv(np.maximum(k, 1), n - k + 1, alpha / 2.0)), 0.0)
    high = np.where(other < n, betaincinv(other + 1, np.maximum(n - other, 1), 1.0 - alpha / 2.0), 1.0)
    return np.log(np.maximum((low - delta) / high, 1.0))


def values(outputs: Array) -> Array:
    """Return the outputs themselves."""
    return outputs


def differences(outputs: Array) -> Array:
    """Return differences of all entries to the first, which noise that is used twice leaves clean."""
    with np.errstate(invalid="ignore"):  # of two infinite ones
        return outputs[:, 1:] - outputs[:, :1] if outputs.shape[1] > 1 else outputs[:, :0]


def steps(outputs: Array) -> Array:
    """Return differences of all entries to those before, which are what is new in each of several sums."""
    with np.errstate(invalid="ignore"):
        return outputs[:, 1:] - outputs[:, :-1]


def low_bits(outputs: Array) -> Array:
    """Return the exponent of every float's lowest bit, which tells what a float was added to [1]_.

    References
    ----------
    .. [1] Mironov (2012), On significance of the least significant bits for differential privacy, CCS.
    """
    if outputs.dtype.kind != "f":
        return outputs[:, :0]
    outputs = outputs.astype(np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(outputs), outputs, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1)) + exponent - 53
    return np.where(whole == 0, _NO_BIT, lowest)


def _outputs(draw: Draw, n: int, *seeds: int) -> list[Array]:
    made = [np.asarray(draw(i, n, seed)) for i, seed in enumerate(seeds)]
    for one in made:
        if one.ndim not in (1, 2) or len(one) != n:
            raise ValueError(f"draw must return an array of {n} outputs, got shape {one.shape}")
        if one.dtype.kind not in "biuf":
            raise TypeError(f"draw must return real numbers, got {one.dtype}")
        if one.shape != made[0].shape:
            raise ValueError(f"draw must return outputs of one shape, got {made[0].shape} and {one.shape}")
    kind = np.result_type(*made) if "f" in {one.dtype.kind for one in made} else np.int64  # all 64 bits
    return [one.reshape(n, -1).astype(kind) for one in made]


def _seen(view: Callable[[Array], Array], outputs: Array) -> Array:
    seen = view(outputs)
    if getattr(seen, "ndim", 0) != 2 or len(seen) != len(outputs):
        raise ValueError(f"events must make arrays [n, c] of outputs [n, d], got {_checks.shown(seen)}")
    return seen


def _choice(first: Array, second: Array, delta: float, alpha: float) -> tuple[float, Any, bool]:
    """Return a bound on the loss, the event of which it is, and whether the second has it more often."""
    half = len(first) // 2
    if not first.shape[1]:
        return -np.inf, None, False
    label = _labels(np.concatenate([first[:half], second[:half]]))
    p, q = label(first), label(second)
    n = 1 + max(int(p.max()), int(q.max()))
    best: tuple[float, Any, bool] = (-np.inf, None, False)
    for swapped, (one, other) in enumerate(((p, q), (q, p))):
        learned, more = (np.bincount(x[:half], minlength=n) + 0.5 for x in (one, other))
        order: Ints = np.argsort(-learned / more, kind="stable")
        often, seldom = (np.cumsum(np.bincount(x[half:], minlength=n)[order]) for x in (one, other))
        m = len(first) - half
        found = bounded(often, seldom, m, delta, alpha)  # at a laxer level, rare events by luck
        at = int(np.argmax(found))
        event = np.zeros(n, dtype=bool)
        event[order[: at + 1]] = True
        if found[at] > best[0]:
            best = float(found[at]), _member(label, event), bool(swapped)
    return best


def _member(label: Callable[[Array], Ints], event: Array) -> Callable[[Array], Array]:
    within = np.append(event, False)  # what was not seen is no part of it
    return lambda outputs: within[np.minimum(label(outputs), len(event))]


def _losses(p: Floats, q: Floats, delta: float) -> Floats:
    """Return ln((P - delta)/Q) of events that grow, outcome by outcome, from the largest p/q down."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0.0, p / q, 0.0), kind="stable")
        above = np.maximum(np.cumsum(p[order]) - delta, 0.0)
        found: Floats = np.where(above > 0.0, np.log(above / np.cumsum(q[order])), -np.inf)
    return found


def _labels(reference: Array) -> Callable[[Array], Ints]:
    """Return what numbers rows by their cells; where few rows differ each is a cell, and 0 are new ones."""
    few = len(reference) // 20
    columns = all(np.unique(column).size <= few for column in reference.T)  # takes less than whole rows
    rows = np.unique(reference, axis=0) if columns else reference
    if len(rows) > few:
        n = max(2, int(_CELLS ** (1.0 / reference.shape[1])))
        numbers = np.where(np.isnan(reference), np.inf, reference)
        levels = np.quantile(numbers, np.arange(1, n) / n, axis=0, method="lower")
        kept = range(min(reference.shape[1], 12))

        def cell(outputs: Array) -> Ints:
            places = [np.searchsorted(levels[:, c], outputs[:, c], side="left") for c in kept]
            places = [np.where(np.isnan(outputs[:, c]), n, at) for c, at in zip(kept, places, strict=True)]
            return np.ravel_multi_index(places, [n + 1] * len(places)).astype(np.int64)

        return cell
    order = {row.tobytes(): i for i, row in enumerate(rows, 1)}
    return lambda outputs: np.array([order.get(row.tobytes(), 0) for row in np.ascontiguousarray(outputs)])
