"""Audits of bandits: what simulated and live ones know of their arms, and whom they choose."""

import functools
import itertools

import numpy as np

from equinoise import bandits
from equinoise._random import stream_key
from equinoise._typing import Any, Floats, Iterator
from equinoise.bandits import rewards
from equinoise.bandits.linear import LinearBandit
from equinoise.bandits.policies.registry import choose
from equinoise.experiments.commands.audit_release import Row, by_draws, heard

_SHORT = 3  # rounds of a bandit, with a choice after both arms were pulled
_LONG = 64  # of a single arm: batches of 1, 2, 4 .. 32
_MOST_ROUNDS = 2**13  # in which a policy must have reacted to its rewards
_PRIME = 4_294_967_291  # of the few sequences of choices that there are, hardly two are one number modulo it


def bandit(epsilon: float, size: int, seed: int) -> Iterator[Row]:
    """Audit choices, and what is known of arms, of every private policy, with each choice of its options."""
    few = max(size // 100, 100)  # show what is not noised at all
    for row in (one for one in bandits.POLICIES.values() if one.private):
        others = [(n, c) for n, o in row.options.items() for c in o.choices if c != o.default]
        for options in ({}, *({n: c} for n, c in others)):
            pairs, rounds = policy_pairs(choose(row.name, epsilon, None, options))
            name = ", ".join((row.name, *options.values()))
            n = size if rounds < 100 else size // 5
            yield by_draws(pairs, epsilon, n, seed, name, bits=False, alone=False)
        if row.live:
            flags = {name: False for name, option in row.options.items() if option.kind == "flag"}
            made = functools.partial(getattr(bandits, row.live.name), epsilon=epsilon, **flags)
            pulled = [functools.partial(_pulled, made, at) for at in (0, 2)]
            yield by_draws(pulled, epsilon, size // 16, seed, f"{row.live.name}, secure", bits=True)
            chosen = [functools.partial(_chosen, made)]
            yield by_draws(chosen, epsilon, few, seed, f"{row.live.name}, choices, secure", bits=False)
    for noise in ("secure", "float"):
        draws = [functools.partial(_estimates, epsilon, noise, x) for x in ([3.0, 0.0], [0.0, 3.0])]
        yield by_draws(draws, epsilon, size // 20, seed, f"private-oful, {noise}", noise == "secure")
        draws = [functools.partial(_rounds, epsilon, noise, at) for at in (0, 1)]
        yield by_draws(draws, epsilon, few, seed, f"private-oful, rounds, {noise}", bits=False)


def policy_pairs(chosen: Any) -> tuple[list[Any], int]:
    """Return draws of a policy with two arms, for neighbours that differ in one round, and the most rounds.

    In one table an arm pays 1, and the other what makes the policy, without noise, change its choices: there
    the noise decides. Its horizon is the shortest at which rewards matter. Others: short, of 0, of 1, random,
    once with a third arm; and a long one of one arm, in the middle of which a reward differs.
    """

    def still(*paid: float) -> float:
        return float(played(chosen, np.tile(paid, (horizon, 1)), 1, None)[0, 0])

    horizon, low, high = _SHORT, 0.0, 1.0
    while still(0, 1) == still(1, 0) and horizon < _MOST_ROUNDS:
        horizon *= 2
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if still(1, middle) == still(1, 0) else (low, middle)
    tables = [np.tile([1.0, high], (horizon, 1)), np.zeros((_SHORT, 2)), np.ones((_SHORT, 2))]
    tables += [
        np.random.default_rng(i).integers(0, 2, (4 * _SHORT, 2 + i % 2)).astype(float) for i in range(3)
    ]
    pairs, long = [], (np.full((_LONG, 1), 0.5), _LONG // 2)
    for table, t in (*itertools.product(tables, range(_SHORT)), long):
        other = table.copy()
        other[t] = np.where(table[t] > 0.5, 0.0, 1.0)
        pairs.append(lambda i, n, word, two=(table, other): played(chosen, two[i], n, word))
    return pairs, horizon


def played(chosen: Any, table: Floats, n: int, seed: int | None) -> Floats:
    """Return all choices in one number, and what is known of each arm: float64[n, 1 + K] of n plays.

    Rewards are float64[T, K]; without a seed there is no noise.
    """
    spec, (horizon, n_arms) = chosen.spec, table.shape
    key = stream_key(0 if seed is None else seed)
    state = spec.make_state(n_arms, n, horizon, chosen.epsilon, chosen.options, key=key)
    tape = rewards.make_tape(np.zeros((n_arms, n)), 1, rewards.TABLE)
    streams = rewards.make_streams(key, 0, n)
    seen = np.zeros(n)
    for t in heard(range(horizon)):
        if seed is not None:
            rewards.fill_tape(tape, streams, 1, 0.0)
        tape.table[0] = table[t][:, np.newaxis]
        before = state.pulls.copy()
        spec.kernels.advance(state, tape, t, t + 1, chosen.random_ties)
        seen = (seen * 1_000_003 + (state.pulls - before).argmax(axis=0)) % _PRIME
    return np.vstack([seen, state.private_sum if hasattr(state, "private_sum") else state.mean]).T


def _pulled(make: Any, at: int, i: int, n: int, word: int) -> Floats:
    """Return what a live bandit knows of the sums of n arms, all alike, after each of four rewards.

    Then what it knows of as many others after one reward, and what was new in each sum: noise that two arms
    or two batches share shows, as differences to the first sum are without. All rewards are 0, or 1 where
    `at` is not 0, but those in place `at` of the first arms, which are i. Few arms cost less.
    """
    found = np.empty((5, n))
    for part in np.array_split(found, -(-n // 12), axis=1):  # which are views
        m = part.shape[1]
        made = make(2 * m)
        for arm in range(m):
            made.update(m + arm, float(at > 0))
        for t, arm in heard(np.ndindex(4, m)):
            made.update(arm, float(i if t == at else at > 0))
            if arm + 1 == m:
                state = made._player.state  # of rewards in an open batch nothing is known
                known = made.private_means * getattr(state, "private_n", state.pulls)[:, 0]
                part[t], part[4] = known[:m], known[m:]
    return np.vstack([found, np.diff(found[:4], axis=0)]).T


def _chosen(make: Any, i: int, n: int, word: int) -> Floats:
    """Return whom n live bandits choose, of two arms that were paid i and 1/2 once."""
    found = np.empty(n)
    for at in heard(range(n)):
        made = make(2)
        made.update(0, float(i))
        made.update(1, 0.5)
        found[at] = made.select()
    return found


def _estimates(epsilon: float, noise: str, context: list[float], i: int, n: int, word: int) -> Floats:
    """Return the private estimates of n linear bandits with one arm, after a reward of i."""
    how: dict[str, Any] = {"policy": "private-oful", "epsilon": epsilon, "horizon": 1, "longest": 3.0}
    found = []
    for one in heard(range(word, word + n)):
        made = LinearBandit(1, 2, **how, noise=noise, seed=one if noise == "float" else None)
        made.update(made.request(context), i)
        found.append(made.estimate[0])
    return np.array(found)


def _rounds(epsilon: float, noise: str, at: int, i: int, n: int, word: int) -> Floats:
    """Return what linear bandits with two arms know of the first one's sums after each of four rewards.

    Both entries of these sums, that in place `at` first; then who is chosen after one reward each, the second
    arm's being 1/2. Contexts are a 1 in place `at`, or zeros for an arm that shall not be chosen: with so
    small a `delta` no noise outweighs a bonus. Rewards are as of `_pulled`.
    """
    how: dict[str, Any] = {"policy": "private-oful", "epsilon": epsilon, "horizon": 6, "longest": 1.0}
    unit, found = np.eye(2)[at], np.empty((n, 9))
    for row, one in zip(found, heard(range(word, word + n)), strict=True):
        made = LinearBandit(2, 2, **how, delta=1e-9, noise=noise, seed=one if noise == "float" else None)
        for t in range(4):
            made.update(made.request([unit, unit if t == 0 else 0.0 * unit]), float(i if t == at else at > 0))
            if t == 0:  # the first two rounds play each arm once
                made.update(made.request(unit), 0.5)
                row[8] = made.request(unit).arm
            sums = made.estimate[0] / np.diagonal(made.gram_inverse[0])
            row[t], row[4 + t] = sums[at], sums[1 - at]
    return found
