"""Every count and every seed that a user gives: taken, or refused by name before any work and memory."""

from __future__ import annotations

import functools
import math
import os
import time
import tracemalloc
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from equinoise import _sweep, bandits, efb, games, inference, mechanisms, nvo, replicates
from equinoise.bandits import linear
from equinoise.bandits.replay.tableau import tableau
from equinoise.cli import main
from equinoise.experiments.bias import power
from equinoise.experiments.commands import audit, bandit, efb as efb_command
from equinoise.games.catalog import complete
from equinoise.nvo import pairs

pytestmark = pytest.mark.compiled
IDLE = _sweep._Idle()  # an executor that says when it is asked for work: the arguments were taken
TREE, ENVIRONMENT = games.load("bandit(3)")
LOG = pd.DataFrame({"arm": list("abba") * 5, "reward": [1, 0, 0, 1] * 5, "x": [1.0, -1.0] * 10})
GAME = nvo.NoiseGame(nvo.Histogram.from_values([1, 2, 2, 3, 3, 3, 4, 4, 9], 9, bounds=(0, 10)), 2.0)
ROOM = 2**28  # bytes before the work
SECONDS = 5.0
WORK = {"steps"}  # hours of which are no mistake, and begin at once


def squares(start, stop):
    return {"square": np.arange(start, stop) ** 2}


def called(function, *given, **fixed):
    return functools.partial(function, *given, **fixed)


pull = called(bandits.simulate, "ucb", [0.5, 0.4], horizon=20, n_replicates=10, executor=IDLE)
draw = called(linear.simulate, "oful", n_arms=2, dimension=2, horizon=20, n_replicates=10, executor=IDLE)
play = called(efb.simulate, TREE, ENVIRONMENT, horizon=20, epsilon=1.0, n_replicates=2, executor=IDLE)
match = called(efb.self_play, "kuhn_poker", horizon=20, epsilon=1.0, n_replicates=2, executor=IDLE)
repeat = called(replicates.run, squares, n_replicates=4, executor=IDLE)
own = called(linear.LinearBandit, n_arms=2, dimension=2)
private = called(own, policy="private-oful", epsilon=1.0, horizon=10, longest=1.0, noise="float")
audited = called(
    inference.audit, lambda i, size, seed: np.random.default_rng(seed).random(size) < 0.5, 1.0, size=200
)
tables = called(bandits.tableau.tableau, [0.5, 0.4], horizon=5)
horizon = {"horizon": 10, "seed": 1}
sampled = called(bandits.simulate, "thompson", [0.5, 0.4], horizon=20, executor=IDLE)
laziest = called(bandits.simulate, "lazy-dp-ts", [0.5, 0.4], horizon=20, epsilon=1.0, executor=IDLE)

# What takes a count, its name, one that is taken, the least, and whether any larger one is taken too.
COUNTS = {
    "run": (repeat, "n_replicates", 4, 1, False),
    "run, block": (repeat, "block", 2, 1, True),
    "bandits": (pull, "n_replicates", 4, 1, False),
    "bandits, horizon": (pull, "horizon", 9, 2, False),
    "bandits, checkpoints": (pull, "n_checkpoints", 3, 1, False),
    "bandits, delay": (pull, "delay", 3, 0, False),
    "linear": (draw, "n_replicates", 4, 1, False),
    "linear, horizon": (draw, "horizon", 9, 1, False),
    "linear, checkpoints": (draw, "n_checkpoints", 3, 1, False),
    "linear, arms": (draw, "n_arms", 3, 1, False),
    "linear, dimension": (draw, "dimension", 3, 1, False),
    "efb": (play, "n_replicates", 4, 1, False),
    "efb, horizon": (play, "horizon", 9, 1, False),
    "efb, checkpoints": (play, "n_checkpoints", 3, 1, False),
    "self-play": (match, "n_replicates", 4, 1, False),
    "self-play, horizon": (match, "horizon", 9, 1, False),
    "self-play, checkpoints": (match, "n_checkpoints", 3, 1, False),
    "tune": (called(efb.tune, TREE, epsilon=1.0), "horizon", 9, 1, False),
    "server": (called(efb.Server, TREE, epsilon=1.0), "horizon", 9, 1, False),
    "ucb": (bandits.UCB, "n_arms", 3, 1, False),
    "private-ucb": (called(bandits.PrivateUCB, 2, 1.0, noise="float"), "horizon", 9, 1, False),
    "request": (lambda n: bandits.UCB(2).request(n), "n", 3, 1, False),
    "linear bandit, arms": (own, "n_arms", 3, 1, False),
    "linear bandit, dimension": (own, "dimension", 3, 1, False),
    "linear bandit, horizon": (private, "horizon", 9, 1, False),
    "replay": (called(bandits.replay, "ucb", LOG), "horizon", 9, 1, False),
    "replay, replicate": (called(bandits.replay, "ucb", LOG), "replicate", 9, 0, False),
    "linear replay": (called(linear.replay, "oful", LOG, ["x"]), "horizon", 9, 1, False),
    "tableau": (tables, "horizon", 9, 1, False),
    "tableau, replicate": (tables, "replicate", 9, 0, False),
    "binary": (called(mechanisms.BinaryCounter, 1.0, seed=1), "horizon", 9, 1, False),
    "k-ary": (called(mechanisms.KaryCounter, 1.0, seed=1), "horizon", 9, 1, False),
    "vector": (called(mechanisms.VectorCounter, 1.0, dimension=2, seed=1), "horizon", 9, 1, False),
    "vector, dimension": (called(mechanisms.VectorCounter, 1.0, **horizon), "dimension", 3, 1, False),
    "node": (lambda n: mechanisms.BinaryCounter(1.0, 10, seed=1).node_scale(n), "n", 3, 1, False),
    "laplace": (called(mechanisms.laplace, 1.0), "size", 3, 0, False),
    "audit": (audited, "size", 100, 100, False),
    "bandit(n)": (games.bandit, "n", 3, 1, False),
    "complete, actions": (called(complete, observations=2, depth=2), "actions", 3, 1, False),
    "complete, depth": (called(complete, 2, 2), "depth", 3, 1, False),
    "kuhn": (games.kuhn_poker, "players", 3, 2, False),
    "load": (called(games.load, "kuhn_poker"), "max_histories", 99, 1, True),
    "text": (TREE.to_text, "most", 9, 1, True),
    "losses": (
        called(games.Schedule.of_losses, games.load("kuhn_poker")[1], lambda t: 1 / 0), "trials", 3, 1, False,
    ),
    "batches": (
        called(inference.arm_means, [0, 1] * 4, [0.5] * 8, [0.5] * 8, method="batched-ols"),
        *("batches", 2, 1, True),
    ),
    "draws": (laziest, "draws", 3, 1, False),
    "batch": (sampled, "batch", 3, 1, False),
    "bins": (called(nvo.Histogram.from_values, [1, 2, 3], bounds=(0, 9)), "n_bins", 9, 2, False),
    "restarts": (GAME.best_response, "restarts", 2, 1, False),
    "steps": (GAME.anneal, "steps", 50, 0, False),
    "generations": (called(GAME.genetic, population=20), "generations", 2, 0, False),
    "population": (called(GAME.genetic, generations=2), "population", 20, 2, False),
    "rows": (GAME.uniform().sample, "size", 3, 1, False),
    "efb command": (called(efb_command.Parameters, "kuhn_poker"), "trials", 9, 1, False),
    "efb command, replicates": (called(efb_command.Parameters, "kuhn_poker"), "replicates", 9, 1, False),
    "efb command, checkpoints": (called(efb_command.Parameters, "kuhn_poker"), "checkpoints", 9, 1, False),
    "bandit command": (bandit.Parameters, "horizon", 9, 4, False),
    "bandit command, replicates": (bandit.Parameters, "replicates", 9, 1, False),
    "bandit command, checkpoints": (bandit.Parameters, "checkpoints", 9, 1, False),
    "audit command": (called(audit.Parameters, "user"), "draws", 4000, 4000, False),
    "plan": (called(power.plan, executor=IDLE, policies=()), "horizon", 100, 20, False),
    "plan, replicates": (called(power.plan, executor=IDLE, policies=()), "replicates", 9, 2, False),
}  # fmt: skip


def tried(call, name, value, warm=True):
    """Call; whether it was taken. It says which argument is wrong, soon, and takes no memory before it."""
    tracemalloc.start()
    begun = time.perf_counter()
    try:
        call(**{name: value})
    except (_sweep._Ready, ZeroDivisionError):
        taken = True
    except (ValueError, TypeError) as error:
        assert name in str(error) and "\n" not in str(error) and len(str(error)) < 500
        taken = False
    else:
        taken = True
    finally:
        seconds, peak = time.perf_counter() - begun, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < ROOM and (seconds < SECONDS or not warm), (seconds, peak)  # else kernels are compiled
    return taken


@pytest.mark.parametrize("case", COUNTS)
def test_a_count_is_taken_or_refused_by_name(case):
    call, name, good, least, free = COUNTS[case]
    assert tried(call, name, good, warm=False)
    assert tried(call, name, np.int64(good)) and tried(call, name, np.uint16(good))
    for value in (10**400, 10**5000):
        assert tried(call, name, value) == (free and value == 10**400), value
    for value in (2**63, 2**31):
        if case not in WORK:
            tried(call, name, value)
    for value in (-(10**5000), -1, least - 1):
        assert not tried(call, name, value), value
    for value in (True, np.True_, 1.5, float(good), math.nan, math.inf, str(good), [good], b"3", 1j):
        assert not tried(call, name, value), value


def test_all_work_together_has_a_ceiling():
    words = (
        r"^n_replicates must be at most 1,000 of 1,000,000,000,000 trials or rounds each \(10\^15 in all\)"
    )
    for call in (called(repeat, work=1e12), called(pull, horizon=10**12), called(match, horizon=10**12)):
        with pytest.raises(ValueError, match=words):
            call(n_replicates=1001)
    for call in (pull, play, match):
        with pytest.raises(ValueError, match=r"^horizon must be an integer from \d to 1000000000000, got"):
            call(horizon=10**12 + 1)


# Seeds: any integer that is not negative.

SEEDS = {
    "bandits": pull,
    "linear": draw,
    "efb": play,
    "self-play": match,
    "server": called(efb.Server, TREE, horizon=9, epsilon=1.0),
    "user": called(efb.User, TREE, 1.0, noise="float"),
    "play": called(efb.play, ENVIRONMENT, efb.Strategy(0, [0], [1])),
    "ucb": called(bandits.UCB, 2),
    "private-ucb": called(bandits.PrivateUCB, 2, 1.0, noise="float"),
    "linear bandit": private,
    "replay": called(bandits.replay, "ucb", LOG),
    "tableau": tables,
    "interact": called(bandits.interact, "ucb", [[0.5, 0.4]] * 5),
    "binary": called(mechanisms.BinaryCounter, 1.0, 10),
    "laplace": called(mechanisms.laplace, 1.0, 3),
    "audit": audited,
    "audit command": called(audit.Parameters, "user"),
    "efb command": called(efb_command.Parameters, "kuhn_poker"),
    "bandit command": bandit.Parameters,
    "best response": GAME.best_response,
    "anneal": called(GAME.anneal, steps=20),
    "rows": called(GAME.uniform().sample, 3),
}


@pytest.mark.parametrize("case", SEEDS)
def test_a_seed_is_taken_or_refused_by_name(case):
    for value in (0, 7, np.uint8(7), 2**63, 2**200, 10**400):
        assert tried(SEEDS[case], "seed", value, warm=value), value
    for value in (-1, 1.5, True, math.nan, "3", 10**5000, [1]):
        assert not tried(SEEDS[case], "seed", value), value


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", "9" * 5000])
def test_a_wrong_seed_of_the_audit_command(capsys, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "user", "--seed", seed]) == 2
    err = capsys.readouterr().err
    assert "--seed" in err and "Traceback" not in err and len(err) < 6000
    assert not list(tmp_path.iterdir())


def test_digits_beyond_what_python_writes_are_shown_in_words():
    with pytest.raises(
        TypeError, match="n_replicates must be an integer, got a list that is too long to show"
    ):
        repeat(n_replicates=[10**5000])
    with pytest.raises(ValueError, match="epsilon must be a positive number, got a int that is too long"):
        efb.tune(TREE, 10, -(10**5000))


RECORDS = nvo.Histogram.from_values([1.0, 2.0, 2.0, 3.0], 5, bounds=(0.0, 4.0))
PAIRS = pairs.PairHistogram.from_values([1.0, 2.0], [1.0, 2.0], 3, bounds=((0.0, 4.0), (0.0, 4.0)))
LARGE = {
    "a profile": ("size", functools.partial(nvo.NoiseGame(RECORDS, 1.0).laplace("amplified").sample, 10**8)),
    "a pair": ("size", functools.partial(pairs.PairGame(PAIRS, 0.5).uniform().sample, 2 * 10**7 + 1)),
    "one draw": ("size", lambda: nvo.one_draw_private(RECORDS, 1.0).sample(10**9)),
    "a private histogram": (
        "size",
        functools.partial(nvo.private_histogram(RECORDS, 1.0, seed=1).sample, 10**9),
    ),
    "noise": ("size", lambda: mechanisms.laplace(1.0, 2 * 10**8 + 1)),
    "an audit": ("size", lambda: inference.audit(mechanisms.laplace, 1.0, size=10**8)),
    "a tableau": ("horizon", lambda: tableau([0.5, 0.6], 5 * 10**7 + 1)),
}


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="a system that tells its memory")
@pytest.mark.parametrize("name", LARGE)
def test_what_no_memory_holds_is_refused_before_work(name, monkeypatch):
    """What is asked for here takes just more than a small machine has, which is told of in its place."""
    monkeypatch.setattr(os, "sysconf", lambda name: 40_000 if name != "SC_PAGE_SIZE" else 20_000)
    argument, call = LARGE[name]
    words = rf"^{argument} must be one whose results fit into this machine's 0\.8 GB"
    asked = AssertionError("memory was asked for")
    with mock.patch.object(np, "empty", side_effect=asked), pytest.raises(ValueError, match=words):
        call()
