"""What many draws from one release tell about a record: (epsilon, delta) of their composition.

One draw is epsilon-private for a record when it is about as likely with the record as without. Of m draws the
privacy losses add up. Here their sum is bounded for the worst record, by the distribution of the loss
(Koskela et al., 2020; package dp-accounting) or, where that package is missing, by Rényi divergences.
"""

import heapq
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from equinoise import _checks, replicates
from equinoise._typing import Any, Callable, Executor, Floats, Ints, NamedTuple, Sequence
from equinoise.nvo.noise import Noise, at_once
from equinoise.nvo.profile import Evaluation, Profile, released
from equinoise.nvo.registry import SEARCHES

DELTA, COUNTABLE = 1e-5, 2**53  # draws that floats tell apart
_ORDERS = 1.0 + 2.0 ** np.arange(-3.0, 10.25, 0.5)  # of the Rényi divergences
_FINEST = 0.05  # steps of the grid of losses, times the root of the number of draws
_STEPS = 50  # and at least so many from 0 to the largest loss of a draw
_LARGEST_GRID = 2**20
_MANY, _COARSE = 10_000, 2**12  # of more draws than so many the sum has, up to its deviation, so many steps
_SMALLEST_DELTA = 1e-9  # below, rounding in the Fourier transforms could show: Rényi divergences alone
_MOST_DRAWS = 2 * 10**7  # beyond, sums of losses take too many places: Rényi divergences alone
_MOST_MASSES = 2**21  # looked at for the median
_FUTILE = 1000.0  # epsilon beyond which no promise is worth a loss distribution, which takes long there
_NOTHING = 1e-12  # less than what rounding adds
_CLOSE = 1.01  # a ratio of what is too large a row's epsilon to what is not at which its search ends
_DEEP = 600.0  # epsilon beyond which tails are too small for a float
_OUTWARDS = 1.0 + 1e-9  # for rounding of tails
_SHOWN = 30.0  # epsilon beyond which a row tells nearly for sure
_NEARLY_ALL = 1.0 - 2.0**-20  # of S: what is left has lost digits
_MOST_EXACT = 50  # types whose loss distribution is worked out; the Rényi bound of the next one then stands


@dataclass(frozen=True)
class Composition:
    """Privacy of all draws together, for the record that they tell most about; see :func:`compose`.

    `removal` and `addition` are epsilon at delta, for the removal of a record and for the addition of one
    more like one that is there. Half of the records have at most `median` for their removal, by Rényi
    divergence; None where there are too many types of records. The method is "privacy loss distribution",
    which is nearly exact, "Rényi divergence", an upper bound too, or "any data".
    """

    draws: int
    delta: float
    removal: float
    addition: float
    median: float | None
    method: str

    @property
    def epsilon(self) -> float:
        """The larger of the two."""
        return max(self.removal, self.addition)


def compose(
    noise: Noise,
    counts: Ints,
    evaluation: Evaluation,
    draws: int,
    delta: float = DELTA,
    *,
    wanted: float = math.nan,
) -> Composition:
    """Bound epsilon at delta of several independent draws of a profile, counts int64[K, V].

    Bounds become better at a price: from the largest loss of a draw alone, by Rényi divergences, by the loss
    distribution. The type with the largest bound takes the next step, until it has none: no other is worse.
    For a record of type (k, v) a draw comes from P = S/n with it and from Q = (S - M)/(n - 1) without, and
    the loss is ln(P/Q). Both directions count, Q against P too. With `wanted` bounds get no better than tells
    on which side of it the best one is.

    References
    ----------
    .. [1] Koskela, Jälkö, Honkela (2020), *Computing Tight Differential Privacy Guarantees Using
       FFT*, AISTATS.
    .. [2] Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), *Connect the Dots: Tighter Discrete
       Approximations of Privacy Loss Distributions*, PoPETs, for the grid.
    .. [3] Bun, Steinke (2016), *Concentrated Differential Privacy: Simplifications, Extensions, and Lower
       Bounds*, TCC, propositions 1.3 and 1.4; Canonne, Kamath, Steinke (2020), *The Discrete Gaussian for
       Differential Privacy*, NeurIPS, for the conversion of Rényi divergences.
    """
    m = _checks.integer("draws", draws, 1, COUNTABLE)
    share = _checks.number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    n, kinds = int(counts.sum()), np.argwhere(counts)
    largest = {-1: evaluation.epsilon[tuple(kinds.T)], 1: evaluation.epsilon_addition[tuple(kinds.T)]}

    def losses(i: int, sign: int) -> tuple[Floats, Floats]:
        k, v = kinds[i]
        mass, others = noise.rows(np.array([k]))[0, v], None
        if sign < 0 and counts[k, v] == 1 and (mass > _NEARLY_ALL * n * evaluation.pmf).any():
            rest = counts.copy()
            rest[k, v] = 0
            others = released(noise, rest)
        return _losses(mass, evaluation.pmf, n, sign, float(largest[sign][i]), others)

    removal, addition = (
        _least(largest[s].tolist(), partial(losses, sign=s), m, share, wanted) for s in (-1, 1)
    )
    exact = _accountant(m, share) is not None and max(removal, addition) <= _FUTILE
    median = None
    if len(kinds) * len(evaluation.pmf) <= _MOST_MASSES:
        simple = (_by_largest(one, m, share) for one in largest[-1].tolist())
        bounds = [min(_by_renyi(*losses(i, -1), m, share), bound) for i, bound in enumerate(simple)]
        order = np.argsort(bounds)
        median = bounds[order[int(np.searchsorted(2 * np.cumsum(counts[counts > 0][order]), n))]]
    method = "privacy loss distribution" if exact else "Rényi divergence"
    return Composition(m, share, removal, addition, median, method)


def compose_pure(epsilon: float, draws: int, delta: float = DELTA) -> float:
    """Bound epsilon of draws that are each epsilon-private for any data: by the worst pair that there is.

    That is of randomised response (Kairouz, Oh, Viswanath, 2015, *The Composition Theorem for Differential
    Privacy*, ICML, theorem 3.3): with X of m draws true, X ~ Bin(m, p) or Bin(m, 1 - p), the loss is
    (2 X - m) epsilon, and delta at any epsilon' is P(X >= k) - e^epsilon' Q(X >= k), k the first X beyond it.
    """
    from scipy.stats import binom

    largest = _by_largest(epsilon, draws, delta)
    if epsilon > _SHOWN:
        return largest
    p, q = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(epsilon))
    if largest > _DEEP:
        return min(largest, _by_renyi(np.array([epsilon, -epsilon]), np.array([p, q]), draws, delta))
    low, high = draws // 2, draws  # the least k whose loss has a delta small enough
    while high > low + 1:
        middle = (low + high) // 2
        above, below = np.asarray(binom.sf(middle - 1, draws, (p, q))).tolist()
        loss = (2 * middle - draws) * epsilon
        enough = loss >= largest or above - math.exp(loss) * below <= delta
        low, high = (low, middle) if enough else (middle, high)
    above, below = np.asarray(binom.sf(high - 1, draws, (p, q))).tolist()
    return max(0.0, min(largest, math.log((above - delta) / below) * _OUTWARDS)) if above > delta else 0.0


class Resolved(NamedTuple):
    """Epsilon of one row and of all rows, and without how many records the game was solved again."""

    epsilon: float
    composed: float
    records: int


def resolve(
    profile: Profile,
    records: int | None = 25,
    rows: int | None = None,
    *,
    delta: float = DELTA,
    solve: Callable[[Any], Profile] | None = None,
    executor: Executor | None = None,
    progress: bool | str = False,
) -> Resolved:
    """Return the largest loss where the game is solved again without a record: its scales are then others.

    Records of the bins with the fewest come first; with None all are tried. Bins, options and the seed stay
    as they are, or `solve` makes a profile of a histogram. The loss is ln(P/Q), P what is released and Q
    what would be; infinite where only one of them knows an outcome. On an executor, by default threads of
    this process, several are solved at a time, as many as 2 GiB have room for; `solve` is called in this
    thread unless an executor is given. The result is the same.
    """
    histogram, m = profile.histogram, _checks.integer("rows", rows or profile.game.n, 1, COUNTABLE)
    tried = histogram.n if records is None else min(_checks.integer("records", records, 1), histogram.n)
    if solve is None and profile.found_by is None:
        raise ValueError(f"profile must be a search's, to be solved again, got {profile.method!r}")
    order = np.argsort(histogram.counts[histogram.bin_of], kind="stable")[:tried]
    bins, p = np.unique(histogram.bin_of[order]), profile.pmf  # records of one bin are alike
    again, told = solve or partial(_again, profile), 0.0 if solve is None else 1.0  # ours tells of its work
    task = partial(_without, again, told, histogram, p, bins)
    try:
        if histogram.n == 2:
            raise _Revealed
        if solve is None or executor is not None:
            most = at_once(profile.game.noise, np.flatnonzero(histogram.counts))
            block = 1 if replicates.workers(executor) <= most else -(-len(bins) // most)
            (found,) = replicates.run(task, len(bins), block=block, executor=executor, progress=progress)
        else:
            with replicates.showing(progress, work=len(bins)):
                (found,) = task(0, len(bins))
    except _Revealed:
        return Resolved(math.inf, math.inf, tried)
    there = p > 0.0
    losses = [np.log(p[there]) - np.log(q[there]) for q in found]
    one = [float(np.abs(loss).max()) for loss in losses]
    return Resolved(max(one), _least(one, lambda i: (losses[i], p[there]), m, delta), tried)


class _Revealed(Exception):
    """A record without which other outcomes are possible: no other one needs to be tried."""


def _again(profile: Profile, less: Any) -> Profile:
    """Solve the game of a profile again, of fewer records."""
    game, (name, options) = profile.game, profile.found_by or ("", {})
    scales = {} if game.asked is None else {"scales": game.asked}
    return getattr(replace(game, histogram=less, **scales), name)(**options)  # type: ignore[no-any-return]


def _without(
    solve: Callable[[Any], Profile], told: float, of: Any, p: Floats, bins: Ints, start: int, stop: int
) -> tuple[Floats]:
    """Return what is released without a record of each bin from start to stop, float64[B, K]."""
    found = np.empty((stop - start, len(p)))
    for i, k in enumerate(bins[start:stop].tolist()):
        found[i] = _solved(solve(of.without(k)))
        if ((p > 0.0) != (found[i] > 0.0)).any():
            raise _Revealed
        replicates.tick(told)
    return (found,)


def _solved(made: Profile) -> Floats:
    """Return what a profile releases; a search that Ctrl-C ended has its best so far, and no solution."""
    gave_up = SEARCHES["best-response"].label  # after its rounds, which is not an interruption
    if isinstance(made, Profile) and not made.converged and made.method != gave_up:
        raise KeyboardInterrupt
    return made.pmf


def _accountant(draws: int, delta: float) -> Any:
    """Return dp-accounting's class of privacy loss distributions, or None where it is no help or missing."""
    if delta < _SMALLEST_DELTA or draws > _MOST_DRAWS:
        return None
    try:
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    except ImportError:
        return None
    return PrivacyLossDistribution


def _least(
    largest: Sequence[float],
    losses: Callable[[int], tuple[Floats, Floats]],
    draws: int,
    delta: float,
    wanted: float = math.nan,
) -> float:
    """Return the largest bound over kinds of records, from ever better ones, or on its side of `wanted`."""
    accountant = _accountant(draws, delta)
    steps: list[Callable[[int], float]] = [
        lambda i: _by_largest(largest[i], draws, delta),
        lambda i: _by_renyi(*losses(i), draws, delta),
        lambda i: _by_distribution(*losses(i), draws, delta, accountant),
    ][: 2 if accountant is None else 3]
    queue = [(-steps[0](i), 1, i) for i in range(len(largest))]
    heapq.heapify(queue)
    left = _MOST_EXACT
    while True:
        bound, step, i = queue[0]
        left -= step == 2
        done = step == len(steps) or left < 0 or bound == 0.0 or math.isinf(bound) or -bound <= wanted
        if done or (step > 1 and -bound > _FUTILE):
            return -bound
        better = steps[step](i)
        if step == 2 and better > wanted:  # which tells, but bounds one kind: what stands bounds them all
            return -bound
        heapq.heapreplace(queue, (max(bound, -better), step + 1, i))


def _losses(
    mass: Floats, pmf: Floats, n: int, sign: int, largest: float, others: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the loss ln(P/Q) of every outcome that there is, and its probability under P, float64[X'].

    With r = M/S, sign -1 is for removal, ln(P/Q) = ln(1 - 1/n) - ln(1 - r), and 1 for addition,
    ln(1 + 1/n) - ln(1 + r). Where 1 - r has lost its digits, it is `others`/S, and no loss beyond `largest`.
    """
    there = pmf > 0.0
    share = np.minimum(mass[there] / (n * pmf[there]), 1.0)
    with np.errstate(divide="ignore"):
        loss = math.log1p(sign / n) - np.log1p(sign * share)
        if others is not None:
            exact = math.log1p(sign / n) + np.log(n * pmf[there]) - np.log(others[there])
            loss = np.where(share > _NEARLY_ALL, exact, loss)
    return np.clip(loss, -largest, largest), pmf[there]


def _by_largest(largest: float, draws: int, delta: float) -> float:
    """Bound composed epsilon from the largest loss L: m L, or by concentration (Bun and Steinke, 2016)."""
    rho = draws * largest * largest / 2.0
    return min(draws * largest, rho + 2.0 * math.sqrt(rho * -math.log(delta)))


def _by_renyi(loss: Floats, p: Floats, draws: int, delta: float) -> float:
    """Bound epsilon of all by Rényi divergences D_a: m D_a + ln(1 - 1/a) - ln(a delta)/(a - 1), the least."""
    from scipy.special import logsumexp

    a = _ORDERS[:, None]
    with np.errstate(over="ignore"):  # of which older SciPy warns: what is infinite bounds nothing
        forward = logsumexp((a - 1.0) * loss, b=p, axis=1)
        backward = logsumexp(-a * loss, b=p, axis=1)
    convert = np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS * delta) / (_ORDERS - 1.0)
    bounds = [draws * each / (_ORDERS - 1.0) + convert for each in (forward, backward)]
    return max(0.0, *(float(bound.min()) for bound in bounds))


def _by_distribution(loss: Floats, p: Floats, draws: int, delta: float, accountant: Any) -> float:
    """Bound composed epsilon by the distribution of the sum of losses, on a grid."""
    largest = float(np.abs(loss).max())
    if largest * draws < _NOTHING:
        return largest * draws
    spread = 2.0 * largest * min(draws, 1.0 + 12.0 * math.sqrt(draws))
    coarse = largest * math.sqrt(draws) / _COARSE if draws > _MANY else 0.0
    step = max(min(_FINEST / math.sqrt(draws), largest / _STEPS), spread / _LARGEST_GRID, coarse)
    forward, backward = _on_grid(loss, p, step), _on_grid(-loss, p * np.exp(-loss), step)
    one = accountant.create_from_rounded_probability(forward, 0.0, step, True, backward, 0.0, symmetric=False)
    with np.errstate(over="ignore"):  # in hundreds: epsilon is then said to be infinite
        return float(one.self_compose(draws).get_epsilon_for_delta(delta))


def _on_grid(loss: Floats, p: Floats, step: float) -> dict[int, float]:
    """Split outcomes over the two multiples of `step` around their losses, {multiple: probability}.

    Of an outcome with probabilities p and p e^-loss, both are kept: the pair of distributions on the grid
    could be turned into the true one by merging what was split, so it tells at least as much. What it tells
    more is of the order of step^2 a draw (Doroshenko et al., 2022).
    """
    below = np.floor(loss / step)
    upper = p * np.expm1(below * step - loss) / math.expm1(-step)
    upper = np.clip(upper, 0.0, p)
    places = np.concatenate([below, below + 1.0]).astype(np.int64)
    first = int(places.min())
    masses = np.bincount(places - first, weights=np.concatenate([p - upper, upper]))
    return {first + int(i): float(masses[i]) for i in np.flatnonzero(masses)}


class Budget(NamedTuple):
    """The certified profile with the largest epsilon of a row that is within a total, and its composition.

    Where there is none, the last one tried, and None. `tried` holds each epsilon of a row that was tried,
    whether its profile was certified, and what tells whether its composed epsilon is within the total.
    """

    profile: Profile
    composition: Composition | None
    tried: tuple[tuple[float, bool, float], ...]


def epsilon_for_total(
    solve: Callable[[float], Profile], total: float, rows: int, *, delta: float = DELTA
) -> Budget:
    """Find the epsilon of a row, of which `solve` makes a profile, for which all rows stay within a total.

    By bisection of ln(epsilon) from total/m, which always stays within the total, to the total. What counts
    is the composition of the profile that was found, so the result is within the total even where the
    composed epsilon does not grow steadily. A profile that is not certified means too small an epsilon.
    """
    wanted = _checks.epsilon(total, "total", allow_infinite=False)
    m = _checks.integer("rows", rows, 1, COUNTABLE)
    low, high, attempt = wanted / m, wanted, between(wanted / m, wanted)
    best, tried = None, []
    while True:
        profile = solve(attempt)
        found = compose(profile.game.noise, profile.counts, profile.evaluation, m, delta, wanted=wanted)
        tried.append((attempt, profile.certified, found.epsilon))
        if profile.certified and found.epsilon > wanted:
            high = attempt
        else:
            low, best = attempt, profile if profile.certified else best
        if high <= low * _CLOSE:
            return Budget(best or profile, best.composed(m, delta) if best else None, tuple(tried))
        attempt = between(low, high)


def between(low: float, high: float) -> float:
    """Return the geometric mean of positive numbers, also where no float holds their product."""
    unit = math.ldexp(1.0, math.frexp(low)[1] - 1)
    return math.sqrt(low / unit * (high / unit)) * unit
