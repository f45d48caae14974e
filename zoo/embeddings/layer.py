"""The base of the zoo's layers, similarities among them."""

import keras
import numpy as np


class Layer(keras.layers.Layer):
    """A layer whose config is what its constructor was given, NumPy's numbers and policies of dtype
    too, of which Keras alone finds none. A mask is handed on by layers that say so: most pool."""

    def __new__(cls, *args, dtype=None, **kwargs):
        args, kwargs = keras.tree.map_structure(_plain, (args, kwargs))
        return super().__new__(cls, *args, **kwargs)  # `get_config` knows the policy

    def compute_mask(self, inputs, previous_mask):
        return None


def _plain(value):
    """A NumPy number as Python's, which Keras can write to a configuration."""
    return value.item() if isinstance(value, np.generic) else value
