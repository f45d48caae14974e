"""Questions the model does not know: declined with a reason, and known ones rarely."""

import numpy as np
import pytest
from scipy.stats import binom

from zoo.confidence import KnownQueries
from zoo.confidence.shrinkage import ShrunkGaussian, ledoit_wolf

DIM = 32


def means(seed, count, away=0.0):
    """Points near a subspace of four dimensions; `away` from it along one more direction."""
    basis = np.random.default_rng(0).normal(size=(4, DIM))
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 4)) @ basis + 0.2 * rng.normal(size=(count, DIM))
    return points + away * np.eye(DIM)[3]


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(5)
    words = rng.integers(8, 20, 800)
    return KnownQueries.fit(
        means(1, 2000), means(2, 800), words, (rng.random(800) < 0.05).astype(int)
    )


def test_held_out_queries_are_declined_as_rarely_as_promised(known):
    rng = np.random.default_rng(6)
    declined = known.declined(
        means(3, 1000), rng.integers(8, 20, 1000), (rng.random(1000) < 0.05).astype(int), 0.05
    )
    assert declined.sum() <= binom.ppf(1 - 1e-4, 1000, 0.05)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((means(4, 1), [10], [6]), "6 of its 10 words are unknown"),
        ((means(4, 1), [1], [0]), "it has 1 words, usual are 8 to 19"),
        ((means(4, 1), [200], [0]), "it has 200 words, usual are 8 to 19"),
        ((means(4, 1), [0], [0]), "it has no words; it has 0 words, usual are 8 to 19"),
        ((means(4, 1, 3.0), [10], [0]), "farther from what was learned than 100.0 %"),
    ],
)
def test_what_is_strange_is_declined_with_a_reason(known, facts, reason):
    assert known.declined(*facts).all()
    assert reason in known.reasons(*facts)[0]


def test_what_is_known_has_no_reason(known):
    assert known.reasons(means(4, 3), [10, 12, 9], [0, 0, 0]) == [None] * 3


def test_reasons_and_declined_agree(known):
    rng = np.random.default_rng(7)
    facts = means(8, 300, 0.7), rng.integers(1, 30, 300), rng.integers(0, 2, 300)
    declined = known.declined(*facts, error=0.1)
    assert 0 < declined.sum() < 300
    np.testing.assert_array_equal(
        declined, [reason is not None for reason in known.reasons(*facts, error=0.1)]
    )


def test_images_have_a_distance_only():
    known = KnownQueries.fit(means(1, 2000), means(2, 800))
    assert known.names == ("distance",)
    assert known.declined(means(3, 1000)).mean() < 0.08
    assert known.declined(means(3, 1000, 3.0)).all()


def test_p_values_by_hand():
    known = KnownQueries.fit(means(1, 100), means(2, 39))
    values = known.features(means(2, 39))["distance"]
    found = known.p_values(means(2, 39))["distance"]
    np.testing.assert_allclose(found, [(1 + (values >= v).sum()) / 40 for v in values])


def test_ledoit_wolf_is_scikit_learns():
    covariance = pytest.importorskip("sklearn.covariance")
    points = means(1, 60)
    expected, shrinkage = covariance.ledoit_wolf(points)
    centred = points - points.mean(axis=0)
    assert ledoit_wolf(centred, centred.T @ centred / 60) == pytest.approx(shrinkage)
    shape = ShrunkGaussian.fit(points, DIM - 1)  # of full rank: nothing is averaged
    other = means(2, 10)
    away = other - points.mean(axis=0)
    squared = np.einsum("nd,de,ne->n", away, np.linalg.inv(expected), away)
    np.testing.assert_allclose(shape.distance(other), np.sqrt(squared / DIM), rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KnownQueries.fit(means(1, 100), means(2, 19)), "20 held-out queries; received 19"),
        (lambda: KnownQueries.fit(means(1, 1), means(2, 30)), "two different queries"),
        (lambda: KnownQueries.fit(np.ones((9, DIM)), means(2, 30)), "received 9 equal ones"),
        (lambda: KnownQueries.fit(means(1, 99), means(2, 30)[:, :5]), r"\(queries, 32\)"),
        (lambda: KnownQueries.fit(means(1, 99), means(2, 30), np.full(30, 0.5)), "whole numbers"),
        (
            lambda: KnownQueries.fit(means(1, 99), means(2, 30), None, np.ones(30)),
            "`words` must be given",
        ),
        (
            lambda: KnownQueries.fit(means(1, 99), means(2, 30), np.ones(30), np.full(30, 2)),
            "must not exceed `words`",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_fit_had_must_be_given(known):
    with pytest.raises(ValueError, match="`words` must be given, since the calibration has it"):
        known.declined(means(3, 2))
    with pytest.raises(ValueError, match="`error` must be a number between 0 and 1"):
        known.declined(means(3, 2), [9, 9], [0, 0], error=2)
