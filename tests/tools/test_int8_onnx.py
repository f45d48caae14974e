"""Int8 weights of an ONNX file: a quarter of the size, and the numbers of the weights as kept."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from export.engines import opened, write_tower
from tools import int8_onnx
from zoo.models.frozen import FrozenTower
from zoo.models.small_weights import to_int8

pytest.importorskip("tf2onnx")
pytest.importorskip("onnxruntime")


def tower(monkeypatch):
    """A table of word vectors, an attention of two heads and a dense layer, once in int8."""
    monkeypatch.setattr(int8_onnx, "LEAST", 64)
    ids = keras.Input((None,), dtype="int32", name="captions")
    words = layers.Embedding(200, 16)(ids)
    attended = layers.MultiHeadAttention(2, 8)(words, words)
    mean = layers.Dense(24)(layers.GlobalAveragePooling1D()(attended))
    encoder = keras.Model(ids, {"mean": mean})
    for weight in encoder.weights:
        if len(weight.shape) > 1:
            levels, steps = to_int8(np.asarray(weight))
            weight.assign(levels * steps.astype(np.float32))
    return FrozenTower(
        "captions", tf.TensorSpec((1, None), tf.int32, "captions"), encoder, ("mean",)
    )


def test_nothing_is_lost_again_and_the_file_is_smaller(tmp_path, monkeypatch):
    made, path = tower(monkeypatch), tmp_path / "captions.onnx"
    write_tower(path, made, "onnx")
    before = path.stat().st_size
    int8_onnx.shrink(path, [np.asarray(weight) for weight in made.encoder.weights])
    numbers = sum(np.size(weight) for weight in made.encoder.weights)
    assert path.stat().st_size < before - numbers  # of four bytes, less what nodes add
    ask = opened(path, made, "onnx")
    for length in (1, 5):  # any length
        ids = np.arange(3, 3 + length, dtype="int32")[None]
        np.testing.assert_allclose(ask(ids)["mean"], made.expected(ids)["mean"], atol=1e-6)


def test_other_weights_are_near(tmp_path, monkeypatch):
    made, path = tower(monkeypatch), tmp_path / "captions.onnx"
    for weight in made.encoder.weights:
        weight.assign(weight + 0.01 * np.random.default_rng(0).normal(size=weight.shape))
    write_tower(path, made, "onnx")
    int8_onnx.shrink(path, [])
    ids = np.array([[3, 4, 5]], "int32")
    found, expected = opened(path, made, "onnx")(ids)["mean"], made.expected(ids)["mean"]
    assert 0 < np.abs(found - expected).max() < 0.02
