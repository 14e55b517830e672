"""DP-EFB: locally private online learning in an extensive-form game.

``simulate`` runs a learner against an environment many times over, ``self_play`` one for each player of a
game against each other; ``compare`` puts runs side by side. ``tune`` gives learning rate, exploration and
proven regret; ``Server``, ``User`` and ``play`` run the same protocol one trial at a time.
"""

from equinoise.efb.baselines import LEARNERS
from equinoise.efb.protocol.server import Server
from equinoise.efb.protocol.user import Report, Strategy, User, play
from equinoise.efb.self_play import SelfPlayRun, compare, self_play
from equinoise.efb.simulate import EfbRun, simulate
from equinoise.efb.tuning import Tuning, tune

__all__ = ["LEARNERS", "EfbRun", "Report", "SelfPlayRun", "Server", "Strategy", "Tuning", "User", "compare"]
__all__ += ["play", "self_play", "simulate", "tune"]
