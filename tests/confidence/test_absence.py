"""p-values of "nothing matches": valid where it is true, small where it is not."""

import numpy as np
import pytest
from scipy.stats import binom

from zoo.confidence import Confidence, absence_p_values, benjamini_hochberg
from zoo.confidence.scores import without_matches


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


def test_a_batch_has_the_promised_share_of_absent_things_among_its_answers():
    rng = np.random.default_rng(1)
    shares, found = [], []
    for _ in range(1000):
        absent = rng.random(60) < 0.5
        confidence = rng.normal(size=60) + np.where(absent, 0.0, 3.0)
        answered = benjamini_hochberg(absence_p_values(confidence, rng.normal(size=300)), 0.2)
        shares.append((absent & answered).sum() / max(1, answered.sum()))
        found.append((~absent & answered).sum() / (~absent).sum())
    assert np.mean(shares) <= 0.2 + 3.7 * np.std(shares) / np.sqrt(1000)
    assert np.mean(shares) > 0.05  # it is half of the level, since half of the queries are absent
    assert np.mean(found) > 0.8


def test_benjamini_hochberg_by_hand():
    found = benjamini_hochberg([0.03, 0.8, 0.01, 0.04], 0.05)
    np.testing.assert_array_equal(found, [False, False, True, False])
    # 0.04 passes at 3/4 · 0.06 and takes with it what is below.
    found = benjamini_hochberg([0.035, 0.8, 0.01, 0.04], 0.06)
    np.testing.assert_array_equal(found, [True, False, True, True])
    np.testing.assert_array_equal(benjamini_hochberg([0.05], 0.05), [True])


def test_a_gallery_without_the_matches_is_told_from_one_with_them(draw):
    world, calibration, new = draw(seed=0), draw(seed=1), draw(seed=2)
    confidence = Confidence.fit(world.similarity, world.correct)
    absent = confidence.probability(without_matches(calibration.similarity, calibration.relevance))
    present = absence_p_values(confidence.probability(new.similarity), absent)
    missing = absence_p_values(
        confidence.probability(without_matches(new.similarity, new.relevance)), absent
    )
    assert np.mean(missing <= 0.1) < binom.ppf(1 - 1e-4, 600, 0.1) / 600 + 0.04
    assert (present[:, None] < missing[None]).mean() > 0.8  # AUROC


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: absence_p_values([np.nan], [1.0]), "`confidence` must be finite"),
        (lambda: absence_p_values([1.0], []), "`absent_confidence` must be one value"),
        (lambda: benjamini_hochberg([0.5, 1.5], 0.1), r"must be in \[0, 1\]"),
        (lambda: benjamini_hochberg([0.5], 1.0), "between 0 and 1"),
        (lambda: without_matches(np.eye(3), np.eye(4)), "of the shape of `similarity`"),
        (lambda: without_matches(np.eye(3), np.ones((3, 3))), "two items at least; received 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
