import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import zoo
from tiny_towers import batch, build, endless
from zoo import losses
from zoo.models.dual_encoder import match_matrix

MATCHES = match_matrix(batch())


def squared_error(matches, logits):
    return ops.mean(ops.square(matches - logits), axis=-1)


class OwnLoss(keras.losses.Loss):
    def call(self, matches, logits):
        return ops.square(matches - logits)


def logits_of(model, data):
    outputs = model({side: data[side] for side in ("images", "captions")})
    return model.similarity(outputs["images"], outputs["captions"])


@pytest.mark.parametrize("loss", ["mse", OwnLoss()])
def test_a_loss_of_compile_takes_the_step_of_its_mean(loss):
    model, expected = build("point"), build("point")
    expected.set_weights(model.get_weights())
    model.compile(keras.optimizers.SGD(0.1), loss=loss)
    logs = model.train_on_batch(batch(), return_dict=True)
    with tf.GradientTape() as tape:
        value = ops.mean(ops.square(MATCHES - logits_of(expected, batch())))
    variables = expected.trainable_variables
    gradients = tape.gradient(value, variables)
    keras.optimizers.SGD(0.1).apply(gradients, variables)
    np.testing.assert_allclose(logs["loss"], value, rtol=1e-5)
    for ours, theirs in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", [squared_error, OwnLoss()])
@pytest.mark.usefixtures("one_eagerly")
def test_a_loss_of_compile_does_not_bind_the_saved_model(loss, tmp_path):
    model = build("point", loss=None)
    model.compile("adam", loss=loss)
    model.train_on_batch(batch())
    model.save(tmp_path / "model.keras")
    zoo.save_preset(model, tmp_path / "preset")
    assert model.get_config()["loss"] is None
    for loaded in (
        keras.saving.load_model(tmp_path / "model.keras", compile=False),
        zoo.from_preset(tmp_path / "preset"),
        zoo.from_preset(tmp_path / "model.keras"),
    ):
        np.testing.assert_array_equal(
            loaded.encode_captions(batch()["captions"]), model.encode_captions(batch()["captions"])
        )
        assert loaded.loss is None
    objects = {"squared_error": squared_error, "OwnLoss": OwnLoss}
    again = keras.saving.load_model(tmp_path / "model.keras", custom_objects=objects)
    again.train_on_batch(batch())  # compiled as it was saved


def test_the_model_s_own_loss_is_saved_and_that_of_compile_comes_back_with_the_optimizer(tmp_path):
    model = build("point", loss=losses.TripletRanking(margin=0.3))
    model.compile("adam", loss=losses.TripletRanking(margin=0.4))
    model.save(tmp_path / "model.keras")
    assert keras.saving.load_model(tmp_path / "model.keras").loss.margin == 0.4
    assert keras.saving.load_model(tmp_path / "model.keras", compile=False).loss.margin == 0.3
    assert model.with_auxiliaries().loss.margin == 0.4  # what it is trained by


@pytest.mark.parametrize(
    ("own", "compiled", "is_probability"),
    [
        (losses.TripletRanking(), losses.MatchingCrossentropy(), True),
        (losses.MatchingCrossentropy(), losses.TripletRanking(), False),
    ],
)
def test_whether_the_logits_are_log_odds_is_saved(own, compiled, is_probability, tmp_path):
    model = build("gaussian", loss=own)
    model.compile("adam", loss=compiled)
    model.save(tmp_path / "model.keras")
    for compile in (True, False):
        loaded = keras.saving.load_model(tmp_path / "model.keras", compile=compile)
        assert loaded.gives_match_probability is is_probability
    zoo.save_preset(loaded, tmp_path / "preset")  # and again, from what was loaded
    assert zoo.from_preset(tmp_path / "preset").gives_match_probability is is_probability
    loaded.compile("adam", loss=losses.TripletRanking())
    assert not loaded.gives_match_probability


def test_loss_weights_are_refused():
    for weights in (2.0, [1.0, 2.0], {"kl": 0.5}):
        with pytest.raises(ValueError, match=r"`loss_weights` must be None: .*received"):
            build().compile("adam", loss_weights=weights)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_what_no_loss_of_pairs_reads_is_refused(name):
    model = build("point")
    model.compile("adam")
    rows = np.ones(4, "float32")
    given = {"y": (batch(), rows), "sample_weight": (batch(), None, rows)}[name]
    dataset = tf.data.Dataset.from_tensors(given[:2]) if name == "y" else None
    expected = rf"`{name}` must be None: .*received a tensor of the shape \(4,\)"
    for step in (model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=expected):
            step(batch(), **{name: rows})
    for step in (model.fit, model.evaluate) if dataset else ():
        with pytest.raises(ValueError, match=expected):
            step(dataset, verbose=0)


def test_metrics_see_matches_and_logits():
    seen = {}

    def largest_logit(matches, logits):
        seen["shapes"] = matches.shape, logits.shape
        return ops.max(logits)

    model = build("point")
    bce = keras.metrics.BinaryCrossentropy(from_logits=True, name="bce")
    model.compile("adam", metrics=[largest_logit, "mae", bce, keras.metrics.AUC(from_logits=True)])
    data = batch(captions_per_image=3)
    found = model.evaluate(tf.data.Dataset.from_tensors(data), return_dict=True, verbose=0)
    logits = np.asarray(logits_of(model, data))
    matches = np.asarray(match_matrix(data))
    assert seen["shapes"] == ((4, 12), (4, 12))
    np.testing.assert_allclose(found["largest_logit"], logits.max(), rtol=1e-5)
    np.testing.assert_allclose(found["mae"], np.abs(matches - logits).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["bce"], found["loss"], rtol=1e-5)
    logs = model.fit(endless(data), steps_per_epoch=2, epochs=2, verbose=0).history
    assert {"largest_logit", "mae", "bce", "auc", "loss"} == set(logs)
    assert np.isfinite(logs["mae"]).all()


def test_a_model_exports_by_keras(tmp_path):
    model, data = build("gaussian"), batch(captions_per_image=2)
    inputs = {side: data[side] for side in ("images", "captions")}
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported").signatures["serving_default"]
    found = served(**{name: tf.constant(rows) for name, rows in inputs.items()})
    for side, embedding in model(inputs).items():
        for key, values in embedding.items():
            np.testing.assert_allclose(found[f"{side}_{key}"], values, rtol=1e-5, atol=1e-6)


def test_strings_in_a_dataset_are_one_sentence():
    tokenizer = layers.TextVectorization(output_sequence_length=5, vocabulary=["red"])
    with_tokenizer, without = build("point", tokenizer=tokenizer), build("point")
    strings = tf.data.Dataset.from_tensor_slices(["a dog", "a bird"]).batch(2)
    of_dicts = strings.map(lambda captions: {"captions": captions})
    how = r"^`captions` in a dataset or a batch must be token ids; received strings: map .*$"
    for call in (
        lambda: with_tokenizer.encode_captions(strings),
        lambda: with_tokenizer.predict(of_dicts, verbose=0),
        lambda: with_tokenizer({"captions": tf.constant(["a dog"])}),
    ):
        with pytest.raises(ValueError, match=how):
            call()
    with pytest.raises(ValueError, match=r"^`captions` must be token ids or vectors; received st"):
        without.encode_captions(strings)
    with pytest.raises(ValueError, match=r"^`images` must be pixels; received strings"):
        without.encode_images(strings)
    mapped = with_tokenizer.encode_captions(strings.map(tokenizer))  # what the sentence says
    np.testing.assert_allclose(mapped, with_tokenizer.encode_captions(["a dog", "a bird"]))
