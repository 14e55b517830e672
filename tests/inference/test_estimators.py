"""Estimators of arms' means: exact expectations over every history of small experiments, twins, coverage."""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests import naive_inference as naive

from equinoise.inference import arm_means, estimators, kernels, off_policy_value, z_test

MEANS = (0.3, 0.6)
GREEDY = 0.4  # probability of a uniform draw
KINDS = ("ols", "hajek", "ipw", "uniform", "constant", "two-point")


def propensity(arms, rewards):
    """Epsilon-greedy given the past: the better arm so far, an even chance while they are level."""
    mean = [np.mean([y for a, y in zip(arms, rewards, strict=True) if a == arm] or [0.5]) for arm in (0, 1)]
    if mean[0] == mean[1]:
        return [0.5, 0.5]
    best = int(mean[1] > mean[0])
    return [1 - GREEDY / 2 if arm == best else GREEDY / 2 for arm in (0, 1)]


@pytest.fixture(scope="module")
def every():
    """Every history of four rounds: arms, rewards, propensities, and its probability."""
    found = []
    for arms in itertools.product((0, 1), repeat=4):
        for rewards in itertools.product((0.0, 1.0), repeat=4):
            chances = [propensity(arms[:t], rewards[:t]) for t in range(4)]
            weight = math.prod(chances[t][arms[t]] for t in range(4))
            weight *= math.prod(MEANS[a] if y else 1 - MEANS[a] for a, y in zip(arms, rewards, strict=True))
            found.append((arms, rewards, chances, weight))
    arms, rewards, chances, weight = (np.array(part) for part in zip(*found, strict=True))
    assert weight.sum() == pytest.approx(1.0)
    return arms, rewards, chances, weight


def raw(arms, rewards, chances, kind, initial=0.0):
    """What the kernel computes, before NaN is put where nothing is known: means, and their variances."""
    logged = np.take_along_axis(chances, arms[..., None], 2)[..., 0]
    return estimators.weighted_sums((arms, rewards, logged, chances), 2, kind, initial, 0.5)


@pytest.mark.parametrize("kind", ["ipw", "uniform"])
def test_unbiased_with_an_unbiased_variance(every, kind):
    """T^2 variance is the sum of squares around the true mean, which is that around the mean and T (.)^2."""
    *history, weight = every
    mean, cross = raw(*history, kind, initial=0.45)
    assert weight @ mean == pytest.approx(MEANS, abs=1e-14)
    off = mean - MEANS
    outer = off[:, :, None] * off[:, None, :]
    expected = np.tensordot(weight, outer, 1)
    assert np.tensordot(weight, np.tril(cross + outer / 4), 1) == pytest.approx(np.tril(expected), abs=1e-14)


def test_the_plain_mean_is_biased_downwards(every):
    arms, rewards, _, weight = every
    mean = arm_means(arms, rewards, method="ols").estimate
    for arm in (0, 1):
        seen = ~np.isnan(mean[:, arm])
        assert weight[seen] @ mean[seen, arm] / weight[seen].sum() < MEANS[arm] - 0.01


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(6)
    chances = rng.dirichlet(np.ones(4), (3, 120)).clip(0.02)
    chances /= chances.sum(axis=-1, keepdims=True)
    arms = (rng.random((3, 120, 1)) > chances.cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    return arms, rng.normal(size=(3, 120)) + arms, chances


@pytest.mark.parametrize("kind", KINDS)
def test_against_loops(log, kind):
    arms, rewards, chances = log
    options = {"weights": kind} if kind not in KINDS[:3] else {"method": kind}
    made = arm_means(*log, **options, decay=0.6, initial=0.2)
    for r in range(3):
        mean, cross = naive.arm_estimates(arms[r], rewards[r], chances[r], kind, 0.6, 0.2)
        variance = np.diagonal(cross).copy()
        if kind == "ols":
            pulls = np.bincount(arms[r])
            variance *= pulls / (pulls - 1)
            assert made.estimate[r] == pytest.approx([rewards[r][arms[r] == a].mean() for a in range(4)])
            own = [stats.sem(rewards[r][arms[r] == a]) for a in range(4)]
            assert made.stderr[r] == pytest.approx(own, rel=1e-12)
        assert made.estimate[r] == pytest.approx(mean, rel=1e-11)
        assert made.stderr[r] == pytest.approx(np.sqrt(variance), rel=1e-11)
        apart = made.contrast(3, 1)
        assert apart.estimate[r] == pytest.approx(mean[3] - mean[1], rel=1e-11)
        expected = variance[3] + variance[1] - 2 * (cross[3][1] if kind != "ols" else 0.0)
        assert apart.stderr[r] == pytest.approx(math.sqrt(expected), rel=1e-11)
        alone = arm_means(arms[r], rewards[r], chances[r], **options, decay=0.6, initial=0.2)
        assert (alone.estimate == made.estimate[r]).all() and (alone.stderr == made.stderr[r]).all()


def test_shares_of_the_two_point_rate_add_up_and_fall_back_to_the_constant_one(log):
    constant, two_point = (arm_means(*log, weights=name, decay=0.0) for name in ("constant", "two-point"))
    assert two_point.estimate == pytest.approx(constant.estimate, rel=1e-12)
    assert two_point.stderr == pytest.approx(constant.stderr, rel=1e-12)


def test_a_decay_that_is_nearly_1_decides_by_its_limit(log):
    """The shares go on as the decay goes to 1: weights are not those of rounding."""
    made = [arm_means(*log, weights="two-point", decay=1.0 - gap) for gap in (1e-9, 1e-13, 2.0**-53)]
    for other in made[1:]:
        assert other.estimate == pytest.approx(made[0].estimate, rel=1e-6)
        assert other.stderr == pytest.approx(made[0].stderr, rel=1e-6)


def test_batched_differences_against_loops(log):
    arms, rewards, _ = log
    batches = np.arange(120) * 7 // 120
    made, labelled = (arm_means(arms, rewards, method="batched-ols", batches=b) for b in (7, batches))
    assert (made.estimate == labelled.estimate).all() and np.isnan(made.against(2).estimate[:, 2]).all()
    for r, (a, c) in itertools.product(range(3), itertools.permutations(range(4), 2)):
        expected = naive.batched_difference(arms[r], rewards[r], batches, a, c)
        found = made.contrast(a, c)
        assert (found.estimate[r], found.stderr[r]) == pytest.approx(expected, rel=1e-10)
    one = arm_means(arms, rewards, method="batched-ols", batches=1)
    plain = arm_means(arms, rewards, method="ols")
    assert one.estimate == pytest.approx(plain.estimate) and one.stderr == pytest.approx(plain.stderr)


def test_a_drift_that_all_arms_share_leaves_differences_in_batches_as_they_are(log):
    arms, rewards, _ = log
    drift = np.repeat([0.0, 5.0, -3.0, 8.0], 30)
    found = [arm_means(arms, y, method="batched-ols", batches=4).pairs for y in (rewards, rewards + drift)]
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9, nan_ok=True)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-9, nan_ok=True)


def test_the_pulled_arms_propensities_are_enough(log):
    arms, rewards, chances = log
    logged = np.take_along_axis(chances, arms[..., None], -1)[..., 0]
    for options in (
        {"weights": "uniform"},
        *({"method": name} for name in ("ipw", "hajek", "ols", "batched-ols")),
    ):
        one, other = (arm_means(arms, rewards, given, **options) for given in (chances, logged))
        assert (one.estimate == other.estimate).all() and (one.stderr == other.stderr).all()
    with pytest.raises(ValueError, match="propensities must be those of all arms for weights 'constant'"):
        arm_means(arms, rewards, logged)


@pytest.mark.parametrize("method", ["ols", "ipw", "hajek", "aipw", "batched-ols"])
def test_nothing_is_said_of_what_nobody_saw(method):
    """Arm 2 was never pulled, arm 1 once, and arm 0 always gave the same: no spread is known but by ipw."""
    arms, rewards = [0] * 9 + [1], [0.1] * 10
    made = arm_means(arms, rewards, np.full((10, 3), 1 / 3), method=method, initial=0.1)
    assert np.isnan(made.estimate).tolist() == [False, False, True]
    assert np.isnan(made.stderr).tolist() == [method != "ipw", True, True]
    assert np.isnan(made.against(1).stderr).all() and np.isnan(made.p_value()[1:]).all()
    assert np.isnan(made.interval()[0][1:]).all()


def test_intervals_and_p_values(log):
    made = arm_means(*log).against(0)
    low, high = made.interval(0.1)
    assert (high - low)[:, 1:] == pytest.approx(2 * stats.norm.ppf(0.95) * made.stderr[:, 1:])
    assert made.p_value(0.5, "greater")[:, 1:] == pytest.approx(
        z_test(made.estimate[:, 1:], 0.5, made.stderr[:, 1:], "greater")
    )
    assert isinstance(
        arm_means([0, 1] * 9, [True, False, True] * 6, [0.5] * 18, method="ipw").contrast(0, 1).p_value(),
        float,
    )
    with pytest.raises(ValueError, match="control must be an arm, and these"):
        made.against(0)


def test_columns_of_a_frame_keep_their_labels(log):
    arms, rewards, chances = (part[0] for part in log)
    frame = pd.DataFrame({"arm": np.array(["red", "blue", "pink", "green"])[arms], "reward": rewards})
    order = [2, 3, 1, 0]
    named = pd.DataFrame(chances, columns=["red", "blue", "pink", "green"]).iloc[:, order]
    for options in ({}, {"method": "batched-ols"}):
        made, plain = (
            arm_means(pulled, frame["reward"], given, **options)
            for pulled, given in ((frame["arm"], named), (arms, chances))
        )
        assert made.labels == ("pink", "green", "blue", "red")
        assert made.estimate == pytest.approx(plain.estimate[order])
        apart, known = made.contrast("pink", "red"), plain.contrast(2, 0)
        assert [apart.estimate, apart.stderr] == pytest.approx([known.estimate.item(), known.stderr.item()])
        table = made.against("red").to_frame()
        assert table["arm"].tolist() == list(made.labels) and np.isnan(table["mean"][3])
        assert table["ci_high"][0] == made.against("red").interval()[1][0]
    logged = chances[np.arange(120), arms]
    target = {"red": 0.1, "blue": 0.2, "pink": 0.3, "green": 0.4}
    value = off_policy_value(target, frame["arm"], frame["reward"] > 1, logged)
    assert value.estimate == pytest.approx(
        off_policy_value([0.1, 0.2, 0.3, 0.4], arms, (rewards > 1) * 1.0, logged).estimate
    )
    many = pd.DataFrame({name: np.full(120, chance) for name, chance in reversed(target.items())})
    for same in (pd.Series(target).iloc[order], many):  # by label, not by place
        for how in ({}, {"method": "dr", "predicted": same}):
            found = off_policy_value(same, frame["arm"], frame["reward"] > 1, logged, **how)
            how = how and how | {"predicted": [0.1, 0.2, 0.3, 0.4]}
            known = off_policy_value([0.1, 0.2, 0.3, 0.4], arms, (rewards > 1) * 1.0, logged, **how)
            assert found.estimate == pytest.approx(known.estimate)
    with pytest.raises(ValueError, match="target must have the arms"):
        off_policy_value(many.rename(columns={"red": "grey"}), frame["arm"], frame["reward"], logged)
    with pytest.raises(TypeError, match="propensities must be given"):
        off_policy_value(target, frame["arm"], frame["reward"], None)
    with pytest.raises(ValueError, match=r"control must be one of \['pink', .*\], got 'grey'"):
        made.against("grey")
    with pytest.raises(ValueError, match="target must have the arms"):
        off_policy_value({"red": 1.0}, frame["arm"], frame["reward"], logged)
    with pytest.raises(ValueError, match="arms must be numbers where one of 3 was never pulled"):
        arm_means(["a", "b"], [0.0, 1.0], method="ols", n_arms=3)
    with pytest.raises(ValueError, match="propensities must be a frame with a column for each arm, where"):
        arm_means(["a", "b"], [0.0, 1.0], np.full((2, 2), 0.5))
    with pytest.raises(
        ValueError, match=r"propensities must have a column for each arm, got none for \['b'\]"
    ):
        arm_means(["a", "b"], [0.0, 1.0], pd.DataFrame({"a": [0.5, 0.5], "c": [0.5, 0.5]}))
    with pytest.raises(TypeError, match="arms must be labels of one kind"):
        arm_means(["a", None], [0.0, 1.0], method="ols")


def test_what_is_not_needed_is_not_asked_for():
    """Least squares take probabilities of 0; mappings name arms that are numbers; frames are of one log."""
    log = [0, 0, 1, 0], [0.0, 1.0, 1.0, 1.0], [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    assert arm_means(*log, method="ols").estimate == pytest.approx([2 / 3, 1.0])
    with pytest.raises(ValueError, match="propensities must all be positive here"):
        arm_means(*log, method="ipw")
    value = off_policy_value({1: 0.5, 0: 0.5}, *log)
    assert value.estimate == off_policy_value([0.5, 0.5], *log).estimate
    with pytest.raises(ValueError, match="to_frame must be asked of the arms of one log"):
        value.to_frame()
    with pytest.raises(ValueError, match="rewards must be at most 1e\\+100"):
        arm_means([0, 1], [1e200, 0.0], method="ols")
    with pytest.raises(ValueError, match="the rounds must be one whose results fit"):
        arm_means([0, 10**13], [0.0, 1.0], method="ols")


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_in_parts_are_the_same_bits(log, kind, monkeypatch):
    rows = log[0], log[1], np.take_along_axis(log[2], log[0][..., None], 2)[..., 0], log[2]
    whole, parts, rounds = estimators.weighted_sums(rows, 4, kind, 0.2, 0.7), [], log[0].shape[1]
    monkeypatch.setattr(estimators, "_AT_ONCE", 300)
    compiled = kernels.weighted_means
    monkeypatch.setattr(kernels, "weighted_means", lambda *a: [parts.append(a[1]), compiled(*a)])
    for one, other in zip(whole, estimators.weighted_sums(rows, 4, kind, 0.2, 0.7), strict=True):
        np.testing.assert_array_equal(one, other)
    each = 3 * (4 if kind in ("ols", "hajek") else 16)  # sums of products in a round
    assert max(last - first for _, first, last in parts) == 300 // each
    assert sum(last - first for _, first, last in parts) == 2 * rounds


@pytest.mark.parametrize("method", ["ols", "batched-ols"])
def test_arms_by_large_numbers_are_counted_before_work(method, monkeypatch):
    """Their differences take the square of their number: item numbers as arms are too many."""
    with pytest.raises(ValueError, match=r"^the number of arms must be one whose .* got 1000001, which take"):
        arm_means([0, 10**6], [0.0, 1.0], method=method)
    with pytest.raises(ValueError, match=r"^n_arms must be an integer from 2 to 1000000000, got 9"):
        arm_means([0, 1], [0.0, 1.0], method=method, n_arms=2**63)
    monkeypatch.setattr(estimators, "_MOST_SUMS", 1000)
    assert arm_means([0, 9] * 50, [0.0, 1.0] * 50, method="ols").estimate[9] == 1.0
    with pytest.raises(ValueError, match=r"^the rounds must be at most 10 for 10 arms and 'ipw', got 100"):
        arm_means([0, 9] * 50, [0.0, 1.0] * 50, [0.5] * 100, method="ipw")


class Other:
    """A frame of another library: columns by name, and no keys."""

    def __init__(self, columns, attribute):
        self._columns = columns
        setattr(self, attribute, list(columns))
        if attribute == "column_names":  # as of Arrow, whose columns have no names
            self.columns = [*columns.values()]

    def __getitem__(self, name):
        return self._columns[name]

    def __array__(self, dtype=None, copy=None):
        return np.stack([*self._columns.values()], axis=-1)


@pytest.mark.parametrize("attribute", ["columns", "column_names"])
def test_frames_of_any_library_are_taken_by_name(attribute):
    log = list("abba") * 25, [1.0, 0.5, 1.0, 0.0] * 25
    chances, aims = {"b": np.full(100, 0.3), "a": np.full(100, 0.7)}, {"a": [0.9] * 100, "b": [0.1] * 100}
    guessed = {"b": [0.2] * 100, "a": [0.6] * 100}
    for method in ("ips", "dr"):
        found = [
            off_policy_value(frame(aims), *log, frame(chances), method=method, predicted=frame(guessed))
            for frame in (pd.DataFrame, functools.partial(Other, attribute=attribute))
        ]
        assert found[0].estimate == found[1].estimate
    assert arm_means(*log, Other(chances, attribute)).labels == ("b", "a")
    with pytest.raises(ValueError, match="target must have the arms"):
        off_policy_value(Other({"a": [0.9] * 100, "c": [0.1] * 100}, attribute), *log, [0.5] * 100)


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ([1, "1"] * 2, "^arms must be labels of one kind, got text and others"),
        (["a", math.nan, "b", "a"], "^arms must be labels of one kind, got text and others"),
        (np.array([0.5, math.nan] * 2, dtype=object), "^arms must have none missing, got nan"),
        (np.array([None] * 4), "^arms must be labels of one kind, got some that cannot be compared"),
        ([["a", "b"], ["a"]], "^arms must be an array"),
    ],
)
def test_arms_are_neither_merged_nor_invented(arms, words):
    with pytest.raises((TypeError, ValueError), match=words):
        arm_means(arms, [0.0, 1.0] * 2, method="ols")


def test_a_label_has_one_column():
    twice = pd.DataFrame([[0.2, 0.5, 0.3]] * 4, columns=["b", "a", "a"])
    with pytest.raises(ValueError, match="propensities must have one column for each arm"):
        arm_means(list("abba"), [1.0] * 4, twice, method="ipw")


# Another policy's value


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_values_are_those_of_the_open_bandit_pipeline(log, method):
    arms, rewards, chances = log
    rng = np.random.default_rng(3)
    target, predicted = rng.dirichlet(np.ones(4), (3, 120)), rng.random((3, 120, 4))
    logged = np.take_along_axis(chances, arms[..., None], -1)[..., 0]
    made = off_policy_value(target, arms, rewards, chances, method=method, predicted=predicted)
    same = off_policy_value(target, arms, rewards, logged, method=method, predicted=predicted)
    assert (made.estimate == same.estimate).all() and made.estimate.shape == (3,)
    for r in range(3):
        expected = naive.policy_value(target[r], arms[r], rewards[r], logged[r], method, predicted[r])
        assert made.estimate[r] == pytest.approx(expected, rel=1e-12)
        w = np.take_along_axis(target[r], arms[r][:, None], 1)[:, 0] / logged[r]
        if method != "dr":  # errors by resampling's limit: the spread of the rounds' own parts
            part = w * rewards[r] if method == "ips" else w * (rewards[r] - expected) / w.mean()
            assert made.stderr[r] == pytest.approx(part.std() / math.sqrt(120), rel=0.02)


def test_values_of_one_arm_are_its_estimates(log):
    arms, rewards, chances = log
    for method, options in (
        ("ips", {"method": "ipw"}),
        ("snips", {"method": "hajek"}),
        ("dr", {"weights": "uniform"}),
    ):
        means = arm_means(*log, **options)
        for arm in range(4):
            made = off_policy_value(np.eye(4)[arm], arms, rewards, chances, method=method)
            assert made.estimate == pytest.approx(means.estimate[:, arm], rel=1e-11)
            assert made.stderr == pytest.approx(means.stderr[:, arm], rel=1e-11)


def test_a_policy_that_has_nothing_in_common_with_the_log():
    for method in ("ips", "snips", "dr"):
        made = off_policy_value([0.0, 0.0, 1.0], [0, 1] * 5, [0.5] * 10, [0.5] * 10, method=method)
        assert np.isnan(made.estimate) and np.isnan(made.stderr)


# Coverage


def thompson(rng, runs, batches, size, means, floor=0.1):
    """Thompson sampling of Gaussian beliefs with a mixed floor, renewed between batches."""
    k = len(means)
    s, n = np.zeros((runs, k)), np.zeros((runs, k))
    parts = []
    for _ in range(batches):
        draws = rng.normal((s + 1) / (n + 2), 0.5 / np.sqrt(n + 2), (400, runs, k)).argmax(axis=-1)
        won = np.stack([(draws == a).mean(axis=0) for a in range(k)], axis=-1)
        chance = np.repeat(((1 - floor) * won + floor / k)[:, None], size, axis=1)
        arms = (rng.random((runs, size, 1)) > chance.cumsum(axis=-1)[..., :-1]).sum(axis=-1)
        rewards = (rng.random((runs, size)) < np.array(means)[arms]).astype(float)
        for a in range(k):
            n[:, a] += (arms == a).sum(axis=1)
            s[:, a] += ((arms == a) * rewards).sum(axis=1)
        parts.append((arms, rewards, chance))
    return tuple(np.concatenate(part, axis=1) for part in zip(*parts, strict=True))


@pytest.mark.compiled
@pytest.mark.parametrize("means", [(0.5,) * 5, (0.59, 0.5, 0.5, 0.5, 0.5)])
def test_intervals_cover_as_often_as_they_say(means):
    """95% intervals of all arms in 1,000 runs: 93 to 97%, 4 of their standard errors or more from 94.7%."""
    history = thompson(np.random.default_rng(5), 1000, 20, 100, means)
    for options in ({}, {"method": "batched-ols", "batches": 20}):
        made = arm_means(*history, **options)
        of = made.against(0)
        for estimates, true in ((made, np.array(means)), (of, np.array(means) - means[0])):
            low, high = estimates.interval()
            covered = np.mean(((low <= true) & (true <= high))[:, int(estimates is of) :])
            assert 0.93 < covered < 0.97, (options, covered)
    plain = arm_means(*history, method="ols")
    assert (plain.estimate.mean(axis=0)[1:] < np.array(means)[1:] - 0.008).all()


@pytest.mark.parametrize("tiny", [1e-50, 1e-51, 1e-300, 1e-320])
def test_the_least_propensities_give_numbers_and_smaller_ones_are_refused(tiny):
    log = [0, 1, 0, 1] * 3, [1e100, -1e100, 5.0, 0.0] * 3, np.array([[tiny, 1.0 - tiny], [0.5, 0.5]] * 6)
    calls = [functools.partial(arm_means, *log, method=method) for method in ("ipw", "hajek")]
    calls += [
        functools.partial(arm_means, *log, weights=rate) for rate in ("uniform", "constant", "two-point")
    ]
    calls += [functools.partial(off_policy_value, [0.5, 0.5], *log, method=m) for m in ("ips", "snips", "dr")]
    for call in calls:
        if tiny >= 1e-50:
            assert np.isfinite(call().estimate).all()
            assert not np.isinf(call().stderr).any()
        else:
            with pytest.raises(ValueError, match=rf"^propensities of what was pulled .* got {tiny:g}"):
                call()


ONE = [0, 1], [0.0, 1.0], [[0.5, 0.5]] * 2


@pytest.mark.parametrize(
    ("argument", "arguments", "options"),
    [
        ("arms", ([0, 2], *ONE[1:]), {}),
        ("arms", ([0, -1], *ONE[1:]), {}),
        ("arms", ([0.0, 1.0], *ONE[1:]), {}),
        ("arms", ([], [], np.empty((0, 2))), {}),
        ("rewards", ([0, 1], [0.0, math.nan], ONE[2]), {}),
        ("rewards", ([0, 1], [0.0], ONE[2]), {}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [1.0, 0.0]]), {"method": "ipw"}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [1.0, 0.0]]), {}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [1.1, -0.1]]), {}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [0.5, 0.6]]), {}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [0.5, math.nan]]), {}),
        ("propensities", (*ONE[:2], [0.5]), {"method": "hajek"}),
        ("propensities", ONE[:2], {}),
        ("method", ONE, {"method": "best"}),
        ("weights", ONE, {"weights": "even"}),
        ("initial", ONE, {"initial": math.inf}),
        ("initial", ONE, {"initial": 1e101}),
        ("decay", ONE, {"decay": 1.0}),
        ("batches", ONE, {"method": "batched-ols", "batches": 0}),
        ("batches", ONE, {"method": "batched-ols", "batches": [0]}),
        ("n_arms", ONE[:2], {"method": "ols", "n_arms": 1}),
        ("arms", ([[0], [0, 1]], *ONE[1:]), {}),
        ("propensities", (*ONE[:2], [[0.5, 0.5], [1.0]]), {}),
    ],
)
def test_bad_arguments(argument, arguments, options):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        arm_means(*arguments, **options)


@pytest.mark.parametrize(
    ("argument", "target", "options"),
    [
        ("target", [0.5, 0.6], {}),
        ("target", [[0.5, 0.5]], {}),
        ("target", [1.5, -0.5], {}),
        ("target", 1.0, {}),
        ("target", [1.0], {}),
        ("target", [[1.0], [0.5, 0.5]], {}),
        ("method", [0.5, 0.5], {"method": "dm"}),
        ("predicted", [0.5, 0.5], {"method": "dr", "predicted": [1.0, 2.0, 3.0]}),
    ],
)
def test_bad_targets(argument, target, options):
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must"):
        off_policy_value(target, *ONE, **options)
