"""Kinds of items: how many of one a gallery holds, and how far off what is said is of few."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student

from halo_search.confidence import Confidence, calibrate_on
from halo_search.confidence.calibrate import deviation
from halo_search.confidence.insertion import kind_size, own_rows
from halo_search.confidence.judge import Judge
from halo_search.index import Index
from probe_world import DIM, unit


def asked(rng, kinds, each, spread):
    """Right or wrong answers about kinds that differ by a normal shift of their log odds."""
    kind = np.repeat(np.arange(kinds), each)
    odds = rng.normal(-0.3, 0.8, len(kind))
    shifted = odds + rng.normal(0, spread, kinds)[kind]
    return kind, odds, rng.random(len(kind)) < expit(shifted)


def holds(probability, right, off, count):
    """Whether the share of right answers lies in the interval of nine in ten."""
    width = off * student.ppf(0.95, count - 1)
    low, high = (expit(logit(probability) + sign * width).mean() for sign in (-1, 1))
    return low <= right.mean() <= high


@pytest.mark.parametrize(
    ("kinds", "others", "spread"), [(16, 17, 1.0), (30, 8, 0.6), (60, 60, 0.3)]
)
def test_the_interval_holds_nine_times_in_ten(kinds, others, spread):
    rng, held, plain = np.random.default_rng(kinds), [], []
    for _ in range(300):
        kind, odds, right = asked(rng, kinds, 40, spread)
        shift = logit(right.mean()) - logit(expit(odds).mean())
        off = deviation(expit(odds + shift), right, np.ones(len(kind)), kind, others)
        _, new_odds, new_right = asked(rng, others, 40, spread)
        said = expit(new_odds + shift)
        held.append(holds(said, new_right, off, kinds))
        plain.append(holds(said, new_right, off / 4, kinds))
    assert 0.85 < np.mean(held) < 0.97
    assert np.mean(plain) < 0.6


def test_the_interval_of_few_probes_knows_that_the_fit_has_seen_them():
    """49 photos with five captions each, as of real CLIP vectors: most answers are right."""
    half, owner, held = 49, np.repeat(np.arange(98), 5), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        items = rng.normal(size=(98, 32))
        hard = rng.normal(size=items.shape) * rng.gamma(2, 0.5, size=(98, 1))
        asked = (items + hard)[owner] + 0.9 * rng.normal(size=(490, 32))
        index = Index.build(items[half:], "cosine")
        ours, theirs = owner < half, owner >= half
        confidence = calibrate_on(index, asked[ours], items[owner[ours]], groups=owner[ours])
        said = index.probability(asked[theirs], confidence)
        right = index.search(asked[theirs], 1)[1][:, 0] == owner[theirs] - half
        low, high = (end.mean() for end in confidence.interval(said))
        held.append(low <= right.mean() <= high)
    assert np.mean(held) >= 0.85


def test_the_own_items_of_a_question_are_drawn_among_its_matches():
    matches = np.zeros((3, 9), bool)
    matches[0, [1, 4]] = matches[1, 2:8] = matches[2, 8] = True
    every = own_rows(matches, 3, 9)
    assert [sorted(row[row >= 0]) for row in every] == [[1, 4], [2, 3, 4, 5, 6, 7], [8]]
    drawn = [own_rows(matches, 3, 9, 2, seed) for seed in range(40)]
    assert all(rows.shape == (3, 2) and rows[2, 1] == -1 for rows in drawn)
    assert {tuple(sorted(rows[0])) for rows in drawn} == {(1, 4)}
    assert {row for rows in drawn for row in rows[1]} == {2, 3, 4, 5, 6, 7}
    np.testing.assert_array_equal(own_rows(None, 3, 3), [[0], [1], [2]])


def test_a_calibration_of_classes_says_it_and_keeps_it(tmp_path):
    rng = np.random.default_rng(0)
    centres, labels = rng.normal(size=(40, 16)), np.repeat(np.arange(20), 30)
    own = centres[labels] + 1.2 * rng.normal(size=(600, 16))
    queries = centres[labels] + 1.2 * rng.normal(size=(600, 16))
    others = centres[np.repeat(np.arange(20, 40), 5)] + 1.2 * rng.normal(size=(100, 16))
    index = Index.build(others, "cosine")
    confidence = calibrate_on(index, queries, own, labels[:, None] == labels)
    low, high = confidence.interval(np.array([0.4]))
    assert low[0] < 0.4 < high[0]
    assert high[0] - low[0] > 0.05
    scores = index.query_scores(queries[:5], copies=confidence.copies)
    seen = confidence.in_gallery
    wide = dataclasses.replace(seen, deviation=9.0, num_kinds=2)
    for one, words in ((seen, "first photo"), (wide, "too few examples to say whether")):
        judge = Judge(dataclasses.replace(confidence, in_gallery=one), by_class=True)
        told = [said.reason for said in judge(scores) if said.verdict != "nothing matches"]
        assert told
        assert all(words in reason for reason in told)
    confidence.save(tmp_path / "c.json")
    again = Confidence.load(tmp_path / "c.json").interval(np.array([0.4]))
    np.testing.assert_array_equal(again, (low, high))
    with pytest.raises(ValueError, match="`error`"):
        confidence.interval(np.array([0.4]), 1.0)


@pytest.mark.parametrize(("size", "kinds"), [(1, 40), (5, 40), (20, 40), (20, 90)])
def test_the_size_of_kinds_is_seen(size, kinds):
    rng = np.random.default_rng(size)

    def items(kinds, count):
        centres = np.repeat(rng.normal(size=(kinds, DIM)), count, axis=0)
        return unit(centres + 0.4 * rng.normal(size=(kinds * count, DIM)))

    own, labels = items(30, 30), np.repeat(np.arange(30), 30)
    index = Index.build(items(kinds, size), "cosine")
    found = kind_size(index, own, labels[:, None] == labels)
    assert found == pytest.approx(size, abs=1 + 0.3 * size)
