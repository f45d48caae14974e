"""Unit vectors, and for each a question that lies more or less near it."""

import numpy as np

DIM = 24


def unit(x):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype("float32")


def world(seed, count, away=0.33):
    """Items, and for each a question that lies more or less near it."""
    rng = np.random.default_rng(seed)
    items = unit(rng.normal(size=(count, DIM)))
    hardness = away * rng.uniform(0.5, 1.5, (count, 1))
    return items, unit(items + hardness * rng.normal(size=items.shape))
