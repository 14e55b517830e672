"""Kernels of DP-EFB: set-up, weights of actions, and a trial."""
