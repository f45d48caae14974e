"""Packaged models read once, and encoders run eagerly for the few batches of most tests."""

import functools
import threading

import keras
import tensorflow as tf

from zoo.models import forward, presets

AT_FIRST = 4  # batches without a graph: to trace an encoder costs as much as ten


def eager_at_first(patch):
    """Until `patch`, a `MonkeyPatch`, is undone, an encoder is traced at its fifth batch."""
    patch.setattr(forward, "_traced", functools.partial(_late, forward._traced))


def _late(traced, encoder, strategy):
    if strategy is not None:
        return traced(encoder, strategy)
    calls, lock = [], threading.Lock()
    compiled = functools.cache(lambda: traced(encoder, strategy))

    def call(batch):
        calls.append(batch.shape)
        if len(calls) <= AT_FIRST or tf.config.functions_run_eagerly():
            return encoder(batch, training=False)
        with lock:
            graph = compiled()
        return graph(batch)

    return call


def read_once(patch):
    """Until `patch` is undone, packaged models share their layers, unless a test changed them."""
    read, packaged, kept = presets.read_folder, presets.PACKAGED, {}

    def read_folder(path, compile=False):
        if compile or not path.is_relative_to(packaged):
            return read(path, compile=compile)
        key = path, keras.config.dtype_policy().name
        if key not in kept or _state(kept[key][0]) != kept[key][1]:
            model = read(path)
            kept[key] = model, _state(model)
        return kept[key][0].with_auxiliaries()

    patch.setattr(presets, "read_folder", read_folder)


def _state(model):
    return [(one.trainable, float(tf.reduce_sum(one.value))) for one in model.weights]
