import keras
import numpy as np
import pytest
import tensorflow as tf

import point_models
import zoo
from point_models import batch, largest_difference, tiny

DIM = 8


@pytest.mark.parametrize(("builder", "image_features"), [("infonce", True), ("vsepp", False)])
def test_points_become_means_and_stay(builder, image_features, tmp_path):
    points = tiny(builder, point_models.REGIONS)
    data = batch(points)
    before = points(data)
    model = zoo.models.pfe(points, image_features=image_features)
    for side in model(data).values():  # pairs start at a squared distance of one between means
        np.testing.assert_allclose(np.exp(side["log_variance"]).sum(axis=1), 0.5, rtol=1e-5)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    for _ in range(2):
        model.train_on_batch(data)
    after = model(data)
    for side in ("images", "captions"):
        np.testing.assert_array_equal(after[side]["mean"], before[side]["mean"])
        assert np.ptp(after[side]["log_variance"], axis=0).max() > 0
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.trainable_variables) == len(model.trainable_variables) == 6
    assert largest_difference(model(data), loaded(data)) <= 1e-6


def test_an_images_variance_reads_its_features():
    points = tiny("infonce", point_models.REGIONS)
    data = batch(points)
    model = zoo.models.pfe(points, image_features=True)
    change = model.image_encoder.get_layer("variance_map")
    change.kernel.assign(np.ones(change.kernel.shape, "float32"))
    regions, _ = points.image_encoder.get_layer("head").input  # and their mask
    read = keras.Model(points.image_encoder.input, regions)
    features = np.asarray(read(data["images"])).mean(1)
    found = np.asarray(model(data)["images"]["log_variance"])
    initial = found.mean() - features.sum(1).mean() / np.sqrt(1.001)  # epsilon of the scale
    np.testing.assert_allclose(
        found, np.broadcast_to(initial + features.sum(1, keepdims=True), found.shape), rtol=1e-2
    )
    with pytest.raises(ValueError, match=r"needs an image encoder with a head.*received no head"):
        zoo.models.pfe(zoo.models.vector_points(DIM), image_features=True)


def test_an_item_with_far_matches_is_uncertain():
    """Items near the first axis are blurred tenfold; the variance has to find that out."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(2000, DIM)).astype("float32")
    vague = rng.random(2000) < 0.5
    truth[vague, 0] += 4
    blur = np.where(vague, 1.0, 0.1)[:, None]
    sides = [truth + blur * rng.normal(size=truth.shape).astype("float32") for _ in range(2)]
    model = zoo.models.pfe(zoo.models.vector_points(DIM))
    model.compile(keras.optimizers.Adam(1e-2))
    labels = np.arange(len(truth))
    data = tf.data.Dataset.from_tensor_slices(
        {
            "images": sides[0].astype("float32"),
            "captions": sides[1].astype("float32"),
            "image_labels": labels,
            "caption_labels": labels,
        }
    )
    model.fit(data.batch(100, drop_remainder=True), epochs=15, verbose=0)
    for encoder in (model.image_encoder, model.caption_encoder):
        spread = np.exp(encoder(sides[0])["log_variance"]).sum(axis=1)
        assert np.median(spread[vague]) > 1.5 * np.median(spread[~vague])


def test_the_penalty_of_the_maps_is_part_of_the_loss():
    points = zoo.models.vector_points(DIM)
    data = {name: np.eye(DIM, dtype="float32") for name in ("images", "captions")}
    data |= {name: np.arange(DIM) for name in ("image_labels", "caption_labels")}
    found = []
    for regularization in (0.0, 1.0):
        model = zoo.models.pfe(points, regularization=regularization)
        for encoder in (model.image_encoder, model.caption_encoder):
            encoder.get_layer("variance_map").kernel.assign(np.full((DIM, DIM), 0.1, "float32"))
        model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        found.append(model.train_on_batch(data)[0])
    np.testing.assert_allclose(found[1] - found[0], 2 * DIM**2 * 0.1**2, rtol=1e-4)
