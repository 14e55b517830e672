"""Bandits for real experiments: asked for an arm, told a reward, saved for the next day.

Every class plays a policy of :func:`equinoise.bandits.simulate` with its kernels. Fed with the rewards of
replicate 0, each right after its selection, and with the same seed (and ``noise="float"``), it chooses what
the simulation chooses. Besides, rewards have their own units and come late, in any order (a batch that is
open takes them), and arms with names come and go. Threads may share a bandit: it lets in one at a time.

* :class:`UCB` and ``UCB1`` (which explores more): where no privacy is needed.
* ``Thompson``, ``EpsilonGreedy`` and ``Uniform``: these draw each arm with a probability that is told.
* :class:`PrivateUCB`: honest means; it explores almost evenly, so that they are the least biased.
* ``DPKLUCB``: private, with the least regret known.
* ``LazyDPTS``: private Thompson sampling, which spreads many selections at once over the arms.

Those of which the registry says all are made of its rows when first asked for.
"""

import numpy as np

from equinoise import _checks, inference
from equinoise._checks import checked
from equinoise._live import locked
from equinoise._typing import Any, DataFrame, Floats, Sequence
from equinoise.bandits.live.bandit import Bandit
from equinoise.bandits.live.player import Setting
from equinoise.bandits.live.state import Ticket
from equinoise.bandits.policies.registry import POLICIES, check_bounds, policy

__all__ = ["Bandit", "PrivateBandit", "PrivateUCB", "Ticket", "UCB"]


class PrivateBandit(Bandit):
    """A bandit whose choices are epsilon-private in the rewards; the parent of those of this package.

    **What is private.** Two histories are neighbours when they differ in the reward of one round. Whatever
    the rewards, and whoever picks them knowing all choices so far, every sequence of choices has
    probabilities within a factor e^epsilon of each other for two neighbours. :attr:`choices`, :attr:`pulls`,
    :attr:`private_means`, and all that is made of them, are covered. A person of k rewards has k epsilon.

    **What is not.** :attr:`means`, ``stderr`` and the saved file come from the true rewards: they are for the
    one who runs the experiment, and not to be published as private. That a reward came, when, and for which
    arm, is not hidden either. And the guarantee is about what the policy decides: who stops the experiment,
    drops an arm or plays another one after a look at :attr:`means` decides on true rewards; after a look at
    :attr:`private_means` it stays as it is.

    **What it is good for.** The means are almost unbiased [1]_, see :attr:`bias_bound`, and whatever the
    private numbers suggested can be tested on the true rewards: with
    :func:`equinoise.inference.shifted_p_value`, or any other p-value with
    :func:`equinoise.inference.adjusted_p_value` and :attr:`rounds` as n. The first loses nothing with the
    rounds, but shows no effect within the shift of epsilon: at 0.1 a mean of 0.5 becomes 0.525, at 1 0.73.

    Parameters
    ----------
    n_arms, bounds, ties
        As in :class:`UCB`; rewards have bounds, and by default ties are broken as in simulations.
    epsilon : float
        Privacy of the choices in each reward: positive and finite.
    noise : {"secure", "float"}
        "secure" noises sums with OpenDP from the operating system's randomness; nothing else of a reward
        reaches the policy. "float" is for simulations: reproducible, and **not private**, since the low bits
        of a float64 show what was added to it.
    seed : int, optional
        Of "float" noise (without one refused in a forked child), ties and other draws; "secure" takes none.
    **options
        Of the policy, as :data:`equinoise.bandits.POLICIES` has them; ``horizon`` is of :class:`PrivateUCB`.

    Raises
    ------
    TypeError, ValueError, ImportError
        When an argument is of the wrong kind or out of range; with "secure", when OpenDP is not installed.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML,
       theorem 1.

    Examples
    --------
    >>> from equinoise.bandits import DPKLUCB, PrivateBandit
    >>> bandit = DPKLUCB(2, 0.5, noise="float", seed=1)
    >>> isinstance(bandit, PrivateBandit), round(bandit.bias_bound, 3)
    (True, 0.124)
    """

    def __init__(
        self,
        n_arms: int | Sequence[str],
        epsilon: float,
        horizon: int | None = None,
        *,
        noise: str = "secure",
        seed: int | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        ties: str | None = None,
        **options: Any,
    ) -> None:
        row, (low, high) = policy(self.policy), check_bounds(bounds)
        free = row.live.without_horizon if row.live else None
        if free is not None:
            defaults = {name: option.default for name, option in row.options.items()}
            given = {name: value for name, value in options.items() if value is not None}
            options = {**(free if horizon is None else defaults), **given}
        elif horizon is not None:
            options["horizon"] = horizon  # is refused
        checked(f"class {type(self).__name__}", row.options, options)
        order = row.ties if ties is None else ties
        self._start(n_arms, Setting(self.policy, order, low, high, epsilon, horizon, noise, options, seed))

    @property
    def epsilon(self) -> float:
        """Privacy of the choices, in each reward."""
        assert self._setting.epsilon is not None
        return self._setting.epsilon

    @property
    def noise(self) -> str:
        """Where noise comes from: "secure" or "float"."""
        return str(self._setting.noise)

    @property
    @locked
    def private_means(self) -> Floats:
        """The noised means that the policy decides on, float64[K], in the units of the rewards.

        NaN for an arm of which nothing was released; what was last known of an arm that was dropped. Noise
        may carry them out of the bounds, to which :meth:`to_frame` puts them back.
        """
        known = self._tallies.last_release.copy()
        known[self._rows] = self._player.releases
        return self._setting.outside(known)  # type: ignore[no-any-return]

    @property
    def bias_bound(self) -> float:
        """Largest |expected mean - true mean| of an arm, whatever its true mean: (hi - lo) tanh(epsilon/4).

        :func:`equinoise.inference.bias_bound` in the units of the rewards. It takes independent rewards,
        those of one arm of one mean, that come late, or never, for reasons that do not depend on them.
        """
        return float(self._setting.span * inference.bias_bound(self.epsilon))

    @locked
    def to_frame(self, *, raw: bool = False) -> DataFrame:
        """Return one row for each arm: as other bandits do, with private_mean and bias_bound.

        A private_mean that noise carried out of the bounds is put back to the next one, unless `raw`.
        """
        known, setting = self.private_means, self._setting
        shown = known if _checks.flag("raw", raw) else np.clip(known, setting.low, setting.high)
        return super().to_frame().assign(private_mean=shown, bias_bound=self.bias_bound)


class _OpenBandit(Bandit):
    """A bandit without privacy; :class:`UCB` says what it takes."""

    def __init__(
        self,
        n_arms: int | Sequence[str],
        *,
        bounds: tuple[float, float] | None = (0.0, 1.0),
        ties: str = "first",
        seed: int | None = None,
        **options: Any,
    ) -> None:
        low, high = (None, None) if bounds is None else check_bounds(bounds)
        checked(f"class {type(self).__name__}", policy(self.policy).options, options)
        self._start(n_arms, Setting(self.policy, ties, low, high, options=options, seed=seed))


class UCB(_OpenBandit):
    """Plays the arm with the largest S/n + sqrt(ln(2/delta_t)/(2n)), delta_t = 1/(1 + t ln^2 t) [1]_.

    n is the number of an arm's rewards, S their sum, t the round. Raises TypeError or ValueError when an
    argument is of the wrong kind or out of range.

    Parameters
    ----------
    n_arms : int or sequence of str
        The number of arms, which are then called 0, 1, ..., or their names.
    bounds : tuple of float or None
        Smallest and largest reward; the policy sees them as 0 and 1. None takes any finite reward as it is.
    ties : {"first", "random"}
        How ties are broken: the first of the best arms, or one drawn.
    seed : int, optional
        Of the drawn ties; None takes randomness from the operating system.

    References
    ----------
    .. [1] Auer, Cesa-Bianchi, Fischer (2002), Finite-time analysis of the multiarmed bandit problem.

    Examples
    --------
    >>> bandit = UCB(["red", "green"], bounds=(0, 10))
    >>> for reward in (4, 7, 8, 6):
    ...     arm = bandit.select()
    ...     bandit.update(arm, reward)
    >>> bandit.to_frame()[["arm", "pulls", "mean"]]
         arm  pulls  mean
    0    red      1   4.0
    1  green      3   7.0

    Rewards that come late are told by ticket:

    >>> first, second = bandit.request(2)
    >>> bandit.update(second, 6.5)
    >>> bandit.open_tickets == (first,)
    True
    """

    policy = "ucb"


class PrivateUCB(PrivateBandit):
    """UCB on sums from a private counter for each arm: (S + noise)/n + sqrt(ln(2/delta_t)/(2n)) + w/n [1]_.

    A reward goes into one arm's counter, so each has the whole epsilon, and arms that are added cost nothing.

    Parameters
    ----------
    n_arms, epsilon, noise, seed, bounds, ties
        As in :class:`PrivateBandit`, which says what is private, what is not, and what is raised.
    horizon : int, optional
        Most rounds, T. Without it the counters are hybrid, and noisier.
    width : {"counter", "published"}
        The width w: the tail of the counter's noise at probability 1/t^2, or the wider one of Neel and Roth,
        which takes a horizon (and the number of arms now in play).
    counter : {"k-ary", "binary", "hybrid"}, optional
        K-ary, of the least noise, with a horizon and hybrid without, where it is not given.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML.

    Examples
    --------
    >>> bandit = PrivateUCB(["A", "B"], epsilon=0.1, horizon=300, noise="float", seed=1)
    >>> for _ in range(300):
    ...     arm = bandit.select()
    ...     bandit.update(arm, {"A": 0.2, "B": 0.8}[arm])
    >>> bandit.to_frame()[["arm", "mean", "bias_bound"]].round(3)
      arm  mean  bias_bound
    0   A   0.2       0.025
    1   B   0.8       0.025
    """

    policy = "private-ucb"


def __getattr__(name: str) -> Any:
    """Make the live class of a policy that has none above: it is all in a row of the registry."""
    row = next((one for one in POLICIES.values() if one.live is not None and one.live.name == name), None)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    parent, kin = (PrivateBandit, "PrivateBandit") if row.private else (_OpenBandit, "UCB")
    ref = f"References\n----------\n.. [1] {row.source}.\n\n" if "(" in row.source else ""
    options = "".join(
        f"\n{name} : {option.kind}\n    {option.summary}; by default {option.default!r}."
        for name, option in row.options.items()
    )
    given = ', epsilon=1.0, noise="float"' if row.private else ""
    text = (
        f"The policy {row.name}: {row.summary}{' [1]_' * bool(ref)}.\n\n{row.proof or 'It is not private.'}"
        f"\n\nParameters\n----------\nOthers\n    As in :class:`{kin}`.{options}\n\n{ref}Examples\n--------\n"
        f">>> bandit = {name}(2{given}, seed=1)\n>>> for _ in range(100):\n...     arm = bandit.select()\n"
        "...     bandit.update(arm, [0.2, 0.7][arm])\n>>> int(bandit.pulls.sum())\n100\n"
    )
    made = type(name, (parent,), {"policy": row.name, "__doc__": text, "__module__": __name__})
    return globals().setdefault(name, made)
