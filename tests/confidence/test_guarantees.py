"""Every promise on 1,000 draws of synthetic queries, within its band, and by brute force."""

import math
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, norm

from zoo.confidence import (
    Confidence,
    absence_p_values,
    candidate_thresholds,
    certified_threshold,
    missed_matches_threshold,
    score_threshold,
    smallest_k,
)
from zoo.confidence.scores import without_matches

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


@pytest.mark.parametrize("error", [0.05, 0.1, 0.3])
def test_the_set_above_the_threshold_holds_the_best_match(error):
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(SPLITS):
        scores = rng.standard_t(2, size=CALIBRATION + 1)
        failures += scores[-1] < score_threshold(scores[:-1], error)
    within_band(failures, error, error - 1 / (CALIBRATION + 1))


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_the_share_of_missed_matches_is_as_promised(error):
    rng = np.random.default_rng(3)
    losses = []
    for _ in range(SPLITS):
        relevance = rng.random((CALIBRATION + 1, 40)) < 0.15
        relevance[:, 0] = True
        similarity = rng.normal(size=relevance.shape) + rng.gamma(1, 1, (len(relevance), 1))
        threshold = missed_matches_threshold(similarity[:-1], relevance[:-1], error)
        losses.append((similarity[-1] < threshold)[relevance[-1]].mean())
    deviation = np.std(losses) / math.sqrt(SPLITS)
    assert np.mean(losses) <= error + 3.7 * deviation
    assert np.mean(losses) >= error - 2 / (CALIBRATION + 1) - 3.7 * deviation


def test_missed_matches_by_brute_force():
    rng = np.random.default_rng(4)
    similarity = rng.integers(0, 8, size=(30, 12)).astype(float)  # many ties
    relevance = rng.random((30, 12)) < 0.3
    asked = relevance.any(axis=1)
    for error in (0.1, 0.25, 0.5, 0.9):
        allowed = [-math.inf]
        for level in np.unique(similarity):
            loss = [
                (row < level)[match].mean()
                for row, match in zip(similarity[asked], relevance[asked], strict=True)
            ]
            if (np.sum(loss) + 1) / (len(loss) + 1) <= error and level in similarity[relevance]:
                allowed.append(level)
        found = missed_matches_threshold(similarity, relevance, error)
        assert found == max(allowed)
        assert found == missed_matches_threshold(similarity, csr_array(relevance), error)


def chance_of_right(u):
    """Not monotone: the surest answers are wrong more often than those in the middle."""
    return 0.6 + 0.35 * np.sin(np.pi / 2 * np.minimum(u / 0.7, 1)) - 0.25 * np.maximum(u - 0.7, 0)


def true_risk(threshold):
    grid = np.linspace(threshold, 1, 4001)[:-1]
    return 1 - chance_of_right(grid).mean()


def test_of_what_is_answered_few_are_wrong_with_the_promised_confidence():
    """Broken in a share `failure` of the certifying sets at most, and the promise is not idle."""
    rng = np.random.default_rng(5)
    risk, failure = 0.13, 0.1
    candidates = candidate_thresholds(rng.random(500), 25, 0.3)
    risks = {float(c): true_risk(c) for c in candidates}
    assert any(r > risk for r in risks.values())
    assert any(r < risk for r in risks.values())
    found = []
    for _ in range(SPLITS):
        confidence = rng.random(1000)
        correct = rng.random(1000) < chance_of_right(confidence)
        found.append(certified_threshold(confidence, correct, risk, failure, candidates))
    broken = sum(c is not None and risks[c] > risk for c in found)
    assert broken <= binom.ppf(1 - 1e-4, SPLITS, failure)
    assert sum(c is not None for c in found) > SPLITS / 4


def test_an_uninformative_confidence_certifies_nothing_more_often_than_allowed():
    rng = np.random.default_rng(6)
    found = [
        certified_threshold(u, rng.random(200) < 0.8, 0.2 - 1e-9, 0.1, [0.5, 0.0])
        for u in rng.random((SPLITS, 200))
    ]
    assert sum(c is not None for c in found) <= binom.ppf(1 - 1e-4, SPLITS, 0.1)


def test_certified_threshold_by_hand():
    confidence = np.arange(100)[::-1]
    correct = np.arange(100) < 60
    # 40 of 40, 60 of 60 and 60 of 61 pass at 10 %; 60 of 70 does not.
    assert certified_threshold(confidence, correct, 0.1, 0.1, [60, 40, 39, 30]) == 39
    # One that cannot pass ends the search, whatever follows.
    assert certified_threshold(confidence, correct, 0.1, 0.1, [99, 60]) is None
    assert certified_threshold(confidence, ~correct, 0.1, 0.1, [60]) is None
    assert certified_threshold(confidence, correct, 0.1, 0.1, [200]) is None  # answers nothing


@pytest.mark.parametrize(
    ("count", "error", "expected"),
    [(9, 0.1, 9), (8, 0.1, None), (19, 0.05, 19), (99, 0.3, 70), (29, 0.1, 27), (1, 0.5, 1)],
)
def test_the_quantile_is_exact_at_round_numbers(count, error, expected):
    """0.1 · 10 and 0.3 · 100 are meant to be whole, though no binary number is 0.1."""
    ranks = np.arange(1, count + 1)
    assert smallest_k(ranks, error) == (sys.maxsize if expected is None else expected)
    assert smallest_k(ranks, error, num_items=500) == (501 if expected is None else expected)
    threshold = score_threshold(-ranks, error)
    assert threshold == (-math.inf if expected is None else -expected)


def test_too_few_queries_promise_the_whole_gallery():
    similarity, relevance = np.eye(5), np.eye(5, dtype=bool)
    assert missed_matches_threshold(similarity, relevance, 0.1) == -math.inf
    assert missed_matches_threshold(similarity, relevance, 0.5) == 1.0


def test_candidates_answer_the_shares_they_should():
    confidence = norm.rvs(size=1000, random_state=0)
    candidates = candidate_thresholds(confidence, 10, 0.1)
    assert (np.diff(candidates) < 0).all()
    answered = [(confidence >= c).mean() for c in candidates]
    np.testing.assert_allclose(answered, np.linspace(0.1, 1, 10), atol=0.002)


def test_p_values_by_hand():
    found = absence_p_values([5.0, 2.0, 1.5, 0.0], [1.0, 2.0, 3.0, 2.0])
    np.testing.assert_allclose(found, [1 / 5, 4 / 5, 4 / 5, 1])


@pytest.mark.parametrize("error", [0.05, 0.2])
def test_absent_things_are_answered_as_rarely_as_promised(error):
    rng = np.random.default_rng(0)
    absent = rng.standard_t(2, size=(1000, 100))
    answered = sum(absence_p_values(row[:1], row[1:])[0] <= error for row in absent)
    assert answered <= binom.ppf(1 - 1e-4, 1000, error)
    assert answered >= binom.ppf(1e-4, 1000, error - 0.01)


def test_a_gallery_without_the_matches_is_told_from_one_with_them(draw):
    world, calibration, new = draw(seed=0), draw(seed=1), draw(seed=2)
    confidence = Confidence.fit(world.similarity, world.correct)
    absent = confidence.probability(without_matches(calibration.similarity, calibration.relevance))
    present = absence_p_values(confidence.probability(new.similarity), absent)
    missing = absence_p_values(
        confidence.probability(without_matches(new.similarity, new.relevance)), absent
    )
    assert np.mean(missing <= 0.1) < binom.ppf(1 - 1e-4, 600, 0.1) / 600 + 0.04
    assert (present[:, None] < missing[None]).mean() > 0.75  # AUROC


@pytest.mark.parametrize("size", [2, 5, 10, 50])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_certificates_of_groups_are_broken_no_more_often_than_promised(size, correlation):
    """1,000 draws of 40 groups, whose members are right together or not."""
    rng, broken, draws = np.random.default_rng(size), 0, 1000
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


@pytest.mark.parametrize("error", [0, 1, -0.1, 1.5, np.nan, None, "0.1", [0.1]])
@pytest.mark.parametrize(
    "promise",
    [
        lambda error: smallest_k([1, 2], error),
        lambda error: score_threshold([1.0, 2.0], error),
        lambda error: missed_matches_threshold(np.eye(2), np.eye(2), error),
        lambda error: certified_threshold([0.5], [True], error, 0.1, [0.5]),
        lambda error: certified_threshold([0.5], [True], 0.1, error, [0.5]),
    ],
)
def test_levels_are_between_0_and_1(promise, error):
    with pytest.raises(ValueError, match="must be a number between 0 and 1; received"):
        promise(error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smallest_k([], 0.1), "one value a query"),
        (lambda: smallest_k([0, 1], 0.1), "at least 1"),
        (lambda: smallest_k([1.5], 0.1), "whole numbers"),
        (lambda: smallest_k([np.nan], 0.1), "must be finite"),
        (lambda: smallest_k([7], 0.1, num_items=5), r"at most num_items \+ 1 = 6; received 7"),
        (lambda: score_threshold([-np.inf], 0.1), "must be finite"),
        (lambda: missed_matches_threshold(np.eye(2), np.eye(3), 0.1), "of the shape of"),
        (lambda: missed_matches_threshold(np.eye(2), np.zeros((2, 2)), 0.1), "received none"),
        (lambda: certified_threshold([0.5], [True, False], 0.1, 0.1, [0.5]), "of 1 queries"),
        (lambda: certified_threshold([0.5], [2], 0.1, 0.1, [0.5]), "true or false"),
        (lambda: certified_threshold([0.5], [1], 0.1, 0.1, []), "`candidates` must be one"),
        (lambda: candidate_thresholds([np.nan]), "must be finite"),
        (lambda: absence_p_values([np.nan], [1.0]), "`confidence` must be finite"),
        (lambda: absence_p_values([1.0], []), "`absent_confidence` must be one value"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
