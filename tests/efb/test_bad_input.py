"""Wrong input to every public name of equinoise.efb is refused before any work, naming the argument."""

from __future__ import annotations

import dataclasses
import math
from concurrent.futures import Executor

import numpy as np
import pytest

from equinoise.efb import Report, Server, Strategy, User, play, simulate, tune
from equinoise.games import Environment, Schedule, from_nested, load

TREE, ENVIRONMENT = load("kuhn_poker")
OTHER_TREE, OTHER_ENVIRONMENT = from_nested([[0.5], [0.25]])
TUNING = tune(TREE, 100, 1.0)
STRATEGY = Server(TREE, horizon=1, epsilon=1.0, seed=0).draw()
LAST = int(STRATEGY.actions[-1])

NO_TREE = (None, "kuhn_poker", 5, ENVIRONMENT, TREE.action_ptr, [[0.5]])
NO_ENVIRONMENT = (None, "uniform", TREE, [(ENVIRONMENT, 5)], 0.5)
NO_COUNT = (0, -1, 2.0, 1.5, "10", None, True, math.nan, math.inf, [5], np.float64(3))
NO_EPSILON = (0, 0.0, -1.0, math.nan, -math.inf, "1", None, True, [1.0], 1j, 5e-324, 1e-200)
NO_SEED = (-1, 0.5, "0", True, [1], math.nan)
NO_FLAG = (2, None, [], 0.0)
NO_RULE = ("Sharp", "", None, 5, ["sharp"], b"sharp", True)


def table(function, good, bad):
    """One case for every wrong value of every argument, all the others being right."""
    function(**good)
    for name, values in bad.items():
        for value in values:
            yield pytest.param(
                function, {**good, name: value}, name, id=f"{function.__name__} {name} {value!r}"[:70]
            )


def tampered(**changes):
    return dataclasses.replace(TUNING, **changes)


NO_TUNING = (
    *NO_RULE,
    tune(OTHER_TREE, 100, 1.0),
    tampered(exploration=np.ones(5)),
    tampered(exploration=np.ones((1, TREE.n_actions))),
    tampered(exploration=np.full(TREE.n_actions, math.nan)),
    tampered(exploration=np.full(TREE.n_actions, -0.1)),
    tampered(learning_rate=math.nan),
    tampered(learning_rate=-1.0),
    tampered(learning_rate=math.inf),
)


def build_user(tree, epsilon, noise, seed):
    return User(tree, epsilon, noise=noise, seed=seed)


def build_server(tree, **options):
    return Server(tree, **options)


def report(strategy, last_action, loss):
    return User(TREE, 1.0, noise="float", seed=1).report(strategy, last_action, loss)


def bound(trials):
    return TUNING.bound(trials)


def final_policy(replicate):
    return RUN.final_policy(replicate)


RUN = simulate(TREE, ENVIRONMENT, horizon=5, epsilon=1.0, n_replicates=2)
SIMULATION = {
    "tree": TREE, "environment": ENVIRONMENT, "horizon": 3, "epsilon": 1.0, "n_replicates": 1, "seed": 0,
    "tuning": "sharp", "learner": "dp-efb", "n_checkpoints": 2, "block": None, "executor": None,
    "progress": False,
}  # fmt: skip
LATER = Strategy(2, STRATEGY.infosets, STRATEGY.actions)
NOT_PLAYED = min(set(range(TREE.n_actions)) - set(STRATEGY.actions.tolist()))

CASES = [
    *table(
        tune,
        {"tree": TREE, "horizon": 10, "epsilon": 1.0, "rule": "sharp"},
        {
            "tree": NO_TREE,
            "horizon": (*NO_COUNT, 10**400),
            "epsilon": NO_EPSILON,
            "rule": (*NO_RULE, "ixomd", "uniform"),
        },
    ),
    *table(bound, {"trials": 5}, {"trials": (-1, [1, -5], "5", None, math.nan, [[1], [2, 3]])}),
    *table(
        simulate,
        SIMULATION,
        {
            "tree": (*NO_TREE, OTHER_TREE),
            "environment": (*NO_ENVIRONMENT, OTHER_ENVIRONMENT, Schedule([(OTHER_ENVIRONMENT, 9)])),
            "horizon": (*NO_COUNT, 2**62),
            "epsilon": NO_EPSILON,
            "n_replicates": NO_COUNT,
            "seed": NO_SEED,
            "tuning": NO_TUNING,
            "learner": ("DP-EFB", "", None, 3, ["uniform"]),
            "n_checkpoints": NO_COUNT,
            "block": (0, -1, 1.5, "3", True),
            "executor": (5, "threads"),
            "progress": NO_FLAG,
        },
    ),
    *table(
        build_server,
        {"tree": TREE, "horizon": 10, "epsilon": 1.0, "tuning": "sharp", "seed": 1},
        {
            "tree": NO_TREE,
            "horizon": (*NO_COUNT, 10**400),
            "epsilon": NO_EPSILON,
            "tuning": NO_TUNING,
            "seed": NO_SEED,
        },
    ),
    *table(
        build_user,
        {"tree": TREE, "epsilon": 1.0, "noise": "float", "seed": 1},
        {
            "tree": NO_TREE,
            "epsilon": [value for value in NO_EPSILON if value != 1e-200],
            "noise": ("Secure", "", None, True, 5, "numpy"),
            "seed": NO_SEED,
        },
    ),
    *table(
        report,
        {"strategy": STRATEGY, "last_action": LAST, "loss": 0.5},
        {
            "strategy": (None, STRATEGY.actions, "strategy", 0, Strategy(0, [0], [0]), Report(0, [1.0])),
            "last_action": (-1, TREE.n_actions, 1.0, "0", None, True, math.nan, [LAST]),
            "loss": (-0.1, 1.1, math.nan, math.inf, "0", None, True, 1j, [0.5], -1e-300, 1 + 1e-15),
        },
    ),
    *table(
        play,
        {"environment": ENVIRONMENT, "strategy": STRATEGY, "seed": 1},
        {
            "environment": NO_ENVIRONMENT,
            "strategy": (None, STRATEGY.actions, 0, Strategy(0, [0], [0]), Report(0, [1.0])),
            "seed": NO_SEED,
        },
    ),
    *table(
        Strategy,
        {"trial": 0, "infosets": [0], "actions": [0]},
        {
            "trial": (-1, 1.0, "0", None, True, 2**63, math.nan),
            "infosets": (0, [0.0], ["0"], [-1], [[0]], None, [None], [True], [2**63], [1, [2, 3]]),
            "actions": (0, [0.0], ["0"], [-1], [[0]], None, [None], [True], [2**63], [0, 1], []),
        },
    ),
    *table(
        Report,
        {"trial": 0, "values": [0.5]},
        {
            "trial": (-1, 1.0, "0", None, True, 2**63, math.nan),
            "values": (0.5, ["a"], [[0.5]], None, [None], [True], [1j], [[1.0], [2.0, 3.0]], "abc"),
        },
    ),
    *table(final_policy, {"replicate": 1}, {"replicate": (-1, 2, 1.0, "0", None, True)}),
]  # fmt: skip


def test_there_are_enough_cases():
    assert len(CASES) >= 40


@pytest.mark.parametrize(("function", "arguments", "name"), CASES)
def test_wrong_input(function, arguments, name):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(**arguments)
    assert type(caught.value) in (TypeError, ValueError)  # not a relative from deep inside
    assert name in str(caught.value)


COMBINATIONS = [
    ("epsilon", lambda: simulate(**{**SIMULATION, "learner": "ixomd"})),  # which is not private
    ("horizon", lambda: simulate(**{**SIMULATION, "environment": Schedule([(ENVIRONMENT, 2)])})),
    ("tree", lambda: simulate(**{**SIMULATION, **leduc(), "learner": "flat-exp3"})),  # too many strategies
    ("tuning", lambda: simulate(**{**SIMULATION, "learner": "flat-exp3", "tuning": TUNING})),
    ("seed", lambda: User(TREE, 1.0, seed=1)),  # secure noise takes none
    ("last_action", lambda: report(STRATEGY, NOT_PLAYED, 0.5)),
    ("strategy", lambda: play(Schedule([(ENVIRONMENT, 2)]), LATER)),
    ("strategy", lambda: play(OTHER_ENVIRONMENT, STRATEGY)),
    ("strategy", lambda: User(OTHER_TREE, 1.0, noise="float").report(STRATEGY, LAST, 0.5)),
    ("infosets|actions", lambda: Strategy(0, [0, 1], [0])),
    ("data", lambda: Strategy.from_bytes("text")),
    ("data", lambda: Report.from_bytes(b"")),
]  # fmt: skip


def leduc():
    tree, environment = load("leduc_poker")
    return {"tree": tree, "environment": environment}


@pytest.mark.parametrize(("name", "call"), COMBINATIONS)
def test_arguments_that_do_not_go_together(name, call):
    with pytest.raises((TypeError, ValueError), match=name):
        call()


@pytest.mark.parametrize("horizon", [99, 101])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_tuning_is_for_its_horizon_and_epsilon(horizon, epsilon):
    """Made for 100 trials at epsilon 1 it proves nothing for others; what does not fit is refused."""
    for run in (
        lambda: simulate(TREE, ENVIRONMENT, horizon=horizon, epsilon=epsilon, tuning=TUNING),
        lambda: Server(TREE, horizon=horizon, epsilon=epsilon, tuning=TUNING, seed=1),
    ):
        with pytest.raises(ValueError, match=r"tuning|horizon|epsilon"):
            run()


def test_a_refused_simulation_does_no_work():
    """Wrong arguments are found before an executor is asked for anything."""

    class Untouched(Executor):
        def submit(self, *args):
            raise AssertionError("work was given away")

    for name, value in (
        ("n_checkpoints", 0),
        ("block", 0),
        ("n_replicates", 0),
        ("seed", -1),
        ("progress", 7),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            simulate(**{**SIMULATION, "executor": Untouched(), name: value})


def test_unknown_arguments_are_refused():
    for call in (
        lambda: simulate(TREE, ENVIRONMENT, horizon=3, epsilon=1.0, replicates=3),
        lambda: Server(TREE, 10, 1.0),
        lambda: User(TREE, 1.0, "float"),
    ):
        with pytest.raises(TypeError):
            call()


def test_environments_of_an_equal_tree_are_taken():
    """Trees are the same when their pointers are: built or loaded twice, it is one game."""
    again, _ = load("kuhn_poker")
    copy = Environment(again, ENVIRONMENT.infoset_prob, ENVIRONMENT.leaf_prob, ENVIRONMENT.leaf_loss)
    run = simulate(TREE, copy, horizon=5, epsilon=1.0, n_replicates=2)
    assert run.policy.tobytes() == RUN.policy.tobytes()
    assert play(copy, STRATEGY, seed=1) == play(ENVIRONMENT, STRATEGY, seed=1)
