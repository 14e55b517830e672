"""What is registered by name, such as learners, games and counters, and the typed options that it takes.

A row of a registry says all that is said of one, and everything else reads it there: the checks, the command
and its completion, the docs, the tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from equinoise import _checks

__all__ = ["Option", "Row", "checked"]


@dataclass(frozen=True)
class Option:
    """One option: what it may be, what it is where nobody says, and what it is for in a few words.

    `choices` are those of a choice; `low` and `high` the closed range of an integer or a number, and None
    leaves that end free.
    """

    kind: Literal["flag", "choice", "integer", "number"]
    default: bool | str | int | float
    summary: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def check(self, name: str, value: object) -> Any:
        """Return `value` as this option takes it, or raise TypeError or ValueError."""
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


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a registry says of each of its entries; a registry adds what it needs itself.

    `summary` is a few words without a full stop, `source` a reference, and `proof` says what is private and
    why: None for what is not.
    """

    name: str
    summary: str
    source: str
    proof: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether there is a proof of its privacy."""
        return self.proof is not None


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
