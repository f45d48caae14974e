"""One encoder in inference: a batch in, its embedding out, on whatever devices it lives."""

import functools
import threading
from typing import Any

import keras
import numpy as np
from keras import ops

from zoo.layers.compat import spans_workers


class Forward:
    """Encodes batches, compiled once for any batch size, and from several threads at a time.

    Under a strategy the replicas of this process encode each batch together; of several workers
    each encodes all by itself, on its first device.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    zoo.models.Forward(model.image_encoder)(np.zeros((2, 64, 64, 3)))["mean"].shape  # (2, 64)
    ```

    Output: what the encoder, a `keras.Model` or a layer, returns of a batch, as NumPy arrays;
        floats are float32.
    """

    def __init__(self, encoder: keras.layers.Layer):
        self.encoder = encoder
        self._lock, self._compiled, self._rows = threading.Lock(), None, None

    def __call__(self, batch: Any) -> Any:
        if keras.backend.backend() != "tensorflow":
            return _on_host(self.encoder(ops.convert_to_tensor(batch), training=False))
        strategy = _strategy_of(self.encoder)
        with self._lock:  # tracing is not for threads
            if self._compiled is None:
                self._compiled = _traced(self.encoder, strategy)
        if strategy is not None:
            return self._on_replicas(batch, strategy)
        taken = _taken(self.encoder)
        batch = ops.convert_to_tensor(batch, None if taken is None else taken.dtype)
        return _on_host(self._compiled(batch))

    def _on_replicas(self, batch, strategy):
        """Every replica encodes its share, of the first batch's shape, filled up with zeros: a TPU
        compiles a program per shape, and runs what is outside of `strategy.run` on its host."""
        import tensorflow as tf

        count = strategy.num_replicas_in_sync
        rows = ops.convert_to_numpy(batch)
        self._rows = max(self._rows or 0, -(-len(rows) // count))
        shares = np.zeros((count, self._rows, *rows.shape[1:]), rows.dtype)
        shares.reshape(count * self._rows, *rows.shape[1:])[: len(rows)] = rows
        found = self._compiled(
            strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(shares[context.replica_id_in_sync_group])
            )
        )
        return keras.tree.map_structure(functools.partial(_joined, strategy, len(rows)), found)


def _traced(encoder, strategy):
    import tensorflow as tf

    def forward(batch):
        return encoder(batch, training=False)

    if strategy is not None:
        return tf.function(lambda rows: strategy.run(forward, args=(rows,)))
    taken = _taken(encoder)
    if taken is None:
        return tf.function(forward, reduce_retracing=True)
    spec = tf.TensorSpec((None, *taken.shape[1:]), taken.dtype)
    compiled = tf.function(forward, input_signature=[spec])
    compiled.get_concrete_function()
    return compiled


def _taken(encoder):
    """The one input that an encoder says it takes, or None."""
    inputs = getattr(encoder, "inputs", None)
    return inputs[0] if inputs and len(inputs) == 1 else None


def _strategy_of(encoder):
    """The strategy whose replicas are all of this process, or None. `predict` would wait for the
    other workers of a cluster; each encodes rows of its own."""
    import tensorflow as tf

    strategy = getattr(encoder, "distribute_strategy", None)
    if strategy is None:
        return None
    several = strategy.num_replicas_in_sync > 1 or isinstance(strategy, tf.distribute.TPUStrategy)
    return strategy if several and not spans_workers(strategy) else None


def _joined(strategy, count, values):
    """The first rows of what all replicas give, in their order."""
    parts = strategy.experimental_local_results(values)
    return np.concatenate([_array(part) for part in parts])[:count]


def _on_host(outputs):
    return keras.tree.map_structure(_array, outputs)


def _array(values):
    array = ops.convert_to_numpy(values)
    return array if array.dtype.kind in "biu" else array.astype(np.float32, copy=False)
