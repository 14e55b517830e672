"""The server of DP-EFB: one trial at a time, it draws a strategy and learns from the report.

The kernels and the addresses of random numbers are those of :func:`equinoise.efb.simulate`: a server, users
and plays with one seed repeat replicate 0 of a simulation bit for bit.
"""

from __future__ import annotations

import os

import numpy as np

from equinoise import _checks
from equinoise._files import loaded
from equinoise._live import Live, locked, whole
from equinoise._random import stream_key
from equinoise._typing import ArrayLike, Floats, Words
from equinoise.efb.baselines import LEARNERS, Learner
from equinoise.efb.kernels import learner as _learner, setup, weights
from equinoise.efb.protocol.user import Report, Strategy
from equinoise.efb.tuning import RULES, Tuning, checked_for, noise_scale, packed, tune, unpacked
from equinoise.games import GameTree, Policy

_KIND = "equinoise server, version 1"
_RARE = 40.0  # scales of noise, which an honest value passes once in e^40 times


class Server(Live):
    """The learner: draws a reduced strategy for each user and learns from the private report.

    Threads may share a server, which lets in one at a time; a trial has one report, and more are refused.
    A server need not be trusted: a report is private before it is sent, and whatever is made of reports stays
    as private. Users need not be trusted either: a symbol multiplies weights of the actions in one bucket by
    at most exp(eta G r(a) / (rho nu(a))), which the tuning keeps below exp(theta G/sqrt(V0)) while rho is
    below 1/2, and a noised value that honest noise passes once in e^40 times is refused.

    Parameters
    ----------
    tree, horizon, epsilon, tuning, mechanism, loss_range
        As of :func:`simulate` and :func:`tune`. Users see to epsilon, and refuse a loss out of its range.
    seed : int, optional
        Of the strategies; None takes randomness from the operating system.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Section 4.

    Examples
    --------
    >>> from equinoise.efb import User, play
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> server = Server(tree, horizon=1000, epsilon=4, seed=1)
    >>> user = User(tree, epsilon=4, noise="float", seed=1)
    >>> for _ in range(1000):
    ...     strategy = server.draw()
    ...     last_action, loss = play(environment, strategy, seed=1)
    ...     server.update(user.report(strategy, last_action, loss))
    >>> server.trial, server.policy.shape
    (1000, (13,))
    """

    def __init__(
        self,
        tree: GameTree,
        *,
        horizon: int,
        epsilon: float,
        tuning: str | Tuning = "sharp",
        mechanism: str = "hashing",
        loss_range: ArrayLike = (0.0, 1.0),
        seed: int | None = None,
    ) -> None:
        rule = _checks.choice("tuning", tuning, RULES) if isinstance(tuning, str) else "sharp"
        given = tune(tree, horizon, epsilon, rule, mechanism, loss_range=loss_range)
        if rule is not tuning:
            given = checked_for(tree, tuning, (given.horizon, given.epsilon, mechanism), (0.5, 0.5))
        self._start(tree, LEARNERS["dp-efb"].start(tree, given), stream_key(seed), 0)

    def _start(self, tree: GameTree, learner: Learner, key: Words, trial: int) -> None:
        self.tree, self.tuning = tree, learner.tuning
        self._key, self._trial = key, trial
        self._drawn = 0  # length of the visit list, 0 before this trial's strategy is drawn
        plan = setup.make_plan(tree, self.tuning.exploration, self.tuning.radius)
        self._seat = setup.make_seat(tree, plan, setup.make_visits(tree), learner, key)

    def __repr__(self) -> str:
        return f"Server({self.tree!r}, trial {self._trial} of {self.tuning.horizon})"

    @property
    def trial(self) -> int:
        """Number of trials that are over."""
        return self._trial

    @property
    @locked
    def policy(self) -> Floats:
        """The present behaviour policy, float64[A]."""
        out = np.empty(self.tree.n_actions)
        weights.policy(self.tree.action_ptr, self._seat.weights.weight, out)
        return out

    def to_policy(self) -> Policy:
        """Return the present policy with its tree, ready to travel."""
        return Policy(self.tree, self.policy)

    @locked
    def draw(self) -> Strategy:
        """Return this trial's strategy, the same until the trial is over; ValueError after the horizon."""
        n, visits, symbols = self._draw(), self._seat.visits, self.tuning.symbols
        key = self._seat.public[:2] if symbols else (0, 0)
        return Strategy(self._trial, visits.infoset[:n], visits.action[:n], symbols, key)

    def _draw(self) -> int:
        self._check_horizon()
        if not self._drawn:
            seat = self._seat
            self._drawn = _learner.draw(seat, seat.code, seat.scale, seat.plan.actions, self._trial)
        return self._drawn

    def _check_horizon(self) -> None:
        if self._trial >= self.tuning.horizon:
            raise ValueError(f"horizon of {self.tuning.horizon} trials is over; a new server may have more")

    @whole
    def update(self, report: Report) -> None:
        """Learn from this trial's report and go on to the next trial.

        ValueError, and nothing changes, for a report that no user sends in this trial, or that is not finite.
        """
        _checks.instance("report", report, Report)
        if report.trial != self._trial:
            raise ValueError(f"report must be for trial {self._trial}, got one for trial {report.trial}")
        n = self._draw()
        seat, code = self._seat, self._seat.code
        if code is None:
            seat.visits.value[:n] = self._checked_values(report, n)
        elif report.symbol is None or report.symbol >= self.tuning.symbols:
            got = _checks.shown(report)
            raise ValueError(f"report must be one of {self.tuning.symbols} symbols, got {got}")
        elif seat.rate > 0.0:
            _learner.prepare(seat, code, seat.scale, n, self._trial)
        self.skip()  # first: whoever saves in between, as on SIGTERM, saves no report without its trial
        if code is None or seat.rate > 0.0:
            _learner.update(seat, code, seat.scale, n, report.symbol or 0)

    def _checked_values(self, report: Report, n: int) -> Floats:
        values, most = report.values, _RARE * noise_scale(self.tuning.epsilon)
        if values is None or len(values) != n:
            got = 0 if values is None else len(values)
            raise ValueError(f"report must hold {n} values, one per action drawn, got {got}")
        if not np.isfinite(values).all():
            raise ValueError(f"report must be finite, got {_checks.shown(values)}")
        if values.min() < -most or values.max() > 1.0 + most:
            raise ValueError(f"report must lie within the noise of epsilon, got {_checks.shown(values)}")
        return values

    @locked
    def skip(self) -> None:
        """Go on to the next trial without learning: this one's user never answered."""
        self._check_horizon()
        self._trial, self._drawn = self._trial + 1, 0

    @locked
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the whole state to a file, atomically; a loaded server goes on to the same bits.

        A strategy that was drawn and not answered yet is drawn again, the same one, after the load. A file in
        which another object saved this server since is refused with a ValueError, unless `overwrite` is True.
        """
        arrays, meta = packed(self.tree, self.tuning)
        arrays |= {"weight": self._seat.weights.weight[: self.tree.n_actions], "key": self._key}
        meta |= {"trial": self._trial}
        self._save(path, overwrite, _KIND, meta, arrays=arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Server:
        """Read what :meth:`save` wrote; ValueError for a file that is damaged or something else."""
        with loaded(path, _KIND, "server") as (arrays, meta):
            tree, tuning = unpacked(arrays, meta)
            checked_for(tree, tuning, (tuning.horizon, tuning.epsilon, tuning.mechanism), (0.5, 0.5))
            trial = _checks.integer("trial", meta["trial"], 0, tuning.horizon)
            weight = _checks.array("weight", arrays["weight"], np.float64, (tree.n_actions,), low=0.0)
            if not np.maximum.reduceat(weight, tree.action_ptr[:-1]).all():
                raise ValueError("weight must not vanish over an infoset")
            key = _checks.array("key", arrays["key"], np.uint64, (2,))
            server = cls.__new__(cls)
            server._start(tree, Learner(weight, tuning, 0.0), key, trial)
            return server._came_from(meta)
