"""The private parts that `zoo.layers.compat` calls are still what it takes them for."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from zoo.layers import compat

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile(
    r"\b(?:keras|keras_hub)\.src\b|tensorflow\.python\b|_flatten_layers|_get_call_context"
    r"|\._in_multi_worker_mode|_clip_gradients|_all_reduce_sum_gradients"
)


class Around(keras.layers.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)


@pytest.mark.parametrize("folder", ["zoo", "export", "demo", "recipes"])
def test_nothing_else_calls_private_parts(folder):
    for path in (ROOT / folder).rglob("*.py"):
        if path.name != "compat.py":
            found = PRIVATE.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found[0]}"


def test_all_layers_are_those_inside_of_layers_too():
    dense = keras.layers.Dense(2)
    around = Around(Around(dense))
    assert any(layer is dense for layer in compat.all_layers(around))
    assert compat.all_layers(around)[0] is around


def test_metrics_are_known_before_they_are_built():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(loss="mse", metrics=["mae"])
    assert not compat.compiled_metrics(model).built


def test_moments_are_replaced():
    layer = keras.layers.BatchNormalization(epsilon=0.0, momentum=0.0)
    layer.build((None, 3))
    compat.replace_moments(layer, lambda axes, inputs, mask: (tf.ones(3), tf.fill((3,), 4.0)))
    values = layer(np.full((2, 3), 5.0), training=True)
    np.testing.assert_allclose(values, 2.0)
    np.testing.assert_allclose(layer.moving_mean, 1.0)


def test_clipping_comes_once_however_often_it_is_asked_for():
    weight = keras.Variable([3.0])
    optimizer = keras.optimizers.SGD(1.0, clipnorm=1.0)
    compat.clip_after_the_sum(optimizer)
    compat.clip_after_the_sum(optimizer)
    optimizer.apply_gradients([(tf.constant([8.0]), weight)])
    np.testing.assert_allclose(weight, [2.0])


def test_tf2onnx_has_its_steps_back():
    pytest.importorskip("tf2onnx")
    from tf2onnx import optimizer

    before = dict(optimizer._optimizers)
    with compat.sound_tf2onnx() as tf2onnx:
        assert "optimize_transpose" not in optimizer._optimizers
        assert callable(tf2onnx.convert.from_function)
    assert dict(optimizer._optimizers) == before
