"""Inference on data that a bandit gathered: bounds on bias, tests and intervals that stay valid.

What corrects for the choice of a hypothesis assumes independent rewards and a choice made by looking at what
an epsilon-private learner released, such as its actions. For an arm's mean there is the log-odds shift,
:mod:`equinoise.inference.shift`; for any other p-value :mod:`equinoise.inference.maxinfo`.
"""

from equinoise.inference.answer import Report, report
from equinoise.inference.estimators import Estimates, arm_means, off_policy_value
from equinoise.inference.maxinfo import adjusted_p_value, corrected_level, max_information
from equinoise.inference.privacy import Audit, audit
from equinoise.inference.sequences import Totals, confidence_sequence, e_bh, e_value
from equinoise.inference.shift import bias_bound, shifted_interval, shifted_p_value
from equinoise.inference.tests import binomial_test, z_test

__all__ = ["Audit", "Estimates", "Report", "Totals", "adjusted_p_value", "arm_means", "audit", "bias_bound"]
__all__ += ["binomial_test", "confidence_sequence", "corrected_level", "e_bh", "e_value", "max_information"]
__all__ += ["off_policy_value", "report", "shifted_interval", "shifted_p_value", "z_test"]
