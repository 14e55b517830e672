"""From a game of many players to the tree of one."""

from equinoise.games.walk.walk import CHANCE, MAX_HISTORIES, TERMINAL, Source, player_number, walk

__all__ = ["CHANCE", "MAX_HISTORIES", "TERMINAL", "Source", "player_number", "walk"]
