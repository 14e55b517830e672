"""Gambit's extensive games: a reader of ``.efg`` files."""

from equinoise.games.efg.reader import GambitGame, parse_efg, read_efg

__all__ = ["GambitGame", "parse_efg", "read_efg"]
