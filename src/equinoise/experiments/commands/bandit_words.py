"""What a bandit's comparison says in plain words: what is protected, what is not, and how to read it."""

from __future__ import annotations

import math

from equinoise.bandits.policies.registry import policy
from equinoise.experiments.commands.bandit_parameters import Parameters

__all__ = ["sentences"]

_LN2 = math.log(2.0)


def sentences(parameters: Parameters) -> list[str]:
    """Return what is protected, what is proven of the bias, what is not protected, and how to read the table.

    Examples
    --------
    >>> print(sentences(Parameters(policy="ucb"))[0])
    Nothing is protected: ucb is not private, and no bound on its bias is proven.
    """
    return [*_promises(parameters), *_limits(parameters), *_reading(parameters)]


def _promises(parameters: Parameters) -> list[str]:
    """Return what is protected, and the bound on the bias that follows from it."""
    epsilon = parameters.epsilon
    if not policy(parameters.policy).private:
        return [
            f"Nothing is protected: {parameters.policy} is not private, and no bound on its bias is proven."
        ]
    if epsilon is None or math.isinf(epsilon):
        return ["Nothing is protected: at an infinite epsilon there is no noise, and no bound is proven."]
    if not parameters.bounded:
        return [
            "Nothing is protected here: Gaussian rewards have no bounds, and the noise is made for rewards "
            "from 0 to 1. No bound on the bias is proven either."
        ]
    factor = math.exp(min(epsilon, 700.0))
    protected = (
        f"Protected: every single reward, from whoever sees which arms were chosen and nothing else. Another "
        f"reward in one round changes the probability of any choices by a factor of at most e^{epsilon:g} = "
        f"{factor:.4g}."
    )
    if epsilon > _LN2:
        bound = (
            "Theorem 1 of Neel and Roth (2018) bounds the bias of an arm by (e^epsilon - 1) times its mean. "
            f"Above ln 2 = 0.693, as here at epsilon {epsilon:g}, that is more than the mean itself: it says "
            "nothing."
        )
    else:
        bound = (
            "Proven (Theorem 1 of Neel and Roth, 2018): the bias of an arm is at most (e^epsilon - 1) times "
            f"its mean, here {math.expm1(epsilon):.4f} times."
        )
    return [protected, bound]


def _limits(parameters: Parameters) -> list[str]:
    """Return what is not protected."""
    if not parameters.bounded or math.isinf(parameters.epsilon or math.inf):
        return []
    return [
        "Not protected: what the analyst sees. The sums and means of the rewards are the true ones, without "
        "noise; to publish them is another release. Somebody with rewards in m rounds has m times epsilon.",
        "A simulation protects nobody: its noise comes from a seed. For people there is "
        "equinoise.bandits.PrivateUCB.",
    ]


def _reading(parameters: Parameters) -> list[str]:
    """Return how to read the table."""
    words = [
        "Bias is never free: uniform play has none, and the regret of learning nothing. A bias that is no "
        "larger than luck is what the replicates would show if no arm had any."
    ]
    if parameters.epsilon is not None:
        words.append(
            "Controls: width-only is private-ucb without its noise (not private), noise-only is private-ucb "
            "without the width that allows for its noise. Where width-only has the bias and the regret of "
            "private-ucb, it is the width that lowers the bias, not the privacy."
        )
    return words
