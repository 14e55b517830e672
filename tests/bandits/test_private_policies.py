"""dp-klucb, dp-se, adap-ucb, lazy-dp-ts: against plain twins, coupled for privacy, by reference regret."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests import naive_bandits

from equinoise._random import stream_key
from equinoise.bandits import POLICIES, rewards
from equinoise.bandits.policies import batches

COMPILED = not numba.config.DISABLE_JIT
NAMES = [name for name, row in POLICIES.items() if row.private and not row.tabulated]
KERNELS = {name: POLICIES[name].kernels for name in NAMES}
LONGEST = {"dp-se": 6000, "lazy-dp-ts": 200}  # else 1000
EPSILONS = [0.05, 0.3, 1.0, 4.0, 30.0, math.inf]
N_INSTANCES = 200 if COMPILED else 10
SEED = 61
TIGHT = settings(deadline=None, max_examples=300 if COMPILED else 50)
policies = pytest.mark.parametrize("name", NAMES)


def make_state(name, n_arms, lanes, horizon, epsilon, *, seed=SEED, first=0, **options):
    key = stream_key(seed)
    return POLICIES[name].make_state(n_arms, lanes, horizon, epsilon, options, key=key, first=first)


def given_tape(table, noise, ties):
    """The Tape of one lane from lists: rewards [T][K], noise [T], words [T]."""
    table = np.asarray(table, dtype=float)
    return rewards.Tape(
        np.zeros((table.shape[1], 1)),
        np.zeros((0, 1)),
        np.asarray(noise, dtype=float)[:, None].copy(),
        np.array(ties, dtype=np.uint64)[:, None].copy(),
        table[:, :, None].copy(),
        rewards.TABLE,
    )


def step_by_step(name, state, table, noise, ties, *, random_ties=False):
    """Play lane 0 with choose and update; return the arms, and the rounds in which something was released."""
    kernels, arms, released = KERNELS[name], [], []
    for t in range(len(table)):
        arm = int(kernels.choose(state, 0, t, np.uint64(ties[t]), random_ties))
        before = state.mean[arm, 0] if name == "dp-se" else None
        kernels.update(state, 0, t, arm, float(table[t][arm]), float(noise[t]))
        arms.append(arm)
        full = state.mean[arm, 0] != before if name == "dp-se" else state.left[arm, 0] == state.length[arm, 0]
        if full:
            released.append(t)
    return arms, released


def end_of(name, case, random_ties=False, **options):
    """The state after an instance, played in one go."""
    state = make_state(name, case.n_arms, 1, case.horizon, case.epsilon, **options)
    tape = given_tape(case.table, case.noise, case.ties)
    KERNELS[name].advance(state, tape, 0, case.horizon, random_ties)
    return state


def arrays_of(state, lane=0):
    """What a lane's state holds, but for scratch and addresses."""
    skip = ("score", "key", "replicate")
    named = {key: value for key, value in state._asdict().items() if isinstance(value, np.ndarray)}
    if chances := getattr(state, "chances", None):
        named["share"] = chances.share
    return {key: value[..., lane].tolist() for key, value in named.items() if value.size and key not in skip}


def instance(name, seed):
    """A random setting, rewards, noise and words; many have equal means, so that arms tie."""
    rng = np.random.default_rng([NAMES.index(name), seed])
    n_arms, horizon = (
        int(rng.integers(1, 9)),
        int(rng.integers(1, LONGEST.get(name, 1000) // (1 if COMPILED else 5))),
    )
    means = rng.choice([0.0, 0.2, 0.5, 0.9, 1.0], n_arms) if seed % 2 else rng.random(n_arms)
    kind = ["bernoulli", "beta", "gaussian"][seed % 3]
    table = {
        "bernoulli": lambda: (rng.random((horizon, n_arms)) < means).astype(float),
        "beta": lambda: rng.beta(1.0 + 4.0 * means, 5.0 - 4.0 * means, (horizon, n_arms)),
        "gaussian": lambda: rng.normal(means, 0.3, (horizon, n_arms)),
    }[kind]()
    return SimpleNamespace(
        n_arms=n_arms,
        horizon=horizon,
        epsilon=float(rng.choice(EPSILONS)),
        random_ties=bool(rng.random() < 0.5),
        options={option: drawn(row, rng) for option, row in POLICIES[name].options.items()},
        table=table,
        noise=rng.laplace(size=horizon),
        ties=rng.integers(0, 2**64, horizon, dtype=np.uint64),
        rng=rng,
    )


def drawn(option, rng):
    """A random value of an option."""
    if option.kind == "flag":
        return bool(rng.random() < 0.5)
    if option.kind == "choice":
        return str(rng.choice(option.choices))
    high = min(option.high, 8)  # joint draws are slow in plain Python
    value = option.low + (high - option.low) * rng.random() * (rng.random() < 0.7)
    return round(value) if option.kind == "integer" else float(value)


# ----------------------------------------------------------------------------------------------------------
# The same choices as plain Python
# ----------------------------------------------------------------------------------------------------------


@policies
@pytest.mark.parametrize("part", range(5))
def test_every_choice_is_that_of_the_plain_twin(name, part):
    """On 200 random instances, round by round; and many rounds at once end in the same state, to the bit."""
    for seed in range(part, N_INSTANCES, 5):
        case = instance(name, seed)
        setting = case.n_arms, case.horizon, case.epsilon
        twin = naive_bandits.make(
            name,
            *setting,
            ties="random" if case.random_ties else "first",
            own=naive_bandits.own_words(SEED, 0),
            **case.options,
        )
        state = make_state(name, case.n_arms, 1, *setting[1:], **case.options)
        tape = case.table, case.noise, case.ties
        arms, _ = step_by_step(name, state, *tape, random_ties=case.random_ties)
        assert arms == naive_bandits.play(twin, *tape), seed
        assert state.pulls[:, 0].tolist() == twin.pulls
        np.testing.assert_allclose(state.reward_sum[:, 0], [sum(x) for x in twin.rewards], atol=1e-9)
        again = make_state(name, case.n_arms, 1, *setting[1:], **case.options)
        edges = [0, *np.sort(case.rng.integers(0, case.horizon + 1, 6)).tolist(), case.horizon]
        for first, end in itertools.pairwise(edges):
            part_of = given_tape(*(x[first:end] for x in tape))
            KERNELS[name].advance(again, part_of, first, end, case.random_ties)
        assert arrays_of(again) == arrays_of(state)


def test_the_instances_of_that_test_are_what_they_should_be():
    """Arms are dropped, sums leave their range, arms tie."""
    dropped = clipped = tied = 0
    for seed in range(N_INSTANCES):
        dropped += end_of("dp-se", instance("dp-se", seed)).survivors[0] < instance("dp-se", seed).n_arms
        case = instance("dp-klucb", seed)
        plain, free, drawn = (
            end_of("dp-klucb", case, random_ties, clip_sums=clip_sums).pulls.tolist()
            for clip_sums, random_ties in ((True, False), (False, False), (True, True))
        )
        clipped += plain != free
        tied += plain != drawn
    assert min(dropped, clipped, tied) >= N_INSTANCES // 20 or not COMPILED


@policies
@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
def test_lanes_are_replicates_with_tape_of_their_own(name, kind):
    """Lane w of a block that begins at replicate 3 is the twin's replicate 3 + w, rewards by address."""
    horizon, means, lanes = (100 if name == "lazy-dp-ts" else 400), [0.7, 0.4, 0.6], 3
    sigma = None if kind == "bernoulli" else 0.25
    mean = np.repeat(np.array(means)[:, None], lanes, axis=1)
    tape = rewards.make_tape(mean, 64, rewards.BERNOULLI if kind == "bernoulli" else rewards.GAUSSIAN)
    streams = rewards.make_streams(stream_key(SEED), 3, lanes)
    state = make_state(name, 3, lanes, horizon, 2.0, first=3)
    for first in range(0, horizon, 64):
        end = min(first + 64, horizon)
        rewards.fill_tape(tape, streams, end - first, 0.0 if sigma is None else sigma)
        KERNELS[name].advance(state, tape, first, end, True)
    for lane in range(lanes):
        own = naive_bandits.own_words(SEED, 3 + lane)
        twin = naive_bandits.make(name, 3, horizon, 2.0, ties="random", own=own)
        naive_bandits.play(twin, *naive_bandits.tape(SEED, 3 + lane, horizon, means, sigma=sigma))
        assert state.pulls[:, lane].tolist() == twin.pulls
        np.testing.assert_allclose(state.reward_sum[:, lane], [sum(x) for x in twin.rewards], rtol=1e-9)


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, math.inf]), min_size=1, max_size=9), st.integers(0, 2**64 - 1)
)
@TIGHT
def test_ties_are_broken_as_in_the_twin(scores, word):
    table = np.array(scores)[:, None]
    for random_ties, ties in ((False, "first"), (True, "random")):
        twin = naive_bandits.Policy(len(scores), ties)
        assert batches.best(table, 0, np.uint64(word), random_ties) == twin.best(scores, word)


@policies
@given(st.lists(st.integers(0, 3), max_size=600), st.sampled_from([0.5, 8.0, math.inf]))
@settings(max_examples=50 if COMPILED else 10)
def test_arms_that_were_not_asked_for_do_no_harm(name, arms, epsilon):
    """Rewards of any arms in any order: batches add up, every arm gets its first pull, someone can go on."""
    state, drawn_arms = make_state(name, 4, 1, 1000, epsilon), naive_bandits.draws(name)
    for t, arm in enumerate(arms):
        KERNELS[name].update(state, 0, t, arm, 0.5, 0.1)
        chosen = KERNELS[name].choose(state, 0, t + 1, np.uint64(0), False)
        assert 0 <= chosen < 4
        if name == "dp-se":
            assert state.alive[chosen, 0]
        elif not drawn_arms and all(arm < 0 for arm in getattr(state, "current", ())):
            assert chosen == min(range(4), key=lambda a: (state.pulls[a, 0] > 0, a)) or state.pulls.all()
    assert state.pulls[:, 0].tolist() == [arms.count(arm) for arm in range(4)]
    if name == "dp-klucb":
        waiting = state.length - state.left
        assert (state.private_n + waiting == state.pulls).all()
        assert (state.private_n == state.length - 1).all()


# ----------------------------------------------------------------------------------------------------------
# Privacy
# ----------------------------------------------------------------------------------------------------------


def dyadic(name, seed):
    """An instance whose sums are exact: rewards in steps of 1/16, noise of 2^-20, eps a power of 2."""
    case = instance(name, seed)
    if name == "dp-se":  # few arms, so that epochs end
        case.n_arms = min(case.n_arms, 2)
        case.table = case.table[:, : case.n_arms]
    case.epsilon = float(case.rng.choice([0.125, 1.0, 8.0]))
    case.table = np.clip(np.round(case.table * 16) / 16, 0.0, 1.0)
    case.noise = np.round(case.noise * 2**20) / 2**20
    return case


def private_part(name, state):
    """All that choices may depend on."""
    kept = arrays_of(state)
    hidden = ("reward_sum", "batch_sum", "fresh_sum")  # of rewards that were not released yet
    return {key: value for key, value in kept.items() if key not in hidden}


@policies
def test_one_reward_is_hidden_by_one_draw(name):
    """Change one reward and move the one draw it is released with: nothing that is decided on changes.

    If a reward changes by d, the draw must move by d eps in units of a standard Laplace density, whose
    likelihood then changes by a factor of at most e^(|d| eps) <= e^eps: this is eps-privacy, exactly. A
    reward that entered two releases or that a choice saw, or noise of half the scale, would be seen.
    """
    hidden, n = 0, N_INSTANCES // (3 if name == "dp-se" else 1)
    for seed in range(n):
        case = dyadic(name, seed)
        setting = case.n_arms, 1, case.horizon, case.epsilon
        state = make_state(name, *setting, **case.options)
        arms, released = step_by_step(name, state, case.table, case.noise, case.ties)
        round_ = int(case.rng.integers(case.horizon))
        arm = arms[round_]
        old, new = case.table[round_, arm], float(case.rng.integers(17)) / 16.0
        table, noise = case.table.copy(), case.noise.copy()
        table[round_, arm] = new
        when = [t for t in released if t >= round_ and arms[t] == arm]
        if when:
            noise[when[0]] += (old - new) * case.epsilon
            hidden += old != new
        other = make_state(name, *setting, **case.options)
        assert step_by_step(name, other, table, noise, case.ties) == (arms, released)
        assert private_part(name, other) == private_part(name, state)
    assert hidden > n // 4 or not COMPILED


RELEASES = {
    "dp-klucb": (1, 255, 8),
    "dp-se": (2, None, 1),
    "adap-ucb": (1, 256, 1),
    "lazy-dp-ts": (1, 255, 1),
}


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_noise_of_a_private_sum(name, epsilon):
    """Over 8,000 replicates whose rewards are all 0: each release adds a variance of 2/eps^2.

    The sample variance of r Laplace draws has a relative standard error of sqrt((2 + 3/r)/8000) <= 0.025; six
    of them are exceeded with a probability below 1e-8, and half the noise would be 30 off. A single release
    also follows the law, by Kolmogorov-Smirnov at p > 1e-6.
    """
    n_arms, horizon, releases = RELEASES[name]
    lanes = 8000 if COMPILED else {"dp-se": 10, "lazy-dp-ts": 40}.get(name, 200)
    options = {"clip_sums": False} if name == "dp-klucb" else {}
    state = make_state(name, n_arms, lanes, 1000, epsilon, **options)
    if name == "dp-se":
        horizon = 2 * int(state.length[0])  # the first epoch of two arms
    rows = 128
    tape = rewards.make_tape(np.zeros((n_arms, lanes)), rows, rewards.BERNOULLI)
    streams = rewards.make_streams(stream_key(SEED), 0, lanes)
    for first in range(0, horizon, rows):
        end = min(first + rows, horizon)
        rewards.fill_tape(tape, streams, end - first, 1.0)
        KERNELS[name].advance(state, tape, first, end, False)
    assert (state.reward_sum == 0.0).all()
    assert (state.pulls == horizon // n_arms).all()
    if name == "dp-se":
        assert (state.epoch == 2).all()
        sums = state.mean[0] * (horizon // 2)
    else:
        sums = state.private_sum[0]
    standard = sums * epsilon
    allowed = 6.0 * math.sqrt((2.0 + 3.0 / releases) / lanes)
    assert standard.var() / (2.0 * releases) == pytest.approx(1.0, abs=allowed)
    assert abs(standard.mean()) < 6.0 * math.sqrt(2.0 * releases / lanes)
    if releases == 1:
        assert stats.kstest(standard, "laplace").pvalue > 1e-6


# ----------------------------------------------------------------------------------------------------------
# Regret
# ----------------------------------------------------------------------------------------------------------

MEANS = np.array([0.75, 0.625, 0.5, 0.375, 0.25])
REGRETS = {  # at eps 1, 0.25, 0.1, of 40 replicates: an independent implementation of the same policies
    "dp-klucb": (119.0, 277.0, 629.0),
    "dp-se": (3261.0, 3437.0, 4428.0),
    "adap-ucb": (1314.0, 2867.0, 4813.0),
    "lazy-dp-ts": (570.0, 1902.0, 3896.0),
}


def regrets(name, means, epsilon, n_replicates, horizon=100_000, lanes=16, rows=1000, **options):
    """The pseudo-regret of each replicate."""
    pulls = []
    for first in range(0, n_replicates, lanes):
        state = make_state(name, len(means), lanes, horizon, epsilon, first=first, **options)
        tape = rewards.make_tape(np.repeat(means[:, None], lanes, axis=1), rows, rewards.BERNOULLI)
        streams = rewards.make_streams(stream_key(SEED), first, lanes)
        for t in range(0, horizon, rows):
            rewards.fill_tape(tape, streams, rows, 1.0)
            KERNELS[name].advance(state, tape, t, t + rows, True)
        pulls.append(state.pulls)
    return (means.max() - means) @ np.hstack(pulls)


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", REGRETS)
@pytest.mark.parametrize("which", range(3))
def test_regret_is_the_reference(name, which):
    """Mean regret within 10% of the reference, arms permuted, and but for lazy-dp-ts with the best first.

    400 replicates (32 for lazy-dp-ts) leave a standard error of at most 1.5% (2% for dp-klucb, whose tail is
    long), and the true means lie within 3.6% of the reference, for dp-klucb at eps = 0.1 within 6.4%. So a
    run with another seed fails with a probability below 1e-3.
    """
    epsilon, expected = (1.0, 0.25, 0.1)[which], REGRETS[name][which]
    slow = name == "lazy-dp-ts"
    for order in ([3, 1, 4, 0, 2], [0, 1, 2, 3, 4])[: 1 if slow else 2]:
        found = regrets(name, MEANS[order], epsilon, 32 if slow else 400)
        assert found.mean() == pytest.approx(expected, rel=0.1)


@pytest.mark.compiled
def test_keeping_sums_in_range_helps():
    """The source's policy loses the best arm in some of 800 replicates, and clipping spares most of that."""
    free, clipped = (
        regrets("dp-klucb", MEANS, 0.1, 800, 20_000, clip_sums=clip_sums) for clip_sums in (False, True)
    )
    assert clipped.max() < 0.8 * free.max()
    assert clipped.mean() < free.mean()
