"""From a game of many players to the tree of one: an iterative walk over its histories, and its budgets."""

import contextlib
import math
import random
import sys
import time
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Protocol, runtime_checkable

from equinoise import _checks
from equinoise._typing import Any, Callable, Hashable, Iterable, Iterator, Sequence
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree
from equinoise.games.walk.others import CHANCE, TERMINAL, Distributions, Number, infoset_of, mixture
from equinoise.games.walk.record import Record

#: Where a walk gives up unless told otherwise: about ten seconds on a game of OpenSpiel, and a gigabyte.
MAX_HISTORIES = 1_000_000
MAX_BYTES = 2**30
BUDGETS = ("max_histories", "max_bytes", "max_seconds", "progress")
_STEP = 1024  # histories from one look at the budgets to the next
_SMALL, _DEEP = 16_384, 300  # histories, and moves on one path, below which a game is simply walked
_SHARE = 20  # of the histories so far, for which playouts may meet one
_MOST = 30_000  # that one playout meets
_WIDEST = 8  # histories that a playout keeps at a time
_STAKES = (0.9, 0.3, 0.03, 0.003)
_SURE = 1e12

Expand = Callable[[Any], tuple[int, Iterable[Any]]]


@runtime_checkable
class Source(Protocol):
    """A game in extensive form, node by node: any class with these methods. A state is whatever it likes.

    It may also have ``exact = False``, when its probabilities are floats and fractions would gain
    nothing; ``expand(state) -> (n, iterable of n states)``, when that is faster than ``child`` n times;
    ``where(state) -> str``, which names a node in a message.

    Examples
    --------
    Two players show a side of a coin at the same time; Even wins if both show the same:

    >>> class Pennies:
    ...     n_players, player_labels = 2, ("Even", "Odd")
    ...     def root(self): return ""
    ...     def kind(self, shown): return len(shown) if len(shown) < 2 else -4
    ...     def actions(self, shown): return ["heads", "tails"]
    ...     def child(self, shown, i): return shown + "ht"[i]
    ...     def chance(self, shown): return []  # there is none: kind is never -1
    ...     def infoset(self, shown): return ("your turn",) * 2
    ...     def payoff(self, shown, player): return 1 if (shown[0] == shown[1]) == (player == 0) else -1
    >>> from equinoise.games import best_response_value, load
    >>> tree, environment = load(Pennies(), player="Odd", opponents={"your turn": [0.25, 0.75]})
    >>> best_response_value(environment)
    0.5
    """

    @property
    def n_players(self) -> int:
        """Number of players."""

    @property
    def player_labels(self) -> tuple[str, ...]:
        """One label for each player; they may be empty or repeated."""

    def root(self) -> Any:
        """Return the state at which the game begins."""

    def kind(self, state: Any) -> int:
        """Return the number of the player to move, from 0, or -1 for chance and -4 where the game is over."""

    def actions(self, state: Any) -> Sequence[str]:
        """Return the labels of the actions; they may be empty or repeated, their place counts."""

    def child(self, state: Any, i: int) -> Any:
        """Return the state after action i."""

    def chance(self, state: Any) -> Sequence[Number]:
        """Return the probabilities of the outcomes of a chance node."""

    def infoset(self, state: Any) -> tuple[Hashable, str]:
        """Return what tells the infoset from others of the player to move, and its label."""

    def payoff(self, state: Any, player: int) -> Number:
        """Return what a player gets in all when the game ends here."""


class Limits:
    """The budgets of one walk: histories, bytes of what it keeps (about), seconds.

    A random playout estimates the number of histories without bias: it counts all children on its way, times
    how many it could have kept for each that it did. While there are at most m histories, the product over
    playouts of ``1 + c (estimate/m - 1)`` is a supermartingale for every stake c in (0, 1), and so is the
    mean over stakes: the chance that it ever reaches 1e12 is at most 1e-12. Where it does, the game is
    refused, long before the walk has met m histories. The playouts are the same each time.

    References
    ----------
    .. [1] Knuth (1975), Estimating the efficiency of backtrack programs, Mathematics of Computation 29.
    .. [2] Ville (1939), Etude critique de la notion de collectif: the inequality.
    """

    def __init__(
        self,
        max_histories: object = MAX_HISTORIES,
        max_bytes: object = MAX_BYTES,
        max_seconds: object = math.inf,
        progress: object = False,
    ) -> None:
        self.max_histories = _checks.integer("max_histories", max_histories, minimum=1)
        self._max_bytes = _checks.number("max_bytes", max_bytes, 0.0, open_low=True, finite=False)
        self._max_seconds = _checks.number("max_seconds", max_seconds, 0.0, open_low=True, finite=False)
        self._shown = _checks.flag("progress", progress) and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._random = random.Random(0)
        self._estimates: list[float] = []
        self._products = [1.0] * len(_STAKES)
        self._counted = 0
        self._reached = ""

    def check(self, done: int, depth: int, record: Record, source: Any, expand: Expand) -> int:
        """Refuse the game after so many histories, or return at how many the walk must ask again."""
        own = f"{record.n_infosets} infosets and {record.n_actions} actions of player {record.player}"
        size = f"{own}, {len(record.leaf_payoff)} leaves, {depth} moves deep"
        self._reached = f"the walk stopped after {done} histories, with {size}"
        self._show(f"{done:,} histories")
        if done >= self.max_histories:
            raise self.refusal("max_histories")
        if record.n_bytes + 400 * depth > self._max_bytes:
            raise self.refusal("max_bytes")
        if time.monotonic() - self._begun > self._max_seconds:
            raise self.refusal("max_seconds")
        if done >= _SMALL or depth > _DEEP:
            self._play(done / _SHARE, source, expand)
        return min(done + _STEP, self.max_histories)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse a game for which there is no memory, and leave the terminal's line as it was."""
        try:
            yield
        except MemoryError:
            raise self.refusal("memory") from None
        finally:
            self._show("")

    def _show(self, text: str) -> None:
        if self._shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def refusal(self, what: str, size: str = "") -> ValueError:
        """Return the error of a game that is too large, which says how far the walk came."""
        return ValueError(f"{what} must be larger for this game{size}: {self._reached}")

    def _play(self, counts: float, source: Any, expand: Expand) -> None:
        """Play out until so many histories are counted; refuse a game that is surely too large."""
        enough = 1e3 * _SURE * self.max_histories
        while self._counted < counts:
            estimate = weight = 1.0
            # kept at a time, more and more: some go on where others end
            counted, states, most = 0, [source.root()], min(1 + len(self._estimates), _WIDEST)
            while states and counted < _MOST and estimate < enough:
                moves = [(state, i) for state in states for i in range(expand(state)[0])]
                estimate += weight * len(moves)
                if len(moves) > most:
                    weight *= len(moves) / most
                    moves = self._random.sample(moves, most)
                counted += len(moves)
                children = [source.child(state, i) for state, i in moves]
                states = [child for child in children if source.kind(child) != TERMINAL]
            self._counted += counted
            self._estimates.append(estimate)
            gain = estimate / self.max_histories - 1.0
            self._products = [p * (1.0 + c * gain) for p, c in zip(self._products, _STAKES, strict=True)]
            if sum(self._products) >= _SURE * len(_STAKES):
                about = f"{sum(self._estimates) / len(self._estimates):.0e}"
                raise self.refusal("max_histories", f" of {about} histories or more, as playouts show")


def walk(
    source: Source, player: object = 0, opponents: object = "uniform", *, recall: str = "check", **limits: Any
) -> tuple[GameTree, Environment]:
    """Build the tree of one player of a source, and its environment, as :func:`equinoise.games.load` says."""
    check_source(source)
    index = player_number(source.player_labels, player)
    refine = _checks.choice("recall", recall, ("check", "refine")) == "refine"
    budgets = Limits(**limits)
    distributions = Distributions()
    others = mixture(source, opponents, distributions)
    record = Record(index, refine=refine, exact=getattr(source, "exact", True))
    if source.kind(source.root()) == TERMINAL:
        raise ValueError(f"player must be one who moves, but the game is over before player {index} can")
    with budgets.watching():
        others_move = visit(source, [record], budgets, distributions, others, None)
        if others_move and not record.n_moves:
            raise ValueError(f"player must be one who moves, but player {index} never does in this game")
        distributions.warn()
        return record.finish()


def check_source(source: object) -> None:
    """Refuse what is no source, and one that does not say how many players there are, and their labels."""
    if not isinstance(source, Source) or isinstance(source, type):
        raise TypeError(f"source must be an equinoise.games.Source, got {_checks.shown(source)}")
    n, labels = _checks.integer("game.n_players", source.n_players, 1), source.player_labels
    texts = isinstance(labels, list | tuple) and all(isinstance(label, str) for label in labels)
    if not texts or len(labels) != n:
        raise TypeError(f"game.player_labels must be {n} strings, got {_checks.shown(labels)}")


def player_number(labels: Sequence[str], player: object) -> int:
    """Return a player's number, given that (even as a string) or a label, which comes first."""
    if isinstance(player, str) and len(player) < 9 and player.isdecimal() and list(labels).count(player) != 1:
        player = int(player)
    if not isinstance(player, str):
        return _checks.integer("player", player, 0, len(labels) - 1)
    if list(labels).count(player) > 1:
        raise ValueError(f"player must be a number here, because several players are called {player!r}")
    if player not in labels:
        known = f"a number from 0 to {len(labels) - 1} or one of {_checks.line(', '.join(map(repr, labels)))}"
        raise ValueError(f"player must be {known}, got {_checks.shown(player)}")
    return list(labels).index(player)


def visit(
    source: Any, records: Sequence[Record], limits: Limits, chances: Distributions, others: Any, found: Any
) -> bool:
    """Meet every history once, depth first, children in order; tell whether a player without a record moves.

    A history comes with its weight, the product of the probabilities of chance and of players without a
    record (:func:`mixture`), the last actions of those who have one, and the number that `found` gave it.
    """
    kind_of, payoff_of, players = source.kind, source.payoff, range(source.n_players)
    expand = getattr(source, "expand", None) or partial(children, source)
    seats = {record.player: i for i, record in enumerate(records)}
    root, one = source.root(), records[0].one
    start = tuple(-1 if kind_of(root) == record.player else record.start() for record in records)
    stack: list[Iterator[tuple[Any, Number, tuple[int, ...], int]]] = [iter([(root, one, start, 0)])]
    histories = deepest = until = 0
    others_move = False
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        state, weight, above, number = step
        if histories == until:
            largest = max(records, key=attrgetter("n_bytes"))
            until = limits.check(histories, deepest, largest, source, expand)
        histories += 1
        kind = kind_of(state)
        if kind == TERMINAL:
            payoffs = [payoff_of(state, player) for player in seats]
            for record, action, payoff in zip(records, above, payoffs):  # noqa: B905 - one of each
                record.leaf(action, payoff, weight)
            if found is not None:
                found.end(number, weight, above, payoffs)
            continue
        if len(stack) > deepest:
            deepest = len(stack)
        if kind != CHANCE and kind not in players:
            words = f"history {histories} belongs to no player: {_checks.shown(kind)}"
            raise ValueError(f"game must say who moves, but {words}")
        n, below = expand(state)
        aboves: Iterable[tuple[int, ...]] = repeat(above)
        weights: Iterable[Number] = repeat(weight)
        own: Any = 0
        if kind in seats:
            i, (key, label) = seats[kind], infoset_of(source, state)
            own = records[i].infoset(key, label, above[i], n, weight, source.actions, state)
            before, after = map(repeat, above[:i]), map(repeat, above[i + 1 :])
            aboves = zip(*before, range(own, own + n), *after)  # noqa: B905 - repeated without end
        elif kind == CHANCE:
            own = chances(source.chance(state), n, partial(name_of, source, state, histories))
            weights = [weight * p for p in own]
        elif n == 0:
            raise ValueError(f"game must give players actions, but history {histories} has none")
        else:
            others_move = True
            weights = repeat(weight / n) if others is None else [weight * p for p in others(state, kind, n)]
        places = repeat(0) if found is None else found.open(number, kind, own, n)
        stack.append(zip(below, weights, aboves, places))  # noqa: B905 - repeated without end
    return others_move


def children(source: Source, state: Any) -> tuple[int, Iterable[Any]]:
    """Return the number of children of a state and the children, one after the other."""
    found: Any = source.chance(state) if source.kind(state) == CHANCE else source.actions(state)
    if not hasattr(found, "__len__"):
        raise TypeError(f"game must give a list of actions, or of chances, got {_checks.shown(found)}")
    return len(found), map(partial(source.child, state), range(len(found)))


def name_of(source: Source, state: Any, histories: int) -> str:
    """Name a node in a message."""
    name: Callable[[Any], str] | None = getattr(source, "where", None)
    return name(state) if name else f"the chance node that is history {histories} of the game"
