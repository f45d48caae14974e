"""The two towers of a model as graphs of numbers alone, and as ONNX files."""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from halo_search.errors import InputError, require
from zoo.layers.compat import all_layers, sound_tf2onnx

TEXTS = ("a red bird", "", "two dogs, and a cat on the beach of an island")
_MAPPED, _PAGE = 65536, 4096  # bytes


class FrozenTower(NamedTuple):
    """One side of a model: `side` names its input, `"images"` or `"captions"`, of `spec`; `outputs`
    are the sorted names of the embedding's parts."""

    side: str
    spec: tf.TensorSpec
    encoder: keras.Model
    outputs: tuple[str, ...]

    @property
    def is_recurrent(self):
        """Whether it has a recurrent layer."""
        return any(isinstance(layer, keras.layers.RNN) for layer in all_layers(self.encoder))

    def expected(self, inputs):
        """What Keras gives, a dict of arrays."""
        outputs = self.encoder(inputs, training=False)
        return {name: np.asarray(outputs[name], np.float32) for name in self.outputs}

    def example(self, model):
        """Inputs to compare engines with."""
        size = self.spec.shape[0] or 3
        shape = (size, *self.spec.shape[1:])
        if self.side == "captions" and model.tokenizer is not None:
            texts = np.resize(TEXTS, size).tolist()
            return np.asarray(model.tokenizer(tf.constant(texts)))
        top = 255.0 if self.spec.name == "images" and len(shape) == 4 else 1.0
        return np.random.default_rng(0).uniform(0, top, shape).astype("float32")


def towers_of(model, image_only=False, batch_size=None, image_size=None):
    """The `FrozenTower`s of a model. Raises InputError if an encoder does not say what it takes."""
    numbers, _ = image_inputs(model.image_encoder, batch_size, image_size)
    towers = [("images", numbers.shape, tf.float32, model.image_encoder)]
    if not image_only:
        taken = getattr(model.caption_encoder, "input", None)
        if not isinstance(taken, keras.KerasTensor):
            raise InputError("the caption encoder must take one tensor; use --image-only")
        shape = (batch_size, *taken.shape[1:])
        towers.append(("captions", shape, tf.as_dtype(taken.dtype), model.caption_encoder))
    return [
        FrozenTower(
            side,
            tf.TensorSpec(shape, dtype, name=side),
            encoder,
            tuple(sorted(name for name, part in encoder.output.items() if part is not None)),
        )
        for side, shape, dtype, encoder in towers
    ]


def image_inputs(encoder, batch_size, image_size):
    """The spec of the image encoder's numbers, and the size of its images."""
    shape = getattr(encoder, "input_shape", None)
    if (
        not isinstance(shape, tuple)
        or not shape
        or not all(size is None or isinstance(size, int) for size in shape)
    ):
        raise InputError(
            f"the image encoder must take one tensor of known shape; its input shape is {shape}"
        )
    if len(shape) != 4 or shape[-1] != 3:
        return tf.TensorSpec((batch_size, *shape[1:]), tf.float32, name="features"), None
    sides = {size for size in shape[1:3] if size is not None}
    if not sides and image_size is None:
        raise InputError("this image encoder takes images of any size; give --image-size")
    size = image_size or min(sides)
    if sides - {size}:
        raise InputError(f"this image encoder takes images of {shape[1:3]}, not of {size}")
    return tf.TensorSpec((batch_size, size, size, 3), tf.float32, name="pixels"), size


def write_onnx(tower, path):
    """Writes a `FrozenTower` to an ONNX file, its large weights to `NAME.data` beside it, which may
    be of any size. Raises MissingPackageError if tf2onnx is not installed."""
    with sound_tf2onnx(optimised=tower.is_recurrent) as tf2onnx:
        # Weights as inputs: constants are copied ten times, and a graph holds 2 GB of them.
        encoder, trained = tower.encoder, len(tower.encoder.trainable_variables)
        weights = [*encoder.trainable_variables, *encoder.non_trainable_variables]
        specs = [
            tf.TensorSpec(weight.shape, weight.dtype, name=f"weight_{place}")
            for place, weight in enumerate(weights)
        ]

        def call(inputs, *given):
            outputs, _ = encoder.stateless_call(
                given[:trained], given[trained:], inputs, training=False
            )
            return {name: tf.cast(outputs[name], tf.float32) for name in tower.outputs}

        signature = [tower.spec, *specs]
        function = tf.function(call, input_signature=signature, autograph=False)
        handlers = {"Erfc": (_complementary_error, [])}
        model, _ = tf2onnx.convert.from_function(function, signature, custom_op_handlers=handlers)
    held = {spec.name: array for spec, array in zip(specs, weights, strict=True)}
    traced = function.get_concrete_function()
    captured = zip(traced.inputs[len(signature) :], traced.captured_inputs, strict=True)
    held |= {inner.name: array for inner, array in captured}  # such as numbers of positions
    _take_in(model.graph, held, path)
    path.write_bytes(model.SerializeToString())


def weights_beside(path):
    """`{name: (kind, shape, offset)}` of a file's weights that lie beside it."""
    onnx, places = require("onnx", extra="models"), {}
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        if place := {entry.key: entry.value for entry in tensor.external_data}:
            kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).name
            places[tensor.name] = kind, list(tensor.dims), int(place["offset"])
    return places


def _take_in(graph, weights, path):
    """Makes inputs of a graph that are weights its own."""
    onnx, data, end = require("onnx", extra="models"), path.with_suffix(".data"), 0
    names = [graph_input.name for graph_input in graph.input if graph_input.name in weights]
    inputs = [graph_input for graph_input in graph.input if graph_input.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)
    data.unlink(missing_ok=True)
    for name in names:
        values = np.ascontiguousarray(weights[name])
        kind = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
        tensor = onnx.TensorProto(name=name, dims=values.shape, data_type=kind)
        if values.nbytes < _MAPPED:
            tensor.raw_data = values.tobytes()
        else:
            gap = -end % _PAGE
            with data.open("ab") as file:
                file.write(bytes(gap))
                file.write(values.data)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": data.name, "offset": end + gap, "length": values.nbytes}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            end += gap + values.nbytes
        graph.initializer.append(tensor)


def _complementary_error(graph, node, name, args):
    """erfc, which Keras' GELU is made of and ONNX has not, as 1 − erf."""
    node.type = "Erf"
    constant_one = graph.make_const(f"{name}/one", np.array(1, np.float32)).output[0]
    less = graph.insert_new_node_on_output("Sub", node.output[0], name=f"{name}/less")
    graph.replace_inputs(less, [constant_one, node.output[0]])
