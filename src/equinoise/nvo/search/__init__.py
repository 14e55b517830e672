"""Searches for a profile, as functions over arrays; :mod:`equinoise.nvo.registry` lists them."""

from equinoise.nvo.search.enumeration import exhaustive, genetic
from equinoise.nvo.search.local import anneal
from equinoise.nvo.search.table import Found

__all__ = ["Found", "anneal", "exhaustive", "genetic"]
