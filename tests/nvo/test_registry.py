"""What is registered: options as the searches take them, and every family of noise against its definition."""

from __future__ import annotations

import inspect
import math
from importlib import import_module

import numpy as np
import pytest
from tests import naive_nvo as naive

from equinoise._checks import checked
from equinoise.nvo import Histogram, NoiseGame
from equinoise.nvo.gaussian import GaussianGame
from equinoise.nvo.pairs import PairGame, PairHistogram
from equinoise.nvo.registry import FAMILIES, SEARCHES

VALUES = [1, 2, 2, 3, 3, 3, 9]


def of(home):
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def a_game(family):
    """A small game of each family, and its noise matrix from the definition."""
    histogram = Histogram.from_values(VALUES, 7)
    scales = [0.5, 0.1]
    if family == "laplace":
        return NoiseGame(histogram, 1.0, scales), naive.kernel(7, scales)
    if family == "gaussian":
        game = GaussianGame(histogram, 1.0, 1e-6, scales)
        raw = [
            [[math.exp(-(((k - x) / 7 / s) ** 2) / 2) for x in range(7)] for s in scales] for k in range(7)
        ]
        return game, [[[m / sum(row) for m in row] for row in rows] for rows in raw]
    pairs = PairHistogram.from_values(VALUES, VALUES[::-1], (3, 4))
    game = PairGame(pairs, 1.0, scales)
    axes = [naive.kernel(part.n_bins, [s * part.sensitivity for s in scales]) for part in pairs.columns]
    matrix = [[[a * b for a in x[v] for b in y[v]] for v in range(2)] for x in axes[0] for y in axes[1]]
    return game, matrix


@pytest.mark.parametrize("name", SEARCHES)
def test_options_are_those_of_the_search(name):
    row = SEARCHES[name]
    taken = inspect.signature(getattr(NoiseGame, row.method)).parameters
    for option, what in row.options.items():
        assert taken[option].default == what.default
    left = set(taken) - set(row.options) - {"self", "seed", "start", "executor", "progress", "resume"}
    assert not left
    assert checked(name, row.options, {}) == {option: what.default for option, what in row.options.items()}


@pytest.mark.parametrize("name", [name for name, row in SEARCHES.items() if row.profile])
def test_a_profile_says_which_search_found_it(name):
    game, _ = a_game("laplace")
    few = {"anneal": {"steps": 50}, "genetic": {"generations": 2, "population": 20}}.get(name, {})
    assert getattr(game, SEARCHES[name].method)(**few).method == SEARCHES[name].label


def test_an_exhaustive_search_is_never_beaten():
    game, _ = a_game("laplace")
    best = game.exhaustive()
    assert best.method == "exhaustive search"
    assert game.lower_bound() <= best.kl <= game.best_response().kl + 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_its_definition(family):
    """Its noise matrix, and what any profile releases and reveals, from one record after another."""
    game, matrix = a_game(family)
    assert isinstance(game, of(FAMILIES[family].game))
    assert isinstance(game.noise, of(FAMILIES[family].noise))
    bins = np.arange(game.noise.n_bins)
    rows = game.noise.rows(bins)
    np.testing.assert_allclose(rows, matrix, rtol=1e-11)
    for x in bins:
        np.testing.assert_allclose(game.noise.column(x), rows[:, :, x], rtol=1e-15)
    counts = np.zeros((len(bins), 2), dtype=np.int64)
    counts[:, 0] = game.histogram.counts // 2
    counts[:, 1] = game.histogram.counts - counts[:, 0]
    profile, records = game.profile(counts), naive.records(counts)
    np.testing.assert_allclose(profile.pmf, naive.release(matrix, records), rtol=1e-11)
    assert profile.kl == pytest.approx(naive.divergence(matrix, records), rel=1e-9)
    worst = max(naive.epsilon_of(matrix, records, i) for i in range(len(records)))
    assert profile.realised_epsilon == pytest.approx(worst, rel=1e-9)
    if game.delta == 0.0:
        assert profile.n_satisfied == naive.satisfied(matrix, records, game.epsilon)
    else:
        assert profile.certified == (profile.realised_delta <= game.delta)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_profile_has_one_face(family):
    game, _ = a_game(family)
    profile = game.uniform(0)
    assert profile.scale_of.tolist() == [game.scales[0]] * 7
    assert list(profile.summary()["n_satisfied"]) == [profile.n_satisfied]
    assert profile.to_frame()["released"].sum() == pytest.approx(1.0)
    assert profile.sd_l1 >= 0.0 and 0.0 <= profile.jaccard <= 1.0 and 0.0 < profile.cosine <= 1.0
    assert profile.plot() is not None
    rows = profile.sample(5, 1, allow_uncertified=True)
    assert np.shape(rows) == ((2, 5) if family == "pairs" else (5,))
    found = profile.certificate()
    assert found["certified"] == profile.certified and len(found["limits"]) == 4
    assert ("delta" in found["promise"]) == (family == "gaussian" and profile.certified)
