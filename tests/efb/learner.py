"""The kernels of noised losses as one object, and the random trees that tests of kernels play on."""

from __future__ import annotations

import math

import numpy as np
from tests import naive

from equinoise.efb.baselines import first_policy
from equinoise.efb.kernels import learner as _kernels, setup, weights as _weights

WIDTHS = [(17,), (40,), (16, 17, 18), (300,), (3, 33), (257,), (2, 20, 2), (64, 1), (256, 3), (5, 31, 16)]
SEED = 20


class Learner:
    """The kernels' arrays for one tree, and the kernels by name."""

    def __init__(self, tree, exploration, policy=None, *, replicate=0):
        self.tree, self.replicate = tree, replicate
        self.key = [np.uint64(x) for x in np.random.SeedSequence(SEED).generate_state(2, np.uint64)]
        plan = setup.make_plan(tree, np.asarray(exploration, dtype=float))
        self.weights = setup.make_weights(tree, first_policy(tree) if policy is None else np.asarray(policy))
        self.visits = setup.make_visits(tree)
        source = (*self.key, np.uint64(self.replicate))
        self.seat = setup.Seat(plan, self.weights, self.visits, source, source, 0.0, 0.0, None, 0.0)

    def draw(self, trial):
        return _kernels.draw(self.seat, None, self.seat.scale, self.seat.plan.actions, trial)

    def update(self, n, values, learning_rate):
        self.visits.value[:n] = values
        _kernels.update(self.seat._replace(rate=float(learning_rate)), None, 0.0, n, 0)

    def visit(self, infosets, actions):
        """Write a visit list by hand, as if this strategy had been drawn with mu + gamma = 1."""
        policy, position = self.policy(), 1
        for i, (s, a) in enumerate(zip(infosets, actions, strict=True)):
            own = range(self.tree.action_ptr[s], self.tree.action_ptr[s + 1])
            self.visits.infoset[i], self.visits.action[i] = s, a
            self.visits.child[i] = position
            self.visits.picked[i] = policy[a]
            self.visits.others[i] = math.fsum(policy[b] for b in own if b != a)
            self.visits.divisor[i] = 1.0
            position += len(naive.infosets_below(self.tree, a))
        return len(actions)

    def policy(self):
        out = np.empty(self.tree.n_actions)
        _weights.policy(self.tree.action_ptr, self.weights.weight, out)
        return out


def a_tree(seed):
    """Of every ten trees one has an infoset with more than 16 actions, so that sum trees are used."""
    rng = np.random.default_rng([21, seed])
    widths = WIDTHS[seed // 10 % len(WIDTHS)] if seed % 10 == 9 else ()
    return rng, naive.random_tree(rng, widths=widths)
