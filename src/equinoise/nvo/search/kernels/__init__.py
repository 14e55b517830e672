"""Compiled functions of the searches, over the counts of a profile."""
