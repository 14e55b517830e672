"""Slow, obvious truths about one symbol a user: whole intervals of words, listed strategies, every event."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
from tests import naive

WORDS = 2**62
HASH = 13  # the purpose of public randomness, the fourth word of its address


# ----------------------------------------------------------------------------------------------------------
# Words that draw a symbol
# ----------------------------------------------------------------------------------------------------------


def exponential(epsilon):
    """(low, high): fractions around e^epsilon, epsilon the float's exact value, less than 1e-60 apart."""
    with localcontext() as context:
        context.prec = 90
        middle = Fraction(Decimal(epsilon).exp())
    return middle * (1 - Fraction(1, 10**80)), middle * (1 + Fraction(1, 10**80))


class Split(Exception):
    """An interval of words does not agree on an answer; it does below this word, and from it on."""


class Words:
    """All words w with first <= w < end at once, less an offset: answers only what they answer alike."""

    def __init__(self, first, end, offset=0):
        self.first, self.end, self.offset = first, end, offset

    def __lt__(self, bound):
        word = bound + self.offset
        if self.first < word < self.end:
            raise Split(word)
        return self.first < word

    def __sub__(self, number):
        return Words(self.first, self.end, self.offset + number)

    def __floordiv__(self, divisor):
        assert divisor > 0
        quotient = (self.first - self.offset) // divisor
        word = (quotient + 1) * divisor + self.offset
        if word < self.end:
            raise Split(word)
        return quotient


def symbol_counts(draw, n_symbols):
    """How many of the 2^62 words draw each symbol, and the first word of every interval, proven.

    `draw` runs on whole intervals of words. Where the words of one would part, at a comparison or in a
    quotient, the interval is cut there, so that each that comes through has one symbol for all its words.
    Anything else that a draw might do with a word is a TypeError.
    """
    counts, starts, first, ends = [0] * n_symbols, [], 0, [WORDS]
    while ends:
        try:
            symbol = draw(Words(first, ends[-1]))
        except Split as split:
            ends.append(split.args[0])
            continue
        end = ends.pop()
        counts[symbol] += end - first
        starts.append(first)
        first = end
    assert first == WORDS
    return counts, starts


# ----------------------------------------------------------------------------------------------------------
# Public buckets and signs, and what a server makes of a symbol
# ----------------------------------------------------------------------------------------------------------


def halves(key, trial, n):
    """32 public bits for each of n blocks: Philox at (0, trial, 0, HASH), then xoshiro, low half first."""
    words = naive.xoshiro_words(naive.philox_block([int(x) for x in key], [0, trial, 0, HASH]), (n + 1) // 2)
    return [half for word in words for half in (word % 2**32, word // 2**32)][:n]


def block_event(half, n_buckets):
    """(turn, sign) of a block's 32 public bits: the lowest is the sign, the rest a fraction of a turn."""
    return (half // 2) * n_buckets // 2**31, 1 - 2 * (half % 2)


def placed(events, n, n_buckets):
    """(bucket, sign) of n items: k after k make a block, and its event (turn, sign) turns it and signs it."""
    return [((i + events[i // n_buckets][0]) % n_buckets, events[i // n_buckets][1]) for i in range(n)]


def items(key, trial, n, n_buckets):
    """(bucket, sign) of the n items of a trial."""
    bits = halves(key, trial, n_blocks(n, n_buckets))
    return placed([block_event(half, n_buckets) for half in bits], n, n_buckets)


def n_blocks(n, n_buckets):
    """How many blocks n items make; the last may be short."""
    return -(-n // n_buckets)


def every_event(n, n_buckets):
    """All equally likely events of the blocks of n items."""
    one = [(turn, sign) for turn in range(n_buckets) for sign in (1, -1)]
    return list(itertools.product(one, repeat=n_blocks(n, n_buckets)))


def symbol_for(bucket, sign):
    """The symbol of a bucket and a sign."""
    return 2 * bucket + (sign < 0)


def gain(epsilon, n_buckets):
    """G = 1/(p - q), exact to many digits."""
    e = mpmath.exp(mpmath.mpf(epsilon))
    return float((e + 2 * n_buckets - 1) / (e - 1))


def estimates(items, symbol, radii, gain):
    """y(a) = s z(a) r(a) G [h(a) = j] of every item (bucket, sign), for the symbol (j, s)."""
    bucket, sign = symbol // 2, 1 - 2 * (symbol % 2)
    return np.array([sign * z * r * gain * (h == bucket) for (h, z), r in zip(items, radii, strict=True)])


class ExponentialWeights(naive.ExponentialWeights):
    """Exponential weights over all reduced strategies, fed y(a)/m(a), m(a) = (1 - rho) mu(a) + rho nu(a)."""

    def __init__(self, tree, learning_rate, exploration, explore):
        super().__init__(tree, learning_rate, exploration)
        self.explore = explore

    def update(self, actions, values):
        m = (1.0 - self.explore) * self.mu() + self.exploration
        lhat = np.zeros(self.tree.n_actions)
        lhat[np.asarray(actions)] = np.asarray(values) / m[np.asarray(actions)]
        self.log_weight -= self.learning_rate * (self.member @ lhat)

    def chances(self):
        """{strategy: how often it is drawn}: the policy's with 1 - rho, and rho times the plan nu."""
        weight = np.exp(self.log_weight - self.log_weight.max())
        found = {}
        for picked, chance in zip(self.strategies, weight / weight.sum(), strict=True):
            found[picked] = (1.0 - self.explore) * chance + plan_chance(
                self.tree, self.exploration / self.explore, picked
            ) * self.explore
        return found


def plan_chance(tree, nu, picked):
    """How often play by a plan nu(a) is the reduced strategy: the product of nu(a | s) over its actions."""
    chance = 1.0
    for a in picked:
        total = sum(nu[b] for b in naive.actions_of(tree, tree.action_infoset[a]))
        chance *= nu[a] / total if total > 0 else 1.0 / len(naive.actions_of(tree, tree.action_infoset[a]))
    return chance


# ----------------------------------------------------------------------------------------------------------
# Tuning
# ----------------------------------------------------------------------------------------------------------


def split_plan(tree, radius):
    """(nu float64[A], Q(root)): the L2 split with costs r^2, by recursion; alike where nothing is below."""
    nu = np.zeros(tree.n_actions)

    def of_action(a):
        return radius[a] ** 2 + sum(of_infoset(s) for s in naive.infosets_below(tree, a))

    def of_infoset(s):
        return sum(math.sqrt(of_action(a)) for a in naive.actions_of(tree, s)) ** 2

    def split(s, amount):
        own, total = naive.actions_of(tree, s), math.sqrt(of_infoset(s))
        for a in own:
            nu[a] = amount * (math.sqrt(of_action(a)) / total if total > 0 else 1 / len(own))
            for below in naive.infosets_below(tree, a):
                split(below, nu[a])

    split(0, 1.0)
    return nu, of_infoset(0)


def most_last(tree, costs):
    """The largest sum of costs over the actions that one deterministic environment makes last, by listing.

    An environment picks one child of every action: one of its infosets, or None for a leaf where it has one.
    """
    options = [
        [*naive.infosets_below(tree, a), *([None] if len(naive.leaves_below(tree, a)) else [])]
        for a in range(tree.n_actions)
    ]
    largest = 0.0
    for picks in itertools.product(*options):
        reached, total = [0], 0.0
        while reached:
            for a in naive.actions_of(tree, reached.pop()):
                if picks[a] is None:
                    total += costs[a]
                else:
                    reached.append(picks[a])
        largest = max(largest, total)
    return largest


def longest(tree):
    """The most actions of a reduced strategy, by recursion."""

    def of_infoset(s):
        return 1 + max(sum(map(of_infoset, naive.infosets_below(tree, a))) for a in naive.actions_of(tree, s))

    return of_infoset(0)


def moment(epsilon, n_buckets, n_items):
    """V0: G^2 times the chance that a symbol is of the bucket of an item that was not last.

    That is 1/k where the two are of different blocks, as some are if there are more than k items. In one
    block they never share a bucket: 2 q.
    """
    q = 1 / (mpmath.exp(mpmath.mpf(epsilon)) + 2 * n_buckets - 1)
    chance = mpmath.mpf(1) / n_buckets if n_items > n_buckets else 2 * q
    return chance / (1 - 2 * n_buckets * q) ** 2


def constant(epsilon, n_buckets, theta, total, most, q_root, n_items):
    """C of the bound; `total` is S2, `most` N2, `q_root` Q(root), `n_items` the most of a strategy."""
    with mpmath.workdps(40):
        k, e, theta = n_buckets, mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(theta)
        q = 1 / (e + 2 * k - 1)
        p = e * q
        big_g = 1 / (p - q)
        v0 = moment(epsilon, k, n_items)
        u = theta * big_g / mpmath.sqrt(v0)
        ch, sc = 2 * (mpmath.cosh(u) - 1) / u**2, mpmath.sinh(u) / u
        sc3 = 6 * (sc - 1) / u**2
        w = ch * theta**2 / 2
        e1 = (mpmath.exp(w) - 1) / w
        return float(
            total * (v0 / 2) * ch * e1 * (1 + theta * sc / mpmath.sqrt(v0))
            + most * (big_g**2 * (p + q) / 2 * ch * mpmath.exp(w) + big_g * u * sc3 / 6)
            + mpmath.sqrt(v0 * q_root) / theta
        )


def expected_by_blocks(weights, last, epsilon, n_buckets):
    """E exp(-sum t y), exactly: `weights` the (t, r) of every item in order, `last` (position, v) of a*.

    Given the symbol, the turns and signs of all blocks without a* are uniform and independent: the bucket of
    the symbol holds each of their items with chance 1/k, and no two of a block, so a block's factor is
    1 + sum of c/k. In the block of a*, the symbol is of a*'s own bucket with chance p + q, v telling which
    sign, and of each other item's with 2q, both signs alike: the factor is
    1 + sum of 2q c + (p + q) c* - (p - q) (v/r*) sinh(u*).
    The last two terms are 0 where t of a* is 0, as for a* outside D.
    """
    e, k = math.exp(epsilon), n_buckets
    q = 1 / (e + 2 * k - 1)
    p = e * q
    position, value = last
    product = 1.0
    for b in range(n_blocks(len(weights), k)):
        factor = 1.0
        for i in range(b * k, min(b * k + k, len(weights))):
            t, r = weights[i]
            u = r * t / (p - q)
            if i == position:
                factor += (p + q) * (math.cosh(u) - 1) - (p - q) * (value / r) * math.sinh(u)
            else:
                factor += (math.cosh(u) - 1) * (2 * q if position // k == b else 1 / k)
        product *= factor
    return product


def bound_on_expected(weights, last, epsilon, n_buckets):
    """What buckets of all items drawn independently give, which no balanced ones exceed.

    With others' sum C of c, product P of (1 + c/k) and a*'s factor F: 1 + C/k <= P in blocks without a*. In
    its block, F + 2q C <= F P since F >= 2kq: symbols of other buckets have 2 (k - 1) q, and by the means of
    its own pair, whose chances are q or more, it adds 2q or more.
    """
    position, value = last
    others = [weight for i, weight in enumerate(weights) if i != position]
    return expected_factor(others, (*weights[position], value), epsilon, n_buckets)


def expected_factor(others, last, epsilon, n_buckets):
    """E exp(-sum t y) with independent buckets, from the (t, r) of D and `last`, (t, r, v) of a* or None."""
    e, k = math.exp(epsilon), n_buckets
    q = 1 / (e + 2 * k - 1)
    p = e * q
    big_g = 1 / (p - q)
    product = math.prod(1 + (math.cosh(r * big_g * t) - 1) / k for t, r in others)
    if last is not None:
        t, r, v = last
        u = r * big_g * t
        product *= 1 + (p + q) * (math.cosh(u) - 1) - (p - q) * (v / r) * math.sinh(u)
    return product


# ----------------------------------------------------------------------------------------------------------
# Draws by address, and an audit
# ----------------------------------------------------------------------------------------------------------


def uniform(word):
    """The float in (0, 1) that 52 bits of a word give."""
    return (word // 2**12 + 0.5) / 2**52


def drawn(tree, policy, nu, explore, seed, trial):
    """(infosets, actions) that a server with a seed draws in a trial, breadth first, word by word."""
    key = [int(x) for x in np.random.SeedSequence(seed).generate_state(2, np.uint64)]
    words = naive.xoshiro_words(naive.philox_block(key, [0, trial, 0, 1]), tree.n_infosets + 1)
    chances = nu if uniform(words[0]) < explore else policy
    infosets, actions = [0], []
    for i, s in enumerate(infosets):
        own = naive.actions_of(tree, s)
        left = uniform(words[i + 1]) * sum(chances[a] for a in own)
        for a in own:
            left -= chances[a]
            if left < 0:
                break
        actions.append(a)
        infosets += naive.infosets_below(tree, a)
    return infosets, actions


def secret_word(seed, trial):
    """The word below 2^62 of a simulated user: the upper bits of the first word at (0, trial, 0, NOISE)."""
    key = [int(x) for x in np.random.SeedSequence(seed).generate_state(2, np.uint64)]
    return naive.philox_block(key, [0, trial, 0, 2])[0] // 4


def symbol(word, low, extra, n_buckets, own, value, radius):
    """The symbol of a word: first the item's own, then its mirror image, then all others in their order."""
    kept = low + math.floor(extra * (Fraction(1, 2) + Fraction(value) / (2 * Fraction(radius))))
    lengths = [kept, 2 * low + extra - kept] + [low] * (2 * n_buckets - 2)
    order = [own, own ^ 1] + [s for s in range(2 * n_buckets) if s // 2 != own // 2]
    for s, length in zip(order, lengths, strict=True):
        if word < length:
            return s
        word -= length
    raise AssertionError("there is a symbol for every word")


def epsilon_at_least(first, second, n_symbols, error):
    """A bound on epsilon from below, right but for a chance of `error`: Clopper and Pearson, all symbols.

    `first` and `second` are symbols that users sent whose inputs differ.
    """
    from scipy import stats

    counts = [np.bincount(symbols, minlength=n_symbols) for symbols in (first, second)]
    level, largest = error / (4 * n_symbols), 0.0
    for many, few in (counts, counts[::-1]):
        for m, f in zip(many.tolist(), few.tolist(), strict=True):
            if m:
                low = stats.beta.ppf(level, m, many.sum() - m + 1)
                high = stats.beta.ppf(1 - level, f + 1, few.sum() - f)
                largest = max(largest, math.log(low / high))
    return largest
