"""Kernels of the noise variance optimisation game: noise, and what a profile is worth."""
