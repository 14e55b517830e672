"""Self-play in plain Python, hand by hand, on listed games: every strategy and every history is listed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from tests import naive, naive_symbols

SEAT = 14  # the purpose of a player's own key, the fourth word of its address


def terminals(tree_of, node, chance=1.0, paths=None):
    """All (probability of chance, path of every player, payoffs); actions by their numbers in the trees."""
    paths = paths or [[0] if tree.infoset_labels[0] == "(start)" else [] for tree in tree_of]
    if node[0] == "end":
        return [(chance, paths, node[1])]
    found = []
    for i, child in enumerate(node[-1]):
        if node[0] == "chance":
            found += terminals(tree_of, child, chance * node[1][i], paths)
        else:
            longer = [list(path) for path in paths]
            longer[node[1]].append(action(tree_of, node, i))
            found += terminals(tree_of, child, chance, longer)
    return found


def action(tree_of, node, i):
    """The number of the i-th action of a node in its mover's tree."""
    tree = tree_of[node[1]]
    return int(tree.action_ptr[tree.infoset_labels.index(str(node[2]))]) + i


def deal(tree_of, node, picked, words):
    """The path of every player, and the payoffs, when each plays its strategy, a set of actions."""
    paths = [[0] if tree.infoset_labels[0] == "(start)" else [] for tree in tree_of]
    while node[0] != "end":
        if node[0] == "chance":
            i = first_above(naive.uniform_of(next(words)), node[1])
        else:
            own = range(len(node[-1]))
            (i,) = [i for i in own if action(tree_of, node, i) in picked[node[1]]]
            paths[node[1]].append(action(tree_of, node, i))
        node = node[-1][i]
    return paths, node[1]


def first_above(u, weights):
    """The first place whose running sum is above u."""
    sums = list(itertools.accumulate(weights))
    return next((i for i, total in enumerate(sums) if u < total), len(sums) - 1)


class Seat:
    """One player: a learner over listed strategies, and all that it draws, from a key of its own."""

    def __init__(self, tree, tuning, key, player, replicate):
        self.tree, self.tuning, self.replicate = tree, tuning, replicate
        self.key = naive.philox_block(naive.key_of(key), [0, player, 0, SEAT])[:2]
        self.public = naive.philox_block(self.key, [0, 0, 0, naive_symbols.HASH])[:2]
        if tuning.symbols:
            rates = tuning.learning_rate, tuning.exploration, tuning.explore
            self.learner = naive_symbols.ExponentialWeights(tree, *rates)
        else:
            self.learner = naive.ExponentialWeights(tree, tuning.learning_rate, tuning.exploration)

    def plan(self):
        """How often each action is played now."""
        if not self.tuning.symbols:
            return self.learner.mu()
        return (1.0 - self.tuning.explore) * self.learner.mu() + self.tuning.exploration

    def draw(self, trial):
        """The actions of a reduced strategy, breadth first."""
        if not self.tuning.symbols:
            policy = self.learner.policy()
            return naive.draw_strategy(self.tree, policy, self.key, trial, self.replicate)[1]
        words = naive.stream(self.key, trial, self.replicate, 1)
        explores = naive.uniform_of(next(words)) < self.tuning.explore
        chances = self.tuning.exploration if explores else self.learner.policy()
        infosets, actions = [0], []
        for s in infosets:
            own = naive.actions_of(self.tree, s)
            weights = [chances[a] for a in own] if sum(chances[a] for a in own) > 0 else [1.0] * len(own)
            actions.append(own[first_above(naive.uniform_of(next(words)) * sum(weights), weights)])
            infosets += naive.infosets_below(self.tree, actions[-1])
        return actions

    def learn(self, trial, actions, last, loss):
        """Report, and learn from the report; the user's play ended below the action `last`."""
        if self.tuning.learning_rate == 0.0:
            return
        if not self.tuning.symbols:
            scale = 2.0 / self.tuning.epsilon
            values = naive.noise(len(actions), scale, self.key, trial, self.replicate)
            values[actions.index(last)] += loss
            self.learner.update(actions, values)
            return
        k, n = self.tuning.symbols // 2, len(actions)
        words = naive.stream(self.public, trial, self.replicate, naive_symbols.HASH)
        halves = [half for _ in range(n) for word in [next(words)] for half in (word % 2**32, word // 2**32)]
        blocks = [naive_symbols.block_event(half, k) for half in halves[: naive_symbols.n_blocks(n, k)]]
        items = naive_symbols.placed(blocks, n, k)
        low = math.ceil(2**62 / (Fraction(math.exp(self.tuning.epsilon)) + 2 * k - 1))
        word = naive.philox_block(self.key, [0, trial, self.replicate, 2])[0] // 4
        own, radius = naive_symbols.symbol_for(*items[actions.index(last)]), self.tuning.radius
        said = naive_symbols.symbol(word, low, 2**62 - 2 * k * low, k, own, loss - 0.5, radius[last] or 1.0)
        gain = naive_symbols.gain(self.tuning.epsilon, k)
        self.learner.update(actions, naive_symbols.estimates(items, said, radius[actions], gain))


def self_play(game, trees, tunings, horizon, seed, replicate=0):
    """After every hand: exploitability [T], regret [T, P]; and the average plans of all hands."""
    every = terminals(trees, game)
    payoffs = np.array([payoffs for _, _, payoffs in every], dtype=float)
    high, width = payoffs.max(axis=0), np.ptp(payoffs, axis=0)
    losses = (high - payoffs) / np.where(width > 0, width, 1.0)
    halved = len(trees) == 2 and len(set(payoffs.sum(axis=1).tolist())) == 1
    seats = [Seat(*pair, seed, i, replicate) for i, pair in enumerate(zip(trees, tunings, strict=True))]
    plans, against = ([np.zeros(tree.n_actions) for tree in trees] for _ in range(2))
    seen, gaps, regrets = np.zeros(len(trees)), [], []

    def direct(player, plans):
        """What a player loses straight below each action when the others play by plans."""
        found = np.zeros(trees[player].n_actions)
        for (chance, paths, _), loss in zip(every, losses[:, player].tolist(), strict=True):
            others = [
                plan[path[-1]] for j, (plan, path) in enumerate(zip(plans, paths, strict=True)) if j != player
            ]
            found[paths[player][-1]] += chance * math.prod(others) * loss
        return found

    for trial in range(horizon):
        now, drawn = [seat.plan() for seat in seats], [seat.draw(trial) for seat in seats]
        paths, got = deal(trees, game, drawn, naive.stream(seed, trial, replicate, 3))
        for i, seat in enumerate(seats):
            plans[i] += now[i]
            against[i] += direct(i, now)
            loss = (high[i] - got[i]) / (width[i] or 1.0)
            seen[i] += loss
            seat.learn(trial, drawn[i], paths[i][-1], loss)
        best = [(seat.learner.member @ lost).min() for seat, lost in zip(seats, against, strict=True)]
        regrets.append(seen - best)
        average, gap = [plan / (trial + 1) for plan in plans], 0.0
        for i, seat in enumerate(seats):
            lost = direct(i, average)
            gap += width[i] * (average[i] @ lost - (seat.learner.member @ lost).min())
        gaps.append(gap / 2 if halved else gap)
    return np.array(gaps), np.array(regrets), average
