"""Logs of rounds as estimators take them: checked, by place or by label, with replicates in rows."""

import numpy as np

from equinoise import _checks, _results
from equinoise._typing import Any, Array, Floats, Hashable, Ints, NamedTuple

SUM = 1e-6  # how far probabilities may be from a sum of one
_LEAST = 1e-50  # of a propensity of what was pulled, so that squares stay finite
PAID: Any = {"low": -1e100, "high": 1e100}  # rewards, likewise


class Log(NamedTuple):
    """A checked log: R replicates in rows, and the shape that they came in."""

    arms: Ints  # [R, T]
    rewards: Floats
    logged: Floats  # propensities of the arms that were pulled
    chance: Floats  # of all arms, [R, T, K]; of length 0 where they are not known
    n_arms: int
    lead: tuple[int, ...]
    labels: tuple[Hashable, ...]


def columns(frame: Any) -> tuple[Hashable, ...]:
    """Return the names of a frame's columns, whichever library it is of; none of what is no frame."""
    return tuple(getattr(frame, "column_names", getattr(frame, "columns", ())))


def names_of(value: Any) -> tuple[Hashable, ...] | None:
    """Return the arms that a mapping, a series or a frame names, or None."""
    return tuple(value.keys()) if hasattr(value, "keys") else columns(value) or None


def _in_order(arms: Any, labels: tuple[Hashable, ...]) -> tuple[Ints, tuple[Hashable, ...]]:
    """Return arms by their places in `labels`, by default all of them sorted, and the labels."""
    named = np.asarray(arms)
    if len(set(labels)) < len(labels):
        raise ValueError(f"propensities must have one column for each arm, got {list(labels)}")
    if named.dtype.kind in "US" and not all(isinstance(x, str | bytes) for x in np.array(arms, object).flat):
        raise TypeError("arms must be labels of one kind, got text and others")  # that NumPy made text
    try:
        found, inverse = np.unique(named, return_inverse=True)
    except TypeError:
        raise TypeError("arms must be labels of one kind, got some that cannot be compared") from None
    known = found.tolist()
    if missing := [label for label in known if label != label]:
        raise ValueError(f"arms must have none missing, got {missing[0]}")
    order = list(labels or known)
    if missing := [label for label in known if label not in order]:
        raise ValueError(f"propensities must have a column for each arm, got none for {missing}")
    return np.array([order.index(label) for label in known])[inverse].reshape(named.shape), tuple(order)


def checked_log(
    arms: Any, rewards: Any, propensities: Any, n_arms: int | None, *, zeros: bool = False, least: int = 0
) -> Log:
    """Check a log; `zeros` are propensities of 0 that are taken, of arms that were not pulled.

    There are at least `least` arms where nothing says how many.
    """
    for name, value in (("arms", arms), ("rewards", rewards), ("propensities", propensities)):
        _checks.present(name, value)
    labels = columns(propensities)
    if labels or _checks.entries("arms", arms).dtype.kind in "OUSb":
        arms, order = _in_order(arms, labels)
        if not labels and np.ndim(propensities) == arms.ndim + 1:
            raise ValueError("propensities must be a frame with a column for each arm, where arms are labels")
        labels = order
    pulled = _checks.array("arms", arms, np.int64, None, low=0)
    if not pulled.ndim or not pulled.size:
        raise ValueError(f"arms must have at least one round, got shape {pulled.shape}")
    y = _checks.array("rewards", rewards, np.float64, pulled.shape, **PAID, truth=True)
    given: Array = np.ones(pulled.shape)
    if propensities is not None:
        given = _checks.entries("propensities", propensities)
    whole = given.ndim == pulled.ndim + 1
    k = given.shape[-1] if whole else len(labels) or max(int(pulled.max()) + 1, least)
    if n_arms is not None:
        k = _checks.integer("n_arms", n_arms, k, k if whole else _checks.MOST)
    _results.check_memory(pulled.size, k, "the rounds")
    if labels and k != len(labels):
        raise ValueError(f"arms must be numbers where one of {k} was never pulled, got labels {list(labels)}")
    chance = _checks.array("propensities", given, np.float64, (*pulled.shape, k)[: given.ndim], high=1.0)
    if whole and pulled.max() >= k:
        raise ValueError(f"arms must be less than the {k} of the propensities, got {pulled.max()}")
    logged = np.take_along_axis(chance, pulled[..., None], -1)[..., 0] if whole else chance
    if not (logged > 0.0).all() or not (chance >= 0.0 if zeros else chance > 0.0).all():
        raise ValueError("propensities must all be positive here, got one of 0 or less: see `weights`")
    if logged.min() < _LEAST:
        raise ValueError(f"propensities of what was pulled must be at least {_LEAST:g}, got {logged.min():g}")
    if whole:
        worst = float(np.abs(chance.sum(axis=-1) - 1.0).max())
        if worst > SUM:
            raise ValueError(f"propensities must sum to 1 in every round, got a sum that is off by {worst:g}")
    flat = -1, pulled.shape[-1]
    chance = chance.reshape(*flat, k) if whole else np.empty((0, 0, 0))
    rows = pulled.reshape(flat), y.reshape(flat), logged.reshape(flat)
    return Log(*rows, chance, k, pulled.shape[:-1], labels)


def of_rounds(name: str, value: Any, log: Log, **limits: Any) -> Floats:
    """Return what is given of K arms, by label or in turn, or of every round's, as float64[R, T, K]."""
    names, given = list(log.labels or range(log.n_arms)), names_of(value)
    if given is not None:
        if set(given) != set(names) or len(given) > len(names):
            raise ValueError(f"{name} must have the arms {names}, got {list(given)}")
        value = np.stack([np.asarray(value[label]) for label in names], axis=-1)
    checked = _checks.array(name, value, np.float64, None, **limits)
    shape = (*log.lead, log.arms.shape[1], log.n_arms)
    if checked.shape not in {shape, shape[-2:], shape[-1:]}:
        raise ValueError(f"{name} must have shape ({log.n_arms},) or {shape}, got {checked.shape}")
    made: Floats = np.broadcast_to(checked, shape).reshape(-1, *shape[-2:])
    return made


def earlier_means(log: Log) -> Floats:
    """Return the mean of each arm's rewards before each round, float64[R, T, K]; 0 before there are any."""
    took = log.arms[..., None] == np.arange(log.n_arms)
    sums, pulls = (np.cumsum(part, axis=1) - part for part in (took * log.rewards[..., None], took * 1.0))
    return np.asarray(sums / np.fmax(pulls, 1.0))
