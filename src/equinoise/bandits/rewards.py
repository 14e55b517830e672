"""What chance does to a replicate of a bandit, by address, and the loop that plays a policy on it.

Replicates lie side by side in *lanes*, W of them, innermost in memory. Word t of a stream belongs to round t
(from 0). A stream is a xoshiro256++ generator whose state is the Philox block of (key; 0, 0, replicate,
purpose), and a purpose names neither policy nor epsilon, so every policy meets the same rewards and the same
standard Laplace draws. One reward word per round serves all arms, since only one of them is seen: together
the words make a tableau of rewards [T, K] that exists before the first choice.
"""

import numpy as np

from equinoise import _random
from equinoise._elementary import log
from equinoise._intrinsics import bits_float, float_bits
from equinoise._jit import njit
from equinoise._random import fill_words, normal, philox, start_streams, uniform
from equinoise._typing import Any, Array, Floats, Ints, NamedTuple, Words

BERNOULLI, GAUSSIAN, TABLE = 0, 1, 2
_PURPOSES = _random.REWARD, _random.NOISE, _random.TIE

_VECTOR = 8  # lanes of the widest vector
_SIGN_SHIFT = np.uint64(63)
_CHUNK = 256  # rounds that Draws draws at a time


class Tape(NamedTuple):
    """The rounds first..first + B - 1 of W lanes, drawn before they are played; row i is round first + i.

    What a policy does not need has no rows.
    """

    mean: Floats  # [K, W]
    reward: Floats  # [B, W] uniforms, or for Gaussian rewards sigma times standard normals
    noise: Floats  # [B, W] standard Laplace draws
    tie: Words  # [B, W]
    table: Floats  # [B, K, W] the rewards of all arms where they are given, or empty
    kind: int  # BERNOULLI, GAUSSIAN or TABLE


class Run(NamedTuple):
    """What is played: the rounds first..end-1 (from 0) of every lane."""

    tape: Tape  # where chunks of rounds are drawn
    streams: Words  # [3, 4, W], as they are after `first` rounds
    sigma: float  # of Gaussian rewards
    marks: Ints  # [C] increasing numbers of rounds, the last at least `end`
    gap: Floats  # [K, W] largest mean less the arm's
    regret: Floats  # [C, W], row c gets the pseudo-regret after marks[c] rounds, first < marks[c] <= end
    random_ties: bool
    first: int
    end: int


def zeros(shape: tuple[int, ...], integers: str = "", floats: str = "") -> dict[str, Any]:
    """Return new arrays of zeros by name, int64 and float64, of one shape."""
    whole = {name: np.zeros(shape, dtype=np.int64) for name in integers.split()}
    return whole | {name: np.zeros(shape) for name in floats.split()}


def in_lanes(run: Any, start: int, stop: int, lanes: int) -> dict[str, Array]:
    """Return what run(first, end) does of the replicates start..stop-1, so many side by side at a time."""
    parts = [run(first, min(first + lanes, stop)) for first in range(start, stop, lanes)]
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def full(n: int) -> int:
    """Return how many lanes n replicates take: a vector that is not full costs as much as one that is."""
    return -(-n // _VECTOR) * _VECTOR if n > _VECTOR // 2 else n


def of_lanes(values: Floats, first: int, end: int, lanes: int, *, own: bool) -> Floats:
    """Return values for lanes, each replicate's own or all the same; spare ones take the last's."""
    if own:
        return values[np.minimum(np.arange(first, first + lanes), end - 1)]
    return values[np.newaxis].repeat(lanes, axis=0)


def make_tape(mean: Floats, n_rounds: int, kind: int, *, noise: bool = True, ties: bool = True) -> Tape:
    """Return empty arrays for chunks of at most `n_rounds`; `mean` float64[K, W] is kept as it is."""
    n_arms, lanes = mean.shape
    return Tape(
        np.ascontiguousarray(mean, dtype=np.float64),
        np.zeros((n_rounds, lanes)),
        np.zeros((n_rounds if noise else 0, lanes)),
        np.zeros((n_rounds if ties else 0, lanes), dtype=np.uint64),
        np.zeros((n_rounds if kind == TABLE else 0, n_arms, lanes)),
        kind,
    )


def make_streams(key: Words, first: int, lanes: int, purposes: Any = _PURPOSES) -> Words:
    """Return the streams uint64[3, 4, W] of the replicates first..first + W - 1, one for each purpose."""
    streams = np.empty((3, 4, lanes), dtype=np.uint64)
    for states, purpose in zip(streams, purposes, strict=True):
        start_streams(key, 0, first, purpose, states)
    return streams


@njit(forceinline=True)
def own_words(state: Any, lane: int, t: int, k: int) -> Any:
    """Return the four words (uint64) that a policy has for itself and thing k, an arm say, in round t.

    The state has the fields key uint64[2] and replicate uint64[W].
    """
    return philox(
        state.key[0], state.key[1], np.uint64(t), np.uint64(k), state.replicate[lane], _random.POSTERIOR
    )


@njit(forceinline=True)
def reward_of(tape: Tape, i: int, arm: Any, lane: int) -> float:
    """Return the reward of an arm in row i of a lane: what it would have been had the arm been played."""
    if tape.kind == BERNOULLI:
        return 1.0 if tape.reward[i, lane] < tape.mean[arm, lane] else 0.0
    if tape.kind == GAUSSIAN:
        return tape.mean[arm, lane] + tape.reward[i, lane]
    return tape.table[i, arm, lane]


@njit
def fill_tape(tape: Tape, streams: Words, n_rounds: int, sigma: float) -> None:
    """Fill the next `n_rounds` rows of rewards, noise and ties, and move the streams uint64[3, 4, W] on.

    Given rewards (TABLE) are the caller's to fill. Arrays without rows are left out.
    """
    if tape.kind != TABLE:
        fill_words(streams[0], n_rounds, tape.reward.view(np.uint64))
        if tape.kind == BERNOULLI:
            _to_uniform(tape.reward, n_rounds)
        else:
            _to_normal(tape.reward, n_rounds, sigma)
    if tape.noise.shape[0] > 0:
        fill_words(streams[1], n_rounds, tape.noise.view(np.uint64))
        _to_laplace(tape.noise, n_rounds)
    if tape.tie.shape[0] > 0:
        fill_words(streams[2], n_rounds, tape.tie)


# The next three change words to draws where they lie: with a second array for the words, the code would test
# whether the two overlap, find that they do, and leave its vector form aside.


@njit
def _to_uniform(values: Floats, n_rounds: int) -> None:
    """Turn the bits of values float64[B, W] into uniforms."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            values[i, lane] = uniform(np.uint64(float_bits(values[i, lane])))


@njit
def _to_normal(values: Floats, n_rounds: int, sigma: float) -> None:
    """Turn the bits of values float64[B, W] into sigma times standard normal draws."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            values[i, lane] = sigma * normal(np.uint64(float_bits(values[i, lane])))


@njit
def _to_laplace(values: Floats, n_rounds: int) -> None:
    """Turn the bits of values float64[B, W] into draws of ``_random.laplace``: the lowest bit is the sign."""
    for i in range(n_rounds):
        for lane in range(values.shape[1]):
            word = np.uint64(float_bits(values[i, lane]))
            values[i, lane] = bits_float(float_bits(-log(uniform(word))) ^ np.int64(word << _SIGN_SHIFT))


# The next two are written into every policy's own functions: Numba keeps compiled code only of functions that
# name what they call.


@njit(inline="always")
def play_rounds(advance: Any, state: Any, run: Run) -> None:
    """Play a run of a policy: draw a chunk of rounds, advance by it, and note the regret at the marks."""
    at = 0
    while run.marks[at] <= run.first:
        at += 1
    t = run.first
    while t < run.end:
        stop = min(run.end, t + run.tape.reward.shape[0], run.marks[at])
        fill_tape(run.tape, run.streams, stop - t, run.sigma)
        advance(state, run.tape, t, stop, run.random_ties)
        t = stop
        if run.marks[at] == t:
            _mark(state.pulls, run.gap, run.regret[at])
            at += 1


class Late(NamedTuple):
    """A policy whose rewards come D rounds late, played in place of its state."""

    state: Any  # what the policy knows
    pulls: Ints  # [K, W] all, and the sums of their rewards
    reward_sum: Floats  # [K, W]
    arm: Ints  # [D, W] of the last D rounds, as are those below
    reward: Floats  # [D, W]
    noise: Floats  # [D, W]


def make_late(state: Any, delay: int) -> Late:
    """Return a policy before its first round that hears of a round D rounds later, D at least 1."""
    shape, ring = state.pulls.shape, (delay, state.pulls.shape[1])
    return Late(state, **zeros(shape, "pulls", "reward_sum"), **zeros(ring, "arm", "reward noise"))


@njit(inline="always")
def advance_late_rounds(
    choose: Any, update: Any, late: Late, tape: Tape, first: int, end: int, random_ties: bool
) -> None:
    """Play the rounds first..end-1 of all lanes, and tell in round t the reward and noise of round t - D."""
    state, delay = late.state, late.arm.shape[0]
    for lane in range(late.pulls.shape[1]):
        for t in range(first, end):
            i, slot = t - first, t % delay
            word = tape.tie[i, lane] if random_ties else np.uint64(0)
            arm = choose(state, lane, t, word, random_ties)
            state.pending[arm, lane] += 1
            if t >= delay:
                told = late.arm[slot, lane]
                update(state, lane, t, told, late.reward[slot, lane], late.noise[slot, lane])
                state.pending[told, lane] -= 1
            late.arm[slot, lane], late.reward[slot, lane] = arm, reward_of(tape, i, arm, lane)
            late.noise[slot, lane] = tape.noise[i, lane] if tape.noise.shape[0] > 0 else 0.0
            late.pulls[arm, lane] += 1
            late.reward_sum[arm, lane] += late.reward[slot, lane]


@njit
def first_arm(pulls: Ints, pending: Ints, lane: int) -> int:
    """Return the arm of a lane that comes before any index, or -1; both int64[K, W].

    It is the lowest one never selected; with no reward told of any, the one selected least.
    """
    known, least = False, 0
    for arm in range(pulls.shape[0]):
        if pulls[arm, lane] + pending[arm, lane] == 0:
            return arm
        known |= pulls[arm, lane] > 0
        if pending[arm, lane] < pending[least, lane]:
            least = arm
    return -1 if known else least


@njit
def _mark(pulls: Ints, gap: Floats, regret: Floats) -> None:
    """Set regret float64[W] to the sum over arms of gap float64[K, W] times pulls int64[K, W]."""
    for lane in range(regret.size):
        regret[lane] = 0.0
    for k in range(gap.shape[0]):
        for lane in range(regret.size):
            regret[lane] += gap[k, lane] * pulls[k, lane]


class Draws:
    """Noise and tie words by round, or 0, at the addresses that a replicate of a simulation has.

    The tape has one lane, and in ``tape.table`` the rewards of a row's `n_arms` may be put.
    """

    def __init__(self, key: Words, replicate: int = 0, n_arms: int = 0, *, noise: bool, ties: bool) -> None:
        self._streams = make_streams(key, replicate, 1)
        self.tape = make_tape(np.empty((n_arms, 1)), _CHUNK, TABLE, noise=noise, ties=ties)
        self._filled = 0  # rounds drawn so far

    def row(self, t: int) -> int:
        """Return the row of round t, which is not before the chunk of any round before."""
        while t >= self._filled:
            fill_tape(self.tape, self._streams, _CHUNK, 0.0)
            self._filled += _CHUNK
        return t % _CHUNK

    def at(self, t: int) -> tuple[float, Any]:
        """Return (standard Laplace draw, tie word) of round t."""
        i = self.row(t)
        noise = float(self.tape.noise[i, 0]) if self.tape.noise.size else 0.0
        return noise, self.tape.tie[i, 0] if self.tape.tie.size else np.uint64(0)


def shares_of(state: Any) -> Floats | None:
    """Return the probabilities float64[K, W] with which arms were last drawn, None if they are not known."""
    chances = getattr(state, "chances", None)
    return chances.share if chances is not None and chances.share.size else None


class Stepper:
    """One replicate of a policy that was chosen: its noise, its ties and its own draws."""

    def __init__(self, chosen: Any, n_arms: int, horizon: int, key: Words, replicate: int) -> None:
        spec, epsilon, options, _ = chosen
        self._kernels, self._random_ties = spec.kernels, chosen.random_ties
        self._state = spec.make_state(n_arms, 1, horizon, epsilon, options, key=key, first=replicate)
        self._draws = Draws(key, replicate, n_arms, noise=spec.needs_noise, ties=chosen.random_ties)
        self.t = 0  # rounds played
        self._shares: list[Floats] = []

    def choose(self) -> int:
        """Return the arm of the next round; asked again before :meth:`update`, it is the same."""
        return int(self._kernels.choose(self._state, 0, self.t, self._draws.at(self.t)[1], self._random_ties))

    def update(self, arm: int, reward: float) -> None:
        """Give the arm of this round its reward."""
        self._kernels.update(self._state, 0, self.t, arm, reward, self._draws.at(self.t)[0])
        self._end()

    def advance(self, rewards: Floats) -> int:
        """Play a round as simulations do, on the rewards float64[K] of all arms; return the arm."""
        i, tape = self._draws.row(self.t), self._draws.tape
        tape.table[i, :, 0] = rewards
        one = slice(i, i + 1)
        tape = tape._replace(noise=tape.noise[one], tie=tape.tie[one], table=tape.table[one])
        before = self._state.pulls[:, 0].copy()
        self._kernels.advance(self._state, tape, self.t, self.t + 1, self._random_ties)
        self._end()
        return int((self._state.pulls[:, 0] - before).argmax())

    def _end(self) -> None:
        self.t += 1
        share = shares_of(self._state)
        if share is not None:
            self._shares.append(share[:, 0].copy())

    @property
    def propensities(self) -> Floats | None:
        """The probabilities float64[T, K] of the rounds so far, None where nobody knows them."""
        known = shares_of(self._state)
        return None if known is None else np.array(self._shares).reshape(-1, len(known))
