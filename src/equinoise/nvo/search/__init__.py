"""Searches for a profile: best response, annealing, genetic, exhaustive."""

from equinoise.nvo.search.local import Found, anneal, exhaustive, genetic

__all__ = ["Found", "anneal", "exhaustive", "genetic"]
