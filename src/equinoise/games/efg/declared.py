"""What an ``.efg`` file declares: infosets, chance events and outcomes, each by its number.

The first appearance of a number must describe it. A later one may leave the description out, or repeat it:
then what would change the game (number of actions, probabilities, payoffs) must be the same as before.
Names and labels may differ, because actions are told apart by their place: the first ones stand.
"""

import re
import warnings
from array import array
from bisect import bisect_right
from fractions import Fraction

from equinoise.games.efg.grammar import NODES, NUMBER, SPACE, TEXT, Script, misfit, number, plain, token
from equinoise.games.walk.others import CHANCE, TERMINAL

#: How far from one the probabilities of a chance event may sum, and how far without a warning.
TOLERANCE = Fraction(1, 10**5)
ROUNDING = Fraction(1, 10**9)
#: Exact sums whose denominator needs more bits are refused, or a small file could fill the memory.
DENOMINATOR_BITS = 10_000
#: Bytes that results of exact sums may take, and as many more for each character of the file.
RESULTS, MORE_RESULTS = 2**24, 32
_FRACTION = 120  # bytes, of small numbers

_Match = re.Match[str]
_Actions = tuple[tuple[str, ...], tuple[Fraction, ...]]
_TEXT = re.compile(TEXT)
_NUMBER = re.compile(NUMBER)
_CHANCE = re.compile(f"({TEXT}){SPACE}({NUMBER})")
_TERMINAL = NODES["t"]


class Declared:
    """The infosets, or chance events, the outcomes and the nodes of a file, as far as it has been read."""

    def __init__(self, script: Script, n_players: int) -> None:
        self.players, self.numbers = array("q", [TERMINAL]), array("q", [0])  # entry 0: all terminal nodes
        self.names = [""]  # empty or repeated
        self.actions: list[tuple[str, ...]] = [()]  # their labels
        self.chances: list[tuple[Fraction, ...]] = [()]  # empty where a player moves
        self.sums = [Fraction(0)] * n_players  # payoffs, P in a row: zeros, those of outcomes, their sums
        self.infoset_of, self.sum_of, self.first_child = array("q"), array("q"), array("q")  # of nodes
        self.children, self.lines = array("q", [0]), array("q")
        self._script, self._n_players = script, n_players
        self._left = RESULTS + MORE_RESULTS * len(script.text)  # bytes
        self._infosets: dict[int, int] = {}
        self._outcomes: dict[int, int] = {}
        # Where the file first describes an infoset, an outcome: the same words again need no second look.
        self._infoset_places, self._outcome_places = array("q", [0]), array("q", [0])
        self._action_lists: dict[str, _Actions] = {}
        self._values: dict[str, Fraction] = {}
        self._inexact: list[tuple[int, Fraction]] = []
        self._relabelled: list[tuple[int, int]] = []

    def title(self, entry: int) -> str:
        """Return an infoset or a chance event as an error names it."""
        return _title(self.players[entry], self.numbers[entry])

    def decision(self, match: _Match, player: str, number: str, name: str | None, actions: str | None) -> int:
        """Return the entry of a decision node's infoset; `player` is empty where chance moves."""
        mover = CHANCE
        if player:
            mover = int(player) - 1
            if not 0 <= mover < self._n_players:
                raise self._refusal(f"player {player} of {self._n_players}", match, "player")
        key = int(number) * (self._n_players + 1) + mover
        entry = self._infosets.get(key)
        if entry is None:
            if actions is None:
                why = f"{_title(mover, int(number))} has no actions yet: its first node must list them"
                raise self._refusal(why, match, "number")
            labels, chances = self._described(match, mover, actions)
            entry = self._infosets[key] = len(self.names)
            self.players.append(mover)
            self.numbers.append(int(number))
            self.names.append(plain(name) if name else "")
            self.actions.append(labels)
            self.chances.append(chances)
            self._infoset_places.append(match.start("actions"))
        elif actions is not None and not match.string.startswith(actions, self._infoset_places[entry]):
            self._agree(match, entry, self._described(match, mover, actions))
        return entry

    def _described(self, match: _Match, player: int, words: str) -> _Actions:
        if words in self._action_lists:
            return self._action_lists[words]
        if player == CHANCE:
            pairs = list(_CHANCE.finditer(match.string, match.start("actions"), match.end("actions")))
            labels, chances = [pair[1] for pair in pairs], self._probabilities(match, pairs)
        else:
            labels, chances = _TEXT.findall(words), ()
        if not labels:
            raise self._refusal("a decision node needs at least one action", match, "actions")
        self._action_lists[words] = tuple(map(plain, labels)), chances
        return self._action_lists[words]

    def _probabilities(self, match: _Match, pairs: list[_Match]) -> tuple[Fraction, ...]:
        """Return the probabilities of a chance event, divided by their sum where that is nearly one."""
        chances = []
        above: dict[int, int] = {}
        for pair in pairs:
            chance = self._value(match, pair[2], pair.start(2))
            if chance < 0:
                raise self._refusal(f"negative chance probability {pair[2]}", match, pair.start(2))
            chances.append(chance)
            above[chance.denominator] = above.get(chance.denominator, 0) + chance.numerator
        total = Fraction(0)
        for denominator, numerator in above.items():
            total = self._added(match, total, Fraction(numerator, denominator))
        if pairs and abs(total - 1) > TOLERANCE:
            about = f"{float(total):.10g}" if total < 10**300 else "more than 1e300"
            raise self._refusal(f"the probabilities of chance must sum to 1, got {about}", match, "actions")
        if total in (0, 1):
            return tuple(chances)
        if abs(total - 1) > ROUNDING:
            self._inexact.append((match.start("actions"), total))
        return tuple(self._afforded(match, chance / total) for chance in chances)

    def _agree(self, match: _Match, entry: int, described: _Actions) -> None:
        """Refuse a second description that would make another game of the infoset."""
        why, (actions, chances) = "", described
        if len(actions) != len(self.actions[entry]):
            why = f"has {len(actions)} actions here and {len(self.actions[entry])}"
        elif chances != self.chances[entry]:
            why = "has other probabilities than"
        elif actions != self.actions[entry]:
            self._relabelled.append((match.start("actions"), entry))
        if why:
            where = f"on line {self._script.line(self._infoset_places[entry])}"
            raise self._refusal(f"{self.title(entry)} {why} {where}", match, "actions")

    def outcome(self, match: _Match, number: str, payoffs: str | None) -> int:
        """Return where the payoffs of a node's outcome begin in `sums`; 0 is none."""
        key, n = int(number), self._n_players
        begin = self._outcomes.get(key)
        if begin is not None:
            place = self._outcome_places[begin // n]
            same = payoffs is None or match.string.startswith(payoffs, place)
            if not same and self._payoffs(match, payoffs or "") != self.sums[begin : begin + n]:
                why = f"outcome {key} has other payoffs than on line {self._script.line(place)}"
                raise self._refusal(why, match, "payoffs")
            return begin
        if payoffs is None and key:
            why = f"outcome {key} has no payoffs yet: its first node must list them"
            raise self._refusal(why, match, "outcome")
        values = self._payoffs(match, payoffs) if payoffs else []
        if key == 0:
            if any(values):
                raise self._refusal("outcome 0 means none and has no payoffs", match, "payoffs")
            return 0
        begin = self._outcomes[key] = len(self.sums)
        self.sums.extend(values)
        self._outcome_places.append(match.start("payoffs"))
        return begin

    def _payoffs(self, match: _Match, words: str) -> list[Fraction]:
        items = words[1:-1].replace(",", " ").split()
        if len(items) != self._n_players:
            why = f"an outcome takes {self._n_players} payoffs, one for each player, got {len(items)}"
            raise self._refusal(why, match, "payoffs")
        values = self._values
        return [values[item] if item in values else self._value(match, item, "payoffs") for item in items]

    def gathered(self, match: _Match, base: int, outcome: int) -> int:
        """Return where in `sums` stands what the path has gathered so far and the outcome together."""
        begin, n = len(self.sums), self._n_players
        for i in range(n):
            total = self._added(match, self.sums[base + i], self.sums[outcome + i])
            self.sums.append(self._afforded(match, total))
        self._outcome_places.append(-1)
        return begin

    def _value(self, match: _Match, word: str, where: str | int) -> Fraction:
        """Return a number of the file, and keep it: the same numbers come again and again."""
        value = self._values.get(word)
        if value is None:
            try:
                value = self._values[word] = number(word)
            except ValueError as error:
                begin = where if isinstance(where, int) else match.start(where)
                places = (each.start() for each in _NUMBER.finditer(match.string, begin) if each[0] == word)
                raise self._refusal(str(error), match, next(places, begin)) from None
        return value

    def _added(self, match: _Match, left: Fraction, right: Fraction) -> Fraction:
        total = left + right
        if total.denominator.bit_length() > DENOMINATOR_BITS:
            why = f"exact sums here need denominators of more than {DENOMINATOR_BITS} bits"
            raise self._refusal(why, match, match.start())
        return total

    def _afforded(self, match: _Match, result: Fraction) -> Fraction:
        """Refuse results, of sums and by their division, that take more memory than the file may."""
        self._left -= _FRACTION + (result.numerator.bit_length() + result.denominator.bit_length()) // 8
        if self._left < 0:
            why = "exact sums here take more memory than a file of this size may"
            raise self._refusal(why, match, match.start())
        return result

    def _refusal(self, why: str, match: _Match, where: str | int) -> ValueError:
        pos = where if isinstance(where, int) else match.start(where)
        return self._script.refusal(why, pos, match.start())

    def warn(self, stacklevel: int) -> None:
        """Warn of what is taken in another way than it is written: once for each kind, at the first place."""
        if self._inexact:
            pos, total = self._inexact[0]
            why = f"chance probabilities sum to {float(total):.10g} and were divided by their sum"
            self._warn(pos, why, len(self._inexact), stacklevel)
        if self._relabelled:
            pos, entry = self._relabelled[0]
            first = self._script.line(self._infoset_places[entry])
            why = f"{self.title(entry)} has other labels than on line {first}"
            why += "; actions go by their place, and the first labels stand"
            self._warn(pos, why, len(self._relabelled), stacklevel)

    def _warn(self, pos: int, why: str, places: int, stacklevel: int) -> None:
        more = f" (the first of {places} such places)" if places > 1 else ""
        words = f"{self._script.name}, line {self._script.line(pos)}: {why}{more}"
        warnings.warn(words, UserWarning, stacklevel=stacklevel + 2)

    def read(self, pos: int) -> None:
        """Read from `pos` to the end of the tree, which must be the end of the file.

        A node with n actions opens n slots for its children, and the next node of the file always takes the
        slot on top: a stack of slots stands for the path, and depth costs no recursion.
        """
        text, newline = self._script.text, self._script.newline
        children = self.children
        slots, before = [0], [0]
        line, last = self._script.line(pos), pos
        while slots:
            kind = NODES.get(text[pos : pos + 1])
            match = kind.pattern.match(text, pos) if kind else None
            if match is None:
                raise self._no_node(pos, slots[-1])
            if kind is _TERMINAL:
                infoset, (outcome, payoffs) = 0, match.groups()
            else:
                player, number, name, actions, outcome, payoffs = match.groups()
                infoset = self.decision(match, player, number, name, actions)
            total = self.outcome(match, outcome, payoffs)
            if base := before.pop():
                total = self.gathered(match, base, total) if total else base
            line, last = line + text.count(newline, last, pos), pos
            children[slots.pop()] = len(self.lines)
            begin = len(children)
            self.infoset_of.append(infoset)
            self.sum_of.append(total)
            self.first_child.append(begin)
            self.lines.append(line)
            if infoset:
                width = len(self.actions[infoset])
                if 2 * (begin + width) > len(text):  # a node takes seven characters; do not open them all
                    why = "the file ends before the tree does: it has too few nodes for so many actions"
                    raise self._refusal(why, match, match.start())
                slots.extend(range(begin + width - 1, begin - 1, -1))
                before.extend([total] * width)
                children.frombytes(bytes(8 * width))
            pos = match.end()
        if pos < len(text):
            raise self._script.refusal(f"text after the end of the tree: {token(text, pos)}", pos, pos)

    def _no_node(self, pos: int, slot: int) -> ValueError:
        """Return the error where no node fits; at the end of the file, with the node that lacks children."""
        text = self._script.text
        letter = text[pos : pos + 1]
        where, why = misfit(text, pos, NODES[letter if letter in NODES else "t"].fields)
        if where >= len(text):
            ends = f"the file ends before the tree does: {self._lacking(slot)}"
            why = ends if where == pos else f"{why}; {ends}"
        return self._script.refusal(why, where, pos)

    def _lacking(self, slot: int) -> str:
        """Say which node has the slot on top: the last one whose children begin there or before."""
        if slot == 0:
            return "it has no node"
        node = bisect_right(self.first_child, slot) - 1
        infoset = self.infoset_of[node]
        have, width = slot - self.first_child[node], len(self.actions[infoset])
        who = f"the node on line {self.lines[node]} ({self.title(infoset)})"
        return f"{who} has {have} of its {width} child{'ren' * (width > 1)}"


def _title(player: int, number: int) -> str:
    return f"chance event {number}" if player == CHANCE else f"infoset {number} of player {player + 1}"
