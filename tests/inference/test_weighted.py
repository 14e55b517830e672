"""Weighted arm means: exact expectations over every history of small adaptive experiments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from equinoise.inference import arm_means

MEANS = (0.3, 0.6)
GREEDY = 0.4  # probability of a uniform draw


def propensity(arms, rewards):
    """Epsilon-greedy given the past: the better arm so far, an even chance while they are level."""
    mean = [np.mean([y for a, y in zip(arms, rewards, strict=True) if a == arm] or [0.5]) for arm in (0, 1)]
    if mean[0] == mean[1]:
        return [0.5, 0.5]
    best = int(mean[1] > mean[0])
    return [1 - GREEDY / 2 if arm == best else GREEDY / 2 for arm in (0, 1)]


def histories(rounds):
    """Every history with its probability: (arms, rewards, propensities, probability)."""
    for arms in itertools.product((0, 1), repeat=rounds):
        for rewards in itertools.product((0.0, 1.0), repeat=rounds):
            chances = [propensity(arms[:t], rewards[:t]) for t in range(rounds)]
            weight = math.prod(chances[t][arms[t]] for t in range(rounds))
            weight *= math.prod(MEANS[a] if y else 1 - MEANS[a] for a, y in zip(arms, rewards, strict=True))
            yield arms, rewards, chances, weight


@pytest.fixture(scope="module")
def every():
    found = [(arm_means(*history[:3], initial=0.45), history[3]) for history in histories(4)]
    assert sum(weight for _, weight in found) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("name", ["ipw", "aipw"])
def test_unbiased(every, name):
    expected = sum(weight * getattr(result, name) for result, weight in every)
    assert expected == pytest.approx(MEANS, abs=1e-14)


def test_plain_is_biased_downwards(every):
    for arm in (0, 1):
        seen = [(result.plain[arm], weight) for result, weight in every if result.pulls[arm]]
        mean = sum(m * w for m, w in seen) / sum(w for _, w in seen)
        assert mean < MEANS[arm] - 0.01


def test_plain_is_unbiased_without_adaptivity():
    """The same enumeration with even chances: what the test above finds is adaptivity."""
    total = weights = 0.0
    for arms, rewards, _, _ in histories(4):
        likely = math.prod(MEANS[a] if y else 1 - MEANS[a] for a, y in zip(arms, rewards, strict=True))
        result = arm_means(arms, rewards, [[0.5, 0.5]] * 4)
        if result.pulls[0]:
            total, weights = total + likely * result.plain[0], weights + likely
    assert total / weights == pytest.approx(MEANS[0], abs=1e-14)


def test_squared_errors_of_the_unbiased_ones(every):
    """T^2 stderr^2 is the sum of squared deviations; around the true mean its expectation is T^2 variance."""
    for name in ("ipw", "aipw"):
        estimates = np.array([getattr(result, name) for result, _ in every])
        stderr = np.array([getattr(result, f"{name}_stderr") for result, _ in every])
        weight = np.array([w for _, w in every])[:, None]
        error = (estimates - MEANS) ** 2
        # sum (term - mean)^2 = sum (term - truth)^2 - T (mean - truth)^2, and the first has mean T^2 variance
        variance = (weight * error).sum(axis=0)
        assert (weight * (stderr**2 + error / 4)).sum(axis=0) == pytest.approx(variance, abs=1e-14)


def slowly(arms, rewards, chances, initial):
    """All five estimators with plain loops."""
    rounds, n_arms = np.shape(chances)
    out = {name: [] for name in ("plain", "ipw", "hajek", "aipw", "weighted")}
    for a in range(n_arms):
        own, terms, augmented = [], [], []
        for t in range(rounds):
            guess = np.mean(own) if own else initial
            hit = arms[t] == a
            terms.append((1 / chances[t][a] if hit else 0.0, rewards[t]))
            augmented.append(guess + (rewards[t] - guess) / chances[t][a] if hit else guess)
            own += [rewards[t]] if hit else []
        spread = np.std(own, ddof=1) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        out["plain"].append((np.mean(own) if own else math.nan, spread))
        weights = {
            "ipw": ([w * y for w, y in terms], [1.0] * rounds),
            "hajek": ([y for _, y in terms], [w for w, _ in terms]),
            "aipw": (augmented, [1.0] * rounds),
            "weighted": (augmented, [math.sqrt(chances[t][a]) for t in range(rounds)]),
        }
        for name, (values, weight) in weights.items():
            total = sum(weight)
            mean = sum(w * v for w, v in zip(weight, values, strict=True)) / total
            square = sum((w * (v - mean)) ** 2 for w, v in zip(weight, values, strict=True))
            out[name].append((mean, math.sqrt(square) / total))
    return out


def test_against_loops():
    rng = np.random.default_rng(6)
    for rounds, n_arms in [(5, 2), (60, 3), (200, 5)]:
        chances = rng.dirichlet(np.ones(n_arms), rounds).clip(0.01)
        chances /= chances.sum(axis=1, keepdims=True)
        arms = np.concatenate([np.arange(n_arms), rng.integers(0, n_arms, rounds - n_arms)])
        rewards = rng.normal(size=rounds)
        result = arm_means(arms, rewards, chances, initial=0.2)
        for name, pairs in slowly(arms, rewards, chances, 0.2).items():
            mean, stderr = np.array(pairs).T
            assert getattr(result, name) == pytest.approx(mean, rel=1e-10, abs=1e-12)
            assert getattr(result, f"{name}_stderr") == pytest.approx(stderr, rel=1e-10, nan_ok=True)
        assert result.pulls.tolist() == np.bincount(arms, minlength=n_arms).tolist()


def test_an_arm_never_pulled():
    result = arm_means([0], [1.0], [[0.5, 0.5]], initial=0.3)
    assert np.isnan([result.plain[1], result.hajek[1], result.plain_stderr[0]]).all()
    assert result.ipw.tolist() == [2.0, 0.0] and result.aipw.tolist() == pytest.approx([1.7, 0.3])
    assert result.pulls.tolist() == [1, 0]


def test_frame():
    result = arm_means([0, 1, 1, 0], [1.0, 0.0, 1.0, 0.0], [[0.5, 0.5]] * 4)
    frame = result.to_frame()
    assert len(frame) == 10
    row = frame[(frame.estimator == "aipw") & (frame.arm == 1)].iloc[0]
    assert row["mean"] == result.aipw[1] and row.stderr == result.aipw_stderr[1] and row.pulls == 2
    assert row.ci_high - row.ci_low == pytest.approx(2 * 1.96 * row.stderr)


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("arms", ([0, 2], [0.0, 1.0], [[0.5, 0.5]] * 2)),
        ("arms", ([0, -1], [0.0, 1.0], [[0.5, 0.5]] * 2)),
        ("arms", ([0.0, 1.0], [0.0, 1.0], [[0.5, 0.5]] * 2)),
        ("arms", ([0], [0.0, 1.0], [[0.5, 0.5]] * 2)),
        ("rewards", ([0, 1], [0.0, math.nan], [[0.5, 0.5]] * 2)),
        ("rewards", ([0, 1], [0.0], [[0.5, 0.5]] * 2)),
        ("propensities", ([0, 1], [0.0, 1.0], [0.5, 0.5])),
        ("propensities", ([0, 1], [0.0, 1.0], [[0.5, 0.5], [1.0, 0.0]])),
        ("propensities", ([0, 1], [0.0, 1.0], [[0.5, 0.5], [1.1, -0.1]])),
        ("propensities", ([0, 1], [0.0, 1.0], [[0.5, 0.5], [0.5, 0.6]])),
        ("propensities", ([0, 1], [0.0, 1.0], [[0.5, 0.5], [0.5, math.nan]])),
        ("propensities", ([], [], np.empty((0, 2)))),
    ],
)
def test_bad_arguments(argument, arguments):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        arm_means(*arguments)
    with pytest.raises(ValueError, match=r"^initial must"):
        arm_means([0], [1.0], [[1.0]], initial=math.inf)
