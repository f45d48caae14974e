import keras
import numpy as np
import pytest

import point_models
import zoo
from point_models import batch, largest_difference, tiny
from zoo import similarities


@pytest.mark.parametrize(("builder", "mining"), [("vse0", "sum"), ("vsepp", "hardest")])
def test_vse_is_that_of_the_paper(builder, mining):
    model = getattr(zoo.models, builder)((2048,), vocabulary_size=10)
    assert model.name == builder
    assert model.image_encoder.output["mean"].shape == (None, 1024)
    assert model.caption_encoder.get_layer("backbone").get_layer("words").output_dim == 300
    assert isinstance(model.similarity, similarities.Cosine)
    config = model.loss.get_config()
    assert (config["margin"], config["mining"], config["reduction"]) == (0.2, mining, "sum")


def test_vsepp_maps_features_of_length_one():
    """As released: `EncoderImageFull` normalises before and after the map, `EncoderImagePrecomp`
    only after it."""
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(3, 2, 2, 5)).astype("float32")
    inputs = keras.Input((2, 2, 5))
    network = keras.Model(inputs, keras.layers.Identity()(inputs), name="backbone")
    vectors = rng.normal(size=(3, 5)).astype("float32")
    for backbone, images, options, lengths in (
        (network, maps, {}, (1.0, 1.0)),
        (network, maps, {"unit_features": False}, (None, 1.0)),
        ((5,), vectors, {}, (None, 1.0)),
    ):
        model = zoo.models.vsepp(backbone, vocabulary_size=9, dim=4, word_dim=3, **options)
        dense = model.image_encoder.get_layer("embedding")
        dense.bias.assign(rng.normal(size=4))  # so that the length before the map counts
        pooled = images.reshape(3, -1, 5).mean(axis=1)
        if lengths[0]:
            pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        expected = pooled @ dense.kernel.numpy() + dense.bias.numpy()
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        found = model.image_encoder(images)["mean"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_vsrn_is_that_of_the_paper():
    model = zoo.models.vsrn(vocabulary_size=10, dim=16)
    assert model.image_encoder.input_shape == (None, 36, 2048)
    assert model.image_encoder.get_layer("reasoning").num_layers == 4
    assert (model.loss.margin, model.loss.mining) == (0.2, "hardest")


@pytest.mark.parametrize(
    ("builder", "regions"),  # the towers of VSE0 are those of VSE++
    [("vsepp", "tiny"), ("vsrn", point_models.REGIONS)],
)
def test_points_have_length_one_and_learn_their_batch(builder, regions, tmp_path):
    model = tiny(builder, regions)
    data = batch(model)
    for embedding in model(data).values():
        np.testing.assert_allclose(np.linalg.norm(embedding["mean"], axis=-1), 1.0, rtol=1e-5)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)  # tracing takes far longer
    loss = [float(model.train_on_batch(data)) for _ in range(3)]
    assert loss[-1] < loss[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert largest_difference(model(data), loaded(data)) <= 1e-6


@pytest.mark.parametrize("builder", ["vsepp", "vsrn", "gaussian_vsepp", "gaussian_vsrn"])
def test_padded_regions_and_words_change_nothing(builder):
    long = tiny(builder, (9, 7))
    short = tiny(builder, (5, 7), max_words=2)
    short.set_weights(long.get_weights())
    data = batch(short)
    padded = np.zeros((6, 9, 7), "float32")
    padded[:, :5] = data["images"]
    captions = np.pad(data["captions"], ((0, 0), (0, 1)))
    found = long({"images": padded, "captions": captions})
    assert largest_difference(found, short(data)) < 1e-5


def test_one_vector_an_image_is_a_region():
    model = zoo.models.vsepp((7,), vocabulary_size=9, dim=4, word_dim=3)
    assert model.image_encoder(np.ones((2, 7), "float32"))["mean"].shape == (2, 4)
    with pytest.raises(ValueError, match=r"image_backbone.*\(1, 2, 3\)"):
        zoo.models.vsepp((1, 2, 3), vocabulary_size=9)
