"""Halo Zoo: image-text retrieval that says how sure it is."""
