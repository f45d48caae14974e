"""The calibrated probability: better than its features, true, the same after saving."""

import json

import numpy as np
import pytest

from json_values import changed
from zoo.confidence import (
    Confidence,
    GalleryIdentity,
    GalleryMoments,
    KnownQueries,
    QueryScores,
    abstention_auc,
    expected_calibration_error,
)
from zoo.errors import InputError


@pytest.fixture(scope="module")
def fitted(draw):
    world = draw(seed=0)
    return Confidence.fit(world.similarity, world.correct)


def test_probabilities_are_true_and_order_better_than_any_feature(draw):
    world, new = draw(seed=0, count=1500), draw(seed=1, count=3000)
    confidence = Confidence.fit(world.similarity, world.correct)
    probability = confidence.probability(new.similarity)
    assert probability.shape == (3000,)
    assert probability.min() >= 0
    assert probability.max() <= 1
    assert expected_calibration_error(probability, new.correct) < 0.05
    features = confidence.features(new.similarity)
    alone = [
        abstention_auc(sign * column, new.correct) for column in features.T for sign in (1, -1)
    ]
    assert abstention_auc(probability, new.correct) > max(alone) - 0.02


def test_uncertainty_is_a_feature_that_helps_where_it_knows(draw):
    world, new = draw(seed=0), draw(seed=1, count=3000)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=600)
    hard, hard_new = (w.difficulty - 2 * w.correct for w in (world, new))
    plain = Confidence.fit(world.similarity, world.correct)
    told = Confidence.fit(world.similarity, world.correct, uncertainty=hard)
    useless = Confidence.fit(world.similarity, world.correct, uncertainty=noise)
    before = abstention_auc(plain.probability(new.similarity), new.correct)
    after = abstention_auc(told.probability(new.similarity, hard_new), new.correct)
    unchanged = useless.probability(new.similarity, rng.normal(size=3000))
    assert after > before + 0.1
    assert abs(abstention_auc(unchanged, new.correct) - before) < 0.03


def test_uncertainty_is_given_always_or_never(draw, fitted):
    world = draw(seed=0)
    with pytest.raises(ValueError, match="fitted without uncertainty; leave it out"):
        fitted.probability(world.similarity, world.difficulty)
    told = Confidence.fit(world.similarity, world.correct, world.difficulty)
    with pytest.raises(ValueError, match="the features uncertainty were expected"):
        told.probability(world.similarity)


def test_an_approximate_search_gives_the_same_probability(draw, fitted):
    new = draw(seed=1)
    moments = GalleryMoments.of(new.gallery).squared_distance_scores(new.queries)
    top = -np.sort(-new.similarity, axis=1)[:, :100]
    approximate = fitted.probability(QueryScores(top, *moments, len(new.gallery)))
    np.testing.assert_allclose(approximate, fitted.probability(new.similarity), atol=1e-9)


def test_it_is_the_same_after_saving(draw, tmp_path):
    world, new = draw(seed=0), draw(seed=1)
    known = KnownQueries.fit(draw(seed=2).queries, world.queries)
    confidence = Confidence.fit(
        world.similarity,
        world.correct,
        world.difficulty,
        gallery=GalleryIdentity(400, GalleryMoments.of(world.gallery).summary()),
        known=known,
    )
    path = tmp_path / "calibration.json"
    confidence.save(path)
    again = Confidence.load(path)
    arguments = new.similarity, new.difficulty
    np.testing.assert_array_equal(again.probability(*arguments), confidence.probability(*arguments))
    assert again.gallery == confidence.gallery
    assert again.known.reasons(new.queries) == known.reasons(new.queries)
    assert (again.num_queries, again.num_correct) == (600, int(world.correct.sum()))
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        (["format"], "other", "is not a calibration"),
        (["version"], 5, "of version 5, not of version 6: make it again, with `halo search build`"),
        (["version"], ..., "of version None, not of version 6"),
        (["calibration"], ..., "damaged calibration: 'calibration' must be an object; found None"),
        (["calibration", "names"], ..., "'calibration' has no 'names'"),
        (["calibration", "names"], "z_score", "'names' must be a list; found str"),
        (["calibration", "names"], ["z_score"], "one name a weight"),
        (["calibration", "recalibration"], None, "'recalibration', which is not known"),
        (["calibration", "logistic", "bias"], True, "'bias' must be a number; found True"),
        (["calibration", "logistic", "bias"], "1", "'bias' must be a number; found '1'"),
        (["calibration", "logistic", "weights", "shape"], [9], "'weights' must hold 9 numbers"),
        (["calibration", "num_queries"], 1.5, "'num_queries' must be of type int; found 1.5"),
        (["calibration", "logistic", "weights", "data"], "!!!", "'weights' must hold an array in"),
        (["calibration", "logistic"], 3, "'logistic' must be an object; found int"),
        (["calibration", "gallery"], 3, "'gallery' must be an object; found int"),
        (["calibration", "known"], {}, "'known' has no 'kept'"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(fitted, tmp_path, path, new, message):
    file = tmp_path / "calibration.json"
    fitted.save(file)
    file.write_text(json.dumps(changed(json.loads(file.read_text()), path, new)))
    with pytest.raises(InputError, match=message):
        Confidence.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), ("{", "is not valid JSON"), ("[1]", "is not a calibration")],
)
def test_a_file_that_is_no_json_object_is_refused(tmp_path, content, message):
    file = tmp_path / "calibration.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=message):
        Confidence.load(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": np.ones(600, bool)}, "600 right and 0 wrong"),
        ({"correct": np.zeros(600, bool)}, "0 right and 600 wrong"),
        ({"correct": np.arange(600) < 2}, "2 right and 598 wrong"),
        ({"correct": np.zeros(599, bool)}, "must be of 600 queries; received 599"),
        ({"correct": np.full(600, 0.5)}, "true or false; received 0.5 at position 0"),
        ({"uncertainty": np.full(600, np.nan)}, "`uncertainty` must be finite"),
        ({"similarity": np.full((600, 30), np.nan)}, "`similarity` must be finite"),
        ({"similarity": np.zeros(600)}, r"must be \(queries, items\)"),
        ({"names": "z_score"}, "`names` must be a list of best_minus_mean, z_score"),
        ({"names": ["z_score", "entropy"]}, "`names` must be a list of best_minus_mean, z_score"),
        ({"names": []}, "`names` must be a list of best_minus_mean, z_score"),
        ({"groups": np.arange(3)}, r"`groups` must be of shape \(600,\)"),
        ({"penalty": 0.0}, "`penalty` must be positive"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(draw, change, message):
    world = draw(seed=0)
    arguments = {"similarity": world.similarity, "correct": world.correct} | change
    with pytest.raises(ValueError, match=message):
        Confidence.fit(**arguments)


def test_too_few_queries_are_refused(draw):
    world = draw(seed=0)
    with pytest.raises(ValueError, match="at least 20 queries; received 19"):
        Confidence.fit(world.similarity[:19], world.correct[:19])


def test_a_shallower_search_is_refused(draw):
    world = draw(seed=0)
    scores = QueryScores.of_matrix(world.similarity, vectors=world.gallery)
    confidence = Confidence.fit(scores, world.correct)
    rng = np.random.default_rng(0)
    few = QueryScores.of_matrix(rng.normal(size=(3, 9)), vectors=rng.normal(size=(9, 16)))
    with pytest.raises(ValueError, match="the features agreement_10 were expected"):
        confidence.probability(few)


def test_tensors_are_taken(draw, fitted):
    import tensorflow as tf

    new = draw(seed=1)
    expected = fitted.probability(new.similarity)
    np.testing.assert_array_equal(fitted.probability(tf.constant(new.similarity)), expected)
