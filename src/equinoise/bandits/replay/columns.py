"""Columns of a log, checked: arms, rewards, and the probabilities that arms were drawn with."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equinoise import _checks
from equinoise._typing import DataFrame, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["arm_column", "kept_share", "number_column"]

_UNLIKELY = 1e-6  # of arms drawn with equal probabilities: below, they were not
_SUM = 1e-6  # how far probabilities may be from a sum of one


def _column(frame: DataFrame, argument: str, name: object) -> pd.Series[Any]:
    """Return a column, refused where it is missing or has missing values."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame, got {_checks.shown(frame)}")
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be the name of a column, got {_checks.shown(name)}")
    if name not in frame.columns:
        raise ValueError(f"{argument} must be one of the columns {list(frame.columns)}, got {name!r}")
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise ValueError(f"{argument} must be the name of one column, got {name!r}, which several have")
    if len(column) == 0:
        raise ValueError("frame must have at least one row, got none")
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"column {name!r} must have no missing values, got one in row {missing.argmax()}")
    return column


def number_column(frame: DataFrame, argument: str, name: object, low: float, high: float) -> Floats:
    """Return a column of numbers or truth values within [low, high]."""
    import pandas as pd

    column = _column(frame, argument, name)
    if not pd.api.types.is_numeric_dtype(column):
        raise TypeError(f"column {name!r} must hold numbers, got dtype {column.dtype}")
    values = column.to_numpy()
    given = values.astype(np.float64) if values.dtype in (bool, object) else values
    return _checks.array(f"column {name!r}", given, np.float64, (None,), low=low, high=high)


def arm_column(frame: DataFrame, arm: object) -> tuple[tuple[Hashable, ...], Ints]:
    """Return the arms' labels, sorted where they can be, and each row's index into them."""
    import pandas as pd

    column = _column(frame, "arm", arm)
    try:
        codes, labels = pd.factorize(column)
    except TypeError:
        raise TypeError(f"column {arm!r} must hold labels that are hashable, got others") from None
    with contextlib.suppress(TypeError):  # labels of several kinds: in order of their first rows
        codes, labels = pd.factorize(column, sort=True)
    return tuple(labels.tolist()), codes.astype(np.int64)


def kept_share(frame: DataFrame, propensity: object, labels: tuple[Hashable, ...], arms: Ints) -> Floats:
    """Return with what probability each row is kept, float64[M], so that every arm becomes equally likely."""
    if propensity is None:
        _check_alike(labels, arms)
        return np.ones(len(arms))
    if isinstance(propensity, Mapping):
        of_row = _checked_shares(propensity, labels)[arms]
    else:
        of_row = number_column(frame, "propensity", propensity, 0.0, 1.0)
        if not of_row.min() > 0.0:
            raise ValueError(f"column {propensity!r} must be positive, got 0 in row {of_row.argmin()}")
    shares: Floats = of_row.min() / of_row
    return shares


def _checked_shares(propensity: Mapping[Any, float], labels: tuple[Hashable, ...]) -> Floats:
    if set(propensity) != set(labels):
        raise ValueError(
            f"propensity must have the arms {list(labels)} of the log, got {_checks.shown(list(propensity))}"
        )
    shares = np.array(
        [
            _checks.number(f"propensity[{label!r}]", propensity[label], 0.0, 1.0, open_low=True)
            for label in labels
        ]
    )
    if abs(shares.sum() - 1.0) > _SUM:
        raise ValueError(f"propensity must sum to 1 over the arms, got {shares.sum():g}")
    return shares


def _check_alike(labels: tuple[Hashable, ...], arms: Ints) -> None:
    """Refuse a log whose arms were hardly drawn with equal probabilities, by a chi-squared test."""
    counts = np.bincount(arms, minlength=len(labels))
    expected = len(arms) / len(labels)
    if len(labels) == 1:
        return
    from scipy import special

    square = float(((counts - expected) ** 2).sum() / expected)
    p_value = float(special.chdtrc(len(labels) - 1, square))
    if p_value < _UNLIKELY:
        raise ValueError(
            "propensity must be given for a log whose arms were not drawn with equal probabilities, got "
            f"{dict(zip(labels, counts.tolist(), strict=True))} rows of each arm "
            f"(as unequal by chance: p = {p_value:.1g})"
        )
