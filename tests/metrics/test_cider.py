"""CIDEr: against loops over the formula, by factors, and at the edges."""

import collections
import math
import sys

import numpy as np
import pytest

from zoo import metrics
from zoo.metrics import cider

GROUPS = [
    ["a red bird sits on a branch", "a bird with a red crown on a branch"],
    ["a man rides a horse", "the man on the horse rides and rides", "a horse"],
    ["two dogs and a red ball"],
]
CANDIDATES = ["a red bird on a red red branch", "the man rides", "horse", "two dogs and a red ball"]


def cider_by_loops(groups, candidate, references, clipped, max_order=4):
    """The formula of the paper with raw counts, one pair of captions at a time."""

    def ngrams(caption):
        words = caption.split()
        return collections.Counter(
            tuple(words[i : i + n])
            for n in range(1, max_order + 1)
            for i in range(len(words))
            if i + n <= len(words)
        )

    frequency = collections.Counter()
    for group in groups:
        frequency.update(set().union(*(ngrams(caption) for caption in group)))

    def vector(caption, order):
        idf = {g: math.log(len(groups) / max(frequency[g], 1)) for g in ngrams(caption)}
        return {g: c * idf[g] for g, c in ngrams(caption).items() if len(g) == order}

    total = 0
    for reference in references:
        difference = len(candidate.split()) - len(reference.split())
        for order in range(1, max_order + 1):
            ours, theirs = vector(candidate, order), vector(reference, order)
            norm = math.sqrt(sum(v * v for v in ours.values()))
            norm *= math.sqrt(sum(v * v for v in theirs.values()))
            take = min if clipped else (lambda a, b: a)
            product = sum(take(ours[g], theirs[g]) * theirs[g] for g in ours.keys() & theirs.keys())
            if norm:
                product *= math.exp(-(difference**2) / 72) if clipped else 1
                total += product / norm
    return (10 if clipped else 1) * total / max_order / len(references)


@pytest.mark.parametrize(
    ("variant", "clipped", "max_order"),
    [("cider_d", True, 4), ("cider", False, 4), ("tfidf", False, 1)],
)
def test_cider_equals_loops(variant, clipped, max_order):
    scores = cider(GROUPS, CANDIDATES, variant)
    expected = [
        [cider_by_loops(GROUPS, c, group, clipped, max_order) for c in CANDIDATES]
        for group in GROUPS
    ]
    assert scores.shape == (3, 4)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7)


def test_cider_with_the_frequencies_of_another_corpus():
    subset = [[GROUPS[2][0], "an unseen caption"], GROUPS[0]]
    expected = [[cider_by_loops(GROUPS, c, g, True) for c in CANDIDATES] for g in subset]
    found = cider(subset, CANDIDATES, corpus=GROUPS)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_cider_blocks_of_groups_agree(monkeypatch):
    expected = cider(GROUPS, CANDIDATES)
    monkeypatch.setattr(sys.modules["zoo.metrics.cider_factors"], "_GROUPS", 2)
    np.testing.assert_array_equal(cider(GROUPS, CANDIDATES), expected)


def test_empty_captions_score_nothing():
    scores = cider([*GROUPS, [""]], ["", "a horse"])
    assert np.isfinite(scores).all()
    assert not scores[:, 0].any()
    assert not scores[3].any()


WORDS = ["a", "a", "a", "bird", "bird", "red", "blue", "wing", "small", "with", "the", "branch"]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 12))) for _ in range(40)]
GROUP_OF = RNG.permutation(np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 9, 10]))
OWN = [[TEXTS[i] for i in np.flatnonzero(own == GROUP_OF)] for own in range(8)]


@pytest.mark.parametrize("variant", ["cider", "cider_d", "tfidf"])
def test_they_are_cider(variant):
    factors = metrics.cider_factors(TEXTS, GROUP_OF, variant)
    assert factors.shape == (8, 40)
    whole = metrics.cider(OWN, TEXTS, variant)
    np.testing.assert_allclose(factors.scores(range(8), range(40)), whole, atol=2e-6)
    groups, captions = RNG.permutation(8)[:5], RNG.integers(0, 40, 13)
    np.testing.assert_allclose(
        factors.scores(groups, captions), whole[groups][:, captions], atol=2e-6
    )
    assert factors.scores([], captions).shape == (0, 13)
    assert factors.scores(groups, []).shape == (5, 0)


def test_without_a_penalty_a_group_has_one_row():
    assert metrics.cider_factors(TEXTS, GROUP_OF).references.shape[0] == 8
    assert metrics.cider_factors(TEXTS, GROUP_OF, "cider_d").references.shape[0] > 8
