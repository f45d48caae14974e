"""BatchNorm whose statistics are those of the global batch."""

import keras
import tensorflow as tf

from zoo.compat import all_layers, replace_moments


def synchronize_batch_normalization(model: keras.Model) -> None:
    """Makes the BatchNorm layers of a model take their statistics over all replicas.

    So they are those of one device. Keras' own `synchronized=True` must be given when a layer is
    made, which pretrained networks do not, and passes over inputs with a mask (3.15.1). A layer
    that is frozen has no statistics to take.

    Args:
        model: to be trained by replicas.
    """
    for layer in all_layers(model):
        if isinstance(layer, keras.layers.BatchNormalization):
            replace_moments(layer, _moments)


def _moments(axes, inputs, mask):
    """Mean and variance over all replicas, of unmasked positions."""
    context = tf.distribute.get_replica_context()

    def over_all(*values):
        sums = [tf.reduce_sum(value, axes, keepdims=True) for value in values]
        return sums if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, sums)

    kept = tf.ones_like(inputs)
    if mask is not None:
        kept = kept * tf.cast(mask[..., None], inputs.dtype)
    total, count = over_all(kept * inputs, kept)
    mean = tf.math.divide_no_nan(total, count)
    (squares,) = over_all(kept * tf.square(inputs - mean))
    variance = tf.math.divide_no_nan(squares, count)
    return tf.squeeze(mean, axes), tf.squeeze(variance, axes)
