"""What play is worth, in the game's own payoff."""

from __future__ import annotations

from numpy.typing import ArrayLike

from equinoise import _checks
from equinoise.games.environment import Environment

__all__ = ["best_response_value", "policy_value", "uniform_value"]


def uniform_value(environment: Environment) -> float:
    """Return the expected payoff of playing all actions of an infoset with the same probability.

    Here and below the environment must be one that knows its payoff_range, or ValueError is raised.

    Examples
    --------
    >>> from equinoise.games import load
    >>> round(uniform_value(load("kuhn_poker")[1]), 12)
    0.125
    """
    return policy_value(environment, _known(environment).tree.uniform_policy())


def policy_value(environment: Environment, policy: ArrayLike) -> float:
    """Return the expected payoff of a behaviour policy float64[A], the probabilities of its actions.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> round(policy_value(environment, environment.best_response()[1]), 12)
    0.5
    """
    return _known(environment).utility(environment.expected_loss(policy))


def best_response_value(environment: Environment) -> float:
    """Return the largest expected payoff of any strategy.

    Examples
    --------
    >>> from equinoise.games import load
    >>> round(best_response_value(load("kuhn_poker")[1]), 12)
    0.5
    """
    return _known(environment).utility(environment.best_response()[0])


def _known(environment: object) -> Environment:
    if not isinstance(environment, Environment):
        raise TypeError(f"environment must be an Environment, got {_checks.shown(environment)}")
    return environment
