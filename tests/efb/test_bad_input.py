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
MECHANISMS = ("hashing", "laplace")
TUNING = tune(TREE, 100, 1.0)
LAPLACE = tune(TREE, 100, 1.0, mechanism="laplace")
STRATEGY = Server(TREE, horizon=1, epsilon=1.0, seed=0).draw()
VALUES = Strategy(0, STRATEGY.infosets, STRATEGY.actions)  # the same, asking for noised losses
LAST = int(STRATEGY.actions[-1])

NO_TREE = (None, "kuhn_poker", 5, ENVIRONMENT, TREE.action_ptr, [[0.5]])
NO_ENVIRONMENT = (None, "uniform", TREE, [(ENVIRONMENT, 5)], 0.5)
NO_COUNT = (0, -1, 2.0, 1.5, "10", None, True, math.nan, math.inf, [5], np.float64(3))
NO_EPSILON = (0, 0.0, -1.0, math.nan, -math.inf, "1", None, True, [1.0], 1j, 5e-324, 1e-200)
NO_SEED = (-1, 0.5, "0", True, [1], math.nan)
NO_FLAG = (2, None, [], 0.0)
NO_RULE = ("Sharp", "", None, 5, ["sharp"], b"sharp", True)
NO_MECHANISM = ("Hashing", "", None, 5, ["laplace"], b"laplace", True, "gaussian")
NO_RANGE = (
    None, 0.5, "01", (0.0, 1.1), (-0.1, 1.0), (0.7, 0.3), (0.0, math.nan), (0.0, 0.5, 1.0), [[0.0, 1.0]],
    np.zeros((TREE.n_actions + 1, 2)), np.zeros((2, TREE.n_actions)), [[0.0, 1.0], [1.0]],
)  # fmt: skip


def table(function, good, bad):
    """One case for every wrong value of every argument, all the others being right."""
    function(**good)
    for name, values in bad.items():
        for value in values:
            yield pytest.param(
                function, {**good, name: value}, name, id=f"{function.__name__} {name} {value!r}"[:70]
            )


def no_tuning(good):
    """Tunings for the right horizon, epsilon and mechanism whose numbers are not right."""
    changes = [
        {"exploration": np.ones(5)},
        {"exploration": np.ones((1, TREE.n_actions))},
        {"exploration": np.full(TREE.n_actions, math.nan)},
        {"exploration": np.full(TREE.n_actions, -0.1)},
        {"learning_rate": math.nan},
        {"learning_rate": -1.0},
        {"learning_rate": math.inf},
    ]
    if good.symbols:
        changes += [
            {"exploration": good.exploration * 2},  # no plan of weight `explore`
            {"exploration": good.exploration[::-1]},
            {"explore": good.explore / 2},
            {"explore": math.nan},
            {"explore": -0.1},
            {"symbols": 3},
            {"symbols": -2},
            {"symbols": 2.0},
            {"symbols": 2**18},
            {"radius": None},
            {"radius": np.full(5, 0.5)},
            {"radius": np.full(TREE.n_actions, 0.6)},
            {"radius": np.full(TREE.n_actions, -0.1)},
            {"radius": np.full(TREE.n_actions, math.nan)},
        ]
    other = tune(OTHER_TREE, 100, 1.0, mechanism=good.mechanism)
    return (*NO_RULE, other, *(dataclasses.replace(good, **change) for change in changes))


def build_user(tree, epsilon, **options):
    return User(tree, epsilon, **options)


def build_server(tree, **options):
    return Server(tree, **options)


def report(strategy, last_action, loss):
    return User(TREE, 1.0, noise="float", seed=1).report(strategy, last_action, loss)


def report_values(strategy, last_action, loss):
    user = User(TREE, 1.0, mechanism="laplace", noise="float", seed=1)
    return user.report(strategy, last_action, loss)


def symbol_report(trial, symbol):
    return Report(trial, symbol=symbol)


def bound(trials):
    return TUNING.bound(trials)


def final_policy(replicate):
    return RUN.final_policy(replicate)


RUN = simulate(TREE, ENVIRONMENT, horizon=5, epsilon=1.0, n_replicates=2)
SIMULATION = {
    "tree": TREE, "environment": ENVIRONMENT, "horizon": 3, "epsilon": 1.0, "n_replicates": 1, "seed": 0,
    "tuning": "sharp", "mechanism": "hashing", "learner": "dp-efb", "n_checkpoints": 2, "block": None,
    "executor": None, "progress": False,
}  # fmt: skip
SERVER = {"tree": TREE, "horizon": 100, "epsilon": 1.0, "tuning": "sharp", "seed": 1}
NO_DEVICE = {
    "tree": NO_TREE,
    "epsilon": [value for value in NO_EPSILON if value != 1e-200],
    "noise": ("Secure", "", None, True, 5, "numpy"),
    "seed": NO_SEED,
    "mechanism": NO_MECHANISM,
    "loss_range": NO_RANGE,
}
NO_REPORT = {
    "strategy": (None, STRATEGY.actions, "strategy", 0, Strategy(0, [0], [0]), Report(0, [1.0])),
    "last_action": (-1, TREE.n_actions, 1.0, "0", None, True, math.nan, [LAST]),
    "loss": (-0.1, 1.1, math.nan, math.inf, "0", None, True, 1j, [0.5], -1e-300, 1 + 1e-15),
}
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
            "mechanism": NO_MECHANISM,
            "loss_range": NO_RANGE,
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
            "tuning": NO_RULE,
            "mechanism": NO_MECHANISM,
            "learner": ("DP-EFB", "", None, 3, ["uniform"]),
            "n_checkpoints": NO_COUNT,
            "block": (0, -1, 1.5, "3", True),
            "executor": (5, "threads"),
            "progress": NO_FLAG,
        },
    ),
    *table(simulate, {**SIMULATION, "horizon": 100}, {"tuning": no_tuning(TUNING)}),
    *table(
        simulate,
        {**SIMULATION, "horizon": 100, "mechanism": "laplace"},
        {"tuning": no_tuning(LAPLACE), "epsilon": NO_EPSILON, "horizon": NO_COUNT},
    ),
    *table(
        build_server,
        {**SERVER, "mechanism": "hashing"},
        {
            "tree": NO_TREE,
            "horizon": (*NO_COUNT, 10**400),
            "epsilon": NO_EPSILON,
            "tuning": no_tuning(TUNING),
            "seed": NO_SEED,
            "mechanism": NO_MECHANISM,
            "loss_range": NO_RANGE,
        },
    ),
    *table(
        build_server,
        {**SERVER, "mechanism": "laplace"},
        {"tuning": no_tuning(LAPLACE), "epsilon": NO_EPSILON, "horizon": NO_COUNT},
    ),
    *table(build_user, {"tree": TREE, "epsilon": 1.0, "noise": "float", "seed": 1}, NO_DEVICE),
    *table(
        build_user,
        {"tree": TREE, "epsilon": 1.0, "noise": "float", "seed": 1, "mechanism": "laplace"},
        {name: NO_DEVICE[name] for name in ("epsilon", "noise", "seed")},
    ),
    *table(
        report,
        {"strategy": STRATEGY, "last_action": LAST, "loss": 0.5},
        {**NO_REPORT, "strategy": (*NO_REPORT["strategy"], VALUES)},
    ),
    *table(
        report_values,
        {"strategy": VALUES, "last_action": LAST, "loss": 0.5},
        {**NO_REPORT, "strategy": (*NO_REPORT["strategy"], STRATEGY)},
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
        {"trial": 0, "infosets": [0], "actions": [0], "symbols": 2, "key": (1, 2)},
        {
            "symbols": (-2, 1, 3, 2.0, "2", None, True, 2**17 + 2, math.nan),
            "key": (
                0, [1], [1, 2, 3], [1.0, 2.0], ["1", "2"], None, [-1, 0], [[1, 2]], [0, 2**64], (1,), (-1, 0),
                (0, 2**64), (1.0, 2),
            ),
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
    *table(
        symbol_report,
        {"trial": 0, "symbol": 1},
        {
            "trial": (-1, 1.0, "0", None, True, 2**63, math.nan),
            "symbol": (-1, 1.0, "0", None, True, 2**17, math.nan, [1]),
        },
    ),
    *table(final_policy, {"replicate": 1}, {"replicate": (-1, 2, 1.0, "0", None, True)}),
]  # fmt: skip


def test_there_are_enough_cases():
    assert len(CASES) >= 400


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
    ("tuning", lambda: simulate(**{**SIMULATION, "horizon": 100, "tuning": LAPLACE})),
    ("tuning", lambda: simulate(**{**SIMULATION, "horizon": 100, "tuning": TUNING, "mechanism": "laplace"})),
    ("tuning", lambda: Server(**{**SERVER, "tuning": LAPLACE})),
    ("tuning", lambda: Server(**{**SERVER, "tuning": TUNING}, mechanism="laplace")),
    ("mechanism", lambda: Server(**{**SERVER, "tuning": "paper"})),
    ("mechanism", lambda: simulate(**{**SIMULATION, "tuning": "paper"})),
    ("epsilon", lambda: tune(TREE, 10, 1e-10)),  # a symbol that tells nothing
    ("epsilon", lambda: User(TREE, 1e-10)),
    ("values|symbol", lambda: Report(0, [1.0], symbol=1)),
    ("values|symbol", lambda: Report(0)),
    ("seed", lambda: User(TREE, 1.0, seed=1)),  # secure noise takes none
    ("seed", lambda: User(TREE, 1.0, mechanism="laplace", seed=1)),
    ("last_action", lambda: report(STRATEGY, NOT_PLAYED, 0.5)),
    ("last_action", lambda: report_values(VALUES, NOT_PLAYED, 0.5)),
    ("last_action", lambda: report(STRATEGY, 0, 0.5)),  # played, and without a leaf of its own
    ("last_action", lambda: report_values(VALUES, 0, 0.5)),
    ("loss", lambda: User(TREE, 1.0, loss_range=(0.2, 0.8)).report(STRATEGY, LAST, 0.1)),
    ("loss", lambda: User(TREE, 1.0, loss_range=(0.2, 0.8)).report(STRATEGY, LAST, 0.9)),
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
@pytest.mark.parametrize("tuning", [TUNING, LAPLACE], ids=MECHANISMS)
def test_a_tuning_is_for_its_horizon_and_epsilon(horizon, epsilon, tuning):
    """Made for 100 trials at epsilon 1 it proves nothing for others; what does not fit is refused."""
    given = {"horizon": horizon, "epsilon": epsilon, "tuning": tuning, "mechanism": tuning.mechanism}
    for run in (
        lambda: simulate(TREE, ENVIRONMENT, **given),
        lambda: Server(TREE, **given, seed=1),
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
