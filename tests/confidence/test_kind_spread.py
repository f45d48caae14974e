"""How far what is said may be off where kinds are few: the interval holds as often as it says."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit

from zoo.confidence import Confidence, calibrate_on
from zoo.confidence.judge import Judge
from zoo.confidence.kind_spread import KindSpread, numbered_kinds
from zoo.search import Index


def asked(rng, kinds, each, spread):
    """Right or wrong answers about kinds that differ by a normal shift of their log odds."""
    kind = np.repeat(np.arange(kinds), each)
    odds = rng.normal(-0.3, 0.8, len(kind))
    shifted = odds + rng.normal(0, spread, kinds)[kind]
    return kind, odds, rng.random(len(kind)) < expit(shifted)


@pytest.mark.parametrize(
    ("kinds", "others", "spread"), [(16, 17, 1.0), (30, 8, 0.6), (60, 60, 0.3)]
)
def test_the_interval_holds_nine_times_in_ten(kinds, others, spread):
    rng, held, plain = np.random.default_rng(kinds), [], []
    for _ in range(300):
        kind, odds, right = asked(rng, kinds, 40, spread)
        shift = np.log(right.mean() / (1 - right.mean())) - np.log(
            expit(odds).mean() / (1 - expit(odds).mean())
        )
        said = expit(odds + shift)
        groups = np.arange(len(kind))
        found = KindSpread.of(said, right, groups, kind, others)
        _, new_odds, new_right = asked(rng, others, 200, spread)
        low, high = found.interval(expit(new_odds + shift), 0.1)
        held.append(low.mean() <= new_right.mean() <= high.mean())
        alone = KindSpread(found.deviation / 4, kinds).interval(expit(new_odds + shift), 0.1)
        plain.append(alone[0].mean() <= new_right.mean() <= alone[1].mean())
    assert 0.85 < np.mean(held) < 0.97
    assert np.mean(plain) < 0.6


@pytest.mark.parametrize("captions", [2, 1])
def test_a_gallery_of_few_photos_has_a_difficulty_of_its_own(captions):
    """Each photo is a kind: seen of two captions of one, taken for all that is left of one."""
    rng, held, of_probes = np.random.default_rng(captions), [], []
    for _ in range(300):
        photo, odds, right = asked(rng, 600, captions, 1.5)
        shift = np.log(right.mean() / (1 - right.mean())) - np.log(
            expit(odds).mean() / (1 - expit(odds).mean())
        )
        _, new_odds, new_right = asked(rng, 100, 50 if captions == 2 else 1, 1.5)
        for kept, count in ((held, 100), (of_probes, 1e9)):
            found = KindSpread.of(expit(odds + shift), right, photo, photo, count)
            low, high = found.interval(expit(new_odds + shift), 0.1)
            kept.append(low.mean() <= new_right.mean() <= high.mean())
    assert 0.85 < np.mean(held) < 0.95
    assert np.mean(of_probes) < 0.7


def test_of_single_photos_it_is_narrow():
    rng = np.random.default_rng(0)
    kind, odds, right = asked(rng, 1500, 1, 0.5)
    found = KindSpread.of(expit(odds), right, kind, kind, 1000)
    low, high = found.interval(np.array([0.5]))
    assert 0.02 < high[0] - low[0] < 0.08
    assert KindSpread.of(expit(odds), right, kind, 0 * kind, 5) is None


def test_questions_that_want_the_same_are_of_a_kind():
    kinds = np.random.default_rng(0).integers(0, 5, 200)
    matches = np.eye(5, dtype=bool)[kinds]
    assert len(np.unique(np.stack([numbered_kinds(matches), kinds]), axis=1).T) == 5


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
    for spread, said in ((confidence.spread, "in 10"), (KindSpread(9.0, 2), "cannot be said")):
        judge = Judge(dataclasses.replace(confidence, spread=spread))
        assert all(said in one.reason for one in judge(scores) if one.verdict != "nothing matches")
    confidence.save(tmp_path / "c.json")
    again = Confidence.load(tmp_path / "c.json").interval(np.array([0.4]))
    np.testing.assert_array_equal(again, (low, high))
    with pytest.raises(ValueError, match="`error`"):
        confidence.interval(np.array([0.4]), 1.0)
