"""Experiments on bias in adaptively gathered data."""
