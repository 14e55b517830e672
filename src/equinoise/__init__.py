"""Learning, releasing and experimenting under differential privacy, on flat arrays and one Numba core.

>>> from equinoise import efb, games
>>> tree, environment = games.load("kuhn_poker")
>>> run = efb.simulate(tree, environment, horizon=1000, epsilon=4.0, n_replicates=2)
>>> run.regret.shape == (2, len(run.trials))
True

* :mod:`~equinoise.games`: a game file or an OpenSpiel name becomes a tree of flat arrays for one learner.
* :mod:`~equinoise.efb`: locally private learning in such a tree, simulated or one user at a time.
* :mod:`~equinoise.nvo`: every record of a data set picks its own noise, for a release of one column.
* :mod:`~equinoise.bandits`: bandits that gather data privately, so that what they gathered can be trusted.
* :mod:`~equinoise.inference`: bounds on bias, and p-values corrected for how the data came about.
* :mod:`~equinoise.mechanisms`: noise, for simulation and for people.
* :mod:`~equinoise.replicates`: one runner for everything that is repeated, on threads or any executor.
* :mod:`~equinoise.experiments`: what the command ``equinoise`` computes, one file per paper.

Submodules are loaded when first used; importing the package alone is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach
from equinoise._version import __version__

if TYPE_CHECKING:
    from equinoise import bandits, efb, experiments, games, inference, mechanisms, nvo, replicates

__all__ = ["__version__", "bandits", "efb", "experiments", "games", "inference", "mechanisms", "nvo"]
__all__ += ["replicates"]
__getattr__, __dir__ = attach(__name__, {"": __all__[1:]})
