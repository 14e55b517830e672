"""Policies on rewards that were drawn or logged before."""
