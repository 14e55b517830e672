"""What the command computes: one module a paper, with its parameters, its work and its tables."""
