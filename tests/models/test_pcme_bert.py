"""PCME over BERT, whole."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import encoders
from zoo.data.text.captions import WordTokenizer
from zoo.errors import InputError

RNG = np.random.default_rng(0)
WORDS = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=6)
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


def tiny(**options):
    return zoo.models.pcme_bert("tiny", WORDS, dim=8, image_size=16, **options)


def test_the_defaults_are_those_of_the_paper():
    backbone = encoders.bert(None, 10, 6, **SMALL)
    model = zoo.models.pcme_bert("tiny", caption_backbone=backbone, image_size=16)
    assert model.name == "pcme_bert"
    assert model.image_encoder.output["mean"].shape == (None, 1024)
    similarity = model.similarity
    assert (similarity.num_samples, float(similarity.scale), float(similarity.shift)) == (5, 30, 30)
    assert {term.name: term.weight for term in model.auxiliaries} == {"kl": 1e-5}
    assert model.loss.get_config()["reduction"] == "sum"


@pytest.mark.very_slow  # as PCME over a GRU in test_pcme.py
@pytest.mark.usefixtures("one_eagerly")
def test_it_trains_and_a_file_keeps_it(tmp_path):
    model = tiny(scale=10.0, shift=10.0, log_variance_bias=-4.0)
    texts = ["a red bird", "blue wing", "a small wing"]
    batch = {
        "images": RNG.uniform(0, 255, (3, 16, 16, 3)).astype("float32"),
        "captions": model.tokenize(texts),
        "image_labels": np.arange(3, dtype="int32"),
        "caption_labels": np.arange(3, dtype="int32"),
    }
    model.compile(keras.optimizers.Adam(0.003))
    data = tf.data.Dataset.from_tensors(batch).repeat()
    history = model.fit(data, steps_per_epoch=2, epochs=2, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    expected = model.encode_captions(texts)
    assert expected.event_shape == (8,)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras").encode_captions(texts)
    np.testing.assert_allclose(loaded.mean(), expected.mean(), atol=1e-6)
    np.testing.assert_allclose(loaded.variance(), expected.variance(), rtol=1e-5)


def test_a_folder_with_weights_is_read(tmp_path):
    backbone = encoders.bert(None, WORDS.vocabulary_size(), 6, **SMALL)
    backbone.get_layer("bert").save_to_preset(str(tmp_path / "preset"))
    model = tiny(caption_backbone=str(tmp_path / "preset"))
    ids = model.tokenize(["a red bird"])
    np.testing.assert_allclose(
        model.caption_encoder.get_layer("backbone")(ids)["features"],
        backbone(ids)["features"],
        atol=1e-6,
    )
    with pytest.raises(InputError, match="no such folder"):
        tiny(caption_backbone=str(tmp_path / "nothing"))


def test_points_alone():
    model = tiny(covariance=None)
    assert set(model.caption_encoder.output) == {"mean"}


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="one of `caption_backbone`"):
        zoo.models.pcme_bert("tiny", image_size=16)
    with pytest.raises(ValueError, match="must be a folder"):
        tiny(caption_backbone=7)
