"""Promises of groups, of galleries that grow and of lists, on scores and ranks alone."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from zoo.confidence import absence_p_values, certified_threshold, smallest_k
from zoo.confidence.list_length import ListLength


@pytest.mark.parametrize("size", [2, 5, 10, 50])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_certificates_of_groups_are_broken_no_more_often_than_promised(size, correlation):
    """2,000 draws of 40 groups, whose members are right together or not."""
    rng, broken, draws = np.random.default_rng(size), 0, 2000
    groups = np.repeat(np.arange(40), size)
    common, alone = np.sqrt(correlation), np.sqrt(1 - correlation)
    risk = norm.cdf(-1.0)  # of every answer: a bold threshold at a promise of less
    for _ in range(draws):
        shared = rng.normal(size=40)[groups]
        correct = common * shared + alone * rng.normal(size=len(groups)) > -1.0
        found = certified_threshold(
            np.ones(len(groups)), correct, risk - 1e-6, 0.1, [1.0], groups, seed=0
        )
        broken += found is not None
    assert broken <= binom.ppf(1 - 1e-4, draws, 0.1)


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


@pytest.mark.parametrize("growth", [2, 8])
def test_absence_is_corrected_for_size(growth):
    rng = np.random.default_rng(growth)
    absent = rng.normal(size=(4000, 50)).max(axis=1)
    later = rng.normal(size=(4000, 50 * growth)).max(axis=1)
    wrong = np.mean(absence_p_values(later, absent, growth) <= 0.1)
    assert wrong <= 0.12
    assert np.mean(absence_p_values(later, absent) <= 0.1) > 0.15
    with pytest.raises(ValueError, match="`growth` must be a positive number"):
        absence_p_values(later, absent, 0.0)


def test_a_list_is_as_long_as_the_question_deserves():
    """Over 200 splits: coverage near 90 %, in each tenth of confidence too, and no longer."""
    rng = np.random.default_rng(0)
    confidence = rng.normal(size=4000)
    ranks = 1 + np.floor(np.exp(rng.normal(1.5 - confidence, 1.2)))
    covered, tenths, length, fixed = [], [], [], []
    for _ in range(200):
        order = rng.permutation(4000)
        known, new = order[:1000], order[1000:]
        found = ListLength.fit(ranks[known], confidence[known], np.arange(1000), 0.1, 10_000)
        k = found(confidence[new])
        held = ranks[new] <= k
        covered.append(held.mean())
        parts = np.array_split(np.argsort(confidence[new]), 10)
        tenths.append([held[part].mean() for part in parts])
        length.append(k.mean())
        fixed.append(smallest_k(ranks[known], 0.1))
    assert 0.88 < np.mean(covered) < 0.92
    assert np.mean(tenths, axis=0).min() > 0.8
    assert np.mean(tenths, axis=0).max() < 0.99
    assert np.mean(length) < np.mean(fixed)


def test_few_probes_promise_no_list():
    found = ListLength.fit(np.arange(1, 6), np.arange(5.0), np.arange(5), 0.1, 77)
    np.testing.assert_array_equal(found(np.array([0.0, 9.0])), [77, 77])
