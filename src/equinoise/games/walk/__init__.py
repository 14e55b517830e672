"""From a game of many players to the tree of one."""

from equinoise.games.walk.limits import MAX_HISTORIES
from equinoise.games.walk.others import CHANCE, TERMINAL
from equinoise.games.walk.walk import Source, player_number, walk

__all__ = ["CHANCE", "MAX_HISTORIES", "TERMINAL", "Source", "player_number", "walk"]
