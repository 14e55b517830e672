"""Inference on data that a bandit gathered: bounds on bias, corrected levels and p-values.

Everything that corrects for the choice of a hypothesis assumes independent records and a choice made by
looking at what an epsilon-private learner released, such as its actions; see
:mod:`equinoise.inference.maxinfo`.
"""

from equinoise.inference.bias import bias_bound
from equinoise.inference.maxinfo import adjusted_p_value, corrected_level, max_information
from equinoise.inference.tests import binomial_test, z_test
from equinoise.inference.weighted import ArmMeans, arm_means

__all__ = [
    "ArmMeans",
    "adjusted_p_value",
    "arm_means",
    "bias_bound",
    "binomial_test",
    "corrected_level",
    "max_information",
    "z_test",
]
