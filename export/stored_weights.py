"""How the weights of an export are stored: float32, 16 bits, or 8 bits with a dynamic range."""

import numpy as np
import tensorflow as tf

from halo_search.errors import InputError

_SMALL = 1024  # biases and statistics of normalisation: little to win, much to lose


class StoredWeights(tf.Module):
    """Variables of a SavedModel that stand for the weights of Keras layers.

    Smaller weights are made float32 again whenever they are used, so that activations, sums and
    similarities stay float32 and the error is that of rounding the weights alone. With
    `"dynamic_range"`, each output channel (last axis) has its own scale, its largest weight
    over 127.

    Args:
        weights: Keras variables.
        storage: one of `STORAGE`.

    Raises:
        InputError: if a weight is not finite, or not in float16.
    """

    def __init__(self, weights, storage="float32"):
        super().__init__(name="stored_weights")
        self.stored, self.scales = [], {}
        for number, weight in enumerate(weights):
            stored, scale = _compressed(np.asarray(weight), storage, weight.path)
            self.stored.append(tf.Variable(stored, trainable=False, name=weight.name))
            if scale is not None:
                self.scales[str(number)] = tf.Variable(scale, trainable=False, name="scale")
        self.dtypes = [tf.as_dtype(weight.dtype) for weight in weights]

    def values(self):
        """The weights as the layers expect them, in the order in which they were given."""
        pairs = enumerate(zip(self.stored, self.dtypes, strict=True))
        return [_restored(*pair, self.scales.get(str(number))) for number, pair in pairs]


def _compressed(value, storage, path):
    if value.dtype.kind not in "fV":  # ml_dtypes' bfloat16 is of kind V
        return value, None
    if not np.isfinite(value.astype(np.float32)).all():
        raise InputError(f"the weight {path} is not finite")
    if storage == "float32" or value.size < _SMALL or value.ndim < 2:
        return value, None
    value = value.astype(np.float32)
    if storage == "dynamic_range":
        scale = np.abs(value).max(axis=tuple(range(value.ndim - 1))) / 127
        scale = np.where(scale > 0, scale, 1).astype(np.float32)
        return np.round(value / scale).astype(np.int8), scale
    stored = tf.cast(value, storage)
    if not bool(tf.reduce_all(tf.math.is_finite(tf.cast(stored, tf.float32)))):
        raise InputError(f"the weight {path} does not fit in {storage}")
    return stored, None


def _restored(stored, dtype, scale):
    if scale is not None:
        return tf.cast(tf.cast(stored, tf.float32) * scale, dtype)
    return tf.cast(stored, dtype)  # of the same dtype: the variable's value, no copy
