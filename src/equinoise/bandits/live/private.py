"""What live private bandits share: their guarantee, and what may be looked at under it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equinoise._options import checked
from equinoise._random import stream_key
from equinoise._typing import DataFrame, Floats
from equinoise.bandits.entry import check_bounds
from equinoise.bandits.live.bandit import Bandit
from equinoise.bandits.live.setting import Setting
from equinoise.bandits.policies.registry import policy

__all__ = ["PrivateBandit"]


class PrivateBandit(Bandit):
    """A bandit whose choices are epsilon-private in the rewards; the parent of those of this package.

    **What is private.** Two histories are neighbours when they differ in the reward of one round. Whatever
    the rewards, and whoever picks them knowing all choices so far, every sequence of choices has
    probabilities within a factor e^epsilon of each other for two neighbours. :attr:`choices`, :attr:`pulls`,
    :attr:`private_means`, and all that is made of them, are covered. A person who gives k rewards has k
    epsilon.

    **What is not.** :attr:`means`, ``stderr`` and the saved file come from the true rewards: they are for the
    one who runs the experiment, and not to be published as private. That a reward came, when, and for which
    arm, is not hidden either. And the guarantee is about what the policy decides: who stops the experiment,
    drops an arm or plays another one after a look at :attr:`means` decides on true rewards; after a look at
    :attr:`private_means` it stays as it is.

    **What it is good for.** The means are almost unbiased [1]_, see :attr:`bias_bound`, and p-values of tests
    that the private numbers suggested can be corrected (:func:`equinoise.inference.adjusted_p_value`, with
    :attr:`rounds` as n). Such a correction leaves nothing once epsilon sqrt(rounds) passes about 3: 5,000
    rounds want an epsilon of 0.04 for it, though one of 1 for the quick choice of an arm.

    Parameters
    ----------
    n_arms : int or sequence of str
        The number of arms, which are then called 0, 1, ..., or their names.
    epsilon : float
        Privacy of the choices in each reward: positive and finite.
    noise : {"secure", "float"}
        "secure" noises sums with OpenDP from the operating system's randomness; nothing else of a reward
        reaches the policy. "float" is for simulations: reproducible, and **not private**, since the low bits
        of a float64 show what was added to it.
    seed : int, optional
        Of "float" noise, drawn ties and whatever else a policy draws; "secure" takes none.
    bounds : tuple of float
        Smallest and largest reward; others are refused.
    ties : {"first", "random"}, optional
        How ties are broken: the first of the best arms, or one drawn. By default as in simulations.
    **options
        Of the policy, as :data:`equinoise.bandits.POLICIES` has them.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or out of range.
    ImportError
        With "secure", when OpenDP is not installed.

    References
    ----------
    .. [1] Neel, Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, ICML,
       theorem 1.

    Examples
    --------
    >>> from equinoise.bandits import DPKLUCB, PrivateBandit
    >>> bandit = DPKLUCB(2, 0.5, noise="float", seed=1)
    >>> isinstance(bandit, PrivateBandit), round(bandit.bias_bound, 3)
    (True, 0.245)
    """

    def __init__(
        self,
        n_arms: int | Sequence[str],
        epsilon: float,
        *,
        noise: str = "secure",
        seed: int | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        ties: str | None = None,
        **options: Any,
    ) -> None:
        row, (low, high) = policy(self.policy), check_bounds(bounds)
        free = row.live.without_horizon if row.live else None
        horizon = None if free is None else options.pop("horizon", None)
        if free is not None:
            defaults = {name: option.default for name, option in row.options.items()}
            given = {name: value for name, value in options.items() if value is not None}
            options = {**(free if horizon is None else defaults), **given}
        checked(f"class {type(self).__name__}", row.options, options)
        order = row.ties if ties is None else ties
        setting = Setting(self.policy, order, low, high, epsilon, horizon, noise, options)
        if setting.secure and seed is not None:
            raise ValueError(f"seed must be None with noise='secure', which repeats nothing, got {seed!r}")
        self._start(n_arms, setting, stream_key(seed))

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
    def private_means(self) -> Floats:
        """The noised means that the policy decides on, float64[K], in the units of the rewards.

        NaN for an arm of which nothing was released; what was last known of an arm that was dropped. Noise
        may carry them out of the bounds.
        """
        known = self._tallies.last_release.copy()
        known[self._rows] = self._player.releases
        return self._setting.outside(known)  # type: ignore[no-any-return]

    @property
    def bias_bound(self) -> float:
        """Largest |expected mean - true mean| of an arm, whatever its true mean: (hi - lo) tanh(epsilon/2).

        An arm's mean is a sum of weighted rewards, the weights private and one in all, so that
        E mean <= e^epsilon mu for rewards in [0, 1] of mean mu (Theorem 1 of Neel and Roth, 2018), and
        E mean >= e^-epsilon mu. The same holds for 1 - reward. So the mean is too large by at most
        min((e^epsilon - 1) mu, (1 - e^-epsilon) (1 - mu)), and tanh(epsilon/2) is the largest that this can
        be; too small likewise. It takes rewards of an arm that are drawn from one distribution, and come
        late, or never, for reasons that do not depend on them.
        """
        return self._setting.span * math.tanh(self.epsilon / 2.0)

    def to_frame(self) -> DataFrame:
        """Return one row for each arm: as other bandits do, with private_mean and bias_bound."""
        return super().to_frame().assign(private_mean=self.private_means, bias_bound=self.bias_bound)
