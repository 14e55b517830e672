"""States of a single lane whose arms come and go: which arrays have a part for every arm, and moving it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from equinoise import _checks
from equinoise._typing import Array

__all__ = ["arm_fields", "move_rows", "restore_rows"]

_LEAST = {"left": 1, "length": 1}  # other integers are not negative


def arm_fields(make: Callable[[int], Any]) -> tuple[str, ...]:
    """Return the names of a state's arrays that grow with its arms; make(n_arms) returns such a state.

    The part of an arm in them is one of n_arms equal pieces, in order.
    """
    one, two = make(1), make(2)
    return tuple(
        name
        for name in one._fields
        if isinstance(getattr(one, name), np.ndarray) and getattr(one, name).shape != getattr(two, name).shape
    )


def move_rows(old: Any, new: Any, rows: Sequence[int], fields: tuple[str, ...]) -> Any:
    """Copy arm rows[i] of a state to arm i of another, and the open batch if its arm goes along.

    Both are states of one lane; `new` is changed in place and returned, and further arms of it stay as they
    are. The fields are from :func:`arm_fields`.
    """
    for name in fields:
        source = getattr(old, name).reshape(old.pulls.shape[0], -1)
        target = getattr(new, name).reshape(new.pulls.shape[0], -1)
        target[: len(rows)] = source[list(rows)]
    if "current" in old._fields:
        current = int(old.current[0])
        new.current[0] = rows.index(current) if current in rows else -1
    return new


def restore_rows(state: Any, arrays: Mapping[str, Array], fields: tuple[str, ...]) -> None:
    """Write saved arrays into a state; KeyError, TypeError or ValueError where no state can hold them."""
    n_rows = state.pulls.shape[0]
    pulled = np.asarray(arrays["pulls"]) > 0
    for name in fields:
        here = getattr(state, name)
        given = np.asarray(arrays[name])
        if given.dtype != here.dtype or given.shape != here.shape:
            raise ValueError(f"{name} must be {here.dtype} of shape {here.shape}")
        least = _LEAST.get(name, 0) if here.dtype == np.int64 else None
        known = given[pulled] if name == "mean" else given  # infinite for an arm never pulled
        _checks.array(name, known, here.dtype, None, low=least)
        here[...] = given
    if "private_n" in state._fields and ((state.private_n > 0) != pulled).any():
        raise ValueError("private_n must be positive where there are pulls")
    if "current" in state._fields:
        state.current[0] = _checks.integer("current", arrays["current"].item(), -1, n_rows - 1)
