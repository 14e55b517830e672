"""Typed options of what is registered by name: policies, learners, searches, counters.

A row of a registry says which options it takes, and everything else reads it there: the checks, the command
and its completion, the docs, the tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equinoise import _checks

__all__ = ["Option", "checked"]


@dataclass(frozen=True)
class Option:
    """One option: what it is for, what it may be, and what it is where nobody says.

    Attributes
    ----------
    kind : {"flag", "choice", "integer", "number"}
    default : bool, str, int or float
    summary : str
        A few words, without a full stop.
    choices : tuple of str
        Of a choice.
    low, high : float
        The closed range of an integer or a number; None leaves that end free.
    """

    kind: Literal["flag", "choice", "integer", "number"]
    default: bool | str | int | float
    summary: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def check(self, name: str, value: object) -> Any:
        """Return `value` as this option takes it.

        Raises
        ------
        TypeError, ValueError
            When it is no such value.
        """
        if self.kind == "flag":
            return _checks.flag(name, value)
        if self.kind == "choice":
            return _checks.choice(name, value, self.choices)
        if self.kind == "integer":
            least, most = (None if end is None else int(end) for end in (self.low, self.high))
            return _checks.integer(name, value, least, most)
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return _checks.number(name, value, low, high)

    def parse(self, name: str, text: str) -> Any:
        """Return what `text` says on a command line, checked."""
        words: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}
        value: object = text
        try:
            if self.kind == "flag":
                value = words.get(text.lower(), text)
            elif self.kind == "integer":
                value = int(text)
            elif self.kind == "number":
                value = float(text)
        except ValueError:
            pass  # the check below says what is wrong
        return self.check(name, value)


def checked(owner: str, options: Mapping[str, Option], given: Mapping[str, object]) -> dict[str, Any]:
    """Return every option, given or by default, in the order of the registry.

    Raises
    ------
    TypeError, ValueError
        When a value is not what its option takes, or `owner` has no option of that name.
    """
    for name in given:
        if name not in options:
            raise TypeError(f"{name!r} is no option of the {owner}")
    return {name: o.check(name, given[name]) if name in given else o.default for name, o in options.items()}
