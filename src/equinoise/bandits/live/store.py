"""Live bandits in files: everything they are, checked when it comes back."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from equinoise import _checks
from equinoise._files import load_arrays, save_arrays
from equinoise._typing import Array
from equinoise.bandits.live.player import Player
from equinoise.bandits.live.setting import Setting
from equinoise.bandits.live.tickets import OpenTickets

if TYPE_CHECKING:
    from equinoise.bandits.live.bandit import Bandit

__all__ = ["load", "save"]

_KIND = "equinoise bandit, version 1"
Live = TypeVar("Live", bound="Bandit")
Arrays = dict[str, Array]


def save(bandit: Bandit, path: str | os.PathLike[str]) -> None:
    """Write a bandit to a file that only its owner may read, if it could be read back."""
    state, secure = bandit._player.saved()
    arrays = {**bandit._tallies.arrays(), **bandit._tickets.arrays(), **state}
    arrays |= {"choices": bandit.choices, "key": bandit._key}
    meta = {
        "class": type(bandit).__name__,
        "setting": dataclasses.asdict(bandit._setting),
        "names": bandit._names,
        "secure": secure,
        "owner": bandit._tickets.owner,
    }
    try:
        _restored(type(bandit), arrays, meta)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(
            f"a change of this bandit broke off, so it cannot be saved; the file is as it was: {error}"
        ) from error
    save_arrays(path, _KIND, arrays, meta, mode=0o600)


def load(cls: type[Live], path: str | os.PathLike[str]) -> Live:
    """Read a bandit of a class from a file; errors as :meth:`Bandit.load` has them."""
    arrays, meta = load_arrays(path, _KIND)
    try:
        if meta["class"] != cls.__name__:
            raise ValueError(f"it holds a {meta['class']}")
        return _restored(cls, arrays, meta)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"path {os.fspath(path)!r} does not hold a whole {cls.__name__}: {error}") from error


def _restored(cls: type[Live], arrays: Arrays, meta: dict[str, Any]) -> Live:
    """Return the bandit of these arrays, or raise when there can be none."""
    bandit = cls.__new__(cls)
    _begin(bandit, arrays, meta)
    bandit._tickets = OpenTickets(_checks.integer("owner", meta["owner"], 1))
    _restore_rounds(bandit, arrays)
    return bandit


def _begin(bandit: Bandit, arrays: Arrays, meta: dict[str, Any]) -> None:
    """Set up the bandit with its arms, and what is known of them."""
    setting = Setting(**meta["setting"])
    if setting.policy != bandit.policy:
        raise ValueError(f"policy must be {bandit.policy!r}, got {setting.policy!r}")
    key = _checks.array("key", arrays["key"], np.uint64, (2,))
    names = meta["names"]
    bandit._start(len(arrays["pulls"]) if names is None else names, setting, key)
    bandit._tallies.restore(arrays, bounded=setting.low is not None)
    bandit._rows = np.flatnonzero(bandit._tallies.dropped == 0).tolist()
    if not bandit._rows:
        raise ValueError("dropped must leave an arm in play")
    bandit._player = Player(setting, key, len(bandit._rows))
    bandit._player.restore(arrays, meta["secure"])
    if (bandit._player.pulls != bandit._tallies.pulls[bandit._rows]).any():
        raise ValueError("pulls must be those of the policy")


def _restore_rounds(bandit: Bandit, arrays: Arrays) -> None:
    """Take over the rounds and the open tickets."""
    n_arms = len(bandit._tallies.pulls)
    choices = _checks.array("choices", arrays["choices"], np.int64, (None,), low=0, high=n_arms - 1)
    number = _checks.array("ticket_number", arrays["ticket_number"], np.int64, (None,), low=0)
    arm = _checks.array("ticket_arm", arrays["ticket_arm"], np.int64, number.shape)
    noise = _checks.array("ticket_noise", arrays["ticket_noise"], np.float64, number.shape)
    if (np.diff(number) <= 0).any() or (number >= len(choices)).any() or (choices[number] != arm).any():
        raise ValueError("ticket_number must name rounds in order, each of its ticket's arm")
    waiting, rounds = (np.bincount(places, minlength=n_arms) for places in (arm, choices))
    if (bandit._tallies.pulls + waiting > rounds).any():
        raise ValueError("choices must have a round for every reward and open ticket")
    bandit._choices = choices.tolist()
    for entry in zip(number.tolist(), arm.tolist(), noise.tolist(), strict=True):
        bandit._tickets.open(*entry)
    bandit._player.waiting[:] = waiting[bandit._rows]
    bandit._check_horizon(0)
