"""The first k holds a match as often as promised, on 1,000 draws of synthetic queries."""

import sys

import numpy as np
import pytest
from scipy.stats import binom, norm

from zoo.confidence import smallest_k

SPLITS, CALIBRATION = 1000, 99


def within_band(failures, error, least):
    """Of 1,000 draws no more than a binomial of `error` has, nor fewer than one of `least`."""
    assert failures <= binom.ppf(1 - 1e-4, SPLITS, error)
    assert failures >= binom.ppf(1e-4, SPLITS, least)


@pytest.mark.parametrize("error", [0.05, 0.1, 0.3])
def test_the_first_k_hold_a_match_as_often_as_promised(error):
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(SPLITS):
        ranks = 1 + np.floor(rng.gamma(0.5, 2000, size=CALIBRATION + 1))  # hardly a tie
        failures += ranks[-1] > smallest_k(ranks[:-1], error)
    within_band(failures, error, error - 1 / (CALIBRATION + 1))


@pytest.mark.parametrize(
    ("count", "error", "expected"),
    [(9, 0.1, 9), (8, 0.1, None), (19, 0.05, 19), (99, 0.3, 70), (29, 0.1, 27), (1, 0.5, 1)],
)
def test_the_quantile_is_exact_at_round_numbers(count, error, expected):
    """0.1 · 10 and 0.3 · 100 are meant to be whole, though no binary number is 0.1."""
    ranks = np.arange(1, count + 1)
    assert smallest_k(ranks, error) == (sys.maxsize if expected is None else expected)
    assert smallest_k(ranks, error, num_items=500) == (501 if expected is None else expected)


@pytest.mark.parametrize("size", [2, 5])
def test_lists_of_groups_hold_as_often_as_promised(size):
    rng, missed = np.random.default_rng(0), []
    for _ in range(1000):
        shared = np.repeat(rng.exponential(size=61), size)
        ranks = 1 + np.floor(20 * shared + rng.exponential(size=len(shared)))
        k = smallest_k(ranks[:-size], 0.1, groups=np.repeat(np.arange(60), size))
        missed.append(np.mean(ranks[-size:] > k))
    assert 0.05 < np.mean(missed) <= 0.1 + 3.7 * np.std(missed) / np.sqrt(1000)


@pytest.mark.parametrize("times", [2, 8])
def test_a_list_grows_with_its_gallery(times):
    """One match a question, and distractors that come later like those that were there."""
    rng, held, plain = np.random.default_rng(times), 0, 0
    for _ in range(600):
        strength = rng.normal(1.0, 1.0, 121)
        old = 1 + rng.binomial(99, norm.sf(strength))
        k = smallest_k(old[:-1], 0.1, num_items=100, grown_to=100 * times)
        new = old[-1] + rng.binomial(100 * (times - 1), norm.sf(strength[-1]))
        held += new <= k
        plain += new <= smallest_k(old[:-1], 0.1, num_items=100)
    assert held / 600 >= 0.9 - 0.03
    assert plain / 600 < 0.88
    assert smallest_k(old, 0.1, 100, grown_to=100) == smallest_k(old, 0.1, 100)
    assert smallest_k(np.full(50, 100), 0.1, 100, grown_to=500) == 501
    with pytest.raises(ValueError, match="`grown_to` needs `num_items`"):
        smallest_k(old, 0.1, grown_to=500)
