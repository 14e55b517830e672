"""The other side of the protocol: a user's device that reports privately, and a world to play in."""

import math
import secrets

import numpy as np

from equinoise import _checks
from equinoise._random import stream_key
from equinoise._typing import ArrayLike
from equinoise.efb.kernels import learner as _learner, setup, trial as _trial
from equinoise.efb.protocol.messages import Report, Strategy, check_strategy
from equinoise.efb.tuning import MECHANISMS, loss_radius, noise_scale
from equinoise.games import Environment, GameTree, Schedule
from equinoise.mechanisms.hashing import BITS, Hashing, pair_of, symbol_of
from equinoise.mechanisms.laplace import secure_laplace

_SENSITIVITY = 2.0  # L1: two environments change a report in two places, by at most 1 each


class User:
    """A person's device: makes a private report of how a strategy fared.

    Parameters
    ----------
    tree, mechanism, loss_range
        As the server's.
    epsilon : float
        Privacy of a report, positive: whatever the user's last action and loss, the probability of any report
        changes by a factor of at most e^epsilon. math.inf sends the values as they are.
    noise : {"secure", "float"}
        "secure" takes the operating system's randomness: for a symbol in whole numbers, exactly; for noised
        losses with OpenDP, else ImportError. "float" is for simulations: fast and reproducible, and the low
        bits of its noised losses give the values away.
    seed : int, optional
        Of "float" noise, which repeats itself for the same trial; None takes randomness from the operating
        system. "secure" takes none. TypeError or ValueError for wrong arguments.

    Notes
    -----
    A user who answers k strategies spends k epsilon. That a user took part at all, and which strategy it was
    sent, are known to the server. Buckets and signs behind a symbol are public: privacy depends neither on
    them nor on how many a server asks for.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Section 4; Theorem 1 has the privacy of noised losses.
    .. [2] Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation,
       USENIX Security, Section 4.4: local hashing, of which the symbol is a form.

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> tree, _ = load("bandit(3)")
    >>> report = User(tree, epsilon=1.0).report(Strategy(0, [0], [1], symbols=2), last_action=1, loss=0.25)
    >>> report.symbol in (0, 1), report.values
    (True, None)
    >>> User(tree, epsilon=math.inf).report(Strategy(0, [0], [1]), last_action=1, loss=0.25).values
    array([0.25])
    """

    def __init__(
        self,
        tree: GameTree,
        epsilon: float,
        *,
        mechanism: str = "hashing",
        loss_range: ArrayLike = (0.0, 1.0),
        noise: str = "secure",
        seed: int | None = None,
    ) -> None:
        self.tree: GameTree = _checks.instance("tree", tree, GameTree)
        self.epsilon = _checks.epsilon(epsilon)
        self.mechanism = _checks.choice("mechanism", mechanism, MECHANISMS)
        self.noise = _checks.choice("noise", noise, ("secure", "float"))
        if self.noise == "secure" and seed is not None:
            raise ValueError(f"seed must be None with noise='secure', which repeats nothing, got {seed!r}")
        self._radius = loss_radius(tree, loss_range)
        self._range = np.broadcast_to(np.array(loss_range, dtype=np.float64), (tree.n_actions, 2))
        self._scale = noise_scale(self.epsilon, _SENSITIVITY)
        if self.mechanism == "hashing":
            Hashing.of(min(self.epsilon, 1.0), 1)  # says what is wrong before anyone plays
        elif self.noise == "secure" and math.isfinite(self.epsilon):
            secure_laplace([0.0], _SENSITIVITY, self.epsilon)
        self._key = stream_key(seed)

    def __repr__(self) -> str:
        return f"User({self.tree!r}, epsilon={self.epsilon:g}, {self.mechanism!r}, noise={self.noise!r})"

    def report(self, strategy: Strategy, last_action: int, loss: float) -> Report:
        """Return the report of a play: a symbol, or y(a) = [a = last action] loss + Laplace(2/epsilon).

        `last_action` is the last one that the user took, and `loss` what it brought. ValueError where that is
        out of the action's range, and for a strategy that asks for the other mechanism.
        """
        check_strategy(self.tree, strategy)
        last = _checks.integer("last_action", last_action, 0, self.tree.n_actions - 1)
        value = _checks.number("loss", loss, *self._range[last].tolist())
        mine = np.flatnonzero(strategy.actions == last)
        if len(mine) == 0:
            raise ValueError(f"last_action must be one of the strategy's actions, got {last}")
        if self.tree.leaf_ptr[last] == self.tree.leaf_ptr[last + 1]:
            raise ValueError(f"last_action must have a leaf straight below it, got {last}")
        if bool(strategy.symbols) != (self.mechanism == "hashing" and math.isfinite(self.epsilon)):
            got = f"got one for {strategy.symbols} symbols"
            raise ValueError(f"strategy must ask for a report of mechanism {self.mechanism!r}, {got}")
        if strategy.symbols:
            return Report(strategy.trial, symbol=self._symbol(strategy, int(mine[0]), value))
        values = np.zeros(len(strategy.actions))
        if self.noise == "secure" and math.isfinite(self.epsilon):
            values[mine] = value
            return Report(strategy.trial, secure_laplace(values, _SENSITIVITY, self.epsilon))
        word = np.empty(len(values), dtype=np.uint64)
        source = setup.first_source(self._key)
        _learner.add_noise(values, word, len(values), self._scale, source, strategy.trial)
        values[mine] += value
        return Report(strategy.trial, values)

    def _symbol(self, strategy: Strategy, position: int, loss: float) -> int:
        """Draw the symbol of a play that ended at a position of the strategy, in exact whole numbers."""
        code = Hashing.of(self.epsilon, strategy.symbols // 2)
        public = setup.first_source(np.asarray(strategy.key))
        half = _learner.public_bits(position // code.n_buckets, public, np.uint64(strategy.trial))
        own = pair_of(position, half, code.n_buckets)
        radius = float(self._radius[strategy.actions[position]])
        if self.noise == "secure":
            word = secrets.randbits(BITS)
        else:
            word = _learner.secret_word(setup.first_source(self._key), np.uint64(strategy.trial))
        return int(symbol_of(code, word, own, loss - 0.5, radius))


def play(
    environment: Environment | Schedule, strategy: Strategy, *, seed: int | None = None
) -> tuple[int, float]:
    """Play a strategy against an environment, as :func:`equinoise.efb.simulate` does in replicate 0.

    Return (last action, loss). A schedule plays the environment of the strategy's trial. The same seed and
    trial make chance do the same, whatever is played; None takes randomness from the operating system.
    TypeError or ValueError for a strategy that is none of the environment's tree, or beyond the schedule.

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> play(load("bandit(3)")[1], Strategy(0, [0], [1]), seed=1)
    (1, 0.25)
    """
    _checks.instance("environment", environment, Environment, Schedule)
    check_strategy(environment.tree, strategy)
    if isinstance(environment, Schedule):
        ends, now = np.cumsum(environment.trials), strategy.trial
        if now >= ends[-1]:
            raise ValueError(f"strategy must be for one of the schedule's {ends[-1]} trials, got trial {now}")
        environment = environment.environments[int(np.searchsorted(ends, now, side="right"))]
    tree, chance = environment.tree, setup.make_chance(environment)
    plan = setup.make_plan(tree, np.zeros(tree.n_actions))
    visits = setup.make_visits(tree)
    n = len(strategy.actions)
    widths = np.diff(tree.infoset_ptr)[strategy.actions]
    visits.infoset[:n], visits.action[:n] = strategy.infosets, strategy.actions
    visits.child[:n] = 1 + np.cumsum(widths) - widths
    source = setup.first_source(stream_key(seed))
    last, u = _trial.walk(plan, chance, visits, source, strategy.trial)
    last_action = int(visits.action[last])
    return last_action, float(_trial.leaf_loss(chance, last_action, u))
