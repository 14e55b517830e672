"""Kernels of self-play: every seat of a game has a learner of its own, and all of them learn on one hand.

A seat draws, reports and learns by the kernels of a single learner. What is new is the deal, which walks the
histories of a :class:`equinoise.games.joint.Histories`, and averages of realization plans over all trials.
"""

from equinoise._jit import njit
from equinoise._random import CHANCE, next_word, uniform
from equinoise._typing import Any, Floats, Ints, NamedTuple
from equinoise.efb.kernels import learner
from equinoise.efb.kernels.setup import Seat, Source
from equinoise.efb.kernels.weights import Weights
from equinoise.games.joint import Histories

_CHANCE = -1  # who moves, as of the walk
_TERMINAL = -4
Table = tuple[Ints, Floats, Floats]


class Player(NamedTuple):
    """A seat with A actions and I infosets, and the average of what it plays."""

    seat: Seat
    mixed: Floats  # [A], rho nu, or 0
    sums: Floats  # [A], plans mu(a) summed over trials, but for what waits above
    waiting: Floats  # [I], the sum of each infoset's chances since its policy changed
    plan_now: Floats  # [A], scratch
    reach_now: Floats  # [I], scratch


@njit(forceinline=True)
def _settle(plan: Any, weights: Weights, sums: Floats, waiting: Floats, s: int) -> None:
    """Give what waits at infoset s to its actions and to the infosets below, as its policy shares it out."""
    first, end = plan.infosets[s]["first"], plan.infosets[s + 1]["first"]
    total = 0.0
    for a in range(first, end):
        total += weights.weight[a]
    share = waiting[s] / total
    waiting[s] = 0.0
    for a in range(first, end):
        mass = share * weights.weight[a]
        sums[a] += mass
        for c in range(plan.actions[a]["child"], plan.actions[a + 1]["child"]):
            waiting[c] += mass


@njit
def settle_all(seat: Seat, sums: Floats, waiting: Floats) -> None:
    """Add all that waits to the sums."""
    for s in range(waiting.size):
        _settle(seat.plan, seat.weights, sums, waiting, s)


@njit(forceinline=True)
def _deal(game: Histories, players: Any, position: Ints, source: Source, trial: int) -> int:
    """Play a hand with the strategies that were drawn; fill position, and return the terminal history."""
    s0, s1, s2, s3 = learner.stream(source, trial, CHANCE)  # of which the d-th move takes word d
    position[:] = 0
    h = 0
    while game.nodes[h]["mover"] != _TERMINAL:
        mover, own = game.nodes[h]["mover"], game.nodes[h]["own"]
        if mover == _CHANCE:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            low, high = game.outcome_ptr[own], game.outcome_ptr[own + 1]
            k = learner.first_above(game.outcome_cum, low, high, uniform(word)) - low
        else:
            seat, i = players[mover].seat, position[mover]
            if own > 0:  # infoset 0 is the root of its tree
                i = seat.visits.child[i] + own - seat.plan.actions[seat.visits.action[i]]["child"]
            position[mover] = i
            k = seat.visits.action[i] - seat.plan.infosets[own]["first"]
        h = game.nodes[h]["first"] + k
    return game.nodes[h]["own"]


@njit
def _count_together(game: Histories, players: Any, together: Floats) -> None:
    """Add to together[0] what the others of each player play, (1 - rho) mu + rho nu, towards every end."""
    shares, n = together[1], len(players)
    for j in range(n):
        player = players[j]
        player.plan_now[:] = 0.0
        player.reach_now[0] = 1.0
        settle_all(player.seat, player.plan_now, player.reach_now)
        for z in range(len(shares)):
            a = game.last[z, j]
            shares[z, j] = (1.0 - player.seat.explore) * player.plan_now[a] + player.mixed[a]
    for z in range(len(shares)):
        for i in range(n):
            product = game.reach[z]
            for j in range(n):
                product *= shares[z, j] if j != i else 1.0
            together[0, z, i] += product


@njit
def run_hands(game: Histories, players: Any, table: Table, source: Source, start: int, stop: int) -> None:
    """Play the hands start..stop-1 of one replicate.

    The table is scratch int64[2, P], the losses seen so far, float64[P], and float64[2, Z, P], where Z may be
    0 for two players: the chances with which all but one play towards an end, summed over hands; scratch.
    """
    length, position, total, together = table[0][0], table[0][1], table[1], table[2]
    for trial in range(start, stop):
        for j in range(len(players)):
            seat, waiting = players[j].seat, players[j].waiting
            length[j] = learner.draw(seat, seat.code, seat.scale, seat.plan.actions, trial)
            learner.prepare(seat, seat.code, seat.scale, length[j], trial)
            waiting[0] += 1.0
            for i in range(length[j]):  # of the visits only, since no other policies may change now
                _settle(seat.plan, seat.weights, players[j].sums, waiting, seat.visits.infoset[i])
        if together.size > 0:
            _count_together(game, players, together)
        z = _deal(game, players, position, source, trial)
        for j in range(len(players)):
            seat, loss = players[j].seat, game.loss[z, j]
            total[j] += loss
            if seat.rate > 0.0:
                learner.learn(seat, seat.code, seat.scale, length[j], trial, position[j], loss)
