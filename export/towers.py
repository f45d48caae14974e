"""The two towers of a model as graphs of numbers alone, their weights constants."""

import contextlib
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

from export.signatures import image_inputs
from zoo.errors import InputError

_HALF = 6e4  # float16 ends at 65,504; what masks is larger, and would become infinite


class Tower(NamedTuple):
    """One side of a model.

    Attributes:
        side: `"images"` or `"captions"`, which is the name of its input.
        spec: of the input.
        encoder: of Keras.
        outputs: names of the embedding's parts, sorted.
    """

    side: str
    spec: tf.TensorSpec
    encoder: keras.Model
    outputs: tuple[str, ...]

    def expected(self, inputs):
        """What Keras gives, a dict of arrays."""
        found = self.encoder(inputs, training=False)
        return {name: np.asarray(found[name], np.float32) for name in self.outputs}

    def example(self, model):
        """Inputs to compare engines with."""
        size = self.spec.shape[0] or 3
        shape = (size, *self.spec.shape[1:])
        if self.side == "captions" and model.tokenizer is not None:
            texts = ["a red bird", "", "two dogs, and a cat on the beach of an island"] * size
            return np.asarray(model.tokenizer(tf.constant(texts[:size])))
        top = 255.0 if self.spec.name == "images" and len(shape) == 4 else 1.0
        return np.random.default_rng(0).uniform(0, top, shape).astype("float32")


def towers_of(model, image_only=False, batch_size=None, image_size=None):
    """The `Tower`s of a model.

    Raises:
        InputError: if an encoder does not say what it takes.
    """
    numbers, _ = image_inputs(model.image_encoder, batch_size, image_size)
    found = [("images", numbers.shape, tf.float32, model.image_encoder)]
    if not image_only:
        taken = getattr(model.caption_encoder, "input", None)
        if not isinstance(taken, keras.KerasTensor):
            raise InputError("the caption encoder must take one tensor; use --image-only")
        shape = (batch_size, *taken.shape[1:])
        found.append(("captions", shape, tf.as_dtype(taken.dtype), model.caption_encoder))
    return [
        Tower(
            side,
            tf.TensorSpec(shape, dtype, name=side),
            encoder,
            tuple(sorted(name for name, part in encoder.output.items() if part is not None)),
        )
        for side, shape, dtype, encoder in found
    ]


def frozen(tower, unroll=False, fits_half=False):
    """A tower as a `tf.function` from its input to a dict, without variables.

    Args:
        tower: a `Tower`.
        unroll: whether recurrent layers are written step by step, without lists of tensors.
        fits_half: whether constants stay in float16's range, for weights that are stored so.
    """

    def call(inputs):
        found = tower.encoder(inputs, training=False)
        return [tf.cast(found[name], tf.float32) for name in tower.outputs]

    with _unrolled(tower.encoder) if unroll else contextlib.nullcontext():
        traced = tf.function(call, input_signature=[tower.spec], autograph=False)
        constant = convert_to_constants.convert_variables_to_constants_v2(
            traced.get_concrete_function(), lower_control_flow=False
        )
    graph = constant.graph.as_graph_def()
    if fits_half:
        for node in graph.node:
            if node.op == "Const" and node.attr["dtype"].type == tf.float32.as_datatype_enum:
                values = tf.make_ndarray(node.attr["value"].tensor)
                if values.size and np.abs(values).max() > _HALF:
                    clipped = tf.make_tensor_proto(np.clip(values, -_HALF, _HALF))
                    node.attr["value"].tensor.CopyFrom(clipped)
    names = [tensor.name for tensor in constant.outputs]
    given = constant.inputs[0].name

    def rebuilt(inputs):
        parts = tf.graph_util.import_graph_def(graph, {given: inputs}, names, name="")
        return dict(zip(tower.outputs, parts, strict=True))

    return tf.function(rebuilt, input_signature=[tower.spec], autograph=False)


@contextlib.contextmanager
def _unrolled(encoder):
    """Recurrent layers step by step."""
    layers = [one for one in encoder._flatten_layers() if isinstance(one, keras.layers.RNN)]
    before = [layer.unroll for layer in layers]
    for layer in layers:
        layer.unroll = True
    try:
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.unroll = value
