"""What the command computes: one module per paper, with its parameters, its work and its tables."""
