"""The calibrated probability: better than its features, true, the same after saving."""

import dataclasses
import json

import numpy as np
import pytest

from halo_search.confidence import Confidence, GalleryIdentity, GalleryMoments, KnownQueries
from halo_search.errors import InputError
from halo_search.files.written import read_sealed, sealed
from zoo.metrics.confidence import abstention_auc, expected_calibration_error


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


def test_it_is_the_same_after_saving(draw, tmp_path):
    world, new = draw(seed=0), draw(seed=1)
    known = KnownQueries.fit(draw(seed=2).queries, world.queries)
    confidence = dataclasses.replace(
        Confidence.fit(world.similarity, world.correct, world.difficulty),
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


def test_a_calibration_of_the_version_before_is_read(draw, tmp_path):
    world, file = draw(seed=0), tmp_path / "calibration.json"
    confidence = Confidence.fit(world.similarity, world.correct, names=["z_score", "log_gap_2"])
    confidence.save(file)
    contents = read_sealed(file)
    calibration = {
        name: value for name, value in contents["calibration"].items() if name != "temperature"
    }
    former = {**contents, "version": 7, "calibration": calibration}
    file.write_text(json.dumps(sealed(former)))
    again = Confidence.load(file)
    assert again.temperature is None
    expected = confidence.probability(world.similarity)
    np.testing.assert_array_equal(again.probability(world.similarity), expected)


@pytest.mark.parametrize(
    ("key", "new", "message"),
    [
        ("format", "other", "is not a calibration"),
        ("version", 5, "of version 5, not of version 8: make it again, with `halo search build`"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(fitted, tmp_path, key, new, message):
    file = tmp_path / "calibration.json"
    fitted.save(file)
    whole = file.read_text()
    file.write_text(json.dumps(sealed({**read_sealed(file), key: new})))
    with pytest.raises(InputError, match=message):
        Confidence.load(file)
    file.write_text(whole.replace("logistic", "logistik"))
    with pytest.raises(InputError, match="is damaged, or was changed by hand"):
        Confidence.load(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": np.zeros(600, bool)}, "0 right and 600 wrong"),
        ({"correct": np.zeros(599, bool)}, "must be of 600 queries; received 599"),
        ({"correct": np.full(600, 0.5)}, "true or false; received 0.5 at position 0"),
        (
            {"similarity": np.where(np.arange(30) < 7, 0.0, np.full((600, 30), np.nan))},
            r"`similarity` must be finite; received nan at \(0, 7\)",
        ),
        ({"names": ["z_score", "entropy"]}, "`names` must be a list of best_minus_mean, softmax"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(draw, change, message):
    world = draw(seed=0)
    arguments = {"similarity": world.similarity, "correct": world.correct} | change
    with pytest.raises(ValueError, match=message):
        Confidence.fit(**arguments)
