"""Epochs of dp-se: when they end, which arms go, what is forgotten, against the plain twin."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from tests import naive_bandits

from equinoise.bandits import rewards
from equinoise.bandits.policies import dp_se

COMPILED = not numba.config.DISABLE_JIT


def constant_tape(pay, rows):
    """Tape of lanes whose arms always pay the same, float64[K, W], without noise."""
    tape = rewards.make_tape(pay, rows, rewards.GAUSSIAN)  # rewards are the mean plus nothing
    assert not tape.reward.any()
    return tape


@pytest.mark.parametrize("epsilon", [0.02, 0.2, 5.0] if COMPILED else [5.0])
@pytest.mark.parametrize("n_arms", [2, 3])
def test_an_arm_goes_when_it_is_clearly_worse(n_arms, epsilon):
    """Arms that always pay the same, a hair less and a hair more than 2h + 2c apart, in the first epoch."""
    horizon = 500_000
    twin = naive_bandits.make("dp-se", n_arms, horizon, epsilon)
    wide, narrow = twin.logs()
    apart = 2.0 * math.sqrt(wide / (2.0 * twin.length)) + 2.0 * narrow / (epsilon * twin.length)
    state = dp_se.make_state(n_arms, 2, horizon, epsilon)
    assert state.length.tolist() == [twin.length] * 2
    pay = np.full((n_arms, 2), 0.9)
    pay[-1] -= apart * np.array([1.0 - 1e-6, 1.0 + 1e-6])
    rows = n_arms * twin.length
    dp_se.advance(state, constant_tape(pay, rows), 0, rows - 1, False)
    assert (state.epoch == 1).all()
    dp_se.advance(state, constant_tape(pay, 1), rows - 1, rows, False)
    assert (state.epoch == 2).all()
    assert state.survivors.tolist() == [n_arms, n_arms - 1]
    assert state.alive[:, 1].tolist() == [1] * (n_arms - 1) + [0]
    before = state.pulls.copy()
    dp_se.advance(state, constant_tape(pay, 6), rows, rows + 6, False)
    left = [6 // (n_arms - 1)] * (n_arms - 1)
    assert (state.pulls - before).T.tolist() == [[6 // n_arms] * n_arms, [*left, 0]]


@pytest.mark.parametrize("seed", range(6 if COMPILED else 1))
def test_epochs_follow_one_another(seed):
    """Over two or three epochs, looked at every 500 rounds: pulls, survivors, sums and noised means."""
    rng = np.random.default_rng([62, seed])
    n_arms, horizon, epsilon = 3 - seed % 2, 40_000, [1.0, 0.2, math.inf][seed % 3]
    means = 0.5 + np.array([0.06, -0.06, -0.5])[:n_arms]
    table = (rng.random((horizon, n_arms)) < means).astype(float)
    noise = rng.laplace(size=horizon)
    twin = naive_bandits.make("dp-se", n_arms, horizon, epsilon)
    state = dp_se.make_state(n_arms, 1, horizon, epsilon)
    for first in range(0, horizon, 500):
        rows = slice(first, first + 500)
        tape = rewards.make_tape(np.zeros((n_arms, 1)), 500, rewards.TABLE)
        tape.table[:, :, 0], tape.noise[:, 0] = table[rows], noise[rows]
        dp_se.advance(state, tape, first, first + 500, False)
        for t in range(first, first + 500):
            arm = twin.choose(t + 1, 0)
            twin.update(t + 1, arm, table[t, arm], noise[t])
        assert state.pulls[:, 0].tolist() == twin.pulls
        assert np.flatnonzero(state.alive[:, 0]).tolist() == twin.survivors
        if len(twin.survivors) > 1:  # with one left, the kernel counts no epochs any more
            assert (state.epoch[0], state.length[0]) == (twin.epoch, twin.length)
            for arm in twin.survivors:
                assert state.fresh_sum[arm, 0] == sum(twin.fresh[arm])
                if arm in twin.means:
                    assert state.mean[arm, 0] == pytest.approx(twin.means[arm], rel=1e-12)
    assert twin.epoch > 2


def test_every_arm_and_epoch_has_a_draw_of_its_own():
    """Looked at a round before an epoch ends, when all arms but the last have their noised means."""
    rng, epsilon = np.random.default_rng(63), 0.5
    state = dp_se.make_state(3, 1, 10_000, epsilon)
    for epoch in range(1, 12):
        if epoch > 2:
            state.length[0] = 5  # as if it were so short: later epochs are millions of rounds
        rows = 3 * int(state.length[0])
        tape = rewards.make_tape(np.zeros((3, 1)), rows, rewards.TABLE)
        tape.table[:], tape.noise[:, 0] = 0.5, rng.laplace(size=rows)
        dp_se.advance(state, tape, 0, rows - 1, False)
        expected = 0.5 + tape.noise[-3:-1, 0] / epsilon / state.length[0]
        assert state.mean[:2, 0] == pytest.approx(expected, rel=1e-12)
        dp_se.advance(state, tape._replace(noise=tape.noise[-1:], table=tape.table[-1:]), 0, 1, False)
        assert (state.epoch[0], state.survivors[0]) == (epoch + 1, 3)


def test_an_epoch_that_no_integer_counts():
    """A tiny eps asks for more pulls than any horizon has: it goes on in turns, for good."""
    for epsilon in (1e-300, 5e-324):
        state = dp_se.make_state(3, 1, 10, epsilon)
        assert state.length[0] > 2**61
        dp_se.advance(state, constant_tape(np.zeros((3, 1)), 9), 0, 9, False)
        assert state.pulls.tolist() == [[3]] * 3


def test_the_last_arm_is_played_for_good():
    """Nothing more is released, and nothing else can go."""
    state = dp_se.make_state(2, 1, 10_000, 1.0)
    pay = np.array([[1.0], [0.0]])
    rows = 2 * int(state.length[0])
    dp_se.advance(state, constant_tape(pay, rows + 100), 0, rows + 100, False)
    assert state.alive[:, 0].tolist() == [1, 0]
    assert state.pulls[:, 0].tolist() == [rows // 2 + 100, rows // 2]
    assert state.reward_sum[:, 0].tolist() == [rows / 2 + 100.0, 0.0]
    assert state.fresh[:, 0].tolist() == [0, 0]
