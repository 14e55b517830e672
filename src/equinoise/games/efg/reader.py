r"""Gambit's extensive games: a reader of ``.efg`` files.

The file lists the nodes of the tree, parents first: ``c`` is a move of chance, ``p`` a move of a player and
``t`` an end. Players and infosets have numbers, and infoset numbers count within a player. Actions go by
their place: labels may be empty or repeated. Numbers are exact, whether integers, decimals or p/q, and stay
`fractions.Fraction` here. Payoffs of inner nodes add up along the path; outcome 0 is none. What an infoset or
an outcome is must be said where its number first appears, and may be left out or said again later.

Probabilities that sum to one within 1e-5 are divided by their sum, with a warning where it is off by more
than 1e-9. An infoset whose labels differ between its nodes is taken with a warning too: the first labels
stand, as in Gambit. More is allowed than the format asks for where the meaning is plain: names left out, a
comma after any item of a list, an infoset numbered 0.

References
----------
The Gambit project, manual, chapter "Game representation formats": the extensive game (.efg) file format.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from equinoise import _checks, _files
from equinoise._typing import Any, Sequence
from equinoise.games.efg.declared import Declared
from equinoise.games.efg.grammar import PROLOGUE, SPACE, TEXT, Script, joined, misfit, plain

_PLACE = re.compile("[0-9]+:[0-9]+")
_PROLOGUE = re.compile(SPACE + joined(PROLOGUE))


@dataclass(frozen=True, slots=True)
class GambitGame:
    """A game in extensive form, as a file lists it: flat arrays over its N nodes, the root first.

    A state is the number of a node. Name and lines play no part in comparisons.

    Examples
    --------
    >>> game = parse_efg('EFG 2 R "coin" { "A" } c "" 1 "" { "h" 1/3 "t" 2/3 } 0 t "" 1 "" { 6 } t "" 0')
    >>> game.kind(game.root()), game.actions(0), game.chance(0)
    (-1, ('h', 't'), (Fraction(1, 3), Fraction(2, 3)))
    >>> game.payoff(game.child(0, 0), 0), game.payoff(game.child(0, 1), 0)
    (Fraction(6, 1), Fraction(0, 1))
    """

    name: str = field(compare=False)
    title: str
    comment: str
    player_labels: tuple[str, ...]
    infoset_player: array[int] = field(repr=False)  # or -1 for chance; entry 0, -4, is all terminal nodes
    infoset_number: array[int] = field(repr=False)
    infoset_label: tuple[str, ...] = field(repr=False)  # unique within the player
    infoset_actions: tuple[tuple[str, ...], ...] = field(repr=False)
    infoset_chances: tuple[tuple[Fraction, ...], ...] = field(repr=False)  # empty where a player moves
    infoset_of: array[int] = field(repr=False)  # of each node
    first_child: array[int] = field(repr=False)  # of each node, a place in `children`
    children: array[int] = field(repr=False)
    sums: tuple[Fraction, ...] = field(repr=False)  # payoffs that paths have gathered, P in a row
    sum_of: array[int] = field(repr=False)  # of each node, with its own outcome: a place in `sums`
    lines: array[int] = field(repr=False, compare=False)  # of the file

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.player_labels)

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.infoset_of)

    def root(self) -> int:
        """Return the state in which the game begins."""
        return 0

    def kind(self, state: int) -> int:
        """Return who moves: a player from 0, or ``CHANCE`` (-1), or ``TERMINAL`` (-4) for nobody."""
        return self.infoset_player[self.infoset_of[state]]

    def actions(self, state: int) -> Sequence[str]:
        """Return the labels of the actions, in their order; empty at the end of the game."""
        return self.infoset_actions[self.infoset_of[state]]

    def child(self, state: int, i: int) -> int:
        """Return the state that action `i` leads to."""
        return self.children[self.first_child[state] + i]

    def expand(self, state: int) -> tuple[int, Sequence[int]]:
        """Return how many states come next, and these."""
        begin, n = self.first_child[state], len(self.infoset_actions[self.infoset_of[state]])
        return n, self.children[begin : begin + n]

    def chance(self, state: int) -> Sequence[Fraction]:
        """Return the probabilities of chance's actions; they sum to one exactly."""
        return self.infoset_chances[self.infoset_of[state]]

    def infoset(self, state: int) -> tuple[int, str]:
        """Return the number of the infoset within its player, and its label, unique within the player."""
        entry = self.infoset_of[state]
        return self.infoset_number[entry], self.infoset_label[entry]

    def where(self, state: int) -> str:
        """Return a node as a message names it."""
        return f"the node on line {self.lines[state]} of {self.name}"

    def payoff(self, state: int, player: int) -> Fraction:
        """Return what the path to the state, its own outcome included, has brought a player in all."""
        return self.sums[self.sum_of[state] + player]


def read_efg(path: str | os.PathLike[str]) -> GambitGame:
    """Read a Gambit ``.efg`` file: a game, which :func:`equinoise.games.load` takes.

    The file at `path`, a str or path, is in UTF-8 with or without a byte order mark. FileNotFoundError where
    there is none; ValueError for what is no game, with the file, the line and what was expected there.

    Examples
    --------
    >>> read_efg("no/such/file.efg")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file.efg'
    """
    name = _checks.path("path", path)
    if Path(name).is_dir():
        raise ValueError(f"path must be an .efg file, got the directory {name}")
    data = _files.content(Path(name), pipe=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        here, byte = 1 + data.count(b"\n", 0, at), f"{data[at]:#04x}"
        raise ValueError(f"{name}, line {here}: not text in UTF-8: byte {byte} at position {at}") from None
    return parse_efg(text, name, 3)


def parse_efg(text: str, name: str = "<text>", stacklevel: int = 2) -> GambitGame:
    """Read a game from the text of an ``.efg`` file, which errors and warnings call `name`."""
    _checks.instance("text", text, str)
    script = Script(_checks.instance("name", name, str), text.removeprefix("\ufeff"))
    prologue = _PROLOGUE.match(script.text)
    if prologue is None:
        begin = re.compile(SPACE).match(script.text)
        start = begin.end() if begin else 0
        pos, why = misfit(script.text, start, PROLOGUE)
        raise script.refusal(why, pos, start)
    players = tuple(plain(label) for label in re.findall(TEXT, prologue["players"]))
    if not players:
        raise script.refusal("a game needs at least one player", prologue.start("players"), prologue.start())
    declared = Declared(script, len(players))
    declared.read(prologue.end())
    declared.warn(stacklevel)
    said = name, plain(prologue["title"]), plain(prologue["comment"] or '""'), players
    infosets = declared.players, declared.numbers, _labels(declared), tuple(declared.actions)
    tree = declared.infoset_of, declared.first_child, declared.children, tuple(declared.sums), declared.sum_of
    parts: Any = *said, *infosets, tuple(declared.chances), *tree, declared.lines
    return GambitGame(*parts)


def _labels(declared: Declared) -> tuple[str, ...]:
    """Return a label for every infoset: its name where no other infoset of the player could have it too."""
    keys = list(zip(declared.players, declared.names, strict=True))
    times, labels = Counter(keys), [name for _, name in keys]
    for i, (player, name) in enumerate(keys):
        if not name or times[player, name] > 1 or _PLACE.fullmatch(name):
            labels[i] = f"{player + 1}:{declared.numbers[i]}"
    return tuple(labels)
