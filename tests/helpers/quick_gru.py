"""Keras' loop of a GRU as one operation, where TensorFlow runs eagerly.

A recurrent layer asks for a dozen operations a word and direction, and its gradient for more: half
of a small run. Here the code of Keras is traced once for each kind of layer and shape, and every
layer of that kind calls the graph with its own weights.
"""

import collections
import functools
import json

import keras
import tensorflow as tf

WEIGHTS = ("kernel", "recurrent_kernel", "bias")
AT_FIRST = 3  # calls without a graph, which costs as much as some of them


def loop_in_graphs(patch):
    """Replaces the loop of `keras.layers.GRU`, until `patch`, a `MonkeyPatch`, is undone."""
    loop, graphs, calls = keras.layers.GRU.inner_loop, {}, collections.Counter()

    @functools.wraps(loop)
    def inner_loop(self, sequences, initial_state, mask, training=False):
        random = self.dropout or self.recurrent_dropout
        if not tf.executing_eagerly() or random or self.compute_dtype != "float32":
            return loop(self, sequences, initial_state, mask, training)
        (state,) = keras.tree.flatten(initial_state)
        rows = [sequences, state, *keras.tree.flatten(mask if mask is not None else [])]
        weights = [getattr(self.cell, name).value for name in WEIGHTS]
        key = _kind(self), str([[value.shape[1:] for value in rows], weights[0].shape])
        calls[key] += 1
        if calls[key] <= AT_FIRST:
            return loop(self, sequences, initial_state, mask, training)
        if key not in graphs:
            graphs[key] = _traced(loop, self, rows, weights)
        return graphs[key](rows, weights)

    patch.setattr(keras.layers.GRU, "inner_loop", inner_loop)


def _kind(layer):
    config = {name: value for name, value in layer.get_config().items() if name != "name"}
    return json.dumps(config, default=str), layer.zero_output_for_mask


def _traced(loop, layer, rows, weights):
    """The graph of any number of rows of these shapes."""
    variables = [getattr(layer.cell, name) for name in WEIGHTS]

    def call(rows, weights):
        sequences, state, *masks = rows
        with keras.StatelessScope(list(zip(variables, weights, strict=True))):
            return loop(layer, sequences, [state], masks[0] if masks else None)

    return tf.function(call, autograph=False).get_concrete_function(
        [tf.TensorSpec((None, *value.shape[1:]), value.dtype) for value in rows],
        [tf.TensorSpec(value.shape, value.dtype) for value in weights],
    )
