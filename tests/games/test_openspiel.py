"""Games of OpenSpiel: its counts and values, its own best responses, policies there and back, refusals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import naive
from equinoise.games import Policy, best_response_value, load, policy_value, uniform_value
from equinoise.games.openspiel import OpenSpielGame, _infoset_reader, load_openspiel

pyspiel = pytest.importorskip("pyspiel")
openspiel_policy = pytest.importorskip("open_spiel.python.policy")
best_response = pytest.importorskip("open_spiel.python.algorithms.best_response")
expected_game_score = pytest.importorskip("open_spiel.python.algorithms.expected_game_score")

# infosets and actions without the one-action root, ln S, and what uniform play and the best response of the
# first player are worth against uniform opponents
KNOWN = {
    "kuhn_poker": (6, 12, 3.2958, 0.125, 0.5),
    "kuhn_poker(players=3)": (16, 32, 8.79, 0.234375, 0.78125),
    "leduc_poker": (468, 1092, 103.2, -0.078125, 2.0875),
    "liars_dice(dice_sides=4)": (512, 1020, 61.7, -0.015625, 0.6837053571),
    "tiny_bridge_2p": (1792, 3556, 267, None, None),
    "sheriff": (2341, 9364, 22.2, None, None),
    "liars_dice": (12288, 24570, 634.6, None, None),
}


@pytest.mark.parametrize("name", KNOWN)
def test_counts_and_values(name):
    infosets, actions, log_n, uniform, best = KNOWN[name]
    tree, environment = load(f"openspiel:{name}")
    root = tree.infoset_labels[0] == "(start)"
    assert (tree.n_infosets - root, tree.n_actions - root) == (infosets, actions)
    assert tree.log_n_strategies == pytest.approx(log_n, rel=1e-3)
    if uniform is not None:
        assert uniform_value(environment) == pytest.approx(uniform, abs=1e-9)
        assert best_response_value(environment) == pytest.approx(best, abs=1e-9)


def random_table(game, rng):
    """A random policy for all players, a third of its probabilities zero."""
    table = openspiel_policy.TabularPolicy(game)
    legal = table.legal_actions_mask
    weights = rng.random(legal.shape) * (rng.random(legal.shape) < 0.67) * legal
    weights[np.arange(len(legal)), legal.argmax(axis=1)] += 1e-3
    table.action_probability_array = weights / weights.sum(axis=1, keepdims=True)
    return table


SMALL = ["kuhn_poker", "kuhn_poker(players=3)", "liars_dice(dice_sides=2)", "tiny_hanabi", "matrix_rps"]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("seed", range(3))
def test_openspiels_own_values_against_random_opponents(name, seed):
    game = OpenSpielGame(pyspiel.load_game(name)).game  # turn-based
    others = random_table(game, np.random.default_rng(seed))
    for player in range(game.num_players()):
        tree, environment = load(game, player, others)
        uniform = openspiel_policy.UniformRandomPolicy(game)
        players = [uniform if p == player else others for p in range(game.num_players())]
        value = expected_game_score.policy_value(game.new_initial_state(), players)[player]
        assert uniform_value(environment) == pytest.approx(value, abs=1e-10)
        best = best_response.BestResponsePolicy(game, player, others)
        assert best_response_value(environment) == pytest.approx(
            best.value(game.new_initial_state()), abs=1e-10
        )
        again = policy_value(environment, environment.best_response()[1])
        assert again == pytest.approx(best_response_value(environment), abs=1e-12)
        assert tree.same_as(load(game, player)[0])  # zero probabilities cut nothing away


def test_openspiels_own_best_response_on_leduc():
    game = pyspiel.load_game("leduc_poker")
    for player in range(2):
        _, environment = load(game, player)
        best = best_response.BestResponsePolicy(game, player, openspiel_policy.UniformRandomPolicy(game))
        assert best_response_value(environment) == pytest.approx(
            best.value(game.new_initial_state()), abs=1e-10
        )


def random_policy(rng, tree):
    values = rng.random(tree.n_actions)
    return Policy(
        tree, values / np.repeat(np.add.reduceat(values, tree.action_ptr[:-1]), np.diff(tree.action_ptr))
    )


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker"])
@pytest.mark.parametrize("prefix", ["", "openspiel:"])
def test_a_policy_travels_to_openspiel(name, prefix):
    """Of a tree made by OpenSpiel, and of the built-in one with the same labels."""
    rng = np.random.default_rng(1)
    game = pyspiel.load_game(name)
    for player in range(game.num_players()):
        tree, environment = load(prefix + name, player)
        policy = random_policy(rng, tree)
        theirs = policy.to_openspiel(game, player)
        value = expected_game_score.policy_value(game.new_initial_state(), [theirs] * game.num_players())[
            player
        ]
        assert policy_value(environment, policy.values) == pytest.approx(value, abs=1e-10)


def test_a_policy_there_and_back():
    tree, _ = load("kuhn_poker", 1)
    policy = random_policy(np.random.default_rng(2), tree)
    learner = load("kuhn_poker", 0, policy.to_dict())[1]
    for game in ("kuhn_poker", pyspiel.load_game("kuhn_poker")):
        theirs = policy.to_openspiel(game, 1)
        for opponents in (theirs, theirs.to_tabular()):
            environment = load("openspiel:kuhn_poker", 0, opponents)[1]
            assert best_response_value(environment) == pytest.approx(best_response_value(learner), abs=1e-12)


def test_a_policy_is_for_its_own_game_and_player():
    tree, environment = load("kuhn_poker")
    policy = Policy(tree, environment.best_response()[1])
    for game, player, error, words in [
        (3, 0, TypeError, "game"),
        ("chess_with_dice", 0, ValueError, "game"),
        ("kuhn_poker", 2, ValueError, "player"),
        ("kuhn_poker", 0.0, TypeError, "player"),
    ]:
        with pytest.raises(error, match=words):
            policy.to_openspiel(game, player)
    leduc = pyspiel.load_game("leduc_poker")
    with pytest.raises(ValueError, match=r"game must be the one that the policy is for"):
        policy.to_openspiel(leduc).to_tabular()


def test_simultaneous_moves_are_made_turn_based():
    tree, environment = load("openspiel:matrix_pd")  # payoffs 5, 0 / 10, 1
    assert (tree.n_infosets, tree.n_actions) == (1, 2)
    assert uniform_value(environment) == pytest.approx(4)
    assert best_response_value(environment) == pytest.approx(5.5)
    second, environment = load("openspiel:matrix_pd", 1)
    assert second.n_infosets == 2  # the root, and one infoset that does not see the first player's move
    assert best_response_value(environment) == pytest.approx(5.5)
    tree, environment = load("openspiel:goofspiel(num_cards=3,imp_info=True,points_order=descending)")
    assert tree.depth >= 2
    table = Policy(tree, tree.uniform_policy()).to_openspiel(
        "goofspiel(num_cards=3,imp_info=True,points_order=descending)"
    )
    value = expected_game_score.policy_value(table.game.new_initial_state(), [table] * 2)[0]
    assert uniform_value(environment) == pytest.approx(value, abs=1e-12)


def test_a_game_of_perfect_information_without_information_states():
    name = "openspiel:pig(horizon=5,winscore=6)"
    tree, environment = load(name)
    assert len(set(tree.infoset_labels)) == tree.n_infosets
    game = pyspiel.load_game(name.removeprefix("openspiel:"))
    uniform = openspiel_policy.UniformRandomPolicy(game)
    value = expected_game_score.policy_value(game.new_initial_state(), [uniform] * 2)[0]
    assert uniform_value(environment) == pytest.approx(value, abs=1e-12)


def test_infosets_by_tensor_where_there_are_no_strings():
    game = SimpleNamespace(
        get_type=lambda: SimpleNamespace(
            provides_information_state_string=False, provides_information_state_tensor=True
        )
    )
    read = _infoset_reader(pyspiel, game, False)
    one, two, again = (
        SimpleNamespace(information_state_tensor=lambda row=row: row) for row in ([1.0, 0], [0, 1.0], [1, 0])
    )
    assert read(one) == read(again) != read(two)
    assert read(one)[1] == ""


@pytest.mark.parametrize(
    "name",
    [
        "dark_hex(num_rows=3,num_cols=2)",
        "leduc_poker(action_mapping=True)",
        "goofspiel(num_cards=4,imp_info=False)",
    ],
)
def test_imperfect_recall_is_refused(name):
    with pytest.raises(ValueError, match=r"recall.*it follows both \[.*\] and \[.*\]"):
        load(f"openspiel:{name}")


def test_a_refined_game_keeps_its_values():
    tree, environment = load("openspiel:leduc_poker(action_mapping=True)", recall="refine")
    assert len(set(tree.infoset_labels)) < tree.n_infosets  # some were split
    game = pyspiel.load_game("leduc_poker(action_mapping=True)")
    uniform = [openspiel_policy.UniformRandomPolicy(game)] * 2
    value = expected_game_score.policy_value(game.new_initial_state(), uniform)[0]
    assert uniform_value(environment) == pytest.approx(value, abs=1e-10)
    assert best_response_value(environment) > value


REFUSED = {
    "nonsense": "name a game",
    "": "name a game",
    "kuhn_poker(": "refused",
    "kuhn_poker(player=3)": "refused.*player",
    "kuhn_poker(players=99)": "refused",
    "kuhn_poker(players=abc)": "refused",
    "dark_hex(num_rows=-3)": "refused|initial state",
    "mfg_crowd_modelling": "mean-field",
    "hanabi": "refused|know|information",
    "markov_soccer": "know.*recall='refine'",
    "python_iterated_prisoners_dilemma": "know",
    "python_nonsense": "name a game",
    "morpion_solitaire": "crashes",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_game(name, capfd):
    with pytest.raises(ValueError, match=f"game.*({REFUSED[name]})") as caught:
        load(f"openspiel:{name}")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""  # OpenSpiel would write there


def test_a_game_that_is_written_in_python():
    tree, environment = load("openspiel:python_kuhn_poker")
    compiled, its = load("openspiel:kuhn_poker")
    assert tree.same_as(compiled)
    assert naive.shape(environment) == naive.shape(its)


@pytest.mark.parametrize("kind", ["average", "random", "table", "uniform"])
def test_compiled_policies_of_openspiel_play_the_others(kind):
    game = pyspiel.load_game("kuhn_poker")
    solver = pyspiel.CFRSolver(game)
    for _ in range(20):
        solver.evaluate_and_update_policy()
    policy = {
        "average": solver.average_policy(),
        "random": pyspiel.GetRandomPolicy(game, 7),
        "table": solver.tabular_average_policy(),
        "uniform": pyspiel.UniformRandomPolicy(game),
    }[kind]
    rows = {}
    for state in infosets(game.new_initial_state()):
        given = policy.action_probabilities(state)
        rows[state.information_state_string()] = [given[action] for action in state.legal_actions()]
    for player in range(2):
        ours, theirs = (load(game, player, opponents)[1].action_loss for opponents in (rows, policy))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_a_compiled_policy_of_another_game_is_refused():
    solver = pyspiel.CFRSolver(pyspiel.load_game("leduc_poker"))
    for policy in (solver.average_policy(), solver.tabular_average_policy(), pyspiel.TabularPolicy({})):
        with pytest.raises(ValueError, match="opponents") as caught:
            load("openspiel:kuhn_poker", 0, policy)
        assert "\n" not in str(caught.value)


def infosets(state):
    """All states in which a player moves."""
    if state.is_player_node():
        yield state
    for action in state.legal_actions():
        yield from infosets(state.child(action))


OBSERVED = ["markov_soccer(horizon=2)", "coop_box_pushing(horizon=2)", "deep_sea(size=3)"]


@pytest.mark.parametrize("name", OBSERVED)
def test_observations_and_the_past_are_what_a_learner_knows(name):
    """Infosets are the learner's sequences of observations and actions, one for each."""
    tree, environment = load(f"openspiel:{name}", recall="refine")
    game = OpenSpielGame(pyspiel.load_game(name), "refine").game
    known = set()

    def visit(state, past):
        if state.is_terminal():
            return
        for action in state.legal_actions():
            now = past
            if state.current_player() == 0:
                known.add((*past, state.observation_string()))
                now = (*past, state.observation_string(), action)
            visit(state.child(action), now)

    visit(game.new_initial_state(), ())
    assert tree.n_infosets - (tree.infoset_labels[0] == "(start)") == len(known)
    uniform = [openspiel_policy.UniformRandomPolicy(game)] * game.num_players()
    value = expected_game_score.policy_value(game.new_initial_state(), uniform)[0]
    assert uniform_value(environment) == pytest.approx(value, abs=1e-12)


def test_a_process_without_standard_error_loads_too(monkeypatch):
    def closed(number):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("os.dup", closed)
    assert load("openspiel:kuhn_poker")[0].n_infosets == 7


def test_sampled_chance_is_refused():
    sampled = [
        kind.short_name
        for kind in pyspiel.registered_games()
        if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC and kind.default_loadable
    ]
    assert sampled
    with pytest.raises(ValueError, match="game must give the probabilities of chance"):
        load_openspiel(sampled[0])


def test_policies_of_opponents_are_checked():
    class Odd:
        def __init__(self, *pairs):
            self.pairs = dict(pairs)

        def action_probabilities(self, state, player):
            return self.pairs

    for policy in (Odd((7, 1.0)), Odd((0, 0.5)), Odd((0, -1.0), (1, 2.0)), Odd()):
        with pytest.raises(ValueError, match="opponents"):
            load("openspiel:kuhn_poker", 0, policy)
    always_pass = load("openspiel:kuhn_poker", 0, Odd((0, 1.0)))[1]
    assert best_response_value(always_pass) == pytest.approx(1.0)


def test_the_same_tree_by_either_protocol():
    """child by child, as any source is walked, and by expand."""
    source = load_openspiel("kuhn_poker")
    slow = SimpleNamespace(
        **{
            name: getattr(source, name)
            for name in ("root", "kind", "actions", "child", "chance", "infoset", "payoff")
        },
        n_players=2,
        player_labels=("0", "1"),
    )
    from equinoise.games.walk.walk import walk

    (tree, environment), (other, its) = walk(source), walk(slow)
    assert tree.same_as(other)
    assert naive.shape(environment) == naive.shape(its)
    assert source.where(source.root()).startswith("the state of kuhn_poker()")
