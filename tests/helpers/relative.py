"""How far apart two outputs are, relative to their size. Imports nothing that an export lacks."""

import numpy as np


def difference(found, expected):
    """Largest difference of two arrays, relative to the largest value expected, or to 1 below it.

    Not to each value: a logit near 0 is the difference of two large numbers, and as exact as they
    are. Kernels of another processor add in another order.
    """
    found, expected = np.asarray(found, float), np.asarray(expected, float)  # masks are bool
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))
