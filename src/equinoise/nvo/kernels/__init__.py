"""Compiled functions of the game: noise, and what a profile is worth."""
