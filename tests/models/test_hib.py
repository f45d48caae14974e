import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import losses

RNG = np.random.default_rng(0)
PICTURES = RNG.uniform(0, 255, (6, 16, 16, 3)).astype("float32")
CLASSES = np.array([0, 1, 2, 0, 1, 2], "int32")


def tiny(**options):
    return zoo.models.hib("tiny", **{"dim": 8, "image_size": 16, **options})


def batch():
    return {
        "images": PICTURES[:3],
        "image_labels": CLASSES[:3],
        "captions": PICTURES[1:],
        "caption_labels": CLASSES[1:],
    }


def test_the_loss_is_the_soft_contrastive_one_between_images():
    """Equations 1 to 3 of PCME on one modality, plus the bottleneck, of the samples themselves."""
    model = tiny(kl_weight=0.01)
    model.image_encoder.trainable = False  # statistics of BatchNorm as in inference
    embeddings = model(batch())
    same = np.equal.outer(CLASSES[:3], CLASSES[1:])
    assert 0 < same.sum() < same.size
    total = float(model.compute_loss(batch(), y_pred=embeddings, training=False))
    drawn = [
        np.asarray(model.similarity.samples(embeddings[side], side, training=False)["elements"])
        for side in ("images", "captions")
    ]
    assert drawn[0].shape == (3, 7, 8)
    distances = np.linalg.norm(drawn[0][:, None, :, None] - drawn[1][None, :, None], axis=-1)
    probability = np.mean(1 / (1 + np.exp(10 * distances - 10)), axis=(2, 3))
    expected = -np.log(np.where(same, probability, 1 - probability)).sum()
    kl = sum(np.sum(losses.kl_to_standard_normal(side)) for side in embeddings.values())
    np.testing.assert_allclose(total, expected + 0.01 * kl, rtol=1e-4)


def test_both_sides_are_one_tower():
    model = tiny()
    assert model.caption_encoder is model.image_encoder
    first, second = model.encode_images(PICTURES), model.encode_captions(PICTURES)
    np.testing.assert_array_equal(first.mean(), second.mean())
    encoder, similarity = model.image_encoder, model.similarity
    expected = len(encoder.trainable_variables) + len(similarity.trainable_variables)
    assert len(model.trainable_variables) == expected
    assert model.uncertainty(first).shape == (6,)


@pytest.mark.usefixtures("one_eagerly")
def test_trained_saved_and_loaded_it_is_still_one(tmp_path):
    model = tiny()
    model.compile(zoo.training.AdamP(1e-3))
    stream = tf.data.Dataset.from_tensors(batch()).repeat()
    history = model.fit(stream, epochs=2, steps_per_epoch=3, verbose=0).history["loss"]
    assert history[1] < history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.caption_encoder is loaded.image_encoder
    expected = model.encode_images(PICTURES)
    for encode in (loaded.encode_images, loaded.encode_captions):
        np.testing.assert_allclose(encode(PICTURES).mean(), expected.mean(), atol=1e-6)
        np.testing.assert_allclose(encode(PICTURES).stddev(), expected.stddev(), rtol=1e-5)
