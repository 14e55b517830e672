"""ucb, ucb1, greedy, uniform, private-ucb and its controls: against plain twins, and in lockstep.

Twins keep all rewards and compute every index from them by the formula, so that they differ from the kernels
in the last bits. They must choose alike wherever the best two indices are further apart than that, and where
two indices are equal to the last bit.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from tests import naive, naive_bandits

from equinoise._random import stream_key
from equinoise.bandits import POLICIES, rewards as tapes
from equinoise.bandits.policies import widths
from equinoise.bandits.policies.widths import confidence_at, confidence_table

COMPILED = not numba.config.DISABLE_JIT
LOCKSTEP = [name for name, row in POLICIES.items() if row.tabulated]
NOISED = [name for name in LOCKSTEP if POLICIES[name].needs_epsilon]
N_INSTANCES = 200 if COMPILED else 8
SEED = 41
WORD = np.uint64(0)
policies = pytest.mark.parametrize("name", LOCKSTEP)


def an_instance(name, number):
    """A random instance: arms, rounds, epsilon, options, a first replicate, and how ties are broken."""
    rng = np.random.default_rng([len(name), ord(name[0]), number])
    n_arms = int(rng.integers(1, 7))
    spec = POLICIES[name]
    options = {
        "width": str(rng.choice(["counter", "published"])),
        "counter": str(rng.choice(["k-ary", "binary", "hybrid"])),
    }
    return SimpleNamespace(
        name=name,
        n_arms=n_arms,
        horizon=n_arms + int(rng.integers(0, 40)),
        epsilon=float(np.exp(rng.uniform(-5.0, 7.0))) if spec.needs_epsilon else math.inf,
        options={key: value for key, value in options.items() if key in spec.options},
        means=rng.random(n_arms) if rng.random() < 0.7 else np.full(n_arms, rng.integers(0, 3) / 2),
        sigma=None if rng.random() < 0.7 else 0.5,
        first=int(rng.integers(0, 1000)),
        ties=str(rng.choice(["first", "random"])),
    )


class Lanes:
    """Some replicates of an instance side by side, from its first one on."""

    def __init__(self, case, lanes, *, first=None, n_rounds=None, chunk=7, seed=SEED):
        self.case, self.spec = case, POLICIES[case.name]
        first = case.first if first is None else first
        mean = np.repeat(np.asarray(case.means, dtype=float)[:, None], lanes, axis=1)
        kind = tapes.BERNOULLI if case.sigma is None else tapes.GAUSSIAN
        self.random_ties = case.ties == "random"
        self.tape = tapes.make_tape(mean, chunk, kind, noise=self.spec.needs_noise, ties=self.random_ties)
        self.streams = tapes.make_streams(stream_key(seed), first, lanes)
        arguments = (case.n_arms, case.horizon, case.epsilon)
        n_rounds = case.horizon if n_rounds is None else n_rounds
        tables = self.spec.make_tables(*arguments, n_rounds, case.options)
        words = {"key": stream_key(seed), "first": first}
        setting = case.n_arms, lanes, case.horizon, case.epsilon, case.options
        self.state = self.spec.make_state(*setting, tables=tables, **words)
        self.t = 0

    def draw(self, n_rounds):
        tapes.fill_tape(self.tape, self.streams, n_rounds, self.case.sigma or 0.0)

    def advance(self, n_rounds):
        """Play a chunk in lockstep."""
        self.draw(n_rounds)
        kernels = self.spec.kernels
        kernels.advance(self.state, self.tape, self.t, self.t + n_rounds, self.random_ties)
        self.t += n_rounds

    def step(self):
        """Play a round lane by lane; return the arms."""
        self.draw(1)
        kernels, arms = self.spec.kernels, []
        for lane in range(self.tape.mean.shape[1]):
            word = self.tape.tie[0, lane] if self.random_ties else WORD
            arm = int(kernels.choose(self.state, lane, self.t, word, self.random_ties))
            noise = self.tape.noise[0, lane] if self.spec.needs_noise else 0.0
            reward = tapes.reward_of(self.tape, 0, arm, lane)
            kernels.update(self.state, lane, self.t, arm, reward, noise)
            arms.append(arm)
        self.t += 1
        return arms


def lane_of(state, lane):
    """What one lane's state holds, but for tables and scratch."""
    skip = ("confidence", "widths", "arm", "digit", "pulled", "score", "total", "twice")
    n_lanes = state.pulls.shape[1]
    held = {}
    for name, value in state._asdict().items():
        if name in skip or not isinstance(value, np.ndarray):
            continue
        held[name] = value.reshape(n_lanes, -1)[lane] if name == "totals" else value[:, lane]
    return held


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name in one:
        assert one[name].tobytes() == two[name].tobytes(), name


# ----------------------------------------------------------------------------------------------------------
# Tape
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [None, 0.5])
def test_tape_is_what_its_addresses_say(sigma):
    means = [0.0, 0.3, 0.8, 1.0]
    mean = np.repeat(np.array(means)[:, None], 11, axis=1)
    tape = tapes.make_tape(mean, 40, tapes.BERNOULLI if sigma is None else tapes.GAUSSIAN)
    tapes.fill_tape(tape, tapes.make_streams(stream_key(SEED), 100, 11), 40, sigma or 0.0)
    for lane in (0, 3, 10):
        table, noise, ties = naive_bandits.tape(SEED, 100 + lane, 40, means, sigma=sigma)
        got = [[tapes.reward_of(tape, i, arm, lane) for arm in range(4)] for i in range(40)]
        if sigma is None:
            assert got == table
        else:
            np.testing.assert_allclose(got, table, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(tape.noise[:, lane], noise, rtol=1e-14)
        assert tape.tie[:, lane].tolist() == ties


def test_uniforms_and_laplace_draws_are_those_of_the_package_to_the_bit():
    """What vector code computes by moving bits is what ``_random`` computes by converting integers."""
    from equinoise import _random

    tape = tapes.make_tape(np.full((1, 5), 0.5), 60, tapes.BERNOULLI, ties=False)
    tapes.fill_tape(tape, tapes.make_streams(stream_key(3), 7, 5), 60, 0.0)
    for lane in range(5):
        for values, purpose, draw in ((tape.reward, 5, _random.uniform), (tape.noise, 2, _random.laplace)):
            words = naive.stream(3, 0, 7 + lane, purpose)
            assert values[:, lane].tolist() == [draw(np.uint64(next(words))) for _ in range(60)]


def test_tape_does_not_depend_on_chunks_or_lanes():
    mean = np.full((2, 9), 0.5)
    whole = tapes.make_tape(mean, 30, tapes.BERNOULLI)
    tapes.fill_tape(whole, tapes.make_streams(stream_key(1), 20, 9), 30, 0.0)
    parts, streams, at = (
        tapes.make_tape(mean[:, :4], 16, tapes.BERNOULLI),
        tapes.make_streams(stream_key(1), 23, 4),
        0,
    )
    for n in (1, 16, 0, 13):
        tapes.fill_tape(parts, streams, n, 0.0)
        for name in ("reward", "noise", "tie"):
            assert (getattr(parts, name)[:n] == getattr(whole, name)[at : at + n, 3:7]).all(), name
        at += n


def test_policies_that_take_no_noise_meet_the_same_rewards():
    mean = np.full((1, 3), 0.5)
    rewards = []
    for noise in (True, False):
        tape = tapes.make_tape(mean, 12, tapes.BERNOULLI, noise=noise, ties=noise)
        tapes.fill_tape(tape, tapes.make_streams(stream_key(1), 0, 3), 12, 0.0)
        rewards.append(tape.reward.tolist())
    assert rewards[0] == rewards[1]


def test_given_rewards_are_read_from_their_table():
    tape = tapes.make_tape(np.zeros((3, 2)), 4, tapes.TABLE)
    tape.table[2, 1, 1] = 0.25
    tapes.fill_tape(tape, tapes.make_streams(stream_key(1), 0, 2), 4, 0.0)
    assert tapes.reward_of(tape, 2, 1, 1) == 0.25
    assert tape.reward.tolist() == [[0.0, 0.0]] * 4 and tape.noise.all()


# ----------------------------------------------------------------------------------------------------------
# Against the twins
# ----------------------------------------------------------------------------------------------------------


def too_close(twin, arm, other, t):
    """Whether two indices differ, but by no more than rounding explains."""
    one, two = twin.index(arm, t), twin.index(other, t)
    return 0.0 < abs(one - two) <= 1e-12 * (1.0 + abs(one))


@policies
def test_every_choice_is_the_twins(name):
    """Random instances: the kernel's arms round by round, and the twin's index of what the kernel chose."""
    close = rounds = 0
    for number in range(N_INSTANCES):
        case = an_instance(name, number)
        lanes = Lanes(case, 3)
        table, noise, ties = naive_bandits.tape(
            SEED, case.first + 1, case.horizon, case.means, sigma=case.sigma
        )
        own = naive_bandits.own_words(SEED, case.first + 1)
        setting = case.n_arms, case.horizon, case.epsilon
        twin = naive_bandits.make(name, *setting, ties=case.ties, own=own, **case.options)
        pulls = np.zeros(case.n_arms, dtype=np.int64)
        for t in range(1, case.horizon + 1):
            lanes.advance(1)
            arm = int(np.flatnonzero(lanes.state.pulls[:, 1] - pulls)[0])
            pulls[arm] += 1
            wanted = twin.choose(t, ties[t - 1])
            assert arm == wanted or too_close(twin, arm, wanted, t), (number, t)
            close += arm != wanted
            rounds += 1
            twin.update(t, arm, table[t - 1][arm], noise[t - 1])
        sums = [sum(rewards) for rewards in twin.rewards]
        np.testing.assert_allclose(lanes.state.reward_sum[:, 1], sums, rtol=1e-12, atol=1e-12)
    assert close <= 0.002 * rounds


@policies
@pytest.mark.parametrize("ties", ["first", "random"])
def test_lockstep_is_round_by_round(name, ties):
    """Chunks of many lanes end in the very bits of one lane with choose and update, spare lanes or not."""
    for number in range(20 if COMPILED else 3):
        case = an_instance(name, 1000 + number)
        case.ties = ties
        n_lanes = 1 + number % 19
        many, chunks = Lanes(case, n_lanes), iter([1, 7, 3, 5] * 20)
        while many.t < case.horizon:
            many.advance(min(next(chunks), case.horizon - many.t))
        for lane in {0, n_lanes // 2, n_lanes - 1}:
            one = Lanes(case, 1, first=case.first + lane)
            while one.t < case.horizon:
                one.step()
            assert_same(lane_of(many.state, lane), lane_of(one.state, 0))


@policies
def test_tables_hold_what_is_computed_beyond_them(name):
    """A table for some rounds or for none gives the history of a table for all."""
    for number in range(12 if COMPILED else 3):
        case = an_instance(name, 2000 + number)
        ends = []
        for n_rounds in (case.horizon, case.horizon // 2, 0):
            lanes = Lanes(case, 5, n_rounds=n_rounds)
            while lanes.t < case.horizon:
                lanes.advance(min(7, case.horizon - lanes.t))
            ends.append([lane_of(lanes.state, lane) for lane in range(5)])
        for end in ends[1:]:
            for lane in range(5):
                assert_same(ends[0][lane], end[lane])


def test_without_privacy_private_ucb_is_ucb():
    for counter in ("k-ary", "binary", "hybrid"):
        case = SimpleNamespace(
            name="private-ucb",
            n_arms=4,
            horizon=60,
            epsilon=math.inf,
            options={"width": "counter", "counter": counter},
            means=[0.8, 0.7, 0.6, 0.2],
            sigma=None,
            first=0,
            ties="first",
        )
        private = Lanes(case, 6)
        open_ = Lanes(SimpleNamespace(**{**vars(case), "name": "ucb", "options": {}}), 6)
        for lanes in (private, open_):
            while lanes.t < case.horizon:
                lanes.advance(min(7, case.horizon - lanes.t))
        assert (private.state.pulls == open_.state.pulls).all()


@pytest.mark.parametrize("name", LOCKSTEP)
@pytest.mark.parametrize("n_arms", [1, 3, 4, 5, 8, 9])
def test_arms_never_pulled_come_first_and_ties_go_to_the_first(name, n_arms):
    """With rewards of nothing and no noise all arms stay alike: they are played in turn."""
    case = SimpleNamespace(
        name=name,
        n_arms=n_arms,
        horizon=3 * n_arms,
        epsilon=math.inf if POLICIES[name].needs_noise else 1.0,
        options={},
        means=np.zeros(n_arms),
        sigma=None,
        first=0,
        ties="first",
    )
    lanes = Lanes(case, 2)
    played = []
    before = lanes.state.pulls.copy()
    for _ in range(case.horizon):
        lanes.advance(1)
        played.append(int(np.flatnonzero(lanes.state.pulls[:, 0] - before[:, 0])[0]))
        before = lanes.state.pulls.copy()
    turns = [*range(n_arms)] * 3
    assert played == (turns if name != "greedy" else [*range(n_arms), *[0] * (2 * n_arms)])


def test_random_ties_are_even():
    """Greedy after one pull of each arm, all rewards 0: each of the arms a third of the time."""
    case = SimpleNamespace(
        name="greedy",
        n_arms=3,
        horizon=4,
        epsilon=math.inf,
        options={},
        means=np.zeros(3),
        sigma=None,
        first=0,
        ties="random",
    )
    lanes = Lanes(case, 3000 if COMPILED else 300)
    lanes.advance(4)
    counts = (lanes.state.pulls == 2).sum(axis=1)
    n = counts.sum()
    assert (np.abs(counts - n / 3) < 5 * math.sqrt(n * 2 / 9)).all()  # fails by chance once in 500,000


# ----------------------------------------------------------------------------------------------------------
# Confidence, widths, noise
# ----------------------------------------------------------------------------------------------------------


def test_confidence_is_the_index_of_one_pull():
    """c_t / sqrt(2): for n = 1 and S = 0 it is all there is of the index."""
    for t in (1, 2, 3, 10, 1000, 10**6, 10**12):
        assert confidence_at(2, t) / math.sqrt(2.0) == pytest.approx(
            math.sqrt(math.log(2.0 * (1.0 + t * math.log(t) ** 2)) / 2.0), rel=1e-14
        )
        assert confidence_at(3, t) / math.sqrt(2.0) == pytest.approx(
            math.sqrt(2.0 * math.log(t)), rel=1e-14, abs=1e-300
        )
        assert confidence_at(1, t) == confidence_at(0, t) == 0.0
    table = confidence_table(2, 50)
    assert table.tolist() == [confidence_at(2, t) for t in range(1, 51)]


def noise_of(counter, horizon, epsilon, replicate=0):
    """The twin's counter."""
    if counter == "k-ary":
        return naive_bandits.KaryNoise(horizon, epsilon, naive_bandits.own_words(SEED, replicate))
    return (
        naive_bandits.BinaryNoise(horizon, epsilon)
        if counter == "binary"
        else naive_bandits.HybridNoise(epsilon)
    )


@pytest.mark.compiled
@pytest.mark.parametrize("counter", ["k-ary", "binary", "hybrid"])
@pytest.mark.parametrize("horizon", [1, 2, 15, 16, 17, 1000])
def test_widths_are_the_tail_of_the_counters_noise(counter, horizon):
    """For every number of pulls: the width of the twin's own draws, and the table's column for it."""
    epsilon = 0.3
    privacy = widths.make_privacy(3, horizon, epsilon, "counter", counter, True)
    table = widths.width_table(privacy, horizon)
    noise = noise_of(counter, horizon, epsilon)
    for n in range(1, horizon + 1):
        noise.add(0.0, n, 0)
        t = min(n + 1 + 37 * n % 11, horizon)
        column = widths.kind_of(privacy, n)
        assert table[t - 1, column] == 2.0 * widths.width_at(privacy, n, t)
        if n < 40 or n % 97 == 0 or n & (n - 1) == 0:
            exact = naive_bandits.tail_width(noise.scales, 1.0 / t**2)
            assert widths.width_at(privacy, n, t) == pytest.approx(exact, rel=1e-11)
    assert (table[:, 1:] > 0).all()


@pytest.mark.parametrize("half", [1, 2, 6])
def test_the_kind_of_noise_follows_the_digits(half):
    """Pull by pull, through turns of digits on every level, it is the sum of |digits| as divided out."""
    privacy = widths.make_privacy(3, 5_000, 1.0, "counter", "k-ary", True)._replace(half=half)
    base, kind, fell = 2 * half + 1, 0, 0
    for n in range(1, 5_001):
        digits, rest = [], n
        while rest:
            digits.append((rest + half) % base - half)
            rest = (rest - digits[-1]) // base
        lowest = (n - 1 + half) % base - half
        before, kind = kind, int(widths.next_kind(privacy, kind, n, lowest))
        assert kind == sum(map(abs, digits)) == widths.kind_of(privacy, n)
        fell += lowest == half and kind < before
    assert fell > 10


@pytest.mark.parametrize("epsilon", [1e-100, 1e-6, 400.0, 1e6, math.inf])
def test_widths_are_numbers_at_every_epsilon(epsilon):
    for counter in ("k-ary", "binary", "hybrid"):
        for width in ("counter", "published"):
            privacy = widths.make_privacy(20, 10**6, epsilon, width, counter, True)
            for n, t in ((1, 21), (1023, 10**5), (10**6 - 30, 10**6)):
                w = widths.width_at(privacy, n, t)
                assert 0.0 <= w < math.inf and (w > 0.0) == (epsilon < math.inf)
                one = widths.make_privacy(20, 10**6, 1.0, width, counter, True)
                assert w == pytest.approx(widths.width_at(one, n, t) / epsilon, rel=1e-12)


def test_the_published_width():
    privacy = widths.make_privacy(20, 500, 0.05, "published", "binary", True)
    for n, t in ((1, 21), (25, 21), (25, 500)):
        log_t, log_horizon = math.log(t), math.log(500)
        inside = 20 * 500 * log_horizon * (1.0 + t * log_t**2)
        exact = 20 * log_horizon**2 * math.log(inside) / 0.05
        assert widths.width_at(privacy, n, t) == pytest.approx(exact, rel=1e-13)
    counter = widths.make_privacy(20, 500, 0.05, "counter", "binary", True)
    ratio = widths.width_at(privacy, 25, 500) / widths.width_at(counter, 25, 500)
    assert 80 < ratio < 100  # 34 times Chan, Shi and Song's closed form, which is 2.6 times this tail
    single = widths.make_privacy(1, 1, 0.05, "published", "binary", True)
    assert widths.width_at(single, 1, 1) == 0.0


@pytest.mark.parametrize("counter", ["k-ary", "binary", "hybrid"])
@pytest.mark.parametrize("horizon", [63, 64, 1024] if COMPILED else [64])
def test_the_noise_of_every_sum_is_the_counters(counter, horizon):
    """One arm, pulled for ever: what is in its noised mean beside its rewards, in every round."""
    case = SimpleNamespace(
        name="private-ucb",
        n_arms=1,
        horizon=horizon,
        epsilon=0.7,
        options={"width": "counter", "counter": counter},
        means=[0.4],
        sigma=None,
        first=5,
        ties="first",
    )
    lanes = Lanes(case, 2)
    _, draws, _ = naive_bandits.tape(SEED, 6, horizon, [0.4])
    noise = noise_of(counter, horizon, 0.7, 6)
    for t in range(horizon):
        lanes.advance(1)
        noise.add(draws[t], t + 1, 0)
        state = lanes.state
        inside = state.mean[0, 1] * (t + 1) - state.reward_sum[0, 1]
        assert inside == pytest.approx(noise.total, rel=1e-9, abs=1e-9)


def test_controls_leave_out_their_part():
    """Noise alone has the noised means of private-ucb, width alone the true ones, on the same pulls."""
    case = SimpleNamespace(
        n_arms=1, horizon=20, epsilon=0.5, options={}, means=[0.5], sigma=None, first=0, ties="first"
    )
    ends = {}
    for name in NOISED:
        lanes = Lanes(SimpleNamespace(name=name, **vars(case)), 2)
        lanes.advance(7)
        ends[name] = lanes.state
    true = ends["width-only"].reward_sum / ends["width-only"].pulls
    assert (ends["width-only"].mean == true).all()
    assert (ends["noise-only"].mean == ends["private-ucb"].mean).all()
    assert (ends["noise-only"].mean != true).all()
    assert (ends["noise-only"].widths == 0.0).all() and (ends["width-only"].widths[:, 1:] > 0.0).all()
