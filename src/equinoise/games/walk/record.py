"""What a walk has met so far, and how it becomes a tree."""

import math
import numbers
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np

from equinoise._typing import Any, Floats, Hashable, Ints, Sequence
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree, seal

_Probability = float | Fraction
_START = "(start)"
_SHOWN = 8  # moves of a history in a message


class Record:
    """The one-sided tree in the order of a depth-first walk: everything as it is first met.

    `refine` splits an infoset that forgets the learner's moves, which is else refused; `exact` weighs with
    fractions as long as the source does. Weights are summed over histories; above the root is action -1.
    """

    def __init__(self, player: int, *, refine: bool, exact: bool) -> None:
        self.player = player
        self.one: _Probability = Fraction(1) if exact else 1.0
        self.n_moves = 0
        self.infoset_parent: list[int] = []
        self.infoset_label: list[str] = []
        self.infoset_reach: list[_Probability] = []
        self.first_action: list[int] = []
        self.n_choices: list[int] = []
        self.action_infoset: list[int] = []
        self.action_label: list[str] = []
        self.leaf_action: list[int] = []
        self.leaf_payoff: list[_Probability] = []
        self.leaf_reach: list[_Probability] = []
        self._label_bytes = 0
        self._refine = refine
        self._started = False
        self._known: dict[tuple[Hashable, int], int] = {}
        self._first_of: dict[Hashable, int] = {}
        self._leaf: dict[tuple[int, _Probability], int] = {}

    @property
    def n_infosets(self) -> int:
        """Number of infosets so far."""
        return len(self.infoset_parent)

    @property
    def n_actions(self) -> int:
        """Number of actions so far."""
        return len(self.action_infoset)

    @property
    def n_bytes(self) -> int:
        """How much memory all this takes, roughly."""
        return 500 * self.n_infosets + 100 * self.n_actions + 300 * len(self.leaf_action) + self._label_bytes

    def start(self) -> int:
        """Begin with an infoset of a single action, for a game whose first move is not the learner's."""
        self._started = True
        return self._append(_START, -1, [_START], self.one)

    def leaf(self, above: int, payoff: _Probability, weight: _Probability) -> None:
        """Add a history that ends after the action `above`."""
        number = self._leaf.get((above, payoff))
        if number is not None:
            self.leaf_reach[number] += weight
            return
        self._leaf[above, payoff] = len(self.leaf_action)
        if not isinstance(payoff, numbers.Real):
            raise TypeError(f"game must have numbers as payoffs, got {payoff!r:.80} for player {self.player}")
        if not -math.inf < payoff < math.inf:
            raise ValueError(f"game must have finite payoffs, got {payoff} for player {self.player}")
        self.leaf_action.append(above)
        self.leaf_payoff.append(payoff)
        self.leaf_reach.append(weight)

    def infoset(
        self, key: Hashable, label: str, above: int, n: int, weight: _Probability, actions: Any, state: Any
    ) -> int:
        """Add a history after which the learner moves; return the first of the infoset's actions(state)."""
        number = self._known.get((key, above))
        labels = actions(state) if number is None else ()
        like = self._first_of.get(key) if number is None else number
        if like is not None and self.n_choices[like] != n:
            words = f"{label!r} of player {self.player} has {self.n_choices[like]} at one and {n} at another"
            same = "the same actions at all of its histories"
            raise ValueError(f"game must give an infoset {same}, but {words}")
        if number is not None:
            self.infoset_reach[number] += weight
            return self.first_action[number]
        if like is not None and not self._refine:
            raise self._forgets(like, above)
        if n == 0 or len(labels) != n:
            got = f"{n} and {len(labels)}"
            raise ValueError(f"game must give infoset {label!r} actions, one label each, got {got}")
        self._first_of.setdefault(key, self.n_infosets)
        self._known[key, above] = self.n_infosets
        self.n_moves += 1
        return self._append(label, above, labels, weight)

    def _append(self, label: str, above: int, actions: Sequence[str], weight: _Probability) -> int:
        first = self.n_actions
        self.action_infoset.extend([self.n_infosets] * len(actions))
        self.action_label.extend(actions)
        self.infoset_parent.append(above)
        self.infoset_label.append(label)
        self._label_bytes += sys.getsizeof(label)
        self.infoset_reach.append(weight)
        self.first_action.append(first)
        self.n_choices.append(len(actions))
        return first

    def _past(self, action: int) -> list[int]:
        path = []
        while action >= 0:
            path.append(action)
            action = self.infoset_parent[self.action_infoset[action]]
        path.reverse()
        return path[1:] if self._started else path

    def _forgets(self, number: int, above: int) -> ValueError:
        """Name an infoset that forgets, and two histories of the learner that it does not tell apart."""
        first, second = self._past(self.infoset_parent[number]), self._past(above)
        words = "forgets the learner's own past"
        if any(self.action_infoset[action] == number for action in second):
            words = "is absent-minded, as it comes up twice on one path"
        label = _short(self.infoset_label[number])
        same = 0
        while same < min(len(first), len(second)) and first[same] == second[same]:
            same += 1
        return ValueError(
            f"game must have perfect recall, but infoset {label} of player {self.player} {words}: "
            f"it follows both {self._shown(first, same)} and {self._shown(second, same)}; "
            "recall='refine' would split it"
        )

    def _shown(self, path: list[int], same: int) -> str:
        """Write a history of the learner down, from where two of them part if it is long."""
        begin = same if len(path) > _SHOWN else 0
        moves = []
        for action in path[begin : begin + _SHOWN]:
            infoset = self.action_infoset[action]
            name = self.action_label[action] or f"action {action - self.first_action[infoset]}"
            moves.append(f"{_short(name)} at {_short(self.infoset_label[infoset])}")
        before = [f"{begin} moves"] * (begin > 0)
        after = [f"{len(path) - begin - _SHOWN} moves"] * (len(path) > begin + _SHOWN)
        return "[" + ", ".join(before + moves + after) + "]" if path else "[no move]"

    def finish(self) -> tuple[GameTree, Environment]:
        """Build the tree and its environment, breadth first: an action of the walk is `new_action` there."""
        order = self._breadth_first()
        sizes = np.array(self.n_choices, dtype=np.int64)[order]
        action_ptr = _pointers(sizes, 0)
        shift = np.array(self.first_action, dtype=np.int64)[order] - action_ptr[:-1]
        old_action = np.repeat(shift, sizes) + np.arange(self.n_actions)
        self.new_action = new_action = np.empty_like(old_action)
        new_action[old_action] = np.arange(self.n_actions)
        infoset_above = new_action[np.array(self.infoset_parent, dtype=np.int64)[order[1:]]]
        leaf_above = new_action[np.array(self.leaf_action, dtype=np.int64)]
        leaf_order = np.argsort(leaf_above, kind="stable")
        labels = tuple(self.infoset_label[s] for s in order), tuple(self.action_label[a] for a in old_action)
        n = self.n_actions
        infosets, leaves = np.bincount(infoset_above, minlength=n), np.bincount(leaf_above, minlength=n)
        tree = GameTree(action_ptr, _pointers(infosets, 1), _pointers(leaves, 0), *labels)
        infoset_prob, leaf_prob = self._conditional()
        loss, payoff_range = losses(self.leaf_payoff)
        probabilities = seal(infoset_prob[order]), seal(leaf_prob[leaf_order])
        return tree, Environment(tree, *probabilities, seal(loss[leaf_order]), payoff_range)

    def _breadth_first(self) -> Ints:
        """Return the infosets breadth first, those below one action in the order in which they were met."""
        below = defaultdict(list)
        for s, action in enumerate(self.infoset_parent):
            below[action].append(s)
        order = below[-1]
        for s in order:  # the list grows while it is read
            first = self.first_action[s]
            for action in range(first, first + self.n_choices[s]):
                if action in below:
                    order.extend(below[action])
        return np.array(order, dtype=np.int64)

    def _conditional(self) -> tuple[Floats, Floats]:
        """Divide the weight of every infoset and leaf by that of all below the same action."""
        totals: list[_Probability] = [0] * (self.n_actions + 1)  # the last is the root's, whose parent is -1
        counts = [0] * (self.n_actions + 1)
        pairs = (self.infoset_parent, self.infoset_reach), (self.leaf_action, self.leaf_reach)
        for actions, reach in pairs:
            for action, weight in zip(actions, reach, strict=True):
                totals[action] += weight
                counts[action] += 1

        def share(action: int, weight: _Probability) -> float:
            return float(weight / totals[action]) if totals[action] else 1.0 / counts[action]

        infosets, leaves = (np.array(list(map(share, *pair))) for pair in pairs)
        return infosets, leaves


def _short(label: str) -> str:
    """Quote a label, without its middle when it is long: what tells two apart tends to stand at the ends."""
    text = repr(label)
    return text if len(text) <= 100 else f"{text[:40]} ... {text[-50:]}"


def _pointers(counts: Ints, first: int) -> Ints:
    """Return where each group begins when groups of these sizes follow one another."""
    return seal(np.cumsum(np.append(first, counts), dtype=np.int64))


def losses(payoffs: Sequence[_Probability]) -> tuple[Floats, tuple[float, float] | None]:
    """Scale payoffs to losses without rounding before the end: floats may be too far apart to subtract."""
    exact = {u: Fraction(u if isinstance(u, numbers.Rational) else float(u)) for u in set(payoffs)}
    high, low = max(exact.values()), min(exact.values())
    width = high - low or Fraction(1)
    loss = {payoff: float((high - value) / width) for payoff, value in exact.items()}
    try:
        payoff_range = float(low), float(high)
    except OverflowError:
        payoff_range = None
    return np.array([loss[payoff] for payoff in payoffs]), payoff_range
