"""Kuhn's and Leduc poker, move by move, with the labels that OpenSpiel gives them."""

from fractions import Fraction
from typing import NamedTuple

from equinoise import _checks
from equinoise.games.walk.others import CHANCE, TERMINAL
from equinoise.games.walk.walk import Source

_FOLD, _CALL, _RAISE = range(3)


def kuhn_poker(players: int = 2) -> Source:
    """Return Kuhn poker for 2 to 10 players, as a :class:`equinoise.games.Source`.

    References
    ----------
    .. [1] Kuhn (1950), A simplified two-person poker, Contributions to the Theory of Games 1, 97-103.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load(kuhn_poker())
    >>> tree, round(environment.utility(environment.best_response()[0]), 12)
    (GameTree(7 infosets, 13 actions, 18 leaves), 0.5)
    """
    return _Kuhn(_checks.integer("players", players, 2, 10))


def leduc_poker() -> Source:
    """Return Leduc poker for two players, as a :class:`equinoise.games.Source`.

    References
    ----------
    .. [1] Southey and others (2005), Bayes' bluff: opponent modelling in poker, UAI.

    Examples
    --------
    >>> from equinoise.games import load
    >>> load(leduc_poker())[0]
    GameTree(469 infosets, 1093 actions, 2274 leaves)
    """
    return _Leduc()


class _Kuhn:
    """One card each from a deck of one more than there are players, an ante of 1, one bet of 1.

    In turn players pass or bet; after the first bet everybody else has one more turn, to bet (call) or to
    pass (fold). Whoever bet, or everybody if nobody did, compares cards; the highest takes the pot.

    A state is the cards dealt so far, by player, and the moves: a string of "p" and "b".
    """

    def __init__(self, n_players: int) -> None:
        self.n_players = n_players
        self.player_labels = tuple(map(str, range(n_players)))

    def root(self) -> tuple[tuple[int, ...], str]:
        return (), ""

    def kind(self, state: tuple[tuple[int, ...], str]) -> int:
        cards, moves = state
        if len(cards) < self.n_players:
            return CHANCE
        first_bet = moves.find("b")
        over = len(moves) == self.n_players + max(first_bet, 0)
        return TERMINAL if over else len(moves) % self.n_players

    def actions(self, state: tuple[tuple[int, ...], str]) -> tuple[str, ...]:
        return "Pass", "Bet"

    def child(self, state: tuple[tuple[int, ...], str], i: int) -> tuple[tuple[int, ...], str]:
        cards, moves = state
        if len(cards) < self.n_players:
            left = [card for card in range(self.n_players + 1) if card not in cards]
            return (*cards, left[i]), moves
        return cards, moves + "pb"[i]

    def chance(self, state: tuple[tuple[int, ...], str]) -> list[Fraction]:
        left = self.n_players + 1 - len(state[0])
        return [Fraction(1, left)] * left

    def infoset(self, state: tuple[tuple[int, ...], str]) -> tuple[str, str]:
        cards, moves = state
        known = f"{cards[len(moves) % self.n_players]}{moves}"
        return known, known

    def payoff(self, state: tuple[tuple[int, ...], str], player: int) -> int:
        cards, moves = state
        bettors = {turn % self.n_players for turn, move in enumerate(moves) if move == "b"}
        winner = max(bettors or range(self.n_players), key=cards.__getitem__)
        pot = self.n_players + len(bettors)
        return pot * (player == winner) - 1 - (player in bettors)


class Hand(NamedTuple):
    """A state of Leduc poker: cards (of player 0, of player 1, the public one) and moves of each round."""

    cards: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()


class _Leduc:
    """Two players, six cards of three ranks, an ante of 1, two rounds with at most two raises each.

    Each player has a private card; a public one is turned up between the rounds. A raise is 2 in the first
    round and 4 in the second; to fold is open to who faces a raise. A pair with the public card wins, then
    the higher rank; equal ranks split. Cards of one rank are told apart, as in OpenSpiel.
    """

    n_players = 2
    player_labels = ("0", "1")

    def root(self) -> Hand:
        return Hand()

    def kind(self, state: Hand) -> int:
        if len(state.cards) < 2:
            return CHANCE
        if _FOLD in state.first or _FOLD in state.second:
            return TERMINAL
        if len(state.cards) == 2:
            return CHANCE if _closed(state.first) else len(state.first) % 2
        return TERMINAL if _closed(state.second) else len(state.second) % 2

    def _moves(self, state: Hand) -> list[int]:
        """Return the moves that are open: no fold without a raise to face, two raises a round."""
        moves = state.first if len(state.cards) == 2 else state.second
        raises = moves.count(_RAISE)
        return [_FOLD] * (raises > 0) + [_CALL] + [_RAISE] * (raises < 2)

    def actions(self, state: Hand) -> list[str]:
        return [("Fold", "Call", "Raise")[move] for move in self._moves(state)]

    def child(self, state: Hand, i: int) -> Hand:
        if self.kind(state) == CHANCE:
            left = [card for card in range(6) if card not in state.cards]
            return state._replace(cards=(*state.cards, left[i]))
        move = self._moves(state)[i]
        if len(state.cards) == 2:
            return state._replace(first=(*state.first, move))
        return state._replace(second=(*state.second, move))

    def chance(self, state: Hand) -> list[Fraction]:
        left = 6 - len(state.cards)
        return [Fraction(1, left)] * left

    def infoset(self, state: Hand) -> tuple[str, str]:
        second_round = len(state.cards) == 3
        player = len(state.second if second_round else state.first) % 2
        paid = self._paid(state)
        public = f"[Public: {state.cards[2]}]" if second_round else ""
        first, second = (" ".join(map(str, moves)) for moves in (state.first, state.second))
        known = (
            f"[Observer: {player}][Private: {state.cards[player]}][Round {1 + second_round}]"
            f"[Player: {player}][Pot: {sum(paid)}][Money: {100 - paid[0]} {100 - paid[1]}]"
            f"{public}[Round1: {first}][Round2: {second}]"
        )
        return known, known

    def _paid(self, state: Hand) -> list[int]:
        paid = [1, 1]
        for moves, raised in ((state.first, 2), (state.second, 4)):
            for turn, move in enumerate(moves):
                if move != _FOLD:
                    paid[turn % 2] = max(paid) + raised * (move == _RAISE)
        return paid

    def payoff(self, state: Hand, player: int) -> int:
        paid = self._paid(state)
        last = state.second or state.first
        if last[-1] == _FOLD:
            loser = (len(last) - 1) % 2
            return -paid[player] if player == loser else paid[loser]
        ranks = [card // 2 for card in state.cards]
        strength = [10 * (rank == ranks[2]) + rank for rank in ranks[:2]]
        if strength[0] == strength[1]:
            return 0
        return paid[1 - player] if strength[player] > strength[1 - player] else -paid[player]


def _closed(moves: tuple[int, ...]) -> bool:
    """Tell whether a round of betting is over: everybody has moved and the last move was a call."""
    return len(moves) >= 2 and moves[-1] == _CALL
