"""Epsilon when the game is solved again without a record: what a plain script finds that does it by hand."""

from __future__ import annotations

import io
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests import real_columns

from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.gaussian import GaussianGame
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.release.composition import resolve

BOUNDS = {"beauty.wage": (0, 100), "card.wage": (0, 3000)}


@pytest.mark.compiled
@pytest.mark.parametrize("name", BOUNDS)
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
    assert profile.resolved_epsilon() == pytest.approx(worst, rel=1e-12)
    assert worst > profile.realised_epsilon
    found = resolve(profile)
    assert found.records == 25
    assert found.epsilon == pytest.approx(worst, rel=1e-12)
    assert profile.composed(len(values)).removal < found.composed


def small(values=(160, 171, 172, 172, 175, 176, 180, 183)):
    return Histogram.from_values(values, 21, bounds=(140, 220))


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
