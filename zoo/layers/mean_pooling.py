"""The mean of local features, without the padding."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="halo")
class MeanPooling(keras.layers.Layer):
    """Mean over positions.

    Call arguments:
        features: `(batch, positions, channels)`.
        mask: bool `(batch, positions)`, True where a position counts.

    Output: `(batch, channels)`; zeros for an item of which no position counts.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True

    def call(self, features, mask=None):
        if mask is None:
            return ops.mean(features, axis=1)
        present = ops.cast(ops.expand_dims(mask, -1), features.dtype)
        count = ops.maximum(ops.sum(present, axis=1), 1)
        return ops.sum(features * present, axis=1) / count

    def compute_mask(self, features, previous_mask):
        return None  # the positions are gone
