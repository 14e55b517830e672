"""Linear bandits in plain Python: words one by one, a full inverse each round. Shares no code with src."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize
from tests import naive

REWARD, NOISE, CONTEXT = 5, 2, 8


def words_of(seed, entity, replicate, purpose, n):
    key = [int(k) for k in np.random.SeedSequence(seed).generate_state(2, np.uint64)]
    return naive.xoshiro_words(naive.philox_block(key, (0, entity, replicate, purpose)), n)


def uniform(word):
    return ((word >> 12) + 0.5) * 2.0**-52


def angle(word):
    """An angle of the quarter around 0, turned into the quarter that the word's two lowest bits name."""
    a = (uniform(word) - 0.5) * math.pi / 2
    if word & 1:
        a = math.pi / 2 - a
    return a + math.pi if word & 2 else a


def normal_pair(first, second):
    radius = math.sqrt(-2.0 * math.log(uniform(first)))
    return radius * math.cos(angle(second)), radius * math.sin(angle(second))


def words_of_a_direction(dimension):
    return 2 * math.ceil(dimension / 2) - 1


def direction(words, dimension):
    """A direction from its words: first those of the radii, then those of the angles."""
    pairs = math.ceil(dimension / 2)
    cuts = [0.0, *sorted(uniform(w) for w in words[: pairs - 1]), 1.0]
    out = []
    for i in range(pairs):
        radius, turn = math.sqrt(cuts[i + 1] - cuts[i]), angle(words[pairs - 1 + i])
        out += [radius * math.cos(turn), radius * math.sin(turn)]
    row = np.array(out[:dimension])
    return row / np.linalg.norm(row)


def directions(words, n, dimension):
    each = words_of_a_direction(dimension)
    return np.array([direction(words[i * each : (i + 1) * each], dimension) for i in range(n)])


def contexts(seed, replicate, horizon, n_arms, dimension):
    """Contexts float64[T, K, d] of a replicate."""
    a_round = n_arms * words_of_a_direction(dimension)
    words = words_of(seed, 0, replicate, CONTEXT, horizon * a_round)
    return np.array(
        [directions(words[t * a_round : (t + 1) * a_round], n_arms, dimension) for t in range(horizon)]
    )


def theta(seed, replicate, n_arms, dimension):
    """Coefficients float64[K, d] of a replicate: the first is zero, the others on the unit sphere."""
    out = np.zeros((n_arms, dimension))
    if dimension > 1:
        n = n_arms * words_of_a_direction(dimension - 1)
        out[:, 1:] = directions(words_of(seed, 1, replicate, CONTEXT, n), n_arms, dimension - 1)
    return out


def laplace(word):
    return (-1.0 if word & 1 else 1.0) * -math.log(uniform(word))


def tail(m, scale, delta):
    """The smallest of Chernoff's bounds on the sum of m Laplace draws, by numerical minimisation."""
    if m == 0 or scale == 0.0:
        return 0.0

    def bound(s):
        return (math.log(2.0 / delta) - m * math.log1p(-s * s)) / s

    return (
        scale
        * optimize.minimize_scalar(
            bound, bounds=(1e-9, 1 - 1e-12), method="bounded", options={"xatol": 1e-12}
        ).fun
    )


class Ridges:
    """Ridge regressions of K arms in d coordinates, and the index of a policy; see :func:`play`."""

    def __init__(self, policy, n_arms, d, horizon, *, ridge, delta, sigma, epsilon, clip, l1):
        self.policy, self.ridge, self.delta, self.sigma, self.clip = policy, ridge, delta, sigma, clip
        self.gram = np.array([ridge * np.eye(d)] * n_arms)
        self.moment, self.clipped, self.estimate = np.zeros((3, n_arms, d))
        self.node_noise = [[] for _ in range(n_arms)]
        levels = math.floor(math.log2(horizon)) + 1
        self.scale = levels * (clip[1] - clip[0]) * l1 / epsilon
        self.private = policy == "private-oful"
        self.tails = [tail(m, self.scale, delta / d) if self.private else 0.0 for m in range(levels + 1)]

    def choose(self, t, shown):
        """Return the arm of round t, shown contexts [K, d]."""
        best, arm = -math.inf, 0
        for k, x in enumerate(shown):
            inverse, n = np.linalg.inv(self.gram[k]), len(self.node_noise[k])
            index = self.estimate[k] @ x
            if self.policy in ("oful", "private-oful"):
                radius = self.sigma * math.sqrt(len(x) * math.log((1 + n / self.ridge) / self.delta))
                index += (radius + math.sqrt(self.ridge)) * math.sqrt(x @ inverse @ x)
            if self.private:
                index += np.abs(inverse @ x).sum() * self.tails[n.bit_count()]
                if n == 0:
                    index = math.inf
            if index > best + 1e-9:
                best, arm = index, k
        return t % len(shown) if self.policy == "uniform" else arm

    def learn(self, arm, x, y, noise_words):
        """Give an arm its reward, and d words of noise."""
        self.gram[arm] += np.outer(x, x)
        self.moment[arm] += y * x
        self.clipped[arm] += min(max(y, self.clip[0]), self.clip[1]) * x
        self.node_noise[arm].append([self.scale * laplace(w) for w in noise_words])
        total = self.clipped[arm].copy() if self.private else self.moment[arm].copy()
        n = len(self.node_noise[arm])
        while self.private and n:
            total += self.node_noise[arm][n - 1]
            n &= n - 1
        self.estimate[arm] = np.linalg.inv(self.gram[arm]) @ total


def play(policy, theta, shown, words, noise_words, *, binary, sigma, **setting):
    """Play one replicate; return arms [T], regret [T], pulls, theta_hat, V^-1 and the estimates of the index.

    theta [K, d]; shown [T, K, d] contexts; words two a round, noise_words d a round; l1 the largest L1 norm
    of a context. An index that exceeds another by less than 1e-9 does not beat it.
    """
    horizon, n_arms, d = shown.shape
    ridges = Ridges(policy, n_arms, d, horizon, sigma=sigma, **setting)
    arms, regret = [], []
    for t in range(horizon):
        arm = ridges.choose(t, shown[t])
        means = (theta * shown[t]).sum(axis=1)
        if binary:
            y = 1.0 if uniform(words[2 * t]) < (1 + means[arm]) / 2 else -1.0
        else:
            y = means[arm] + sigma * normal_pair(words[2 * t], words[2 * t + 1])[0]
        arms.append(arm)
        regret.append(means.max() - means[arm])
        ridges.learn(arm, shown[t, arm], y, noise_words[t * d : (t + 1) * d])
    inverse = np.linalg.inv(ridges.gram)
    theta_hat = np.einsum("kij,kj->ki", inverse, ridges.moment)
    return arms, np.cumsum(regret), np.bincount(arms, minlength=n_arms), theta_hat, inverse, ridges.estimate


def walk(policy, x, arms, rewards, n_arms, noise_words, horizon, **setting):
    """Walk the rows of a log, contexts x [M, d]; return those whose arm was the policy's, up to a horizon."""
    d = x.shape[1]
    ridges = Ridges(policy, n_arms, d, horizon, clip=(0.0, 1.0), l1=np.abs(x).sum(axis=1).max(), **setting)
    used = []
    for row, (one, arm, reward) in enumerate(zip(x, arms, rewards, strict=True)):
        t = len(used)
        if t < horizon and ridges.choose(t, [one] * n_arms) == arm:
            ridges.learn(arm, one, reward, noise_words[t * d : (t + 1) * d])
            used.append(row)
    return used
