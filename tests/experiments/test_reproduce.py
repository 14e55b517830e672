"""The reproduction: its plan, a report that is whole after each step, exhibits that say what came out."""

from __future__ import annotations
