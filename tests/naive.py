"""Slow, obvious truths that share no code with the package: the tests compare with these."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np

# ----------------------------------------------------------------------------------------------------------
# Random words
# ----------------------------------------------------------------------------------------------------------

WORD = 2**64


def philox_block(key, counter):
    """Philox4x64-10 of a key (2 ints) and a counter (4 ints, least significant first), on Python's ints."""
    x, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
        x = [(p1 // WORD) ^ x[1] ^ k0, p1 % WORD, (p0 // WORD) ^ x[3] ^ k1, p0 % WORD]
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % WORD, (k1 + 0xBB67AE8584CAA73B) % WORD
    return x


def xoshiro_words(state, n):
    """The first n words of xoshiro256++ from a state of four ints."""

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) % WORD

    s, words = list(state), []
    for _ in range(n):
        words.append((rotate((s[0] + s[3]) % WORD, 23) + s[0]) % WORD)
        t = (s[1] << 17) % WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    return words


# ----------------------------------------------------------------------------------------------------------
# DP-EFB: everything by listing the reduced strategies. Small trees only; recursion and Python on purpose.
# ----------------------------------------------------------------------------------------------------------


def actions_of(tree, infoset):
    return range(tree.action_ptr[infoset], tree.action_ptr[infoset + 1])


def infosets_below(tree, action):
    return range(tree.infoset_ptr[action], tree.infoset_ptr[action + 1])


def leaves_below(tree, action):
    return range(tree.leaf_ptr[action], tree.leaf_ptr[action + 1])


def random_tree(rng, *, max_infosets=9, max_actions=4, widths=(), max_strategies=3000):
    """A random irregular GameTree: actions with 0 to 3 child infosets and some leaves, each with a child.

    The infosets numbered 0, 1, .. take the numbers of actions in `widths` first; the others have 1 to
    `max_actions`. Trees with more than `max_strategies` reduced strategies are thrown away.
    """
    from equinoise.games import GameTree

    while True:
        action_ptr, infoset_ptr, leaf_ptr = [0], [1], [0]
        infoset = 0
        while infoset < infoset_ptr[-1]:
            width = widths[infoset] if infoset < len(widths) else int(rng.integers(1, max_actions + 1))
            for _ in range(width):
                crowded = infoset_ptr[-1] >= max_infosets or (width > 16 and rng.random() < 0.9)
                children = 0 if crowded else int(rng.integers(0, 4))
                infoset_ptr.append(infoset_ptr[-1] + children)
                leaf_ptr.append(leaf_ptr[-1] + int(rng.integers(0 if children else 1, 3)))
            action_ptr.append(action_ptr[-1] + width)
            infoset += 1
        tree = GameTree(action_ptr, infoset_ptr, leaf_ptr)
        if infoset >= len(widths) and count_strategies(tree) <= max_strategies:
            return tree


def random_environment(rng, tree):
    """Random probabilities (some zero) and losses (some 0 or 1) for a tree."""
    from equinoise.games import Environment

    infoset_prob, leaf_prob = np.ones(tree.n_infosets), np.ones(tree.n_leaves)
    for a in range(tree.n_actions):
        infosets, leaves = infosets_below(tree, a), leaves_below(tree, a)
        weight = rng.random(len(infosets) + len(leaves)) * (rng.random(len(infosets) + len(leaves)) < 0.9)
        weight[rng.integers(weight.size)] += 0.1
        weight /= weight.sum()
        infoset_prob[list(infosets)] = weight[: len(infosets)]
        leaf_prob[list(leaves)] = weight[len(infosets) :]
    loss = rng.random(tree.n_leaves)
    extreme = rng.random(tree.n_leaves) < 0.3
    return Environment(tree, infoset_prob, leaf_prob, np.where(extreme, loss.round(), loss))


def count_strategies(tree, infoset=0):
    """N(infoset) as an exact integer: a sum over actions of products over child infosets."""
    return sum(
        math.prod(count_strategies(tree, s) for s in infosets_below(tree, a))
        for a in actions_of(tree, infoset)
    )


def strategies(tree, infoset=0):
    """Every reduced strategy from an infoset downwards, each as the sorted tuple of the actions it picks."""
    found = []
    for a in actions_of(tree, infoset):
        below = [strategies(tree, s) for s in infosets_below(tree, a)]
        found += [tuple(sorted((a, *itertools.chain(*parts)))) for parts in itertools.product(*below)]
    return found


def kappa(tree):
    """Number of actions from each action downwards, itself included: float64[A]."""

    def count(a):
        return 1 + sum(count(b) for s in infosets_below(tree, a) for b in actions_of(tree, s))

    return np.array([count(a) for a in range(tree.n_actions)], dtype=float)


def q_values(tree):
    """Q(a) = 1 + sum of Q over child infosets, Q(s) = (sum over its actions of sqrt Q(a))^2: float64[A]."""

    def q(a):
        return 1.0 + sum(
            sum(math.sqrt(q(b)) for b in actions_of(tree, s)) ** 2 for s in infosets_below(tree, a)
        )

    return np.array([q(a) for a in range(tree.n_actions)])


def split_exploration(tree, gamma_0, weights):
    """gamma(a) = gamma(s) w(a) / sum of w over s, and a child infoset takes the value of its action."""
    gamma = np.zeros(tree.n_actions)

    def split(infoset, amount):
        total = sum(weights[a] for a in actions_of(tree, infoset))
        for a in actions_of(tree, infoset):
            gamma[a] = amount * weights[a] / total
            for s in infosets_below(tree, a):
                split(s, gamma[a])

    split(0, gamma_0)
    return gamma


def tuning_paper(tree, horizon, epsilon):
    """(eta, gamma float64[A], bound) of the paper."""
    n, ln_s = tree.n_actions, math.log(count_strategies(tree))
    beta = 1 + 2 / epsilon * math.log(n * horizon**2)
    c = 8 / epsilon**2 + 1 + beta
    eta = math.sqrt(ln_s / (n * horizon * c))
    gamma = split_exploration(tree, eta * beta * n, kappa(tree))
    return eta, gamma, 2 * math.sqrt(n * horizon * ln_s * c) + 1


def sharp_constant(root_q, n_actions, epsilon, theta):
    """C(theta) of the sharp tuning, in the precision of theta; root_q is sqrt(Q(root))."""
    b = 2 / (epsilon + 0 * theta)
    return 0.5 + b / theta * root_q / n_actions + b**2 / (1 - theta**2)


def best_theta(root_q, n_actions, epsilon):
    """The theta in (0, 1) with the least C, by bisection on whether C rises, in 60 digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        for _ in range(100):
            middle = (low + high) / 2
            nearby = middle + mpmath.mpf(10) ** -35 * middle * (1 - middle)
            here, there = (sharp_constant(root_q, n_actions, epsilon, t) for t in (middle, nearby))
            low, high = (low, middle) if there > here else (middle, high)
        return high


def root_of_q(tree):
    """sqrt(Q(root)), the sum of sqrt(Q(a)) over the root's actions."""
    return float(np.sqrt(q_values(tree))[: tree.action_ptr[1]].sum())


def tuning_sharp(tree, horizon, epsilon):
    """(eta, gamma float64[A], bound) of the sharp rule for a finite epsilon."""
    n, ln_s, root_q = tree.n_actions, math.log(count_strategies(tree)), root_of_q(tree)
    theta = best_theta(root_q, n, epsilon)
    c = float(sharp_constant(root_q, n, epsilon, theta))
    eta = math.sqrt(ln_s / (n * horizon * c))
    gamma_0 = eta * 2 / epsilon * root_q / float(theta)
    return (
        eta,
        split_exploration(tree, gamma_0, np.sqrt(q_values(tree))),
        2 * math.sqrt(n * horizon * ln_s * c),
    )


def most_last(tree, cost):
    """The largest sum of costs over the actions that one deterministic environment can make last."""

    def best(a):
        own = cost[a] if len(leaves_below(tree, a)) else 0.0
        below = [sum(best(b) for b in actions_of(tree, s)) for s in infosets_below(tree, a)]
        return max([own, *below])

    return sum(best(a) for a in actions_of(tree, 0))


def last_together(tree, infoset=0):
    """The sets of last actions of all deterministic environments: an action ends or goes on one way."""

    def of_action(a):
        ways = [(a,)] if len(leaves_below(tree, a)) else []
        return ways + [way for s in infosets_below(tree, a) for way in last_together(tree, s)]

    parts = itertools.product(*(of_action(a) for a in actions_of(tree, infoset)))
    return [tuple(itertools.chain(*part)) for part in parts]


class ExponentialWeights:
    """Exponential weights over the list of all reduced strategies, each fed the sum of lhat over its actions.

    They start alike, or as often as `first_policy` float64[A] plays them. Weights are kept as logarithms;
    nothing is shared with the tree recursion that it checks.
    """

    def __init__(self, tree, learning_rate, exploration, first_policy=None):
        self.tree, self.learning_rate, self.exploration = tree, learning_rate, np.asarray(exploration)
        self.strategies = strategies(tree)
        self.member = np.zeros((len(self.strategies), tree.n_actions))
        for row, picked in zip(self.member, self.strategies, strict=True):
            row[list(picked)] = 1.0
        self.log_weight = np.zeros(len(self.strategies))
        if first_policy is not None:
            self.log_weight = self.member @ np.log(first_policy)

    def mu(self):
        """Probability that a strategy with each action is drawn: float64[A]."""
        weight = np.exp(self.log_weight - self.log_weight.max())
        return weight / weight.sum() @ self.member

    def update(self, actions, values):
        """Feed a report: y / (mu + gamma) on the actions of the drawn strategy, zero elsewhere."""
        lhat = np.zeros(self.tree.n_actions)
        actions = np.asarray(actions)
        lhat[actions] = np.asarray(values) / (self.mu() + self.exploration)[actions]
        self.log_weight -= self.learning_rate * (self.member @ lhat)

    def log_mass(self, action):
        """Logarithm of the total weight of the strategies with an action."""
        chosen = self.log_weight[self.member[:, action] > 0]
        largest = chosen.max()
        return largest + math.log(math.fsum(np.exp(chosen - largest)))

    def policy(self):
        """pi(a | s), also where reaching s is too rare for a float64: float64[A]."""
        log_mass = np.array([self.log_mass(a) for a in range(self.tree.n_actions)])
        result = np.zeros(self.tree.n_actions)
        for s in range(self.tree.n_infosets):
            here = log_mass[actions_of(self.tree, s)]
            ratio = np.exp(here - here.max())
            result[actions_of(self.tree, s)] = ratio / math.fsum(ratio)
        return result


def strategy_loss(environment, picked, infoset=0):
    """Expected loss of a reduced strategy (a set of actions), down the tree from an infoset."""
    tree = environment.tree
    (a,) = [a for a in actions_of(tree, infoset) if a in picked]
    loss = sum(environment.leaf_prob[leaf] * environment.leaf_loss[leaf] for leaf in leaves_below(tree, a))
    return loss + sum(
        environment.infoset_prob[s] * strategy_loss(environment, picked, s) for s in infosets_below(tree, a)
    )


def log_density(values, means, scale):
    """Log-density of independent Laplace(scale) values around their means, summed over the last axis."""
    return -(np.abs(np.asarray(values) - means) / scale + math.log(2 * scale)).sum(axis=-1)


# ----------------------------------------------------------------------------------------------------------
# Games: by recursion from the root, and a game as nested tuples.
# ----------------------------------------------------------------------------------------------------------


def policy_loss(environment, policy, infoset=0):
    """Expected loss of a behaviour policy, down the tree from an infoset."""
    tree, total = environment.tree, 0.0
    for a in actions_of(tree, infoset):
        below = sum(environment.leaf_prob[i] * environment.leaf_loss[i] for i in leaves_below(tree, a))
        for s in infosets_below(tree, a):
            below += environment.infoset_prob[s] * policy_loss(environment, policy, s)
        total += policy[a] * below
    return total


def own_reach(tree, policy, infoset=0, reach=1.0):
    """Product of the policy along the path to every action: {action: probability}."""
    found = {}
    for a in actions_of(tree, infoset):
        found[a] = reach * policy[a]
        for s in infosets_below(tree, a):
            found |= own_reach(tree, policy, s, found[a])
    return found


def direct_losses(environment, infoset=0, reach=1.0):
    """g(a): chance of the environment to let a be reached, times the mean loss of its leaves: {action: g}."""
    tree, found = environment.tree, {}
    for a in actions_of(tree, infoset):
        found[a] = reach * sum(
            environment.leaf_prob[i] * environment.leaf_loss[i] for i in leaves_below(tree, a)
        )
        for s in infosets_below(tree, a):
            found |= direct_losses(environment, s, reach * environment.infoset_prob[s])
    return found


def shape(environment, infoset=0):
    """A tree and its environment as nested tuples in which the order of siblings no longer matters."""
    tree, actions = environment.tree, []
    for a in actions_of(tree, infoset):
        leaves = [
            (round(environment.leaf_prob[i], 12), round(environment.leaf_loss[i], 12))
            for i in leaves_below(tree, a)
        ]
        below = [
            (round(environment.infoset_prob[s], 12), shape(environment, s)) for s in infosets_below(tree, a)
        ]
        actions.append((tuple(sorted(leaves)), tuple(sorted(below))))
    return tuple(sorted(actions))


class ListedGame:
    """A game as nested tuples: ("end", payoffs), ("chance", probabilities, children) or
    ("move", player, infoset, action labels, children). An infoset is its own label."""

    def __init__(self, n_players, tree, labels=None):
        self.n_players, self.tree = n_players, tree
        self.player_labels = labels or tuple(f"player {i}" for i in range(n_players))

    def root(self):
        return self.tree

    def kind(self, node):
        return {"end": -4, "chance": -1}.get(node[0], node[1])

    def actions(self, node):
        return node[3]

    def child(self, node, i):
        return node[-1][i]

    def chance(self, node):
        return node[1]

    def infoset(self, node):
        return node[2], str(node[2])

    def payoff(self, node, player):
        return node[1][player]


def game_value(node, player, own, others=None):
    """Expected payoff of a player of a listed game: `own` and `others` map infosets to probabilities.

    Infosets that are not in `others` are played uniformly.
    """
    if node[0] == "end":
        return node[1][player]
    if node[0] == "chance":
        weights = node[1]
    elif node[1] == player:
        weights = own[node[2]]
    else:
        weights = (others or {}).get((node[1], node[2])) or [1 / len(node[-1])] * len(node[-1])
    return sum(w * game_value(child, player, own, others) for w, child in zip(weights, node[-1], strict=True))


def random_game(rng, *, players=2, depth=5, remember=True, past=None):
    """A random listed game. With `remember`, an infoset knows its player's own past (perfect recall).

    Everybody sees a random bit at each of their nodes, and the number of actions; nothing else.
    """
    past = past or ((),) * players
    what = rng.random()
    if depth == 0 or (what < 0.15 and depth < 4):
        return "end", tuple(int(x) for x in rng.integers(-3, 4, size=players))
    width = int(rng.integers(1, 4))
    if what < 0.4:
        weights = [int(x) for x in rng.integers(0, 4, size=width)]
        weights[0] += 1
        chances = tuple(w / sum(weights) for w in weights)
        return (
            "chance",
            chances,
            tuple(
                random_game(rng, players=players, depth=depth - 1, remember=remember, past=past)
                for _ in range(width)
            ),
        )
    player = int(rng.integers(players))
    infoset = (past[player] if remember else (), int(rng.integers(2)), width)
    children = []
    for i in range(width):
        longer = (*past[:player], (*past[player], infoset[1:], i), *past[player + 1 :])
        children.append(random_game(rng, players=players, depth=depth - 1, remember=remember, past=longer))
    return "move", player, infoset, tuple("abc"[:width]), tuple(children)


def moves_of(node, player):
    """Whether a player moves anywhere in a listed game."""
    if node[0] == "end":
        return False
    return (node[0] == "move" and node[1] == player) or any(moves_of(child, player) for child in node[-1])


def key_of(seed):
    """The two words of a seed's key; a list is a key already."""
    if isinstance(seed, list):
        return seed
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64)]


def stream(seed, trial, replicate, purpose):
    """The words of xoshiro256++ at the address (0, trial, replicate, purpose) of a seed or key, endlessly."""
    state = philox_block(key_of(seed), [0, trial, replicate, purpose])
    chunk, made = 64, 0
    while True:
        words = xoshiro_words(state, made + chunk)
        yield from words[made:]
        made += chunk


def uniform_of(word):
    return ((word >> 12) + 0.5) * 2.0**-52


def laplace_of(word):
    """A standard Laplace draw: the lowest bit is the sign, the top 52 are the uniform of an exponential."""
    return (-1.0 if word & 1 else 1.0) * -math.log(uniform_of(word))


def draw_strategy(tree, policy, seed, trial, replicate=0):
    """(infosets, actions) breadth first; the i-th infoset takes word i of the purpose 1."""
    words, infosets, actions = stream(seed, trial, replicate, 1), [0], []
    for s in infosets:  # grows while it is read
        own = list(actions_of(tree, s))
        target = uniform_of(next(words)) * sum(policy[a] for a in own)
        sums = list(itertools.accumulate(policy[a] for a in own))
        actions.append(own[next((k for k, total in enumerate(sums) if target < total), len(own) - 1)])
        infosets += infosets_below(tree, actions[-1])
    return infosets, actions


def play_strategy(environment, actions, seed, trial, replicate=0):
    """(last action, loss); the d-th move of chance takes word d of the purpose 3, infosets before leaves."""
    tree, words, infoset = environment.tree, stream(seed, trial, replicate, 3), 0
    while True:
        (a,) = [a for a in actions_of(tree, infoset) if a in actions]
        children = [("infoset", s, environment.infoset_prob[s]) for s in infosets_below(tree, a)]
        children += [("leaf", leaf, environment.leaf_prob[leaf]) for leaf in leaves_below(tree, a)]
        sums = itertools.accumulate(probability for _, _, probability in children)
        u = uniform_of(next(words))
        # rounding may leave the last sum below one: then the last child that can come
        possible = [k for k, (_, _, probability) in enumerate(children) if probability > 0]
        chosen = next((k for k, total in enumerate(sums) if u < total), possible[-1])
        kind, child, _ = children[chosen]
        if kind == "leaf":
            return a, environment.leaf_loss[child]
        infoset = child


def noise(n, scale, seed, trial, replicate=0):
    """n Laplace draws; the i-th takes word i of the purpose 2."""
    words = stream(seed, trial, replicate, 2)
    return np.array([scale * laplace_of(next(words)) for _ in range(n)])


def run_learner(learner, environment_of, horizon, scale, seed, replicate=0):
    """Play `horizon` trials with an ExponentialWeights; return what happened in each of them.

    `environment_of` maps a trial to its environment. Returns the lists of actions drawn, and of losses seen.
    """
    drawn, losses = [], []
    for trial in range(horizon):
        _, actions = draw_strategy(learner.tree, learner.policy(), seed, trial, replicate)
        last, loss = play_strategy(environment_of(trial), actions, seed, trial, replicate)
        values = noise(len(actions), scale, seed, trial, replicate)
        values[actions.index(last)] += loss
        learner.update(actions, values)
        drawn.append(actions)
        losses.append(loss)
    return drawn, losses


def end(*payoffs):
    """A terminal node of a listed game."""
    return "end", payoffs


def move(player, infoset, *children, labels=None):
    """A node of a listed game where a player moves; actions are a, b, c, ... unless told otherwise."""
    return "move", player, infoset, labels or tuple("abcdef"[: len(children)]), children


def chance(probabilities, *children):
    """A node of a listed game where chance moves."""
    return "chance", probabilities, children
