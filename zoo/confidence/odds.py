"""Probabilities, log odds and Student's t: what a question would need scipy.special for.

Importing it takes a third of the time of a question from the shell.
"""

import functools

import numpy as np


def log_expit(odds):
    """log σ of log odds, of any shape."""
    return -np.logaddexp(0.0, np.negative(odds))


def expit(odds):
    """σ of log odds, the probability, of any shape."""
    with np.errstate(over="ignore"):  # then it is 0
        return 1.0 / (1.0 + np.exp(np.negative(odds)))


def logit(probability):
    """Log odds of probabilities of any shape, −∞ of 0 and ∞ of 1."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(np.negative(probability))


def student(t, freedom):
    """P(T ≤ t) of Student's t with a whole number of degrees of freedom, for one t."""
    return _by_angle(np.arctan(t / np.sqrt(freedom)), freedom)


@functools.lru_cache(256)  # every answer about a gallery asks for the same one
def student_quantile(share, freedom):
    """The t of which P(T ≤ t) is a share in (0, 1), of whole degrees of freedom."""
    low, high = -np.pi / 2, np.pi / 2
    for _ in range(60):  # halves it to the last digit
        angle = (low + high) / 2
        low, high = (angle, high) if _by_angle(angle, freedom) < share else (low, angle)
    return float(np.sqrt(freedom) * np.tan(angle))


def _by_angle(angle, freedom):
    """P(T ≤ √freedom · tan(angle)).

    Reference: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    odd = freedom % 2
    steps = np.arange(1 + odd, freedom - 1, 2)
    terms = 1 + np.cumprod(steps / (steps + 1) * np.cos(angle) ** 2).sum()
    if odd:
        both = angle + (np.sin(angle) * np.cos(angle) * terms if freedom > 1 else 0.0)
        return 0.5 + both / np.pi
    return 0.5 + np.sin(angle) * terms / 2
