"""The other side of the protocol: a user's device that reports privately, and a world to play in."""

import math

import numpy as np

from equinoise import _checks
from equinoise._random import stream_key
from equinoise.efb.kernels import setup, trial as _kernels
from equinoise.efb.protocol.messages import Report, Strategy, check_strategy
from equinoise.efb.tuning import noise_scale
from equinoise.games import Environment, GameTree, Schedule
from equinoise.mechanisms.laplace import secure_laplace

_SENSITIVITY = 2.0  # L1: two environments change a report in two places, by at most 1 each


class User:
    """A person's device: makes a private report of how a strategy fared.

    Parameters
    ----------
    tree : GameTree
    epsilon : float
        Privacy of a report, positive: whatever the user's last action and loss, the report's density changes
        by a factor of at most e^epsilon. math.inf sends the values as they are.
    noise : {"secure", "float"}
        "secure" noises with OpenDP from the operating system's randomness. "float" is for simulations: fast,
        reproducible, and its low bits give the values away.
    seed : int, optional
        Of "float" noise, which repeats itself for the same trial; None takes randomness from the operating
        system. "secure" takes none, and needs OpenDP.

    Notes
    -----
    One report is epsilon-private for the user who sends it. A user who answers k strategies spends k epsilon.
    That a user took part at all, and which strategy it was sent, are known to the server.

    References
    ----------
    .. [1] Pasteris, Savani and Turocy (2026), Differential Privacy in the Extensive-Form Bandit Problem,
       arXiv 2605.05266, Section 4; Theorem 1 has the privacy.

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> tree, _ = load("bandit(3)")
    >>> User(tree, epsilon=math.inf).report(Strategy(0, [0], [1]), last_action=1, loss=0.25).values
    array([0.25])
    """

    def __init__(
        self, tree: GameTree, epsilon: float, *, noise: str = "secure", seed: int | None = None
    ) -> None:
        if not isinstance(tree, GameTree):
            raise TypeError(f"tree must be a GameTree, got {_checks.shown(tree)}")
        self.tree = tree
        self.epsilon = _checks.epsilon(epsilon)
        self.noise = _checks.choice("noise", noise, ("secure", "float"))
        if self.noise == "secure" and seed is not None:
            raise ValueError(f"seed must be None with noise='secure', which repeats nothing, got {seed!r}")
        self._scale = noise_scale(self.epsilon, _SENSITIVITY)
        if self.noise == "secure" and math.isfinite(self.epsilon):
            secure_laplace([0.0], _SENSITIVITY, self.epsilon)  # says what is missing before anyone plays
        self._key = stream_key(seed)

    def __repr__(self) -> str:
        return f"User({self.tree!r}, epsilon={self.epsilon:g}, noise={self.noise!r})"

    def report(self, strategy: Strategy, last_action: int, loss: float) -> Report:
        """Return y(a) = [a = last action] loss + Laplace(2/epsilon) for every action a of the strategy.

        `last_action` is the last one that the user took, and `loss`, in [0, 1], what it brought.
        """
        check_strategy(self.tree, strategy)
        last = _checks.integer("last_action", last_action, 0, self.tree.n_actions - 1)
        value = _checks.number("loss", loss, 0.0, 1.0)
        mine = np.flatnonzero(strategy.actions == last)
        if len(mine) == 0:
            raise ValueError(f"last_action must be one of the strategy's actions, got {last}")
        values = np.zeros(len(strategy.actions))
        if self.noise == "secure" and math.isfinite(self.epsilon):
            values[mine] = value
            return Report(strategy.trial, secure_laplace(values, _SENSITIVITY, self.epsilon))
        word = np.empty(len(values), dtype=np.uint64)
        source = setup.first_source(self._key)
        _kernels.add_noise(values, word, len(values), self._scale, source, strategy.trial)
        values[mine] += value
        return Report(strategy.trial, values)


def play(
    environment: Environment | Schedule, strategy: Strategy, *, seed: int | None = None
) -> tuple[int, float]:
    """Play a strategy against an environment, as :func:`equinoise.efb.simulate` does in replicate 0.

    Parameters
    ----------
    environment : Environment or Schedule
        A schedule plays the environment of the strategy's trial.
    strategy : Strategy
    seed : int, optional
        The same seed and trial make chance do the same, whatever is played. None takes randomness from the
        operating system.

    Returns
    -------
    last_action, loss : int, float

    Examples
    --------
    >>> from equinoise.efb import Strategy
    >>> from equinoise.games import load
    >>> play(load("bandit(3)")[1], Strategy(0, [0], [1]), seed=1)
    (1, 0.25)
    """
    if not isinstance(environment, Environment | Schedule):
        raise TypeError(f"environment must be an Environment or a Schedule, got {_checks.shown(environment)}")
    check_strategy(environment.tree, strategy)
    if isinstance(environment, Schedule):
        environment = _at(environment, strategy.trial)
    tree, chance = environment.tree, setup.make_chance(environment)
    plan = setup.make_plan(tree, np.zeros(tree.n_actions))
    visits = setup.make_visits(tree)
    n = len(strategy.actions)
    widths = np.diff(tree.infoset_ptr)[strategy.actions]
    visits.infoset[:n], visits.action[:n] = strategy.infosets, strategy.actions
    visits.child[:n] = 1 + np.cumsum(widths) - widths
    source = setup.first_source(stream_key(seed))
    last, u = _kernels.walk(plan, chance, visits, source, strategy.trial)
    last_action = int(visits.action[last])
    return last_action, float(_kernels.leaf_loss(chance, last_action, u))


def _at(schedule: Schedule, trial: int) -> Environment:
    """Return the environment of a trial."""
    ends = np.cumsum(schedule.trials)
    if trial >= ends[-1]:
        raise ValueError(f"strategy must be for one of the schedule's {ends[-1]} trials, got trial {trial}")
    return schedule.environments[int(np.searchsorted(ends, trial, side="right"))]
