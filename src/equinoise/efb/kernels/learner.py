"""What a learner does in a trial, by either mechanism, and its trials against an environment.

A seat has a code or a scale. They go into these functions as arguments of their own, for Numba compiles no
branch that asks whether an argument is there where it is None.
"""

import numpy as np

from equinoise._intrinsics import prefetch
from equinoise._jit import njit
from equinoise._typing import Any
from equinoise.efb.kernels import symbol, trial as _trial
from equinoise.efb.kernels.trial import Chance, Seat

_at = np.uint64


@njit(forceinline=True)
def draw(seat: Seat, code: Any, scale: Any, ahead: Any, trial: Any) -> int:
    """Draw a reduced strategy and return its length n; for `ahead` see :func:`weights.pick`."""
    n = 0
    if scale is not None:
        n = _trial.draw(seat, ahead, trial)
    if code is not None:
        n = symbol.draw(seat, trial)
    return n


@njit(forceinline=True)
def prepare(seat: Seat, code: Any, scale: Any, n: int, trial: Any) -> None:
    """Make what a report needs beside the loss: noise for n values, or public bits."""
    if scale is not None:
        _trial.add_noise(seat.visits.value, seat.visits.word, n, scale, seat.source, trial)
    if code is not None:
        symbol.hash_visits(seat, n, code.n_buckets, trial)


@njit(forceinline=True)
def learn(seat: Seat, code: Any, scale: Any, n: int, trial: Any, last: int, loss: float) -> None:
    """Let a simulated user report a loss below the action at position `last`, and learn from that."""
    if scale is not None:
        seat.visits.value[last] += loss
        _trial.update(seat, n)
    if code is not None:
        symbol.learn(seat, n, code, symbol.sent(seat, code, trial, last, loss))


@njit
def run_trials(seat: Seat, chance: Chance, start: int, stop: int) -> Any:
    """Run the trials start..stop-1 against one environment.

    Returns (expected, observed): sums over the trials of the drawn strategy's expected loss, the sum of g(a)
    over its actions, and of the loss that the user saw.
    """
    visits = seat.visits
    expected = observed = 0.0
    for trial in range(start, stop):
        n = draw(seat, seat.code, seat.scale, chance.actions, trial)
        last, u = _trial.walk(seat.plan, chance, visits, seat.source, trial)
        prefetch(chance.actions, visits.action[last])
        for i in range(n):
            prefetch(chance.action_loss, visits.action[i])
        if seat.rate > 0.0:
            prepare(seat, seat.code, seat.scale, n, trial)
        loss = _trial.leaf_loss(chance, visits.action[last], u)
        observed += loss
        if seat.rate > 0.0:
            learn(seat, seat.code, seat.scale, n, trial, last, loss)
        for i in range(n):
            expected += chance.action_loss[_at(visits.action[i])]
    return expected, observed
