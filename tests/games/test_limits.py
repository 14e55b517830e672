"""Games that are too large: found early, never wrongly, in one line; budgets of histories, bytes, seconds."""

from __future__ import annotations

import math
import re
import statistics
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import naive
from equinoise.games import load, load_joint
from equinoise.games.catalog import source_of
from equinoise.games.walk.record import Record
from equinoise.games.walk.walk import Limits, walk
from naive import ListedGame, end, move

N_LEDUC = 9457  # histories of Leduc poker
WORDS = "must be larger for this game.*: the walk stopped after"
PLAYOUTS = r"^max_histories must be larger for this game of \de\+\d\d histories or more, as playouts show"


class Chain:
    """A learner with one thing to do, again and again, `n` times; with `width` ways to end it each time."""

    n_players, player_labels = 1, ("0",)

    def __init__(self, n, width=0):
        self.n, self.width = n, width

    def root(self):
        return 0

    def kind(self, state):
        return -4 if state in {self.n, "over"} else 0

    def actions(self, state):
        return ["on", *["stop"] * self.width]

    def child(self, state, i):
        return "over" if i else state + 1

    def infoset(self, state):
        return state, ""

    def payoff(self, state, player):
        return 0 if state == "over" else 1


def refused(game, **options):
    """What the refusal of a game says, which is the same each time and stands on one line."""
    found = set()
    for _ in range(2):
        with pytest.raises(ValueError, match=WORDS) as caught:
            load(game, **options)
        found.add(str(caught.value))
    (words,) = found
    assert "\n" not in words
    return words


def visited(words):
    return int(words.partition("stopped after ")[2].split()[0])


LARGE = [
    "chess",
    "colored_trails",
    "crazyhouse",
    "maedn",
    "pig(winscore=3)",
    "tiny_bridge_4p",
    "dots_and_boxes",
    "yacht",
]


@pytest.mark.parametrize("name", LARGE)
def test_a_game_far_too_large_is_refused_after_few_histories(name):
    pytest.importorskip("pyspiel")
    words = refused(f"openspiel:{name}")
    assert re.match(PLAYOUTS, words)
    assert visited(words) < 100_000


def test_playouts_find_what_the_walk_would_meet_last():
    """The first 2^10 branches end at once, and below the last one there are 2^40 histories."""
    words = refused(SimpleNamespace(**parts(Lopsided())), max_histories=250_000)
    assert visited(words) < 100_000


class Lopsided(Chain):
    """A root with 2^10 ways to end the game, and one after which 40 infosets follow with two actions each."""

    def __init__(self):
        super().__init__(-1, 2**10)

    def actions(self, state):
        return [*["stop"] * self.width, "on"] if state == 0 else ["left", "right"]

    def child(self, state, i):
        if state == 0:
            return "over" if i < self.width else 1
        return "over" if state > 2**40 else 2 * state + i


def parts(source):
    names = ("root", "kind", "actions", "child", "infoset", "payoff", "n_players", "player_labels")
    return {name: getattr(source, name) for name in names} | {"chance": lambda state: []}


def playouts(limits, counts, source):
    """What playouts estimate until so many histories are counted."""

    def expand(state):
        n = len(source.chance(state) if source.kind(state) == -1 else source.actions(state))
        return n, [source.child(state, i) for i in range(n)]

    limits._play(counts, source, expand)
    return limits._estimates


def test_playouts_estimate_the_number_of_histories_without_bias():
    """Within 4.5 standard errors: chance below 1e-5, whatever a playout keeps at a time."""
    found = playouts(Limits(10**12), 200_000, source_of("leduc_poker"))
    assert len(found) > 500
    assert abs(statistics.mean(found) - N_LEDUC) < 4.5 * statistics.stdev(found) / math.sqrt(len(found))


@pytest.mark.parametrize("seed", range(40))
def test_playouts_refuse_no_game_that_fits(seed):
    """At most once in 1e12; a game twenty times as large as allowed is refused."""
    source = ListedGame(2, naive.random_game(np.random.default_rng(seed), depth=9))
    n = count(source)
    playouts(Limits(n), 20_000, source)
    if n > 20:
        with pytest.raises(ValueError, match=PLAYOUTS):
            playouts(Limits(n // 20), 20 * n + 20_000, source)


def count(source):
    """The number of histories, one by one."""
    states, n = [source.root()], 0
    while states:
        state = states.pop()
        n += 1
        if source.kind(state) != -4:
            width = len(source.chance(state) if source.kind(state) == -1 else source.actions(state))
            states += [source.child(state, i) for i in range(width)]
    return n


@pytest.mark.parametrize(
    "game", ["leduc_poker", "openspiel:liars_dice(dice_sides=4)", "kuhn_poker(players=4)"]
)
def test_a_game_that_just_fits_is_loaded(game):
    n = count(source_of(game))
    assert n == N_LEDUC or game != "leduc_poker"
    tree = load(game, max_histories=n)[0]
    assert tree.same_as(load(game)[0])
    words = refused(game, max_histories=n - 1)
    assert words.startswith("max_histories must be larger for this game:")
    assert visited(words) == n - 1


def test_a_deep_chain_fits_and_an_endless_one_does_not():
    source = SimpleNamespace(**parts(Chain(30_000)))
    assert load(source)[0].depth == 30_000
    assert refused(SimpleNamespace(**parts(Chain(math.inf))), max_histories=50_000).endswith(" moves deep")


def test_bytes_and_seconds_are_budgets_too():
    assert refused("leduc_poker", max_bytes=200_000).startswith("max_bytes must")
    with pytest.raises(ValueError, match="max_seconds must be larger for this game"):
        load("leduc_poker", max_seconds=1e-9)
    assert load("leduc_poker", max_bytes=10_000_000, max_seconds=1e9)[0].n_infosets == 469


def test_the_bytes_are_about_those_of_the_record():
    import tracemalloc

    record = Record(0, refine=False, exact=False)
    tracemalloc.start()
    try:
        above = record.start()
        for i in range(5_000):
            first = record.infoset(f"infoset {i}", f"infoset {i}", above, 2, 0.5, lambda state: ["a", "b"], i)
            record.leaf(first, float(i), 0.5)
            record.leaf(first + 1, float(i), 0.5)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < record.n_bytes < 3 * taken


def test_no_memory_is_said_in_the_same_words():
    class Huge(ListedGame):
        def child(self, node, i):
            raise MemoryError("std::bad_alloc")

    with pytest.raises(ValueError, match=r"^memory must be larger for this game: the walk stopped after"):
        walk(Huge(1, move(0, "s", end(0), end(1))))


@pytest.mark.parametrize(
    "options",
    [
        {"max_bytes": 0},
        {"max_bytes": math.nan},
        {"max_seconds": -1},
        {"max_seconds": "1"},
        {"max_bytes": None},
    ],
)
@pytest.mark.parametrize("game", ["kuhn_poker", "bandit(3)"])
def test_wrong_budgets_are_named(game, options):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be a"):
        load(game, **options)


@pytest.mark.slow
def test_every_game_of_openspiel_is_loaded_or_refused_in_one_line(capfd):
    """With default parameters: in seconds."""
    pyspiel = pytest.importorskip("pyspiel")
    for name in set(pyspiel.registered_names()):
        if name.startswith("python_"):
            continue
        try:
            load(f"openspiel:{name}", max_histories=30_000)
        except ValueError as error:
            assert str(error).count("\n") == 0
            assert len(str(error)) < 1_000
    assert capfd.readouterr().err == ""


def test_the_nodes_are_counted_on_a_terminal_alone(capsys, monkeypatch):
    load("leduc_poker", progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    load("leduc_poker", progress=True)
    load_joint("leduc_poker", progress=True)
    shown = capsys.readouterr().err
    assert shown.count("\r\x1b[K9,216 histories") == 2  # of 9,457, at every 1,024
    assert shown.endswith("\r\x1b[K")
    with pytest.raises(ValueError, match="max_histories"):
        load("leduc_poker", max_histories=5000, progress=True)
    assert capsys.readouterr().err.endswith("\r\x1b[K")
    load("leduc_poker")
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress"):
        load("leduc_poker", progress="yes")
