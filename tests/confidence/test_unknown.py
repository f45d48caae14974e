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
    return KnownQueries.fit(means(1, 2000), means(2, 800))


def test_held_out_queries_are_declined_as_rarely_as_promised(known):
    lost = [["wibble"]] * 1000  # of one word unknown the vector decides
    declined = known.declined(means(3, 1000), np.full(1000, 12), lost, 0.05)
    assert declined.sum() <= binom.ppf(1 - 1e-4, 1000, 0.05)
    assert declined.sum() >= binom.ppf(1e-4, 1000, 0.02)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((means(4, 1), [4], [["a", "b", "c"]]), "it does not know the words “a”, “b” and “c”"),
        ((means(4, 1), [1], [["zorp"]]), "it does not know the word “zorp”"),
        ((means(4, 1), [7], [list("abcdefg")]), "“a”, “b”, “c”, “d”, “e” and 2 more words"),
        ((means(4, 1), [0], [[]]), "it has no words that name something"),
        ((means(4, 1, 3.0), [9], [["zorp"]]), "does not know the word “zorp”, and the question"),
        ((means(4, 1, 3.0),), "lies far from all that was learned"),
        ((means(4, 1, 3.0), [9], None), "lies far from all that was learned"),
    ],
)
def test_what_is_strange_is_declined_with_a_reason(known, facts, reason):
    assert known.declined(*facts).all()
    assert reason in known.reasons(*facts)[0]


@pytest.mark.parametrize("words", [1, 2, 5, 40, 200])
def test_length_alone_never_refuses(known, words):
    assert known.reasons(means(4, 1), [words], [[]]) == [None]
    assert known.reasons(means(4, 1, 3.0), [words], [[]]) == [None]  # vague, of known words


def test_half_of_the_words_may_be_unknown(known):
    assert known.reasons(means(4, 2), [2, 2], [["a"], ["a", "b"]])[0] is None
    assert known.reasons(means(4, 2), [2, 2], [["a"], ["a", "b"]])[1] is not None


def test_reasons_and_declined_agree(known):
    rng = np.random.default_rng(7)
    lost = [["x"] * n for n in rng.integers(0, 2, 300)]
    facts = means(8, 300, 0.7), rng.integers(1, 30, 300), lost
    declined = known.declined(*facts, error=0.1)
    assert 0 < declined.sum() < 300
    expected = [reason is not None for reason in known.reasons(*facts, error=0.1)]
    np.testing.assert_array_equal(declined, expected)


def test_images_have_a_vector_only(known):
    assert known.declined(means(3, 1000)).mean() < 0.03
    assert known.declined(means(3, 1000, 3.0)).all()


def test_p_values_by_hand():
    held_out = means(2, 120)
    known = KnownQueries.fit(means(1, 100), held_out)
    values = known.shape.distance(held_out).astype(np.float32)
    expected = [(1 + (values >= v).sum()) / 121 for v in values]
    np.testing.assert_allclose(known.p_values(held_out), expected)


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
        (lambda: KnownQueries.fit(means(1, 100), means(2, 98)), "99 held-out queries; received 98"),
        (lambda: KnownQueries.fit(means(1, 1), means(2, 130)), "two different queries"),
        (lambda: KnownQueries.fit(np.ones((9, DIM)), means(2, 130)), "received 9 equal ones"),
        (lambda: KnownQueries.fit(means(1, 99), means(2, 130)[:, :5]), r"\(queries, 32\)"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_error_is_a_share(known):
    with pytest.raises(ValueError, match="`error` must be a number between 0 and 1"):
        known.declined(means(3, 2), error=2)
