"""What the commands ``efb``, ``nvo`` and ``bandit`` compute, and the words they print."""
