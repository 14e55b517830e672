"""The nodes of an ``.efg`` file, read once in the order of the file into flat arrays."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from equinoise.games.efg.declared import Declared
from equinoise.games.efg.grammar import NODES, Script, misfit, token

__all__ = ["Nodes"]

_TERMINAL = NODES["t"]


class Nodes:
    """The tree of a file.

    A node with n actions opens n slots for its children, and the next node of the file always takes the slot
    on top: a stack of slots stands for the path, and depth costs no recursion. What the file says of infosets
    and outcomes is added to `declared`. For the arrays see :class:`equinoise.games.efg.reader.GambitGame`.
    """

    def __init__(self, script: Script, declared: Declared) -> None:
        self.infoset_of, self.sum_of, self.first_child = array("q"), array("q"), array("q")
        self.children, self.lines = array("q", [0]), array("q")
        self._script, self._declared = script, declared

    def read(self, pos: int) -> None:
        """Read from `pos` to the end of the tree, which must be the end of the file."""
        text, newline = self._script.text, self._script.newline
        declared, children = self._declared, self.children
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
                infoset = declared.decision(match, player, number, name, actions)
            total = declared.outcome(match, outcome, payoffs)
            if base := before.pop():
                total = declared.gathered(match, base, total) if total else base
            line, last = line + text.count(newline, last, pos), pos
            children[slots.pop()] = len(self.lines)
            begin = self._add(infoset, total, line)
            if infoset:
                width = len(declared.actions[infoset])
                slots.extend(range(begin + width - 1, begin - 1, -1))
                before.extend([total] * width)
                children.frombytes(bytes(8 * width))
            pos = match.end()
        if pos < len(text):
            raise self._script.refusal(f"text after the end of the tree: {token(text, pos)}", pos, pos)

    def _add(self, infoset: int, total: int, line: int) -> int:
        """Write a node down, and return where its children begin."""
        begin = len(self.children)
        self.infoset_of.append(infoset)
        self.sum_of.append(total)
        self.first_child.append(begin)
        self.lines.append(line)
        return begin

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
        have, width = slot - self.first_child[node], len(self._declared.actions[infoset])
        who = f"the node on line {self.lines[node]} ({self._declared.title(infoset)})"
        return f"{who} has {have} of its {width} child{'ren' * (width > 1)}"
