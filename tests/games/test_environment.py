"""Environment and Schedule against recursion from the root, and what they refuse."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import naive
from equinoise.games import Environment, GameTree, Schedule, from_nested

seeds = st.integers(0, 2**32 - 1)


def random_pair(seed, **limits):
    rng = np.random.default_rng(seed)
    tree = naive.random_tree(rng, max_strategies=300, **limits)
    return rng, tree, naive.random_environment(rng, tree)


def random_policy(rng, tree):
    policy = rng.random(tree.n_actions) * (rng.random(tree.n_actions) < 0.8)
    for s in range(tree.n_infosets):
        own = slice(tree.action_ptr[s], tree.action_ptr[s + 1])
        policy[own] = policy[own] / policy[own].sum() if policy[own].any() else 1 / policy[own].size
    return policy


@settings(max_examples=200)
@given(seeds)
def test_losses_against_recursion(seed):
    rng, tree, environment = random_pair(seed)
    expected = naive.direct_losses(environment)
    assert environment.action_loss == pytest.approx([expected[a] for a in range(tree.n_actions)], abs=1e-14)
    policy = random_policy(rng, tree)
    assert environment.expected_loss(policy) == pytest.approx(
        naive.policy_loss(environment, policy), abs=1e-14
    )


@settings(max_examples=200)
@given(seeds)
def test_best_response_against_all_strategies(seed):
    _, tree, environment = random_pair(seed)
    losses = [naive.strategy_loss(environment, picked) for picked in naive.strategies(tree)]
    loss, policy = environment.best_response()
    assert loss == pytest.approx(min(losses), abs=1e-14)
    assert naive.policy_loss(environment, policy) == pytest.approx(loss, abs=1e-14)
    picks = [policy[tree.action_ptr[s] : tree.action_ptr[s + 1]].tolist() for s in range(tree.n_infosets)]
    assert all(sorted(row) == [0.0] * (len(row) - 1) + [1.0] for row in picks)


def test_best_response_takes_the_first_of_equals():
    _, environment = from_nested([[0.5], [0.25, 0.25], [0.25], [[[0.25], [0.25]]]])
    assert environment.best_response()[1].tolist() == [0, 1, 0, 0, 1, 0]


@settings(max_examples=200)
@given(seeds)
def test_cumulative_draws_children_with_their_probabilities(seed):
    _, tree, environment = random_pair(seed)
    infosets, leaves = environment.cumulative
    assert infosets[0] == 1.0
    for a in range(tree.n_actions):
        own = [*naive.infosets_below(tree, a)], [*naive.leaves_below(tree, a)]
        cumulative = np.concatenate([infosets[own[0]], leaves[own[1]]])
        probability = np.concatenate([environment.infoset_prob[own[0]], environment.leaf_prob[own[1]]])
        assert cumulative == pytest.approx(np.cumsum(probability), abs=1e-12)
        last = np.flatnonzero(probability)[-1]
        assert (cumulative[last:] == 1.0).all()
        for u in (2.0**-53, 0.3, 0.7, 1 - 2.0**-53, *np.nextafter(cumulative, 0)):
            if 0 < u < 1:
                assert probability[np.argmax(u < cumulative)] > 0


def test_cumulative_never_takes_a_child_of_probability_zero():
    tree = GameTree([0, 1, 2, 3], [1, 3, 3, 3], [0, 2, 3, 4])
    for order in set(itertools.permutations([0.0, 0.1, 0.2, 0.7])):  # their float sum may miss one
        environment = Environment(tree, [1, *order[:2]], [*order[2:], 1, 1], [0, 0, 0, 0])
        infosets, leaves = environment.cumulative
        cumulative = np.array([*infosets[1:], *leaves[:2]])
        for u in (2.0**-53, 0.05, 0.1, 0.3, 0.5, 0.99, 1 - 2.0**-53):
            assert order[int(np.argmax(u < cumulative))] > 0


def test_a_hundred_thousand_infosets_deep():
    depth = 100_000
    number = np.arange(depth + 1)
    tree = GameTree(number, np.append(number[1:], depth), number)  # a leaf beside every child infoset
    stay = 1 - 1e-5
    leaf_prob = np.full(depth, 1 - stay)
    leaf_prob[-1] = 1.0
    infoset_prob = np.full(depth, stay)
    infoset_prob[0] = 1.0
    environment = Environment(tree, infoset_prob, leaf_prob, np.arange(depth) / depth)
    survive = stay ** np.arange(depth)
    expected = math.fsum(survive * leaf_prob * np.arange(depth) / depth)
    assert environment.expected_loss(np.ones(depth)) == pytest.approx(expected, rel=1e-9)
    assert environment.best_response()[0] == pytest.approx(expected, rel=1e-9)


def test_utility_inverts_the_loss():
    tree, bare = from_nested([[0.25], [1.0]])
    environment = Environment(tree, [1], [1, 1], [0.25, 1.0], payoff_range=(-1, 3))
    assert environment.utility(0.0) == 3
    assert environment.utility(1) == -1
    assert environment.utility(np.array([0.25, 0.5])).tolist() == [2.0, 1.0]
    wide = Environment(tree, [1], [1, 1], [0.25, 1.0], payoff_range=(-1.5e308, 1.5e308))
    assert wide.utility(0.5) == 0.0
    assert wide.utility(0.0) == 1.5e308
    with pytest.raises(ValueError, match="payoff_range"):
        bare.utility(0.5)
    with pytest.raises(ValueError, match="loss"):
        environment.utility(math.nan)
    with pytest.raises(ValueError, match="loss"):
        environment.utility(np.array([0.5, math.nan]))
    with pytest.raises(TypeError, match="loss must be an array of entries, got a ragged sequence"):
        environment.utility([[0.5], [0.5, 1.0]])


def test_what_it_prints():
    _, environment = from_nested([[0.25], [1.0]])
    assert repr(environment) == "Environment(GameTree(1 infosets, 2 actions, 2 leaves), payoff_range=None)"


def test_environments_pickle_and_cannot_be_changed():
    tree, environment = from_nested([[0.25], [[[1.0], [0.5]]]])
    copy = pickle.loads(pickle.dumps(environment))
    assert copy.tree.same_as(tree)
    assert copy.action_loss.tolist() == environment.action_loss.tolist()
    for array in (copy.leaf_loss, environment.leaf_prob, environment.action_loss, *environment.cumulative):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


RIGHT = {"infoset_prob": [1, 0.5], "leaf_prob": [1, 0.5, 1, 1], "leaf_loss": [0, 0.5, 1, 0.25]}
WRONG = {
    "no tree": ({"tree": None}, TypeError, "tree"),
    "short infosets": ({"infoset_prob": [1.0]}, ValueError, "infoset_prob"),
    "root": ({"infoset_prob": [0.5, 0.5]}, ValueError, "infoset_prob"),
    "negative": ({"infoset_prob": [1, -0.5], "leaf_prob": [1, 1.5, 1, 1]}, ValueError, "infoset_prob"),
    "above one": ({"leaf_prob": [1, 1.5, 1, 1]}, ValueError, "leaf_prob"),
    "NaN": ({"leaf_prob": [1, math.nan, 1, 1]}, ValueError, "leaf_prob"),
    "sum too small": ({"leaf_prob": [1, 0.4, 1, 1]}, ValueError, "action 1"),
    "sum off by 1e-8": ({"leaf_prob": [1, 0.5, 1, 1 - 1e-8]}, ValueError, "action 3"),
    "loss above one": ({"leaf_loss": [0, 0.5, 1.1, 0.25]}, ValueError, "leaf_loss"),
    "loss below zero": ({"leaf_loss": [0, 0.5, -0.1, 0.25]}, ValueError, "leaf_loss"),
    "loss infinite": ({"leaf_loss": [0, 0.5, math.inf, 0.25]}, ValueError, "leaf_loss"),
    "words": ({"leaf_loss": ["a", "b", "c", "d"]}, TypeError, "leaf_loss"),
    "complex": ({"leaf_loss": [0, 0.5, 1j, 0.25]}, TypeError, "leaf_loss"),
    "payoffs reversed": ({"payoff_range": (1, -1)}, ValueError, "payoff_range"),
    "payoffs infinite": ({"payoff_range": (0, math.inf)}, ValueError, "payoff_range"),
    "three payoffs": ({"payoff_range": (0, 1, 2)}, TypeError, "payoff_range"),
    "payoffs as a word": ({"payoff_range": "01"}, TypeError, "payoff_range"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_name_the_argument(case):
    change, error, name = WRONG[case]
    tree = GameTree([0, 2, 4], [1, 1, 2, 2, 2], [0, 1, 2, 3, 4])
    with pytest.raises(error, match=name):
        Environment(**{"tree": tree} | RIGHT | change)


def test_running_sums_stay_below_one_where_the_sum_is_a_little_above():
    tree = GameTree([0, 1, 2, 3], [1, 3, 3, 3], [0, 2, 3, 4])
    environment = Environment(tree, [1, 0.5, 0.5 + 4e-10], [3e-10, 2e-10, 1, 1], [0, 0, 0, 0])
    infosets, leaves = environment.cumulative
    assert [*infosets, *leaves] == [1, 0.5, 1, 1, 1, 1, 1]


def test_a_sum_within_the_tolerance_is_taken():
    tree = GameTree([0, 2, 4], [1, 1, 2, 2, 2], [0, 1, 2, 3, 4])
    environment = Environment(tree, [1, 0.5], [1, 0.5, 1 - 9e-10, 1], RIGHT["leaf_loss"])
    assert environment.cumulative[1][2] == 1.0


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ([1.0, 0.0, 1.0], ValueError),
        ([1.0, 0.0, 0.5, 0.4], ValueError),
        ([1.0, 0.0, 0.5, 0.5 + 2e-8], ValueError),
        ([1.5, -0.5, 0.5, 0.5], ValueError),
        ([1.0, 0.0, math.nan, 1.0], ValueError),
        ([[1.0, 0.0, 0.5, 0.5]], ValueError),
        ("uniform", TypeError),
    ],
)
def test_a_policy_that_is_none_is_refused(policy, error):
    _, environment = from_nested([[0.25], [[[1.0], [0.5]]]])
    with pytest.raises(error, match="policy"):
        environment.expected_loss(policy)


def test_schedule():
    tree, first = from_nested([[0.25], [1.0]])
    second = Environment(GameTree([0, 2], [1, 1, 1], [0, 1, 2]), [1], [1, 1], [1, 0])
    schedule = Schedule([(first, 10), (second, 20)])
    assert schedule.environments == (first, second)
    assert schedule.trials.tolist() == [10, 20]
    assert (schedule.total, schedule.tree) == (30, tree)
    expected = {0: [0, 0], 7: [1.75, 7], 10: [2.5, 10], 25: [17.5, 10], 30: [22.5, 10]}
    for trials, loss in expected.items():
        assert schedule.action_loss(trials).tolist() == loss


BAD_ENTRIES = {
    "none": ([], ValueError, "entries"),
    "no pairs": (3, TypeError, "entries"),
    "word": ("ab", TypeError, "entries"),
    "triples": ([(1, 2, 3)], TypeError, r"entries\[0\]"),
    "no environment": ([("x", 2)], TypeError, r"entries\[0\]\[0\]"),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
def test_schedule_refuses(case):
    entries, error, words = BAD_ENTRIES[case]
    with pytest.raises(error, match=words):
        Schedule(entries)


def test_schedule_refuses_other_trees_and_wrong_trials():
    _, first = from_nested([[0.25], [1.0]])
    _, other = from_nested([[0.25], [1.0, 0.5]])
    with pytest.raises(ValueError, match=r"entries\[1\]"):
        Schedule([(first, 1), (other, 1)])
    for trials, error in ((0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=r"entries\[0\]\[1\]"):
            Schedule([(first, trials)])
    for trials, error in ((-1, ValueError), (11, ValueError), (0.5, TypeError)):
        with pytest.raises(error, match="trials"):
            Schedule([(first, 10)]).action_loss(trials)


def test_a_schedule_has_no_more_trials_than_an_integer_counts():
    _, environment = from_nested([[0.0], [1.0]])
    with pytest.raises(ValueError, match="entries"):
        Schedule([(environment, 2**61)] * 9)
    assert Schedule([(environment, 2**61), (environment, 2**61)]).total == 2**62


def test_losses_that_change_from_trial_to_trial():
    """Against a schedule that is written out; what is not a loss stays as it is."""
    tree, given = from_nested([[0.25, 0.5], [1.0]])
    environment = Environment(tree, given.infoset_prob, [0.25, 0.75, 1.0], given.leaf_loss, (-1.0, 3.0))
    losses = [[0.0, 1.0, 0.5], [0.5, 0.0, 1.0], [0.0, 1.0, 0.5]]
    entries = [(Environment(tree, environment.infoset_prob, environment.leaf_prob, row), 1) for row in losses]
    plain = Schedule(entries * 2)
    for schedule in (
        Schedule.of_losses(environment, losses * 2),
        Schedule.of_losses(environment, lambda t: losses[t % 3], trials=6),
    ):
        assert schedule.total == 6
        assert [schedule.action_loss(t).tolist() for t in range(7)] == [
            plain.action_loss(t).tolist() for t in range(7)
        ]
        assert schedule.loss_range.tolist() == plain.loss_range.tolist() == [[0.0, 1.0], [0.5, 1.0]]
        first, second = schedule.environments[:2]
        assert (first is schedule.environments[2], first.payoff_range) == (True, (-1.0, 3.0))
        assert second.cumulative[1].tolist() == [0.25, 1.0, 1.0]
        assert not second.leaf_loss.flags.writeable


def test_losses_that_are_none_are_refused():
    _, environment = from_nested([[0.25], [1.0]])
    for losses, trials, error, words in (
        ([[0.0, 0.0, 0.0]], None, ValueError, r"losses must have shape \(any, 2\)"),
        ([[0.0, 1.5]], None, ValueError, "losses must be at most 1"),
        ([[0.0, float("nan")]], None, ValueError, "losses must be finite"),
        ([], None, ValueError, "losses"),
        (lambda t: [0.0], 3, ValueError, r"losses\(0\) must have shape \(2\)"),
        (lambda t: [0.0, -0.1 * t], 3, ValueError, r"losses\(1\) must be at least 0"),
        (lambda t: [0.0, 0.0], None, TypeError, "trials"),
        (lambda t: 1 / 0, 2**60, ValueError, "trials must be one whose results fit into"),
    ):
        with pytest.raises(error, match=words):
            Schedule.of_losses(environment, losses, trials)
    with pytest.raises(TypeError, match="environment"):
        Schedule.of_losses("kuhn_poker", [[0.0, 1.0]])
