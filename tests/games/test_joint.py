"""All players at once: their trees, best responses and exploitability against OpenSpiel and by listing."""

from __future__ import annotations

import math
import pickle
from functools import partial

import numpy as np
import pytest

import naive
from equinoise import games
from equinoise.games.walk.walk import walk

NAMES = ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "liars_dice(dice_sides=3)"]


def random_policy(rng, tree):
    values = rng.random(tree.n_actions) * (rng.random(tree.n_actions) < 0.8) + 1e-9
    totals = np.add.reduceat(values, tree.action_ptr[:-1])
    return games.Policy(tree, values / np.repeat(totals, np.diff(tree.action_ptr)))


def a_listed_game(seed, players):
    """(source, its joint game) in which everybody moves."""
    rng = np.random.default_rng([91, seed])
    while True:
        node = naive.random_game(rng, players=players)
        if all(naive.moves_of(node, i) for i in range(players)):
            source = naive.ListedGame(players, node)
            joint = games.load_joint(source)
            if max(naive.count_strategies(tree) for tree in joint.trees) < 500:
                return source, joint


@pytest.mark.parametrize("seed", range(8))
def test_every_player_has_the_tree_and_the_losses_of_its_own_walk(seed):
    source, joint = a_listed_game(seed, 2 + seed % 2)
    for player, tree in enumerate(joint.trees):
        own, environment = walk(source, player)
        assert tree.same_as(own)
        assert (tree.infoset_labels, tree.action_labels) == (own.infoset_labels, own.action_labels)
        assert joint.loss_range[player].tobytes() == environment.loss_range.tobytes()
        assert tuple(joint.payoff_range[player]) == environment.payoff_range


@pytest.mark.parametrize("name", [*NAMES, pytest.param("liars_dice(dice_sides=5)", marks=pytest.mark.slow)])
def test_exploitability_is_openspiels(name):
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python.algorithms import exploitability
    from open_spiel.python.policy import TabularPolicy

    game = pyspiel.load_game(name)
    joint = games.load_joint(f"openspiel:{name}")
    rng = np.random.default_rng(3)
    policies = [random_policy(rng, tree) for tree in joint.trees]
    table = TabularPolicy(game)
    for policy in policies:
        for label, row in policy.to_dict().items():
            if label != "(start)":
                where = table.state_lookup[label]
                table.action_probability_array[where][table.legal_actions_mask[where] > 0] = list(
                    row.values()
                )
    wanted = exploitability.nash_conv(game, table, use_cpp_br=True)
    if game.num_players() == 2:
        assert exploitability.exploitability(game, table) == pytest.approx(wanted / 2, abs=1e-12)
        wanted /= 2
    given = [policies[0].values, *(policy.to_dict() for policy in policies[1:])]
    asked = [policy.to_dict().__getitem__ for policy in policies]
    for way in (policies, given, asked):
        assert games.exploitability(joint, way) == pytest.approx(wanted, abs=1e-9)


def best_by_listing(source, tree, player, others):
    """The largest payoff of any of a player's strategies, `others` as of naive.game_value."""
    labels = [tree.infoset_labels[s] for s in tree.action_infoset]
    best = -math.inf
    for picked in naive.strategies(tree):
        own = {label: [0.0] * labels.count(label) for label in labels}
        for a in picked:
            own[labels[a]][a - labels.index(labels[a])] = 1.0
        best = max(best, naive.game_value(source.tree, player, Named(own, 1), Named(others, (1,))))
    return best


class Named(dict):
    """A mapping from names of infosets, asked by what the listed game calls them."""

    def __init__(self, values, kind):
        super().__init__(values)
        self.kind = kind

    def __getitem__(self, key):
        return super().__getitem__(str(key))

    def get(self, key):
        return super().get((key[0], str(key[1])))


@pytest.mark.parametrize("seed", range(6))
def test_payoffs_that_do_not_add_up_give_nash_conv_by_listing(seed):
    """Best responses of two or three players, by trying every strategy on the game itself."""
    source, joint = a_listed_game(seed, 2 + seed % 2)
    assert not joint.constant_sum
    rng = np.random.default_rng([92, seed])
    policies = [random_policy(rng, tree) for tree in joint.trees]
    rows = {
        (i, label): list(row.values())
        for i, policy in enumerate(policies)
        for label, row in policy.to_dict().items()
    }
    total = 0.0
    for i, tree in enumerate(joint.trees):
        best = best_by_listing(source, tree, i, rows)
        value, response = games.best_response(joint, policies, i)
        assert value == pytest.approx(best, abs=1e-12)
        own = {label: list(row.values()) for label, row in response.to_dict().items()}
        assert naive.game_value(source.tree, i, Named(own, 1), Named(rows, 2)) == pytest.approx(
            best, abs=1e-12
        )
        now = {label: row for (j, label), row in rows.items() if j == i}
        total += best - naive.game_value(source.tree, i, Named(now, 1), Named(rows, 2))
    assert games.exploitability(joint, policies) == pytest.approx(total, abs=1e-12)


def test_kuhns_equilibrium_and_what_it_is_worth():
    """Kuhn (1950): the first player loses 1/18; here its bluffing parameter is 0."""
    first = {"0": [1, 0], "1": [1, 0], "2": [1, 0], "0pb": [1, 0], "1pb": [2 / 3, 1 / 3], "2pb": [0, 1]}
    second = {
        "0p": [2 / 3, 1 / 3],
        "1p": [1, 0],
        "2p": [0, 1],
        "0b": [1, 0],
        "1b": [2 / 3, 1 / 3],
        "2b": [0, 1],
    }
    pair = (first, second)
    assert games.exploitability("kuhn_poker", pair) == pytest.approx(0.0, abs=1e-12)
    assert games.best_response("kuhn_poker", pair, 0)[0] == pytest.approx(-1 / 18)
    assert games.best_response("kuhn_poker", pair, 1)[0] == pytest.approx(1 / 18)
    assert games.best_response_value(games.load("kuhn_poker", 0, second)[1]) == pytest.approx(-1 / 18)


def test_a_joint_game_is_passed_on_and_travels():
    joint = games.load_joint("kuhn_poker")
    assert games.load_joint(joint) is joint
    copy = pickle.loads(pickle.dumps(joint))
    uniform = ["uniform", "uniform"]
    assert (
        games.exploitability(copy, uniform) == games.exploitability(joint, uniform) == pytest.approx(11 / 24)
    )
    assert not any(array.flags.writeable for array in joint.histories)


@pytest.mark.parametrize("seed", range(5))
def test_an_average_policy_is_the_average_of_plans(seed):
    rng = np.random.default_rng([93, seed])
    tree = naive.random_tree(rng)
    policies, weights = [random_policy(rng, tree) for _ in range(3)], [1.0, 0.0, 2.5]
    made = games.average_policy(tree, policies, weights)
    wanted = np.average([p.realization_plan() for p in policies], axis=0, weights=weights)
    np.testing.assert_allclose(made.realization_plan(), wanted, atol=1e-15)
    alike = games.average_policy(tree, [policies[0].values, "uniform"])
    uniform = games.realization_plan(tree, tree.uniform_policy())
    np.testing.assert_allclose(
        alike.realization_plan(), (policies[0].realization_plan() + uniform) / 2, atol=1e-15
    )


def test_an_average_is_uniform_where_nobody_gets():
    tree, _ = games.from_nested([[0.5], [0.0, [[0.75], [1.0], [0.5]]]])
    made = games.average_policy(tree, [[1, 0, 1, 0, 0], [1, 0, 0, 1, 0]])
    np.testing.assert_allclose(made.values, [1, 0, 1 / 3, 1 / 3, 1 / 3])


JOINT = games.load_joint("kuhn_poker")
KUHN, _ = TREES = JOINT.trees
UNIFORM = games.Policy(KUHN, KUHN.uniform_policy())
BEST = games.best_response(JOINT, ["uniform"] * 2, 0)[1]
WRONG_POLICIES = [
    (["uniform"], "policies must be 2, one for each"),
    ("uniform", "policies must be a list of them, got 'uniform'"),
    (5, "policies must be a list of them, got 5"),
    (None, "policies must be a list of them, got None"),
    ({0: "uniform", 1: "uniform"}, "policies must be a list of them"),
    ([games.Policy(TREES[1], TREES[1].uniform_policy()), "uniform"], "got one for another tree of that size"),
    (["uniform", "best"], r"policies\[1\] must be one of"),
    (["uniform", {}], r"policies\[1\] must cover infoset '1p'"),
    ([{"0": {"x": 1}}, {}], "must have the actions"),
    ([np.ones(13), "uniform"], "must add up to 1"),
    ([lambda label: [0.5, 0.6], "uniform"], r"policies\[0\]\['\d'\] must have probabilities that sum to 1"),
]
WRONG = [
    *((partial(games.exploitability, "kuhn_poker", given), words) for given, words in WRONG_POLICIES),
    (
        partial(games.exploitability, "leduc_poker", [UNIFORM] * 2),
        r"policies\[0\] must be for a GameTree\(469",
    ),
    (partial(games.best_response, "kuhn_poker", ["uniform"] * 2, 2), "player must be"),
    (partial(games.load_joint, "bandit(3)"), "game must have players of its own"),
    (partial(games.load_joint, "kuhn_poker", max_histories=50), "max_histories must be larger"),
    (partial(games.load_joint, "kuhn_poker", recall="yes"), "recall must be one of"),
    (partial(games.load_joint, "kuhn_poker", foo=1), "'foo' is no option of load_joint"),
    (partial(games.load_joint, "kuhn_poker", player=1), "'player' is no option of load_joint"),
    (partial(games.load_joint, JOINT, recall="refine"), "game must be one to load where there are options"),
    (partial(games.load_joint, JOINT, max_histories=1), "game must be one to load where there are options"),
    (partial(games.average_policy, KUHN, 5), "policies must be a list of them, got 5"),
    (partial(games.average_policy, KUHN, []), "policies must be at least one"),
    (partial(games.average_policy, "kuhn", ["uniform"]), "tree must be a GameTree, got 'kuhn'"),
    (partial(games.average_policy, KUHN, ["uniform"], [0.0]), "weights must not all be 0"),
    (partial(games.average_policy, KUHN, ["uniform"], [1.0, 2.0]), "weights must have shape"),
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_arguments_are_named(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("huge", [10**400, 1.7e308])
def test_payoffs_whose_differences_no_float_holds_are_refused(huge):
    with pytest.raises(ValueError, match="payoffs that a float can hold, and their differences"):
        games.load_joint(naive.ListedGame(1, naive.move(0, "s", naive.end(huge), naive.end(-huge))))


def test_weights_may_be_of_any_size():
    values = [games.average_policy(KUHN, ["uniform", BEST], [w, w]).values for w in (1.7e308, 1.0, 1e-320)]
    assert values[0].tolist() == values[1].tolist() == values[2].tolist()
    assert values[0][1:3].tolist() == [0.25, 0.75]


def test_the_built_in_game_is_openspiels():
    pytest.importorskip("pyspiel")
    ours, theirs = games.load_joint("kuhn_poker"), games.load_joint("openspiel:kuhn_poker")
    rng = np.random.default_rng(5)
    for _ in range(5):
        policies = [random_policy(rng, tree).to_dict() for tree in ours.trees]
        assert games.exploitability(ours, policies) == pytest.approx(games.exploitability(theirs, policies))
