"""The one check that every layer of the zoo passes: `check_layer`."""

import json
import random
import tempfile

import keras
import numpy as np
from keras import ops, tree


def check_layer(cls, config, inputs, output_shape, *, atol=1e-5, mixed_atol=0.1, seed=0):
    """Builds a layer, compares its ways of running, fits one step, saves it and loads it.

    Checks the config roundtrip, symbolic against eager shapes and dtypes, that XLA computes what
    eager does, that a step of training leaves all weights finite and moves some, mixed precision,
    and `.keras` saving. Steps are compiled with whole models, in test_execution.py.

    Args:
        cls: the layer's class, registered for saving.
        config: its constructor arguments.
        inputs: a dict from call argument to an array or a dict of arrays, each with the batch
            first. All batches have one size, since they also go through `fit`.
        output_shape: the expected shape, or a structure of shapes, with the batch.
        atol: largest difference between eager, XLA and loaded outputs.
        mixed_atol: largest difference of the outputs in mixed_bfloat16, or None for no bound.
        seed: seed of the layer's weights and of the training target.

    Returns:
        The layer, built, with the weights it had before training.
    """
    random.seed(seed)
    layer = cls(**config)
    _check_config(cls, layer)
    expected = _call(layer, inputs)
    initial = layer.get_weights()
    shapes = tree.map_structure(lambda x: tuple(x.shape), expected)
    assert shapes == output_shape, f"eager output shapes {shapes}"

    symbolic = _symbolic(inputs)
    outputs = _call(layer, symbolic)
    _check_symbolic(outputs, expected)
    model = keras.Model(symbolic, outputs)
    model.compile(jit_compile=True)
    _assert_close(model.predict_on_batch(inputs), expected, atol, "XLA")

    _check_mixed_precision(cls, config, inputs, initial, expected, mixed_atol)
    _check_saving(keras.Model(symbolic, outputs), inputs, expected, atol)
    _check_fit(layer, symbolic, outputs, inputs, seed)
    layer.set_weights(initial)
    return layer


def _call(layer, inputs):
    first, *others = inputs
    return layer(inputs[first], **{name: inputs[name] for name in others})


def _symbolic(inputs):
    leaves = [
        keras.Input(array.shape[1:], dtype=str(array.dtype), name="_".join(path))
        for path, array in tree.flatten_with_path(inputs)
    ]
    return tree.pack_sequence_as(inputs, leaves)


def _check_config(cls, layer):
    config = layer.get_config()
    json.dumps(config)
    again = cls.from_config(config)
    assert again.get_config() == config
    stored = keras.saving.serialize_keras_object(layer)
    assert keras.saving.deserialize_keras_object(stored).get_config() == config
    assert stored["registered_name"].startswith("halo>"), stored["registered_name"]


def _check_symbolic(outputs, expected):
    def check(symbolic, eager):
        assert len(symbolic.shape) == len(eager.shape)
        for known, size in zip(symbolic.shape, eager.shape, strict=True):
            assert known in (None, size), f"symbolic {symbolic.shape}, eager {eager.shape}"
        dtype = keras.backend.standardize_dtype(eager.dtype)
        assert symbolic.dtype == dtype, f"symbolic {symbolic.dtype}, eager {dtype}"

    tree.map_structure(check, outputs, expected)


def _check_mixed_precision(cls, config, inputs, weights, expected, atol):
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = cls(**config)
        _call(layer, inputs)
    finally:
        keras.config.set_dtype_policy(policy)
    layer.set_weights(weights)
    assert all(w.dtype == "float32" for w in layer.trainable_variables)
    outputs = _call(layer, inputs)
    _check_symbolic(_call(layer, _symbolic(inputs)), outputs)
    outputs = tree.map_structure(lambda x: ops.cast(x, "float32"), outputs)
    assert all(np.isfinite(output).all() for output in tree.flatten(outputs))
    if atol is not None:
        _assert_close(outputs, expected, atol, "mixed precision")


def _check_saving(model, inputs, expected, atol):
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        loaded = keras.saving.load_model(f"{folder}/model.keras")
    _assert_close(loaded(inputs), expected, atol, "loaded")


def _check_fit(layer, symbolic, outputs, inputs, seed):
    """One step down a random direction of all outputs (their norm could be constant)."""
    rng = np.random.default_rng(seed)
    batch = len(tree.flatten(inputs)[0])
    losses = []
    for output in tree.flatten(outputs):
        direction = rng.normal(size=(1, *[n or batch for n in output.shape[1:]]))
        product = ops.cast(output, "float32") * direction.astype("float32")
        losses.append(ops.mean(product, axis=tuple(range(1, len(output.shape)))))
    model = keras.Model(symbolic, sum(losses))
    if not layer.trainable_variables:
        return
    model.compile(
        optimizer=keras.optimizers.SGD(0.1), loss=lambda _, y: ops.mean(y), run_eagerly=True
    )
    before = layer.get_weights()
    model.fit(inputs, np.zeros(batch), batch_size=batch, epochs=1, verbose=0)
    after = layer.get_weights()
    assert all(np.isfinite(w).all() for w in after), "a weight is not finite after one step"
    assert any((a != b).any() for a, b in zip(before, after, strict=True)), "nothing was trained"


def _assert_close(actual, expected, atol, what):
    # by leaves, since a loaded Functional model gives lists for tuples
    actual, expected = tree.flatten_with_path(actual), tree.flatten_with_path(expected)
    for (path, a), (expected_path, e) in zip(actual, expected, strict=True):
        assert path == expected_path, f"{what}: output {path}, expected {expected_path}"
        a, e = ops.convert_to_numpy(a), ops.convert_to_numpy(e)
        np.testing.assert_allclose(a, e, atol=atol, rtol=1e-4, err_msg=f"{what} {path}")
