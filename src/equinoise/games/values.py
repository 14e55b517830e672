"""What play is worth, in the game's own payoff."""

from __future__ import annotations

from numpy.typing import ArrayLike

from equinoise import _checks
from equinoise.games.environment import Environment

__all__ = ["best_response_value", "policy_value", "uniform_value"]


def uniform_value(environment: Environment) -> float:
    """Return the expected payoff of playing all actions of an infoset with the same probability.

    Parameters
    ----------
    environment : Environment
        One that knows its payoff_range.

    Raises
    ------
    TypeError, ValueError
        It is no environment, or knows no payoffs.

    Examples
    --------
    >>> from equinoise.games import load
    >>> tree, environment = load("kuhn_poker")
    >>> round(uniform_value(environment), 12), round(best_response_value(environment), 12)
    (0.125, 0.5)
    """
    return policy_value(environment, _known(environment).tree.uniform_policy())


def policy_value(environment: Environment, policy: ArrayLike) -> float:
    """Return the expected payoff of a behaviour policy.

    Parameters
    ----------
    environment : Environment
        One that knows its payoff_range.
    policy : float64[A]
        The probability of each action in its infoset.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong, or the environment knows no payoffs.
    """
    return _known(environment).utility(environment.expected_loss(policy))


def best_response_value(environment: Environment) -> float:
    """Return the largest expected payoff of any strategy.

    Parameters
    ----------
    environment : Environment
        One that knows its payoff_range.

    Raises
    ------
    TypeError, ValueError
        It is no environment, or knows no payoffs.
    """
    return _known(environment).utility(environment.best_response()[0])


def _known(environment: object) -> Environment:
    if not isinstance(environment, Environment):
        raise TypeError(f"environment must be an Environment, got {_checks.shown(environment)}")
    return environment
