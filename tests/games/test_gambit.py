"""Gambit's files: what is read, what is refused and in which words, against a plain writer and OpenSpiel."""

from __future__ import annotations

import csv
import re
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from equinoise.games import load
from equinoise.games.efg.grammar import LARGEST, number
from equinoise.games.efg.reader import parse_efg, read_efg
from equinoise.games.walk.walk import CHANCE, TERMINAL, walk

# ----------------------------------------------------------------------------------------------------------
# Crafted files: each one thing that Gambit's format allows or forbids
# ----------------------------------------------------------------------------------------------------------

EFG = Path(__file__).resolve().parents[1] / "data" / "efg"
LISTED = list(csv.DictReader((EFG / "expected.csv").read_text(encoding="utf-8").splitlines()))

#: Words of the refusals: the line where the table wants one, and what is wrong.
REFUSED = {
    "absent.efg": r"'1:1' of player 0 is absent-minded",
    "bad_player.efg": r"bad_player\.efg, line 2: player 3 of 2",
    "imprecall.efg": r"infoset '1:2' .*\['L' at '1:1'\] and \['R' at '1:1'\]",
    "mismatch_actions.efg": r"line 6: infoset 1 of player 1 has 3 actions here and 2 on line 3",
    "neg_prob.efg": r"line 2: negative chance probability -1/2",
    "outcome_redef.efg": r"line 4: outcome 1 has other payoffs than on line 3",
    "outcome_twice.efg": r"line 4: outcome 1 has other payoffs than on line 3",
    "payoff_count.efg": r"line 3: an outcome takes 2 payoffs, one for each player, got 1",
    "root_terminal.efg": r"player must be one who moves",
    "trailing.efg": r"line 5: text after the end of the tree: 't'",
    "trunc.efg": r"the node on line 2 \(infoset 1 of player 1\) has 1 of its 2 children",
    "unbalanced.efg": r"line 4: unbalanced quote",
}


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row["file"])
def test_listed_files_load_or_are_refused(row):
    path = EFG / row["file"]
    if "refused" in row.values():
        begun = time.thread_time()
        with pytest.raises(ValueError, match=REFUSED[row["file"]]):
            load(path)
        assert time.thread_time() - begun < 1
    elif row["file"] == "decprob.efg":
        with pytest.warns(UserWarning, match=r"decprob\.efg, line 2: chance probabilities sum to 0\.999999 "):
            load(path)
    else:
        tree, environment = load(path)
        assert np.isfinite(environment.utility(environment.best_response()[0]))
        assert tree.n_actions >= tree.n_infosets >= 1


def test_the_table_of_refusals_is_complete():
    assert len(LISTED) == 32
    assert {row["file"] for row in LISTED if "refused" in row.values()} == set(REFUSED)


def test_values_of_listed_files():
    tree, environment = load(EFG / "unlabelled.efg")
    assert environment.utility(environment.expected_loss(np.full(tree.n_actions, 0.5))) == pytest.approx(3)
    assert environment.utility(environment.best_response()[0]) == pytest.approx(4)
    tree, environment = load(EFG / "dup_empty_labels.efg")
    assert [environment.utility(environment.expected_loss(policy)) for policy in ([1.0, 0], [0.0, 1])] == [
        1,
        2,
    ]
    game = read_efg(EFG / "bigint.efg")
    assert (game.payoff(1, 0), game.payoff(2, 1)) == (Fraction(12345678901234567890, 3), -(10**308))


# ----------------------------------------------------------------------------------------------------------
# One game in many spellings
# ----------------------------------------------------------------------------------------------------------

HEAD = 'EFG 2 R "t" { "1" "2" }\n'
TWO = 'p "" 1 1 "" { "A" "B" } 0\nt "" 1 "" { 1 -1 }\nt "" 2 "" { 2 -2 }\n'
SPELLINGS = {
    "plain": HEAD + TWO,
    "letter D": HEAD.replace(" R ", " D ") + TWO,
    "byte order mark": "\ufeff" + HEAD + TWO,
    "space before": "\n \t" + HEAD + TWO,
    "one line": (HEAD + TWO).replace("\n", " "),
    "carriage returns": (HEAD + TWO).replace("\n", "\r\n"),
    "old carriage returns": (HEAD + TWO).replace("\n", "\r"),
    "tabs": (HEAD + TWO).replace(" ", "\t\t"),
    "tight": (HEAD + TWO).replace('" ', '"').replace(' "', '"').replace("{ ", "{").replace(" }", "}"),
    "commas": HEAD + TWO.replace("1 -1", "1, -1").replace("2 -2", "2 ,-2,").replace('"A" ', '"A", '),
    "comment": HEAD + '"over\ntwo lines"\n' + TWO,
    "no names": HEAD + 'p 1 1 { "A" "B" } 0 t 1 { 1 -1 } t 2 { 2 -2 }',
    "named": HEAD + TWO.replace('p ""', 'p "root"').replace('1 "" { 1', '1 "win" { 1'),
    "numbers": HEAD + TWO.replace("1 -1", "+1.0 -10e-1").replace("2 -2", "4/2 -.2E1"),
    "other numbers": HEAD + TWO.replace('t "" 1', 't "" 41').replace('t "" 2', 't "" 007'),
    "null described": HEAD + TWO.replace("} 0", '} 0 "none" { 0 0 }'),
    "null payoff": HEAD + TWO.replace("} 0", "} 000"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_one_game(spelling):
    game = parse_efg(SPELLINGS[spelling])
    assert (game.title, game.player_labels, game.n_players, game.n_nodes) == ("t", ("1", "2"), 2, 3)
    assert [game.kind(state) for state in range(3)] == [0, TERMINAL, TERMINAL]
    assert tuple(game.actions(0)) == ("A", "B")
    assert [game.child(game.root(), i) for i in range(2)] == [1, 2] == list(game.expand(0)[1])
    assert [game.payoff(state, player) for state in (1, 2) for player in (0, 1)] == [1, -1, 2, -2]
    assert all(isinstance(game.payoff(state, 0), Fraction) for state in range(3))
    if spelling != "comment":
        assert game == parse_efg(SPELLINGS["plain"], name="another name")


def test_a_game_shows_itself_in_a_line():
    assert repr(parse_efg(SPELLINGS["comment"], "x.efg")) == (
        "GambitGame(name='x.efg', title='t', comment='over\\ntwo lines', player_labels=('1', '2'))"
    )


# ----------------------------------------------------------------------------------------------------------
# Numbers
# ----------------------------------------------------------------------------------------------------------

digits = st.text("0123456789", min_size=1, max_size=25)
decimals = st.one_of(
    digits, st.builds("{}.{}".format, digits, st.text("0123456789", max_size=25)), digits.map(".{}".format)
)
exponents = st.one_of(
    st.just(""),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 400)),
)
numbers = st.one_of(
    st.builds("{}{}{}".format, st.sampled_from(["", "+", "-"]), decimals, exponents),
    st.builds(
        "{}{}/{}".format, st.sampled_from(["", "+", "-"]), digits, digits.filter(lambda text: int(text))
    ),
)


@given(numbers, numbers)
def test_numbers_are_exact(one, other):
    assert number(one) == Fraction(one)
    game = parse_efg(f'{HEAD}t "" 1 "" {{{one},{other}}}')
    assert (game.payoff(0, 0), game.payoff(0, 1)) == (Fraction(one), Fraction(other))


@pytest.mark.parametrize("text", ["0", "-0", "-.0", ".0", "0.", "-0.000e5", "00/7", "1e1000", "7" * LARGEST])
def test_numbers_at_the_edges(text):
    assert parse_efg(f'{HEAD}t "" 1 {{ {text} 1 }}').payoff(0, 0) == Fraction(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1e1001", "has an exponent beyond 1000"),
        ("1e-999999999", "has an exponent beyond 1000"),
        ("1e" + "9" * 400, "has an exponent beyond 1000"),
        ("1e" + "9" * 10_000, "has more than 1000 digits"),
        ("7" * 5001, "has more than 1000 digits"),
        ("1/0", "zero denominator"),
        ("0/000", "zero denominator"),
        ("1/-2", "expected a payoff or }, got '1/-2'"),
        ("1/2e3", "expected a payoff or }, got '1/2e3'"),
        ("1.5/2", "expected a payoff or }, got '1.5/2'"),
        ("inf", "expected a payoff or }, got 'inf'"),
        ("nan", "expected a payoff or }, got 'nan'"),
        ("1_000", "expected a payoff or }, got '1_000'"),
        ("0x10", "expected a payoff or }, got '0x10'"),
        ("١", "expected a payoff or }, got '١'"),
        ("--1", "expected a payoff or }, got '--1'"),
        (".", "expected a payoff or }, got '.'"),
        ("e5", "expected a payoff or }, got 'e5'"),
        ('"1"', "expected a payoff or }, got '\"1\"'"),
    ],
)
def test_numbers_that_are_none(text, words):
    with pytest.raises(ValueError, match=rf"^g, line 4: .*{re.escape(words)}"):
        parse_efg(f'{HEAD}p "1/0" 1 1 "" {{ "A" "1/0" }} 0\nt "" 1 "1/0" {{ 1\n{text} }}\nt "" 0', "g")


# ----------------------------------------------------------------------------------------------------------
# What the format means
# ----------------------------------------------------------------------------------------------------------


def test_payoffs_of_inner_nodes_add_along_the_path():
    game = parse_efg(
        HEAD + 'p "" 1 1 "" { "A" "B" } 7 "" { 1/2 0 }\np "" 2 1 "" { "c" "d" } 5 "fee" { -1 1 }\n'
        't "" 1 "" { 1 -1 }\nt "" 5\nt "" 0'
    )
    assert [game.payoff(state, 0) for state in range(5)] == [Fraction(x, 2) for x in (1, -1, 1, -3, 1)]
    assert [game.payoff(state, 1) for state in range(5)] == [0, 1, 0, 2, 0]


def test_descriptions_may_be_left_out_the_second_time():
    game = parse_efg(
        HEAD + 'c "" 4 "" { "x" 1/2 "y" 1/2 } 0\np "" 1 1 "I" { "A" "B" } 0\nt "" 1 "" { 1 -1 }\n'
        'c "" 4 0\nt "" 1\nt "" 1 "again"\np "" 1 1 "I" 0\nt "" 1\nt "" 0'
    )
    assert [game.kind(state) for state in range(9)] == [CHANCE, 0, TERMINAL, CHANCE, *[TERMINAL] * 2, 0,
                                                        *[TERMINAL] * 2]  # fmt: skip
    assert tuple(game.actions(6)) == ("A", "B")
    assert game.infoset(1) == game.infoset(6) == (1, "I")
    assert list(game.chance(3)) == [Fraction(1, 2)] * 2
    assert [game.payoff(state, 0) for state in (2, 4, 5, 7, 8)] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("shift", [Fraction(1, 10**5), Fraction(-1, 10**5)])
def test_probabilities_nearly_one_are_divided_by_their_sum(shift):
    game = HEAD + '\nc "" 1 "" { "x" OFF "y" 1/2 "z" 0 } 0 t "" 0 t "" 0 t "" 0'
    off = Fraction(1, 2) + shift
    with pytest.warns(
        UserWarning, match=r"g, line 3: chance probabilities sum to (1\.00001|0\.99999) and were"
    ):
        chances = parse_efg(game.replace("OFF", str(off)), "g").chance(0)
    assert list(chances) == [off / (1 + shift), Fraction(1, 2) / (1 + shift), 0]
    assert sum(chances) == 1
    near = parse_efg(game.replace("OFF", str(Fraction(1, 2) + shift / 10**4)), "g")  # no warning
    assert sum(near.chance(0)) == 1
    assert near.chance(0)[1] < near.chance(0)[0] if shift > 0 else near.chance(0)[1] > near.chance(0)[0]
    with pytest.raises(ValueError, match=r"g, line 3: the probabilities of chance must sum to 1, got"):
        parse_efg(game.replace("OFF", str(off + shift / 10**20)), "g")


def test_warnings_are_one_for_each_kind():
    node = 'c "" {} "" {{ "x" {} "y" .333333 "z" .333333 }} 0\n'
    labels = 'p "" 1 1 "" {{ "{}" "{}" }} 0 t "" 0 t "" 0\n'
    text = HEAD + node.format(1, 0.333333) + labels.format("A", "B") + labels.format("B", "A") + (
        node.format(2, 0.333334) + labels.format("A", "C") + 't "" 0 t "" 0'
    )  # fmt: skip
    with pytest.warns(UserWarning) as caught:
        game = parse_efg(text.replace(".333333 }", ".333332 }"), "g")
    assert [str(warning.message) for warning in caught] == [
        "g, line 2: chance probabilities sum to 0.999998 and were divided by their sum "
        "(the first of 2 such places)",
        "g, line 4: infoset 1 of player 1 has other labels than on line 3; actions go by their place, and "
        "the first labels stand (the first of 2 such places)",
    ]
    assert all(Path(warning.filename) == Path(__file__) for warning in caught)
    assert [tuple(game.actions(state)) for state in range(game.n_nodes) if game.kind(state) == 0] == [
        ("A", "B")
    ] * 3


def test_labels_of_infosets_are_unique_within_a_player():
    names = ["same", "same", "", "own", "1:5", "1:2", "9:9"]
    nodes = [f'p "" 1 {i + 1} "{name}" {{ "a" "b" }} 0 t "" 0' for i, name in enumerate(names)]
    nodes.append('p "" 2 1 "same" { "a" } 0 t "" 0')
    game = parse_efg(HEAD + "\n".join(nodes))
    labels = [game.infoset(state) for state in range(game.n_nodes) if game.kind(state) != TERMINAL]
    assert labels == [
        (1, "1:1"),
        (2, "1:2"),
        (3, "1:3"),
        (4, "own"),
        (5, "1:5"),
        (6, "1:6"),
        (7, "1:7"),
        (1, "same"),
    ]


def test_texts_are_kept_as_they_are():
    texts = ['say "hi"', "a\\b", "tab\tand\r\nline", '{ } , "', "Élise 王 \U0001f0a1", "", "\\\\x"]
    quoted = ['"' + text.replace('"', '\\"') + '"' for text in texts]
    actions = " ".join(quoted)
    head = f"EFG 2 R {quoted[0]} {{ {actions} }} {quoted[4]} p {quoted[3]} 1 1 {quoted[2]} {{ {actions} }} 0"
    game = parse_efg(head + ' t "" 0' * len(texts))
    assert (game.title, game.comment, game.player_labels) == (texts[0], texts[4], tuple(texts))
    assert (tuple(game.actions(0)), game.infoset(0)[1]) == (tuple(texts), texts[2])


def test_the_learner_may_be_named_by_a_label():
    text = HEAD.replace('"1" "2"', '"Élise" "王"') + 'p "" 2 5 "" { "x" "y" } 0\n' + TWO + 't "" 2'
    tree, environment = walk(parse_efg(text), "王")
    assert (tree.infoset_labels, tree.action_labels) == (("2:5",), ("x", "y"))
    assert environment.utility(environment.best_response()[0]) == pytest.approx(-1.5)


# ----------------------------------------------------------------------------------------------------------
# What is refused
# ----------------------------------------------------------------------------------------------------------

CHANCE_TWO = 'c "" 1 "" { "x" 1/2 "y" 1/2 } 0\n'
WRONG = [
    ("", "line 1: expected EFG, .*, got the end of the file"),
    ("\x00\x01PK", r"line 1: expected EFG, .*, got '\\x00\\x01PK'"),
    ('NFG 1 R "t" { "1" }', "line 1: expected EFG, .*, got 'NFG'"),
    ("EFG2 R", "line 1: expected EFG, .*, got 'EFG2'"),
    ('EFG 1 R "t" { "1" }', "line 1: expected version 2 .*, got '1'"),
    ('EFG 2 Q "t" { "1" }', r"line 1: expected the letter R \(or D, of older files\), got 'Q'"),
    ('EFG 2 R t { "1" }', "line 1: expected the title in quotes, got 't'"),
    ('EFG 2 R "t" "1" "2"', "line 1: expected the players in braces, got '\"1\"'"),
    ('EFG 2 R "t" { "1" 2 }', "line 1: expected a player's label in quotes or }, got '2'"),
    ('EFG 2 R "t"\n{ "1" ', "line 2: expected a player's label in quotes or }, got the end of the file"),
    ('EFG 2 R "t" { }', "line 1: a game needs at least one player"),
    ('EFG 2 R "t { "1" "2" }\nt "" 0', "line 1: expected the players in braces, got '1'"),
    (HEAD, "line 2: the file ends before the tree does: it has no node"),
    (HEAD + '"one" "comment too many"', "line 2: expected the end of this entry, got '\"comment too many\"'"),
    (HEAD + 'q "" 1', r"line 2: expected a node \(c, p or t\), got 'q'"),
    (HEAD + 'tt "" 1', r"line 2: expected a node \(c, p or t\), got 'tt'"),
    (HEAD + '} t "" 0', r"line 2: expected a node \(c, p or t\), got '}'"),
    (HEAD + 'p "" 0 1 "" { "A" } 0 t "" 0', "line 2: player 0 of 2"),
    (HEAD + '\np "" 3 1 "" { "A" } 0 t "" 0', "line 3: player 3 of 2"),
    (HEAD + 'p "" -1 1 "" { "A" } 0 t "" 0', "line 2: expected a player's number, got '-1'"),
    (HEAD + 'p "" 1 1.5 "" { "A" } 0 t "" 0', "line 2: expected the number of an infoset, got '1.5'"),
    (HEAD + f'p "" 1 {"9" * 19} "" {{ "A" }} 0', "line 2: expected the number of an infoset, got '9999"),
    (HEAD + 'p "" 1 1 "" { } 0', "line 2: a decision node needs at least one action"),
    (HEAD + 'c "" 1 "" { } 0', "line 2: a decision node needs at least one action"),
    (HEAD + 'p "" 1 1 0\nt "" 0', "line 2: infoset 1 of player 1 has no actions yet"),
    (HEAD + 'c "" 8 0\nt "" 0', "line 2: chance event 8 has no actions yet"),
    (HEAD + 'p "" 1 1 "" { "A" B } 0', "line 2: expected an action's label in quotes or }, got 'B'"),
    (
        HEAD + 'p "" 1 1 "" { "A"\n"B" 0',
        "line 3: expected an action's label in quotes or }, got '0' .*line 2",
    ),
    (
        HEAD + 'p "" 1 1 "" { "A" "B" }\nt "" 1',
        r"line 3: expected the number of an outcome .* got 't' \(in .*line 2",
    ),
    (HEAD + 'p "" 1 1 "" { "A" } -1', "line 2: expected the number of an outcome .* got '-1'"),
    (
        HEAD + 'c "" 1 "" { "x" "y" } 0',
        "line 2: expected a label in quotes with a probability or }, got '\"x\"'",
    ),
    (
        HEAD + 'c "" 1 "" { "x" 1/2 "y" 1/3 } 0',
        "line 2: the probabilities of chance must sum to 1, got 0.8333333333",
    ),
    (HEAD + 'c "" 1 "" { "x" 0 } 0', "line 2: the probabilities of chance must sum to 1, got 0"),
    (
        HEAD + 'c "" 1 "" { "x" 1e999 } 0',
        "line 2: the probabilities of chance must sum to 1, got more than 1e300",
    ),
    (HEAD + 'c "" 1 "" { "x" 3/2\n"y" -1/2 } 0', "line 3: negative chance probability -1/2"),
    (
        HEAD + CHANCE_TWO + 't "" 0 c "" 1 "" { "x" 1/3 "y" 2/3 } 0',
        "line 3: chance event 1 has other probabilities",
    ),
    (
        HEAD + CHANCE_TWO + 't "" 0 c "" 1 "" { "x" 1 } 0',
        "line 3: chance event 1 has 1 actions here and 2 on line 2",
    ),
    (HEAD + 't "" 1 "" { 1 }', "line 2: an outcome takes 2 payoffs, one for each player, got 1"),
    (HEAD + 't "" 1 "" { 1 2 3 }', "line 2: an outcome takes 2 payoffs, one for each player, got 3"),
    (HEAD + 't "" 1 "" { }', "line 2: an outcome takes 2 payoffs, one for each player, got 0"),
    (HEAD + 't "" 1 "" { 1,, 2 }', "line 2: expected a payoff or }, got ','"),
    (HEAD + 't "" 1 "" { , 1 2 }', "line 2: expected a payoff or }, got ','"),
    (HEAD + 't "" 1 "" { 1 2', "line 2: expected a payoff or }, got the end of the file; .* it has no node"),
    (HEAD + 't "" 1', "line 2: outcome 1 has no payoffs yet: its first node must list them"),
    ((HEAD + 't ""\n5').replace("\n", "\r"), r"line 3: outcome 5 has no payoffs yet.* begins on line 2\)$"),
    (HEAD + 't "" 0 "" { 0 1 }', "line 2: outcome 0 means none and has no payoffs"),
    (HEAD + 't "" 1 "" { 1 1 } x', "line 2: text after the end of the tree: 'x'"),
    (HEAD + TWO + "}", "line 5: text after the end of the tree: '}'"),
    (HEAD + TWO + '"', "line 5: text after the end of the tree: '\"'"),
    (
        HEAD + TWO.replace("2 -2", "2 -3").replace('t "" 2', 't "" 1'),
        "line 4: outcome 1 has other payoffs than on li",
    ),
    (
        HEAD + 'p "" 1 1 "" { "A" "B" } 0\n' * 2 + 't "" 0 ',
        "line 4: .*node on line 3 .* has 1 of its 2 children",
    ),
    (HEAD + CHANCE_TWO + TWO, r"line 6: .*the node on line 2 \(chance event 1\) has 1 of its 2 children"),
    (
        HEAD + 'p "" 1 1 "" { "A" } 0\n',
        r"line 3: .*the node on line 2 \(infoset 1 of player 1\) has 0 of its 1 child$",
    ),
    (HEAD + 'p "" 1 1 "" { "A" } 0\nt', "line 3: expected the number of an outcome .*has 0 of its 1 child$"),
    (HEAD + 't "" 1 "x { 1 2 }', "line 2: unbalanced quote: the text that opens here is never closed$"),
    (HEAD + 't "" 1 "x \\" { 1 2 }', "line 2: unbalanced quote"),
    (
        HEAD + TWO.replace('1 "" { 1', '1 "oh { 1'),
        "line 4: .*is the quote that opens on line 3 closed on that line",
    ),
    (
        HEAD + TWO.replace('{ "A"', '{ "A'),
        "line 2: expected an action's label in quotes or }, got 'B'",
    ),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_refusals_name_the_file_the_line_and_the_reason(text, words):
    with pytest.raises(ValueError, match=rf"^game\.efg, {words}"):
        parse_efg(text, "game.efg")


def test_exact_sums_cannot_fill_the_memory():
    primes = [p for p in range(2, 12_000) if all(p % q for q in range(2, int(p**0.5) + 1))]
    chain = "".join(f'p "" 1 {p} "" {{ "a" }} {p} "" {{ 1/{p} 0 }}\n' for p in primes)
    with pytest.raises(
        ValueError, match=r"line \d+: exact sums here need denominators of more than 10000 bits"
    ):
        parse_efg(f'{HEAD}{chain}t "" 0')
    chances = " ".join(f'"" 1/{p}' for p in primes)
    with pytest.raises(
        ValueError, match=r"line 2: exact sums here need denominators of more than 10000 bits"
    ):
        parse_efg(f'{HEAD}c "" 1 "" {{ {chances} }} 0')


def wide(path, n, payoffs):
    """Return the moves of a path that ends in n ends, which all have the same outcome."""
    labels = " ".join(['""'] * n)
    return f'{path}p "" 1 9 "" {{ {labels} }} 0\n' + f't "" 9 "" {{ {payoffs} }}\n' + 't "" 9\n' * (n - 1)


def test_exact_sums_take_no_more_memory_than_the_file_deserves():
    said = r"line \d+: exact sums here take more memory than a file of this size may"
    long = ((3, 2000), (7, 1100), (11, 900))  # sums of 10,000 bits, again at each end
    path = "".join(f'p "" 1 {p} "" {{ "a" }} {p} "" {{ 1/{p**e} 0 }}\n' for p, e in long)
    with pytest.raises(ValueError, match=said):
        parse_efg(HEAD + wide(path, 10_000, "1 0"))
    tiny = " ".join(f'"" 1/{p**e}' for p, e in long)  # the sum by which the others are divided
    chances = f'"" 0.5 "" 0.4999 {tiny} ' + '"" 1e-8 ' * 10_000
    with pytest.raises(ValueError, match=said):
        parse_efg(f'{HEAD} c "" 1 "" {{ {chances} }} 0')
    labels, payoffs = (" ".join([word] * 1000) for word in ('"A"', "1"))  # a sum for each at each move
    again = "".join(f'p "" 1 {i} "" {{ "a" }} 1\n' for i in range(300))
    with pytest.raises(ValueError, match=said):
        parse_efg(f'EFG 2 R "t" {{ {labels} }} c "" 1 "" {{ "a" 1 }} 1 "" {{ {payoffs} }} {again}')
    game = parse_efg(HEAD + wide('p "" 1 1 "" { "a" } 1 "" { 3 4 }\n', 100_000, "1 2"))
    assert (game.n_nodes, game.payoff(100_001, 0), game.payoff(100_001, 1)) == (100_002, 4, 6)


def test_children_that_no_file_of_the_size_can_have_are_not_waited_for():
    labels = " ".join(['""'] * 1000)
    with pytest.raises(ValueError, match=r"line 1\d\d: the file ends before the tree does: it has too few"):
        parse_efg(HEAD + f'p "" 1 1 "" {{ {labels} }} 0\n' + 'p "" 1 1 0\n' * 20_000)


def test_arguments_of_the_wrong_kind(tmp_path):
    with pytest.raises(TypeError, match=r"text must be a str, got b'EFG'"):
        parse_efg(b"EFG")
    with pytest.raises(TypeError, match=r"name must be a str, got 3"):
        parse_efg(HEAD + TWO, 3)
    for path in (3, b"x.efg", None):
        with pytest.raises(TypeError, match=r"path must be a str or a path, got"):
            read_efg(path)
    with pytest.raises(FileNotFoundError, match=r"none\.efg"):
        read_efg(tmp_path / "none.efg")
    with pytest.raises(ValueError, match=r"path must be an \.efg file, got the directory"):
        read_efg(tmp_path)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "x.efg"
    path.write_bytes((HEAD + TWO).encode() + b'"caf\xe9"')
    with pytest.raises(
        ValueError, match=rf"x\.efg, line 5: not text in UTF-8: byte 0xe9 at position {len(HEAD + TWO) + 4}$"
    ):
        read_efg(path)
    path.write_bytes((HEAD + TWO).encode("utf-16"))
    with pytest.raises(ValueError, match=r"x\.efg, line 1: not text in UTF-8: byte 0xff at position 0$"):
        read_efg(path)
    path.write_bytes(bytes(range(128)))
    with pytest.raises(ValueError, match=r"x\.efg, line 1: expected EFG"):
        read_efg(path)
    path.write_bytes(("\ufeff" + HEAD + TWO).encode())
    assert read_efg(path) == read_efg(str(path)) == parse_efg(HEAD + TWO)
