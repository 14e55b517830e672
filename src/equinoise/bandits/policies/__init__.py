"""The policies of :func:`equinoise.bandits.simulate`, one file each, and the registry that describes them."""
