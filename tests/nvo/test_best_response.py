"""Best response: equilibria by the definition, the path of the plain dynamics, the state between turns."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor

import numba
import numpy as np
import pytest
from tests import naive_nvo as naive
from tests.real_columns import COLUMNS, column as real_column

from equinoise import replicates
from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.search import dynamics
from equinoise.nvo.search.kernels import response, response_state as _state

COMPILED = not numba.config.DISABLE_JIT


def some(n):
    """Return that many seeds; a few where kernels run in Python."""
    return range(n if COMPILED else n // 25)


def histogram_of(bins, n_bins):
    """Return a histogram whose values fall into these bins."""
    values = (np.asarray(bins) + 0.5) / n_bins
    return Histogram.from_values(values, n_bins, bounds=(0.0, 1.0), range_epsilon=1e15)


def small_game(seed, *, largest_n=9, smallest=0.01):
    rng = np.random.default_rng([41, seed])
    n_bins, n_scales, n = rng.integers(2, 8), rng.integers(2, 5), rng.integers(2, largest_n + 1)
    histogram = histogram_of(rng.integers(0, n_bins, n), n_bins)
    scales = np.exp(rng.uniform(math.log(smallest), math.log(3.0), n_scales))
    epsilon = float(rng.choice([0.02, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0]) * rng.uniform(0.8, 1.2))
    return NoiseGame(histogram, epsilon, scales)


def middle_game(seed):
    """Return a game of up to 300 records with scales of every size, and an epsilon of every size."""
    rng = np.random.default_rng([42, seed])
    n, n_bins = int(rng.integers(2, 300)), int(rng.integers(2, 60))
    bins = np.clip(rng.normal(n_bins / 2, n_bins * rng.uniform(0.05, 0.6), n), 0, n_bins - 1).astype(int)
    scales = 10.0 ** rng.uniform(rng.uniform(-5, -1), 0.7, rng.integers(2, 12))
    epsilon = (
        float(10.0 ** rng.uniform(-4, 1.2)) if seed % 5 else float(rng.choice([20.0, 30.0, 40.0, 700.0]))
    )
    return NoiseGame(histogram_of(bins, n_bins), epsilon, scales), rng


class Play:
    """The kernels, with turns and first options of our own."""

    def __init__(self, game, bins, options):
        noise = game.noise
        self.game, self.n_scales = game, len(game.scales)
        self.setup = dynamics.make_game(noise.decay, noise.total, game.histogram.counts, game.epsilon)
        self.state = dynamics.make_state(self.setup, game.histogram.counts)
        self.width = int(self.setup.of.width)
        self.turns = np.asarray(bins) * self.width + np.asarray(options)
        self.sizes = np.ones(len(self.turns), dtype=np.int64)
        np.add.at(self.state.types[_state.COUNT], self.turns, 1)
        response.begin(self.setup, self.state)

    def play(self, first, last):
        return response.take_turns(self.setup, self.state, self.turns, self.sizes, first, last)

    @property
    def counts(self):
        return self.state.types[_state.COUNT].reshape(-1, self.width)[:, : self.n_scales].copy()

    def records(self):
        return [(int(t) // self.width, int(t) % self.width) for t in self.turns]


def gains(game, counts):
    """Return the largest gain of any single record that moves, from the game's evaluation."""
    base = game.evaluate(counts)
    best = 0.0
    for k, old in zip(*np.nonzero(counts), strict=True):
        for new in range(counts.shape[1]):
            if new != old:
                moved = counts.copy()
                moved[k, old] -= 1
                moved[k, new] += 1
                found = game.evaluate(moved)
                gain = found.n_satisfied - base.n_satisfied - (found.kl - base.kl) / math.log(len(counts))
                best = max(best, gain)
    return best


@pytest.mark.parametrize("start", ["largest", "random"])
@pytest.mark.parametrize("seed", some(250))
def test_no_single_record_can_gain(seed, start):
    game = small_game(seed)
    profile = game.best_response(seed=seed, start=start)
    mass, records = naive.kernel(game.histogram.n_bins, game.scales), naive.records(profile.counts)
    assert profile.converged
    assert profile.n_satisfied == naive.satisfied(mass, records, game.epsilon)
    for t in set(records):
        _, gain = naive.best_move(mass, records, records.index(t), game.epsilon)
        assert gain < 1e-10


@pytest.mark.parametrize("seed", some(100))
def test_every_turn_takes_a_best_option(seed):
    game = small_game(seed, largest_n=14, smallest=0.003)
    rng = np.random.default_rng(seed)
    bins, options = rng.permutation(game.histogram.bin_of), rng.integers(0, len(game.scales), game.n)
    play, mass = Play(game, bins, options), naive.kernel(game.histogram.n_bins, game.scales)
    ended, still, turn = False, 0, 0
    while not ended:
        i, before = turn % game.n, play.records()
        ended = play.play(i, i + 1)
        after = play.records()
        assert after[:i] + after[i + 1 :] == before[:i] + before[i + 1 :] and after[i][0] == before[i][0]
        _, best = naive.best_move(mass, before, i, game.epsilon)
        gain = naive.payoff(mass, after, game.epsilon) - naive.payoff(mass, before, game.epsilon)
        assert gain > 0.0 or after == before  # ties keep what is there
        assert gain == pytest.approx(best, abs=1e-11)
        still, turn = 1 if after != before else still + 1, turn + 1
        assert ended == (still == game.n)
        assert turn < 100 * game.n


@pytest.mark.parametrize("seed", some(300))
def test_the_state_is_true_after_every_turn(seed):
    """What is kept from move to move, against the evaluation from scratch, in games of all magnitudes."""
    game, rng = middle_game(seed)
    bins, options = rng.permutation(game.histogram.bin_of), rng.integers(0, len(game.scales), game.n)
    play = Play(game, bins, options)
    payoff = -math.inf
    for last in np.unique(rng.integers(0, game.n + 1, 6)):
        play.play(max(0, last - 30), last)
        state, counts = play.state, play.counts
        found = game.evaluate(counts)
        assert (counts.sum(axis=1) == game.histogram.counts).all()
        n_bins, pmf = len(counts), found.pmf
        released = state.bins[_state.RELEASED, :n_bins] / game.n
        np.testing.assert_allclose(released, pmf, rtol=1e-10, atol=0)
        assert game.n - state.now.unsatisfied == found.n_satisfied
        rare = state.types[_state.RARE, : state.length[_state.RARE]]
        satisfied = np.ones(play.width * n_bins, dtype=np.int64)
        satisfied[rare] = state.types[_state.SATISFIED, rare]
        known = satisfied.reshape(n_bins, -1)[:, : play.n_scales][counts > 0]
        assert (known == found.satisfied[counts > 0]).all()
        used = np.flatnonzero(state.types[_state.COUNT])
        assert sorted(state.types[_state.USED, : state.length[_state.USED]]) == used.tolist()
        assert found.payoff >= payoff - 1e-9
        payoff = found.payoff


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(30))
def test_equilibria_of_larger_games(seed):
    game, _ = middle_game(1000 + seed)
    for start in ("largest", "random"):
        profile = game.best_response(seed=seed, start=start)
        assert profile.converged
        assert gains(game, profile.counts) < 1e-11


def test_from_a_feasible_start_feasibility_is_never_left():
    for seed in some(1000):
        game = small_game(5000 + seed, largest_n=30)
        largest = np.zeros((game.histogram.n_bins, len(game.scales)), dtype=np.int64)
        largest[:, np.argmax(game.scales)] = game.histogram.counts
        feasible = game.evaluate(largest).n_satisfied == game.n
        profile = game.best_response(seed=seed)
        assert profile.certified or not feasible
        assert profile.payoff >= game.evaluate(largest).payoff - 1e-12
        assert profile.certified == (profile.realised_epsilon <= game.epsilon)


def test_a_large_largest_scale_does_not_make_every_equilibrium_private():
    """Two records at opposite ends: all-small is an equilibrium with nobody satisfied."""
    game = NoiseGame(histogram_of([0, 10], 11), 1.0, [0.02, 1.0])
    assert game.best_response().certified
    small = np.zeros((11, 2), dtype=np.int64)
    small[[0, 10], 0] = 1
    stuck = game.best_response(start=small)
    assert (stuck.counts == small).all() and stuck.n_satisfied == 0 and stuck.converged
    assert gains(game, small) == 0.0
    assert stuck.realised_epsilon == pytest.approx(10 / 11 / 0.02 - math.log(2), rel=1e-9)


def test_seeds_restarts_and_executors():
    game, _ = middle_game(7) if COMPILED else (small_game(7), None)
    several = [game.best_response(seed=3, start="random", restarts=n) for n in (1, 2, 5, 8)]
    assert several[0].payoff <= several[1].payoff <= several[2].payoff <= several[3].payoff
    again = game.best_response(seed=3, start="random", restarts=8)
    assert (again.counts == several[3].counts).all() and again.seed == 3
    with ProcessPoolExecutor(2) as pool:
        elsewhere = game.best_response(seed=3, start="random", restarts=8, executor=pool)
    assert (elsewhere.counts == several[3].counts).all()
    found = dynamics.run(game.noise, game.histogram.counts, game.epsilon, None, 3, 10_000, n_replicates=8)
    assert len({counts.tobytes() for counts, _, _ in found}) > 1 or not COMPILED
    assert game.best_response(seed=None).certified


def test_ctrl_c_gives_the_best_of_the_runs_that_are_done(monkeypatch):
    """Of nine runs in several blocks those of one block alone."""
    game, put = small_game(3), replicates._Joined.put

    def once(self, *block):
        put(self, *block)
        raise KeyboardInterrupt

    monkeypatch.setattr(replicates._Joined, "put", once)
    with pytest.warns(UserWarning, match="the search was interrupted: this is the best profile so far"):
        found = game.best_response(seed=4, start="random", restarts=9)
    monkeypatch.undo()
    assert not found.converged and found.counts.sum() == game.n
    assert game.best_response(seed=4, start="random", restarts=9).payoff >= found.payoff
    assert game.best_response(seed=4, start="random", restarts=9).converged


def test_restarts_are_kept_and_go_on(tmp_path):
    game = small_game(3)
    whole = game.best_response(seed=4, start="random", restarts=5)
    game.best_response(seed=4, start="random", restarts=3, resume=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    kept = game.best_response(seed=4, start="random", restarts=5, resume=tmp_path)
    np.testing.assert_array_equal(kept.counts, whole.counts)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    for other, words in (
        ({"seed": 5}, "seed differs"),
        ({"max_rounds": 7}, "max_rounds is 10000 there and 7 here"),
    ):
        with pytest.raises(ValueError, match=f"of another: {words}"):
            game.best_response(**{"seed": 4, "start": "random", "resume": tmp_path} | other)


def test_random_starts_are_uniform():
    """Six standard errors of a multinomial count."""
    counts = np.array([40_000, 0, 20_000])
    out = np.zeros(3 * 8, dtype=np.int64)
    response.draw_types(np.array([1, 2], dtype=np.uint64), 0, 8, 3, counts, out)
    drawn = out.reshape(3, 8)
    assert (drawn.sum(axis=1) == counts).all() and not drawn[:, 3:].any()
    for k in (0, 2):
        assert (np.abs(drawn[k, :3] - counts[k] / 3) < 6 * math.sqrt(counts[k] * 2 / 9)).all()


def test_orders_are_uniform():
    seen = {}
    for nth in range(6000):
        turns, sizes = np.arange(3), np.arange(3) + 10
        response.shuffle(np.array([5, 6], dtype=np.uint64), 0, nth, turns, sizes)
        assert (sizes == turns + 10).all()
        seen[tuple(turns.tolist())] = seen.get(tuple(turns.tolist()), 0) + 1
    assert len(seen) == 6
    assert all(abs(times - 1000) < 6 * math.sqrt(1000 * 5 / 6) for times in seen.values())


def test_groups_make_up_the_counts():
    counts = np.array([0, 7, 6, 1, 0, 3])
    turns, sizes = dynamics._groups(counts, 3)
    assert turns.tolist() == [1, 1, 1, 2, 2, 3, 5] and sizes.tolist() == [3, 3, 1, 3, 3, 1, 3]


@pytest.mark.compiled
@pytest.mark.parametrize("start", ["largest", "random"])
def test_many_records_move_in_groups_to_an_equilibrium(start):
    rng = np.random.default_rng(9)
    values = np.concatenate([rng.normal(size=200_000), [6.0, 6.1, -7.0]])
    game = NoiseGame(Histogram.from_values(values, 40), 0.5)
    profile = game.best_response(start=start)
    assert profile.certified and profile.converged
    assert gains(game, profile.counts) < 1e-12
    assert profile.kl < 1e-3


@pytest.mark.compiled
def test_groups_stop_where_they_would_break_a_limit():
    """Far records are hidden by some of the many, who all want less noise: the last that may go has gone."""
    rng = np.random.default_rng(12)
    bins = np.concatenate([np.clip(rng.normal(20, 3, 700_000), 0, 39).astype(int), [99, 93, 87, 0]])
    for epsilon in (0.3, 1.0, 2.0):
        game = NoiseGame(histogram_of(bins, 100), epsilon, [0.1, 0.08, 0.001])
        profile = game.best_response()
        assert profile.certified and profile.converged
        assert profile.realised_epsilon > 0.98 * epsilon
        assert gains(game, profile.counts) < 1e-12


def test_bounds_on_the_factors_of_a_move():
    """Where a bin had no noise before, or nearly all of its noise goes, nothing is known from ratios."""
    near = 1 / 30 / 345.05  # two bins away e^-690.1, which is none
    game = NoiseGame(histogram_of([0] * 5, 30), 1.0, [near, near * 1.001, 0.5, 0.05])
    play = Play(game, [0] * 5, [0] * 5)
    assert play.state.now.empty == 28
    _state.consider(play.setup, play.state, 0, 1, 1)
    assert math.isinf(play.state.now.high)
    wide = Play(game, [0] * 5, [0, 0, 0, 3, 2])
    assert wide.state.now.empty == 0
    _state.consider(wide.setup, wide.state, 2, 0, 1)
    assert wide.state.now.low == 0.0
    assert 1e-9 < (wide.state.bins[_state.RELEASED] + wide.state.bins[_state.CHANGE])[29] < 1e-6
    _state.consider(wide.setup, wide.state, 0, 2, 1)
    assert 0.5 < wide.state.now.low < 1.0 < wide.state.now.high < 3.0


@pytest.mark.compiled
def test_groups_end_about_where_single_records_do(monkeypatch):
    rng = np.random.default_rng(10)
    game = NoiseGame(Histogram.from_values(rng.normal(size=70_000)), 1.0)
    grouped = game.best_response()
    monkeypatch.setattr(dynamics, "_GROUPS", 10**6)
    single = game.best_response()
    assert grouped.certified and single.certified
    assert 0.2 < grouped.kl / single.kl < 5


@pytest.mark.compiled
def test_a_limit_on_rounds_shows():
    game, _ = middle_game(8)
    assert not game.best_response(max_rounds=1).converged
    assert game.best_response(max_rounds=1).rounds == 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("seed", s) for s in (-1, 0.5, "0", True)),
        *(("start", s) for s in ("small", "", [1, 2])),
        *(("restarts", r) for r in (0, 1.0, None)),
        *(("max_rounds", r) for r in (0, 1.5, None)),
        ("executor", "threads"),
        ("progress", 2),
    ],
)
def test_wrong_arguments_are_refused(name, wrong):
    game = small_game(0)
    with pytest.raises((TypeError, ValueError), match=f"{name} must"):
        game.best_response(**{name: wrong})


MOST = {  # KL by epsilon with the paper's scales; KL and cosine with the nearly-zero one too
    "heights": ({1: 0.365, 2: 0.129, 4: 0.0388, 8: 0.0063}, {1: (0.0066, 0.9992), 2: (0.0045, 0.9997)}),
    "beauty.wage": ({1: 1.0194, 2: 0.5433}, {1: (0.0064, 0.9999), 2: (0.0040, 0.9999)}),
    "card.wage": ({1: 0.4830, 2: 0.1881}, {1: (0.0014, 0.9999), 2: (0.0006, 0.9999)}),
}


@pytest.mark.compiled
@pytest.mark.parametrize("start", ["largest", "random"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("column", COLUMNS)
def test_real_columns_with_the_papers_scales(column, seed, start):
    histogram = Histogram.from_values(real_column(column))
    for epsilon, most in MOST[column][0].items():
        game = NoiseGame(histogram, epsilon, "paper")
        profile = game.best_response(seed=seed, start=start)
        assert profile.certified and profile.kl <= most
        assert gains(game, profile.counts) < 1e-11


@pytest.mark.compiled
@pytest.mark.parametrize("column", COLUMNS)
def test_real_columns_with_the_nearly_zero_scale(column):
    """Of the heights the published level: KL 0.0066 at epsilon 1 and 0.0045 at 2."""
    histogram = Histogram.from_values(real_column(column))
    for epsilon, (kl, cosine) in MOST[column][1].items():
        profile = NoiseGame(histogram, epsilon, "extended").best_response(restarts=8)
        assert profile.certified and profile.kl < kl and profile.cosine > cosine


@pytest.mark.compiled
def test_a_million_records():
    rng = np.random.default_rng(11)
    histogram = Histogram.from_values(rng.lognormal(10, 0.6, 10**6))
    profile = NoiseGame(histogram, 1.0).best_response()
    assert profile.certified and profile.converged and profile.kl < 1e-3
