"""Experiments of the NVO paper."""
