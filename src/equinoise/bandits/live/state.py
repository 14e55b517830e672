"""What a live bandit keeps: open selections, tallies of every arm, and all of it in a file."""

import functools
import secrets
from dataclasses import asdict, dataclass, field

import numpy as np

from equinoise import _checks
from equinoise._files import loaded
from equinoise._typing import Any, Array, Floats, Mapping
from equinoise.bandits.live.player import Setting, player_of
from equinoise.bandits.result import means_of

Arrays = dict[str, Array]


@dataclass(frozen=True)
class Ticket:
    """One selection, to hand its reward in by, whenever it comes.

    Its number is the round in which it was selected, from 0; no two tickets of a bandit share one. The owner
    tells the tickets of one bandit from those of another. The propensity is the probability with which its
    arm was drawn, given all that came before; None where it is not known.

    Examples
    --------
    >>> from equinoise.bandits import UCB
    >>> UCB(["red", "green"]).request()
    Ticket(number=0, arm='red')
    """

    number: int
    arm: int | str
    owner: int = field(default=0, repr=False)
    propensity: float | None = field(default=None, repr=False, compare=False)


class OpenTickets(dict[int, tuple[int, float]]):
    """The open selections by number: arm (its place among all arms) and its round's standard Laplace draw.

    Numbers only grow, so the first open one of an arm is the oldest. `owner` is drawn once for a bandit.
    """

    def __init__(self, owner: int | None = None) -> None:
        self.owner = 1 + secrets.randbits(62) if owner is None else owner
        self._numbers: dict[int, dict[int, None]] = {}

    def open(self, number: int, arm: int, noise: float) -> None:
        """Keep a new selection."""
        self[number] = arm, noise
        self._numbers.setdefault(arm, {})[number] = None

    def oldest(self, arm: int) -> int | None:
        """Return the number of the arm's oldest open selection, None where there is none."""
        return next(iter(self._numbers.get(arm, ())), None)

    def count(self, arm: int) -> int:
        """Return how many selections of an arm are open."""
        return len(self._numbers.get(arm, ()))

    def close(self, number: int) -> None:
        """Forget a selection: its reward has come, or never will."""
        arm, _ = self.pop(number)
        del self._numbers[arm][number]

    def arrays(self) -> Arrays:
        """Return ticket_number, ticket_arm int64[m] and ticket_noise float64[m], oldest first."""
        arms, noise = zip(*self.values(), strict=True) if self else ((), ())
        return {
            "ticket_number": np.array(list(self), dtype=np.int64),
            "ticket_arm": np.array(arms, dtype=np.int64),
            "ticket_noise": np.array(noise, dtype=np.float64),
        }


class Tallies:
    """What the analyst sees: sums over the rewards of K arms, dropped ones too, in the policy's units."""

    def __init__(self, n_arms: int) -> None:
        self.pulls = np.zeros(n_arms, dtype=np.int64)
        self.reward_sum = np.zeros(n_arms)
        self.square_sum = np.zeros(n_arms)  # of distances from the mean
        self.last_release = np.full(n_arms, np.nan)  # what a private policy knew of a dropped arm
        self.dropped = np.zeros(n_arms, dtype=np.int64)  # 1 for an arm that is out of play

    @property
    def mean(self) -> Floats:
        """Means float64[K], NaN for an arm without a reward."""
        return means_of(self.reward_sum, self.pulls)

    @property
    def stderr(self) -> Floats:
        """Standard errors float64[K] as if the pulls had been planned, NaN for fewer than two rewards."""
        several = np.maximum(self.pulls, 2)
        return np.where(self.pulls > 1, np.sqrt(self.square_sum / (several - 1) / several), np.nan)

    def add(self, arm: int, reward: float) -> None:
        """Add a reward; the squares by Welford's recursion, which loses no digits to a large mean."""
        n, total = self.pulls[arm], self.reward_sum[arm]
        if n > 0:
            self.square_sum[arm] += (reward - total / n) * (reward - (total + reward) / (n + 1))
        self.pulls[arm] = n + 1
        self.reward_sum[arm] = total + reward

    def add_arm(self) -> None:
        """Make room for one more arm."""
        for name, more in vars(Tallies(1)).items():
            setattr(self, name, np.append(getattr(self, name), more))

    def restore(self, arrays: Mapping[str, Array], *, bounded: bool) -> None:
        """Take over saved arrays; KeyError, TypeError or ValueError where K arms cannot have such sums."""
        shape = self.pulls.shape
        self.pulls = _checks.array("pulls", arrays["pulls"], np.int64, shape, low=0).copy()
        self.dropped = _checks.array("dropped", arrays["dropped"], np.int64, shape, low=0, high=1).copy()
        self.reward_sum = _checks.array("reward_sum", arrays["reward_sum"], np.float64, shape).copy()
        self.square_sum = _checks.array("square_sum", arrays["square_sum"], np.float64, shape, low=0.0).copy()
        if bounded and ((self.reward_sum < 0.0) | (self.reward_sum > self.pulls)).any():
            raise ValueError("reward_sum must lie between 0 and the pulls")
        release = np.asarray(arrays["last_release"], dtype=np.float64)
        known = (self.dropped == 1) & np.isfinite(release)
        if release.shape != shape or not (known | np.isnan(release)).all():
            raise ValueError("last_release must be finite, and of dropped arms alone")
        self.last_release = release.copy()


_KIND = "equinoise bandit, version 1"


def save(bandit: Any, path: Any, overwrite: object) -> None:
    """Write a bandit to a file that only its owner may read, if it could be read back."""
    arrays = {**vars(bandit._tallies), **bandit._tickets.arrays(), **bandit._player.saved()}
    arrays |= {"choices": bandit.choices, "key": bandit._key}
    if bandit.propensities is not None:
        arrays["propensities"] = bandit.propensities
    meta: dict[str, Any] = {"class": type(bandit).__name__, "setting": asdict(bandit._setting)}
    meta |= {"names": bandit._labels if bandit._named else None, "secure": bandit._player.secure()}
    meta["owner"] = bandit._tickets.owner
    restored = functools.partial(_restored, type(bandit), arrays, meta)
    bandit._save(path, overwrite, _KIND, meta, restored, arrays=arrays, mode=0o600)


def load(cls: Any, path: Any) -> Any:
    """Read a bandit of a class from a file; errors as :meth:`Bandit.load` has them."""
    with loaded(path, _KIND, cls.__name__) as (arrays, meta):
        if meta["class"] != cls.__name__:
            raise ValueError(f"it holds a {meta['class']}")
        return _restored(cls, arrays, meta)._came_from(meta)


def _restored(cls: Any, arrays: Arrays, meta: dict[str, Any]) -> Any:
    """Return the bandit of these arrays, or raise when there can be none."""
    bandit = cls.__new__(cls)
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
    bandit._player = player_of(setting, key, len(bandit._rows))
    bandit._player.restore(arrays, meta["secure"])
    if (bandit._player.pulls != bandit._tallies.pulls[bandit._rows]).any():
        raise ValueError("pulls must be those of the policy")
    bandit._tickets = OpenTickets(_checks.integer("owner", meta["owner"], 1))
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
    if bandit._player.shares is not None:
        shares = np.asarray(arrays["propensities"], dtype=np.float64)
        wrong = (shares < 0.0) | (shares > 1.0)
        if shares.shape != (len(choices), n_arms) or wrong.any():
            raise ValueError("propensities must be probabilities of each arm in every round")
        bandit._shares = list(shares)
    for entry in zip(number.tolist(), arm.tolist(), noise.tolist(), strict=True):
        bandit._tickets.open(*entry)
    bandit._player.waiting[:] = waiting[bandit._rows]
    bandit._check_horizon(0)
    return bandit
