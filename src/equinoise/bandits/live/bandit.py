"""What all live bandits share: asking for arms, telling rewards, arms that come and go, files."""

from typing import ClassVar, overload

import numpy as np

from equinoise import _checks, _results
from equinoise._live import Live, locked, whole
from equinoise._random import stream_key
from equinoise._typing import Any, DataFrame, Floats, Ints, PathLike, Self, Words
from equinoise.bandits.live import state
from equinoise.bandits.live.player import Setting, player_of
from equinoise.bandits.live.state import OpenTickets, Tallies, Ticket
from equinoise.bandits.result import arm_labels, check_name
from equinoise.bandits.rewards import Draws
from equinoise.inference import Report, Totals, report

Arm = int | str
_MOST_AT_ONCE = 2**20


class Bandit(Live):
    """A bandit that is asked for an arm and told its reward; the parent of all live bandits.

    Methods that raise TypeError or ValueError, for arguments of a wrong kind or range, have changed nothing.

    Examples
    --------
    >>> from equinoise.bandits import UCB, Bandit
    >>> bandit = UCB(2)
    >>> isinstance(bandit, Bandit), bandit.select(), bandit.rounds
    (True, 0, 1)
    """

    policy: ClassVar[str]  # its name in the registry

    def _start(self, arms: Any, setting: Setting, known: Words | None = None) -> None:
        """Begin with nothing known, but a saved key; `arms` is a number or a sequence of names."""
        self._labels: list[Arm] = arm_labels(arms)
        n_arms, self._named = len(self._labels), isinstance(self._labels[0], str)
        self._setting, self._key = setting, (key := stream_key(setting.seed) if known is None else known)
        self._repeats = setting.noise == "float" and setting.seed is None
        self._player = player_of(setting, key, n_arms)
        self._draws = Draws(key, noise=setting.noise == "float", ties=setting.ties == "random")
        self._tallies, self._tickets = Tallies(n_arms), OpenTickets()
        self._rows = list(range(n_arms))  # the arms in play
        self._choices: list[int] = []
        self._shares: list[Floats] = []  # of every round, for as many arms as there were; empty if not known

    def __repr__(self) -> str:
        of = "" if self._setting.horizon is None else f" of {self._setting.horizon}"
        epsilon = "" if self._setting.epsilon is None else f", epsilon={self._setting.epsilon:g}"
        return f"{type(self).__name__}({len(self._rows)} arms, round {self.rounds}{of}{epsilon})"

    @property
    @locked
    def arms(self) -> tuple[Arm, ...]:
        """All arms in the order in which they came, also those dropped; pulls and means are in this order."""
        return tuple(self._labels)

    @property
    @locked
    def in_play(self) -> tuple[Arm, ...]:
        """The arms that may be selected."""
        return tuple(self._labels[arm] for arm in self._rows)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds (lo, hi) of the rewards, None where there are none."""
        low, high = self._setting.low, self._setting.high
        return None if low is None or high is None else (low, high)

    @property
    def rounds(self) -> int:
        """Number of rounds so far: selections, and rewards that came unasked."""
        return len(self._choices)

    @property
    @locked
    def choices(self) -> Ints:
        """The arm of every round, int64[rounds], as a place in :attr:`arms`."""
        return np.array(self._choices, dtype=np.int64)

    @property
    @locked
    def propensities(self) -> Floats | None:
        """With what probability each arm was drawn in every round, float64[rounds, K]; None if not known.

        They are exact, given all that came before, and sum to one; 0 for an arm that was not in play. Rounds
        that nobody asked for have NaN. Known to policies that draw arms: "thompson" and "epsilon-greedy",
        "lazy-dp-ts" with a floor, "uniform" that draws. No arm comes first there, new or not.
        """
        if self._player.shares is None:
            return None
        found = np.zeros((self.rounds, len(self._tallies.pulls)))
        for row, share in zip(found, self._shares, strict=True):
            row[: len(share)] = share
        return found

    @property
    @locked
    def pulls(self) -> Ints:
        """Rewards told so far, int64[K]."""
        return self._tallies.pulls.copy()

    @property
    @locked
    def means(self) -> Floats:
        """Mean of each arm's rewards, float64[K], in the units of the rewards; NaN before the first.

        The means of data that an adaptive policy gathered are biased; a private policy bounds by how much.
        """
        return self._setting.outside(self._tallies.mean)  # type: ignore[no-any-return]

    @property
    @locked
    def open_tickets(self) -> tuple[Ticket, ...]:
        """The selections whose reward has not been told, oldest first."""
        return tuple(self.ticket(number) for number in self._tickets)

    @locked
    def to_frame(self) -> DataFrame:
        """Return one row for each arm: arm, pulls, pending, mean, stderr, dropped.

        Pending are selections without a reward; stderr is that of the mean, as if the pulls had been planned.
        Private bandits add private_mean and bias_bound. ``attrs`` say what made it.
        """
        import pandas as pd

        pending = [self._tickets.count(arm) for arm in range(len(self.arms))]
        columns = {"arm": self.arms, "pulls": self.pulls, "pending": pending, "mean": self.means}
        columns["stderr"] = self._setting.span * self._tallies.stderr
        made, frame = self._setting, pd.DataFrame({**columns, "dropped": self._tallies.dropped.astype(bool)})
        return _results.made_by(frame, policy=made.policy, epsilon=made.epsilon, seed=made.seed)

    @locked
    def report(self, control: Arm | None = None, alpha: float = 0.05) -> Report:
        """Return which arms are better or worse than a control, as :func:`equinoise.inference.report` does.

        By default the first arm in play is the control. The answer comes from the true rewards: it is not
        private. What is still to come counts as the worst that it may be, so good news may come sooner than
        bad; cancel what will never come. ValueError for a bandit without bounds, whose means may be anything.

        Reports hold together while arms and control stay as they are: after :meth:`add_arm`, or with another
        control, those before and after hold with a chance each of their own.
        """
        if self.bounds is None:
            raise ValueError("report needs bounds of the rewards, and this bandit has none")
        tallies, place = self._tallies, self._rows[0] if control is None else self._place(control)
        squares = tallies.square_sum + tallies.reward_sum**2 / np.maximum(tallies.pulls, 1)
        sums = tallies.pulls, tallies.reward_sum, np.fmin(squares, tallies.reward_sum)
        totals = Totals(*sums, [self._tickets.count(arm) for arm in range(len(tallies.pulls))])
        return report(totals, labels=self.arms, bounds=self.bounds, control=place, alpha=alpha)

    def _repr_html_(self) -> str | None:
        return None if self.bounds is None else self.report()._repr_html_()

    @overload
    def select(self) -> Arm: ...
    @overload
    def select(self, n: int) -> list[Arm]: ...
    def select(self, n: int | None = None) -> Arm | list[Arm]:
        """Return the arm to play next, or the next n.

        Arms never selected come first, in order, unless arms are drawn, see :attr:`propensities`. Then the
        policy decides, on the rewards that have been told: a selection whose reward is still to come counts
        as a round, not as a pull. So n arms at once, or many without an answer, usually return one arm, once
        every arm has a reward. With `n`, from 1 to 2^20 and within the horizon, a list is returned. Arms are
        named as the bandit was made: by their number from 0, or by their names.
        """
        if n is None:
            return self.request().arm
        return [ticket.arm for ticket in self.request(n)]

    @overload
    def request(self) -> Ticket: ...
    @overload
    def request(self, n: int) -> list[Ticket]: ...
    @whole
    def request(self, n: int | None = None) -> Ticket | list[Ticket]:
        """Select as :meth:`select` does, and return tickets, for rewards that come late and in any order.

        :meth:`update` takes a ticket in the place of an arm. Its ``number`` may be kept, for :meth:`ticket`.
        """
        wanted = 1 if n is None else _checks.integer("n", n, 1, _MOST_AT_ONCE)
        self._check_horizon(wanted)
        tickets = []
        for t in range(self.rounds, self.rounds + wanted):
            noise, word = self._draws.at(t)
            arm = self._rows[self._player.choose(t, word)]
            self._tickets.open(t, arm, noise)
            self._note(arm, self._player.shares)
            tickets.append(self.ticket(t))
        return tickets[0] if n is None else tickets

    def _note(self, arm: int, shares: Any) -> None:
        """Add a round to the choices, with the probabilities of the arms in play."""
        self._choices.append(arm)
        if self._player.shares is not None:
            self._shares.append(np.zeros(len(self._tallies.pulls)))
            self._shares[-1][self._rows] = shares

    @locked
    def ticket(self, number: int) -> Ticket:
        """Return the open ticket of a number."""
        given = _checks.integer("ticket", number)
        if given not in self._tickets:
            raise ValueError(f"ticket must be an open one, got number {given}, which is unknown or closed")
        place = self._tickets[given][0]
        chance = float(self._shares[given][place]) if self._shares else None
        return Ticket(given, self._labels[place], self._tickets.owner, chance)

    @whole
    def update(self, arm: Arm | Ticket, reward: float) -> None:
        """Tell the reward of an arm or of a ticket.

        A ticket closes; an arm closes its oldest open ticket. An arm that has none was played without being
        asked for: it makes a round of its own. The reward is within the bounds.
        """
        if isinstance(arm, Ticket):
            number: int | None = self._number(arm)
            place = self._tickets[arm.number][0]
        else:
            place = self._place(arm)
            number = self._tickets.oldest(place)
        value = self._setting.inside(reward)
        if number is None:
            self._check_in_play(place)
            self._check_horizon(1)
            t, noise = self.rounds, self._draws.at(self.rounds)[0]
        else:
            t, noise = self.rounds - 1, self._tickets[number][1]
        if place in self._rows:  # a dropped arm's late reward is the analyst's alone
            row = self._rows.index(place)
            self._player.give(t, row, value, noise)
            self._player.waiting[row] -= number is not None
        self._tallies.add(place, value)
        if number is None:
            self._note(place, np.nan)
        else:
            self._tickets.close(number)

    @whole
    def cancel(self, ticket: Ticket) -> None:
        """Close a ticket whose reward will never come; its round stays counted."""
        number = self._number(_checks.instance("ticket", ticket, Ticket))
        place = self._tickets[number][0]
        if place in self._rows:
            self._player.waiting[self._rows.index(place)] -= 1
        self._tickets.close(number)

    @whole
    def add_arm(self, name: str | None = None) -> Arm:
        """Bring a new arm into play and return it; never selected, it comes first.

        It takes a name where arms have names, and only there, which was never used before.
        """
        place = len(self._tallies.pulls)
        if not self._named and name is not None:
            raise ValueError(f"name must be None where arms are numbered, got {_checks.shown(name)}")
        label = check_name("name", name) if self._named else place
        if label in self._labels:
            raise ValueError(f"name must be a new one, got {name!r}, which was used before")
        self._player.add_row()
        self._labels.append(label)
        self._tallies.add_arm()
        self._rows.append(place)
        return label

    @whole
    def drop_arm(self, arm: Arm) -> None:
        """Take an arm out of play for good; its numbers stay, and late rewards still count in its mean."""
        place = self._place(arm)
        self._check_in_play(place)
        if len(self._rows) == 1:
            raise ValueError(f"arm must leave another one in play, got the last one, {arm!r}")
        row = self._rows.index(place)
        release = float(self._player.releases[row]) if self._setting.epsilon is not None else np.nan
        self._player.drop_row(row)
        self._rows.remove(place)
        self._tallies.dropped[place], self._tallies.last_release[place] = 1, release

    def _place(self, arm: object) -> int:
        """Return the place of an arm that is or was in play."""
        if not self._named:
            return _checks.integer("arm", arm, 0, len(self._labels) - 1)
        if not isinstance(arm, str):
            raise TypeError(f"arm must be the name of an arm or a Ticket, got {_checks.shown(arm)}")
        if arm not in self._labels:
            raise ValueError(f"arm must be one of {_checks.shown(self._labels)}, got {_checks.shown(arm)}")
        return self._labels.index(arm)

    def _number(self, ticket: Ticket) -> int:
        """Return the number of an open ticket of this bandit."""
        if self.ticket(ticket.number) != ticket:
            raise ValueError(f"ticket must be one of this bandit, got {ticket!r}")
        return ticket.number

    def _check_in_play(self, place: int) -> None:
        if place not in self._rows:
            raise ValueError(f"arm must be in play, got {self._labels[place]!r}, which was dropped")

    def _check_horizon(self, n: int) -> None:
        horizon = self._setting.horizon
        if horizon is not None and self.rounds + n > horizon:
            why = f"is over or too near for {n} more, after {self.rounds}; a new bandit may have more"
            raise ValueError(f"horizon of {horizon} rounds {why}")

    @locked
    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write everything to a file, atomically: killed at any moment, it leaves the old file whole.

        The file (NumPy's npz, never a pickle) holds the true sums of rewards, and is as secret as the rewards
        are: only its owner may read it. A private bandit in earnest is saved after every reward: one that was
        stopped otherwise has forgotten what it noised since, and noises it again.

        A file in which another object saved this bandit since, such as one in another process that was loaded
        from it too, is refused with a ValueError, unless `overwrite` is True.
        """
        state.save(self, path, overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, and go on from there.

        The choices are those of a bandit that was never stopped; but secure noise is new from here on, and
        what was noised before is never noised again. Rewards told after the save are unknown. Only one object
        may go on from a file in earnest: two would noise the same rewards, or others with the same draws.

        Raises FileNotFoundError when there is no such file, ImportError when the noise is secure and OpenDP
        is not installed, and ValueError when the file is damaged or holds something else.
        """
        return state.load(cls, path)  # type: ignore[no-any-return]
