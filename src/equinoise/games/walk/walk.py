"""From a game of many players to the tree of one: an iterative walk over its histories."""

import math
import numbers
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, Protocol

from equinoise import _checks
from equinoise.games.environment import Environment
from equinoise.games.tree import GameTree
from equinoise.games.walk.record import Record

# What chance and the other players do at their nodes, as checked probabilities.


Probability = float | Fraction
#: The probabilities of the actions at a node of another player: (state, player, number of actions) -> list.
Mixture = Callable[[Any, int, int], list[Probability]]

_REFUSE = 1e-5
_WARN = 1e-9


def distinct_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return a name of its own for every position: its label, or its number where that is no name.

    A label that is empty or comes up twice is replaced by the position as a string. Where such a number is
    somebody else's label, all positions go by their numbers.

    Examples
    --------
    >>> distinct_names(["fold", "call", ""]), distinct_names(["", "0", "call"])
    (('fold', 'call', '2'), ('0', '1', '2'))
    """
    seen = Counter(labels)
    names = tuple(label if label and seen[label] == 1 else str(i) for i, label in enumerate(labels))
    return names if len(set(names)) == len(names) else tuple(map(str, range(len(names))))


class Distributions:
    """Checks probabilities, scales them to a sum of one, and warns once if any had to be scaled visibly.

    Probabilities in files are written with few digits: a sum within 1e-5 of one is taken, and reported by
    :meth:`warn` when it is off by more than 1e-9.
    """

    def __init__(self) -> None:
        self.n_scaled = 0
        self.first = ""

    def __call__(
        self, probabilities: Sequence[Probability], n: int, where: Callable[[], str]
    ) -> list[Probability]:
        """Return `n` probabilities that sum to one, exactly so when they are fractions, or refuse them.

        `where` says what they belong to, for a message.
        """
        result = [_plain(p, where) for p in probabilities]
        if len(result) != n:
            raise ValueError(f"{where()} must have {n} probabilities, got {len(result)}")
        wrong = [p for p in result if not 0 <= p < math.inf]
        if wrong:
            raise ValueError(f"{where()} must have probabilities in [0, 1], got {wrong[0]}")
        total = sum(result)
        if total == 1:
            return result
        off = abs(float(total - 1))
        if not off <= _REFUSE:
            raise ValueError(f"{where()} must have probabilities that sum to 1, got a sum of {float(total)}")
        if off > _WARN:
            self.n_scaled += 1
            self.first = self.first or f"{where()} has a sum of {float(total)}"
        return [p / total for p in result]

    def warn(self) -> None:
        """Warn if probabilities were scaled by more than 1e-9."""
        if self.n_scaled:
            warnings.warn(
                f"probabilities that do not sum to 1 were scaled at {self.n_scaled} places: {self.first}",
                UserWarning,
                stacklevel=4,
            )


def _plain(p: object, where: Callable[[], str]) -> Probability:
    """Return a number of any kind as a float or, when it is rational, as a fraction."""
    if isinstance(p, float | Fraction):
        return p
    if isinstance(p, bool) or not isinstance(p, numbers.Real):
        raise TypeError(f"{where()} must have numbers as probabilities, got {_checks.shown(p)}")
    return Fraction(p) if isinstance(p, numbers.Rational) else float(p)


def mixture(source: Any, opponents: object, distributions: Distributions) -> Mixture | None:
    """Return how the other players move, checked where it is asked; None stands for uniform play.

    `opponents` is as of :func:`equinoise.games.load`.
    """
    if isinstance(opponents, Mapping):
        return _from_mapping(source, opponents, distributions)
    if callable(getattr(opponents, "action_probabilities", None)):
        if not hasattr(source, "policy_probabilities"):
            raise ValueError("opponents may be a policy object only for a game of OpenSpiel")
        return _from_policy(source, opponents, distributions)
    if isinstance(opponents, str):
        _checks.choice("opponents", opponents, ("uniform",))
        return None
    raise TypeError(
        "opponents must be 'uniform', a mapping from infoset labels to probabilities, "
        f"or a policy of OpenSpiel, got {_checks.shown(opponents)}"
    )


def _from_mapping(source: Any, mapping: Mapping[Any, Any], distributions: Distributions) -> Mixture:
    """Look the infoset of a node up by its label, once for each infoset."""
    known: dict[tuple[int, Hashable], list[Probability]] = {}
    owner: dict[str, tuple[int, Hashable]] = {}

    def probabilities(state: Any, player: int, n: int) -> list[Probability]:
        key, label = source.infoset(state)
        found = known.get((player, key))
        if found is not None and len(found) == n:
            return found
        if owner.setdefault(label, (player, key)) != (player, key):
            raise ValueError(f"opponents cannot be given by label: two infosets are called {label!r}")
        if label not in mapping:
            raise ValueError(f"opponents must cover infoset {label!r} of player {player}, which is missing")
        given = _in_order(label, mapping[label], source.actions(state))
        known[player, key] = distributions(given, n, lambda: f"opponents[{label!r}]")
        return known[player, key]

    return probabilities


def _in_order(label: str, given: Any, actions: Sequence[str]) -> Sequence[Probability]:
    """Return the probabilities of one infoset in the order of its actions."""
    if isinstance(given, Mapping):
        names = distinct_names(actions)
        if set(given) != set(names):
            got = _checks.shown(list(given))
            raise ValueError(f"opponents[{label!r}] must have the actions {names}, got {got}")
        return [given[name] for name in names]
    try:
        return list(given)
    except TypeError:
        got = _checks.shown(given)
        raise TypeError(f"opponents[{label!r}] must hold probabilities, got {got}") from None


def _from_policy(source: Any, policy: Any, distributions: Distributions) -> Mixture:
    """Ask a policy of OpenSpiel at every node."""

    def probabilities(state: Any, player: int, n: int) -> list[Probability]:
        given = source.policy_probabilities(policy, state, player)
        return distributions(given, n, lambda: f"opponents, at infoset {source.infoset(state)[1]!r},")

    return probabilities


#: What :meth:`Source.kind` says of a node where chance moves, and of one where the game is over.
CHANCE = -1
TERMINAL = -4
#: Where a walk gives up unless told otherwise: a few minutes on a game of OpenSpiel.
MAX_HISTORIES = 20_000_000
_QUESTIONS = ("n_players", "player_labels", "root", "kind", "actions", "child", "chance", "infoset", "payoff")


class Source(Protocol):
    """A game in extensive form, node by node. A state is whatever the source likes.

    A source may also have ``exact = False``, when its probabilities are floats and fractions would gain
    nothing; ``expand(state) -> (n, iterable of n states)``, when that is faster than ``child`` n times;
    ``where(state) -> str``, which names a node in a message.
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
        """Return the number of the player to move, from 0, or CHANCE or TERMINAL."""

    def actions(self, state: Any) -> Sequence[str]:
        """Return the labels of the actions; they may be empty or repeated, their place counts."""

    def child(self, state: Any, i: int) -> Any:
        """Return the state after action i."""

    def chance(self, state: Any) -> Sequence[Probability]:
        """Return the probabilities of the outcomes of a chance node."""

    def infoset(self, state: Any) -> tuple[Hashable, str]:
        """Return what tells the infoset from others of the player to move, and its label."""

    def payoff(self, state: Any, player: int) -> Probability:
        """Return what a player gets in all when the game ends here."""


def walk(
    source: Source,
    player: int | str = 0,
    opponents: object = "uniform",
    *,
    recall: str = "check",
    max_histories: int = MAX_HISTORIES,
) -> tuple[GameTree, Environment]:
    """Build the tree of one player, and the environment that chance and the others make.

    Parameters
    ----------
    source : Source
        The game.
    player, opponents, recall, max_histories
        As of :func:`equinoise.games.load`.

    Returns
    -------
    tree : GameTree
        The learner's infosets and actions. Where the first move is not the learner's, the root is an infoset
        with the single action "(start)".
    environment : Environment
        Probabilities given that the action above is played and reached. Branches of probability zero are
        kept, those below an unreachable action are equally likely. A payoff u is the loss
        ``(u_max - u)/(u_max - u_min)``, with the payoffs found at the leaves, those of probability zero
        included: so all environments of one game share one scale. Leaves of one action and payoff are one.

    Raises
    ------
    ValueError
        An infoset forgets (the message names it and two histories of the learner) or has now more, now fewer
        actions, a probability is wrong, a payoff is not finite, the game is too large; or the learner never
        moves, though others do or the game is over at once.

    Warns
    -----
    UserWarning
        Probabilities had to be scaled by more than 1e-9 to sum to one.

    Notes
    -----
    Where the source gives fractions everything is exact until the last rounding.

    Examples
    --------
    >>> from equinoise.games.efg import parse_efg
    >>> moves = 'p "" 1 1 "" { "heads" "tails" } 0 t "" 1 "" { 1 } t "" 2 "" { 0 }'
    >>> tree, environment = walk(parse_efg('EFG 2 R "coin" { "a" } ' + moves))
    >>> environment.action_loss
    array([0., 1.])
    """
    if not all(hasattr(source, name) for name in _QUESTIONS):
        raise TypeError(f"source must be a game with {', '.join(_QUESTIONS)}, got {_checks.shown(source)}")
    index = player_number(source.player_labels, player)
    refine = _checks.choice("recall", recall, ("check", "refine")) == "refine"
    limit = _checks.integer("max_histories", max_histories, minimum=1)
    distributions = Distributions()
    others = mixture(source, opponents, distributions)
    record = Record(index, refine=refine, exact=getattr(source, "exact", True))
    if source.kind(source.root()) == TERMINAL:
        raise ValueError(f"player must be one who moves, but the game is over before player {index} can")
    others_move = _visit(source, index, others, distributions, record, limit)
    if others_move and not record.n_moves:
        raise ValueError(f"player must be one who moves, but player {index} never does in this game")
    distributions.warn()
    return record.finish()


def player_number(labels: Sequence[str], player: object) -> int:
    """Return a player's number, given that or a label, of all players' labels."""
    if not isinstance(player, str):
        return _checks.integer("player", player, 0, len(labels) - 1)
    if list(labels).count(player) > 1:
        raise ValueError(f"player must be a number here, because several players are called {player!r}")
    if player not in labels:
        known = ", ".join(repr(label) for label in labels)
        raise ValueError(
            f"player must be a number from 0 to {len(labels) - 1} or one of {known}, got {player!r}"
        )
    return list(labels).index(player)


def _visit(
    source: Source,
    player: int,
    others: Mixture | None,
    distributions: Distributions,
    record: Record,
    limit: int,
) -> bool:
    """Meet every history once, depth first, children in order; tell whether another player moves.

    A history comes with the learner's last action and its weight: the product of the probabilities of chance
    and the others on the way.
    """
    kind_of, infoset_of, payoff_of = source.kind, source.infoset, source.payoff
    add_infoset, add_leaf = record.infoset, record.leaf
    expand = getattr(source, "expand", None) or partial(children, source)
    above = -1 if kind_of(source.root()) == player else record.start()
    stack: list[Iterator[tuple[Any, Probability, int]]] = [iter([(source.root(), record.one, above)])]
    histories = deepest = 0
    others_move = False
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        state, weight, above = step
        histories += 1
        if histories > limit:
            raise too_large(limit, record, deepest)
        kind = kind_of(state)
        if kind == TERMINAL:
            add_leaf(above, payoff_of(state, player), weight)
            continue
        if len(stack) > deepest:
            deepest = len(stack)
        n, below = expand(state)
        actions: Iterable[int] = repeat(above)
        weights: Iterable[Probability]
        if kind == player:
            key, label = infoset_of(state)
            first = add_infoset(key, label, above, n, weight, source.actions, state)
            weights, actions = repeat(weight), range(first, first + n)
        elif kind == CHANCE:
            where = partial(name_of, source, state, histories)
            weights = [weight * p for p in distributions(source.chance(state), n, where)]
        else:
            others_move = True
            check_mover(kind, n, source, state, histories)
            weights = repeat(weight / n) if others is None else [weight * p for p in others(state, kind, n)]
        stack.append(zip(below, weights, actions))  # noqa: B905 - repeated without end
    return others_move


def children(source: Source, state: Any) -> tuple[int, Iterable[Any]]:
    """Return the number of children of a state and the children, one after the other."""
    kind = source.kind(state)
    n = len(source.chance(state) if kind == CHANCE else source.actions(state))
    return n, map(partial(source.child, state), range(n))


def name_of(source: Source, state: Any, histories: int) -> str:
    """Name a node in a message."""
    name: Callable[[Any], str] | None = getattr(source, "where", None)
    return name(state) if name else f"the chance node that is history {histories} of the game"


def check_mover(kind: int, n: int, source: Source, state: Any, histories: int) -> None:
    """Refuse a node that is nobody's, or where a player has nothing to do."""
    if not 0 <= kind < source.n_players:
        raise ValueError(f"game must say who moves, but history {histories} belongs to no player: {kind}")
    if n == 0:
        raise ValueError(f"game must give players actions, but history {histories} has none")


def too_large(limit: int, record: Record, deepest: int) -> ValueError:
    """Say how far a walk came."""
    return ValueError(
        f"max_histories must be larger for this game: the walk stopped after {limit} histories, with "
        f"{record.n_infosets} infosets and {record.n_actions} actions of player {record.player}, "
        f"{len(record.leaf_payoff)} leaves, {deepest} moves deep"
    )
