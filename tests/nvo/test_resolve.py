"""Epsilon when the game is solved again without a record: what a plain script finds that does it by hand."""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tests import real_columns

from equinoise import replicates
from equinoise.nvo import Histogram, NoiseGame, noise
from equinoise.nvo.gaussian import GaussianGame
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.release.composition import resolve
from equinoise.nvo.search.kernels import moves

BOUNDS = {"beauty.wage": (0, 100), "card.wage": (0, 3000)}


@pytest.mark.compiled
@pytest.mark.parametrize("name", list(BOUNDS))
def test_it_is_what_a_plain_script_finds(name):
    values, bounds = real_columns.column(name), BOUNDS[name]
    histogram = Histogram.from_values(values, bounds=bounds)
    profile = NoiseGame(histogram, 1.0).anneal(seed=3, steps=5_000)
    rarest = sorted(range(len(values)), key=lambda i: histogram.counts[histogram.bin_of[i]])[:25]
    worst, seen = 0.0, {}
    for i in rarest:
        if (k := histogram.bin_of[i]) not in seen:
            less = Histogram.from_values(np.delete(values, i), bounds=bounds)
            seen[k] = NoiseGame(less, 1.0).anneal(seed=3, steps=5_000).pmf
        worst = max(worst, np.abs(np.log(profile.pmf / seen[k])).max())
    assert worst > profile.realised_epsilon
    found = resolve(profile)
    assert found.records == 25
    assert profile.resolved_epsilon() == found.epsilon
    assert found.epsilon == pytest.approx(worst, rel=1e-12)
    assert profile.composed(len(values)).removal < found.composed


def small(values=(160, 171, 172, 172, 175, 176, 180, 183)):
    return Histogram.from_values(values, 21, bounds=(140, 220))


WIDE = small([*range(150, 210, 6), *range(160, 200)])
N_BINS = int((WIDE.counts > 0).sum())


def test_all_rows_are_at_most_as_many_and_all_records_at_least_as_bad():
    profile = NoiseGame(small(), 1.0).best_response(seed=None)
    few, whole = resolve(profile, 2, 10), resolve(profile, None, 10)
    assert few.epsilon <= whole.epsilon < whole.composed <= 10 * whole.epsilon
    assert whole.records == 8
    assert profile.resolved_epsilon(2) == few.epsilon  # the same seed, though it was the system's
    assert profile.resolved_epsilon(100) == whole.epsilon


def test_the_rarest_record_comes_first_and_losses_count_both_ways():
    """Solved again by hand: its bin is then three times as likely, and all others a little less."""
    histogram, tried = small((150,) * 5 + (210,)), []
    profile = NoiseGame(histogram, 1.0).uniform()

    def solve(less):
        k = int(np.flatnonzero(less.counts < histogram.counts)[0])
        tried.append(k)
        pmf = profile.pmf * np.where(np.arange(21) == k, 3.0, 1.0)
        return SimpleNamespace(pmf=pmf / pmf.sum())

    found = resolve(profile, 1, 1, solve=solve)
    assert tried == [histogram.bin_of[5]]
    assert found.epsilon == pytest.approx(math.log(3.0 / (1.0 + 2.0 * profile.pmf[tried[0]])), rel=1e-12)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_moves_with_each_record_and_ctrl_c_ends_it(monkeypatch):
    """Minutes, where there are thousands of bins."""
    from rich.progress import Progress

    shares, profile = [], NoiseGame(small(), 1.0).best_response(seed=3)

    def solve(less):
        if len(shares) > 40:
            raise KeyboardInterrupt
        return NoiseGame(less, 1.0).best_response(seed=3)

    monkeypatch.setattr(Progress, "update", lambda bar, line, completed: shares.append(completed))
    plain = resolve(profile, None, 10)
    assert resolve(profile, None, 10, solve=solve, progress="again") == plain and shares == []  # no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert resolve(profile, None, 10, solve=solve, progress="again") == plain
    assert shares == sorted(shares)
    assert set(shares) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}  # for five bins
    shares += [5.0] * 40
    with pytest.raises(KeyboardInterrupt):
        resolve(profile, None, 10, solve=solve, progress="again")


@pytest.mark.compiled
def test_threads_do_not_matter(monkeypatch):
    """And a bar of what searches on threads tell never goes back, and ends where all are done."""
    from rich.progress import Progress

    shares, profile = [], NoiseGame(WIDE, 1.0, "paper").anneal(seed=3, steps=30_000)

    def solve(less):
        return NoiseGame(less, 1.0, "paper").anneal(seed=3, steps=30_000)

    plain = resolve(profile, None, 10, solve=solve)
    monkeypatch.setattr(Progress, "update", lambda bar, line, completed: shares.append(completed))
    monkeypatch.setattr(sys, "stderr", Terminal())
    for threads, how in product((1, 2, 5), ({}, {"solve": solve})):
        shares.clear()
        with ThreadPoolExecutor(threads) as pool:
            assert resolve(profile, None, 10, executor=pool, progress="again", **how) == plain
        assert min(np.diff([0.0, *shares])) > -1e-9  # sums of shares are rounded
        assert shares[-1] == N_BINS
    told, tick = [], replicates.tick
    monkeypatch.setattr(replicates, "tick", lambda work=0.0: (told.append(work), tick(work)))
    assert resolve(profile, None, 10) == plain
    assert sum(told) == pytest.approx(N_BINS)


def test_two_are_solved_at_a_time_but_by_what_a_user_gives(monkeypatch):
    profile, pair, threads = NoiseGame(WIDE, 1.0).best_response(), threading.Barrier(2, timeout=30), set()
    search = NoiseGame.best_response

    def meet(game, **options):
        pair.wait()
        return search(game, **options)

    def solve(less):
        threads.add(threading.current_thread())
        return search(NoiseGame(less, 1.0))

    plain = resolve(profile, None, solve=solve)
    assert threads == {threading.current_thread()}
    monkeypatch.setattr(NoiseGame, "best_response", meet)
    monkeypatch.setattr(replicates, "workers", lambda executor=None: 2)
    assert resolve(profile, None) == plain


@pytest.mark.parametrize("most", [1, 2])
def test_noise_of_all_that_are_solved_together_is_limited(monkeypatch, most):
    profile, active, seen = NoiseGame(WIDE, 1.0).best_response(), [], []

    def solve(less):
        active.append(less)
        time.sleep(0.02)
        seen.append(len(active))
        active.pop()
        return profile

    size = N_BINS * WIDE.n_bins * len(profile.game.scales)
    monkeypatch.setattr(noise, "_LARGEST", (most + 1) * size - 1)
    with ThreadPoolExecutor(5) as pool:
        assert resolve(profile, None, solve=solve, executor=pool).epsilon == 0.0
    assert len(seen) == N_BINS
    assert max(seen) <= most


def test_no_other_record_is_needed_where_one_is_revealed():
    profile, deadline = NoiseGame(WIDE, 1.0).best_response(), time.monotonic() + 60.0
    first = threading.Event()

    def solve(less):
        if not first.is_set():
            first.set()
            return SimpleNamespace(pmf=np.zeros(WIDE.n_bins))
        while time.monotonic() < deadline:
            replicates.tick()
            time.sleep(0.01)
        raise TimeoutError

    with ThreadPoolExecutor(2) as pool:
        assert math.isinf(resolve(profile, None, solve=solve, executor=pool).composed)


@pytest.mark.compiled
@pytest.mark.parametrize("records", [1, None])
@pytest.mark.parametrize("solve", [None, lambda less: NoiseGame(less, 1.0).anneal(steps=3_000)])
def test_an_interrupted_search_is_no_solution(monkeypatch, records, solve):
    """In this thread or in another one: it returns the best so far."""
    profile, run, calls = NoiseGame(WIDE, 1.0).anneal(steps=3_000), moves.anneal, iter(range(10**9))

    def anneal(*arguments):
        if next(calls) == 3:
            raise KeyboardInterrupt
        run(*arguments)

    monkeypatch.setattr(moves, "anneal", anneal)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        resolve(profile, records, solve=solve)


def test_a_search_that_gave_up_is_solved_again():
    profile = NoiseGame(WIDE, 1.0).best_response(start="random", max_rounds=1)
    assert not profile.converged
    assert resolve(profile, None).epsilon > 0.0


def test_what_only_one_of_them_knows_has_no_epsilon():
    game = NoiseGame(small((150, 150, 150, 210)), 1.0, np.array([1e-5]))
    profile = game.best_response()
    assert math.isinf(profile.resolved_epsilon())
    assert math.isinf(NoiseGame(small((150, 210)), 1.0).best_response().resolved_epsilon())


def test_every_search_and_family_can_be_solved_again():
    for profile in (
        NoiseGame(small(), 1.0).genetic(generations=2),
        GaussianGame(small(), 1.0, 1e-6).solve(),
        PairGame(PairHistogram.from_values([1, 2, 2, 3, 3], [4, 5, 5, 6, 6], 5), 1.0).solve(steps=100),
    ):
        assert profile.resolved_epsilon(2) > 0
    with pytest.raises(
        ValueError, match="profile must be a search's, to be solved again, got 'Laplace, paper'"
    ):
        NoiseGame(small(), 1.0).laplace().resolved_epsilon()
    with pytest.raises(ValueError, match="records must"):
        NoiseGame(small(), 1.0).best_response().resolved_epsilon(0)
