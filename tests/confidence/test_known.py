"""Questions the model does not know, by vectors and by word pieces: declined with a reason."""

import numpy as np
import pytest
from scipy.stats import binom

from halo_search.confidence import Confidence, KnownQueries, Probes, calibrate_on
from halo_search.confidence.known import SeenTexts, ShrunkGaussian, ledoit_wolf
from halo_search.index import Index

DIM = 32
PIECES = 16  # dimension of the texts of word pieces


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
        ((means(4, 1), [4], [["a", "b", "c"]]), "I don't know the words “a”, “b” and “c”"),
        ((means(4, 1), [1], [["zorp"]]), "I don't know the word “zorp”"),
        ((means(4, 1), [7], [list("abcdefg")]), "“a”, “b”, “c”, “d”, “e” and 2 more words"),
        ((means(4, 1), [0], [[]]), "it has no words that name something"),
        ((means(4, 1, 3.0), [9], [["zorp"]]), "I don't know the word “zorp”, and the question"),
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


def test_a_shape_without_width_is_refused(known):
    with pytest.raises(ValueError, match="'variances' and 'rest' must be positive"):
        KnownQueries.of_arrays({**known.to_arrays(), "rest": np.asarray(0.0)})


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


def texts(seed, count, strange=False):
    """Unit vectors about a few directions, or about another one."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(8, PIECES))
    centres[:, 0] = -3.0 if strange else 1.0
    points = centres[rng.integers(0, 8, count)] + 0.6 * rng.normal(size=(count, PIECES))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype("float32")


@pytest.fixture(scope="module")
def shape():
    return SeenTexts.fit(texts(0, 300), texts(1, 200), texts(2, 200, strange=True))


@pytest.fixture(scope="module")
def known_texts(shape):
    return KnownQueries.of(shape, texts(3, 400))


def test_the_distance_is_of_the_nearest_five_and_of_the_tilt(shape):
    points = texts(4, 6)
    for point, distance in zip(points, shape.distance(points), strict=True):
        seen = shape.seen / np.linalg.norm(shape.seen.astype("float64"), axis=1, keepdims=True)
        cosines = sorted(float(point @ one) for one in seen)
        assert distance == pytest.approx(1 - np.mean(cosines[-5:]) - point @ shape.tilt, abs=1e-5)
    longer = np.concatenate([3 * points, np.ones((6, 5))], axis=1)  # a Gaussian's log variance
    np.testing.assert_allclose(shape.distance(longer), shape.distance(points), atol=1e-5)


def test_five_texts_are_enough_to_keep():
    few = texts(0, 5)
    kept = SeenTexts(few, few[0])
    assert (kept.seen.shape, kept.seen.dtype) == (few.shape, "int8")
    np.testing.assert_array_equal(SeenTexts(kept.seen, few[0]).seen, kept.seen)
    with pytest.raises(ValueError, match=r"must be \(5 texts or more, dim\)"):
        SeenTexts(few[:4], few[0])


def test_what_is_like_training_is_understood_and_the_rest_is_not(known_texts):
    assert np.mean(known_texts.declined(texts(5, 500))) < 0.04
    assert np.mean(known_texts.declined(texts(6, 500, strange=True))) > 0.95


def test_some_of_the_texts_decide_as_all_do(known_texts):
    asked = np.concatenate([texts(5, 50), texts(6, 50, strange=True)])
    for error in (0.015, 0.2, 0.6):
        expected = known_texts.p_values(asked) <= error
        assert 0 < expected.sum() < 100
        np.testing.assert_array_equal(known_texts.declined(asked, error=error), expected)
        for point, one in zip(asked, expected, strict=True):
            assert known_texts.declined(point[None], error=error) == [one]


def test_it_travels_with_probes_and_calibrations(known_texts, tmp_path):
    own = texts(7, 200)
    labels = np.arange(200)
    Probes.of(own, own, labels, labels, known={"t2i": known_texts}).save(tmp_path / "p.npz")
    of_probes = Probes.load(tmp_path / "p.npz").known["t2i"]
    noisy = own + np.random.default_rng(0).normal(0, 0.3, own.shape)
    index = Index.build(texts(8, 300), "cosine")
    calibrate_on(index, noisy, own, known=known_texts).save(tmp_path / "c.json")
    of_calibration = Confidence.load(tmp_path / "c.json").known
    asked = np.concatenate([texts(5, 50), texts(6, 50, strange=True)])
    for again in (of_probes, of_calibration):
        np.testing.assert_array_equal(again.p_values(asked), known_texts.p_values(asked))
