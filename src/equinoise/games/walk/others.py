"""What chance and the other players do at their nodes, as checked probabilities."""

import numbers
import warnings
from collections import Counter
from fractions import Fraction

from equinoise import _checks
from equinoise._typing import Any, Callable, Hashable, Iterable, Mapping, Sequence

#: What :meth:`Source.kind` says of a node where chance moves, and of one where the game is over.
CHANCE = -1
TERMINAL = -4

Number = float | Fraction
#: The probabilities of the actions at a node of another player: (state, player, number of actions) -> list.
Mixture = Callable[[Any, int, int], list[Number]]

_REFUSE = 1e-5  # a sum that is off by more; in files there are few digits
_WARN = 1e-9


def distinct_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return a name of its own for every position: its label, or its number where that is empty or repeated.

    Where such a number is somebody else's label, all positions go by their numbers.
    """
    seen = Counter(labels)
    names = tuple(label if label and seen[label] == 1 else str(i) for i, label in enumerate(labels))
    return names if len(set(names)) == len(names) else tuple(map(str, range(len(names))))


class Distributions:
    """Checks probabilities, scales them to a sum of one, and warns once if any had to be scaled visibly."""

    def __init__(self) -> None:
        self.n_scaled = 0
        self.first = ""

    def __call__(self, probabilities: Sequence[Number], n: int, where: Callable[[], str]) -> list[Number]:
        """Return `n` probabilities that sum to one, fractions exactly so, or refuse what `where` names."""
        result = [_plain(p, where) for p in probabilities]
        if len(result) != n:
            raise ValueError(f"{where()} must have {n} probabilities, got {len(result)}")
        wrong = [p for p in result if not 0 <= p <= 1 + _REFUSE]
        if wrong:
            raise ValueError(f"{where()} must have probabilities in [0, 1], got {wrong[0]!s:.40}")
        total = sum(result)
        if total == 1:
            return result
        off = abs(float(total - 1))
        if off > _REFUSE:
            raise ValueError(f"{where()} must have probabilities that sum to 1, got a sum of {float(total)}")
        if off > _WARN:
            self.n_scaled += 1
            self.first = self.first or f"{where()} has a sum of {float(total)}"
        return [p / total for p in result]

    def warn(self, stacklevel: int = 4) -> None:
        """Warn if probabilities were scaled by more than 1e-9."""
        if self.n_scaled:
            words = f"probabilities that do not sum to 1 were scaled at {self.n_scaled} places: {self.first}"
            warnings.warn(words, UserWarning, stacklevel=stacklevel)


def _plain(p: object, where: Callable[[], str]) -> Number:
    """Return a number of any kind as a float or, when it is rational, as a fraction."""
    if isinstance(p, float | Fraction):
        return p
    if isinstance(p, bool) or not isinstance(p, numbers.Real):
        raise TypeError(f"{where()} must have numbers as probabilities, got {_checks.shown(p)}")
    return Fraction(p) if isinstance(p, numbers.Rational) else float(p)


def mixture(source: Any, opponents: object, distributions: Distributions) -> Mixture | None:
    """Return how the `opponents` of :func:`equinoise.games.load` move; None stands for uniform play."""
    if isinstance(opponents, str):
        _checks.choice("opponents", opponents, ("uniform",))
        return None
    if callable(getattr(opponents, "action_probabilities", None)):
        if not hasattr(source, "policy_probabilities"):
            raise ValueError("opponents may be a policy object only for a game of OpenSpiel")

        def asked(state: Any, player: int, n: int) -> list[Number]:
            given = source.policy_probabilities(opponents, state, player)
            return distributions(given, n, lambda: f"opponents, at infoset {source.infoset(state)[1]!r},")

        return asked
    from equinoise.games.policy import Policy

    given = opponents.to_dict() if isinstance(opponents, Policy) else opponents
    if isinstance(given, Mapping) or callable(given):
        return _from_labels(source, given, distributions)
    takes = "'uniform', a Policy, a mapping from infoset labels to probabilities, a function of a label"
    raise TypeError(f"opponents must be {takes}, or a policy of OpenSpiel, got {_checks.shown(opponents)}")


def _from_labels(source: Any, given: Any, distributions: Distributions) -> Mixture:
    """Look the infoset of a node up by its label, or ask for it, once for each infoset."""
    known: dict[tuple[int, Hashable], list[Number]] = {}
    owner: dict[str, tuple[int, Hashable]] = {}

    def probabilities(state: Any, player: int, n: int) -> list[Number]:
        key, label = infoset_of(source, state)
        found = known.get((player, key))
        if found is not None and len(found) == n:
            return found
        if owner.setdefault(label, (player, key)) != (player, key):
            raise ValueError(f"opponents cannot be given by label: two infosets are called {label!r}")
        whose, actions = f" of player {player}", source.actions(state)
        row = known[player, key] = row_of("opponents", given, label, actions, distributions, whose)
        return row

    return probabilities


def infoset_of(source: Any, state: Any) -> tuple[Hashable, str]:
    """Return the key and the label of an infoset, or refuse what is none."""
    found = source.infoset(state)
    try:
        key, label = found
        hash(key)
    except (TypeError, ValueError):
        label = None
    if not isinstance(label, str) or isinstance(found, str):
        words = _checks.shown(found)
        raise TypeError(f"game must give an infoset as a pair of a hashable key and a label, got {words}")
    return key, label


def row_of(
    name: str, given: Any, label: str, actions: Sequence[str], distributions: Distributions, whose: str = ""
) -> list[Number]:
    """Return the probabilities of one infoset in the order of its actions, of a mapping or a function."""
    if not callable(given) and label not in given:
        raise ValueError(f"{name} must cover infoset {label!r}{whose}, which is missing")
    where, row = f"{name}[{label!r}]", given(label) if callable(given) else given[label]
    if isinstance(row, Mapping):
        names = distinct_names(actions)
        if set(row) != set(names):
            raise ValueError(f"{where} must have the actions {names}, got {_checks.shown(list(row))}")
        row = [row[action] for action in names]
    elif not isinstance(row, Iterable):
        raise TypeError(f"{where} must hold probabilities, got {_checks.shown(row)}")
    return distributions(list(row), len(actions), lambda: where)
