import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from keras import layers

from tiny_towers import SIMILARITIES, PixelMean, WordMean, batch, build, endless
from zoo import losses, similarities
from zoo.models.dual_encoder import DualEncoder, match_matrix


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_fit_lowers_the_loss(kind):
    model = build(kind)
    model.compile(keras.optimizers.Adam(0.02))
    data = endless(batch(captions_per_image=3))
    history = model.fit(data, epochs=4, steps_per_epoch=5, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def test_a_loaded_model_trains_what_was_trained(tmp_path):
    model = build()
    model.caption_encoder.trainable = False
    model.compile("adam")
    model.fit(endless(batch()), steps_per_epoch=1, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables)


def test_users_see_distributions_sets_and_points():
    data = batch()
    gaussian = build("gaussian").encode_images(data["images"])
    assert isinstance(gaussian, tfp.distributions.MultivariateNormalDiag)
    assert build("set").encode_images(data["images"]).shape == (4, 2, 4)
    assert build("point").encode_captions(data["captions"]).shape == (4, 4)


def test_similarity_takes_what_encode_returns():
    model, data = build("gaussian"), batch(captions_per_image=2)
    images, captions = (
        model.encode_images(data["images"]),
        model.encode_captions(data["captions"]),
    )
    matrix = model.similarity(images, captions)
    assert matrix.shape == (4, 8)
    outputs = model({"images": data["images"], "captions": data["captions"]})
    np.testing.assert_allclose(
        matrix, model.similarity(outputs["images"], outputs["captions"]), rtol=1e-5, atol=1e-5
    )


def test_strings_go_through_the_tokenizer():
    tokenizer = layers.TextVectorization(output_sequence_length=5, vocabulary=["red", "bird"])
    model = build("point", tokenizer=tokenizer)
    ids = np.array([[2, 3, 0, 0, 0], [1, 3, 0, 0, 0]])
    for strings in (["red bird", "blue bird"], np.array(["red bird", "blue bird"])):
        np.testing.assert_allclose(
            model.encode_captions(strings), model.encode_captions(ids), atol=1e-6
        )
    assert model.encode_captions("red bird").shape == (1, 4)
    with pytest.raises(ValueError, match="no tokenizer"):
        build("point").encode_captions(["red bird"])


def test_auxiliaries_join_the_loss_and_are_logged_by_name():
    plain, regularised = build(), build(auxiliaries=[losses.KLRegularizer(weight=0.5)])
    regularised.set_weights(plain.get_weights())
    results = {}
    for name, model in (("plain", plain), ("regularised", regularised)):
        model.compile("adam")
        results[name] = model.evaluate(
            tf.data.Dataset.from_tensors(batch()), return_dict=True, verbose=0
        )
    term = regularised.auxiliaries[0].name
    expected = results["plain"]["loss"] + 0.5 * results["regularised"][term]
    np.testing.assert_allclose(results["regularised"]["loss"], expected, rtol=1e-5)


def test_matches_are_labels_that_agree_unless_the_batch_says_otherwise():
    labels = {"image_labels": np.array([1, 2]), "caption_labels": np.array([2, 1, 1])}
    np.testing.assert_array_equal(match_matrix(labels), [[0, 1, 1], [1, 0, 0]])
    soft = np.full((2, 3), 0.5)
    np.testing.assert_array_equal(match_matrix({**labels, "matches": soft}), soft)


def test_encoders_may_be_layers_and_need_not_be_models():
    model = DualEncoder(PixelMean(), WordMean(), similarities.Cosine(), losses.InfoNCE())
    model.compile("adam")
    data = batch()
    model.fit(endless(data), steps_per_epoch=1, verbose=0)
    whole = model.encode_images(data["images"])
    np.testing.assert_allclose(whole, data["images"].mean((1, 2)), rtol=1e-5)
    np.testing.assert_array_equal(model.encode_images(data["images"], batch_size=3), whole)
    dataset = tf.data.Dataset.from_tensor_slices(data["images"]).batch(3)
    np.testing.assert_array_equal(model.encode_images(dataset), whole)
    assert model.encode_captions(data["captions"]).shape == (4, 3)
    with pytest.raises(ValueError, match="received none"):
        model.encode_images(np.zeros((0, 6, 6, 3)))


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (["a.jpg", "b.jpg"], r"must be pixels; received strings.*prepare"),
        ([np.zeros((6, 6, 3)), np.zeros((5, 6, 3))], r"one shape; received \(6, 6, 3\) and \(5"),
        (np.zeros((6, 6, 3)), r"\(N, 6, 6, 3\); received \(6, 6, 3\): one item without the axis"),
        (np.zeros((2, 50, 50, 3)), r"\(N, 6, 6, 3\); received \(2, 50, 50, 3\)"),
    ],
)
def test_what_are_no_pictures_of_the_model_is_said(images, why):
    with pytest.raises(ValueError, match=f"`images` must .*{why}|`images` {why}"):
        build("point").encode_images(images)


@pytest.mark.parametrize(
    ("captions", "why"),
    [
        (["a dog", 3], r"all be strings, or all be token ids; item 1 is 3 of type int"),
        ([[1, 2, 3, 4, 5], [1, 2]], r"must be of one shape; received \(5,\) and \(2,\)"),
        (np.zeros((2, 7), int), r"\(N, 5\); received \(2, 7\)"),
    ],
)
def test_what_are_no_captions_is_said(captions, why):
    tokenizer = layers.TextVectorization(output_sequence_length=5, vocabulary=["red"])
    with pytest.raises(ValueError, match=why):
        build("point", tokenizer=tokenizer).encode_captions(captions)


def test_pictures_up_to_one_are_warned_of(recwarn):
    model, images = build("point"), batch()["images"]
    with pytest.warns(UserWarning, match=r"0 … 255; the largest value is 1"):
        model.encode_images(images / images.max())
    recwarn.clear()
    for fine in (images, np.zeros((1, 6, 6, 3), "float32"), np.ones((1, 6, 6, 3), "uint8")):
        model.encode_images(fine)
    assert not [one for one in recwarn if "0 … 255" in str(one.message)]


def _without(key):
    return {name: value for name, value in batch().items() if name != key}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((batch()["images"], batch()["captions"]), "received a tuple"),
        (_without("image_labels"), r"without \['image_labels'\]"),
        ({**batch(), "captions": np.array(["a dog"] * 4)}, "received strings as 'captions'"),
    ],
)
def test_a_batch_of_another_form_is_one_error_that_says_who_makes_one(given, why):
    model = build("point")
    model.compile("adam")
    for step in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=why) as caught:
            step(tf.data.Dataset.from_tensors(given), verbose=0)
        assert "`zoo.data.batches.image_caption_pairs(" in str(caught.value)
        assert "'image_labels' and 'caption_labels' or 'matches'" in str(caught.value)


class Noted(layers.Layer):
    """Keeps in which mode it is called."""

    def call(self, inputs, training=None):
        self.modes = {*getattr(self, "modes", ()), training}
        return inputs


@pytest.mark.parametrize("side", ["image_encoder", "caption_encoder"])
def test_a_step_trains_both_encoders_and_only_a_step(side):
    inputs = keras.Input((6, 6, 3)), keras.Input((5,), dtype="int32")
    towers = [
        keras.Model(x, tower()(Noted(name="noted")(x)))
        for x, tower in zip(inputs, (PixelMean, WordMean), strict=True)
    ]
    model, data = DualEncoder(*towers, similarities.Cosine(), losses.InfoNCE()), batch()
    model.compile("sgd")
    noted = getattr(model, side).get_layer("noted")
    for step, expected in ((model.fit, True), (model.evaluate, False)):
        noted.modes = set()
        step(tf.data.Dataset.from_tensors(data), verbose=0)
        assert noted.modes == {expected}
