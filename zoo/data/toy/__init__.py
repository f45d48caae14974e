"""Toy data: drawn birds, and scenes of several, of which the truth is known."""
