"""The one way to embed many items: a tower, batch by batch, into arrays."""

import functools
from typing import Any

import keras
import numpy as np
from keras import ops


def embed(encoder: keras.layers.Layer, inputs: Any, batch_size: int = 256) -> Any:
    """The embeddings of all items, arrays on the host.

    Under a strategy the replicas of this process encode each batch together; of several workers
    each encodes all by itself, on its first device.

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
    if spread and _has_replicas(encoder.distribute_strategy):
        parts = list(_on_replicas(encoder, batches))
    else:
        forward = _forward(encoder, spread)
        parts = [
            keras.tree.map_structure(ops.convert_to_numpy, forward(batch)) for batch in batches
        ]
    return keras.tree.map_structure(lambda *values: np.concatenate(values), *parts)


def _is_spread(encoder):
    """Whether the encoder is one of several replicas, as `predict` sees it."""
    if keras.backend.backend() != "tensorflow" or not hasattr(encoder, "predict"):
        return False
    import tensorflow as tf  # here, so that the zoo also imports on another backend

    here = tf.distribute.get_strategy()
    return tf.distribute.has_strategy() or encoder.distribute_strategy is not here


def _has_replicas(strategy):
    """Whether all replicas are of this process; those of other workers have work of their own."""
    import tensorflow as tf

    several = strategy.num_replicas_in_sync > 1 or isinstance(strategy, tf.distribute.TPUStrategy)
    return several and not strategy.extended._in_multi_worker_mode()


def _on_replicas(encoder, batches):
    """Encodes each batch on all replicas, every one its share of the rows.

    All shares have the shape of the first batch's, filled up with zeros: a TPU compiles a program
    for each shape. What is computed outside of `strategy.run` would run on its host.
    """
    import tensorflow as tf

    strategy = encoder.distribute_strategy
    count = strategy.num_replicas_in_sync
    forward = tf.function(
        lambda rows: strategy.run(lambda own: encoder(own, training=False), args=(rows,))
    )
    size = None
    for batch in batches:
        rows = ops.convert_to_numpy(batch)
        size = size or -(-len(rows) // count)
        shares = np.zeros((count, size, *rows.shape[1:]), rows.dtype)
        shares.reshape(count * size, *rows.shape[1:])[: len(rows)] = rows
        found = forward(
            strategy.experimental_distribute_values_from_function(
                lambda context, shares=shares: tf.constant(shares[context.replica_id_in_sync_group])
            )
        )
        yield keras.tree.map_structure(functools.partial(_joined, strategy, len(rows)), found)


def _joined(strategy, count, values):
    """The first rows of what all replicas give, in their order."""
    parts = strategy.experimental_local_results(values)
    return np.concatenate([ops.convert_to_numpy(part) for part in parts])[:count]


def _forward(encoder, spread):
    """The encoder in inference. `predict` would wait for other workers; each encodes all rows."""

    def forward(batch):
        return encoder(ops.convert_to_tensor(batch), training=False)

    if not spread:
        return forward
    import tensorflow as tf

    return tf.function(forward, reduce_retracing=True)
