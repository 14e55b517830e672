"""Searches for a profile, as functions over arrays; :mod:`equinoise.nvo.registry` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equinoise._lazy import attach

if TYPE_CHECKING:
    from equinoise.nvo.search.arrays import anneal, exhaustive, genetic
    from equinoise.nvo.search.dynamics import Found

__all__ = ["Found", "anneal", "exhaustive", "genetic"]

_HOMES = {"arrays": ("anneal", "exhaustive", "genetic"), "dynamics": ("Found",)}
__getattr__, __dir__ = attach(__name__, _HOMES)
