"""Experiments on DP-EFB."""
