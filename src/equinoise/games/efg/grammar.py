r"""The grammar of Gambit's ``.efg`` files: patterns, numbers, and the words for what does not fit.

A node of the file is a row of fields. Each row is written down once and used twice: joined into one compiled
pattern, which reads a node in a single match, and field by field, which finds the first thing that does not
fit and names what should stand there. No pattern gives back what it has taken (possessive repeats, and atomic
groups, since Python before 3.11.5 loses its place in a group that is repeated possessively), so that
reading is linear in the length of the file. A text stands in double quotes and may run over lines; a quote
with a backslash before it belongs to the text. Lists stand in braces; a comma may follow each item.
"""

import re
from fractions import Fraction

from equinoise._typing import NamedTuple

SPACE = r"[ \t\r\n\f\v]*+"
_END = r'(?![^ \t\r\n\f\v"{},])'
TEXT = r'"[^"]*+(?>(?:(?<=\\)"[^"]*+)*)"'
_WHOLE = r"[0-9]{1,18}" + _END
NUMBER = r"[+-]?(?:[0-9]++/[0-9]++|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)" + _END

#: Numbers of more characters or of a larger exponent are refused: a few bytes must not fill the memory.
LARGEST = 1000


class Field(NamedTuple):
    """One field of a row: the name of its group (or none), what it is in words, and its pattern."""

    key: str
    what: str
    pattern: str
    optional: bool = False
    item: str = ""
    item_what: str = ""

    @property
    def starts(self) -> str:
        """The character that begins the field, where that field may be left out."""
        return "{" if self.item else '"'


class Node(NamedTuple):
    """A kind of node: its fields, and the pattern of all of them together."""

    fields: tuple[Field, ...]
    pattern: re.Pattern[str]


def _items(item: str) -> str:
    return rf"\{{{SPACE}(?>(?:{item}{SPACE},?+{SPACE})*)"


def _list(key: str, what: str, item: str, item_what: str, optional: bool = True) -> Field:
    return Field(key, what, _items(item) + r"\}", optional, item, item_what)


def joined(fields: tuple[Field, ...]) -> str:
    """Return the pattern of a row: every field a group of its own, space after each."""
    parts = []
    for field in fields:
        group = f"(?P<{field.key}>{field.pattern})" if field.key else field.pattern
        part = f"(?:{group}{SPACE})"  # one that may be left out may not begin and then go wrong
        parts.append(f"(?>{part}?)(?!{re.escape(field.starts)})" if field.optional else part)
    return "".join(parts)


def _node(letter: str, *decision: Field) -> Node:
    start = Field("", "a node (c, p or t)", letter + _END), Field("", "a name", TEXT, True)
    fields = (*start, *decision, *_RESULT)
    return Node(fields, re.compile(joined(fields)))


_RESULT = (
    Field("outcome", "the number of an outcome (0 for none)", _WHOLE),
    Field("", "the outcome's name", TEXT, True),
    _list("payoffs", "the payoffs", NUMBER, "a payoff"),
)
_PLAYER = Field("player", "a player's number", _WHOLE)
_NUMBER = Field("number", "the number of an infoset", _WHOLE)
_NAME = Field("name", "the infoset's name", TEXT, True)
_ACTIONS = _list("actions", "the actions", TEXT, "an action's label in quotes")
_CHANCES = _list("actions", "the actions", TEXT + SPACE + NUMBER, "a label in quotes with a probability")

#: The rows of the three kinds of node, by their letter. The groups of ``c`` and ``p`` are player (empty where
#: chance moves), number, name, actions, outcome and payoffs; those of ``t`` the last two.
NODES = {
    "c": _node("c", Field("player", "", ""), _NUMBER, _NAME, _CHANCES),
    "p": _node("p", _PLAYER, _NUMBER, _NAME, _ACTIONS),
    "t": _node("t"),
}

#: The row that begins the file.
PROLOGUE = (
    Field("magic", "EFG, which begins every file of an extensive game", "EFG" + _END),
    Field("version", "version 2 of the format, the only one read here", "2" + _END),
    Field("precision", "the letter R (or D, of older files)", "[RD]" + _END),
    Field("title", "the title in quotes", TEXT),
    _list("players", "the players in braces", TEXT, "a player's label in quotes", optional=False),
    Field("comment", "the comment", TEXT, optional=True),
)


def plain(text: str) -> str:
    r"""Return what a quoted text says: without its quotes, and without the backslash before inner quotes."""
    return text[1:-1].replace('\\"', '"')


def number(text: str) -> Fraction:
    """Return a number of the file exactly: ``3``, ``-.5``, ``2e-3``, ``1/3``; ValueError beyond `LARGEST`."""
    if len(text) > LARGEST:
        raise ValueError(f"the number {_short(text)} has more than {LARGEST} digits")
    mantissa, _, exponent = text.replace("E", "e").partition("e")
    power = int(exponent or "0")
    if abs(power) > LARGEST:
        raise ValueError(f"the number {_short(text)} has an exponent beyond {LARGEST}")
    above, _, below = mantissa.partition("/")
    if below:
        if not below.strip("0"):
            raise ValueError(f"the number {text} has a zero denominator")
        return Fraction(int(above), int(below))
    whole, _, part = above.partition(".")
    part = part.rstrip("0") or part[:1]
    power -= len(part)
    digits = int(whole + part)
    return Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def token(text: str, pos: int) -> str:
    """Return what stands at a position, as an error shows it."""
    if pos >= len(text):
        return "the end of the file"
    found = re.compile(rf'{TEXT}|[^ \t\r\n\f\v"{{}},]+|.').match(text, pos)
    return repr(_short(found.group() if found else text[pos]))


def misfit(text: str, pos: int, fields: tuple[Field, ...]) -> tuple[int, str]:
    """Return where the first field that does not fit its pattern stands, and what is wrong there."""
    wanted = "the end of this entry"
    for field in fields:
        found = re.compile(field.pattern + SPACE).match(text, pos)
        if found is not None:
            pos = found.end()
        elif not field.optional or text.startswith(field.starts, pos):
            wanted = field.what
            begun = re.compile(_items(field.item)).match(text, pos) if field.item else None
            if begun is not None:
                pos, wanted = begun.end(), f"{field.item_what} or }}"
            break
    if text.startswith('"', pos) and re.compile(TEXT).match(text, pos) is None:
        return pos, "unbalanced quote: the text that opens here is never closed"
    return pos, f"expected {wanted}, got {token(text, pos)}"


class Script(NamedTuple):
    """A file's text and what errors call it."""

    name: str
    text: str

    @property
    def newline(self) -> str:
        r"""What ends a line: ``\n`` (after ``\r`` or not), or ``\r`` in a file without any."""
        return "\n" if "\n" in self.text else "\r"

    def line(self, pos: int) -> int:
        """Return the line, from 1, of a position."""
        return 1 + self.text.count(self.newline, 0, pos)

    def refusal(self, why: str, pos: int, start: int) -> ValueError:
        """Return the error for a position: file and line, what is wrong, and what may be behind it.

        A text that runs over the end of its line, in the entry that begins at `start`, is pointed out: most
        often its closing quote is missing.
        """
        here, began = self.line(pos), self.line(start)
        words = f"{self.name}, line {here}: {why}"
        if began != here:
            words += f" (in the entry that begins on line {began})"
        quote = self.text.find('"', start, pos + 1)
        while quote >= 0 and (found := re.compile(TEXT).match(self.text, quote)) is not None:
            if "\n" in found.group() or "\r" in found.group():
                words += f"; is the quote that opens on line {self.line(quote)} closed on that line?"
                break
            quote = self.text.find('"', found.end(), pos + 1)
        return ValueError(words)
