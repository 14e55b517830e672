"""Bandit policies in plain Python: slow, obvious twins of the kernels that share no code with the package.

A policy is asked ``choose(t, word)`` and told ``update(t, arm, reward, noise)``; t counts rounds from 1, the
word (an int of 64 bits) breaks ties, the noise is a standard Laplace draw. :func:`play` runs one on a table
of rewards; :func:`tape` makes the rewards, noise and words of a replicate by their addresses.
"""

from __future__ import annotations

import collections
import inspect
import itertools
import math
from statistics import NormalDist

import numpy as np
from tests import naive

WORD = 2**64
REWARD, NOISE, TIE, POSTERIOR = 5, 2, 6, 7  # purposes of the streams

# ----------------------------------------------------------------------------------------------------------
# Tape and play
# ----------------------------------------------------------------------------------------------------------


def tape(seed, replicate, horizon, means, *, sigma=None):
    """(rewards [T][K], noise [T], tie words [T]); Gaussian rewards where sigma is given, else Bernoulli."""
    words = {p: naive.stream(seed, 0, replicate, p) for p in (REWARD, NOISE, TIE)}
    table = []
    for _ in range(horizon):
        u = naive.uniform_of(next(words[REWARD]))
        if sigma is None:
            table.append([float(u < mean) for mean in means])
        else:
            table.append([mean + sigma * NormalDist().inv_cdf(u) for mean in means])
    noise = [naive.laplace_of(next(words[NOISE])) for _ in range(horizon)]
    return table, noise, [next(words[TIE]) for _ in range(horizon)]


def play(policy, table, noise, ties):
    """The arms that a policy pulls when round t pays table[t - 1][arm]."""
    arms = []
    for t, (rewards, draw, word) in enumerate(zip(table, noise, ties, strict=True), start=1):
        arm = policy.choose(t, int(word))
        policy.update(t, arm, float(rewards[arm]), float(draw))
        arms.append(arm)
    return arms


TWINS = {}


def twin(name):
    """Keep the class that follows as the twin of the policy of a name."""

    def keep(cls):
        TWINS[name] = cls
        return cls

    return keep


def make(name, n_arms, horizon, epsilon=None, *, ties="first", own=None, **options):
    """The policy of a name; own(t, k) are the words that it has for itself. Options of others do no harm."""
    given = {"horizon": horizon, "epsilon": epsilon, "ties": ties, "own": own, **options}
    wanted = inspect.signature(TWINS[name]).parameters
    return TWINS[name](n_arms, **{key: value for key, value in given.items() if key in wanted})


def draws(name, **options):
    """Whether a policy draws its arms with probabilities that it knows: then its twin keeps `shares`."""
    asked = make(name, 2, 100, 1.0, own=own_words(0, 0), **options)
    asked.choose(1, 0)
    return hasattr(asked, "shares")


class Policy:
    """Every arm once, lowest first; then the arm of the largest index. Keeps all rewards of every arm."""

    def __init__(self, n_arms, ties="first", epsilon=None):
        self.n_arms, self.ties, self.epsilon = n_arms, ties, epsilon
        self.rewards = [[] for _ in range(n_arms)]

    @property
    def pulls(self):
        return [len(rewards) for rewards in self.rewards]

    def choose(self, t, word):
        for arm in range(self.n_arms):
            if not self.rewards[arm]:
                return arm
        return self.best([self.index(arm, t) for arm in range(self.n_arms)], word)

    def best(self, values, word):
        """The arm of the largest value: the first of them, or one drawn with the word."""
        tied = [arm for arm in range(self.n_arms) if values[arm] == max(values)]
        return tied[word * len(tied) // WORD] if self.ties == "random" else tied[0]

    def update(self, t, arm, reward, noise):
        self.rewards[arm].append(reward)


# ----------------------------------------------------------------------------------------------------------
# Indices over all rewards: without privacy, with a counter, and the controls
# ----------------------------------------------------------------------------------------------------------


def delta_of(t):
    return 1.0 / (1.0 + t * math.log(t) ** 2)


@twin("ucb")
class Ucb(Policy):
    """S/n + sqrt(ln(2/delta_t)/(2n)), delta_t = 1/(1 + t ln^2 t)."""

    def index(self, arm, t):
        n = len(self.rewards[arm])
        return sum(self.rewards[arm]) / n + math.sqrt(math.log(2.0 / delta_of(t)) / (2.0 * n))


@twin("ucb1")
class Ucb1(Policy):
    """S/n + sqrt(2 ln t/n)."""

    def index(self, arm, t):
        n = len(self.rewards[arm])
        return sum(self.rewards[arm]) / n + math.sqrt(2.0 * math.log(t) / n)


@twin("greedy")
class Greedy(Policy):
    """S/n."""

    def index(self, arm, t):
        return sum(self.rewards[arm]) / len(self.rewards[arm])


@twin("uniform")
class RoundRobin(Policy):
    """Arm after arm, over and over; or each drawn with probability 1/K."""

    def __init__(self, n_arms, own=None, drawn=False):
        super().__init__(n_arms)
        self.own, self.drawn = own, drawn

    def choose(self, t, word):
        if not self.drawn:
            return (t - 1) % self.n_arms
        self.shares = [1.0 / self.n_arms] * self.n_arms
        return drawn_arm(self.shares, self.own(t, self.n_arms)[0])


class BinaryNoise:
    """Noise of the binary counter: an explicit node for every level, those of the set bits of n added up."""

    def __init__(self, horizon, epsilon):
        self.levels = 1
        while 2**self.levels <= horizon:  # floor(log2 T) + 1
            self.levels += 1
        self.scale = self.levels / epsilon
        self.node = [0.0] * self.levels
        self.n = 0

    def add(self, draw, *_):
        self.n += 1
        level = 0
        while self.n >> level & 1 == 0:
            level += 1
        self.node[level] = draw * self.scale
        for below in range(level):
            self.node[below] = 0.0

    @property
    def total(self):
        return sum(self.node[level] for level in range(self.levels) if self.n >> level & 1)

    @property
    def scales(self):
        """The scales of the Laplace draws that are in the sum."""
        return [self.scale] * bin(self.n).count("1")


class HybridNoise:
    """Noise of the hybrid counter: one more draw at powers of two, between them a binary counter, eps/2 each.

    The counter between 2^k and 2^(k+1) is one for 2^k - 1 items.
    """

    def __init__(self, epsilon):
        self.half = epsilon / 2.0
        self.draws = []  # one of every power of two so far
        self.n = 0

    def add(self, draw, *_):
        self.n += 1
        if self.n & (self.n - 1) == 0:
            self.draws.append(draw / self.half)
            self.between = BinaryNoise(self.n - 1, self.half)
        else:
            self.between.add(draw)

    @property
    def total(self):
        return sum(self.draws) + self.between.total

    @property
    def scales(self):
        return [1.0 / self.half] * len(self.draws) + self.between.scales


class KaryNoise:
    """Noise of the k-ary counter from its definition: nodes (level, index), each with one draw for good.

    The draw that a round brings goes to the node that is added. Where a node is put back it goes to the one
    k places on, which will be taken off; a level's first such nodes take further words.
    """

    def __init__(self, horizon, epsilon, words):
        def cost(k, h):
            return h**3 * (k * k - 1) / (2 * k)

        def arity(h):
            return next(k for k in range(3, 2 * horizon + 2, 2) if (k**h - 1) // 2 >= horizon)

        _, self.k, self.h = min((cost(arity(h), h), arity(h), h) for h in range(1, 12))
        self.epsilon, self.words, self.draw, self.n, self.signed = epsilon, words, {}, 0, {}

    def nodes(self):
        """The nodes of the n-th sum with their signs, from the top level down."""
        at, signed, rest, digits = 0, {}, self.n, []
        for _ in range(self.h):
            digits.append((rest + self.k // 2) % self.k - self.k // 2)
            rest = (rest - digits[-1]) // self.k
        for level in reversed(range(self.h)):
            first = at // self.k**level
            for i in range(abs(digits[level])):
                signed[level, first + i if digits[level] > 0 else first - 1 - i] = (
                    1 if digits[level] > 0 else -1
                )
            at += digits[level] * self.k**level
        return signed

    def add(self, draw, t, arm):
        before = self.signed
        self.n += 1
        self.signed = self.nodes()
        words = None
        level, i = max(set(before) ^ set(self.signed))  # the node of the highest digit that moves
        if before.get((level, i), 0) < 0:
            self.draw[level, i + self.k] = draw
        else:
            self.draw[level, i] = draw
        for node in sorted(set(self.signed) - set(self.draw)):
            words = words_of(self.words(t, arm)) if words is None else words
            self.draw[node] = naive.laplace_of(next(words))

    @property
    def total(self):
        return sum(sign * self.draw[node] for node, sign in self.signed.items()) * self.h / self.epsilon

    @property
    def scales(self):
        return [self.h / self.epsilon] * len(self.signed)


def tail_width(scales, delta):
    """min over s in (0, 1/max b) of (ln(2/delta) - sum of ln(1 - b^2 s^2))/s, by golden section."""
    largest = max(scales)
    if largest == 0.0:
        return 0.0

    alike = collections.Counter(scales).items()

    def bound(x):
        s = x / largest
        return (math.log(2.0 / delta) - sum(m * math.log1p(-((b * s) ** 2)) for b, m in alike)) / s

    low, high, golden = 0.0, 1.0, (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(60):  # a bound is flat at its least: far more than enough
        left, right = high - golden * (high - low), low + golden * (high - low)
        if bound(left) < bound(right):
            high = right
        else:
            low = left
    return bound((low + high) / 2.0)


@twin("private-ucb")
class PrivateUcb(Policy):
    """(S + noise)/n + sqrt(ln(2/delta_t)/(2n)) + w/n with a counter for every arm."""

    noisy, wide = True, True

    def __init__(self, n_arms, ties, epsilon, horizon, own=None, width="counter", counter="k-ary"):
        super().__init__(n_arms, ties, epsilon)
        self.horizon, self.width = horizon, width
        make = {
            "binary": lambda: BinaryNoise(horizon, epsilon),
            "hybrid": lambda: HybridNoise(epsilon),
            "k-ary": lambda: KaryNoise(horizon, epsilon, own),
        }
        self.counter = [make[counter]() for _ in range(n_arms)]

    def update(self, t, arm, reward, noise):
        super().update(t, arm, reward, noise)
        self.counter[arm].add(noise, t, arm)

    @property
    def private_means(self):
        totals = [counter.total if self.noisy else 0.0 for counter in self.counter]
        return [(sum(r) + x) / len(r) if r else math.nan for r, x in zip(self.rewards, totals, strict=True)]

    def index(self, arm, t):
        n = len(self.rewards[arm])
        noise = self.counter[arm].total if self.noisy else 0.0
        mean = (sum(self.rewards[arm]) + noise) / n
        return mean + math.sqrt(math.log(2.0 / delta_of(t)) / (2.0 * n)) + self.width_of(arm, t) / n

    def width_of(self, arm, t):
        if not self.wide:
            return 0.0
        if self.width == "counter":
            return tail_width(self.counter[arm].scales, 1.0 / t**2)
        k, log_t = self.n_arms, math.log(self.horizon)
        return k * log_t**2 * math.log(k * self.horizon * log_t / delta_of(t)) / self.epsilon


@twin("width-only")
class WidthOnly(PrivateUcb):
    """The width without the noise."""

    noisy = False


@twin("noise-only")
class NoiseOnly(PrivateUcb):
    """The noise without the width."""

    wide = False


# ----------------------------------------------------------------------------------------------------------
# dp-klucb
# ----------------------------------------------------------------------------------------------------------


def logit(x):
    return -math.inf if x <= 0.0 else math.inf if x >= 1.0 else math.log(x) - math.log1p(-x)


def both(w):
    """(y, 1 - y) of log-odds w, each to full precision."""
    if w < 0.0:
        return math.exp(w) / (1.0 + math.exp(w)), 1.0 / (1.0 + math.exp(w))
    return 1.0 / (1.0 + math.exp(-w)), math.exp(-w) / (1.0 + math.exp(-w))


def private_divergence(x, w, epsilon):
    """d_eps(x, y) for y of log-odds w >= logit x: eps (z - x) + kl(z, y) at z = sigma(w - eps), kept >= x."""
    y, y_left = both(w)
    z, z_left = both(w - epsilon) if w - epsilon > logit(x) else (x, 1.0 - x)
    price = 0.0 if z == x else epsilon * (z - x)
    kl = sum(p * math.log(p / q) for p, q in ((z, y), (z_left, y_left)) if p > 0.0)
    return price + kl


def private_kl_index(x, budget, epsilon):
    """Log-odds of the largest q with d_eps(x, q) <= budget, by bisection; infinite where q = 1 is allowed.

    d_eps(x, 1) = eps (1 - x), since z = 1 is the only one with a finite kl(z, 1).
    """
    if x == 1.0 or epsilon * (1.0 - x) <= budget:
        return math.inf
    low, high = max(logit(x), -700.0), 700.0
    while True:
        middle = (low + high) / 2.0
        if middle in (low, high):
            return low
        if private_divergence(x, middle, epsilon) <= budget:
            low = middle
        else:
            high = middle


@twin("dp-klucb")
class DpKlucb(Policy):
    """Batches of 1, 2, 4, ... pulls of an arm, each released as sum + Laplace(1/eps); releases add up.

    With clip_sums what has added up over n pulls is put back into [0, n] after each release.
    """

    def __init__(self, n_arms, ties, epsilon, clip_sums=True):
        super().__init__(n_arms, ties, epsilon)
        self.clip_sums = clip_sums
        self.batch = [[] for _ in range(n_arms)]  # the rewards of the batch that is being gathered
        self.length = [1] * n_arms
        self.known = [(0.0, 0)] * n_arms  # (private sum, pulls in it)
        self.current = None

    def choose(self, t, word):
        return super().choose(t, word) if self.current is None else self.current

    @property
    def private_means(self):
        return [total / n for total, n in self.known]

    def index(self, arm, t):
        total, n = self.known[arm]
        return private_kl_index(min(max(total / n, 0.0), 1.0), math.log(t) / n, self.epsilon)

    def update(self, t, arm, reward, noise):
        super().update(t, arm, reward, noise)
        self.batch[arm].append(reward)
        self.current = arm
        if len(self.batch[arm]) == self.length[arm]:
            total, n = self.known[arm]
            total, n = total + (sum(self.batch[arm]) + noise / self.epsilon), n + self.length[arm]
            self.known[arm] = (min(max(total, 0.0), float(n)) if self.clip_sums else total), n
            self.batch[arm], self.length[arm], self.current = [], 2 * self.length[arm], None


# ----------------------------------------------------------------------------------------------------------
# dp-se, adap-ucb, lazy-dp-ts
# ----------------------------------------------------------------------------------------------------------


@twin("dp-se")
class DpSe(Policy):
    """Successive elimination: R fresh pulls of each survivor an epoch, round robin, then clear losers go."""

    def __init__(self, n_arms, ties, epsilon, horizon):
        super().__init__(n_arms, ties, epsilon)
        self.horizon = horizon
        self.survivors, self.epoch = list(range(n_arms)), 0
        self.begin()

    def logs(self):
        beta, e, n = 1.0 / self.horizon, self.epoch, len(self.survivors)
        return math.log(8.0 * n * e**2 / beta), math.log(4.0 * n * e**2 / beta)

    def begin(self):
        self.epoch += 1
        gap = 2.0**-self.epoch
        wide, narrow = self.logs()
        self.length = math.floor(max(32.0 * wide / gap**2, 8.0 * narrow / (self.epsilon * gap))) + 1
        self.fresh = {arm: [] for arm in self.survivors}
        self.means = {}

    def choose(self, t, word):
        return min(self.survivors, key=lambda arm: (len(self.fresh[arm]), arm))

    def update(self, t, arm, reward, noise):
        super().update(t, arm, reward, noise)
        self.fresh[arm].append(reward)
        if len(self.fresh[arm]) == self.length:
            self.means[arm] = (sum(self.fresh[arm]) + noise / self.epsilon) / self.length
        if len(self.means) == len(self.survivors):
            self.eliminate()
            self.begin()

    def eliminate(self):
        wide, narrow = self.logs()
        h, c = math.sqrt(wide / (2.0 * self.length)), narrow / (self.length * self.epsilon)
        best = max(self.means.values())
        self.survivors = [arm for arm in self.survivors if not best - self.means[arm] > 2.0 * h + 2.0 * c]


@twin("adap-ucb")
class AdapUcb(Policy):
    """Episodes that double an arm's count; the index knows the noised mean of the arm's last episode only."""

    def __init__(self, n_arms, ties, epsilon, alpha=3.1):
        super().__init__(n_arms, ties, epsilon)
        self.alpha = alpha
        self.episode, self.length, self.current = [], None, None
        self.last = [None] * n_arms  # (noised mean, length)

    def choose(self, t, word):
        return super().choose(t, word) if self.current is None else self.current

    def index(self, arm, t):
        mean, m = self.last[arm]
        wide = self.alpha * math.log(t)
        return mean + math.sqrt(wide / (2.0 * m)) + wide / (self.epsilon * m)

    def update(self, t, arm, reward, noise):
        if self.current is None:
            self.current, self.episode, self.length = arm, [], max(1, len(self.rewards[arm]))
        super().update(t, arm, reward, noise)
        self.episode.append(reward)
        if len(self.episode) == self.length:
            m = self.length
            self.last[arm], self.current = ((sum(self.episode) + noise / self.epsilon) / m, m), None


class Sampled(Policy):
    """Each arm with the share of joint draws from posterior(arm, t) that it wins, mixed with the floor.

    Shares are made in rounds 1, 1 + batch, 1 + 2 batch, ... Arms are drawn with a word of their own.
    """

    def __init__(self, n_arms, ties, epsilon, own, floor, draws, batch):
        super().__init__(n_arms, ties, epsilon)
        self.own, self.floor, self.draws, self.batch = own, floor, draws, batch

    def choose(self, t, word):
        if (t - 1) % self.batch == 0:
            joint = []
            for arm in range(self.n_arms):
                words = words_of(self.own(t, arm))
                joint.append([beta_pairs(words, *self.posterior(arm, t)) for _ in range(self.draws)])
            won = [values.index(max(values)) for values in zip(*joint, strict=True)]
            self.shares = [
                (1.0 - self.floor) * won.count(arm) / self.draws + self.floor / self.n_arms
                for arm in range(self.n_arms)
            ]
        return drawn_arm(self.shares, self.own(t, self.n_arms)[0])


def drawn_arm(shares, word):
    """The first arm at which the shares have added up to more than the word's uniform."""
    u, total = naive.uniform_of(word), 0.0
    for arm, share in enumerate(shares):
        total += share
        if u < total:
            return arm
    return max(arm for arm, share in enumerate(shares) if share > 0.0)


@twin("thompson")
class Thompson(Sampled):
    """Beta(1 + S, 1 + n - S), S put back into [0, n]."""

    def __init__(self, n_arms, own, floor=0.1, draws=100, batch=10):
        super().__init__(n_arms, "first", None, own, floor, draws, batch)

    def posterior(self, arm, t):
        n = len(self.rewards[arm])
        total = min(max(sum(self.rewards[arm]), 0.0), n)
        return 1.0 + total, 1.0 + n - total


@twin("epsilon-greedy")
class EpsilonGreedy(Policy):
    """The largest mean with probability 1 - explore, infinite before the first reward; else any arm."""

    def __init__(self, n_arms, own, explore=0.1):
        super().__init__(n_arms)
        self.own, self.explore = own, explore

    def choose(self, t, word):
        means = [sum(rewards) / len(rewards) if rewards else math.inf for rewards in self.rewards]
        tied = means.count(max(means))
        self.shares = [
            (1.0 - self.explore) / tied * (mean == max(means)) + self.explore / self.n_arms for mean in means
        ]
        return drawn_arm(self.shares, self.own(t, self.n_arms)[0])


@twin("lazy-dp-ts")
class LazyDpTs(Sampled):
    """Thompson sampling from the last full buffer of each arm: of 1, 2, 4, ... rewards, then dropped."""

    def __init__(self, n_arms, ties, epsilon, own, floor=0.0, draws=100, batch=10):
        super().__init__(n_arms, ties, epsilon, own, floor, draws, batch)
        self.buffer = [[] for _ in range(n_arms)]
        self.size = [1] * n_arms
        self.known = [None] * n_arms  # (noised mean, O)

    @property
    def private_means(self):
        return [mean for mean, _ in self.known]

    def choose(self, t, word):
        return super().choose(t, word) if self.floor > 0.0 else Policy.choose(self, t, word)

    def posterior(self, arm, t):
        if self.known[arm] is None:
            return 1.0, 1.0
        mean, size = self.known[arm]
        mu = min(max(mean + 3.0 * math.log(t) / (self.epsilon * size), 0.0), 1.0)
        return mu * size + 1.0, (1.0 - mu) * size + 1.0

    def index(self, arm, t):
        return beta_of(words_of(self.own(t, arm)), *self.posterior(arm, t))

    def update(self, t, arm, reward, noise):
        super().update(t, arm, reward, noise)
        self.buffer[arm].append(reward)
        size = self.size[arm]
        if len(self.buffer[arm]) == size:
            self.known[arm] = (sum(self.buffer[arm]) + noise / self.epsilon) / size, size
            self.buffer[arm], self.size[arm] = [], 2 * size


# ----------------------------------------------------------------------------------------------------------
# Words of a policy's own, and Beta draws from them
# ----------------------------------------------------------------------------------------------------------


def own_words(seed, replicate):
    """The function (t, k) -> the four words of the block (t - 1, k, replicate, POSTERIOR)."""
    key = [int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64)]
    return lambda t, k: naive.philox_block(key, [t - 1, k, replicate, POSTERIOR])


def words_of(block):
    """The words of xoshiro256++ from a block, endlessly."""
    made = 0
    for n in itertools.accumulate(itertools.repeat(2), lambda last, by: last * by):
        yield from naive.xoshiro_words(block, n)[made:]
        made = n


def beta_of(words, a, b):
    """A Beta(a, b) draw, a and b at least 1: Cheng's (1978) rejection BB, by inversion where a or b is 1."""
    if a == 1.0 or b == 1.0:
        u = naive.uniform_of(next(words))
        return u ** (1.0 / a) if b == 1.0 else -math.expm1(math.log(u) / b)
    small, large, total = min(a, b), max(a, b), a + b
    beta = math.sqrt((total - 2.0) / (2.0 * a * b - total))
    while True:
        u, v = naive.uniform_of(next(words)), naive.uniform_of(next(words))
        step = beta * math.log(u / (1.0 - u))
        odds = small * math.exp(step)
        level = (small + 1.0 / beta) * step - math.log(4.0)
        if level + total * math.log(total / (large + odds)) >= math.log(u * u * v):
            return odds / (large + odds) if small == a else large / (large + odds)


def beta_pairs(words, a, b):
    """A Beta(a, b) draw as joint draws make it: of two words a try, also where it is by inversion."""
    if a > 1.0 and b > 1.0:
        return beta_of(words, a, b)
    u, _ = naive.uniform_of(next(words)), next(words)
    from_zero = 1.0 - math.exp(math.log(u) / max(a, b))
    return from_zero if a == 1.0 else 1.0 - from_zero
