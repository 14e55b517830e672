"""Mechanisms that make numbers private: noise for simulation, and noise for a real person's report.

``laplace`` draws fast, reproducible float64 noise; its low bits betray what it was added to, so it serves
simulations only. ``secure_laplace`` noises values with OpenDP, from the operating system's randomness. The
counters publish every running sum of a stream; without a seed they are of the second kind.
"""

from equinoise.mechanisms.counters import COUNTERS, BinaryCounter, HybridCounter, VectorCounter
from equinoise.mechanisms.kary import KaryCounter
from equinoise.mechanisms.laplace import laplace, secure_laplace

__all__ = ["COUNTERS", "BinaryCounter", "HybridCounter", "KaryCounter", "VectorCounter"]
__all__ += ["laplace", "secure_laplace"]
