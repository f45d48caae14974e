"""Probabilities and their log odds, in NumPy.

As `scipy.special.expit`, `logit` and `log_expit`, to the last digits of a float64. A question from
the shell needs nothing else of SciPy, whose import costs as much CPU as searching and judging do.
"""

import numpy as np


def log_expit(odds):
    """log σ(x) = −log(1 + e⁻ˣ), of log odds of any shape."""
    return -np.logaddexp(0.0, np.negative(odds))


def expit(odds):
    """σ(x) = 1 / (1 + e⁻ˣ), of log odds of any shape."""
    return np.exp(log_expit(odds))


def logit(probability):
    """log(p / (1 − p)), of probabilities of any shape; ∓∞ at 0 and 1."""
    probability = np.asarray(probability)
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)
