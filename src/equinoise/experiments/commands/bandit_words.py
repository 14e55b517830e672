"""What a bandit's comparison says in plain words: what is protected, what is not, and how to read it."""

from __future__ import annotations

import math

from equinoise.bandits.policies.registry import policy
from equinoise.experiments.commands.bandit_parameters import Parameters

__all__ = ["sentences"]


def sentences(parameters: Parameters) -> tuple[str, ...]:
    """Return what is protected, what is proven of the bias, what is not protected, and how to read the table.

    Examples
    --------
    >>> print(sentences(Parameters(policy="ucb"))[0])
    Nothing is protected: ucb is not private, and no bound on its bias is proven.
    """
    words = [
        *_promises(parameters),
        "Low bias is never free: uniform play has none, but pays the regret of learning nothing. A bias no "
        "larger than the one by chance alone is what these replicates would show if no arm had any.",
    ]
    if parameters.epsilon is not None:
        words.append(
            "Controls: width-only is private-ucb without its noise (not private), noise-only is private-ucb "
            "without the width that allows for its noise. Where width-only has the bias and the regret of "
            "private-ucb, it is the width that lowers the bias, not the privacy."
        )
    return tuple(words)


def _promises(parameters: Parameters) -> list[str]:
    """Return what is protected, the bound on the bias that follows from it, and what is not protected."""
    epsilon = math.inf if parameters.epsilon is None else parameters.epsilon
    if not policy(parameters.policy).private:
        return [
            f"Nothing is protected: {parameters.policy} is not private, and no bound on its bias is proven."
        ]
    if math.isinf(epsilon):
        return ["Nothing is protected: at an infinite epsilon there is no noise, and no bound is proven."]
    if not parameters.bounded:
        return [
            "Nothing is protected here: Gaussian rewards have no bounds, and the noise is made for rewards "
            "from 0 to 1. No bound on the bias is proven either."
        ]
    bound = (
        "Proven (Theorem 1 of Neel and Roth, 2018): the bias of an arm is at most (e^epsilon - 1) times "
        f"its mean, here {math.expm1(epsilon):.4f} times."
    )
    if epsilon > math.log(2.0):
        bound = (
            "Theorem 1 of Neel and Roth (2018) bounds the bias of an arm by (e^epsilon - 1) times its mean. "
            f"Above ln 2 = 0.693, as here at epsilon {epsilon:g}, that is more than the mean itself: it says "
            "nothing."
        )
    return [
        f"Protected: every single reward, from whoever sees which arms were chosen and nothing else. Another "
        f"reward in one round changes the probability of any choices by a factor of at most e^{epsilon:g} = "
        f"{math.exp(min(epsilon, 700.0)):.4g}.",
        bound,
        "Not protected: what the analyst sees. The sums and means of the rewards are the true ones, without "
        "noise; publishing them needs its own privacy protection. For someone with rewards in m rounds, "
        "epsilon is m times as large.",
        "A simulation protects nobody: its noise comes from a seed. For people there is "
        "equinoise.bandits.PrivateUCB.",
    ]
