"""Gambit's files by the thousand: a plain writer of random games, OpenSpiel, broken files, large files."""

from __future__ import annotations

import random
import re
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from equinoise.games.efg import grammar
from equinoise.games.efg.reader import parse_efg, read_efg
from equinoise.games.walk.walk import CHANCE, TERMINAL, walk

seeds = st.integers(0, 2**32 - 1)
EFG = Path(__file__).resolve().parents[1] / "data" / "efg"

# ----------------------------------------------------------------------------------------------------------
# A plain writer of random games
# ----------------------------------------------------------------------------------------------------------

LETTERS = ["a", "b", " ", '"', "\\", "{", "}", ",", "\n", "é", "王", "1", "\t"]


def random_text(rng):
    return "".join(rng.choices(LETTERS, k=rng.randrange(4))).rstrip("\\")


def random_game(rng, n_players, size):
    """Nodes parent first, [player, infoset, labels, chances, outcome, children], and payoffs by outcome."""
    payoffs = {k: [Fraction(rng.randrange(-99, 99), rng.choice([1, 2, 7, 8, 1000])) for _ in range(n_players)]
               for k in rng.sample(range(1, 99), rng.randrange(1, 6))}  # fmt: skip
    infosets, nodes = {}, []
    stack = [None]
    while stack:
        parent = stack.pop()
        if parent is not None:
            nodes[parent][5].append(len(nodes))
        player = (
            TERMINAL
            if len(nodes) + len(stack) >= size or rng.random() < 0.3
            else rng.randrange(-1, n_players)
        )
        outcome = rng.choice([0, *payoffs]) if player == TERMINAL or rng.random() < 0.2 else 0
        if player == TERMINAL:
            nodes.append([player, None, (), (), outcome, []])
            continue
        key = player, rng.randrange(size)
        if key not in infosets:
            n = rng.randrange(1, 4)
            weights = [rng.randrange(1, 5) for _ in range(n)]
            chances = tuple(Fraction(w, sum(weights)) for w in weights) if player == CHANCE else ()
            infosets[key] = tuple(random_text(rng) for _ in range(n)), chances
        labels, chances = infosets[key]
        stack += [len(nodes)] * len(labels)
        nodes.append([player, key[1], labels, chances, outcome, []])
    return nodes, payoffs


def spelled(value, rng):
    ways = [
        str(value),
        f"{value.numerator}/{value.denominator}",
        f"{3 * value.numerator}/{3 * value.denominator}",
    ]
    tenths = value * 1000
    if tenths.denominator == 1:
        ways += [f"{tenths.numerator}e-3", f"{float(value):.3f}", f"{float(value):+.4e}"]
    return rng.choice(ways)


def written(nodes, payoffs, n_players, rng, omit=0.5, space=(" ", "\t", "  "), end="\n"):
    """Write a game down; at random what may be left out is, and what may be spelled in two ways is."""

    def quoted(text):
        return '"' + text.replace('"', '\\"') + '"'

    def braces(items):
        comma = rng.choice(["", ",", " ,"])
        return "{ " + f"{comma} ".join(items) + (comma if items else "") + " }"

    def outcome(k):
        if k == 0 or (k in told and rng.random() < omit):
            return [str(k)]
        told.add(k)
        return [str(k), quoted(random_text(rng)), braces([spelled(value, rng) for value in payoffs[k]])]

    told, rows = set(), [f'EFG 2 R "" {braces([quoted(str(i)) for i in range(n_players)])}']
    for player, infoset, labels, chances, k, _ in nodes:
        letter = {CHANCE: "c", TERMINAL: "t"}.get(player, "p")
        row = [letter, quoted(random_text(rng))] + [str(player + 1)] * (letter == "p")
        if player != TERMINAL:
            row.append(str(infoset))
            if (player, infoset) not in told or rng.random() >= omit:
                told.add((player, infoset))
                items = [quoted(label) for label in labels]
                if player == CHANCE:
                    items = [f"{item} {spelled(p, rng)}" for item, p in zip(items, chances, strict=True)]
                row += [quoted("")] * (rng.random() < 0.8) + [braces(items)]
        rows.append(rng.choice(space).join(row + outcome(k)))
    return end.join(rows)


@given(seeds)
@settings(max_examples=300)
def test_written_games_are_read_back(seed):
    rng = random.Random(seed)
    n_players = rng.randrange(1, 4)
    nodes, payoffs = random_game(rng, n_players, rng.choice([1, 5, 40]))
    game = parse_efg(written(nodes, payoffs, n_players, rng, end=rng.choice(["\n", "\r\n", " "])))
    assert game.n_nodes == len(nodes)
    total = {0: [Fraction(0)] * n_players}
    for state, (player, infoset, labels, chances, outcome, below) in enumerate(nodes):
        assert game.kind(state) == player
        assert (tuple(game.actions(state)), tuple(game.chance(state))) == (labels, chances)
        assert [game.child(state, i) for i in range(len(labels))] == below == list(game.expand(state)[1])
        if player >= 0:
            assert game.infoset(state) == (infoset, f"{player + 1}:{infoset}")
        own = [
            a + b
            for a, b in zip(total[state], payoffs.get(outcome, total[0] and [0] * n_players), strict=True)
        ]
        assert [game.payoff(state, i) for i in range(n_players)] == own
        total |= dict.fromkeys(below, own)
    again = parse_efg(written(nodes, payoffs, n_players, rng, omit=0, space=" ", end=" "))
    assert again == game


# ----------------------------------------------------------------------------------------------------------
# OpenSpiel reads the same
# ----------------------------------------------------------------------------------------------------------


def simple(nodes, payoffs):
    """Write a game down as OpenSpiel wants it: all said every time, infosets numbered in order, no comma."""
    order, rows = {}, ['EFG 2 R "x" { "p0" "p1" }']
    for state, (player, infoset, labels, chances, _, _) in enumerate(nodes):
        if player == TERMINAL:
            rows.append(f't "n{state}" {state + 1} "" {{ {" ".join(map(str, map(float, payoffs[state])))} }}')
        elif player == CHANCE:
            items = " ".join(f'"e{i}" {float(p)!r}' for i, p in enumerate(chances))
            rows.append(f'c "n{state}" {state + 1} "" {{ {items} }} 0')
        else:
            number = order.setdefault((player, infoset), sum(key[0] == player for key in order) + 1)
            items = " ".join(f'"a{player}.{number}.{i}"' for i in range(len(labels)))
            rows.append(f'p "n{state}" {player + 1} {number} "" {{ {items} }} 0')
    return "\n".join(rows) + "\n"


@given(seeds)
@settings(max_examples=60)
def test_openspiel_reads_the_same_game(seed):
    pyspiel = pytest.importorskip("pyspiel", reason="needs open_spiel")
    rng = random.Random(seed)
    nodes, _ = random_game(rng, 2, 25)
    payoffs = [[Fraction(rng.randrange(-40, 40), 8) for _ in range(2)] for _ in nodes]
    if nodes[0][0] == TERMINAL:
        return
    text = simple(nodes, payoffs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        game = parse_efg(text)
    stack = [(game.root(), pyspiel.load_efg_game(text).new_initial_state())]
    met = 0
    while stack:
        ours, theirs = stack.pop()
        met += 1
        if game.kind(ours) == TERMINAL:
            assert theirs.is_terminal()
            assert theirs.returns() == [float(game.payoff(ours, player)) for player in range(2)]
            continue
        assert theirs.is_chance_node() == (game.kind(ours) == CHANCE)
        if game.kind(ours) == CHANCE:
            assert [p for _, p in theirs.chance_outcomes()] == pytest.approx(
                list(map(float, game.chance(ours)))
            )
        else:
            assert theirs.current_player() == game.kind(ours)
        below = {theirs.action_to_string(a): theirs.child(a) for a in theirs.legal_actions()}
        assert set(below) == set(game.actions(ours))
        stack += [(game.child(ours, i), below[label]) for i, label in enumerate(game.actions(ours))]
    assert met == len(nodes)


@pytest.mark.parametrize(
    ("name", "infosets", "actions", "uniform", "best"),
    [("kuhn_poker", 6, 12, 0.125, 0.5), ("leduc_poker", 468, 1092, -0.078125, 2.0875)],
)
def test_games_that_openspiel_writes(name, infosets, actions, uniform, best):
    pyspiel = pytest.importorskip("pyspiel", reason="needs open_spiel")
    export = pytest.importorskip("open_spiel.python.algorithms.gambit").export_gambit
    tree, environment = walk(parse_efg(export(pyspiel.load_game(name))))
    assert (tree.n_infosets, tree.n_actions) == (infosets + 1, actions + 1)
    policy = 1 / np.diff(tree.action_ptr)[tree.action_infoset]
    assert environment.utility(environment.expected_loss(policy)) == pytest.approx(uniform, abs=1e-9)
    assert environment.utility(environment.best_response()[0]) == pytest.approx(best, abs=1e-9)


# ----------------------------------------------------------------------------------------------------------
# Broken files
# ----------------------------------------------------------------------------------------------------------


def survives(text):
    """Read a text: a game or a ValueError, and no hang; true when it is a game."""
    begun = time.thread_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            game = parse_efg(text, "broken.efg")
            if game.n_players and game.kind(game.root()) >= 0:
                walk(game, game.kind(game.root()), recall="refine")
    except ValueError as error:
        assert str(error)
        return False
    finally:
        assert time.thread_time() - begun < 5
    return True


SMALL = """EFG 2 R "a \\"b\\"" { "x" "y" } "c"
c "n" 1 "e" { "u" 1/4 "v" .75 } 1 "fee" { 1, -1e0, }
p "" 1 1 "I" { "l" "r" } 0
t "" 2 "" { 1/2 2 }
t "" 0
p "" 2 1 "" { "z" } 0
t "" 2
"""


def test_a_file_cut_anywhere_is_a_game_only_at_its_end():
    whole = [end for end in range(len(SMALL) + 1) if survives(SMALL[:end])]
    assert whole == [len(SMALL) - 1, len(SMALL)]


def test_every_listed_file_cut_at_every_byte(tmp_path):
    path = tmp_path / "cut.efg"
    for file in sorted(EFG.glob("*.efg")):
        data = file.read_bytes()
        for end in range(len(data) + 1):
            path.write_bytes(data[:end])
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read_efg(path)
            except ValueError:
                continue


PIECES = ['"', "{", "}", ",", " ", "\n", "\\", "p", "c", "t", "0", "1", "-1", "1/0", "1e9999", "EFG", '""',
          "\x00", "9" * 30, "{ }", '"a" 1', "é", "1/2", "\\\""]  # fmt: skip


@given(seeds, st.booleans())
@settings(max_examples=400)
def test_mutated_files_are_games_or_refused(seed, by_token):
    rng = random.Random(seed)
    nodes, payoffs = random_game(rng, 2, rng.choice([3, 30]))
    text = written(nodes, payoffs, 2, rng)
    parts = text.split(" ") if by_token else list(text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(parts))
        change = rng.randrange(5)
        if change == 0:
            del parts[at : at + rng.randrange(1, 4)]
            parts.append("")
        elif change == 1:
            parts.insert(at, rng.choice(PIECES))
        elif change == 2:
            parts[at] = rng.choice(PIECES)
        elif change == 3:
            parts.insert(rng.randrange(len(parts)), parts[at])
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
    survives((" " if by_token else "").join(parts))


@given(st.text(alphabet='EFG2R "{}\\\n1pct0,é', max_size=60), st.booleans())
@settings(max_examples=300)
def test_random_texts_are_games_or_refused(text, headed):
    survives(('EFG 2 R "" { "x" }' if headed else "") + text)


# ----------------------------------------------------------------------------------------------------------
# Depth, width, size
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fees", [False, True])
def test_a_chain_of_depth_30_000(fees):
    depth = 30_000
    fee = '1 "" { 1/4 0 }' if fees else "0"
    rows = [f'p "" 1 {i} "" {{ "on" "stop" }} {fee}' for i in range(depth)]
    text = 'EFG 2 R "" { "" "" }\n' + "\n".join(rows) + '\nt "" 2 "" { 7 0 }' + '\nt "" 0' * depth
    game = parse_efg(text)
    assert game.n_nodes == 2 * depth + 1
    assert game.payoff(depth, 0) == 7 + fees * Fraction(depth, 4)
    assert game.child(0, 1) == 2 * depth
    assert game.payoff(2 * depth, 0) == fees * Fraction(1, 4)
    assert game.where(2 * depth) == f"the node on line {2 * depth + 2} of <text>"
    if not fees:
        return
    tree, environment = walk(game)
    assert (tree.depth, tree.n_infosets) == (depth, depth)
    assert environment.utility(environment.best_response()[0]) == pytest.approx(7 + depth / 4)


def test_a_chance_node_of_50_000_actions():
    n = 50_000
    items = " ".join(f'"" {2 * (i + 1)}/{n * (n + 1)}' for i in range(n))
    leaves = "\n".join(f't "" {i + 1} {{ {i} }}' for i in range(n))
    game = parse_efg(f'EFG 2 R "" {{ "" }} c "" 1 "" {{ {items} }} 0 {leaves}')
    assert game.chance(0)[2] == Fraction(6, n * (n + 1))
    assert [game.payoff(game.child(0, i), 0) for i in (0, n - 1)] == [0, n - 1]


MANY = 400_000


@pytest.mark.parametrize(
    "tail",
    ['"' + '\\"' * MANY, '"' + "x\n" * MANY, "{" * MANY, "{ 1 " * MANY, '{ "" ' * MANY, '"" ' * MANY,
     "1" * MANY, " " * MANY, "\\" * MANY, "1 " * MANY, "{ 1" + ",1" * MANY],
    ids=lambda tail: f"{tail[:6]!r}",
)  # fmt: skip
@pytest.mark.parametrize(
    "start", ["", 'EFG 2 R "" { "x" } ', 'EFG 2 R "" { "x" } t "" 1 ', 'EFG 2 R "" { "x" } p ']
)
def test_refusing_takes_linear_time(start, tail):
    begun = time.thread_time()
    with pytest.raises(ValueError, match=r"^g, line \d+: .{3,300}$"):
        parse_efg(start + tail, "g")
    assert time.thread_time() - begun < 2


def test_no_group_is_repeated_possessively():
    """Python 3.11 before 3.11.5 loses its place there, and refused every file."""
    for pattern in [node.pattern.pattern for node in grammar.NODES.values()] + [
        grammar.joined(grammar.PROLOGUE)
    ]:
        assert not re.search(r"\)[*+?]\+", pattern)
