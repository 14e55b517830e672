"""Noised losses are epsilon-locally private: exact log-likelihood ratios, and what else could tell."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from scipy import stats
from tests import naive

from equinoise.efb import Report, Server, Strategy, User
from equinoise.games import from_nested

N = 100_000 if not numba.config.DISABLE_JIT else 2000
TREE, _ = from_nested([[[[0.1], [0.2, 0.4]], [[0.5], [0.6]], 0.9], [0.3]])
SEED = 41


def laplace_user(epsilon, **options):
    """A device that noises losses, for simulations unless it is told otherwise."""
    return User(TREE, epsilon, mechanism="laplace", **{"noise": "float"} | options)


def the_strategy(trial=0):
    """The root's first action and one at each of the two infosets below it."""
    return Strategy(trial, [0, 1, 2], [0, 3, 4])


def reports(user, last_action, loss, n=N):
    """The values of n reports, float64[n, 3], each for a trial of its own."""
    given, drawn = the_strategy(), []
    for trial in range(n):
        object.__setattr__(given, "trial", trial)  # a new strategy each time would be most of the work
        drawn.append(user.report(given, last_action, loss).values)
    return np.array(drawn)


def means(last_action, loss):
    """What a report would be without noise."""
    return np.where(the_strategy().actions == last_action, loss, 0.0)


def scale_of(values, mean):
    """The scale of the noise in reports, exactly: against standard draws from the addressed words."""
    standard = np.array([naive.noise(values.shape[1], 1.0, SEED, trial) for trial in range(200)])
    ratio = (values[:200] - mean) / standard
    assert np.ptp(ratio[:, mean == 0.0]) <= 1e-12 * ratio.max()
    return float(np.median(ratio[:, mean == 0.0]))


def largest_ratio(values, ours, theirs, scale):
    """The largest log-likelihood ratio of reports between two environments' means."""
    return float(
        np.abs(naive.log_density(values, ours, scale) - naive.log_density(values, theirs, scale)).max()
    )


PAIRS = [((3, 1.0), (4, 1.0)), ((3, 0.25), (0, 0.75)), ((4, 0.0), (4, 1.0)), ((0, 1.0), (0, 1.0))]


def worst_ratio(user, n=N):
    """The largest ratio over pairs of environments that differ in last action and loss, reports of both."""
    worst = 0.0
    for ours, theirs in PAIRS:
        for told, other in ((ours, theirs), (theirs, ours)):
            values = reports(user, *told, n=n // (2 * len(PAIRS)))
            scale = scale_of(values, means(*told))
            worst = max(worst, largest_ratio(values, means(*told), means(*other), scale))
    return worst


@pytest.mark.parametrize("epsilon", [1.0])
def test_the_log_likelihood_ratio_is_at_most_epsilon(epsilon):
    """Over 30,000 reports; it also comes close to epsilon, so the noise is no larger than it must be."""
    worst = worst_ratio(laplace_user(epsilon, seed=SEED), n=30_000)
    assert epsilon * (1 - 1e-9) <= worst <= epsilon + 1e-9


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 4.0, 50.0])
def test_so_it_is_for_other_epsilons(epsilon):
    worst = worst_ratio(laplace_user(epsilon, seed=SEED), n=8000)
    assert epsilon * (1 - 1e-6) <= worst <= epsilon + 1e-9


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_half_the_noise_fails(epsilon):
    """The same check on a device whose noise is half as wide as its epsilon asks for."""
    half = laplace_user(2 * epsilon, seed=SEED)
    assert worst_ratio(half, n=8000) > 1.9 * epsilon


def test_noise_on_some_actions_only_would_be_seen():
    """A report with a clean value has a density that the other environment's lacks."""
    for epsilon in (1e-3, 1.0, 700.0, 1e6):
        values = reports(laplace_user(epsilon, seed=SEED), 3, 1.0, n=500)
        noise = values - means(3, 1.0)
        assert (noise != 0).all()
        assert len(np.unique(noise[:, [0, 2]])) == 1000


def test_noise_is_laplace_and_independent():
    """Kolmogorov-Smirnov on each action at p > 1e-6; correlations of values and of sizes within 6 sigma."""
    n = N // 5
    values = reports(laplace_user(2.0, seed=SEED), 4, 0.5, n=n) - means(4, 0.5)
    for column in values.T:
        assert stats.kstest(column, "laplace").pvalue > 1e-6  # 2/epsilon = 1
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 6 / math.sqrt(n)
        assert np.abs(column).mean() == pytest.approx(1.0, abs=6 / math.sqrt(n))
    for table in (values, np.abs(values), values > 0):
        off = np.corrcoef(table.T.astype(float))[np.triu_indices(3, 1)]
        assert np.abs(off).max() < 6 / math.sqrt(n)


@pytest.mark.parametrize("trial", [0, 1, 77])
def test_noise_does_not_depend_on_what_is_noised(trial):
    user = laplace_user(1.0, seed=SEED)
    clean = user.report(the_strategy(trial), 3, 0.0).values
    for last_action in (0, 3, 4):
        for loss in (0.0, 0.25, 1.0):
            values = user.report(the_strategy(trial), last_action, loss).values
            mine = means(last_action, loss) > 0
            assert values[~mine].tolist() == clean[~mine].tolist()
            np.testing.assert_allclose(values - means(last_action, loss), clean, rtol=1e-14, atol=1e-15)


def test_a_report_holds_noisy_values_and_nothing_else():
    """Its bytes are made of the trial, the number of values and the values; the user keeps no memory."""
    user = laplace_user(1.0, seed=SEED)
    first = user.report(the_strategy(5), 3, 1.0)
    for trial in range(5):
        user.report(the_strategy(trial), 4, 0.5)
    again = user.report(the_strategy(5), 3, 1.0)
    assert again.to_bytes() == first.to_bytes()
    data = first.to_bytes()
    assert data[-24:] == first.values.astype("<f8").tobytes() and len(data) == 20 + 24
    assert Report(first.trial, first.values).to_bytes() == data
    other_seed = laplace_user(1.0, seed=SEED + 1).report(the_strategy(5), 3, 1.0)
    assert not set(other_seed.values) & set(first.values)
    unseeded = [laplace_user(1.0).report(the_strategy(5), 3, 1.0).values for _ in range(2)]
    assert not set(unseeded[0]) & set(unseeded[1])


def test_no_privacy_is_no_noise():
    for noise in ("float", "secure"):
        for mechanism in ("hashing", "laplace"):
            user = User(TREE, math.inf, mechanism=mechanism, noise=noise)
            report = user.report(the_strategy(), 4, 0.75)
            assert report.values.tolist() == [0.0, 0.0, 0.75] and report.symbol is None


def test_secure_reports():
    """OpenDP's noise on every action: law at p > 1e-6, fresh every time, and its map confirms epsilon."""
    pytest.importorskip("opendp")
    user = User(TREE, 2.0, mechanism="laplace")
    assert user.noise == "secure"
    noise = reports(user, 3, 1.0, n=3000) - means(3, 1.0)
    for column in noise.T:
        assert stats.kstest(column, "laplace").pvalue > 1e-6
    assert np.abs(noise).mean() == pytest.approx(1.0, abs=6 / math.sqrt(noise.size))
    assert np.abs(np.corrcoef(noise.T)[np.triu_indices(3, 1)]).max() < 6 / math.sqrt(len(noise))
    assert len(np.unique(noise)) == noise.size


@pytest.mark.parametrize("mechanism", ["hashing", "laplace"])
def test_the_server_learns_from_reports_alone(mechanism):
    """Two users with other losses whose reports happen to be equal leave equal servers."""
    servers = [Server(TREE, horizon=100, epsilon=1.0, mechanism=mechanism, seed=3) for _ in range(2)]
    for server in servers:
        strategy, before = server.draw(), server.policy.tolist()
        values = np.linspace(-1, 1, len(strategy.actions))
        report = Report(0, symbol=1) if mechanism == "hashing" else Report(0, values)
        server.update(Report.from_bytes(report.to_bytes()))
        assert server.policy.tolist() != before
    assert servers[0].policy.tolist() == servers[1].policy.tolist()
    assert servers[0].draw().actions.tolist() == servers[1].draw().actions.tolist()


def test_opendp_noises_the_values_of_a_secure_report(monkeypatch):
    """All of them, for a sensitivity of 2 and the whole epsilon, anew each time; nothing else leaves."""
    from equinoise.efb.protocol import user as module

    asked = []

    def noised(values, sensitivity, epsilon):
        asked.append((list(values), sensitivity, epsilon))
        return np.asarray(values) + 100.0 * len(asked)

    monkeypatch.setattr(module, "secure_laplace", noised)
    user = User(TREE, 0.7, mechanism="laplace")
    asked.clear()
    for _ in range(2):  # the same strategy of the same trial
        sent = user.report(the_strategy(), 3, 0.5).values
        assert sent.tolist() == [100.0 * len(asked), 100.0 * len(asked) + 0.5, 100.0 * len(asked)]
    assert asked == [([0.0, 0.5, 0.0], 2.0, 0.7)] * 2
