"""Learning, releasing and experimenting under differential privacy."""

__version__ = "0.1.0"
