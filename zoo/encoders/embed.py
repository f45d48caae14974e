"""The one way to embed many items: a tower, batch by batch, into arrays."""

from typing import Any

import keras
import numpy as np
from keras import ops


def embed(encoder: keras.layers.Layer, inputs: Any, batch_size: int = 256) -> Any:
    """The embeddings of all items, arrays on the host.

    Args:
        encoder: of images or of captions; a `keras.Model`, or a layer.
        inputs: an array `(N, …)`, or a `tf.data.Dataset` of batches.
        batch_size: how many at once, of an array.

    Returns:
        What the encoder returns, a dict of arrays, of all items.

    Raises:
        ValueError: if an array holds no item.
    """
    is_array = hasattr(inputs, "shape")
    if is_array and len(inputs) == 0:
        raise ValueError("there must be at least one item to encode; received none")
    spread = _is_spread(encoder)
    if hasattr(encoder, "predict") and not spread:
        # `predict` compiles once, and takes arrays as well as datasets, which have their batches.
        return encoder.predict(inputs, batch_size=batch_size if is_array else None, verbose=0)
    batches = inputs
    if is_array:
        batches = [inputs[at : at + batch_size] for at in range(0, len(inputs), batch_size)]
    forward = _forward(encoder, spread)
    parts = [keras.tree.map_structure(ops.convert_to_numpy, forward(batch)) for batch in batches]
    return keras.tree.map_structure(lambda *values: np.concatenate(values), *parts)


def _is_spread(encoder):
    """Whether `predict` would spread batches over replicas, and wait for other workers."""
    if keras.backend.backend() != "tensorflow" or not hasattr(encoder, "predict"):
        return False
    import tensorflow as tf  # here, so that the zoo also imports on another backend

    here = tf.distribute.get_strategy()
    return tf.distribute.has_strategy() or encoder.distribute_strategy is not here


def _forward(encoder, spread):
    def forward(batch):
        return encoder(ops.convert_to_tensor(batch), training=False)

    if not spread:
        return forward
    import tensorflow as tf

    return tf.function(forward, reduce_retracing=True)
