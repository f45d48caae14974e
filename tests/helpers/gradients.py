"""Values and gradients of a function of embeddings, as NumPy."""

import numpy as np
import tensorflow as tf
from keras import tree


def value_and_gradients(function, *arguments, weight=None, trainable=()):
    """`function(*arguments)` and the gradients of its (weighted) sum.

    Args:
        function: takes the arguments as tensors.
        *arguments: arrays or dicts of arrays; booleans get no gradient.
        weight: array that multiplies the value before the sum.
        trainable: Keras variables to differentiate too.

    Returns:
        The value, the gradients in the structure of `arguments` and, if there are any, those of
        `trainable`.
    """
    tensors = tree.map_structure(tf.convert_to_tensor, arguments)
    variables = [v.value for v in trainable]
    with tf.GradientTape() as tape:
        tape.watch([t for t in tree.flatten(tensors) if t.dtype.is_floating])
        value = function(*tensors)
        total = tf.reduce_sum(value if weight is None else value * weight)
    wanted = [t for t in tree.flatten(tensors) if t.dtype.is_floating]
    found = tape.gradient(total, [*wanted, *variables])
    found = [None if g is None else np.asarray(g) for g in found]
    by_tensor = dict(zip(map(id, wanted), found, strict=False))
    gradients = tree.map_structure(lambda t: by_tensor.get(id(t)), tensors)
    if not trainable:
        return np.asarray(value), gradients
    return np.asarray(value), gradients, found[len(wanted) :]
