"""Texts of word pieces: near to what was seen is understood, made-up ones are not."""

import numpy as np
import pytest
import tensorflow as tf

from export.known_queries import KnownQueriesFunction
from zoo.confidence import Confidence, KnownQueries, Probes, calibrate_on
from zoo.confidence.seen_texts import SeenTexts
from zoo.data.text.captions import WordIds
from zoo.evaluation.phrases import made_up, phrases
from zoo.search import Index

DIM = 16


def texts(seed, count, strange=False):
    """Unit vectors about a few directions, or about another one."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(8, DIM))
    centres[:, 0] = -3.0 if strange else 1.0
    points = centres[rng.integers(0, 8, count)] + 0.6 * rng.normal(size=(count, DIM))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype("float32")


@pytest.fixture(scope="module")
def shape():
    return SeenTexts.fit(texts(0, 300), texts(1, 200), texts(2, 200, strange=True))


@pytest.fixture(scope="module")
def known(shape):
    return KnownQueries.of(shape, texts(3, 400))


def test_the_distance_is_of_the_nearest_five_and_of_the_tilt(shape):
    points = texts(4, 6)
    for point, distance in zip(points, shape.distance(points), strict=True):
        cosines = sorted(float(point @ one) for one in shape.seen.astype("float64"))
        assert distance == pytest.approx(1 - np.mean(cosines[-5:]) - point @ shape.tilt, abs=1e-5)
    longer = np.concatenate([3 * points, np.ones((6, 5))], axis=1)  # a Gaussian's log variance
    np.testing.assert_allclose(shape.distance(longer), shape.distance(points), atol=1e-5)


def test_what_is_like_training_is_understood_and_the_rest_is_not(known):
    assert np.mean(known.declined(texts(5, 500))) < 0.04
    assert np.mean(known.declined(texts(6, 500, strange=True))) > 0.95


def test_it_travels_with_probes_and_calibrations(known, tmp_path):
    own = texts(7, 200)
    labels = np.arange(200)
    Probes.of(own, own, labels, labels, known={"t2i": known}).save(tmp_path / "p.npz")
    of_probes = Probes.load(tmp_path / "p.npz").known["t2i"]
    noisy = own + np.random.default_rng(0).normal(0, 0.3, own.shape)
    index = Index.build(texts(8, 300), "cosine")
    calibrate_on(index, noisy, own, known=known).save(tmp_path / "c.json")
    of_calibration = Confidence.load(tmp_path / "c.json").known
    asked = np.concatenate([texts(5, 50), texts(6, 50, strange=True)])
    for again in (of_probes, of_calibration):
        np.testing.assert_array_equal(again.p_values(asked), known.p_values(asked))


def test_an_export_says_the_same(known):
    asked = np.concatenate([texts(5, 50), texts(6, 50, strange=True)])
    found = KnownQueriesFunction(known)({"mean": tf.constant(asked)})
    np.testing.assert_allclose(found["known_p_value"], known.p_values(asked), atol=1.1 / 401)
    assert np.mean(found["unknown"].numpy() == known.declined(asked)) >= 0.99


def test_phrases_are_cut_from_captions():
    captions = ["A black dog runs on the beach.", "Of the!", "", "Two men, in a red-blue boat"] * 20
    found = phrases(captions, np.random.default_rng(0))
    assert len(found) == len(set(found)) > 10
    whole = ["a black dog runs on the beach", "two men in a red blue boat"]
    assert all(any(one in caption for caption in whole) for one in found)
    assert max(len(one.split()) for one in found) == 4
    assert not {"a", "the", "on the", "in a"} & set(found)


def test_made_up_texts_keep_their_shape():
    ids = np.array([[3, 9, 8, 4, 0], [3, 7, 4, 0, 0]], np.int32)
    drawn = made_up(ids, WordIds(5, 1000, special=(3, 4)), np.random.default_rng(0))
    np.testing.assert_array_equal(drawn == ids, ids < 5)
    assert drawn.dtype == np.int32  # what encoders take
    assert drawn.min(where=ids >= 5, initial=1000) >= 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.distance(np.ones((2, DIM - 1))), r"`means` must be \(queries, 16\)"),
        (lambda s: s.distance(np.full((2, DIM), np.nan)), "finite"),
        (lambda s: SeenTexts(np.ones((4, DIM)), np.ones(DIM)), "5 texts or more"),
        (lambda s: SeenTexts(np.ones((9, DIM)), np.ones(3)), "`tilt` must be"),
        (lambda s: KnownQueries.of_arrays({"seen": s.seen, "kept": np.ones(3)}), "tilt"),
    ],
)
def test_bad_input_is_refused(shape, call, message):
    with pytest.raises((ValueError, KeyError), match=message):
        call(shape)
